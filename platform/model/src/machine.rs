//! The machine: threads, turns, time.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use janua_abi::linux::{Errno, Result};
use janua_paging::PAGE;
use janua_port::gate::pull;
use janua_port::machine::{Demand, Fpu, Isa, Memory as Amounts, NewSpace, Outside, ThreadId};
use janua_port::{
    Accounts, Clock, Console, Context, Flow, Frame, Guest, Host, HostFd, Machine, MemoryObject, Nanos, Park, Space, SpawnKind,
    Trap,
};
use janua_rt::rbed::{Kind, Queue, Refused};

use crate::context::ModelContext;
use crate::files::Files;
use crate::memory::{self, Memory, ModelSpace, lock};
use crate::processor::Stepper;
use crate::threads::{self, OwnThread};

/// What a model is made with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The order of events.
    pub seed: u64,
    /// Frames of memory there are.
    pub frames: usize,
    /// Nanoseconds that pass with a step.
    pub tick: Nanos,
    /// Sleepers wake now and then without a reason, as [`Park::park`] may.
    pub spurious: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { seed: 1, frames: 4096, tick: 100, spurious: true }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All kernels have ended, the last with this exit code.
    Off(u8),
    /// Nobody can run, and nobody ever will: a lost wake-up, or a program that waits for itself.
    Idle,
    /// As many steps as were allowed are over.
    Steps,
}

/// What a thread does when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    User,
    /// Waits for its word, or until then.
    Asleep(Option<Nanos>),
}

/// The number of a kernel, in the order they were started.
type Number = usize;

/// A thread with its registers.
pub(crate) struct Carrier {
    id: ThreadId,
    kernel: Number,
    guest: Arc<dyn Guest>,
    frame: Mutex<Frame>,
    stage: Mutex<Stage>,
    pub space: Mutex<Arc<dyn Space>>,
    pub tls: AtomicUsize,
    pub gs: AtomicUsize,
    pub fpu: Mutex<Vec<u8>>,
    /// Nanoseconds of turns.
    pub used: AtomicU64,
    /// What was promised to it. Promises are admitted and taken back as on a machine that keeps them; turns are drawn.
    promise: Mutex<Option<(usize, Demand)>>,
}

impl Carrier {
    fn can_run(&self, now: Nanos) -> bool {
        match *lock(&self.stage) {
            Stage::New | Stage::User => true,
            Stage::Asleep(deadline) => self.is_woken() || deadline.is_some_and(|deadline| deadline <= now),
        }
    }

    fn is_woken(&self) -> bool {
        self.guest.wake_word().load(Ordering::SeqCst) != SLEEPS
    }
}

/// The value of [`Guest::wake_word`] while its thread sleeps.
const SLEEPS: u32 = 2;

/// When it wants to be called again, as a kernel's service routine returns it.
type Service = Box<dyn FnMut() -> Option<Nanos> + Send>;

/// A thread of a kernel's own.
struct KernelThread {
    kernel: Number,
    is_ready: Box<dyn Fn() -> bool + Send>,
    step: Service,
    due: Option<Nanos>,
}

/// Whose step is next.
enum Chosen {
    Guest(Arc<Carrier>),
    KernelThread(Arc<Mutex<KernelThread>>),
}

#[derive(Default)]
struct State {
    threads: BTreeMap<u64, Arc<Carrier>>,
    last: u64,
    /// Whose turn it is.
    current: Option<Arc<Carrier>>,
    now: Nanos,
    random: u64,
    /// The kernel that is being started, or was last.
    starting: Number,
    services: BTreeMap<Number, Service>,
    /// Whose service routine runs.
    serving: Option<Number>,
    /// The service routines are to run: soon, or then.
    wanted: bool,
    due: Option<Nanos>,
    outside: Vec<Outside>,
    ended: BTreeMap<Number, u8>,
    promises: Promises,
}

/// The promises of the one processor.
struct Promises(Queue<()>);

impl Default for Promises {
    fn default() -> Promises {
        Promises(Queue::new(10_000_000))
    }
}

impl State {
    /// The kernel whose words these are: that of the thread whose turn it is, of the service routine, or the one that starts.
    fn speaker(&self) -> Number {
        self.current.as_ref().map(|carrier| carrier.kernel).or(self.serving).unwrap_or(self.starting)
    }

    /// Promises a thread something.
    fn admit(&mut self, carrier: &Carrier, demand: Demand) -> Result<()> {
        let promise = self.promises.0.admit(Kind::Hard, demand, self.now).map_err(|refused| match refused {
            Refused::Invalid => Errno::EINVAL,
            Refused::Full => Errno::EBUSY,
        })?;
        *lock(&carrier.promise) = Some((promise, demand));
        Ok(())
    }

    /// What was promised to a thread no longer is.
    fn take_back(&mut self, carrier: &Carrier) {
        if let Some((promise, _)) = lock(&carrier.promise).take() {
            self.promises.0.dismiss(promise, self.now);
        }
    }

    /// A kernel has ended: nothing of it runs any more. The others are not concerned.
    fn end(&mut self, kernel: Number, code: u8) {
        self.ended.insert(kernel, code);
        self.services.remove(&kernel);
        for carrier in self.threads.values().filter(|carrier| carrier.kernel == kernel).cloned().collect::<Vec<_>>() {
            self.take_back(&carrier);
        }
        self.threads.retain(|_, carrier| carrier.kernel != kernel);
        (self.current, self.serving) = (None, None);
    }
}

/// The machine. It is never given back: kernels want machines that stay.
pub struct Model {
    settings: Settings,
    pub(crate) memory: &'static Memory,
    pub(crate) files: Files,
    accounts: &'static Accounts,
    state: Mutex<State>,
    /// Threads of the kernels' own.
    kernel_threads: Mutex<Vec<Arc<Mutex<KernelThread>>>>,
    /// Those of them that may sleep on a word.
    sleepers: Mutex<Vec<Arc<threads::Shared>>>,
    /// Called as the copying of a space begins.
    pub(crate) copying: OnceLock<Box<dyn Fn() + Send + Sync>>,
    this: OnceLock<&'static Model>,
}

/// Carries an exit code out of a kernel.
struct Off(u8);

impl Model {
    pub fn new(settings: Settings) -> &'static Model {
        let memory = Box::leak(Box::new(Memory::new(settings.frames)));
        let accounts = Box::leak(Box::new(Accounts::new(usize::MAX, usize::MAX, usize::MAX, usize::MAX)));
        let state = State { random: settings.seed | 1 << 63, ..State::default() };
        let model: &'static Model = Box::leak(Box::new(Model {
            settings,
            memory,
            files: Files::default(),
            accounts,
            state: Mutex::new(state),
            kernel_threads: Mutex::default(),
            sleepers: Mutex::default(),
            copying: OnceLock::new(),
            this: OnceLock::new(),
        }));
        let _ = model.this.set(model);
        model
    }

    fn this(&self) -> &'static Model {
        self.this.get().expect("set where it is made")
    }

    /// The descriptor of the initial file tree, whose bytes are these.
    pub fn set_tree(&self, bytes: Vec<u8>) -> HostFd {
        self.files.set_tree(bytes);
        HostFd(3)
    }

    /// What guests and the kernel have written to the line so far.
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.files.written()).into_owned()
    }

    /// After so many calls of the host part that go well, one fails.
    pub fn fail_host(&self, after: usize, errno: Errno) {
        self.files.fail(after, errno);
    }

    /// Calls this as the copying of a space begins, on the thread that copies. The first one counts.
    pub fn on_copy(&self, call: impl Fn() + Send + Sync + 'static) {
        let _ = self.copying.set(Box::new(call));
    }

    /// Frames and memory objects in use: what is left of a sandbox.
    pub fn in_use(&self) -> (usize, usize) {
        (self.memory.used(), self.files.objects())
    }

    /// What the kernel has notified the outside of.
    pub fn notified(&self) -> Vec<Outside> {
        lock(&self.state).outside.clone()
    }

    /// Threads there are.
    pub fn threads(&self) -> usize {
        lock(&self.state).threads.len()
    }

    /// What is started from now on is another kernel, on the same machine: its number.
    pub fn next_kernel(&self) -> usize {
        let mut state = lock(&self.state);
        state.starting += 1;
        state.starting
    }

    /// The exit code of a kernel that has ended; the first has the number 0.
    pub fn ended(&self, kernel: usize) -> Option<u8> {
        lock(&self.state).ended.get(&kernel).copied()
    }

    /// The service routine of the kernel that was started last.
    pub fn serve(&self, service: impl FnMut() -> Option<Nanos> + Send + 'static) {
        let mut state = lock(&self.state);
        let kernel = state.starting;
        state.services.insert(kernel, Box::new(service));
        state.wanted = true;
    }

    /// A thread of the kernel that was started last, its own and no guest's: it is drawn like a guest's as long as it `is_ready`, or when
    /// the time has come that its last `step` returned. No step may wait.
    pub fn work(&self, is_ready: impl Fn() -> bool + Send + 'static, step: impl FnMut() -> Option<Nanos> + Send + 'static) {
        let kernel = lock(&self.state).starting;
        self.add_kernel_thread(kernel, is_ready, step);
    }

    fn add_kernel_thread(
        &self,
        kernel: Number,
        is_ready: impl Fn() -> bool + Send + 'static,
        step: impl FnMut() -> Option<Nanos> + Send + 'static,
    ) {
        let thread = KernelThread { kernel, is_ready: Box::new(is_ready), step: Box::new(step), due: None };
        lock(&self.kernel_threads).push(Arc::new(Mutex::new(thread)));
    }

    /// Ends the kernels' own threads, of which a model whose kernels do not end would have some for good.
    pub fn end_threads(&self) {
        drop(core::mem::take(&mut *lock(&self.kernel_threads)));
    }

    /// Takes steps until all kernels have ended or nobody can run; [`Outcome::Steps`] after ten million.
    pub fn run(&self) -> Outcome {
        self.run_for(10_000_000)
    }

    /// Takes at most so many steps.
    pub fn run_for(&self, steps: usize) -> Outcome {
        for _ in 0..steps {
            if let Some(outcome) = self.step() {
                return outcome;
            }
        }
        Outcome::Steps
    }

    /// Takes one step: `None` if there may be another.
    pub fn step(&self) -> Option<Outcome> {
        match catch_unwind(AssertUnwindSafe(|| self.turn())) {
            Ok(true) => None,
            Ok(false) => Some(Outcome::Idle),
            Err(panic) => match panic.downcast::<Off>() {
                Ok(off) => {
                    let (kernel, over) = {
                        let mut state = lock(&self.state);
                        let kernel = state.speaker();
                        state.end(kernel, off.0);
                        (kernel, state.ended.len() > state.starting)
                    };
                    // One that was in its step when the kernel ended is known by its lock, which that has broken.
                    let stays =
                        |thread: &Arc<Mutex<KernelThread>>| thread.try_lock().is_ok_and(|thread| thread.kernel != kernel);
                    let all = core::mem::take(&mut *lock(&self.kernel_threads));
                    let (stay, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(stays);
                    lock(&self.kernel_threads).extend(stay);
                    // What they hold may ask for the machine as it goes.
                    drop(gone);
                    over.then_some(Outcome::Off(off.0))
                }
                Err(panic) => resume_unwind(panic),
            },
        }
    }

    /// A number below `end`, drawn from the seed (xorshift64).
    fn draw(state: &mut State, end: usize) -> usize {
        state.random ^= state.random << 13;
        state.random ^= state.random >> 7;
        state.random ^= state.random << 17;
        (state.random % end as u64) as usize
    }

    /// The kernels' threads that can run, and when the next of the others is due.
    fn ready_kernel_threads(&self, now: Nanos) -> (Vec<Arc<Mutex<KernelThread>>>, Option<Nanos>) {
        let mut next = None;
        let all = lock(&self.kernel_threads).clone();
        let ready = all.into_iter().filter(|thread| {
            let thread = lock(thread);
            let ready = (thread.is_ready)() || thread.due.is_some_and(|due| due <= now);
            if !ready {
                next = next.into_iter().chain(thread.due).min();
            }
            ready
        });
        (ready.collect(), next)
    }

    /// One step of a thread that is drawn: false if none can run any more.
    fn turn(&self) -> bool {
        let (kernel_threads, kernel_due) = self.ready_kernel_threads(self.monotonic() + self.settings.tick);
        let mut state = lock(&self.state);
        state.now += self.settings.tick;
        let now = state.now;
        if state.wanted || state.due.is_some_and(|due| due <= now) {
            drop(state);
            self.run_services();
            return true;
        }
        let ready: Vec<Arc<Carrier>> = state.threads.values().filter(|carrier| carrier.can_run(now)).cloned().collect();
        if ready.is_empty() && kernel_threads.is_empty() {
            let sleepers = state.threads.values().filter_map(|carrier| match *lock(&carrier.stage) {
                Stage::Asleep(deadline) => deadline,
                _ => None,
            });
            let Some(next) = sleepers.chain(state.due).chain(kernel_due).min() else { return false };
            state.now = next;
            return true;
        }
        let guests = ready.into_iter().map(Chosen::Guest);
        let mut all: Vec<Chosen> = guests.chain(kernel_threads.into_iter().map(Chosen::KernelThread)).collect();
        if self.settings.spurious && Model::draw(&mut state, 64) == 0 && !state.threads.is_empty() {
            all = state.threads.values().cloned().map(Chosen::Guest).collect();
        }
        let chosen = all.swap_remove(Model::draw(&mut state, all.len()));
        match &chosen {
            Chosen::Guest(carrier) => state.current = Some(carrier.clone()),
            Chosen::KernelThread(thread) => state.serving = Some(lock(thread).kernel),
        }
        drop(state);
        match chosen {
            Chosen::Guest(carrier) => {
                self.advance(&carrier);
                carrier.used.fetch_add(self.settings.tick, Ordering::Relaxed);
            }
            Chosen::KernelThread(thread) => {
                let mut thread = lock(&thread);
                thread.due = (thread.step)();
            }
        }
        let mut state = lock(&self.state);
        (state.current, state.serving) = (None, None);
        true
    }

    fn run_services(&self) {
        let kernels: Vec<Number> = {
            let mut state = lock(&self.state);
            (state.wanted, state.due) = (false, None);
            state.services.keys().copied().collect()
        };
        for kernel in kernels {
            let service = {
                let mut state = lock(&self.state);
                state.serving = Some(kernel);
                state.services.remove(&kernel)
            };
            let Some(mut service) = service else { continue };
            let due = service();
            let mut state = lock(&self.state);
            state.services.insert(kernel, service);
            state.serving = None;
            state.due = state.due.into_iter().chain(due).min();
        }
    }

    /// A thread's step: what every machine's loop does with it.
    fn advance(&self, carrier: &Arc<Carrier>) {
        let guest = &*carrier.guest;
        let mut frame = lock(&carrier.frame);
        let stage = *lock(&carrier.stage);
        let flow = match stage {
            Stage::New => guest.start(&mut frame),
            Stage::User if guest.has_work() => guest.trap(&mut frame, Trap::Kick),
            Stage::User => {
                let space = lock(&carrier.space).clone();
                pull(&mut Stepper { guest, space: ModelSpace::of(&space) }, guest, &mut frame)
            }
            Stage::Asleep(_) => guest.poll(&mut frame),
        };
        drop(frame);
        let next = match flow {
            Flow::Resume => Stage::User,
            Flow::Wait(deadline) => {
                // Who has been woken already finds another value there, and can run.
                let _ = guest.wake_word().compare_exchange(0, SLEEPS, Ordering::SeqCst, Ordering::SeqCst);
                Stage::Asleep(deadline)
            }
            Flow::Exit => {
                let mut state = lock(&self.state);
                state.threads.remove(&carrier.id.0);
                state.take_back(carrier);
                return;
            }
        };
        *lock(&carrier.stage) = next;
    }

    /// [`janua_port::Context::promise`].
    pub(crate) fn promise(&self, carrier: &Carrier, demand: Option<Demand>) -> Result<()> {
        let mut state = lock(&self.state);
        let old = *lock(&carrier.promise);
        state.take_back(carrier);
        let Some(demand) = demand else { return Ok(()) };
        let result = state.admit(carrier, demand);
        if let Some((_, old)) = old.filter(|_| result.is_err()) {
            state.admit(carrier, old)?;
        }
        result
    }

    /// Whether it is this thread's turn.
    pub(crate) fn is_turn_of(&self, thread: ThreadId) -> bool {
        lock(&self.state).current.as_ref().is_some_and(|carrier| carrier.id == thread)
    }

    /// The guest whose turn it is, and the space it lives in.
    pub(crate) fn here(&self) -> Option<(Arc<dyn Guest>, Arc<dyn Space>)> {
        let carrier = lock(&self.state).current.clone()?;
        let space = lock(&carrier.space).clone();
        Some((carrier.guest.clone(), space))
    }

    /// The thread whose turn it is lives in another space from now on.
    pub(crate) fn change_space(&self, space: Arc<dyn Space>) {
        *lock(&self.current_carrier().space) = space;
    }

    pub(crate) fn current_carrier(&self) -> Arc<Carrier> {
        lock(&self.state).current.clone().expect("called in a thread's turn")
    }

    pub(crate) fn find(&self, thread: ThreadId) -> Option<Arc<Carrier>> {
        lock(&self.state).threads.get(&thread.0).cloned()
    }

    pub(crate) fn add(
        &self,
        guest: Arc<dyn Guest>,
        frame: Frame,
        space: Arc<dyn Space>,
        like: Option<&Carrier>,
        tls: Option<usize>,
    ) -> Arc<dyn Context> {
        let this = self.this();
        let mut state = lock(&self.state);
        state.last += 1;
        let id = ThreadId(state.last);
        let context = Arc::new(ModelContext { model: this, id });
        guest.attach(context.clone());
        let word = |word: fn(&Carrier) -> &AtomicUsize| like.map_or(0, |like| word(like).load(Ordering::Relaxed));
        let carrier = Carrier {
            id,
            kernel: state.speaker(),
            guest,
            frame: Mutex::new(frame),
            stage: Mutex::new(Stage::New),
            space: Mutex::new(space),
            tls: AtomicUsize::new(tls.unwrap_or_else(|| word(|like| &like.tls))),
            gs: AtomicUsize::new(word(|like| &like.gs)),
            fpu: Mutex::new(like.map_or_else(initial_fpu, |like| lock(&like.fpu).clone())),
            used: AtomicU64::new(0),
            promise: Mutex::new(None),
        };
        state.threads.insert(id.0, Arc::new(carrier));
        context
    }
}

/// Bytes of the state of x87 and SSE with the header of XSAVE.
pub(crate) const FPU: usize = 576;

/// As after FNINIT, with all exceptions masked.
pub(crate) fn initial_fpu() -> Vec<u8> {
    let mut state = vec![0; FPU];
    state[..2].copy_from_slice(&0x37fu16.to_le_bytes());
    state[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
    state
}

impl Clock for Model {
    fn monotonic(&self) -> Nanos {
        lock(&self.state).now
    }
    fn realtime(&self) -> Nanos {
        // 2020-01-01, so that nobody mistakes one clock for the other.
        1_577_836_800_000_000_000 + self.monotonic()
    }
}

impl Console for Model {
    fn write(&self, bytes: &[u8]) {
        self.files.write_line(bytes);
    }
}

impl Park for Model {
    fn park(&self, word: &AtomicU32, expected: u32, deadline: Option<Nanos>) {
        if word.load(Ordering::SeqCst) != expected {
            return;
        }
        if threads::park(word, deadline) {
            return;
        }
        // The holder of what the caller wants cannot run before the caller's turn is over.
        let Some(deadline) = deadline else { panic!("the kernel sleeps on a word in the middle of a thread's turn") };
        let mut state = lock(&self.state);
        state.now = state.now.max(deadline);
    }
    fn unpark(&self, word: &AtomicU32, _count: u32) {
        // Guests that sleep are found by their words.
        lock(&self.sleepers).iter().for_each(|thread| thread.wake(threads::address(word)));
    }
    fn yield_now(&self) {}
}

impl Machine for Model {
    fn clock(&self) -> &dyn Clock {
        self
    }
    fn console(&self) -> &dyn Console {
        self
    }
    fn park(&self) -> &dyn Park {
        self
    }
    fn host(&self) -> Option<&dyn Host> {
        Some(self)
    }
    fn memory_object(&self, _name: &str) -> Result<Arc<dyn MemoryObject>> {
        Ok(self.files.object(self.memory)?)
    }
    fn spawn_first(&self, guest: Arc<dyn Guest>) -> Result<(Arc<dyn Context>, Arc<dyn Space>)> {
        let space: Arc<dyn Space> = memory::empty(self.this());
        Ok((self.add(guest, Frame::start(0, 0), space.clone(), None, None), space))
    }
    fn spawn_kernel(&self, name: &'static str, body: Box<dyn FnOnce() + Send>) -> Result<()> {
        let thread = Arc::new(OwnThread::new(name, body).ok_or(Errno::EAGAIN)?);
        lock(&self.sleepers).push(thread.shared.clone());
        let kernel = lock(&self.state).speaker();
        let looked = thread.clone();
        self.add_kernel_thread(kernel, move || looked.is_ready(), move || thread.step());
        Ok(())
    }
    fn wake_service(&self) {
        lock(&self.state).wanted = true;
    }
    fn space_for(&self, kind: SpawnKind, parent: &Arc<dyn Space>) -> Result<NewSpace> {
        Ok(NewSpace::Whole(match kind {
            SpawnKind::Fork => memory::copy(ModelSpace::of(parent))?,
            SpawnKind::Thread | SpawnKind::SharedSpace => parent.clone(),
        }))
    }
    fn isa(&self) -> Isa {
        // x87 and SSE.
        Isa { fpu: Fpu { size: FPU, features: 3 }, hwcap: [0; 2] }
    }
    fn cpus(&self) -> usize {
        1
    }
    fn cpu(&self) -> usize {
        0
    }
    fn accounts(&self) -> &'static Accounts {
        self.accounts
    }
    fn memory(&self) -> Amounts {
        let bytes = |frames: usize| (frames * PAGE) as u64;
        let free = bytes(self.memory.most() - self.memory.used());
        Amounts { total: bytes(self.memory.most()), free, available: free }
    }
    fn random(&self, out: &mut [u8]) {
        let mut state = lock(&self.state);
        out.fill_with(|| Model::draw(&mut state, 256) as u8);
    }
    fn notify_outside(&self, event: Outside) {
        let over = if let Outside::Over(code) = event { Some(code) } else { None };
        lock(&self.state).outside.push(event);
        if let Some(code) = over {
            resume_unwind(Box::new(Off(code)))
        }
    }
}
