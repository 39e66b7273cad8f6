//! What entry and exit know of the core: one page at the top of the address space, which an instruction reaches from %g0 with
//! its immediate alone.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Where the page is mapped, for the supervisor only.
pub const PLACE: usize = 0xffff_f000;

/// Calls that may take the fast path have numbers below this.
pub const DIRECT: usize = 512;

/// The page. Its layout is known to the assembly, as offsets from address 0: see `mod.rs`,
/// `gate/src/ta/entry.rs` and `platform/leon3/src/unprotected.rs`.
#[repr(C, align(4096))]
pub struct Core {
    /// The stack pointer with which a trap from user code begins: below the top of the running thread's kernel stack by a
    /// minimal stack frame and a [`janua_arch::Frame`].
    pub stack: AtomicU32,
    /// First argument of calls on the fast path.
    pub thread: AtomicPtr<()>,
    /// The PSR of the last trap from user code, for its window number; all ones when no window of a user's can be in the
    /// register file.
    pub entry: AtomicU32,
    /// Points to the word that shows whether the running thread returns by the slow path.
    pub work: AtomicPtr<AtomicU32>,
    /// Windows spilled and filled since the start.
    pub overflows: AtomicU32,
    pub underflows: AtomicU32,
    /// The functions of calls on the fast path, by number; 0 where there is none.
    pub calls: AtomicPtr<[AtomicPtr<()>; DIRECT]>,
}

const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(Core, thread) == 4);
    assert!(offset_of!(Core, entry) == 8);
    assert!(offset_of!(Core, work) == 12);
    assert!(offset_of!(Core, overflows) == 16);
    assert!(offset_of!(Core, underflows) == 20);
    assert!(offset_of!(Core, calls) == 24);
    // The handler of calls tests the number's upper bits.
    assert!(DIRECT == 512);
    assert!(size_of::<Core>() == 4096);
};

/// The word of a core on which nobody runs yet.
static IDLE: AtomicU32 = AtomicU32::new(0);

/// The table of a machine without such calls.
pub static NONE: [AtomicPtr<()>; DIRECT] = [const { AtomicPtr::new(core::ptr::null_mut()) }; DIRECT];

/// The page's memory; the boot code maps it at [`PLACE`] as well.
#[unsafe(no_mangle)]
pub static JANUA_CORE: Core = Core {
    stack: AtomicU32::new(0),
    thread: AtomicPtr::new(core::ptr::null_mut()),
    entry: AtomicU32::new(u32::MAX),
    work: AtomicPtr::new((&raw const IDLE).cast_mut()),
    overflows: AtomicU32::new(0),
    underflows: AtomicU32::new(0),
    calls: AtomicPtr::new((&raw const NONE).cast_mut()),
};

/// Windows spilled and filled since the start.
pub fn window_traps() -> (u32, u32) {
    (JANUA_CORE.overflows.load(Ordering::Relaxed), JANUA_CORE.underflows.load(Ordering::Relaxed))
}
