//! From a descriptor and a string to a place: what all calls on names share.

use alloc::sync::Arc;
use core::cell::{Cell, RefCell};

use janua_abi::linux::stat::at;
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::{Arg, Fd, Kind};
use janua_kernel::{PathRoom, UserStr};
use janua_object::OpenFile;
use janua_object::file::flags;
use janua_object::vfs::remembered::Asked;
use janua_object::vfs::{
    Attr, Cached, Dentry, FileKind, Mount, OpenHow, Path, Resolve, Start, Stat, Trusted, Vfs, Walk, Walked,
};

use crate::Thread;
use crate::thread::ThreadExt;

/// The directory descriptor of an *at call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirFd(pub i32);

impl Arg for DirFd {
    const KIND: Kind = Kind::Named("dirfd");
    fn decode(word: usize) -> Result<Self> {
        Ok(DirFd(word as i32))
    }
}

/// The working directory as a descriptor.
pub const CWD: DirFd = DirFd(at::FDCWD);

/// AT_* flags, unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtFlags(pub u32);

impl Arg for AtFlags {
    const KIND: Kind = Kind::Named("at");
    fn decode(word: usize) -> Result<Self> {
        Ok(AtFlags(word as u32))
    }
}

impl AtFlags {
    /// EINVAL for bits outside `allowed`.
    pub fn check(self, allowed: u32) -> Result<AtFlags> {
        if self.0 & !allowed == 0 { Ok(self) } else { Err(Errno::EINVAL) }
    }

    pub fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }
}

/// Permission bits of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u32);

impl Arg for Mode {
    const KIND: Kind = Kind::Octal;
    fn decode(word: usize) -> Result<Self> {
        Ok(Mode(word as u32))
    }
}

/// The kernel's name space.
pub fn vfs(thread: &Thread) -> &Vfs {
    &thread.kernel.system.vfs
}

/// The file behind a descriptor. EBADF.
pub fn file(thread: &Thread, fd: Fd) -> Result<Arc<OpenFile>> {
    thread.files.read().get(fd)
}

/// Where a walk of `path` from `dir` starts. EBADF for a descriptor without a file, ENOTDIR for one without a name, unless the
/// path is absolute.
pub fn start(thread: &Thread, dir: DirFd, path: &[u8]) -> Result<Start> {
    let context = thread.fs.read();
    let root = context.root.read().clone();
    if path.first() == Some(&b'/') {
        return Ok(Start { base: root.clone(), root });
    }
    let base =
        if dir == CWD { context.cwd.read().clone() } else { file(thread, Fd(dir.0))?.path.clone().ok_or(Errno::ENOTDIR)? };
    Ok(Start { root, base })
}

/// Walks a path through the cache, as far as that goes, and does `known` where it ends (whose last argument reports whether only who may
/// search every directory gets there), or `unknown` in a directory that vouches for its names and does not know the last one, which it is given.
#[inline]
fn cached<R>(
    thread: &Thread,
    dir: DirFd,
    path: &[u8],
    follow: bool,
    known: impl Fn(&Arc<Mount>, &Arc<Dentry>, bool) -> Option<R>,
    unknown: impl Fn(&Path, &[u8]) -> Option<Result<R>>,
) -> Option<Walked<R>> {
    let needs_all = Cell::new(false);
    let walk = Cached {
        root: &|| Some(thread.fs.try_read()?.root.try_read()?.clone()),
        all: &|| {
            needs_all.set(true);
            thread.ext.searches_all()
        },
        follow,
        then: &|mount, dentry| known(mount, dentry, needs_all.get()),
    };
    let (walked, file, here);
    let base = if dir == CWD || path.first()? == &b'/' {
        let context = thread.fs.read();
        let start = if path.first()? == &b'/' { &context.root } else { &context.cwd }.read();
        walked = walk.walk(vfs(thread), &start, path)?;
        here = matches!(walked, Walked::All(None, _)).then(|| Path::clone(&start));
        here.as_ref()
    } else {
        file = self::file(thread, Fd(dir.0)).ok()?;
        let start = file.path.as_ref()?;
        walked = walk.walk(vfs(thread), start, path)?;
        Some(start)
    };
    match walked {
        Walked::All(above, len) => Some(Walked::Done(unknown(above.as_ref().or(base)?, &path[path.len() - len..])?)),
        walked => Some(walked),
    }
}

/// Where the cache has a path lead to, for who opens it.
pub enum Known {
    Place(Path),
    Trusted(Trusted),
}

impl Known {
    /// What is there.
    pub fn kind(&self) -> FileKind {
        match self {
            Known::Place(place) => place.dentry.kind(),
            Known::Trusted(trusted) => trusted.place.dentry.kind(),
        }
    }

    /// Opens it. `None`: what went wrong is reported by a walk that asks for each name.
    #[inline]
    pub fn open(self, thread: &Thread, path: &[u8], how: &OpenHow) -> Option<Result<Arc<OpenFile>>> {
        let (vfs, caller, cred) = (vfs(thread), thread.caller(), thread.ext.cred());
        match self {
            Known::Place(place) => Some(vfs.open_found(&caller, &cred, place, how)),
            Known::Trusted(trusted) => vfs.open_trusted(&caller, &cred, &trusted, path, how).ok().map(Ok),
        }
    }
}

/// Where a path leads, if the cache knows that; for who opens it with these flags.
#[inline]
pub fn known_to_open(thread: &Thread, dir: DirFd, path: &[u8], open: u32) -> Option<Result<Known>> {
    let place = |mount: &Arc<Mount>, dentry: &Arc<Dentry>, _: bool| Some(Path { mount: mount.clone(), dentry: dentry.clone() });
    match cached(thread, dir, path, open & flags::O_NOFOLLOW == 0, place, |_, _| None)? {
        Walked::Done(found) => Some(found.map(Known::Place)),
        Walked::Trusted(trusted) => Some(Ok(Known::Trusted(trusted))),
        Walked::All(..) | Walked::Beyond(..) => None,
    }
}

/// What a path names, if the cache knows that.
pub fn known(thread: &Thread, dir: DirFd, path: &[u8], follow: bool) -> Option<Result<Path>> {
    let place = |mount: &Arc<Mount>, dentry: &Arc<Dentry>, _: bool| Some(Path { mount: mount.clone(), dentry: dentry.clone() });
    match cached(thread, dir, path, follow, place, |_, _| None)? {
        Walked::Done(found) => Some(found),
        Walked::Trusted(trusted) => trusted.check(path).then_some(Ok(trusted.place)),
        Walked::All(..) | Walked::Beyond(..) => None,
    }
}

/// Walks a path to what it names.
pub fn find(thread: &Thread, dir: DirFd, path: &[u8], follow: bool) -> Result<Path> {
    if let Some(found) = known(thread, dir, path, follow) {
        return found;
    }
    let start = start(thread, dir, path)?;
    let caller = thread.caller();
    Walk::new(vfs(thread), &caller, &start, Resolve::empty()).whole(path, follow)
}

/// The attributes of what a path names.
pub fn stat(thread: &Thread, dir: DirFd, path: &[u8], follow: bool) -> Result<Stat> {
    let mut again = None;
    if dir == CWD || path.first() == Some(&b'/') {
        match thread.ext.paths.lock().ask(path, follow, || thread.ext.searches_all()) {
            Asked::Known(stat) => return Ok(stat),
            Asked::Again(count) => again = Some(count),
            Asked::New => {}
        }
    }
    // Written where it is: it is large, and would be copied at each return on the way.
    let reported = RefCell::new(Stat { attr: Attr::default(), mount: 0, is_mount_root: false });
    let known = |mount: &Arc<Mount>, dentry: &Arc<Dentry>, needs_all: bool| {
        let attr = dentry.inode.known_attr()?;
        if let Some(count) = again {
            thread.ext.paths.lock().keep(path, follow, count, needs_all, mount, dentry);
        }
        *reported.borrow_mut() = Stat { attr, mount: mount.id, is_mount_root: Arc::ptr_eq(dentry, &mount.root) };
        Some(())
    };
    let uncached = |above: &Path, name: &[u8]| {
        let reported = &mut *reported.borrow_mut();
        reported.mount = above.mount.id;
        match vfs(thread).stat_uncached(&above.dentry, name, &mut reported.attr) {
            Ok(true) if follow && reported.attr.kind() == Some(FileKind::Symlink) => None,
            Ok(found) => found.then_some(Ok(())),
            Err(errno) => Some(Err(errno)),
        }
    };
    match cached(thread, dir, path, follow, known, uncached) {
        Some(Walked::Done(found)) => return found.map(|()| reported.into_inner()),
        Some(Walked::Trusted(trusted)) => {
            if trusted.check(path) {
                let Path { mount, dentry } = &trusted.place;
                let attr = dentry.inode.last_attr()?;
                return Ok(Stat { attr, mount: mount.id, is_mount_root: Arc::ptr_eq(dentry, &mount.root) });
            }
        }
        // Errors but the plain one are reported by a walk that asks for each name.
        Some(Walked::Beyond(dir, len)) if dir.leads(path, len) => match uncached(&dir.place, &path[path.len() - len..]) {
            Some(Ok(())) => return Ok(reported.into_inner()),
            Some(Err(Errno::ENOENT)) => return Err(Errno::ENOENT),
            _ => {}
        },
        Some(Walked::All(..) | Walked::Beyond(..)) | None => {}
    }
    let start = start(thread, dir, path)?;
    let caller = thread.caller();
    Walk::new(vfs(thread), &caller, &start, Resolve::empty()).stat(path, follow)
}

/// The place an *at call with AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH means: with an empty path (or none) the descriptor itself.
pub fn find_flags(thread: &Thread, dir: DirFd, path: UserStr, flags: AtFlags) -> Result<Path> {
    let mut room = PathRoom::new();
    let path = read_path(thread, path, flags.has(at::EMPTY_PATH), &mut room)?;
    if path.is_empty() && flags.has(at::EMPTY_PATH) {
        return itself(thread, dir);
    }
    find(thread, dir, path, !flags.has(at::SYMLINK_NOFOLLOW))
}

/// The place of the descriptor itself.
pub fn itself(thread: &Thread, dir: DirFd) -> Result<Path> {
    if dir == CWD {
        return Ok(thread.fs.read().cwd.read().clone());
    }
    let file = file(thread, Fd(dir.0))?;
    vfs(thread).place_of(&file)
}

/// Reads a path into the room; with `empty` a null pointer means "" too.
pub fn read_path<'r>(thread: &Thread, path: UserStr, empty: bool, room: &'r mut PathRoom) -> Result<&'r [u8]> {
    if empty && path.is_null() { Ok(&[]) } else { path.path_in(thread.user(), room) }
}
