//! What a message between two tiles costs: before programs start, the first tile sends each other one messages of 56 bytes and gets them back, and does the same with
//! one word in a line each way. Both sides look without a pause, and nothing else runs on the two cores.

use core::fmt::Write;
use core::sync::atomic::Ordering;

use janua_port::Nanos;
use janua_rt::channel::{Endpoint, WHOLE, WORDS};

use crate::tiles::{self, Pair};
use crate::{clock, report, shoot};

/// Of each kind, before those that are timed.
const WARM: u64 = 100;

/// The other tile's word when it takes part.
const READY: u64 = u64::MAX;

/// How many are asked for by `messages=N` on the command line.
fn asked(command_line: &[u8]) -> Option<u64> {
    let word = command_line.split(|byte| *byte == b' ').find_map(|word| word.strip_prefix(b"messages="))?;
    core::str::from_utf8(word).ok()?.parse().ok().filter(|rounds| *rounds > 0)
}

/// The words of a message: they differ from each other, and from those of the next.
fn words(number: u64) -> [u64; WORDS] {
    core::array::from_fn(|at| number.wrapping_add((at as u64) << 32))
}

/// One side of something that goes to and fro.
trait Side {
    fn give(&mut self, number: u64);
    /// Whether what has this number has come.
    fn take(&mut self, number: u64) -> bool;
}

struct Bare(&'static Pair, usize);

impl Side for Bare {
    fn give(&mut self, number: u64) {
        self.0.words[self.1].0[0].store(number, Ordering::Release);
    }
    fn take(&mut self, number: u64) -> bool {
        self.0.words[1 - self.1].0[0].load(Ordering::Acquire) == number
    }
}

impl Side for &mut Endpoint {
    fn give(&mut self, number: u64) {
        // There is room: each message is answered.
        let _ = self.send(&words(number), WHOLE);
    }
    fn take(&mut self, number: u64) -> bool {
        let mut found = [0; WORDS];
        match self.receive(&mut found) {
            Ok(None) => false,
            Ok(Some(_)) if found == words(number) => true,
            _ => report::stop(format_args!("a message between tiles is not what was sent")),
        }
    }
}

/// Gives back all that comes.
fn answer(mut side: impl Side, rounds: u64) {
    for number in 1..=WARM + rounds {
        while !side.take(number) {
            shoot::relax();
        }
        side.give(number);
    }
}

/// Nanoseconds of all round trips.
fn ask(mut side: impl Side, rounds: u64) -> Nanos {
    let mut begun = 0;
    for number in 1..=WARM + rounds {
        if number == WARM + 1 {
            begun = clock::now();
        }
        side.give(number);
        while !side.take(number) {
            shoot::relax();
        }
    }
    clock::now() - begun
}

/// By the first tile, when another has started.
pub fn measure(command_line: &[u8], peer: u32) {
    let Some(rounds) = asked(command_line) else { return };
    let Some(pair) = tiles::pair(peer) else { return };
    while pair.words[1].0[0].load(Ordering::Acquire) != READY {
        tiles::check(peer);
        shoot::relax();
    }
    let word = ask(Bare(pair, 0), rounds);
    let Some(message) = tiles::with_ear(peer, |end| ask(end, rounds)) else { return };
    let _ = writeln!(
        report::Voice,
        "janua: tile {peer}: {rounds} messages of 56 bytes there and back, each {} ns; a word there and back {} ns; {}.{:02} x",
        message / rounds,
        word / rounds,
        message / word.max(1),
        message * 100 / word.max(1) % 100,
    );
}

/// By another tile, when it has started.
pub fn take_part(command_line: &[u8]) {
    let Some(rounds) = asked(command_line) else { return };
    let Some(pair) = tiles::pair(0) else { return };
    pair.words[1].0[0].store(READY, Ordering::Release);
    answer(Bare(pair, 1), rounds);
    tiles::with_mouth(|end| answer(end, rounds));
}
