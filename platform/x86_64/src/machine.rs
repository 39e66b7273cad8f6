//! The machine the kernel sees.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::Result;
use janua_paging::Object;
use janua_platform_bare::outside::EXIT_MARK;
use janua_port::drive::PARKED;
use janua_port::gate::{Entering, Way};
use janua_port::machine::{Fpu, Isa, Memory, NewSpace, Outside};
use janua_port::{
    BlockDevice, Carrier, Clock, Compat, Console, Context, Frame, Guest, Host, Machine, MemoryObject, Nanos, Next, Park, Space,
    Spawn, SpawnKind, Spun, TrapGate, drive,
};

use crate::acpi::Cores;
use crate::boot::{DIRECT, Loaded};
use crate::clock::BareClock;
use crate::compat::BareCompat;
use crate::context::BareContext;
use crate::frames::{self, FRAMES};
use crate::handed::{self, BareHost};
use crate::space::{self, BareSpace};
use crate::thread::{self, Thread};
use crate::user;
use crate::{
    apic, clock, core as cores, cpu, disk, divide, fpu, guard, isolation, measure, oom, promise, random, report, sched, serial,
    shoot, smp, tables, tiles, trap, unprotected, vdso,
};

/// The bare machine; there is one.
pub struct BareMachine {
    gates: &'static [&'static dyn TrapGate],
    initrd: &'static [u8],
}

static MACHINE: AtomicPtr<BareMachine> = AtomicPtr::new(core::ptr::null_mut());
/// The word the service thread sleeps on.
static SERVICE: AtomicU32 = AtomicU32::new(0);

/// The gates of this image.
pub fn gates() -> &'static [&'static dyn TrapGate] {
    // SAFETY: null until set by `BareMachine::start` from a leaked box, before any guest exists.
    unsafe { MACHINE.load(Ordering::Acquire).as_ref() }.map_or(&[], |machine| machine.gates)
}

/// Where the processor goes by a way that a gate takes calls by, if the gate has entry code for it. `guarded`: the processor has SMAP.
pub fn entry(way: Way, guarded: bool) -> Option<u64> {
    let entering = Entering { isolated: isolation::is_on(), guarded };
    let gate = gates().iter().find(|gate| gate.ways().contains(&way))?;
    gate.entry(way, entering).map(|address| address as u64)
}

/// What the loader left in ebx.
static START_INFO: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    /// The image's start.
    safe fn janua_start() -> !;
}

/// The first Rust code: on the boot stack, with interrupts off.
pub extern "C" fn first(start_info: usize) -> ! {
    START_INFO.store(start_info, Ordering::Relaxed);
    janua_start()
}

/// Ends the machine. QEMU's exit device learns that it was meant; the code goes by the debug port, since the device has
/// too few bits.
pub fn power_off(code: u8) -> ! {
    use core::fmt::Write;
    let _ = writeln!(report::Voice, "{EXIT_MARK}{code}");
    const EXIT_DEVICE: u16 = 0xf4;
    /// QEMU ends with twice this and one.
    const MEANT: u8 = 0x10;
    // SAFETY: QEMU's isa-debug-exit, or a port that does not exist.
    unsafe { cpu::outb(EXIT_DEVICE, MEANT) };
    report::stop_others();
    cpu::halt()
}

impl BareMachine {
    /// Makes the machine usable: memory, tables, core, interrupts, clocks, the calling thread. The image calls it first, once.
    /// It reports what cannot be and powers off. `gates` returns which gates there are to be, from what the loader has brought.
    pub fn start(gates: fn(&[u8]) -> &'static [&'static dyn TrapGate]) -> &'static BareMachine {
        let start_info = START_INFO.swap(0, Ordering::Relaxed);
        // SAFETY: the address is the loader's, or the first tile's (or 0, after the first call), and the boot page tables map the first 4 GiB.
        let loaded = unsafe { Loaded::at(start_info) };
        let given = loaded.as_ref().and_then(Loaded::given);
        if given.is_none() {
            serial::init();
        }
        let Some(loaded) = loaded else {
            report::stop(format_args!("the loader does not speak PVH (start it with QEMU's -kernel)"))
        };
        let found = Cores::find(loaded.rsdp());
        let others = match given {
            Some(given) => tiles::join(given),
            // Nothing of the kernel's data has changed yet.
            None => divide::divide(&loaded, found.ids()),
        };
        let is_first = given.is_none();
        frames::init(&loaded, others);
        let initrd = loaded.initrd();
        isolation::init(loaded.command_line());
        unprotected::init(loaded.command_line());
        guard::init(cores::has_smap());
        tables::init();
        let initrd = initrd.map_or(&[][..], |(start, end)| {
            // SAFETY: the loader's module, which was left out of the free memory; mapped for good.
            unsafe { core::slice::from_raw_parts((DIRECT + start) as *const u8, end - start) }
        });
        let machine = Box::leak(Box::new(BareMachine { gates: gates(initrd), initrd }));
        MACHINE.store(machine, Ordering::Release);
        if cores::init().smap {
            user::set_guarded();
        }
        fpu::init();
        if is_first {
            apic::init();
            clock::init();
        } else {
            apic::init_local();
            tiles::take_clock();
        }
        sched::configure(loaded.command_line());
        let [start, scale, date] = clock::numbers();
        vdso::init(loaded.command_line(), start, scale, date);
        random::init();
        if is_first {
            disk::init();
        }
        match thread::make(Frame::start(0, 0), None, None, None, None) {
            Ok(first) if sched::init(first.clone()).is_ok() => {}
            _ => report::stop(format_args!("no memory for the first thread")),
        }
        if is_first {
            serial::listen();
        }
        smp::start(tiles::cores().unwrap_or(found.ids()));
        if is_first {
            divide::start_others(loaded.command_line());
        } else {
            measure::take_part(loaded.command_line());
        }
        let threads: [(_, fn()); 3] = [("memory", oom::serve), ("threads", sched::reap), ("console", serial::serve)];
        // The console is the first tile's.
        for (name, body) in threads.into_iter().take(if is_first { 3 } else { 2 }) {
            if machine.spawn_kernel(name, Box::new(body)).is_err() {
                report::stop(format_args!("no memory for the kernel's threads"));
            }
        }
        machine
    }

    /// Where programs jump that may call the kernel by address.
    pub fn call_entry(&self) -> Option<usize> {
        unprotected::is_on().then(unprotected::call_address)
    }

    /// What the loader brought besides the kernel: empty when it brought nothing.
    pub fn initrd(&self) -> &'static [u8] {
        self.initrd
    }

    /// This kernel has begun, as one of several tiles: the first waits for all others to say so. `runs`: a program runs on it, to whose end the machine goes on.
    pub fn begun(&self, runs: bool) {
        tiles::begun(runs);
    }

    /// The bytes the kernel reads as [`handed::INITRD`].
    pub fn set_root(&self, archive: &'static [u8]) {
        handed::set_initrd(archive);
    }

    /// The calling thread from now on: `serve` does what is due and returns when it wants to be called again;
    /// [`Machine::wake_service`] calls it earlier.
    pub fn serve(&'static self, mut serve: impl FnMut() -> Option<Nanos>) -> ! {
        loop {
            SERVICE.store(0, Ordering::SeqCst);
            let deadline = serve();
            sched::park(&SERVICE, 0, deadline);
        }
    }
}

/// [`Machine::wake_service`].
pub fn wake_service() {
    if SERVICE.swap(1, Ordering::SeqCst) == 0 {
        sched::unpark(&SERVICE, 1);
    }
}

struct KernelVoice;

impl Console for KernelVoice {
    fn write(&self, bytes: &[u8]) {
        serial::say(bytes);
    }
}

struct Words;

impl Park for Words {
    fn park(&self, word: &AtomicU32, expected: u32, deadline: Option<Nanos>) {
        sched::park(word, expected, deadline);
    }
    fn unpark(&self, word: &AtomicU32, count: u32) {
        sched::unpark(word, count);
    }
    fn unpark_on(&self, tile: u32, _word: &AtomicU32) {
        tiles::ring(tile);
    }
    fn yield_now(&self) {
        sched::yield_now();
    }
    fn yield_turn(&self) {
        promise::yield_turn();
    }
    fn spin(&self, word: &AtomicU32, expected: u32, limit: Nanos) -> Spun {
        sched::spin(word, expected, limit)
    }
    fn is_wanted(&self) -> bool {
        sched::is_wanted()
    }
    fn attend(&self) {
        sched::preempt();
    }
}

/// First code of a thread with a guest.
extern "C" fn guest_main() -> ! {
    sched::arrived();
    // Goes with the thread: nothing here is dropped at its end but by hand.
    let thread = sched::current();
    let own: *const Thread = &raw const *thread;
    drop(thread);
    // SAFETY: the scheduler and the table hold the running thread.
    let thread = unsafe { &*own };
    if let Some(guest) = thread.guest.as_deref() {
        live(thread, guest);
    }
    sched::end()
}

/// The thread's life: resume, trap, enter.
fn live(thread: &Thread, guest: &dyn Guest) {
    let frame = || {
        // SAFETY: the running thread's own part; each borrow ends before the next begins.
        unsafe { &mut (*thread.own.get()).save.frame }
    };
    // SAFETY: as above; the guest is the thread's and lives as long.
    unsafe { (*thread.own.get()).save.set_plain(guest.plain()) };
    let mut flow = guest.start(frame());
    while drive(&mut Core, guest, frame(), flow) == Next::User {
        flow = trap::run_user(thread, guest);
    }
}

/// The calling core, as [`drive()`] has it.
struct Core;

impl Carrier for Core {
    fn enter_user(&mut self) {
        // A kick is a flag, and an interrupt to the core that runs the thread: interrupts are off until user code runs, so either the
        // flag is seen, or the interrupt comes there.
    }
    fn stay(&mut self) {}
    fn sleep(&mut self, word: &AtomicU32, deadline: Option<Nanos>) {
        sched::park(word, PARKED, deadline);
    }
}

/// First code of a thread of the kernel's own.
extern "C" fn kernel_main() -> ! {
    sched::arrived();
    let body = sched::current().body.lock().take();
    if let Some(body) = body {
        body();
    }
    sched::end()
}

/// Hands a new guest thread its context and lets it run.
fn begin(thread: Arc<Thread>) -> Arc<dyn Context> {
    let context = Arc::new(BareContext::of(&thread));
    if let Some(guest) = &thread.guest {
        guest.attach(context.clone());
    }
    sched::start(thread);
    context
}

/// [`Context::spawn`], of the running thread.
pub fn spawn(spawn: Spawn) -> Result<Arc<dyn Context>> {
    let creator = sched::current();
    let space = spawn.space.or_else(|| creator.space.lock().clone());
    let thread = thread::make(spawn.frame, Some(spawn.guest), None, space, Some(guest_main))?;
    let own = thread.own.get();
    // SAFETY: the new thread does not run yet; the processor's registers are the creator's.
    unsafe {
        (*own).fpu.store();
        (*own).fs = spawn.tls.map_or_else(|| cpu::rdmsr(cpu::MSR_FS_BASE), |tls| tls as u64);
        (*own).gs = cpu::rdmsr(cpu::MSR_KERNEL_GS_BASE);
        (*own).compat = (*creator.own.get()).compat;
        (*own).compat.store();
        (*own).save.landing = (*creator.own.get()).save.landing;
    }
    thread.inherit(&creator, cores::here().turn.clock());
    thread.last.store(cores::here().number, Ordering::Relaxed);
    Ok(begin(thread))
}

impl Machine for BareMachine {
    fn clock(&self) -> &dyn Clock {
        &BareClock
    }
    fn console(&self) -> &dyn Console {
        &KernelVoice
    }
    fn park(&self) -> &dyn Park {
        &Words
    }
    fn host(&self) -> Option<&dyn Host> {
        Some(&BareHost)
    }

    fn memory_object(&self, _name: &str) -> Result<Arc<dyn MemoryObject>> {
        Ok(Object::new(&FRAMES, 0))
    }

    fn disk(&self) -> Option<&'static dyn BlockDevice> {
        disk::disk().map(|disk| disk as &dyn BlockDevice)
    }

    fn compat(&self) -> Option<&dyn Compat> {
        Some(&BareCompat)
    }

    fn spawn_first(&self, guest: Arc<dyn Guest>) -> Result<(Arc<dyn Context>, Arc<dyn Space>)> {
        let space = space::empty()?;
        space.own.set_first();
        let space: Arc<dyn Space> = space;
        let thread = thread::make(Frame::start(0, 0), Some(guest), None, Some(space.clone()), Some(guest_main))?;
        Ok((begin(thread), space))
    }

    fn spawn_kernel(&self, _name: &'static str, body: Box<dyn FnOnce() + Send>) -> Result<()> {
        sched::start(thread::make(Frame::start(0, 0), None, Some(body), None, Some(kernel_main))?);
        Ok(())
    }

    fn wake_service(&self) {
        wake_service();
    }

    fn space_for(&self, kind: SpawnKind, parent: &Arc<dyn Space>) -> Result<NewSpace> {
        Ok(NewSpace::Whole(match kind {
            SpawnKind::Fork => space::copy(BareSpace::of(parent))?,
            SpawnKind::Thread | SpawnKind::SharedSpace => parent.clone(),
        }))
    }

    fn isa(&self) -> Isa {
        Isa { fpu: Fpu { size: fpu::size(), features: fpu::features() }, hwcap: janua_arch::hwcap() }
    }

    fn cpus(&self) -> usize {
        cores::count()
    }
    fn cpu(&self) -> usize {
        cores::here().number
    }
    fn memory(&self) -> Memory {
        FRAMES.memory()
    }
    fn random(&self, out: &mut [u8]) {
        random::fill(out);
    }
    fn vdso(&self) -> Option<[(usize, usize); 2]> {
        Some(vdso::RANGES)
    }
    fn notify_outside(&self, event: Outside) {
        // Nobody is outside but the console, and the machine's switch.
        if let Outside::Over(code) = event {
            tiles::end(code)
        }
    }
}

/// Sleeping of contended locks.
pub struct LockSleep;

impl LockSleep {
    pub fn sleep(word: &AtomicU32, expected: u32) {
        sched::park(word, expected, None);
    }
    pub fn wake(word: &AtomicU32) {
        sched::unpark(word, 1);
    }
    pub fn give_way() {
        shoot::relax();
        sched::yield_now();
    }
}
