//! What a kernel and its outside send each other while it runs: requests in, answers out.
//!
//! The machine carries them ([`crate::Machine::notify_outside`]; how requests arrive is the platform's affair), the personality makes
//! them true, the kernel between them knows neither. What the inside sends is never trusted outside: an answer gives no rights, names
//! no file and hands over no descriptor.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU32;

use serde::{Deserialize, Serialize};

use crate::machine::Outside;
use crate::{HostFd, Machine};

/// What the outside asks for. `id` is its own number for the matter; answers name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// List all guests: [`Answer::Guests`].
    Guests { id: u32 },
    /// Run a program: [`Answer::Started`] or [`Answer::Says`], and [`Answer::Ended`].
    Run { id: u32, program: Box<Program> },
    /// Send the program of a [`Request::Run`] a signal. One that is not known has ended.
    Signal { id: u32, signal: u32 },
    /// The window of such a program's terminal has another size.
    Resize { id: u32, size: WindowSize },
    /// Count what the guests have and have done: [`Answer::Metrics`].
    Metrics { id: u32 },
    /// Have a module of this name stay on a syscall core, or with `None` go where there is less to do: [`Answer::Moved`].
    Move { id: u32, module: String, core: Option<u32> },
    /// Another tile has ended.
    TileEnded { tile: u32 },
}

/// Rows and columns of a terminal's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    pub rows: u16,
    pub columns: u16,
}

/// A request, and the descriptors that came with it.
#[derive(Debug)]
pub struct Asked {
    pub request: Request,
    /// The kernel's from now on.
    pub handed: Vec<HostFd>,
}

/// A program to be run inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its path; looked up in the environment's PATH when it has no slash.
    pub path: Vec<u8>,
    pub argv: Vec<Vec<u8>>,
    /// Variables beside those the first program was given, in place of those of the same name.
    pub envp: Vec<Vec<u8>>,
    /// The directory it starts in, in place of the first program's.
    pub cwd: Option<Vec<u8>>,
    /// The numbers inside of the descriptors handed over, in their order.
    pub files: Vec<u32>,
    /// It gets a terminal of its own, with a window of this size, and finds it at those of 0, 1 and 2 for which no descriptor has been
    /// handed over. One more has been: the line (a stream) at whose other end are keyboard and screen. It never blocks.
    pub terminal: Option<WindowSize>,
    /// The tile it is to run on; `None`: the first, where all programs begin.
    pub tile: Option<u32>,
}

/// What the inside reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The words that both share have changed.
    Look,
    /// Some of the guests; `more` follow.
    Guests { id: u32, guests: Vec<GuestInfo>, more: bool },
    /// The program has been loaded and begins to run, as the process `pid` inside.
    Started { id: u32, pid: u32 },
    /// What is to be read by who asked for the program: why it does not run.
    Says { id: u32, text: String },
    /// The program has ended with this wait status.
    Ended { id: u32, status: u32 },
    /// The request cannot be met, and why.
    Refused { id: u32, why: String },
    /// What the guests have and have done.
    Metrics { id: u32, metrics: Metrics },
    /// The module is there.
    Moved { id: u32 },
}

/// What only the kernel knows of its guests together. What they use of the machine is in its [`crate::Accounts`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    pub processes: u32,
    /// Open descriptors, those of a table that several processes share once.
    pub files: u64,
    /// `None` where the kernel does not count calls.
    pub calls: Option<Calls>,
    /// What makes calls away from the threads that want them.
    pub modules: Vec<ModuleInfo>,
    /// The other tiles, as this one's monitor knows them.
    pub tiles: Vec<TileInfo>,
}

/// Another tile, as a monitor knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileInfo {
    pub tile: u32,
    pub state: TileState,
    /// Messages of its monitor that were heard, and those that were sent to it.
    pub heard: u64,
    pub said: u64,
}

/// What there is to be had of another tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TileState {
    /// It has not answered in time.
    #[default]
    Silent,
    /// It has answered after so many nanoseconds.
    Listens(u64),
    /// It is over.
    Ended,
    /// It did what no tile may: nothing of it is heard any more.
    Broken,
}

/// A module, which takes calls on a syscall core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleInfo {
    pub name: String,
    pub core: u32,
    /// It stays there by request, and is not moved for what there is to do.
    pub kept: bool,
    /// How often it has been moved.
    pub moved: u32,
    /// Calls it has begun or gone on with.
    pub turns: u64,
}

/// System calls since the kernel's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    pub made: u64,
    /// Those that returned an error.
    pub failed: u64,
    /// Nanoseconds between entry and result, waiting included.
    pub nanos: u64,
}

/// A guest process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestInfo {
    /// Its number and its parent's inside.
    pub pid: u32,
    pub parent: u32,
    /// Its number on the host as the host's /proc inside has it, 0 when it has none (any more).
    pub host: u32,
    /// The letter of its state, as in /proc/PID/stat.
    pub state: u8,
    pub threads: u32,
    pub uid: u32,
    /// Processor time, nanoseconds.
    pub time: u64,
    /// Bytes of its own that are resident.
    pub memory: u64,
    /// Its arguments, with a zero behind each, cut to [`GuestInfo::COMMAND_MOST`]; its name where it has none.
    pub command: Vec<u8>,
}

impl GuestInfo {
    /// Bytes of a command that are passed on.
    pub const COMMAND_MOST: usize = 1024;
}

/// The outside's number for the first program, where it wants to be notified of it.
pub const FIRST: u32 = 1;

/// Reports to the outside that the kernel is over, with this exit code. What becomes of it is the outside's affair: nothing of the kernel that
/// is under way ends here but the caller, which waits for good where the machine goes on without this kernel.
pub fn over(machine: &dyn Machine, code: u8) -> ! {
    machine.notify_outside(Outside::Over(code));
    forever(machine)
}

/// Waits for good.
pub fn forever(machine: &dyn Machine) -> ! {
    static NEVER: AtomicU32 = AtomicU32::new(0);
    loop {
        machine.park().park(&NEVER, 0, None);
    }
}
