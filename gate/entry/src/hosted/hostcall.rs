//! The one `syscall` instruction by which a hosted kernel reaches its host, apart from those in `hosted`.

use core::arch::global_asm;

global_asm!(
    ".pushsection .text.hostcall, \"ax\", @progbits",
    ".globl hostcall",
    ".type hostcall, @function",
    // rdi number, rsi rdx rcx r8 r9 [rsp+8] arguments one to six -> rax
    "hostcall:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    "syscall",
    "ret",
    ".size hostcall, . - hostcall",
    ".globl hostcall32",
    ".type hostcall32, @function",
    // edi number, esi argument -> eax; the host's 32-bit interface.
    "hostcall32:",
    "push rbx",
    "mov eax, edi",
    "mov ebx, esi",
    "int 0x80",
    "pop rbx",
    "ret",
    ".size hostcall32, . - hostcall32",
    ".popsection",
);

unsafe extern "C" {
    /// One host call: number, six arguments, raw result (-4095..=-1 is an error).
    ///
    /// # Safety
    /// Whatever the call does with its arguments must be allowed: memory it reads or writes must be valid for that.
    pub fn hostcall(number: usize, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize;

    /// One host call of the 32-bit interface with one argument: raw result.
    ///
    /// # Safety
    /// As [`hostcall`]; an address must be below 4 GiB. SIGSEGV where the host has no 32-bit interface.
    pub fn hostcall32(number: u32, a: u32) -> i32;
}
