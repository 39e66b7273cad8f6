//! An executor: runs calls away from the threads that made them.
//!
//! A job is a handle to a call with a wake word ([`crate::wake`]); the queue holds those to be polled, the timers those that asked for a
//! time. Which is next is the policy's choice. Who has a thread to spare calls [`Executor::turn`] in a loop and sleeps on
//! [`Executor::word`] in between; everybody may [`Executor::submit`]. A thread that is held up in a job can be relieved: another takes the turns,
//! and the first finds at the end of its own that it is no longer wanted.

use crate::atomic::AtomicU32;
use crate::sync::Mutex;
use crate::wake::{self, Raised};
use alloc::collections::{BTreeMap, VecDeque};

pub use janua_port::Nanos;

/// A call that is away.
pub trait Job: Clone + Send {
    /// Which it is, as long as it lives.
    fn id(&self) -> usize;
    /// Its wake word.
    fn word(&self) -> &AtomicU32;
    /// Polls it once.
    fn run(&self) -> Ran;
}

/// What became of a job that was polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// It is over: its thread has the result, and the executor forgets it.
    Done,
    /// It waits: for a wake-up, or until this time.
    Waits(Option<Nanos>),
}

/// Which job is next.
pub trait Policy<J>: Send {
    fn push(&mut self, job: J);
    fn pop(&mut self) -> Option<J>;
}

/// First in, first out.
pub struct Fifo<J>(VecDeque<J>);

impl<J> Default for Fifo<J> {
    fn default() -> Self {
        Fifo(VecDeque::new())
    }
}

impl<J: Send> Policy<J> for Fifo<J> {
    fn push(&mut self, job: J) {
        self.0.push_back(job);
    }
    fn pop(&mut self) -> Option<J> {
        self.0.pop_front()
    }
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

/// A queue of jobs, their timers and the word its thread sleeps on.
pub struct Executor<J, Q> {
    word: AtomicU32,
    queue: Mutex<Q>,
    timers: Mutex<Timers<J>>,
}

impl<J: Job, Q: Policy<J>> Executor<J, Q> {
    /// An executor without jobs.
    pub fn new(queue: Q) -> Executor<J, Q> {
        let timers = Timers { at: BTreeMap::new(), of: BTreeMap::new() };
        Executor { word: AtomicU32::new(wake::QUIET), queue: Mutex::new(queue), timers: Mutex::new(timers) }
    }

    /// The wake word of the thread that takes turns here: [`wake::rearm`] before a turn, [`wake::PARKED`] while it sleeps.
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Puts a job into the queue: one whose thread has sent it away, or for which [`wake::raise`] returned [`Raised::Queue`]. Whether the
    /// executor's thread sleeps and is to be unparked.
    #[must_use]
    pub fn submit(&self, job: J) -> bool {
        self.queue.lock().push(job);
        wake::raise(&self.word) == Raised::Unpark
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
        self.timers.lock().clear(job.id());
        wake::begin(job.word());
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

    /// Sleeps until there may be a job, unless there is one: `park(word, deadline)` sleeps while the word is [`wake::PARKED`], or returns
    /// early.
    pub fn park(&self, deadline: Option<Nanos>, park: impl FnOnce(&AtomicU32, Option<Nanos>)) {
        if wake::intend_to_park(&self.word) {
            park(&self.word, deadline);
        }
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

    type Jobs = Executor<Script, Fifo<Script>>;

    fn executor() -> (Jobs, Arc<StdMutex<Vec<u32>>>) {
        (Executor::new(Fifo::default()), Arc::default())
    }

    fn send(to: &Jobs, log: &Arc<StdMutex<Vec<u32>>>, name: u32, script: &[Ran], wakes: bool) -> Script {
        let script = StdMutex::new(script.to_vec());
        let job = Script(Arc::new(Inner { name, word: AtomicU32::new(wake::QUIET), script, log: log.clone(), wakes }));
        wake::send(job.word());
        let _ = to.submit(job.clone());
        job
    }

    fn until_idle(on: &Jobs, now: Nanos) -> Option<Nanos> {
        loop {
            wake::rearm(on.word());
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
        let _ = executor.submit(first.clone());
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
        let _ = executor.submit(early.clone());
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
    fn who_submits_learns_whether_the_thread_sleeps() {
        let (executor, log) = executor();
        let mut slept = false;
        executor.park(None, |word, _| slept = word.load(Ordering::Relaxed) == wake::PARKED);
        assert!(slept);
        let word = AtomicU32::new(wake::QUIET);
        let inner = Inner { name: 1, word, script: StdMutex::new(std::vec![Ran::Done]), log: log.clone(), wakes: false };
        let job = Script(Arc::new(inner));
        wake::send(job.word());
        assert!(executor.submit(job));
        executor.park(None, |_, _| panic!("there is a job"));
        assert_eq!(until_idle(&executor, 0), None);
    }
}
