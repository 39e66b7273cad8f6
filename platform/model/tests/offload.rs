//! Calls that block in the machine: a worker is held up by them, no module, and no call of another thread's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::module::{Division, Handover, Plan};
use janua_kernel::stats::Stats;
use janua_kernel::task::Leave;
use janua_kernel::thread::work;
use janua_kernel::trace::Tracer;
use janua_kernel::{Kernel, Personality, Places, Seat, Table, Task, Trapped};
use janua_platform_model::{Model, Outcome, Settings};
use janua_port::guest::{Abi, Flow};
use janua_port::{Frame, Guest, Machine, Trap};

type Thread = janua_kernel::Thread<Blocked>;

struct Blocked;

/// A disk, and how far it is with what it was asked for.
#[derive(Default)]
struct Disk {
    begun: AtomicU32,
    ended: AtomicU32,
    /// It has gone on.
    goes: AtomicU32,
}

impl Personality for Blocked {
    type System = Arc<Disk>;
    type Task = ();
    type Thread = ();

    fn start(_thread: &Thread, _frame: &mut Frame) -> Leave {
        Leave::Resume
    }
    fn trap(_thread: &Thread, _frame: &mut Frame, _trap: Trap) -> Trapped {
        Trapped::Done
    }
    fn is_special(_result: isize) -> bool {
        false
    }
    fn leave(thread: &Thread, _frame: &mut Frame) -> Leave {
        if thread.work() & work::KILL != 0 { Leave::Exit } else { Leave::Resume }
    }
    fn trace_id(_thread: &Thread) -> u32 {
        0
    }
}

/// Sleeps in the machine until the disk goes on.
async fn block(thread: &Thread, call: usize) -> Result<usize> {
    let (disk, machine) = (thread.kernel.system.clone(), thread.machine());
    let blocks = move || {
        disk.begun.fetch_add(1, Ordering::SeqCst);
        while disk.goes.load(Ordering::SeqCst) == 0 {
            machine.park().park(&disk.goes, 0, None);
        }
        disk.ended.fetch_add(1, Ordering::SeqCst);
        call
    };
    thread.offload(blocks).await.map_err(|cut| cut.errno(Errno::EINTR))
}

fn note(_thread: &Thread, call: usize) -> Result<usize> {
    Ok(call)
}

janua_kernel::calls! {
    pub static ROWS for Blocked;
    0 note(call: usize) => plain note, fs, Full;
    1 block(call: usize) => wait block, fs, Full;
}

struct World {
    model: &'static Model,
    kernel: Arc<Kernel<Blocked>>,
    task: Arc<Task<Blocked>>,
}

impl World {
    /// A machine with one module, which has every call; or without any.
    fn new(handover: Option<Handover>) -> World {
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
            system: Arc::default(),
        });
        if let Some(handover) = handover {
            let (policies, places) = (Vec::new(), Places::AWAY);
            let plan =
                Plan { cores: 1, division: Division::One, policies, handover, places, direct: true, full: 256, pinned: false };
            kernel.modules.start_by_steps(model, &plan);
        }
        let task = Arc::new(Task { kernel: kernel.clone(), ext: () });
        World { model, kernel, task }
    }

    /// One whose service starts workers.
    fn with_workers(handover: Option<Handover>) -> World {
        let world = World::new(handover);
        let kernel = world.kernel.clone();
        world.model.serve(move || {
            kernel.modules.offload.serve(kernel.machine);
            None
        });
        world.model.wake_service();
        world.run();
        world
    }

    /// The kernel's own threads run until they sleep, but not until they have slept for long.
    fn run(&self) {
        self.model.run_for(400);
    }

    fn seat(&self) -> Arc<Seat<Blocked>> {
        Seat::new(janua_kernel::Thread::new(self.task.clone(), ()))
    }

    fn go(&self) {
        self.kernel.system.goes.store(1, Ordering::SeqCst);
        self.model.park().unpark(&self.kernel.system.goes, u32::MAX);
        self.run();
    }

    fn module(&self) {
        while self.kernel.modules.step_on(0) {}
    }

    fn disk(&self) -> [u32; 2] {
        [&self.kernel.system.begun, &self.kernel.system.ended].map(|count| count.load(Ordering::SeqCst))
    }
}

/// A thread of the test's that makes calls.
struct Caller {
    seat: Arc<Seat<Blocked>>,
    frame: Frame,
}

impl Caller {
    fn call(world: &World, row: u64, word: u64) -> (Caller, Flow) {
        let mut caller = Caller { seat: world.seat(), frame: Frame { orig_rax: row, rdi: word, ..Frame::default() } };
        let flow = caller.seat.call(&mut caller.frame, Abi::Native);
        (caller, flow)
    }

    fn poll(&mut self) -> Flow {
        self.seat.poll(&mut self.frame)
    }
}

const NOTE: u64 = 0;
const BLOCK: u64 = 1;

#[test]
fn a_module_serves_others_while_a_call_is_blocked() {
    let world = World::with_workers(Some(Handover::Always));
    let (mut blocked, flow) = Caller::call(&world, BLOCK, 7);
    assert!(matches!(flow, Flow::Wait(_)));
    world.module();
    world.run();
    assert_eq!((world.disk(), world.kernel.modules.offload.counts()), ([1, 0], (1, 0)), "it is not at the disk");
    assert!(matches!(blocked.poll(), Flow::Wait(_)));
    for word in 0..5 {
        let (mut other, flow) = Caller::call(&world, NOTE, word);
        assert!(matches!(flow, Flow::Wait(_)), "it is not with the module");
        world.module();
        assert!(matches!(other.poll(), Flow::Resume), "it waits for the disk of another");
        assert_eq!(other.frame.result(), word as isize);
    }
    assert_eq!(world.disk(), [1, 0]);
    world.go();
    assert_eq!(world.disk(), [1, 1]);
    world.module();
    assert!(matches!(blocked.poll(), Flow::Resume), "it has not been woken");
    assert_eq!(blocked.frame.result(), 7);
    // A worker that has had nothing to do for a while is none any more, and the machine is at rest.
    assert_eq!((world.model.run(), world.kernel.modules.offload.counts()), (Outcome::Idle, (0, 0)));
}

/// Who is killed does not wait for the disk. What it had asked for goes on, and leaves nothing.
#[test]
fn who_is_killed_does_not_wait_for_a_worker() {
    let world = World::with_workers(Some(Handover::Always));
    let mut callers: Vec<_> = (0..6).map(|word| Caller::call(&world, BLOCK, word).0).collect();
    world.module();
    world.run();
    assert_eq!((world.disk(), world.kernel.modules.offload.counts()), ([4, 0], (4, 2)));
    for caller in &mut callers {
        caller.seat.interrupt(work::KILL);
        world.module();
        assert!(matches!(caller.poll(), Flow::Exit));
    }
    assert_eq!((world.disk(), world.kernel.modules.offload.counts()), ([4, 0], (4, 0)), "work of the dead is in the queue");
    world.go();
    assert_eq!(world.disk(), [4, 4]);
    assert_eq!(Arc::strong_count(&world.kernel.system), 1, "what it held is still held");
}

/// More calls than workers and their queue have room for: all wait, none is lost.
#[test]
fn more_calls_than_there_is_room_for_wait_for_it() {
    const CALLERS: u32 = 100;
    let world = World::with_workers(Some(Handover::Always));
    let mut callers: Vec<_> = (0..CALLERS).map(|word| Caller::call(&world, BLOCK, word.into()).0).collect();
    world.module();
    world.run();
    // As many as have been taken out of the queue have had room made for them.
    world.module();
    assert_eq!((world.disk(), world.kernel.modules.offload.counts()), ([4, 0], (4, 64)));
    world.kernel.system.goes.store(1, Ordering::SeqCst);
    world.model.park().unpark(&world.kernel.system.goes, u32::MAX);
    while world.disk()[1] < CALLERS {
        let before = world.disk();
        world.run();
        world.module();
        assert!(world.disk() != before, "it hangs");
    }
    world.module();
    for (word, caller) in callers.iter_mut().enumerate() {
        assert!(matches!(caller.poll(), Flow::Resume));
        assert_eq!(caller.frame.result(), word as isize);
    }
}

/// At home, and where there is no service to start workers, who asks for it does the work.
#[test]
fn who_may_stand_still_does_it_himself() {
    for handover in [None, Some(Handover::Always)] {
        let world = if handover.is_none() { World::with_workers(None) } else { World::new(handover) };
        world.kernel.system.goes.store(1, Ordering::SeqCst);
        let (mut caller, mut flow) = Caller::call(&world, BLOCK, 3);
        if handover.is_some() {
            world.module();
            flow = caller.poll();
        }
        assert!(matches!(flow, Flow::Resume));
        assert_eq!((caller.frame.result(), world.disk(), world.kernel.modules.offload.counts()), (3, [1, 1], (0, 0)));
    }
}
