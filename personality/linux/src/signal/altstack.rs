//! The alternate signal stack (sigaltstack(2)).

use janua_abi::linux::layout::Layout;
use janua_abi::linux::signal::{MINSIGSTKSZ, StackT, ss};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_port::Frame;

use crate::Thread;

/// No alternate stack.
pub const DISABLED: StackT = StackT { sp: 0, flags: ss::DISABLE, _pad: 0, size: 0 };

/// Whether a stack pointer is on the alternate stack. One that disarms itself never counts as in use.
pub fn contains(stack: &StackT, sp: u64) -> bool {
    stack.flags & ss::AUTODISARM == 0 && sp > stack.sp && sp - stack.sp <= stack.size
}

/// Whether `low..high` is in the stack.
pub fn contains_range(stack: &StackT, low: u64, high: u64) -> bool {
    low >= stack.sp && high <= stack.sp.wrapping_add(stack.size) && low <= high
}

/// SS_DISABLE, SS_ONSTACK or neither.
pub fn state(stack: &StackT, sp: u64) -> u32 {
    match stack.size {
        0 => ss::DISABLE,
        _ if contains(stack, sp) => ss::ONSTACK,
        _ => 0,
    }
}

/// Installs another stack for a thread whose stack pointer is `sp`. EPERM while on the present one, ENOMEM when too small.
pub fn change(thread: &Thread, new: &StackT, sp: u64) -> Result<()> {
    let mut current = thread.signals.altstack.lock();
    if contains(&current, sp) {
        return Err(Errno::EPERM);
    }
    let mode = new.flags & !ss::AUTODISARM;
    match mode {
        ss::DISABLE => {
            *current = DISABLED;
            Ok(())
        }
        0 | ss::ONSTACK => {
            if new.size < MINSIGSTKSZ {
                return Err(Errno::ENOMEM);
            }
            *current = StackT { sp: new.sp, flags: new.flags & ss::AUTODISARM, _pad: 0, size: new.size };
            Ok(())
        }
        _ => Err(Errno::EINVAL),
    }
}

/// sigaltstack(2).
pub fn sigaltstack(
    thread: &Thread,
    frame: &mut Frame,
    new: UserPtr<impl Layout<StackT>>,
    old: UserPtr<impl Layout<StackT>>,
) -> Result<()> {
    let new = new.non_null().map(|new| new.load(thread.user())).transpose()?;
    let before = *thread.signals.altstack.lock();
    let answer =
        StackT { flags: state(&before, frame.stack_pointer() as u64) | before.flags & ss::AUTODISARM, _pad: 0, ..before };
    if let Some(new) = new {
        change(thread, &new, frame.stack_pointer() as u64)?;
    }
    match old.non_null() {
        Some(old) => old.store(thread.user(), &answer),
        None => Ok(()),
    }
}
