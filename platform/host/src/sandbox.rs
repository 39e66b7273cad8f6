//! A sandbox seen from outside: its memory is made, its first process started, its end awaited.

use alloc::vec::Vec;
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::Ordering;
use core::time::Duration;

use janua_entry::hosted::{self, CONFIG_BASE, CONTROL_BASE, USER_END};
use janua_platform_boot::{BootInfo, CONFIG_MOST, Control, DESCRIPTORS_MOST, Jail, MAGIC, NO_STATUS};
use janua_port::{Accounts, Answer, Request};

use crate::channel::{Channel, Garbage, READY};
use crate::group::fork_into;
use crate::namespaces::{self, Processes};
use crate::pause::stop_children;
use crate::processes::{HostProcess, children, descendants};
use crate::tiles::{self, Tile};
use crate::{image, memory, wall};

/// What a sandbox is made of.
pub struct Setup<'a> {
    /// The kernel image (ELF).
    pub image: &'a [u8],
    /// The gate's number.
    pub gate: u32,
    pub jail: Jail,
    /// What of the host the sandbox needs; all else it gives up.
    pub needs: wall::Needs<'a>,
    /// What its guests may have together.
    pub limits: Limits,
    /// The directory of a cgroup all its processes are to be in.
    pub group: Option<i32>,
    /// The personality's configuration, encoded.
    pub config: &'a [u8],
    /// Which tile it is, where there may be others.
    pub tile: Option<Tile>,
    /// For tests: an errno, and which of the host calls that could return it does so without being made; (0, 0) for none.
    pub fault: (u32, u64),
}

/// What the guests of a sandbox may have together; `usize::MAX` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory, those of the kernel's heap and of files in memory among them.
    pub memory: usize,
    /// Bytes of files in memory.
    pub disk: usize,
    /// Threads.
    pub threads: usize,
    /// Processors.
    pub cpus: usize,
    /// When the sandbox ends, from its start.
    pub time: Option<Duration>,
}

impl Limits {
    /// None at all.
    pub const NONE: Limits = Limits { memory: usize::MAX, disk: usize::MAX, threads: usize::MAX, cpus: usize::MAX, time: None };
}

/// Why a sandbox could not be started: what was tried, and the host's errno (0 when the host is not to blame).
#[derive(Clone, Copy, Debug)]
pub struct StartError {
    pub what: &'static str,
    pub errno: i32,
}

/// What the supervisor has to react to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The sandbox ended by itself with this exit code.
    Ended(u8),
    /// The first program was stopped by this signal.
    Stopped(u32),
    /// A host process of the sandbox was ended by somebody else: process and signal (0: it exited).
    Lost { pid: i32, signal: i32 },
    /// The supervisor itself got this signal.
    Signal(i32),
    /// Something has come: an answer ([`Sandbox::answer`]), or by a descriptor that is [announced](crate::channel::announce).
    Channel,
    /// The time is over.
    Timeout,
}

/// A running sandbox. The process that holds it is its supervisor and the host parent of all its processes.
pub struct Sandbox {
    init: i32,
    /// The first process of the sandbox's pid namespace, if it has one.
    first: Option<i32>,
    channel: Channel,
    old_mask: libc::sigset_t,
    signals: libc::sigset_t,
    /// The same without those that report ends.
    urgent: libc::sigset_t,
    /// Processes have ended just now: more are expected, and looked for at intervals.
    settling: bool,
    /// When the time is over, by CLOCK_MONOTONIC.
    deadline: Option<Duration>,
    /// Whether the host has put its processes into [`Setup::group`].
    grouped: bool,
}

/// How long the ended processes of a busy sandbox may wait to be reaped. Each one reaped at once would cost its siblings two
/// context switches.
const SETTLE: Duration = Duration::from_millis(2);

/// What the host sends for each process of the sandbox that has ended: they have it from the first ([`Sandbox::start`]), by CLONE_PARENT. It
/// is queued and names the process, which can be reaped by its number then; to report which of its children have ended, the host
/// would look at all that live, each time, while nobody can make or end a process.
const ENDED: i32 = 64;
/// So many at a time, and the host may have had no room in the queue for more.
const MANY: usize = 64;

/// CLOCK_MONOTONIC.
fn now() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}

/// What a look for ended processes found.
enum Reaped {
    Event(Event),
    /// So many ended as they should.
    Ended(usize),
}

/// Host signals the supervisor takes itself: events of the sandbox, and what is to be passed on.
const TAKEN: [i32; 15] = [
    ENDED,
    READY,
    // In place of the former when the host's queue is full.
    libc::SIGIO,
    libc::SIGCHLD,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGTSTP,
    libc::SIGCONT,
    libc::SIGWINCH,
    libc::SIGALRM,
    libc::SIGTTOU,
];

pub(crate) fn failed(what: &'static str) -> StartError {
    StartError { what, errno: crate::errno() }
}

fn write_boot_info(setup: &Setup<'_>, segments: &[image::Segment], channel: i32) -> Result<(), StartError> {
    let text = segments.iter().find(|segment| segment.is_mapped && segment.is_text());
    let (huge, mapped) = text.map_or((0..0, 0..0), |text| (text.huge(), text.range.clone()));
    if setup.config.len() > CONFIG_MOST {
        return Err(StartError { what: "arguments and environment are too long", errno: libc::E2BIG });
    }
    let maps = image::read_proc(c"/proc/self/maps").unwrap_or_default();
    // The vDSO stays where it is and guests map below it; one too low would leave them too little room.
    let vdso = image::vdso(&maps).filter(|vdso| vdso.start > USER_END - (16 << 40)).unwrap_or_default();
    let info = BootInfo {
        magic: MAGIC,
        gate: setup.gate,
        jail: setup.jail as u32,
        host_network: setup.needs.network.into(),
        host_writes: setup.needs.writes().into(),
        channel,
        proc: -1,
        proc_same_numbers: 0,
        // SAFETY: plain queries.
        hwcap: unsafe { [libc::getauxval(libc::AT_HWCAP), libc::getauxval(libc::AT_HWCAP2)] },
        vdso_start: vdso.start as u64,
        vdso_end: vdso.end as u64,
        vdso: vdso.functions,
        fault: setup.fault.0,
        fault_at: setup.fault.1,
        image_resident: image::resident(segments) as u64,
        text: [huge.start as u64, huge.end as u64],
        text_mapped: [mapped.start as u64, mapped.end as u64],
        text_resident: text.map_or(0, |text| image::resident(core::slice::from_ref(text))) as u64,
        tiles: setup.tile.as_ref().map_or(1, |tile| tile.count),
        tile: setup.tile.as_ref().map_or(0, |tile| tile.number),
        config_len: setup.config.len() as u64,
        control: Control {
            ended: 0.into(),
            exit_code: 0.into(),
            stopped: 0.into(),
            signals: 0.into(),
            service: 0.into(),
            faults: 0.into(),
            status: NO_STATUS.into(),
            accounts: Accounts::new(
                setup.limits.memory,
                setup.limits.disk,
                setup.limits.threads,
                descriptors_for_guests(&setup.needs),
            ),
        },
    };
    // SAFETY: the control part of the mapping, large enough (checked above).
    unsafe {
        (CONTROL_BASE as *mut BootInfo).write(info);
        let config = CONFIG_BASE as *mut u8;
        ptr::copy_nonoverlapping(setup.config.as_ptr(), config, setup.config.len());
    }
    Ok(())
}

// Where glibc 2.35 and later keeps its rseq area, from the thread pointer on, and how large it is; null with another C library. Weak
// references, because the command is a static program, in which nothing can be looked up by name.
core::arch::global_asm!(
    ".weak __rseq_offset",
    ".weak __rseq_size",
    ".pushsection .data.rel.ro.janua_rseq, \"aw\", @progbits",
    ".balign 8",
    "janua_rseq_offset: .quad __rseq_offset",
    "janua_rseq_size: .quad __rseq_size",
    ".popsection",
);

unsafe extern "C" {
    #[link_name = "janua_rseq_offset"]
    static RSEQ_OFFSET: *const isize;
    #[link_name = "janua_rseq_size"]
    static RSEQ_SIZE: *const u32;
}

/// Undoes what the C library registered with the host for this thread: the addresses are about to be unmapped.
fn forget_registrations() {
    // SAFETY: the words are glibc's own description of its rseq area, if it has one; the calls only take registrations back.
    unsafe {
        if !RSEQ_OFFSET.is_null() && !RSEQ_SIZE.is_null() && *RSEQ_SIZE > 0 {
            let base: usize;
            core::arch::asm!("mov {}, fs:0", out(reg) base);
            const UNREGISTER: i32 = 1;
            const SIGNATURE: u32 = 0x5305_3053;
            let area = base.wrapping_add_signed(*RSEQ_OFFSET);
            if libc::syscall(libc::SYS_rseq, area, 32, UNREGISTER, SIGNATURE) != 0 {
                libc::syscall(libc::SYS_rseq, area, (*RSEQ_SIZE).next_multiple_of(32), UNREGISTER, SIGNATURE);
            }
        }
        libc::syscall(libc::SYS_set_robust_list, 0, 24);
        libc::syscall(libc::SYS_set_tid_address, 0);
    }
}

/// What the kernel's process may have of the host's descriptors, which all guests share: all that the host allows, up to what the
/// kernel keeps account of.
fn descriptor_limit() -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_max.min(DESCRIPTORS_MOST as libc::rlim_t)
}

/// How many the kernel may make: what is shown and inherited, and a few of the supervisor's, are there already.
fn descriptors_for_guests(needs: &wall::Needs<'_>) -> usize {
    const OTHERS: usize = 16;
    (descriptor_limit() as usize).saturating_sub(needs.shown.len() + needs.inherited.len() + OTHERS)
}

/// Descriptors the host's table has room for from the start.
const DESCRIPTORS: libc::rlim_t = 4096;

/// Makes the host's descriptor table large while one process has it. Once it is shared, the host waits for all its processors, milliseconds
/// long, each time the table grows: at 64, 128, 256 files and so on.
fn make_room_for_descriptors(limit: libc::rlim_t) {
    // SAFETY: makes and closes descriptors of its own. Whatever the host refuses, the table grows later.
    unsafe {
        let any = libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        let last = libc::fcntl(any, libc::F_DUPFD_CLOEXEC, DESCRIPTORS.min(limit) as c_int - 1);
        for fd in [any, last].into_iter().filter(|fd| *fd >= 0) {
            libc::close(fd);
        }
    }
}

/// The first process: everything of the supervisor is left behind.
fn become_first(entry: usize, setup: &Setup<'_>, processes: Processes, channel: i32) -> ! {
    let needs = &setup.needs;
    // SAFETY: plain calls; then a jump to the kernel's entry on its own stack, from which nothing returns.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // The sandbox's guests share one host descriptor table. A hard limit beyond what is used of it is kept.
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = descriptor_limit();
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
            make_room_for_descriptors(limit.rlim_cur);
        }
        forget_registrations();
        crate::use_processors(setup.limits.cpus, None);
        if let Some(tile) = &setup.tile {
            crate::use_processors(tile.cores, Some(tile.first));
        }
        let proc = namespaces::enter(needs, processes);
        let info = CONTROL_BASE as *mut BootInfo;
        (*info).proc = proc.fd;
        (*info).proc_same_numbers = proc.same_numbers.into();
        if !needs.inherited.contains(&libc::STDERR_FILENO) {
            speak_without_waiting();
        }
        wall::close_others(needs, [proc.fd, channel]);
        // A supervisor that ended before the first line has sent no signal.
        let mut supervisor = libc::pollfd { fd: channel, events: 0, revents: 0 };
        if libc::poll(&raw mut supervisor, 1, 0) == 1 && supervisor.revents & libc::POLLHUP != 0 {
            libc::_exit(0);
        }
        wall::raise(needs, proc.fd, processes == Processes::Own, proc.own_tree);
        let area = hosted::area(0);
        let pid = libc::syscall(libc::SYS_getpid) as u32;
        (*area).shared.host_pid.store(pid, Ordering::Relaxed);
        (*area).shared.host_tid.store(pid, Ordering::Relaxed);
        core::arch::asm!(
            "mov rsp, {stack}",
            "xor ebp, ebp",
            "jmp {entry}",
            stack = in(reg) area as usize - 8,
            entry = in(reg) entry,
            options(noreturn),
        )
    }
}

/// Gives the calling process a standard error of its own that no call waits for, where that is a terminal or a pipe: who reads there, or a guest, could
/// hold up the kernel as it says why it ends somebody. What cannot be written is lost.
fn speak_without_waiting() {
    // SAFETY: plain calls; the structure is ours.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        let known = libc::fstat(libc::STDERR_FILENO, &raw mut stat) == 0;
        if !known || !matches!(stat.st_mode & libc::S_IFMT, libc::S_IFIFO | libc::S_IFCHR) {
            return;
        }
        let flags = libc::O_WRONLY | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
        let own = libc::open(c"/proc/self/fd/2".as_ptr(), flags);
        if own >= 0 {
            libc::dup2(own, libc::STDERR_FILENO);
            libc::close(own);
        }
    }
}

/// Waits for one of the signals, which are blocked; returns which, -1 for an error (EAGAIN when the time is over), and the process it came
/// from.
///
/// # Safety
/// The set is valid.
unsafe fn take_signal(set: *const libc::sigset_t, limit: Option<libc::timespec>) -> (i32, Option<i32>) {
    // SAFETY: an all-zero siginfo is valid; the set is the caller's.
    unsafe {
        let mut info: libc::siginfo_t = core::mem::zeroed();
        let signal = libc::sigtimedwait(set, &raw mut info, limit.as_ref().map_or(ptr::null(), ptr::from_ref));
        (signal, Some(info.si_pid()).filter(|pid| signal > 0 && *pid > 0))
    }
}

/// The next process whose end the host has reported.
fn next_ended() -> Option<i32> {
    // SAFETY: signal sets are plain data.
    let set = unsafe {
        let mut set: libc::sigset_t = core::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, ENDED);
        set
    };
    // SAFETY: the set is ours.
    unsafe { take_signal(&raw const set, Some(timespec(Duration::ZERO))) }.1
}

impl Sandbox {
    /// Makes the sandbox and starts its first process. Once per process, while it has a single thread.
    pub fn start(setup: &Setup<'_>) -> Result<Sandbox, StartError> {
        crate::found::ignore_file_size_signal();
        memory::map_memory()?;
        if let Some(tile) = &setup.tile {
            tiles::map(tile)?;
        }
        let deadline = setup.limits.time.map(|time| now().saturating_add(time));
        let (entry, segments) = memory::load(setup.image)?;
        let (channel, kernels) = Channel::pair()?;
        write_boot_info(setup, &segments, kernels)?;
        if setup.jail == Jail::Pkey {
            memory::lock(&segments, setup.tile.as_ref())?;
        }
        // SAFETY: signal sets are plain data; the process has one thread, so fork is safe.
        unsafe {
            let mut signals: libc::sigset_t = core::mem::zeroed();
            let mut old_mask: libc::sigset_t = core::mem::zeroed();
            libc::sigemptyset(&raw mut signals);
            for signal in TAKEN {
                libc::sigaddset(&raw mut signals, signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &raw const signals, &raw mut old_mask);
            // A process of the sandbox that lost its parent would be adopted by another process, which does not end it.
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1usize, 0usize, 0usize, 0usize);
            let Ok((processes, first)) = Processes::begin() else {
                return Err(failed("cannot start the first process of a pid namespace (clone)"));
            };
            let into_group = setup.group.map(|group| fork_into(group, ENDED)).filter(|first| *first >= 0);
            // fork(2), but for what the host sends at its end.
            match into_group.unwrap_or_else(|| libc::syscall(libc::SYS_clone, ENDED, 0, 0, 0, 0) as i32) {
                0 => become_first(entry, setup, processes, kernels),
                -1 => Err(failed("cannot start the kernel's first process (fork)")),
                init => {
                    libc::close(kernels);
                    let mut urgent = signals;
                    libc::sigdelset(&raw mut urgent, libc::SIGCHLD);
                    libc::sigdelset(&raw mut urgent, ENDED);
                    Ok(Sandbox {
                        init,
                        first,
                        channel,
                        old_mask,
                        signals,
                        urgent,
                        settling: false,
                        deadline,
                        grouped: into_group.is_some(),
                    })
                }
            }
        }
    }

    fn control(&self) -> &Control {
        // SAFETY: mapped and written by `start`; changes are atomic.
        unsafe { &(*(CONTROL_BASE as *const BootInfo)).control }
    }

    fn event(&self) -> Option<Event> {
        let control = self.control();
        if control.ended.load(Ordering::SeqCst) != 0 {
            return Some(Event::Ended(control.exit_code.load(Ordering::SeqCst) as u8));
        }
        match control.stopped.swap(0, Ordering::SeqCst) {
            0 => None,
            signal => Some(Event::Stopped(signal)),
        }
    }

    /// Waits for the next thing to react to.
    pub fn wait(&mut self) -> Event {
        loop {
            if let Some(event) = self.event() {
                return event;
            }
            let left = self.deadline.map(|deadline| deadline.saturating_sub(now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Event::Timeout;
            }
            let (set, settle) = match self.settling {
                true => (&raw const self.urgent, Some(SETTLE)),
                false => (&raw const self.signals, None),
            };
            let limit = settle.into_iter().chain(left).min().map(timespec);
            // SAFETY: the sets are ours, and blocked; so is the time.
            let (signal, pid) = unsafe { take_signal(set, limit) };
            let timeout = signal < 0 && crate::errno() == libc::EAGAIN;
            match signal {
                _ if timeout || signal == libc::SIGCHLD || signal == ENDED => {
                    match self.reap(pid.filter(|_| signal == ENDED)) {
                        Reaped::Event(event) => return event,
                        Reaped::Ended(count) => self.settling = count > 0,
                    }
                }
                READY | libc::SIGIO => return self.event().unwrap_or(Event::Channel),
                signal if signal > 0 => return Event::Signal(signal),
                _ => {}
            }
        }
    }

    /// Reaps those that have ended, `first` before the others.
    fn reap(&self, first: Option<i32>) -> Reaped {
        let mut count = 0;
        let mut next = first.or_else(next_ended);
        while let Some(pid) = next {
            if let Some(event) = self.reap_one(pid).and_then(Result::err) {
                return Reaped::Event(event);
            }
            count += 1;
            next = next_ended();
        }
        // At the end of a busy time, or if the queue may have been too short: has any child ended without a notice?
        if count == 0 || count >= MANY {
            while let Some(reaped) = self.reap_one(-1) {
                match reaped {
                    Ok(()) => count += 1,
                    Err(event) => return Reaped::Event(event),
                }
            }
        }
        Reaped::Ended(count)
    }

    /// Reaps a process, or any with -1. `None` when it has not ended, or has been reaped.
    fn reap_one(&self, pid: i32) -> Option<Result<(), Event>> {
        let mut status = 0;
        // SAFETY: the status is ours.
        let pid = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG | libc::__WALL) };
        if pid <= 0 {
            return None;
        }
        if let Some(event) = self.event() {
            return Some(Err(event));
        }
        if libc::WIFSIGNALED(status) {
            return Some(Err(Event::Lost { pid, signal: libc::WTERMSIG(status) }));
        }
        let lost = pid == self.init || libc::WEXITSTATUS(status) != i32::from(hosted::ENDED);
        Some(if lost { Err(Event::Lost { pid, signal: 0 }) } else { Ok(()) })
    }

    /// The wait status of the first program, once it has ended.
    pub fn status(&self) -> Option<u32> {
        Some(self.control().status.load(Ordering::SeqCst)).filter(|status| *status != NO_STATUS)
    }

    /// How many host calls could have failed as [`Setup::fault`] has it; `None` when it asks for nothing.
    pub fn faults(&self) -> Option<u64> {
        // SAFETY: as in `control`; `fault` never changes.
        let asked = unsafe { (*(CONTROL_BASE as *const BootInfo)).fault } != 0;
        asked.then(|| self.control().faults.load(Ordering::Relaxed))
    }

    /// Whether the sandbox is in the cgroup that was asked for; the host may have refused.
    pub fn is_grouped(&self) -> bool {
        self.grouped
    }

    /// What guests may have and what they have had. A compromised kernel may write there what it likes.
    pub fn accounts(&self) -> &Accounts {
        &self.control().accounts
    }

    /// Asks the kernel, with descriptors that stay open here. The host's errno: E2BIG for what is too long, EAGAIN when it does not listen.
    pub fn ask(&self, request: &Request, handed: &[i32]) -> Result<(), i32> {
        self.channel.send(request, handed)
    }

    /// The next answer that has come. Garbage means that the kernel is not itself any more.
    pub fn answer(&self) -> Option<Result<Answer, Garbage>> {
        self.channel.receive()
    }

    /// The sandbox's processes on the host.
    pub fn processes(&self) -> Vec<HostProcess> {
        let own_numbers = self.first.is_some();
        let all = descendants().unwrap_or_default().into_iter().filter(|pid| Some(*pid) != self.first);
        all.filter_map(|pid| HostProcess::look(pid, own_numbers)).collect()
    }

    /// Passes a host signal on to the kernel, for the group in the terminal's foreground or the first program. `false` when the
    /// kernel has not even taken the same signal that was passed on before.
    pub fn signal(&self, signal: i32) -> bool {
        let control = self.control();
        // Bit n-1 for signal n, as in the sets of the kernel.
        let before = control.signals.fetch_or(1 << (signal - 1), Ordering::SeqCst);
        if control.service.swap(1, Ordering::SeqCst) == 0 {
            // SAFETY: wakes sleepers on a word of the shared mapping.
            unsafe { libc::syscall(libc::SYS_futex, &raw const control.service, libc::FUTEX_WAKE, 1) };
        }
        before & 1 << (signal - 1) == 0
    }

    /// Ends every process of the sandbox and waits until they are gone. Processes being born are children of this process
    /// too, so that none slips through.
    pub fn destroy(self) {
        // SAFETY: kills and reaps children of this process; then its own mask is put back.
        unsafe {
            let mut any_left = true;
            let mut again = false;
            while any_left {
                if again {
                    // Who is still there was born meanwhile, by those who had not been killed yet.
                    let _ = stop_children(&mut alloc::collections::BTreeSet::new());
                }
                again = true;
                libc::kill(self.init, libc::SIGKILL);
                // With it the host kills all that are in the namespace, which needs no list.
                self.first.map(|first| libc::kill(first, libc::SIGKILL));
                let Some(killed) = children() else {
                    // Without a namespace those that cannot be listed end as this process does (PR_SET_PDEATHSIG).
                    while libc::waitpid(self.first.map_or(self.init, |_| -1), ptr::null_mut(), libc::__WALL) > 0 {}
                    break;
                };
                for &child in &killed {
                    libc::kill(child, libc::SIGKILL);
                }
                // As many as have been killed, before the next look: it costs as much as there are. One if the list cannot be read.
                any_left = (0..killed.len().max(1)).all(|_| libc::waitpid(-1, ptr::null_mut(), libc::__WALL) > 0);
            }
            // Signals of an end that has been acted on may still be pending, and so may processes'; their default action would be ours.
            libc::signal(READY, libc::SIG_IGN);
            libc::signal(libc::SIGIO, libc::SIG_IGN);
            libc::signal(ENDED, libc::SIG_IGN);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const self.old_mask, ptr::null_mut());
        }
    }
}

/// What the processes of a sandbox that has ended have used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    pub user: Duration,
    pub system: Duration,
    /// Bytes that the largest process had resident, with what the kernel has of it.
    pub resident: usize,
}

/// What all children of this process that have been waited for have used.
pub fn used_by_children() -> Used {
    // SAFETY: an all-zero rusage is valid, and it is ours.
    let usage = unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Used { user: time(usage.ru_utime), system: time(usage.ru_stime), resident: (usage.ru_maxrss as usize) << 10 }
}

/// Whether this is an open descriptor.
pub fn is_open(fd: i32) -> bool {
    // SAFETY: plain words.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

/// Whether this is an open descriptor that can be written to.
pub fn is_writable(fd: i32) -> bool {
    // SAFETY: plain words.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_ACCMODE != libc::O_RDONLY && flags & libc::O_PATH == 0
}

/// Closes descriptors by number, which nobody here uses any more.
pub fn close(fds: impl IntoIterator<Item = i32>) {
    for fd in fds {
        // SAFETY: a plain word, which by the caller's promise nothing else depends on.
        unsafe { libc::close(fd) };
    }
}

/// Writes all of it to a descriptor by number. The error is errno's.
pub fn write_to(fd: i32, mut bytes: &[u8]) -> Result<(), i32> {
    while !bytes.is_empty() {
        // SAFETY: a slice of ours.
        let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(count) if count > 0 => bytes = &bytes[count..],
            Err(_) if crate::errno() == libc::EINTR => {}
            Ok(_) => return Err(libc::EIO),
            Err(_) => return Err(crate::errno()),
        }
    }
    Ok(())
}
