//! Walking a path: from a name to a place (path_resolution(7), openat2(2)).

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bitflags::bitflags;
use janua_abi::linux::{Errno, Result};

use crate::caller::{Caller, Cred};
use crate::vfs::Vfs;
use crate::vfs::access;
use crate::vfs::dentry::Dentry;
use crate::vfs::inode::FileKind;
use crate::vfs::mount::MountFlags;
use crate::vfs::path::Path;

bitflags! {
    /// How openat2(2) restricts a walk.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct Resolve: u64 {
        const NO_XDEV = 0x01;
        const NO_MAGICLINKS = 0x02;
        const NO_SYMLINKS = 0x04;
        const BENEATH = 0x08;
        const IN_ROOT = 0x10;
        const CACHED = 0x20;
    }
}

/// Longest name in a directory.
pub const NAME_MAX: usize = 255;
/// Symbolic links one walk may follow.
const MOST_LINKS: u32 = 40;

/// Where a walk starts.
#[derive(Clone)]
pub struct Start {
    /// What "/" means to the caller.
    pub root: Path,
    /// Where relative names start.
    pub base: Path,
}

/// The last component of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Last<'p> {
    Name(Cow<'p, [u8]>),
    Dot,
    DotDot,
    /// The path is "/" (or several of them).
    Root,
}

/// A walk that has reached the directory of the last component.
pub struct Parent<'p> {
    pub dir: Path,
    pub last: Last<'p>,
    /// The path ends in slashes: what it names must be a directory.
    pub slash: bool,
}

impl Parent<'_> {
    /// The name for calls that make one: EEXIST for ".", ".." and "/".
    pub fn new_name(&self) -> Result<&[u8]> {
        match &self.last {
            Last::Name(name) => Ok(name),
            _ => Err(Errno::EEXIST),
        }
    }
}

/// A walk in progress.
pub struct Walk<'a> {
    vfs: &'a Vfs,
    caller: &'a dyn Caller,
    pub cred: Arc<Cred>,
    all: bool,
    resolve: Resolve,
    root: Path,
    at: Path,
    links: u32,
}

impl<'a> Walk<'a> {
    pub fn new(vfs: &'a Vfs, caller: &'a dyn Caller, start: &Start, resolve: Resolve) -> Walk<'a> {
        let cred = caller.cred();
        let scoped = resolve.intersects(Resolve::IN_ROOT | Resolve::BENEATH);
        Walk {
            vfs,
            caller,
            all: access::searches_all(&cred),
            cred,
            resolve,
            root: if scoped { start.base.clone() } else { start.root.clone() },
            at: start.base.clone(),
            links: 0,
        }
    }

    /// Walks all but the last component of `path`. ENOENT for an empty path.
    pub fn parent<'p>(&mut self, path: &'p [u8]) -> Result<Parent<'p>> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        if path[0] == b'/' {
            self.to_root()?;
        }
        self.walk(Cow::Borrowed(path))
    }

    /// Walks a whole path; a link at its end is followed when `follow` or when slashes come after it.
    pub fn whole(&mut self, path: &[u8], follow: bool) -> Result<Path> {
        let mut parent = self.parent(path)?;
        loop {
            let found = self.last(&parent)?;
            if found.dentry.kind() == FileKind::Symlink && (follow || parent.slash) {
                match self.follow(&parent, &found)? {
                    Next::At(path) => return Ok(path),
                    Next::More(next) => parent = next,
                }
                continue;
            }
            if parent.slash && !found.dentry.is_dir() {
                return Err(Errno::ENOTDIR);
            }
            return Ok(found);
        }
    }

    /// The place of the last component. ENOENT.
    pub fn last(&mut self, parent: &Parent<'_>) -> Result<Path> {
        match &parent.last {
            Last::Root | Last::Dot => Ok(parent.dir.clone()),
            Last::DotDot => {
                self.may_search(&parent.dir.dentry)?;
                self.at = parent.dir.clone();
                self.up()?;
                Ok(self.at.clone())
            }
            Last::Name(name) => {
                self.may_search(&parent.dir.dentry)?;
                let dentry = self.lookup(&parent.dir.dentry, name)?.ok_or(Errno::ENOENT)?;
                let mut found = Path { mount: parent.dir.mount.clone(), dentry };
                self.cross(&mut found)?;
                Ok(found)
            }
        }
    }

    /// Goes on from a symbolic link that was the last component of `parent`.
    pub fn follow(&mut self, parent: &Parent<'_>, link: &Path) -> Result<Next<'static>> {
        self.at = parent.dir.clone();
        match self.enter_link(link)? {
            Followed::At(path) if parent.slash && !path.dentry.is_dir() => Err(Errno::ENOTDIR),
            Followed::At(path) => Ok(Next::At(path)),
            Followed::Name(mut target) => {
                if parent.slash {
                    target.push(b'/');
                }
                Ok(Next::More(self.walk(Cow::Owned(target))?))
            }
        }
    }

    /// Moves to the root for an absolute name.
    fn to_root(&mut self) -> Result<()> {
        if self.resolve.contains(Resolve::BENEATH) {
            return Err(Errno::EXDEV);
        }
        if self.resolve.contains(Resolve::NO_XDEV) && self.at.mount.id != self.root.mount.id {
            return Err(Errno::EXDEV);
        }
        self.at = self.root.clone();
        Ok(())
    }

    /// Walks the components of `path` from `self.at`, links in the middle included, up to its last one. A link's target is
    /// put before what is left of the path, so there is always one text to walk.
    fn walk<'p>(&mut self, path: Cow<'p, [u8]>) -> Result<Parent<'p>> {
        let mut text = path;
        let mut at = 0;
        loop {
            while text.get(at) == Some(&b'/') {
                at += 1;
            }
            if at == text.len() {
                return Ok(Parent { dir: self.at.clone(), last: Last::Root, slash: true });
            }
            let end = text[at..].iter().position(|&byte| byte == b'/').map_or(text.len(), |n| at + n);
            let name = &text[at..end];
            let mut after = end;
            while text.get(after) == Some(&b'/') {
                after += 1;
            }
            if !self.at.dentry.is_dir() {
                return Err(Errno::ENOTDIR);
            }
            if name.len() > NAME_MAX {
                return Err(Errno::ENAMETOOLONG);
            }
            if after == text.len() {
                let last = match name {
                    b"." => Last::Dot,
                    b".." => Last::DotDot,
                    _ => Last::Name(match &text {
                        Cow::Borrowed(text) => Cow::Borrowed(&text[at..end]),
                        Cow::Owned(text) => Cow::Owned(text[at..end].to_vec()),
                    }),
                };
                return Ok(Parent { dir: self.at.clone(), last, slash: after > end });
            }
            if !self.all {
                self.may_search(&self.at.dentry)?;
            }
            at = after;
            match name {
                b"." => {}
                b".." => self.up()?,
                _ => {
                    let found = self.lookup(&self.at.dentry, name)?.ok_or(Errno::ENOENT)?;
                    if found.kind() == FileKind::Symlink {
                        let link = Path { mount: self.at.mount.clone(), dentry: found };
                        match self.enter_link(&link)? {
                            Followed::At(path) => self.at = path,
                            Followed::Name(mut target) => {
                                target.push(b'/');
                                target.extend_from_slice(&text[after..]);
                                text = Cow::Owned(target);
                                at = 0;
                            }
                        }
                        continue;
                    }
                    self.at.dentry = found;
                    if self.at.dentry.is_mounted_on() {
                        let mut at = self.at.clone();
                        self.cross(&mut at)?;
                        self.at = at;
                    }
                }
            }
        }
    }

    /// Reads a link; for an absolute target `at` moves to the root.
    fn enter_link(&mut self, link: &Path) -> Result<Followed> {
        if self.resolve.contains(Resolve::NO_SYMLINKS) || link.mount.flags().contains(MountFlags::NOSYMFOLLOW) {
            return Err(Errno::ELOOP);
        }
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::ELOOP);
        }
        let inode = link.inode();
        if let Some(jump) = inode.jump(self.caller) {
            if self.resolve.contains(Resolve::NO_MAGICLINKS) {
                return Err(Errno::ELOOP);
            }
            if self.resolve.intersects(Resolve::BENEATH | Resolve::IN_ROOT) {
                return Err(Errno::EXDEV);
            }
            let to = jump?;
            if self.resolve.contains(Resolve::NO_XDEV) && to.mount.id != link.mount.id {
                return Err(Errno::EXDEV);
            }
            return Ok(Followed::At(to));
        }
        if self.resolve.contains(Resolve::CACHED) && !self.at.inode().cache_names() {
            return Err(Errno::EAGAIN);
        }
        let target = inode.readlink(self.caller)?;
        match target.first() {
            None => return Err(Errno::ENOENT),
            Some(b'/') => self.to_root()?,
            Some(_) => {}
        }
        Ok(Followed::Name(target))
    }

    fn may_search(&self, dir: &Arc<Dentry>) -> Result<()> {
        if !dir.is_dir() {
            return Err(Errno::ENOTDIR);
        }
        if self.all { Ok(()) } else { access::check(&dir.inode.perm()?, &self.cred, access::EXEC) }
    }

    fn lookup(&self, dir: &Arc<Dentry>, name: &[u8]) -> Result<Option<Arc<Dentry>>> {
        if self.resolve.contains(Resolve::CACHED) {
            return dir.cached(name).filter(|_| dir.inode.cache_names()).ok_or(Errno::EAGAIN);
        }
        if name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        self.vfs.lookup(dir, name)
    }

    fn cross(&self, path: &mut Path) -> Result<()> {
        if path.dentry.is_mounted_on() && self.vfs.cross(path) && self.resolve.contains(Resolve::NO_XDEV) {
            return Err(Errno::EXDEV);
        }
        Ok(())
    }

    /// "..": stays at the root; above the start of a scoped walk it is an error (BENEATH).
    fn up(&mut self) -> Result<()> {
        if self.at == self.root {
            return if self.resolve.contains(Resolve::BENEATH) { Err(Errno::EXDEV) } else { Ok(()) };
        }
        if let Some(mut up) = self.at.up() {
            let left = up.mount.id != self.at.mount.id;
            if self.vfs.cross(&mut up) | left && self.resolve.contains(Resolve::NO_XDEV) {
                return Err(Errno::EXDEV);
            }
            self.at = up;
        }
        Ok(())
    }
}

/// What a link holds.
enum Followed {
    At(Path),
    Name(Vec<u8>),
}

/// What following a last component's link came to.
pub enum Next<'p> {
    /// A place (magic links).
    At(Path),
    /// The walk went on; this is the new last component.
    More(Parent<'p>),
}
