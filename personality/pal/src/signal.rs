//! Events and semaphores.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;

use janua_abi::linux::{Errno, Result};
use janua_abi::pal::{Error, Kind};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_object::vfs::Attr;
use janua_object::{Caller, Events, File, OpenFile, anon};
use janua_port::Clock;
use janua_rt::{Mutex, WaitQueue};

/// What a waiter takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Take {
    /// Nothing: it is set until it is cleared.
    Nothing,
    /// The signal: one waiter goes on for each.
    Signal,
    /// A unit, of so many.
    Unit(u64),
}

#[derive(Default)]
struct Count {
    /// Signals, or units that can be had.
    there: u64,
    /// Who waits for it.
    waiters: u64,
}

/// An event, or a semaphore.
pub struct Signal {
    clock: &'static dyn Clock,
    take: Take,
    count: Mutex<Count>,
    queue: WaitQueue,
}

impl Signal {
    fn new(clock: &'static dyn Clock, take: Take, there: u64) -> Arc<Signal> {
        Arc::new(Signal { clock, take, count: Mutex::new(Count { there, waiters: 0 }), queue: WaitQueue::new() })
    }

    /// Stays set until it is cleared.
    pub fn notification(clock: &'static dyn Clock, set: bool) -> Arc<Signal> {
        Signal::new(clock, Take::Nothing, set.into())
    }

    /// Lets one waiter go on each time it is set.
    pub fn synchronization(clock: &'static dyn Clock, set: bool) -> Arc<Signal> {
        Signal::new(clock, Take::Signal, set.into())
    }

    /// A semaphore of `most` units, of which `taken` are taken already.
    pub fn semaphore(clock: &'static dyn Clock, taken: u64, most: u64) -> Option<Arc<Signal>> {
        let there = most.checked_sub(taken).filter(|_| most > 0)?;
        Some(Signal::new(clock, Take::Unit(most), there))
    }

    pub fn kind(&self) -> Kind {
        if matches!(self.take, Take::Unit(_)) { Kind::Semaphore } else { Kind::Event }
    }

    /// DkEventSet. A signal that nobody waits for is kept, one of them; of those that come while several wait each lets one go on.
    pub fn set(&self) -> Result<()> {
        {
            let mut count = self.count.lock();
            count.there = match self.take {
                Take::Nothing => 1,
                Take::Signal => (count.there + 1).min(count.waiters.max(1)),
                Take::Unit(_) => return Err(Errno::EBADF),
            };
        }
        self.queue.wake_all();
        Ok(())
    }

    /// DkEventClear.
    pub fn clear(&self) -> Result<()> {
        if self.kind() == Kind::Semaphore {
            return Err(Errno::EBADF);
        }
        self.count.lock().there = 0;
        Ok(())
    }

    /// DkSemaphoreRelease. OVERFLOW when more would be there than there are; then none is given back.
    pub fn release(&self, units: u64) -> Result<()> {
        let Take::Unit(most) = self.take else { return Err(Errno::EBADF) };
        {
            let mut count = self.count.lock();
            count.there = count.there.checked_add(units).filter(|there| *there <= most).ok_or(Error::Overflow.errno())?;
        }
        self.queue.wake_all();
        Ok(())
    }

    /// Takes what a waiter takes, if it is there.
    pub fn try_take(&self) -> bool {
        let mut count = self.count.lock();
        if count.there == 0 {
            return false;
        }
        if self.take != Take::Nothing {
            count.there -= 1;
        }
        true
    }

    /// Counts one more who waits for it.
    pub fn enter(&self) {
        self.count.lock().waiters += 1;
    }

    /// One less. What was meant for it and not taken is not kept for others, but for one signal.
    pub fn leave(&self) {
        let mut count = self.count.lock();
        count.waiters -= 1;
        if self.take == Take::Signal {
            count.there = count.there.min(count.waiters.max(1));
        }
    }

    /// Woken when it may be taken.
    pub fn queue(&self) -> &WaitQueue {
        &self.queue
    }
}

impl File for Signal {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EBADF)
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EBADF)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.queue);
        }
        if self.count.lock().there > 0 { Events::IN } else { Events::empty() }
    }

    fn attr(&self) -> Result<Attr> {
        Ok(anon::attr(self.clock))
    }

    fn label(&self) -> String {
        String::from(if self.kind() == Kind::Semaphore { "semaphore" } else { "event" })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stopped;

    impl Clock for Stopped {
        fn monotonic(&self) -> u64 {
            0
        }
        fn realtime(&self) -> u64 {
            0
        }
    }

    #[test]
    fn a_set_before_its_wait_is_kept_once() {
        let event = Signal::synchronization(&Stopped, false);
        event.set().unwrap();
        event.set().unwrap();
        assert!(event.try_take() && !event.try_take());
    }

    #[test]
    fn each_set_lets_one_of_those_go_on_who_wait() {
        let event = Signal::synchronization(&Stopped, false);
        event.enter();
        event.enter();
        event.set().unwrap();
        event.set().unwrap();
        assert!(event.try_take() && event.try_take() && !event.try_take());
        event.set().unwrap();
        event.set().unwrap();
        event.leave();
        event.leave();
        assert!(event.try_take() && !event.try_take(), "one signal is kept");
    }

    #[test]
    fn a_notification_stays_until_it_is_cleared() {
        let event = Signal::notification(&Stopped, true);
        assert!(event.try_take() && event.try_take());
        event.clear().unwrap();
        assert!(!event.try_take());
        assert_eq!(event.release(1), Err(Errno::EBADF));
    }

    #[test]
    fn the_first_number_of_a_semaphore_is_what_is_taken() {
        let lock = Signal::semaphore(&Stopped, 0, 1).unwrap();
        assert!(lock.try_take() && !lock.try_take());
        assert_eq!(lock.release(2), Err(Error::Overflow.errno()));
        lock.release(1).unwrap();
        assert!(lock.try_take());
        assert!(Signal::semaphore(&Stopped, 2, 1).is_none() && Signal::semaphore(&Stopped, 0, 0).is_none());
        assert_eq!((lock.set(), lock.clear()), (Err(Errno::EBADF), Err(Errno::EBADF)));
    }
}
