//! 32-bit programs, on machines that can run them.

use janua_arch::Vdso32;

/// What the machine has for all of them; what a thread has is in its [`crate::context::Registers`].
pub trait Compat: Send + Sync {
    /// Entries of the processor's descriptor table that guests have for thread-local storage: the first, and how many.
    fn thread_areas(&self) -> (u32, u32);
    /// The machine's own vDSO, for the instruction that is the fastest here: where its parts are.
    fn vdso(&self) -> Vdso32;
    /// That page.
    fn vdso_image(&self) -> [u8; 4096];
}
