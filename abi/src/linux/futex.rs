//! futex(2), futex_waitv(2), robust lists (get_robust_list(2)).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Operations, without their flags.
pub mod op {
    pub const WAIT: u32 = 0;
    pub const WAKE: u32 = 1;
    pub const REQUEUE: u32 = 3;
    pub const CMP_REQUEUE: u32 = 4;
    pub const WAKE_OP: u32 = 5;
    pub const LOCK_PI: u32 = 6;
    pub const UNLOCK_PI: u32 = 7;
    pub const TRYLOCK_PI: u32 = 8;
    pub const WAIT_BITSET: u32 = 9;
    pub const WAKE_BITSET: u32 = 10;
    pub const WAIT_REQUEUE_PI: u32 = 11;
    pub const CMP_REQUEUE_PI: u32 = 12;
    pub const LOCK_PI2: u32 = 13;

    pub const NAMES: [&str; 14] = [
        "FUTEX_WAIT",
        "FUTEX_WAKE",
        "FUTEX_FD",
        "FUTEX_REQUEUE",
        "FUTEX_CMP_REQUEUE",
        "FUTEX_WAKE_OP",
        "FUTEX_LOCK_PI",
        "FUTEX_UNLOCK_PI",
        "FUTEX_TRYLOCK_PI",
        "FUTEX_WAIT_BITSET",
        "FUTEX_WAKE_BITSET",
        "FUTEX_WAIT_REQUEUE_PI",
        "FUTEX_CMP_REQUEUE_PI",
        "FUTEX_LOCK_PI2",
    ];
}

/// The word is used by one process only.
pub const PRIVATE_FLAG: u32 = 128;
/// The timeout is a point of the real-time clock.
pub const CLOCK_REALTIME_FLAG: u32 = 256;
/// Every waiter, every waker.
pub const BITSET_MATCH_ANY: u32 = u32::MAX;

/// The word of a priority-inheriting or robust lock: the owner's tid and two flags.
pub const TID_MASK: u32 = 0x3fff_ffff;
pub const OWNER_DIED: u32 = 0x4000_0000;
pub const WAITERS: u32 = 0x8000_0000;

/// Flags of futex_waitv and the futex2 calls.
pub mod futex2 {
    pub const SIZE_MASK: u32 = 3;
    pub const SIZE_U32: u32 = 2;
    pub const PRIVATE: u32 = 128;
}

/// Most words futex_waitv waits for.
pub const WAITV_MAX: usize = 128;

/// `struct futex_waitv`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct FutexWaitv {
    pub val: u64,
    pub uaddr: u64,
    pub flags: u32,
    pub reserved: u32,
}

/// `struct robust_list_head`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RobustListHead {
    /// The first entry, or the head's own address. Bit 0 of a link marks a priority-inheriting lock.
    pub next: u64,
    /// From an entry to its lock word.
    pub futex_offset: i64,
    /// A lock being taken or released just now.
    pub pending: u64,
}

/// Longest robust list that is followed.
pub const ROBUST_LIST_LIMIT: usize = 2048;
