//! Structures and flags of processes: clone(2), wait(2), getrusage(2), getrlimit(2), uname(2), sysinfo(2).

use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct timeval`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct TimeVal {
    pub sec: i64,
    pub usec: i64,
}

impl TimeVal {
    pub fn from_nanos(nanos: u64) -> TimeVal {
        TimeVal { sec: (nanos / 1_000_000_000) as i64, usec: (nanos % 1_000_000_000 / 1000) as i64 }
    }
}

/// `struct rusage`. Fields Linux leaves unused are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Rusage {
    pub utime: TimeVal,
    pub stime: TimeVal,
    /// KiB.
    pub maxrss: i64,
    pub ixrss: i64,
    pub idrss: i64,
    pub isrss: i64,
    pub minflt: i64,
    pub majflt: i64,
    pub nswap: i64,
    pub inblock: i64,
    pub oublock: i64,
    pub msgsnd: i64,
    pub msgrcv: i64,
    pub nsignals: i64,
    pub nvcsw: i64,
    pub nivcsw: i64,
}

/// `struct rlimit64`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Serialize, Deserialize)]
pub struct Rlimit {
    pub soft: u64,
    pub hard: u64,
}

/// RLIMIT_* numbers.
pub mod rlimit {
    pub const CPU: u32 = 0;
    pub const FSIZE: u32 = 1;
    pub const DATA: u32 = 2;
    pub const STACK: u32 = 3;
    pub const CORE: u32 = 4;
    pub const RSS: u32 = 5;
    pub const NPROC: u32 = 6;
    pub const NOFILE: u32 = 7;
    pub const MEMLOCK: u32 = 8;
    pub const AS: u32 = 9;
    pub const LOCKS: u32 = 10;
    pub const SIGPENDING: u32 = 11;
    pub const MSGQUEUE: u32 = 12;
    pub const NICE: u32 = 13;
    pub const RTPRIO: u32 = 14;
    pub const RTTIME: u32 = 15;
    pub const COUNT: usize = 16;
    pub const INFINITY: u64 = u64::MAX;
}

/// `struct clone_args` (clone(2)), 88 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct CloneArgs {
    pub flags: u64,
    pub pidfd: u64,
    pub child_tid: u64,
    pub parent_tid: u64,
    pub exit_signal: u64,
    pub stack: u64,
    pub stack_size: u64,
    pub tls: u64,
    pub set_tid: u64,
    pub set_tid_size: u64,
    pub cgroup: u64,
}

/// Least size of [`CloneArgs`] (its first published version).
pub const CLONE_ARGS_SIZE_VER0: usize = 64;

/// CLONE_* flags.
pub mod clone {
    /// The exit signal in clone(2)'s flags.
    pub const CSIGNAL: u64 = 0xff;
    pub const VM: u64 = 0x100;
    pub const FS: u64 = 0x200;
    pub const FILES: u64 = 0x400;
    pub const SIGHAND: u64 = 0x800;
    pub const PIDFD: u64 = 0x1000;
    pub const PTRACE: u64 = 0x2000;
    pub const VFORK: u64 = 0x4000;
    pub const PARENT: u64 = 0x8000;
    pub const THREAD: u64 = 0x1_0000;
    pub const NEWNS: u64 = 0x2_0000;
    pub const SYSVSEM: u64 = 0x4_0000;
    pub const SETTLS: u64 = 0x8_0000;
    pub const PARENT_SETTID: u64 = 0x10_0000;
    pub const CHILD_CLEARTID: u64 = 0x20_0000;
    pub const DETACHED: u64 = 0x40_0000;
    pub const UNTRACED: u64 = 0x80_0000;
    pub const CHILD_SETTID: u64 = 0x100_0000;
    pub const NEWCGROUP: u64 = 0x200_0000;
    pub const NEWUTS: u64 = 0x400_0000;
    pub const NEWIPC: u64 = 0x800_0000;
    pub const NEWUSER: u64 = 0x1000_0000;
    pub const NEWPID: u64 = 0x2000_0000;
    pub const NEWNET: u64 = 0x4000_0000;
    pub const IO: u64 = 0x8000_0000;
    pub const CLEAR_SIGHAND: u64 = 0x1_0000_0000;
    pub const INTO_CGROUP: u64 = 0x2_0000_0000;
    pub const NEWTIME: u64 = 0x80;
    /// Every flag that asks for a namespace of its own, NEWTIME apart (it shares a bit with the exit signal).
    pub const NAMESPACES: u64 = NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET;
}

/// wait4(2) and waitid(2) options.
pub mod wait {
    pub const NOHANG: u32 = 1;
    /// WUNTRACED, also WSTOPPED.
    pub const STOPPED: u32 = 2;
    pub const EXITED: u32 = 4;
    pub const CONTINUED: u32 = 8;
    pub const NOWAIT: u32 = 0x0100_0000;
    pub const NOTHREAD: u32 = 0x2000_0000;
    pub const ALL: u32 = 0x4000_0000;
    pub const CLONE: u32 = 0x8000_0000;
    pub const P_ALL: u32 = 0;
    pub const P_PID: u32 = 1;
    pub const P_PGID: u32 = 2;
    pub const P_PIDFD: u32 = 3;
}

/// The bit of a wait status that is set when a core was dumped.
pub const WCOREFLAG: u32 = 0x80;

/// `struct new_utsname`: six fields of 65 bytes, NUL terminated.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct UtsName {
    pub sysname: [u8; 65],
    pub nodename: [u8; 65],
    pub release: [u8; 65],
    pub version: [u8; 65],
    pub machine: [u8; 65],
    pub domainname: [u8; 65],
}

/// `struct sysinfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SysInfo {
    /// Seconds since boot.
    pub uptime: i64,
    /// 1, 5 and 15 minutes, in units of 1/65536.
    pub loads: [u64; 3],
    pub totalram: u64,
    pub freeram: u64,
    pub sharedram: u64,
    pub bufferram: u64,
    pub totalswap: u64,
    pub freeswap: u64,
    pub procs: u16,
    pub pad: u16,
    pub _align: u32,
    pub totalhigh: u64,
    pub freehigh: u64,
    /// Bytes per unit of the memory fields.
    pub mem_unit: u32,
    pub _tail: u32,
}

const _: () = {
    assert!(size_of::<Rusage>() == 144);
    assert!(size_of::<CloneArgs>() == 88);
    assert!(size_of::<UtsName>() == 390);
    assert!(size_of::<SysInfo>() == 112);
};
