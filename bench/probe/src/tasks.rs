//! The six tasks of a thesis on asynchronous system calls (Y. Wu, Imperial College London 2022, Appendix A), written anew: many cheap calls, a stat of every
//! file of a directory, a count of the words in them; and two of each at once.
//!
//! What is timed is the life of the processes that do the work, from fork to wait, as the thesis does. Two instructions that do nothing mark its beginning and
//! end for who watches the processor (`bench/tlb`).

use std::arch::asm;
use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::tasks_by_ring::{self, Batch};
use crate::{Skip, sys};

/// Files of the directory, and how many bytes the largest has.
pub const FILES: usize = 1200;
const LARGEST: usize = 8 << 10;
/// Bytes of one read of the word count.
pub const READ: usize = 1024;

/// Tasks there are: the thesis' six, and one for each of [`LENGTHS`].
pub const TASKS: usize = 6 + LENGTHS.len();
/// Bytes that one call of the tasks from 6 on reads: calls of several lengths.
pub const LENGTHS: [usize; 4] = [64, 4 << 10, 64 << 10, 1 << 20];

/// What a task does, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// 0 to 5: from 3 on two processes do what 0 to 2 is. From 6 on: reads of one of [`LENGTHS`].
    pub number: u8,
    /// Pairs of calls, walks through the directory, or reads.
    pub count: u32,
    /// Its calls are made by the gate `ring`, so many at once; none: one by one, by themselves.
    pub batch: Option<Batch>,
}

impl Task {
    fn processes(self) -> usize {
        if matches!(self.number, 3..6) { 2 } else { 1 }
    }

    fn work(self, dir: &Path) -> Result<(), Skip> {
        if let Some(bytes) = self.length() {
            let file = Long::new(bytes)?;
            return match self.batch {
                None => (0..self.count).try_for_each(|_| file.read()),
                Some(batch) => tasks_by_ring::reads(&file, self.count, batch),
            };
        }
        match (self.number % 3, self.batch) {
            (0, None) => many_calls(self.count),
            (0, Some(batch)) => tasks_by_ring::many_calls(self.count, batch),
            (1, None) => (0..self.count).try_for_each(|_| stat_all(dir)),
            (1, Some(batch)) => tasks_by_ring::stat_all(dir, self.count, batch),
            (_, None) => (0..self.count).try_for_each(|_| count_words(dir).map(|_| ())),
            (_, Some(batch)) => tasks_by_ring::count_words(dir, self.count, batch),
        }
    }

    /// Bytes of each of its reads, if that is what it does.
    fn length(self) -> Option<usize> {
        LENGTHS.get(usize::from(self.number).checked_sub(6)?).copied()
    }

    /// Whether it needs the directory.
    fn has_files(self) -> bool {
        self.number < 6 && !self.number.is_multiple_of(3)
    }

    /// `NUMBER:COUNT` or `NUMBER:COUNT:BATCH`.
    fn parse(text: &str) -> Option<Task> {
        let mut words = text.split(':');
        let number = words.next()?.parse().ok().filter(|number| usize::from(*number) < TASKS)?;
        let count = words.next()?.parse().ok()?;
        let batch = words.next().map(|batch| batch.parse().ok().and_then(Batch::new));
        let batch = if let Some(batch) = batch { Some(batch?) } else { None };
        words.next().is_none().then_some(Task { number, count, batch })
    }
}

/// The instruction that marks the work's beginning (1) or end (2): `nopl` with a displacement that no compiler makes.
macro_rules! mark {
    ($which:literal) => {
        // SAFETY: an instruction that does nothing, and whose operand is never accessed.
        unsafe { asm!(concat!(".byte 0x0f, 0x1f, 0x80, 0x4a, 0x54, 0x42, ", $which), options(nomem, nostack, preserves_flags)) }
    };
}

fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has both instructions.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

fn many_calls(count: u32) -> Result<(), Skip> {
    for _ in 0..count {
        // SAFETY: neither call has arguments or touches memory.
        unsafe {
            sys::call3::<{ libc::SYS_getpid }>("getpid", 0, 0, 0)?;
            sys::call3::<{ libc::SYS_getppid }>("getppid", 0, 0, 0)?;
        }
    }
    Ok(())
}

/// An error with what it is about.
pub fn skip(what: &Path) -> impl Fn(std::io::Error) -> Skip {
    move |error| Skip(format!("{}: {error}", what.display()))
}

fn stat_all(dir: &Path) -> Result<(), Skip> {
    let mut seen = 0;
    for entry in fs::read_dir(dir).map_err(skip(dir))? {
        let path = entry.map_err(skip(dir))?.path();
        seen += usize::from(fs::metadata(&path).map_err(skip(&path))?.is_file());
    }
    saw(dir, seen)
}

/// Whether that is all files there are.
pub fn saw(dir: &Path, seen: usize) -> Result<(), Skip> {
    if seen == FILES { Ok(()) } else { Err(Skip(format!("{} holds {seen} files, not {FILES}", dir.display()))) }
}

/// The words of a file that is read by parts.
#[derive(Default)]
pub struct Words {
    count: usize,
    inside: bool,
}

impl Words {
    /// The next part of it.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let letter = !byte.is_ascii_whitespace();
            self.count += usize::from(letter && !self.inside);
            self.inside = letter;
        }
    }

    pub fn count(&self) -> usize {
        self.count
    }
}

fn count_words(dir: &Path) -> Result<usize, Skip> {
    let (mut words, mut buffer) = (0, [0; READ]);
    for entry in fs::read_dir(dir).map_err(skip(dir))? {
        let path = entry.map_err(skip(dir))?.path();
        let mut file = fs::File::open(&path).map_err(skip(&path))?;
        let mut of_file = Words::default();
        loop {
            let count = file.read(&mut buffer).map_err(skip(&path))?;
            if count == 0 {
                break;
            }
            of_file.add(&buffer[..count]);
        }
        words += of_file.count();
    }
    counted(words)
}

/// The words of all files, if they are as many as were written.
pub fn counted(words: usize) -> Result<usize, Skip> {
    let all = (0..FILES).map(|number| contents(number).split_ascii_whitespace().count()).sum();
    if words == all { Ok(words) } else { Err(Skip(format!("counted {words} words of {all}"))) }
}

/// A file's text: lines of words, more for some numbers than for others.
fn contents(number: usize) -> String {
    let mut text = String::new();
    let bytes = (number * 7919) % LARGEST;
    while text.len() < bytes {
        text.push_str(&format!("word{} of file {number}\n", text.len()));
    }
    text
}

/// A file in memory, all of which each call reads.
pub struct Long {
    file: fs::File,
    bytes: usize,
    buffer: *mut u8,
}

impl Long {
    fn new(bytes: usize) -> Result<Long, Skip> {
        // SAFETY: a constant string.
        let made = unsafe { libc::memfd_create(c"long".as_ptr(), libc::MFD_CLOEXEC) };
        if made < 0 {
            return Err(Skip::last("memfd_create"));
        }
        // SAFETY: a descriptor that is nobody else's.
        let mut file = unsafe { fs::File::from_raw_fd(made) };
        file.write_all(&vec![1; bytes]).map_err(skip(Path::new("long")))?;
        // The process that does the work ends with it.
        Ok(Long { file, bytes, buffer: vec![0; bytes].leak().as_mut_ptr() })
    }

    /// The words of pread64(2), whose bytes nobody looks at.
    pub fn words(&self) -> [usize; 6] {
        [self.file.as_raw_fd() as usize, self.buffer as usize, self.bytes, 0, 0, 0]
    }

    /// Whether a read has brought all there is.
    pub fn is_whole(&self, read: usize) -> Result<(), Skip> {
        if read == self.bytes { Ok(()) } else { Err(Skip(format!("a read of {read} bytes of {}", self.bytes))) }
    }

    fn read(&self) -> Result<(), Skip> {
        let [file, buffer, bytes, ..] = self.words();
        // SAFETY: a buffer of that size, which is this thread's.
        let read = unsafe { sys::call::<{ libc::SYS_pread64 }>([file, buffer, bytes, 0, 0, 0]) };
        self.is_whole(usize::try_from(read).map_err(|_| Skip::call("pread64", -read))?)
    }
}

fn fill(dir: &Path) -> Result<(), Skip> {
    fs::create_dir_all(dir).map_err(skip(dir))?;
    for number in 0..FILES {
        let path = dir.join(format!("file{number:04}.txt"));
        fs::write(&path, contents(number)).map_err(skip(&path))?;
    }
    Ok(())
}

/// Does the task once: ticks from the first fork to the last wait.
fn time(task: Task, dir: &Path) -> Result<u64, Skip> {
    let begin = ticks();
    mark!("0x01");
    for _ in 0..task.processes() {
        // SAFETY: the process has one thread.
        match unsafe { libc::fork() } {
            -1 => return Err(Skip::last("fork")),
            0 => {
                let code = match task.work(dir) {
                    Ok(()) => 0,
                    Err(Skip(why)) => {
                        eprintln!("task {}: {why}", task.number);
                        1
                    }
                };
                // SAFETY: ends the child, which has nothing to put in order.
                unsafe { libc::_exit(code) }
            }
            _ => {}
        }
    }
    let mut failed = 0;
    for _ in 0..task.processes() {
        let mut status = 0;
        // SAFETY: the word is ours.
        if unsafe { libc::wait(&raw mut status) } < 0 {
            return Err(Skip::last("wait"));
        }
        failed += usize::from(status != 0);
    }
    mark!("0x02");
    let took = ticks() - begin;
    if failed == 0 { Ok(took) } else { Err(Skip(format!("{failed} of its processes failed"))) }
}

/// `janua probe task DIR RUNS NUMBER:COUNT[:BATCH]...`: each task that often, in turn.
pub fn main(args: &[&str]) -> ExitCode {
    let mut out = std::io::stdout().lock();
    let usage = "task wants a directory, a number of runs and tasks as NUMBER:COUNT or NUMBER:COUNT:BATCH";
    let [dir, runs, tasks @ ..] = args else { return crate::refuse(usage) };
    let (dir, Ok(runs)) = (PathBuf::from(dir), runs.parse::<usize>()) else { return crate::refuse(usage) };
    let Some(tasks) = tasks.iter().map(|text| Task::parse(text)).collect::<Option<Vec<_>>>() else {
        return crate::refuse(usage);
    };
    if tasks.iter().any(|task| task.has_files())
        && let Err(Skip(why)) = fill(&dir)
    {
        return crate::refuse(&why);
    }
    let _ = writeln!(out, "rate {}", crate::ticks_per_second());
    for _ in 0..runs {
        for task in &tasks {
            let line = match time(*task, &dir) {
                Ok(ticks) => format!("row task{} {ticks}", task.number),
                Err(Skip(why)) => format!("skip task{} {why}", task.number),
            };
            let _ = writeln!(out, "{line}");
            let _ = out.flush();
        }
    }
    // What is left is in the sandbox' memory, or in a directory that is removed by who made it.
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read() {
        let batch = |count| Batch::new(count).unwrap();
        assert_eq!(Task::parse("3:20"), Some(Task { number: 3, count: 20, batch: None }));
        assert_eq!(Task::parse("0:7:256"), Some(Task { number: 0, count: 7, batch: Some(batch(256)) }));
        assert_eq!(Task::parse("9:1").and_then(Task::length), Some(1 << 20));
        for wrong in ["", "10:1", "1", "1:", "1:2:0", "1:2:257", "1:2:3:4", "1:2:x"] {
            assert_eq!(Task::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn words_are_counted_across_parts() {
        let mut words = Words::default();
        for part in [&b"one tw"[..], b"o", b" ", b"three"] {
            words.add(part);
        }
        assert_eq!(words.count(), 3);
    }

    #[test]
    fn the_tasks_do_their_work() {
        let dir = std::env::temp_dir().join(format!("janua-tasks-test-{}", std::process::id()));
        fill(&dir).unwrap();
        assert!(stat_all(&dir).is_ok() && many_calls(10).is_ok());
        assert!(Long::new(4096).unwrap().read().is_ok());
        assert!(count_words(&dir).unwrap() > FILES);
        fs::write(dir.join("file0007.txt"), "two words").unwrap();
        assert!(count_words(&dir).is_err(), "a count that is not checked is none");
        fs::remove_file(dir.join("file0007.txt")).unwrap();
        assert!(stat_all(&dir).is_err());
        fs::remove_dir_all(&dir).unwrap();
    }
}
