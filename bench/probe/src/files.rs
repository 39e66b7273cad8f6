//! Rows about files. A file "in memory" is in /dev/shm, or in /tmp where there is none.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::meter::Meter;
use crate::{Samples, Skip, sys};

/// A directory of this process's own, removed in the end.
pub struct Scratch {
    pub path: PathBuf,
}

impl Scratch {
    pub fn new() -> Result<Scratch, Skip> {
        let name = format!("janua-probe.{}", std::process::id());
        let mut why = String::new();
        for base in ["/dev/shm", "/tmp"] {
            let path = Path::new(base).join(&name);
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Scratch { path }),
                Err(error) => why = format!("{}: {error}", path.display()),
            }
        }
        Err(Skip(why))
    }

    /// A file of two pages in it.
    fn file(&self) -> Result<PathBuf, Skip> {
        let path = self.path.join("file");
        std::fs::write(&path, [7; 8192]).map_err(|error| Skip(format!("{}: {error}", path.display())))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in memory, and goes with it.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn open(path: &Path, write: bool) -> Result<File, Skip> {
    let opened = std::fs::OpenOptions::new().read(!write).write(write).open(path);
    opened.map_err(|error| Skip(format!("{}: {error}", path.display())))
}

fn c_path(path: &Path) -> Result<CString, Skip> {
    CString::new(path.as_os_str().as_bytes()).map_err(|error| Skip(error.to_string()))
}

/// Row `read-zero-*`.
pub fn read_zero<const LENGTH: usize>(meter: &Meter) -> Samples {
    let file = open(Path::new("/dev/zero"), false)?;
    let mut buffer = [1_u8; LENGTH];
    let (fd, to) = (file.as_raw_fd() as usize, buffer.as_mut_ptr() as usize);
    // SAFETY: the buffer has that length.
    meter.each(|| unsafe { sys::call3::<{ libc::SYS_read }>("read", fd, to, LENGTH) }.map(drop))
}

/// Row `write-null-*`.
pub fn write_null<const LENGTH: usize>(meter: &Meter) -> Samples {
    let file = open(Path::new("/dev/null"), true)?;
    let buffer = [1_u8; LENGTH];
    let (fd, from) = (file.as_raw_fd() as usize, buffer.as_ptr() as usize);
    // SAFETY: the buffer has that length.
    meter.each(|| unsafe { sys::call3::<{ libc::SYS_write }>("write", fd, from, LENGTH) }.map(drop))
}

/// Calls of four arguments at the file's beginning, of which all bytes must have been moved.
#[inline(always)]
fn at_beginning<const NR: i64>(meter: &Meter, fd: usize, buffer: usize, length: usize) -> Samples {
    meter.each(|| {
        // SAFETY: the two callers' buffers have that length.
        match unsafe { sys::call::<NR>([fd, buffer, length, 0, 0, 0]) } {
            moved if moved == length as i64 => Ok(()),
            result => Err(Skip(format!("pread or pwrite of {length} bytes gave {result}"))),
        }
    })
}

/// Row `pread-*`.
pub fn pread<const LENGTH: usize>(meter: &Meter) -> Samples {
    let scratch = Scratch::new()?;
    let file = open(&scratch.file()?, false)?;
    let mut buffer = [1_u8; LENGTH];
    at_beginning::<{ libc::SYS_pread64 }>(meter, file.as_raw_fd() as usize, buffer.as_mut_ptr() as usize, LENGTH)
}

/// Row `pwrite-*`.
pub fn pwrite<const LENGTH: usize>(meter: &Meter) -> Samples {
    let scratch = Scratch::new()?;
    let file = open(&scratch.file()?, true)?;
    let buffer = [1_u8; LENGTH];
    at_beginning::<{ libc::SYS_pwrite64 }>(meter, file.as_raw_fd() as usize, buffer.as_ptr() as usize, LENGTH)
}

fn open_and_close(meter: &Meter, path: &Path) -> Samples {
    let path = c_path(path)?;
    meter.each(|| {
        let at = path.as_ptr() as usize;
        // SAFETY: a string that lives; a descriptor of our own.
        unsafe {
            let here = libc::AT_FDCWD as usize;
            let fd = sys::call3::<{ libc::SYS_openat }>("openat", here, at, libc::O_RDONLY as usize)?;
            sys::call3::<{ libc::SYS_close }>("close", fd, 0, 0).map(drop)
        }
    })
}

/// Row `open-close`.
pub fn open_close(meter: &Meter) -> Samples {
    let scratch = Scratch::new()?;
    open_and_close(meter, &scratch.file()?)
}

/// Row `open-close-host`.
pub fn open_close_host(meter: &Meter) -> Samples {
    open_and_close(meter, Path::new("/etc/passwd"))
}

fn stat_of(meter: &Meter, path: &Path) -> Samples {
    let path = c_path(path)?;
    // SAFETY: plain numbers.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    let (at, to) = (path.as_ptr() as usize, (&raw mut status) as usize);
    // SAFETY: a string that lives, and a local of the call's type.
    meter.each(|| unsafe { sys::call3::<{ libc::SYS_stat }>("stat", at, to, 0) }.map(drop))
}

/// Row `stat`.
pub fn stat(meter: &Meter) -> Samples {
    let scratch = Scratch::new()?;
    stat_of(meter, &scratch.file()?)
}

/// Row `stat-host`.
pub fn stat_host(meter: &Meter) -> Samples {
    stat_of(meter, Path::new("/etc/passwd"))
}

/// Row `creat-unlink`.
pub fn creat_unlink(meter: &Meter) -> Samples {
    let scratch = Scratch::new()?;
    let path = c_path(&scratch.path.join("new"))?;
    meter.each(|| {
        let at = path.as_ptr() as usize;
        // SAFETY: a string that lives; a descriptor and a file of our own.
        unsafe {
            let fd = sys::call3::<{ libc::SYS_creat }>("creat", at, 0o600, 0)?;
            sys::call3::<{ libc::SYS_close }>("close", fd, 0, 0)?;
            sys::call3::<{ libc::SYS_unlink }>("unlink", at, 0, 0).map(drop)
        }
    })
}

/// Row `getdents`.
pub fn getdents(meter: &Meter) -> Samples {
    const NAMES: usize = 100;
    let scratch = Scratch::new()?;
    for number in 0..NAMES {
        File::create(scratch.path.join(format!("name-{number:03}"))).map_err(|error| Skip(error.to_string()))?;
    }
    let path = c_path(&scratch.path)?;
    let mut buffer = vec![0_u8; 32768];
    let (at, to, length) = (path.as_ptr() as usize, buffer.as_mut_ptr() as usize, buffer.len());
    meter.each(|| {
        // SAFETY: a string that lives, a buffer of that length, a descriptor of our own.
        unsafe {
            let flags = (libc::O_RDONLY | libc::O_DIRECTORY) as usize;
            let fd = sys::call3::<{ libc::SYS_openat }>("openat", libc::AT_FDCWD as usize, at, flags)?;
            while sys::call3::<{ libc::SYS_getdents64 }>("getdents64", fd, to, length)? > 0 {}
            sys::call3::<{ libc::SYS_close }>("close", fd, 0, 0).map(drop)
        }
    })
}
