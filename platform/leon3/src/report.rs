//! What a person reads when the kernel itself fails. Uses no heap and no lock: either may be what broke.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use janua_arch::sparc::cpu;
use janua_entry::leon3::core::window_traps;
use janua_platform_bare::outside::{EXIT_MARK, OWN, WINDOWS_MARK};
use janua_port::Frame;

use crate::{sched, uart};

/// Writes to the serial line.
pub struct Voice;

impl Write for Voice {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        uart::write(text.as_bytes());
        Ok(())
    }
}

/// Ends the machine: the code is its last line.
pub fn power_off(code: u8) -> ! {
    let (spilled, filled) = window_traps();
    let _ = writeln!(Voice, "{OWN}{WINDOWS_MARK}{spilled} {filled} {}", sched::switches());
    let _ = writeln!(Voice, "{OWN}{EXIT_MARK}{code}");
    cpu::stop()
}

/// A trap in the kernel that none of its code was prepared for.
#[cold]
pub fn kernel_fault(frame: &Frame, kind: u32) -> ! {
    // SAFETY: the kernel is the supervisor.
    let (status, address) = unsafe { (cpu::mmu_read(0x300), cpu::mmu_read(0x400)) };
    stop(format_args!(
        "kernel fault: trap {kind:#x} at {:#x} (psr {:#x}), fault status {status:#x} address {address:#x}; \
         in {:08x?} global {:08x?}",
        frame.pc, frame.psr, frame.o, frame.g,
    ))
}

/// Reports why and ends the machine with exit code 125. A failure while it does so ends it at once.
#[cold]
pub fn stop(why: fmt::Arguments<'_>) -> ! {
    static STOPPING: AtomicBool = AtomicBool::new(false);
    if !STOPPING.swap(true, Ordering::SeqCst) {
        let _ = writeln!(Voice, "{OWN}janua: {why}");
    }
    power_off(125)
}
