//! Calls of inotify(7).

use alloc::sync::Arc;

use janua_kernel::table::{Arg, Fd, Kind};
use janua_kernel::{Errno, Result, UserStr};
use janua_object::OpenFile;
use janua_object::file::flags::{O_CLOEXEC, O_NONBLOCK, O_RDONLY};
use janua_object::inotify::{Inotify, InotifyFile, mask};
use janua_object::vfs::access::{READ, Who};
use janua_object::vfs::{FileKind, Resolve, Start, Walk};

use crate::Thread;
use crate::fs::fd;
use crate::thread::ThreadExt;

/// Flags of inotify_init1(2).
#[derive(Clone, Copy, Debug)]
pub struct InotifyFlags(pub u32);

impl Arg for InotifyFlags {
    const KIND: Kind = Kind::Named("open");
    fn decode(word: usize) -> Result<Self> {
        if word as u32 & !(O_CLOEXEC | O_NONBLOCK) != 0 {
            return Err(Errno::EINVAL);
        }
        Ok(InotifyFlags(word as u32))
    }
}

/// The mask of inotify_add_watch(2).
#[derive(Clone, Copy, Debug)]
pub struct WatchMask(pub u32);

impl Arg for WatchMask {
    const KIND: Kind = Kind::Named("inotify_mask");
    fn decode(word: usize) -> Result<Self> {
        let given = word as u32;
        let both = mask::MASK_ADD | mask::MASK_CREATE;
        if given == 0 || given & !mask::KNOWN != 0 || given & both == both {
            return Err(Errno::EINVAL);
        }
        Ok(WatchMask(given))
    }
}

/// inotify_init(2)
pub fn inotify_init(thread: &Thread) -> Result<Fd> {
    inotify_init1(thread, InotifyFlags(0))
}

/// inotify_init1(2)
pub fn inotify_init1(thread: &Thread, flags: InotifyFlags) -> Result<Fd> {
    let attr = janua_object::anon::attr(thread.machine().clock());
    let owner = thread.kernel.users.of(thread.cred().euid);
    let instance = Inotify::new(&thread.kernel.files.inotify, owner, attr)?;
    let file = OpenFile::new(Arc::new(InotifyFile(instance)), O_RDONLY | flags.0 & O_NONBLOCK, None);
    fd::install(thread, file, flags.0 & O_CLOEXEC != 0)
}

fn instance(thread: &Thread, fd: Fd) -> Result<Arc<Inotify>> {
    let file = fd::get(thread, fd)?;
    Ok(file.downcast::<InotifyFile>().ok_or(Errno::EINVAL)?.0.clone())
}

/// inotify_add_watch(2)
pub fn inotify_add_watch(thread: &Thread, fd: Fd, path: UserStr, mask: WatchMask) -> Result<i32> {
    let instance = instance(thread, fd)?;
    let path = path.path(thread.user())?;
    let fs = thread.fs();
    let start = Start { root: fs.root.read().clone(), base: fs.cwd.read().clone() };
    let caller = thread.caller();
    let follow = mask.0 & mask::DONT_FOLLOW == 0;
    let place = Walk::new(&thread.kernel.vfs, &caller, &start, Resolve::empty()).whole(&path, follow)?;
    if mask.0 & mask::ONLYDIR != 0 && place.dentry.kind() != FileKind::Directory {
        return Err(Errno::ENOTDIR);
    }
    Who { caller: &caller, cred: &thread.cred() }.check(&**place.inode(), READ)?;
    instance.add(place, mask.0)
}

/// inotify_rm_watch(2)
pub fn inotify_rm_watch(thread: &Thread, fd: Fd, wd: i32) -> Result<()> {
    instance(thread, fd)?.remove(wd)
}
