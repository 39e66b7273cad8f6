//! Futexes: futex(2), futex_waitv(2) and the futex2 calls.
//!
//! `table` holds the queues, `wait` and `wake` the plain operations, `pi` priority inheritance (the lock passes to the longest
//! waiter; there are no priorities to inherit), `robust` what is left behind by a thread that ends.

pub mod multiple;
pub mod pi;
pub mod robust;
pub mod table;
pub mod wait;
pub mod wake;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicUsize};

use janua_abi::linux::futex::{BITSET_MATCH_ANY, CLOCK_REALTIME_FLAG, PRIVATE_FLAG, op};
use janua_abi::linux::layout::Layout;
use janua_abi::linux::time::TimeSpec;
use janua_kernel::table::{Arg, Kind};
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::mm::FutexKey;
use janua_port::Nanos;

pub use table::FutexTable;

use crate::Thread;
use crate::thread::ThreadExt;
use table::Waiter;

/// What a thread has to do with futexes.
#[derive(Default)]
pub struct ThreadFutex {
    /// The place it waits in: one, since it has one call at a time.
    waiter: Arc<Waiter>,
    /// The head of its list of robust locks, 0 for none.
    robust: AtomicUsize,
    /// The list is laid out as 32-bit programs have it.
    robust_compat: AtomicBool,
    /// The thread ends and has given up its locks: nobody may begin to wait for one of them.
    gone: AtomicBool,
}

/// The operation word of futex(2).
#[derive(Clone, Copy, Debug)]
pub struct FutexOp(pub u32);

impl Arg for FutexOp {
    const KIND: Kind = Kind::Named("futex");
    fn decode(word: usize) -> Result<Self> {
        Ok(FutexOp(word as u32))
    }
}

/// The identity of the word at `addr`. EINVAL for an address that is not aligned, EFAULT for one that is not the guest's.
pub fn key(thread: &Thread, addr: usize, private: bool) -> Result<FutexKey> {
    if !addr.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    if !thread.user().is_user(addr, 4) {
        return Err(Errno::EFAULT);
    }
    thread.process().mm.read().as_ref().ok_or(Errno::EFAULT)?.futex_key(addr, private)
}

/// The word itself.
pub(crate) fn load(thread: &Thread, addr: usize) -> Result<u32> {
    thread.user().load_u32(addr).map_err(|_| Errno::EFAULT)
}

/// EAGAIN when the word is not `value`.
fn is(thread: &Thread, addr: usize, value: u32) -> Result<()> {
    if load(thread, addr)? == value { Ok(()) } else { Err(Errno::EAGAIN) }
}

/// Has the word's page there and writable, if it can be: what touches it next with a lock held does not wait for the host then.
fn touch(thread: &Thread, addr: usize) {
    let _ = load(thread, addr).and_then(|word| exchange(thread, addr, word, word));
}

/// Changes the word from `old` to `new`: the word found.
pub(crate) fn exchange(thread: &Thread, addr: usize, old: u32, new: u32) -> Result<u32> {
    thread.user().cmpxchg_u32(addr, old, new).map_err(|_| Errno::EFAULT)
}

/// The monotonic end of a wait: `timeout` may be null, relative, or a point of one of two clocks.
fn deadline(thread: &Thread, timeout: UserPtr<impl Layout<TimeSpec>>, relative: bool, realtime: bool) -> Result<Option<Nanos>> {
    let Some(timeout) = timeout.non_null() else { return Ok(None) };
    let nanos = timeout.load(thread.user())?.nanos()?;
    let clocks = thread.machine().clock();
    Ok(Some(if relative {
        clocks.monotonic().saturating_add(nanos)
    } else if realtime {
        clocks.monotonic().saturating_add(nanos.saturating_sub(clocks.realtime()))
    } else {
        nanos
    }))
}

/// A count argument: an int that must not be negative where it counts waiters to move.
fn count(word: u32) -> Result<usize> {
    i32::try_from(word).map(|count| count as usize).map_err(|_| Errno::EINVAL)
}

/// futex(2). `timeout` is a count for the operations that move waiters.
pub async fn futex(
    thread: &Thread,
    addr: usize,
    operation: FutexOp,
    value: u32,
    timeout: usize,
    addr2: usize,
    value3: u32,
) -> Result<usize> {
    operate::<TimeSpec>(thread, addr, operation, value, timeout, addr2, value3).await
}

/// futex(2) of programs whose times lie in memory as `T`.
pub async fn operate<T: Layout<TimeSpec>>(
    thread: &Thread,
    addr: usize,
    operation: FutexOp,
    value: u32,
    timeout: usize,
    addr2: usize,
    value3: u32,
) -> Result<usize> {
    let private = operation.0 & PRIVATE_FLAG != 0;
    let realtime = operation.0 & CLOCK_REALTIME_FLAG != 0;
    let operation = operation.0 & !(PRIVATE_FLAG | CLOCK_REALTIME_FLAG);
    if realtime && !matches!(operation, op::WAIT_BITSET | op::WAIT_REQUEUE_PI | op::LOCK_PI2) {
        return Err(Errno::ENOSYS);
    }
    let time = UserPtr::<T>::new(timeout);
    match operation {
        op::WAIT => {
            let deadline = deadline(thread, time, true, false)?;
            wait::wait(thread, addr, value, BITSET_MATCH_ANY, private, deadline).await
        }
        op::WAIT_BITSET => {
            let deadline = deadline(thread, time, false, realtime)?;
            wait::wait(thread, addr, value, value3, private, deadline).await
        }
        op::WAKE => wake::wake(thread, addr, value, BITSET_MATCH_ANY, private),
        op::WAKE_BITSET => wake::wake(thread, addr, value, value3, private),
        op::REQUEUE | op::CMP_REQUEUE => {
            let expected = (operation == op::CMP_REQUEUE).then_some(value3);
            let places = wake::Places { from: addr, from_private: private, to: addr2, to_private: private };
            wake::requeue(thread, places, count(value)?, count(timeout as u32)?, expected)
        }
        op::WAKE_OP => wake::wake_op(thread, [addr, addr2], [value, timeout as u32], value3, private),
        op::LOCK_PI => pi::lock(thread, addr, private, deadline(thread, time, false, true)?).await,
        op::LOCK_PI2 => pi::lock(thread, addr, private, deadline(thread, time, false, realtime)?).await,
        op::TRYLOCK_PI => pi::try_lock(thread, addr, private),
        op::UNLOCK_PI => pi::unlock(thread, addr, private),
        op::WAIT_REQUEUE_PI => {
            let deadline = deadline(thread, time, false, realtime)?;
            pi::wait_requeue(thread, [addr, addr2], value, private, deadline).await
        }
        op::CMP_REQUEUE_PI => {
            if value != 1 {
                return Err(Errno::EINVAL);
            }
            pi::requeue(thread, [addr, addr2], count(timeout as u32)?, value3, private)
        }
        _ => Err(Errno::ENOSYS),
    }
}
