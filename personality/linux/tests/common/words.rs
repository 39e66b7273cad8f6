//! Hostile words, and programs that make calls with them.

use janua_platform_model::program::{DATA, Program};

/// The numbers there are, and a few beyond.
const NUMBERS: u64 = 475;
const EXIT: u64 = 60;
pub const EXIT_GROUP: u64 = 231;
const FORK: u64 = 57;
const VFORK: u64 = 58;

/// Words that calls are likely to mistake.
pub fn word(next: &mut impl FnMut(u64) -> u64) -> u64 {
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
        3..=5 => next(20),
        6 if next(2) == 0 => 1 << next(64),
        6 => next(1 << 20),
        7 | 8 => DATA + 8 * next(512),
        _ => next(u64::MAX),
    }
}

/// Makes something that descriptors or calls may then name.
fn something(program: Program, next: &mut impl FnMut(u64) -> u64) -> Program {
    const NAME: u64 = DATA + 0x8000;
    const FLAGS: u64 = 0x800;
    let named = |program: Program, name: &[u8; 8]| program.store_at(NAME, u64::from_le_bytes(*name));
    match next(16) {
        // pipe2, socketpair of a kind, eventfd2, epoll_create1, timerfd_create, inotify_init1, memfd_create: none waits.
        0 => program.call(293, &[NAME, FLAGS]),
        1 => program.call(53, &[1, [1, 2, 5][next(3) as usize] | FLAGS, 0, NAME]),
        2 => program.call(290, &[next(3), FLAGS]),
        3 => program.call(291, &[0]),
        4 => program.call(283, &[next(2), FLAGS]),
        5 => program.call(294, &[FLAGS]),
        6 => named(program, b"memfd\0\0\0").call(319, &[NAME, 2]),
        // socket of a family and kind, and bind to a port of the loopback's, listen.
        7 => program.call(41, &[[1, 2, 10, 16][next(4) as usize], (1 + next(3)) | FLAGS, 0]),
        8 => program
            .store_at(NAME, 2 | 0x0101 << 16 | 0x0100_007f << 32)
            .call(41, &[2, (1 + next(2)) | FLAGS, 0])
            .call(49, &[3 + next(8), NAME, 16])
            .call(50, &[3 + next(8), 4]),
        // open of a new file, of one of /proc, of a directory; mkdir.
        9 => named(program, b"/tmp/a\0\0").call(2, &[NAME, 0o102, 0o600]).call(1, &[3 + next(8), DATA, next(9000)]),
        10 => named(program, b"/proc/2\0").call(2, &[NAME, 0o200_000, 0]),
        11 => named(program, b"/tmp/d\0\0").call(83, &[NAME, 0o700]).call(80, &[NAME]),
        // Memory: of its own, shared, that grows down; a stack for handlers.
        12 => program.call(9, &[0, 4096 * (1 + next(64)), next(8), 0x22, u64::MAX, 0]),
        13 => program.call(9, &[0x1000_0000 + 4096 * next(64), 4096 * (1 + next(16)), 3, 0x31 | next(2) << 8, u64::MAX, 0]),
        // A thread on the same code and another stack; a child.
        14 => program.call(56, &[0x5_0f00, DATA + 0x4_0000 + 0x1000 * next(32), 0, 0, 0]),
        _ => program.call(FORK as usize, &[]),
    }
}

/// A program of random calls over memory full of random words.
pub fn program(next: &mut impl FnMut(u64) -> u64, calls: usize) -> Program {
    let mut program = Program::new();
    for _ in 0..24 {
        program = program.store_at(DATA + 8 * next(512), word(next));
    }
    // A few names.
    for name in [*b"/tmp/a\0\0", *b"/proc/1\0", *b"/program", *b"../x\0\0\0\0"] {
        program = program.store_at(DATA + 8 * next(64), u64::from_le_bytes(name));
    }
    for _ in 0..next(12) {
        program = something(program, next);
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
