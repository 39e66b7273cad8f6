//! The entries by software interrupts; each plain and isolated.

use janua_entry::{bare_clean_flags, bare_enter, bare_entries, bare_find_function, bare_gate_ends, bare_leave_by_iret, bare_make_call, bare_save_scratch, bare_take_stack};

use super::{COMPAT, NATIVE};
use crate::look::address;

/// `int 0x30`. Only user code raises it.
#[rustfmt::skip]
macro_rules! int_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\n", bare_enter!($mode), bare_clean_flags!(), bare_save_scratch!(0), "mov [r11 - 8], rax\n", bare_take_stack!(),
            bare_find_function!("native", concat!($name, "_long")), bare_make_call!(concat!($name, "_returned")),
            bare_leave_by_iret!($mode),
            bare_gate_ends!($mode, $name, "{reason}", "{returned}")
        )
    };
}

/// `int 0x80`: the i386 ABI, whose words are the lower halves of ebx, ecx, edx, esi, edi, ebp.
#[rustfmt::skip]
macro_rules! int80_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\n", bare_enter!($mode), bare_clean_flags!(), "mov eax, eax\n", bare_save_scratch!(0), "mov [r11 - 8], rax\n",
            "mov r8d, edi\nmov r9d, ebp\nmov r10d, esi\nmov edi, ebx\nmov esi, ecx\nmov edx, edx\n", bare_take_stack!(),
            bare_find_function!("compat", concat!($name, "_long")), bare_make_call!(concat!($name, "_returned")),
            bare_leave_by_iret!($mode),
            bare_gate_ends!($mode, $name, "{compat_reason}", "{returned_compat}")
        )
    };
}

bare_entries!(
    ".globl int_entry, isolated_int, int80_entry, isolated_int80",
    int_entry!(plain, "int_entry"),
    int_entry!(isolated, "isolated_int"),
    int80_entry!(plain, "int80_entry"),
    int80_entry!(isolated, "isolated_int80");
    reason = const NATIVE,
    compat_reason = const COMPAT,
);

unsafe extern "C" {
    fn int_entry();
    fn isolated_int();
    fn int80_entry();
    fn isolated_int80();
}

/// Where the processor goes by `int 0x30`.
pub fn native(isolated: bool) -> usize {
    address(if isolated { isolated_int } else { int_entry })
}

/// Where it goes by `int 0x80`.
pub fn compat(isolated: bool) -> usize {
    address(if isolated { isolated_int80 } else { int80_entry })
}
