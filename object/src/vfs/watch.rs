//! Telling of changes in the name space and in files (inotify(7)).

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use janua_rt::RwLock;

use crate::vfs::inode::Inode;
use crate::vfs::path::Path;

/// What happened, with inotify(7)'s bits.
pub mod event {
    pub const ACCESS: u32 = 0x1;
    pub const MODIFY: u32 = 0x2;
    pub const ATTRIB: u32 = 0x4;
    pub const CLOSE_WRITE: u32 = 0x8;
    pub const CLOSE_NOWRITE: u32 = 0x10;
    pub const OPEN: u32 = 0x20;
    pub const MOVED_FROM: u32 = 0x40;
    pub const MOVED_TO: u32 = 0x80;
    pub const CREATE: u32 = 0x100;
    pub const DELETE: u32 = 0x200;
    pub const DELETE_SELF: u32 = 0x400;
    pub const MOVE_SELF: u32 = 0x800;
    pub const UNMOUNT: u32 = 0x2000;
    /// Within the kernel: the name in the directory is gone already (IN_EXCL_UNLINK).
    pub const UNLINKED: u32 = 0x0800_0000;
    pub const IS_DIR: u32 = 0x4000_0000;
}

/// Who is told. Called without locks of the file system held.
pub trait Sink: Send + Sync {
    /// `inode` saw `mask`; with a name it is a directory in which that name did. `cookie` joins the two halves of a rename.
    fn event(&self, inode: &Arc<dyn Inode>, name: Option<&[u8]>, mask: u32, cookie: u32);
}

/// The place to announce changes. While nobody watches, announcing costs one load.
#[derive(Default)]
pub struct Watches {
    /// Watches set by anybody; kept by the sink.
    active: AtomicUsize,
    sink: RwLock<Option<Arc<dyn Sink>>>,
    cookie: AtomicUsize,
}

impl Watches {
    /// Names who is told from now on.
    pub fn set_sink(&self, sink: Arc<dyn Sink>) {
        *self.sink.write() = Some(sink);
    }

    /// The sink counts its watches here.
    pub fn count(&self, more: bool) {
        if more {
            self.active.fetch_add(1, Ordering::SeqCst);
        } else {
            self.active.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[inline]
    pub fn any(&self) -> bool {
        self.active.load(Ordering::Relaxed) != 0
    }

    /// A number that joins two events.
    pub fn cookie(&self) -> u32 {
        self.cookie.fetch_add(1, Ordering::Relaxed) as u32 + 1
    }

    /// An event of an inode itself, or of a name in the directory `inode`.
    #[inline]
    pub fn tell(&self, inode: &Arc<dyn Inode>, name: Option<&[u8]>, mask: u32, cookie: u32) {
        if self.any() {
            self.tell_slow(inode, name, mask, cookie);
        }
    }

    #[cold]
    fn tell_slow(&self, inode: &Arc<dyn Inode>, name: Option<&[u8]>, mask: u32, cookie: u32) {
        let sink = self.sink.read().clone();
        if let Some(sink) = sink {
            sink.event(inode, name, mask, cookie);
        }
    }

    /// An event of a file: reported to the watches of the directory it was reached by, then to its own.
    #[inline]
    pub fn tell_file(&self, path: &Path, mask: u32) {
        if self.any() {
            let mask = if path.dentry.is_dir() { mask | event::IS_DIR } else { mask };
            if let Some(parent) = path.dentry.parent() {
                let gone = if path.dentry.is_deleted() { event::UNLINKED } else { 0 };
                self.tell_slow(&parent.inode, Some(&path.dentry.name()), mask | gone, 0);
            }
            self.tell_slow(path.inode(), None, mask, 0);
        }
    }
}
