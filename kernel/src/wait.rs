//! Waiting inside an `async` handler.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::sync::atomic::Ordering;
use core::task::Poll;

use alloc::vec::Vec;

use janua_abi::linux::Errno;
use janua_port::Nanos;
use janua_rt::{Registration, Target, WaitQueue};

use crate::task::Personality;
use crate::thread::{Thread, work};

/// Why a wait ended without what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A signal, stop or kill wants the thread.
    Interrupted,
    /// The deadline passed.
    TimedOut,
}

impl Cut {
    /// The usual errors: restart after a handler where the action says so, or the timeout's own.
    pub fn errno(self, timed_out: Errno) -> Errno {
        match self {
            Cut::Interrupted => Errno::ERESTARTSYS,
            Cut::TimedOut => timed_out,
        }
    }
}

/// The queues a waiting call is registered with. Files add their queues to it when polled.
pub struct PollTable {
    target: Target,
    mask: u32,
    /// Most waits are on one queue: its registration needs no allocation.
    first: Option<Registration>,
    rest: Vec<Registration>,
}

impl PollTable {
    /// A table whose registrations tell `target` of `mask`.
    pub fn new(target: Target, mask: u32) -> PollTable {
        PollTable { target, mask, first: None, rest: Vec::new() }
    }

    /// Registers with a queue, until the table is dropped.
    pub fn add(&mut self, queue: &WaitQueue) {
        let registration = queue.register(self.target.clone(), self.mask);
        match self.first {
            None => self.first = Some(registration),
            Some(_) => self.rest.push(registration),
        }
    }

    /// Changes the events of registrations to come.
    pub fn set_mask(&mut self, mask: u32) {
        self.mask = mask;
    }
}

impl<P: Personality> Thread<P> {
    /// Whether a waiting call must give up now.
    pub fn interrupted(&self) -> bool {
        self.work() & (work::SIGNAL | work::KILL | work::STOP) != 0
    }

    /// Asks to be polled again at `deadline` (monotonic) at the latest. For use inside a poll.
    pub fn wake_at(&self, deadline: Nanos) {
        self.deadline.fetch_min(deadline, Ordering::Relaxed);
    }

    /// Waits until `test` answers something. `register` is called once, after the first failed test, to join the queues whose
    /// wakers make the test worth repeating; the test is repeated after that, so no wake-up is lost.
    pub async fn wait_until<T>(
        &self,
        deadline: Option<Nanos>,
        mask: u32,
        mut register: impl FnMut(&mut PollTable) + Send,
        mut test: impl FnMut() -> Option<T> + Send,
    ) -> Result<T, Cut> {
        let mut table: Option<PollTable> = None;
        poll_fn(move |cx| {
            if let Some(value) = test() {
                return Poll::Ready(Ok(value));
            }
            if table.is_none() {
                let mut fresh = PollTable::new(Target::Task(cx.waker().clone()), mask);
                register(&mut fresh);
                table = Some(fresh);
                if let Some(value) = test() {
                    return Poll::Ready(Ok(value));
                }
            }
            if self.interrupted() {
                return Poll::Ready(Err(Cut::Interrupted));
            }
            if let Some(at) = deadline {
                if self.kernel.machine.clock().monotonic() >= at {
                    return Poll::Ready(Err(Cut::TimedOut));
                }
                self.wake_at(at);
            }
            Poll::Pending
        })
        .await
    }

    /// Waits on one queue until `test` answers something.
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
