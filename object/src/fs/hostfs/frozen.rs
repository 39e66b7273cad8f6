//! Which files of the host stay as they are, because nothing in the sandbox can write to them.
//!
//! A read-only view of the host is not enough: the same file may be in a directory that is bound writable as well. So the
//! roots of everything writable are noted, and a file is taken to change when its directories lead through one of them, or when it
//! has a second name.
//!
//! What is writable in another sandbox, or by another mount of the host's, cannot be seen here. A program there is no more to be trusted than
//! one here, so only files of the system are taken to stay: root's alone to change, below a directory that systems keep their programs in
//! and nobody has a reason to show writable, by whatever other name they have. Programs outside every sandbox may change any file, as they may change the sandbox.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_port::Nanos;
use janua_port::host::HostStat;
use janua_rt::{AtomicI64, Mutex};

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

/// Since when guests may write to some directory: nanoseconds since 1970; the largest number before they may.
static BEGIN: AtomicI64 = AtomicI64::new(i64::MAX);
/// The host's files have times of a clock that is behind by a tick or two.
const BEHIND: i64 = 1_000_000_000;

/// Guests may write to a directory from now on, a time as of the host's clock.
pub fn note_begin(now: Nanos) {
    BEGIN.fetch_min(i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(BEHIND), Ordering::Relaxed);
}

/// Directories right below the root in which systems keep their programs (hier(7); Nix and Guix have stores of their own).
const SYSTEM: &[&[u8]] = &[b"bin", b"gnu", b"lib", b"lib32", b"lib64", b"libx32", b"nix", b"sbin", b"usr"];

/// Permission bits that let others than a file's owner write to it.
const OTHERS_WRITE: u32 = 0o022;

impl HostInode {
    /// Whether no sandbox's program can change the file's contents.
    pub(crate) fn is_frozen(&self) -> bool {
        let stat = *self.stat.lock();
        stat.uid == 0 && stat.mode & OTHERS_WRITE == 0 && self.is_of_system() && self.is_out_of_reach(&stat)
    }

    /// Whether the file is in one of [`SYSTEM`] of the host. A root of another kind may be a sandbox's to write to.
    fn is_of_system(&self) -> bool {
        if !self.shared.top {
            return false;
        }
        let (mut dir, mut name) = {
            let place = self.place.lock();
            (place.dir.clone(), place.name.clone())
        };
        // The root has no name: what is right below it comes last.
        while let Some(above) = dir {
            let place = above.place.lock();
            if place.dir.is_some() {
                name = place.name.clone();
            }
            dir = place.dir.clone();
            drop(place);
        }
        SYSTEM.contains(&&*name)
    }

    /// Whether nothing in this sandbox can change the file's contents.
    fn is_out_of_reach(&self, stat: &HostStat) -> bool {
        let writable = WRITABLE.lock();
        if writable.is_empty() {
            return true;
        }
        let is_noted = |stat: &HostStat| writable.iter().any(|&(dev, ino, _)| (dev, ino) == (stat.dev, stat.ino));
        // A second name may be in any directory of the same file system; a file is itself by whatever name. One that was removed since guests
        // could open the file by it has changed the file's time of change, which nobody can set.
        let renamed = stat.nlink > 1 || stat.ctime >= BEGIN.load(Ordering::Relaxed);
        let linked = renamed && writable.iter().any(|&(dev, _, is_dir)| is_dir && dev == stat.dev);
        // What is above a place that is not the host's root is not known here.
        let below = !self.shared.top && writable.iter().any(|&(_, _, is_dir)| is_dir);
        if linked || below || self.shared.writable || is_noted(stat) {
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
