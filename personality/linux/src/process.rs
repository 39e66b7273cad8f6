//! Processes: thread groups with what their threads share.

use alloc::sync::Arc;

use janua_object::fdtable::FdTable;
use janua_object::mm::Mm;
use janua_rt::RwLock;

use crate::fs::FsContext;

/// The personality's part of a task.
pub struct Process {
    pub pid: u32,
    /// Descriptors.
    pub files: RwLock<Arc<FdTable>>,
    /// Root, working directory, umask.
    pub fs: RwLock<Arc<FsContext>>,
    /// Memory; replaced by exec.
    pub mm: RwLock<Arc<Mm>>,
}
