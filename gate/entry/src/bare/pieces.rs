//! Pieces of the entries of the bare x86_64 machine, in assembly: what a gate's entry begins, goes on and ends with.

/// What a C function keeps, at the end of a frame.
#[macro_export]
macro_rules! bare_push_kept {
    () => {
        "push rbx\npush rbp\npush r12\npush r13\npush r14\npush r15"
    };
}

/// rsp: the place of r11, and all above it saved; eax: the reason. Ends the frame and goes to the loop.
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_to_loop {
    () => {
        concat!($crate::bare_push_kept!(), "\nmov rsp, [rsp + 21*8]\njmp entry_return\n")
    };
}

/// The entry of gates that are interrupts or exceptions: user code's words, and rsp is `$pushed` bytes below the base.
#[macro_export]
macro_rules! bare_enter {
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
#[macro_export]
macro_rules! bare_pushed {
    (plain, $offset:literal) => {
        concat!("[r11 + ", $offset, "]")
    };
    (isolated, $offset:literal) => {
        concat!("gs:[{pushed} + ", $offset, "]")
    };
}

/// Saves what a C function may change, but for rax, and makes r11 the base, which is `$above` rsp. Interrupts are off: what
/// is below rsp is safe.
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_save_scratch {
    ($above:literal) => {
        concat!("mov [rsp + ", $above, " - 80], r11\nlea r11, [rsp + ", $above, "]\nmov [r11 - 40], rcx\n", $crate::bare_save_arguments!())
    };
}

#[macro_export]
macro_rules! bare_save_arguments {
    () => {
        "mov [r11 - 16], rdi\nmov [r11 - 24], rsi\nmov [r11 - 32], rdx\nmov [r11 - 56], r8\nmov [r11 - 64], r9\nmov [r11 - 72], r10\n"
    };
}

/// r11: base. Takes the thread's kernel stack, which gets the functions' last argument.
#[macro_export]
macro_rules! bare_take_stack {
    () => {
        "mov rsp, [r11 + {kernel_rsp}]\npush [r11 + {thread}]\n"
    };
}

/// Flags as the kernel has them: interrupts off; AC, DF and NT are user code's until then.
#[macro_export]
macro_rules! bare_clean_flags {
    () => {
        "push 2\npopfq\n"
    };
}

/// rax: number, r11: base. Finds the function; jumps to the label when there is none. A number beyond the end becomes the last,
/// which is none, without a branch that could be mispredicted.
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_find_function {
    ($functions:literal, $none:expr) => {
        concat!(
            "cmp rax, {last_call}\ncmova rax, [r11 + {none}]\n",
            "mov rcx, [r11 + {", $functions, "}]\nmov rax, [rcx + rax*8]\ntest rax, rax\njz ", $none, "\n"
        )
    };
}

/// Makes the call, with its fourth word where C functions have it; goes to the label when it left work. rsp is the base then.
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_make_call {
    ($work:expr) => {
        concat!("mov rcx, r10\n", $crate::bare_make_short_call!($work))
    };
}

/// A call of three words at most.
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_make_short_call {
    ($work:expr) => {
        concat!(
            "call rax\nmov rsp, gs:[24]\n",
            "mov rcx, [rsp + {work}]\nor edx, [rcx]\njne ", $work, "\n"
        )
    };
}

#[macro_export]
macro_rules! bare_load_arguments {
    () => {
        "mov r10, [rsp - 72]\nmov r9, [rsp - 64]\nmov r8, [rsp - 56]\nmov rdx, [rsp - 32]\nmov rsi, [rsp - 24]\nmov rdi, [rsp - 16]\n"
    };
}

/// rsp: base; rax: result. The exit of gates that leave rcx and r11 to the processor, whose words are in the frame. Neither TF nor RF
/// can be set by `sysretq` as `iretq` would: to the label with them. The return address is canonical.
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_leave_by_sysret {
    (plain, $flags:literal) => {
        concat!(
            "mov r11, [rsp + 16]\ntest r11d, 0x10100\njnz ", $flags, "\n", $crate::bare_load_arguments!(),
            "mov rcx, [rsp]\nmov rsp, [rsp + 24]\nswapgs\nsysretq\n"
        )
    };
    (isolated, $flags:literal) => {
        concat!(
            "mov r11, [rsp + 16]\ntest r11d, 0x10100\njnz ", $flags, "\n", $crate::bare_load_arguments!(),
            "mov rcx, [rsp + 24]\nmov gs:[8], rcx\nmov rcx, [rsp]\n",
            "mov rsp, gs:[40]\nmov cr3, rsp\nmov rsp, gs:[8]\nswapgs\nsysretq\n"
        )
    };
}

/// rsp: base; rax: result. The exit of all others. What SS names may be gone since the entry: it is user data for everybody.
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_leave_by_iret {
    (plain) => {
        concat!(
            "mov r11, [rsp - 80]\nmov rcx, [rsp - 40]\nmov qword ptr [rsp + 32], 0x2b\n",
            $crate::bare_load_arguments!(), "swapgs\niretq\n"
        )
    };
    (isolated) => {
        concat!(
            "mov r11, [rsp - 80]\nmov rcx, [rsp - 40]\nmov qword ptr gs:[{pushed} + 32], 0x2b\n", $crate::bare_load_arguments!(),
            "mov rsp, gs:[40]\nmov cr3, rsp\nmov rsp, gs:[64]\nswapgs\niretq\n"
        )
    };
}

/// Completes the frame by what the processor has pushed; r11: base.
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_fetch_pushed {
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
#[macro_export]
macro_rules! bare_gate_to_loop {
    ($mode:ident) => {
        concat!($crate::bare_fetch_pushed!($mode), "lea rsp, [r11 - 80]\n", $crate::bare_to_loop!())
    };
}

/// The fast path's two ends in the loop, for gates whose number is in orig_rax: "NAME_long" without a function, as the vector's own stub
/// has it (rax as user code had it, no error code), with the reason `$reason`; "NAME_returned" with work left (rsp: base, rax:
/// result, edx: the verdict, among bits of work).
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_gate_ends {
    ($mode:ident, $name:expr, $reason:literal, $returned:literal) => {
        concat!(
            $name, "_long:\nmov rcx, [r11 - 8]\nmov [r11 - 48], rcx\nmov qword ptr [r11 - 8], 0\nmov eax, ", $reason, "\n",
            $crate::bare_gate_to_loop!($mode),
            $name, "_returned:\nmov r11, rsp\nmov [r11 - 48], rax\nand edx, {verdict}\nlea eax, [rdx + ", $returned, "]\n", $crate::bare_gate_to_loop!($mode)
        )
    };
}

/// The same for gates whose exit is `sysretq`, plain and isolated alike: what the processor has not saved is completed. `$r11`: the offset
/// from the base of what user code's r11 is to be.
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_sysret_ends {
    ($name:literal, $reason:literal, $r11:literal) => {
        concat!(
            $name, "_long:\nmov qword ptr [r11 - 48], -38\nmov eax, ", $reason, "\n",
            "4:\nmov rcx, [r11 + ", $r11, "]\nmov [r11 - 80], rcx\nmov rcx, [r11]\nmov [r11 - 40], rcx\n",
            "mov qword ptr [r11 + 8], 0x33\nmov qword ptr [r11 + 32], 0x2b\nlea rsp, [r11 - 80]\n", $crate::bare_to_loop!(),
            $name, "_returned:\nmov r11, rsp\nmov [r11 - 48], rax\nand edx, {verdict}\nlea eax, [rdx + {returned}]\njmp 4b\n"
        )
    };
}

/// With isolation: the kernel's tables. rsp is free.
#[macro_export]
macro_rules! bare_kernel_root {
    (plain) => {
        ""
    };
    (isolated) => {
        "mov rsp, gs:[32]\nmov cr3, rsp\n"
    };
}

/// An instruction that opens or closes user memory, where the processor guards it (SMAP); its address is noted.
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_guard {
    ($instruction:literal) => {
        concat!("772:\n", $instruction, "\n.pushsection .guard_sites, \"a\", @progbits\n.quad 772b\n.popsection\n")
    };
}

/// Saves arguments and number, takes the thread's kernel stack, which gets the functions' last argument. r11: base; `$second`: the register
/// of the second argument.
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_save32 {
    ($second:literal) => {
        concat!(
            "mov eax, eax\nmov [r11 - 8], rax\nmov [r11 - 16], rdi\nmov [r11 - 24], rsi\nmov [r11 - 32], rdx\n",
            "mov [r11 - 40], ", $second, "\nmov rsp, [r11 + {kernel_rsp}]\npush [r11 + {thread}]\n"
        )
    };
}

/// rax: number, r11: base, arguments where C functions have them. Makes the call and goes back, or to one of `bare_ends32`.
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_call32 {
    ($mode:ident, $name:literal) => {
        concat!(
            // As in the other entries: a number beyond the end becomes the last, without a branch.
            "cmp rax, {last_call}\ncmova rax, [r11 + {none}]\n",
            "mov r10, [r11 + {compat}]\nmov rax, [r10 + rax*8]\ntest rax, rax\njz ", $name, "_long\n",
            "call rax\nmov rsp, gs:[24]\n",
            "mov rcx, [rsp + {work}]\nor edx, [rcx]\njne ", $name, "_returned\n",
            // TF and RF are for `iretq`.
            "mov r11, [rsp + 16]\ntest r11d, 0x10100\njnz ", $name, "_returned\n",
            "mov ecx, [rsp]\nmov edx, [rsp - 32]\nmov esi, [rsp - 24]\nmov edi, [rsp - 16]\n",
            $crate::bare_leave32!($mode)
        )
    };
}

/// The end of the return. What 32-bit code cannot see it may take along to 64-bit code: cleared.
#[macro_export]
macro_rules! bare_leave32 {
    (plain) => {
        "mov rsp, [rsp + 24]\nxor r8d, r8d\nxor r9d, r9d\nxor r10d, r10d\nswapgs\nsysret\n"
    };
    (isolated) => {
        "mov r8, [rsp + 24]\nmov r9, gs:[40]\nmov cr3, r9\nmov rsp, r8\nxor r8d, r8d\nxor r9d, r9d\nxor r10d, r10d\nswapgs\nsysret\n"
    };
}

/// The fast path's ends in the loop for entries of 32-bit code: "NAME_long" without a function; "NAME_failed" when the sixth argument cannot
/// be read: there is no call, and its result is EFAULT; "NAME_returned" with work left (rsp: base, rax: result, edx: the verdict, among
/// bits of work).
#[rustfmt::skip]
#[macro_export]
macro_rules! bare_ends32 {
    ($name:literal, $reason:literal) => {
        concat!(
            ".globl ", $name, "_failed\n",
            $name, "_long:\nmov eax, ", $reason, "\nmov qword ptr [r11 - 48], -38\n",
            "4:\nxor ecx, ecx\nmov [r11 - 56], rcx\nmov [r11 - 64], rcx\nmov [r11 - 72], rcx\nmov [r11 - 80], rcx\n",
            "mov qword ptr [r11 + 8], 0x23\nmov qword ptr [r11 + 32], 0x2b\nlea rsp, [r11 - 80]\n", $crate::bare_to_loop!(),
            $name, "_failed:\nmov rsp, r11\nmov rax, -14\nxor edx, edx\n",
            $name, "_returned:\nmov r11, rsp\nmov [r11 - 48], rax\nand edx, {verdict}\nlea eax, [rdx + {returned_compat}]\njmp 4b\n"
        )
    };
}

/// The entries of a gate: assembly, with the operands that the pieces know; after a semicolon operands of its own. They are in the
/// section that the tables of user code map.
#[macro_export]
macro_rules! bare_entries {
    ($($line:expr),+ $(,)?; $($operands:tt)*) => {
        ::core::arch::global_asm!(
            ".pushsection .text.entry, \"ax\", @progbits",
            $($line),+,
            ".popsection",
            // Not every gate has a use for each.
            "/* {kernel_rsp} {thread} {work} {native} {compat} {none} {last_call} {pushed} {landing} {returned} {returned_compat} {verdict} */",
            kernel_rsp = const $crate::bare::from_base(::core::mem::offset_of!($crate::bare::Save, kernel_rsp)),
            thread = const $crate::bare::from_base(::core::mem::offset_of!($crate::bare::Save, thread)),
            work = const $crate::bare::from_base(::core::mem::offset_of!($crate::bare::Save, work)),
            native = const $crate::bare::from_base(::core::mem::offset_of!($crate::bare::Save, native)),
            compat = const $crate::bare::from_base(::core::mem::offset_of!($crate::bare::Save, compat)),
            none = const $crate::bare::from_base(::core::mem::offset_of!($crate::bare::Save, none)),
            last_call = const $crate::bare::LAST_CALL,
            pushed = const $crate::bare::PUSHED,
            landing = const $crate::bare::from_base(::core::mem::offset_of!($crate::bare::Save, landing)),
            returned = const $crate::bare::RETURNED,
            returned_compat = const $crate::bare::RETURNED_COMPAT,
            verdict = const $crate::bare::VERDICT,
            $($operands)*
        );
    };
}
