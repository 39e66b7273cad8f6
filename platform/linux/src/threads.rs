//! How the host's threads begin and end, and how one goes on in another process.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, AtomicU64};

use janua_entry::hosted::ENDED;

use crate::spawn;

global_asm!(
    ".pushsection .text.hosted, \"ax\", @progbits",

    // clone(2) onto a new kernel stack: rdi flags, rsi new stack, rdx parent tid, rcx child tid, r8 tls -> rax as clone.
    // The child calls `spawn::child_main` with the word at the top of its stack and never comes back.
    ".globl hosted_clone",
    ".type hosted_clone, @function",
    "hosted_clone:",
    "mov r10, rcx",
    "mov eax, 56",
    "syscall",
    "test rax, rax",
    "jz 2f",
    "ret",
    "2:",
    "xor ebp, ebp",
    "pop rdi",
    "call {child_main}",
    "ud2",
    ".size hosted_clone, . - hosted_clone",

    // The thread goes on in a new host process with a copy of the address space; the old host thread ends. rdi flags,
    // rsi child tid word, rdx ranges (address, length) that were kept from the child and are to be given to later ones again
    // (MADV_DOFORK), rcx how many, r8 a word that notifies the new process of that: 0, or 2 when it sleeps on it, becomes 1
    // -> rax 0 in the new process, or a negative error in the old one. Both have the same stack in shared memory, so the
    // old one must not touch it again: it ends without a push, and reads the ranges before it sets the word.
    ".globl hosted_hop",
    ".type hosted_hop, @function",
    "hosted_hop:",
    "push rbx",
    "push r12",
    "push r13",
    "mov rbx, rdx",
    "mov r12, rcx",
    "mov r13, r8",
    "mov r10, rsi",
    "xor esi, esi",
    "xor edx, edx",
    "xor r8d, r8d",
    "mov eax, 56",
    "syscall",
    "test rax, rax",
    "jg 3f",
    "pop r13",
    "pop r12",
    "pop rbx",
    "ret",
    "3:",
    "test r12, r12",
    "jz 5f",
    "4:",
    "mov rdi, [rbx]",
    "mov rsi, [rbx + 8]",
    "mov edx, 11",
    "mov eax, 28",
    "syscall",
    "add rbx, 16",
    "dec r12",
    "jnz 4b",
    "5:",
    "mov eax, 1",
    "xchg dword ptr [r13], eax",
    "cmp eax, 2",
    "jne 6f",
    "mov rdi, r13",
    "mov esi, 1",
    "mov edx, 1",
    "mov eax, 202",
    "syscall",
    "6:",
    "mov edi, {ended}",
    "mov eax, 60",
    "syscall",
    "ud2",
    ".size hosted_hop, . - hosted_hop",

    // rdi: a word, rsi: the bit in it that marks the area taken. Gives the stack back and ends the host thread: nothing may touch
    // the stack after that, and signals are blocked.
    ".globl hosted_end",
    ".type hosted_end, @function",
    "hosted_end:",
    "not rsi",
    "lock and qword ptr [rdi], rsi",
    "mov edi, {ended}",
    "mov eax, 60",
    "syscall",
    "ud2",
    ".size hosted_end, . - hosted_end",
    ".popsection",
    child_main = sym spawn::child_main,
    ended = const ENDED,
);

unsafe extern "C" {
    /// clone(2) onto a new kernel stack, whose top word is the [`janua_entry::hosted::Area`] that the child begins with.
    pub fn hosted_clone(flags: u64, stack: usize, parent_tid: *mut u32, child_tid: *mut u32, tls: usize) -> isize;
    /// The calling thread goes on in a new host process; an error in the old one.
    pub fn hosted_hop(flags: u64, child_tid: *mut u32, kept: *const [usize; 2], count: usize, given: *const AtomicU32)
    -> isize;
    /// Clears the bit and ends the host thread.
    pub fn hosted_end(taken: *const AtomicU64, bit: u64) -> !;
}
