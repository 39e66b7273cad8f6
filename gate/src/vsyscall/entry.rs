//! The entry by a fetch from the vsyscall page; plain and isolated, each without SMAP and with it.

use janua_entry::bare::VSYSCALL_NUMBERS;
use janua_entry::{bare_clean_flags, bare_enter, bare_entries, bare_gate_to_loop, bare_leave_by_iret, bare_make_short_call, bare_pushed, bare_save_scratch, bare_take_stack};

use super::PAGE_FAULT;
use crate::look::{Look, looks};

/// Page faults: a call if the next instruction is the first of a function of the vsyscall page. That page is not mapped then, so the fault was
/// the fetch. Such a call has three words at most. The frame is changed only when nothing can fail any more.
#[rustfmt::skip]
macro_rules! vsyscall_entry {
    ($mode:ident, $name:literal, $above:literal, $open:literal) => {
        concat!(
            ".balign 64\n.globl ", $name, ", ", $name, "_fetch, ", $name, "_unreadable\n",
            $name, ":\ntest byte ptr [rsp + 16], 3\njz vector_stubs + 14*16\n",
            bare_enter!($mode, guessed), bare_save_scratch!($above), "mov [r11 - 48], rax\n",
            // The offset in the page, over 1024, is the function; other offsets become large by the rotation.
            "mov rax, ", bare_pushed!($mode, 0), "\nadd rax, 0xa00000\nror rax, 10\ncmp rax, 3\njae ", $name, "_long\n",
            "movzx r10d, word ptr gs:[rax*2 + {numbers}]\n",
            "mov rcx, [r11 + {native}]\nmov rax, [rcx + r10*8]\ntest rax, rax\njz ", $name, "_long\n",
            // The return address, from the user's stack.
            "mov rcx, ", bare_pushed!($mode, 24), "\ncmp rcx, gs:[72]\njae ", $name, "_long\n", bare_take_stack!(), $open, "\n",
            $name, "_fetch:\nmov rcx, [rcx]\n", bare_clean_flags!(), "cmp rcx, gs:[72]\njae ", $name, "_unreadable\n",
            "mov ", bare_pushed!($mode, 0), ", rcx\nadd qword ptr ", bare_pushed!($mode, 24), ", 8\nmov [r11 - 8], r10\n",
            bare_make_short_call!(concat!($name, "_returned")), bare_leave_by_iret!($mode),
            // A fault of the look at the stack has taken the address's place.
            $name, "_unreadable:\nmov rax, ", bare_pushed!($mode, 0), "\nmov cr2, rax\n",
            $name, "_long:\n", fetch_error!($mode), "mov eax, {reason}\n", bare_gate_to_loop!($mode),
            $name, "_returned:\nmov r11, rsp\nmov [r11 - 48], rax\nand edx, {verdict}\nlea eax, [rdx + {returned}]\n", bare_gate_to_loop!($mode)
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

bare_entries!(
    vsyscall_entry!(plain, "vsyscall_plain", 8, ""),
    vsyscall_entry!(plain, "vsyscall_guarded", 8, "stac"),
    vsyscall_entry!(isolated, "isolated_vsyscall_plain", 0, ""),
    vsyscall_entry!(isolated, "isolated_vsyscall_guarded", 0, "stac");
    reason = const PAGE_FAULT,
    numbers = const VSYSCALL_NUMBERS,
);

/// Plain and isolated, each without SMAP and with it.
static LOOKS: [Look; 4] = looks![
    (vsyscall_plain, vsyscall_plain_fetch, vsyscall_plain_unreadable),
    (vsyscall_guarded, vsyscall_guarded_fetch, vsyscall_guarded_unreadable),
    (isolated_vsyscall_plain, isolated_vsyscall_plain_fetch, isolated_vsyscall_plain_unreadable),
    (isolated_vsyscall_guarded, isolated_vsyscall_guarded_fetch, isolated_vsyscall_guarded_unreadable),
];

/// Where the processor goes. `guarded`: it has SMAP.
pub fn native(isolated: bool, guarded: bool) -> usize {
    LOOKS[usize::from(isolated) * 2 + usize::from(guarded)].entry()
}

/// Where a fault of the look at user memory goes on, if `pc` is such a look.
pub fn fixup(pc: usize) -> Option<usize> {
    LOOKS.iter().find_map(|look| look.failed(pc))
}
