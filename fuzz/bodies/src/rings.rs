//! Submissions in a ring of io_uring(7), as a program of the model machine has written them.

use janua_abi::linux::uring::{Params, setup};
use janua_personality_linux::uring::ring::at;
use janua_platform_model::program::{DATA, Program};
use janua_platform_model::{Model, Outcome, Settings};

use crate::bytes::Bytes;
use crate::calls::model;

/// Submissions that the ring has room for.
pub const SUBMISSIONS: usize = 8;
/// Words of a submission.
pub const WORDS: usize = 8;
/// Where the program has the two parts of the ring.
pub const RING: u64 = 0x1000_0000;
pub const ENTRIES: u64 = 0x1010_0000;
/// And the structure that the ring is made with, and a structure for submissions to point to.
pub const PARAMS: u64 = DATA;
pub const TARGET: u64 = DATA + 0x1000;
/// The exit code of a program that has got no ring.
pub const NO_RING: u64 = 9;

pub const CLOSE: usize = 3;
pub const MMAP: usize = 9;
pub const PIPE: usize = 22;
pub const SETUP: usize = 425;
pub const ENTER: usize = 426;
const REGISTER: usize = 427;
pub const EXIT_GROUP: usize = 231;

pub fn run(input: &[u8]) {
    let model = boot(input);
    let outcome = model.run_for(20_000);
    assert!(!matches!(outcome, Outcome::Off(125)), "{}", model.written());
    assert_ne!(outcome, Outcome::Off(NO_RING as u8), "no ring could be made");
}

/// The input: a byte each for the order of events and for how the ring is; words that submissions may point to; then submissions, each
/// with a byte before it that specifies what is done after it.
fn boot(input: &[u8]) -> &'static Model {
    // IORING_SETUP_SQPOLL has a target of its own: `polled`.
    const FLAGS: [u32; 8] = [
        0,
        setup::SUBMIT_ALL,
        setup::COOP_TASKRUN | setup::TASKRUN_FLAG,
        setup::SQE128,
        setup::CQE32,
        setup::IOPOLL,
        setup::SINGLE_ISSUER | setup::DEFER_TASKRUN,
        setup::SQE128 | setup::CQE32 | setup::SUBMIT_ALL,
    ];
    let mut bytes = Bytes(input);
    let (seed, kind) = (1 + u64::from(bytes.byte()), usize::from(bytes.byte()));
    let flags = FLAGS[kind % FLAGS.len()] | setup::NO_SQARRAY;
    let size = if flags & setup::SQE128 != 0 { 128 } else { 64 };
    let mut program = Program::new()
        .store_at(PARAMS + 8, u64::from(flags))
        .call(SETUP, &[SUBMISSIONS as u64, PARAMS])
        .expect(3, NO_RING)
        .call(MMAP, &[RING, 0x1000, 3, 0x11, 3, 0])
        .call(MMAP, &[ENTRIES, 0x1000, 3, 0x11, 3, 0x1000_0000])
        .call(PIPE, &[TARGET + 0x800]);
    for word in 0..8 {
        program = program.store_at(TARGET + 8 * word, bytes.long());
    }
    let mut tail = 0u64;
    while !bytes.is_empty() && tail < 4 * SUBMISSIONS as u64 {
        let after = bytes.byte();
        for word in 0..WORDS as u64 {
            let value = bytes.long();
            // Addresses are seldom guessed.
            let value = if word == 2 && after & 0x80 == 0 { TARGET + value % 0x900 } else { value };
            program = program.store_at(ENTRIES + tail % SUBMISSIONS as u64 * size + 8 * word, value);
        }
        tail += 1;
        program = program.store_at(RING + at::SQ_TAIL as u64, tail);
        program = match after % 8 {
            0..=3 => program,
            4 | 5 => program.call(ENTER, &[3, SUBMISSIONS as u64, 0, 0, 0, 0]),
            // With a wait for what is over already or has been cancelled; most end the program by waiting for ever.
            6 => program.call(ENTER, &[3, SUBMISSIONS as u64, 1, 1, 0, 0]),
            _ => program.call(REGISTER, &[3, u64::from(after >> 3), TARGET, 4]),
        };
    }
    let program = program.call(ENTER, &[3, tail, 0, 0, 0, 0]).call(CLOSE, &[3]).call(EXIT_GROUP, &[0]);
    const { assert!(size_of::<Params>() < 0x1000) };
    model::boot(Settings { seed, frames: 2048, ..Settings::default() }, &[("program", program)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two submissions that do nothing: that they are over is seen by their completions.
    #[test]
    fn what_is_submitted_ends() {
        let nop = |user_data: u64| {
            let mut words = [0u64; WORDS];
            words[4] = user_data;
            words
        };
        let mut program = Program::new()
            .store_at(PARAMS + 8, u64::from(setup::NO_SQARRAY))
            .call(SETUP, &[SUBMISSIONS as u64, PARAMS])
            .expect(3, NO_RING)
            .call(MMAP, &[RING, 0x1000, 3, 0x11, 3, 0])
            .call(MMAP, &[ENTRIES, 0x1000, 3, 0x11, 3, 0x1000_0000]);
        for (number, words) in [nop(7), nop(8)].iter().enumerate() {
            for (word, value) in words.iter().enumerate() {
                program = program.store_at(ENTRIES + 64 * number as u64 + 8 * word as u64, *value);
            }
        }
        let program = program
            .store_at(RING + at::SQ_TAIL as u64, 2)
            .call(ENTER, &[3, 2, 0, 0, 0, 0])
            .expect(2, 10)
            .load_at(RING + at::CQ_TAIL as u64)
            .expect(2, 11)
            .load_at(RING + at::CQES as u64 + 16)
            .expect(8, 12)
            .call(EXIT_GROUP, &[0]);
        let model = model::boot(Settings::default(), &[("program", program)]);
        assert_eq!(model.run_for(20_000), Outcome::Off(0), "{}", model.written());
    }
}
