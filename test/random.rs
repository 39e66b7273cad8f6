//! Random numbers of tests: others every day, the same in all runs with one seed. Crates include it as a module of their tests.

extern crate std;

/// The environment variable that holds the seed. `xtask test` sets it for all tests; a number repeats the run that printed it.
pub const VARIABLE: &str = "JANUA_SEED";

/// The environment variable that makes random tests long: `xtask test --long` sets it.
pub const LONG: &str = "JANUA_LONG";

/// How many rounds a random test takes: the usual number, or twenty times as many in a long run.
#[allow(dead_code, reason = "each crate uses its part")]
pub fn rounds(usual: u64) -> u64 {
    if std::env::var_os(LONG).is_some() { usual * 20 } else { usual }
}

/// The seed the environment gives, if it gives one.
///
/// Panics when it is not a number.
pub fn given() -> Option<u64> {
    let word = std::env::var(VARIABLE).ok()?;
    Some(word.parse().unwrap_or_else(|_| panic!("{VARIABLE}={word} is not a number")))
}

/// The random numbers of a stream of a seed: each call returns one in `0..bound` (splitmix64).
pub fn numbers(seed: u64, stream: u64) -> impl FnMut(u64) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    // A runner shows it where the test fails.
    if cfg!(test) {
        std::println!("{VARIABLE}={seed}, stream {stream}");
    }
    let mut state = seed.wrapping_mul(STEP).rotate_left(32).wrapping_add(stream);
    move |bound| {
        state = state.wrapping_add(STEP);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }
}
