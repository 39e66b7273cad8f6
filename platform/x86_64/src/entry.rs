//! Entries from user code and interrupts, and the way back.
//!
//! A thread's life is a loop: `enter_user` loads its frame and goes to user code; the next entry, whatever it is, stores all
//! registers back and makes `enter_user` return the reason. The frame lies in the thread's [`Save`], and its end is both the
//! task state's rsp0 and what `syscall` finds through GS: the processor's own pushes land in the frame.
//!
//! **The short way.** Most calls answer at once and never look at a frame. Entries by the gates save what a C function may change, call
//! the row's function ([`janua_port::Plain`]) on the thread's kernel stack and go back: the loop never notices. All other
//! calls, and those that leave work behind, get a whole frame and go through the loop. So the entries here know the gates' conventions
//! (`gate/src`), which remain the authority for everything that does not take the short way.
//!
//! GS: in the kernel the base is the core's, the user's is in KERNEL_GS_BASE. Every way from ring 3 does exactly one `swapgs`
//! before anything else, every way to ring 3 one as its last but one instruction. Entries from ring 0 do none: the interrupts
//! of the idle loop and faults of user copies; but an interrupt on the first steps from a call gate, which finds the user's GS and
//! the frame as its stack, does one on its way in and one on its way out. Single steps, NMI, double fault and machine check may come
//! anywhere: they have stacks of their own, and in ring 0 use no GS.

use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU32};

use janua_arch::Frame;
use janua_port::Plain;

use crate::report::STOPPING;
use crate::trap::kernel_trap;

pub const DEBUG: u8 = 1;
pub const NMI: u8 = 2;
pub const INVALID_OPCODE: u8 = 6;
pub const DOUBLE_FAULT: u8 = 8;
pub const PAGE_FAULT: u8 = 14;
pub const MACHINE_CHECK: u8 = 18;
/// First vector that is no exception.
pub const FIRST_INTERRUPT: u8 = 32;
/// The vectors of the gate `int`.
pub const INT_NATIVE: u8 = 0x30;
pub const INT_COMPAT: u8 = 0x80;

/// What [`enter_user`] answers beside vectors: an entry by `syscall`.
pub const SYSCALL: usize = 256;
/// By `sysenter`.
pub const SYSENTER: usize = 257;
/// By a call gate.
pub const CALL_GATE: usize = 258;
/// A call was made by the short way and left work behind: its result is in the frame.
pub const ANSWERED: usize = 259;
/// The same for one of the i386 numbering.
pub const ANSWERED_COMPAT: usize = 260;

/// Where a thread's registers are while it is in the kernel, and what the short way needs.
#[repr(C, align(16))]
pub struct Save {
    /// An interrupt may come between a far call and the gate's `cli`: what it pushes reaches beyond the frame.
    room: [u64; 8],
    /// Stack pointer of the loop in [`enter_user`].
    kernel_rsp: u64,
    pub frame: Frame,
    thread: *const (),
    work: *const AtomicU32,
    native: *const AtomicPtr<()>,
    native_count: usize,
    compat: *const AtomicPtr<()>,
    compat_count: usize,
}

const _: () = {
    // The processor aligns what it pushes at.
    assert!((offset_of!(Save, frame) + size_of::<Frame>()) % 16 == 0 && align_of::<Save>() == 16);
    assert!(offset_of!(Save, frame) == offset_of!(Save, kernel_rsp) + 8);
    assert!(offset_of!(Frame, rcx) == 11 * 8 && offset_of!(Frame, r11) == 6 * 8);
    assert!(offset_of!(Frame, rax) == 10 * 8 && offset_of!(Frame, rdi) == 14 * 8);
};

/// The table of a thread without calls: number 0 stands for all, and is none.
static NO_CALLS: [AtomicPtr<()>; 1] = [AtomicPtr::new(core::ptr::null_mut())];
static NO_WORK: AtomicU32 = AtomicU32::new(0);

impl Save {
    pub const fn new(frame: Frame) -> Save {
        Save {
            room: [0; 8],
            kernel_rsp: 0,
            frame,
            thread: core::ptr::null(),
            work: &raw const NO_WORK,
            native: NO_CALLS.as_ptr(),
            native_count: 0,
            compat: NO_CALLS.as_ptr(),
            compat_count: 0,
        }
    }

    /// Sets which calls go the short way: those of the thread's guest, which must live as long as the thread runs.
    pub fn set_plain(&mut self, plain: Option<Plain>) {
        let none = Save::new(self.frame);
        match plain {
            Some(plain) => {
                self.thread = plain.thread;
                self.work = plain.work;
                (self.native, self.native_count) = (plain.native.functions, plain.native.count);
                (self.compat, self.compat_count) = (plain.compat.functions, plain.compat.count);
            }
            None => *self = Save { kernel_rsp: self.kernel_rsp, ..none },
        }
    }

    /// Where entries start to push: the end of the frame.
    pub fn end(&self) -> usize {
        core::ptr::from_ref(self) as usize + offset_of!(Save, frame) + size_of::<Frame>()
    }
}

/// Bytes from the place of r11 in a frame to its end. r11 is the last register that the short way saves, and what it finds its
/// words by ("base" below).
pub const BASE_TO_END: usize = size_of::<Frame>() - offset_of!(Frame, r11);

/// Offset from the base to a field of [`Save`].
const fn from_base(offset: usize) -> isize {
    offset as isize - (offset_of!(Save, frame) + offset_of!(Frame, r11)) as isize
}

// Pieces of assembly that several entries share.

/// r11: base. Takes the thread's kernel stack.
macro_rules! take_stack {
    () => {
        "mov rsp, [r11 + {kernel_rsp}]"
    };
}

/// From the place of rdi down: what a C function may change. rax has its own.
macro_rules! push_scratch {
    ($rax:literal) => {
        concat!(
            "push rdi\npush rsi\npush rdx\npush rcx\npush ", $rax, "\npush r8\npush r9\npush r10\npush r11"
        )
    };
}

/// What a C function keeps, at the end of a frame.
macro_rules! push_kept {
    () => {
        "push rbx\npush rbp\npush r12\npush r13\npush r14\npush r15"
    };
}

macro_rules! pop_kept {
    () => {
        "pop r15\npop r14\npop r13\npop r12\npop rbp\npop rbx"
    };
}

/// What is below rdi in a frame.
macro_rules! push_lower {
    () => {
        concat!("push rsi\npush rdx\npush rcx\npush rax\npush r8\npush r9\npush r10\npush r11\n", push_kept!())
    };
}

/// All general registers of a frame; rsp is where orig_rax is then.
macro_rules! pop_all {
    () => {
        concat!(
            pop_kept!(),
            "\npop r11\npop r10\npop r9\npop r8\npop rax\npop rcx\npop rdx\npop rsi\npop rdi"
        )
    };
}

/// Entries by `syscall` and `sysenter` from the number's place on: rcx and r11 are not saved, their slots stay free.
/// Then r11 is the base.
macro_rules! push_arguments {
    () => {
        "push rax\npush rdi\npush rsi\npush rdx\nsub rsp, 16\npush r8\npush r9\npush r10"
    };
}

/// rax: number, r11: base, rsp: kernel stack, which gets the function's last argument. Finds the function; jumps to the label
/// when there is none. A number beyond the end becomes 0 without a branch that could be foreseen wrongly.
macro_rules! find_function {
    ($count:literal, $functions:literal, $none:literal) => {
        concat!(
            "push [r11 + {thread}]\n",
            "cmp rax, [r11 + {", $count, "}]\nsbb rcx, rcx\nand rax, rcx\n",
            "mov rcx, [r11 + {", $functions, "}]\nmov rax, [rcx + rax*8]\ntest rax, rax\njz ", $none
        )
    };
}

/// Makes the call, with its fourth word where C functions have it; goes to the label when it left work. rsp is the base then.
macro_rules! make_call {
    ($work:literal) => {
        concat!(
            "mov rcx, r10\ncall rax\nmov rsp, gs:[24]\n",
            "mov rcx, [rsp + {work}]\ncmp dword ptr [rcx], 0\njne ", $work
        )
    };
}

/// The last two instructions of every way to user code: with page-table isolation a jump takes their place.
macro_rules! to_user {
    ($back:literal, $isolated:literal) => {
        concat!(
            "771:\nswapgs\n", $back, "\n.pushsection .exit_sites, \"a\", @progbits\n.quad 771b, ", $isolated, "\n.popsection"
        )
    };
}

/// rsp: base; rax: result. The way back of entries that leave rcx and r11 to the processor.
macro_rules! leave_by_sysret {
    () => {
        concat!(
            "mov r10, [rsp + 8]\nmov r9, [rsp + 16]\nmov r8, [rsp + 24]\nmov rdx, [rsp + 48]\nmov rsi, [rsp + 56]\n\
             mov rdi, [rsp + 64]\nmov rcx, [rsp + 80]\nmov r11, [rsp + 96]\nmov rsp, [rsp + 104]\n",
            to_user!("sysretq", "isolated_sysret")
        )
    };
}

/// rsp: base; rax: result. The way back of all others.
macro_rules! leave_by_iret {
    () => {
        concat!(
            "mov r11, [rsp]\nmov r10, [rsp + 8]\nmov r9, [rsp + 16]\nmov r8, [rsp + 24]\nmov rcx, [rsp + 40]\n\
             mov rdx, [rsp + 48]\nmov rsi, [rsp + 56]\nmov rdi, [rsp + 64]\nadd rsp, 80\n",
            to_user!("iretq", "isolated_iret")
        )
    };
}

/// rsp: base, and all above it saved; eax: the reason. Ends the frame and goes to the loop.
macro_rules! to_loop {
    () => {
        concat!(push_kept!(), "\nmov rsp, [rsp - 8]\njmp entry_return")
    };
}

/// Exception 6 and its guest's instruction: a call if that is LOCK NOP. Twice, since a processor with SMAP must open user memory
/// to look.
macro_rules! ud_entry {
    ($name:literal, $open:literal) => {
        concat!(
            ".balign 64\n", $name, ":\npush rax\ntest byte ptr [rsp + 16], 3\njz ud_kernel\n",
            push_scratch!("-38"),
            "\nswapgs\nlfence\nmov r11, rsp\n",
            take_stack!(),
            "\nmov rcx, [r11 + 80]\n", $open, "\n",
            $name, "_fetch:\ncmp word ptr [rcx], 0x90f0\njne ud_long\npush 2\npopfq\n",
            find_function!("native_count", "native", "ud_long"),
            "\nadd qword ptr [r11 + 80], 2\n",
            make_call!("answered"),
            "\n",
            leave_by_iret!()
        )
    };
}

/// Page faults: a call if it is the fetch of an instruction at the start of a function of the vsyscall page. Such a call has three
/// words at most. The frame is changed only when nothing can fail any more.
macro_rules! vsyscall_entry {
    ($name:literal, $open:literal) => {
        concat!(
            ".balign 64\n", $name, ":\ncmp dword ptr [rsp + 12], -1\njne page_fault_other\n",
            "test byte ptr [rsp + 16], 3\njz page_fault_other\n",
            push_scratch!("rax"),
            "\nswapgs\nlfence\nmov r11, rsp\n",
            take_stack!(),
            // The offset in the page, over 1024, is the function; other offsets become large by the rotation.
            "\nmov rax, cr2\ncmp rax, [r11 + 80]\njne vsyscall_long\n",
            "add rax, 0xa00000\nror rax, 10\ncmp rax, 3\njae vsyscall_long\n",
            "movzx eax, word ptr [rax*2 + vsyscall_numbers]\nmov r10d, eax\n",
            find_function!("native_count", "native", "vsyscall_long"),
            // The return address, from the user's stack.
            "\nmov rcx, [r11 + 104]\nmov r9, rcx\nshr r9, 47\njnz vsyscall_long\n", $open, "\n",
            $name, "_fetch:\nmov rcx, [rcx]\npush 2\npopfq\nmov r9, rcx\nshr r9, 47\njnz vsyscall_unreadable\n",
            "mov [r11 + 80], rcx\nadd qword ptr [r11 + 104], 8\nmov [r11 + 72], r10\n",
            make_call!("answered"),
            "\n",
            leave_by_iret!()
        )
    };
}

global_asm!(
    ".pushsection .text.entry, \"ax\", @progbits",

    // 256 stubs of 16 bytes. Those exceptions that come without an error code get a 0 in its place.
    ".balign 16",
    // Known to other parts of the crate, which may be compiled apart from this.
    ".globl vector_stubs, nmi_entry, debug_entry, syscall32_refused",
    ".globl syscall_inside, syscall32_inside, sysenter_inside, call_gate_swapped",
    ".globl syscall_entry, sysenter_entry, call_gate_entry, int_entry, int80_entry",
    ".globl ud_plain, ud_plain_fetch, ud_guarded, ud_guarded_fetch, ud_long",
    ".globl vsyscall_plain, vsyscall_plain_fetch, vsyscall_guarded, vsyscall_guarded_fetch, vsyscall_unreadable",
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
    "mov rsp, [rsp - 8]",
    "jmp entry_return",
    // From ring 0: handled here, and back.
    // A user copy that faulted had user memory open (AC): not for us.
    "from_kernel:",
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
    to_loop!(),
    "3:",
    "cmp qword ptr [rsp], offset kernel_text_start",
    "jb 4f",
    "cmp qword ptr [rsp], offset kernel_entry_end",
    "jae 4f",
    "and qword ptr [rsp + 16], ~0x100",
    "iretq",
    "4:",
    "push 0",
    "push rdi",
    "mov edi, {debug}",
    "jmp vector_fatal",

    // ---- Gates, the short way.

    // rcx: return address, r11: flags. TF, IF, DF, AC and NT are clear by SFMASK.
    ".balign 64",
    "syscall_entry:",
    "swapgs",
    "mov gs:[8], rsp",
    "syscall_inside:",
    "mov rsp, gs:[0]",
    "push gs:[8]",
    "push r11",
    "push 0x33",
    "push rcx",
    push_arguments!(),
    "lea r11, [rsp - 8]",
    take_stack!(),
    find_function!("native_count", "native", "syscall_long"),
    make_call!("syscall_answered"),
    // Neither TF nor RF can be set by `sysretq` as `iretq` would. The return address is canonical: it follows an instruction
    // of user code, which never lies at the end of the lower half.
    "test dword ptr [rsp + 96], 0x10100",
    "jnz syscall_answered",
    leave_by_sysret!(),
    "syscall_long:",
    "mov eax, {syscall}",
    "mov rcx, [r11 + 96]",
    "mov [r11], rcx",
    "mov qword ptr [r11 + 32], -38",
    "4:",
    "mov rcx, [r11 + 80]",
    "mov [r11 + 40], rcx",
    "mov qword ptr [r11 + 112], 0x2b",
    "mov rsp, r11",
    to_loop!(),
    "syscall_answered:",
    "mov r11, rsp",
    "mov [r11 + 32], rax",
    "mov rcx, [r11 + 96]",
    "mov [r11], rcx",
    "mov eax, {answered}",
    "jmp 4b",

    // Nothing is saved by the processor: the return address is in rcx, the stack pointer in r11. Interrupts are off, the other
    // flags are user code's, but for TF, which the trap it brought has cleared.
    ".balign 64",
    "sysenter_entry:",
    "swapgs",
    "sysenter_inside:",
    "mov rsp, gs:[0]",
    "push r11",
    "pushfq",
    // The way in cleared IF; user code had it set.
    "or qword ptr [rsp], 0x200",
    "push 0x33",
    "push rcx",
    push_arguments!(),
    "push 2",
    "popfq",
    "lea r11, [rsp - 8]",
    // Not canonical, or not of the lower half: for the loop to refuse.
    "shr rcx, 47",
    "jnz sysenter_long",
    take_stack!(),
    find_function!("native_count", "native", "sysenter_long"),
    make_call!("sysenter_answered"),
    leave_by_sysret!(),
    "sysenter_long:",
    "mov qword ptr [r11 + 32], -38",
    "mov eax, {sysenter}",
    "5:",
    // The two registers as they were: a call that is made again needs them.
    "mov rcx, [r11 + 104]",
    "mov [r11], rcx",
    "jmp 4b",
    "sysenter_answered:",
    "mov r11, rsp",
    "mov [r11 + 32], rax",
    "mov eax, {answered}",
    "jmp 5b",

    // The processor has pushed ss, rsp, cs, rip, without flags, and left interrupts on: until `cli` is through, one may come,
    // from ring 0 with the user's GS, which is why `kernel_trap` uses none.
    ".balign 64",
    "call_gate_entry:",
    "pushfq",
    "cli",
    "swapgs",
    "call_gate_swapped:",
    // rax where orig_rax is; then flags, cs and rip each one place up from where they are.
    "push rax",
    "mov rax, [rsp + 8]",
    "xchg rax, [rsp + 24]",
    "xchg rax, [rsp + 16]",
    "mov [rsp + 8], rax",
    push_scratch!("-38"),
    "push 2",
    "popfq",
    "mov rax, [rsp + 72]",
    "mov r11, rsp",
    take_stack!(),
    find_function!("native_count", "native", "call_gate_long"),
    // Over the instruction that makes the call again.
    "add qword ptr [r11 + 80], 2",
    make_call!("answered"),
    leave_by_iret!(),
    "call_gate_long:",
    "mov eax, {call_gate}",
    "mov rsp, r11",
    to_loop!(),

    // `int 0x30`. Only user code raises it.
    ".balign 64",
    "int_entry:",
    "push rax",
    push_scratch!("-38"),
    "swapgs",
    "push 2",
    "popfq",
    "mov r11, rsp",
    take_stack!(),
    find_function!("native_count", "native", "6f"),
    make_call!("answered"),
    leave_by_iret!(),
    "6:",
    "mov eax, {int_native}",
    "7:",
    // As the vector's own stub has it: an error code in the number's place.
    "mov rcx, [r11 + 72]",
    "mov [r11 + 32], rcx",
    "mov qword ptr [r11 + 72], 0",
    "mov rsp, r11",
    to_loop!(),
    // rsp: base, rax: result.
    "answered:",
    "mov [rsp + 32], rax",
    "mov eax, {answered}",
    to_loop!(),

    // `int 0x80`: the i386 numbering, whose words are the lower halves of ebx, ecx, edx, esi, edi, ebp.
    ".balign 64",
    "int80_entry:",
    "mov eax, eax",
    "push rax",
    push_scratch!("-38"),
    "swapgs",
    "push 2",
    "popfq",
    "mov r11, rsp",
    "mov r8d, edi",
    "mov r9d, ebp",
    "mov r10d, esi",
    "mov edi, ebx",
    "mov esi, ecx",
    "mov edx, edx",
    take_stack!(),
    find_function!("compat_count", "compat", "int80_long"),
    make_call!("answered_compat"),
    leave_by_iret!(),
    "int80_long:",
    "mov eax, {int_compat}",
    "jmp 7b",
    "answered_compat:",
    "mov [rsp + 32], rax",
    "mov eax, {answered_compat}",
    to_loop!(),

    ud_entry!("ud_plain", ""),
    ud_entry!("ud_guarded", "stac"),
    "ud_long:",
    "mov eax, {invalid_opcode}",
    "jmp 7b",
    "ud_kernel:",
    "pop rax",
    "push 0",
    "push rdi",
    "mov edi, {invalid_opcode}",
    "jmp vector_common",

    vsyscall_entry!("vsyscall_plain", ""),
    vsyscall_entry!("vsyscall_guarded", "stac"),
    // A fault of the look at the stack has taken the address's place.
    "vsyscall_unreadable:",
    "mov rax, [r11 + 80]",
    "mov cr2, rax",
    "vsyscall_long:",
    "mov eax, {page_fault}",
    "mov rsp, r11",
    to_loop!(),
    "page_fault_other:",
    "push rdi",
    "mov edi, {page_fault}",
    "jmp vector_common",
    // gettimeofday, time, getcpu.
    "vsyscall_numbers: .short 96, 201, 309",

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
    to_loop!(),

    // rdi: Save's kernel_rsp. Goes to user code with its frame; returns at the next entry with the reason.
    ".balign 64",
    ".globl enter_user",
    "enter_user:",
    push_kept!(),
    "add rdi, {save_kernel_rsp}",
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
    push_kept!(),
    "mov [rdi], rsp",
    "mov rsp, rsi",
    pop_kept!(),
    "ret",
    ".popsection",
    kernel_trap = sym kernel_trap,
    stopping = sym STOPPING,
    syscall = const SYSCALL,
    sysenter = const SYSENTER,
    call_gate = const CALL_GATE,
    answered = const ANSWERED,
    answered_compat = const ANSWERED_COMPAT,
    debug = const DEBUG,
    invalid_opcode = const INVALID_OPCODE,
    page_fault = const PAGE_FAULT,
    int_native = const INT_NATIVE,
    int_compat = const INT_COMPAT,
    save_kernel_rsp = const offset_of!(Save, kernel_rsp),
    kernel_rsp = const from_base(offset_of!(Save, kernel_rsp)),
    thread = const from_base(offset_of!(Save, thread)),
    work = const from_base(offset_of!(Save, work)),
    native = const from_base(offset_of!(Save, native)),
    native_count = const from_base(offset_of!(Save, native_count)),
    compat = const from_base(offset_of!(Save, compat)),
    compat_count = const from_base(offset_of!(Save, compat_count)),
);

unsafe extern "C" {
    static vector_stubs: u8;
    fn nmi_entry();
    fn debug_entry();
    fn syscall_entry();
    fn syscall32_refused();
    fn sysenter_entry();
    fn call_gate_entry();
    fn int_entry();
    fn int80_entry();
    fn ud_plain();
    fn ud_plain_fetch();
    fn ud_guarded();
    fn ud_guarded_fetch();
    fn ud_long();
    fn vsyscall_plain();
    fn vsyscall_plain_fetch();
    fn vsyscall_guarded();
    fn vsyscall_guarded_fetch();
    fn vsyscall_unreadable();
    /// Goes to user code; answers why it came back: a vector, or one of the numbers above. The frame's address is canonical, its
    /// selectors are user selectors and its flags those user code may have: `iretq` must not fault here.
    pub fn enter_user(save: *mut Save) -> usize;
    /// Goes on on another stack; returns when somebody switches back.
    pub fn switch_stack(old: *mut usize, new: usize);
}

fn address(entry: unsafe extern "C" fn()) -> u64 {
    entry as *const () as u64
}

/// The address of a vector's stub; of the short way if a gate takes calls by the vector. `guarded`: the processor has SMAP.
pub fn stub(vector: u8, is_gate: bool, guarded: bool) -> u64 {
    match vector {
        NMI => address(nmi_entry),
        DEBUG => address(debug_entry),
        INVALID_OPCODE if is_gate => address(if guarded { ud_guarded } else { ud_plain }),
        PAGE_FAULT if is_gate => address(if guarded { vsyscall_guarded } else { vsyscall_plain }),
        INT_NATIVE if is_gate => address(int_entry),
        INT_COMPAT if is_gate => address(int80_entry),
        _ => &raw const vector_stubs as u64 + u64::from(vector) * 16,
    }
}

pub fn syscall_address() -> u64 {
    address(syscall_entry)
}

pub fn sysenter_address() -> u64 {
    address(sysenter_entry)
}

pub fn call_gate_address() -> u64 {
    address(call_gate_entry)
}

pub fn refused_address() -> u64 {
    address(syscall32_refused)
}

/// Where a fault of an entry that looks at user memory goes on, if `rip` is such a look.
pub fn fixup(rip: usize) -> Option<usize> {
    let looks: [(unsafe extern "C" fn(), unsafe extern "C" fn()); 4] = [
        (ud_plain_fetch, ud_long),
        (ud_guarded_fetch, ud_long),
        (vsyscall_plain_fetch, vsyscall_unreadable),
        (vsyscall_guarded_fetch, vsyscall_unreadable),
    ];
    let (_, long) = looks.into_iter().find(|(look, _)| address(*look) == rip as u64)?;
    Some(address(long) as usize)
}
