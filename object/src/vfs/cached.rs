//! Walking a path all of whose names are in the cache.
//!
//! Most paths are walked again and again. This walk takes no references on its way: it holds the shared lock of each directory it
//! has come through until it is done, in the order of the tree, and acts on what it finds under them. It never waits. Whatever is
//! not plain (a lock that is taken, a name that is not known, "..", a link where the file system has to be asked) is left to
//! [`super::Walk`].
//!
//! Names in directories that others change too are taken for true here as they are there; what they lead to is handed out as
//! [`Trusted`], with no lock held, and is to be checked by its user.

use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};

use crate::vfs::Vfs;
use crate::vfs::dentry::Dentry;
use crate::vfs::inode::{FileKind, Inode};
use crate::vfs::mount::{Mount, MountFlags};
use crate::vfs::path::{Path, until_slash};
use crate::vfs::walk::NAME_MAX;

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
    /// All names but the last one, which has so many bytes and is the end of the path, are known, and lead to this directory; `None`:
    /// there is but one, and it would be where the walk began.
    All(Option<Path>, usize),
    /// All names are known, as far as one can know.
    Trusted(Trusted),
    /// All names but the last one, which has so many bytes and is the end of the path, are known in that way, and lead to this directory.
    Beyond(Trusted, usize),
}

/// A place that has been reached by names that others may have changed since they were asked for.
pub struct Trusted {
    pub place: Path,
    /// The directory in which the first of those names is.
    base: Arc<dyn Inode>,
    /// How much of the walked text is in front of that name.
    before: usize,
}

impl Trusted {
    /// The names to be checked and the directory of the first; `path` is what was walked.
    pub(super) fn way<'p>(&self, path: &'p [u8]) -> (&Arc<dyn Inode>, &'p [u8]) {
        (&self.base, path.get(self.before..).unwrap_or_default())
    }

    /// Whether all names but the last, which has so many bytes, have led to this directory lately, or lead there now.
    pub fn leads(&self, path: &[u8], last: usize) -> bool {
        let (base, names) = self.way(&path[..path.len().saturating_sub(last)]);
        let Some(end) = names.iter().rposition(|byte| *byte != b'/') else { return true };
        let (names, dir) = (&names[..=end], self.place.inode());
        base.checked_lately(names, dir) || base.check_names(names, dir)
    }

    /// Asks once whether the names still lead to the place; if so its attributes are those of now ([`Inode::last_attr`]).
    pub fn check(&self, path: &[u8]) -> bool {
        let (base, names) = self.way(path);
        base.check_names(names, self.place.inode())
    }
}

/// What a part of the walk came to.
enum Step<R> {
    Done(Result<R>),
    /// The last name is not known in this directory, as in [`Walked::All`].
    Unknown(Option<Path>, usize),
    /// A link in this directory that leads there; the rest of the text begins at so many bytes before its end.
    Link(Path, Arc<[u8]>, usize),
    Trusted(Trusted),
    /// As [`Walked::Beyond`].
    Beyond(Trusted, usize),
    Leave,
}

/// Where the walk is: names from the directory and text in `unchecked` on have not been checked.
#[derive(Clone, Copy)]
struct At<'w> {
    vfs: &'w Vfs,
    /// The whole text of this part of the walk.
    whole: &'w [u8],
    unchecked: Option<(&'w Arc<dyn Inode>, usize)>,
    /// The caller is known to be allowed to search every directory.
    all: bool,
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
        let mut step =
            self.step(At { vfs, whole: path, unchecked: None, all: false }, &base.mount, &base.dentry, path, MOST_NAMES);
        let mut text: Option<Text> = None;
        for _ in 0..MOST_LINKS {
            let (dir, target, rest) = match step {
                Step::Done(result) => return Some(Walked::Done(result)),
                Step::Unknown(dir, len) if text.is_none() => return Some(Walked::All(dir, len)),
                Step::Trusted(trusted) if text.is_none() => return Some(Walked::Trusted(trusted)),
                Step::Beyond(trusted, len) if text.is_none() => return Some(Walked::Beyond(trusted, len)),
                Step::Unknown(..) | Step::Trusted(_) | Step::Beyond(..) | Step::Leave => return None,
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
            let at = At { vfs, whole: next.bytes(), unchecked: None, all: false };
            step = self.step(at, &from.mount, &from.dentry, next.bytes(), MOST_NAMES);
            text = Some(next);
        }
        None
    }

    fn step(&self, at: At<'_>, mount: &Arc<Mount>, dir: &Arc<Dentry>, text: &[u8], names_left: u32) -> Step<R> {
        let start = text.iter().position(|&byte| byte != b'/').unwrap_or(text.len());
        let text = &text[start..];
        let end = until_slash(text);
        let (name, rest) = text.split_at(end);
        if names_left == 0 || end > NAME_MAX || matches!(name, b"" | b"." | b"..") || !dir.is_dir() {
            return Step::Leave;
        }
        let unchecked = match at.unchecked {
            None if dir.inode.cache_names() => None,
            None if dir.inode.checks_names() => Some((&dir.inode, at.whole.len() - text.len())),
            None => return Step::Leave,
            unchecked => unchecked,
        };
        let by_mode = at.all || dir.inode.searchable_by_all();
        if !by_mode && !(self.all)() {
            return Step::Leave;
        }
        let at = At { unchecked, all: at.all || !by_mode, ..at };
        let Some(children) = dir.children.try_read() else { return Step::Leave };
        let found = match children.map.get(name) {
            Some(Some(found)) => found,
            // Names that are not there are kept only where nobody else makes any.
            Some(None) => return Step::Done(Err(Errno::ENOENT)),
            None if rest.is_empty() => {
                let here = || Path { mount: mount.clone(), dentry: dir.clone() };
                if let Some((base, before)) = at.unchecked {
                    return Step::Beyond(Trusted { place: here(), base: base.clone(), before }, end);
                }
                let first = names_left == MOST_NAMES;
                return Step::Unknown((!first).then(here), end);
            }
            None => return Step::Leave,
        };
        found.is_used();
        if found.kind() == FileKind::Symlink && (self.follow || !rest.is_empty()) {
            return match found.inode.known_target() {
                Some(target) if at.unchecked.is_none() && !mount.flags().contains(MountFlags::NOSYMFOLLOW) => {
                    Step::Link(Path { mount: mount.clone(), dentry: dir.clone() }, target, rest.len())
                }
                _ => Step::Leave,
            };
        }
        if !found.is_mounted_on() {
            return self.go_on(at, mount, found, rest, names_left);
        }
        if at.unchecked.is_some() {
            return Step::Leave;
        }
        let Some(mounts) = at.vfs.mounts.known() else { return Step::Leave };
        let (mut mount, mut found) = (mount, found);
        while found.is_mounted_on() {
            let Some(over) = mounts.on(mount, found) else { break };
            (mount, found) = (over, &over.root);
        }
        self.go_on(at, mount, found, rest, names_left)
    }

    #[inline]
    fn go_on(&self, at: At<'_>, mount: &Arc<Mount>, found: &Arc<Dentry>, rest: &[u8], names_left: u32) -> Step<R> {
        if !rest.is_empty() {
            return self.step(at, mount, found, rest, names_left - 1);
        }
        if let Some((base, before)) = at.unchecked {
            let place = Path { mount: mount.clone(), dentry: found.clone() };
            return Step::Trusted(Trusted { place, base: base.clone(), before });
        }
        (self.then)(mount, found).map_or(Step::Leave, |result| Step::Done(Ok(result)))
    }
}
