//! Copying and filling memory without vector registers, in place of the compiler's routines.
//!
//! Most copies of a kernel are of a few dozen bytes: structures that are moved, names, records. The compiler's routines for
//! machines without vector registers use string instructions for all of them, three for each copy, and each takes tens of cycles
//! to start. Here short copies go by words, the last ones overlapping, and only long ones by a string instruction. One that has to go
//! from the end, as when an entry is put into a node of a B-tree, goes by words whatever its length: string instructions take
//! a byte a cycle in that direction.

use core::arch::global_asm;

global_asm!(
    ".pushsection .text.memory, \"ax\", @progbits",
    // rdi destination, rsi source, rdx bytes -> rax destination. Changes rcx, rdx, rsi, rdi, r8 to r11.
    ".balign 64",
    ".globl memory_copy",
    "memory_copy:",
    "mov rax, rdi",
    "cmp rdx, 16",
    "ja 3f",
    "cmp edx, 8",
    "jae 2f",
    "cmp edx, 4",
    "jae 1f",
    "test edx, edx",
    "jz 0f",
    // One to three bytes: the first, the one in the middle, the last.
    "mov ecx, edx",
    "shr ecx",
    "movzx r8d, byte ptr [rsi]",
    "movzx r9d, byte ptr [rsi + rcx]",
    "movzx r10d, byte ptr [rsi + rdx - 1]",
    "mov [rdi], r8b",
    "mov [rdi + rcx], r9b",
    "mov [rdi + rdx - 1], r10b",
    "0:",
    "ret",
    "1:",
    "mov ecx, [rsi]",
    "mov r8d, [rsi + rdx - 4]",
    "mov [rdi], ecx",
    "mov [rdi + rdx - 4], r8d",
    "ret",
    "2:",
    "mov rcx, [rsi]",
    "mov r8, [rsi + rdx - 8]",
    "mov [rdi], rcx",
    "mov [rdi + rdx - 8], r8",
    "ret",
    // More than 16: the last 16 bytes are read before anything is written, and written after the rest.
    "3:",
    "mov r8, [rsi + rdx - 16]",
    "mov r9, [rsi + rdx - 8]",
    "lea r10, [rdi + rdx - 16]",
    "cmp rdx, 512",
    "ja 6f",
    "sub rdx, 32",
    "jb 5f",
    "4:",
    "mov rcx, [rsi]",
    "mov r11, [rsi + 8]",
    "mov [rdi], rcx",
    "mov [rdi + 8], r11",
    "mov rcx, [rsi + 16]",
    "mov r11, [rsi + 24]",
    "mov [rdi + 16], rcx",
    "mov [rdi + 24], r11",
    "add rsi, 32",
    "add rdi, 32",
    "sub rdx, 32",
    "jae 4b",
    "5:",
    // 0 to 31 are left; the last 16 are in registers.
    "cmp edx, -16",
    "jle 5f",
    "mov rcx, [rsi]",
    "mov r11, [rsi + 8]",
    "mov [rdi], rcx",
    "mov [rdi + 8], r11",
    "5:",
    "mov [r10], r8",
    "mov [r10 + 8], r9",
    "ret",
    "6:",
    "mov rcx, rdx",
    "shr rcx, 3",
    "rep movsq",
    "mov [r10], r8",
    "mov [r10 + 8], r9",
    "ret",
    // The same where the two may overlap. A destination above the source, inside it, is filled from its end.
    ".balign 64",
    ".globl memory_move",
    "memory_move:",
    "mov rcx, rdi",
    "sub rcx, rsi",
    "cmp rcx, rdx",
    "jae memory_copy",
    // So short that all is read before anything is written.
    "cmp rdx, 16",
    "jbe memory_copy",
    "mov rax, rdi",
    "mov r8, [rsi]",
    "mov r9, [rsi + 8]",
    "sub rdx, 32",
    "jb 2f",
    "1:",
    "mov rcx, [rsi + rdx + 24]",
    "mov r11, [rsi + rdx + 16]",
    "mov [rdi + rdx + 24], rcx",
    "mov [rdi + rdx + 16], r11",
    "mov rcx, [rsi + rdx + 8]",
    "mov r11, [rsi + rdx]",
    "mov [rdi + rdx + 8], rcx",
    "mov [rdi + rdx], r11",
    "sub rdx, 32",
    "jae 1b",
    "2:",
    // 0 to 31 are left; the first 16 are in registers.
    "cmp edx, -16",
    "jle 3f",
    "mov rcx, [rsi + rdx + 24]",
    "mov r11, [rsi + rdx + 16]",
    "mov [rdi + rdx + 24], rcx",
    "mov [rdi + rdx + 16], r11",
    "3:",
    "mov [rdi], r8",
    "mov [rdi + 8], r9",
    "ret",
    // rdi destination, sil byte, rdx bytes -> rax destination. Changes rcx, rdx, rsi, rdi, r8, r10.
    ".balign 64",
    ".globl memory_fill",
    "memory_fill:",
    "mov r10, rdi",
    "movzx eax, sil",
    "mov rcx, 0x0101010101010101",
    "imul rax, rcx",
    "cmp rdx, 8",
    "jb 3f",
    "lea r8, [rdi + rdx - 8]",
    "cmp rdx, 512",
    "ja 2f",
    "sub rdx, 16",
    "jb 1f",
    "0:",
    "mov [rdi], rax",
    "mov [rdi + 8], rax",
    "add rdi, 16",
    "sub rdx, 16",
    "jae 0b",
    "1:",
    // 0 to 15 are left; eight or fewer are covered by the last word.
    "cmp edx, -8",
    "jle 1f",
    "mov [rdi], rax",
    "1:",
    "mov [r8], rax",
    "mov rax, r10",
    "ret",
    "2:",
    "mov rcx, rdx",
    "shr rcx, 3",
    "rep stosq",
    "mov [r8], rax",
    "mov rax, r10",
    "ret",
    "3:",
    "test edx, edx",
    "jz 4f",
    "mov [rdi], al",
    "inc rdi",
    "dec edx",
    "jmp 3b",
    "4:",
    "mov rax, r10",
    "ret",
    ".popsection",
);

// What compiled code calls. Where there is an operating system its C library has them.
#[cfg(target_os = "none")]
global_asm!(
    ".globl memcpy, memmove, memset",
    ".set memcpy, memory_copy",
    ".set memmove, memory_move",
    ".set memset, memory_fill",
);

unsafe extern "C" {
    /// memcpy(3).
    pub fn memory_copy(dst: *mut u8, src: *const u8, len: usize) -> *mut u8;
    /// memmove(3).
    pub fn memory_move(dst: *mut u8, src: *const u8, len: usize) -> *mut u8;
    /// memset(3).
    pub fn memory_fill(dst: *mut u8, byte: i32, len: usize) -> *mut u8;
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1100;

    #[test]
    fn copies_exactly() {
        let source: [u8; MOST + 1] = core::array::from_fn(|at| (at * 7 + at / 256) as u8 | 1);
        for len in 0..=MOST {
            for skew in 0..2 {
                let mut copy = [0u8; MOST + 16];
                // SAFETY: `len` bytes from `skew` on are in both arrays.
                let end = unsafe { memory_copy(copy.as_mut_ptr().add(8), source.as_ptr().add(skew), len) };
                assert_eq!(end, copy[8..].as_mut_ptr());
                assert_eq!(copy[8..8 + len], source[skew..skew + len], "{len}");
                assert!(copy[..8].iter().chain(&copy[8 + len..]).all(|&byte| byte == 0), "{len}");
            }
        }
    }

    #[test]
    fn moves_exactly() {
        let source: [u8; MOST] = core::array::from_fn(|at| (at * 7 + at / 256) as u8 | 1);
        for len in 0..=MOST / 2 {
            for (from, to) in
                [(0, 0), (0, 1), (0, 8), (0, 15), (0, 16), (3, 40), (0, 33), (0, 500), (1, 0), (9, 1), (80, 3), (64, 0)]
            {
                let mut moved = source;
                // SAFETY: `len` bytes from `from` and from `to` on are in the array.
                let end = unsafe { memory_move(moved.as_mut_ptr().add(to), moved.as_ptr().add(from), len) };
                assert_eq!(end, moved[to..].as_mut_ptr());
                assert_eq!(moved[to..to + len], source[from..from + len], "{len} from {from} to {to}");
                assert!(moved[..to] == source[..to] && moved[to + len..] == source[to + len..], "{len} from {from} to {to}");
            }
        }
    }

    #[test]
    fn fills_exactly() {
        for len in 0..=MOST {
            let mut filled = [0u8; MOST + 16];
            // SAFETY: `len` bytes from the eighth on are in the array.
            let end = unsafe { memory_fill(filled.as_mut_ptr().add(8), 0x1a5, len) };
            assert_eq!(end, filled[8..].as_mut_ptr());
            assert!(filled[8..8 + len].iter().all(|&byte| byte == 0xa5), "{len}");
            assert!(filled[..8].iter().chain(&filled[8 + len..]).all(|&byte| byte == 0), "{len}");
        }
    }
}
