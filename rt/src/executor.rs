//! An executor: runs calls away from the threads that made them.
//!
//! A job is a handle to a call with a wake word ([`crate::wake`]); the queue holds those to be polled, the timers those that asked for a
//! time. Which is next is the [`Policy`]'s choice. Who has a thread to spare calls [`Executor::turn`] in a loop; everybody may
//! [`Executor::submit`], and wakes that thread afterwards. Several threads may take turns of one executor at a time: so one that is held up in a job can be
//! relieved, and an executor can change from one thread to another at any moment.

use crate::atomic::AtomicU32;
use crate::sync::Mutex;
use crate::wake::{self, Raised};
use alloc::collections::BTreeMap;

pub use crate::policy::{Policy, Queue};
pub use janua_port::Nanos;

/// A call that is away.
pub trait Job: Clone + Send {
    /// Which it is, as long as it lives.
    fn id(&self) -> usize;
    /// Its wake word.
    fn word(&self) -> &AtomicU32;
    /// Polls it once.
    fn run(&self) -> Ran;
    /// Jobs of the same kind do the same kind of work ([`Policy::Cohort`]).
    fn kind(&self) -> usize {
        0
    }
    /// The lower, the sooner ([`Policy::Priority`]): a nice value.
    fn nice(&self) -> i8 {
        0
    }
}

/// What became of a job that was polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// It is over: its thread has the result, and the executor forgets it.
    Done,
    /// It waits: for a wake-up, or until this time.
    Waits(Option<Nanos>),
}

/// Times at which jobs are to be polled again, each job's latest.
struct Timers<J> {
    at: BTreeMap<(Nanos, usize), J>,
    of: BTreeMap<usize, Nanos>,
}

impl<J: Job> Timers<J> {
    fn clear(&mut self, id: usize) {
        if let Some(old) = self.of.remove(&id) {
            self.at.remove(&(old, id));
        }
    }

    fn set(&mut self, job: &J, deadline: Nanos) {
        self.of.insert(job.id(), deadline);
        self.at.insert((deadline, job.id()), job.clone());
    }

    /// A job whose time has come.
    fn due(&mut self, now: Nanos) -> Option<J> {
        let entry = self.at.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((_, id), job) = entry.remove_entry();
        self.of.remove(&id);
        Some(job)
    }

    fn next(&self) -> Option<Nanos> {
        Some(self.at.first_key_value()?.0.0)
    }
}

/// What [`Executor::turn`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Polled a job; there may be more.
    Ran,
    /// There was none. The next comes by a wake-up, or at this time.
    Idle(Option<Nanos>),
}

/// A queue of jobs and their timers.
pub struct Executor<J> {
    queue: Mutex<Queue<J>>,
    timers: Mutex<Timers<J>>,
}

impl<J: Job> Executor<J> {
    /// An executor without jobs.
    pub fn new(policy: Policy) -> Executor<J> {
        let timers = Timers { at: BTreeMap::new(), of: BTreeMap::new() };
        Executor { queue: Mutex::new(Queue::new(policy)), timers: Mutex::new(timers) }
    }

    /// Puts a job into the queue: one whose thread has sent it away, or for which [`wake::raise`] returned [`Raised::Queue`]. The caller wakes the
    /// thread that takes the turns.
    pub fn submit(&self, job: J) {
        self.queue.lock().push(job);
    }

    /// How many jobs are in the queue.
    pub fn queued(&self) -> usize {
        self.queue.lock().len()
    }

    /// Takes a job out of the queue that its thread has taken back ([`wake::take_back`]).
    pub fn withdraw(&self, job: &J) {
        self.queue.lock().remove(job.id());
    }

    /// Forgets the time that a job has asked for: it has ended outside a turn.
    pub fn forget(&self, job: &J) {
        self.timers.lock().clear(job.id());
    }

    /// Polls the next job, after jobs whose time has come by `now` have been put into the queue.
    pub fn turn(&self, now: Nanos) -> Turn {
        loop {
            let due = self.timers.lock().due(now);
            let Some(job) = due else { break };
            if wake::raise(job.word()) == Raised::Queue {
                self.queue.lock().push(job);
            }
        }
        let next = self.queue.lock().pop();
        let Some(job) = next else { return Turn::Idle(self.timers.lock().next()) };
        if !wake::begin(job.word()) {
            return Turn::Ran;
        }
        self.timers.lock().clear(job.id());
        match job.run() {
            // From here on the job may be sent again, and be another's.
            Ran::Done => {}
            Ran::Waits(deadline) => {
                if let Some(deadline) = deadline {
                    self.timers.lock().set(&job, deadline);
                }
                if !wake::pause(job.word()) {
                    self.queue.lock().push(job);
                }
            }
        }
        Turn::Ran
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use alloc::sync::Arc;
    use core::sync::atomic::Ordering;
    use std::sync::Mutex as StdMutex;
    use std::vec::Vec;

    use super::*;

    /// A job that runs by a script, and notes when.
    #[derive(Clone)]
    struct Script(Arc<Inner>);
    struct Inner {
        name: u32,
        word: AtomicU32,
        script: StdMutex<Vec<Ran>>,
        log: Arc<StdMutex<Vec<u32>>>,
        /// Woken while it is polled.
        wakes: bool,
    }

    impl Job for Script {
        fn id(&self) -> usize {
            Arc::as_ptr(&self.0).addr()
        }
        fn word(&self) -> &AtomicU32 {
            &self.0.word
        }
        fn run(&self) -> Ran {
            self.0.log.lock().unwrap().push(self.0.name);
            if self.0.wakes {
                assert_eq!(wake::raise(&self.0.word), Raised::Nothing);
            }
            let ran = self.0.script.lock().unwrap().remove(0);
            if ran == Ran::Done {
                wake::finish(&self.0.word);
            }
            ran
        }
    }

    type Jobs = Executor<Script>;

    fn executor() -> (Jobs, Arc<StdMutex<Vec<u32>>>) {
        (Executor::new(Policy::Fifo), Arc::default())
    }

    fn send(to: &Jobs, log: &Arc<StdMutex<Vec<u32>>>, name: u32, script: &[Ran], wakes: bool) -> Script {
        let script = StdMutex::new(script.to_vec());
        let job = Script(Arc::new(Inner { name, word: AtomicU32::new(wake::QUIET), script, log: log.clone(), wakes }));
        wake::send(job.word());
        to.submit(job.clone());
        job
    }

    fn until_idle(on: &Jobs, now: Nanos) -> Option<Nanos> {
        loop {
            if let Turn::Idle(deadline) = on.turn(now) {
                return deadline;
            }
        }
    }

    #[test]
    fn jobs_run_in_their_order_and_are_forgotten_when_done() {
        let (executor, log) = executor();
        let first = send(&executor, &log, 1, &[Ran::Waits(None), Ran::Done], false);
        send(&executor, &log, 2, &[Ran::Done], false);
        assert_eq!(until_idle(&executor, 0), None);
        assert_eq!(*log.lock().unwrap(), [1, 2]);
        assert_eq!(wake::raise(first.word()), Raised::Queue);
        assert_eq!(wake::raise(first.word()), Raised::Nothing, "it is in the queue already");
        executor.submit(first.clone());
        assert_eq!(until_idle(&executor, 0), None);
        assert_eq!(*log.lock().unwrap(), [1, 2, 1]);
        assert_eq!(first.word().load(Ordering::Relaxed), wake::QUIET);
        assert_eq!(Arc::strong_count(&first.0), 1);
    }

    #[test]
    fn a_wake_up_during_the_poll_is_not_lost() {
        let (executor, log) = executor();
        send(&executor, &log, 1, &[Ran::Waits(None), Ran::Waits(None), Ran::Done], true);
        assert_eq!(until_idle(&executor, 0), None);
        assert_eq!(*log.lock().unwrap(), [1, 1, 1]);
    }

    #[test]
    fn timers_are_each_jobs_latest() {
        let (executor, log) = executor();
        let early = send(&executor, &log, 1, &[Ran::Waits(Some(10)), Ran::Waits(Some(30)), Ran::Done], false);
        send(&executor, &log, 2, &[Ran::Waits(Some(20)), Ran::Done], false);
        assert_eq!(until_idle(&executor, 0), Some(10));
        assert_eq!(wake::raise(early.word()), Raised::Queue);
        executor.submit(early.clone());
        assert_eq!(until_idle(&executor, 5), Some(20), "its first time is forgotten");
        assert_eq!(until_idle(&executor, 20), Some(30));
        assert_eq!(until_idle(&executor, 29), Some(30));
        assert_eq!(until_idle(&executor, 31), None);
        assert_eq!(*log.lock().unwrap(), [1, 2, 1, 2, 1]);
        assert_eq!(Arc::strong_count(&early.0), 1);
    }

    #[test]
    fn a_job_that_ended_elsewhere_has_no_time() {
        let (executor, log) = executor();
        let job = send(&executor, &log, 1, &[Ran::Waits(Some(10))], false);
        assert_eq!(until_idle(&executor, 0), Some(10));
        executor.forget(&job);
        assert_eq!(until_idle(&executor, 20), None);
        assert_eq!((Arc::strong_count(&job.0), log.lock().unwrap().len()), (1, 1));
    }

    #[test]
    fn what_has_been_taken_back_is_not_begun() {
        let (executor, log) = executor();
        let job = send(&executor, &log, 1, &[Ran::Waits(None), Ran::Done], false);
        assert!(wake::take_back(job.word()) && !wake::take_back(job.word()));
        assert_eq!(until_idle(&executor, 0), None);
        assert!(log.lock().unwrap().is_empty(), "its entry was left in the queue, and is none");
        // Sent again: two entries, one call.
        wake::send(job.word());
        executor.submit(job.clone());
        executor.submit(job.clone());
        assert_eq!(until_idle(&executor, 0), None);
        assert_eq!(*log.lock().unwrap(), [1]);
        assert!(!wake::take_back(job.word()), "it has begun");
        assert_eq!(wake::raise(job.word()), Raised::Queue);
        assert!(!wake::take_back(job.word()), "woken is not new");
        executor.submit(job.clone());
        executor.withdraw(&job);
        assert_eq!((until_idle(&executor, 0), executor.queued()), (None, 0));
        assert_eq!(*log.lock().unwrap(), [1]);
    }
}
