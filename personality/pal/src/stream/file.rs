//! Files and directories by their path.
//!
//! Under the rules of a manifest a path is judged as it is written, without its "." and "..", and walked without following a symbolic link: so it names
//! the place that was judged, whatever others do to the directories on the way.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::Errno;
use janua_abi::pal::{Error, stream};
use janua_object::file::flags::{O_CREAT, O_DIRECTORY, O_EXCL, O_NOCTTY, O_NONBLOCK};
use janua_object::vfs::{Attr, FileKind, Last, Make, OpenHow, Parent, Path, Resolve, Walk};
use janua_object::{Caller, OpenFile};
use janua_personality_linux::Thread;
use janua_personality_linux::fs::at::{self, CWD};
use janua_personality_linux::thread::ThreadExt;
use janua_personality_outside::pal::manifest::Manifest;

use crate::answer::Result;
use crate::state::State;

/// How a stream is opened.
#[derive(Clone, Copy, Debug)]
pub struct How {
    pub access: u32,
    pub share: u32,
    pub create: u32,
    pub options: u32,
}

impl How {
    /// INVAL for bits that there are not.
    pub fn check(self) -> Result<How> {
        let known = self.access <= stream::RDWR
            && self.share & !stream::SHARE_MASK == 0
            && self.create & !(stream::CREAT_TRY | stream::CREAT_ALWAYS) == 0
            && self.options & !stream::NONBLOCK == 0;
        if known { Ok(self) } else { Err(Error::Invalid.into()) }
    }

    /// As status flags of a description.
    pub fn status(self) -> u32 {
        if self.options & stream::NONBLOCK != 0 { O_NONBLOCK } else { 0 }
    }

    fn creates(self) -> u32 {
        match self.create {
            0 => 0,
            create if create & stream::CREAT_ALWAYS != 0 => O_CREAT | O_EXCL,
            _ => O_CREAT,
        }
    }
}

/// The path without empty parts, "." and "..".
fn normal(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut out = Vec::with_capacity(path.len() + 1);
    for part in parts {
        out.push(b'/');
        out.extend_from_slice(part);
    }
    if out.is_empty() { b"/".to_vec() } else { out }
}

fn absolute(cwd: &[u8], path: &[u8]) -> Vec<u8> {
    if path.first() == Some(&b'/') { normal(path) } else { normal(&[cwd, b"/", path].concat()) }
}

/// Whether a path is `place` or below it.
fn is_below(path: &[u8], place: &[u8]) -> bool {
    match path.strip_prefix(place) {
        Some(rest) => rest.is_empty() || rest.first() == Some(&b'/') || place == b"/",
        None => false,
    }
}

/// Whether a manifest lets its program have a path.
fn allows(manifest: &Manifest, cwd: &[u8], path: &[u8]) -> bool {
    manifest.mounts.iter().any(|mount| match &*mount.kind {
        "dev" => is_below(path, b"/dev"),
        _ => !mount.shows.is_empty() && is_below(path, &absolute(cwd, mount.shows.as_bytes())),
    })
}

/// The path to walk for one that the program names, and how. DENIED when the rules do not have it.
pub fn judge(thread: &Thread, state: &State, path: &[u8]) -> Result<(Vec<u8>, Resolve)> {
    let rules = state.rules();
    if rules.is_empty() {
        return Ok((path.to_vec(), Resolve::empty()));
    }
    let context = thread.fs();
    let cwd = context.cwd.read().write(&context.root.read()).name;
    let whole = absolute(&cwd, path);
    if rules.iter().all(|manifest| allows(manifest, &cwd, &whole)) {
        Ok((whole, Resolve::NO_SYMLINKS))
    } else {
        Err(Error::Denied.into())
    }
}

/// Opens a file, a directory (which is made if that is asked for), or a device.
pub fn open(thread: &Thread, state: &State, path: &[u8], dir: bool, how: How) -> Result<Arc<OpenFile>> {
    let (path, resolve) = judge(thread, state, path)?;
    let mut flags = how.status() | O_NOCTTY;
    let (mode, umask) = (how.share, thread.fs().umask.load(Ordering::Relaxed));
    if dir {
        if how.create != 0 {
            make_dir(thread, &path, resolve, mode & !umask, how.create & stream::CREAT_ALWAYS != 0)?;
        }
        flags |= O_DIRECTORY;
    } else {
        flags |= how.access | how.creates();
    }
    let start = at::start(thread, CWD, &path)?;
    let file = at::vfs(thread).open(&thread.caller(), &start, &path, &OpenHow { flags, mode, umask, resolve })?;
    let is_dir = file.path.as_ref().is_some_and(|path| path.dentry.is_dir());
    if is_dir && !dir { Err(Error::StreamIsDir.into()) } else { Ok(file) }
}

/// The attributes of what a path names.
pub fn stat(thread: &Thread, state: &State, path: &[u8]) -> Result<Attr> {
    let (path, resolve) = judge(thread, state, path)?;
    let start = at::start(thread, CWD, &path)?;
    let caller = thread.caller();
    Ok(Walk::new(at::vfs(thread), &caller, &start, resolve).stat(&path, true)?.attr)
}

/// Walks to the directory of a path's last name and acts there.
fn with_parent<T>(
    thread: &Thread,
    path: &[u8],
    resolve: Resolve,
    act: impl FnOnce(&mut Walk<'_>, &Parent<'_>) -> Result<T>,
) -> Result<T> {
    let start = at::start(thread, CWD, path)?;
    let caller = thread.caller();
    let mut walk = Walk::new(at::vfs(thread), &caller, &start, resolve);
    let parent = walk.parent(path)?;
    act(&mut walk, &parent)
}

fn make_dir(thread: &Thread, path: &[u8], resolve: Resolve, mode: u32, new: bool) -> Result<()> {
    let made = with_parent(thread, path, resolve, |walk, parent| {
        let node = Make::Node { mode: FileKind::Directory as u32 | mode, rdev: 0 };
        Ok(at::vfs(thread).make(walk.who(), &parent.dir, parent.new_name()?, &node).map(drop)?)
    });
    match made {
        Err(error) if !new && error.is(Error::StreamExists) => Ok(()),
        made => made,
    }
}

/// Where an open file is. STREAMNOTEXIST for one without a name, or whose name is gone.
fn place(file: &OpenFile) -> Result<&Path> {
    let path = file.path.as_ref().ok_or(Error::NotSupported)?;
    if path.dentry.is_deleted() { Err(Error::StreamNotThere.into()) } else { Ok(path) }
}

/// Removes the name of an open file, or of an open and empty directory.
pub fn remove(thread: &Thread, state: &State, file: &OpenFile) -> Result<()> {
    let path = place(file)?;
    let (name, resolve) = judge(thread, state, &written(thread, path))?;
    let dir = path.dentry.is_dir();
    with_parent(thread, &name, resolve, |walk, parent| {
        let Last::Name(name) = &parent.last else { return Err(Error::Denied.into()) };
        let found = walk.last(parent)?;
        if found.inode().id() != path.inode().id() {
            return Err(Error::StreamNotThere.into());
        }
        Ok(at::vfs(thread).remove(walk.who(), &parent.dir, name, dir, false)?)
    })
}

/// Gives an open file or directory another name.
pub fn rename(thread: &Thread, state: &State, file: &OpenFile, to: &[u8]) -> Result<()> {
    let (old, resolve) = judge(thread, state, &written(thread, place(file)?))?;
    let (new, _) = judge(thread, state, to)?;
    with_parent(thread, &old, resolve, |walk, from| {
        let Last::Name(old) = &from.last else { return Err(Error::Denied.into()) };
        with_parent(thread, &new, resolve, |_, to| {
            let Last::Name(new) = &to.last else { return Err(Error::StreamExists.into()) };
            let (old, new) = ((&**old, false), (&**new, false));
            Ok(at::vfs(thread).rename(walk.who(), &from.dir, old, &to.dir, new, 0)?)
        })
    })
}

/// The path of a place, as the picoprocess names it.
pub fn written(thread: &Thread, path: &Path) -> Vec<u8> {
    let context = thread.fs();
    let root = context.root.read().clone();
    path.write(&root).name
}

/// The whole text of a small file. TOOLONG for one of more than `most` bytes.
pub fn read_whole(thread: &Thread, file: &OpenFile, most: usize) -> Result<Vec<u8>> {
    let size = usize::try_from(file.attr()?.size).unwrap_or(usize::MAX);
    if size > most {
        return Err(Error::TooLong.into());
    }
    let mut text = alloc::vec![0; size];
    let mut done = 0;
    while done < size {
        let mut buf = janua_kernel::ReadBuf::kernel(&mut text[done..]);
        match file.ops.read(file, &thread.caller() as &dyn Caller, &mut buf, done as u64)? {
            0 => break,
            n => done += n,
        }
    }
    text.truncate(done);
    Ok(text)
}

/// Longest list of names that one read gives, bytes.
const LIST_MOST: usize = 32 << 10;

/// The names in an open directory from where the last read ended, each with its zero, as many as fit. ENDOFSTREAM behind the last, TOOLONG when not
/// even one fits.
pub fn list(thread: &Thread, file: &OpenFile, most: usize) -> Result<Vec<u8>> {
    let most = most.min(LIST_MOST);
    let mut names = Vec::new();
    let mut too_small = false;
    file.ops.readdir(file, &thread.caller(), &mut |entry| {
        if entry.name == b"." || entry.name == b".." {
            return true;
        }
        let fits = names.len() + entry.name.len() < most;
        if fits {
            names.extend_from_slice(entry.name);
            names.push(0);
        } else {
            too_small = names.is_empty();
        }
        fits
    })?;
    match names.is_empty() {
        true if too_small => Err(Errno::ENAMETOOLONG.into()),
        true => Err(Error::EndOfStream.into()),
        false => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_judged_without_dots() {
        assert_eq!(normal(b"/a/./b//../c/"), b"/a/c");
        assert_eq!(normal(b"/../.."), b"/");
        assert_eq!(absolute(b"/home", b"../etc/x"), b"/etc/x");
        assert!(is_below(b"/a/b", b"/a") && is_below(b"/a", b"/a") && is_below(b"/a", b"/"));
        assert!(!is_below(b"/ab", b"/a") && !is_below(b"/", b"/a"));
    }

    #[test]
    fn what_no_mount_shows_is_not_allowed() {
        let text = b"fs.mount.root.type = chroot\nfs.mount.root.uri = file:data\nfs.mount.other.d.type = dev\nfs.mount.other.d.path = /dev";
        let manifest = Manifest::parse(text).unwrap();
        assert!(allows(&manifest, b"/srv", b"/srv/data/x") && !allows(&manifest, b"/srv", b"/srv/database"));
        assert!(allows(&manifest, b"/srv", b"/dev/null") && !allows(&manifest, b"/srv", b"/etc/passwd"));
        assert!(!allows(&Manifest::default(), b"/", b"/x"));
    }
}
