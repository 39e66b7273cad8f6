//! What a thread has under way by rings.
//!
//! Operations are made on the thread that submitted them, in its memory: at once if they can be, otherwise whenever something they wait for has happened.
//! Then the thread is reminded ([`janua_kernel::Thread::remind`]), and sees to them while a call of its waits, or on its return to user mode. To a
//! handler the calling thread is a double: nobody sends it signals, and its one work flag is KILL while an operation that was cancelled is polled.
//! Those of a ring that a module looks into are made by the module ([`super::server`]).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use janua_abi::linux::uring::{setup, sq_ring};
use janua_abi::linux::{Errno, Result};
use janua_kernel::chore::Chore;
use janua_object::OpenFile;
use janua_object::fdtable::FdTable;
use janua_port::Nanos;
use janua_rt::{Mutex, OnceArc};

use super::op::Op;
use super::ring::Ring;
use super::submit::{self, Chain};
use super::turn::Turn;
use crate::time::service::{Key, Target};
use crate::user::ThreadCharge;
use crate::{Seat, Thread, queue};

/// Most operations a thread has under way. Submitting more is EAGAIN.
pub const MOST: usize = 32768;

/// Jobs that are done before the thread goes on with what it is about.
const BATCH: usize = 4096;

/// Ring descriptors a thread may register.
pub const RING_FDS: usize = 16;

/// Something to be done on the thread.
pub enum Job {
    /// An operation has been woken.
    Step(Arc<Op>),
    /// What had to wait for others may begin.
    Begin(Chain),
    /// There is something in a ring that is looked into.
    Take(Arc<Ring>),
    /// There is work for who waits for a ring's completions, and its event descriptor is to tell.
    Announce(Arc<Ring>),
}

impl Job {
    /// It is not done: an operation may be woken again, and a ring is looked into by another.
    fn leave(self) {
        match self {
            Job::Step(op) => op.take_up(),
            Job::Take(ring) => ring.asked.store(false, Ordering::SeqCst),
            Job::Begin(_) | Job::Announce(_) => {}
        }
    }
}

#[derive(Default)]
struct Timed {
    /// Operations by the time they ask to be looked at, and a number that tells those of one time apart.
    ops: BTreeMap<(Nanos, usize), Weak<Op>>,
    /// When the service calls.
    alarm: Option<(Nanos, Key)>,
}

/// A thread's operations.
pub struct Issuer {
    me: Weak<Issuer>,
    owner: Weak<Seat>,
    /// The thread as handlers see it.
    pub double: Thread,
    /// A table of no descriptors, which the double has while it does nothing.
    idle: Arc<FdTable>,
    ready: Mutex<VecDeque<Job>>,
    timed: Mutex<Timed>,
    /// What is under way.
    ops: Mutex<BTreeMap<usize, Arc<Op>>>,
    count: AtomicUsize,
    next: AtomicUsize,
    /// Registered ring descriptors.
    pub rings: Mutex<Vec<Option<Arc<OpenFile>>>>,
    /// The thread is about to end, or to run another program.
    over: AtomicBool,
    /// What does its jobs, where that is a module ([`super::server`]).
    chore: OnceArc<Chore>,
    /// What reads are held in between turns that use it ([`super::held`]).
    bytes: Mutex<Vec<u8>>,
}

/// What a thread has of an issuer.
#[derive(Clone, Default)]
pub enum Held {
    #[default]
    None,
    Issuer(Arc<Issuer>),
    /// The thread ends, or is about to run another program: nobody would serve another.
    Over,
}

/// That of a thread, made if need be. ESRCH for a thread that has not begun to run, or is about to end.
pub fn of(thread: &Thread) -> Result<Arc<Issuer>> {
    let mut place = thread.uring.lock();
    match &*place {
        Held::Issuer(issuer) => return Ok(issuer.clone()),
        Held::Over => return Err(Errno::ESRCH),
        Held::None => {}
    }
    let owner = thread.seat().ok_or(Errno::ESRCH)?;
    let double = Thread::double(thread, queue::stand_in(thread)).ok_or(Errno::ESRCH)?;
    let issuer = Issuer::new(&owner, double);
    *place = Held::Issuer(issuer.clone());
    Ok(issuer)
}

/// One beside a thread's own, whose jobs a module does in turns for this chore. ESRCH as above.
pub fn away(thread: &Thread, chore: &Arc<Chore>) -> Result<Arc<Issuer>> {
    let owner = thread.seat().ok_or(Errno::ESRCH)?;
    let double = Thread::stand_in(thread, queue::stand_in(thread)).ok_or(Errno::ESRCH)?;
    let issuer = Issuer::new(&owner, double);
    let _ = issuer.chore.set(chore.clone());
    Ok(issuer)
}

impl Issuer {
    fn new(owner: &Arc<Seat>, double: Thread) -> Arc<Issuer> {
        Arc::new_cyclic(|me| Issuer {
            me: me.clone(),
            owner: Arc::downgrade(owner),
            idle: double.files(),
            double,
            ready: Mutex::default(),
            timed: Mutex::default(),
            ops: Mutex::default(),
            count: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            rings: Mutex::new(vec![None; RING_FDS]),
            over: AtomicBool::new(false),
            chore: OnceArc::default(),
            bytes: Mutex::default(),
        })
    }

    /// Whether a module does its jobs.
    pub fn is_away(&self) -> bool {
        self.chore.get().is_some()
    }

    /// Memory for the bytes of reads, of a turn before this one: of any content.
    pub fn lend_bytes(&self) -> Vec<u8> {
        core::mem::take(&mut *self.bytes.lock())
    }

    /// It is not used any more.
    pub fn take_bytes(&self, bytes: Vec<u8>) {
        *self.bytes.lock() = bytes;
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.ops.lock().is_empty()
    }

    pub fn owner(&self) -> Option<Arc<Seat>> {
        self.owner.upgrade()
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// A number for something of this thread's.
    pub fn number(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether there may be one more operation.
    pub fn has_room(&self) -> bool {
        self.count.load(Ordering::Relaxed) < MOST
    }

    /// An operation is under way, or no more.
    pub fn keep(&self, op: &Arc<Op>) {
        if self.ops.lock().insert(op.number, op.clone()).is_none() {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn forget(&self, op: &Op) {
        let op = self.ops.lock().remove(&op.number);
        if op.is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Has the thread do something for a ring. Wakes nobody else.
    pub fn send(&self, ring: &Ring, job: Job) {
        if ring.shape.has(setup::DEFER_TASKRUN) && !ring.is_closed() {
            ring.later.lock().push_back(job);
            if ring.is_closed() {
                return ring.release_later();
            }
            if ring.shape.has(setup::TASKRUN_FLAG) {
                ring.flag(&ring.shared.from_anywhere(), sq_ring::TASKRUN, true);
            }
            // Others who wait for the ring are woken by the completion: this may be in the midst of a wake-up of theirs. So the thread, wherever it
            // is, signals the event descriptor by which somebody may wait for there being work.
            let tells = ring.has_event.load(Ordering::Relaxed) && !ring.announced.swap(true, Ordering::SeqCst);
            if let Some(ring) = ring.this().filter(|_| tells) {
                self.ready.lock().push_back(Job::Announce(ring));
                if self.is_over() {
                    return self.shed();
                }
            }
            if let Some(owner) = self.owner.upgrade() {
                owner.remind(tells);
            }
            return;
        }
        self.ready.lock().push_back(job);
        // Who does its jobs has looked for the last time, or does so after this and finds it.
        if self.is_over() {
            return self.shed();
        }
        if let Some(chore) = self.chore.get() {
            return chore.wake();
        }
        let kick = !ring.shape.has(setup::COOP_TASKRUN);
        if !kick && ring.shape.has(setup::TASKRUN_FLAG) {
            ring.flag(&ring.shared.from_anywhere(), sq_ring::TASKRUN, true);
        }
        if let Some(owner) = self.owner.upgrade() {
            owner.remind(kick);
        }
    }

    /// By the thread: does what is to be done, and asks to be reminded of the rest.
    pub fn work(self: &Arc<Self>, thread: &Thread) {
        for _ in 0..BATCH {
            let job = self.ready.lock().pop_front();
            let Some(job) = job else { return };
            self.do_job(thread, job);
        }
        match self.chore.get() {
            Some(chore) => chore.wake(),
            None => thread.remind(false),
        }
    }

    /// By the thread, which waits for completions: does what only such a one does.
    pub fn work_later(self: &Arc<Self>, thread: &Thread, ring: &Arc<Ring>) {
        for _ in 0..BATCH {
            let job = ring.later.lock().pop_front();
            let Some(job) = job else { return };
            self.do_job(thread, job);
        }
        thread.remind(false);
    }

    fn do_job(self: &Arc<Self>, thread: &Thread, job: Job) {
        match job {
            Job::Step(op) => {
                let turn = Turn::new(self, thread, &op.ring, false);
                turn.step(&op);
                turn.end();
            }
            Job::Begin(chain) => {
                let ring = chain.ring.clone();
                let turn = Turn::new(self, thread, &ring, false);
                turn.begin(chain);
                turn.end();
            }
            Job::Announce(ring) => {
                ring.announced.store(false, Ordering::SeqCst);
                ring.signal_event(&ring.access(thread), true);
            }
            Job::Take(ring) => {
                ring.asked.store(false, Ordering::SeqCst);
                // It may have been asked while it was another program's.
                if ring.is_made_in(&thread.task) {
                    submit::take_all(self, thread, &ring);
                }
            }
        }
    }

    /// The double has what the thread has now.
    pub fn dress(&self, thread: &Thread) {
        let double = &self.double;
        double.set_tid(thread.tid());
        *double.cred.write() = thread.cred();
        *double.fs.write() = thread.fs();
        *double.files.write() = thread.files();
        let user = thread.charge.lock().user().clone();
        let changed = !Arc::ptr_eq(double.charge.lock().user(), &user);
        if changed {
            *double.charge.lock() = ThreadCharge::uncounted(user);
        }
        double.signals.store_blocked(thread.signals.blocked());
    }

    /// It keeps no files from being closed, and no directory in use.
    pub fn undress(&self) {
        let files = core::mem::replace(&mut *self.double.files.write(), self.idle.clone());
        drop(files);
        *self.double.fs.write() = self.double.kernel.root.clone();
    }

    /// An operation asks to be looked at then, or does not any more; at another time than `before`.
    pub fn time(&self, op: &Arc<Op>, before: Option<Nanos>, at: Option<Nanos>) {
        let kernel = &self.double.kernel;
        let mut timed = self.timed.lock();
        if let Some(before) = before {
            timed.ops.remove(&(before, op.number));
        }
        let Some(at) = at else { return };
        timed.ops.insert((at, op.number), Arc::downgrade(op));
        self.set_alarm(kernel, &mut timed);
    }

    fn set_alarm(&self, kernel: &crate::Kernel, timed: &mut Timed) {
        let Some((&(first, _), _)) = timed.ops.first_key_value() else { return };
        if timed.alarm.as_ref().is_some_and(|(at, _)| *at <= first) {
            return;
        }
        if let Some((_, key)) = timed.alarm.take() {
            kernel.timers.cancel(key);
        }
        let key = kernel.timers.add(kernel, first, Target::Ring(self.me.clone()));
        timed.alarm = Some((first, key));
    }

    /// By the service: it is time for the first, or was.
    pub fn time_has_come(&self) {
        let kernel = &self.double.kernel;
        let now = kernel.machine.clock().monotonic();
        let mut due = Vec::new();
        {
            let mut timed = self.timed.lock();
            timed.alarm = None;
            while let Some(first) = timed.ops.first_entry().filter(|first| first.key().0 <= now) {
                due.extend(first.remove().upgrade());
            }
            self.set_alarm(kernel, &mut timed);
        }
        due.iter().for_each(Op::wake_up);
    }

    /// By the thread, which is about to end or to run another program: all that is under way ends.
    pub fn end(self: &Arc<Self>, thread: &Thread) {
        self.over.store(true, Ordering::SeqCst);
        loop {
            self.give_up(thread);
            let first = self.ops.lock().first_key_value().map(|(_, op)| op.clone());
            let Some(op) = first else { break };
            op.cancel();
            let turn = Turn::new(self, thread, &op.ring, false);
            turn.step(&op);
            turn.end();
            self.forget(&op);
        }
        let mut timed = self.timed.lock();
        timed.ops.clear();
        if let Some((_, key)) = timed.alarm.take() {
            thread.kernel.timers.cancel(key);
        }
        drop(timed);
        let rings = core::mem::take(&mut *self.rings.lock());
        drop(rings);
        self.give_up(thread);
    }

    /// The chains of a ring that it was sent and does not begin any more: it is over. Who takes one sees to it.
    pub fn take_back(&self, ring: &Arc<Ring>) -> Vec<Chain> {
        if !self.is_over() {
            return Vec::new();
        }
        let mut ready = self.ready.lock();
        let (chains, others): (VecDeque<Job>, VecDeque<Job>) = core::mem::take(&mut *ready)
            .into_iter()
            .partition(|job| matches!(job, Job::Begin(chain) if Arc::ptr_eq(&chain.ring, ring)));
        *ready = others;
        let chain = |job| if let Job::Begin(chain) = job { Some(chain) } else { None };
        chains.into_iter().filter_map(chain).collect()
    }

    /// What nobody does any more: all but chains, which who has sent them takes back, or the thread ends itself.
    fn shed(&self) {
        let others: VecDeque<Job> = {
            let mut ready = self.ready.lock();
            let (chains, others) = core::mem::take(&mut *ready).into_iter().partition(|job| matches!(job, Job::Begin(_)));
            *ready = chains;
            others
        };
        others.into_iter().for_each(Job::leave);
    }

    /// What was to be done is not: chains end, rings are looked into by another, and operations see to themselves.
    fn give_up(self: &Arc<Self>, thread: &Thread) {
        // The end of one chain may send the next.
        loop {
            let job = self.ready.lock().pop_front();
            let Some(job) = job else { break };
            match job {
                Job::Begin(chain) => {
                    let ring = chain.ring.clone();
                    let turn = Turn::new(self, thread, &ring, false);
                    turn.begin(chain);
                    turn.end();
                }
                job => job.leave(),
            }
        }
    }
}
