//! Locks with priority inheritance: FUTEX_LOCK_PI and its variants, FUTEX_WAIT_REQUEUE_PI, FUTEX_CMP_REQUEUE_PI.
//!
//! The word of such a lock is its owner's tid, with FUTEX_WAITERS set while others wait, so that the program's own release fails
//! and comes here. The kernel hands the lock to the longest waiter, writing that one's tid.
//!
//! Word and queue change together, so the word is used with its bucket locked, but only once its page has been touched: a page that is
//! taken away in that moment is all that the others at the bucket could wait for.

use janua_abi::linux::futex::{BITSET_MATCH_ANY, OWNER_DIED, TID_MASK, WAITERS};
use janua_kernel::wait::Cut;
use janua_kernel::{Errno, Result};
use janua_object::mm::FutexKey;
use janua_port::Nanos;

use core::sync::atomic::Ordering;

use super::table::{Entry, FutexTable, LockWaiter, Purpose, Queues, Waiting, Wakers};
use super::wait::Place;
use crate::Thread;

/// How an attempt to take a lock ended.
enum Attempt {
    Taken,
    /// Somebody else's; FUTEX_WAITERS is set.
    Owned(u32),
}

/// Tries to make `tid` the owner, with the lock's bucket locked. EDEADLK when it is already, EINVAL when others wait and the word
/// names another owner than the one they wait for.
fn attempt(thread: &Thread, queues: &Queues, key: &FutexKey, addr: usize, tid: u32, mark: bool) -> Result<Attempt> {
    let mut word = super::load(thread, addr)?;
    loop {
        let owner = word & TID_MASK;
        if owner == tid {
            return Err(Errno::EDEADLK);
        }
        let left_behind = owner == 0 && word & OWNER_DIED != 0;
        if FutexTable::owner(queues, key).is_some_and(|known| known != owner && !left_behind) {
            return Err(Errno::EINVAL);
        }
        let new = if owner == 0 {
            let others = if FutexTable::next_owner(queues, key).is_some() { WAITERS } else { 0 };
            tid | word & OWNER_DIED | others
        } else if mark {
            word | WAITERS
        } else {
            return Ok(Attempt::Owned(owner));
        };
        let found = super::exchange(thread, addr, word, new)?;
        if found == word {
            return Ok(if owner == 0 { Attempt::Taken } else { Attempt::Owned(owner) });
        }
        word = found;
    }
}

/// FUTEX_TRYLOCK_PI.
pub fn try_lock(thread: &Thread, addr: usize, private: bool) -> Result<usize> {
    let key = super::key(thread, addr, private)?;
    super::touch(thread, addr);
    let queues = thread.kernel.futexes.lock(&key);
    match attempt(thread, &queues, &key, addr, thread.tid(), false)? {
        Attempt::Taken => Ok(0),
        Attempt::Owned(_) => Err(Errno::EAGAIN),
    }
}

/// FUTEX_LOCK_PI, FUTEX_LOCK_PI2. ESRCH when the owner named in the word does not exist.
pub async fn lock(thread: &Thread, addr: usize, private: bool, deadline: Option<Nanos>) -> Result<usize> {
    let key = super::key(thread, addr, private)?;
    let table = &thread.kernel.futexes;
    let place = Place { table, waiter: thread.futex.waiter.clone() };
    loop {
        let seen = super::load(thread, addr)? & TID_MASK;
        super::touch(thread, addr);
        // Looked up before the bucket is locked; the word is judged again under the lock.
        let known = if seen == 0 { None } else { thread.kernel.thread(seen) };
        let mut queues = table.lock(&key);
        match attempt(thread, &queues, &key, addr, thread.tid(), true)? {
            Attempt::Taken => return Ok(0),
            Attempt::Owned(owner) if owner != seen => {}
            Attempt::Owned(owner) => {
                let Some(known) = known else { return Err(Errno::ESRCH) };
                place.waiter.set(Waiting::Queued);
                let waiter = LockWaiter { tid: thread.tid(), waiter: place.waiter.clone(), waker: thread.waker().clone() };
                table.add_lock_waiter(&mut queues, &key, addr, owner, waiter);
                // After the announcement, so that either is seen by the other.
                if known.futex.gone.load(Ordering::SeqCst) || known.tid() != owner {
                    table.take_back_lock_waiter(&mut queues, &key);
                    return Err(Errno::ESRCH);
                }
                break;
            }
        }
    }
    match place.wait(thread, deadline).await {
        Ok(_) => Ok(0),
        Err(Cut::TimedOut) => Err(Errno::ETIMEDOUT),
        Err(Cut::Interrupted) => Err(Errno::ERESTARTNOINTR),
    }
}

/// FUTEX_UNLOCK_PI. EPERM unless the caller owns the lock.
pub fn unlock(thread: &Thread, addr: usize, private: bool) -> Result<usize> {
    let key = super::key(thread, addr, private)?;
    super::touch(thread, addr);
    let waker = {
        let mut queues = thread.kernel.futexes.lock(&key);
        release(thread, &mut queues, &key, addr, 0)?
    };
    if let Some(waker) = waker {
        waker.wake();
    }
    Ok(0)
}

/// Gives the caller's lock to the next waiter, or to nobody; `mark` is set in the word besides.
fn release(thread: &Thread, queues: &mut Queues, key: &FutexKey, addr: usize, mark: u32) -> Result<Option<core::task::Waker>> {
    let mut word = super::load(thread, addr)?;
    loop {
        if word & TID_MASK != thread.tid() {
            return Err(Errno::EPERM);
        }
        let new = match FutexTable::next_owner(queues, key) {
            Some((next, more)) => next | mark | if more { WAITERS } else { 0 },
            None => mark,
        };
        let found = super::exchange(thread, addr, word, new)?;
        if found == word {
            return Ok(thread.kernel.futexes.hand_over(queues, key));
        }
        word = found;
    }
}

/// Thread `tid`, the owner of a lock in the kernel's record, ends, whatever has been written to the word since: the next waiter gets it.
pub(super) fn recorded_owner_died(thread: &Thread, tid: u32, key: &FutexKey, addr: usize) {
    super::touch(thread, addr);
    let pass = || -> Result<Option<core::task::Waker>> {
        let mut queues = thread.kernel.futexes.lock(key);
        if FutexTable::owner(&queues, key) != Some(tid) {
            return Ok(None);
        }
        let Some((next, _)) = FutexTable::next_owner(&queues, key) else { return Ok(None) };
        let mut word = super::load(thread, addr)?;
        loop {
            // FUTEX_WAITERS even if no more wait, as on Linux: the new owner's release comes here.
            let found = super::exchange(thread, addr, word, next | OWNER_DIED | WAITERS)?;
            if found == word {
                return Ok(thread.kernel.futexes.hand_over(&mut queues, key));
            }
            word = found;
        }
    };
    if let Ok(Some(waker)) = pass() {
        waker.wake();
    }
}

/// The caller ends with the lock at `addr` in its hands: the next owner learns that by FUTEX_OWNER_DIED.
pub(super) fn owner_died(thread: &Thread, key: &FutexKey, addr: usize) {
    super::touch(thread, addr);
    let waker = {
        let mut queues = thread.kernel.futexes.lock(key);
        release(thread, &mut queues, key, addr, OWNER_DIED)
    };
    if let Ok(Some(waker)) = waker {
        waker.wake();
    }
}

/// FUTEX_WAIT_REQUEUE_PI: waits on the first word until moved to the lock at the second, and then until that is the caller's.
pub async fn wait_requeue(
    thread: &Thread,
    addr: [usize; 2],
    value: u32,
    private: bool,
    deadline: Option<Nanos>,
) -> Result<usize> {
    if addr[0] == addr[1] {
        return Err(Errno::EINVAL);
    }
    let key = super::key(thread, addr[0], private)?;
    let lock = super::key(thread, addr[1], private)?;
    if key == lock {
        return Err(Errno::EINVAL);
    }
    let place = Place { table: &thread.kernel.futexes, waiter: thread.futex.waiter.clone() };
    let entry = Entry {
        key,
        bitset: BITSET_MATCH_ANY,
        waiter: place.waiter.clone(),
        waker: thread.waker().clone(),
        purpose: Purpose::Move { lock, tid: thread.tid() },
    };
    if !place.table.enqueue(entry, || super::is(thread, addr[0], value))? {
        // As on Linux for a wake-up that has not moved it.
        return Err(Errno::EAGAIN);
    }
    match place.wait(thread, deadline).await {
        Ok(_) => Ok(0),
        Err(Cut::TimedOut) => Err(Errno::ETIMEDOUT),
        // Once moved, the wait for the first word is over and cannot be made again.
        Err(Cut::Interrupted) if place.waiter.moved.load(Ordering::Acquire) => Err(Errno::EAGAIN),
        Err(Cut::Interrupted) => Err(Errno::ERESTARTNOINTR),
    }
}

/// FUTEX_CMP_REQUEUE_PI: gives the lock at the second word to the first waiter if it is free, and lets up to `most` others wait
/// for it: how many both.
pub fn requeue(thread: &Thread, addr: [usize; 2], most: usize, expected: u32, private: bool) -> Result<usize> {
    if addr[0] == addr[1] {
        return Err(Errno::EINVAL);
    }
    let from = super::key(thread, addr[0], private)?;
    let to = super::key(thread, addr[1], private)?;
    let table = &thread.kernel.futexes;
    let mut wakers = Wakers::new();
    let mut count = 0;
    let (moved, known) = loop {
        // Looked up before the buckets are locked; the word is judged again under the locks.
        let seen = super::load(thread, addr[1]).map_or(0, |word| word & TID_MASK);
        let known = if seen == 0 { None } else { thread.kernel.thread(seen) };
        super::touch(thread, addr[1]);
        let mut both = table.lock_both_if(&from, &to, || super::is(thread, addr[0], expected))?;
        let mut at = 0;
        let moved = loop {
            let Some(entry) = both.from().entries.get(at).filter(|_| count <= most) else { break Ok(()) };
            if entry.key != from {
                at += 1;
                continue;
            }
            let Purpose::Move { lock, tid } = entry.purpose else { break Err(Errno::EINVAL) };
            if lock != to {
                break Err(Errno::EINVAL);
            }
            // The first may get the lock; each other finds it owned.
            let attempt = match attempt(thread, both.to(), &to, addr[1], tid, true) {
                Ok(attempt) => attempt,
                Err(error) => break Err(error),
            };
            // Of one that has no owner any more nobody is ever notified.
            if let Attempt::Owned(owner) = attempt
                && count == 0
            {
                if owner != seen {
                    break Err(Errno::ERESTARTNOINTR);
                }
                if known.as_ref().is_none_or(|known| known.futex.gone.load(Ordering::SeqCst)) {
                    break Err(Errno::ESRCH);
                }
            }
            let Some(entry) = both.from().entries.remove(at) else { break Ok(()) };
            table.left(&from);
            count += 1;
            match attempt {
                Attempt::Taken => {
                    entry.waiter.set(Waiting::Owns);
                    wakers.push(entry.waker);
                }
                Attempt::Owned(owner) => {
                    entry.waiter.moved.store(true, Ordering::Release);
                    let waiter = LockWaiter { tid, waiter: entry.waiter, waker: entry.waker };
                    table.add_lock_waiter(both.to(), &to, addr[1], owner, waiter);
                }
            }
        };
        if moved != Err(Errno::ERESTARTNOINTR) {
            break (moved, known.map(|known| (seen, known)));
        }
    };
    // One that has ended since it was looked up may not have seen the announcement.
    if let Some((owner, known)) = known
        && (known.futex.gone.load(Ordering::SeqCst) || known.tid() != owner)
    {
        recorded_owner_died(thread, owner, &to, addr[1]);
    }
    // Also when it ends with an error: who has got the lock must know.
    for waker in wakers {
        waker.wake();
    }
    moved.map(|()| count)
}
