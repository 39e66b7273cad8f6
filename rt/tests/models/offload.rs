//! Models of the pool of workers for what blocks ([`janua_rt::offload`]).

use super::*;
use janua_rt::offload::{Limits, Pool, Workers};
use std::task::{Context, Poll, Waker};

/// A thread of the model's, which waits to be asked for.
#[derive(Default)]
struct Own {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many workers have been asked for and have not been seen to.
    asked: u32,
    /// Workers with nothing to do leave.
    lean: bool,
    /// Nobody asks for one any more.
    closed: bool,
}

impl Workers for Own {
    fn request(&self) {
        self.state.lock().unwrap().asked += 1;
        self.changed.notify_all();
    }
    fn sleep(&self, word: &AtomicU32, expected: u32) -> bool {
        let mut state = self.state.lock().unwrap();
        if word.load(Ordering::SeqCst) == expected && !state.lean {
            state = self.changed.wait(state).unwrap();
        }
        !state.lean
    }
    fn wake(&self, _: &AtomicU32) {
        let _state = self.state.lock().unwrap();
        self.changed.notify_all();
    }
}

impl Own {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }
    fn be_lean(&self) {
        self.change(|state| state.lean = true);
    }
    fn end(&self) {
        self.change(|state| (state.lean, state.closed) = (true, true));
    }
    /// Whether one more worker is wanted, before nobody asks any more.
    fn is_asked(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        while state.asked == 0 && !state.closed {
            state = self.changed.wait(state).unwrap();
        }
        let asked = state.asked > 0;
        state.asked -= u32::from(asked);
        asked
    }
}

fn pool(queue: usize) -> Arc<Pool<Own>> {
    Arc::new(Pool::new(Own::default(), Limits { workers: 1, queue }))
}

fn worker(pool: &Arc<Pool<Own>>) -> thread::JoinHandle<()> {
    let pool = pool.clone();
    thread::spawn(move || {
        // There is one, once.
        if pool.workers().is_asked() {
            pool.work();
        }
        while pool.workers().is_asked() {
            pool.refused();
        }
    })
}

/// A thread that waits for work of its own: its wake word, and what kicks it.
struct Caller {
    word: AtomicU32,
    kicked: AtomicU32,
    futex: Futex,
}

impl std::task::Wake for Caller {
    fn wake(self: StdArc<Self>) {
        if wake::raise(&self.word) == Raised::Unpark {
            self.futex.wake();
        }
    }
}

impl Caller {
    fn new() -> StdArc<Caller> {
        let futex = Futex { lock: Mutex::new(()), changed: Condvar::new() };
        StdArc::new(Caller { word: AtomicU32::new(wake::QUIET), kicked: AtomicU32::new(0), futex })
    }
}

/// Waits for the work to be done, or for a kick: then it is given up.
fn wait<F: Future + Unpin>(caller: &StdArc<Caller>, mut work: F) -> Option<F::Output> {
    let waker = Waker::from(caller.clone());
    loop {
        wake::rearm(&caller.word);
        if let Poll::Ready(result) = std::pin::Pin::new(&mut work).poll(&mut Context::from_waker(&waker)) {
            return Some(result);
        }
        if caller.kicked.load(Ordering::Relaxed) == 1 {
            return None;
        }
        if wake::intend_to_park(&caller.word) {
            caller.futex.sleep(&caller.word, wake::PARKED);
        }
    }
}

/// Work that is handed to a worker while somebody kicks who waits for it: it is done at most once, its result arrives or goes, and what it holds goes with it.
#[test]
fn work_that_blocks_is_done_or_given_up() {
    bounded(2).check(|| {
        let pool = pool(1);
        let worker = worker(&pool);
        let caller = Caller::new();
        let kicker = {
            let caller = caller.clone();
            thread::spawn(move || {
                caller.kicked.store(1, Ordering::Relaxed);
                std::task::Wake::wake(caller);
            })
        };
        let (done, held) = (Arc::new(AtomicU32::new(0)), StdArc::new(()));
        let (count, kept) = (done.clone(), held.clone());
        let result = wait(&caller, pool.offload(move || (count.fetch_add(1, Ordering::Relaxed), kept)));
        kicker.join().unwrap();
        pool.workers().end();
        worker.join().unwrap();
        let done = done.load(Ordering::Relaxed);
        assert!(done == 1 || done == 0 && result.is_none(), "done {done} times");
        assert_eq!(result.as_ref().map_or(0, |result| result.0), 0);
        drop(result);
        assert_eq!(StdArc::strong_count(&held), 1, "what it held is still held");
        assert_eq!(pool.counts().1, 0);
    });
}

/// Two threads and a queue of one piece of work: who finds it full is woken when there is room, no work is left behind by the one worker as it goes to sleep, and each has its own result.
#[test]
fn no_work_is_left_and_no_result_is_lost() {
    bounded(2).check(|| {
        let pool = pool(1);
        let worker = worker(&pool);
        let other = {
            let pool = pool.clone();
            thread::spawn(move || assert_eq!(wait(&Caller::new(), pool.offload(|| 1)), Some(1)))
        };
        assert_eq!(wait(&Caller::new(), pool.offload(|| 2)), Some(2));
        other.join().unwrap();
        pool.workers().end();
        worker.join().unwrap();
        assert_eq!(pool.counts(), (0, 0));
    });
}

/// A worker leaves for want of work, or cannot be had, as somebody hands work over: a worker does it, another is asked for, or who waits does it.
#[test]
fn work_is_not_left_to_a_worker_who_leaves() {
    bounded(2).check(|| {
        let pool = pool(1);
        let worker = worker(&pool);
        let leaver = {
            let pool = pool.clone();
            thread::spawn(move || pool.workers().be_lean())
        };
        // The second may be done by the worker, or refused one.
        assert_eq!(wait(&Caller::new(), pool.offload(|| 1)), Some(1));
        assert_eq!(wait(&Caller::new(), pool.offload(|| 2)), Some(2));
        leaver.join().unwrap();
        pool.workers().end();
        worker.join().unwrap();
        assert_eq!(pool.counts(), (0, 0));
    });
}
