//! Single instructions with a Rust face.

use core::arch::asm;

/// Reads the MMU register `at` (ASI 0x19).
///
/// # Safety
/// In supervisor mode.
pub unsafe fn mmu_read(at: u32) -> u32 {
    let value;
    // SAFETY: the caller is the supervisor; reading a register changes nothing but a pending fault status.
    unsafe { asm!("lda [{at}] 0x19, {value}", at = in(reg) at, value = out(reg) value, options(nostack)) };
    value
}

/// Writes the MMU register `at` (ASI 0x19).
///
/// # Safety
/// In supervisor mode; the mappings the register leads to must keep the kernel's memory where it is.
pub unsafe fn mmu_write(at: u32, value: u32) {
    // SAFETY: the caller's promise.
    unsafe { asm!("sta {value}, [{at}] 0x19", at = in(reg) at, value = in(reg) value, options(nostack)) };
}

/// Forgets every translation.
///
/// # Safety
/// In supervisor mode.
pub unsafe fn mmu_flush() {
    // SAFETY: the caller is the supervisor. Type 4 of the flush (ASI 0x18 of the LEON) is "everything".
    unsafe { asm!("sta %g0, [{at}] 0x18", at = in(reg) 0x400, options(nostack)) };
}

/// Waits for an interrupt with all of them let in, then shuts them out again.
///
/// # Safety
/// In the supervisor's idle loop: a handler runs on this stack.
pub unsafe fn wait_for_interrupt() {
    // SAFETY: the caller's promise; the processor state is put back as it was. %asr19 is the LEON's power-down register.
    unsafe {
        asm!(
            "rd %psr, {old}",
            "andn {old}, 0xf00, {open}",
            "wr {open}, %psr",
            "nop",
            "nop",
            "nop",
            "wr %g0, %asr19",
            "wr {old}, %psr",
            "nop",
            "nop",
            "nop",
            old = out(reg) _,
            open = out(reg) _,
        );
    }
}

/// Stops the machine: a trap while traps are off. QEMU ends.
#[rustfmt::skip]
pub fn stop() -> ! {
    // SAFETY: nothing runs after it.
    unsafe {
        asm!("rd %psr, %l0", "andn %l0, 0x20, %l0", "wr %l0, %psr", "nop", "nop", "nop", "ta 0", "2: ba 2b", "nop", options(noreturn))
    }
}
