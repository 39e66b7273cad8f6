//! Faults of user code that the program must not notice: below a mapping that grows, or from what a jail does to pages.

use janua_object::mm::jail::Interrupted;
use janua_port::Frame;
use janua_port::space::Access;

use crate::Thread;
use crate::thread::ThreadExt;

const SIGILL: u32 = 4;
const SIGSEGV: u32 = 11;
/// `si_code`: nothing is mapped.
const SEGV_MAPERR: i32 = 1;
/// `si_code`: the mapping does not allow the access.
const SEGV_ACCERR: i32 = 2;
/// Bits of a page fault's error code.
const STORE: u64 = 1 << 1;
const FETCH: u64 = 1 << 4;

/// Whether a fault has been dealt with, so that the thread goes on at `frame`.
pub fn fault(thread: &Thread, frame: &mut Frame, signal: u32, code: i32, addr: usize, error: u64) -> bool {
    let Some(mm) = thread.process().mm() else { return false };
    let Some(context) = thread.context() else { return false };
    let mut by = Interrupted { frame, context, fpu_size: thread.machine().isa().fpu.size };
    match signal {
        SIGSEGV if code == SEGV_MAPERR => mm.grow_down(addr, &super::limits(thread), thread.tid()),
        SIGSEGV if code == SEGV_ACCERR && error & FETCH != 0 => mm.user_fault(&mut by, addr, Access::Fetch),
        SIGSEGV if code == SEGV_ACCERR && error & STORE != 0 => mm.user_fault(&mut by, addr, Access::Store),
        SIGILL => mm.illegal(&mut by),
        _ => false,
    }
}
