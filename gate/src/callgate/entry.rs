//! The entry by a far call; plain and isolated.

use janua_entry::bare::CALL_GATE;
use janua_entry::{bare_clean_flags, bare_enter, bare_entries, bare_find_function, bare_gate_to_loop, bare_leave_by_iret, bare_make_call, bare_pushed, bare_save_scratch, bare_take_stack};

use crate::look::address;

/// The call gate. The processor has pushed ss, rsp, cs, rip, without flags, and left interrupts on: until `cli` is through, one may come,
/// from ring 0 with the user's GS, which is why `kernel_trap` uses none.
#[rustfmt::skip]
macro_rules! call_gate_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\npushfq\ncli\n", bare_enter!($mode), bare_save_scratch!(0), "mov [r11 - 8], rax\n",
            // Flags, rip and cs become rip, over the instruction that makes the call again, cs and flags.
            "mov rcx, ", bare_pushed!($mode, 0), "\nmov rax, ", bare_pushed!($mode, 16), "\nmov ", bare_pushed!($mode, 16), ", rcx\n",
            "mov rcx, ", bare_pushed!($mode, 8), "\nmov ", bare_pushed!($mode, 8), ", rax\nadd rcx, 2\nmov ", bare_pushed!($mode, 0), ", rcx\n",
            "mov rax, [r11 - 8]\n", bare_take_stack!(), bare_clean_flags!(),
            bare_find_function!("native", concat!($name, "_long")), bare_make_call!(concat!($name, "_returned")),
            bare_leave_by_iret!($mode),
            // The gate itself goes over that instruction.
            $name, "_long:\nsub qword ptr ", bare_pushed!($mode, 0), ", 2\nmov qword ptr [r11 - 48], -38\nmov eax, {reason}\n",
            bare_gate_to_loop!($mode),
            $name, "_returned:\nmov r11, rsp\nmov [r11 - 48], rax\nand edx, {verdict}\nlea eax, [rdx + {returned}]\n", bare_gate_to_loop!($mode)
        )
    };
}

bare_entries!(
    ".globl call_gate_entry, isolated_call_gate",
    call_gate_entry!(plain, "call_gate_entry"),
    call_gate_entry!(isolated, "isolated_call_gate");
    reason = const CALL_GATE,
);

unsafe extern "C" {
    fn call_gate_entry();
    fn isolated_call_gate();
}

/// Where the processor goes.
pub fn native(isolated: bool) -> usize {
    address(if isolated { isolated_call_gate } else { call_gate_entry })
}
