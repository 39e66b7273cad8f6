//! What is x86 of this personality: how registers are called, what frames of handlers and register sets look
//! like, what the processor reports of itself, and the i386 ABI.
//! Nothing else here names a register (rule `x86-folder`).

pub mod cpuinfo;
pub mod frame;
pub mod i386;
pub mod regs;
