//! Calls with hostile words, and programs that are broken, on the model machine: whatever comes of them, it is a result. Built as tests
//! are, the kernel panics where a number overflows.

use std::panic::{AssertUnwindSafe, catch_unwind};

use janua_platform_model::program::{Program, tree};
use janua_platform_model::{Model, Outcome, Settings};

mod common;
#[path = "common/words.rs"]
mod words;
use common::random;
use words::{EXIT_GROUP, program, word};

#[test]
fn hostile_words_are_answered() {
    for stream in 0..random::rounds(400) {
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
    for stream in 0..random::rounds(400) {
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

/// A file with headers of a program, and segments of all kinds whose words are likely to be mistaken.
fn segments(next: &mut impl FnMut(u64) -> u64) -> Vec<u8> {
    // PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_PHDR, PT_TLS, PT_GNU_STACK, PT_GNU_EH_FRAME, PT_GNU_PROPERTY.
    const KINDS: [u32; 12] = [1, 1, 1, 1, 2, 3, 4, 6, 7, 0x6474_e551, 0x6474_e550, 0x6474_e553];
    const SIZE: u64 = 0x3000;
    let count = 1 + next(8);
    let (kind, narrow) = (2 + next(2) as u16, next(8) == 0);
    let (head, entry_size) = if narrow { (52u16, 32u16) } else { (64, 56) };
    let mut file = vec![0x7f, b'E', b'L', b'F', if narrow { 1 } else { 2 }, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend(kind.to_le_bytes());
    file.extend((if narrow { 3u16 } else { 62 }).to_le_bytes());
    file.extend(1u32.to_le_bytes());
    let put = |file: &mut Vec<u8>, word: u64| file.extend(&word.to_le_bytes()[..if narrow { 4 } else { 8 }]);
    let address = |next: &mut dyn FnMut(u64) -> u64| match next(8) {
        0..=4 => 0x40_0000 + 0x1000 * next(24),
        5 => 0x1000 * next(32) + [0, 0, 0xfff, 8][next(4) as usize],
        _ => 0u64.wrapping_sub(0x1000 * next(1 << 20)),
    };
    put(&mut file, address(next) + 0x1800);
    put(&mut file, if next(16) == 0 { word(next) } else { head.into() });
    put(&mut file, 0);
    file.extend(0u32.to_le_bytes());
    for half in [head, entry_size, count as u16, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for _ in 0..count {
        let kind = KINDS[next(12) as usize];
        let (flags, at) = (next(8) as u32, address(next));
        let offset = if next(6) == 0 { word(next) } else { 0x1000 * next(4) + at % 0x1000 };
        let in_file = if next(6) == 0 { word(next) } else { next(SIZE) };
        let in_memory = match next(6) {
            0 => word(next),
            1 => next(SIZE),
            2 => in_file.wrapping_add(next(1 << 24)),
            _ => in_file.wrapping_add(next(0x5000)),
        };
        let align = [0x1000, 0x1000, 0, 1, 3, 1 << 21, 1 << 63, word(next)][next(8) as usize];
        file.extend(kind.to_le_bytes());
        if !narrow {
            file.extend(flags.to_le_bytes());
        }
        for word in [offset, at, at, in_file, in_memory] {
            put(&mut file, word);
        }
        if narrow {
            file.extend(flags.to_le_bytes());
        }
        put(&mut file, align);
    }
    // The name of an interpreter wherever it is looked for, and code that ends (or does not).
    while (file.len() as u64) < SIZE {
        match next(3) {
            0 => file.extend(b"/broken\0"),
            1 => file.extend([0x90; 8]),
            _ => file.extend([0x48, 0x05, 1, 0, 0, 0, 0x0f, 0x05]),
        }
    }
    file
}

#[test]
fn segments_that_lie_are_refused_or_run() {
    let mut ran = 0;
    for stream in 0..random::rounds(400) {
        let mut next = random::numbers(random::given().unwrap_or(0), 2_000_000 + stream);
        let file = segments(&mut next);
        let model = common::boot_files(Settings { seed: stream + 1, frames: 1024, ..Settings::default() }, &[("broken", file)]);
        let outcome = model.run_for(3_000);
        assert!(!matches!(outcome, Outcome::Off(125)), "stream {stream}: {}", model.written());
        ran += u64::from(!matches!(outcome, Outcome::Off(126 | 127)));
    }
    assert!(ran > 0, "none is loaded");
}

#[test]
fn broken_archives_are_refused_or_unpacked() {
    let whole = tree(&[("broken", Program::new().call(EXIT_GROUP as usize, &[0]).executable()), ("other", vec![7; 3000])]);
    // The headers are 110 bytes of text each: numbers of eight digits in base 16.
    let heads: Vec<usize> = (0..whole.len() - 6).filter(|at| whole[*at..].starts_with(b"070701")).collect();
    let (mut started, mut refused) = (0, 0);
    for stream in 0..random::rounds(300) {
        let mut next = random::numbers(random::given().unwrap_or(0), 3_000_000 + stream);
        let mut archive = whole.clone();
        for _ in 0..1 + next(4) {
            let at = heads[next(heads.len() as u64) as usize];
            match next(5) {
                0 => archive[at + next(110) as usize] = next(256) as u8,
                1 | 2 => {
                    let number = [0, 1, 2, 0o120_777, 0o060_644, 0o040_755, 0o010_600, 0o140_755, word(&mut next) as u32]
                        [next(9) as usize];
                    let field = at + 6 + 8 * next(13) as usize;
                    archive[field..field + 8].copy_from_slice(format!("{number:08x}").as_bytes());
                }
                3 => archive[at + 110..at + 113].copy_from_slice([b"../", b"/..", b"a/b", b"\0\0\0", b"//."][next(5) as usize]),
                _ => archive.truncate(next(archive.len() as u64).max(at as u64 + 130) as usize),
            }
            if archive.len() < whole.len() {
                break;
            }
        }
        let settings = Settings { seed: stream + 1, frames: 1024, ..Settings::default() };
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let model = Model::new(settings);
            common::start_from(model, archive, "broken").map(|_| model)
        }));
        match begun {
            Ok(Ok(model)) => {
                started += 1;
                let outcome = model.run_for(3_000);
                assert!(!matches!(outcome, Outcome::Off(125)), "stream {stream}: {}", model.written());
            }
            Ok(Err(_)) => refused += 1,
            // A machine ends by an unwinding of its own, a panic is one with a text.
            Err(end) => {
                assert!(!end.is::<String>() && !end.is::<&str>(), "stream {stream}: the kernel has panicked");
                refused += 1;
            }
        }
    }
    assert!(started > 0 && refused > 0, "{started} started, {refused} were refused");
}
