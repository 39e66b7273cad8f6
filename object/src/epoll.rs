//! epoll(7): many files to wait on at once.
//!
//! An item is a file with the events wanted of it. It is registered once, with every queue of its file, as a [`Notify`] target:
//! a wake-up puts it on its epoll's ready list and wakes one waiter. Who collects events takes items off the list and asks
//! each file again what is ready; a level-triggered item that was ready goes back to the end of the list, to be asked again.
//!
//! Locks, in order: an epoll's `items` (held while events are collected; that of the outer before that of the inner epoll),
//! the files' own, their queues', `Ready::list`, the epoll's queue. A notification takes only the last two.
//!
//! No wake-up is lost: `queued` is cleared before the file is asked, so a notification after that lists the item again, and one
//! before it changed the file before it was asked. A waiter that leaves while items are listed, or while an item waits for a
//! time, hands on to another ([`Epoll::pass_on`]), since the one wake-up may have been its.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bitflags::bitflags;
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_port::{Clock, Nanos};
use janua_rt::{Mutex, Notify, Target, WaitQueue};

use crate::caller::Caller;
use crate::file::{Events, File, OpenFile};
use crate::vfs::Attr;

bitflags! {
    /// How an item reports, in the upper bits of `epoll_event.events`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Mode: u32 {
        const EXCLUSIVE = 1 << 28;
        const WAKEUP = 1 << 29;
        const ONESHOT = 1 << 30;
        const EDGE = 1 << 31;
    }
}

mod nest;

pub use nest::Watchers;

/// The ready list, shared with the items.
struct Ready {
    list: Mutex<VecDeque<Arc<Item>>>,
    queue: WaitQueue,
}

impl Ready {
    /// Puts an item on the list unless it is there.
    fn push(&self, item: Arc<Item>) {
        if !item.queued.swap(true, Ordering::AcqRel) {
            self.list.lock().push_back(item);
        }
    }

    fn pop(&self) -> Option<Arc<Item>> {
        let item = self.list.lock().pop_front()?;
        item.queued.swap(false, Ordering::AcqRel);
        Some(item)
    }

    /// Undoes [`Ready::pop`].
    fn put_back(&self, item: Arc<Item>) {
        if !item.queued.swap(true, Ordering::AcqRel) {
            self.list.lock().push_front(item);
        }
    }
}

/// A watched file.
struct Item {
    me: Weak<Item>,
    ready: Weak<Ready>,
    file: Weak<OpenFile>,
    /// Events wanted, mode bits among them. Without event bits the item is disarmed (a one-shot that has fired).
    interest: AtomicU32,
    queued: AtomicBool,
    watch: Mutex<Watch>,
}

struct Watch {
    data: u64,
    /// The registrations; `None` once the item has been removed.
    table: Option<PollTable>,
}

impl Item {
    fn wanted(&self) -> u32 {
        self.interest.load(Ordering::Acquire) & !Mode::all().bits()
    }

    fn mode(&self) -> Mode {
        Mode::from_bits_truncate(self.interest.load(Ordering::Acquire))
    }

    fn set_interest(&self, events: u32) {
        self.interest.store(events | Events::ERR.bits() | Events::HUP.bits(), Ordering::Release);
    }

    /// Registers with the file's queues and asks what is ready. Old registrations go once the new ones are made.
    fn watch(&self, caller: &dyn Caller, file: &OpenFile) -> u32 {
        let Some(me) = self.me.upgrade() else { return 0 };
        let mut table = PollTable::new(Target::Notify(me), u32::MAX);
        let events = file.poll(caller, Some(&mut table)).bits();
        let old = self.watch.lock().table.replace(table);
        drop(old);
        events & self.wanted()
    }

    /// Whether and when the file is to be looked at by time.
    fn timed(&self) -> Option<Option<Nanos>> {
        self.watch.lock().table.as_ref().and_then(PollTable::timed)
    }

    /// What is ready for the caller of what is wanted; renews the deadline of a file that depends on time.
    fn ask(&self, caller: &dyn Caller, file: &OpenFile) -> u32 {
        if self.timed().is_some() { self.watch(caller, file) } else { file.poll(caller, None).bits() & self.wanted() }
    }

    /// Leaves all queues; later notifications change nothing.
    fn close(&self) {
        self.interest.store(0, Ordering::Release);
        let table = self.watch.lock().table.take();
        drop(table);
    }

    fn is_open(&self) -> bool {
        self.watch.lock().table.is_some()
    }
}

impl Notify for Item {
    fn notify_exclusive(&self, events: u32, enough: bool) -> Option<bool> {
        if events == 0 || !self.mode().contains(Mode::EXCLUSIVE) {
            return None;
        }
        if enough || events & self.wanted() == 0 {
            return Some(enough);
        }
        // Without a waiter it is noted for later, and another is notified too.
        let waits = self.ready.upgrade().is_some_and(|ready| !ready.queue.is_empty());
        self.notify(events);
        Some(waits)
    }

    fn notify(&self, events: u32) {
        if events != 0 && events & self.wanted() == 0 {
            return;
        }
        if let (Some(ready), Some(me)) = (self.ready.upgrade(), self.me.upgrade()) {
            ready.push(me);
            ready.queue.wake_one(Events::IN.bits());
        }
    }
}

/// What an item is found by: the descriptor it was added with and the description.
type Key = (i32, u64);

#[derive(Default)]
struct Items {
    map: BTreeMap<Key, Arc<Item>>,
    /// Those whose file depends on time.
    timed: Vec<Arc<Item>>,
    /// The size at which items of closed files are looked for.
    sweep: usize,
}

impl Items {
    fn remove(&mut self, key: Key) -> Option<Arc<Item>> {
        let item = self.map.remove(&key)?;
        self.timed.retain(|other| !Arc::ptr_eq(other, &item));
        item.close();
        Some(item)
    }

    /// Drops the items of closed files now and then, so that a program that never removes them does not fill memory.
    fn sweep(&mut self) {
        if self.map.len() < self.sweep.max(64) {
            return;
        }
        let dead: Vec<Key> = self.map.iter().filter(|(_, item)| item.file.strong_count() == 0).map(|(key, _)| *key).collect();
        for key in dead {
            self.remove(key);
        }
        self.sweep = self.map.len() * 2;
    }

    /// Earliest time at which an armed item wants to be looked at.
    fn deadline(&self) -> Option<Nanos> {
        self.timed.iter().filter(|item| item.wanted() != 0).filter_map(|item| item.timed().flatten()).min()
    }
}

/// What an epoll watches, for /proc/PID/fdinfo.
pub struct Watched {
    /// The descriptor it was given.
    pub fd: i32,
    pub file: Arc<OpenFile>,
    /// Events wanted and mode bits.
    pub events: u32,
    pub data: u64,
}

/// An epoll instance.
pub struct Epoll {
    clock: &'static dyn Clock,
    items: Mutex<Items>,
    ready: Arc<Ready>,
    /// The epolls that watch this one; changed under the kernel's nesting lock.
    watchers: Watchers,
    me: Weak<Epoll>,
}

impl Epoll {
    pub fn new(clock: &'static dyn Clock) -> Arc<Epoll> {
        Arc::new_cyclic(|me| Epoll {
            clock,
            items: Mutex::default(),
            ready: Arc::new(Ready { list: Mutex::default(), queue: WaitQueue::new() }),
            watchers: Watchers::default(),
            me: me.clone(),
        })
    }

    /// What is watched, by descriptor.
    pub fn watched(&self) -> Vec<Watched> {
        let of = |(&(fd, _), item): (&Key, &Arc<Item>)| {
            let (file, data) = (item.file.upgrade()?, item.watch.lock().data);
            Some(Watched { fd, file, events: item.interest.load(Ordering::Acquire), data })
        };
        // Those of closed files go too, but only once the lock is free: the last to hold a file closes it.
        let items = self.items.lock();
        let all: Vec<Option<Watched>> = items.map.iter().map(of).collect();
        drop(items);
        all.into_iter().flatten().collect()
    }

    /// EPOLL_CTL_ADD. EEXIST when the descriptor with this description is there, EPERM for a file that is always ready, ELOOP
    /// for a circle or too long a chain of epolls, EINVAL when a wake-up would have too many ways through epolls. `nesting` is the
    /// kernel's one lock for changes of who watches whom.
    pub fn add(
        &self,
        caller: &dyn Caller,
        fd: i32,
        file: &Arc<OpenFile>,
        events: u32,
        data: u64,
        nesting: &Mutex<()>,
    ) -> Result<()> {
        let mode = Mode::from_bits_truncate(events);
        let inner = file.downcast::<Epoll>();
        if mode.contains(Mode::EXCLUSIVE) {
            let may = Events::IN | Events::OUT | Events::ERR | Events::HUP;
            let may = may.bits() | (Mode::EXCLUSIVE | Mode::WAKEUP | Mode::EDGE).bits();
            if events & !may != 0 || inner.is_some() {
                return Err(Errno::EINVAL);
            }
        }
        if !file.ops.may_wait() {
            return Err(Errno::EPERM);
        }
        let mut nested = (inner.is_some() || !self.watchers.is_empty()).then(|| nesting.lock());
        if inner.is_some() {
            nest::check_chain(self, file)?;
        }
        let mut items = self.items.lock();
        if nested.is_none() && !self.watchers.is_empty() {
            // Watched since.
            drop(items);
            nested = Some(nesting.lock());
            items = self.items.lock();
        }
        let key = (fd, file.id);
        if items.map.contains_key(&key) {
            return Err(Errno::EEXIST);
        }
        let watchers = watchers_of(file);
        watchers.add(&self.me);
        if nested.is_some()
            && let Err(errno) = nest::check_paths(file)
        {
            watchers.remove(&self.me);
            return Err(errno);
        }
        items.sweep();
        let item = Arc::new_cyclic(|me| Item {
            me: me.clone(),
            ready: Arc::downgrade(&self.ready),
            file: Arc::downgrade(file),
            interest: AtomicU32::new(0),
            queued: AtomicBool::new(false),
            watch: Mutex::new(Watch { data, table: None }),
        });
        item.set_interest(events);
        let events = item.watch(caller, file);
        let timed = item.timed().is_some();
        if timed {
            items.timed.push(item.clone());
        }
        items.map.insert(key, item.clone());
        drop(items);
        if events != 0 {
            self.ready.push(item);
            self.ready.queue.wake_one(Events::IN.bits());
        } else if timed {
            // The thread that waits must learn the new deadline.
            self.ready.queue.wake_one(Events::IN.bits());
        }
        Ok(())
    }

    /// EPOLL_CTL_MOD: also arms a one-shot again. ENOENT; EINVAL with or on an exclusive item.
    pub fn modify(&self, caller: &dyn Caller, fd: i32, file: &Arc<OpenFile>, events: u32, data: u64) -> Result<()> {
        let items = self.items.lock();
        let item = items.map.get(&(fd, file.id)).ok_or(Errno::ENOENT)?.clone();
        if events & Mode::EXCLUSIVE.bits() != 0 || item.mode().contains(Mode::EXCLUSIVE) {
            return Err(Errno::EINVAL);
        }
        item.watch.lock().data = data;
        // The new interest first: what happens after this notifies, what happened before is seen by asking.
        item.set_interest(events);
        // By registering again, which takes nothing of what is reported once.
        let events = item.watch(caller, file);
        let timed = item.timed().is_some();
        drop(items);
        if events != 0 {
            self.ready.push(item);
        }
        if events != 0 || timed {
            self.ready.queue.wake_one(Events::IN.bits());
        }
        Ok(())
    }

    /// EPOLL_CTL_DEL. ENOENT.
    pub fn delete(&self, fd: i32, file: &Arc<OpenFile>, nesting: &Mutex<()>) -> Result<()> {
        let inner = file.downcast::<Epoll>();
        let _nesting = inner.map(|_| nesting.lock());
        let item = self.items.lock().remove((fd, file.id)).ok_or(Errno::ENOENT)?;
        drop(item);
        watchers_of(file).remove(&self.me);
        Ok(())
    }

    /// Gives up to `most` events to `emit`: how many. `emit` returns false when it cannot take one, which ends the collection
    /// and leaves that event for the next. With a table it joins the queue of waiters first, and asks in the end to be polled
    /// again when time may make an item ready.
    pub fn collect(
        &self,
        caller: &dyn Caller,
        most: usize,
        mut table: Option<&mut PollTable>,
        emit: &mut dyn FnMut(u32, u64) -> bool,
    ) -> usize {
        if let Some(table) = &mut table {
            table.add(&self.ready.queue);
        }
        // Files that others have closed meanwhile are released when nothing is locked any more.
        let mut closed: Vec<OpenFile> = Vec::new();
        let items = self.items.lock();
        self.list_due(&items);
        // As many as are listed now: those that go back to the end are for the next collection.
        let listed = self.ready.list.lock().len();
        let mut count = 0;
        for _ in 0..listed {
            if count == most {
                break;
            }
            let Some(item) = self.ready.pop() else { break };
            let Some(file) = item.file.upgrade() else { continue };
            let events = if item.is_open() { item.ask(caller, &file) } else { 0 };
            closed.extend(Arc::into_inner(file));
            if events == 0 {
                continue;
            }
            let data = item.watch.lock().data;
            if !emit(events, data) {
                self.ready.put_back(item);
                break;
            }
            count += 1;
            let mode = item.mode();
            if mode.contains(Mode::ONESHOT) {
                item.interest.store(mode.bits(), Ordering::Release);
            } else if !mode.contains(Mode::EDGE) {
                self.ready.push(item);
            }
        }
        if let Some(table) = table {
            table.wake_at(items.deadline());
        }
        count
    }

    /// Wakes another waiter when there is something left for it. To be called by each that leaves, after it has left the queue.
    pub fn pass_on(&self) {
        if self.ready.queue.is_empty() {
            return;
        }
        if !self.ready.list.lock().is_empty() || self.items.lock().deadline().is_some() {
            self.ready.queue.wake_one(Events::IN.bits());
        }
    }

    /// Lists the items whose time has come.
    fn list_due(&self, items: &Items) {
        if items.timed.is_empty() {
            return;
        }
        let now = self.clock.monotonic();
        for item in &items.timed {
            if item.wanted() != 0 && item.timed().flatten().is_some_and(|at| at <= now) {
                self.ready.push(item.clone());
            }
        }
    }
}

/// Where the epolls that watch a file are noted.
fn watchers_of(file: &OpenFile) -> &Watchers {
    file.downcast::<Epoll>().map_or(&file.watchers, |inner| &inner.watchers)
}

impl Drop for Epoll {
    fn drop(&mut self) {
        // The queues of the files hold the items: each must be taken out.
        for item in self.items.get_mut().map.values() {
            item.close();
        }
        self.ready.list.lock().clear();
    }
}

impl File for Epoll {
    fn splices(&self, _write: bool) -> bool {
        false
    }

    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }

    fn poll(&self, _file: &OpenFile, caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        // An event seen but not taken stays listed; what the file reports once is lost here, as natively.
        let mut ready = false;
        self.collect(caller, 1, table, &mut |_, _| {
            ready = true;
            false
        });
        if ready { Events::IN | Events::RDNORM } else { Events::empty() }
    }

    /// There is no position, and moving it is no error.
    fn seek(&self, _file: &OpenFile, _offset: i64, _whence: u32) -> Result<u64> {
        Ok(0)
    }

    fn attr(&self) -> Result<Attr> {
        Ok(crate::anon::attr(self.clock))
    }

    fn label(&self) -> String {
        String::from("anon_inode:[eventpoll]")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::tests::Nobody;
    use crate::eventfd::EventFd;
    use crate::timerfd::{TimeBase, TimerFd};
    use alloc::boxed::Box;
    use alloc::vec;
    use core::sync::atomic::AtomicU64;

    #[derive(Default)]
    struct Hand(AtomicU64);

    impl Clock for Hand {
        fn monotonic(&self) -> Nanos {
            self.0.load(Ordering::Relaxed)
        }
        fn realtime(&self) -> Nanos {
            self.monotonic()
        }
    }

    fn clock() -> &'static Hand {
        Box::leak(Box::default())
    }

    fn open(ops: Arc<dyn File>) -> Arc<OpenFile> {
        OpenFile::new(ops, 2, None)
    }

    fn collect(epoll: &Epoll) -> Vec<(u32, u64)> {
        let mut events = Vec::new();
        epoll.collect(&Nobody, 16, None, &mut |bits, data| {
            events.push((bits, data));
            true
        });
        events
    }

    const IN: u32 = 1;

    #[test]
    fn level_edge_and_oneshot_report_as_they_should() {
        let (clock, nesting) = (clock(), Mutex::new(()));
        let epoll = Epoll::new(clock);
        let counter = EventFd::new(clock, 0, false);
        let file = open(counter.clone());
        epoll.add(&Nobody, 3, &file, IN, 7, &nesting).unwrap();
        assert_eq!(epoll.add(&Nobody, 3, &file, IN, 7, &nesting), Err(Errno::EEXIST));
        assert_eq!(collect(&epoll), vec![]);
        counter.signal(1);
        assert_eq!(collect(&epoll), vec![(IN, 7)]);
        assert_eq!(collect(&epoll), vec![(IN, 7)]);

        epoll.modify(&Nobody, 3, &file, IN | Mode::EDGE.bits(), 8).unwrap();
        assert_eq!(collect(&epoll), vec![(IN, 8)]);
        assert_eq!(collect(&epoll), vec![]);
        counter.signal(1);
        assert_eq!(collect(&epoll), vec![(IN, 8)]);

        epoll.modify(&Nobody, 3, &file, IN | Mode::ONESHOT.bits(), 9).unwrap();
        assert_eq!(collect(&epoll), vec![(IN, 9)]);
        counter.signal(1);
        assert_eq!(collect(&epoll), vec![]);
        epoll.modify(&Nobody, 3, &file, IN | Mode::ONESHOT.bits(), 10).unwrap();
        assert_eq!(collect(&epoll), vec![(IN, 10)]);

        epoll.delete(3, &file, &nesting).unwrap();
        assert_eq!(epoll.delete(3, &file, &nesting), Err(Errno::ENOENT));
    }

    #[test]
    fn a_closed_file_is_gone() {
        let (clock, nesting) = (clock(), Mutex::new(()));
        let epoll = Epoll::new(clock);
        let counter = EventFd::new(clock, 1, false);
        let file = open(counter.clone());
        epoll.add(&Nobody, 3, &file, IN, 7, &nesting).unwrap();
        drop(file);
        counter.signal(1);
        assert_eq!(collect(&epoll), vec![]);
        for fd in 0..200 {
            epoll.add(&Nobody, fd, &open(EventFd::new(clock, 1, false)), IN, 7, &nesting).unwrap();
        }
        assert!(epoll.items.lock().map.len() <= 64);
        drop(epoll);
        assert_eq!(Arc::strong_count(&counter), 1);
    }

    #[test]
    fn an_event_that_cannot_be_taken_stays() {
        let (clock, nesting) = (clock(), Mutex::new(()));
        let epoll = Epoll::new(clock);
        let file = open(EventFd::new(clock, 1, false));
        epoll.add(&Nobody, 3, &file, IN | Mode::EDGE.bits(), 7, &nesting).unwrap();
        assert_eq!(epoll.collect(&Nobody, 1, None, &mut |_, _| false), 0);
        assert_eq!(collect(&epoll), vec![(IN, 7)]);
    }

    #[test]
    fn time_makes_a_timer_ready_even_when_nested() {
        let (clock, nesting) = (clock(), Mutex::new(()));
        let (outer, inner) = (Epoll::new(clock), Epoll::new(clock));
        let timer = TimerFd::new(clock, 1, TimeBase::Monotonic);
        let (timer_file, inner_file) = (open(timer.clone()), open(inner.clone()));
        outer.add(&Nobody, 3, &inner_file, IN, 1, &nesting).unwrap();
        inner.add(&Nobody, 4, &timer_file, IN | Mode::EDGE.bits(), 2, &nesting).unwrap();
        timer.set(100, 50, 0);
        assert_eq!(collect(&outer), vec![]);
        assert_eq!(outer.items.lock().deadline(), Some(100));
        clock.0.store(100, Ordering::Relaxed);
        assert_eq!(collect(&outer), vec![(IN, 1)]);
        assert_eq!(collect(&inner), vec![(IN, 2)]);
        assert_eq!(collect(&inner), vec![]);
        assert_eq!(inner.items.lock().deadline(), Some(150));
        clock.0.store(150, Ordering::Relaxed);
        assert_eq!(collect(&inner), vec![(IN, 2)]);
    }

    #[test]
    fn circles_and_long_chains_are_refused() {
        let (clock, nesting) = (clock(), Mutex::new(()));
        let epolls: Vec<_> = (0..6).map(|_| Epoll::new(clock)).collect();
        let files: Vec<_> = epolls.iter().map(|epoll| open(epoll.clone())).collect();
        for at in 0..4 {
            epolls[at].add(&Nobody, at as i32, &files[at + 1], IN, 0, &nesting).unwrap();
        }
        assert_eq!(epolls[4].add(&Nobody, 9, &files[5], IN, 0, &nesting), Err(Errno::ELOOP));
        assert_eq!(epolls[3].add(&Nobody, 9, &files[0], IN, 0, &nesting), Err(Errno::ELOOP));
        epolls[0].delete(0, &files[1], &nesting).unwrap();
        epolls[4].add(&Nobody, 9, &files[5], IN, 0, &nesting).unwrap();
    }

    #[test]
    fn a_wake_up_has_a_limited_number_of_ways() {
        let (clock, nesting) = (clock(), Mutex::new(()));
        let epoll = || {
            let epoll = Epoll::new(clock);
            (epoll.clone(), open(epoll))
        };
        let bottom = open(EventFd::new(clock, 0, false));
        let top = epoll().0;
        let inner: Vec<_> = (0..501).map(|_| epoll()).collect();
        for (at, (_, file)) in inner.iter().enumerate() {
            top.add(&Nobody, at as i32, file, IN, 0, &nesting).unwrap();
        }
        for (inner, _) in &inner[..500] {
            inner.add(&Nobody, 0, &bottom, IN, 0, &nesting).unwrap();
        }
        assert_eq!(inner[500].0.add(&Nobody, 0, &bottom, IN, 0, &nesting), Err(Errno::EINVAL));
        // What was refused left nothing behind, and what is taken out makes room.
        assert_eq!(inner[500].0.delete(0, &bottom, &nesting), Err(Errno::ENOENT));
        inner[0].0.delete(0, &bottom, &nesting).unwrap();
        inner[500].0.add(&Nobody, 0, &bottom, IN, 0, &nesting).unwrap();
        // Watching an epoll adds the ways of all it watches.
        let (lone, lone_file) = epoll();
        lone.add(&Nobody, 0, &bottom, IN, 0, &nesting).unwrap();
        assert_eq!(top.add(&Nobody, 900, &lone_file, IN, 0, &nesting), Err(Errno::EINVAL));
        drop(inner);
        top.add(&Nobody, 900, &lone_file, IN, 0, &nesting).unwrap();
    }
}
