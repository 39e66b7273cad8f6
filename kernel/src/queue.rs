//! Queues: calls that a thread leaves for a module to make while it goes on itself.
//!
//! A thread's call has the one slot of the thread. A submission has another: each queue has a number of *workers*, made when it is opened, and each
//! worker a slot and a *stand-in* for the thread, with a wake word, a deadline and work flags of its own. To a handler the stand-in is the calling
//! thread: it has the thread's memory, and what the personality lends it for the call ([`Personality::lend`]). What interrupts the thread does not reach
//! it; the one flag it ever gets is KILL, when its submission is cancelled.
//!
//! The queue and its workers are jobs of one module's executor. The queue's job takes submissions, many at a time: calls that return at once it makes itself, by
//! one more stand-in, the others as long as there are workers, and some more ([`WAITING`]) that wait for one, so that a cancellation is found behind them. Then
//! it sleeps until somebody rings ([`Queue::ring`]): the submitter, or a worker that becomes free. That no ring is lost is the wake word's affair
//! ([`janua_rt::wake`]): who rings has left a submission, or room for a completion, before. A queue that is watched ([`QueueGate::is_watched`]) is looked into
//! for a while ([`Looks`]) before that.
//!
//! Calls that are linked ([`Submission::Call::link`]) wait like others, but for the end of the one before them. That one is known by its serial
//! number, since it may be over, or with a worker, by the time the next is taken.
//!
//! Locks, in this order: [`Queue::front`], held while submissions are taken; a worker's call, held while it is polled; [`Queue::pool`]; [`Queue::side`], held while the gate is asked. [`Queue::close`]
//! takes each of them after it has shut the side, so that when it returns nobody is in the gate or in a submission, and none will be.

mod batch;
pub mod home;
mod looks;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::pin::Pin;
use core::task::Poll;

use janua_abi::linux::{Errno, Result};
use janua_abi::ring;
use janua_port::Nanos;
use janua_port::gate::{Completion, NO_CALL, QueueGate, Submission};
use janua_rt::executor::Ran;
use janua_rt::slot::Slotted;
use janua_rt::{Mutex, WaitQueue, wake};

use self::batch::{BATCH, Batch};
use self::looks::Looks;
use crate::module::{Away, Module, Remote};
use crate::place::Place;
use crate::table::{Row, Run, Words};
use crate::task::{Kernel, Personality};
use crate::thread::{Seat, Thread, WakeState, work};
use crate::wait::Cut;

/// Most workers of a queue.
pub const MOST: usize = 256;

/// Most calls that have been taken and wait for a worker.
const WAITING: usize = 64;

/// Looks of the job into a watched queue before it lets the executor see to others.
const LOOKS: usize = 16;

/// A queue of one thread's.
pub struct Queue<P: Personality> {
    kernel: Arc<Kernel<P>>,
    me: Weak<Queue<P>>,
    owner: Weak<Seat<P>>,
    module: Arc<Module>,
    wake: Arc<WakeState>,
    workers: Box<[Arc<Worker<P>>]>,
    front: Mutex<Front<P>>,
    pool: Mutex<Pool>,
    side: Mutex<Side>,
    /// Woken when a completion has been posted, or the queue closed.
    posted: WaitQueue,
}

/// What the queue's job has to itself.
struct Front<P: Personality> {
    batch: Batch<P>,
    /// Who makes calls that return at once.
    stand_in: Pin<Box<Slotted<Thread<P>>>>,
    looks: Looks,
}

/// Which workers are taken.
struct Pool {
    free: Vec<usize>,
    /// The tags of the submissions under way, by worker.
    tags: Vec<Option<u64>>,
    /// Calls that have been taken and wait for a worker, or for the one they are linked to, at most [`WAITING`].
    waiting: VecDeque<Taken>,
    /// The last call that was taken, if the next is linked to it, and its verdict on the next once it is over.
    open: Option<(u64, Option<bool>)>,
    /// Calls that have been taken.
    serial: u64,
}

impl Pool {
    fn new(workers: usize) -> Pool {
        Pool {
            free: (0..workers).collect(),
            tags: vec![None; workers],
            waiting: VecDeque::with_capacity(WAITING),
            open: None,
            serial: 0,
        }
    }

    /// A call has been taken. False when the chain it belongs to is broken: then it is not kept.
    fn push(&mut self, number: usize, words: Words, tag: u64, link: Option<isize>) -> bool {
        self.serial += 1;
        let before = self.open.take();
        let broken = matches!(before, Some((_, Some(false))));
        let link = link.map(|least| Link { serial: self.serial, least });
        self.open = link.map(|link| (link.serial, broken.then_some(false)));
        if !broken {
            let follows = before.and_then(|(serial, verdict)| verdict.is_none().then_some(serial));
            self.waiting.push_back(Taken { number, words, tag, link, follows });
        }
        !broken
    }

    /// The next call that waits for nothing but a worker.
    fn pop(&mut self) -> Option<Taken> {
        let ready = self.waiting.iter().position(|taken| taken.follows.is_none())?;
        self.waiting.remove(ready)
    }

    /// A call that others may be linked to is over: the next may begin, or the rest of the chain is taken out, oldest first, and returned.
    fn unlink(&mut self, link: Option<Link>, goes_on: bool) -> Vec<Taken> {
        let mut given_up = Vec::new();
        let mut last = link;
        while let Some(Link { serial, .. }) = last {
            if let Some((_, verdict)) = self.open.as_mut().filter(|(open, _)| *open == serial) {
                *verdict = Some(goes_on);
                break;
            }
            let Some(next) = self.waiting.iter().position(|taken| taken.follows == Some(serial)) else { break };
            if goes_on {
                self.waiting[next].follows = None;
                break;
            }
            let Some(taken) = self.waiting.remove(next) else { break };
            last = taken.link;
            given_up.push(taken);
        }
        given_up
    }
}

/// A call out of the queue.
struct Taken {
    number: usize,
    words: Words,
    tag: u64,
    link: Option<Link>,
    /// The serial number of the call it is linked to, until that is over.
    follows: Option<u64>,
}

/// What a call is to one that is linked to it.
#[derive(Clone, Copy)]
struct Link {
    serial: u64,
    /// The least result with which the chain goes on.
    least: isize,
}

/// The gate's side of a queue.
struct Side {
    gate: Option<Arc<dyn QueueGate>>,
    /// Completions that have not been posted, oldest first. Nothing is taken while there are any: never more than have been taken by then.
    unposted: VecDeque<ring::Completion>,
}

impl Side {
    /// Offers the gate the completions that are kept, as long as there is room: whether there was.
    fn flush(&mut self) -> bool {
        let kept = self.unposted.len();
        let Some(gate) = self.gate.as_ref().filter(|_| kept > 0) else { return false };
        gate.look();
        loop {
            let first = self.unposted.as_slices().0;
            let (offered, posted) = (first.len(), gate.complete_some(first));
            self.unposted.drain(..posted);
            if posted < offered || self.unposted.is_empty() {
                break;
            }
        }
        gate.settle();
        self.unposted.len() < kept
    }
}

/// Where one submission at a time is made.
struct Worker<P: Personality> {
    at: usize,
    queue: Weak<Queue<P>>,
    call: Mutex<Option<Call<P>>>,
    stand_in: Pin<Box<Slotted<Thread<P>>>>,
}

/// A submission under way.
struct Call<P: Personality> {
    row: &'static Row<P>,
    words: Words,
    tag: u64,
    link: Option<Link>,
    /// It has been polled: it is in the slot.
    begun: bool,
    /// When it was taken, where that is counted.
    started: Nanos,
}

impl<P: Personality> Seat<P> {
    /// Opens a queue of this thread's, of which so many submissions are made at a time. EINVAL for none or more than [`MOST`]; ENOSYS where the
    /// personality has no queues, or the kernel no modules that reach user memory from where they run; ESRCH before the thread has begun to run.
    pub fn open_queue(self: &Arc<Self>, gate: Arc<dyn QueueGate>, workers: usize) -> Result<Arc<Queue<P>>> {
        if workers == 0 || workers > MOST {
            return Err(Errno::EINVAL);
        }
        // A stand-in has no home thread that waits and could run errands for it.
        let module = self.kernel.modules.for_queues_of(self.id()).filter(|module| module.direct).ok_or(Errno::ENOSYS)?.clone();
        let mut stand_ins = Vec::with_capacity(workers);
        for _ in 0..workers {
            let state = P::stand_in(self).ok_or(Errno::ENOSYS)?;
            stand_ins.push(Thread::stand_in(self, state).ok_or(Errno::ESRCH)?);
        }
        let modules = &self.kernel.modules;
        let state = P::stand_in(self).ok_or(Errno::ENOSYS)?;
        let front = Front {
            batch: Batch::new(&self.kernel.table, |row| modules.takes_queued(row.place)),
            stand_in: Box::pin(Slotted::new(Thread::stand_in(self, state).ok_or(Errno::ESRCH)?)),
            looks: Looks::new(),
        };
        let queue = Arc::new_cyclic(|queue: &Weak<Queue<P>>| {
            let worker = |(at, thread)| {
                let stand_in = Box::pin(Slotted::new(thread));
                Arc::new(Worker { at, queue: queue.clone(), call: Mutex::new(None), stand_in })
            };
            Queue {
                kernel: self.kernel.clone(),
                me: queue.clone(),
                owner: Arc::downgrade(self),
                module,
                wake: Arc::new(WakeState::new(self.kernel.machine)),
                workers: stand_ins.into_iter().enumerate().map(worker).collect(),
                front: Mutex::new(front),
                pool: Mutex::new(Pool::new(workers)),
                side: Mutex::new(Side { gate: Some(gate), unposted: VecDeque::with_capacity(workers + WAITING + BATCH) }),
                posted: WaitQueue::new(),
            }
        });
        self.queues.lock().push(queue.clone());
        queue.wake.send(queue.job(), &queue.module);
        Ok(queue)
    }
}

impl<P: Personality> Thread<P> {
    /// Closes the thread's queues ([`Queue::close`]). A personality does so before the thread's memory goes, at its end or for another program's.
    pub fn close_queues(&self) {
        let queues = core::mem::take(&mut *self.queues.lock());
        queues.iter().for_each(|queue| queue.close());
    }
}

impl<P: Personality> Queue<P> {
    fn job(self: &Arc<Self>) -> Away {
        let job: Pin<Arc<Self>> = Pin::new(self.clone());
        Away(job)
    }

    /// There is something new in the queue: a submission, or room for a completion.
    pub fn ring(&self) {
        self.wake.raise();
    }

    /// By the submitter: waits until so many completions are there to be taken, or the queue is closed; how many are.
    pub async fn wait(&self, thread: &Thread<P>, least: usize, deadline: Option<Nanos>) -> Result<usize, Cut> {
        let enough = || {
            let unreaped = self.side.lock().gate.as_ref().map(|gate| gate.unreaped());
            unreaped.map_or(Some(0), |unreaped| (unreaped >= least).then_some(unreaped))
        };
        thread.wait_on(&self.posted, deadline, enough).await
    }

    /// Ends the queue with all its submissions: one that has not begun never will, one that waits is interrupted, and dropped if it waits on. They have
    /// no completions. When this returns, nothing of the queue's touches user memory any more.
    pub fn close(&self) {
        let gate = {
            let mut side = self.side.lock();
            side.unposted.clear();
            side.gate.take()
        };
        drop(gate);
        // The one that takes submissions is done with what it had taken by then.
        drop(self.front.lock());
        self.pool.lock().waiting.clear();
        for worker in &self.workers {
            worker.end();
        }
        self.posted.wake_all();
        // The job is to find out, and go.
        self.ring();
    }

    /// Takes some submissions, if there are any and room for their ends, and makes or begins their calls: whether there were.
    fn take_some(&self, front: &mut Front<P>) -> bool {
        front.batch.learn(&self.kernel.table);
        let room = WAITING - self.pool.lock().waiting.len();
        let count = {
            let side = self.side.lock();
            let Some(gate) = side.gate.as_ref().filter(|_| side.unposted.is_empty()) else { return false };
            gate.look();
            let count = front.batch.take(&**gate, room);
            if count > 0 {
                // Their places are free, whenever their calls end.
                gate.settle();
            }
            count
        };
        let mut at = 0;
        while at < count {
            let made = self.make(front, at, count);
            if made == at {
                self.submit(Submission::of(front.batch.entry(at)));
            }
            at = made.max(at + 1);
        }
        self.post_all(&mut front.batch.done);
        count > 0
    }

    /// Makes the calls of entries from `first` on, up to the first that has to be begun by a worker: where that is.
    fn make(&self, front: &mut Front<P>, first: usize, count: usize) -> usize {
        let Front { batch, stand_in, .. } = front;
        if !batch.is_plain(first) || self.is_seen() || self.pool.lock().open.is_some() {
            return first;
        }
        let Some(row) = self.kernel.table.get(P::number(batch.entry(first).number as usize)) else { return first };
        let Some(owner) = self.owner.upgrade().filter(|owner| !owner.is_watched()) else { return first };
        let thread = stand_in.owner();
        // After they were taken: what the thread has changed before it submitted them is as it is.
        if P::lend(&owner, thread, row).is_err() {
            return first;
        }
        let work_for = |on| thread.context().into_iter().for_each(|context| context.work_for(on));
        work_for(true);
        let made = batch.make(stand_in.as_ref(), first, count);
        work_for(false);
        P::take_back(thread);
        made
    }

    fn is_seen(&self) -> bool {
        self.kernel.tracer.is_on() || self.kernel.stats.is_on()
    }

    fn submit(&self, submission: Submission) {
        match submission {
            Submission::Cancel { of, tag } => {
                let result = self.cancel(of).map_or_else(Errno::as_result, |()| 0);
                self.post(Completion { tag, result });
            }
            Submission::Call { number, words, tag, link } => {
                let kept = self.pool.lock().push(number, words, tag, link);
                match kept {
                    true => self.begin_waiting(),
                    false => self.post(cancelled(tag)),
                }
            }
        }
    }

    /// Begins calls that wait for a worker, while there are workers.
    fn begin_waiting(&self) {
        loop {
            let (at, taken) = {
                let mut pool = self.pool.lock();
                if pool.free.is_empty() {
                    return;
                }
                let Some(taken) = pool.pop() else { return };
                let Some(at) = pool.free.pop() else { return };
                (at, taken)
            };
            let Taken { tag, link, .. } = taken;
            if let Err(errno) = self.begin(at, taken) {
                self.pool.lock().free.push(at);
                self.post(Completion { tag, result: errno.as_result() });
                self.unlink(link, false);
            }
        }
    }

    /// Begins a call. EXDEV for one that is made at home alone, ENOSYS for one that is not there.
    fn begin(&self, at: usize, Taken { number, words, tag, link, .. }: Taken) -> Result<()> {
        if number == NO_CALL {
            return Err(Errno::EINVAL);
        }
        let row = self.kernel.table.get(P::number(number)).ok_or(Errno::ENOSYS)?;
        match row.run {
            Run::Missing => return Err(Errno::ENOSYS),
            Run::Plain(_) | Run::Wait(_) if row.place != Place::Home && self.kernel.modules.takes_queued(row.place) => {}
            _ => return Err(Errno::EXDEV),
        }
        let owner = self.owner.upgrade().ok_or(Errno::ESRCH)?;
        if owner.is_watched() {
            // The personality is to be asked before and after each of its calls.
            return Err(Errno::EXDEV);
        }
        let worker = &self.workers[at];
        let mut call = worker.call.lock();
        let thread = worker.stand_in.owner();
        // Before the look at the gate: the word of its end comes after this, or is seen here.
        thread.clear_work(u32::MAX);
        if self.side.lock().gate.is_none() {
            // Closed meanwhile, by a thread that has been at this worker already, or waits for it.
            return Err(Errno::ECANCELED);
        }
        P::lend(&owner, thread, row)?;
        self.pool.lock().tags[at] = Some(tag);
        let watched = self.is_seen();
        let started = if watched { self.kernel.machine.clock().monotonic() } else { 0 };
        if watched {
            thread.trace_enter(row, words);
        }
        *call = Some(Call { row, words, tag, link, begun: false, started });
        thread.wake.send(worker.job(), &self.module);
        Ok(())
    }

    /// Has a submission end; by the queue's job, which alone begins them. ENOENT when there is none with this tag, or no longer.
    fn cancel(&self, tag: u64) -> Result<()> {
        let mut pool = self.pool.lock();
        if let Some(at) = pool.waiting.iter().position(|taken| taken.tag == tag) {
            let link = pool.waiting.remove(at).and_then(|taken| taken.link);
            drop(pool);
            self.post(cancelled(tag));
            self.unlink(link, false);
            return Ok(());
        }
        let at = pool.tags.iter().position(|one| *one == Some(tag)).ok_or(Errno::ENOENT)?;
        // With the tags locked, so that it is not another's by now.
        let thread = self.workers[at].stand_in.owner();
        thread.set_work(work::KILL);
        thread.wake.raise();
        Ok(())
    }

    /// Offers the completions that were kept to the gate again.
    fn offer(&self) {
        let posted = self.side.lock().flush();
        if posted {
            self.posted.wake_all();
        }
    }

    /// Hands a completion to the gate, or keeps it.
    fn post(&self, completion: Completion) {
        self.post_all(&mut vec![ring::Completion { tag: completion.tag, result: completion.result as i64 }]);
    }

    /// The same for many, which are taken out.
    fn post_all(&self, done: &mut Vec<ring::Completion>) {
        let posted = {
            let mut side = self.side.lock();
            if side.gate.is_some() {
                side.unposted.extend(done.iter());
            }
            side.flush()
        };
        done.clear();
        if posted {
            self.posted.wake_all();
        }
    }

    /// A call is over: what is linked to it may begin, or is given up.
    fn unlink(&self, link: Option<Link>, goes_on: bool) {
        if link.is_none() {
            return;
        }
        let given_up = self.pool.lock().unlink(link, goes_on);
        given_up.into_iter().for_each(|taken| self.post(cancelled(taken.tag)));
    }

    /// A worker's submission is over, and another's turn. `begun`: it has been made.
    fn ended(&self, at: usize, completion: Completion, link: Option<Link>, begun: bool) {
        self.post(completion);
        self.unlink(link, begun && link.is_some_and(|link| completion.result >= link.least));
        self.pool.lock().free.push(at);
        self.ring();
    }
}

/// The end of a call that was never made.
fn cancelled(tag: u64) -> Completion {
    Completion { tag, result: Errno::ECANCELED.as_result() }
}

impl<P: Personality> Queue<P> {
    fn is_watched(&self) -> bool {
        self.side.lock().gate.as_ref().is_some_and(|gate| gate.is_watched())
    }

    /// By its job, when there was nothing: looks a few times more if nobody else has use for the executor. Whether there is something.
    fn look_again(&self) -> bool {
        (0..LOOKS).any(|_| {
            core::hint::spin_loop();
            self.module.is_idle() && self.side.lock().gate.as_ref().is_some_and(|gate| gate.look() > 0)
        })
    }

    /// When the job is to look into the queue again, which had something or not.
    fn next_look(&self, looks: &mut Looks, had: bool) -> Option<Nanos> {
        let is_full = self.pool.lock().waiting.len() == WAITING;
        let side = self.side.lock();
        let gate = side.gate.as_ref()?;
        let now = self.kernel.machine.clock().monotonic();
        if had {
            looks.found(now);
            return Some(now);
        }
        if !gate.is_watched() {
            return None;
        }
        // What cannot be taken is no reason to look on: who ends a call rings, and so does the submitter from now on.
        let is_full = is_full || !side.unposted.is_empty();
        if looks.go_on(now) {
            return Some(now);
        }
        let left = wake::lie_down(|| gate.rest(), || gate.look() > 0);
        if left && !is_full { Some(now) } else { None }
    }
}

impl<P: Personality> Remote for Queue<P> {
    /// Takes what is in the queue. Not without end: the submissions are in the same executor's queue, and so are others.
    fn run(self: Pin<&Self>) -> Ran {
        let Some(queue) = self.me.upgrade() else { return Ran::Done };
        queue.offer();
        queue.begin_waiting();
        let front = &mut *queue.front.lock();
        let mut had = queue.take_some(front);
        if !had && queue.is_watched() && queue.look_again() {
            had = queue.take_some(front);
        }
        if queue.side.lock().gate.is_none() {
            wake::finish(&queue.wake.word);
            queue.wake.come_home();
            return Ran::Done;
        }
        Ran::Waits(queue.next_look(&mut front.looks, had))
    }

    fn wake(&self) -> &WakeState {
        &self.wake
    }
}

impl<P: Personality> Worker<P> {
    fn job(self: &Arc<Self>) -> Away {
        let job: Pin<Arc<Self>> = Pin::new(self.clone());
        Away(job)
    }

    /// Polls the submission once, or begins it.
    fn poll(&self, call: &mut Call<P>) -> Poll<isize> {
        if !call.begun && self.stand_in.owner().work() & work::KILL != 0 {
            return Poll::Ready(Errno::ECANCELED.as_result());
        }
        let begins = !core::mem::replace(&mut call.begun, true);
        match Thread::poll_away(self.stand_in.as_ref(), begins.then_some((call.row, call.words))) {
            // Only its cancellation cuts it short.
            Poll::Ready(result) if P::is_special(result) => Poll::Ready(Errno::ECANCELED.as_result()),
            polled => polled,
        }
    }

    /// The submission is over: what it had goes, and the worker is as it was. With the call locked.
    fn leave(&self, call: &Call<P>, queue: Option<&Queue<P>>, result: isize) {
        let thread = self.stand_in.owner();
        if call.started != 0 {
            thread.observe(call.row, call.words, result, call.started);
        }
        if let Some(queue) = queue {
            queue.pool.lock().tags[self.at] = None;
        }
        P::take_back(thread);
        wake::finish(&thread.wake.word);
        thread.wake.come_home();
    }

    /// The queue is closed: so is what is under way here.
    fn end(self: &Arc<Self>) {
        let thread = self.stand_in.owner();
        thread.set_work(work::KILL);
        let mut call = self.call.lock();
        let Some(mut ended) = call.take() else { return };
        let result = match ended.begun {
            true => self.poll(&mut ended),
            false => Poll::Pending,
        };
        self.stand_in.as_ref().clear();
        let queue = self.queue.upgrade();
        let cancelled = Errno::ECANCELED.as_result();
        let result = if let Poll::Ready(result) = result { result } else { cancelled };
        self.leave(&ended, queue.as_deref(), result);
        if let Some(queue) = queue {
            queue.module.forget(&self.job());
        }
    }
}

impl<P: Personality> Remote for Worker<P> {
    fn run(self: Pin<&Self>) -> Ran {
        let worker = self.get_ref();
        let mut call = worker.call.lock();
        let Some(under_way) = &mut *call else {
            // It was in the executor's queue when it was ended.
            wake::finish(&worker.stand_in.owner().wake.word);
            return Ran::Done;
        };
        let Poll::Ready(result) = worker.poll(under_way) else {
            return Ran::Waits(worker.stand_in.owner().look_again());
        };
        let Call { tag, link, begun, .. } = *under_way;
        let queue = worker.queue.upgrade();
        if let Some(ended) = call.take() {
            worker.leave(&ended, queue.as_deref(), result);
        }
        drop(call);
        if let Some(queue) = queue {
            queue.ended(worker.at, Completion { tag, result }, link, begun);
        }
        Ran::Done
    }

    fn wake(&self) -> &WakeState {
        &self.stand_in.owner().wake
    }
}
