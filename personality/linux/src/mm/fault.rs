//! Faults of user code that the program must not notice: below a mapping that grows, or from what a jail does to pages.

use janua_object::mm::jail::Interrupted;
use janua_port::Frame;
use janua_port::space::Access;
use janua_port::trap::{Cause, Refusal};

use crate::Thread;
use crate::thread::ThreadExt;

/// Whether an exception has been dealt with, so that the thread goes on at `frame`.
pub fn fault(thread: &Thread, frame: &mut Frame, cause: Cause, addr: usize) -> bool {
    let Some(mm) = thread.process().mm() else { return false };
    let Some(context) = thread.context() else { return false };
    let mut by = Interrupted { frame, context, fpu_size: thread.machine().isa().fpu.size };
    match cause {
        Cause::Page { refusal: Refusal::Unmapped, .. } => mm.grow_down(addr, &super::limits(thread)),
        Cause::Page { refusal: Refusal::Rights, access: access @ (Access::Store | Access::Fetch) } => {
            mm.user_fault(&mut by, addr, access)
        }
        Cause::Illegal => mm.illegal(&mut by),
        _ => false,
    }
}
