//! poll(2), select(2) and epoll(7).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct pollfd`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct PollFd {
    pub fd: i32,
    pub events: u16,
    pub revents: u16,
}

/// What is ready: the bits of poll(2) and epoll(7).
pub mod event {
    pub const IN: u32 = 0x1;
    pub const PRI: u32 = 0x2;
    pub const OUT: u32 = 0x4;
    pub const ERR: u32 = 0x8;
    pub const HUP: u32 = 0x10;
    pub const NVAL: u32 = 0x20;
    pub const RDNORM: u32 = 0x40;
    pub const RDBAND: u32 = 0x80;
    pub const WRNORM: u32 = 0x100;
    pub const WRBAND: u32 = 0x200;
    pub const RDHUP: u32 = 0x2000;
}

/// `struct epoll_event`: packed on x86-64.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct EpollEvent {
    pub events: u32,
    pub data: u64,
}

const _: () = assert!(size_of::<EpollEvent>() == 12);

/// epoll_ctl(2) operations.
pub mod epoll_ctl {
    pub const ADD: i32 = 1;
    pub const DEL: i32 = 2;
    pub const MOD: i32 = 3;
}

/// What pselect6(2) passes for its mask: pointer and size, since registers have run out.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SigSetArg {
    pub addr: u64,
    pub size: u64,
}
