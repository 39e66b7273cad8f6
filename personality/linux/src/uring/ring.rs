//! A ring: what its descriptor refers to.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};

use janua_abi::linux::aio::IoEvent;
use janua_abi::linux::uring::{Cqe, cq_ring, mmap, setup, sq_ring};
use janua_abi::linux::{Errno, Result};
use janua_kernel::chore::Chore;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_object::vfs::Attr;
use janua_object::{Caller, Cred, Events, File, OpenFile, anon};
use janua_port::{Backing, Clock};
use janua_rt::{AtomicU64, Mutex, OnceArc, WaitQueue};
use zerocopy::IntoBytes;

use super::issuer::{Issuer, Job};
use super::memory::{Access, Region, Shared};
use super::op::Op;
use super::resources::Resources;
use super::submit::Chain;
use crate::caller::thread_of;
use crate::user::RingCharge;
use crate::{Kernel, Task, Thread};

/// Where the words of a ring are in its first region. Those that the kernel writes have eight bytes each.
pub mod at {
    pub const SQ_HEAD: usize = 0;
    pub const SQ_TAIL: usize = 64;
    pub const SQ_FLAGS: usize = 128;
    pub const SQ_DROPPED: usize = 136;
    pub const SQ_MASK: usize = 144;
    pub const SQ_ENTRIES: usize = 148;
    pub const CQ_MASK: usize = 152;
    pub const CQ_ENTRIES: usize = 156;
    pub const CQ_HEAD: usize = 192;
    pub const CQ_TAIL: usize = 256;
    pub const CQ_OVERFLOW: usize = 264;
    pub const CQ_FLAGS: usize = 272;
    pub const CQES: usize = 320;
    /// Of an aio context: head, tail, and its first event.
    pub const AIO_HEAD: usize = 8;
    pub const AIO_TAIL: usize = 12;
    pub const AIO_EVENTS: usize = 32;
}

/// Completions the kernel keeps while a completion ring is full. More are lost, and counted.
const MOST_KEPT: usize = 65536;

/// What a ring was made as.
pub struct Shape {
    /// IORING_SETUP_*.
    pub flags: u32,
    pub submissions: u32,
    pub completions: u32,
    /// Where the array of indices is in the first region.
    pub array: usize,
    /// Its maker was a program of 32-bit words.
    pub narrow: bool,
    /// How long who looks into it by itself does so in vain before it sleeps, nanoseconds.
    pub idle: u64,
    /// It is a context of io_setup(2), not a ring of io_uring_setup(2).
    pub aio: bool,
}

impl Shape {
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    fn completion_size(&self) -> usize {
        match (self.aio, self.has(setup::CQE32)) {
            (true, _) | (_, true) => 32,
            _ => 16,
        }
    }

    fn words(&self) -> (usize, usize, usize) {
        match self.aio {
            true => (at::AIO_HEAD, at::AIO_TAIL, at::AIO_EVENTS),
            false => (at::CQ_HEAD, at::CQ_TAIL, at::CQES),
        }
    }
}

/// A completion, and what an entry of twice the size has beside it. Of an aio context `more` is the address of its iocb and the second result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Completion {
    pub user_data: u64,
    pub result: i64,
    pub flags: u32,
    pub more: [u64; 2],
}

/// The kernel's side of the completions.
#[derive(Default)]
struct Completions {
    /// How many there have been, and how many of them the program has been notified of.
    tail: u32,
    notified: u32,
    /// How many it had taken at the last look.
    taken: u32,
    /// Those there was no room for, oldest first.
    kept: VecDeque<Completion>,
    lost: u32,
}

/// What has been submitted and is not over.
#[derive(Default)]
pub struct Unfinished {
    /// Submissions whose chain has begun.
    pub count: usize,
    /// Those in chains that have not.
    pub waiting: usize,
    /// The next chain waits too: there was one in the last that was to wait, behind its first.
    pub next_drains: bool,
    /// Something asked for no completion: then nothing can wait for all before it.
    pub skips: bool,
    /// What waits for all before it (IOSQE_IO_DRAIN), and what came behind that.
    pub deferred: VecDeque<Chain>,
}

/// A program in its process, by their numbers: that of the program is no other's.
#[derive(Clone, Copy)]
pub struct Maker {
    pid: u32,
    program: u64,
}

impl Maker {
    pub fn of(thread: &Thread) -> Maker {
        Maker { pid: thread.task.pid, program: thread.task.program() }
    }

    /// Whether a process runs this program still.
    pub fn is_in(self, task: &Task) -> bool {
        task.pid == self.pid && task.program() == self.program && task.ended().is_none()
    }
}

/// One ring.
pub struct Ring {
    me: Weak<Ring>,
    pub shape: Shape,
    pub shared: Shared,
    /// Held by who takes submissions.
    pub submitting: Mutex<()>,
    /// How many have been taken, and how many were nonsense.
    pub head: AtomicU32,
    pub dropped: AtomicU32,
    completions: Mutex<Completions>,
    /// Completions there have been in all, for those who wait for so many.
    ended: AtomicUsize,
    /// Woken for each completion.
    pub posted: WaitQueue,
    /// What is under way, by number.
    pub ops: Mutex<BTreeMap<usize, Arc<Op>>>,
    pub unfinished: Mutex<Unfinished>,
    pub resources: Mutex<Resources>,
    /// Work that is done only by who waits for completions (IORING_SETUP_DEFER_TASKRUN).
    pub later: Mutex<VecDeque<Job>>,
    /// It has an event descriptor; and that is about to be signalled because of such work.
    pub has_event: AtomicBool,
    pub announced: AtomicBool,
    /// Who alone may submit (IORING_SETUP_SINGLE_ISSUER), once that is known; and who submits for a ring that is looked into.
    pub issuer: Mutex<Option<Weak<Issuer>>>,
    /// Not to be used yet (IORING_SETUP_R_DISABLED).
    pub disabled: AtomicBool,
    /// It has restrictions.
    pub limited: AtomicBool,
    /// It has no descriptor and no mapping any more.
    closed: AtomicBool,
    /// Flags for the program in the submission ring.
    flags: AtomicU32,
    /// Whose submissions those are that it is looked into for, if it is.
    pub maker: Mutex<Option<Maker>>,
    /// Whose rights count for what is found in it, where it is looked into: those its maker had then.
    pub identity: OnceArc<Cred>,
    /// The module that looks into it, where one does.
    pub served: OnceArc<Chore>,
    /// When something was in it last that nobody announced, or it was announced, for who looks into it.
    pub lively: AtomicU64,
    /// A thread has been notified to take what is in the submission ring.
    pub asked: AtomicBool,
    /// Polls that go on have been submitted; and how many threads announce completions just now.
    pub polls: AtomicBool,
    telling: AtomicU32,
    clock: &'static dyn Clock,
    _charge: Option<RingCharge>,
}

impl Ring {
    /// Whether a process runs the program that the ring is looked into for.
    pub fn is_made_in(&self, task: &Task) -> bool {
        self.maker.lock().is_some_and(|maker| maker.is_in(task))
    }

    /// Whether that program runs still.
    pub fn is_made(&self, kernel: &Kernel) -> bool {
        let Some(maker) = *self.maker.lock() else { return false };
        kernel.process(maker.pid).is_some_and(|task| maker.is_in(&task))
    }

    pub fn new(shape: Shape, shared: Shared, clock: &'static dyn Clock, charge: Option<RingCharge>) -> Arc<Ring> {
        let disabled = shape.has(setup::R_DISABLED);
        Arc::new_cyclic(|me| Ring {
            me: me.clone(),
            shape,
            shared,
            submitting: Mutex::new(()),
            head: AtomicU32::new(0),
            dropped: AtomicU32::new(0),
            completions: Mutex::default(),
            ended: AtomicUsize::new(0),
            posted: WaitQueue::new(),
            ops: Mutex::default(),
            unfinished: Mutex::default(),
            resources: Mutex::default(),
            later: Mutex::default(),
            has_event: AtomicBool::new(false),
            announced: AtomicBool::new(false),
            issuer: Mutex::default(),
            disabled: AtomicBool::new(disabled),
            limited: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            flags: AtomicU32::new(0),
            maker: Mutex::default(),
            identity: OnceArc::default(),
            served: OnceArc::default(),
            lively: AtomicU64::new(clock.monotonic()),
            asked: AtomicBool::new(false),
            polls: AtomicBool::new(false),
            telling: AtomicU32::new(0),
            clock,
            _charge: charge,
        })
    }

    /// The ring behind an open file. EOPNOTSUPP.
    pub fn of(file: &OpenFile) -> Result<Arc<Ring>> {
        let ring = file.downcast::<Ring>().filter(|ring| !ring.shape.aio).ok_or(Errno::EOPNOTSUPP)?;
        ring.me.upgrade().ok_or(Errno::EOPNOTSUPP)
    }

    /// The ring itself, while it has a descriptor.
    pub fn this(&self) -> Option<Arc<Ring>> {
        self.me.upgrade()
    }

    /// The shared memory as a thread reaches it.
    pub fn access<'a>(&'a self, thread: &'a Thread) -> Access<'a> {
        self.shared.access(thread, core::ptr::from_ref(self).cast())
    }

    /// Whether there are restrictions.
    pub fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Relaxed)
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Completions there have been.
    pub fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }

    fn is_full(&self, access: &Access<'_>, state: &mut Completions) -> bool {
        let most = self.shape.completions;
        let held = |state: &Completions| match self.shape.aio {
            // Its counts stay below the size, and one place stays empty.
            true => (state.tail + most - state.taken % most) % most + 1,
            false => state.tail.wrapping_sub(state.taken),
        };
        if held(state) < most {
            return false;
        }
        state.taken = access.load(self.shape.words().0);
        held(state) >= most
    }

    fn write(&self, access: &Access<'_>, state: &mut Completions, completion: &Completion) {
        let Completion { user_data, result, flags, more } = *completion;
        let (most, start) = (self.shape.completions, self.shape.words().2);
        if self.shape.aio {
            let event = IoEvent { data: user_data, obj: more[0], result, result2: more[1] as i64 };
            access.write(Region::Rings, start + (state.tail % most) as usize * 32, event.as_bytes());
            state.tail = (state.tail + 1) % most;
            return;
        }
        let offset = start + (state.tail & (most - 1)) as usize * self.shape.completion_size();
        let cqe = Cqe { user_data, result: result as i32, flags };
        access.write(Region::Rings, offset, cqe.as_bytes());
        if self.shape.has(setup::CQE32) {
            access.write(Region::Rings, offset + size_of::<Cqe>(), more.as_bytes());
        }
        state.tail = state.tail.wrapping_add(1);
    }

    /// Posts a completion; the program is notified by [`Ring::notify`]. False when there was no room in the ring, and the kernel keeps it.
    pub fn post(&self, access: &Access<'_>, completion: &Completion) -> bool {
        self.ended.fetch_add(1, Ordering::SeqCst);
        let mut state = self.completions.lock();
        if state.kept.is_empty() && !self.is_full(access, &mut state) {
            self.write(access, &mut state, completion);
            return true;
        }
        if state.kept.len() < MOST_KEPT {
            state.kept.push_back(*completion);
            drop(state);
            self.flag(access, sq_ring::CQ_OVERFLOW, true);
        } else {
            state.lost = state.lost.wrapping_add(1);
            access.store(at::CQ_OVERFLOW, state.lost);
        }
        false
    }

    /// Notifies of the completions that have been posted. `inline`: by the call that submitted what is over.
    pub fn notify(&self, access: &Access<'_>, inline: bool) {
        {
            let mut state = self.completions.lock();
            if state.notified == state.tail && state.kept.is_empty() {
                return;
            }
            if state.notified != state.tail {
                state.notified = state.tail;
                access.store(self.shape.words().1, state.tail);
            }
        }
        if self.polls.load(Ordering::Relaxed) {
            self.telling.fetch_add(1, Ordering::SeqCst);
            self.announce(access, inline);
            self.telling.fetch_sub(1, Ordering::SeqCst);
        } else {
            self.announce(access, inline);
        }
    }

    /// Whether what happens to a poll now may be the completions' own doing.
    pub fn feeds_itself(&self) -> bool {
        self.telling.load(Ordering::SeqCst) != 0
    }

    fn announce(&self, access: &Access<'_>, inline: bool) {
        self.posted.wake(0);
        if !self.shape.aio {
            self.signal_event(access, inline);
        }
    }

    /// Signals the event descriptor, if there is one for this.
    pub fn signal_event(&self, access: &Access<'_>, inline: bool) {
        let event = self.resources.lock().event.clone();
        if let Some((event, only_async)) = event
            && !(only_async && inline)
            && access.load(at::CQ_FLAGS) & cq_ring::EVENTFD_DISABLED == 0
        {
            super::resources::signal(&event);
        }
    }

    /// Puts what the kernel has kept into the ring, as far as there is room.
    pub fn flush(&self, access: &Access<'_>) {
        let mut state = self.completions.lock();
        if state.kept.is_empty() {
            return;
        }
        while !state.kept.is_empty() && !self.is_full(access, &mut state) {
            if let Some(first) = state.kept.pop_front() {
                self.write(access, &mut state, &first);
            }
        }
        let empty = state.kept.is_empty();
        if state.notified != state.tail {
            state.notified = state.tail;
            access.store(self.shape.words().1, state.tail);
        }
        drop(state);
        if empty {
            self.flag(access, sq_ring::CQ_OVERFLOW, false);
        }
    }

    /// Whether the kernel keeps completions.
    pub fn keeps(&self) -> bool {
        !self.completions.lock().kept.is_empty()
    }

    /// Completions in the ring that the program has not taken.
    pub fn unreaped(&self, access: &Access<'_>) -> u32 {
        let notified = self.completions.lock().notified;
        let taken = access.load(self.shape.words().0);
        match self.shape.aio {
            true => (notified + self.shape.completions - taken % self.shape.completions) % self.shape.completions,
            false => notified.wrapping_sub(taken),
        }
    }

    /// Submissions in the ring that have not been taken; more than it holds is nonsense.
    pub fn unsubmitted(&self, access: &Access<'_>) -> u32 {
        let head = self.head.load(Ordering::SeqCst);
        access.load(at::SQ_TAIL).wrapping_sub(head).min(self.shape.submissions)
    }

    /// Sets or clears a flag for the program.
    pub fn flag(&self, access: &Access<'_>, flag: u32, on: bool) {
        let mut flags = match on {
            true => self.flags.fetch_or(flag, Ordering::SeqCst) | flag,
            false => self.flags.fetch_and(!flag, Ordering::SeqCst) & !flag,
        };
        // Another may change them at the same time, and store before: who stores last stores what they are.
        loop {
            access.store(at::SQ_FLAGS, flags);
            fence(Ordering::SeqCst);
            let now = self.flags.load(Ordering::SeqCst);
            if core::mem::replace(&mut flags, now) == now {
                break;
            }
        }
    }

    pub fn is_flagged(&self, flag: u32) -> bool {
        self.flags.load(Ordering::SeqCst) & flag != 0
    }

    /// What is under way and `wanted`, at most `most`.
    pub fn find(&self, most: usize, wanted: impl Fn(&Op) -> bool) -> Vec<Arc<Op>> {
        self.ops.lock().values().filter(|op| wanted(op)).take(most).cloned().collect()
    }

    /// Nobody waits for its completions any more: what only such a one would do is done like other work.
    pub fn release_later(&self) {
        let later = core::mem::take(&mut *self.later.lock());
        for job in later {
            if let Job::Step(op) = job {
                let issuer = op.issuer.clone();
                issuer.send(self, Job::Step(op));
            }
        }
    }

    /// Ends all that is under way.
    pub fn close(&self) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        let deferred = core::mem::take(&mut self.unfinished.lock().deferred);
        drop(deferred);
        self.release_later();
        for op in self.find(usize::MAX, |_| true) {
            op.cancel();
        }
        let resources = core::mem::take(&mut *self.resources.lock());
        drop(resources);
        self.posted.wake_all();
        if let Some(chore) = self.served.get() {
            chore.wake();
        }
    }
}

impl File for Ring {
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
        if let Some(table) = table {
            table.add(&self.posted);
        }
        let access = match thread_of(caller) {
            Some(thread) => self.access(thread),
            None => self.shared.from_anywhere(),
        };
        let mut events = Events::empty();
        let some = self.unreaped(&access) != 0 || self.keeps() || !self.later.lock().is_empty();
        events.set(Events::IN | Events::RDNORM, some);
        events.set(Events::OUT | Events::WRNORM, self.unsubmitted(&access) < self.shape.submissions);
        events
    }

    fn backing(&self, _file: &OpenFile, offset: u64, len: usize, shared: bool) -> Result<Backing> {
        let region = region_at(offset).filter(|region| !self.shape.aio || *region == Region::Rings).ok_or(Errno::EINVAL)?;
        self.shared.backing(region, len, shared)
    }

    fn attr(&self) -> Result<Attr> {
        Ok(anon::attr(self.clock))
    }

    fn release(&self, _file: &OpenFile) {
        self.close();
    }

    fn label(&self) -> String {
        String::from(if self.shape.aio { "/[aio]" } else { "anon_inode:[io_uring]" })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Which region is mapped at an offset.
pub fn region_at(offset: u64) -> Option<Region> {
    match offset {
        mmap::SQ_RING | mmap::CQ_RING => Some(Region::Rings),
        mmap::SQES => Some(Region::Submissions),
        _ => None,
    }
}
