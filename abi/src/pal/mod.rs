//! The Platform Adaptation Layer of Graphene as of 2014: numbers, structures and error codes (its `pal.h` and `pal_error.h`).
//!
//! Graphene's calls are functions of a library. How that library enters the kernel is Janua's own: a number in rax, arguments as in Linux' calls.

mod attr;
mod error;

pub use attr::{Attributes, Start};
pub use error::{Error, errno};

/// Size and alignment of what is allocated.
pub const ALLOC_ALIGN: usize = 4096;

/// What a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    File = 1,
    /// The end of a byte stream that somebody connected by its name.
    Pipe = 2,
    PipeServer = 3,
    /// The end that the server was given for it.
    PipeClient = 4,
    /// A stream that leads to its own holder.
    PipePrivate = 5,
    Device = 6,
    Directory = 7,
    Tcp = 8,
    TcpServer = 9,
    Udp = 10,
    UdpServer = 11,
    Process = 12,
    Thread = 14,
    Semaphore = 15,
    Event = 16,
    /// A channel for pages.
    Gipc = 17,
}

/// Kinds of allocation.
pub mod alloc_type {
    /// Below 4 GiB.
    pub const BELOW_4G: u32 = 1;
    /// Addresses alone, without memory.
    pub const RESERVE: u32 = 2;
}

/// Rights to memory.
pub mod prot {
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const EXEC: u32 = 4;
    /// Of a file's mapping: what is stored stays the program's own.
    pub const WRITECOPY: u32 = 8;
}

/// Words of DkStreamOpen.
pub mod stream {
    pub const ACCESS_MASK: u32 = 3;
    pub const RDWR: u32 = 2;
    pub const SHARE_MASK: u32 = 0o777;
    /// Makes what is not there.
    pub const CREAT_TRY: u32 = 0o100;
    /// Makes it, and fails if it is there.
    pub const CREAT_ALWAYS: u32 = 0o200;
    pub const NONBLOCK: u32 = 0o4000;
    /// Of DkStreamDelete: a direction to be shut down.
    pub const DELETE_RD: u32 = 1;
    pub const DELETE_WR: u32 = 2;
}

/// Flags of DkThreadCreate.
pub mod thread {
    pub const SAME_PARENT: u32 = 0x8000;
    pub const DETACHED: u32 = 0x40_0000;
    pub const STOPPED: u32 = 0x200_0000;
}

/// Events that a program may have a handler for.
pub mod event {
    pub const DIV_ZERO: u32 = 1;
    pub const MEMFAULT: u32 = 2;
    pub const ILLEGAL: u32 = 3;
    pub const QUIT: u32 = 4;
    pub const SUSPEND: u32 = 5;
    pub const RESUME: u32 = 6;
    /// A call has failed: the library's own, which the kernel knows nothing of.
    pub const FAILURE: u32 = 7;
}

/// Of DkProcessSandboxCreate: names of pipes of its own too.
pub const SANDBOX_PIPE: u32 = 1;

/// Registers that DkSegmentRegister names.
pub mod segment {
    pub const FS: u32 = 1;
    pub const GS: u32 = 2;
}
