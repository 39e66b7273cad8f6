//! The tasks with their calls by the gate `ring`: a batch is submitted by one store.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::Skip;
use crate::gate_ring::{ENTRIES, Ring};
use crate::tasks::{self, Long, READ, Words};

/// Calls of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch(usize);

impl Batch {
    /// So many; none if that is not from 1 to [`ENTRIES`].
    pub fn new(count: usize) -> Option<Batch> {
        (1..=ENTRIES).contains(&count).then_some(Batch(count))
    }
}

fn done(what: &str, result: i64) -> Result<usize, Skip> {
    usize::try_from(result).map_err(|_| Skip::call(what, -result))
}

/// So many times getpid and getppid.
pub fn many_calls(count: u32, batch: Batch) -> Result<(), Skip> {
    let mut ring = Ring::open()?;
    let all = 2 * count as usize;
    for first in (0..all).step_by(batch.0) {
        for number in first..(first + batch.0).min(all) {
            let call = if number % 2 == 0 { libc::SYS_getpid } else { libc::SYS_getppid };
            // SAFETY: neither call has arguments or touches memory.
            unsafe { ring.push(call, [0; 6], number) };
        }
        ring.make(|_, result| done("getpid", result).map(|_| ()))?;
    }
    Ok(())
}

/// So many reads of the whole file, all into the same buffer.
pub fn reads(file: &Long, count: u32, batch: Batch) -> Result<(), Skip> {
    let mut ring = Ring::open()?;
    let all = count as usize;
    for first in (0..all).step_by(batch.0) {
        for number in first..(first + batch.0).min(all) {
            // SAFETY: the file's buffer stays, and nobody looks at what is in it.
            unsafe { ring.push(libc::SYS_pread64, file.words(), number) };
        }
        ring.make(|_, result| file.is_whole(done("pread64", result)?))?;
    }
    Ok(())
}

fn names(dir: &Path) -> Result<Vec<CString>, Skip> {
    let name = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.map_err(tasks::skip(dir))?.path();
        CString::new(path.as_os_str().as_bytes()).map_err(|_| Skip("a name with a zero".into()))
    };
    fs::read_dir(dir).map_err(tasks::skip(dir))?.map(name).collect()
}

/// A stat of every file, as often as that.
pub fn stat_all(dir: &Path, count: u32, batch: Batch) -> Result<(), Skip> {
    let mut ring = Ring::open()?;
    // SAFETY: numbers, for which all bits zero are a value.
    let mut found: Vec<libc::statx> = vec![unsafe { std::mem::zeroed() }; batch.0];
    for _ in 0..count {
        let mut seen = 0;
        for some in names(dir)?.chunks(batch.0) {
            for (at, name) in some.iter().enumerate() {
                let place = &raw mut found[at];
                let words =
                    [libc::AT_FDCWD as usize, name.as_ptr() as usize, 0, libc::STATX_BASIC_STATS as usize, place as usize, 0];
                // SAFETY: a name and a structure that stay until the batch is over, and are no other call's.
                unsafe { ring.push(libc::SYS_statx, words, at) };
            }
            ring.make(|_, result| done("statx", result).map(|_| ()))?;
            seen += found[..some.len()].iter().filter(|one| u32::from(one.stx_mode) & libc::S_IFMT == libc::S_IFREG).count();
        }
        tasks::saw(dir, seen)?;
    }
    Ok(())
}

/// A file whose words are counted.
struct Counted {
    descriptor: usize,
    words: Words,
    buffer: [u8; READ],
    at_end: bool,
}

/// The words of every file, as often as that: a batch of files is opened, read by turns and closed.
pub fn count_words(dir: &Path, count: u32, batch: Batch) -> Result<(), Skip> {
    let mut ring = Ring::open()?;
    for _ in 0..count {
        let mut words = 0;
        for some in names(dir)?.chunks(batch.0) {
            words += words_of(&mut ring, some)?;
        }
        tasks::counted(words)?;
    }
    Ok(())
}

fn words_of(ring: &mut Ring, names: &[CString]) -> Result<usize, Skip> {
    let new = |_: &CString| Counted { descriptor: 0, words: Words::default(), buffer: [0; READ], at_end: false };
    let mut files: Vec<Counted> = names.iter().map(new).collect();
    for (at, name) in names.iter().enumerate() {
        let words = [libc::AT_FDCWD as usize, name.as_ptr() as usize, (libc::O_RDONLY | libc::O_CLOEXEC) as usize, 0, 0, 0];
        // SAFETY: a name that stays until the batch is over.
        unsafe { ring.push(libc::SYS_openat, words, at) };
    }
    ring.make(|at, result| {
        files[at].descriptor = done("openat", result)?;
        Ok(())
    })?;
    while files.iter().any(|file| !file.at_end) {
        for (at, file) in files.iter_mut().enumerate().filter(|(_, file)| !file.at_end) {
            let words = [file.descriptor, (&raw mut file.buffer) as usize, READ, 0, 0, 0];
            // SAFETY: a buffer of that size, which is no other call's.
            unsafe { ring.push(libc::SYS_read, words, at) };
        }
        ring.make(|at, result| {
            let (file, count) = (&mut files[at], done("read", result)?);
            file.at_end = count == 0;
            file.words.add(&file.buffer[..count]);
            Ok(())
        })?;
    }
    for (at, file) in files.iter().enumerate() {
        // SAFETY: the descriptor is this function's own.
        unsafe { ring.push(libc::SYS_close, [file.descriptor, 0, 0, 0, 0, 0], at) };
    }
    ring.make(|_, result| done("close", result).map(|_| ()))?;
    Ok(files.iter().map(|file| file.words.count()).sum())
}
