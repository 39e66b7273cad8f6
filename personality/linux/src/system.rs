//! State of one Linux kernel instance: what would be globals elsewhere.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::AtomicU32;

use janua_rt::Mutex;

use crate::Seat;
use crate::Task;

/// One per kernel.
pub struct System {
    /// Processes by pid, zombies included.
    pub processes: Mutex<BTreeMap<u32, Arc<Task>>>,
    /// Threads by tid.
    pub threads: Mutex<BTreeMap<u32, Weak<Seat>>>,
    pub last_pid: AtomicU32,
}
