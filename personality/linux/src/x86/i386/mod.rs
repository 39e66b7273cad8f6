//! The i386 ABI: 32-bit programs, and `int $0x80` in 64-bit code.
//!
//! Most rows of [`table`] name the same handlers as those of the x86-64 table; where a structure has another layout the row
//! names the layout. What is here is what has no counterpart: arguments in two words, calls that multiplex many (ipc(2),
//! socketcall(2)), 16-bit user numbers, the signal frames, thread areas, the vDSO.

pub mod frame;
pub mod ids;
pub mod ipc;
pub mod ptrace;
pub mod signal;
pub mod socket;
pub mod table;
pub mod thread_area;
pub mod vdso;
pub mod words;
pub mod x87;
