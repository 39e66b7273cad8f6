//! Models of the waiting code: loom runs each under every interleaving and every value a relaxed load may see.
//!
//! A lost wake-up shows as a deadlock, a broken lock as a wrong count.
#![cfg(loom)]

use std::num::NonZeroU32;
use std::sync::Arc as StdArc;
use std::sync::atomic::Ordering;

use janua_rt::hold::HoldWords;
use janua_rt::slot::Slotted;
use janua_rt::sync::Word;
use janua_rt::wake::{self, Raised};
use janua_rt::{Ending, Notify, Target, WaitQueue};
use loom::sync::atomic::{AtomicBool, AtomicU32};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// Workers for what blocks.
#[path = "models/offload.rs"]
mod offload;

/// A waiter that can be notified, and counts how often.
struct Waiter {
    reported: Mutex<u32>,
    changed: Condvar,
}

impl Waiter {
    fn new() -> StdArc<Waiter> {
        StdArc::new(Waiter { reported: Mutex::new(0), changed: Condvar::new() })
    }

    fn wait(&self) {
        let mut reported = self.reported.lock().unwrap();
        while *reported == 0 {
            reported = self.changed.wait(reported).unwrap();
        }
        *reported = 0;
    }

    fn count(&self) -> u32 {
        *self.reported.lock().unwrap()
    }
}

impl Notify for Waiter {
    fn notify(&self, _: u32) {
        *self.reported.lock().unwrap() += 1;
        self.changed.notify_one();
    }
}

fn target(waiter: &StdArc<Waiter>) -> Target {
    Target::Notify(waiter.clone())
}

/// A model of three threads, whose every interleaving would take hours: at most so many of a run's switches are forced.
fn bounded(preemptions: usize) -> loom::model::Builder {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model
}

/// Register, test again, wait: who makes the condition true and wakes after is always seen.
#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let queue = WaitQueue::new();
        let ready = Arc::new(AtomicBool::new(false));
        let maker = {
            let (queue, ready) = (queue.clone(), ready.clone());
            thread::spawn(move || {
                ready.store(true, Ordering::Relaxed);
                queue.wake_all();
            })
        };
        let waiter = Waiter::new();
        let registration = queue.register(target(&waiter), 1);
        while !ready.load(Ordering::Relaxed) {
            waiter.wait();
        }
        drop(registration);
        maker.join().unwrap();
        assert!(queue.is_empty());
    });
}

/// Two conditions, two wakers, two waiters of different interest: each hears of its own.
#[test]
fn each_mask_hears_of_its_events() {
    bounded(2).check(|| {
        let queue = WaitQueue::new();
        let state = Arc::new(AtomicU32::new(0));
        let waiting: Vec<_> = [1, 2]
            .into_iter()
            .map(|bit| {
                let (queue, state) = (queue.clone(), state.clone());
                thread::spawn(move || {
                    let waiter = Waiter::new();
                    let _registration = queue.register(target(&waiter), bit);
                    while state.load(Ordering::Relaxed) & bit == 0 {
                        waiter.wait();
                    }
                })
            })
            .collect();
        for bit in [1, 2] {
            state.fetch_or(bit, Ordering::Relaxed);
            queue.wake(bit);
        }
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(queue.is_empty());
    });
}

/// A registration dropped while the queue is being woken leaves nothing behind, and nobody is notified after the drop.
#[test]
fn a_dropped_registration_is_gone() {
    loom::model(|| {
        let queue = WaitQueue::new();
        let waiter = Waiter::new();
        let registration = queue.register(target(&waiter), 1);
        let waker = {
            let queue = queue.clone();
            thread::spawn(move || queue.wake_all())
        };
        drop(registration);
        let reported = waiter.count();
        waker.join().unwrap();
        assert_eq!(waiter.count(), reported, "notified after it left");
        assert!(queue.is_empty());
        queue.wake_all();
        assert_eq!(waiter.count(), reported);
        assert_eq!(StdArc::strong_count(&waiter), 1, "the queue still holds the waiter");
    });
}

/// A host futex: sleeps while the word has the expected value.
struct Futex {
    lock: Mutex<()>,
    changed: Condvar,
}

impl Futex {
    fn sleep(&self, word: &AtomicU32, expected: u32) {
        let guard = self.lock.lock().unwrap();
        if word.load(Ordering::SeqCst) == expected {
            drop(self.changed.wait(guard).unwrap());
        }
    }

    fn wake(&self) {
        let _guard = self.lock.lock().unwrap();
        self.changed.notify_one();
    }

    fn wake_all(&self) {
        let _guard = self.lock.lock().unwrap();
        self.changed.notify_all();
    }
}

/// The lock word: one holder at a time, its writes seen by the next, and no sleeper is left behind.
#[test]
fn the_lock_word_excludes_and_wakes() {
    struct Shared {
        word: Word,
        futex: Futex,
        count: loom::cell::UnsafeCell<u32>,
    }
    // SAFETY: `count` is touched only by the holder of `word`; loom checks that this is so.
    unsafe impl Sync for Shared {}

    bounded(3).check(|| {
        let shared = Arc::new(Shared {
            word: Word::new(),
            futex: Futex { lock: Mutex::new(()), changed: Condvar::new() },
            count: loom::cell::UnsafeCell::new(0),
        });
        let work = |shared: &Shared| {
            shared.word.lock(|word, expected| shared.futex.sleep(word, expected));
            // SAFETY: the lock is held.
            shared.count.with_mut(|count| unsafe { *count += 1 });
            shared.word.unlock(|_| shared.futex.wake());
        };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || work(&shared))
            })
            .collect();
        work(&shared);
        others.into_iter().for_each(|thread| thread.join().unwrap());
        // SAFETY: every other thread has ended.
        assert_eq!(shared.count.with(|count| unsafe { *count }), 3);
    });
}

/// A lock for long readers: a writer sleeps until they are gone, and is woken by the last of them.
#[test]
fn a_writer_sleeps_until_the_last_reader_is_gone() {
    struct Shared {
        words: HoldWords,
        futex: Futex,
        value: loom::cell::UnsafeCell<u32>,
    }
    // SAFETY: `value` is written by the lock's writer alone, and read by its readers; loom checks that this is so.
    unsafe impl Sync for Shared {}

    bounded(3).check(|| {
        let shared = Arc::new(Shared {
            words: HoldWords::new(),
            futex: Futex { lock: Mutex::new(()), changed: Condvar::new() },
            value: loom::cell::UnsafeCell::new(0),
        });
        let sleep = |shared: &Shared, word: &AtomicU32, expected: u32| shared.futex.sleep(word, expected);
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.words.lock_shared(|word, expected| sleep(&shared, word, expected), |_| shared.futex.wake_all());
                    // SAFETY: the lock is held.
                    let _ = shared.value.with(|value| unsafe { *value });
                    shared.words.unlock_shared(|_| shared.futex.wake_all());
                })
            })
            .collect();
        shared.words.lock_exclusive(|word, expected| sleep(&shared, word, expected));
        // SAFETY: the lock is held alone.
        shared.value.with_mut(|value| unsafe { *value += 1 });
        shared.words.unlock_exclusive(|_| shared.futex.wake_all());
        readers.into_iter().for_each(|thread| thread.join().unwrap());
        // SAFETY: every other thread has ended.
        assert_eq!(shared.value.with(|value| unsafe { *value }), 1);
    });
}

/// An ending reaches those who wait for it, before it or behind, with all that was done for it.
#[test]
fn an_outcome_reaches_everybody() {
    struct Shared {
        ending: Ending,
        futex: Futex,
        done: loom::cell::UnsafeCell<u32>,
    }
    // SAFETY: `done` is written before the ending is reported, and read by those who have heard it; loom checks that this is so.
    unsafe impl Sync for Shared {}

    bounded(3).check(|| {
        let shared = Arc::new(Shared {
            ending: Ending::default(),
            futex: Futex { lock: Mutex::new(()), changed: Condvar::new() },
            done: loom::cell::UnsafeCell::new(0),
        });
        let wait = |shared: &Shared| {
            let how = shared.ending.wait(|word, expected| shared.futex.sleep(word, expected));
            // SAFETY: nobody writes it any more.
            assert_eq!((how.get(), shared.done.with(|done| unsafe { *done })), (5, 1));
        };
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || wait(&shared))
            })
            .collect();
        // SAFETY: nothing has been reported yet.
        shared.done.with_mut(|done| unsafe { *done = 1 });
        shared.ending.report(NonZeroU32::new(5).unwrap(), |_| shared.futex.wake_all());
        others.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// The wake word: a thread that polls, finds nothing and parks is woken by every change, whichever side is first.
#[test]
fn the_wake_word_loses_no_change() {
    struct Shared {
        word: AtomicU32,
        state: AtomicU32,
        futex: Futex,
    }
    bounded(3).check(|| {
        let shared = Arc::new(Shared {
            word: AtomicU32::new(wake::QUIET),
            state: AtomicU32::new(0),
            futex: Futex { lock: Mutex::new(()), changed: Condvar::new() },
        });
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.state.fetch_add(1, Ordering::Relaxed);
                    if wake::raise(&shared.word) == Raised::Unpark {
                        shared.futex.wake();
                    }
                })
            })
            .collect();
        loop {
            wake::rearm(&shared.word);
            if shared.state.load(Ordering::Relaxed) == 2 {
                break;
            }
            // What a machine does with `Flow::Wait`.
            let quiet = shared.word.compare_exchange(wake::QUIET, wake::PARKED, Ordering::AcqRel, Ordering::Relaxed);
            if quiet.is_ok() {
                shared.futex.sleep(&shared.word, wake::PARKED);
            }
        }
        wakers.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// What a call that is away shares with its home thread and its module.
mod away {
    use super::*;

    pub struct Shared {
        pub word: AtomicU32,
        pub home: AtomicU32,
        pub state: AtomicU32,
        pub work: AtomicU32,
        /// The executor's queue, of this one call.
        pub queued: Mutex<u32>,
        pub pushed: Condvar,
        pub ending: AtomicU32,
        pub futex: Futex,
    }

    impl Shared {
        pub fn raise(&self, word: &AtomicU32) {
            match wake::raise(word) {
                Raised::Nothing => {}
                Raised::Unpark => self.futex.wake(),
                Raised::Queue => self.push(),
            }
        }
        pub fn push(&self) {
            *self.queued.lock().unwrap() += 1;
            self.pushed.notify_one();
        }
        pub fn pop(&self) {
            let mut queued = self.queued.lock().unwrap();
            while *queued == 0 {
                queued = self.pushed.wait(queued).unwrap();
            }
            assert_eq!(*queued, 1, "one call is twice in the queue");
            *queued = 0;
        }
        /// What the call polls: its condition, or a kick.
        pub fn look(&self) -> Option<isize> {
            if self.state.load(Ordering::Relaxed) == 1 {
                return Some(1);
            }
            (self.work.load(Ordering::Relaxed) == 1).then_some(2)
        }
        pub fn sleep(&self, word: &AtomicU32) {
            if wake::intend_to_park(word) {
                self.futex.sleep(word, wake::PARKED);
            }
        }
    }

    pub async fn call(shared: &Arc<Shared>, (): ()) -> isize {
        std::future::poll_fn(|_| shared.look().map_or(std::task::Poll::Pending, std::task::Poll::Ready)).await
    }

    /// The module: polls the call whenever it is in the queue, until it is over.
    pub fn module(shared: &Arc<Shared>) {
        let slotted = std::pin::pin!(Slotted::new(shared.clone()));
        let slotted = slotted.as_ref();
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let mut built = false;
        shared.pop();
        loop {
            assert!(wake::begin(&shared.word), "one entry, one poll");
            let polled = match built {
                false => slotted.start(call, (), &mut cx),
                true => slotted.poll(&mut cx).unwrap(),
            };
            built = true;
            match polled {
                std::task::Poll::Ready(result) => {
                    wake::finish(&shared.word);
                    shared.ending.store(result as u32, Ordering::Release);
                    shared.raise(&shared.home);
                    return;
                }
                std::task::Poll::Pending if wake::pause(&shared.word) => shared.pop(),
                std::task::Poll::Pending => {}
            }
        }
    }
}

/// A call that is away, in its thread's slot: one thread makes true what it waits for, another kicks it, and whichever is first the module polls it to
/// its end, the thread at home learns of it, and what comes after the end is the thread's own.
#[test]
fn a_call_that_is_away_misses_no_wake_up_and_no_kick() {
    use away::*;
    bounded(2).check(|| {
        let word = || AtomicU32::new(wake::QUIET);
        let shared = Arc::new(Shared {
            word: word(),
            home: word(),
            state: AtomicU32::new(0),
            work: AtomicU32::new(0),
            queued: Mutex::new(0),
            pushed: Condvar::new(),
            ending: AtomicU32::new(0),
            futex: Futex { lock: Mutex::new(()), changed: Condvar::new() },
        });
        wake::send(&shared.word);
        shared.push();
        let spawn = |body: fn(&Arc<Shared>)| {
            let shared = shared.clone();
            thread::spawn(move || body(&shared))
        };
        let threads = [
            spawn(module),
            spawn(|shared| {
                shared.state.store(1, Ordering::Relaxed);
                shared.raise(&shared.word);
            }),
        ];
        // The kick may come from anywhere; here is one thread less.
        shared.work.store(1, Ordering::Relaxed);
        shared.raise(&shared.word);
        loop {
            wake::rearm(&shared.home);
            if shared.ending.load(Ordering::Acquire) != 0 {
                break;
            }
            shared.sleep(&shared.home);
        }
        // The next call is made at home, and waits for both.
        loop {
            wake::rearm(&shared.word);
            if shared.state.load(Ordering::Relaxed) == 1 && shared.work.load(Ordering::Relaxed) == 1 {
                break;
            }
            shared.sleep(&shared.word);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A call whose thread takes it back unless the module has begun it: one of the two makes it, once, and a wake-up that comes meanwhile is seen.
#[test]
fn a_call_that_is_taken_back_is_made_once() {
    struct Shared {
        word: AtomicU32,
        home: AtomicU32,
        queued: Mutex<bool>,
        made: AtomicU32,
        work: AtomicU32,
        ending: AtomicU32,
        futex: Futex,
    }
    impl Shared {
        fn new() -> Shared {
            let (word, none) = (|| AtomicU32::new(wake::QUIET), || AtomicU32::new(0));
            let futex = Futex { lock: Mutex::new(()), changed: Condvar::new() };
            Shared { word: word(), home: word(), queued: Mutex::new(true), made: none(), work: none(), ending: none(), futex }
        }
        fn raise(&self, word: &AtomicU32) {
            match wake::raise(word) {
                Raised::Nothing => {}
                Raised::Unpark => self.futex.wake(),
                Raised::Queue => *self.queued.lock().unwrap() = true,
            }
        }
        fn make(&self) -> u32 {
            assert_eq!(self.made.fetch_add(1, Ordering::Relaxed), 0, "made twice");
            1 + self.work.load(Ordering::Relaxed)
        }
        /// What the module does.
        fn serve(&self) {
            // Popped before it is known whether the thread still wants it.
            let popped = std::mem::take(&mut *self.queued.lock().unwrap());
            if popped && wake::begin(&self.word) {
                let result = self.make();
                wake::finish(&self.word);
                self.ending.store(result, Ordering::Release);
                self.raise(&self.home);
            }
        }
        /// Waits until `word` is raised and `done` holds.
        fn wait(&self, word: &AtomicU32, done: impl Fn() -> bool) {
            loop {
                wake::rearm(word);
                if done() {
                    break;
                }
                if wake::intend_to_park(word) {
                    self.futex.sleep(word, wake::PARKED);
                }
            }
        }
    }
    bounded(3).check(|| {
        let shared = Arc::new(Shared::new());
        wake::send(&shared.word);
        let module = {
            let shared = shared.clone();
            thread::spawn(move || shared.serve())
        };
        let kicker = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.work.store(1, Ordering::Relaxed);
                shared.raise(&shared.word);
            })
        };
        if wake::take_back(&shared.word) {
            *shared.queued.lock().unwrap() = false;
            wake::rearm(&shared.word);
            shared.make();
        } else {
            shared.wait(&shared.home, || shared.ending.load(Ordering::Acquire) != 0);
        }
        // What comes next at home sees the kick.
        shared.wait(&shared.word, || shared.work.load(Ordering::Relaxed) == 1);
        module.join().unwrap();
        kicker.join().unwrap();
        assert_eq!(shared.made.load(Ordering::Relaxed), 1);
    });
}

/// A queue, of one job.
mod posting {
    use super::*;

    pub const CALLS: u32 = 2;
    pub const ROOM: u32 = 1;

    pub struct Shared {
        /// The wake words of the queue's job, and of the submitter.
        pub word: AtomicU32,
        pub home: AtomicU32,
        pub submitted: AtomicU32,
        pub posted: AtomicU32,
        pub reaped: AtomicU32,
        /// The executor's queue, of this one job.
        pub queued: Mutex<u32>,
        pub pushed: Condvar,
        pub futex: Futex,
    }

    impl Shared {
        pub fn push(&self) {
            *self.queued.lock().unwrap() += 1;
            self.pushed.notify_one();
        }
        pub fn ring(&self) {
            match wake::raise(&self.word) {
                Raised::Queue => self.push(),
                raised => assert_eq!(raised, Raised::Nothing, "nobody sleeps on a job's word"),
            }
        }
        pub fn pop(&self) {
            let mut queued = self.queued.lock().unwrap();
            while *queued == 0 {
                queued = self.pushed.wait(queued).unwrap();
            }
            assert_eq!(*queued, 1, "one job is twice in the queue");
            *queued = 0;
        }
        /// Takes the next submission, which ends at once: whether there was one, and room for its end.
        pub fn take(&self) -> bool {
            let posted = self.posted.load(Ordering::Relaxed);
            if posted - self.reaped.load(Ordering::Acquire) == ROOM || self.submitted.load(Ordering::Acquire) == posted {
                return false;
            }
            self.posted.store(posted + 1, Ordering::Release);
            if wake::raise(&self.home) == Raised::Unpark {
                self.futex.wake();
            }
            true
        }
    }

    pub fn module(shared: &Arc<Shared>) {
        shared.pop();
        loop {
            assert!(wake::begin(&shared.word), "one entry, one poll");
            while shared.take() {}
            if shared.posted.load(Ordering::Relaxed) == CALLS {
                return;
            }
            if wake::pause(&shared.word) {
                shared.pop();
            }
        }
    }
}

/// A queue: the submitter leaves two calls and takes their ends, for which there is room for one at a time; the module takes and posts as long as it can, and
/// sleeps until somebody rings. Neither sleeps for ever, whichever is first.
#[test]
fn a_queue_misses_no_submission_and_no_room() {
    use posting::*;
    bounded(3).check(|| {
        let count = || AtomicU32::new(0);
        let shared = Arc::new(Shared {
            word: AtomicU32::new(wake::QUIET),
            home: AtomicU32::new(wake::QUIET),
            submitted: count(),
            posted: count(),
            reaped: count(),
            queued: Mutex::new(0),
            pushed: Condvar::new(),
            futex: Futex { lock: Mutex::new(()), changed: Condvar::new() },
        });
        wake::send(&shared.word);
        shared.push();
        let served = {
            let shared = shared.clone();
            thread::spawn(move || module(&shared))
        };
        for submitted in 1..=CALLS {
            shared.submitted.store(submitted, Ordering::Release);
            shared.ring();
        }
        for reaped in 1..=CALLS {
            loop {
                wake::rearm(&shared.home);
                if shared.posted.load(Ordering::Acquire) >= reaped {
                    break;
                }
                if wake::intend_to_park(&shared.home) {
                    shared.futex.sleep(&shared.home, wake::PARKED);
                }
            }
            shared.reaped.store(reaped, Ordering::Release);
            shared.ring();
        }
        served.join().unwrap();
    });
}

/// Waiters that take turns: one wake-up per piece of work reaches one who takes it, and who leaves hands on.
#[test]
fn one_of_several_is_woken_for_each() {
    struct Task(StdArc<Waiter>);
    impl std::task::Wake for Task {
        fn wake(self: StdArc<Self>) {
            self.0.notify(0);
        }
    }
    bounded(2).check(|| {
        let queue = WaitQueue::new();
        let work = Arc::new(AtomicU32::new(0));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let (queue, work) = (queue.clone(), work.clone());
                thread::spawn(move || {
                    let waiter = Waiter::new();
                    let waker = std::task::Waker::from(StdArc::new(Task(waiter.clone())));
                    let registration = queue.register(Target::Task(waker), 1);
                    let take = |left: u32| left.checked_sub(1);
                    while work.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_err() {
                        waiter.wait();
                    }
                    drop(registration);
                    if work.load(Ordering::Acquire) > 0 {
                        queue.wake_one(1);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            work.fetch_add(1, Ordering::AcqRel);
            queue.wake_one(1);
        }
        takers.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(queue.is_empty());
    });
}

/// A channel, with a window of two: a writer that goes around and a reader that answers. No line is read before it is whole or written over before it has been
/// read, whether acknowledgements ride or come alone.
mod channels {
    use janua_port::tiles::Lane;
    use janua_rt::channel::{Endpoint, Unsent, WHOLE, WORDS};
    use loom::sync::atomic::AtomicU64;

    pub type End = Endpoint<2>;

    pub fn pair() -> (End, End) {
        // Given up, as memory that two tiles share is for as long as they live.
        let lanes: &'static [Lane<AtomicU64, 2>; 2] = Box::leak(Box::default());
        (End::new(lanes, 0), End::new(lanes, 1))
    }

    pub fn send(end: &mut End, number: u64) {
        while end.send(&[number; WORDS], WHOLE) == Err(Unsent::Full) {
            loom::thread::yield_now();
        }
    }

    pub fn receive(end: &mut End, number: u64) {
        let mut words = [0; WORDS];
        while end.receive(&mut words).expect("both keep to the protocol").is_none() {
            loom::thread::yield_now();
        }
        assert_eq!(words, [number; WORDS], "torn, or not the next");
    }
}

#[test]
fn a_channel_that_is_acknowledged_alone_tears_no_line() {
    bounded(2).check(|| {
        let (mut one, mut other) = channels::pair();
        let writer = thread::spawn(move || (1..=3).for_each(|number| channels::send(&mut one, number)));
        (1..=3).for_each(|number| channels::receive(&mut other, number));
        writer.join().unwrap();
    });
}

#[test]
fn a_channel_whose_acknowledgements_ride_tears_no_line() {
    bounded(2).check(|| {
        let (mut one, mut other) = channels::pair();
        let writer = thread::spawn(move || {
            for number in 1..=3 {
                channels::send(&mut one, number);
                channels::receive(&mut one, 10 + number);
            }
        });
        for number in 1..=3 {
            channels::receive(&mut other, number);
            channels::send(&mut other, 10 + number);
        }
        writer.join().unwrap();
    });
}

/// Work is left while who looks for it goes to sleep: it is found, or who left it knows that he has to ring.
#[test]
fn work_is_not_left_to_one_who_has_lain_down() {
    loom::model(|| {
        let (work, announced) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let (left, seen) = (work.clone(), announced.clone());
        let program = thread::spawn(move || {
            left.store(1, Ordering::Release);
            loom::sync::atomic::fence(Ordering::SeqCst);
            seen.load(Ordering::Relaxed)
        });
        let found = wake::lie_down(|| announced.store(true, Ordering::Relaxed), || work.load(Ordering::Acquire) != 0);
        let rings = program.join().unwrap();
        assert!(found || rings, "nobody looks, and nobody knows");
    });
}

/// More tasks than are woken for one hold of the lock, one of which leaves meanwhile: those that stay are woken.
#[test]
fn a_wake_up_of_many_tasks_leaves_none_out() {
    struct Task(StdArc<Waiter>);
    impl std::task::Wake for Task {
        fn wake(self: StdArc<Self>) {
            self.0.notify(0);
        }
    }
    bounded(3).check(|| {
        let queue = WaitQueue::new();
        let waiters = [Waiter::new(), Waiter::new(), Waiter::new()];
        let mut registrations: Vec<_> = waiters
            .iter()
            .map(|waiter| {
                let waker = std::task::Waker::from(StdArc::new(Task(waiter.clone())));
                Some(queue.register(Target::Task(waker), 1))
            })
            .collect();
        let leaver = {
            let registration = registrations[1].take();
            let queue = queue.clone();
            thread::spawn(move || {
                drop(registration);
                // The first goes to the end.
                queue.wake_one(1);
            })
        };
        queue.wake(1);
        leaver.join().unwrap();
        assert!(waiters[0].count() > 0 && waiters[2].count() > 0, "one was left out");
        drop(registrations);
        assert!(queue.is_empty());
    });
}
