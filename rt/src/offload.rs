//! Work that blocks is done by workers: threads that may stand still, so that who asks for it does not have to.
//!
//! [`Pool::offload`] makes a future of the work. Its first poll hands the work over, or waits for room in the queue; it is ready once a worker has done it. There
//! are no more workers than the pool was made for, and they are asked for when work would wait for one ([`Workers::request`]). A future that is dropped takes its work
//! out of the queue; what a worker has begun it ends, and the result goes. Where the machine has no thread to give, who polls does the work itself
//! ([`Pool::refused`]).
//!
//! No hand-over is lost: a worker reads [`Pool::word`] before it looks into the queue, and sleeps only while it is the same; who puts work into the queue changes it
//! after. No completion is lost: result and waker are under one lock.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::future::Future;
use core::mem::replace;
use core::pin::Pin;
use core::sync::atomic::Ordering;
use core::task::{Context, Poll, Waker};

use crate::atomic::AtomicU32;
use crate::sync::Mutex;
use crate::waitq::{Registration, Target, WaitQueue};

/// What a pool asks of the platform.
pub trait Workers: Send + Sync {
    /// Has one more thread call [`Pool::work`] soon, or [`Pool::refused`] if there can be none. Called by any thread, which it must not hold up.
    fn request(&self);
    /// By a worker: sleeps while the word is as expected, or shorter. False once it has slept for as long as a worker is kept that has nothing to do.
    fn sleep(&self, word: &AtomicU32, expected: u32) -> bool;
    /// Wakes one of the workers that sleep on the word, which has been changed.
    fn wake(&self, word: &AtomicU32);
}

/// What a pool has at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads.
    pub workers: usize,
    /// Pieces of work that wait for one. Who comes later waits for room.
    pub queue: usize,
}

/// A piece of work, whatever its result.
trait Work: Send + Sync {
    /// By a worker: does it, unless nobody wants it any more.
    fn run(&self);
    /// No worker will: who waits for it is to do it.
    fn give_back(&self);
}

type Body<T> = Box<dyn FnOnce() -> T + Send>;

enum Step<T> {
    /// It waits for a worker.
    Queued(Body<T>, Waker),
    /// A worker does it.
    Begun(Waker),
    /// It is done.
    Over(T),
    /// Who polls next does it.
    Yours(Body<T>),
    /// Nobody waits for it, or it is being moved from one step to another under its lock.
    Gone,
}

struct Job<T> {
    step: Mutex<Step<T>>,
}

impl<T: Send> Work for Job<T> {
    fn run(&self) {
        let body = {
            let mut step = self.step.lock();
            match replace(&mut *step, Step::Gone) {
                Step::Queued(body, waker) => {
                    *step = Step::Begun(waker);
                    body
                }
                other => {
                    *step = other;
                    return;
                }
            }
        };
        let result = body();
        let before = {
            let mut step = self.step.lock();
            match *step {
                Step::Gone => Step::Over(result),
                _ => replace(&mut *step, Step::Over(result)),
            }
        };
        // Without the lock: a result that nobody wants is dropped here.
        if let Step::Begun(waker) = before {
            waker.wake();
        }
    }

    fn give_back(&self) {
        let waker = {
            let mut step = self.step.lock();
            match replace(&mut *step, Step::Gone) {
                Step::Queued(body, waker) => {
                    *step = Step::Yours(body);
                    Some(waker)
                }
                other => {
                    *step = other;
                    None
                }
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Job<T> {
    fn poll(&self, waker: &Waker) -> Poll<T> {
        let step = {
            let mut step = self.step.lock();
            match &mut *step {
                Step::Queued(_, known) | Step::Begun(known) => {
                    if !known.will_wake(waker) {
                        known.clone_from(waker);
                    }
                    return Poll::Pending;
                }
                _ => replace(&mut *step, Step::Gone),
            }
        };
        match step {
            Step::Over(result) => Poll::Ready(result),
            Step::Yours(body) => Poll::Ready(body()),
            // Polled after its end.
            _ => Poll::Pending,
        }
    }
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<dyn Work>>,
    /// Workers there are, those of them that sleep or are about to, and those that have been asked for.
    workers: usize,
    idle: usize,
    asked: usize,
}

/// Workers, and the work that waits for them.
pub struct Pool<W> {
    workers: W,
    limits: Limits,
    state: Mutex<State>,
    /// Changes whenever there is more in the queue. Workers sleep on it.
    word: AtomicU32,
    /// Woken when there is room in the queue.
    room: WaitQueue,
}

/// What is to be done once work has been put into the queue.
struct Needs {
    wake: bool,
    request: bool,
}

impl<W: Workers> Pool<W> {
    /// A pool without workers.
    pub fn new(workers: W, limits: Limits) -> Pool<W> {
        Pool { workers, limits, state: Mutex::new(State::default()), word: AtomicU32::new(0), room: WaitQueue::new() }
    }

    /// What the platform has for it.
    pub fn workers(&self) -> &W {
        &self.workers
    }

    /// A future of work that blocks. Nothing is done before it is polled.
    pub fn offload<T, F>(&self, work: F) -> Offload<'_, W, T, F>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        Offload { pool: self, work: Some(work), job: None, room: None }
    }

    /// By a thread that [`Workers::request`] has asked for: does what there is to do, until there has been nothing for a while.
    pub fn work(&self) {
        {
            let mut state = self.state.lock();
            state.asked = state.asked.saturating_sub(1);
            state.workers += 1;
        }
        loop {
            let seen = self.word.load(Ordering::Acquire);
            if let Some(work) = self.next() {
                work.run();
                continue;
            }
            let stays = self.workers.sleep(&self.word, seen);
            let mut state = self.state.lock();
            state.idle -= 1;
            if !stays && state.queue.is_empty() {
                state.workers -= 1;
                return;
            }
        }
    }

    /// A worker that was asked for cannot be had. Without any other, those who wait do their work themselves.
    pub fn refused(&self) {
        let left = {
            let mut state = self.state.lock();
            state.asked = state.asked.saturating_sub(1);
            if state.workers + state.asked > 0 {
                return;
            }
            core::mem::take(&mut state.queue)
        };
        left.iter().for_each(|work| work.give_back());
        self.room.wake_all();
    }

    /// How many workers there are, and how much work waits for one.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.workers, state.queue.len())
    }

    /// The next piece of work; without one the worker counts as idle.
    fn next(&self) -> Option<Arc<dyn Work>> {
        let next = {
            let mut state = self.state.lock();
            let next = state.queue.pop_front();
            if next.is_none() {
                state.idle += 1;
            }
            next
        };
        if next.is_some() {
            self.room.wake_one(1);
        }
        next
    }

    fn has_room(&self) -> bool {
        self.state.lock().queue.len() < self.limits.queue
    }

    /// Puts work into the queue, if there is room: what is to be done for it.
    fn push(&self, work: impl FnOnce() -> Option<Arc<dyn Work>>) -> Option<Needs> {
        let mut state = self.state.lock();
        if state.queue.len() >= self.limits.queue {
            return None;
        }
        state.queue.push_back(work()?);
        let request = state.idle + state.asked < state.queue.len() && state.workers + state.asked < self.limits.workers;
        state.asked += usize::from(request);
        Some(Needs { wake: state.idle > 0, request })
    }

    fn call(&self, needs: &Needs) {
        self.word.fetch_add(1, Ordering::AcqRel);
        if needs.wake {
            self.workers.wake(&self.word);
        }
        if needs.request {
            self.workers.request();
        }
    }

    /// Takes work out of the queue that nobody waits for any more.
    fn forget(&self, work: *const ()) {
        let forgotten = {
            let mut state = self.state.lock();
            let at = state.queue.iter().position(|queued| Arc::as_ptr(queued).cast() == work);
            at.and_then(|at| state.queue.remove(at))
        };
        if forgotten.is_some() {
            self.room.wake_one(1);
        }
    }
}

/// Work that is handed to a worker ([`Pool::offload`]): ready with its result.
pub struct Offload<'a, W: Workers, T, F> {
    pool: &'a Pool<W>,
    /// Until it is handed over.
    work: Option<F>,
    job: Option<Arc<Job<T>>>,
    /// While it waits for room.
    room: Option<Registration>,
}

// Nothing in it is pinned.
impl<W: Workers, T, F> Unpin for Offload<'_, W, T, F> {}

impl<W, T, F> Offload<'_, W, T, F>
where
    W: Workers,
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    /// Whether a worker has it now, or will.
    fn hand_over(&mut self, waker: &Waker) -> bool {
        let (work, job) = (&mut self.work, &mut self.job);
        let make = || {
            let step = Step::Queued(Box::new(work.take()?) as Body<T>, waker.clone());
            let made = Arc::new(Job { step: Mutex::new(step) });
            *job = Some(made.clone());
            Some(made as Arc<dyn Work>)
        };
        let Some(needs) = self.pool.push(make) else { return false };
        self.pool.call(&needs);
        true
    }
}

impl<W, T, F> Future for Offload<'_, W, T, F>
where
    W: Workers,
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        if let Some(job) = &this.job {
            return job.poll(cx.waker());
        }
        if !this.hand_over(cx.waker()) {
            if this.room.is_some() {
                return Poll::Pending;
            }
            this.room = Some(this.pool.room.register(Target::Task(cx.waker().clone()), 1));
            // There may have been room before the registration.
            if !this.hand_over(cx.waker()) {
                return Poll::Pending;
            }
        }
        this.leave();
        Poll::Pending
    }
}

impl<W: Workers, T, F> Offload<'_, W, T, F> {
    /// Does not wait for room any more. A wake-up that was meant for it, and of no use, is another's.
    fn leave(&mut self) {
        if self.room.take().is_some() && self.pool.has_room() {
            self.pool.room.wake_one(1);
        }
    }
}

impl<W: Workers, T, F> Drop for Offload<'_, W, T, F> {
    fn drop(&mut self) {
        self.leave();
        let Some(job) = self.job.take() else { return };
        // Without the lock: what it holds may take locks as it goes.
        let step = replace(&mut *job.step.lock(), Step::Gone);
        if matches!(step, Step::Queued(..)) {
            self.pool.forget(Arc::as_ptr(&job).cast());
        }
    }
}
