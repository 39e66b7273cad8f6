//! The entries by `syscall`, of 64-bit code and of 32-bit programs; each plain and isolated.
//!
//! The return of the latter is `sysretl`, as on Linux. It goes to the landing place, whose code takes ecx and edx from the stack. The stack
//! segment's hidden part is good then: this way is taken only by entries that loaded it, with nothing in between that leaves it null.

use janua_entry::bare::{SYSCALL, SYSCALL_COMPAT};
use janua_entry::{bare_call32, bare_ends32, bare_entries, bare_find_function, bare_guard, bare_kernel_root, bare_leave_by_sysret, bare_make_call, bare_save32, bare_save_arguments, bare_sysret_ends, bare_take_stack};

use crate::look::address;

/// `syscall`. rcx: return address, r11: flags. TF, IF, DF, AC and NT are clear by SFMASK. The address is canonical: it follows an
/// instruction of user code, which never is at the end of the lower half.
#[rustfmt::skip]
macro_rules! syscall_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\nswapgs\nmov gs:[8], rsp\n", bare_kernel_root!($mode),
            "mov rsp, gs:[0]\npush gs:[8]\nmov [rsp - 8], r11\nlea r11, [rsp - 24]\n",
            "mov [r11], rcx\nmov [r11 - 8], rax\n", bare_save_arguments!(), bare_take_stack!(),
            bare_find_function!("native", "syscall_long"), bare_make_call!("syscall_returned"),
            bare_leave_by_sysret!($mode, "syscall_returned")
        )
    };
}

/// `syscall`. ebp has the second argument, since ecx has the return address, which nobody wants; the sixth is on top of the stack. r11:
/// flags. TF, IF, DF, AC and NT are clear by SFMASK.
#[rustfmt::skip]
macro_rules! syscall32_entry {
    ($mode:ident, $name:literal) => {
        concat!(
            ".balign 64\n", $name, ":\nswapgs\nmov gs:[8], rsp\n", bare_kernel_root!($mode),
            "mov rsp, gs:[0]\nmov [rsp - 16], r11\nlea r11, [rsp - 32]\nmov r8d, gs:[8]\nmov [r11 + 24], r8\n",
            "mov r9, [r11 + {landing}]\nmov [r11], r9\nmov ebp, ebp\n",
            bare_save32!("rbp"), bare_guard!("stac"),
            $name, "_fetch:\nmov r9d, [r8]\n", bare_guard!("clac"),
            "mov ecx, esi\nmov esi, ebp\nmov ebp, r9d\nmov r8d, edi\nmov edi, ebx\nmov edx, edx\n",
            bare_call32!($mode, "syscall32")
        )
    };
}

bare_entries!(
    ".globl syscall_entry, isolated_syscall, syscall32_entry, isolated_syscall32, syscall32_entry_fetch, isolated_syscall32_fetch",
    syscall_entry!(plain, "syscall_entry"),
    syscall_entry!(isolated, "isolated_syscall"),
    bare_sysret_ends!("syscall", "{reason}", 16),
    syscall32_entry!(isolated, "isolated_syscall32"),
    syscall32_entry!(plain, "syscall32_entry"),
    bare_ends32!("syscall32", "{compat_reason}");
    reason = const SYSCALL,
    compat_reason = const SYSCALL_COMPAT,
);

unsafe extern "C" {
    fn syscall_entry();
    fn isolated_syscall();
    fn syscall32_entry();
    fn isolated_syscall32();
    fn syscall32_entry_fetch();
    fn isolated_syscall32_fetch();
    fn syscall32_failed();
}

/// Where the processor goes from 64-bit code.
pub fn native(isolated: bool) -> usize {
    address(if isolated { isolated_syscall } else { syscall_entry })
}

/// Where it goes from 32-bit code.
pub fn compat(isolated: bool) -> usize {
    address(if isolated { isolated_syscall32 } else { syscall32_entry })
}

/// Where a fault of the look at the sixth argument goes on, if `pc` is such a look.
pub fn fixup(pc: usize) -> Option<usize> {
    [isolated_syscall32_fetch, syscall32_entry_fetch].into_iter().any(|fetch| address(fetch) == pc).then(|| address(syscall32_failed))
}
