//! Work that blocks, among real threads: all of it is done once, by no more workers than there may be, and what nobody wants any more is not begun.
#![cfg(not(loom))]

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use janua_rt::offload::{Limits, Pool, Workers};

/// Threads of the host's, which are started by hand.
#[derive(Default)]
struct Hands {
    requests: AtomicUsize,
    over: Mutex<bool>,
    changed: Condvar,
}

impl Workers for Hands {
    fn request(&self) {
        self.requests.fetch_add(1, Ordering::SeqCst);
    }
    fn sleep(&self, word: &AtomicU32, expected: u32) -> bool {
        let mut over = self.over.lock().unwrap();
        while word.load(Ordering::SeqCst) == expected && !*over {
            over = self.changed.wait(over).unwrap();
        }
        !*over
    }
    fn wake(&self, _: &AtomicU32) {
        let _over = self.over.lock().unwrap();
        self.changed.notify_one();
    }
}

impl Hands {
    /// Those that have nothing to do end.
    fn end(&self) {
        *self.over.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

fn pool(workers: usize, queue: usize) -> Pool<Hands> {
    Pool::new(Hands::default(), Limits { workers, queue })
}

/// A waker that unparks a thread.
struct Thread(thread::Thread, AtomicBool);

impl Wake for Thread {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::SeqCst);
        self.0.unpark();
    }
}

fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let thread = Arc::new(Thread(thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(thread.clone());
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return result;
        }
        while !thread.1.swap(false, Ordering::SeqCst) {
            thread::park();
        }
    }
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn all_work_is_done_once_by_as_many_as_there_may_be() {
    const CALLERS: usize = 6;
    const EACH: usize = if cfg!(miri) { 5 } else { 200 };
    for (workers, queue) in [(1, 1), (2, 1), (3, 4)] {
        let pool = pool(workers, queue);
        let (at_once, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let counts: &'static [AtomicUsize; 3] = Box::leak(Box::new([at_once, most, done]));
        let stop = AtomicBool::new(false);
        let started = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    for _ in 0..pool.workers().requests.swap(0, Ordering::SeqCst) {
                        started.fetch_add(1, Ordering::SeqCst);
                        scope.spawn(|| pool.work());
                    }
                    thread::yield_now();
                }
            });
            let caller = |caller: usize| {
                let pool = &pool;
                move || {
                    for n in 0..EACH {
                        let result = wait(pool.offload(move || {
                            counts[1].fetch_max(counts[0].fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            thread::yield_now();
                            counts[0].fetch_sub(1, Ordering::SeqCst);
                            counts[2].fetch_add(1, Ordering::SeqCst);
                            caller * EACH + n
                        }));
                        assert_eq!(result, caller * EACH + n, "the result of other work");
                    }
                }
            };
            let callers: Vec<_> = (0..CALLERS).map(|at| scope.spawn(caller(at))).collect();
            callers.into_iter().for_each(|caller| caller.join().unwrap());
            stop.store(true, Ordering::SeqCst);
            pool.workers().end();
        });
        assert_eq!(counts[2].load(Ordering::SeqCst), CALLERS * EACH);
        assert!(counts[1].load(Ordering::SeqCst) <= workers && started.load(Ordering::SeqCst) <= workers);
        assert_eq!(pool.counts(), (0, 0));
    }
}

/// The queue has a bound; who comes later waits for room, and gets in once there is some, whether a worker makes it or one who gives up.
#[test]
fn who_finds_the_queue_full_waits_for_room() {
    let pool = pool(1, 2);
    let mut work: Vec<_> = (0..5).map(|n| pool.offload(move || n)).collect();
    assert!(work.iter_mut().all(|one| poll(one).is_pending()));
    assert_eq!((pool.counts(), pool.workers().requests.load(Ordering::SeqCst)), ((0, 2), 1));
    // The first leaves the queue; the last leaves those who wait for room.
    drop(work.remove(0));
    drop(work.pop());
    assert_eq!(pool.counts(), (0, 1));
    assert!(work.iter_mut().all(|one| poll(one).is_pending()));
    assert_eq!(pool.counts(), (0, 2));
    thread::scope(|scope| {
        scope.spawn(|| pool.work());
        let results: Vec<_> = work.into_iter().map(wait).collect();
        assert_eq!(results, [1, 2, 3]);
        pool.workers().end();
    });
    assert_eq!(pool.counts(), (0, 0));
}

/// What is dropped in the queue is not done. What has begun goes on, and its result goes with what it holds.
#[test]
fn work_that_nobody_waits_for_ends_quietly() {
    let pool = pool(1, 4);
    let (begun, held) = (Arc::new(AtomicU32::new(0)), Arc::new(()));
    let (go, seen) = (Arc::new((Mutex::new(false), Condvar::new())), begun.clone());
    let (gate, kept) = (go.clone(), held.clone());
    let mut first = pool.offload(move || {
        seen.fetch_add(1, Ordering::SeqCst);
        let mut open = gate.0.lock().unwrap();
        while !*open {
            open = gate.1.wait(open).unwrap();
        }
        kept
    });
    let (seen, kept) = (begun.clone(), held.clone());
    let mut second = pool.offload(move || {
        seen.fetch_add(1, Ordering::SeqCst);
        kept
    });
    assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
    thread::scope(|scope| {
        scope.spawn(|| pool.work());
        while begun.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        drop(first);
        drop(second);
        assert_eq!(pool.counts(), (1, 0));
        *go.0.lock().unwrap() = true;
        go.1.notify_all();
        pool.workers().end();
    });
    assert_eq!((begun.load(Ordering::SeqCst), Arc::strong_count(&held)), (1, 1));
}

/// Where no thread can be had, who waits does the work; and a worker that has gone for want of work is asked for again.
#[test]
fn without_workers_the_caller_does_it() {
    let pool = pool(2, 1);
    let by = || thread::current().id();
    let (mut one, mut two) = (pool.offload(by), pool.offload(by));
    assert!(poll(&mut one).is_pending() && poll(&mut two).is_pending());
    pool.refused();
    assert_eq!(poll(&mut one), Poll::Ready(thread::current().id()));
    assert!(poll(&mut two).is_pending(), "there is room, and another may be had now");
    assert_eq!(pool.workers().requests.load(Ordering::SeqCst), 2);
    pool.workers().end();
    thread::scope(|scope| {
        let worker = scope.spawn(|| pool.work()).thread().id();
        assert_eq!(wait(two), worker);
    });
    assert_eq!(pool.counts(), (0, 0));
    assert!(poll(&mut pool.offload(by)).is_pending());
    assert_eq!(pool.workers().requests.load(Ordering::SeqCst), 3);
}
