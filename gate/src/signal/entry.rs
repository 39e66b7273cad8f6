//! The entry of the signal by which user code calls: the host's handler of that signal. As `gate/entry/src/hosted/entry.rs` has it for all
//! others, which a signal that is no call goes on by.

use core::arch::global_asm;
use core::mem::offset_of;

use janua_entry::hosted::entry::{CALL_FLAGS, HOST_FRAME, SECRET, THREAD_SELECTOR};
use janua_entry::hosted::{
    AREA_SIZE, Area, KERNEL_BASE, KERNEL_SHIFT, SELECTOR_BASE, SELECTOR_SHIFT, SIGNAL_ROOM, STACK_BASE, STACK_SHIFT, STACK_SIZE,
};
use janua_entry::{hosted_locate, hosted_locate_own, hosted_open};

// Offsets into the frame at the start of `Area`, and into the host's signal frame (arch/x86 rt_sigframe: restorer, ucontext, siginfo).
global_asm!(
    ".pushsection hosted_entries, \"ax\", @progbits",

    // ---- The signal by which user code calls, where the gate is one (mod.rs): rsp at the host's frame, rbx number,
    // rbp r12 r13 r10 r8 r9 arguments. The host passes three registers to a handler and leaves the others as they were. A call is
    // where user code has just come back from a host call, which leaves the address in rcx; any other is a stray signal.

    ".macro SAVE_QUEUED",
    // rax: offset from the first stack, r11: thread, rdx: the first stack; all checked but what is at rsp.
    "mov ecx, eax",
    "and ecx, {stack_mask}",
    "cmp ecx, {frame_limit}",
    "ja hosted_refuse",
    // As in hosted_signal_common: neither the secret nor the word on the stack is in a register of who is refused.
    "mov rcx, [rsp]",
    "cmp rcx, [rip + {secret}]",
    "mov ecx, 0",
    "jne hosted_refuse",
    "mov rdi, r11",
    "shl rdi, {stack_shift}",
    "lea rdi, [rdx + rdi + {area_offset}]",
    "cmp byte ptr [rdi + {in_guest}], 0",
    "je 2f",
    "mov rcx, [rsp + 8 + 168]",
    "cmp rcx, [rsp + 8 + 152]",
    "jne 2f",
    "cmp word ptr [rsp + 8 + 184], 0x33",
    "jne 2f",
    "mov rsi, rcx",
    "shr rsi, {kernel_shift}",
    "cmp esi, {kernel_high}",
    "je 2f",
    "mov qword ptr [rsp], 0",
    "shl r11, {selector_shift}",
    "mov rsi, {selectors}",
    "mov byte ptr [r11 + rsi], 0",
    "mov [rdi + 8*0], r15",
    "mov [rdi + 8*1], r14",
    "mov [rdi + 8*2], r13",
    "mov [rdi + 8*3], r12",
    "mov [rdi + 8*4], rbp",
    "mov [rdi + 8*5], rbx",
    // Of the flags only the single step is taken up again.
    "mov eax, [rsp + 8 + 176]",
    "and eax, 0x100",
    "or eax, {call_flags}",
    "mov [rdi + 8*6], rax",
    "mov [rdi + 8*18], rax",
    "mov [rdi + 8*7], r10",
    "mov [rdi + 8*8], r9",
    "mov [rdi + 8*9], r8",
    "mov qword ptr [rdi + 8*10], -38",
    "mov [rdi + 8*11], rcx",
    "mov [rdi + 8*12], r13",
    "mov [rdi + 8*13], r12",
    "mov [rdi + 8*14], rbp",
    "mov [rdi + 8*15], rbx",
    "mov [rdi + 8*16], rcx",
    "mov qword ptr [rdi + 8*17], 0x33",
    "mov rax, [rsp + 8 + 160]",
    "mov [rdi + 8*19], rax",
    "mov qword ptr [rdi + 8*20], 0x2b",
    "mov byte ptr [rdi + {in_guest}], 0",
    "mov rsi, r12",
    "mov r11, rbx",
    "lea rsp, [rdi - {signal_room}]",
    "jmp hosted_call_entered",
    // Not a call: like every other signal.
    "2:",
    "mov r9, r11",
    "jmp hosted_signal_common",
    ".endm",

    ".globl hosted_queued_entry_pkey",
    ".type hosted_queued_entry_pkey, @function",
    ".balign 64",
    "hosted_queued_entry_pkey:",
    hosted_open!(),
    hosted_locate_own!("r11"),
    "SAVE_QUEUED",
    ".size hosted_queued_entry_pkey, . - hosted_queued_entry_pkey",

    ".globl hosted_queued_entry",
    ".type hosted_queued_entry, @function",
    ".balign 64",
    "hosted_queued_entry:",
    hosted_locate!("r11"),
    "SAVE_QUEUED",
    ".size hosted_queued_entry, . - hosted_queued_entry",
    ".purgem SAVE_QUEUED",
    ".popsection",
    stacks = const STACK_BASE,
    stack_shift = const STACK_SHIFT,
    stack_mask = const STACK_SIZE - 1,
    area_offset = const STACK_SIZE - AREA_SIZE,
    signal_room = const SIGNAL_ROOM,
    frame_limit = const STACK_SIZE - AREA_SIZE - HOST_FRAME,
    selectors = const SELECTOR_BASE,
    selector_shift = const SELECTOR_SHIFT,
    kernel_high = const KERNEL_BASE >> KERNEL_SHIFT,
    kernel_shift = const KERNEL_SHIFT,
    in_guest = const offset_of!(Area, shared.in_guest),
    thread_selector = const THREAD_SELECTOR,
    call_flags = const CALL_FLAGS,
    secret = sym SECRET,
);

unsafe extern "C" {
    fn hosted_queued_entry();
    fn hosted_queued_entry_pkey();
}

/// The host's handler; `keyed` under the jail `pkey`.
pub fn address(keyed: bool) -> usize {
    let entry = if keyed { hosted_queued_entry_pkey as *const () } else { hosted_queued_entry as *const () };
    entry as usize
}
