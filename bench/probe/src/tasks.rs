//! The six tasks of a thesis on asynchronous system calls (Y. Wu, Imperial College London 2022, Appendix A), written anew: many cheap calls, a stat of every
//! file of a directory, a count of the words in them; and two of each at once.
//!
//! What is timed is the life of the processes that do the work, from fork to wait, as the thesis does. Two instructions that do nothing mark its beginning and
//! end for who watches the processor (`bench/tlb`).

use std::arch::asm;
use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::{Skip, sys};

/// Files of the directory, and how many bytes the largest has.
pub const FILES: usize = 1200;
const LARGEST: usize = 8 << 10;
/// Bytes of one read of the word count.
const READ: usize = 1024;

/// What a task does, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// 0 to 5: from 3 on two processes do what 0 to 2 is.
    pub number: u8,
    /// Pairs of calls, or walks through the directory.
    pub count: u32,
}

impl Task {
    fn processes(self) -> usize {
        if self.number < 3 { 1 } else { 2 }
    }

    fn work(self, dir: &Path) -> Result<(), Skip> {
        match self.number % 3 {
            0 => many_calls(self.count),
            1 => (0..self.count).try_for_each(|_| stat_all(dir)),
            _ => (0..self.count).try_for_each(|_| count_words(dir).map(|_| ())),
        }
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

fn skip(what: &Path) -> impl Fn(std::io::Error) -> Skip {
    move |error| Skip(format!("{}: {error}", what.display()))
}

fn stat_all(dir: &Path) -> Result<(), Skip> {
    let mut seen = 0;
    for entry in fs::read_dir(dir).map_err(skip(dir))? {
        let path = entry.map_err(skip(dir))?.path();
        seen += usize::from(fs::metadata(&path).map_err(skip(&path))?.is_file());
    }
    if seen == FILES { Ok(()) } else { Err(Skip(format!("{} holds {seen} files, not {FILES}", dir.display()))) }
}

fn count_words(dir: &Path) -> Result<usize, Skip> {
    let (mut words, mut buffer) = (0, [0; READ]);
    for entry in fs::read_dir(dir).map_err(skip(dir))? {
        let path = entry.map_err(skip(dir))?.path();
        let mut file = fs::File::open(&path).map_err(skip(&path))?;
        let mut inside = false;
        loop {
            let count = file.read(&mut buffer).map_err(skip(&path))?;
            if count == 0 {
                break;
            }
            for byte in &buffer[..count] {
                let letter = !byte.is_ascii_whitespace();
                words += usize::from(letter && !inside);
                inside = letter;
            }
        }
    }
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

/// `janua probe task DIR RUNS NUMBER:COUNT...`: each task that often, in turn.
pub fn main(args: &[&str]) -> ExitCode {
    let mut out = std::io::stdout().lock();
    let usage = "task wants a directory, a number of runs and tasks as NUMBER:COUNT";
    let [dir, runs, tasks @ ..] = args else { return crate::refuse(usage) };
    let (dir, Ok(runs)) = (PathBuf::from(dir), runs.parse::<usize>()) else { return crate::refuse(usage) };
    let parse = |text: &&str| {
        let (number, count) = text.split_once(':')?;
        Some(Task { number: number.parse().ok().filter(|number| *number < 6)?, count: count.parse().ok()? })
    };
    let Some(tasks) = tasks.iter().map(parse).collect::<Option<Vec<_>>>() else { return crate::refuse(usage) };
    if tasks.iter().any(|task| task.number % 3 != 0)
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
    fn the_tasks_do_their_work() {
        let dir = std::env::temp_dir().join(format!("janua-tasks-test-{}", std::process::id()));
        fill(&dir).unwrap();
        assert!(stat_all(&dir).is_ok() && many_calls(10).is_ok());
        assert!(count_words(&dir).unwrap() > FILES);
        fs::write(dir.join("file0007.txt"), "two words").unwrap();
        assert!(count_words(&dir).is_err(), "a count that is not checked is none");
        fs::remove_file(dir.join("file0007.txt")).unwrap();
        assert!(stat_all(&dir).is_err());
        fs::remove_dir_all(&dir).unwrap();
    }
}
