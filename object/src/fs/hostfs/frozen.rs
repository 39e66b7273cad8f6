//! Which files of the host stay as they are, because nothing in the sandbox can write to them.
//!
//! A read-only view of the host is not enough: the same file may lie in a directory that is bound writable as well. So the
//! roots of everything writable are noted, and a file is taken to change when its directories lead through one of them, or when it
//! has a second name. What the host itself mounts a second time, inside a read-only view, from below a writable bind is beyond
//! what can be seen here; and programs outside the sandbox may change any file, as they may change the sandbox.

use alloc::vec::Vec;

use janua_port::host::HostStat;
use janua_rt::Mutex;

use super::HostInode;
use crate::vfs::FileKind;

/// Device and inode of the directories and files that guests may write to, and whether it is a directory.
static WRITABLE: Mutex<Vec<(u64, u64, bool)>> = Mutex::new(Vec::new());

/// Guests may write to this file, or to everything in this directory.
pub fn note_writable(stat: &HostStat) {
    let noted = (stat.dev, stat.ino, FileKind::of_mode(stat.mode) == Some(FileKind::Directory));
    let mut writable = WRITABLE.lock();
    if !writable.contains(&noted) {
        writable.push(noted);
    }
}

impl HostInode {
    /// Whether nothing in the sandbox can change the file's contents.
    pub(crate) fn is_frozen(&self) -> bool {
        let stat = *self.stat.lock();
        let writable = WRITABLE.lock();
        if writable.is_empty() {
            return true;
        }
        let is_noted = |stat: &HostStat| writable.iter().any(|&(dev, ino, _)| (dev, ino) == (stat.dev, stat.ino));
        // A second name may lie in any directory of the same file system; a file is itself by whatever name.
        let linked = stat.nlink > 1 && writable.iter().any(|&(dev, _, is_dir)| is_dir && dev == stat.dev);
        // What is above a place that is not the host's root is not known here.
        let below = !self.shared.top && writable.iter().any(|&(_, _, is_dir)| is_dir);
        if linked || below || self.shared.writable || is_noted(&stat) {
            return false;
        }
        let mut above = self.place.lock().dir.clone();
        while let Some(dir) = above {
            let stat = *dir.stat.lock();
            if is_noted(&stat) {
                return false;
            }
            above = dir.place.lock().dir.clone();
        }
        true
    }
}
