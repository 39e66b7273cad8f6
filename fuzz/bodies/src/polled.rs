//! A submission ring that a thread of the kernel's polls (IORING_SETUP_SQPOLL), while the program of the model machine rewrites its indices, its entries,
//! and what is the kernel's to write.

use janua_abi::linux::uring::setup;
use janua_personality_linux::uring::ring::at;
use janua_platform_model::program::Program;
use janua_platform_model::{Outcome, Settings};

use crate::bytes::Bytes;
use crate::calls::model;
use crate::rings::{CLOSE, ENTER, ENTRIES, EXIT_GROUP, MMAP, NO_RING, PARAMS, PIPE, RING, SETUP, SUBMISSIONS, TARGET, WORDS};

const NANOSLEEP: usize = 35;
/// Where the program has the time that it sleeps.
const TIME: u64 = TARGET + 0x900;
/// A step's time, nanoseconds: some steps pass between two looks of the kernel's thread, and some hundred before it gives up.
const TICK: u64 = 10_000;

pub fn run(input: &[u8]) {
    let (seed, program) = program(&mut Bytes(input));
    let settings = Settings { seed, frames: 2048, tick: TICK, ..Settings::default() };
    let model = model::boot(settings, &[("program", program)]);
    let outcome = model.run_for(10_000);
    model.end_threads();
    assert!(!matches!(outcome, Outcome::Off(125)), "{}", model.written());
    assert_ne!(outcome, Outcome::Off(NO_RING as u8), "no ring could be made");
}

/// Makes a ring that is polled for at least this many milliseconds, and maps its two parts.
fn ring(flags: u32, idle: u32) -> Program {
    Program::new()
        .store_at(PARAMS + 8, u64::from(flags | setup::SQPOLL))
        .store_at(PARAMS + 16, idle.into())
        .call(SETUP, &[SUBMISSIONS as u64, PARAMS])
        .expect(3, NO_RING)
        .call(MMAP, &[RING, 0x1000, 3, 0x11, 3, 0])
        .call(MMAP, &[ENTRIES, 0x1000, 3, 0x11, 3, 0x1000_0000])
        .call(PIPE, &[TARGET + 0x800])
}

/// The input: a byte each for the order of events and for how the ring is; words that submissions may point to; then what the program does, each with a
/// byte for what it is.
fn program(bytes: &mut Bytes<'_>) -> (u64, Program) {
    const FLAGS: [u32; 4] = [0, setup::NO_SQARRAY, setup::SQE128 | setup::CQE32, setup::SINGLE_ISSUER | setup::SUBMIT_ALL];
    let (seed, kind) = (1 + u64::from(bytes.byte()), bytes.byte());
    let flags = FLAGS[usize::from(kind) % FLAGS.len()];
    let entry = if flags & setup::SQE128 != 0 { 128 } else { 64 };
    let completion = if flags & setup::CQE32 != 0 { 32 } else { 16 };
    let indices = RING + (at::CQES + 2 * SUBMISSIONS * completion).next_multiple_of(64) as u64;
    let mut program = ring(flags, u32::from(kind >> 6));
    for word in 0..8 {
        program = program.store_at(TARGET + 8 * word, bytes.long());
    }
    let mut tail = 0u64;
    for _ in 0..64 {
        if bytes.is_empty() {
            break;
        }
        let (what, value) = (bytes.byte(), u64::from(bytes.word()));
        let slot = ENTRIES + u64::from(what >> 4) % SUBMISSIONS as u64 * entry;
        program = match what % 16 {
            // A whole submission, of which the kernel may see parts.
            0..=3 => {
                tail += 1;
                let words = (0..WORDS as u64).map(|word| (word, bytes.long()));
                let whole = words.fold(program, |program, (word, value)| {
                    // Addresses are seldom guessed.
                    program.store_at(slot + 8 * word, if word == 2 { TARGET + value % 0x900 } else { value })
                });
                whole.store_at(RING + at::SQ_TAIL as u64, tail)
            }
            // One that does nothing, and its index.
            4 => {
                let index = indices + 4 * ((tail % SUBMISSIONS as u64) & !1);
                tail += 1;
                program.store_at(slot, 0).store_at(index, value).store_at(RING + at::SQ_TAIL as u64, tail)
            }
            5 | 6 => program.store_at(slot + value % 8 * 8, bytes.long()),
            7 => program.store_at(indices + value % 4 * 8, bytes.long()),
            8 => {
                tail = tail.wrapping_add(value);
                program.store_at(RING + at::SQ_TAIL as u64, tail)
            }
            9 => program.store_at(RING + at::SQ_HEAD as u64, value),
            10 => program.store_at(RING + value % (at::CQES as u64 / 8) * 8, bytes.long()),
            11 | 12 => program.turns(1 + value % 64),
            // Until the kernel's thread has looked often, or sleeps.
            13 => program.store_at(TIME, 0).store_at(TIME + 8, value % 8_000_000).call(NANOSLEEP, &[TIME, 0]),
            14 => program.call(ENTER, &[3, value % 16, value >> 8 & 1, value >> 16 & 7, 0, 0]),
            _ => program.call(ENTER, &[3, 0, 0, 2, 0, 0]),
        };
    }
    (seed, program.turns(64).call(CLOSE, &[3]).call(EXIT_GROUP, &[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What nobody announces is done while the ring is polled, and again when its poller has slept and is woken.
    #[test]
    fn what_is_polled_ends() {
        let submit = |program: Program, count: u64| {
            program.store_at(ENTRIES + 64 * (count - 1), 0).store_at(RING + at::SQ_TAIL as u64, count)
        };
        let done = |program: Program, count: i32| {
            let label = format!("not yet {count}");
            program.label(&label).load_at(RING + at::CQ_TAIL as u64).jump_unless(count, &label)
        };
        let program = done(submit(ring(setup::NO_SQARRAY, 1), 1), 1);
        // Flag NEED_WAKEUP, beside which nothing else is in these words.
        let program = program.label("polled").load_at(RING + at::SQ_FLAGS as u64).jump_unless(1, "polled");
        let program = submit(program, 2).call(ENTER, &[3, 0, 0, 2, 0, 0]).expect(0, 11);
        let program = done(program, 2).call(CLOSE, &[3]).call(EXIT_GROUP, &[0]);
        for seed in 1..20 {
            let settings = Settings { seed, tick: TICK, ..Settings::default() };
            let model = model::boot(settings, &[("program", program.clone())]);
            let outcome = model.run_for(50_000);
            model.end_threads();
            assert_eq!(outcome, Outcome::Off(0), "{}", model.written());
        }
    }
}
