//! What a person reads when the kernel itself fails. Uses no heap and no lock: either may be what broke.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use janua_port::Frame;

use crate::{cpu, machine, serial};

/// Writes to the kernel's own voice.
pub struct Voice;

impl Write for Voice {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        serial::say(text.as_bytes());
        Ok(())
    }
}

/// An exception in the kernel: prints it and powers the machine off with exit code 125.
#[cold]
pub fn kernel_fault(frame: &Frame, vector: u8) -> ! {
    stop(format_args!(
        "kernel fault: vector {vector} error {:#x} at {:#x}, address {:#x}\n\
         janua: rax {:016x} rbx {:016x} rcx {:016x} rdx {:016x}\n\
         janua: rsi {:016x} rdi {:016x} rbp {:016x} rsp {:016x}\n\
         janua: r8  {:016x} r9  {:016x} r10 {:016x} r11 {:016x}\n\
         janua: r12 {:016x} r13 {:016x} r14 {:016x} r15 {:016x}\n\
         janua: flags {:#x} cs {:#x} cr3 {:#x}",
        frame.orig_rax,
        frame.rip,
        cpu::fault_address(),
        frame.rax,
        frame.rbx,
        frame.rcx,
        frame.rdx,
        frame.rsi,
        frame.rdi,
        frame.rbp,
        frame.rsp,
        frame.r8,
        frame.r9,
        frame.r10,
        frame.r11,
        frame.r12,
        frame.r13,
        frame.r14,
        frame.r15,
        frame.rflags,
        frame.cs,
        cpu::root(),
    ))
}

/// Says why and powers off with exit code 125. A failure while it does so powers off at once.
#[cold]
pub fn stop(why: fmt::Arguments<'_>) -> ! {
    static STOPPING: AtomicBool = AtomicBool::new(false);
    if !STOPPING.swap(true, Ordering::SeqCst) {
        let _ = writeln!(Voice, "janua: {why}");
    }
    machine::power_off(125)
}
