//! Calls that are asked for by entries in user memory, made from where the entries are and without a copy of them; their results are written there as well.
//!
//! As in [`usercopy`](super::usercopy), an access that faults ends the routine: the machine's fault handler, seeing a fault at an address in it, continues at
//! its end ([`fixup`]). What faults in a function that is called from here is that function's.

use core::arch::global_asm;

/// An entry's size, and where in it are its number, the flags (behind the number, four bytes each), the six words, and the tag; in bytes.
pub const ENTRY: usize = 64;
pub const NUMBER: usize = 0;
pub const WORDS: usize = 8;
pub const TAG: usize = 56;

/// A completion's size: the tag, and the result.
pub const COMPLETION: usize = 16;

/// Where entries are, and what to do with them.
#[repr(C)]
pub struct UserCalls {
    /// The first entry, in user memory, and the end of the last.
    pub first: *const u8,
    pub end: *const u8,
    /// Where the first completion goes, in user memory; the others follow it.
    pub completions: *mut u8,
    /// [`FUNCTIONS`] functions by number, null where there is none; the last is null.
    pub functions: *const (),
    /// What each function is given behind the six words.
    pub thread: *const (),
}

/// How many functions there are in a table.
pub const FUNCTIONS: usize = 512;

// Each word of an entry is read once, number and flags together: a number beyond the end of the table, as it is with any flag, becomes the last, which is none, without
// a branch that could be mispredicted. rbx: entry, rbp: completion, r12: functions, r13: end, r14: thread, r15: tag.
global_asm!(
    ".pushsection .text.usercalls, \"ax\", @progbits",
    ".globl usercalls, usercalls_start, usercalls_end",
    ".type usercalls, @function",
    ".balign 64",
    "usercalls:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 24",
    "mov rbx, [rdi]",
    "mov r13, [rdi + 8]",
    "mov rbp, [rdi + 16]",
    "mov r12, [rdi + 24]",
    "mov r14, [rdi + 32]",
    "mov [rsp + 8], rbx",
    ".balign 16",
    "usercalls_start:",
    "mov rax, [rbx + {number}]",
    "mov ecx, {functions} - 1",
    "cmp rax, rcx",
    "cmova rax, rcx",
    "mov rax, [r12 + rax*8]",
    "test rax, rax",
    "jz usercalls_end",
    "mov r15, [rbx + {tag}]",
    "mov rdi, [rbx + {words}]",
    "mov rsi, [rbx + {words} + 8]",
    "mov rdx, [rbx + {words} + 16]",
    "mov rcx, [rbx + {words} + 24]",
    "mov r8, [rbx + {words} + 32]",
    "mov r9, [rbx + {words} + 40]",
    "mov [rsp], r14",
    "call rax",
    // Made, whether its result can be written or not.
    "add rbx, {entry}",
    "mov [rbp], r15",
    "mov [rbp + 8], rax",
    "add rbp, {completion}",
    "cmp rbx, r13",
    "jb usercalls_start",
    "usercalls_end:",
    "mov rax, rbx",
    "sub rax, [rsp + 8]",
    "add rsp, 24",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".size usercalls, . - usercalls",
    ".popsection",
    functions = const FUNCTIONS,
    number = const NUMBER,
    tag = const TAG,
    words = const WORDS,
    entry = const ENTRY,
    completion = const COMPLETION,
);

unsafe extern "C" {
    /// Makes the calls, one after the other, up to the first entry that asks for none of the functions, has flags or cannot be read, or whose completion cannot be
    /// written: bytes of the entries whose calls have been made.
    ///
    /// # Safety
    /// The ranges are user memory, `end` is beyond `first`, and no Rust object is in them. `functions` are as described and sound to be called with any six words and `thread`;
    /// each returns its result in the first of the two registers that a C function has for it.
    pub fn usercalls(calls: &UserCalls) -> usize;
    static usercalls_start: u8;
    static usercalls_end: u8;
}

/// Where a fault at `rip` continues, when `rip` is in this routine.
pub fn fixup(rip: usize) -> Option<usize> {
    let (start, end) = (&raw const usercalls_start as usize, &raw const usercalls_end as usize);
    (start..end).contains(&rip).then_some(end)
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use super::*;

    type Entry = [u64; ENTRY / 8];
    type End = [u64; COMPLETION / 8];

    extern "C" fn digits(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, thread: *const usize) -> usize {
        // SAFETY: the test's own word.
        let last = unsafe { *thread };
        [a, b, c, d, e, f, last].into_iter().fold(0, |all, digit| all * 10 + digit)
    }

    fn made(entries: &[Entry], ends: &mut [End], last: usize) -> usize {
        let mut functions = [ptr::null::<()>(); FUNCTIONS];
        functions[7] = digits as *const ();
        let calls = UserCalls {
            first: entries.as_ptr().cast(),
            end: entries.as_ptr_range().end.cast(),
            completions: ends.as_mut_ptr().cast(),
            functions: functions.as_ptr().cast(),
            thread: (&raw const last).cast(),
        };
        // SAFETY: memory of the test's, and a function that takes what it is given.
        unsafe { usercalls(&calls) / ENTRY }
    }

    fn entry(number: u32, flags: u32, tag: u64) -> Entry {
        [u64::from(flags) << 32 | u64::from(number), 1, 2, 3, 4, 5, 6, tag]
    }

    #[test]
    fn each_word_comes_to_its_place() {
        let entries: [Entry; 3] = core::array::from_fn(|at| entry(7, 0, at as u64 + 40));
        let mut ends = [End::default(); 4];
        assert_eq!(made(&entries, &mut ends, 9), 3);
        assert_eq!(ends, [[40, 1_234_569], [41, 1_234_569], [42, 1_234_569], [0, 0]]);
    }

    #[test]
    fn what_is_no_plain_call_ends_it() {
        for (number, flags) in [(8, 0), (7, 1), (7, 1 << 31), (511, 0), (512, 0), (519, 0), (u32::MAX, 0), (u32::MAX, u32::MAX)]
        {
            let entries = [entry(7, 0, 1), entry(number, flags, 2), entry(7, 0, 3)];
            let mut ends = [End::default(); 3];
            assert_eq!(made(&entries, &mut ends, 1), 1, "{number} {flags}");
            assert_eq!(ends, [[1, 1_234_561], [0, 0], [0, 0]]);
        }
    }

    #[test]
    fn a_fault_in_it_goes_on_at_its_end() {
        let start = &raw const usercalls_start as usize;
        assert_eq!(fixup(start), Some(&raw const usercalls_end as usize));
        assert_eq!(fixup(start - 1), None);
        assert_eq!(fixup(&raw const usercalls_end as usize), None);
    }
}
