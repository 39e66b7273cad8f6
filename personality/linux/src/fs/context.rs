//! Root, working directory and umask: what CLONE_FS shares.

use core::sync::atomic::AtomicU32;

use janua_object::vfs::Path;
use janua_rt::RwLock;

/// Where names start.
pub struct FsContext {
    pub root: RwLock<Path>,
    pub cwd: RwLock<Path>,
    pub umask: AtomicU32,
}
