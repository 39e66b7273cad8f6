//! The entry of rewritten calls: jumps from call sites, by a trampoline.
//!
//! What an entry must see to is described in `gate/entry/src/hosted/entry.rs`, which has the ways on from here: `hosted_call_entered` makes the call,
//! `hosted_exit` goes back. Nothing is trusted here either: user code may jump to any of these instructions.

use core::arch::global_asm;
use core::mem::offset_of;

use janua_entry::hosted::entry::{CALL_FLAGS, THREAD_SELECTOR};
use janua_entry::hosted::{
    ALONE, AREA_SIZE, Area, KERNEL_BASE, KERNEL_SHIFT, SELECTOR_BASE, SELECTOR_SHIFT, SIGNAL_ROOM, STACK_BASE, STACK_SHIFT,
    STACK_SIZE,
};
use janua_entry::{hosted_open, hosted_still_closed};

// Offsets into the frame at the start of `Area`.
global_asm!(
    ".pushsection hosted_entries, \"ax\", @progbits",

    // ---- A rewritten call: rax number, rdi rsi rdx r10 r8 r9 arguments, rcx where to go on, rsp the user's stack.

    // rcx: the thread's index. The only guest thread of a process is named by a word of the process that user code cannot
    // write; where there are several it is looked up in the host's table, which takes longer.
    ".macro IDENTIFY",
    "mov rcx, {alone}",
    "mov rcx, [rcx]",
    "cmp ecx, 1",
    "jne 2f",
    "shr rcx, 32",
    "3:",
    ".endm",

    ".macro IDENTIFY_AMONG_MANY",
    "2:",
    "mov ecx, {thread_selector}",
    "lsl ecx, ecx",
    "jz 3b",
    "jmp hosted_refuse",
    ".endm",

    ".macro SAVE_CALL",
    // rcx: the thread's index, r11: the number. rdx and rcx are in the user's memory, below the red zone: they are
    // only ever values of the user's own, but the address must not be the kernel's.
    "mov eax, ecx",
    "shl rcx, {stack_shift}",
    "mov rdx, {first_area}",
    "add rdx, rcx",
    "shl eax, {selector_shift}",
    "mov rcx, {selectors}",
    "add rcx, rax",
    "lea rax, [rsp - 144]",
    "shr rax, {kernel_shift}",
    "cmp eax, {kernel_high}",
    "je hosted_refuse",
    "mov rax, [rsp - 136]",
    "mov [rdx + 8*16], rax",
    "mov [rdx + 8*11], rax",
    "mov rax, [rsp - 144]",
    "mov [rdx + 8*12], rax",
    "mov [rdx + 8*14], rdi",
    "mov rdi, rdx",
    "mov byte ptr [rcx], 0",
    "mov [rdi + 8*0], r15",
    "mov [rdi + 8*1], r14",
    "mov [rdi + 8*2], r13",
    "mov [rdi + 8*3], r12",
    "mov [rdi + 8*4], rbp",
    "mov [rdi + 8*5], rbx",
    "movzx ecx, byte ptr [rdi + {stepping}]",
    "shl ecx, 8",
    "or ecx, {call_flags}",
    "mov [rdi + 8*6], rcx",
    "mov [rdi + 8*18], rcx",
    "mov [rdi + 8*7], r10",
    "mov [rdi + 8*8], r9",
    "mov [rdi + 8*9], r8",
    "mov qword ptr [rdi + 8*10], -38",
    "mov [rdi + 8*13], rsi",
    "mov [rdi + 8*15], r11",
    "mov qword ptr [rdi + 8*17], 0x33",
    "mov [rdi + 8*19], rsp",
    "mov qword ptr [rdi + 8*20], 0x2b",
    // From here on the user's registers are in the area.
    "mov byte ptr [rdi + {in_guest}], 0",
    "lea rsp, [rdi - {signal_room}]",
    "jmp hosted_call_entered",
    ".endm",

    // A jump to just in front of the entry ends there, and not in whatever the linker has put there.
    ".fill 256, 1, 0xf4",
    ".globl hosted_call_entry_pkey",
    ".type hosted_call_entry_pkey, @function",
    ".balign 64",
    "hosted_call_entry_pkey:",
    hosted_still_closed!(),
    // The two stores come first and change nothing: one that faults becomes a call like a trapped one.
    "mov [rsp - 136], rcx",
    ".globl hosted_call_store_pkey",
    "hosted_call_store_pkey:",
    hosted_still_closed!(),
    "mov [rsp - 144], rdx",
    hosted_still_closed!(),
    "mov r11, rax",
    hosted_open!(),
    "IDENTIFY",
    "SAVE_CALL",
    "IDENTIFY_AMONG_MANY",
    ".size hosted_call_entry_pkey, . - hosted_call_entry_pkey",

    ".globl hosted_call_entry",
    ".type hosted_call_entry, @function",
    ".balign 64",
    "hosted_call_entry:",
    "mov [rsp - 136], rcx",
    ".globl hosted_call_store",
    "hosted_call_store:",
    "mov [rsp - 144], rdx",
    "mov r11, rax",
    "IDENTIFY",
    "SAVE_CALL",
    "IDENTIFY_AMONG_MANY",
    ".size hosted_call_entry, . - hosted_call_entry",
    ".purgem IDENTIFY",
    ".purgem IDENTIFY_AMONG_MANY",
    ".purgem SAVE_CALL",
    ".popsection",
    stack_shift = const STACK_SHIFT,
    first_area = const STACK_BASE + STACK_SIZE - AREA_SIZE,
    signal_room = const SIGNAL_ROOM,
    alone = const ALONE,
    selectors = const SELECTOR_BASE,
    selector_shift = const SELECTOR_SHIFT,
    kernel_high = const KERNEL_BASE >> KERNEL_SHIFT,
    kernel_shift = const KERNEL_SHIFT,
    in_guest = const offset_of!(Area, shared.in_guest),
    stepping = const offset_of!(Area, own.stepping),
    thread_selector = const THREAD_SELECTOR,
    call_flags = const CALL_FLAGS,
);

unsafe extern "C" {
    fn hosted_call_entry();
    fn hosted_call_entry_pkey();
    fn hosted_call_store();
    fn hosted_call_store_pkey();
}

/// Where rewritten calls jump; `keyed` under the jail `pkey`.
pub fn address(keyed: bool) -> usize {
    let entry = if keyed { hosted_call_entry_pkey as *const () } else { hosted_call_entry as *const () };
    entry as usize
}

/// Whether a fault at `pc` is that of an entry's first two stores, which have changed nothing yet: then it is a call whose number is in
/// rax and whose return address is in rcx.
pub fn is_store(pc: usize) -> bool {
    [
        hosted_call_entry as *const () as usize,
        hosted_call_store as *const () as usize,
        hosted_call_entry_pkey as *const () as usize,
        hosted_call_store_pkey as *const () as usize,
    ]
    .contains(&pc)
}
