//! A program of hostile calls on the model machine, drawn from the input.

use janua_platform_model::{Outcome, Settings};

use crate::bytes::Bytes;

#[path = "../../../personality/linux/tests/common/mod.rs"]
pub mod model;
#[path = "../../../personality/linux/tests/common/words.rs"]
mod words;

/// Calls of a program.
const CALLS: usize = 60;

pub fn run(input: &[u8]) {
    let mut bytes = Bytes(input);
    let seed = 1 + u64::from(bytes.byte());
    let program = words::program(&mut |bound| bytes.below(bound), CALLS);
    let model = model::boot(Settings { seed, frames: 2048, ..Settings::default() }, &[("program", program)]);
    // Some wait for ever, some run on; none takes the kernel with it.
    let outcome = model.run_for(20_000);
    assert!(!matches!(outcome, Outcome::Off(125)), "{}", model.written());
}
