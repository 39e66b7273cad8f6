//! Operations that are system calls as they are.

use janua_abi::linux::futex::FutexWaitv;
use janua_abi::linux::i386::signal::SigInfo32;
use janua_abi::linux::process::Rusage;
use janua_abi::linux::signal::SigInfo;
use janua_abi::linux::time::TimeSpec;
use janua_abi::linux::uring::{Sqe, flag, op};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::Fd;

use super::super::op::{Op, Reply};
use super::{arg, fd};
use crate::fs::{self, rw::Place};
use crate::time::ClockArg;
use crate::{Thread, futex, mm, net, poll, task};

/// Calls that never wait.
pub fn call(t: &Thread, sqe: &Sqe) -> Result<usize> {
    let Sqe { off, addr, addr3, op_flags, .. } = *sqe;
    let len = u64::from(sqe.len);
    let flags = u64::from(op_flags);
    let none = || if op_flags == 0 { Ok(()) } else { Err(Errno::EINVAL) };
    let done = match sqe.opcode {
        // Linux makes it on a thread of its own, which takes no signals.
        op::FALLOCATE => fs::attr::fallocate_quietly(t, fd(sqe.fd)?, sqe.len, off as i64, addr as i64),
        op::FADVISE => {
            let len = if addr != 0 { addr } else { len };
            fs::sync::fadvise64(t, fd(sqe.fd)?, off as i64, len as i64, op_flags)
        }
        op::MADVISE => {
            let len = if off != 0 { off } else { len };
            mm::madvise(t, arg(addr)?, arg(len)?, arg(flags)?)
        }
        op::STATX => fs::stat::statx(t, fd(sqe.fd)?, arg(addr)?, arg(flags)?, sqe.len, arg(off)?),
        op::FTRUNCATE => fs::attr::ftruncate(t, fd(sqe.fd)?, off as i64),
        op::EPOLL_CTL => poll::epoll::epoll_ctl(t, fd(sqe.fd)?, arg(len)?, fd(off as i32)?, arg(addr)?),
        op::SHUTDOWN => net::shutdown(t, fd(sqe.fd)?, sqe.len as i32),
        op::RENAMEAT => fs::names::renameat2(t, fd(sqe.fd)?, arg(addr)?, fd(sqe.len as i32)?, arg(off)?, op_flags),
        op::UNLINKAT => fs::names::unlinkat(t, fd(sqe.fd)?, arg(addr)?, arg(flags)?),
        op::MKDIRAT => fs::names::mkdirat(t, fd(sqe.fd)?, arg(addr)?, arg(len)?),
        op::SYMLINKAT => fs::names::symlinkat(t, arg(addr)?, fd(sqe.fd)?, arg(off)?),
        op::LINKAT => fs::names::linkat(t, fd(sqe.fd)?, arg(addr)?, fd(sqe.len as i32)?, arg(off)?, arg(flags)?),
        op::FSETXATTR => fs::xattr::fsetxattr(t, fd(sqe.fd)?, arg(addr)?, arg(off)?, sqe.len as usize, op_flags),
        op::SETXATTR => fs::xattr::setxattr(t, arg(addr3)?, arg(addr)?, arg(off)?, sqe.len as usize, op_flags),
        op::FGETXATTR => {
            none()?;
            return fs::xattr::fgetxattr(t, fd(sqe.fd)?, arg(addr)?, arg(off)?, sqe.len as usize);
        }
        op::GETXATTR => {
            none()?;
            return fs::xattr::getxattr(t, arg(addr3)?, arg(addr)?, arg(off)?, sqe.len as usize);
        }
        op::BIND => net::bind(t, fd(sqe.fd)?, arg(addr)?, off as i32),
        op::LISTEN => net::listen(t, fd(sqe.fd)?, sqe.len as i32),
        op::FUTEX_WAKE => {
            let most = i32::try_from(off).unwrap_or(i32::MAX);
            return futex::wake::futex_wake(t, arg(addr)?, addr3, most, sqe.fd as u32);
        }
        _ => Err(Errno::EINVAL),
    };
    done.map(|()| 0)
}

/// fsync(2), fdatasync(2), sync_file_range(2). As on Linux, what is linked to one that fails goes on all the same, unless there is no file.
pub async fn sync(t: &Thread, sqe: &Sqe) -> Reply {
    let done = write_back(t, sqe).await;
    let failed = matches!(done, Err(Errno::EBADF | Errno::ERESTARTSYS));
    Reply { failed, ..done.into() }
}

async fn write_back(t: &Thread, sqe: &Sqe) -> Result<()> {
    if sqe.opcode == op::SYNC_FILE_RANGE {
        return fs::sync::sync_file_range(t, fd(sqe.fd)?, sqe.off as i64, i64::from(sqe.len), sqe.op_flags).await;
    }
    match sqe.op_flags & flag::FSYNC_DATASYNC != 0 {
        true => fs::sync::fdatasync(t, fd(sqe.fd)?).await,
        false => fs::sync::fsync(t, fd(sqe.fd)?).await,
    }
}

/// socket(2)
pub fn socket(t: &Thread, sqe: &Sqe) -> Result<Fd> {
    if sqe.addr != 0 || sqe.op_flags != 0 || sqe.buf_index != 0 {
        return Err(Errno::EINVAL);
    }
    net::socket(t, arg(u64::from(sqe.fd as u32))?, arg(sqe.off)?, sqe.len)
}

/// openat(2), openat2(2)
pub async fn open(t: &Thread, sqe: &Sqe) -> Result<Fd> {
    if sqe.buf_index != 0 {
        return Err(Errno::EINVAL);
    }
    if sqe.opcode == op::OPENAT2 {
        return fs::open::openat2(t, fd(sqe.fd)?, arg(sqe.addr)?, arg(sqe.off)?, sqe.len as usize).await;
    }
    fs::open::openat(t, fd(sqe.fd)?, arg(sqe.addr)?, arg(u64::from(sqe.op_flags))?, arg(u64::from(sqe.len))?).await
}

/// splice(2), tee(2)
pub async fn splice(t: &Thread, sqe: &Sqe) -> Reply {
    let whole = sqe.len as usize;
    let done = async {
        let flags = arg(u64::from(sqe.op_flags))?;
        if sqe.opcode == op::TEE {
            if sqe.off != 0 || sqe.addr != 0 {
                return Err(Errno::EINVAL);
            }
            return fs::splice::tee(t, Fd(sqe.file_index as i32), Fd(sqe.fd), whole, flags).await;
        }
        let files = [fs::fd::get(t, Fd(sqe.file_index as i32))?, fs::fd::get(t, Fd(sqe.fd))?];
        if whole == 0 {
            return Ok(0);
        }
        files[0].check_read()?;
        files[1].check_write()?;
        let mut places = [Place::Position; 2];
        for ((place, file), offset) in places.iter_mut().zip(&files).zip([sqe.addr, sqe.off]) {
            if offset != u64::MAX {
                if !file.ops.seekable() {
                    return Err(Errno::ESPIPE);
                }
                *place = Place::At(offset);
                place.check(0)?;
            }
        }
        fs::splice::splice_at(t, [&files[0], &files[1]], places, whole, flags).await
    };
    Reply::transfer(done.await, whole)
}

/// waitid(2)
pub async fn waitid(op: &Op, t: &Thread) -> Result<()> {
    let Sqe { fd: id, len: kind, off: info, file_index: options, .. } = op.sqe;
    if op.sqe.addr != 0 || op.sqe.buf_index != 0 || op.sqe.addr3 != 0 || op.sqe.op_flags != 0 {
        return Err(Errno::EINVAL);
    }
    let options = arg(u64::from(options))?;
    if op.ring.shape.narrow {
        let info: UserPtr<SigInfo32> = arg(info)?;
        return task::wait::waitid(t, kind, id, info, options, UserPtr::<Rusage>::new(0)).await;
    }
    let info: UserPtr<SigInfo> = arg(info)?;
    task::wait::waitid(t, kind, id, info, options, UserPtr::<Rusage>::new(0)).await
}

/// futex_wait(2) and futex_waitv(2), without an end.
pub async fn futex_wait(t: &Thread, sqe: &Sqe) -> Result<usize> {
    let forever = UserPtr::<TimeSpec>::new(0);
    if sqe.op_flags != 0 || sqe.buf_index != 0 || sqe.file_index != 0 {
        return Err(Errno::EINVAL);
    }
    if sqe.opcode == op::FUTEX_WAITV {
        let words: UserPtr<FutexWaitv> = arg(sqe.addr)?;
        return futex::multiple::futex_waitv(t, words, sqe.len, 0, forever, ClockArg(0)).await;
    }
    futex::wait::futex_wait(t, arg(sqe.addr)?, sqe.off, sqe.addr3, sqe.fd as u32, forever, ClockArg(0)).await
}
