//! The machine the kernel sees.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_arch::x86_64::hosted::USER_END;
use janua_arch::x86_64::segments::{self, Segments};
use janua_arch::x86_64::{cpu, entry, hosted};
use janua_port::machine::{Memory, Outside, Residency, Scheduled, ThreadId, Usage, Whose};
use janua_port::{
    Accounts, Clock, Compat, Console, Guest, Host, HostedGate, Machine, Nanos, Park, Plain, Space, Spawn, SpawnKind, UserMemory,
};
use janua_text::scan;

use crate::clock::HostClock;
use crate::compat::HostedCompat;
use crate::host::LinuxHost;
use crate::reactor::Reactor;
use crate::space::HostedSpace;
use crate::sys::{self, nr};
use crate::user::HostedUser;
use crate::{boot, channel, heap, random, signal, spawn, usage, vdso, wall};

/// The linux platform as a machine; one in a sandbox.
pub struct LinuxMachine {
    pub gate: &'static dyn HostedGate,
    pub reactor: Reactor,
    /// XSAVE components guests may use, and the bytes they take in the standard form.
    fpu_mask: u64,
    fpu_size: usize,
    cpus: usize,
    /// They as a set, bit n of which is processor n.
    cpu_set: [u64; 128],
    /// Whether the signal stack outlasts the signals put on it: where user code calls by signals.
    pub stack_stays: bool,
}

static MACHINE: AtomicPtr<LinuxMachine> = AtomicPtr::new(core::ptr::null_mut());

static HOOKS: entry::Hooks = entry::Hooks {
    on_call: signal::on_call,
    on_signal: signal::on_signal,
    on_nested: signal::on_nested,
    child_main: spawn::child_main,
    on_answered: signal::on_answered,
};

/// Those of a kernel that lets programs call its functions by address.
static DIRECT_HOOKS: entry::Hooks = entry::Hooks { on_call: signal::on_direct_call, ..HOOKS };

/// The machine, for the platform's own code.
pub fn get() -> &'static LinuxMachine {
    // SAFETY: set by `LinuxMachine::start` from a leaked box before any guest exists.
    unsafe { &*MACHINE.load(Ordering::Acquire) }
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
    const POLLHUP: u64 = 0x10;
    // struct pollfd: the descriptor, then the events asked for (none) and those returned.
    let mut channel = u64::from(boot::info().channel as u32);
    // SAFETY: the word is ours.
    let ready = unsafe { sys::raw(nr::POLL, [&raw mut channel as usize, 1, 0, 0, 0, 0]) };
    ready.is_ok_and(|count| count == 1) && channel >> 48 & POLLHUP != 0
}

/// [`Machine::wake_service`].
pub fn wake_service() {
    let word = &boot::info().control.service;
    if word.swap(1, Ordering::SeqCst) == 0 {
        spawn::unpark(word, 1);
    }
}

/// Largest XSAVE area passed to guests.
const FPU_MOST: usize = 4096;

#[repr(C, align(64))]
struct FpuArea([u8; FPU_MOST]);

/// Components guests may use: everything switched on but PKRU (bit 9), whose value is never taken from memory, and AMX
/// (17, 18), which the host gives only on request.
fn fpu_layout() -> (u64, usize) {
    let mask = cpu::xcr0() & !(1 << 9 | 1 << 17 | 1 << 18);
    let end = (2..63).filter(|bit| mask & (1 << bit) != 0).map(|bit| {
        let [size, offset, ..] = cpu::cpuid(0xd, bit);
        (size + offset) as usize
    });
    (mask, end.fold(576, usize::max))
}

impl LinuxMachine {
    /// Prepares the calling process, the sandbox's first: drops what the supervisor had mapped, sets the signal handlers, arms
    /// the gate, raises the second wall. After this the machine is usable.
    pub fn start(gate: &'static dyn HostedGate) -> Result<&'static LinuxMachine> {
        let (fpu_mask, fpu_size) = fpu_layout();
        if fpu_size > FPU_MOST {
            return Err(Errno::EOPNOTSUPP);
        }
        let mut set = [0u64; 128];
        // SAFETY: the array is ours.
        let bytes = unsafe { sys::raw(nr::SCHED_GETAFFINITY, [0, size_of_val(&set), set.as_mut_ptr() as usize, 0, 0, 0]) }?;
        let cpus = set[..bytes / 8].iter().map(|word| word.count_ones() as usize).sum::<usize>().max(1);
        let stack_stays = gate.queued().is_some();
        let machine = Box::leak(Box::new(LinuxMachine {
            gate,
            reactor: Reactor::new()?,
            fpu_mask,
            fpu_size,
            cpus,
            cpu_set: set,
            stack_stays,
        }));
        MACHINE.store(machine, Ordering::Release);
        entry::set_hooks(&HOOKS);
        Arc::new(HostedSpace).reset(false)?;
        vdso::map(gate.call_entry(boot::jail() == boot::Jail::Pkey))?;
        let mut secret = [0; 8];
        machine.random(&mut secret);
        // Never 0, which is what a used frame holds.
        spawn::register_barrier()?;
        signal::set_handlers(boot::jail(), u64::from_ne_bytes(secret) | 1, gate.queued())?;
        // What stays on a stack could be taken for the head of a frame.
        // SAFETY: an array of ours.
        unsafe { (&raw mut secret).write_volatile([0; 8]) };
        gate.arm_sandbox()?;
        channel::listen(&machine.reactor)?;
        wall::raise(gate.outside(), gate.queued())?;
        Ok(machine)
    }

    /// From here on programs may call functions of the kernel by address ([`signal::on_direct_call`]). EPERM under a jail.
    pub fn allow_direct_calls(&self) -> Result<()> {
        if boot::jail() != boot::Jail::None {
            return Err(Errno::EPERM);
        }
        entry::set_hooks(&DIRECT_HOOKS);
        Ok(())
    }

    /// Cores the sandbox may run on.
    pub fn cores(&self) -> usize {
        self.cpus
    }

    /// The first process' own thread from now on: `serve` does what is due (timers, the supervisor's requests) and answers when it
    /// wants to be called again; [`Machine::wake_service`] calls it earlier.
    pub fn serve(&'static self, mut serve: impl FnMut() -> Option<Nanos>) -> ! {
        let word = &boot::info().control.service;
        if let Err(errno) = spawn::spawn_kernel(Box::new(|| get().reactor.run())) {
            self.console()
                .write(alloc::format!("janua: the host gives the kernel no thread of its own: {errno:?}\n").as_bytes());
            stop_sandbox(125);
        }
        loop {
            word.store(0, Ordering::SeqCst);
            if spawn::forks()[1] >= spawn::OFTEN {
                heap::unite();
            }
            let deadline = serve();
            heap::give_back();
            if word.load(Ordering::SeqCst) == 0 {
                spawn::park(word, 0, deadline);
            }
        }
    }
}

struct Stderr;

impl Console for Stderr {
    fn write(&self, bytes: &[u8]) {
        sys::write_all(2, bytes);
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
        let _ = sys::words(nr::SCHED_YIELD, [0; 6]);
    }
}

const ARCH_SET_GS: usize = 0x1001;
const ARCH_SET_FS: usize = 0x1002;
const ARCH_GET_FS: usize = 0x1003;
const ARCH_GET_GS: usize = 0x1004;

fn get_base(what: usize) -> usize {
    let mut base = 0usize;
    // SAFETY: the word is ours.
    let _ = unsafe { sys::raw(nr::ARCH_PRCTL, [what, &raw mut base as usize, 0, 0, 0, 0]) };
    base
}

impl LinuxMachine {
    /// Whether user code may read and set the bases of FS and GS without the host.
    fn has_base_instructions(&self) -> bool {
        const HWCAP2_FSGSBASE: u64 = 1 << 1;
        boot::info().hwcap[1] & HWCAP2_FSGSBASE != 0
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
    fn user(&self) -> &dyn UserMemory {
        &HostedUser
    }
    fn host(&self) -> Option<&dyn Host> {
        Some(&LinuxHost)
    }

    fn compat(&self) -> Option<&dyn Compat> {
        Some(&HostedCompat)
    }

    fn spawn(&self, spawn: Spawn) -> Result<ThreadId> {
        spawn::spawn(spawn)
    }
    fn spawn_first(&self, guest: Arc<dyn Guest>) -> Result<(ThreadId, Arc<dyn Space>)> {
        Ok((spawn::spawn_first(guest)?, Arc::new(HostedSpace)))
    }
    fn spawn_kernel(&self, _name: &'static str, body: Box<dyn FnOnce() + Send>) -> Result<()> {
        spawn::spawn_kernel(body)
    }
    fn current(&self) -> ThreadId {
        // Every thread runs on its area's stack while it is in the kernel.
        let here = 0u8;
        ThreadId(hosted::index_of(&raw const here as usize) as u64 + 1)
    }
    fn kick(&self, thread: ThreadId) {
        spawn::kick(thread);
    }
    fn set_plain(&self, plain: Option<Plain<'_>>) {
        spawn::set_plain(plain);
    }
    fn wake_service(&self) {
        wake_service();
    }
    fn space_for(&self, kind: SpawnKind, parent: &Arc<dyn Space>) -> Result<Arc<dyn Space>> {
        Ok(match kind {
            SpawnKind::Fork => Arc::new(HostedSpace),
            SpawnKind::Thread | SpawnKind::SharedSpace => parent.clone(),
        })
    }

    fn tls(&self) -> usize {
        // SAFETY: the host has said that the instruction is there.
        if self.has_base_instructions() { unsafe { segments::fs_base() } } else { get_base(ARCH_GET_FS) }
    }
    fn set_tls(&self, value: usize) {
        if self.has_base_instructions() && Segments::current().fs == 0 && value < USER_END {
            // SAFETY: the host has said that the instruction is there; the base is canonical.
            return unsafe { segments::set_fs_base(value) };
        }
        let _ = sys::words(nr::ARCH_PRCTL, [ARCH_SET_FS, value, 0, 0, 0, 0]);
    }
    fn gs(&self) -> usize {
        // SAFETY: the host has said that the instruction is there.
        if self.has_base_instructions() { unsafe { segments::gs_base() } } else { get_base(ARCH_GET_GS) }
    }
    fn set_gs(&self, value: usize) {
        if self.has_base_instructions() && Segments::current().gs == 0 && value < USER_END {
            // SAFETY: the host has said that the instruction is there; the base is canonical.
            return unsafe { segments::set_gs_base(value) };
        }
        let _ = sys::words(nr::ARCH_PRCTL, [ARCH_SET_GS, value, 0, 0, 0, 0]);
    }

    fn fpu_size(&self) -> usize {
        self.fpu_size
    }

    fn fpu_features(&self) -> u64 {
        self.fpu_mask
    }

    fn fpu_save(&self, area: &mut [u8]) {
        let mut own = FpuArea([0; FPU_MOST]);
        // SAFETY: the buffer is aligned, zeroed (so the header is) and as large as the components of the mask need.
        unsafe { hosted::hosted_fpu_store(own.0.as_mut_ptr(), self.fpu_mask) };
        let len = area.len().min(self.fpu_size);
        area[..len].copy_from_slice(&own.0[..len]);
    }

    fn fpu_restore(&self, area: &[u8]) -> Result<()> {
        if area.len() < 512 {
            return Err(Errno::EINVAL);
        }
        let mut own = FpuArea([0; FPU_MOST]);
        let len = area.len().min(self.fpu_size);
        own.0[..len].copy_from_slice(&area[..len]);
        // MXCSR: reserved bits would fault.
        own.0[26..28].fill(0);
        let mask = if len < 576 { 3 } else { self.fpu_mask };
        let present = if len < 576 { 3u64 } else { u64::from_le_bytes(own.0[512..520].try_into().unwrap_or_default()) };
        own.0[512..520].copy_from_slice(&(present & mask).to_le_bytes());
        own.0[520..576].fill(0);
        // SAFETY: aligned, large enough, and the header is clean: only components of the mask, standard form.
        unsafe { hosted::hosted_fpu_load(own.0.as_ptr(), self.fpu_mask) };
        Ok(())
    }

    fn fpu_restore_part(&self, area: &[u8], mask: u64) -> Result<()> {
        const COMPACTED: u64 = 1 << 63;
        if area.len() < 576 || area.len() > FPU_MOST {
            return Err(Errno::EINVAL);
        }
        let mut own = FpuArea([0; FPU_MOST]);
        own.0[..area.len()].copy_from_slice(area);
        let word = |at: usize| u64::from_le_bytes(own.0[at..at + 8].try_into().unwrap_or_default());
        let (present, layout) = (word(512), word(520));
        let allowed = if layout & COMPACTED != 0 { layout & !COMPACTED } else { self.fpu_mask };
        let fine = present & !allowed == 0
            && allowed & !self.fpu_mask == 0
            && (layout == 0 || layout & COMPACTED != 0)
            && own.0[528..576].iter().all(|&byte| byte == 0);
        // MXCSR is loaded whenever SSE or AVX is asked for, but from the compacted form only with SSE's own state: `xsavec`
        // leaves the bytes as they were when there is none.
        const SSE: u64 = 1 << 1;
        let loads_mxcsr = layout & COMPACTED == 0 || present & SSE != 0;
        if !fine || loads_mxcsr && own.0[26..28] != [0; 2] {
            return Err(Errno::EINVAL);
        }
        // SAFETY: aligned; the header names only components guests may use, whose bytes lie in the buffer in either form, since
        // the compacted one is never longer than the standard one; reserved bits are zero.
        unsafe { hosted::hosted_fpu_load(own.0.as_ptr(), mask & self.fpu_mask) };
        Ok(())
    }

    fn fpu_reset(&self) {
        let mut own = FpuArea([0; FPU_MOST]);
        // MXCSR's start value; it is loaded even where the header says "initial".
        own.0[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
        // SAFETY: aligned, and a header of zeroes means the initial state of every component.
        unsafe { hosted::hosted_fpu_load(own.0.as_ptr(), self.fpu_mask) };
    }

    fn locks_by_key(&self) -> bool {
        boot::jail() == boot::Jail::Pkey
    }

    fn cpus(&self) -> usize {
        self.cpus
    }
    fn allowed(&self, word: usize) -> u64 {
        self.cpu_set.get(word).copied().unwrap_or(0)
    }
    fn hwcap(&self) -> [u64; 2] {
        boot::info().hwcap
    }
    fn cpu(&self) -> usize {
        let mut processor = 0u32;
        // SAFETY: the word is ours.
        let _ = unsafe { sys::raw(nr::GETCPU, [&raw mut processor as usize, 0, 0, 0, 0, 0]) };
        processor as usize
    }
    fn set_affinity(&self, thread: Option<ThreadId>, mask: &[u64]) -> Result<()> {
        let tid = thread.map_or(0, |thread| spawn::host_tid(thread) as usize);
        // SAFETY: the array is the caller's.
        unsafe { sys::raw(nr::SCHED_SETAFFINITY, [tid, size_of_val(mask), mask.as_ptr() as usize, 0, 0, 0]) }.map(|_| ())
    }
    fn read_remote(&self, thread: ThreadId, addr: usize, out: &mut [u8]) -> Result<usize> {
        spawn::remote(nr::PROCESS_VM_READV, thread, addr, out.as_mut_ptr() as usize, out.len())
    }
    fn write_remote(&self, thread: ThreadId, addr: usize, data: &[u8]) -> Result<usize> {
        spawn::remote(nr::PROCESS_VM_WRITEV, thread, addr, data.as_ptr() as usize, data.len())
    }
    fn resident(&self, thread: ThreadId) -> Option<u64> {
        let (pid, _) = spawn::host_ids(thread)?;
        let mut text = [0; 128];
        // Pages of the whole, then those in memory.
        let text = usage::read_small(&usage::of_process(pid, "statm").ok()?, &mut text)?;
        text.split(' ').nth(1)?.parse::<u64>().ok()?.checked_mul(4096)
    }
    fn accounts(&self) -> &'static Accounts {
        boot::accounts()
    }
    fn resident_guests(&self, exact: Option<usize>) -> Option<usize> {
        usage::resident_guests(exact)
    }
    fn resident_own(&self, thread: ThreadId) -> Option<usize> {
        usage::resident_own(thread)
    }
    fn outer_number(&self, thread: ThreadId) -> Option<u32> {
        spawn::host_ids(thread).map(|(pid, _)| pid)
    }
    fn usage(&self, whose: Whose) -> Option<Usage> {
        usage::usage(whose)
    }
    fn residency(&self, thread: ThreadId, each: &mut dyn FnMut(&Residency)) -> Result<()> {
        usage::residency(thread, each)
    }
    fn page_map(&self, thread: ThreadId, addr: usize, out: &mut [u64]) -> Result<()> {
        usage::page_map(thread, addr, out)
    }
    fn scheduled(&self, thread: ThreadId) -> Option<Scheduled> {
        usage::scheduled(thread)
    }
    fn set_nice(&self, thread: ThreadId, nice: i32) -> Result<()> {
        usage::set_nice(thread, nice)
    }
    fn set_name(&self, name: &[u8]) {
        const PR_SET_NAME: usize = 15;
        let mut text = *b"janua:\0\0\0\0\0\0\0\0\0\0";
        // What does not fit with the byte that ends it is cut.
        for (to, from) in text[6..15].iter_mut().zip(name) {
            *to = *from;
        }
        let _ = sys::words(nr::PRCTL, [PR_SET_NAME, text.as_ptr() as usize, 0, 0, 0, 0]);
    }
    fn membarrier(&self, command: u32, flags: u32, cpu: u32) -> Result<usize> {
        sys::words(nr::MEMBARRIER, [command as usize, flags as usize, cpu as usize, 0, 0, 0])
    }
    fn peak_resident(&self) -> u64 {
        usage::peak_resident()
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
    fn call_entry(&self) -> Option<usize> {
        self.gate.call_entry(boot::jail() == boot::Jail::Pkey)
    }
    fn restore_entry(&self) -> Option<usize> {
        self.locks_by_key().then_some(entry::hosted_restore as *const () as usize)
    }
    fn door(&self) -> (usize, [usize; 3]) {
        let (pid, tid) = spawn::host_ids(self.current()).unwrap_or_default();
        self.gate.door(boot::jail() == boot::Jail::Pkey, pid, tid)
    }
    fn forbids_code(&self, code: &[u8]) -> bool {
        self.locks_by_key() && scan::hits(code).any(|hit| hit.kind.loads_keys())
    }
    fn vdso(&self) -> Option<usize> {
        Some(vdso::ranges()[1].0)
    }
    fn vdso_ranges(&self) -> Option<[(usize, usize); 2]> {
        Some(vdso::ranges())
    }
    fn power_off(&self, code: u8) -> ! {
        stop_sandbox(code)
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
}
