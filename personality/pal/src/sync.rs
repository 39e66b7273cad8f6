//! Calls of events and semaphores, and waiting for several objects.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use janua_abi::linux::Errno;
use janua_abi::pal::Error;
use janua_kernel::UserPtr;
use janua_kernel::table::Fd;
use janua_kernel::wait::PollTable;
use janua_object::OpenFile;
use janua_object::file::flags::O_RDWR;
use janua_personality_linux::Thread;
use janua_personality_linux::thread::ThreadExt;
use zerocopy::IntoBytes;

use crate::answer::{Reply, Result, reply};
use crate::handle::{self, READABLE};
use crate::signal::Signal;
use crate::state;

fn install(thread: &Thread, signal: Arc<Signal>) -> Result {
    handle::install(thread, OpenFile::new(signal, O_RDWR, None))
}

/// DkSemaphoreCreate. The first number is how many units are taken already.
pub fn semaphore(thread: &Thread, taken: u64, most: u64) -> Reply {
    reply(|| {
        state::of(thread)?;
        let made = Signal::semaphore(thread.machine().clock(), taken, most).ok_or(Error::Invalid)?;
        install(thread, made)
    })
}

/// DkSemaphoreRelease.
pub fn release(thread: &Thread, semaphore: Fd, units: u64) -> Reply {
    reply(|| {
        state::of(thread)?;
        handle::with(thread, semaphore, |signal: &Signal| signal.release(units))??;
        Ok(0)
    })
}

/// DkNotificationEventCreate.
pub fn notification(thread: &Thread, set: u32) -> Reply {
    reply(|| {
        state::of(thread)?;
        install(thread, Signal::notification(thread.machine().clock(), set != 0))
    })
}

/// DkSynchronizationEventCreate.
pub fn synchronization(thread: &Thread, set: u32) -> Reply {
    reply(|| {
        state::of(thread)?;
        install(thread, Signal::synchronization(thread.machine().clock(), set != 0))
    })
}

/// DkEventSet.
pub fn set(thread: &Thread, event: Fd) -> Reply {
    reply(|| {
        state::of(thread)?;
        handle::with(thread, event, Signal::set)??;
        Ok(0)
    })
}

/// DkEventClear.
pub fn clear(thread: &Thread, event: Fd) -> Reply {
    reply(|| {
        state::of(thread)?;
        handle::with(thread, event, Signal::clear)??;
        Ok(0)
    })
}

/// Most objects that one call waits for.
const MOST: usize = 4096;
/// A wait without an end.
const FOREVER: u64 = u64::MAX;

/// What is waited for, counted among the waiters of each.
struct Waiting(Vec<Arc<OpenFile>>);

impl Waiting {
    fn new(files: Vec<Arc<OpenFile>>) -> Waiting {
        files.iter().filter_map(|file| file.downcast::<Signal>()).for_each(Signal::enter);
        Waiting(files)
    }

    /// The first that is ready, which is taken.
    fn take(&self, thread: &Thread, mut table: Option<&mut PollTable>) -> Option<usize> {
        if let Some(table) = &mut table {
            table.set_mask(READABLE.bits());
        }
        let ready = |file: &OpenFile, table: Option<&mut PollTable>| match file.downcast::<Signal>() {
            Some(signal) => {
                if let Some(table) = table {
                    table.add(signal.queue());
                }
                signal.try_take()
            }
            None => file.poll(&thread.caller(), table).intersects(READABLE),
        };
        self.0.iter().position(|file| ready(file, table.as_deref_mut()))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.iter().filter_map(|file| file.downcast::<Signal>()).for_each(Signal::leave);
    }
}

/// DkObjectsWaitAny: which of them. TRYAGAIN when the time, in microseconds, is over before.
pub async fn wait_any(thread: &Thread, count: usize, handles: UserPtr<i32>, timeout: u64) -> Reply {
    Reply::of(
        async {
            state::of(thread)?;
            if count == 0 || count > MOST {
                return Err(Error::Invalid.into());
            }
            let mut numbers = vec![0i32; count];
            thread.user().copy_in(numbers.as_mut_slice().as_mut_bytes(), handles.addr()).map_err(|_| Errno::EFAULT)?;
            let files = numbers.into_iter().map(|number| handle::get(thread, Fd(number))).collect::<Result<Vec<_>>>()?;
            let waiting = Waiting::new(files);
            let deadline = match timeout {
                FOREVER => None,
                0 => Some(0),
                micros => Some(thread.machine().clock().monotonic().saturating_add(micros.saturating_mul(1000))),
            };
            Ok(thread.wait_polling(deadline, |table| waiting.take(thread, table)).await?)
        }
        .await,
    )
}
