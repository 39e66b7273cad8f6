//! /proc/PID/fd and fdinfo.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use janua_abi::linux::stat::device;
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_object::OpenFile;
use janua_object::epoll::{Epoll, Watched};
use janua_object::eventfd::EventFd;
use janua_object::file::flags;
use janua_object::inotify::InotifyFile;
use janua_object::timerfd::{Shown, TimerFd};

use super::{Subject, Text};
use crate::signal::signalfd::SignalFd;
use crate::task::pidfd::PidFd;

/// The open file behind a descriptor. ENOENT.
pub fn file(subject: &Subject, fd: i32) -> Result<Arc<OpenFile>> {
    subject.files()?.get(Fd(fd)).map_err(|_| Errno::ENOENT)
}

pub fn numbers(subject: &Subject) -> Result<Vec<u32>> {
    Ok(subject.files()?.numbers().into_iter().map(|fd| fd.0.unsigned_abs()).collect())
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
    let cloexec = subject.files()?.cloexec(Fd(fd)).unwrap_or(false);
    let shown = file.flags() | if cloexec { flags::O_CLOEXEC } else { 0 };
    let (mount, ino) = match &file.path {
        Some(path) => (path.mount.id, path.inode().attr().map_or(0, |attr| attr.ino)),
        None => (0, file.ops.attr().map_or(0, |attr| attr.ino)),
    };
    let pos = *file.pos.lock();
    let _ = write!(text, "pos:\t{pos}\nflags:\t0{shown:o}\nmnt_id:\t{mount}\nino:\t{ino}\n");
    own_lines(&file, text);
    Ok(())
}

/// What a file of its kind has to show.
fn own_lines(file: &OpenFile, text: &mut Text) {
    if let Some(InotifyFile(instance)) = file.downcast() {
        for (wd, place, mask) in instance.list() {
            let (dev, ino) = place.inode().id().unwrap_or_default();
            // The kernel's own form of a device number: twelve bits and twenty.
            let (major, minor) = (device::major(dev), device::minor(place.mount.fs.dev()));
            let _ = writeln!(
                text,
                "inotify wd:{wd:x} ino:{ino:x} sdev:{:x} mask:{mask:x} ignored_mask:0 ",
                major << 20 | minor & 0xf_ffff
            );
        }
    } else if let Some(counter) = file.downcast::<EventFd>() {
        let (count, id, semaphore) = counter.state();
        let semaphore = u8::from(semaphore);
        let _ = write!(text, "eventfd-count: {count:16x}\neventfd-id: {id}\neventfd-semaphore: {semaphore}\n");
    } else if let Some(timer) = file.downcast::<TimerFd>() {
        let Shown { clock, flags, expired, remaining: (next, interval) } = timer.shown();
        let split = |nanos: u64| (nanos / 1_000_000_000, nanos % 1_000_000_000);
        let (next, interval) = (split(next), split(interval));
        let _ = write!(text, "clockid: {clock}\nticks: {expired}\nsettime flags: 0{flags:o}\n");
        let _ = write!(text, "it_value: {next:?}\nit_interval: {interval:?}\n");
    } else if let Some(signals) = file.downcast::<SignalFd>() {
        let _ = writeln!(text, "sigmask:\t{:016x}", signals.set().0);
    } else if let Some(process) = file.downcast::<PidFd>() {
        let _ = match process.number() {
            Some(number) => write!(text, "Pid:\t{number}\nNSpid:\t{number}\n"),
            None => text.write_str("Pid:\t-1\nNSpid:\t-1\n"),
        };
    } else if let Some(epoll) = file.downcast::<Epoll>() {
        for Watched { fd, file, events, data } in epoll.watched() {
            let (dev, ino) = file.ops.attr().map_or((0, 0), |attr| (attr.dev, attr.ino));
            let pos = *file.pos.lock();
            let _ = writeln!(text, "tfd: {fd:8} events: {events:8x} data: {data:16x}  pos:{pos} ino:{ino:x} sdev:{dev:x}");
        }
    }
}
