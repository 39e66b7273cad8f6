//! The one entry into the kernel and the one exit, for a kernel in the address space of its guests.
//!
//! A host signal (a trapped call, a fault, a kick) comes to `hosted_signal_entry`. Gates may have entries of their own: a jump from a rewritten
//! call site, the signal user code calls by (`gate/src`). They are in the same section, are made of the same pieces
//! (`gate/entry/src/hosted/pieces.rs`), and this page holds for them too. Each exists twice: under the jail `pkey` (`_pkey`) user code runs with the
//! kernel's memory closed by its key, so the entry first opens it; without a jail there is nothing to open. One exit, `hosted_exit`, closes it
//! again.
//!
//! **Nothing is trusted.** User code may jump to any instruction of these entries with registers of its choice. After each `wrpkru`
//! that opens, the value is checked and everything is derived anew: the thread from the limit of its own descriptor in the
//! host's GDT ([`THREAD_SELECTOR`]), which only the host's set_thread_area(2) can change, or, for the only guest thread of a process, from the process'
//! own [`ALONE`](super::ALONE); the area and the stack from the thread. A signal's frame is believed only if it is on the thread's own kernel stack and starts with the sandbox's
//! secret, which the host writes as the restorer's address; the secret is overwritten, so a frame is good for one entry. After each `wrpkru` that
//! closes, the value is checked: who jumped there to open the key meets `ud2`. The `xrstor` of the entry never loads the key register, and
//! the one that user code may run (`hosted_restore`) is followed by a check that it has not.
//!
//! **No frame of the host's stays in use.** What interrupted user code is copied to the area, and the kernel starts [`SIGNAL_ROOM`]
//! below it. Only a signal that interrupts the kernel itself nests, and returns by rt_sigreturn.
//!
//! **The guest's stack pointer does not show where a frame is.** The host takes a stack pointer inside the signal stack for a
//! handler's and puts the frame below it, or ends the process where there is no room. So the signal stack is one of those
//! that are taken away as they are entered (SS_AUTODISARM), which the host uses from the top whatever the stack pointer was.
//! It is set again before user code goes on; until then a nested frame is below the kernel's stack pointer, as it is
//! where there is no signal stack. A kernel that came by a call has its signal stack still: a nested frame is in the room above.
//! Where user code calls by signals, setting it again would be a second host call each time: there the signal stack is the
//! [`SIGNAL_ROOM`] alone, and stays. A stack pointer in the room then shows where a frame is, but nothing else is in the room;
//! where there is no room left the host ends the process.
//!
//! **The fast path.** Most calls never look at a frame. The entry calls their functions itself, by the thread's
//! [`FastPath`](super::FastPath); the frame is saved all the same, since a kick during the exit starts over from it.
//! Other calls, and those that wait or leave work behind, go by [`Hooks`]. A function returns its verdict beside its result, in edx.
//!
//! **Signals during entry and exit.** `in_guest` is 1 from just before the last look at the work flags until an entry has saved
//! the user's registers. A kick (or a single step) that interrupts an entry before that point returns at once: the mark it
//! left is found at the exit. It returns with host calls allowed, so under the jail only where user code cannot have chosen what
//! comes next: the frame has the kernel's key open, or an entry is about to open it. A kick after `in_guest` was set
//! at the exit starts over from the area's frame, which is whole until the next entry. The interrupted address distinguishes the two.

use core::arch::global_asm;

use super::hooks::{HOOKS, KEY_PLACE};
pub use super::hooks::{Hooks, SECRET, set_hooks, set_key_place, set_secret};
use super::{
    AREA_SIZE, Area, IMAGE_SIZE, KERNEL_BASE, SELECTOR_BASE, SELECTOR_SHIFT, SIGNAL_ROOM, STACK_BASE, STACK_SHIFT, STACK_SIZE,
};
use crate::{hosted_locate, hosted_locate_own, hosted_open};

/// PKRU while user code runs: key 1 (the kernel's memory) neither readable nor writable, key 2 (selectors) not writable.
pub const PKRU_GUEST: u32 = 0b10_11_00;
/// The protection key of kernel memory.
pub const KERNEL_KEY: u32 = 1;
/// The protection key of the selector lines: user code may read them, and so may the host on its behalf.
pub const SELECTOR_KEY: u32 = 2;
/// The GDT entry whose limit is a thread's index, and its selector.
pub const THREAD_ENTRY: u32 = 14;
pub const THREAD_SELECTOR: u16 = (THREAD_ENTRY as u16) << 3 | 3;

/// Flags of user code right after a rewritten call; only with these does the exit take its fast path.
pub const CALL_FLAGS: u64 = 0x202;
/// Bytes of the host's frame that must be below the area for it to be believed: up to the end of the siginfo.
pub const HOST_FRAME: usize = 312 + 128;

// Offsets into the frame at the start of `Area` (checked in `hosted`), and into the host's signal frame (arch/x86 rt_sigframe: restorer, ucontext, siginfo).
global_asm!(
    ".pushsection hosted_entries, \"ax\", @progbits",

    // Closes the kernel's key; at 9 behind the use is a `ud2`. Loses rax, rcx, rdx.
    ".macro CLOSE",
    "xor ecx, ecx",
    "xor edx, edx",
    "mov eax, {pkru_guest}",
    "wrpkru",
    "cmp eax, {pkru_guest}",
    "jne 9f",
    ".endm",

    // ---- A host signal: rsp at the host's frame. The registers the host passes are not looked at.

    ".globl hosted_signal_entry_pkey",
    ".type hosted_signal_entry_pkey, @function",
    ".balign 64",
    "hosted_signal_entry_pkey:",
    hosted_open!(),
    hosted_locate_own!("r9"),
    "jmp hosted_signal_common",
    ".size hosted_signal_entry_pkey, . - hosted_signal_entry_pkey",

    ".globl hosted_signal_entry",
    ".type hosted_signal_entry, @function",
    ".balign 64",
    "hosted_signal_entry:",
    hosted_locate!("r9"),
    // rax: offset from the first stack, r9: thread, rdx: the first stack. Gates' entries come here with signals that are no calls.
    ".globl hosted_signal_common, hosted_refuse",
    "hosted_signal_common:",
    "and eax, {stack_mask}",
    "cmp eax, {frame_limit}",
    "ja hosted_refuse",
    // The secret never enters a register, nor does the word on the stack stay in one: who is refused, here or by an alignment check at
    // the load, gets the registers as they are.
    "mov r10, [rsp]",
    "cmp r10, [rip + {secret}]",
    "mov r10d, 0",
    "jne hosted_refuse",
    "mov qword ptr [rsp], 0",
    // Calls must pass before the first one is made, the return from a nested signal included.
    "mov rax, r9",
    "shl rax, {selector_shift}",
    "mov rcx, {selectors}",
    "mov byte ptr [rax + rcx], 0",
    "mov r8, r9",
    "shl r8, {stack_shift}",
    "add r8, rdx",
    "add r8, {area_offset}",
    // r8: area, rcx: the interrupted address, rsi: siginfo.
    "mov rcx, [rsp + 8 + 168]",
    "lea rsi, [rsp + 312]",
    "cmp byte ptr [r8 + {in_guest}], 0",
    "je hosted_signal_nested",
    "mov rax, rcx",
    "mov rdx, {kernel}",
    "sub rax, rdx",
    "cmp rax, {image_size}",
    "jae 1f",
    // Kernel text, though user code is what runs: the last steps out, the first steps in, or a jump of the guest's.
    "lea rax, [rip + __stop_hosted_entries]",
    "cmp rcx, rax",
    "jae 3f",
    "lea rax, [rip + __start_hosted_entries]",
    "cmp rcx, rax",
    "jae 2f",
    "3:",
    // A routine of the kernel's that user code runs: what is interrupted is the user's.
    "lea rax, [rip + hosted_restore_end]",
    "cmp rcx, rax",
    "jae hosted_signal_inside",
    "lea rax, [rip + hosted_restore]",
    "cmp rcx, rax",
    "jae 1f",
    "hosted_signal_inside:",
    "cmp dword ptr [rsi], {kick}",
    "je 4f",
    "lea rax, [rip + hosted_exit_end]",
    "cmp rcx, rax",
    "jae 1f",
    "lea rax, [rip + hosted_exit]",
    "cmp rcx, rax",
    "jae 4f",
    "jmp 1f",
    // An entry that has not saved the user's registers goes on, if it is one: calls pass from here on, and the address alone may be
    // one that user code chose.
    "2:",
    "cmp dword ptr [rsi], {kick}",
    "je 2f",
    "cmp dword ptr [rsi], {sigtrap}",
    "jne 1f",
    "2:",
    // Without a jail it counts as one.
    "mov edi, [rip + {key_place}]",
    "test edi, edi",
    "jz 2f",
    // The key is open, as it is at no address that user code chooses.
    "add rdi, [rsp + 8 + 224]",
    "test dword ptr [rdi], {kernel_closed}",
    "jz 2f",
    // It is about to open the key, and all is derived anew behind that: the first instructions, not addresses between their bytes.
    "lea rdx, [rip + __start_hosted_opens]",
    "lea rdi, [rip + __stop_hosted_opens]",
    "5:",
    "cmp rdx, rdi",
    "jae 1f",
    "movsxd rax, dword ptr [rdx]",
    "add rax, rdx",
    "cmp rcx, rax",
    "je 2f",
    "add rdx, 4",
    "jmp 5b",
    // A single step (the trap flag) ends here; the exit resumes it.
    "2:",
    "cmp dword ptr [rsi], {sigtrap}",
    "jne hosted_signal_back",
    "and dword ptr [rsp + 8 + 176], ~0x100",
    "mov byte ptr [r8 + {stepping}], 1",
    "jmp hosted_signal_back",

    // The user's registers are in the host's frame.
    "1:",
    "mov rax, [rsp + 8 + 40]",
    "mov [r8 + 8*9], rax",
    "mov rax, [rsp + 8 + 48]",
    "mov [r8 + 8*8], rax",
    "mov rax, [rsp + 8 + 56]",
    "mov [r8 + 8*7], rax",
    "mov rax, [rsp + 8 + 64]",
    "mov [r8 + 8*6], rax",
    "mov rax, [rsp + 8 + 72]",
    "mov [r8 + 8*3], rax",
    "mov rax, [rsp + 8 + 80]",
    "mov [r8 + 8*2], rax",
    "mov rax, [rsp + 8 + 88]",
    "mov [r8 + 8*1], rax",
    "mov rax, [rsp + 8 + 96]",
    "mov [r8 + 8*0], rax",
    "mov rax, [rsp + 8 + 104]",
    "mov [r8 + 8*14], rax",
    "mov rax, [rsp + 8 + 112]",
    "mov [r8 + 8*13], rax",
    "mov rax, [rsp + 8 + 120]",
    "mov [r8 + 8*4], rax",
    "mov rax, [rsp + 8 + 128]",
    "mov [r8 + 8*5], rax",
    "mov rax, [rsp + 8 + 136]",
    "mov [r8 + 8*12], rax",
    "mov rax, [rsp + 8 + 144]",
    "mov [r8 + 8*10], rax",
    "mov rax, [rsp + 8 + 152]",
    "mov [r8 + 8*11], rax",
    "mov rax, [rsp + 8 + 160]",
    "mov [r8 + 8*19], rax",
    "mov [r8 + 8*16], rcx",
    "mov rax, [rsp + 8 + 176]",
    "mov [r8 + 8*18], rax",
    "movzx eax, word ptr [rsp + 8 + 184]",
    "mov [r8 + 8*17], rax",
    "mov qword ptr [r8 + 8*20], 0x2b",
    "mov qword ptr [r8 + 8*15], -1",
    // What happened: signal and code, address, call number and architecture, error code, vector, interrupted address.
    "4:",
    "mov [r8 + {arrival} + 40], rcx",
    "mov eax, [rsi]",
    "mov [r8 + {arrival}], eax",
    "mov eax, [rsi + 8]",
    "mov [r8 + {arrival} + 4], eax",
    "mov rax, [rsi + 16]",
    "mov [r8 + {arrival} + 8], rax",
    "mov rax, [rsi + 24]",
    "mov [r8 + {arrival} + 16], rax",
    "mov rax, [rsp + 8 + 192]",
    "mov [r8 + {arrival} + 24], rax",
    "mov rax, [rsp + 8 + 200]",
    "mov [r8 + {arrival} + 32], rax",
    // The vector registers, which the host saved and reset; the kernel uses none, so from here on they stay the user's.
    "mov rdi, [rsp + 8 + 224]",
    "test rdi, rdi",
    "jz 6f",
    "mov eax, 3",
    "xor edx, edx",
    "cmp dword ptr [rdi + 464], 0x46505853",
    "jne 5f",
    "mov eax, [rdi + 472]",
    "mov edx, [rdi + 476]",
    "and eax, ~0x200",
    "5:",
    "xrstor64 [rdi]",
    "test eax, 0x200",
    "jnz hosted_refuse",
    "6:",
    "mov byte ptr [r8 + {in_guest}], 0",
    "lea rsp, [r8 - {signal_room}]",
    // The host clears DF and TF for a handler but leaves AC, with which unaligned kernel accesses would fault.
    "pushfq",
    "and dword ptr [rsp], ~0x40000",
    "popfq",
    "xor ebp, ebp",
    "mov rdi, r8",
    "mov rax, [rip + {hooks}]",
    "call [rax + 8]",
    "mov rdi, rax",
    "jmp hosted_exit",

    // The kernel was interrupted, or an entry that has to be finished first.
    "hosted_signal_nested:",
    "pushfq",
    "and dword ptr [rsp], ~0x40000",
    "popfq",
    "mov rbx, rsp",
    "mov edi, [rsi]",
    "lea rdx, [rsp + 8]",
    "xor ebp, ebp",
    "and rsp, -16",
    "mov rax, [rip + {hooks}]",
    "call [rax + 16]",
    "mov rsp, rbx",
    // The frame starts with the restorer's address; rt_sigreturn wants rsp just above it.
    "hosted_signal_back:",
    "add rsp, 8",
    "mov eax, 15",
    "syscall",
    // Who came here without the right: SIGILL for the guest.
    "hosted_refuse:",
    "ud2",
    ".size hosted_signal_entry, . - hosted_signal_entry",
    ".popsection",

    // Behind the entries, which is where the linker puts it.
    ".pushsection hosted_exits, \"ax\", @progbits",

    // rdi: area, r11: number; rdi and rdx are in the frame only, the user's other arguments still where they came.
    // A call that needs no frame is made from here (`FastPath`); a number beyond the end becomes the last, which is none, without
    // a branch that could be mispredicted.
    ".globl hosted_call_entered",
    ".type hosted_call_entered, @function",
    "hosted_call_entered:",
    "cld",
    "mov eax, {fast_calls} - 1",
    "cmp r11, rax",
    "cmova r11, rax",
    "mov rcx, [rdi + {fast_path}]",
    "mov rax, [rcx + r11*8]",
    "test rax, rax",
    "jz 2f",
    "mov rcx, [rdi + {fast_path} + 8]",
    "sub rsp, 16",
    "mov [rsp], rcx",
    "mov rbx, rdi",
    "mov rcx, r10",
    "mov rdx, [rdi + 8*12]",
    "mov rdi, [rdi + 8*14]",
    "call rax",
    "mov rdi, rbx",
    "mov [rdi + 8*10], rax",
    // The verdict, and the thread's work.
    "mov rcx, [rdi + {fast_path} + 16]",
    "or edx, [rcx]",
    "jne 3f",
    // The call is over and the frame is whole: from here on a kick is a host signal, and starts over from it. A kicker's fence
    // replaces ours.
    "mov byte ptr [rdi + {in_guest}], 1",
    "cmp dword ptr [rcx], 0",
    "jne 3f",
    "mov r11, rdi",
    "mov rcx, {first_area}",
    "sub r11, rcx",
    "shr r11, {stack_shift} - {selector_shift}",
    "mov rcx, {selectors}",
    "add r11, rcx",
    // Single steps and alignment checks take the slow path.
    "cmp qword ptr [rdi + 8*18], {call_flags}",
    "jne hosted_exit",
    "movzx edx, byte ptr [rdi + {selector_value}]",
    "mov [r11], dl",
    "mov rcx, [rdi + 8*16]",
    "mov rdx, [rdi + 8*12]",
    "mov [r11 + 8], rcx",
    "mov [r11 + 16], rax",
    "mov [r11 + 24], rdx",
    // What a C function keeps is still the user's, but for this.
    "mov rbx, [rdi + 8*5]",
    "jmp hosted_exit_short",
    // Not one of those.
    "2:",
    "xor ebp, ebp",
    "mov rax, [rip + {hooks}]",
    "call [rax]",
    "mov rdi, rax",
    "jmp hosted_exit",
    // The call left work behind, or waits.
    "3:",
    "mov byte ptr [rdi + {in_guest}], 0",
    "xor ebp, ebp",
    "mov esi, edx",
    "mov rax, [rip + {hooks}]",
    "call [rax + 24]",
    "mov rdi, rax",
    ".size hosted_call_entered, . - hosted_call_entered",

    // ---- rdi: area, whose in_guest is set and whose thread has no work. Does not return.

    ".globl hosted_exit",
    ".type hosted_exit, @function",
    "hosted_exit:",
    "mov rax, rdi",
    "mov rcx, {first_area}",
    "sub rax, rcx",
    "shr rax, {stack_shift} - {selector_shift}",
    "mov rcx, {selectors}",
    "lea r11, [rax + rcx]",
    "movzx edx, byte ptr [rdi + {selector_value}]",
    "mov [r11], dl",
    // The fast exit is for calls, which leave the address in rcx and the flags in r11; it loses r11. What a signal interrupted may hold the
    // address in rcx as well, where it has just jumped by it, and anything in r11.
    "mov rcx, [rdi + 8*16]",
    "cmp rcx, [rdi + 8*11]",
    "jne 7f",
    "cmp qword ptr [rdi + 8*18], {call_flags}",
    "jne 7f",
    "cmp qword ptr [rdi + 8*6], {call_flags}",
    "jne 7f",
    "cmp dword ptr [rdi + 8*17], 0x33",
    "jne 7f",
    // What is needed after the key is closed waits in the thread's selector line, which the user can read but not write.
    "mov rax, [rdi + 8*10]",
    "mov rdx, [rdi + 8*12]",
    "mov [r11 + 8], rcx",
    "mov [r11 + 16], rax",
    "mov [r11 + 24], rdx",
    "mov r15, [rdi + 8*0]",
    "mov r14, [rdi + 8*1]",
    "mov r13, [rdi + 8*2]",
    "mov r12, [rdi + 8*3]",
    "mov rbp, [rdi + 8*4]",
    "mov rbx, [rdi + 8*5]",
    "hosted_exit_short:",
    "mov r10, [rdi + 8*7]",
    "mov r9, [rdi + 8*8]",
    "mov r8, [rdi + 8*9]",
    "mov rsi, [rdi + 8*13]",
    "mov rsp, [rdi + 8*19]",
    "cmp byte ptr [rdi + {keyed}], 0",
    "mov rdi, [rdi + 8*14]",
    "je 6f",
    "CLOSE",
    "mov rax, [r11 + 16]",
    "mov rdx, [r11 + 24]",
    "jmp [r11 + 8]",
    "6:",
    "jmp rcx",

    // The slow path: every register as in the frame, by iretq from the selector line.
    "7:",
    // A rewritten call leaves the flags as they are; with NT no iretq works.
    "pushfq",
    "and dword ptr [rsp], ~0x4000",
    "popfq",
    "mov [r11 + 8*4], rcx",
    "mov rax, [rdi + 8*10]",
    "mov [r11 + 8*1], rax",
    "mov rax, [rdi + 8*11]",
    "mov [r11 + 8*2], rax",
    "mov rax, [rdi + 8*12]",
    "mov [r11 + 8*3], rax",
    "mov rax, [rdi + 8*17]",
    "mov [r11 + 8*5], rax",
    "mov rax, [rdi + 8*18]",
    "mov [r11 + 8*6], rax",
    "mov rax, [rdi + 8*19]",
    "mov [r11 + 8*7], rax",
    "mov rax, [rdi + 8*20]",
    "mov [r11 + 8*8], rax",
    "lea rsp, [r11 + 8]",
    "mov byte ptr [rdi + {stepping}], 0",
    "mov r15, [rdi + 8*0]",
    "mov r14, [rdi + 8*1]",
    "mov r13, [rdi + 8*2]",
    "mov r12, [rdi + 8*3]",
    "mov rbp, [rdi + 8*4]",
    "mov rbx, [rdi + 8*5]",
    "mov r11, [rdi + 8*6]",
    "mov r10, [rdi + 8*7]",
    "mov r9, [rdi + 8*8]",
    "mov r8, [rdi + 8*9]",
    "mov rsi, [rdi + 8*13]",
    "cmp byte ptr [rdi + {keyed}], 0",
    "mov rdi, [rdi + 8*14]",
    "je 8f",
    "CLOSE",
    "8:",
    "pop rax",
    "pop rcx",
    "pop rdx",
    "iretq",
    "9:",
    "ud2",
    ".size hosted_exit, . - hosted_exit",
    ".globl hosted_exit_end",
    "hosted_exit_end:",

    // ---- Run by user code, in place of the dynamic linker's `xrstor 0x40(%rsp)`. rcx: where to go on. The mask in edx:eax is the
    // user's, and so is the memory; if it has loaded the key register there is no way on but a trap.
    ".globl hosted_restore",
    ".type hosted_restore, @function",
    ".balign 64",
    "hosted_restore:",
    "xrstor [rsp + 0x40]",
    "test eax, 0x200",
    "jnz 9f",
    "jmp rcx",
    "9:",
    "ud2",
    ".size hosted_restore, . - hosted_restore",
    ".globl hosted_restore_end",
    "hosted_restore_end:",
    // Where a short jump between the routine's bytes leads.
    ".balign 64, 0xcc",

    ".purgem CLOSE",
    ".popsection",
    stacks = const STACK_BASE,
    stack_shift = const STACK_SHIFT,
    stack_mask = const STACK_SIZE - 1,
    first_area = const STACK_BASE + STACK_SIZE - AREA_SIZE,
    area_offset = const STACK_SIZE - AREA_SIZE,
    signal_room = const SIGNAL_ROOM,
    frame_limit = const STACK_SIZE - AREA_SIZE - HOST_FRAME,
    selectors = const SELECTOR_BASE,
    selector_shift = const SELECTOR_SHIFT,
    kernel = const KERNEL_BASE,
    image_size = const IMAGE_SIZE,
    arrival = const core::mem::offset_of!(Area, own.arrival),
    fast_path = const core::mem::offset_of!(Area, own.fast_path),
    in_guest = const core::mem::offset_of!(Area, shared.in_guest),
    selector_value = const core::mem::offset_of!(Area, own.selector_value),
    keyed = const core::mem::offset_of!(Area, own.keyed),
    stepping = const core::mem::offset_of!(Area, own.stepping),
    fast_calls = const super::FAST_CALLS,
    thread_selector = const THREAD_SELECTOR,
    call_flags = const CALL_FLAGS,
    pkru_guest = const PKRU_GUEST,
    kick = const super::KICK,
    sigtrap = const 5,
    secret = sym SECRET,
    key_place = sym KEY_PLACE,
    kernel_closed = const 0b11 << (2 * KERNEL_KEY),
    hooks = sym HOOKS,
);

/// The bytes of an `xrstor 0x40(%rsp)`.
const RESTORE_LEN: usize = 5;

/// The address of the instruction that [`hosted_restore`] stands for, if user code was interrupted in there (at `rip`): executed again
/// it does the same. `rcx` is the user's. A result behind the instruction would equal rcx, and the exit would take it for a call's.
pub fn restoring(rip: usize, rcx: usize) -> Option<usize> {
    let routine = hosted_restore as *const () as usize..hosted_restore_end as *const () as usize;
    routine.contains(&rip).then(|| rcx.wrapping_sub(RESTORE_LEN))
}

unsafe extern "C" {
    /// What user code jumps to that would load the vector registers by an instruction it may not have.
    pub fn hosted_restore();
    fn hosted_restore_end();
    /// The host's signal handler without a jail.
    pub fn hosted_signal_entry();
    /// The host's signal handler under the jail `pkey`.
    pub fn hosted_signal_entry_pkey();
    /// The exit.
    ///
    /// # Safety
    /// The area is the calling thread's, its frame is whole, `in_guest` is set.
    pub fn hosted_exit(area: *mut Area) -> !;
}
