//! A personality that lets its threads wait for the answer to an exception: another thread, in a space of its own, brings them their pages.

use std::sync::{Arc, Mutex, OnceLock};

use janua_abi::linux::{Errno, Result};
use janua_kernel::stats::Stats;
use janua_kernel::task::Leave;
use janua_kernel::thread::work;
use janua_kernel::trace::Tracer;
use janua_kernel::{Kernel, Personality, Table, Task, Trapped};
use janua_platform_model::program::{CODE, DATA, Program};
use janua_platform_model::{Model, Outcome, Settings};
use janua_port::outside::over;
use janua_port::trap::{Cause, Exception, Refusal};
use janua_port::{Backing, Frame, Machine, Prot, Space, Trap};
use janua_rt::WaitQueue;

type Thread = janua_kernel::Thread<Paged>;
type Seat = janua_kernel::Seat<Paged>;

const PAGE: usize = 4096;
const RIGHTS: Prot = Prot { read: true, write: true, exec: true };

/// A kernel whose page faults are the business of one of its threads.
struct Paged;

#[derive(Default)]
struct System {
    /// The thread that wants pages and its space, then the pager.
    threads: OnceLock<[(Arc<Seat>, Arc<dyn Space>); 2]>,
    /// The page that is wanted.
    wanted: Mutex<Option<usize>>,
    asked: WaitQueue,
    given: WaitQueue,
    log: Mutex<Vec<&'static str>>,
}

impl System {
    fn note(&self, what: &'static str) {
        self.log.lock().unwrap().push(what);
    }
    fn client(&self) -> &(Arc<Seat>, Arc<dyn Space>) {
        &self.threads.get().expect("set at start")[0]
    }
}

fn page_of(exception: &Exception) -> Option<usize> {
    matches!(exception.cause, Cause::Page { refusal: Refusal::Unmapped, .. }).then_some(exception.addr & !(PAGE - 1))
}

impl Personality for Paged {
    type System = System;
    type Task = ();
    type Thread = ();

    fn start(_thread: &Thread, frame: &mut Frame) -> Leave {
        *frame = Frame::start(CODE + Program::HEADERS as u64, 0);
        Leave::Resume
    }
    fn trap(thread: &Thread, _frame: &mut Frame, trap: Trap) -> Trapped {
        match trap {
            Trap::Kick => Trapped::Done,
            Trap::Exception(exception) if page_of(&exception).is_some() => Trapped::Wait,
            Trap::Exception(_) => {
                thread.set_work(work::KILL);
                Trapped::Done
            }
        }
    }
    async fn handle(thread: &Thread, exception: Exception) {
        let Some(page) = page_of(&exception) else { return };
        thread.kernel.note("asked");
        *thread.kernel.wanted.lock().unwrap() = Some(page);
        thread.kernel.asked.wake_all();
        let answered = || thread.kernel.wanted.lock().unwrap().is_none().then_some(());
        let waited = thread.wait_on(&thread.kernel.given, None, answered).await;
        thread.kernel.note(if waited.is_ok() { "answered" } else { "given up" });
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

/// The client's last word: the machine ends with this code.
fn off(thread: &Thread, _frame: &mut Frame, code: u32) -> isize {
    thread.kernel.note("off");
    over(thread.machine(), code as u8)
}

/// The pager's: which page somebody waits for.
async fn listen(thread: &Thread) -> Result<usize> {
    let wanted = || *thread.kernel.wanted.lock().unwrap();
    thread.wait_on(&thread.kernel.asked, None, wanted).await.map_err(|cut| cut.errno(Errno::EINTR))
}

/// The pager's: the page that is waited for is there from now on, with this number in it.
fn give(thread: &Thread, number: usize) -> Result<usize> {
    let (client, space) = thread.kernel.client();
    let page = thread.kernel.wanted.lock().unwrap().take().ok_or(Errno::EINVAL)?;
    space.map(page, PAGE, RIGHTS, &Backing::Anon)?;
    client.user().copy_out(page, &number.to_le_bytes()).map_err(|_| Errno::EFAULT)?;
    thread.kernel.note("given");
    thread.kernel.given.wake_all();
    Ok(0)
}

/// The pager's: the client has to go, whatever it waits for.
fn end_client(thread: &Thread) -> Result<usize> {
    thread.kernel.client().0.interrupt(work::KILL);
    Ok(0)
}

/// The thread is over.
fn end(thread: &Thread) -> Result<usize> {
    thread.set_work(work::KILL);
    Ok(0)
}

const OFF: usize = 0;
const LISTEN: usize = 1;
const GIVE: usize = 2;
const END_CLIENT: usize = 3;
const END: usize = 4;

janua_kernel::calls! {
    pub static ROWS for Paged;
    0 off(code: u32) => frame off, home, Full;
    1 listen() => wait listen, home, Full;
    2 give(number: usize) => plain give, home, Full;
    3 end_client() => plain end_client, home, Full;
    4 end() => plain end, home, Full;
}

/// A kernel with these two threads.
fn boot(seed: u64, programs: [Program; 2]) -> (&'static Model, Arc<Kernel<Paged>>) {
    let model = Model::new(Settings { seed, ..Settings::default() });
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
    let threads = programs.map(|program| {
        let task = Arc::new(Task { kernel: kernel.clone(), ext: () });
        let seat = Seat::new(janua_kernel::Thread::new(task, ()));
        let (_, space) = model.spawn_first(seat.clone()).expect("a first thread");
        space.map(CODE as usize, PAGE, RIGHTS, &Backing::Anon).expect("room for code");
        seat.user().copy_out(CODE as usize, &program.executable()).expect("the code is mapped");
        (seat, space)
    });
    assert!(kernel.threads.set(threads).is_ok());
    (model, kernel)
}

/// Reads the number of a page, which is 7, and another one of a page that is there by then.
fn client() -> Program {
    let again = Program::new().load_at(DATA).jump_unless(7, "wrong").load_at(DATA + 8).jump_unless(0, "wrong");
    again.call(OFF, &[42]).label("wrong").call(OFF, &[1])
}

/// Orders of events.
const SEEDS: std::ops::Range<u64> = 1..65;

#[test]
fn an_exception_is_answered_when_another_thread_has_done_something() {
    for seed in SEEDS {
        let pager = Program::new().label("next").call(LISTEN, &[]).call(GIVE, &[7]).expect(0, 2).jump("next");
        let (model, kernel) = boot(seed, [client(), pager]);
        assert_eq!(model.run(), Outcome::Off(42), "seed {seed}");
        assert_eq!(*kernel.log.lock().unwrap(), ["asked", "given", "answered", "off"], "seed {seed}");
    }
}

#[test]
fn who_waits_for_an_answer_that_never_comes_takes_no_time() {
    for seed in SEEDS {
        let (model, kernel) = boot(seed, [client(), Program::new().call(LISTEN, &[]).call(END, &[])]);
        assert_eq!(model.run(), Outcome::Idle, "seed {seed}");
        assert_eq!((model.threads(), kernel.log.lock().unwrap().clone()), (1, vec!["asked"]), "seed {seed}");
    }
}

#[test]
fn who_waits_for_an_answer_can_be_ended() {
    for seed in SEEDS {
        let pager = Program::new().call(LISTEN, &[]).call(END_CLIENT, &[]).call(END, &[]);
        let (model, kernel) = boot(seed, [client(), pager]);
        assert_eq!(model.run(), Outcome::Idle, "seed {seed}");
        assert_eq!((model.threads(), kernel.log.lock().unwrap().clone()), (0, vec!["asked", "given up"]), "seed {seed}");
    }
}
