//! Changing names: create, link, unlink, rename.
//!
//! Each operation locks the directories it changes, looks the names up again under that lock, checks permissions in Linux'
//! order, lets the file system act, and brings the cache in step before the lock goes.

use alloc::format;
use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};

use crate::caller::Cred;
use crate::vfs::access::{self, EXEC, READ, S_ISGID, S_ISUID, WRITE, Who};
use crate::vfs::dentry::{Children, Dentry};
use crate::vfs::inode::{FileKind, Inode, Perm};
use crate::vfs::path::Path;
use crate::vfs::remembered::changing;
use crate::vfs::watch::event;
use crate::vfs::{NAME_MAX, Vfs};

/// renameat2(2).
pub mod rename {
    pub const NOREPLACE: u32 = 1;
    pub const EXCHANGE: u32 = 2;
    pub const WHITEOUT: u32 = 4;
}

/// What a new name is to be.
pub enum Make<'a> {
    /// A file, directory, fifo, socket or device of this mode (with its type) and device number.
    Node {
        mode: u32,
        rdev: u64,
    },
    Symlink(&'a [u8]),
    /// Another name of this file.
    Link(&'a Arc<dyn Inode>),
}

fn named(dentry: &Arc<Dentry>, name: &[u8]) -> Result<()> {
    if !dentry.is_dir() {
        return Err(Errno::ENOTDIR);
    }
    if name.len() > NAME_MAX { Err(Errno::ENAMETOOLONG) } else { Ok(()) }
}

fn is_dir_flag(dentry: &Dentry) -> u32 {
    if dentry.is_dir() { event::IS_DIR } else { 0 }
}

impl Vfs {
    /// Makes a name in `dir`. EEXIST when it is there, ENOENT when the directory is gone, EROFS, EACCES.
    pub fn make(&self, who: Who<'_>, dir: &Path, name: &[u8], make: &Make<'_>) -> Result<Path> {
        named(&dir.dentry, name)?;
        let mut fresh = None;
        let made = {
            let mut children = dir.dentry.children.write();
            self.make_locked(who, dir, &mut children, name, make, &mut fresh)
        };
        if let Some(fresh) = &fresh {
            self.cache.add(fresh);
        }
        let dentry = made?;
        if matches!(make, Make::Link(_)) {
            self.watches.notify(&dentry.inode, None, event::ATTRIB, 0);
        }
        self.watches.notify(dir.inode(), Some(name), event::CREATE | is_dir_flag(&dentry), 0);
        Ok(Path { mount: dir.mount.clone(), dentry })
    }

    fn make_locked(
        &self,
        who: Who<'_>,
        dir: &Path,
        children: &mut Children,
        name: &[u8],
        make: &Make<'_>,
        fresh: &mut Option<Arc<Dentry>>,
    ) -> Result<Arc<Dentry>> {
        let inode = dir.inode();
        let perm = inode.perm()?;
        who.check_perm(&**inode, &perm, EXEC)?;
        let writable = || dir.mount.check_write().and_then(|()| who.check_perm(&**inode, &perm, WRITE | EXEC));
        // Where the file system is asked for every name it is asked to make this one at once: it reports if there is one.
        let at_once = inode.checks_names() && !children.map.contains_key(name) && writable().is_ok();
        if !at_once && self.lookup_locked(who.caller, &dir.dentry, children, name, fresh)?.is_some() {
            return Err(Errno::EEXIST);
        }
        if dir.dentry.is_deleted() || inode.fixed_names() {
            return Err(Errno::ENOENT);
        }
        writable()?;
        if let Make::Link(target) = make {
            target.flags().unwrap_or_default().check_frozen()?;
        }
        let made = match make {
            Make::Node { mode, rdev } => inode.create(name, *mode, *rdev, who.cred)?,
            Make::Symlink(target) => inode.symlink(name, target, who.cred)?,
            Make::Link(target) => {
                inode.link(name, target)?;
                (*target).clone()
            }
        };
        let name: Arc<[u8]> = Arc::from(name);
        let dentry = Dentry::child(made, &dir.dentry, name.clone());
        children.insert(name, dentry.clone());
        *fresh = Some(dentry.clone());
        Ok(dentry)
    }

    /// A file in `dir`'s file system that has no name (O_TMPFILE), and never gets one unless `linkable`.
    pub fn make_unnamed(&self, who: Who<'_>, dir: &Path, mode: u32, linkable: bool) -> Result<Path> {
        if !dir.dentry.is_dir() {
            return Err(Errno::ENOTDIR);
        }
        dir.mount.check_write()?;
        who.check(&**dir.inode(), WRITE | EXEC)?;
        let inode = dir.inode().tmpfile(mode, who.cred, linkable)?;
        let label = format!("#{}", inode.attr()?.ino);
        let dentry = Dentry::unnamed(inode, &dir.dentry, label.as_bytes());
        Ok(Path { mount: dir.mount.clone(), dentry })
    }

    /// Removes a name: of an empty directory when `want_dir` (rmdir), of anything else otherwise (unlink).
    pub fn remove(&self, who: Who<'_>, dir: &Path, name: &[u8], want_dir: bool, slash: bool) -> Result<()> {
        named(&dir.dentry, name)?;
        let mut fresh = None;
        let removed = {
            let mut children = dir.dentry.children.write();
            let plain = !want_dir && !slash && dir.inode().checks_names() && !self.watches.any();
            if plain && is_idle(children.map.get(name)) && self.remove_unseen(who, dir, name)? {
                if let Some(Some(known)) = children.map.get(name) {
                    known.set_deleted();
                }
                children.remove(name);
                return Ok(());
            }
            self.remove_locked(who, dir, &mut children, name, want_dir, slash, &mut fresh)
        };
        if let Some(fresh) = &fresh {
            self.cache.add(fresh);
        }
        let victim = removed?;
        if self.watches.any() {
            let dir_flag = is_dir_flag(&victim);
            if !want_dir {
                // The number of links has changed.
                self.watches.notify(&victim.inode, None, event::ATTRIB, 0);
            }
            self.watches.notify(dir.inode(), Some(name), event::DELETE | dir_flag, 0);
            if want_dir || victim.inode.attr().is_ok_and(|attr| attr.nlink == 0) {
                drop(fresh);
                self.watches.unnamed(victim);
            }
        }
        Ok(())
    }

    /// Removes a name that nobody uses and that no watch is on, where nothing but the file system has a say in it;
    /// `false`: it is to be looked at first. The directory is locked.
    fn remove_unseen(&self, who: Who<'_>, dir: &Path, name: &[u8]) -> Result<bool> {
        let perm = dir.inode().perm()?;
        let free = perm.mode & access::S_ISVTX == 0 || access::owns(&perm, who.cred);
        if !free || who.check_perm(&**dir.inode(), &perm, WRITE | EXEC).is_err() || dir.mount.check_write().is_err() {
            return Ok(false);
        }
        match dir.inode().unlink_unseen(name) {
            Some(Ok(())) => Ok(true),
            // A directory, or a name that is not there: reported in the order Linux checks.
            Some(Err(Errno::EISDIR | Errno::EPERM | Errno::ENOENT)) | None => Ok(false),
            Some(Err(errno)) => Err(errno),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the state of one operation, split only by the lock")]
    fn remove_locked(
        &self,
        who: Who<'_>,
        dir: &Path,
        children: &mut Children,
        name: &[u8],
        want_dir: bool,
        slash: bool,
        fresh: &mut Option<Arc<Dentry>>,
    ) -> Result<Arc<Dentry>> {
        let perm = dir.inode().perm()?;
        who.check_perm(&**dir.inode(), &perm, EXEC)?;
        dir.mount.check_write()?;
        let victim = self.lookup_locked(who.caller, &dir.dentry, children, name, fresh)?.ok_or(Errno::ENOENT)?;
        if slash && !want_dir {
            return Err(if victim.is_dir() { Errno::EISDIR } else { Errno::ENOTDIR });
        }
        may_delete(&**dir.inode(), &perm, &victim, who)?;
        match (want_dir, victim.is_dir()) {
            (true, false) => return Err(Errno::ENOTDIR),
            (false, true) => return Err(Errno::EISDIR),
            _ => {}
        }
        if victim.is_mounted_on() {
            return Err(Errno::EBUSY);
        }
        // A directory being removed is locked, so that nothing is made in it meanwhile.
        let inside = want_dir.then(|| victim.children.write());
        outlive(&victim, fresh.is_some())?;
        names_change(dir);
        dir.inode().unlink(name, want_dir)?;
        victim.set_deleted();
        self.cache.removed();
        drop(inside);
        forget(dir, children, name);
        Ok(victim)
    }

    /// rename(2) and renameat2(2): both directories are in one mount (otherwise EXDEV), names are proper names, `flags` are
    /// checked for sense. Slashes after a name demand a directory.
    #[allow(clippy::too_many_arguments, reason = "renameat2 has two names with a property each")]
    pub fn rename(
        &self,
        who: Who<'_>,
        old_dir: &Path,
        old: (&[u8], bool),
        new_dir: &Path,
        new: (&[u8], bool),
        flags: u32,
    ) -> Result<()> {
        named(&old_dir.dentry, old.0)?;
        named(&new_dir.dentry, new.0)?;
        if old_dir.mount.id != new_dir.mount.id {
            return Err(Errno::EXDEV);
        }
        old_dir.mount.check_write()?;
        let mut fresh = [None, None];
        let result = {
            let _renames = self.renames.lock();
            let same = Arc::ptr_eq(&old_dir.dentry, &new_dir.dentry);
            if same {
                let mut children = old_dir.dentry.children.write();
                self.rename_locked(who, old_dir, old, new_dir, new, flags, &mut Both::One(&mut children), &mut fresh)
            } else {
                // Ancestors before descendants, strangers by address.
                let old_first = if new_dir.dentry.is_below(&old_dir.dentry) {
                    true
                } else if old_dir.dentry.is_below(&new_dir.dentry) {
                    false
                } else {
                    Arc::as_ptr(&old_dir.dentry) < Arc::as_ptr(&new_dir.dentry)
                };
                let (first, second) = if old_first { (old_dir, new_dir) } else { (new_dir, old_dir) };
                let mut first = first.dentry.children.write();
                let mut second = second.dentry.children.write();
                let (from, to) = if old_first { (&mut *first, &mut *second) } else { (&mut *second, &mut *first) };
                self.rename_locked(who, old_dir, old, new_dir, new, flags, &mut Both::Two(from, to), &mut fresh)
            }
        };
        for fresh in fresh.iter().flatten() {
            self.cache.add(fresh);
        }
        let Some(moved) = result? else { return Ok(()) };
        if self.watches.any() {
            drop(fresh);
            self.notify_rename(moved, old_dir, old.0, new_dir, new.0, flags);
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "the state of one operation, split only by the locks")]
    fn rename_locked(
        &self,
        who: Who<'_>,
        old_dir: &Path,
        (old, old_slash): (&[u8], bool),
        new_dir: &Path,
        (new, new_slash): (&[u8], bool),
        flags: u32,
        both: &mut Both<'_>,
        fresh: &mut [Option<Arc<Dentry>>; 2],
    ) -> Result<Option<Moved>> {
        let exchange = flags & rename::EXCHANGE != 0;
        let old_perm = old_dir.inode().perm()?;
        let new_perm = new_dir.inode().perm()?;
        who.check_perm(&**old_dir.inode(), &old_perm, EXEC)?;
        who.check_perm(&**new_dir.inode(), &new_perm, EXEC)?;
        let source = self.lookup_locked(who.caller, &old_dir.dentry, both.from(), old, &mut fresh[0])?.ok_or(Errno::ENOENT)?;
        let target = self.lookup_locked(who.caller, &new_dir.dentry, both.to(), new, &mut fresh[1])?;
        if target.is_none() && new_dir.inode().fixed_names() {
            return Err(Errno::ENOENT);
        }
        if flags & rename::NOREPLACE != 0 && target.is_some() {
            return Err(Errno::EEXIST);
        }
        if exchange {
            let target = target.as_ref().ok_or(Errno::ENOENT)?;
            if new_slash && !target.is_dir() {
                return Err(Errno::ENOTDIR);
            }
        }
        if !source.is_dir() && (old_slash || !exchange && new_slash) {
            return Err(Errno::ENOTDIR);
        }
        // A directory cannot move below itself, and what is above the source cannot be replaced by it.
        if new_dir.dentry.is_below(&source) {
            return Err(Errno::EINVAL);
        }
        if let Some(target) = &target
            && old_dir.dentry.is_below(target)
        {
            return Err(if exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
        }
        if new_dir.dentry.is_deleted() || old_dir.dentry.is_deleted() {
            return Err(Errno::ENOENT);
        }
        if let Some(target) = &target
            && Arc::ptr_eq(&source.inode, &target.inode)
        {
            return Ok(None);
        }
        let (from, to) = ((&**old_dir.inode(), &old_perm), (&**new_dir.inode(), &new_perm));
        let parted = !Arc::ptr_eq(&old_dir.dentry, &new_dir.dentry);
        may_rename(who, (from, &source), (to, target.as_ref()), exchange, parted)?;
        let inside = target.as_ref().filter(|target| target.is_dir() && !exchange).map(|target| target.children.write());
        if let Some(target) = target.as_ref().filter(|_| !exchange) {
            outlive(target, fresh[1].is_some())?;
        }
        names_change(old_dir);
        old_dir.inode().rename(old, new_dir.inode(), new, flags)?;
        if let Some(target) = &target
            && !exchange
        {
            target.set_deleted();
            self.cache.removed();
        }
        drop(inside);
        let moved = Moved { source, target };
        move_names(&moved, (old_dir, old), (new_dir, new), flags, both);
        Ok(Some(moved))
    }

    #[cold]
    fn notify_rename(&self, moved: Moved, old_dir: &Path, old: &[u8], new_dir: &Path, new: &[u8], flags: u32) {
        let notify_one = |source: &Arc<Dentry>, from: &Path, old: &[u8], to: &Path, new: &[u8]| {
            let (flag, cookie) = (is_dir_flag(source), self.watches.cookie());
            self.watches.notify(from.inode(), Some(old), event::MOVED_FROM | flag, cookie);
            self.watches.notify(to.inode(), Some(new), event::MOVED_TO | flag, cookie);
            self.watches.notify(&source.inode, None, event::MOVE_SELF, 0);
        };
        notify_one(&moved.source, old_dir, old, new_dir, new);
        if let Some(target) = moved.target {
            if flags & rename::EXCHANGE != 0 {
                notify_one(&target, new_dir, new, old_dir, old);
            } else {
                if !target.is_dir() {
                    self.watches.notify(&target.inode, None, event::ATTRIB, 0);
                }
                if target.is_dir() || target.inode.attr().is_ok_and(|attr| attr.nlink == 0) {
                    self.watches.unnamed(target);
                }
            }
        }
    }
}

/// What a rename has moved and what was at the new name.
struct Moved {
    source: Arc<Dentry>,
    target: Option<Arc<Dentry>>,
}

/// The locked names of the directories of a rename, which may be one.
enum Both<'a> {
    One(&'a mut Children),
    Two(&'a mut Children, &'a mut Children),
}

impl Both<'_> {
    fn from(&mut self) -> &mut Children {
        match self {
            Both::One(children) | Both::Two(children, _) => children,
        }
    }
    fn to(&mut self) -> &mut Children {
        match self {
            Both::One(children) | Both::Two(_, children) => children,
        }
    }
}

/// Whether a name may be taken out of a directory: EACCES, or EPERM in a sticky one.
fn may_delete(dir: &dyn Inode, perm: &Perm, victim: &Arc<Dentry>, who: Who<'_>) -> Result<()> {
    who.check_perm(dir, perm, WRITE | EXEC)?;
    perm.flags.check_append()?;
    if perm.mode & access::S_ISVTX != 0 {
        access::check_sticky(perm, &victim.inode.perm()?, who.cred)?;
    }
    victim.inode.flags().unwrap_or_default().check_frozen()
}

/// Notifies a file that is about to lose a name if somebody besides the caller and the directory, which is locked, uses it. The
/// caller has the dentry twice when it is `fresh`.
fn outlive(victim: &Arc<Dentry>, fresh: bool) -> Result<()> {
    if Arc::strong_count(victim) > 2 + usize::from(fresh) || Arc::strong_count(&victim.inode) > 1 {
        victim.inode.outlives_name()
    } else {
        Ok(())
    }
}

/// Whether nobody but the directory, which is locked, uses what it knows of a name that is no directory's.
fn is_idle(known: Option<&Option<Arc<Dentry>>>) -> bool {
    match known {
        None => true,
        Some(None) => false,
        Some(Some(dentry)) => {
            !dentry.is_dir()
                && !dentry.is_mounted_on()
                && Arc::strong_count(dentry) == 1
                && Arc::strong_count(&dentry.inode) == 1
        }
    }
}

/// Before names are taken away in a directory, which is locked.
fn names_change(dir: &Path) {
    // Paths through others are not remembered.
    if dir.inode().cache_names() {
        changing();
    }
}

fn forget(dir: &Path, children: &mut Children, name: &[u8]) {
    if dir.inode().cache_names() {
        children.insert_negative(name);
    } else {
        children.remove(name);
    }
}

/// Whether a file may get another name: directories never; others for their owner, or who may read and write them, if no rights come with their execution
/// (protected_hardlinks at 1, the default of distributions). EPERM.
pub fn may_link(inode: &Arc<dyn Inode>, cred: &Cred) -> Result<()> {
    if inode.kind() == FileKind::Directory {
        return Err(Errno::EPERM);
    }
    let perm = inode.perm()?;
    if access::owns(&perm, cred) {
        return Ok(());
    }
    const GROUP_RUNS: u32 = S_ISGID | 0o010;
    let plain = inode.kind() == FileKind::Regular && perm.mode & S_ISUID == 0 && perm.mode & GROUP_RUNS != GROUP_RUNS;
    if plain && access::check(&perm, cred, READ | WRITE).is_ok() { Ok(()) } else { Err(Errno::EPERM) }
}

/// The rest of what rename(2) is refused for: rights on what leaves its directory, kinds that do not fit, places that are mounted on.
/// `parted`: the directories are two.
fn may_rename(
    who: Who<'_>,
    ((old_dir, old_perm), source): ((&dyn Inode, &Perm), &Arc<Dentry>),
    ((new_dir, new_perm), target): ((&dyn Inode, &Perm), Option<&Arc<Dentry>>),
    exchange: bool,
    parted: bool,
) -> Result<()> {
    may_delete(old_dir, old_perm, source, who)?;
    match target {
        None => who.check_perm(new_dir, new_perm, WRITE | EXEC)?,
        Some(target) => {
            may_delete(new_dir, new_perm, target, who)?;
            if !exchange {
                match (source.is_dir(), target.is_dir()) {
                    (true, false) => return Err(Errno::ENOTDIR),
                    (false, true) => return Err(Errno::EISDIR),
                    _ => {}
                }
            }
        }
    }
    // A directory that changes its parent has its ".." rewritten.
    if parted {
        for moving in [Some(source), target.filter(|_| exchange)].into_iter().flatten() {
            if moving.is_dir() {
                who.check(&*moving.inode, WRITE)?;
            }
        }
    }
    if source.is_mounted_on() || target.is_some_and(|target| target.is_mounted_on()) {
        return Err(Errno::EBUSY);
    }
    Ok(())
}

/// Gives the names of both directories what rename(2) has made of them.
fn move_names(
    Moved { source, target }: &Moved,
    (old_dir, old): (&Path, &[u8]),
    (new_dir, new): (&Path, &[u8]),
    flags: u32,
    both: &mut Both<'_>,
) {
    let exchange = flags & rename::EXCHANGE != 0;
    let (old_name, new_name): (Arc<[u8]>, Arc<[u8]>) = (Arc::from(old), Arc::from(new));
    let place = |dentry: &Arc<Dentry>, parent: &Path, name: &Arc<[u8]>| {
        let mut place = dentry.place.write();
        place.parent = Some(parent.dentry.clone());
        place.name = name.clone();
    };
    both.from().remove(old);
    both.to().remove(new);
    place(source, new_dir, &new_name);
    both.to().insert(new_name, source.clone());
    match target {
        Some(target) if exchange => {
            place(target, old_dir, &old_name);
            both.from().insert(old_name, target.clone());
        }
        _ => {
            if old_dir.inode().cache_names() && flags & rename::WHITEOUT == 0 {
                both.from().insert_negative(old);
            }
        }
    }
}
