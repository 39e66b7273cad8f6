//! Entries from user code and interrupts, and the way back.
//!
//! A thread's life is a loop: `enter_user` loads its frame and goes to user code; the next entry, whatever it is, stores all
//! registers back and makes `enter_user` return the reason. The frame lies in the thread's [`Save`], whose end is both the
//! task state's rsp0 and what `syscall` finds through GS: the processor's own pushes land in the frame.
//!
//! GS: in the kernel the base is the core's, the user's is in KERNEL_GS_BASE. Every way from ring 3 does exactly one `swapgs`
//! before anything else, every way to ring 3 one as its last but one instruction. Entries from ring 0 do none: the interrupts
//! of the idle loop and faults of user copies; but an interrupt on the first steps from a call gate, which finds the user's GS,
//! does one on its way in and one on its way out. NMI, double fault and machine check have stacks of their own, may come
//! anywhere, and use no GS at all.

use core::arch::global_asm;

use janua_arch::Frame;

use crate::report::STOPPING;
use crate::trap::kernel_trap;

pub const DEBUG: u8 = 1;
pub const NMI: u8 = 2;
pub const DOUBLE_FAULT: u8 = 8;
pub const PAGE_FAULT: u8 = 14;
pub const MACHINE_CHECK: u8 = 18;
/// First vector that is no exception.
pub const FIRST_INTERRUPT: u8 = 32;

/// What [`enter_user`] answers beside vectors: an entry by `syscall`.
pub const SYSCALL: usize = 256;
/// By `sysenter`.
pub const SYSENTER: usize = 257;
/// By a call gate.
pub const CALL_GATE: usize = 258;

/// Where a thread's registers are while it is in the kernel.
#[repr(C, align(16))]
pub struct Save {
    /// Stack pointer of the loop in [`enter_user`].
    kernel_rsp: u64,
    pub frame: Frame,
}

const _: () = {
    use core::mem::offset_of;
    // The processor aligns what it pushes at.
    assert!(offset_of!(Save, frame) == 8 && size_of::<Save>() % 16 == 0);
    assert!(offset_of!(Frame, rcx) == 11 * 8 && offset_of!(Frame, r11) == 6 * 8);
    assert!(offset_of!(Frame, rax) == 10 * 8 && offset_of!(Frame, rdi) == 14 * 8);
};

impl Save {
    pub const fn new(frame: Frame) -> Save {
        Save { kernel_rsp: 0, frame }
    }

    /// Where entries start to push.
    pub fn end(&self) -> usize {
        core::ptr::from_ref(self) as usize + size_of::<Save>()
    }
}

global_asm!(
    ".pushsection .text.entry, \"ax\", @progbits",

    // 256 stubs of 16 bytes. Those exceptions that come without an error code get a 0 in its place.
    ".balign 16",
    "entry_text:",
    // Known to other parts of the crate, which may be compiled apart from this.
    ".globl entry_text, entry_text_end, vector_stubs, nmi_entry, call_gate_entry, syscall_entry, syscall32_refused, sysenter_entry",
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
    "push rsi",
    "push rdx",
    "push rcx",
    "push rax",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "jmp from_kernel",

    // edi: vector; above: rdi, error code, rip, cs, rflags, rsp, ss. This is the tail of a Frame.
    "vector_common:",
    "push rsi",
    "push rdx",
    "push rcx",
    "push rax",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "test byte ptr [rsp + 17*8], 3",
    "jz from_kernel",
    "swapgs",
    // Before rsp is the kernel's: a speculative run with the user's GS must not use it.
    "lfence",
    "mov eax, edi",
    "mov rsp, [rsp - 8]",
    "jmp entry_return",
    // From ring 0: handled here, and back.
    // A user copy that faulted had user memory open (AC): not for us.
    "from_kernel:",
    "push 2",
    "popfq",
    "mov esi, edi",
    "mov rdi, rsp",
    // On the first steps from a call gate?
    "lea rcx, [rip + call_gate_entry]",
    "lea rax, [rip + call_gate_inside]",
    "sub rax, rcx",
    "mov rbx, [rsp + 16*8]",
    "sub rbx, rcx",
    "cmp rbx, rax",
    "setb bl",
    "jae 6f",
    "swapgs",
    "6:",
    "sub rsp, 8",
    "call {kernel_trap}",
    "add rsp, 8",
    "test bl, bl",
    "jz 7f",
    "swapgs",
    "7:",
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

    // rcx: return address, r11: flags. TF, IF, DF, AC and NT are clear by SFMASK.
    ".balign 64",
    "syscall_entry:",
    "swapgs",
    "mov gs:[8], rsp",
    "mov rsp, gs:[0]",
    "push 0x2b",
    "push gs:[8]",
    "push r11",
    "push 0x33",
    "push rcx",
    "push rax",
    "push rdi",
    "push rsi",
    "push rdx",
    "push rcx",
    "push -38",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov eax, {syscall}",
    "mov rsp, [rsp - 8]",

    "jmp entry_return",

    // Nothing is saved by the processor; rcx and r11 have the way back. Interrupts are off, the other flags are user code's.
    ".balign 64",
    "sysenter_entry:",
    "swapgs",
    "mov rsp, gs:[0]",
    "push 0x2b",
    "push r11",
    "pushfq",
    // The way in cleared IF; user code had it set.
    "or qword ptr [rsp], 0x200",
    "push 0x33",
    "push rcx",
    "push rax",
    "push rdi",
    "push rsi",
    "push rdx",
    "push rcx",
    "push -38",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov eax, {sysenter}",
    "mov rsp, [rsp - 8]",
    "jmp entry_return",

    // The processor has pushed ss, rsp, cs, rip, without flags, and left interrupts on: until `cli` is through, one may come,
    // from ring 0 with the user's GS.
    ".balign 64",
    "call_gate_entry:",
    "pushfq",
    "cli",
    "call_gate_inside:",
    "swapgs",
    // rax where orig_rax is; then flags, cs and rip each one place up from where they are.
    "push rax",
    "mov rax, [rsp + 8]",
    "xchg rax, [rsp + 24]",
    "xchg rax, [rsp + 16]",
    "mov [rsp + 8], rax",
    "push rdi",
    "push rsi",
    "push rdx",
    "push rcx",
    "push -38",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov eax, {call_gate}",
    "mov rsp, [rsp - 8]",

    // rsp: as `enter_user` left it; eax: the reason. The flags of user code end here.
    "entry_return:",
    "push 2",
    "popfq",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",

    // 32-bit `syscall`, which AMD's processors know and Intel's refuse: refused here on all, as an invalid instruction. Interrupts
    // are off and the stack is the user's, so the frame is built on the thread's own.
    ".balign 16",
    "syscall32_refused:",
    "swapgs",
    "mov gs:[8], rsp",
    "mov rsp, gs:[0]",
    "push 0x2b",
    "push gs:[8]",
    "push r11",
    "push 0x23",
    // The instruction itself, as a fault has it.
    "sub rcx, 2",
    "push rcx",
    "push 0",
    "push rdi",
    "push rsi",
    "push rdx",
    "push rcx",
    "push rax",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov eax, 6",
    "mov rsp, [rsp - 8]",
    "jmp entry_return",

    // rdi: Save. Goes to user code with its frame; returns at the next entry with the reason.
    ".balign 64",
    ".globl enter_user",
    "enter_user:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rdi], rsp",
    "lea rsp, [rdi + 8]",
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
    "mov rsp, [rsp + 4*8]",
    "swapgs",
    "sysretq",
    "3:",
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
    "swapgs",
    "iretq",

    // rdi: where to store the stack pointer of the thread that stops; rsi: that of the thread that goes on.
    ".balign 16",
    ".globl switch_stack",
    "switch_stack:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rdi], rsp",
    "mov rsp, rsi",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    "entry_text_end:",
    ".popsection",
    kernel_trap = sym kernel_trap,
    stopping = sym STOPPING,
    syscall = const SYSCALL,
    sysenter = const SYSENTER,
    call_gate = const CALL_GATE,
);

unsafe extern "C" {
    static vector_stubs: u8;
    static entry_text: u8;
    static entry_text_end: u8;
    fn sysenter_entry();
    fn call_gate_entry();
    fn nmi_entry();
    fn syscall_entry();
    fn syscall32_refused();
    /// Goes to user code; answers why it came back: a vector, or [`SYSCALL`]. The frame's address is canonical, its selectors
    /// are user selectors and its flags those user code may have: `iretq` must not fault here.
    pub fn enter_user(save: *mut Save) -> usize;
    /// Goes on on another stack; returns when somebody switches back.
    pub fn switch_stack(old: *mut usize, new: usize);
}

/// The address of a vector's stub.
pub fn stub(vector: usize) -> u64 {
    if vector == usize::from(NMI) {
        return nmi_entry as *const () as u64;
    }
    &raw const vector_stubs as u64 + vector as u64 * 16
}

pub fn syscall_address() -> u64 {
    syscall_entry as *const () as u64
}

pub fn sysenter_address() -> u64 {
    sysenter_entry as *const () as u64
}

pub fn call_gate_address() -> u64 {
    call_gate_entry as *const () as u64
}

/// Whether an address is in the code of this file: user code that single-steps into the kernel stops there, since neither
/// `sysenter` nor a call gate clears TF.
pub fn is_entry(rip: usize) -> bool {
    (&raw const entry_text as usize..&raw const entry_text_end as usize).contains(&rip)
}

pub fn refused_address() -> u64 {
    syscall32_refused as *const () as u64
}
