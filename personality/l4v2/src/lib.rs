//! The personality `l4v2`: the interface of L4, Version 2, on x86, for unmodified 32-bit programs.
//!
//! A task of L4 is a task with an address space of its own, a thread a thread of it. As the interface has it there is one processor: one thread
//! at a time has the [turn](state::State), by priority and time slice, and only this one goes to user code or on with its call; the others wait in the
//! kernel. Physical memory is one memory object. A page of a task maps a page of it, and the [mapping database](memory::Memory) knows which task has it
//! from whom. Page faults are messages to the thread's pager.
//!
//! Lock order: the state before the memory. Neither is held over a wait, a copy from or to user memory, or the start of a thread.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub use janua_personality_outside::l4v2 as config;

mod calls;
mod debug;
mod fault;
mod flag;
mod ipc;
mod load;
pub mod memory;
pub mod personality;
mod registers;
pub mod state;
pub mod system;
pub mod table;
mod tasks;
mod transfer;

pub use personality::L4v2;

/// A kernel, task, thread and seat of this personality.
pub type Kernel = janua_kernel::Kernel<L4v2>;
pub type Task = janua_kernel::Task<L4v2>;
pub type Thread = janua_kernel::Thread<L4v2>;
pub type Seat = janua_kernel::Seat<L4v2>;
