//! The second wall: the host calls the kernel makes, and a filter that lets no other pass.
//!
//! [`nr`] is the only source of [`Call`]s, so a call of this crate that the list lacks does not compile. The filter is set in the
//! first process before there are guests; every thread and process inherits it and none can take it off. It looks at the
//! instruction pointer first: what does not come from kernel text is a guest's call that no gate caught, and ends its process
//! (a gate that traps by filter has it trapped instead, see [`janua_port::gate::Outside`]). What comes from kernel text must be
//! in the list, with arguments as the list specifies; anything else means that the kernel is no longer its own master.

use alloc::vec::Vec;

use janua_abi::linux::fcntl::F_GETFL;
use janua_abi::linux::net::{SockFilter as Filter, SockProgram, bpf, ioctl as socket};
use janua_abi::linux::prctl::{self, arch};
use janua_abi::linux::ptrace::{ARCH_I386, ARCH_X86_64, request};
use janua_abi::linux::seccomp::data::{ARCH, ARGS, IP_HIGH, IP_LOW, NUMBER};
use janua_abi::linux::seccomp::verdict::{ALLOW, KILL_PROCESS, TRAP};
use janua_abi::linux::termios::request as tty;
use janua_abi::linux::vsyscall;
use janua_abi::linux::{Errno, Result};
use janua_entry::hosted::entry::KERNEL_KEY;
use janua_entry::hosted::hostcall::hostcall;
use janua_entry::hosted::{KERNEL_BASE, KICK};
use janua_port::PAGE;
use janua_port::gate::Outside;

use crate::{boot, identity, spawn};

/// The number of a host call the kernel may make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call(u16);

impl Call {
    /// The number as the host takes it.
    pub const fn number(self) -> usize {
        self.0 as usize
    }
}

/// When a call in the list passes.
#[derive(Clone, Copy)]
enum When {
    /// Whatever its arguments.
    Always,
    /// The lower word of an argument is one of these.
    OneOf(u8, &'static [u32]),
    /// An argument has no bit but these in its lower word, none in its upper, and at least one of the second.
    Only(u8, u32, u32),
    /// The sandbox uses the host's network.
    Network,
    /// It does, and the lower word of the first argument is one of these.
    NetworkOf(&'static [u32]),
    /// It does, or the first argument is the channel to the supervisor.
    Channel,
    /// The sandbox may change files of the host.
    Writing,
    /// Guests are in processes that the kernel traces.
    Traced,
    /// They are, and the lower word of an argument is one of these.
    TracedOf(u8, &'static [u32]),
}

use When::{Always, Channel, Network, NetworkOf, OneOf, Only, Traced, TracedOf, Writing};

/// A row of the list.
struct Row {
    call: Call,
    when: When,
}

macro_rules! host_calls {
    ($($number:literal $name:ident $when:expr, $reason:literal;)*) => {
        /// The host calls of this platform (x86-64 numbers), each with what it is for.
        pub mod nr {
            use super::Call;
            $(#[doc = $reason] pub const $name: Call = Call($number);)*
        }
        const ROWS: &[Row] = &[$(Row { call: nr::$name, when: $when }),*];
    };
}

host_calls! {
    0 READ Always, "files and streams of the host";
    1 WRITE Always, "files and streams of the host, reports on standard error";
    3 CLOSE Always, "descriptors of the host";
    7 POLL Always, "whether a stream of the host is ready";
    8 LSEEK Always, "the position an inherited descriptor shares with the outside";
    9 MMAP Always, "guest mappings, after the checks of `space`";
    10 MPROTECT Always, "guest mappings, after the checks of `space`";
    11 MUNMAP Always, "guest mappings, after the checks of `space`";
    13 RT_SIGACTION Always, "the handlers, once";
    14 RT_SIGPROCMASK Always, "no signal while a thread changes its stack or ends";
    15 RT_SIGRETURN Always, "back into kernel code that a signal interrupted";
    16 IOCTL OneOf(1, IOCTLS), "the terminal outside, and questions to sockets; never one that puts input into a terminal";
    17 PREAD64 Always, "files of the host";
    18 PWRITE64 Always, "files of the host";
    24 SCHED_YIELD Always, "a lock holder is to run";
    25 MREMAP Always, "guest mappings, after the checks of `space`";
    26 MSYNC Always, "guest mappings, after the checks of `space`";
    27 MINCORE Always, "guest mappings, after the checks of `space`";
    28 MADVISE Always, "guest mappings, after the checks of `space`; guards of kernel stacks";
    41 SOCKET NetworkOf(FAMILIES), "sockets of the host; never one that leads to its other programs by a name of a file";
    42 CONNECT Network, "sockets of the host";
    46 SENDMSG Network, "sockets of the host";
    47 RECVMSG Channel, "requests of the supervisor, with descriptors; sockets of the host";
    48 SHUTDOWN Network, "sockets of the host";
    49 BIND Network, "sockets of the host";
    50 LISTEN Network, "sockets of the host";
    51 GETSOCKNAME Network, "sockets of the host";
    52 GETPEERNAME Network, "sockets of the host";
    54 SETSOCKOPT Network, "sockets of the host";
    55 GETSOCKOPT Network, "sockets of the host";
    56 CLONE Only(0, spawn::CLONE_FLAGS, spawn::CLONE_PARENT_OR_THREAD), "threads and processes for guests, all of them the supervisor's children; never a namespace or a traced child";
    60 EXIT Always, "the end of a thread";
    61 WAIT4 Traced, "stops of traced threads, and the end of their processes";
    72 FCNTL OneOf(1, &[F_GETFL]), "the flags of an inherited descriptor";
    74 FSYNC Always, "files of the host";
    75 FDATASYNC Always, "files of the host";
    77 FTRUNCATE Always, "files of the host";
    91 FCHMOD Writing, "files of writable binds";
    93 FCHOWN Writing, "files of writable binds";
    98 GETRUSAGE Always, "the most memory a guest has had";
    99 SYSINFO Always, "how much memory there is";
    101 PTRACE TracedOf(0, TRACING), "guests' threads are run by it: none but the kernel's own children";
    131 SIGALTSTACK Always, "a thread's kernel stack is where the host's signals arrive";
    138 FSTATFS Always, "files of the host";
    141 SETPRIORITY OneOf(0, &[PRIO_PROCESS]), "nice values of guest threads";
    157 PRCTL OneOf(0, &[prctl::SET_PDEATHSIG, prctl::SET_NAME, prctl::SET_TIMERSLACK, prctl::SET_SYSCALL_USER_DISPATCH]), "end with the supervisor; names for ps; timers in time; the gate";
    158 ARCH_PRCTL OneOf(0, &[arch::SET_GS, arch::SET_FS, arch::GET_FS, arch::GET_GS]), "a guest's thread pointer";
    186 GETTID Always, "a thread's host id";
    190 FSETXATTR Writing, "files of writable binds";
    193 FGETXATTR Always, "files of the host";
    196 FLISTXATTR Always, "files of the host";
    199 FREMOVEXATTR Writing, "files of writable binds";
    202 FUTEX Always, "waiting";
    203 SCHED_SETAFFINITY Always, "a guest's own choice of processors";
    204 SCHED_GETAFFINITY Always, "how many processors there are";
    217 GETDENTS64 Always, "files of the host";
    219 RESTART_SYSCALL Always, "a wait that goes on after the host has stopped the process and continued it: made by the host itself";
    228 CLOCK_GETTIME Always, "clocks the host's vDSO does not serve";
    231 EXIT_GROUP Always, "the end of a process";
    233 EPOLL_CTL Always, "readiness of descriptors of the host";
    234 TGKILL OneOf(2, &[KICK]), "a thread in user code is to enter the kernel";
    247 WAITID Traced, "whether another thread's traced one is stopped";
    258 MKDIRAT Writing, "files of writable binds";
    259 MKNODAT Writing, "files of writable binds";
    260 FCHOWNAT Writing, "files of writable binds";
    263 UNLINKAT Writing, "files of writable binds";
    265 LINKAT Writing, "files of writable binds";
    266 SYMLINKAT Writing, "files of writable binds";
    267 READLINKAT Always, "files of the host";
    268 FCHMODAT Writing, "files of writable binds";
    280 UTIMENSAT Always, "files of writable binds, and those in memory that are a memfd";
    281 EPOLL_PWAIT Always, "readiness of descriptors of the host";
    285 FALLOCATE Always, "files of the host";
    288 ACCEPT4 Network, "sockets of the host";
    291 EPOLL_CREATE1 Always, "readiness of descriptors of the host";
    306 SYNCFS Always, "files of the host";
    309 GETCPU Always, "the processor a guest runs on";
    310 PROCESS_VM_READV Always, "memory of another guest process, checked like a guest's own";
    311 PROCESS_VM_WRITEV Always, "memory of another guest process, checked like a guest's own";
    316 RENAMEAT2 Writing, "files of writable binds";
    317 SECCOMP OneOf(0, &[SET_MODE_FILTER]), "a filter of a process' own, which can only forbid more";
    318 GETRANDOM Always, "random bytes";
    319 MEMFD_CREATE Always, "memory of files in memory, once it is mapped or large";
    324 MEMBARRIER Always, "barriers between the threads of a guest";
    328 PWRITEV2 Always, "the end of a file of a writable bind or of one that was inherited, found and written to in one step";
    329 PKEY_MPROTECT OneOf(3, &[KERNEL_KEY]), "the kernel's text in huge pages, locked";
    332 STATX Always, "files of the host";
    437 OPENAT2 Always, "files of the host, below a directory the supervisor opened";
    464 GETXATTRAT Always, "files of the host, by a name in a directory the supervisor opened";
}

/// AF_INET, AF_INET6 and AF_NETLINK: all that `--net host` hands out.
const FAMILIES: &[u32] = &[2, 10, 16];

/// What guests' threads are run by. Nothing that reads or writes memory.
const TRACING: &[u32] = &[
    request::CONT,
    request::GETREGS,
    request::SETREGS,
    request::DETACH,
    request::SET_THREAD_AREA,
    request::SYSEMU,
    request::GETSIGINFO,
    request::GETREGSET,
    request::SETREGSET,
    request::SEIZE,
    request::INTERRUPT,
];

const SET_MODE_FILTER: u32 = 1;
const PRIO_PROCESS: u32 = 0;

const IOCTLS: &[u32] = &[
    tty::TCGETS,
    tty::TCSETS,
    tty::TCSETSW,
    tty::TCSETSF,
    tty::TCGETS2,
    tty::TCSETS2,
    tty::TCSETSW2,
    tty::TCSETSF2,
    tty::TCSBRK,
    tty::TCSBRKP,
    tty::TCXONC,
    tty::TCFLSH,
    tty::TIOCGWINSZ,
    tty::TIOCSWINSZ,
    tty::TIOCOUTQ,
    tty::TIOCGETD,
    tty::FIONREAD,
    socket::SIOCATMARK,
    socket::SIOCGIFNAME,
    socket::SIOCGIFCONF,
    socket::SIOCGIFFLAGS,
    socket::SIOCGIFADDR,
    socket::SIOCGIFDSTADDR,
    socket::SIOCGIFBRDADDR,
    socket::SIOCGIFNETMASK,
    socket::SIOCGIFMETRIC,
    socket::SIOCGIFMTU,
    socket::SIOCGIFHWADDR,
    socket::SIOCGIFINDEX,
    socket::SIOCGIFTXQLEN,
];

const LOAD_WORD: u16 = bpf::LD | bpf::ABS;
const JUMP: u16 = bpf::JMP | bpf::JA;
const JUMP_EQUAL: u16 = bpf::JMP | bpf::JEQ;
const JUMP_NOT_BELOW: u16 = bpf::JMP | bpf::JGE;
const JUMP_ANY_BIT: u16 = bpf::JMP | bpf::JSET;
const RETURN: u16 = bpf::RET;

/// What user code may call besides tgkill(2) when the gate is a signal.
const GETPID: u32 = 39;

const fn op(code: u16, k: u32) -> Filter {
    Filter { code, jt: 0, jf: 0, k }
}

/// What the filter depends on besides the list.
#[derive(Clone, Copy)]
struct Settings {
    outside: Outside,
    /// The signal user code may queue to its own process.
    queued: Option<u32>,
    network: bool,
    writes: bool,
    traced: bool,
    /// The descriptor of the channel to the supervisor.
    channel: u32,
    /// The range of the host's vDSO, which makes a call itself when it cannot read the clock.
    vdso: (u64, u64),
}

/// `then` if the comparison holds, otherwise what follows it.
fn when(code: u16, k: u32, then: &[Filter], out: &mut Vec<Filter>) {
    match u8::try_from(then.len()) {
        Ok(len) => out.push(Filter { code, jt: 0, jf: len, k }),
        // Conditional jumps reach 255 instructions.
        Err(_) => out.extend([Filter { code, jt: 1, jf: 0, k }, op(JUMP, then.len() as u32)]),
    }
    out.extend_from_slice(then);
}

/// The verdict on a call of this number: the accumulator is free, every way ends in a return.
fn verdict(row: Option<&Row>, settings: &Settings) -> Vec<Filter> {
    let (allow, kill) = ([op(RETURN, ALLOW)], [op(RETURN, KILL_PROCESS)]);
    let argument = |index: u8| op(LOAD_WORD, ARGS + 8 * u32::from(index));
    let mut code = Vec::new();
    let one_of = |index, values: &[u32], code: &mut Vec<Filter>| {
        code.push(argument(index));
        for value in values {
            when(JUMP_EQUAL, *value, &allow, code);
        }
        code.extend(kill);
    };
    match row.map(|row| row.when) {
        None => code.extend(kill),
        Some(Always) => code.extend(allow),
        Some(Network) => code.extend(if settings.network { allow } else { kill }),
        Some(Writing) => code.extend(if settings.writes { allow } else { kill }),
        Some(Traced) => code.extend(if settings.traced { allow } else { kill }),
        Some(TracedOf(index, values)) if settings.traced => one_of(index, values, &mut code),
        Some(TracedOf(..)) => code.extend(kill),
        Some(NetworkOf(families)) if settings.network => one_of(0, families, &mut code),
        Some(NetworkOf(_)) => code.extend(kill),
        Some(Channel) if settings.network => code.extend(allow),
        Some(Channel) => one_of(0, &[settings.channel], &mut code),
        Some(OneOf(index, values)) => one_of(index, values, &mut code),
        Some(Only(index, bits, needed)) => {
            code.push(argument(index));
            when(JUMP_ANY_BIT, !bits, &kill, &mut code);
            code.push(Filter { code: JUMP_ANY_BIT, jt: 1, jf: 0, k: needed });
            code.extend(kill);
            code.push(op(LOAD_WORD, ARGS + 8 * u32::from(index) + 4));
            when(JUMP_EQUAL, 0, &allow, &mut code);
            code.extend(kill);
        }
    }
    code
}

/// A range of numbers with one verdict: it starts here and ends where the next begins.
struct Run {
    start: u32,
    code: Vec<Filter>,
}

/// A balanced tree over the runs, with the number in the accumulator.
fn tree(runs: &[Run]) -> Vec<Filter> {
    let [low, .., _] = runs else {
        return runs.first().map_or_else(Vec::new, |run| run.code.clone());
    };
    debug_assert!(low.start < u32::MAX);
    let (below, above) = runs.split_at(runs.len() / 2);
    let mut code = Vec::new();
    when(JUMP_NOT_BELOW, above[0].start, &tree(above), &mut code);
    code.extend(tree(below));
    code
}

/// What becomes of the kernel's own calls, by their numbers.
fn by_number(settings: &Settings) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut add = |start: u32, code: Vec<Filter>| {
        let same = |run: &Run| {
            let ([last], [this]) = (&*run.code, &*code) else { return false };
            last.k == this.k
        };
        if !runs.last().is_some_and(same) {
            runs.push(Run { start, code });
        }
    };
    let mut next = 0;
    for row in ROWS {
        let number = u32::from(row.call.0);
        if number > next {
            add(next, verdict(None, settings));
        }
        add(number, verdict(Some(row), settings));
        next = number + 1;
    }
    // The rest, x32 calls among them: their numbers have bit 30 set.
    add(next, verdict(None, settings));
    runs
}

/// What becomes of calls from the kernel's text, by their interface and number.
fn by_interface(settings: &Settings) -> Vec<Filter> {
    let kill = [op(RETURN, KILL_PROCESS)];
    let mut ours = Vec::from([op(LOAD_WORD, ARCH)]);
    let mut native = Vec::from([op(LOAD_WORD, NUMBER)]);
    // Waiting and waking are what a sandbox asks of its host most.
    when(JUMP_EQUAL, u32::from(nr::FUTEX.0), &[op(RETURN, ALLOW)], &mut native);
    native.extend(tree(&by_number(settings)));
    when(JUMP_EQUAL, ARCH_X86_64, &native, &mut ours);
    // The one call of the 32-bit interface: a thread's identity.
    let mut compat = Vec::from([op(LOAD_WORD, NUMBER)]);
    when(JUMP_EQUAL, identity::SET_THREAD_AREA, &[op(RETURN, ALLOW)], &mut compat);
    compat.extend(kill);
    when(JUMP_EQUAL, ARCH_I386, &compat, &mut ours);
    ours.extend(kill);
    ours
}

/// The whole filter.
fn filter(settings: &Settings) -> Vec<Filter> {
    let stray = op(RETURN, if settings.outside == Outside::Trap { TRAP } else { KILL_PROCESS });
    let mut code = Vec::from([op(LOAD_WORD, IP_HIGH)]);
    when(JUMP_EQUAL, (KERNEL_BASE >> 32) as u32, &by_interface(settings), &mut code);
    let (start, end) = settings.vdso;
    if start != 0 && start >> 32 == end >> 32 {
        let mut clock = Vec::from([op(LOAD_WORD, NUMBER)]);
        when(JUMP_EQUAL, u32::from(nr::CLOCK_GETTIME.0), &[op(RETURN, ALLOW)], &mut clock);
        clock.push(stray);
        let mut inside = Vec::new();
        when(JUMP_NOT_BELOW, end as u32, &[stray], &mut inside);
        when(JUMP_NOT_BELOW, start as u32, &clock, &mut inside);
        inside.push(stray);
        let mut place = Vec::from([op(LOAD_WORD, ARCH)]);
        let mut low = Vec::from([op(LOAD_WORD, IP_LOW)]);
        low.extend(inside);
        when(JUMP_EQUAL, ARCH_X86_64, &low, &mut place);
        place.push(stray);
        when(JUMP_EQUAL, (start >> 32) as u32, &place, &mut code);
    }
    // The host emulates the three calls of the vsyscall page and looks here first; no other code can run there.
    let mut emulated = Vec::from([op(LOAD_WORD, NUMBER)]);
    for number in vsyscall::CALLS.map(u32::from) {
        when(JUMP_EQUAL, number, &[op(RETURN, ALLOW)], &mut emulated);
    }
    emulated.push(stray);
    let mut page = Vec::from([op(LOAD_WORD, IP_LOW)]);
    when(JUMP_NOT_BELOW, (vsyscall::START + PAGE as u64) as u32, &[stray], &mut page);
    when(JUMP_NOT_BELOW, vsyscall::START as u32, &emulated, &mut page);
    page.push(stray);
    when(JUMP_EQUAL, (vsyscall::START >> 32) as u32, &page, &mut code);
    // A gate by signals: which process a signal is aimed at, a filter of each process looks at.
    if let Some(signal) = settings.queued {
        let mut sends = Vec::from([op(LOAD_WORD, ARGS + 16)]);
        when(JUMP_EQUAL, signal, &[op(RETURN, ALLOW)], &mut sends);
        sends.push(stray);
        let mut own = Vec::from([op(LOAD_WORD, NUMBER)]);
        when(JUMP_EQUAL, u32::from(nr::TGKILL.0), &sends, &mut own);
        when(JUMP_EQUAL, GETPID, &[op(RETURN, ALLOW)], &mut own);
        when(JUMP_EQUAL, u32::from(nr::GETTID.0), &[op(RETURN, ALLOW)], &mut own);
        own.push(stray);
        code.push(op(LOAD_WORD, ARCH));
        when(JUMP_EQUAL, ARCH_X86_64, &own, &mut code);
    }
    code.push(stray);
    code
}

/// Sets the filter for the calling process and all it will start: from here on nothing but the list passes. EINVAL and ENOSYS
/// from a host without seccomp filters.
pub fn raise(outside: Outside, queued: Option<u32>) -> Result<()> {
    const PRCTL: usize = 157;
    const SECCOMP: usize = nr::SECCOMP.number();
    /// Without it hosts before Linux 5.16 would slow the guests' own memory accesses down.
    const SPEC_ALLOW: usize = 4;
    let info = boot::info();
    let filter = filter(&Settings {
        outside,
        queued,
        network: info.host_network != 0,
        writes: info.host_writes != 0,
        traced: boot::jail() == boot::Jail::Process,
        channel: info.channel as u32,
        vdso: (info.vdso_start, info.vdso_end),
    });
    let program = SockProgram { len: filter.len() as u16, filter: filter.as_ptr() };
    // SAFETY: words only.
    Errno::from_raw(unsafe { hostcall(PRCTL, prctl::SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0) })?;
    // SAFETY: program and filter outlive the call, which copies them.
    let set = |flags| {
        Errno::from_raw(unsafe { hostcall(SECCOMP, SET_MODE_FILTER as usize, flags, &raw const program as usize, 0, 0, 0) })
    };
    match set(SPEC_ALLOW) {
        Err(Errno::EINVAL) => set(0),
        other => other,
    }
    .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Data {
        ip: u64,
        arch: u32,
        number: u32,
        args: [u64; 6],
    }

    /// Runs a filter as the host would.
    fn judge(filter: &[Filter], data: &Data) -> u32 {
        let word = |at: u32| match at {
            NUMBER => data.number,
            ARCH => data.arch,
            IP_LOW => data.ip as u32,
            IP_HIGH => (data.ip >> 32) as u32,
            at => (data.args[(at - ARGS) as usize / 8] >> (8 * (at % 8))) as u32,
        };
        let (mut pc, mut a) = (0, 0);
        loop {
            let Filter { code, jt, jf, k } = filter[pc];
            pc += 1;
            let jump = |holds: bool| usize::from(if holds { jt } else { jf });
            match code {
                LOAD_WORD => a = word(k),
                JUMP => pc += k as usize,
                JUMP_EQUAL => pc += jump(a == k),
                JUMP_NOT_BELOW => pc += jump(a >= k),
                JUMP_ANY_BIT => pc += jump(a & k != 0),
                RETURN => return k,
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    const SETTINGS: Settings =
        Settings { outside: Outside::Kill, queued: None, network: false, writes: false, traced: false, channel: 5, vdso: VDSO };
    const VDSO: (u64, u64) = (0x7fff_1000_0000, 0x7fff_1000_4000);

    fn from_kernel(number: u32, args: [u64; 6]) -> Data {
        Data { ip: KERNEL_BASE as u64 + 0x1234, arch: ARCH_X86_64, number, args }
    }

    #[test]
    fn the_list_is_in_order() {
        assert!(ROWS.windows(2).all(|pair| pair[0].call.0 < pair[1].call.0));
    }

    #[test]
    fn the_list_passes_and_nothing_else() {
        for (network, writes, traced) in
            [(false, false, false), (true, false, false), (false, true, false), (false, false, true)]
        {
            let settings = Settings { network, writes, traced, ..SETTINGS };
            let filter = filter(&settings);
            assert!(filter.len() < 4096);
            for number in (0..1024).chain([0x4000_0000, 0x4000_0001, u32::MAX]) {
                // Arguments that satisfy no condition but that on bits.
                let got = judge(&filter, &from_kernel(number, [0; 6]));
                let row = ROWS.iter().find(|row| u32::from(row.call.0) == number);
                let want = match row.map(|row| row.when) {
                    Some(Always) => ALLOW,
                    Some(Network | Channel) if network => ALLOW,
                    Some(Writing) if writes => ALLOW,
                    Some(Traced) if traced => ALLOW,
                    Some(TracedOf(_, values)) if traced && values.contains(&0) => ALLOW,
                    Some(OneOf(_, values)) if values.contains(&0) => ALLOW,
                    _ => KILL_PROCESS,
                };
                assert_eq!(got, want, "call {number}");
            }
        }
    }

    #[test]
    fn arguments_are_looked_at() {
        let filter = filter(&SETTINGS);
        let call = |call: Call, args| judge(&filter, &from_kernel(call.0.into(), args));
        for request in IOCTLS {
            assert_eq!(call(nr::IOCTL, [0, u64::from(*request), 0, 0, 0, 0]), ALLOW);
        }
        assert_eq!(call(nr::IOCTL, [0, u64::from(tty::TIOCSTI), 0, 0, 0, 0]), KILL_PROCESS);
        assert_eq!(call(nr::RECVMSG, [5, 0x1000, 0, 0, 0, 0]), ALLOW);
        assert_eq!(call(nr::RECVMSG, [6, 0x1000, 0, 0, 0, 0]), KILL_PROCESS);
        // No descriptor can be sent to anybody.
        assert_eq!(call(nr::SENDMSG, [5, 0x1000, 0, 0, 0, 0]), KILL_PROCESS);
        let network = super::filter(&Settings { network: true, ..SETTINGS });
        for (family, verdict) in
            [(1, KILL_PROCESS), (2, ALLOW), (10, ALLOW), (16, ALLOW), (17, KILL_PROCESS), (40, KILL_PROCESS)]
        {
            assert_eq!(judge(&network, &from_kernel(nr::SOCKET.0.into(), [family, 1, 0, 0, 0, 0])), verdict);
        }
        assert_eq!(call(nr::TGKILL, [1, 1, u64::from(KICK), 0, 0, 0]), ALLOW);
        assert_eq!(call(nr::TGKILL, [1, 1, 9, 0, 0, 0]), KILL_PROCESS);
        let flags = u64::from(spawn::CLONE_FLAGS);
        assert_eq!(call(nr::CLONE, [flags, 0, 0, 0, 0, 0]), ALLOW);
        // A child of its own would be init's in the end.
        assert_eq!(call(nr::CLONE, [17, 0, 0, 0, 0, 0]), KILL_PROCESS);
        for flag in [0x8000, 0x1_0000] {
            assert_eq!(call(nr::CLONE, [17 | flag, 0, 0, 0, 0, 0]), ALLOW);
        }
        // CLONE_NEWUSER, CLONE_PTRACE, and a bit of the upper word.
        for bit in [0x1000_0000, 0x2000, 1 << 32] {
            assert_eq!(call(nr::CLONE, [flags | bit, 0, 0, 0, 0, 0]), KILL_PROCESS);
        }
        assert_eq!(call(nr::PRCTL, [59, 1, 0, 0, 0, 0]), ALLOW);
        assert_eq!(call(nr::PRCTL, [15, 0x1000, 0, 0, 0, 0]), ALLOW);
        assert_eq!(call(nr::PRCTL, [29, 1, 0, 0, 0, 0]), ALLOW);
        // PR_SET_SECCOMP, PR_SET_MM.
        for option in [22, 35] {
            assert_eq!(call(nr::PRCTL, [option, 0, 0, 0, 0, 0]), KILL_PROCESS);
        }
        assert_eq!(call(nr::ARCH_PRCTL, [0x1002, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(call(nr::ARCH_PRCTL, [0x1012, 0, 0, 0, 0, 0]), KILL_PROCESS);
        // F_SETOWN would aim signals at others.
        assert_eq!(call(nr::FCNTL, [0, 8, 0, 0, 0, 0]), KILL_PROCESS);
    }

    #[test]
    fn the_place_of_the_call_is_looked_at() {
        let killing = filter(&SETTINGS);
        let trapping = filter(&Settings { outside: Outside::Trap, ..SETTINGS });
        let read = from_kernel(0, [0; 6]);
        assert_eq!(judge(&killing, &read), ALLOW);
        assert_eq!(judge(&trapping, &read), ALLOW);
        let outside = [0x40_0000, 0x5fff_ffff_ffff, 0x6001_0000_0000, 0x7fff_0fff_ffff, 0x7fff_1000_1000, 0x7fff_2000_0000];
        for ip in outside {
            for (number, arch) in [(0, ARCH_X86_64), (202, ARCH_X86_64), (0x4000_0000, ARCH_X86_64), (228, 0x4000_0003)] {
                let data = Data { ip, arch, number, ..read };
                assert_eq!(judge(&killing, &data), KILL_PROCESS, "{ip:#x} {number}");
                assert_eq!(judge(&trapping, &data), TRAP, "{ip:#x} {number}");
            }
        }
        // The kernel's text makes one 32-bit call only.
        assert_eq!(judge(&trapping, &Data { arch: ARCH_I386, ..read }), KILL_PROCESS);
        assert_eq!(judge(&killing, &Data { arch: ARCH_I386, number: 243, ..read }), ALLOW);
        assert_eq!(judge(&killing, &Data { arch: ARCH_I386, number: 243, ip: 0x40_0000, ..read }), KILL_PROCESS);
        for number in vsyscall::CALLS.map(u32::from) {
            let time = Data { ip: vsyscall::START + vsyscall::STEP, number, ..read };
            assert_eq!(judge(&killing, &time), ALLOW);
            assert_eq!(judge(&trapping, &time), ALLOW);
            assert_eq!(judge(&killing, &Data { ip: vsyscall::START + PAGE as u64, ..time }), KILL_PROCESS);
            assert_eq!(judge(&trapping, &Data { ip: vsyscall::START - 1, ..time }), TRAP);
        }
        assert_eq!(judge(&killing, &Data { ip: vsyscall::START, ..read }), KILL_PROCESS);
        // The host's vDSO falls back to the call, and to no other.
        let clock = Data { ip: 0x7fff_1000_1000, number: 228, ..read };
        assert_eq!(judge(&killing, &clock), ALLOW);
        assert_eq!(judge(&killing, &Data { ip: 0x7fff_1000_4000, ..clock }), KILL_PROCESS);
        assert_eq!(judge(&killing, &Data { number: 227, ..clock }), KILL_PROCESS);
    }

    #[test]
    fn a_gate_by_signals_opens_what_it_needs() {
        let filter = filter(&Settings { queued: Some(40), ..SETTINGS });
        let call = |number, signal, arch| judge(&filter, &Data { ip: 0x40_0000, arch, number, args: [1, 1, signal, 0, 0, 0] });
        assert_eq!(call(u32::from(nr::TGKILL.0), 40, ARCH_X86_64), ALLOW);
        assert_eq!(call(u32::from(nr::TGKILL.0), 9, ARCH_X86_64), KILL_PROCESS);
        assert_eq!(call(u32::from(nr::TGKILL.0), 40, ARCH_I386), KILL_PROCESS);
        assert_eq!(call(GETPID, 0, ARCH_X86_64), ALLOW);
        assert_eq!(call(186, 0, ARCH_X86_64), ALLOW);
        assert_eq!(call(297, 40, ARCH_X86_64), KILL_PROCESS);
        assert_eq!(call(0, 0, ARCH_X86_64), KILL_PROCESS);
    }

    /// Numbers that assembly and gates write down themselves are in the list too.
    #[test]
    fn calls_made_elsewhere_are_listed() {
        let assembly = concat!(include_str!("threads.rs"), include_str!("../../../gate/entry/src/hosted/entry.rs"));
        let lines: Vec<&str> = assembly.lines().map(str::trim).collect();
        let mut seen = 0;
        for pair in lines.windows(2).filter(|pair| pair[1] == "\"syscall\",") {
            let number = pair[0].trim_start_matches("\"mov eax, ").trim_end_matches("\",");
            let number: u16 = number.parse().unwrap_or_else(|_| panic!("{} before a syscall", pair[0]));
            assert!(ROWS.iter().any(|row| row.call.0 == number), "call {number} is not listed");
            seen += 1;
        }
        assert!(seen > 0, "no call found in the assembly");
        let gate = include_str!("../../../gate/src/sud/mod.rs");
        assert!(gate.contains("const PRCTL: usize = 157;") && gate.contains("prctl::SET_SYSCALL_USER_DISPATCH as usize"));
    }
}
