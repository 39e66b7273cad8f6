//! A queue that is closed while modules take its submissions and poll them, on threads of the host's: when [`Queue::close`] has returned, nobody is in
//! the gate or in a submission any more.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use janua_abi::linux::{Errno, Result};
use janua_kernel::stats::Stats;
use janua_kernel::task::Leave;
use janua_kernel::trace::Tracer;
use janua_kernel::{Kernel, Personality, Queue, Table, Task, Trapped};
use janua_platform_model::{Model, Settings};
use janua_port::gate::{Completion, QueueGate, Submission};
use janua_port::{Frame, Machine, Trap};
use janua_rt::WaitQueue;
use janua_rt::executor::Turn;

type Thread = janua_kernel::Thread<Closed>;

struct Closed;

/// What the test sees of the calls.
#[derive(Default)]
struct System {
    /// The queue has been closed: nothing may be done for it.
    over: AtomicBool,
    /// Polls or drops of calls, and calls of the gate, after that.
    late: AtomicUsize,
    begun: AtomicUsize,
    dropped: AtomicUsize,
    rung: AtomicUsize,
    bell: WaitQueue,
}

impl System {
    fn look(&self) {
        if self.over.load(Ordering::SeqCst) {
            self.late.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn ring(&self) {
        self.rung.fetch_add(1, Ordering::SeqCst);
        self.bell.wake_all();
    }
}

impl Personality for Closed {
    type System = System;
    type Task = ();
    type Thread = ();

    fn start(_thread: &Thread, _frame: &mut Frame) -> Leave {
        Leave::Resume
    }
    fn trap(_thread: &Thread, _frame: &mut Frame, _trap: Trap) -> Trapped {
        Trapped::Done
    }
    fn is_special(result: isize) -> bool {
        result == Errno::ERESTARTSYS.as_result()
    }
    fn leave(_thread: &Thread, _frame: &mut Frame) -> Leave {
        Leave::Resume
    }
    fn trace_id(_thread: &Thread) -> u32 {
        0
    }
    fn stand_in(_thread: &Thread) -> Option<()> {
        Some(())
    }
}

/// What a call holds while it is under way.
struct Held<'a>(&'a System);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.look();
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Waits until the bell has rung so many times.
async fn rounds(thread: &Thread, count: usize) -> Result<()> {
    let system = &thread.kernel.system;
    system.begun.fetch_add(1, Ordering::SeqCst);
    let _held = Held(system);
    system.look();
    for _ in 0..count {
        let before = system.rung.load(Ordering::SeqCst);
        let rung = || {
            system.look();
            (system.rung.load(Ordering::SeqCst) != before).then_some(())
        };
        thread.wait_on(&system.bell, None, rung).await.map_err(|cut| cut.errno(Errno::EINTR))?;
    }
    Ok(())
}

janua_kernel::calls! {
    pub static ROWS for Closed;
    0 rounds(count: usize) => wait rounds, ipc, Full;
}

/// Submissions without end: calls of some rounds, in short chains, and cancellations of them.
struct Endless {
    kernel: Arc<Kernel<Closed>>,
    taken: AtomicUsize,
    ended: AtomicUsize,
}

impl QueueGate for Endless {
    fn take(&self) -> Option<Submission> {
        self.kernel.system.look();
        let n = self.taken.fetch_add(1, Ordering::SeqCst);
        let tag = n as u64;
        Some(match n % 7 {
            6 => Submission::Cancel { of: tag - 3, tag },
            kind => Submission::Call {
                number: 0,
                words: [kind % 4, 0, 0, 0, 0, 0],
                tag,
                link: (kind == 1 || kind == 2).then_some(0),
            },
        })
    }
    fn complete(&self, _completion: Completion) -> bool {
        self.kernel.system.look();
        self.ended.fetch_add(1, Ordering::SeqCst);
        true
    }
    fn unreaped(&self) -> usize {
        self.kernel.system.look();
        0
    }
}

/// One queue from its opening to its end, which comes after so many calls have begun: how many there were.
fn round(workers: usize, calls: usize) -> usize {
    let model = Model::new(Settings::default());
    let table = Table::new(ROWS);
    table.register_all();
    let kernel = Arc::new(Kernel {
        machine: model,
        table,
        compat: Table::new(&[]),
        tracer: Tracer::default(),
        stats: Stats::new(ROWS.len(), 0),
        modules: Default::default(),
        system: System::default(),
    });
    kernel.modules.start_stepped(model);
    let task = Arc::new(Task { kernel: kernel.clone(), ext: () });
    let seat = janua_kernel::Seat::new(janua_kernel::Thread::new(task, ()));
    let _first = model.spawn_first(seat.clone()).expect("a first thread");
    let gate = Arc::new(Endless { kernel: kernel.clone(), taken: AtomicUsize::new(0), ended: AtomicUsize::new(0) });
    let queue: Arc<Queue<Closed>> = seat.open_queue(gate.clone(), workers).expect("a queue");

    let (stop, begin) = (AtomicBool::new(false), Barrier::new(3));
    thread::scope(|scope| {
        // Two take turns, as when a module that is held up has been relieved: a worker is polled here while the queue is looked into there.
        for _ in 0..2 {
            scope.spawn(|| {
                begin.wait();
                while !stop.load(Ordering::Relaxed) {
                    kernel.system.ring();
                    if kernel.modules.step() != Turn::Ran {
                        thread::yield_now();
                    }
                }
            });
        }
        begin.wait();
        while kernel.system.begun.load(Ordering::SeqCst) < calls {
            thread::yield_now();
        }
        queue.close();
        kernel.system.over.store(true, Ordering::SeqCst);
        // What is wrong comes now.
        for _ in 0..100 {
            kernel.system.ring();
            thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
    while kernel.modules.step() == Turn::Ran {}
    let system = &kernel.system;
    let count = |count: &AtomicUsize| count.load(Ordering::SeqCst);
    assert_eq!(count(&system.late), 0, "something was done for a queue that had been closed");
    assert_eq!(count(&system.begun), count(&system.dropped), "a call is still under way");
    assert!(count(&gate.ended) <= count(&gate.taken), "more ends than submissions");
    assert_eq!(Arc::strong_count(&gate), 1, "something still has the gate");
    count(&system.begun)
}

#[test]
fn nothing_goes_on_in_a_queue_that_is_being_closed() {
    let begun: usize = (0..300).map(|n| round([1, 2, 4][n % 3], n % 40)).sum();
    assert!(begun > 300 * 10, "hardly a call was ever made: {begun}");
}
