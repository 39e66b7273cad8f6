//! Paths that a thread names again and again, with the dentries they led to.
//!
//! Programs ask for a few paths thousands of times: /etc/localtime for each time they print, the directories their modules may be
//! in. Each thread remembers some of those that a [`super::Cached`] walk could resolve and that it has asked for twice in a row, as
//! text from the root or the working directory, so that no directory is locked and no name looked up.
//!
//! **Why what is remembered holds.** Such a walk has read four things: names of directories that the cache vouches for
//! ([`crate::vfs::inode::Inode::cache_names`]), what is mounted where, whether a directory lets everybody search it, and where the root and the
//! working directory are. (Where a link leads never changes.) Code that changes one of them in a way that could lead an existing path elsewhere
//! calls [`changing`] while it keeps walkers out, or lets them see the new state only: with the directory's `children` locked before a
//! name is taken away; with the table of mounts locked after a place is marked as mounted on and before it is unmarked; with the
//! inode's attributes locked after [`crate::vfs::inode::Inode::searchable_by_all`] has become false; with the place locked after it has changed. What
//! is remembered has the count from before its walk, and counts for nothing once another is seen. New names change no path that
//! exists. Capabilities, which are the thread's, are looked at each time where they were needed.
//!
//! **No reference is held**: a file whose last name goes is freed at once. The reference that is taken while attributes are read may be
//! seen by who counts the users of a dentry ([`super::dentry::Cache`], unlink), who then takes the way for files in use; it never leads to
//! more than a look at the attributes, so nobody comes to hold a dentry that has just been taken out of its directory.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::hash::Hasher;
use core::sync::atomic::Ordering;

use janua_rt::AtomicU64;

use crate::vfs::dentry::{Dentry, NameHasher};
use crate::vfs::mount::Mount;
use crate::vfs::walk::Stat;

/// Changes so far. It belongs to the machine, not to one name space: a change elsewhere costs another walk and nothing more.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Reports that existing paths may lead elsewhere. See above for when.
pub fn changing() {
    CHANGES.fetch_add(1, Ordering::SeqCst);
}

/// Paths of a thread.
const PATHS: usize = 8;

/// What a thread remembers.
#[derive(Default)]
pub struct Remembered {
    slots: [Slot; PATHS],
}

#[derive(Default)]
struct Slot {
    /// The hash of the path asked for last among those whose place this is.
    hash: u64,
    known: Option<Box<Known>>,
}

struct Known {
    changes: u64,
    path: Box<[u8]>,
    follow: bool,
    /// A directory on the way is not for everybody to search.
    needs_all: bool,
    dentry: Weak<Dentry>,
    mount: u64,
    is_mount_root: bool,
}

/// What to do about a path.
pub enum Asked {
    /// It led to a file with these attributes.
    Known(Stat),
    /// It is asked for again: what it leads to is to be remembered by [`Remembered::keep`], together with this.
    Again(Count),
    New,
}

/// The changes before a walk.
#[derive(Clone, Copy)]
pub struct Count(u64);

fn hash_of(path: &[u8], follow: bool) -> u64 {
    let mut hasher = NameHasher::default();
    hasher.write(path);
    hasher.write_usize(usize::from(follow));
    hasher.finish()
}

impl Remembered {
    /// Looks a path up that begins at the root or in the working directory; `all` reports whether the thread may search every directory.
    pub fn ask(&mut self, path: &[u8], follow: bool, all: impl Fn() -> bool) -> Asked {
        let hash = hash_of(path, follow);
        let slot = &mut self.slots[hash as usize % PATHS];
        if slot.hash != hash {
            slot.hash = hash;
            return Asked::New;
        }
        let changes = CHANGES.load(Ordering::Acquire);
        match &slot.known {
            Some(known)
                if known.changes == changes
                    && known.follow == follow
                    && *known.path == *path
                    && (!known.needs_all || all())
                    && let Some(dentry) = known.dentry.upgrade()
                    && let Some(attr) = dentry.inode.known_attr() =>
            {
                dentry.is_used();
                Asked::Known(Stat { attr, mount: known.mount, is_mount_root: known.is_mount_root })
            }
            _ => Asked::Again(Count(changes)),
        }
    }

    /// Remembers where a path has led that was asked for when there had been `count` changes; `needs_all`: only who may search every
    /// directory gets there.
    pub fn keep(&mut self, path: &[u8], follow: bool, count: Count, needs_all: bool, mount: &Arc<Mount>, dentry: &Arc<Dentry>) {
        let known = Known {
            changes: count.0,
            path: Box::from(path),
            follow,
            needs_all,
            dentry: Arc::downgrade(dentry),
            mount: mount.id,
            is_mount_root: Arc::ptr_eq(dentry, &mount.root),
        };
        self.slots[hash_of(path, follow) as usize % PATHS].known = Some(Box::new(known));
    }
}
