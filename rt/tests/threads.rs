//! The waiting code among real threads, in turns that are not all: that memory is used as it may be, which Miri checks
//! (`cargo +nightly miri test -p janua-rt`). The models (`models.rs`) go through all turns.
#![cfg(not(loom))]

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use janua_rt::slot::Slotted;
use janua_rt::wake::{self, Raised};
use janua_rt::{Epoch, Mutex, Notify, OnceArc, RwLock, Target, WaitQueue};

/// A waiter that counts its notifications.
#[derive(Default)]
struct Counter(AtomicU32);

impl Notify for Counter {
    fn notify(&self, _: u32) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.notify(0);
    }
}

/// A thread with a call slot.
struct Owner {
    queue: WaitQueue,
    ready: AtomicU32,
    dropped: AtomicU32,
}

/// Counts the calls that are given up.
struct Guard<'a>(&'a Owner);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Waits for so many events, with a value of its own that it points at across each wait.
async fn wait_for(owner: &Owner, count: u32) -> isize {
    let _guard = Guard(owner);
    let mut sum = [0u32; 8];
    for turn in 0..count {
        let place = &mut sum[turn as usize % 8];
        poll_fn(|cx| {
            let _registration = owner.queue.register(Target::Task(cx.waker().clone()), 1);
            if owner.ready.load(Ordering::SeqCst) > turn { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        *place += 1;
    }
    sum.iter().sum::<u32>() as isize
}

fn owner() -> Pin<Arc<Slotted<Owner>>> {
    let queue = WaitQueue::new();
    Arc::pin(Slotted::new(Owner { queue, ready: AtomicU32::new(0), dropped: AtomicU32::new(0) }))
}

/// A call that waits is gone on with by whichever thread comes, while others make it ready.
#[test]
fn a_call_goes_on_in_another_thread() {
    const EVENTS: u32 = 5;
    let thread = owner();
    let waker = Waker::from(Arc::new(Counter::default()));
    let begun = thread.as_ref().start(wait_for, EVENTS, &mut Context::from_waker(&waker));
    assert!(begun.is_pending());
    let maker = {
        let thread = thread.clone();
        thread::spawn(move || {
            for _ in 0..EVENTS {
                thread.owner().ready.fetch_add(1, Ordering::SeqCst);
                thread.owner().queue.wake_all();
            }
        })
    };
    let goes_on = {
        let thread = thread.clone();
        thread::spawn(move || {
            loop {
                match thread.as_ref().poll(&mut Context::from_waker(&waker)) {
                    Some(Poll::Ready(result)) => return result,
                    Some(Poll::Pending) => thread::yield_now(),
                    None => panic!("the call is gone"),
                }
            }
        })
    };
    maker.join().unwrap();
    assert_eq!(goes_on.join().unwrap(), EVENTS as isize);
    assert_eq!(thread.owner().dropped.load(Ordering::SeqCst), 1);
}

/// A call that is given up, and one whose thread goes, are dropped once; then there is room for the next.
#[test]
fn a_call_is_given_up() {
    let waker = Waker::from(Arc::new(Counter::default()));
    let mut cx = Context::from_waker(&waker);
    let thread = owner();
    for turn in 0..3 {
        assert!(thread.as_ref().start(wait_for, 1, &mut cx).is_pending());
        assert_eq!(thread.as_ref().poll(&mut cx), Some(Poll::Pending));
        thread.as_ref().clear();
        assert_eq!(thread.as_ref().poll(&mut cx), None);
        assert_eq!(thread.owner().dropped.load(Ordering::SeqCst), turn + 1);
    }
    assert_eq!(thread.as_ref().start(wait_for, 0, &mut cx), Poll::Ready(0));
    assert!(thread.as_ref().start(wait_for, 1, &mut cx).is_pending());
    let queue = thread.owner().queue.clone();
    drop(thread);
    queue.wake_all();
}

/// Waiters come and go while others wake.
#[test]
fn waiters_come_and_go() {
    let queue = WaitQueue::new();
    let wakers: Vec<_> = (0..2)
        .map(|_| {
            let queue = queue.clone();
            thread::spawn(move || (0..10).for_each(|turn| if turn % 2 == 0 { queue.wake_all() } else { queue.wake_one(1) }))
        })
        .collect();
    let waiters: Vec<_> = (0..2)
        .map(|_| {
            let queue = queue.clone();
            thread::spawn(move || {
                for turn in 0..10 {
                    let counter = Arc::new(Counter::default());
                    // A task is woken behind the lock, and may be just after it has left.
                    let task = turn % 2 != 0;
                    let target = if task { Target::Task(counter.clone().into()) } else { Target::Notify(counter.clone()) };
                    let registration = queue.register(target, 1);
                    thread::yield_now();
                    drop(registration);
                    let before = counter.0.load(Ordering::SeqCst);
                    thread::yield_now();
                    assert!(task || counter.0.load(Ordering::SeqCst) == before, "notified after it left");
                }
            })
        })
        .collect();
    wakers.into_iter().chain(waiters).for_each(|thread| thread.join().unwrap());
    assert!(queue.is_empty());
}

/// Locks let one change what others read.
#[test]
fn locks_exclude() {
    let shared = Arc::new((Mutex::new(vec![0u32]), RwLock::new(vec![0u32]), AtomicBool::new(false)));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || {
                for turn in 0..8 {
                    shared.0.lock().push(turn);
                    if turn % 2 == 0 {
                        shared.1.write().push(turn);
                    } else {
                        assert!(!shared.1.read().is_empty());
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((shared.0.lock().len(), shared.1.read().len()), (25, 13));
}

/// One of several puts the value in its place; who sees it sees all of it.
#[test]
fn one_value_is_put_in_place() {
    let place = Arc::new(OnceArc::<Vec<u32>>::default());
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let place = place.clone();
            thread::spawn(move || {
                let mine = place.set(Arc::new(vec![number; 4])).is_ok();
                // Who came second may come before the first is done.
                while place.get().is_none() {
                    thread::yield_now();
                }
                assert!(place.get().is_some_and(|value| value.iter().all(|other| *other == value[0])));
                u32::from(mine)
            })
        })
        .collect();
    assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u32>(), 1);
}

/// What a stamp was taken for does not change unnoticed.
#[test]
fn stamps_notice_changes() {
    let shared = Arc::new((Epoch::new(), AtomicU32::new(0)));
    let changes = {
        let shared = shared.clone();
        thread::spawn(move || {
            for _ in 0..20 {
                shared.1.fetch_add(1, Ordering::SeqCst);
                shared.0.advance();
            }
        })
    };
    for _ in 0..20 {
        let stamp = shared.0.stamp();
        let seen = shared.1.load(Ordering::SeqCst);
        let changed = shared.1.load(Ordering::SeqCst) != seen;
        // Until the change is notified, which happens once its thread has gone on.
        if changed && changes.is_finished() {
            assert!(!shared.0.is(stamp));
        }
    }
    changes.join().unwrap();
    let stamp = shared.0.stamp();
    assert!(shared.0.is(stamp));
    shared.0.advance();
    assert!(!shared.0.is(stamp));
}

/// Who parks on the wake word hears of each change.
#[test]
fn the_wake_word_is_raised() {
    let shared = Arc::new((AtomicU32::new(wake::QUIET), AtomicU32::new(0)));
    let (sleeper, other) = (thread::current(), shared.clone());
    let raiser = thread::spawn(move || {
        for _ in 0..10 {
            other.1.fetch_add(1, Ordering::SeqCst);
            if wake::raise(&other.0) == Raised::Unpark {
                sleeper.unpark();
            }
        }
    });
    loop {
        wake::rearm(&shared.0);
        if shared.1.load(Ordering::SeqCst) == 10 {
            break;
        }
        if shared.0.compare_exchange(wake::QUIET, wake::PARKED, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            while shared.0.load(Ordering::SeqCst) == wake::PARKED {
                thread::park();
            }
        }
    }
    raiser.join().unwrap();
}

/// Woken for the first time it wakes the queue that it was woken by.
struct Echo {
    queue: WaitQueue,
    woken: AtomicU32,
}

impl Wake for Echo {
    fn wake(self: Arc<Self>) {
        if self.woken.fetch_add(1, Ordering::SeqCst) == 0 {
            self.queue.wake_all();
        }
    }
}

/// However many tasks there are, each is woken, and none while the queue is locked.
#[test]
fn tasks_that_wake_their_queue() {
    const TASKS: usize = 6;
    let queue = WaitQueue::new();
    let tasks: Vec<_> = (0..TASKS).map(|_| Arc::new(Echo { queue: queue.clone(), woken: AtomicU32::new(0) })).collect();
    let registrations: Vec<_> = tasks.iter().map(|task| queue.register(Target::Task(task.clone().into()), 1)).collect();
    // The one in front goes to the end, so that the places are not in the order of registration.
    queue.wake_one(1);
    queue.wake(1);
    assert!(tasks.iter().all(|task| task.woken.load(Ordering::SeqCst) >= 2), "one was left out");
    drop(registrations);
    assert!(queue.is_empty());
}

/// Woken, it leaves, and takes others with it.
struct Leaver {
    registrations: Mutex<Vec<janua_rt::Registration>>,
    woken: AtomicU32,
}

impl Wake for Leaver {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        let gone = std::mem::take(&mut *self.registrations.lock());
        drop(gone);
    }
}

/// Tasks that leave the queue when one of them is woken: the wake-up goes on behind them, and reaches each of the others once.
#[test]
fn tasks_that_leave_when_they_are_woken() {
    let queue = WaitQueue::new();
    let leaver = Arc::new(Leaver { registrations: Mutex::default(), woken: AtomicU32::new(0) });
    let counters: Vec<_> = (0..12).map(|_| Arc::new(Counter::default())).collect();
    let mut kept = Vec::new();
    for (at, counter) in counters.iter().enumerate() {
        if at % 3 == 0 {
            let own = queue.register(Target::Task(leaver.clone().into()), 1);
            leaver.registrations.lock().push(own);
        }
        let registration = queue.register(Target::Task(counter.clone().into()), 1);
        if at % 2 == 0 {
            leaver.registrations.lock().push(registration);
        } else {
            kept.push((at, registration));
        }
    }
    queue.wake(1);
    assert_ne!(leaver.woken.load(Ordering::SeqCst), 0);
    for (at, _) in &kept {
        assert_eq!(counters[*at].0.load(Ordering::SeqCst), 1, "task {at}");
    }
    drop(kept);
    assert!(queue.is_empty());
}
