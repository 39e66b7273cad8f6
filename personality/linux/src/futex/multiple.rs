//! futex_waitv(2): waiting for any of several words.

use alloc::vec::Vec;
use core::future::poll_fn;
use core::task::Poll;

use alloc::sync::Arc;

use janua_abi::linux::futex::{BITSET_MATCH_ANY, FutexWaitv, WAITV_MAX};
use janua_abi::linux::layout::Layout;
use janua_abi::linux::time::TimeSpec;
use janua_kernel::{Errno, Result, UserPtr};

use super::table::{Entry, Purpose, Waiter, Waiting};
use super::wait::{Place, futex2_deadline, futex2_private};
use crate::Thread;
use crate::time::ClockArg;

/// The place that has been woken, if one has.
fn woken(places: &[Place<'_>]) -> Option<usize> {
    places.iter().position(|place| place.waiter.state() == Waiting::Woken)
}

/// futex_waitv(2): the index of a word that was woken. EAGAIN when one is not as expected.
pub async fn futex_waitv(
    thread: &Thread,
    words: UserPtr<FutexWaitv>,
    count: u32,
    flags: u32,
    timeout: UserPtr<impl Layout<TimeSpec>>,
    id: ClockArg,
) -> Result<usize> {
    if flags != 0 || count == 0 || count as usize > WAITV_MAX || words.is_null() {
        return Err(Errno::EINVAL);
    }
    let deadline = futex2_deadline(thread, timeout, id)?;
    let words = words.slice(count as usize).read_vec(thread.user(), WAITV_MAX)?;
    let mut keys = Vec::with_capacity(words.len());
    for word in &words {
        if word.reserved != 0 {
            return Err(Errno::EINVAL);
        }
        let value = u32::try_from(word.val).map_err(|_| Errno::EINVAL)?;
        let addr = word.uaddr as usize;
        keys.push((super::key(thread, addr, futex2_private(word.flags)?)?, addr, value));
    }
    let table = &thread.kernel.futexes;
    let mut places: Vec<Place<'_>> = Vec::with_capacity(keys.len());
    for (key, addr, value) in keys {
        let waiter = Arc::new(Waiter::default());
        let entry = Entry {
            key,
            bitset: BITSET_MATCH_ANY,
            waiter: waiter.clone(),
            waker: thread.waker().clone(),
            purpose: Purpose::Wake,
        };
        match table.enqueue(entry, || super::is(thread, addr, value)) {
            Ok(true) => places.push(Place { table, waiter }),
            Ok(false) => return Ok(woken(&places).unwrap_or(places.len())),
            // A wake-up must not be lost for a word that differs: it was meant for this call.
            Err(errno) => return woken(&places).ok_or(errno),
        }
    }
    poll_fn(|_| {
        if let Some(at) = woken(&places) {
            return Poll::Ready(Ok(at));
        }
        let errno = if thread.interrupted() {
            // The end is a point of time: the call can be made again as it is.
            Errno::ERESTARTSYS
        } else if deadline.is_some_and(|at| thread.machine().clock().monotonic() >= at) {
            Errno::ETIMEDOUT
        } else {
            if let Some(at) = deadline {
                thread.wake_at(at);
            }
            return Poll::Pending;
        };
        for place in &places {
            table.dequeue(&place.waiter);
        }
        Poll::Ready(woken(&places).ok_or(errno))
    })
    .await
}
