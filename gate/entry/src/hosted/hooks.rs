//! What the platform gives the entries of [`super::entry`]: the Rust code they call, and how they know a frame of the host's.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::Area;

/// What the platform registers: the Rust ends of the assembly. The order is known to it.
#[repr(C)]
pub struct Hooks {
    /// A rewritten call: registers and number are in the area's frame. Returns the area to leave through.
    ///
    /// # Safety
    /// Called by the call entries only.
    pub on_call: unsafe extern "C" fn(*mut Area) -> *mut Area,
    /// User code was interrupted by a host signal, described in the area's arrival. Returns the area to leave through.
    ///
    /// # Safety
    /// Called by the signal entries only.
    pub on_signal: unsafe extern "C" fn(*mut Area) -> *mut Area,
    /// The kernel itself was interrupted: signal number, siginfo, ucontext. It goes on with the context as it is on return.
    ///
    /// # Safety
    /// Called by the signal entries only.
    pub on_nested: unsafe extern "C" fn(i32, *mut u8, *mut u8),
    /// A call that was made by the thread's [`super::FastPath`] has left work behind or has a verdict, which is among the bits of the
    /// second word; its result is in the area's frame. Returns the area to leave through.
    ///
    /// # Safety
    /// Called by the call entries only.
    pub on_returned: unsafe extern "C" fn(*mut Area, u32) -> *mut Area,
}

const _: () = assert!(core::mem::offset_of!(Hooks, on_returned) == 24);

/// Read by the assembly.
pub(super) static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(core::ptr::null_mut());

/// The word every genuine frame starts with. Zero, before it is set, is no frame's.
pub static SECRET: AtomicU64 = AtomicU64::new(0);

/// Where in the host's save area of a frame the key register is: 0 where user code runs without a key.
pub(super) static KEY_PLACE: AtomicU32 = AtomicU32::new(0);

/// Sets for the entries of the jail `pkey` how far into the host's save area, as XSAVE lays it out, the key register is. To be
/// called before the first signal handler is set. The host has been writing it there whatever it is since Linux 6.12.
pub fn set_key_place(bytes: u32) {
    KEY_PLACE.store(bytes, Ordering::Release);
}

/// Registers the platform's ends, before the first signal handler is set.
pub fn set_hooks(hooks: &'static Hooks) {
    HOOKS.store((&raw const *hooks).cast_mut(), Ordering::Release);
}

/// Sets the word by which frames are known; the handlers' restorer must be the same. Not 0, which is what a used frame has.
pub fn set_secret(secret: u64) {
    SECRET.store(secret, Ordering::Release);
}
