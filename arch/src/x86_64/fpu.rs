//! The x87 and vector registers, for a kernel that uses none of them: to memory and back, but for the key register.

use core::arch::global_asm;

global_asm!(
    ".pushsection .text.hosted, \"ax\", @progbits",
    // rdi: xsave area, rsi: component mask. PKRU (bit 9) never comes from memory.
    ".globl hosted_fpu_load",
    ".type hosted_fpu_load, @function",
    "hosted_fpu_load:",
    "mov rax, rsi",
    "mov rdx, rsi",
    "shr rdx, 32",
    "and eax, 0xfffffdff",
    "xrstor64 [rdi]",
    "test eax, 0x200",
    "jnz 4f",
    "ret",
    "4:",
    "ud2",
    ".size hosted_fpu_load, . - hosted_fpu_load",
    ".globl hosted_fpu_store",
    ".type hosted_fpu_store, @function",
    "hosted_fpu_store:",
    "mov rax, rsi",
    "mov rdx, rsi",
    "shr rdx, 32",
    "xsave64 [rdi]",
    "ret",
    ".size hosted_fpu_store, . - hosted_fpu_store",
    ".popsection",
);

unsafe extern "C" {
    /// Loads the components of the mask, never PKRU, from an area as XSAVE lays it out.
    ///
    /// # Safety
    /// The area holds what [`hosted_fpu_store`] has left there, or what XRSTOR accepts; the caller's registers may change.
    pub fn hosted_fpu_load(area: *const u8, mask: u64);
    /// Stores the components of the mask.
    ///
    /// # Safety
    /// The area is aligned to 64 and large enough for what the processor has in use.
    pub fn hosted_fpu_store(area: *mut u8, mask: u64);
}
