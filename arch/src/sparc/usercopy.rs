//! Copies between the kernel and user memory that survive a fault; and pages of zeroes.
//!
//! The user's side is reached with the user's rights (ASI 0xA), whatever the address is. Each routine is between
//! `usercopy_start` and `usercopy_end`; a fault there continues at `usercopy_fixup`, where %o2 holds the bytes not copied, which
//! become the result.

use core::arch::global_asm;

global_asm!(
    ".section .text.usercopy, \"ax\"",
    "usercopy_start:",
    // %o0 destination in the kernel, %o1 user address, %o2 bytes -> bytes left
    ".globl usercopy_in",
    "usercopy_in:",
    "or %o0, %o1, %o3",
    "btst 3, %o3",
    "bne 2f",
    "cmp %o2, 4",
    "1:",
    "blu 2f",
    "nop",
    "lda [%o1] 0xa, %o3",
    "st %o3, [%o0]",
    "add %o1, 4, %o1",
    "add %o0, 4, %o0",
    "sub %o2, 4, %o2",
    "ba 1b",
    "cmp %o2, 4",
    "2:",
    "tst %o2",
    "be 4f",
    "nop",
    "3:",
    "lduba [%o1] 0xa, %o3",
    "stb %o3, [%o0]",
    "inc %o1",
    "inc %o0",
    "deccc %o2",
    "bne 3b",
    "nop",
    "4:",
    "retl",
    "mov 0, %o0",
    // %o0 user address, %o1 source in the kernel, %o2 bytes -> bytes left
    ".globl usercopy_out",
    "usercopy_out:",
    "or %o0, %o1, %o3",
    "btst 3, %o3",
    "bne 2f",
    "cmp %o2, 4",
    "1:",
    "blu 2f",
    "nop",
    "ld [%o1], %o3",
    "sta %o3, [%o0] 0xa",
    "add %o1, 4, %o1",
    "add %o0, 4, %o0",
    "sub %o2, 4, %o2",
    "ba 1b",
    "cmp %o2, 4",
    "2:",
    "tst %o2",
    "be 4f",
    "nop",
    "3:",
    "ldub [%o1], %o3",
    "stba %o3, [%o0] 0xa",
    "inc %o1",
    "inc %o0",
    "deccc %o2",
    "bne 3b",
    "nop",
    "4:",
    "retl",
    "mov 0, %o0",
    // %o0 user address (aligned), %o1 old, %o2 new, %o3 out: u32 found -> 0 done, otherwise a fault
    ".globl usercopy_cmpxchg32",
    "usercopy_cmpxchg32:",
    "mov %o2, %o4",
    "mov 1, %o2",
    // casa [%o0] 0xa, %o1, %o4: an assembler refuses the name unless it is given the processor.
    ".word 0xd9e20149",
    "st %o4, [%o3]",
    "retl",
    "mov 0, %o0",
    "usercopy_end:",
    "usercopy_fixup:",
    "retl",
    "mov %o2, %o0",
    // %o0 a page of the kernel's
    ".globl janua_zero_page",
    "janua_zero_page:",
    "mov 64, %o1",
    "mov 0, %o2",
    "mov 0, %o3",
    "1:",
    "std %o2, [%o0]",
    "std %o2, [%o0 + 8]",
    "std %o2, [%o0 + 16]",
    "std %o2, [%o0 + 24]",
    "std %o2, [%o0 + 32]",
    "std %o2, [%o0 + 40]",
    "std %o2, [%o0 + 48]",
    "std %o2, [%o0 + 56]",
    "deccc %o1",
    "bne 1b",
    "add %o0, 64, %o0",
    "retl",
    "nop",
    ".previous",
);

unsafe extern "C" {
    /// # Safety
    /// `len` bytes at `dst` are the kernel's to write.
    pub fn usercopy_in(dst: *mut u8, src: usize, len: usize) -> usize;
    /// # Safety
    /// `len` bytes at `src` are the kernel's to read.
    pub fn usercopy_out(dst: usize, src: *const u8, len: usize) -> usize;
    /// # Safety
    /// `addr` is aligned, `out` the kernel's to write.
    pub fn usercopy_cmpxchg32(addr: usize, old: u32, new: u32, out: *mut u32) -> usize;
    /// Fills a page with zeroes: two words an instruction, which the compiler's loop does not do.
    ///
    /// # Safety
    /// 4096 bytes at `page`, a multiple of that, are the kernel's to write.
    pub fn janua_zero_page(page: *mut u8);
    static usercopy_start: u8;
    static usercopy_end: u8;
    static usercopy_fixup: u8;
}

/// Where a fault at `pc` continues, when `pc` is in a routine of this file.
pub fn fixup(pc: usize) -> Option<usize> {
    let (start, end) = (&raw const usercopy_start as usize, &raw const usercopy_end as usize);
    (start..end).contains(&pc).then_some(&raw const usercopy_fixup as usize)
}
