//! Walking a path all of whose names are in the cache.
//!
//! Most paths are walked again and again. This walk takes no references on its way: it holds the shared lock of each directory it
//! has come through until it is done, in the order of the tree, and acts on what it finds under them. It never waits. Whatever is
//! not plain (a lock that is taken, a name that is not known, "..", a file system that has to be asked) is left to [`super::Walk`].

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};

use crate::vfs::dentry::Dentry;
use crate::vfs::inode::FileKind;
use crate::vfs::mount::{Mount, MountFlags};
use crate::vfs::path::Path;
use crate::vfs::walk::NAME_MAX;
use crate::vfs::Vfs;

/// Names in a row; a longer path is walked the other way.
const MOST_NAMES: u32 = 24;
/// Symbolic links.
const MOST_LINKS: u32 = 8;

/// A walk through the cache: who walks, and what is done where it ends.
pub struct Cached<'a, R> {
    /// What "/" means, unless that would mean to wait.
    pub root: &'a dyn Fn() -> Option<Path>,
    /// Whether the caller may search every directory.
    pub all: &'a dyn Fn() -> bool,
    /// Whether a link at the end is followed.
    pub follow: bool,
    /// What is done at the end, with locks held: nothing that waits. `None`: cannot be done this way.
    pub then: &'a dyn Fn(&Arc<Mount>, &Arc<Dentry>) -> Option<R>,
}

/// What a walk came to.
pub enum Walked<R> {
    Done(Result<R>),
    /// All names but the last one are known, and lead to this directory.
    All(Path),
}

/// What a part of the walk came to.
enum Step<R> {
    Done(Result<R>),
    /// The last name is not known in this directory.
    Unknown(Path),
    /// A link in this directory that leads there; the rest of the text begins at so many bytes before its end.
    Link(Path, Arc<[u8]>, usize),
    Leave,
}

/// What is left to walk after a link.
enum Text {
    Target(Arc<[u8]>),
    Joined(Vec<u8>),
}

impl Text {
    fn bytes(&self) -> &[u8] {
        match self {
            Text::Target(target) => target,
            Text::Joined(joined) => joined,
        }
    }
}

impl<R> Cached<'_, R> {
    /// Walks `path`, which is not absolute or begins at `base`, its root. `None`: not this way.
    pub fn walk(&self, vfs: &Vfs, base: &Path, path: &[u8]) -> Option<Walked<R>> {
        let mut step = self.step(vfs, &base.mount, &base.dentry, path, MOST_NAMES);
        let mut text: Option<Text> = None;
        for _ in 0..MOST_LINKS {
            let (dir, target, rest) = match step {
                Step::Done(result) => return Some(Walked::Done(result)),
                Step::Unknown(dir) if text.is_none() => return Some(Walked::All(dir)),
                Step::Unknown(_) | Step::Leave => return None,
                Step::Link(dir, target, rest) => (dir, target, rest),
            };
            let from = match target.first()? {
                b'/' => (self.root)()?,
                _ => dir,
            };
            let next = if rest == 0 {
                Text::Target(target)
            } else {
                let before = text.as_ref().map_or(path, Text::bytes);
                Text::Joined([&target, &b"/"[..], &before[before.len() - rest..]].concat())
            };
            step = self.step(vfs, &from.mount, &from.dentry, next.bytes(), MOST_NAMES);
            text = Some(next);
        }
        None
    }

    fn step(&self, vfs: &Vfs, mount: &Arc<Mount>, dir: &Arc<Dentry>, text: &[u8], names_left: u32) -> Step<R> {
        let start = text.iter().position(|&byte| byte != b'/').unwrap_or(text.len());
        let text = &text[start..];
        let end = text.iter().position(|&byte| byte == b'/').unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if names_left == 0 || end > NAME_MAX || matches!(name, b"" | b"." | b"..") || !dir.is_dir() {
            return Step::Leave;
        }
        if !dir.inode.cache_names() || !(dir.inode.searchable_by_all() || (self.all)()) {
            return Step::Leave;
        }
        let Some(children) = dir.children.try_read() else { return Step::Leave };
        let found = match children.map.get(name) {
            Some(Some(found)) => found,
            Some(None) => return Step::Done(Err(Errno::ENOENT)),
            None if rest.is_empty() => return Step::Unknown(Path { mount: mount.clone(), dentry: dir.clone() }),
            None => return Step::Leave,
        };
        if !found.used.load(Ordering::Relaxed) {
            found.used.store(true, Ordering::Relaxed);
        }
        if found.kind() == FileKind::Symlink && (self.follow || !rest.is_empty()) {
            return match found.inode.known_target() {
                Some(target) if !mount.flags().contains(MountFlags::NOSYMFOLLOW) => {
                    Step::Link(Path { mount: mount.clone(), dentry: dir.clone() }, target, rest.len())
                }
                _ => Step::Leave,
            };
        }
        if !found.is_mounted_on() {
            return self.go_on(vfs, mount, found, rest, names_left);
        }
        let Some(mounts) = vfs.mounts.known() else { return Step::Leave };
        let (mut mount, mut found) = (mount, found);
        while found.is_mounted_on() {
            let Some(over) = mounts.on(mount, found) else { break };
            (mount, found) = (over, &over.root);
        }
        self.go_on(vfs, mount, found, rest, names_left)
    }

    #[inline]
    fn go_on(&self, vfs: &Vfs, mount: &Arc<Mount>, found: &Arc<Dentry>, rest: &[u8], names_left: u32) -> Step<R> {
        if rest.is_empty() {
            return (self.then)(mount, found).map_or(Step::Leave, |result| Step::Done(Ok(result)));
        }
        self.step(vfs, mount, found, rest, names_left - 1)
    }
}
