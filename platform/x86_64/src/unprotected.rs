//! Programs without protection, to measure what protection costs (`protection=off` on the kernel's command line): user code runs in
//! ring 0 and may call the kernel's functions.
//!
//! GS is the core's then, always. What interrupts user code comes from ring 0 like what interrupts the kernel, on user code's own
//! stack, and differs from that by its address, which is in the lower half; so pages are there from the start
//! ([`crate::space::Own`]), and programs leave nothing below their stack pointer (`-mno-red-zone`).
//!
//! A program calls by a jump to `unprotected_call`, registers as for `syscall` but for rcx, where it goes on: rax is a number, or the
//! address of a function, which is negative. The function runs on the thread's kernel stack, with interrupts off, as all of the
//! kernel does. As with any C function what it may change is not kept.

use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_arch::Frame;
use janua_entry::bare::{LAST_CALL, RETURNED, SYSCALL, Save};
use janua_port::guest::Verdict;

use crate::core::{KERNEL_CS, KERNEL_SS};

static ON: AtomicBool = AtomicBool::new(false);

/// Whether user code runs without protection.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Looks at the kernel's command line; before cores are set up.
pub fn init(command_line: &[u8]) {
    ON.store(command_line.split(|byte| *byte == b' ').any(|word| word == b"protection=off"), Ordering::Relaxed);
}

/// Offset of a field of [`Save`] from the last word of its frame, which `gs:[0]` points at.
const fn from_top(offset: usize) -> isize {
    offset as isize - (offset_of!(Save, frame) + offset_of!(Frame, ss)) as isize
}

/// The same for a register of the frame.
const fn register(offset: usize) -> isize {
    offset as isize - offset_of!(Frame, ss) as isize
}

/// Flags of user code behind a call: interrupts on.
const FLAGS: u32 = 0x202;

global_asm!(
    ".pushsection .text.entry, \"ax\", @progbits",
    ".globl unprotected_call, unprotected_enter, unprotected_trap",

    ".balign 64",
    "unprotected_call:",
    "cli",
    "mov r11, gs:[0]",
    "mov [r11 + {rip}], rcx",
    "mov [r11 + {rsp}], rsp",
    "test rax, rax",
    "jns 3f",
    "2:",
    "mov rsp, [r11 + {kernel_rsp}]",
    "push [r11 + {thread}]",
    "mov rcx, r10",
    "call rax",
    "mov r11, gs:[0]",
    "mov rcx, [r11 + {work}]",
    "or edx, [rcx]",
    "jne 5f",
    "mov rcx, [r11 + {rip}]",
    "mov rsp, [r11 + {rsp}]",
    // Takes effect behind the jump.
    "sti",
    "jmp rcx",

    // By number. One beyond the end becomes the last, which is none.
    "3:",
    "mov [r11 + {number}], rax",
    "mov ecx, {last_call}",
    "cmp rax, rcx",
    "cmova rax, rcx",
    "mov rcx, [r11 + {native}]",
    "mov rax, [rcx + rax*8]",
    "test rax, rax",
    "jnz 2b",

    // Not one that returns at once: with a whole frame to the loop.
    "mov [r11 + {rdi}], rdi",
    "mov [r11 + {rsi}], rsi",
    "mov [r11 + {rdx}], rdx",
    "mov [r11 + {r10}], r10",
    "mov [r11 + {r8}], r8",
    "mov [r11 + {r9}], r9",
    "mov qword ptr [r11 + {rax}], -38",
    "mov eax, {syscall}",
    "4:",
    "mov [r11 + {rbx}], rbx",
    "mov [r11 + {rbp}], rbp",
    "mov [r11 + {r12}], r12",
    "mov [r11 + {r13}], r13",
    "mov [r11 + {r14}], r14",
    "mov [r11 + {r15}], r15",
    "mov qword ptr [r11 + {rflags}], {flags}",
    "mov rsp, [r11 + {kernel_rsp}]",
    "jmp entry_return",
    // The call left work behind, or has a verdict.
    "5:",
    "mov [r11 + {rax}], rax",
    "mov qword ptr [r11 + {number}], -1",
    "and edx, {verdict}",
    "lea eax, [rdx + {returned}]",
    "jmp 4b",

    // From the entries of interrupts and exceptions: rsp at a frame on user code's stack, edi the vector. With protection it is the
    // kernel that has lost its way.
    ".balign 16",
    "unprotected_trap:",
    "cmp byte ptr [rip + {on}], 0",
    "je from_kernel_itself",
    "mov eax, edi",
    "mov rsi, rsp",
    "mov rdi, gs:[0]",
    "sub rdi, {frame_size} - 8",
    "mov ecx, {frame_size} / 8",
    "cld",
    "rep movsq",
    "mov rsp, gs:[0]",
    "mov rsp, [rsp + {kernel_rsp}]",
    "jmp entry_return",

    // rdi: Save. As `enter_user`, to ring 0.
    ".balign 16",
    "unprotected_enter:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rdi + {save_kernel_rsp}], rsp",
    "lea rsp, [rdi + {save_frame}]",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rax",
    "pop rcx",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "add rsp, 8",
    "iretq",
    ".popsection",
    rip = const register(offset_of!(Frame, rip)),
    rsp = const register(offset_of!(Frame, rsp)),
    rflags = const register(offset_of!(Frame, rflags)),
    number = const register(offset_of!(Frame, orig_rax)),
    rax = const register(offset_of!(Frame, rax)),
    rdi = const register(offset_of!(Frame, rdi)),
    rsi = const register(offset_of!(Frame, rsi)),
    rdx = const register(offset_of!(Frame, rdx)),
    r10 = const register(offset_of!(Frame, r10)),
    r8 = const register(offset_of!(Frame, r8)),
    r9 = const register(offset_of!(Frame, r9)),
    rbx = const register(offset_of!(Frame, rbx)),
    rbp = const register(offset_of!(Frame, rbp)),
    r12 = const register(offset_of!(Frame, r12)),
    r13 = const register(offset_of!(Frame, r13)),
    r14 = const register(offset_of!(Frame, r14)),
    r15 = const register(offset_of!(Frame, r15)),
    flags = const FLAGS,
    kernel_rsp = const from_top(offset_of!(Save, kernel_rsp)),
    thread = const from_top(offset_of!(Save, thread)),
    work = const from_top(offset_of!(Save, work)),
    native = const from_top(offset_of!(Save, native)),
    last_call = const LAST_CALL,
    save_kernel_rsp = const offset_of!(Save, kernel_rsp),
    save_frame = const offset_of!(Save, frame),
    frame_size = const size_of::<Frame>(),
    syscall = const SYSCALL,
    returned = const RETURNED,
    verdict = const Verdict::BITS,
    on = sym ON,
);

unsafe extern "C" {
    fn unprotected_call();
    fn unprotected_enter(save: *mut Save) -> usize;
}

/// Where programs jump.
pub fn call_address() -> usize {
    unprotected_call as *const () as usize
}

/// Goes to user code in ring 0; returns why it came back.
///
/// # Safety
/// As [`crate::entry::enter_user`], and user code is not protected.
pub unsafe fn enter(save: &mut Save) -> usize {
    (save.frame.cs, save.frame.ss) = (KERNEL_CS.into(), KERNEL_SS.into());
    // SAFETY: the caller's word.
    unsafe { unprotected_enter(save) }
}
