//! Privileged instructions with a Rust face. The kernel runs in ring 0 on this platform, so none of them can fault but for the
//! reasons given.

use core::arch::asm;

use janua_arch::x86_64::cpu::cpuid;

pub const MSR_APIC_BASE: u32 = 0x1b;
pub const MSR_SYSENTER_CS: u32 = 0x174;
pub const MSR_SYSENTER_ESP: u32 = 0x175;
pub const MSR_SYSENTER_EIP: u32 = 0x176;
pub const MSR_STAR: u32 = 0xc000_0081;
pub const MSR_LSTAR: u32 = 0xc000_0082;
pub const MSR_CSTAR: u32 = 0xc000_0083;
pub const MSR_SFMASK: u32 = 0xc000_0084;
pub const MSR_FS_BASE: u32 = 0xc000_0100;
pub const MSR_GS_BASE: u32 = 0xc000_0101;
pub const MSR_KERNEL_GS_BASE: u32 = 0xc000_0102;

/// Reads a model-specific register.
///
/// # Safety
/// The processor has the register.
pub unsafe fn rdmsr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller's word.
    unsafe { asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
///
/// # Safety
/// The processor has the register, the value is valid for it, and what it changes is what the caller wants changed.
pub unsafe fn wrmsr(register: u32, value: u64) {
    // SAFETY: the caller's word.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack, preserves_flags));
    }
}

/// Reads a byte from an I/O port.
///
/// # Safety
/// Reading the port does nothing the caller does not want.
pub unsafe fn inb(port: u16) -> u8 {
    let value;
    // SAFETY: the caller's word.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Writes a byte to an I/O port.
///
/// # Safety
/// Writing the port does nothing the caller does not want.
pub unsafe fn outb(port: u16, value: u8) {
    // SAFETY: the caller's word.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags)) };
}

/// The physical address of the page-table root in use.
pub fn root() -> usize {
    let value: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value & !0xfff
}

/// Changes to another page-table root.
///
/// # Safety
/// The root maps the kernel as the one in use does.
pub unsafe fn set_root(root: usize) {
    // SAFETY: the caller's word.
    unsafe { asm!("mov cr3, {}", in(reg) root, options(nostack, preserves_flags)) };
}

/// Forgets what the processor remembers of one page.
pub fn forget_page(addr: usize) {
    // SAFETY: only drops what can be read anew from the tables.
    unsafe { asm!("invlpg [{}]", in(reg) addr, options(nostack, preserves_flags)) };
}

/// The address of the last page fault.
pub fn fault_address() -> usize {
    let value;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// What has raised a debug exception, of single steps and watched addresses; 0 for `int1`, which sets nothing there. The processor adds to what
/// is there, so it is cleared.
pub fn take_debug_status() -> u64 {
    const STEP: u64 = 1 << 14;
    const WATCHED: u64 = 0xf;
    /// The register's value after a reset.
    const NOTHING: u64 = 0xffff_0ff0;
    let value: u64;
    // SAFETY: reads and writes a register that only reports.
    unsafe {
        asm!("mov {}, dr6", out(reg) value, options(nomem, nostack, preserves_flags));
        asm!("mov dr6, {}", in(reg) NOTHING, options(nomem, nostack, preserves_flags));
    }
    value & (STEP | WATCHED)
}

/// Control register 4.
pub fn cr4() -> u64 {
    let value;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, cr4", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Sets control register 4.
///
/// # Safety
/// The processor has the features whose bits are set, and the kernel is ready for them.
pub unsafe fn set_cr4(value: u64) {
    // SAFETY: the caller's word.
    unsafe { asm!("mov cr4, {}", in(reg) value, options(nostack, preserves_flags)) };
}

/// Sets XCR0: the state components that XSAVE knows.
///
/// # Safety
/// CR4.OSXSAVE is set and the processor has the components.
pub unsafe fn set_xcr0(value: u64) {
    // SAFETY: the caller's word.
    unsafe {
        asm!("xsetbv", in("ecx") 0, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack, preserves_flags));
    }
}

/// Sleeps until an interrupt, which is taken; interrupts are off again afterwards.
pub fn wait_for_interrupt() {
    // SAFETY: `sti` takes effect after `hlt` has begun, so that no interrupt slips between; handlers keep all registers.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) };
}

/// Stops the core for good.
pub fn halt() -> ! {
    loop {
        // SAFETY: interrupts stay off; there is nothing left to do.
        unsafe { asm!("cli", "hlt", options(nostack)) };
    }
}

/// A random word of the processor's own generator, if it has one and it gives one.
pub fn rdrand() -> Option<u64> {
    const RDRAND: u32 = 1 << 30;
    if janua_arch::x86_64::cpu::cpuid(1, 0)[2] & RDRAND == 0 {
        return None;
    }
    (0..10).find_map(|_| {
        let (value, good): (u64, u8);
        // SAFETY: the processor has the instruction.
        unsafe { asm!("rdrand {}", "setc {}", out(reg) value, out(reg_byte) good, options(nomem, nostack)) };
        (good != 0).then_some(value)
    })
}

/// The processor's maker, as CPUID spells it.
pub fn vendor() -> [u8; 12] {
    let [_, b, c, d] = cpuid(0, 0);
    text([b, d, c])
}

/// Whether the processor is QEMU's emulated one (TCG), which states it in the leaf where hypervisors give their names.
pub fn is_emulated() -> bool {
    const HYPERVISOR: u32 = 1 << 31;
    const NAME: u32 = 0x4000_0000;
    if cpuid(1, 0)[2] & HYPERVISOR == 0 {
        return false;
    }
    let [_, b, c, d] = cpuid(NAME, 0);
    text([b, c, d]) == *b"TCGTCGTCGTCG"
}

/// Words of CPUID as the text they are.
fn text(words: [u32; 3]) -> [u8; 12] {
    let mut text = [0; 12];
    for (bytes, word) in text.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    text
}
