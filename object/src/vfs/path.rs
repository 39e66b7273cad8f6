//! Places, and how they are written.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::vfs::dentry::Dentry;
use crate::vfs::inode::Inode;
use crate::vfs::mount::{Mount, MountFlags};

/// How many bytes of a text come before its first slash; all if there is none. Looks at eight at a time.
#[inline]
pub(super) fn until_slash(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut words = text.chunks_exact(8);
    for (at, chunk) in words.by_ref().enumerate() {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        let word = u64::from_le_bytes(word) ^ (ONES * u64::from(b'/'));
        // The lowest set bit is in the first byte that is zero now.
        let zero = word.wrapping_sub(ONES) & !word & ONES << 7;
        if zero != 0 {
            return at * 8 + zero.trailing_zeros() as usize / 8;
        }
    }
    let rest = words.remainder();
    text.len() - rest.len() + rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len())
}

/// A place: a dentry in a mount.
#[derive(Clone)]
pub struct Path {
    pub mount: Arc<Mount>,
    pub dentry: Arc<Dentry>,
}

/// Bytes of a name beyond which it is written in part: who walks down can make names of any length, and no call takes one of a
/// sixteenth of this.
pub const NAME_MOST: usize = 64 << 10;

/// A place as text.
pub struct Written {
    /// The absolute name as seen from the root it was asked for, without " (deleted)".
    pub name: Vec<u8>,
    /// The name has been removed.
    pub deleted: bool,
    /// The place is below the root it was asked for; otherwise `name` starts at the root of all.
    pub reachable: bool,
}

impl Written {
    /// As /proc/self/fd and the like show it.
    pub fn display(mut self) -> Vec<u8> {
        if self.deleted {
            self.name.extend_from_slice(b" (deleted)");
        }
        self.name
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        Arc::ptr_eq(&self.dentry, &other.dentry) && self.mount.id == other.mount.id
    }
}

impl Path {
    pub fn inode(&self) -> &Arc<dyn Inode> {
        &self.dentry.inode
    }

    /// The flags of the mount, and what the file's own file system adds to them.
    pub fn mount_flags(&self) -> MountFlags {
        let flags = self.mount.flags();
        if self.inode().no_exec() { flags | MountFlags::NOEXEC } else { flags }
    }

    /// What is here has been read: its access time follows, as the mount wants it.
    pub fn accessed(&self) {
        let flags = self.mount.flags();
        let skipped = flags.contains(MountFlags::NOATIME)
            || flags.contains(MountFlags::NODIRATIME) && self.dentry.is_dir()
            || self.mount.check_write().is_err();
        if !skipped {
            self.inode().accessed(flags.contains(MountFlags::RELATIME));
        }
    }

    /// The root of a mount.
    pub fn of_mount(mount: &Arc<Mount>) -> Path {
        Path { dentry: mount.root.clone(), mount: mount.clone() }
    }

    /// Whether something is mounted here or this is where a mount begins.
    pub fn is_mount_root(&self) -> bool {
        Arc::ptr_eq(&self.dentry, &self.mount.root)
    }

    /// One step up, out of mounts as needed; `None` at the root of all.
    pub fn up(&self) -> Option<Path> {
        let mut at = self.clone();
        while at.is_mount_root() {
            at = at.mount.parent()?;
        }
        let parent = at.dentry.parent()?;
        Some(Path { dentry: parent, mount: at.mount })
    }

    /// Whether this is `ancestor` or is below it, across mounts.
    pub fn is_below(&self, ancestor: &Path) -> bool {
        let mut at = Some(self.clone());
        while let Some(path) = at {
            if path == *ancestor {
                return true;
            }
            at = path.above();
        }
        false
    }

    /// What this hangs on: the place a mount's root covers, the directory of a name; `None` at the root of all.
    fn above(&self) -> Option<Path> {
        if self.is_mount_root() {
            return self.mount.parent();
        }
        Some(Path { dentry: self.dentry.parent()?, mount: self.mount.clone() })
    }

    /// The name of the place as seen from `root`. Of a name longer than [`NAME_MOST`] only an end that is about as long.
    pub fn write(&self, root: &Path) -> Written {
        if self.dentry.is_label() {
            return Written { name: self.dentry.name().to_vec(), deleted: false, reachable: true };
        }
        let deleted = self.dentry.is_deleted();
        let mut parts: Vec<Arc<[u8]>> = Vec::new();
        let mut len = 0;
        let mut at = self.clone();
        let reachable = loop {
            if at == *root || len > NAME_MOST {
                break true;
            }
            if at.is_mount_root() {
                match at.mount.parent() {
                    Some(parent) => at = parent,
                    None => break false,
                }
                continue;
            }
            let (parent, name) = {
                let place = at.dentry.place.read();
                (place.parent.clone(), place.name.clone())
            };
            match parent {
                Some(parent) => {
                    len += name.len() + 1;
                    parts.push(name);
                    at.dentry = parent;
                }
                None => break false,
            }
        };
        let mut name = Vec::with_capacity(len.max(1));
        for part in parts.iter().rev() {
            name.push(b'/');
            name.extend_from_slice(part);
        }
        if name.is_empty() {
            name.push(b'/');
        }
        Written { name, deleted, reachable }
    }
}
