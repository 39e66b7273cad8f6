//! Kernels side by side on one machine, of two personalities: each runs to its own end, none is another's business.

use janua_personality_invasive::config::Config;
use janua_personality_invasive::memory::Layout;
use janua_personality_invasive::system;
use janua_platform_model::program::{DATA, Program};
use janua_platform_model::{Model, Outcome, Settings};

mod common;
use common::random;

/// Where an application of tiles has what, above the programs.
const TILE: Layout = Layout {
    records: 0x1000_0000,
    stacks: 0x2000_0000,
    stack_size: 64 << 10,
    stack_count: 16,
    heap: 0x3000_0000,
    heap_end: 0x3010_0000,
};

const TEXT: u64 = DATA + 64;

/// Numbers of Linux' calls, and of invasive ones.
mod nr {
    pub const WRITE: usize = 1;
    pub const GETPID: usize = 39;
    pub const FORK: usize = 57;
    pub const WAIT4: usize = 61;
    pub const KILL: usize = 62;
    pub const CREAT: usize = 85;
    pub const ACCESS: usize = 21;
    pub const EXIT_GROUP: usize = 231;
    pub const SHUTDOWN: usize = 7;
    pub const PRINT: usize = 8;
}

fn word(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes)
}

/// Starts an application on two tiles of two cores.
fn start_tiles(model: &'static Model, application: Program) {
    let config = Config {
        program: application.executable(),
        args: vec![b"application".to_vec()],
        tiles: 2,
        cores: 2,
        ..Config::default()
    };
    let kernel = system::start(model, &config.encode(), TILE, None, |_| false).expect("the kernel starts");
    model.serve(move || {
        system::outside(&kernel, 0);
        None
    });
}

/// Prints a word of seven letters so often, then ends its kernel.
fn prints(text: &[u8; 8], times: usize, code: u64) -> Program {
    let begun = Program::new().store_at(TEXT, word(text));
    (0..times).fold(begun, |program, _| program.call(nr::PRINT, &[TEXT, 8])).call(nr::SHUTDOWN, &[code])
}

/// A process number 2 with a child, and a file of its own; it ends what it can reach (all but itself), and then itself.
fn forks(text: &[u8; 8], code: u64) -> Program {
    Program::new()
        .store_at(TEXT, word(b"/tmp/f\0\0"))
        .call(nr::GETPID, &[])
        .expect(2, 101)
        // Nobody has made the file before.
        .call(nr::ACCESS, &[TEXT, 0])
        .expect(-2, 102)
        .call(nr::CREAT, &[TEXT, 0o600])
        .expect(3, 103)
        .call(nr::FORK, &[])
        .jump_if(0, "child")
        .expect(3, 104)
        .store_at(TEXT, word(text))
        .call(nr::WRITE, &[1, TEXT, 8])
        .call(nr::KILL, &[u64::MAX, 9])
        .expect(0, 105)
        .store_at(TEXT, 0)
        .call(nr::WAIT4, &[u64::MAX, TEXT, 0, 0])
        .expect(3, 106)
        .call(nr::EXIT_GROUP, &[code])
        .label("child")
        .call(nr::GETPID, &[])
        .jump("child")
}

#[test]
fn kernels_of_two_personalities_run_to_their_ends() {
    let first = random::given().unwrap_or(0) * 32;
    for seed in (first..first + 32).map(|seed| seed + 1) {
        let model = Model::new(Settings { seed, ..Settings::default() });
        common::start_on(model, &[("first", forks(b"linux-a\n", 11).executable())]);
        assert_eq!(model.next_kernel(), 1);
        start_tiles(model, prints(b"tiles-b\n", 3, 22));
        assert_eq!(model.next_kernel(), 2);
        common::start_on(model, &[("second", forks(b"linux-c\n", 33).executable())]);
        assert_eq!(model.next_kernel(), 3);
        start_tiles(model, prints(b"tiles-d\n", 40, 44));
        let outcome = model.run();
        let written = model.written();
        let ends = [0, 1, 2, 3].map(|kernel| model.ended(kernel));
        assert_eq!(ends, [Some(11), Some(22), Some(33), Some(44)], "seed {seed}: {outcome:?}; written: {written}");
        let count = |text: &str| written.matches(text).count();
        assert_eq!(["linux-a", "tiles-b", "linux-c", "tiles-d"].map(count), [1, 3, 1, 40], "seed {seed}");
        // The last to end was one of them.
        assert!(matches!(outcome, Outcome::Off(11 | 22 | 33 | 44)), "seed {seed}: {outcome:?}");
        assert_eq!(model.threads(), 0);
    }
}

#[test]
fn who_waits_for_ever_keeps_nobody_from_ending() {
    // An application that only waits: its cores have nothing to do.
    let model = Model::new(Settings::default());
    start_tiles(model, Program::new().call(0, &[]));
    model.next_kernel();
    common::start_on(model, &[("second", forks(b"linux-c\n", 33).executable())]);
    assert_eq!(model.run(), Outcome::Idle);
    assert_eq!([model.ended(0), model.ended(1)], [None, Some(33)]);
}
