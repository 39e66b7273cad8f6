//! Waiting inside an `async` handler.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::sync::atomic::Ordering;
use core::task::Poll;

use alloc::vec::Vec;

use janua_abi::linux::Errno;
use janua_port::Nanos;
use janua_rt::{Epoch, Registration, Target, WaitQueue};

use crate::task::Personality;
use crate::thread::{Thread, work};

/// Advances when a program may be about to learn of something that has happened outside: a thread has waited, or has been given what
/// others write ([`janua_port::Host::read`] and the like, by those who call them).
pub static EVENTS: Epoch = Epoch::new();

/// Why a wait ended without what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The thread is to stop or to end, or its personality wants it.
    Interrupted,
    /// The deadline passed.
    TimedOut,
}

impl Cut {
    /// The usual errors: that of an interrupted call, which is the personality's affair, or the timeout's own.
    pub fn errno(self, timed_out: Errno) -> Errno {
        match self {
            Cut::Interrupted => Errno::INTERRUPTED,
            Cut::TimedOut => timed_out,
        }
    }
}

/// What a waiting call depends on: queues it is registered with, and a time. Files add theirs when polled.
pub struct PollTable {
    target: Target,
    mask: u32,
    /// Most waits are on one queue: its registration needs no allocation.
    first: Option<Registration>,
    rest: Vec<Registration>,
    /// Whether registrations may be refused for want of memory, and whether one was.
    may_refuse: bool,
    refused: bool,
    /// Whether readiness is a matter of time too, so that the table must be made anew for every look.
    timed: bool,
    /// Earliest time at which looking again is worth while (monotonic); `Nanos::MAX` is never.
    deadline: Nanos,
}

impl PollTable {
    /// A table whose registrations notify `target` of `mask`.
    pub fn new(target: Target, mask: u32) -> PollTable {
        PollTable {
            target,
            mask,
            first: None,
            rest: Vec::new(),
            may_refuse: false,
            refused: false,
            timed: false,
            deadline: Nanos::MAX,
        }
    }

    /// Registers with a queue, until the table is dropped.
    pub fn add(&mut self, queue: &WaitQueue) {
        let registration = if self.may_refuse {
            let Some(registration) = self.try_register(queue) else { return self.refused = true };
            registration
        } else {
            queue.register(self.target.clone(), self.mask)
        };
        match self.first {
            None => self.first = Some(registration),
            Some(_) => self.rest.push(registration),
        }
    }

    fn try_register(&mut self, queue: &WaitQueue) -> Option<Registration> {
        self.rest.try_reserve(1).ok()?;
        queue.try_register(self.target.clone(), self.mask)
    }

    /// For a caller with as many queues as the program likes, who looks at [`PollTable::is_refused`] and does not wait then.
    pub fn may_refuse(&mut self) {
        self.may_refuse = true;
    }

    /// Whether there was no memory for one of the registrations.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Changes the events of registrations to come.
    pub fn set_mask(&mut self, mask: u32) {
        self.mask = mask;
    }

    /// For files that become ready by the passing of time (timerfd): look again at `deadline` (monotonic). `None` when no time
    /// is set now but may be later; who sets one wakes a queue added to this table.
    pub fn wake_at(&mut self, deadline: Option<Nanos>) {
        self.timed = true;
        self.deadline = self.deadline.min(deadline.unwrap_or(Nanos::MAX));
    }

    /// Whether [`PollTable::wake_at`] was called, and the earliest time asked for.
    pub fn timed(&self) -> Option<Option<Nanos>> {
        self.timed.then_some((self.deadline != Nanos::MAX).then_some(self.deadline))
    }
}

impl<P: Personality> Thread<P> {
    /// Whether a waiting call must give up now.
    pub fn interrupted(&self) -> bool {
        self.work() & (work::INTERRUPT | work::KILL | work::STOP) != 0
    }

    /// Between two parts of a long call that holds no lock: whether it may go on. Timers and other threads do not wait for its end.
    pub fn goes_on(&self) -> bool {
        self.machine().park().attend();
        !self.interrupted()
    }

    /// Asks to be polled again at `deadline` (monotonic) at the latest. For use inside a poll.
    pub fn wake_at(&self, deadline: Nanos) {
        self.deadline.fetch_min(deadline, Ordering::Relaxed);
    }

    /// Waits until `step` returns something. Without a table `step` tests; with one it registers with every queue whose wakers
    /// make another test worth while, then tests, so that no wake-up is lost.
    pub async fn wait_polling<T>(
        &self,
        deadline: Option<Nanos>,
        mut step: impl FnMut(Option<&mut PollTable>) -> Option<T> + Send,
    ) -> Result<T, Cut> {
        let mut table: Option<PollTable> = None;
        poll_fn(move |cx| {
            if let Some(value) = step(None) {
                return Poll::Ready(Ok(value));
            }
            if self.interrupted() {
                return Poll::Ready(Err(Cut::Interrupted));
            }
            if deadline.is_some_and(|at| at == 0 || self.kernel.machine.clock().monotonic() >= at) {
                return Poll::Ready(Err(Cut::TimedOut));
            }
            if table.as_ref().is_none_or(|table| table.timed) {
                // The old registrations go first: what comes in between is seen by the step, which looks after the new ones are made.
                let fresh = table.insert(PollTable::new(Target::Task(cx.waker().clone()), u32::MAX));
                if let Some(value) = step(Some(fresh)) {
                    return Poll::Ready(Ok(value));
                }
            }
            let timed = table.as_ref().map_or(Nanos::MAX, |table| table.deadline);
            let earliest = deadline.unwrap_or(Nanos::MAX).min(timed);
            if earliest != Nanos::MAX {
                self.wake_at(earliest);
            }
            Poll::Pending
        })
        .await
    }

    /// Waits until `test` returns something. `register` joins the queues whose wakers make the test worth repeating, for
    /// events of `mask`; the test is repeated after that, so no wake-up is lost.
    pub async fn wait_until<T>(
        &self,
        deadline: Option<Nanos>,
        mask: u32,
        mut register: impl FnMut(&mut PollTable) + Send,
        mut test: impl FnMut() -> Option<T> + Send,
    ) -> Result<T, Cut> {
        self.wait_polling(deadline, move |table| {
            if let Some(table) = table {
                table.set_mask(mask);
                register(table);
            }
            test()
        })
        .await
    }

    /// Waits on one queue until `test` returns something.
    pub async fn wait_on<T>(
        &self,
        queue: &WaitQueue,
        deadline: Option<Nanos>,
        test: impl FnMut() -> Option<T> + Send,
    ) -> Result<T, Cut> {
        self.wait_until(deadline, 0xffff_ffff, |table| table.add(queue), test).await
    }

    /// Waits for any future, giving up when the thread is interrupted.
    pub async fn interruptible<F: Future>(&self, future: F) -> Result<F::Output, Cut> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Ok(value)),
            Poll::Pending if self.interrupted() => Poll::Ready(Err(Cut::Interrupted)),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Sleeps until `deadline` (monotonic): `Ok` when it has passed, `Err` when interrupted before.
    pub async fn sleep_until(&self, deadline: Nanos) -> Result<(), Cut> {
        match self.wait_until::<()>(Some(deadline), 0, |_| (), || None).await {
            Err(Cut::TimedOut) | Ok(()) => Ok(()),
            Err(Cut::Interrupted) => Err(Cut::Interrupted),
        }
    }
}
