//! fcntl(2) and the part of ioctl(2) that is the same for every file.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::capability::{CAP_FOWNER, CAP_SYS_RESOURCE};
use janua_abi::linux::fcntl::*;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::termios;
use janua_kernel::table::{Arg, Fd, Kind};
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::file::{OwnerKind, SignalOwner, flags, request};
use janua_object::net::socket::SocketFile;
use janua_object::pipe::PipeEnd;
use janua_object::tty::pty::Master;
use janua_object::vfs::FileKind;
use janua_object::{Caller, OpenFile};

use crate::Thread;
use crate::dev::terminal;
use crate::fs::{dnotify, fd, leases, locks, sigio};
use crate::thread::ThreadExt;

/// The command of fcntl(2).
#[derive(Clone, Copy, Debug)]
pub struct FcntlCommand(pub u32);

impl Arg for FcntlCommand {
    const KIND: Kind = Kind::Named("fcntl");
    fn decode(word: usize) -> Result<Self> {
        Ok(FcntlCommand(word as u32))
    }
}

/// fcntl(2)
pub async fn fcntl(thread: &Thread, fd: Fd, command: FcntlCommand, arg: usize) -> Result<usize> {
    control::<Flock>(thread, fd, command, arg).await
}

/// fcntl(2) of programs whose record locks lie in memory as `L`.
pub async fn control<L: Layout<Flock>>(thread: &Thread, fd: Fd, command: FcntlCommand, arg: usize) -> Result<usize> {
    let file = fd::get(thread, fd)?;
    let command = command.0;
    let on_path = matches!(command, F_DUPFD | F_DUPFD_CLOEXEC | F_DUPFD_QUERY | F_CREATED_QUERY | F_GETFD | F_SETFD | F_GETFL);
    if file.flags() & flags::O_PATH != 0 && !on_path {
        return Err(Errno::EBADF);
    }
    match command {
        F_SETLK | F_SETLKW => locks::set(thread, fd, &file, UserPtr::<L>::new(arg), false, command == F_SETLKW).await?,
        F_OFD_SETLK | F_OFD_SETLKW => {
            locks::set(thread, fd, &file, UserPtr::<L>::new(arg), true, command == F_OFD_SETLKW).await?;
        }
        F_GETLK => locks::get(thread, &file, UserPtr::<L>::new(arg), false)?,
        F_OFD_GETLK => locks::get(thread, &file, UserPtr::<L>::new(arg), true)?,
        _ => return at_once(thread, fd, &file, command, arg),
    }
    Ok(0)
}

fn at_once(thread: &Thread, fd: Fd, file: &Arc<OpenFile>, command: u32, arg: usize) -> Result<usize> {
    let files = || thread.files.read();
    match command {
        F_DUPFD | F_DUPFD_CLOEXEC => {
            let limit = fd::limit(thread);
            let from = u32::try_from(arg as i32).map_err(|_| Errno::EINVAL)?;
            if u64::from(from) >= limit {
                return Err(Errno::EINVAL);
            }
            let new = files().install(file.clone(), from as usize, command == F_DUPFD_CLOEXEC, limit)?;
            Ok(new.0 as usize)
        }
        F_CREATED_QUERY => Ok(usize::from(file.has_created())),
        F_DUPFD_QUERY => Ok(usize::from(Arc::ptr_eq(file, &files().get(Fd(arg as i32))?))),
        F_GETFD => Ok(usize::from(files().cloexec(fd)?)),
        F_SETFD => {
            files().set_cloexec(fd, arg as u32 & FD_CLOEXEC != 0)?;
            Ok(0)
        }
        F_GETFL => Ok(file.flags() as usize),
        F_SETFL => set_flags(thread, fd, file, arg as u32).map(|()| 0),
        F_SETOWN | F_GETOWN | F_SETOWN_EX | F_GETOWN_EX | F_GETOWNER_UIDS | F_SETSIG | F_GETSIG => {
            owner(thread, file, command, arg)
        }
        F_SETLEASE => leases::set(thread, fd.0, file, arg as u32).map(|()| 0),
        F_NOTIFY => dnotify::set(thread, fd.0, file, arg as u32).map(|()| 0),
        F_GETLEASE => Ok(leases::get(thread, file) as usize),
        F_SETPIPE_SZ | F_GETPIPE_SZ => {
            let pipe = &file.downcast::<PipeEnd>().ok_or(Errno::EBADF)?.pipe;
            if command == F_GETPIPE_SZ {
                Ok(pipe.capacity())
            } else {
                let most = thread.kernel.files.pipe_most.load(Ordering::Relaxed);
                pipe.set_capacity(arg as u32 as usize, most, thread.cred().capable(CAP_SYS_RESOURCE))
            }
        }
        F_GET_SEALS => Ok(file.ops.seals()? as usize),
        F_ADD_SEALS => {
            file.check_write().map_err(|_| Errno::EPERM)?;
            file.ops.add_seals(arg as u32)?;
            Ok(0)
        }
        F_GET_RW_HINT => {
            // RWH_WRITE_LIFE_NOT_SET: hints are not taken.
            UserPtr::<u64>::new(arg).write(thread.user(), &0)?;
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// F_SETFL. EPERM for O_NOATIME on another user's file.
fn set_flags(thread: &Thread, fd: Fd, file: &Arc<OpenFile>, new: u32) -> Result<()> {
    if (new ^ file.flags()) & flags::O_APPEND != 0 {
        file.file_flags().check_append()?;
    }
    if new & flags::O_NOATIME & !file.flags() != 0 {
        let cred = thread.cred();
        if file.attr()?.uid != cred.fsuid && !cred.capable(CAP_FOWNER) {
            return Err(Errno::EPERM);
        }
    }
    file.set_flags(new);
    sigio::follow(thread, file, fd.0);
    Ok(())
}

/// Who is notified of readiness by a signal, and which.
fn owner(thread: &Thread, file: &OpenFile, command: u32, arg: usize) -> Result<usize> {
    let set = |kind, id: u32| {
        let tree = thread.kernel.tree.lock();
        let exists = match kind {
            OwnerKind::None => true,
            OwnerKind::Thread => tree.thread(id).is_some(),
            OwnerKind::Process => tree.process(id).is_some(),
            OwnerKind::Group => tree.has_group(id),
        };
        drop(tree);
        if !exists {
            return Err(Errno::ESRCH);
        }
        let cred = thread.cred();
        let owner = file.signal_owner();
        let mut current = owner.lock();
        *current = SignalOwner { kind, id, signal: current.signal, uid: cred.uid, euid: cred.euid };
        drop(current);
        sigio::follow_urgent(thread, file, kind != OwnerKind::None);
        Ok(0)
    };
    let none_for_zero = |kind, id| if id == 0 { OwnerKind::None } else { kind };
    match command {
        F_SETOWN => match arg as i32 {
            i32::MIN => Err(Errno::EINVAL),
            id if id < 0 => set(OwnerKind::Group, id.unsigned_abs()),
            id => set(none_for_zero(OwnerKind::Process, id), id as u32),
        },
        F_GETOWN => {
            let owner = *file.signal_owner().lock();
            // Between -4095 and -1 a group's number would look like an error to the C library, as it does on Linux.
            Ok(if owner.kind == OwnerKind::Group { (owner.id as usize).wrapping_neg() } else { owner.id as usize })
        }
        F_SETOWN_EX => {
            let wanted: OwnerEx = UserPtr::new(arg).read(thread.user())?;
            let kind = match wanted.kind {
                F_OWNER_TID => OwnerKind::Thread,
                F_OWNER_PID => OwnerKind::Process,
                F_OWNER_PGRP => OwnerKind::Group,
                _ => return Err(Errno::EINVAL),
            };
            let id = u32::try_from(wanted.pid).map_err(|_| Errno::ESRCH)?;
            set(none_for_zero(kind, wanted.pid), id)
        }
        F_GETOWN_EX => {
            let owner = *file.signal_owner().lock();
            let kind = match owner.kind {
                OwnerKind::Thread | OwnerKind::None => F_OWNER_TID,
                OwnerKind::Process => F_OWNER_PID,
                OwnerKind::Group => F_OWNER_PGRP,
            };
            UserPtr::new(arg).write(thread.user(), &OwnerEx { kind, pid: owner.id as i32 })?;
            Ok(0)
        }
        F_GETOWNER_UIDS => {
            let owner = *file.signal_owner().lock();
            UserPtr::new(arg).write(thread.user(), &[owner.uid, owner.euid])?;
            Ok(0)
        }
        F_SETSIG => {
            let signal = u32::try_from(arg).ok().filter(|signal| *signal <= 64).ok_or(Errno::EINVAL)?;
            file.signal_owner().lock().signal = signal;
            Ok(0)
        }
        _ => Ok(file.signal_owner().lock().signal as usize),
    }
}

/// The request of ioctl(2).
#[derive(Clone, Copy, Debug)]
pub struct Request(pub u32);

impl Arg for Request {
    const KIND: Kind = Kind::Named("ioctl");
    fn decode(word: usize) -> Result<Self> {
        Ok(Request(word as u32))
    }
}

/// ioctl(2): what every file knows is handled here, the rest by the file. ENOTTY for what it does not know.
pub fn ioctl(thread: &Thread, fd: Fd, request: Request, arg: usize) -> Result<usize> {
    ioctl_by(thread, &thread.caller(), fd, request, arg)
}

/// The same for the calling thread in one of the roles of [`crate::caller::ThisThread`].
pub fn ioctl_by(thread: &Thread, caller: &dyn Caller, fd: Fd, request: Request, arg: usize) -> Result<usize> {
    let file = fd::get(thread, fd)?;
    if file.flags() & flags::O_PATH != 0 {
        return Err(Errno::EBADF);
    }
    let user = thread.user();
    let flag = |bit: u32| -> Result<usize> {
        let on = UserPtr::<i32>::new(arg).read(user)? != 0;
        let flags = file.flags();
        file.set_flags(if on { flags | bit } else { flags & !bit });
        sigio::follow(thread, &file, fd.0);
        Ok(0)
    };
    match request.0 {
        request::FIOCLEX | request::FIONCLEX => {
            thread.files.read().set_cloexec(fd, request.0 == request::FIOCLEX)?;
            Ok(0)
        }
        request::FIONBIO => flag(flags::O_NONBLOCK),
        request::FIOASYNC => flag(flags::O_ASYNC),
        request::FIOQSIZE => match file.inode().map(|inode| inode.kind()) {
            Some(FileKind::Regular | FileKind::Directory | FileKind::Symlink) => {
                UserPtr::<u64>::new(arg).write(user, &file.attr()?.size)?;
                Ok(0)
            }
            _ => Err(Errno::ENOTTY),
        },
        request::FIGETBSZ if is_regular(&file) => {
            UserPtr::<u32>::new(arg).write(user, &file.attr()?.blksize)?;
            Ok(0)
        }
        request::FIONREAD if is_regular(&file) => {
            let left = file.ops.size()?.saturating_sub(*file.pos.lock());
            UserPtr::<i32>::new(arg).write(user, &i32::try_from(left).unwrap_or(i32::MAX))?;
            Ok(0)
        }
        request::FICLONE => clone_file(thread, &file, arg as i32),
        request::FICLONERANGE => {
            let [source, ..] = UserPtr::<[i64; 4]>::new(arg).read(user)?;
            clone_file(thread, &file, source as i32)
        }
        request::FIOSETOWN | request::SIOCSPGRP if is_socket(&file) => {
            let whom = UserPtr::<i32>::new(arg).read(user)?;
            owner(thread, &file, F_SETOWN, whom as usize)
        }
        request::FIOGETOWN | request::SIOCGPGRP if is_socket(&file) => {
            let whom = owner(thread, &file, F_GETOWN, 0)?;
            UserPtr::<i32>::new(arg).write(user, &(whom as i32))?;
            Ok(0)
        }
        request::FS_IOC_GETFLAGS | request::FS_IOC_SETFLAGS | request::FS_IOC_FSGETXATTR | request::FS_IOC_FSSETXATTR => {
            super::flags::ioctl(thread, &file, request.0, arg)
        }
        request => match file.downcast::<Master>() {
            Some(master) if request == termios::request::TIOCGPTPEER => {
                Ok(terminal::open_peer(thread, master, arg as u32)?.0 as usize)
            }
            _ => file.ops.ioctl(&file, caller, request, arg),
        },
    }
}

/// ioctl_ficlone(2): no file system here can share blocks between files. EOPNOTSUPP, after the errors about the files.
fn clone_file(thread: &Thread, to: &OpenFile, from: i32) -> Result<usize> {
    let from = fd::get(thread, Fd(from))?;
    if from.flags() & flags::O_PATH != 0 {
        return Err(Errno::EBADF);
    }
    if from.id().0 != to.id().0 {
        return Err(Errno::EXDEV);
    }
    let kinds = [&*from, to].map(|file| file.inode().map(|inode| inode.kind()));
    if kinds.contains(&Some(FileKind::Directory)) {
        return Err(Errno::EISDIR);
    }
    if kinds != [Some(FileKind::Regular); 2] {
        return Err(Errno::EINVAL);
    }
    from.check_read()?;
    to.check_write()?;
    Err(if to.appends() { Errno::EBADF } else { Errno::EOPNOTSUPP })
}

fn is_socket(file: &OpenFile) -> bool {
    file.downcast::<SocketFile>().is_some()
}

fn is_regular(file: &OpenFile) -> bool {
    file.inode().is_some_and(|inode| inode.kind() == FileKind::Regular)
}
