//! Waiting for a word: FUTEX_WAIT, FUTEX_WAIT_BITSET.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::task::Poll;

use janua_abi::linux::futex::futex2;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::time::{TimeSpec, clock};
use janua_kernel::wait::Cut;
use janua_kernel::{Errno, Result, UserPtr};
use janua_port::Nanos;

use super::table::{Entry, FutexTable, Purpose, Waiter, Waiting};
use crate::Thread;
use crate::restart::{self, Restart};
use crate::time::ClockArg;

/// A place in the table, given up on drop.
pub(super) struct Place<'a> {
    pub table: &'a FutexTable,
    pub waiter: Arc<Waiter>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.table.dequeue(&self.waiter);
    }
}

impl Place<'_> {
    /// Waits until somebody takes the waiter out. What comes in the same moment as a signal or the end counts as a wake-up.
    pub async fn wait(&self, thread: &Thread, deadline: Option<Nanos>) -> Result<Waiting, Cut> {
        poll_fn(|_| {
            match self.waiter.state() {
                Waiting::Queued => {}
                state => return Poll::Ready(Ok(state)),
            }
            let cut = if thread.interrupted() {
                Cut::Interrupted
            } else if deadline.is_some_and(|at| thread.machine().clock().monotonic() >= at) {
                Cut::TimedOut
            } else {
                if let Some(at) = deadline {
                    thread.wake_at(at);
                }
                return Poll::Pending;
            };
            Poll::Ready(if self.table.dequeue(&self.waiter) { Err(cut) } else { Ok(self.waiter.state()) })
        })
        .await
    }
}

/// Waits while the word at `addr` is `value`. EAGAIN when it is not.
pub async fn wait(
    thread: &Thread,
    addr: usize,
    value: u32,
    bitset: u32,
    private: bool,
    deadline: Option<Nanos>,
) -> Result<usize> {
    if bitset == 0 {
        return Err(Errno::EINVAL);
    }
    let key = super::key(thread, addr, private)?;
    let place = Place { table: &thread.kernel.futexes, waiter: thread.futex.waiter.clone() };
    let entry = Entry { key, bitset, waiter: place.waiter.clone(), waker: thread.waker().clone(), purpose: Purpose::Wake };
    if !place.table.enqueue(entry, || super::is(thread, addr, value))? {
        return Ok(0);
    }
    match place.wait(thread, deadline).await {
        Ok(_) => Ok(0),
        Err(Cut::TimedOut) => Err(Errno::ETIMEDOUT),
        Err(Cut::Interrupted) => Err(match deadline {
            None => Errno::ERESTARTSYS,
            Some(deadline) => restart::later(thread, Restart::Futex { addr, value, bitset, private, deadline }),
        }),
    }
}

/// After a restart.
pub async fn go_on(thread: &Thread, addr: usize, value: u32, bitset: u32, private: bool, deadline: Nanos) -> Result<usize> {
    wait(thread, addr, value, bitset, private, Some(deadline)).await
}

/// The flags of the futex2 calls: whether the word is private. EINVAL for another size than 32 bits.
pub(super) fn futex2_private(flags: u32) -> Result<bool> {
    if flags & !(futex2::SIZE_MASK | futex2::PRIVATE) != 0 || flags & futex2::SIZE_MASK != futex2::SIZE_U32 {
        return Err(Errno::EINVAL);
    }
    Ok(flags & futex2::PRIVATE != 0)
}

/// The end of a futex2 wait: a point of CLOCK_MONOTONIC or CLOCK_REALTIME.
pub(super) fn futex2_deadline(thread: &Thread, timeout: UserPtr<impl Layout<TimeSpec>>, id: ClockArg) -> Result<Option<Nanos>> {
    if !timeout.is_null() && !matches!(id.0, clock::MONOTONIC | clock::REALTIME) {
        return Err(Errno::EINVAL);
    }
    super::deadline(thread, timeout, false, id.0 == clock::REALTIME)
}

/// futex_wait of futex2.
pub async fn futex_wait(
    thread: &Thread,
    addr: usize,
    value: u64,
    bitset: u64,
    flags: u32,
    timeout: UserPtr<impl Layout<TimeSpec>>,
    id: ClockArg,
) -> Result<usize> {
    let private = futex2_private(flags)?;
    let (Ok(value), Ok(bitset)) = (u32::try_from(value), u32::try_from(bitset)) else { return Err(Errno::EINVAL) };
    let deadline = futex2_deadline(thread, timeout, id)?;
    wait(thread, addr, value, bitset, private, deadline).await
}
