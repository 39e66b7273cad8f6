//! Calls that come without a signal: the entry has the frame whole, or has made them itself.

use janua_entry::hosted::{self, Area, IMAGE_SIZE, KERNEL_BASE};
use janua_port::guest::{Abi, Verdict};

use crate::spawn;

/// A rewritten call; registers and number are in the area's frame.
///
/// # Safety
/// Called by the entry assembly only, on the thread's own kernel stack.
pub unsafe extern "C" fn on_call(area: *mut Area) -> *mut Area {
    let index = hosted::index_of(area as usize);
    // SAFETY: the thread's own area.
    let this = unsafe { &mut (*area).own };
    let flow = spawn::guest(index).call(&mut this.frame, Abi::Native);
    spawn::carry_on(this, index, flow)
}

/// A call that the entry made itself has left work behind or has a verdict, which is among the bits of `verdict`; its result is in the area's
/// frame.
///
/// # Safety
/// As [`on_call`].
pub unsafe extern "C" fn on_returned(area: *mut Area, verdict: u32) -> *mut Area {
    let index = hosted::index_of(area as usize);
    // SAFETY: the thread's own area.
    let this = unsafe { &mut (*area).own };
    let flow = spawn::guest(index).returned(&mut this.frame, Abi::Native, Verdict::from_register(verdict));
    spawn::carry_on(this, index, flow)
}

/// As [`on_call`], for kernels whose functions programs may call by address: what would be the number is then an address in the
/// kernel's text, that of a `fn(&G, &mut Frame) -> Flow` with the guest's own type for `G`. There is no gate to pass and nothing is
/// checked, which is the point of comparing with it; so it is for kernels without a jail, which trust their programs anyway.
///
/// # Safety
/// As [`on_call`], and the program keeps to the addresses it was given.
pub unsafe extern "C" fn on_direct_call(area: *mut Area) -> *mut Area {
    let index = hosted::index_of(area as usize);
    // SAFETY: the thread's own area.
    let this = unsafe { &mut (*area).own };
    let address = this.frame.number();
    if address.wrapping_sub(KERNEL_BASE) >= IMAGE_SIZE {
        // SAFETY: as this function's.
        return unsafe { on_call(area) };
    }
    // SAFETY: the program got the address from the kernel (see above); a guest is a thin pointer in the first of the two words.
    let function = unsafe { core::mem::transmute::<usize, fn(*const (), &mut janua_port::Frame) -> janua_port::Flow>(address) };
    let flow = function(core::ptr::from_ref(spawn::guest(index)).cast(), &mut this.frame);
    spawn::carry_on(this, index, flow)
}
