//! What the gates of a machine share with each other and with its platform: where registers are saved, the words that entries find, the
//! pieces that entries are made of, and the entry and exit that are no gate's own. `docs/gates.md` has the whole.
#![no_std]
// The compiler counts inline assembly for SPARC among its experiments.
#![cfg_attr(target_arch = "sparc", feature(asm_experimental_arch))]

#[cfg(target_arch = "x86_64")]
pub mod bare;
#[cfg(target_arch = "x86_64")]
pub mod hosted;
#[cfg(target_arch = "sparc")]
pub mod leon3;
