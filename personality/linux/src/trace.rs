//! Names for the words of calls: what the trace writes for `Kind::Named` arguments.

pub mod data;

use core::fmt::Write;

use janua_abi::linux::fcntl::{self, rwf};
use janua_abi::linux::mman::*;
use janua_abi::linux::process::{clone, rlimit, wait};
use janua_abi::linux::ptrace::request as ptrace;
use janua_abi::linux::signal;
use janua_abi::linux::stat::at;
use janua_object::file::{flags as open, request, whence};
use janua_object::inotify::mask;
use janua_object::vfs::watch::event;

/// How the words of a family are written.
enum Family {
    /// One of these, or a number.
    One(&'static [(u32, &'static str)]),
    /// Any of these, joined by bars. A name of several bits comes before those of single ones.
    Any(&'static [(u64, &'static str)]),
    /// A number in the low bits, and flags.
    OneAndAny(u32, &'static [(u32, &'static str)], &'static [(u64, &'static str)]),
    /// CLONE_* and an exit signal.
    Clone,
    /// A descriptor, or AT_FDCWD.
    Directory,
    Signal,
    /// FUTEX_* with its flags.
    Futex,
}

/// A name for each constant of a module.
macro_rules! names {
    ($as:ty; $($module:ident::$name:ident)|* ; $prefix:literal) => {
        &[$(($module::$name as $as, concat!($prefix, stringify!($name)))),*]
    };
    ($as:ty; $($name:ident)|*) => {
        &[$(($name as $as, stringify!($name))),*]
    };
}

const ACCESS: &[(u32, &str)] = names!(u32; open::O_RDONLY | open::O_WRONLY | open::O_RDWR; "");
const OPEN: &[(u64, &str)] = names!(u64;
    open::O_TMPFILE | open::O_SYNC | open::O_CREAT | open::O_EXCL | open::O_NOCTTY | open::O_TRUNC | open::O_APPEND
    | open::O_NONBLOCK | open::O_DSYNC | open::O_ASYNC | open::O_DIRECT | open::O_LARGEFILE | open::O_DIRECTORY
    | open::O_NOFOLLOW | open::O_NOATIME | open::O_CLOEXEC | open::O_PATH; "");
const WHENCE: &[(u32, &str)] = names!(u32;
    whence::SEEK_SET | whence::SEEK_CUR | whence::SEEK_END | whence::SEEK_DATA | whence::SEEK_HOLE; "");
const AT: &[(u64, &str)] = names!(u64;
    at::SYMLINK_NOFOLLOW | at::REMOVEDIR | at::SYMLINK_FOLLOW | at::NO_AUTOMOUNT | at::EMPTY_PATH | at::STATX_FORCE_SYNC
    | at::STATX_DONT_SYNC; "AT_");
const RWF: &[(u64, &str)] = names!(u64;
    rwf::HIPRI | rwf::DSYNC | rwf::SYNC | rwf::NOWAIT | rwf::APPEND | rwf::NOAPPEND; "RWF_");
const FLOCK: &[(u64, &str)] = &[(1, "LOCK_SH"), (2, "LOCK_EX"), (4, "LOCK_NB"), (8, "LOCK_UN")];
const SPLICE: &[(u64, &str)] = &[(1, "SPLICE_F_MOVE"), (2, "SPLICE_F_NONBLOCK"), (4, "SPLICE_F_MORE"), (8, "SPLICE_F_GIFT")];
const CLOSE_RANGE: &[(u64, &str)] = &[(2, "CLOSE_RANGE_UNSHARE"), (4, "CLOSE_RANGE_CLOEXEC")];
const INOTIFY: &[(u64, &str)] = names!(u64;
    event::ACCESS | event::MODIFY | event::ATTRIB | event::CLOSE_WRITE | event::CLOSE_NOWRITE | event::OPEN
    | event::MOVED_FROM | event::MOVED_TO | event::CREATE | event::DELETE | event::DELETE_SELF | event::MOVE_SELF
    | mask::ONLYDIR | mask::DONT_FOLLOW | mask::EXCL_UNLINK | mask::MASK_CREATE | mask::MASK_ADD | mask::ONESHOT; "IN_");
const IOCTL: &[(u32, &str)] = &[
    (request::FIONREAD, "FIONREAD"),
    (request::FIONBIO, "FIONBIO"),
    (request::FIONCLEX, "FIONCLEX"),
    (request::FIOCLEX, "FIOCLEX"),
    (request::FIOASYNC, "FIOASYNC"),
    (request::FIOQSIZE, "FIOQSIZE"),
    (request::FIGETBSZ, "FIGETBSZ"),
    (0x5401, "TCGETS"),
    (0x5402, "TCSETS"),
    (0x5403, "TCSETSW"),
    (0x5404, "TCSETSF"),
    (0x5409, "TCSBRK"),
    (0x540a, "TCXONC"),
    (0x540b, "TCFLSH"),
    (0x540e, "TIOCSCTTY"),
    (0x540f, "TIOCGPGRP"),
    (0x5410, "TIOCSPGRP"),
    (0x5411, "TIOCOUTQ"),
    (0x5413, "TIOCGWINSZ"),
    (0x5414, "TIOCSWINSZ"),
    (0x5422, "TIOCNOTTY"),
    (0x5429, "TIOCGSID"),
    (0x8004_5430, "TIOCGPTN"),
    (0x4004_5431, "TIOCSPTLCK"),
    (0x5441, "TIOCGPTPEER"),
    (0x802c_542a, "TCGETS2"),
    (0x402c_542b, "TCSETS2"),
    (0x402c_542c, "TCSETSW2"),
    (0x402c_542d, "TCSETSF2"),
    (0x8912, "SIOCGIFCONF"),
    (0x8913, "SIOCGIFFLAGS"),
    (0x8915, "SIOCGIFADDR"),
    (0x8933, "SIOCGIFINDEX"),
    (request::FICLONE, "FICLONE"),
    (request::FICLONERANGE, "FICLONERANGE"),
    (0x8008_6601, "FS_IOC_GETFLAGS"),
];
const PROT: &[(u64, &str)] = names!(u64; PROT_READ | PROT_WRITE | PROT_EXEC | PROT_SEM | PROT_GROWSDOWN | PROT_GROWSUP);
const MAP_KIND: &[(u32, &str)] = names!(u32; MAP_SHARED | MAP_PRIVATE | MAP_SHARED_VALIDATE);
const MAP: &[(u64, &str)] = names!(u64;
    MAP_FIXED | MAP_ANONYMOUS | MAP_32BIT | MAP_GROWSDOWN | MAP_DENYWRITE | MAP_EXECUTABLE | MAP_LOCKED | MAP_NORESERVE
    | MAP_POPULATE | MAP_NONBLOCK | MAP_STACK | MAP_HUGETLB | MAP_SYNC | MAP_FIXED_NOREPLACE);
const MREMAP: &[(u64, &str)] = names!(u64; MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP);
const MSYNC: &[(u64, &str)] = names!(u64; MS_ASYNC | MS_INVALIDATE | MS_SYNC);
const MLOCKALL: &[(u64, &str)] = names!(u64; MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
const MADVISE: &[(u32, &str)] = names!(u32;
    MADV_NORMAL | MADV_RANDOM | MADV_SEQUENTIAL | MADV_WILLNEED | MADV_DONTNEED | MADV_FREE | MADV_REMOVE | MADV_DONTFORK
    | MADV_DOFORK | MADV_MERGEABLE | MADV_UNMERGEABLE | MADV_HUGEPAGE | MADV_NOHUGEPAGE | MADV_DONTDUMP | MADV_DODUMP
    | MADV_WIPEONFORK | MADV_KEEPONFORK | MADV_COLD | MADV_PAGEOUT | MADV_POPULATE_READ | MADV_POPULATE_WRITE
    | MADV_DONTNEED_LOCKED | MADV_COLLAPSE);
const CLONE: &[(u64, &str)] = names!(u64;
    clone::VM | clone::FS | clone::FILES | clone::SIGHAND | clone::PIDFD | clone::PTRACE | clone::VFORK | clone::PARENT
    | clone::THREAD | clone::NEWNS | clone::SYSVSEM | clone::SETTLS | clone::PARENT_SETTID | clone::CHILD_CLEARTID
    | clone::DETACHED | clone::UNTRACED | clone::CHILD_SETTID | clone::NEWCGROUP | clone::NEWUTS | clone::NEWIPC
    | clone::NEWUSER | clone::NEWPID | clone::NEWNET | clone::IO; "CLONE_");
const WAIT: &[(u64, &str)] = &[
    (wait::NOHANG as u64, "WNOHANG"),
    (wait::STOPPED as u64, "WSTOPPED"),
    (wait::EXITED as u64, "WEXITED"),
    (wait::CONTINUED as u64, "WCONTINUED"),
    (wait::NOWAIT as u64, "WNOWAIT"),
    (wait::NOTHREAD as u64, "__WNOTHREAD"),
    (wait::ALL as u64, "__WALL"),
    (wait::CLONE as u64, "__WCLONE"),
];
const MOUNT: &[(u64, &str)] = &[
    (1, "MS_RDONLY"),
    (2, "MS_NOSUID"),
    (4, "MS_NODEV"),
    (8, "MS_NOEXEC"),
    (0x20, "MS_REMOUNT"),
    (0x400, "MS_NOATIME"),
    (0x1000, "MS_BIND"),
    (0x2000, "MS_MOVE"),
    (0x4000, "MS_REC"),
    (0x8000, "MS_SILENT"),
    (0x20000, "MS_UNBINDABLE"),
    (0x40000, "MS_PRIVATE"),
    (0x80000, "MS_SLAVE"),
    (0x10_0000, "MS_SHARED"),
    (0x20_0000, "MS_RELATIME"),
    (0x100_0000, "MS_STRICTATIME"),
];
const UMOUNT: &[(u64, &str)] = &[(1, "MNT_FORCE"), (2, "MNT_DETACH"), (4, "MNT_EXPIRE"), (8, "UMOUNT_NOFOLLOW")];

const FUTEX_OP: u32 = 0x7f;
const FUTEX: &[(u32, &str)] = &[
    (0, "FUTEX_WAIT"),
    (1, "FUTEX_WAKE"),
    (3, "FUTEX_REQUEUE"),
    (4, "FUTEX_CMP_REQUEUE"),
    (5, "FUTEX_WAKE_OP"),
    (6, "FUTEX_LOCK_PI"),
    (7, "FUTEX_UNLOCK_PI"),
    (8, "FUTEX_TRYLOCK_PI"),
    (9, "FUTEX_WAIT_BITSET"),
    (10, "FUTEX_WAKE_BITSET"),
    (11, "FUTEX_WAIT_REQUEUE_PI"),
    (12, "FUTEX_CMP_REQUEUE_PI"),
    (13, "FUTEX_LOCK_PI2"),
];
const FUTEX_FLAGS: &[(u64, &str)] = &[(128, "FUTEX_PRIVATE_FLAG"), (256, "FUTEX_CLOCK_REALTIME")];
const CLOCK: &[(u32, &str)] = &[
    (0, "CLOCK_REALTIME"),
    (1, "CLOCK_MONOTONIC"),
    (2, "CLOCK_PROCESS_CPUTIME_ID"),
    (3, "CLOCK_THREAD_CPUTIME_ID"),
    (4, "CLOCK_MONOTONIC_RAW"),
    (5, "CLOCK_REALTIME_COARSE"),
    (6, "CLOCK_MONOTONIC_COARSE"),
    (7, "CLOCK_BOOTTIME"),
    (8, "CLOCK_REALTIME_ALARM"),
    (9, "CLOCK_BOOTTIME_ALARM"),
    (11, "CLOCK_TAI"),
];
const EPOLL_CTL: &[(u32, &str)] = &[(1, "EPOLL_CTL_ADD"), (2, "EPOLL_CTL_DEL"), (3, "EPOLL_CTL_MOD")];
const MEMFD: &[(u64, &str)] =
    &[(1, "MFD_CLOEXEC"), (2, "MFD_ALLOW_SEALING"), (4, "MFD_HUGETLB"), (8, "MFD_NOEXEC_SEAL"), (16, "MFD_EXEC")];
const RLIMIT: &[(u32, &str)] = names!(u32;
    rlimit::CPU | rlimit::FSIZE | rlimit::DATA | rlimit::STACK | rlimit::CORE | rlimit::RSS | rlimit::NPROC
    | rlimit::NOFILE | rlimit::MEMLOCK | rlimit::AS | rlimit::LOCKS | rlimit::SIGPENDING | rlimit::MSGQUEUE
    | rlimit::NICE | rlimit::RTPRIO | rlimit::RTTIME; "RLIMIT_");
const PTRACE: &[(u32, &str)] = names!(u32;
    ptrace::TRACEME | ptrace::PEEKTEXT | ptrace::PEEKDATA | ptrace::PEEKUSER | ptrace::POKETEXT | ptrace::POKEDATA
    | ptrace::POKEUSER | ptrace::CONT | ptrace::KILL | ptrace::SINGLESTEP | ptrace::GETREGS | ptrace::SETREGS
    | ptrace::GETFPREGS | ptrace::SETFPREGS | ptrace::ATTACH | ptrace::DETACH | ptrace::SYSCALL | ptrace::SETOPTIONS
    | ptrace::GETEVENTMSG | ptrace::GETSIGINFO | ptrace::SETSIGINFO | ptrace::GETREGSET | ptrace::SETREGSET | ptrace::SEIZE
    | ptrace::INTERRUPT | ptrace::LISTEN | ptrace::PEEKSIGINFO | ptrace::GETSIGMASK | ptrace::SETSIGMASK
    | ptrace::GET_SYSCALL_INFO; "PTRACE_");
/// Those that programs ask for without their being offered, too.
const ARCH_PRCTL: &[(u32, &str)] = &[
    (0x1001, "ARCH_SET_GS"),
    (0x1002, "ARCH_SET_FS"),
    (0x1003, "ARCH_GET_FS"),
    (0x1004, "ARCH_GET_GS"),
    (0x1011, "ARCH_GET_CPUID"),
    (0x1012, "ARCH_SET_CPUID"),
    (0x1021, "ARCH_GET_XCOMP_SUPP"),
    (0x1022, "ARCH_GET_XCOMP_PERM"),
    (0x1023, "ARCH_REQ_XCOMP_PERM"),
    (0x3001, "ARCH_CET_STATUS"),
    (0x5001, "ARCH_SHSTK_ENABLE"),
    (0x5002, "ARCH_SHSTK_DISABLE"),
    (0x5005, "ARCH_SHSTK_STATUS"),
];
const PRCTL: &[(u32, &str)] = &[
    (1, "PR_SET_PDEATHSIG"),
    (2, "PR_GET_PDEATHSIG"),
    (3, "PR_GET_DUMPABLE"),
    (4, "PR_SET_DUMPABLE"),
    (7, "PR_GET_KEEPCAPS"),
    (8, "PR_SET_KEEPCAPS"),
    (15, "PR_SET_NAME"),
    (16, "PR_GET_NAME"),
    (21, "PR_GET_SECCOMP"),
    (22, "PR_SET_SECCOMP"),
    (23, "PR_CAPBSET_READ"),
    (24, "PR_CAPBSET_DROP"),
    (25, "PR_GET_TSC"),
    (26, "PR_SET_TSC"),
    (27, "PR_GET_SECUREBITS"),
    (28, "PR_SET_SECUREBITS"),
    (29, "PR_SET_TIMERSLACK"),
    (30, "PR_GET_TIMERSLACK"),
    (35, "PR_SET_MM"),
    (36, "PR_SET_CHILD_SUBREAPER"),
    (37, "PR_GET_CHILD_SUBREAPER"),
    (38, "PR_SET_NO_NEW_PRIVS"),
    (39, "PR_GET_NO_NEW_PRIVS"),
    (40, "PR_GET_TID_ADDRESS"),
    (41, "PR_SET_THP_DISABLE"),
    (42, "PR_GET_THP_DISABLE"),
    (47, "PR_CAP_AMBIENT"),
    (0x5356_4d41, "PR_SET_VMA"),
    (0x5961_6d61, "PR_SET_PTRACER"),
];

fn family(name: &str) -> Option<Family> {
    Some(match name {
        "open" => Family::OneAndAny(open::O_ACCMODE, ACCESS, OPEN),
        "whence" => Family::One(WHENCE),
        "dirfd" => Family::Directory,
        "at" => Family::Any(AT),
        "rwf" => Family::Any(RWF),
        "fcntl" => Family::One(fcntl::COMMANDS),
        "flock" => Family::Any(FLOCK),
        "splice" => Family::Any(SPLICE),
        "close_range" => Family::Any(CLOSE_RANGE),
        "inotify_mask" => Family::Any(INOTIFY),
        "ioctl" => Family::One(IOCTL),
        "mmap_prot" => Family::Any(PROT),
        "mmap_flags" => Family::OneAndAny(MAP_TYPE, MAP_KIND, MAP),
        "mremap" => Family::Any(MREMAP),
        "madvise" => Family::One(MADVISE),
        "msync" => Family::Any(MSYNC),
        "mlockall" => Family::Any(MLOCKALL),
        "clone" => Family::Clone,
        "wait" => Family::Any(WAIT),
        "signal" => Family::Signal,
        "mount" => Family::Any(MOUNT),
        "umount" => Family::Any(UMOUNT),
        "futex" => Family::Futex,
        "clock" => Family::One(CLOCK),
        "epoll_ctl" => Family::One(EPOLL_CTL),
        "memfd" => Family::Any(MEMFD),
        "rlimit" => Family::One(RLIMIT),
        "prctl" => Family::One(PRCTL),
        "arch_prctl" => Family::One(ARCH_PRCTL),
        "ptrace" => Family::One(PTRACE),
        _ => return None,
    })
}

/// Writes a word of a family; false for a family that is not known here.
pub fn named(name: &str, word: usize, out: &mut dyn Write) -> bool {
    let Some(family) = family(name) else { return false };
    let low = word as u32;
    let result = match family {
        Family::One(names) => one(names, low, out),
        Family::Any(names) => any("", names, word as u64, out),
        Family::Clone => any("", CLONE, word as u64 & !clone::CSIGNAL, out).and_then(|()| match word as u64 & clone::CSIGNAL {
            0 => Ok(()),
            number => out.write_str("|").and_then(|()| signal_name(number as u32, out)),
        }),
        Family::Futex => {
            let flags = u64::from(low & !FUTEX_OP);
            one(FUTEX, low & FUTEX_OP, out).and_then(|()| if flags == 0 { Ok(()) } else { any("|", FUTEX_FLAGS, flags, out) })
        }
        Family::OneAndAny(mask, ones, names) => {
            let rest = word as u64 & u64::from(u32::MAX) & !u64::from(mask);
            one(ones, low & mask, out).and_then(|()| if rest == 0 { Ok(()) } else { any("|", names, rest, out) })
        }
        Family::Directory if word as i32 == -100 => out.write_str("AT_FDCWD"),
        Family::Directory => write!(out, "{}", word as i32),
        Family::Signal => signal_name(low, out),
    };
    result.is_ok()
}

fn one(names: &[(u32, &str)], word: u32, out: &mut dyn Write) -> core::fmt::Result {
    match names.iter().find(|(number, _)| *number == word) {
        Some((_, name)) => out.write_str(name),
        None => write!(out, "{word:#x}"),
    }
}

/// The names of the bits set, each after a bar but for the first, which comes after `bar`; the rest in hexadecimal.
fn any(mut bar: &str, names: &[(u64, &str)], mut word: u64, out: &mut dyn Write) -> core::fmt::Result {
    if word == 0 {
        return out.write_str("0");
    }
    for (bits, name) in names {
        if word & bits == *bits {
            write!(out, "{bar}{name}")?;
            bar = "|";
            word &= !bits;
        }
    }
    if word == 0 { Ok(()) } else { write!(out, "{bar}{word:#x}") }
}

fn signal_name(number: u32, out: &mut dyn Write) -> core::fmt::Result {
    match signal::name(number) {
        Some(name) => out.write_str(name),
        None if (signal::SIGRTMIN..=signal::SIGMAX).contains(&number) => {
            write!(out, "SIGRT_{}", number - signal::SIGRTMIN)
        }
        None => write!(out, "{number}"),
    }
}
