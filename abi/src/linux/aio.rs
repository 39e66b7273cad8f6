//! Asynchronous i/o by contexts: io_setup(2) and the calls on what it makes (linux/aio_abi.h).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct iocb`: what is to be done.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Iocb {
    pub data: u64,
    pub key: u32,
    /// RWF_*.
    pub rw_flags: u32,
    /// [`command`].
    pub opcode: u16,
    pub priority: i16,
    pub fd: u32,
    pub buf: u64,
    pub bytes: u64,
    pub offset: i64,
    pub reserved: u64,
    /// [`RESFD`]; others mean nothing.
    pub flags: u32,
    /// An eventfd to be signalled, with [`RESFD`].
    pub resfd: u32,
}

/// `struct io_event`: what has been done.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct IoEvent {
    pub data: u64,
    /// The address of its [`Iocb`].
    pub obj: u64,
    pub result: i64,
    pub result2: i64,
}

/// `struct aio_ring`: what is at a context's address, before its events.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct AioRing {
    pub id: u32,
    /// Events the ring holds.
    pub count: u32,
    /// Written by who takes events, in the program or in the kernel.
    pub head: u32,
    pub tail: u32,
    pub magic: u32,
    pub compat_features: u32,
    pub incompat_features: u32,
    pub header_len: u32,
}

const _: () = assert!(size_of::<Iocb>() == 64 && size_of::<IoEvent>() == 32 && size_of::<AioRing>() == 32);

pub const AIO_RING_MAGIC: u32 = 0xa10a_10a1;
/// The first version of the ring: what it holds may be read without a call.
pub const AIO_RING_COMPAT: u32 = 1;

pub const RESFD: u32 = 1;
/// What the kernel writes into [`Iocb::key`] of one it has taken.
pub const KEY: u32 = 0;

/// What is to be done.
pub mod command {
    pub const PREAD: u16 = 0;
    pub const PWRITE: u16 = 1;
    pub const FSYNC: u16 = 2;
    pub const FDSYNC: u16 = 3;
    pub const POLL: u16 = 5;
    pub const NOOP: u16 = 6;
    pub const PREADV: u16 = 7;
    pub const PWRITEV: u16 = 8;
}
