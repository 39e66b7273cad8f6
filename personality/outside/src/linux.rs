//! What the personality `linux` is given.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use janua_abi::linux::process::{Rlimit, rlimit};
use janua_abi::linux::{Errno, Result};
use janua_port::HostFd;
use serde::{Deserialize, Serialize};

/// How a sandbox is to be: everything the outside decides.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BootConfig {
    /// The program's path as given: looked up in the environment's PATH when it has no slash.
    pub program: Vec<u8>,
    pub argv: Vec<Vec<u8>>,
    pub envp: Vec<Vec<u8>>,
    /// Working directory inside; and whether it was asked for, so that the user must be allowed there, rather than inherited.
    pub cwd: Vec<u8>,
    pub cwd_asked: bool,
    pub umask: u32,
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
    /// RLIMIT_* by number; the usual ones where `None`.
    pub limits: [Option<Rlimit>; rlimit::COUNT],
    pub hostname: Vec<u8>,
    pub domainname: Vec<u8>,
    /// Signals the first program finds ignored, bit n-1 for signal n (nohup, a shell's background job).
    pub ignored_signals: u64,
    /// Nice value the program starts with.
    pub nice: i32,
    /// What the program finds at descriptors 0, 1, 2 and on.
    pub files: Vec<BootFile>,
    /// The outside's terminal, when there is one: the controlling terminal of the first session. A descriptor that is no terminal
    /// is a line with a terminal at its other end.
    pub terminal: Option<HostFd>,
    /// A shell outside can continue the first program when it stops.
    pub job_control: bool,
    /// The first program is started into a session, and into a process group, that somebody outside leads: both are init's inside.
    /// Otherwise it leads them.
    pub in_session: bool,
    pub in_group: bool,
    /// File systems in order; the first is the root.
    pub mounts: Vec<BootMount>,
    /// Files made where the tree of names lacks them.
    pub texts: Vec<BootText>,
    pub net: BootNet,
    /// Where trace lines go.
    pub trace: Option<HostFd>,
    /// Whether the sandbox ends when a line of the trace cannot be written.
    pub trace_whole: bool,
    pub stats: bool,
    /// What runs calls away from the threads that make them.
    pub modules: BootModules,
    /// The outside is to be notified of the first program ([`janua_port::outside::FIRST`]).
    pub notify_first: bool,
    /// There is no first program: the kernel waits for what the outside asks for.
    pub idle: bool,
    /// Programs may be placed on other tiles: files in the kernel's memory stay as they are, so that all tiles have the same.
    pub spread: bool,
    /// A program that traces the first one, from before its first instruction.
    pub debugger: Option<BootDebugger>,
}

impl BootConfig {
    /// The bytes the outside leaves for the kernel.
    pub fn encode(&self) -> Vec<u8> {
        // Fails only for types that do not know their length, and there are none.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// EINVAL for bytes no [`BootConfig::encode`] made.
    pub fn decode(bytes: &[u8]) -> Result<BootConfig> {
        postcard::from_bytes(bytes).map_err(|_| Errno::EINVAL)
    }
}

/// The modules a kernel is to have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootModules {
    /// Threads of the kernel's own that modules run on; 0: there are none, and calls are made by the threads that make them.
    pub cores: usize,
    /// One module for each kind of calls, rather than one on each core for all.
    pub by_kind: bool,
    /// Of each module, in the order of [`BootModules::names`].
    pub policies: Vec<BootPolicy>,
    /// Calls are handed over whether that is likely to be worth it or not.
    pub always: bool,
    /// Each core is kept on a processor of its own.
    pub pinned: bool,
}

/// The kinds of calls that may be made away from the threads that want them.
pub const KINDS: [&str; 6] = ["fs", "mm", "ipc", "task", "time", "net"];

impl BootModules {
    /// What the modules are called.
    pub fn names(&self) -> Vec<String> {
        match (self.by_kind, self.cores) {
            (true, _) => KINDS.map(ToOwned::to_owned).into(),
            (false, 0 | 1) => ["all".to_owned()].into(),
            (false, cores) => (0..cores).map(|core| format!("all{core}")).collect(),
        }
    }
}

/// Which of the calls in its queue a module makes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BootPolicy {
    #[default]
    Fifo,
    Cohort,
    Priority,
}

/// A descriptor the first program starts with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BootFile {
    /// Its number inside.
    pub fd: u32,
    /// What is behind it.
    pub host: HostFd,
    /// What the outside calls it, for /proc/PID/fd; empty where that means nothing inside.
    pub name: Vec<u8>,
}

/// The number of the first program's process.
pub const FIRST_PID: u32 = 2;

/// The tracer of the first program: a process beside it, which nobody inside has started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BootDebugger {
    /// The descriptor among its `files` that its program is loaded from: the tree of names need not have it.
    pub program: u32,
    pub argv: Vec<Vec<u8>>,
    pub files: Vec<BootFile>,
}

/// A small file to be there at the start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BootText {
    pub path: Vec<u8>,
    pub text: Vec<u8>,
    /// Everybody may run it.
    pub executable: bool,
}

/// A file system to be mounted at the start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BootMount {
    pub kind: BootMountKind,
    /// The place inside, absolute.
    pub target: Vec<u8>,
    pub read_only: bool,
}

/// Which file system.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum BootMountKind {
    /// A directory or file of the host itself; `source` is its path outside, for /proc/mounts. `top`: it is the host's root directory,
    /// above which there is nothing; the descriptor does not show it, since the root of a cloned tree has nothing above it either.
    Host {
        root: HostFd,
        source: Vec<u8>,
        top: bool,
    },
    /// A private layer in memory over a directory of the host, with the same fields.
    Overlay {
        root: HostFd,
        source: Vec<u8>,
        top: bool,
    },
    /// A file system in memory, filled from an archive (cpio, newc) that a descriptor of the machine's holds. Only as the root.
    Archive {
        archive: HostFd,
    },
    /// The file system on the machine's disk. Only as the root.
    Disk,
    /// An empty file system in memory.
    Memory,
    Proc,
    Dev,
    /// What the kernel has of /sys.
    Sys,
    /// The part of it about the network, over what another machine's /sys shows.
    SysNet,
    /// What the root has at this place already, to be read only. Nothing where it has none.
    ReadOnly,
}

/// Which network the sandbox has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BootNet {
    /// A loopback of its own.
    #[default]
    Loopback,
    /// Internet sockets are the host's.
    Host,
}
