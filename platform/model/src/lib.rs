//! A machine in the memory of one process, for tests of a kernel: deterministic, and one step at a time.
//!
//! ```text
//! let model = Model::new(Settings::default());
//! let kernel = start(model, ...);          // the kernel under test, with guests on this machine
//! model.serve(move || serve(&kernel, 0));  // its service routine
//! assert_eq!(model.run(), Outcome::Off(0));
//! ```
//!
//! Guests run code of a small part of x86-64 ([`processor`]), which [`program`] writes, in paged address spaces. One guest thread takes
//! one step at a time: an instruction, a call up to where it waits, a return from the wait. Which thread is next is drawn from
//! [`Settings::seed`], so that another seed is another order of events and the same seed is the same. Time passes by steps, and
//! jumps to the next deadline when nobody can run. Faults come by script: frames of memory that run out ([`Settings::frames`]), calls
//! of the host part that fail ([`Model::fail_host`]).
//!
//! Threads of a kernel's own take their turns as guests do.
//!
//! A guest may also leave calls in its memory, for a thread of the kernel's own ([`Model::work`]) to make ([`ring`]).
//!
//! Several kernels may run side by side ([`Model::next_kernel`]): the end of one is an event, and the end of the last that of the machine.
//! They are tiles of it if they are given what [`tiles::tiles`] makes.
#![forbid(unsafe_code)]

mod context;
mod files;
mod machine;
mod memory;
pub mod processor;
pub mod program;
pub mod ring;
mod threads;
pub mod tiles;

pub use machine::{Model, Outcome, Settings};
