//! The machine the kernel sees.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use janua_abi::linux::poll::event;
use janua_abi::linux::prctl;
use janua_abi::linux::{Errno, Result};
use janua_entry::hosted::{self, entry};
use janua_port::jail::Ground;
use janua_port::machine::{Isa, Memory, NewSpace, Outside};
use janua_port::{
    Accounts, Clock, Compat, Console, Context, Guest, Host, HostedGate, Machine, MemoryObject, Nanos, Park, Space, SpawnKind,
    Spun,
};
use janua_text::scan;

use crate::clock::HostClock;
use crate::compat::HostedCompat;
use crate::host::LinuxHost;
use crate::reactor::Reactor;
use crate::space::HostedSpace;
use crate::sys::{self, nr};
use crate::{boot, call, channel, heap, host, idle, random, registers, signal, spawn, text, usage, vdso, wall, window};

/// Most processors that a set of them has room for.
const PROCESSORS: usize = 8192;

/// The linux platform as a machine; one in a sandbox.
pub struct LinuxMachine {
    pub gate: &'static dyn HostedGate,
    pub reactor: Reactor,
    cpus: usize,
    /// They as a set, bit n of which is processor n.
    cpu_set: [u64; PROCESSORS / 64],
    /// Whether the signal stack outlasts the signals put on it: where user code calls by signals.
    pub stack_stays: bool,
}

static MACHINE: AtomicPtr<LinuxMachine> = AtomicPtr::new(core::ptr::null_mut());

static HOOKS: entry::Hooks = entry::Hooks {
    on_call: call::on_call,
    on_signal: signal::on_signal,
    on_nested: signal::on_nested,
    on_returned: call::on_returned,
};

/// Those of a kernel that lets programs call its functions by address.
static DIRECT_HOOKS: entry::Hooks = entry::Hooks { on_call: call::on_direct_call, ..HOOKS };

/// The machine, for the platform's own code.
pub fn get() -> &'static LinuxMachine {
    // SAFETY: set by `LinuxMachine::start` from a leaked box before any guest exists.
    unsafe { &*MACHINE.load(Ordering::Acquire) }
}

/// Whether user code may not have these bytes in executable memory, since they would let it past what keeps it out of the kernel.
pub fn forbids_code(code: &[u8]) -> bool {
    boot::jail() == boot::Jail::Pkey && scan::hits(code).any(|hit| hit.kind.loads_keys())
}

/// Ends the sandbox with this exit code, from wherever the caller is.
pub fn stop_sandbox(code: u8) -> ! {
    let control = &boot::info().control;
    control.exit_code.store(u32::from(code), Ordering::SeqCst);
    control.ended.store(1, Ordering::SeqCst);
    channel::look();
    sys::exit_group(hosted::ENDED)
}

/// Whether the supervisor is gone: who asked for its signal after that gets none. Its end of the channel is gone with it.
pub fn is_orphaned() -> bool {
    // struct pollfd: the descriptor, then the events asked for (none) and those returned.
    let mut channel = u64::from(boot::info().channel as u32);
    // SAFETY: the word is ours.
    let ready = unsafe { sys::raw(nr::POLL, [&raw mut channel as usize, 1, 0, 0, 0, 0]) };
    ready.is_ok_and(|count| count == 1) && channel >> 48 & u64::from(event::HUP) != 0
}

/// [`Machine::wake_service`].
pub fn wake_service() {
    let word = &boot::info().control.service;
    if word.swap(1, Ordering::SeqCst) == 0 {
        spawn::unpark(word, 1);
    }
}

impl LinuxMachine {
    /// Prepares the calling process, the sandbox's first: drops what the supervisor had mapped, sets the signal handlers, arms
    /// the gate, raises the second wall. After this the machine is usable. `before` is called when all but the wall is there.
    pub fn start(
        gate: &'static dyn HostedGate,
        before: impl FnOnce(&LinuxMachine) -> Result<()>,
    ) -> Result<&'static LinuxMachine> {
        registers::find_layout()?;
        text::start();
        let mut set = [0u64; PROCESSORS / 64];
        // SAFETY: the array is ours.
        let bytes = unsafe { sys::raw(nr::SCHED_GETAFFINITY, [0, size_of_val(&set), set.as_mut_ptr() as usize, 0, 0, 0]) }?;
        let cpus = set[..bytes / 8].iter().map(|word| word.count_ones() as usize).sum::<usize>().max(1);
        let stack_stays = gate.queued().is_some();
        let machine = Box::leak(Box::new(LinuxMachine { gate, reactor: Reactor::new()?, cpus, cpu_set: set, stack_stays }));
        MACHINE.store(machine, Ordering::Release);
        entry::set_hooks(&HOOKS);
        Arc::new(HostedSpace).reset(false)?;
        vdso::map(gate.call_entry(boot::jail() == boot::Jail::Pkey))?;
        let mut secret = [0; 8];
        machine.random(&mut secret);
        // Never 0, which is what a used frame holds.
        spawn::register_barrier()?;
        signal::set_handlers(boot::jail(), u64::from_ne_bytes(secret) | 1, gate)?;
        // What stays on a stack could be taken for the head of a frame.
        // SAFETY: an array of ours.
        unsafe { (&raw mut secret).write_volatile([0; 8]) };
        gate.arm_sandbox()?;
        channel::listen(&machine.reactor)?;
        before(machine)?;
        wall::raise(gate.outside(), gate.queued())?;
        Ok(machine)
    }

    /// From here on programs may call functions of the kernel by address ([`call::on_direct_call`]). EPERM under a jail.
    pub fn allow_direct_calls(&self) -> Result<()> {
        if boot::jail() != boot::Jail::None {
            return Err(Errno::EPERM);
        }
        entry::set_hooks(&DIRECT_HOOKS);
        Ok(())
    }

    /// Where rewritten call sites jump, when the gate wants them rewritten.
    pub fn call_entry(&self) -> Option<usize> {
        self.gate.call_entry(boot::jail() == boot::Jail::Pkey)
    }

    /// Cores the sandbox may run on.
    pub fn cores(&self) -> usize {
        self.cpus
    }

    /// What it does for the jail, if that locks the kernel's memory by a key.
    pub fn ground(&self) -> Option<&'static dyn Ground> {
        (boot::jail() == boot::Jail::Pkey).then_some(&HostedSpace)
    }

    /// The first process' own thread from now on: `serve` does what is due (timers, the supervisor's requests) and returns when it
    /// wants to be called again; [`Machine::wake_service`] calls it earlier.
    pub fn serve(&'static self, mut serve: impl FnMut() -> Option<Nanos>) -> ! {
        let word = &boot::info().control.service;
        // Guests' timers wait in here: the 50 us by which the host may put off a sleeper's end would come on top of their lateness.
        let _ = sys::words(nr::PRCTL, [prctl::SET_TIMERSLACK as usize, 1, 0, 0, 0, 0]);
        if let Err(errno) = spawn::spawn_kernel(Box::new(|| get().reactor.run())) {
            self.console()
                .write(alloc::format!("janua: the kernel gets no thread of its own: {}\n", boot::refusal(errno)).as_bytes());
            stop_sandbox(125);
        }
        loop {
            word.store(0, Ordering::SeqCst);
            if spawn::forks()[1] >= spawn::OFTEN {
                heap::unite();
            }
            heap::prepare();
            let deadline = serve();
            let look = text::look();
            heap::give_back();
            window::close_left();
            if word.load(Ordering::SeqCst) == 0 {
                spawn::park(word, 0, deadline.into_iter().chain(look).min());
            }
        }
    }
}

struct Stderr;

impl Console for Stderr {
    fn write(&self, bytes: &[u8]) {
        sys::report(bytes);
    }
}

struct Futex;

impl Park for Futex {
    fn park(&self, word: &AtomicU32, expected: u32, deadline: Option<Nanos>) {
        spawn::park(word, expected, deadline);
    }
    fn unpark(&self, word: &AtomicU32, count: u32) {
        spawn::unpark(word, count);
    }
    fn yield_now(&self) {
        LockSleep::give_way();
    }
    fn spin(&self, word: &AtomicU32, expected: u32, limit: Nanos) -> Spun {
        if idle::spin(word, expected, limit) { Spun::Changed } else { Spun::Unchanged }
    }
}

impl Machine for LinuxMachine {
    fn clock(&self) -> &dyn Clock {
        &HostClock
    }
    fn console(&self) -> &dyn Console {
        &Stderr
    }
    fn park(&self) -> &dyn Park {
        &Futex
    }
    fn host(&self) -> Option<&dyn Host> {
        Some(&LinuxHost)
    }

    fn memory_object(&self, name: &str) -> Result<Arc<dyn MemoryObject>> {
        Ok(host::memory_object(name)?)
    }

    fn compat(&self) -> Option<&dyn Compat> {
        Some(&HostedCompat)
    }

    fn spawn_first(&self, guest: Arc<dyn Guest>) -> Result<(Arc<dyn Context>, Arc<dyn Space>)> {
        Ok((spawn::spawn_first(guest)?, Arc::new(HostedSpace)))
    }
    fn spawn_kernel(&self, _name: &'static str, body: Box<dyn FnOnce() + Send>) -> Result<()> {
        spawn::spawn_kernel(body)
    }
    fn wake_service(&self) {
        wake_service();
    }
    fn space_for(&self, kind: SpawnKind, parent: &Arc<dyn Space>) -> Result<NewSpace> {
        Ok(match kind {
            SpawnKind::Fork => NewSpace::Handle(Arc::new(HostedSpace)),
            SpawnKind::Thread | SpawnKind::SharedSpace => NewSpace::Whole(parent.clone()),
        })
    }

    fn isa(&self) -> Isa {
        Isa { fpu: registers::layout(), hwcap: boot::info().hwcap }
    }

    fn cpus(&self) -> usize {
        self.cpus
    }
    fn allowed(&self, word: usize) -> u64 {
        self.cpu_set.get(word).copied().unwrap_or(0)
    }
    fn cpu(&self) -> usize {
        let mut processor = 0u32;
        // SAFETY: the word is ours.
        let _ = unsafe { sys::raw(nr::GETCPU, [&raw mut processor as usize, 0, 0, 0, 0, 0]) };
        processor as usize
    }
    fn pin(&self, processor: usize) -> Result<()> {
        let mut set = [0; PROCESSORS / 64];
        *set.get_mut(processor / 64).ok_or(Errno::EINVAL)? = 1 << (processor % 64);
        usage::set_affinity(0, &set)
    }
    fn accounts(&self) -> &'static Accounts {
        boot::accounts()
    }
    fn resident_guests(&self, exact: Option<usize>) -> Option<usize> {
        usage::resident_guests(exact)
    }
    fn memory(&self) -> Memory {
        // `struct sysinfo`: uptime, three loads, total and free memory, ..., then the unit at byte 104.
        let mut info = [0u64; 14];
        // SAFETY: the array has the 112 bytes of the structure.
        if unsafe { sys::raw(nr::SYSINFO, [info.as_mut_ptr() as usize, 0, 0, 0, 0, 0]) }.is_err() {
            return Memory::default();
        }
        let unit = u64::from(info[13] as u32);
        let free = info[5].saturating_mul(unit);
        let mut text = [0; 512];
        let available = usage::read_small(b"meminfo", &mut text)
            .and_then(|text| text.lines().find_map(|line| line.strip_prefix("MemAvailable:")))
            .and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok())
            .map_or(free, |kib| kib.saturating_mul(1024));
        Memory { total: info[4].saturating_mul(unit), free, available }
    }
    fn random(&self, out: &mut [u8]) {
        random::fill(out);
    }
    fn vdso(&self) -> Option<[(usize, usize); 2]> {
        Some(vdso::ranges())
    }
    fn notify_outside(&self, event: Outside) {
        let control = &boot::info().control;
        match event {
            Outside::Stopped(signal) => {
                control.stopped.store(signal, Ordering::SeqCst);
                channel::look();
            }
            Outside::Ended(status) => control.status.store(status, Ordering::SeqCst),
            Outside::Answer(answer) => channel::answer(&answer),
            Outside::Over(code) => stop_sandbox(code),
        }
    }
}

/// Sleeping of contended locks.
pub struct LockSleep;

impl LockSleep {
    pub fn sleep(word: &AtomicU32, expected: u32) {
        spawn::park(word, expected, None);
    }
    pub fn wake(word: &AtomicU32) {
        spawn::unpark(word, 1);
    }
    pub fn give_way() {
        let _ = sys::words(nr::SCHED_YIELD, [0; 6]);
    }
}
