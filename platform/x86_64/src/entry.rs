//! Entries from user code and interrupts, and the return to user mode.
//!
//! A thread's life is a loop: `enter_user` loads its frame and goes to user code; the next entry, whatever it is, stores all
//! registers back and makes `enter_user` return the reason. The frame is in the thread's [`Save`], and its end is both the
//! task state's rsp0 and what `syscall` finds through GS: the processor's own pushes land in the frame.
//!
//! Calls that return at once do not come here: the gates' entries (`gate/src`, of the pieces of [`janua_entry::bare`]) make them and go back.
//!
//! GS: in the kernel the base is the core's, the user's is in KERNEL_GS_BASE. Every way from ring 3 does exactly one `swapgs`
//! before anything else, every way to ring 3 one as its last but one instruction. Entries from ring 0 do none: the interrupts
//! of the idle loop and faults of user copies; but an interrupt on the first steps from a call gate, which finds the user's GS and
//! the frame as its stack, does one at entry and one at exit. Single steps, NMI, double fault and machine check may come
//! anywhere: they have stacks of their own, and in ring 0 use no GS.

use core::arch::global_asm;
use core::mem::offset_of;

pub use janua_arch::x86_64::exception::{DEBUG, DOUBLE_FAULT, FIRST_INTERRUPT, MACHINE_CHECK, NMI, PAGE_FAULT};
use janua_entry::bare::{Save, from_base};
use janua_entry::{bare_push_kept, bare_to_loop};

use crate::report::STOPPING;
use crate::trap::kernel_trap;

/// From the place of rdi down: what a C function may change. rax has its own.
#[rustfmt::skip]
macro_rules! push_scratch {
    ($rax:literal) => {
        concat!(
            "push rdi\npush rsi\npush rdx\npush rcx\npush ", $rax, "\npush r8\npush r9\npush r10\npush r11"
        )
    };
}

macro_rules! pop_kept {
    () => {
        "pop r15\npop r14\npop r13\npop r12\npop rbp\npop rbx"
    };
}

/// What is below rdi in a frame.
#[rustfmt::skip]
macro_rules! push_lower {
    () => {
        concat!("push rsi\npush rdx\npush rcx\npush rax\npush r8\npush r9\npush r10\npush r11\n", bare_push_kept!())
    };
}

/// All general registers of a frame; rsp is where orig_rax is then.
#[rustfmt::skip]
macro_rules! pop_all {
    () => {
        concat!(
            pop_kept!(),
            "\npop r11\npop r10\npop r9\npop r8\npop rax\npop rcx\npop rdx\npop rsi\npop rdi"
        )
    };
}

/// The last two instructions of every way to user code: with page-table isolation a jump takes their place.
#[rustfmt::skip]
macro_rules! to_user {
    ($back:literal, $isolated:literal) => {
        concat!(
            "771:\nswapgs\n", $back, "\n.pushsection .exit_sites, \"a\", @progbits\n.quad 771b, ", $isolated, "\n.popsection"
        )
    };
}

global_asm!(
    ".pushsection .text.entry, \"ax\", @progbits",

    // 256 stubs of 16 bytes. Those exceptions that come without an error code get a 0 in its place.
    ".balign 16",
    // Of the gates `callgate` and `sysenter`: where their entries may be interrupted. Without the gate there is no such address.
    ".weak call_gate_entry, isolated_call_gate, sysenter32_first, sysenter32_last",
    // Known to the gates, and to other parts of the crate, which may be compiled apart from this.
    ".globl vector_stubs, entry_return, from_kernel_itself, nmi_entry, debug_entry, syscall32_refused, syscall32_inside",
    "vector_stubs:",
    ".set vector, 0",
    ".rept 256",
    ".balign 16",
    ".if vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21 || vector == 29 || vector == 30",
    ".else",
    "push 0",
    ".endif",
    "push rdi",
    "mov edi, offset vector",
    ".if vector == 8 || vector == 18",
    "jmp vector_fatal",
    ".else",
    "jmp vector_common",
    ".endif",
    ".set vector, vector + 1",
    ".endr",

    // Another core stops this one, or nobody means anything by it.
    ".balign 16",
    "nmi_entry:",
    "cmp byte ptr [rip + {stopping}], 0",
    "jne 5f",
    "iretq",
    "5:",
    "cli",
    "hlt",
    "jmp 5b",

    // Never returned from, wherever it came from: this stack is not the thread's.
    "vector_fatal:",
    push_lower!(),
    "jmp from_kernel",

    // edi: vector; above: rdi, error code, rip, cs, rflags, rsp, ss. This is the tail of a Frame.
    "vector_common:",
    push_lower!(),
    "test byte ptr [rsp + 17*8], 3",
    "jz from_kernel",
    "swapgs",
    // Before rsp is the kernel's: a speculative run with the user's GS must not use it.
    "lfence",
    "mov eax, edi",
    "mov rsp, [rsp + 21*8]",
    "jmp entry_return",
    // From ring 0: handled here, and back.
    // A user copy that faulted had user memory open (AC): not for us.
    "from_kernel:",
    // A program without protection: its addresses are in the lower half.
    "cmp qword ptr [rsp + 16*8], 0",
    "jge unprotected_trap",
    "from_kernel_itself:",
    "push 2",
    "popfq",
    "mov esi, edi",
    "mov rdi, rsp",
    "mov rbx, rsp",
    // Between the far call and the call gate's `cli` the stack is the frame, and GS the user's.
    "mov rax, [rsp + 16*8]",
    "mov rcx, rax",
    "sub rax, offset call_gate_entry",
    "cmp rax, 2",
    "jb 5f",
    "sub rcx, offset isolated_call_gate",
    "cmp rcx, 2",
    "jae 3f",
    "5:",
    "swapgs",
    "mov rbp, cr3",
    "mov rax, gs:[32]",
    "mov cr3, rax",
    "mov rsp, gs:[24]",
    "mov rsp, [rsp + {kernel_rsp}]",
    "and rsp, -16",
    "call {kernel_trap}",
    "mov cr3, rbp",
    "swapgs",
    "jmp 4f",
    "3:",
    "and rsp, -16",
    "call {kernel_trap}",
    "4:",
    "mov rsp, rbx",
    pop_all!(),
    "add rsp, 8",
    "iretq",

    // rsp: as `enter_user` left it; eax: the reason. The flags of user code end here.
    "entry_return:",
    "push 2",
    "popfq",
    pop_kept!(),
    "ret",

    // On a stack of its own: a step may end at the first instruction of an entry, and goes no further. One of user code is moved to
    // the frame.
    ".balign 16",
    "debug_entry:",
    "test byte ptr [rsp + 8], 3",
    "jz 3f",
    "swapgs",
    "lfence",
    "mov gs:[8], rax",
    "mov rax, rsp",
    "mov rsp, gs:[0]",
    "add rsp, 8",
    "push [rax + 32]",
    "push [rax + 24]",
    "push [rax + 16]",
    "push [rax + 8]",
    "push [rax]",
    "mov rax, gs:[8]",
    "push 0",
    push_scratch!("rax"),
    "mov eax, {debug}",
    bare_to_loop!(),
    "3:",
    "cmp qword ptr [rsp], offset kernel_text_start",
    "jb 4f",
    "cmp qword ptr [rsp], offset kernel_entry_end",
    "jae 4f",
    "cmp qword ptr [rsp], offset sysenter32_first",
    "jb 5f",
    "cmp qword ptr [rsp], offset sysenter32_last",
    "jbe 6f",
    "5:",
    "and qword ptr [rsp + 16], ~0x100",
    "6:",
    "iretq",
    "4:",
    "push 0",
    "push rdi",
    "mov edi, {debug}",
    "jmp vector_fatal",

    // 32-bit `syscall`, which AMD's processors know and Intel's refuse: refused here on all, as an invalid instruction. Interrupts
    // are off and the stack is the user's, so the frame is built on the thread's own.
    ".balign 16",
    "syscall32_refused:",
    "swapgs",
    "mov gs:[8], rsp",
    "syscall32_inside:",
    "mov rsp, gs:[0]",
    "add rsp, 8",
    "push 0x2b",
    "push gs:[8]",
    "push r11",
    "push 0x23",
    // The instruction itself, as a fault has it.
    "sub rcx, 2",
    "push rcx",
    "push 0",
    push_scratch!("rax"),
    "mov eax, 6",
    bare_to_loop!(),

    // rdi: Save. Goes to user code with its frame; returns at the next entry with the reason.
    ".balign 64",
    ".globl enter_user",
    "enter_user:",
    bare_push_kept!(),
    "mov [rdi + {save_kernel_rsp}], rsp",
    "lea rsp, [rdi + {save_frame}]",
    // `sysretq` only where it does what `iretq` would: return address and flags are those in rcx and r11, the selectors are
    // the usual ones, the address is canonical (Intel faults in ring 0 otherwise), and neither TF nor RF is to be set.
    "mov rcx, [rsp + 16*8]",
    "cmp rcx, [rsp + 11*8]",
    "jne 3f",
    "mov rax, rcx",
    "shr rax, 47",
    "jnz 3f",
    "mov r11, [rsp + 18*8]",
    "cmp r11, [rsp + 6*8]",
    "jne 3f",
    "test r11d, 0x10100",
    "jnz 3f",
    "cmp qword ptr [rsp + 17*8], 0x33",
    "jne 3f",
    "cmp qword ptr [rsp + 20*8], 0x2b",
    "jne 3f",
    pop_all!(),
    "mov rsp, [rsp + 4*8]",
    to_user!("sysretq", "isolated_sysret"),
    "3:",
    pop_all!(),
    "add rsp, 8",
    to_user!("iretq", "isolated_iret"),

    // rdi: where to store the stack pointer of the thread that stops; rsi: that of the thread that goes on.
    ".balign 16",
    ".globl switch_stack",
    "switch_stack:",
    bare_push_kept!(),
    "mov [rdi], rsp",
    "mov rsp, rsi",
    pop_kept!(),
    "ret",
    ".popsection",
    kernel_trap = sym kernel_trap,
    stopping = sym STOPPING,
    debug = const DEBUG,
    save_kernel_rsp = const offset_of!(Save, kernel_rsp),
    save_frame = const offset_of!(Save, frame),
    kernel_rsp = const from_base(offset_of!(Save, kernel_rsp)),
);

unsafe extern "C" {
    static vector_stubs: u8;
    fn nmi_entry();
    fn debug_entry();
    fn syscall32_refused();
    /// Goes to user code; returns why it came back: a vector, or one of the numbers of [`janua_entry::bare`]. The frame's address is canonical, its
    /// selectors are user selectors and its flags those user code may have: `iretq` must not fault here.
    pub fn enter_user(save: *mut Save) -> usize;
    /// Goes on on another stack; returns when somebody switches back.
    pub fn switch_stack(old: *mut usize, new: usize);
}

fn address(entry: unsafe extern "C" fn()) -> u64 {
    entry as *const () as u64
}

/// The address of a vector's stub.
pub fn stub(vector: u8) -> u64 {
    match vector {
        NMI => address(nmi_entry),
        DEBUG => address(debug_entry),
        _ => &raw const vector_stubs as u64 + u64::from(vector) * 16,
    }
}

pub fn refused_address() -> u64 {
    address(syscall32_refused)
}
