//! Pieces of the ways into a kernel in the address space of its guests, for [`super::entry`] and for gates with an entry of their own. Such an
//! entry is in the section `hosted_entries`: what is interrupted there has not saved the user's registers yet.

/// The next instruction is one of an entry whose kernel key is still closed: a kick that comes before it returns to it, since all is derived
/// anew behind the key (`gate/entry/src/hosted/entry.rs`). Notes its address.
#[macro_export]
macro_rules! hosted_still_closed {
    () => {
        "779:\n.pushsection hosted_opens, \"aR\", @progbits\n.long 779b - .\n.popsection\n"
    };
}

/// Opens the kernel's key. Loses rax, rcx, rdx.
#[macro_export]
macro_rules! hosted_open {
    () => {
        concat!(
            $crate::hosted_still_closed!(),
            "xor eax, eax\n",
            $crate::hosted_still_closed!(),
            "xor ecx, ecx\n",
            $crate::hosted_still_closed!(),
            "xor edx, edx\n",
            $crate::hosted_still_closed!(),
            "wrpkru\n",
            "test eax, eax\njnz hosted_refuse\n"
        )
    };
}

/// rsp is on a kernel stack. rdx: the first stack, rax: the offset from it, `$thread`: the index of that stack's thread.
#[macro_export]
macro_rules! hosted_locate {
    ($thread:literal) => {
        concat!("mov rdx, {stacks}\nmov rax, rsp\nsub rax, rdx\nmov ", $thread, ", rax\nshr ", $thread, ", {stack_shift}\n")
    };
}

/// The same, and the thread is the one that runs. Loses rcx.
#[macro_export]
macro_rules! hosted_locate_own {
    ($thread:literal) => {
        concat!(
            "mov ecx, {thread_selector}\nlsl ecx, ecx\njnz hosted_refuse\n",
            $crate::hosted_locate!($thread),
            "cmp ",
            $thread,
            ", rcx\njne hosted_refuse\n"
        )
    };
}
