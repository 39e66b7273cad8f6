//! The x86_64 platform: the kernel on the bare machine.
//!
//! The kernel runs in ring 0 in the upper half of every address space, programs in ring 3 in the lower. Interrupts
//! are off while the kernel runs and on in user code and in the idle loop, so a thread in the kernel goes on until it waits.
//! A thread has a kernel stack of its own; what it does is a loop: resume user code, take the trap, enter the kernel.
#![no_std]

extern crate alloc;

pub mod acpi;
pub mod apic;
pub mod barrier;
pub mod boot;
pub mod clock;
pub mod compat;
mod context;
pub mod core;
pub mod cpu;
pub mod disk;
pub mod divide;
pub mod entry;
pub mod fpu;
pub mod frames;
mod guard;
pub mod handed;
pub mod heap;
pub mod isolation;
pub mod lock;
pub mod machine;
mod measure;
pub mod oom;
pub mod promise;
mod random;
pub mod report;
pub mod sched;
pub mod serial;
pub mod shoot;
pub mod smp;
pub mod space;
pub mod tables;
pub mod thread;
pub mod tiles;
pub mod trap;
pub mod unprotected;
pub mod user;
pub mod vdso;

pub use machine::BareMachine;
