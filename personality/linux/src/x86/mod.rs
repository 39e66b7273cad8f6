//! What is x86 of this personality: how registers are called, what frames of handlers and register sets look
//! like, what the processor reports of itself, and the i386 ABI.
//! Nothing else here names a register (rule `x86-folder`). What the rest uses of it is what `src/unported.rs` has as well.

use janua_elf::{EM_386, EM_X86_64, Machine};
use janua_port::Frame;

pub mod cpuinfo;
pub mod frame;
pub mod i386;
pub mod regs;

pub use crate::table::ROWS;
pub use i386::table::ROWS as ROWS_32;
pub use i386::{thread_area, vdso};

/// What uname(2) and the auxiliary vector call the processor, and what they call it to 32-bit programs.
pub const NAME: &str = "x86_64";
pub const NAME_32: &str = "i686";

/// Whether programs for this machine, as ELF headers number them, can run.
pub fn runs(machine: Machine) -> bool {
    [EM_386, EM_X86_64].contains(&machine)
}

/// The first registers of a program.
pub fn start(entry: usize, sp: usize, is_32: bool) -> Frame {
    if is_32 { Frame::start32(entry as u32, sp as u32) } else { Frame::start(entry as u64, sp as u64) }
}

/// The number of restart_syscall(2) in the ABI of the call that a frame entered with.
pub fn restart_syscall(frame: &Frame) -> u64 {
    if frame.is_compat_call() { 0 } else { 219 }
}
