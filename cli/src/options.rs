//! What `janua run` was asked to do, checked and free of command-line syntax.

use std::ffi::OsString;
use std::path::PathBuf;

use janua_abi::invasive::record::library;
use janua_personality_outside::linux::BootModules;
use janua_platform_bare::Slicing;
use janua_platform_host::boot;
use janua_port::GateId;

use crate::allowance::Allowed;
use crate::control::Name;

/// How the program enters the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Call sites rewritten to jumps; Syscall User Dispatch for the rest.
    Call,
    /// Syscall User Dispatch: the host turns each call into a SIGSYS.
    Sud,
    /// A seccomp filter that turns each call into a SIGSYS.
    Seccomp,
    /// A signal queued to oneself: for programs on the system-call library, which the personality `invasive` runs.
    Signal,
    /// The host stops the program's thread at each call: with the jail `process`.
    Ptrace,
}

impl Gate {
    /// Every gate by which unmodified programs enter, the best first.
    pub const ALL: [Gate; 3] = [Gate::Call, Gate::Sud, Gate::Seccomp];

    /// What it is among all gates of all machines.
    fn id(self) -> GateId {
        match self {
            Gate::Call => GateId::Call,
            Gate::Sud => GateId::Sud,
            Gate::Seccomp => GateId::Seccomp,
            Gate::Signal => GateId::Signal,
            Gate::Ptrace => GateId::Ptrace,
        }
    }

    /// The number the kernel image knows it by.
    pub fn number(self) -> u32 {
        self.id().number().into()
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.id().name()
    }
}

/// What keeps the program out of the kernel's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jail {
    /// Protection keys: the kernel's memory is locked while the program runs.
    Pkey,
    /// The kernel is in a process of its own, and traces those of guests.
    Process,
    /// Nothing.
    None,
}

impl Jail {
    /// Every jail that exists, the best first.
    pub const ALL: [Jail; 3] = [Jail::Pkey, Jail::Process, Jail::None];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Jail::Pkey => "pkey",
            Jail::Process => "process",
            Jail::None => "none",
        }
    }

    /// What the kernel image knows it by.
    pub fn number(self) -> boot::Jail {
        match self {
            Jail::Pkey => boot::Jail::Pkey,
            Jail::Process => boot::Jail::Process,
            Jail::None => boot::Jail::None,
        }
    }
}

/// The files the program sees at `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// The host's, read-only under an overlay in memory.
    Host,
    /// Those of a host directory, read-only under an overlay in memory.
    Directory(PathBuf),
    /// Those of a host directory, and what is written goes there.
    Writable(PathBuf),
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
    /// Claims, i-lets and tiles (OctoPOS).
    Invasive(Machine),
    /// L4, Version 2.
    L4v2,
    /// The Platform Adaptation Layer of Graphene.
    Pal,
}

/// The machine an invasive application runs on, and how it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    pub tiles: u8,
    /// Of each tile.
    pub cores: u32,
    pub library: Library,
    /// The library makes calls itself that need no privilege.
    pub answers: bool,
    /// The library asks the host for its ids at each call.
    pub asks_ids: bool,
}

/// The configurations of an experiment, by the thesis' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// `sys-lib-yes`: library, gate, dispatcher.
    Gate,
    /// `sys-lib-no`: library and dispatcher.
    Dispatcher,
    /// `vanilla`: the kernel's functions, called by address.
    Vanilla,
}

impl Library {
    /// What the kernel is given: [`library`].
    pub fn number(self) -> u8 {
        (match self {
            Library::Gate => library::GATE,
            Library::Dispatcher => library::DISPATCHER,
            Library::Vanilla => library::VANILLA,
        }) as u8
    }
}

/// The kernels of a run, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Two or more.
    pub count: u32,
    /// Processors of each.
    pub cores: u32,
    /// Programs may be placed on any of them.
    pub spread: bool,
}

/// The kernels of a bare machine, side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootTiles {
    pub kernels: Tiles,
    /// The programs of all but the first, by tile: each with its arguments, or none.
    pub programs: Vec<Option<Vec<OsString>>>,
    /// How many messages from the first to each other are measured before programs start.
    pub messages: Option<u32>,
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
    /// `None`: the best for the gate.
    pub jail: Option<Jail>,
    pub root: Root,
    /// In the order given; a later one covers an earlier one.
    pub binds: Vec<Bind>,
    /// The program's environment, complete.
    pub environment: Vec<(OsString, OsString)>,
    /// Absolute directory inside to start in; `None`: the current one if it exists inside, otherwise `/`.
    pub cwd: Option<PathBuf>,
    pub net: Net,
    pub personality: Personality,
    /// `None`: one kernel, on any of the processors.
    pub tiles: Option<Tiles>,
    pub allowed: Allowed,
    pub trace: Option<Trace>,
    /// End the run when a line of the trace cannot be written.
    pub trace_whole: bool,
    /// Print calls by name, count and time at the end.
    pub stats: bool,
    /// What runs calls away from the threads that make them.
    pub modules: BootModules,
    /// As typed: a name without a slash is looked up in `PATH` inside. The root task of a system of L4.
    pub program: OsString,
    /// Without the program's own name.
    pub args: Vec<OsString>,
    /// The modules of a system of L4: sigma0 first, the root task last.
    pub l4_modules: Vec<OsString>,
    /// The manifest of a picoprocess.
    pub manifest: Option<PathBuf>,
    /// What others find the sandbox by.
    pub name: Option<Name>,
    /// It goes on in the background.
    pub detach: bool,
    /// Where gdb comes to debug the program.
    pub gdb: Option<Gdb>,
}

/// Where gdb connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gdb {
    /// A port of the loopback; 0: one that is free.
    Port(u16),
    /// A socket with this path.
    Socket(PathBuf),
}

/// A bare machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BootPlatform {
    /// A PC, with either personality.
    #[default]
    X86_64,
    /// A LEON3, with the invasive personality.
    Leon3,
}

/// What an invasive application finds on a bare machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootMachine {
    pub tiles: u8,
    /// Of each tile.
    pub cores: u32,
    pub library: Library,
    /// The library makes calls itself that need no privilege.
    pub answers: bool,
    /// The library calls by `int 0x30` rather than by `syscall`.
    pub interrupts: bool,
    /// At the end, print what was called; on a LEON3, how many register windows were spilled and filled.
    pub stats: bool,
}

/// A system of L4: its modules, sigma0 first and the root task last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct L4System {
    pub modules: Vec<OsString>,
    pub stats: bool,
}

/// A picoprocess on a bare machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picoprocess {
    pub manifest: Option<PathBuf>,
}

/// What `janua boot` does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootOptions {
    pub platform: BootPlatform,
    /// Time is counted by instructions, each of two to this power of nanoseconds.
    pub icount: Option<u8>,
    /// A plugin of QEMU's emulation, with its arguments.
    pub plugin: Option<OsString>,
    /// The processor, as QEMU names it.
    pub cpu: Option<String>,
    /// An application of the personality `invasive`; `None`: a program of the personality `linux`.
    pub invasive: Option<BootMachine>,
    /// A system of the personality `l4v2` in its place.
    pub l4: Option<L4System>,
    /// A program of the personality `pal` in place of one of the personality `linux`.
    pub pal: Option<Picoprocess>,
    /// The directory that becomes the machine's files; `None`: the host's busybox alone, for a picoprocess empty directories.
    pub ramfs: Option<PathBuf>,
    /// The image of the machine's disk, which holds its files.
    pub disk: Option<PathBuf>,
    /// Bytes of a disk that has to be made.
    pub disk_size: Option<u64>,
    /// Separate page tables for user code; `None`: as the processor needs it.
    pub kpti: Option<bool>,
    /// How the processors' time is cut; `None`: as it is by default.
    pub slice: Option<Slicing>,
    /// The vsyscall page holds code, rather than to be emulated.
    pub native_vsyscall: bool,
    /// MiB.
    pub memory: u32,
    /// Processors.
    pub smp: u32,
    /// Kernels side by side; `None`: one, which has the whole machine.
    pub tiles: Option<BootTiles>,
    /// What runs calls away from the threads that make them.
    pub modules: BootModules,
    /// Print calls by name, count and time at the end.
    pub stats: bool,
    /// The program's environment, complete.
    pub environment: Vec<(OsString, OsString)>,
    /// Absolute, inside; `None`: /.
    pub cwd: Option<PathBuf>,
    pub program: OsString,
    /// Without the program's own name.
    pub args: Vec<OsString>,
}
