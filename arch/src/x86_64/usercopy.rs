//! Copies that survive a page fault.
//!
//! Each routine lies between `usercopy_start` and `usercopy_end`. The machine's fault handler, seeing a fault at an address in
//! that range, continues at `usercopy_fixup` with all other registers kept: there `rcx` still holds the bytes not copied
//! (`rep movsb` and `rep stosb` count down as they go) and becomes the result. The single-word accesses set `rcx` to 1 before
//! they touch memory and to 0 after, so the same fixup answers "one not done".

use core::arch::global_asm;

global_asm!(
    ".pushsection .text.usercopy, \"ax\", @progbits",
    ".globl usercopy_start, usercopy_end, usercopy_fixup",
    ".balign 64",
    "usercopy_start:",
    // rdi destination, rsi source, rdx bytes -> rax bytes left
    ".globl usercopy_bytes",
    "usercopy_bytes:",
    "mov rcx, rdx",
    "rep movsb",
    "mov rax, rcx",
    "ret",
    // rdi destination, rsi bytes -> rax bytes left
    ".globl usercopy_zero",
    "usercopy_zero:",
    "mov rcx, rsi",
    "xor eax, eax",
    "rep stosb",
    "mov rax, rcx",
    "ret",
    // rdi user address, rsi out: u32 -> rax 0 done, 1 fault
    ".globl usercopy_load32",
    "usercopy_load32:",
    "mov ecx, 1",
    "mov eax, [rdi]",
    "mov [rsi], eax",
    "xor eax, eax",
    "ret",
    // rdi user address, esi old, edx new, r8 out: u32 found -> rax 0 done, 1 fault
    ".globl usercopy_cmpxchg32",
    "usercopy_cmpxchg32:",
    "mov ecx, 1",
    "mov eax, esi",
    "lock cmpxchg [rdi], edx",
    "mov [r8], eax",
    "xor eax, eax",
    "ret",
    // rdi destination, rsi source, rdx most bytes -> rax: bytes before the NUL, or most bytes, or -1 on a fault
    ".globl usercopy_string",
    "usercopy_string:",
    "mov r8, rdx",
    "mov rcx, -1",
    "xor r9d, r9d",
    "2:",
    "cmp r9, r8",
    "je 3f",
    "mov al, [rsi + r9]",
    "mov [rdi + r9], al",
    "test al, al",
    "je 3f",
    "inc r9",
    "jmp 2b",
    "3:",
    "mov rax, r9",
    "ret",
    "usercopy_end:",
    "usercopy_fixup:",
    "mov rax, rcx",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    pub fn usercopy_bytes(dst: *mut u8, src: *const u8, len: usize) -> usize;
    pub fn usercopy_zero(dst: *mut u8, len: usize) -> usize;
    pub fn usercopy_load32(addr: usize, out: *mut u32) -> usize;
    // Argument order leaves rcx free for the fixup: the fourth is unused.
    pub fn usercopy_cmpxchg32(addr: usize, old: u32, new: u32, unused: usize, out: *mut u32) -> usize;
    pub fn usercopy_string(dst: *mut u8, src: *const u8, most: usize) -> isize;
    static usercopy_start: u8;
    static usercopy_end: u8;
    static usercopy_fixup: u8;
}

/// Where a fault at `rip` continues, when `rip` lies in a routine of this file.
pub fn fixup(rip: usize) -> Option<usize> {
    let (start, end, fixup) = {
        (&raw const usercopy_start as usize, &raw const usercopy_end as usize, &raw const usercopy_fixup as usize)
    };
    (start..end).contains(&rip).then_some(fixup)
}
