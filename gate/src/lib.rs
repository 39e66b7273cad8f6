//! How a call gets in: one folder a gate, with its page; `docs/gates.md` lists them.
#![no_std]
// The compiler counts inline assembly for SPARC among its experiments.
#![cfg_attr(target_arch = "sparc", feature(asm_experimental_arch))]

extern crate alloc;

// The gates of one processor.
macro_rules! gates {
    ($processor:literal: $($name:ident)*) => { $(#[cfg(target_arch = $processor)] pub mod $name;)* };
}

gates!("x86_64": call callgate int l4 ptrace seccomp signal sud syscall sysenter ud vsyscall);
gates!("sparc": ta);

// In the memory of programs, whatever their processor.
pub mod ring;

#[cfg(target_arch = "x86_64")]
mod look;
#[cfg(target_arch = "x86_64")]
mod sigsys;
#[cfg(target_arch = "x86_64")]
use sigsys::{host, take_call};
