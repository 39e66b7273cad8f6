//! eventfd(2): a counter to wait on.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::{AtomicUsize, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_port::Clock;
use janua_rt::{Mutex, WaitQueue};

use crate::caller::Caller;
use crate::file::{Events, File, OpenFile};
use crate::vfs::Attr;

/// The counter never reaches this by a write; the value itself means overflow.
const OVERFLOW: u64 = u64::MAX;

/// An event counter.
pub struct EventFd {
    clock: &'static dyn Clock,
    count: Mutex<u64>,
    /// Whether a read takes one (EFD_SEMAPHORE) or all.
    semaphore: bool,
    /// Its number among all.
    id: usize,
    queue: WaitQueue,
}

impl EventFd {
    pub fn new(clock: &'static dyn Clock, initial: u64, semaphore: bool) -> Arc<EventFd> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(EventFd { clock, count: Mutex::new(initial), semaphore, id, queue: WaitQueue::new() })
    }

    /// The counter, its number, and whether it is a semaphore, for /proc/PID/fdinfo.
    pub fn state(&self) -> (u64, usize, bool) {
        (*self.count.lock(), self.id, self.semaphore)
    }

    /// Adds to the counter from inside the kernel, stopping short of overflow.
    pub fn signal(&self, add: u64) {
        {
            let mut count = self.count.lock();
            *count = count.saturating_add(add).min(OVERFLOW - 1);
        }
        self.queue.wake(Events::IN.bits());
    }
}

impl File for EventFd {
    fn splices(&self, _write: bool) -> bool {
        false
    }

    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        if buf.left() < 8 {
            return Err(Errno::EINVAL);
        }
        let taken = {
            let mut count = self.count.lock();
            match *count {
                0 => return Err(Errno::EAGAIN),
                all => {
                    let taken = if self.semaphore { 1 } else { all };
                    *count -= taken;
                    taken
                }
            }
        };
        self.queue.wake(Events::OUT.bits());
        buf.put(&taken.to_ne_bytes())
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        let mut bytes = [0; 8];
        if buf.left() != bytes.len() {
            return Err(Errno::EINVAL);
        }
        // Looked at before it is taken: a writer that has to wait comes again with the same buffer.
        buf.peek(&mut bytes)?;
        let add = u64::from_ne_bytes(bytes);
        if add == OVERFLOW {
            return Err(Errno::EINVAL);
        }
        {
            let mut count = self.count.lock();
            *count = count.checked_add(add).filter(|&sum| sum < OVERFLOW).ok_or(Errno::EAGAIN)?;
        }
        buf.advance(bytes.len());
        self.queue.wake(Events::IN.bits());
        Ok(8)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.queue);
        }
        let count = *self.count.lock();
        let mut events = Events::empty();
        events.set(Events::IN, count > 0);
        events.set(Events::OUT, count < OVERFLOW - 1);
        events.set(Events::ERR, count == OVERFLOW);
        events
    }

    /// There is no position, and moving it is no error.
    fn seek(&self, _file: &OpenFile, _offset: i64, _whence: u32) -> Result<u64> {
        Ok(0)
    }

    fn attr(&self) -> Result<Attr> {
        Ok(crate::anon::attr(self.clock))
    }

    fn label(&self) -> String {
        String::from("anon_inode:[eventfd]")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
