//! Walking a path: from a name to a place (path_resolution(7), openat2(2)).
//!
//! Names in directories that others change too, and that the name cache therefore cannot vouch for, are taken for true on the
//! way and checked together, by one question ([`Inode::check_names`]): at the end, before a link is followed, before "..", before
//! a mount is crossed, before a name that is not known is asked for. If the answer is no the walk begins anew and asks for each.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bitflags::bitflags;
use janua_abi::linux::{Errno, Result};

use crate::caller::{Caller, Cred};
use crate::vfs::Vfs;
use crate::vfs::access::{self, Who};
use crate::vfs::dentry::Dentry;
use crate::vfs::inode::{Attr, FileKind, Inode};
use crate::vfs::mount::MountFlags;
use crate::vfs::path::{Path, until_slash};

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
    /// What "/" means, and where ".." ends.
    root: &'a Path,
    base: &'a Path,
    links: u32,
    /// Known names of directories that others change are taken for true, to be checked later.
    trusting: bool,
    /// What has been taken for true and not yet checked: the directory it began in, and the names from there on.
    unchecked: Option<(Arc<dyn Inode>, Vec<u8>)>,
    /// The inode whose attributes are those of a moment within this walk.
    seen: Option<Arc<dyn Inode>>,
    /// What is found is opened.
    pub(super) opens: bool,
}

/// What [`Walk::stat`] returns.
pub struct Stat {
    pub attr: Attr,
    /// The mount's number, and whether the file is where the mount begins.
    pub mount: u64,
    pub is_mount_root: bool,
}

/// Where a walk ended.
enum End {
    At(Path),
    /// A file that was looked at without a dentry, in this mount.
    Uncached(Attr, u64),
}

impl<'a> Walk<'a> {
    pub fn new(vfs: &'a Vfs, caller: &'a dyn Caller, start: &'a Start, resolve: Resolve) -> Walk<'a> {
        let cred = caller.cred();
        let scoped = resolve.intersects(Resolve::IN_ROOT | Resolve::BENEATH);
        Walk {
            vfs,
            caller,
            all: access::searches_all(&cred),
            cred,
            resolve,
            root: if scoped { &start.base } else { &start.root },
            base: &start.base,
            links: 0,
            trusting: true,
            unchecked: None,
            seen: None,
            opens: false,
        }
    }

    /// Does a part of the walk; again, without trust, if what was taken for true is not.
    fn again<T>(&mut self, part: impl Fn(&mut Self) -> Result<T>) -> Result<T> {
        let links = self.links;
        match part(self) {
            Err(Errno::ESTALE) if self.trusting => {
                self.trusting = false;
                self.unchecked = None;
                self.links = links;
                part(self)
            }
            other => other,
        }
    }

    /// Walks all but the last component of `path`. ENOENT for an empty path.
    pub fn parent<'p>(&mut self, path: &'p [u8]) -> Result<Parent<'p>> {
        self.again(|walk| {
            let parent = walk.begin(path)?;
            walk.settle(&parent.dir.dentry)?;
            Ok(parent)
        })
    }

    fn begin<'p>(&mut self, path: &'p [u8]) -> Result<Parent<'p>> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        let at = if path[0] == b'/' { self.to_root(self.base)? } else { self.base.clone() };
        self.walk(at, Cow::Borrowed(path))
    }

    /// Walks a whole path; a link at its end is followed when `follow` or when slashes come after it.
    pub fn whole(&mut self, path: &[u8], follow: bool) -> Result<Path> {
        match self.again(|walk| walk.walk_to_end(path, follow, false))? {
            End::At(path) => Ok(path),
            End::Uncached(..) => Err(Errno::EIO),
        }
    }

    /// The attributes of what a whole path names. A file that nobody has asked for lately is only looked at: nothing is kept
    /// of it in memory.
    pub fn stat(&mut self, path: &[u8], follow: bool) -> Result<Stat> {
        match self.again(|walk| walk.walk_to_end(path, follow, true))? {
            End::At(path) => {
                let inode = path.inode();
                let seen = self.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, inode));
                let attr = if seen { inode.last_attr() } else { inode.attr() }?;
                Ok(Stat { attr, mount: path.mount.id, is_mount_root: path.is_mount_root() })
            }
            End::Uncached(attr, mount) => Ok(Stat { attr, mount, is_mount_root: false }),
        }
    }

    fn walk_to_end(&mut self, path: &[u8], follow: bool, uncached: bool) -> Result<End> {
        let mut parent = self.begin(path)?;
        loop {
            let Last::Name(name) = &parent.last else { return self.last_known(&parent).map(End::At) };
            let dir = &parent.dir.dentry;
            self.may_search(dir)?;
            let found = match self.known(dir, name)? {
                Some(found) => found,
                None => {
                    let mut attr = Attr::default();
                    if uncached
                        && !parent.slash
                        && self.vfs.stat_uncached(dir, name, &mut attr)?
                        && !(follow && attr.kind() == Some(FileKind::Symlink))
                    {
                        return Ok(End::Uncached(attr, parent.dir.mount.id));
                    }
                    self.ask(dir, name)?
                }
            };
            let found = found.ok_or(Errno::ENOENT)?;
            if found.kind() == FileKind::Symlink && (follow || parent.slash) {
                let link = Path { mount: parent.dir.mount.clone(), dentry: found };
                match self.follow_link(&parent, &link)? {
                    Next::At(path) => return Ok(End::At(path)),
                    Next::More(next) => parent = next,
                }
                continue;
            }
            if parent.slash && !found.is_dir() {
                self.settle(&found)?;
                return Err(Errno::ENOTDIR);
            }
            let mut found = Path { mount: parent.dir.mount, dentry: found };
            self.settle(&found.dentry)?;
            self.cross(&mut found)?;
            return Ok(End::At(found));
        }
    }

    /// The place of the last component. ENOENT.
    pub fn last(&mut self, parent: &Parent<'_>) -> Result<Path> {
        self.again(|walk| walk.last_known(parent))
    }

    fn last_known(&mut self, parent: &Parent<'_>) -> Result<Path> {
        match &parent.last {
            Last::Root | Last::Dot => {
                self.settle(&parent.dir.dentry)?;
                Ok(parent.dir.clone())
            }
            Last::DotDot => {
                self.may_search(&parent.dir.dentry)?;
                let mut at = parent.dir.clone();
                self.up(&mut at)?;
                Ok(at)
            }
            Last::Name(name) => {
                self.may_search(&parent.dir.dentry)?;
                let dentry = self.lookup(&parent.dir.dentry, name)?.ok_or(Errno::ENOENT)?;
                let mut found = Path { mount: parent.dir.mount.clone(), dentry };
                self.settle(&found.dentry)?;
                self.cross(&mut found)?;
                Ok(found)
            }
        }
    }

    /// Goes on from a symbolic link that was the last component of `parent`.
    pub fn follow(&mut self, parent: &Parent<'_>, link: &Path) -> Result<Next<'static>> {
        self.again(|walk| {
            let next = walk.follow_link(parent, link)?;
            if let Next::More(next) = &next {
                walk.settle(&next.dir.dentry)?;
            }
            Ok(next)
        })
    }

    fn follow_link(&mut self, parent: &Parent<'_>, link: &Path) -> Result<Next<'static>> {
        let mut at = parent.dir.clone();
        match self.enter_link(&mut at, link)? {
            Followed::At(path) if parent.slash && !path.dentry.is_dir() => Err(Errno::ENOTDIR),
            Followed::At(path) => Ok(Next::At(path)),
            Followed::Name(mut target) => {
                if parent.slash {
                    target.push(b'/');
                }
                Ok(Next::More(self.walk(at, Cow::Owned(target))?))
            }
        }
    }

    /// The root, for an absolute name met at `from`.
    fn to_root(&self, from: &Path) -> Result<Path> {
        if self.resolve.contains(Resolve::BENEATH) {
            return Err(Errno::EXDEV);
        }
        if self.resolve.contains(Resolve::NO_XDEV) && from.mount.id != self.root.mount.id {
            return Err(Errno::EXDEV);
        }
        Ok(self.root.clone())
    }

    /// Walks the components of `text` from `dir`, links in the middle included, up to its last one. A link's target is put
    /// before what is left of the text, so there is always one text to walk.
    fn walk<'p>(&mut self, mut dir: Path, mut text: Cow<'p, [u8]>) -> Result<Parent<'p>> {
        let mut at = 0;
        loop {
            while text.get(at) == Some(&b'/') {
                at += 1;
            }
            if at == text.len() {
                return Ok(Parent { dir, last: Last::Root, slash: true });
            }
            let end = at + until_slash(&text[at..]);
            let name = &text[at..end];
            let mut after = end;
            while text.get(after) == Some(&b'/') {
                after += 1;
            }
            if name.len() > NAME_MAX {
                return Err(Errno::ENAMETOOLONG);
            }
            if after == text.len() {
                if !dir.dentry.is_dir() {
                    self.settle(&dir.dentry)?;
                    return Err(Errno::ENOTDIR);
                }
                let last = match name {
                    b"." => Last::Dot,
                    b".." => Last::DotDot,
                    _ => Last::Name(match &text {
                        Cow::Borrowed(text) => Cow::Borrowed(&text[at..end]),
                        Cow::Owned(text) => Cow::Owned(text[at..end].to_vec()),
                    }),
                };
                return Ok(Parent { dir, last, slash: after > end });
            }
            self.may_search(&dir.dentry)?;
            at = after;
            match name {
                b"." => {}
                b".." => self.up(&mut dir)?,
                _ => {
                    let found = self.lookup(&dir.dentry, name)?.ok_or(Errno::ENOENT)?;
                    if found.kind() == FileKind::Symlink {
                        let link = Path { mount: dir.mount.clone(), dentry: found };
                        match self.enter_link(&mut dir, &link)? {
                            Followed::At(path) => dir = path,
                            Followed::Name(mut target) => {
                                target.push(b'/');
                                target.extend_from_slice(&text[after..]);
                                text = Cow::Owned(target);
                                at = 0;
                            }
                        }
                        continue;
                    }
                    dir.dentry = found;
                    self.cross(&mut dir)?;
                }
            }
        }
    }

    /// Reads a link met at `at`; for an absolute target that moves to the root.
    fn enter_link(&mut self, at: &mut Path, link: &Path) -> Result<Followed> {
        if self.resolve.contains(Resolve::NO_SYMLINKS) || link.mount.flags().contains(MountFlags::NOSYMFOLLOW) {
            return Err(Errno::ELOOP);
        }
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::ELOOP);
        }
        self.settle(&link.dentry)?;
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
        if self.resolve.contains(Resolve::CACHED) && !at.inode().cache_names() {
            return Err(Errno::EAGAIN);
        }
        let target = inode.readlink(self.caller)?;
        match target.first() {
            None => return Err(Errno::ENOENT),
            Some(b'/') => *at = self.to_root(at)?,
            Some(_) => {}
        }
        Ok(Followed::Name(target))
    }

    /// For whom it walks.
    pub fn who(&self) -> Who<'_> {
        Who { caller: self.caller, cred: &self.cred }
    }

    #[inline]
    fn may_search(&mut self, dir: &Arc<Dentry>) -> Result<()> {
        if !dir.is_dir() {
            // Something else may have taken its place.
            self.settle(dir)?;
            return Err(Errno::ENOTDIR);
        }
        if self.all || dir.inode.searchable_by_all() { Ok(()) } else { self.who().check(&*dir.inode, access::EXEC) }
    }

    /// The file of that name in a directory, as far as it is known or can be taken for true. Outer `None`: [`Walk::ask`].
    #[inline]
    fn known(&mut self, dir: &Arc<Dentry>, name: &[u8]) -> Result<Option<Option<Arc<Dentry>>>> {
        if dir.inode.cache_names() {
            return Ok(dir.cached(name));
        }
        if self.trusting && dir.inode.checks_names() {
            if let Some(Some(found)) = dir.cached(name) {
                let (_, names) = self.unchecked.get_or_insert_with(|| (dir.inode.clone(), Vec::with_capacity(64)));
                if !names.is_empty() {
                    names.push(b'/');
                }
                names.extend_from_slice(name);
                return Ok(Some(Some(found)));
            }
            self.settle(dir)?;
        }
        Ok(None)
    }

    /// What the file system knows of a name.
    #[cold]
    fn ask(&mut self, dir: &Arc<Dentry>, name: &[u8]) -> Result<Option<Arc<Dentry>>> {
        if self.resolve.contains(Resolve::CACHED) {
            return Err(Errno::EAGAIN);
        }
        if name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let found = self.vfs.lookup(self.caller, dir, name, self.opens)?;
        self.seen = found.as_ref().map(|found| found.inode.clone());
        Ok(found)
    }

    #[inline]
    fn lookup(&mut self, dir: &Arc<Dentry>, name: &[u8]) -> Result<Option<Arc<Dentry>>> {
        match self.known(dir, name)? {
            Some(found) => Ok(found),
            None => self.ask(dir, name),
        }
    }

    /// Checks what was taken for true on the way to `at`. ESTALE if it is not: the walk must begin anew.
    #[inline]
    fn settle(&mut self, at: &Arc<Dentry>) -> Result<()> {
        match self.unchecked.take() {
            None => Ok(()),
            Some((base, names)) => self.settle_names(&base, &names, at),
        }
    }

    #[cold]
    fn settle_names(&mut self, base: &Arc<dyn Inode>, names: &[u8], at: &Arc<Dentry>) -> Result<()> {
        if self.resolve.contains(Resolve::CACHED) {
            return Err(Errno::EAGAIN);
        }
        if at.is_dir() && base.checked_lately(names, &at.inode) {
            return Ok(());
        }
        if !base.check_names(names, &at.inode) {
            return Err(Errno::ESTALE);
        }
        self.seen = Some(at.inode.clone());
        Ok(())
    }

    #[inline]
    fn cross(&mut self, path: &mut Path) -> Result<()> {
        if path.dentry.is_mounted_on() { self.cross_mount(path) } else { Ok(()) }
    }

    #[cold]
    fn cross_mount(&mut self, path: &mut Path) -> Result<()> {
        self.settle(&path.dentry)?;
        if self.vfs.cross(path) && self.resolve.contains(Resolve::NO_XDEV) {
            return Err(Errno::EXDEV);
        }
        Ok(())
    }

    /// The directory above a place. Another may move the place out of what its mount shows, or out of what a scoped walk is to stay
    /// in, at any moment, and ".." must not follow it there. ENOENT, EAGAIN (as on Linux).
    fn above(&self, at: &Path) -> Result<Option<Path>> {
        let scoped = self.resolve.intersects(Resolve::IN_ROOT | Resolve::BENEATH);
        match at.up() {
            Some(up) if scoped || up.mount.partial => {}
            plain => return Ok(plain),
        }
        let _still = self.vfs.hold_renames();
        let Some(up) = at.up() else { return Ok(None) };
        if up.mount.partial && !up.dentry.is_below(&up.mount.root) {
            return Err(Errno::ENOENT);
        }
        if scoped && !up.is_below(self.root) {
            return Err(Errno::EAGAIN);
        }
        Ok(Some(up))
    }

    /// "..": stays at the root; above the start of a scoped walk it is an error (BENEATH).
    fn up(&mut self, at: &mut Path) -> Result<()> {
        self.settle(&at.dentry)?;
        if *at == *self.root {
            return if self.resolve.contains(Resolve::BENEATH) { Err(Errno::EXDEV) } else { Ok(()) };
        }
        if let Some(mut up) = self.above(at)? {
            let left = up.mount.id != at.mount.id;
            if self.vfs.cross(&mut up) | left && self.resolve.contains(Resolve::NO_XDEV) {
                return Err(Errno::EXDEV);
            }
            *at = up;
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
