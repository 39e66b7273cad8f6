//! Events by a bare futex: what `user/libpal/programs/costs.c` measures of libpal's, with the same rows and the same output.

use std::ffi::c_void;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::meter::{start, ticks_per_second};
use crate::{Samples, Skip, sys};

/// Most words that are waited for at once.
const MOST: usize = 64;
/// How long the one that wakes gives the other to go to sleep.
const SETTLE: Duration = Duration::from_millis(1);
const PRIVATE: usize = libc::FUTEX_PRIVATE_FLAG as usize;

/// An event that lets one waiter go on each time it is set.
#[derive(Default)]
struct Word(AtomicU32);

impl Word {
    fn set(&self) {
        self.0.store(1, Ordering::SeqCst);
        let operation = libc::FUTEX_WAKE as usize | PRIVATE;
        // SAFETY: the word lives as long as all that use it.
        unsafe { sys::call::<{ libc::SYS_futex }>([self.0.as_ptr() as usize, operation, 1, 0, 0, 0]) };
    }

    fn take(&self) -> bool {
        self.0.swap(0, Ordering::SeqCst) == 1
    }

    fn wait(&self) {
        let operation = libc::FUTEX_WAIT as usize | PRIVATE;
        while !self.take() {
            // SAFETY: as above; no timeout.
            unsafe { sys::call::<{ libc::SYS_futex }>([self.0.as_ptr() as usize, operation, 0, 0, 0, 0]) };
        }
    }
}

/// `struct futex_waitv` of futex_waitv(2).
#[repr(C)]
struct Waited {
    value: u64,
    address: u64,
    /// 2: 32 bits; with the private flag.
    flags: u32,
    reserved: u32,
}

/// Waits for any of several; which.
fn wait_any(words: &[Word]) -> Result<usize, Skip> {
    let waited = |word: &Word| Waited { value: 0, address: word.0.as_ptr() as u64, flags: 2 | PRIVATE as u32, reserved: 0 };
    if let [word] = words {
        word.wait();
        return Ok(0);
    }
    loop {
        if let Some(ready) = words.iter().position(Word::take) {
            return Ok(ready);
        }
        let list: Vec<Waited> = words.iter().map(waited).collect();
        // SAFETY: list and words live as long as the call; no timeout.
        let result = unsafe {
            sys::call::<{ libc::SYS_futex_waitv }>([list.as_ptr().cast::<c_void>() as usize, list.len(), 0, 0, 0, 0])
        };
        let error = i32::try_from(-result).unwrap_or(0);
        if error > 0 && error != libc::EAGAIN && error != libc::EINTR {
            return Err(Skip::call("futex_waitv", -result));
        }
    }
}

/// How long it takes to make a thread that sleeps, and to wait for the word that it sets then.
fn delays(delay: Duration, count: usize) -> Samples {
    let word = Word::default();
    let one = || {
        std::thread::scope(|scope| {
            let begun = start();
            scope.spawn(|| {
                std::thread::sleep(delay);
                word.set();
            });
            word.wait();
            (start() - begun) as f64
        })
    };
    Ok((0..count).map(|_| one()).collect())
}

/// How long it takes from before one of several words is set until the thread runs that waits for them.
fn wakes(several: usize, count: usize) -> Samples {
    let words: Vec<Word> = (0..several).map(|_| Word::default()).collect();
    let (go, stamp, over) = (Word::default(), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for word in words.iter().cycle() {
                go.wait();
                if over.load(Ordering::SeqCst) {
                    break;
                }
                std::thread::sleep(SETTLE);
                stamp.store(start(), Ordering::Relaxed);
                word.set();
            }
        });
        let one = |_| {
            go.set();
            wait_any(&words)?;
            Ok((start() - stamp.load(Ordering::Relaxed)) as f64)
        };
        let samples = (0..count).map(one).collect();
        over.store(true, Ordering::SeqCst);
        go.set();
        samples
    })
}

fn row(name: &str, count: &str) -> Result<Samples, String> {
    let count = count.parse().map_err(|_| format!("{count}: no number of samples"))?;
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
    if let Some(micros) = number(name.strip_prefix("delay-")) {
        return Ok(delays(Duration::from_micros(micros), count));
    }
    match number(name.strip_prefix("wake-")) {
        Some(several) if (1..=MOST as u64).contains(&several) => Ok(wakes(several as usize, count)),
        _ => Err(format!("no row is called `{name}`")),
    }
}

/// `janua probe events ROW COUNT...`.
pub fn main(args: &[&str]) -> ExitCode {
    println!("rate {:.0}", ticks_per_second());
    for pair in args.chunks(2) {
        let [name, count] = pair else { return crate::refuse("events: each row has a number of samples") };
        match row(name, count) {
            Err(why) => return crate::refuse(&why),
            Ok(Err(Skip(why))) => println!("skip {name} {why}"),
            Ok(Ok(samples)) => {
                let numbers: Vec<String> = samples.iter().map(|ticks| format!("{ticks:.0}")).collect();
                println!("row {name} {}", numbers.join(" "));
            }
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_words_wakes() {
        for several in [1, 3] {
            assert_eq!(wakes(several, 7).unwrap().len(), 7);
        }
        assert!(delays(Duration::from_micros(1), 3).unwrap().iter().all(|ticks| *ticks > 0.0));
    }

    #[test]
    fn rows_are_named() {
        assert!(row("wake-0", "1").is_err() && row("wake-65", "1").is_err() && row("wake-1", "x").is_err());
        assert!(row("delay-1", "1").is_ok() && row("else", "1").is_err());
    }
}
