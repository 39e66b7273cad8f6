//! Dispositions and masks: handlers set by these calls find the frames of 32-bit code.

use janua_abi::linux::i386::signal::{OldSigAction32, SigAction32};
use janua_abi::linux::layout::Layout;
use janua_abi::linux::signal::{SigAction, sa};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;

use crate::Thread;
use crate::signal::calls::{self, SIGSET_SIZE, Signal};
use crate::signal::{SigSet, set_mask};

/// sigaction(2) in one of its layouts.
fn act<L: Layout<SigAction>>(thread: &Thread, signal: Signal, new: UserPtr<L>, old: UserPtr<L>) -> Result<()> {
    let number = signal.number()?;
    let new = new.non_null().map(|new| new.load(thread.user())).transpose()?;
    let new = new.map(|new| SigAction { flags: new.flags & sa::KNOWN | sa::COMPAT, ..new });
    calls::set_action(thread, number, new, |before| match old.non_null() {
        Some(old) => old.store(thread.user(), &before),
        None => Ok(()),
    })
}

pub fn rt_sigaction(
    thread: &Thread,
    signal: Signal,
    new: UserPtr<SigAction32>,
    old: UserPtr<SigAction32>,
    size: usize,
) -> Result<()> {
    if size != SIGSET_SIZE {
        return Err(Errno::EINVAL);
    }
    act(thread, signal, new, old)
}

pub fn sigaction(thread: &Thread, signal: Signal, new: UserPtr<OldSigAction32>, old: UserPtr<OldSigAction32>) -> Result<()> {
    act(thread, signal, new, old)
}

/// signal(2), as System V has it: the action is reset when it is taken. The handler there was.
pub fn signal(thread: &Thread, signal: Signal, handler: u32) -> Result<u32> {
    let flags = sa::RESETHAND | sa::NODEFER | sa::COMPAT;
    let new = SigAction { handler: handler.into(), flags, restorer: 0, mask: 0 };
    let mut before = 0;
    calls::set_action(thread, signal.number()?, Some(new), |old| {
        before = old.handler as u32;
        Ok(())
    })?;
    Ok(before)
}

/// The low half of the mask, which is all that the calls of old know.
fn low(thread: &Thread) -> u32 {
    thread.signals.blocked().0 as u32
}

fn with_low(thread: &Thread, low: u32) -> SigSet {
    SigSet(thread.signals.blocked().0 & !0xffff_ffff | u64::from(low))
}

pub fn sgetmask(thread: &Thread) -> u32 {
    low(thread)
}

/// ssetmask(2): the mask there was.
pub fn ssetmask(thread: &Thread, mask: u32) -> u32 {
    let before = low(thread);
    set_mask(thread, SigSet(mask.into()));
    before
}

/// sigprocmask(2) of old.
pub fn sigprocmask(thread: &Thread, how: i32, set: UserPtr<u32>, old: UserPtr<u32>) -> Result<()> {
    let before = low(thread);
    if let Some(set) = set.non_null() {
        let set = set.read(thread.user())?;
        let mask = match how {
            0 => before | set,
            1 => before & !set,
            2 => set,
            _ => return Err(Errno::EINVAL),
        };
        set_mask(thread, with_low(thread, mask));
    }
    match old.non_null() {
        Some(old) => old.write(thread.user(), &before),
        None => Ok(()),
    }
}

/// sigpending(2) of old.
pub fn sigpending(thread: &Thread, set: UserPtr<u32>) -> Result<()> {
    calls::rt_sigpending(thread, set.cast(), 4)
}

/// sigsuspend(2) of old: the mask is the third word.
pub async fn sigsuspend(thread: &Thread, _: u32, _: u32, mask: u32) -> Result<()> {
    calls::suspend(thread, SigSet(mask.into())).await
}
