//! What `janua run` was asked to do, checked and free of command-line syntax.

use std::ffi::OsString;
use std::path::PathBuf;

/// How the program enters the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Syscall User Dispatch: the host turns each call into a SIGSYS.
    Sud,
    /// A seccomp filter that turns each call into a SIGSYS.
    Seccomp,
}

impl Gate {
    /// Every gate that exists.
    pub const ALL: [Gate; 2] = [Gate::Sud, Gate::Seccomp];

    /// The number the kernel image knows it by.
    pub fn number(self) -> u32 {
        match self {
            Gate::Sud => 1,
            Gate::Seccomp => 2,
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Gate::Sud => "sud",
            Gate::Seccomp => "seccomp",
        }
    }
}

/// What keeps the program out of the kernel's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jail {
    /// Nothing.
    None,
}

/// The files the program sees at `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// The host's, read-only under an overlay in memory.
    Host,
    /// Those of a host directory, read-only under an overlay in memory.
    Directory(PathBuf),
}

/// A host path shown to the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Absolute path on the host; it exists.
    pub source: PathBuf,
    /// Absolute path inside.
    pub target: PathBuf,
    /// Whether writes reach the host.
    pub writable: bool,
}

/// What networks the program reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Net {
    /// A loopback of its own.
    None,
    /// The host's, for inet sockets.
    Host,
}

/// Which calls exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Personality {
    /// x86-64 Linux.
    Linux,
}

/// Where the trace of calls goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trace {
    /// Standard error of `janua`.
    Stderr,
    /// A file, made anew.
    File(PathBuf),
}

/// What `janua run` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// `None`: the best the machine has.
    pub gate: Option<Gate>,
    pub jail: Jail,
    pub root: Root,
    /// In the order given; a later one covers an earlier one.
    pub binds: Vec<Bind>,
    /// The program's environment, complete.
    pub environment: Vec<(OsString, OsString)>,
    /// Absolute directory inside to start in; `None`: the current one if it exists inside, otherwise `/`.
    pub cwd: Option<PathBuf>,
    pub net: Net,
    pub personality: Personality,
    pub trace: Option<Trace>,
    /// Print calls by name, count and time at the end.
    pub stats: bool,
    /// As typed: a name without a slash is looked up in `PATH` inside.
    pub program: OsString,
    /// Without the program's own name.
    pub args: Vec<OsString>,
}
