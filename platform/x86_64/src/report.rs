//! What a person reads when the kernel itself fails. Uses no heap and no lock: either may be what broke.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use janua_port::Frame;

use crate::{apic, core as cores, cpu, machine, serial, tiles};

/// Writes to the kernel's own voice.
pub struct Voice;

impl Write for Voice {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        serial::say(text.as_bytes());
        Ok(())
    }
}

/// Set when a core stops the machine: the others halt at the interrupt that it sends them.
pub static STOPPING: AtomicBool = AtomicBool::new(false);

/// The calling core's number, as far as it can be known when GS may be what broke.
fn number() -> usize {
    let id = apic::id();
    cores::all().find(|core| core.apic() == id).map_or(0, |core| core.number)
}

/// An exception in the kernel: stops the other cores, prints the frame, and powers the machine off with exit code 125.
#[cold]
pub fn kernel_fault(frame: &Frame, vector: u8) -> ! {
    stop(format_args!(
        "kernel fault: core {} vector {vector} error {:#x} at {:#x}, address {:#x}\n\
         janua: rax {:016x} rbx {:016x} rcx {:016x} rdx {:016x}\n\
         janua: rsi {:016x} rdi {:016x} rbp {:016x} rsp {:016x}\n\
         janua: r8  {:016x} r9  {:016x} r10 {:016x} r11 {:016x}\n\
         janua: r12 {:016x} r13 {:016x} r14 {:016x} r15 {:016x}\n\
         janua: flags {:#x} cs {:#x} cr3 {:#x}",
        number(),
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

/// Stops the other cores of this kernel, whatever they do.
pub fn stop_others() {
    STOPPING.store(true, Ordering::SeqCst);
    if tiles::count() > 1 {
        let own = apic::id();
        cores::all().filter(|core| core.apic() != own).for_each(|core| apic::send_nmi(core.apic()));
    } else if cores::count() > 1 {
        apic::send_nmi_to_others();
    }
}

/// Stops the other cores, reports why and powers off with exit code 125; a tile beside the first leaves the others why, and ends alone. A failure in this powers off at once; another core
/// that fails meanwhile just stops.
#[cold]
pub fn stop(why: fmt::Arguments<'_>) -> ! {
    static BY: AtomicUsize = AtomicUsize::new(usize::MAX);
    let number = number();
    match BY.compare_exchange(usize::MAX, number, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => {
            stop_others();
            if tiles::own() != 0 {
                tiles::fail(why);
            }
            let _ = writeln!(Voice, "janua: {why}");
        }
        Err(by) if by != number || tiles::own() != 0 => cpu::halt(),
        Err(_) => {}
    }
    machine::power_off(125)
}
