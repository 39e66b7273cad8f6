//! 32-bit programs, on machines that can run them.

use janua_abi::linux::Result;
use janua_abi::linux::i386::UserDesc;
use janua_arch::{Segments, Vdso32};

/// What the calling guest thread needs beyond its frame while it runs 32-bit code.
pub trait Compat: Send + Sync {
    /// Entries of the processor's descriptor table that guests have for thread-local storage: the first, and how many.
    fn thread_areas(&self) -> (u32, u32);
    /// Sets one of [`Compat::thread_areas`] for the calling thread. `descriptor` has been checked to be a data segment or empty.
    fn set_thread_area(&self, descriptor: &UserDesc) -> Result<()>;
    /// The calling thread's data segment registers.
    fn segments(&self) -> Segments;
    /// Loads them; a selector that names no segment is taken as 0.
    fn set_segments(&self, segments: Segments);
    /// The machine's own vDSO, for the instruction that is the fastest here: where its parts are.
    fn vdso(&self) -> Vdso32;
    /// That page.
    fn vdso_image(&self) -> [u8; 4096];
    /// The calling thread, and those it makes, run a 32-bit program from now on whose calls go on at this address
    /// ([`Vdso32::landing`]), or with 0 a program of 64-bit code: it says what an entry by an instruction means that tells not which
    /// of the two it was executed by.
    fn set_landing(&self, _address: u32) {}
}
