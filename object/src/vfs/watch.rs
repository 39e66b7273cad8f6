//! Reporting changes in the name space and in files (inotify(7)).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use janua_rt::{Mutex, RwLock};

use crate::vfs::dentry::Dentry;
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

/// Who is notified. Called without locks of the file system held.
pub trait Sink: Send + Sync {
    /// `inode` saw `mask`; with a name it is a directory in which that name did. `cookie` joins the two halves of a rename.
    fn event(&self, inode: &Arc<dyn Inode>, name: Option<&[u8]>, mask: u32, cookie: u32);
    /// A description by which a directory's changes are announced is closed.
    fn closed(&self, inode: &Arc<dyn Inode>, description: u64);
    /// How many references to a name's dentry its watches hold.
    fn held(&self, dentry: &Arc<Dentry>) -> usize;
}

/// The place to announce changes. While nobody watches, announcing costs one load.
#[derive(Default)]
pub struct Watches {
    /// Watches set by anybody; kept by the sink.
    active: AtomicUsize,
    sink: RwLock<Option<Arc<dyn Sink>>>,
    cookie: AtomicUsize,
    /// Watched files without a name that somebody still uses, by their place in memory: their end is reported when nobody does.
    ending: Mutex<HashMap<usize, Arc<Dentry>>>,
    /// How many those are.
    endings: AtomicUsize,
}

/// A file without a name and the directories without one above it.
pub struct Chain(Vec<usize>);

/// Whether only its watches and the list hold it.
fn is_over(sink: &dyn Sink, dentry: &Arc<Dentry>) -> bool {
    let held = sink.held(dentry);
    held == 0 || Arc::strong_count(dentry) <= held + 1
}

impl Watches {
    /// Names who is notified from now on.
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

    /// A description by which changes may be announced is closed.
    #[cold]
    pub fn closed(&self, inode: &Arc<dyn Inode>, description: u64) {
        let sink = self.sink.read().clone();
        if let Some(sink) = sink {
            sink.closed(inode, description);
        }
    }

    /// A number that joins two events.
    pub fn cookie(&self) -> u32 {
        self.cookie.fetch_add(1, Ordering::Relaxed) as u32 + 1
    }

    /// An event of an inode itself, or of a name in the directory `inode`.
    #[inline]
    pub fn notify(&self, inode: &Arc<dyn Inode>, name: Option<&[u8]>, mask: u32, cookie: u32) {
        if self.any() {
            self.notify_slow(inode, name, mask, cookie);
        }
    }

    #[cold]
    fn notify_slow(&self, inode: &Arc<dyn Inode>, name: Option<&[u8]>, mask: u32, cookie: u32) {
        let sink = self.sink.read().clone();
        if let Some(sink) = sink {
            sink.event(inode, name, mask, cookie);
        }
    }

    /// The last name of a file is gone, and `dentry` is the caller's only reference. The file ends now, or with its last use: when it is
    /// closed, and unmapped, and the working directory of no process, and nothing below it is used either.
    #[cold]
    pub fn unnamed(&self, dentry: Arc<Dentry>) {
        let Some(sink) = self.sink.read().clone() else { return };
        if sink.held(&dentry) == 0 {
            // If it is watched at all, then by another name.
            return sink.event(&dentry.inode, None, event::DELETE_SELF, 0);
        }
        let mut ending = self.ending.lock();
        if ending.try_reserve(1).is_err() {
            drop(ending);
            return sink.event(&dentry.inode, None, event::DELETE_SELF, 0);
        }
        ending.insert(Arc::as_ptr(&dentry).addr(), dentry);
        drop(ending);
        self.endings.fetch_add(1, Ordering::SeqCst);
        self.released();
    }

    /// Whether somebody waits for the end of a file.
    #[inline]
    pub fn awaits_end(&self) -> bool {
        self.endings.load(Ordering::Relaxed) != 0
    }

    /// Something that was used is so no longer: reports the files that have ended by that. One may hold the next, its directory.
    pub fn released(&self) {
        while self.awaits_end() {
            let Some(sink) = self.sink.read().clone() else { return };
            let ended = {
                let mut ending = self.ending.lock();
                let over = ending.iter().find(|(_, dentry)| is_over(&*sink, dentry)).map(|(&at, _)| at);
                over.and_then(|at| ending.remove(&at))
            };
            let Some(ended) = ended else { return };
            self.ended(&*sink, ended);
        }
    }

    /// What a file that is about to be let go may be the last use of: for [`Watches::released_of`].
    pub fn chain(&self, dentry: &Arc<Dentry>) -> Chain {
        let mut chain = Vec::new();
        let mut at = self.awaits_end().then(|| dentry.clone());
        while let Some(dentry) = at.filter(|dentry| dentry.is_deleted()) {
            chain.push(Arc::as_ptr(&dentry).addr());
            at = dentry.parent();
        }
        Chain(chain)
    }

    /// [`Watches::released`] of a file that is known, however many files others watch.
    pub fn released_of(&self, chain: &Chain) {
        for at in &chain.0 {
            let Some(sink) = self.sink.read().clone() else { return };
            let ended = {
                let mut ending = self.ending.lock();
                let over = ending.get(at).is_some_and(|dentry| is_over(&*sink, dentry));
                over.then(|| ending.remove(at)).flatten()
            };
            if let Some(ended) = ended {
                self.ended(&*sink, ended);
            }
        }
    }

    fn ended(&self, sink: &dyn Sink, dentry: Arc<Dentry>) {
        self.endings.fetch_sub(1, Ordering::SeqCst);
        // It may have got a name again (linkat(2) of an open file).
        if dentry.is_dir() || dentry.inode.attr().is_ok_and(|attr| attr.nlink == 0) {
            sink.event(&dentry.inode, None, event::DELETE_SELF, 0);
        }
    }

    /// An event of a file: reported to the watches of the directory it was reached by, then to its own.
    #[inline]
    pub fn notify_file(&self, path: &Path, mask: u32) {
        if self.any() {
            let mask = if path.dentry.is_dir() { mask | event::IS_DIR } else { mask };
            if let Some(parent) = path.dentry.parent() {
                let gone = if path.dentry.is_deleted() { event::UNLINKED } else { 0 };
                self.notify_slow(&parent.inode, Some(&path.dentry.name()), mask | gone, 0);
            }
            self.notify_slow(path.inode(), None, mask, 0);
        }
    }
}
