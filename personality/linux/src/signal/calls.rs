//! The calls by which a thread manages and awaits its own signals.

use janua_abi::linux::layout::Layout;
use janua_abi::linux::signal::*;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::{Arg, Kind};
use janua_kernel::thread::work;
use janua_kernel::wait::Cut;
use janua_port::Nanos;

use super::{UNBLOCKABLE, dequeue, is_signal, recompute, set_mask, set_temporary_mask};
use crate::Thread;
use crate::signal::SigSet;
use crate::thread::ThreadExt;

/// Bytes of the kernel's `sigset_t`.
pub const SIGSET_SIZE: usize = 8;

/// A signal number as an argument, unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(pub i32);

impl Arg for Signal {
    const KIND: Kind = Kind::Named("signal");
    fn decode(word: usize) -> Result<Self> {
        Ok(Signal(word as i32))
    }
}

impl Signal {
    /// The number; EINVAL unless it names a signal.
    pub fn number(self) -> Result<u32> {
        u32::try_from(self.0).ok().filter(|number| is_signal(*number)).ok_or(Errno::EINVAL)
    }

    /// The same where 0 is allowed (kill(2)'s test for existence).
    pub fn or_none(self) -> Result<u32> {
        if self.0 == 0 { Ok(0) } else { self.number() }
    }
}

fn check_size(size: usize) -> Result<()> {
    if size == SIGSET_SIZE { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Reads an optional set; EINVAL for another size than 8.
pub fn read_set(thread: &Thread, set: UserPtr<u64>, size: usize) -> Result<Option<SigSet>> {
    match set.non_null() {
        None => Ok(None),
        Some(set) => {
            check_size(size)?;
            Ok(Some(SigSet(set.read(thread.user())?)))
        }
    }
}

/// rt_sigaction(2).
pub fn rt_sigaction(
    thread: &Thread,
    signal: Signal,
    new: UserPtr<SigAction>,
    old: UserPtr<SigAction>,
    size: usize,
) -> Result<()> {
    check_size(size)?;
    let number = signal.number()?;
    let new = new.non_null().map(|new| new.read(thread.user())).transpose()?;
    let new = new.map(|new| SigAction { flags: new.flags & sa::KNOWN, ..new });
    set_action(thread, number, new, |before| match old.non_null() {
        Some(old) => old.write(thread.user(), &SigAction { flags: before.flags & sa::KNOWN, ..before }),
        None => Ok(()),
    })
}

/// Changes an action and reports what it was before. EINVAL for a signal whose action is fixed.
pub fn set_action(
    thread: &Thread,
    number: u32,
    new: Option<SigAction>,
    report: impl FnOnce(SigAction) -> Result<()>,
) -> Result<()> {
    let actions = thread.process().actions();
    let before = match new {
        Some(_) if UNBLOCKABLE.has(number) => return Err(Errno::EINVAL),
        Some(new) => {
            let mask = SigSet(new.mask).without(UNBLOCKABLE).0;
            let before = actions.set(number, SigAction { mask, ..new });
            super::send::discard_ignored(thread, number);
            before
        }
        None => actions.get(number),
    };
    report(before)
}

/// rt_sigprocmask(2).
pub fn rt_sigprocmask(thread: &Thread, how: i32, set: UserPtr<u64>, old: UserPtr<u64>, size: usize) -> Result<()> {
    const SIG_BLOCK: i32 = 0;
    const SIG_UNBLOCK: i32 = 1;
    const SIG_SETMASK: i32 = 2;
    check_size(size)?;
    let before = thread.signals.blocked();
    if let Some(set) = set.non_null() {
        let set = SigSet(set.read(thread.user())?);
        let mask = match how {
            SIG_BLOCK => before.union(set),
            SIG_UNBLOCK => before.without(set),
            SIG_SETMASK => set,
            _ => return Err(Errno::EINVAL),
        };
        set_mask(thread, mask);
    }
    match old.non_null() {
        Some(old) => old.write(thread.user(), &before.0),
        None => Ok(()),
    }
}

/// rt_sigpending(2): blocked and waiting. A smaller set than 8 bytes is cut.
pub fn rt_sigpending(thread: &Thread, set: UserPtr<u8>, size: usize) -> Result<()> {
    if size > SIGSET_SIZE {
        return Err(Errno::EINVAL);
    }
    let pending = thread.signals.pending().union(thread.process().pending()).and(thread.signals.blocked());
    thread.user().copy_out(set.addr(), &pending.0.to_ne_bytes()[..size]).map_err(|_| Errno::EFAULT)
}

/// Waits until a signal is taken; the call never ends otherwise.
async fn until_signal(thread: &Thread) -> Errno {
    let never = thread.wait_until::<()>(None, 0, |_| (), || None).await;
    match never {
        Ok(()) | Err(Cut::Interrupted | Cut::TimedOut) => Errno::ERESTARTNOHAND,
    }
}

/// rt_sigsuspend(2).
pub async fn rt_sigsuspend(thread: &Thread, set: UserPtr<u64>, size: usize) -> Result<()> {
    check_size(size)?;
    suspend(thread, SigSet(set.read(thread.user())?)).await
}

/// Waits for a signal with another mask.
pub async fn suspend(thread: &Thread, mask: SigSet) -> Result<()> {
    set_temporary_mask(thread, mask);
    Err(until_signal(thread).await)
}

/// pause(2).
pub async fn pause(thread: &Thread) -> Result<()> {
    Err(until_signal(thread).await)
}

/// rt_sigtimedwait(2): takes one of a set of blocked signals out of the queues. EAGAIN when the time is over.
pub async fn rt_sigtimedwait(
    thread: &Thread,
    set: UserPtr<u64>,
    info: UserPtr<impl Layout<SigInfo>>,
    timeout: UserPtr<impl Layout<[i64; 2]>>,
    size: usize,
) -> Result<u32> {
    check_size(size)?;
    let wanted = SigSet(set.read(thread.user())?).without(UNBLOCKABLE);
    let deadline = match timeout.non_null() {
        None => None,
        Some(timeout) => Some(deadline(thread, timeout.load(thread.user())?)?),
    };
    let taken = match dequeue(thread, wanted) {
        Some(taken) => taken,
        None => wait_for(thread, wanted, deadline).await?,
    };
    if let Some(info) = info.non_null() {
        info.store(thread.user(), &taken)?;
    }
    Ok(taken.signal())
}

/// A relative `struct timespec` as a point in monotonic time. EINVAL for nonsense.
fn deadline(thread: &Thread, [sec, nsec]: [i64; 2]) -> Result<Nanos> {
    let (Ok(sec), Ok(nsec @ 0..1_000_000_000)) = (u64::try_from(sec), u64::try_from(nsec)) else {
        return Err(Errno::EINVAL);
    };
    let span = sec.saturating_mul(1_000_000_000).saturating_add(nsec);
    Ok(thread.machine().clock().monotonic().saturating_add(span))
}

/// Puts the mask back however the wait ends.
struct Waiting<'a> {
    thread: &'a Thread,
    mask: SigSet,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.thread.signals.store_waited(SigSet::EMPTY);
        // What was sent to the process for this thread, which is about to leave, is another's that waits for it.
        set_mask(self.thread, self.mask);
    }
}

async fn wait_for(thread: &Thread, wanted: SigSet, deadline: Option<Nanos>) -> Result<SigInfo> {
    // While it waits the wanted signals are unblocked, so that senders wake this thread and not another.
    let mask = thread.signals.blocked();
    thread.signals.store_waited(mask.and(wanted));
    thread.signals.store_blocked(mask.without(wanted));
    let waiting = Waiting { thread, mask };
    let result = thread
        .wait_until(
            deadline,
            0,
            |_| (),
            || {
                // The flag was raised for a signal that is taken here, or will be raised again below.
                thread.clear_work(work::INTERRUPT);
                let taken = dequeue(thread, wanted);
                recompute(thread);
                taken
            },
        )
        .await;
    drop(waiting);
    match result {
        Ok(taken) => Ok(taken),
        Err(Cut::TimedOut) => Err(Errno::EAGAIN),
        // Never restarted: the time that has passed would be forgotten (signal(7)).
        Err(Cut::Interrupted) => Err(Errno::EINTR),
    }
}
