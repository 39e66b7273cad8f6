//! Names: dentries, mounts and places.

use alloc::sync::Arc;

use crate::vfs::inode::Inode;

/// A name in a directory and what it leads to.
pub struct Dentry {
    pub inode: Arc<dyn Inode>,
}

/// A file system attached to a place.
pub struct Mount {
    pub root: Arc<Dentry>,
}

/// A place: a dentry in a mount.
#[derive(Clone)]
pub struct Path {
    pub mount: Arc<Mount>,
    pub dentry: Arc<Dentry>,
}

impl Path {
    pub fn inode(&self) -> &Arc<dyn Inode> {
        &self.dentry.inode
    }
}
