//! System V IPC (sysvipc(7)): shared memory, semaphore sets, message queues, and what they have in common, identifiers,
//! keys and permissions.

pub mod ids;
pub mod memory;
pub mod msg;
pub mod sem;
pub mod shm;

use alloc::sync::Arc;

use crate::memfd::MemFs;
use crate::mqueue::MessageQueues;
use crate::vfs::Vfs;

pub use ids::{Ids, Object, Owner};

/// The IPC objects of one kernel.
pub struct Ipc {
    pub shm: Arc<shm::Segments>,
    pub sem: Ids<sem::SemSet>,
    pub msg: Ids<msg::Queue>,
    /// POSIX message queues.
    pub posix: MessageQueues,
}

impl Ipc {
    /// `None` for the files of shared memory where the machine has no host: shmget returns ENOMEM then.
    pub fn new(vfs: &Vfs, files: Arc<MemFs>) -> Ipc {
        Ipc { shm: Arc::new(shm::Segments::new(vfs, files)), sem: Ids::new(), msg: Ids::new(), posix: MessageQueues::default() }
    }
}
