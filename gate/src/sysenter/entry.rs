//! The entries by `sysenter`, of programs of 64-bit code and of 32-bit programs; each plain and isolated.
//!
//! **Which program.** `sysenter` does not save where it was executed, and a program of 64-bit code uses it by another convention. So
//! the processor is given the entry to take when a thread gets the core (`platform/x86_64/src/core.rs:Core::set_program`), by the kind of
//! program that exec made: something ring 3 cannot change by a far jump. A 32-bit program that executes it in 64-bit code goes on in
//! 32-bit code, at its landing place, as on Linux; 64-bit code that jumped to 32-bit code and executes it there goes on in 64-bit
//! code. Neither gets more than a frame of user selectors.
//!
//! **The return** of a 32-bit program is `sysretl`, as on Linux: `sysexit` would leave the flags to a `popfq` and an `sti`. It goes to the landing
//! place, whose code takes ecx and edx from the stack. The stack segment's hidden part is good then: this way is taken only by entries
//! that loaded it, with nothing in between that leaves it null.
//!
//! **Flags.** `sysenter` clears none but IF. A step that user code has set (TF) goes through the 32-bit entry's first instructions, until it
//! is in the frame, where `platform/x86_64/src/entry.rs` lets it: so the program is stepped again behind the call.

use janua_entry::bare::{SYSENTER, SYSENTER_COMPAT};
use janua_entry::{bare_call32, bare_clean_flags, bare_ends32, bare_entries, bare_find_function, bare_guard, bare_kernel_root, bare_leave_by_sysret, bare_make_call, bare_save32, bare_save_arguments, bare_sysret_ends, bare_take_stack};

use crate::look::address;

/// `sysenter`. Nothing is saved by the processor: the return address is in rcx, the stack pointer in r11. Interrupts are off, the
/// other flags are user code's, but for TF, which the trap it brought has cleared.
#[rustfmt::skip]
macro_rules! sysenter_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\nswapgs\n", bare_kernel_root!($mode),
            "mov rsp, gs:[0]\npush r11\npushfq\nlea r11, [rsp - 16]\n",
            // The entry cleared IF; user code had it set.
            "or qword ptr [rsp], 0x200\n",
            "mov [r11], rcx\nmov [r11 - 8], rax\n", bare_save_arguments!(), bare_take_stack!(), bare_clean_flags!(),
            // Not canonical, or not of the lower half: for the loop to refuse.
            "cmp rcx, gs:[72]\njae sysenter_long\n",
            bare_find_function!("native", "sysenter_long"), bare_make_call!("sysenter_returned"),
            bare_leave_by_sysret!($mode, "sysenter_returned")
        )
    };
}

/// `sysenter`. Registers as for `int 0x80`, but that ebp is the stack pointer, and the sixth argument is what it points at.
#[rustfmt::skip]
macro_rules! sysenter32_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\nswapgs\n", bare_kernel_root!($mode),
            "mov rsp, gs:[0]\nmov ebp, ebp\npush rbp\npushfq\nlea r11, [rsp - 16]\n",
            // The entry cleared IF; user code had it set.
            "or qword ptr [rsp], 0x200\nmov r8, [r11 + {landing}]\nmov [r11], r8\n",
            bare_save32!("rcx"), bare_guard!("stac"),
            // Closes user memory (AC), and clears TF, DF and NT.
            $name, "_fetch:\nmov ebp, [rbp]\npush 2\npopfq\n", $name, "_stepped:\n",
            "mov r8d, edi\nmov r9d, ebp\nmov edi, ebx\nxchg ecx, esi\nmov edx, edx\n",
            bare_call32!($mode, "sysenter32")
        )
    };
}

bare_entries!(
    ".globl sysenter_entry, isolated_sysenter",
    ".globl isolated_sysenter32, isolated_sysenter32_fetch, sysenter32_entry, sysenter32_entry_fetch",
    // Between these a step goes on that user code has set: only the two entries' first parts ever see one.
    ".globl sysenter32_first, sysenter32_last",
    ".set sysenter32_first, isolated_sysenter32",
    ".set sysenter32_last, sysenter32_entry_stepped",
    sysenter_entry!(plain, "sysenter_entry"),
    sysenter_entry!(isolated, "isolated_sysenter"),
    // The register as it was: a call that is made again needs it.
    bare_sysret_ends!("sysenter", "{reason}", 24),
    sysenter32_entry!(isolated, "isolated_sysenter32"),
    sysenter32_entry!(plain, "sysenter32_entry"),
    bare_ends32!("sysenter32", "{compat_reason}");
    reason = const SYSENTER,
    compat_reason = const SYSENTER_COMPAT,
);

unsafe extern "C" {
    fn sysenter_entry();
    fn isolated_sysenter();
    fn sysenter32_entry();
    fn isolated_sysenter32();
    fn sysenter32_entry_fetch();
    fn isolated_sysenter32_fetch();
    fn sysenter32_failed();
}

/// Where the processor goes while a program of 64-bit code has the core.
pub fn native(isolated: bool) -> usize {
    address(if isolated { isolated_sysenter } else { sysenter_entry })
}

/// Where it goes while a 32-bit program has it.
pub fn compat(isolated: bool) -> usize {
    address(if isolated { isolated_sysenter32 } else { sysenter32_entry })
}

/// Where a fault of the look at the sixth argument goes on, if `pc` is such a look.
pub fn fixup(pc: usize) -> Option<usize> {
    [isolated_sysenter32_fetch, sysenter32_entry_fetch].into_iter().any(|fetch| address(fetch) == pc).then(|| address(sysenter32_failed))
}
