//! Copies that survive a page fault.
//!
//! Each routine is between `usercopy_start` and `usercopy_end`. The machine's fault handler, seeing a fault at an address in
//! that range, continues at `usercopy_fixup` with all other registers kept: there `rcx` still holds the bytes not copied
//! (`rep movsb` and `rep stosb` count down as they go, loops likewise) and becomes the result. The single-word accesses set `rcx` to 1 before
//! they touch memory and to 0 after, so the same fixup returns "one not done".

use core::arch::global_asm;

global_asm!(
    ".pushsection .text.usercopy, \"ax\", @progbits",
    ".globl usercopy_start, usercopy_end, usercopy_fixup",
    ".balign 64",
    "usercopy_start:",
    // rdi destination, rsi source, rdx bytes -> rax bytes left. A string move takes its time to start: few bytes go by words.
    ".globl usercopy_bytes",
    "usercopy_bytes:",
    "mov rcx, rdx",
    "cmp rdx, 192",
    "ja 4f",
    "cmp rdx, 8",
    "jb 3f",
    ".globl usercopy_words",
    "usercopy_words:",
    "mov rax, [rsi]",
    "mov [rdi], rax",
    "add rsi, 8",
    "add rdi, 8",
    "sub rcx, 8",
    "cmp rcx, 8",
    "jae usercopy_words",
    ".globl usercopy_words_end",
    "usercopy_words_end:",
    "3:",
    "test rcx, rcx",
    "jz 5f",
    ".globl usercopy_tail",
    "usercopy_tail:",
    "mov al, [rsi]",
    "mov [rdi], al",
    "inc rsi",
    "inc rdi",
    "dec rcx",
    "jnz usercopy_tail",
    "5:",
    "xor eax, eax",
    "ret",
    "4:",
    "rep movsb",
    "mov rax, rcx",
    "ret",
    // rdi destination, rsi bytes -> rax bytes left
    ".globl usercopy_zero",
    "usercopy_zero:",
    "mov rcx, rsi",
    "xor eax, eax",
    "rep stosb",
    "mov rax, rcx",
    "ret",
    // rdi user address, rsi out: u32 -> rax 0 done, 1 fault
    ".globl usercopy_load32",
    "usercopy_load32:",
    "mov ecx, 1",
    "mov eax, [rdi]",
    "mov [rsi], eax",
    "xor eax, eax",
    "ret",
    // rdi user address, esi old, edx new, r8 out: u32 found -> rax 0 done, 1 fault
    ".globl usercopy_cmpxchg32",
    "usercopy_cmpxchg32:",
    "mov ecx, 1",
    "mov eax, esi",
    "lock cmpxchg [rdi], edx",
    "mov [r8], eax",
    "xor eax, eax",
    "ret",
    // rdi destination, rsi source, rdx most bytes -> rax: bytes before the NUL, or most bytes, or -1 on a fault
    ".globl usercopy_string",
    "usercopy_string:",
    "mov r8, rdx",
    "mov rcx, -1",
    "xor r9d, r9d",
    "movabs r10, 0x0101010101010101",
    "movabs r11, 0x8080808080808080",
    // By words, as long as there is room for one, it is in one page, so that nothing behind the NUL can fault, and has no NUL.
    "2:",
    "lea rax, [r9 + 8]",
    "cmp rax, r8",
    "ja 3f",
    "lea eax, [rsi + r9]",
    "and eax, 4095",
    "cmp eax, 4088",
    "ja 3f",
    "mov rax, [rsi + r9]",
    "mov rdx, rax",
    "sub rdx, r10",
    "not rax",
    "and rdx, rax",
    "and rdx, r11",
    "jnz 3f",
    "not rax",
    "mov [rdi + r9], rax",
    "add r9, 8",
    "jmp 2b",
    // The rest by bytes.
    "3:",
    "cmp r9, r8",
    "je 4f",
    "mov al, [rsi + r9]",
    "mov [rdi + r9], al",
    "test al, al",
    "je 4f",
    "inc r9",
    "jmp 3b",
    "4:",
    "mov rax, r9",
    "ret",
    "usercopy_end:",
    "usercopy_fixup:",
    "mov rax, rcx",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    pub fn usercopy_bytes(dst: *mut u8, src: *const u8, len: usize) -> usize;
    pub fn usercopy_zero(dst: *mut u8, len: usize) -> usize;
    pub fn usercopy_load32(addr: usize, out: *mut u32) -> usize;
    // Argument order leaves rcx free for the fixup: the fourth is unused.
    pub fn usercopy_cmpxchg32(addr: usize, old: u32, new: u32, unused: usize, out: *mut u32) -> usize;
    pub fn usercopy_string(dst: *mut u8, src: *const u8, most: usize) -> isize;
    static usercopy_start: u8;
    static usercopy_end: u8;
    static usercopy_fixup: u8;
    static usercopy_words: u8;
    static usercopy_words_end: u8;
    static usercopy_tail: u8;
}

/// Where a fault at `rip` continues, when `rip` is in a routine of this file or of [`usercalls`](super::usercalls).
pub fn fixup(rip: usize) -> Option<usize> {
    // Part of a word may be there: byte by byte until the fault comes again.
    if (&raw const usercopy_words as usize..&raw const usercopy_words_end as usize).contains(&rip) {
        return Some(&raw const usercopy_tail as usize);
    }
    let (start, end, fixup) =
        { (&raw const usercopy_start as usize, &raw const usercopy_end as usize, &raw const usercopy_fixup as usize) };
    if (start..end).contains(&rip) { Some(fixup) } else { super::usercalls::fixup(rip) }
}

#[cfg(test)]
mod tests {
    extern crate alloc;

    use super::*;

    #[test]
    fn copies_of_every_length() {
        let source: [u8; 200] = core::array::from_fn(|at| at as u8 ^ 0x5a);
        for len in 0..=source.len() {
            let mut copy = [0u8; 201];
            // SAFETY: both arrays have `len` bytes.
            assert_eq!(unsafe { usercopy_bytes(copy.as_mut_ptr(), source.as_ptr(), len) }, 0);
            assert_eq!(copy[..len], source[..len]);
            assert!(copy[len..].iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn strings_of_every_length_and_place() {
        let mut pages: [u8; 2 * 4096] = core::array::from_fn(|at| (at % 255) as u8 + 1);
        let start = 4096 - pages.as_ptr().addr() % 4096;
        for from in (start - 20..start + 20).chain(0..8) {
            for len in 0..40 {
                for most in [len, len + 1, len + 9, 64] {
                    let there = core::mem::take(&mut pages[from + len]);
                    let source = &pages[from..];
                    let mut copy = [0xffu8; 80];
                    // SAFETY: `most` bytes can be read and written.
                    let copied = unsafe { usercopy_string(copy.as_mut_ptr(), source.as_ptr(), most) };
                    assert_eq!(copied, len.min(most) as isize);
                    assert_eq!(copy[..len], source[..len]);
                    assert!(copy[(len + 1).min(most)..].iter().all(|&byte| byte == 0xff));
                    pages[from + len] = there;
                }
            }
        }
    }

    #[test]
    fn a_fault_in_a_word_goes_on_by_bytes() {
        let words = &raw const usercopy_words as usize;
        assert_eq!(fixup(words), Some(&raw const usercopy_tail as usize));
        assert_eq!(fixup(&raw const usercopy_tail as usize), Some(&raw const usercopy_fixup as usize));
        assert_eq!(fixup(words - 4096), None);
    }
}
