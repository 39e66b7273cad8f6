//! What a kernel keeps for its open files.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use janua_object::inotify::Registry;
use janua_object::lock::LockTable;
use janua_object::pipe;
use janua_object::vfs::Watches;
use janua_rt::AtomicU64;

/// One per kernel.
pub struct FileState {
    pub locks: Arc<LockTable>,
    pub inotify: Arc<Registry>,
    next_ino: AtomicU64,
    /// Largest capacity of a pipe for those without CAP_SYS_RESOURCE, in bytes (/proc/sys/fs/pipe-max-size).
    pub pipe_most: AtomicUsize,
}

impl FileState {
    pub fn new(watches: &Arc<Watches>) -> FileState {
        FileState {
            locks: LockTable::new(),
            inotify: Registry::new(watches),
            next_ino: AtomicU64::new(1),
            pipe_most: AtomicUsize::new(pipe::MAX_CAPACITY),
        }
    }

    /// An inode number for a file without a file system (pipes).
    pub fn next_ino(&self) -> u64 {
        self.next_ino.fetch_add(1, Ordering::Relaxed)
    }
}
