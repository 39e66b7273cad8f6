//! Every fuzz target, for as long as a test may take: with the inputs that are kept (`fuzz/seeds`), those that once failed among them, and
//! with others that are made of them at random.

#[path = "../../../test/random.rs"]
mod random;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use janua_fuzz::{TARGETS, Target};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder fuzz")
}

/// The inputs that are kept for a target, by name.
fn seeds(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = folder().join("seeds").join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut seeds: Vec<_> =
        entries.map(|entry| entry.unwrap().path()).map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    seeds.sort();
    seeds
}

/// Another input: one of those that are kept, changed in a few places, or bytes at random.
fn other(target: &Target, seeds: &[(PathBuf, Vec<u8>)], next: &mut impl FnMut(u64) -> u64) -> Vec<u8> {
    const EDGES: [u64; 10] = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
    if seeds.is_empty() || next(8) == 0 {
        let len = next(target.longest as u64 + 1);
        return (0..len).map(|_| next(256) as u8).collect();
    }
    let mut input = seeds[next(seeds.len() as u64) as usize].1.clone();
    for _ in 0..1 + next(6) {
        let at = next(input.len() as u64 + 1) as usize;
        let end = at + next((input.len() - at).min(32) as u64 + 1) as usize;
        match next(8) {
            0 if at < input.len() => input[at] ^= 1 << next(8),
            1 if at < input.len() => input[at] = next(256) as u8,
            2 => {
                let word = EDGES[next(10) as usize].wrapping_add(next(3)).wrapping_sub(1).to_le_bytes();
                let len = [1, 2, 4, 8][next(4) as usize].min(input.len() - at);
                input[at..at + len].copy_from_slice(&word[..len]);
            }
            3 => drop(input.drain(at..end)),
            4 => {
                let part = input[at..end].to_vec();
                let to = next(input.len() as u64 + 1) as usize;
                input.splice(to..to, part);
            }
            5 => {
                let from = &seeds[next(seeds.len() as u64) as usize].1;
                let start = next(from.len() as u64 + 1) as usize;
                input.truncate(at);
                input.extend_from_slice(&from[start..]);
            }
            6 => {
                let more: Vec<u8> = (0..next(32)).map(|_| next(256) as u8).collect();
                input.splice(at..at, more);
            }
            _ => {
                for byte in &mut input[at..end] {
                    *byte = next(256) as u8;
                }
            }
        }
    }
    input.truncate(target.longest);
    input
}

fn try_one(target: &Target, input: &[u8], name: &str) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        let kept = std::env::temp_dir().join(format!("janua-fuzz-{}-{}", target.name, std::process::id()));
        let written = fs::write(&kept, input);
        eprintln!("{}: {name} fails ({} bytes); kept as {} ({written:?})", target.name, input.len(), kept.display());
        std::panic::resume_unwind(panic);
    }
}

fn bounded(name: &str) {
    let index = TARGETS.iter().position(|target| target.name == name).expect("a target of that name");
    let target = &TARGETS[index];
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "no input is kept");
    for (path, input) in &seeds {
        try_one(target, input, &path.display().to_string());
    }
    let mut next = random::numbers(random::given().unwrap_or(0), index as u64);
    for round in 0..random::rounds(target.rounds) {
        try_one(target, &other(target, &seeds, &mut next), &format!("round {round}"));
    }
}

/// A test for each target.
macro_rules! tests {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            bounded(stringify!($name));
        })*

        /// Each target has a test here, a program for cargo-fuzz, and inputs that are kept.
        #[test]
        fn all_targets_are_there() {
            let tested = [$(stringify!($name)),*];
            let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
            for target in TARGETS {
                assert!(tested.contains(&target.name), "{} has no test", target.name);
                assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{} is no program", target.name);
                let program = fs::read_to_string(folder().join(format!("fuzz_targets/{}.rs", target.name))).unwrap();
                assert!(program.contains(&format!("run(\"{}\"", target.name)), "{} is another's program", target.name);
                assert!(seeds(target).iter().all(|(_, input)| input.len() <= 16 << 10), "{} keeps a large input", target.name);
            }
            assert_eq!(tested.len(), TARGETS.len());
        }
    };
}

tests! { archive calls capabilities disk elf l4 manifest mappings messages paging polled rings sockets text tiles }
