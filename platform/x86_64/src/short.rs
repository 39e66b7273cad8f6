//! The fast path: the gates' entries.
//!
//! Most calls answer at once and never look at a frame. Entries by the gates save what a C function may change, call the row's function
//! ([`janua_port::Plain`]) on the thread's kernel stack and go back: the loop never notices. All other calls, and those that leave work behind,
//! get a whole frame and go through the loop. So the entries here know the gates' conventions (`gate/src`), which remain the authority
//! for everything that does not take the fast path.
//!
//! The fast path of a gate exists twice: "plain", where what the processor has pushed is the end of the thread's frame, and
//! "isolated", with page-table isolation, where it lies at the end of the core's entry stack and stays there: a thread that leaves the
//! core meanwhile takes it along ([`crate::core::Core::exchange_pushed`]). Each piece has both.

use core::arch::global_asm;
use core::mem::offset_of;

use janua_port::guest::Verdict;

use crate::entry::{
    ANSWERED, ANSWERED_COMPAT, CALL_GATE, INT_COMPAT, INT_NATIVE, INVALID_OPCODE, LAST_CALL, PAGE_FAULT, SYSCALL, SYSENTER,
    Save, from_base, push_kept, to_loop,
};
use crate::entry32;

/// The entry of gates that are interrupts or exceptions: user code's words, and rsp is `$pushed` bytes below the base.
macro_rules! enter {
    (plain) => {
        "swapgs\n"
    };
    // Where the entry is a vector's that faults of the kernel share, and a prediction could be wrong about who comes.
    (plain, guessed) => {
        "swapgs\nlfence\n"
    };
    // A write of CR3 waits for everything before it.
    (isolated $(, guessed)?) => {
        "swapgs\nmov rsp, gs:[32]\nmov cr3, rsp\nmov rsp, gs:[24]\n"
    };
}

/// A word that the processor has pushed: its offset from the base. r11: base.
#[rustfmt::skip]
macro_rules! pushed {
    (plain, $offset:literal) => {
        concat!("[r11 + ", $offset, "]")
    };
    (isolated, $offset:literal) => {
        concat!("gs:[{pushed} + ", $offset, "]")
    };
}

/// Saves what a C function may change, but for rax, and makes r11 the base, which lies `$above` rsp. Interrupts are off: what
/// lies below rsp is safe.
#[rustfmt::skip]
macro_rules! save_scratch {
    ($above:literal) => {
        concat!("mov [rsp + ", $above, " - 80], r11\nlea r11, [rsp + ", $above, "]\nmov [r11 - 40], rcx\n", save_arguments!())
    };
}

macro_rules! save_arguments {
    () => {
        "mov [r11 - 16], rdi\nmov [r11 - 24], rsi\nmov [r11 - 32], rdx\nmov [r11 - 56], r8\nmov [r11 - 64], r9\nmov [r11 - 72], r10\n"
    };
}

/// r11: base. Takes the thread's kernel stack, which gets the functions' last argument.
macro_rules! take_stack {
    () => {
        "mov rsp, [r11 + {kernel_rsp}]\npush [r11 + {thread}]\n"
    };
}

/// Flags as the kernel has them: interrupts off; AC, DF and NT are user code's until then.
macro_rules! clean_flags {
    () => {
        "push 2\npopfq\n"
    };
}

/// rax: number, r11: base. Finds the function; jumps to the label when there is none. A number beyond the end becomes the last,
/// which is none, without a branch that could be foreseen wrongly.
#[rustfmt::skip]
macro_rules! find_function {
    ($functions:literal, $none:expr) => {
        concat!(
            "cmp rax, {last_call}\ncmova rax, [r11 + {none}]\n",
            "mov rcx, [r11 + {", $functions, "}]\nmov rax, [rcx + rax*8]\ntest rax, rax\njz ", $none, "\n"
        )
    };
}

/// Makes the call, with its fourth word where C functions have it; goes to the label when it left work. rsp is the base then.
#[rustfmt::skip]
macro_rules! make_call {
    ($work:expr) => {
        concat!("mov rcx, r10\n", make_short_call!($work))
    };
}

/// A call of three words at most.
#[rustfmt::skip]
macro_rules! make_short_call {
    ($work:expr) => {
        concat!(
            "call rax\nmov rsp, gs:[24]\n",
            "mov rcx, [rsp + {work}]\nor edx, [rcx]\njne ", $work, "\n"
        )
    };
}

macro_rules! load_arguments {
    () => {
        "mov r10, [rsp - 72]\nmov r9, [rsp - 64]\nmov r8, [rsp - 56]\nmov rdx, [rsp - 32]\nmov rsi, [rsp - 24]\nmov rdi, [rsp - 16]\n"
    };
}

/// rsp: base; rax: result. The exit of gates that leave rcx and r11 to the processor, whose words are in the frame. Neither TF nor RF
/// can be set by `sysretq` as `iretq` would: to the label with them. The return address is canonical.
#[rustfmt::skip]
macro_rules! leave_by_sysret {
    (plain, $flags:literal) => {
        concat!(
            "mov r11, [rsp + 16]\ntest r11d, 0x10100\njnz ", $flags, "\n", load_arguments!(),
            "mov rcx, [rsp]\nmov rsp, [rsp + 24]\nswapgs\nsysretq\n"
        )
    };
    (isolated, $flags:literal) => {
        concat!(
            "mov r11, [rsp + 16]\ntest r11d, 0x10100\njnz ", $flags, "\n", load_arguments!(),
            "mov rcx, [rsp + 24]\nmov gs:[8], rcx\nmov rcx, [rsp]\n",
            "mov rsp, gs:[40]\nmov cr3, rsp\nmov rsp, gs:[8]\nswapgs\nsysretq\n"
        )
    };
}

/// rsp: base; rax: result. The exit of all others.
#[rustfmt::skip]
macro_rules! leave_by_iret {
    (plain) => {
        concat!("mov r11, [rsp - 80]\nmov rcx, [rsp - 40]\n", load_arguments!(), "swapgs\niretq\n")
    };
    (isolated) => {
        concat!(
            "mov r11, [rsp - 80]\nmov rcx, [rsp - 40]\n", load_arguments!(),
            "mov rsp, gs:[40]\nmov cr3, rsp\nmov rsp, gs:[64]\nswapgs\niretq\n"
        )
    };
}

/// Completes the frame by what the processor has pushed; r11: base.
#[rustfmt::skip]
macro_rules! fetch_pushed {
    (plain) => {
        ""
    };
    (isolated) => {
        concat!(
            "lea rsp, [r11 + 40]\npush gs:[{pushed} + 32]\npush gs:[{pushed} + 24]\npush gs:[{pushed} + 16]\n",
            "push gs:[{pushed} + 8]\npush gs:[{pushed}]\n"
        )
    };
}

/// Goes to the loop with the reason in eax; r11: base, and all registers of the frame above that of rbx are saved.
#[rustfmt::skip]
macro_rules! gate_to_loop {
    ($mode:ident) => {
        concat!(fetch_pushed!($mode), "lea rsp, [r11 - 80]\n", to_loop!())
    };
}

/// The fast path's two ends in the loop, for gates whose number is in orig_rax: "NAME_long" without a function, as the vector's own stub
/// has it (rax as user code had it, no error code), with the reason `$reason`; "NAME_answered" with work left (rsp: base, rax:
/// result, edx: the verdict, among bits of work).
#[rustfmt::skip]
macro_rules! gate_ends {
    ($mode:ident, $name:expr, $reason:literal, $answered:literal) => {
        concat!(
            $name, "_long:\nmov rcx, [r11 - 8]\nmov [r11 - 48], rcx\nmov qword ptr [r11 - 8], 0\nmov eax, ", $reason, "\n",
            gate_to_loop!($mode),
            $name, "_answered:\nmov r11, rsp\nmov [r11 - 48], rax\nand edx, {verdict}\nlea eax, [rdx + ", $answered, "]\n", gate_to_loop!($mode)
        )
    };
}

/// `syscall`. rcx: return address, r11: flags. TF, IF, DF, AC and NT are clear by SFMASK. The address is canonical: it follows an
/// instruction of user code, which never lies at the end of the lower half.
#[rustfmt::skip]
macro_rules! syscall_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\nswapgs\nmov gs:[8], rsp\n", kernel_root!($mode),
            "mov rsp, gs:[0]\npush gs:[8]\nmov [rsp - 8], r11\nlea r11, [rsp - 24]\n",
            "mov [r11], rcx\nmov [r11 - 8], rax\n", save_arguments!(), take_stack!(),
            find_function!("native", "syscall_long"), make_call!("syscall_answered"),
            leave_by_sysret!($mode, "syscall_answered")
        )
    };
}

/// `sysenter`. Nothing is saved by the processor: the return address is in rcx, the stack pointer in r11. Interrupts are off, the
/// other flags are user code's, but for TF, which the trap it brought has cleared.
#[rustfmt::skip]
macro_rules! sysenter_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\nswapgs\n", kernel_root!($mode),
            "mov rsp, gs:[0]\npush r11\npushfq\nlea r11, [rsp - 16]\n",
            // The entry cleared IF; user code had it set.
            "or qword ptr [rsp], 0x200\n",
            "mov [r11], rcx\nmov [r11 - 8], rax\n", save_arguments!(), take_stack!(), clean_flags!(),
            // Not canonical, or not of the lower half: for the loop to refuse.
            "cmp rcx, gs:[72]\njae sysenter_long\n",
            find_function!("native", "sysenter_long"), make_call!("sysenter_answered"),
            leave_by_sysret!($mode, "sysenter_answered")
        )
    };
}

/// With isolation: the kernel's tables. rsp is free.
macro_rules! kernel_root {
    (plain) => {
        ""
    };
    (isolated) => {
        "mov rsp, gs:[32]\nmov cr3, rsp\n"
    };
}

/// `int 0x30`. Only user code raises it.
#[rustfmt::skip]
macro_rules! int_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\n", enter!($mode), clean_flags!(), save_scratch!(0), "mov [r11 - 8], rax\n", take_stack!(),
            find_function!("native", concat!($name, "_long")), make_call!(concat!($name, "_answered")),
            leave_by_iret!($mode),
            gate_ends!($mode, $name, "{int_native}", "{answered}")
        )
    };
}

/// `int 0x80`: the i386 ABI, whose words are the lower halves of ebx, ecx, edx, esi, edi, ebp.
#[rustfmt::skip]
macro_rules! int80_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\n", enter!($mode), clean_flags!(), "mov eax, eax\n", save_scratch!(0), "mov [r11 - 8], rax\n",
            "mov r8d, edi\nmov r9d, ebp\nmov r10d, esi\nmov edi, ebx\nmov esi, ecx\nmov edx, edx\n", take_stack!(),
            find_function!("compat", concat!($name, "_long")), make_call!(concat!($name, "_answered")),
            leave_by_iret!($mode),
            gate_ends!($mode, $name, "{int_compat}", "{answered_compat}")
        )
    };
}

/// The call gate. The processor has pushed ss, rsp, cs, rip, without flags, and left interrupts on: until `cli` is through, one may come,
/// from ring 0 with the user's GS, which is why `kernel_trap` uses none.
#[rustfmt::skip]
macro_rules! call_gate_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\npushfq\ncli\n", enter!($mode), save_scratch!(0), "mov [r11 - 8], rax\n",
            // Flags, rip and cs become rip, over the instruction that makes the call again, cs and flags.
            "mov rcx, ", pushed!($mode, 0), "\nmov rax, ", pushed!($mode, 16), "\nmov ", pushed!($mode, 16), ", rcx\n",
            "mov rcx, ", pushed!($mode, 8), "\nmov ", pushed!($mode, 8), ", rax\nadd rcx, 2\nmov ", pushed!($mode, 0), ", rcx\n",
            "mov rax, [r11 - 8]\n", take_stack!(), clean_flags!(),
            find_function!("native", concat!($name, "_long")), make_call!(concat!($name, "_answered")),
            leave_by_iret!($mode),
            // The gate itself goes over that instruction.
            $name, "_long:\nsub qword ptr ", pushed!($mode, 0), ", 2\nmov qword ptr [r11 - 48], -38\nmov eax, {call_gate}\n",
            gate_to_loop!($mode),
            $name, "_answered:\nmov r11, rsp\nmov [r11 - 48], rax\nand edx, {verdict}\nlea eax, [rdx + {answered}]\n", gate_to_loop!($mode)
        )
    };
}

/// Exception 6 and its guest's instruction: a call if that is LOCK NOP. Twice, since a processor with SMAP must open user memory
/// to look.
#[rustfmt::skip]
macro_rules! ud_entry {
    ($mode:ident, $name:literal, $open:literal) => {
        concat!(
            ".balign 64\n.globl ", $name, ", ", $name, "_fetch, ", $name, "_long\n",
            $name, ":\ntest byte ptr [rsp + 8], 3\njz vector_stubs + 6*16\n",
            enter!($mode, guessed), save_scratch!(0), "mov [r11 - 8], rax\n", take_stack!(),
            "mov rcx, ", pushed!($mode, 0), "\n", $open, "\n",
            $name, "_fetch:\ncmp word ptr [rcx], 0x90f0\njne ", $name, "_long\n", clean_flags!(),
            find_function!("native", concat!($name, "_long")),
            "add qword ptr ", pushed!($mode, 0), ", 2\n",
            make_call!(concat!($name, "_answered")), leave_by_iret!($mode),
            gate_ends!($mode, $name, "{invalid_opcode}", "{answered}")
        )
    };
}

/// Page faults: a call if the next instruction is the first of a function of the vsyscall page. That page is not mapped then, so the fault was
/// the fetch. Such a call has three words at most. The frame is changed only when nothing can fail any more.
#[rustfmt::skip]
macro_rules! vsyscall_entry {
    ($mode:ident, $name:literal, $above:literal, $open:literal) => {
        concat!(
            ".balign 64\n.globl ", $name, ", ", $name, "_fetch, ", $name, "_unreadable\n",
            $name, ":\ntest byte ptr [rsp + 16], 3\njz vector_stubs + 14*16\n",
            enter!($mode, guessed), save_scratch!($above), "mov [r11 - 48], rax\n",
            // The offset in the page, over 1024, is the function; other offsets become large by the rotation.
            "mov rax, ", pushed!($mode, 0), "\nadd rax, 0xa00000\nror rax, 10\ncmp rax, 3\njae ", $name, "_long\n",
            "movzx r10d, word ptr gs:[rax*2 + 80]\n",
            "mov rcx, [r11 + {native}]\nmov rax, [rcx + r10*8]\ntest rax, rax\njz ", $name, "_long\n",
            // The return address, from the user's stack.
            "mov rcx, ", pushed!($mode, 24), "\ncmp rcx, gs:[72]\njae ", $name, "_long\n", take_stack!(), $open, "\n",
            $name, "_fetch:\nmov rcx, [rcx]\n", clean_flags!(), "cmp rcx, gs:[72]\njae ", $name, "_unreadable\n",
            "mov ", pushed!($mode, 0), ", rcx\nadd qword ptr ", pushed!($mode, 24), ", 8\nmov [r11 - 8], r10\n",
            make_short_call!(concat!($name, "_answered")), leave_by_iret!($mode),
            // A fault of the look at the stack has taken the address's place.
            $name, "_unreadable:\nmov rax, ", pushed!($mode, 0), "\nmov cr2, rax\n",
            $name, "_long:\n", fetch_error!($mode), "mov eax, {page_fault}\n", gate_to_loop!($mode),
            $name, "_answered:\nmov r11, rsp\nmov [r11 - 48], rax\nand edx, {verdict}\nlea eax, [rdx + {answered}]\n", gate_to_loop!($mode)
        )
    };
}

/// The error code, to the place of the number.
macro_rules! fetch_error {
    (plain) => {
        ""
    };
    (isolated) => {
        "mov rcx, gs:[{pushed} - 8]\nmov [r11 - 8], rcx\n"
    };
}

global_asm!(
    ".pushsection .text.entry, \"ax\", @progbits",
    ".globl syscall_entry, sysenter_entry, call_gate_entry, int_entry, int80_entry",
    ".globl isolated_syscall, isolated_sysenter, isolated_call_gate, isolated_int, isolated_int80",

    syscall_entry!(plain, "syscall_entry"),
    syscall_entry!(isolated, "isolated_syscall"),
    "syscall_long:",
    "mov qword ptr [r11 - 48], -38",
    "mov eax, {syscall}",
    "4:",
    "mov rcx, [r11 + 16]",
    "mov [r11 - 80], rcx",
    "5:",
    "mov rcx, [r11]",
    "mov [r11 - 40], rcx",
    "mov qword ptr [r11 + 8], 0x33",
    "mov qword ptr [r11 + 32], 0x2b",
    "lea rsp, [r11 - 80]",
    to_loop!(),
    "syscall_answered:",
    "mov r11, rsp",
    "mov [r11 - 48], rax",
    "and edx, {verdict}",
    "lea eax, [rdx + {answered}]",
    "jmp 4b",

    sysenter_entry!(plain, "sysenter_entry"),
    sysenter_entry!(isolated, "isolated_sysenter"),
    "sysenter_long:",
    "mov qword ptr [r11 - 48], -38",
    "mov eax, {sysenter}",
    "6:",
    // The register as it was: a call that is made again needs it.
    "mov rcx, [r11 + 24]",
    "mov [r11 - 80], rcx",
    "jmp 5b",
    "sysenter_answered:",
    "mov r11, rsp",
    "mov [r11 - 48], rax",
    "and edx, {verdict}",
    "lea eax, [rdx + {answered}]",
    "jmp 6b",

    call_gate_entry!(plain, "call_gate_entry"),
    call_gate_entry!(isolated, "isolated_call_gate"),
    int_entry!(plain, "int_entry"),
    int_entry!(isolated, "isolated_int"),
    int80_entry!(plain, "int80_entry"),
    int80_entry!(isolated, "isolated_int80"),
    ud_entry!(plain, "ud_plain", ""),
    ud_entry!(plain, "ud_guarded", "stac"),
    ud_entry!(isolated, "isolated_ud_plain", ""),
    ud_entry!(isolated, "isolated_ud_guarded", "stac"),
    vsyscall_entry!(plain, "vsyscall_plain", 8, ""),
    vsyscall_entry!(plain, "vsyscall_guarded", 8, "stac"),
    vsyscall_entry!(isolated, "isolated_vsyscall_plain", 0, ""),
    vsyscall_entry!(isolated, "isolated_vsyscall_guarded", 0, "stac"),
    ".popsection",
    syscall = const SYSCALL,
    sysenter = const SYSENTER,
    call_gate = const CALL_GATE,
    answered = const ANSWERED,
    answered_compat = const ANSWERED_COMPAT,
    verdict = const Verdict::BITS,
    invalid_opcode = const INVALID_OPCODE,
    page_fault = const PAGE_FAULT,
    int_native = const INT_NATIVE,
    int_compat = const INT_COMPAT,
    kernel_rsp = const from_base(offset_of!(Save, kernel_rsp)),
    thread = const from_base(offset_of!(Save, thread)),
    work = const from_base(offset_of!(Save, work)),
    native = const from_base(offset_of!(Save, native)),
    compat = const from_base(offset_of!(Save, compat)),
    none = const from_base(offset_of!(Save, none)),
    last_call = const LAST_CALL,
    pushed = const crate::core::PUSHED,
);

/// An entry that looks at user memory: where it does, and where it goes on when that fails.
struct Look {
    entry: unsafe extern "C" fn(),
    fetch: unsafe extern "C" fn(),
    failed: unsafe extern "C" fn(),
}

/// Declares them.
macro_rules! looks {
    ($($(#[$doc:meta])* $table:ident: $(($entry:ident, $fetch:ident, $failed:ident),)*;)*) => {
        unsafe extern "C" {
            $($(fn $entry(); fn $fetch(); fn $failed();)*)*
        }
        $($(#[$doc])* static $table: [Look; 4] = [$(Look { entry: $entry, fetch: $fetch, failed: $failed }),*];)*
    };
}

looks! {
    /// Of [`INVALID_OPCODE`]: plain and isolated, each without SMAP and with it.
    UD:
        (ud_plain, ud_plain_fetch, ud_plain_long),
        (ud_guarded, ud_guarded_fetch, ud_guarded_long),
        (isolated_ud_plain, isolated_ud_plain_fetch, isolated_ud_plain_long),
        (isolated_ud_guarded, isolated_ud_guarded_fetch, isolated_ud_guarded_long),;
    /// Of [`PAGE_FAULT`].
    VSYSCALL:
        (vsyscall_plain, vsyscall_plain_fetch, vsyscall_plain_unreadable),
        (vsyscall_guarded, vsyscall_guarded_fetch, vsyscall_guarded_unreadable),
        (isolated_vsyscall_plain, isolated_vsyscall_plain_fetch, isolated_vsyscall_plain_unreadable),
        (isolated_vsyscall_guarded, isolated_vsyscall_guarded_fetch, isolated_vsyscall_guarded_unreadable),;
}

unsafe extern "C" {
    fn syscall_entry();
    fn sysenter_entry();
    fn call_gate_entry();
    fn int_entry();
    fn int80_entry();
    fn isolated_syscall();
    fn isolated_sysenter();
    fn isolated_call_gate();
    fn isolated_int();
    fn isolated_int80();
}

fn address(entry: unsafe extern "C" fn()) -> u64 {
    entry as *const () as u64
}

/// The fast path of a vector by which a gate takes calls. `guarded`: the processor has SMAP.
pub fn gate(vector: u8, isolated: bool, guarded: bool) -> Option<u64> {
    let look = |looks: &[Look; 4]| looks[usize::from(isolated) * 2 + usize::from(guarded)].entry;
    Some(address(match vector {
        INVALID_OPCODE => look(&UD),
        PAGE_FAULT => look(&VSYSCALL),
        INT_NATIVE => {
            if isolated {
                isolated_int
            } else {
                int_entry
            }
        }
        INT_COMPAT => {
            if isolated {
                isolated_int80
            } else {
                int80_entry
            }
        }
        _ => return None,
    }))
}

pub fn syscall_address(isolated: bool) -> u64 {
    address(if isolated { isolated_syscall } else { syscall_entry })
}

pub fn sysenter_address(isolated: bool) -> u64 {
    address(if isolated { isolated_sysenter } else { sysenter_entry })
}

pub fn call_gate_address(isolated: bool) -> u64 {
    address(if isolated { isolated_call_gate } else { call_gate_entry })
}

/// Where a fault of an entry that looks at user memory goes on, if `rip` is such a look.
pub fn fixup(rip: usize) -> Option<usize> {
    let failed = match UD.iter().chain(&VSYSCALL).find(|look| address(look.fetch) == rip as u64) {
        Some(look) => address(look.failed) as usize,
        None => return entry32::fixup(rip),
    };
    Some(failed)
}
