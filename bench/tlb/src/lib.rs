//! A plugin for QEMU's emulation (`-plugin`): what a processor's TLB would miss while `janua bench gates --platform x86_64` counts.
//!
//! QEMU reports every instruction and every access to memory; [`model`] is the TLB, [`machine`] decides what of the processor's own
//! doings belongs to it, and `plugin` is QEMU's interface. The result is a file with one line a sample.
//!
//! With `model=caches` it is what the caches and TLBs of all cores would miss, [`caches`], between the marks of `janua bench tasks`.

mod caches;
mod machine;
mod model;
// QEMU has the functions it calls: the tests are linked without them.
#[cfg(not(test))]
mod plugin;
