//! /proc/PID/fd and fdinfo.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_object::OpenFile;
use janua_object::file::flags;
use janua_object::inotify::InotifyFile;

use super::{Subject, Text};

/// The open file behind a descriptor. ENOENT.
pub fn file(subject: &Subject, fd: i32) -> Result<Arc<OpenFile>> {
    subject.task()?.files().get(Fd(fd)).map_err(|_| Errno::ENOENT)
}

pub fn numbers(subject: &Subject) -> Result<Vec<u32>> {
    Ok(subject.task()?.files().numbers().into_iter().map(|fd| fd.0.unsigned_abs()).collect())
}

/// Permission bits of a descriptor's link: what the descriptor may do.
pub fn mode(subject: &Subject, fd: i32) -> Result<u32> {
    let mode = file(subject, fd)?.flags();
    Ok(match mode & flags::O_ACCMODE {
        _ if mode & flags::O_PATH != 0 => 0,
        flags::O_RDONLY => 0o500,
        flags::O_WRONLY => 0o300,
        _ => 0o700,
    })
}

/// /proc/PID/fdinfo/N.
pub fn info(subject: &Subject, fd: i32, text: &mut Text) -> Result<()> {
    let file = file(subject, fd)?;
    let cloexec = subject.task()?.files().cloexec(Fd(fd)).unwrap_or(false);
    let shown = file.flags() | if cloexec { flags::O_CLOEXEC } else { 0 };
    let (mount, ino) = match &file.path {
        Some(path) => (path.mount.id, path.inode().attr().map_or(0, |attr| attr.ino)),
        None => (0, file.ops.attr().map_or(0, |attr| attr.ino)),
    };
    let pos = *file.pos.lock();
    let _ = write!(text, "pos:\t{pos}\nflags:\t0{shown:o}\nmnt_id:\t{mount}\nino:\t{ino}\n");
    if let Some(InotifyFile(instance)) = file.downcast() {
        for (wd, place, mask) in instance.list() {
            let (dev, ino) = place.inode().id().unwrap_or_default();
            // The kernel's own form of a device number: twelve bits and twenty.
            let dev = dev >> 8 & 0xfff | dev >> 32 & !0xfff;
            let minor = place.mount.fs.dev() & 0xff | place.mount.fs.dev() >> 12 & 0xfff00;
            let _ = writeln!(text, "inotify wd:{wd:x} ino:{ino:x} sdev:{:x} mask:{mask:x} ignored_mask:0 ", dev << 20 | minor);
        }
    }
    Ok(())
}
