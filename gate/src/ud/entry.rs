//! The entry by an invalid instruction; plain and isolated, each without SMAP and with it.

use janua_entry::{bare_clean_flags, bare_enter, bare_entries, bare_find_function, bare_gate_ends, bare_leave_by_iret, bare_make_call, bare_pushed, bare_save_scratch, bare_take_stack};

use super::INVALID_OPCODE;
use crate::look::{Look, looks};

/// Exception 6 and its guest's instruction: a call if that is LOCK NOP. Twice, since a processor with SMAP must open user memory
/// to look.
#[rustfmt::skip]
macro_rules! ud_entry {
    ($mode:ident, $name:literal, $open:literal) => {
        concat!(
            ".balign 64\n.globl ", $name, ", ", $name, "_fetch, ", $name, "_long\n",
            $name, ":\ntest byte ptr [rsp + 8], 3\njz vector_stubs + 6*16\n",
            bare_enter!($mode, guessed), bare_save_scratch!(0), "mov [r11 - 8], rax\n", bare_take_stack!(),
            "mov rcx, ", bare_pushed!($mode, 0), "\n", $open, "\n",
            $name, "_fetch:\ncmp word ptr [rcx], 0x90f0\njne ", $name, "_long\n", bare_clean_flags!(),
            bare_find_function!("native", concat!($name, "_long")),
            "add qword ptr ", bare_pushed!($mode, 0), ", 2\n",
            bare_make_call!(concat!($name, "_returned")), bare_leave_by_iret!($mode),
            bare_gate_ends!($mode, $name, "{reason}", "{returned}")
        )
    };
}

bare_entries!(
    ud_entry!(plain, "ud_plain", ""),
    ud_entry!(plain, "ud_guarded", "stac"),
    ud_entry!(isolated, "isolated_ud_plain", ""),
    ud_entry!(isolated, "isolated_ud_guarded", "stac");
    reason = const INVALID_OPCODE,
);

/// Plain and isolated, each without SMAP and with it.
static LOOKS: [Look; 4] = looks![
    (ud_plain, ud_plain_fetch, ud_plain_long),
    (ud_guarded, ud_guarded_fetch, ud_guarded_long),
    (isolated_ud_plain, isolated_ud_plain_fetch, isolated_ud_plain_long),
    (isolated_ud_guarded, isolated_ud_guarded_fetch, isolated_ud_guarded_long),
];

/// Where the processor goes. `guarded`: it has SMAP.
pub fn native(isolated: bool, guarded: bool) -> usize {
    LOOKS[usize::from(isolated) * 2 + usize::from(guarded)].entry()
}

/// Where a fault of the look at user memory goes on, if `pc` is such a look.
pub fn fixup(pc: usize) -> Option<usize> {
    LOOKS.iter().find_map(|look| look.failed(pc))
}
