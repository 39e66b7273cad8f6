//! Entries of 32-bit programs: by `sysenter`, and on AMD's processors by `syscall`; and the return from both. Beyond that they
//! are the fast path of [`crate::short`], each plain and isolated.
//!
//! **Which program.** `sysenter` tells nothing of where it was executed, and a program of 64-bit code uses it by another convention. So
//! the processor is told which entry to take when a thread gets the core ([`crate::core::Core::set_program`]), by the kind of
//! program that exec made: something ring 3 cannot change by a far jump. A 32-bit program that executes it in 64-bit code goes on in
//! 32-bit code, at its landing place, as on Linux; 64-bit code that jumped to 32-bit code and executes it there goes on in 64-bit
//! code. Neither gets more than a frame of user selectors.
//!
//! **The return** is `sysretl` for both, as on Linux: `sysexit` would leave the flags to a `popfq` and an `sti`. It goes to the landing
//! place, whose code takes ecx and edx from the stack. The stack segment's hidden part is good then: this way is taken only by entries
//! that loaded it, with nothing in between that leaves it null.
//!
//! **Flags.** `sysenter` clears none but IF. A step that user code has set (TF) goes through the entry's first instructions, until it is
//! in the frame, where [`crate::entry`] lets it: so the program is stepped again behind the call.

use core::arch::global_asm;
use core::mem::offset_of;

use janua_port::guest::Verdict;

use crate::boot::{DIRECT, KERNEL_OFFSET};
use crate::entry::{ANSWERED_COMPAT, LAST_CALL, SYSCALL_COMPAT, SYSENTER_COMPAT, Save, from_base, push_kept, to_loop};

/// An instruction that opens or closes user memory, where the processor guards it (SMAP); its address is noted.
#[rustfmt::skip]
macro_rules! guard {
    ($instruction:literal) => {
        concat!("772:\n", $instruction, "\n.pushsection .guard_sites, \"a\", @progbits\n.quad 772b\n.popsection\n")
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

/// Saves arguments and number, takes the thread's kernel stack, which gets the functions' last argument. r11: base; `$second`: the register
/// of the second argument.
#[rustfmt::skip]
macro_rules! save {
    ($second:literal) => {
        concat!(
            "mov eax, eax\nmov [r11 - 8], rax\nmov [r11 - 16], rdi\nmov [r11 - 24], rsi\nmov [r11 - 32], rdx\n",
            "mov [r11 - 40], ", $second, "\nmov rsp, [r11 + {kernel_rsp}]\npush [r11 + {thread}]\n"
        )
    };
}

/// rax: number, r11: base, arguments where C functions have them. Makes the call and goes back, or to the label without a function.
#[rustfmt::skip]
macro_rules! call {
    ($mode:ident, $none:literal) => {
        concat!(
            // As in the other entries: a number beyond the end becomes the last, without a branch.
            "cmp rax, {last_call}\ncmova rax, [r11 + {none}]\n",
            "mov r10, [r11 + {functions}]\nmov rax, [r10 + rax*8]\ntest rax, rax\njz ", $none, "\n",
            "call rax\nmov rsp, gs:[24]\n",
            "mov rcx, [rsp + {work}]\nor edx, [rcx]\njne answered32\n",
            // TF and RF are for `iretq`.
            "mov r11, [rsp + 16]\ntest r11d, 0x10100\njnz answered32\n",
            "mov ecx, [rsp]\nmov edx, [rsp - 32]\nmov esi, [rsp - 24]\nmov edi, [rsp - 16]\n",
            leave!($mode)
        )
    };
}

/// The end of the return. What 32-bit code cannot see it may take along to 64-bit code: cleared.
macro_rules! leave {
    (plain) => {
        "mov rsp, [rsp + 24]\nxor r8d, r8d\nxor r9d, r9d\nxor r10d, r10d\nswapgs\nsysret\n"
    };
    (isolated) => {
        "mov r8, [rsp + 24]\nmov r9, gs:[40]\nmov cr3, r9\nmov rsp, r8\nxor r8d, r8d\nxor r9d, r9d\nxor r10d, r10d\nswapgs\nsysret\n"
    };
}

/// `sysenter`. Registers as for `int 0x80`, but that ebp is the stack pointer, and the sixth argument is what it points at.
#[rustfmt::skip]
macro_rules! sysenter32_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\nswapgs\n", kernel_root!($mode),
            "mov rsp, gs:[0]\nmov ebp, ebp\npush rbp\npushfq\nlea r11, [rsp - 16]\n",
            // The entry cleared IF; user code had it set.
            "or qword ptr [rsp], 0x200\nmov r8, [r11 + {landing}]\nmov [r11], r8\n",
            save!("rcx"), guard!("stac"),
            // Closes user memory (AC), and clears TF, DF and NT.
            $name, "_fetch:\nmov ebp, [rbp]\npush 2\npopfq\n", $name, "_stepped:\n",
            "mov r8d, edi\nmov r9d, ebp\nmov edi, ebx\nxchg ecx, esi\nmov edx, edx\n",
            call!($mode, "sysenter32_long")
        )
    };
}

/// `syscall`. ebp has the second argument, since ecx has the return address, which nobody wants; the sixth is on top of the stack. r11:
/// flags. TF, IF, DF, AC and NT are clear by SFMASK.
#[rustfmt::skip]
macro_rules! syscall32_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\nswapgs\nmov gs:[8], rsp\n", kernel_root!($mode),
            "mov rsp, gs:[0]\nmov [rsp - 16], r11\nlea r11, [rsp - 32]\nmov r8d, gs:[8]\nmov [r11 + 24], r8\n",
            "mov r9, [r11 + {landing}]\nmov [r11], r9\nmov ebp, ebp\n",
            save!("rbp"), guard!("stac"),
            $name, "_fetch:\nmov r9d, [r8]\n", guard!("clac"),
            "mov ecx, esi\nmov esi, ebp\nmov ebp, r9d\nmov r8d, edi\nmov edi, ebx\nmov edx, edx\n",
            call!($mode, "syscall32_long")
        )
    };
}

global_asm!(
    ".pushsection .text.entry, \"ax\", @progbits",
    ".globl isolated_sysenter32, isolated_sysenter32_fetch, sysenter32_entry, sysenter32_entry_fetch, fetch32_failed",
    ".globl isolated_syscall32, isolated_syscall32_fetch, syscall32_entry, syscall32_entry_fetch",
    // Between these a step goes on that user code has set: only the two entries' first parts ever see one.
    ".globl sysenter32_first, sysenter32_last",
    ".set sysenter32_first, isolated_sysenter32",
    ".set sysenter32_last, sysenter32_entry_stepped",

    sysenter32_entry!(isolated, "isolated_sysenter32"),
    sysenter32_entry!(plain, "sysenter32_entry"),
    syscall32_entry!(isolated, "isolated_syscall32"),
    syscall32_entry!(plain, "syscall32_entry"),

    "sysenter32_long:",
    "mov eax, {sysenter_compat}",
    "3:",
    "mov qword ptr [r11 - 48], -38",
    "4:",
    "xor ecx, ecx",
    "mov [r11 - 56], rcx",
    "mov [r11 - 64], rcx",
    "mov [r11 - 72], rcx",
    "mov [r11 - 80], rcx",
    "mov qword ptr [r11 + 8], 0x23",
    "mov qword ptr [r11 + 32], 0x2b",
    "lea rsp, [r11 - 80]",
    to_loop!(),
    "syscall32_long:",
    "mov eax, {syscall_compat}",
    "jmp 3b",
    // The sixth argument cannot be read: there is no call, and its result is EFAULT.
    "fetch32_failed:",
    "mov rsp, r11",
    "mov rax, -14",
    "xor edx, edx",
    // rsp: base, rax: result, edx: the verdict, among bits of work.
    "answered32:",
    "mov r11, rsp",
    "mov [r11 - 48], rax",
    "and edx, {verdict}",
    "lea eax, [rdx + {answered_compat}]",
    "jmp 4b",
    ".popsection",
    sysenter_compat = const SYSENTER_COMPAT,
    syscall_compat = const SYSCALL_COMPAT,
    answered_compat = const ANSWERED_COMPAT,
    verdict = const Verdict::BITS,
    landing = const from_base(offset_of!(Save, landing)),
    kernel_rsp = const from_base(offset_of!(Save, kernel_rsp)),
    thread = const from_base(offset_of!(Save, thread)),
    work = const from_base(offset_of!(Save, work)),
    functions = const from_base(offset_of!(Save, compat)),
    last_call = const LAST_CALL,
    none = const from_base(offset_of!(Save, none)),
);

unsafe extern "C" {
    fn isolated_sysenter32();
    fn isolated_sysenter32_fetch();
    fn sysenter32_entry();
    fn sysenter32_entry_fetch();
    fn isolated_syscall32();
    fn isolated_syscall32_fetch();
    fn syscall32_entry();
    fn syscall32_entry_fetch();
    fn fetch32_failed();
    /// Addresses of [`guard`]'s instructions; from the linker script.
    static guard_sites_start: usize;
    static guard_sites_end: usize;
}

fn address(entry: unsafe extern "C" fn()) -> u64 {
    entry as *const () as u64
}

pub fn sysenter_address(isolated: bool) -> u64 {
    address(if isolated { isolated_sysenter32 } else { sysenter32_entry })
}

pub fn syscall_address(isolated: bool) -> u64 {
    address(if isolated { isolated_syscall32 } else { syscall32_entry })
}

/// Where a fault of an entry that looks at user memory goes on, if `rip` is such a look.
pub fn fixup(rip: usize) -> Option<usize> {
    let fetches: [unsafe extern "C" fn(); 4] =
        [isolated_sysenter32_fetch, sysenter32_entry_fetch, isolated_syscall32_fetch, syscall32_entry_fetch];
    fetches.into_iter().any(|fetch| address(fetch) == rip as u64).then(|| address(fetch32_failed) as usize)
}

/// Takes out the instructions that a processor without SMAP does not know. Before the kernel's own tables are made, while there is
/// one core.
pub fn init(guarded: bool) {
    /// A `nop` as long as they are.
    const NOTHING: [u8; 3] = [0x0f, 0x1f, 0x00];
    if guarded {
        return;
    }
    // SAFETY: the linker's symbols bound the addresses. Each is of three bytes of this kernel's code, which nobody executes yet; all
    // memory is mapped writable at DIRECT.
    unsafe {
        let (mut site, end) = (&raw const guard_sites_start, &raw const guard_sites_end);
        while site < end {
            ((DIRECT + *site - KERNEL_OFFSET) as *mut [u8; 3]).write(NOTHING);
            site = site.add(1);
        }
    }
}
