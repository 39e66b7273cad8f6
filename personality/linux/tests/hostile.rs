//! Calls with hostile words, and programs that are broken, on the model machine: whatever comes of them, it is an answer. Built as tests
//! are, the kernel panics where a number overflows.

use janua_platform_model::program::{DATA, Program};
use janua_platform_model::{Outcome, Settings};

mod common;
use common::random;

/// The numbers there are, and a few beyond.
const NUMBERS: u64 = 475;
const EXIT: u64 = 60;
const EXIT_GROUP: u64 = 231;
const FORK: u64 = 57;
const VFORK: u64 = 58;

/// Words that calls are likely to mistake.
fn word(next: &mut impl FnMut(u64) -> u64) -> u64 {
    const EDGES: [u64; 22] = [
        0,
        1,
        u64::MAX,
        i64::MAX as u64,
        i64::MIN as u64,
        u32::MAX as u64,
        i32::MAX as u64,
        1 << 31,
        1 << 32,
        1 << 40,
        1 << 47,
        0x7fff_ffff_f000,
        0x7fff_ffff_effc,
        0xffff_8000_0000_0000,
        4095,
        4096,
        0x40_0000,
        // The last bytes of the data.
        DATA + (1 << 20) - 1,
        DATA + (1 << 20) - 8,
        DATA + (1 << 20),
        100,
        0x1_0000,
    ];
    match next(10) {
        0..=2 => EDGES[next(EDGES.len() as u64) as usize],
        // Descriptors, signals, small counts and flags.
        3 | 4 => next(20),
        5 => 1 << next(64),
        6 => next(1 << 20),
        7 | 8 => DATA + 8 * next(512),
        _ => next(u64::MAX),
    }
}

/// A program of random calls over memory full of random words.
fn program(next: &mut impl FnMut(u64) -> u64, calls: usize) -> Program {
    let mut program = Program::new();
    for _ in 0..24 {
        program = program.store_at(DATA + 8 * next(512), word(next));
    }
    // A few names.
    for name in [*b"/tmp/a\0\0", *b"/proc/1\0", *b"/program", *b"../x\0\0\0\0"] {
        program = program.store_at(DATA + 8 * next(64), u64::from_le_bytes(name));
    }
    for _ in 0..calls {
        let number = match next(NUMBERS) {
            // They would end it too soon, or make too many.
            EXIT | EXIT_GROUP => 39,
            FORK | VFORK if next(4) > 0 => 39,
            number => number,
        };
        let words: Vec<u64> = (0..6).map(|_| word(next)).collect();
        program = program.call(number as usize, &words);
        if next(6) == 0 {
            program = program.store_at(DATA + 8 * next(512), word(next));
        }
    }
    program.call(EXIT_GROUP as usize, &[0])
}

fn count(usual: u64) -> u64 {
    // A longer run by hand: JANUA_MODEL_ROUNDS=20.
    usual * std::env::var("JANUA_MODEL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

#[test]
fn hostile_words_are_answered() {
    for stream in 0..count(150) {
        let mut next = random::numbers(random::given().unwrap_or(0), stream);
        let calls = program(&mut next, 120);
        let settings = Settings { seed: stream + 1, frames: 2048, ..Settings::default() };
        let model = common::boot(settings, &[("program", calls)]);
        // Some wait for ever, some run on; none takes the kernel with it.
        let outcome = model.run_for(20_000);
        assert!(!matches!(outcome, Outcome::Off(125)), "stream {stream}: {}", model.written());
    }
}

#[test]
fn broken_programs_are_refused_or_run() {
    let whole = Program::new().call(EXIT_GROUP as usize, &[0]).executable();
    for stream in 0..count(400) {
        let mut next = random::numbers(random::given().unwrap_or(0), 1_000_000 + stream);
        let mut file = whole.clone();
        for _ in 0..1 + next(4) {
            // The headers, mostly by whole fields.
            let at = next(176) as usize & !7;
            match next(3) {
                0 => file[at + next(8) as usize] = next(256) as u8,
                1 => file[at..at + 8].copy_from_slice(&word(&mut next).to_le_bytes()),
                _ => file[at..at + 4].copy_from_slice(&(word(&mut next) as u32).to_le_bytes()),
            }
        }
        if next(8) == 0 {
            file.truncate(next(file.len() as u64) as usize);
        }
        let model = common::boot_files(Settings { seed: stream + 1, frames: 1024, ..Settings::default() }, &[("broken", file)]);
        let outcome = model.run_for(5_000);
        assert!(!matches!(outcome, Outcome::Off(125)), "stream {stream}: {}", model.written());
    }
}
