//! Structures that go by pointer.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `PAL_STREAM_ATTR`, 2014's order.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Attributes {
    pub kind: u32,
    pub pad0: u32,
    pub file_id: u64,
    /// Bytes; of a pipe or a socket, those that can be read now.
    pub size: u64,
    /// Times are seconds since 1970.
    pub access_time: u64,
    pub change_time: u64,
    pub create_time: u64,
    /// From here on four truth values, a byte each.
    pub disconnected: u8,
    pub readable: u8,
    pub writeable: u8,
    pub runnable: u8,
    /// Permission bits.
    pub share: u32,
    pub nonblocking: u8,
    pub reuseaddr: u8,
    pub pad1: [u8; 6],
    pub linger: u64,
    pub receivebuf: u64,
    pub sendbuf: u64,
    pub receivetimeout: u64,
    pub sendtimeout: u64,
    pub tcp_cork: u8,
    pub tcp_keepalive: u8,
    pub tcp_nodelay: u8,
    pub pad2: [u8; 5],
}

/// What the library is given when it starts, for the control block.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Start {
    /// Handles as calls return them ([`super::Kind`] above bit 32, the number below); 0 for none.
    pub manifest: u64,
    pub parent: u64,
    pub thread: u64,
    pub debug: u64,
    pub process_id: u64,
    pub host_id: u64,
    /// Addresses that a program may have, the first behind them.
    pub user_low: u64,
    pub user_high: u64,
    pub page_size: u64,
    pub alloc_align: u64,
    /// Bytes of memory there are.
    pub mem_total: u64,
    /// Processors there are.
    pub cpu_count: u64,
}
