//! What the fuzz targets do with their input. A target of cargo-fuzz (`fuzz/fuzz_targets`) and a test of `cargo test` (`tests/bounded.rs`) call
//! the same function, which panics where the code under test does, or where what comes of it makes no sense.
#![forbid(unsafe_code)]

extern crate alloc;

mod archive;
mod bytes;
mod calls;
mod capabilities;
mod disk;
mod elf;
mod l4;
mod manifest;
mod mappings;
mod messages;
mod paging;
mod polled;
mod rings;
mod sockets;
mod text;
mod tiles;

/// A fuzz target.
pub struct Target {
    /// That of the file in `fuzz/fuzz_targets`, and of the folder in `fuzz/seeds`.
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Inputs of the bounded test: some seconds of them, as tests are built.
    pub rounds: u64,
    /// Bytes of the longest input that is worth trying.
    pub longest: usize,
}

/// All of them.
#[rustfmt::skip]
pub const TARGETS: &[Target] = &[
    Target { name: "archive", run: archive::run, rounds: 200_000, longest: 2048 },
    Target { name: "calls", run: calls::run, rounds: 300, longest: 4096 },
    Target { name: "capabilities", run: capabilities::run, rounds: 3_000, longest: 2048 },
    Target { name: "disk", run: disk::run, rounds: 300, longest: 256 },
    Target { name: "elf", run: elf::run, rounds: 200_000, longest: 1024 },
    Target { name: "l4", run: l4::run, rounds: 200_000, longest: 64 },
    Target { name: "manifest", run: manifest::run, rounds: 100_000, longest: 512 },
    Target { name: "mappings", run: mappings::run, rounds: 300, longest: 2048 },
    Target { name: "messages", run: messages::run, rounds: 200_000, longest: 1024 },
    Target { name: "paging", run: paging::run, rounds: 300, longest: 4096 },
    Target { name: "polled", run: polled::run, rounds: 100, longest: 1024 },
    Target { name: "rings", run: rings::run, rounds: 600, longest: 1024 },
    Target { name: "sockets", run: sockets::run, rounds: 200_000, longest: 512 },
    Target { name: "text", run: text::run, rounds: 1_500, longest: 2048 },
    Target { name: "tiles", run: tiles::run, rounds: 200, longest: 1024 },
];

/// Runs the target of this name.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target of that name");
    (target.run)(input);
}
