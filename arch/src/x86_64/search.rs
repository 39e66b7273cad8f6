//! A search in machine code by vector registers.
//!
//! The kernel does not touch the guest's vector registers, and does not save them at entry. Here up to nine are put aside for as
//! long as the search takes: every file of a guest's is read once before its code may run, a megabyte and more for the C library
//! alone, and by words it took four times as long.

use core::arch::global_asm;

/// Positions that are looked at together.
pub const BLOCK: usize = 16;

global_asm!(
    ".pushsection .rodata.search, \"a\", @progbits",
    ".balign 16",
    "search_bytes:",
    ".fill 16, 1, 0x0f",
    ".fill 16, 1, 0xd5",
    ".fill 16, 1, 0x01",
    ".fill 16, 1, 0xae",
    ".fill 16, 1, 0xc7",
    "search_branch_bytes:",
    ".fill 16, 1, 0xfe",
    ".fill 16, 1, 0xe8",
    ".fill 16, 1, 0x0f",
    ".fill 16, 1, 0xf0",
    ".fill 16, 1, 0x80",
    ".popsection",
    ".pushsection .text.search, \"ax\", @progbits",
    // rdi where position 0 is, with two readable bytes before it; rsi positions, a multiple of 16 and not 0 -> rax the first
    // match, or rsi. Changes rcx, r8. MXCSR plays no part: all is on bytes.
    ".balign 64",
    ".globl search_escaped",
    "search_escaped:",
    "sub rsp, 144",
    "movups [rsp], xmm0",
    "movups [rsp + 16], xmm1",
    "movups [rsp + 32], xmm2",
    "movups [rsp + 48], xmm3",
    "movups [rsp + 64], xmm4",
    "movups [rsp + 80], xmm5",
    "movups [rsp + 96], xmm6",
    "movups [rsp + 112], xmm7",
    "movups [rsp + 128], xmm8",
    "lea r8, [rip + search_bytes]",
    "movdqa xmm0, [r8]",
    "movdqa xmm1, [r8 + 16]",
    "movdqa xmm2, [r8 + 32]",
    "movdqa xmm3, [r8 + 48]",
    "movdqa xmm4, [r8 + 64]",
    "xor eax, eax",
    // Without a branch for what is only half of a match: there are too many of these, and no pattern in them.
    ".balign 32",
    "0:",
    "movdqu xmm5, [rdi + rax - 2]",
    "movdqu xmm6, [rdi + rax - 1]",
    "movdqu xmm7, [rdi + rax]",
    // The highest bit of each byte shows it: d5 two bytes before, and the byte between is 80 or more, or 0f right before ...
    "pcmpeqb xmm5, xmm1",
    "pand xmm5, xmm6",
    "pcmpeqb xmm6, xmm0",
    "por xmm5, xmm6",
    // ... and one of the opcodes.
    "movdqa xmm6, xmm7",
    "movdqa xmm8, xmm7",
    "pcmpeqb xmm7, xmm2",
    "pcmpeqb xmm6, xmm3",
    "pcmpeqb xmm8, xmm4",
    "por xmm6, xmm7",
    "por xmm6, xmm8",
    "pand xmm5, xmm6",
    "pmovmskb ecx, xmm5",
    "test ecx, ecx",
    "jnz 1f",
    "add rax, 16",
    "cmp rax, rsi",
    "jb 0b",
    "jmp 2f",
    "1:",
    "bsf ecx, ecx",
    "add rax, rcx",
    "2:",
    "movups xmm0, [rsp]",
    "movups xmm1, [rsp + 16]",
    "movups xmm2, [rsp + 32]",
    "movups xmm3, [rsp + 48]",
    "movups xmm4, [rsp + 64]",
    "movups xmm5, [rsp + 80]",
    "movups xmm6, [rsp + 96]",
    "movups xmm7, [rsp + 112]",
    "movups xmm8, [rsp + 128]",
    "add rsp, 144",
    "ret",
    ".size search_escaped, . - search_escaped",
    ".type search_escaped, @function",
    // rdi where the first block is, with one readable byte behind the last; rsi blocks, not 0; rdx 16 bits for each. Changes rax, rdi, rsi,
    // rdx.
    ".balign 64",
    ".globl search_branches",
    "search_branches:",
    "sub rsp, 128",
    "movups [rsp], xmm0",
    "movups [rsp + 16], xmm1",
    "movups [rsp + 32], xmm2",
    "movups [rsp + 48], xmm3",
    "movups [rsp + 64], xmm4",
    "movups [rsp + 80], xmm5",
    "movups [rsp + 96], xmm6",
    "movups [rsp + 112], xmm7",
    "lea rax, [rip + search_branch_bytes]",
    "movdqa xmm0, [rax]",
    "movdqa xmm1, [rax + 16]",
    "movdqa xmm2, [rax + 32]",
    "movdqa xmm3, [rax + 48]",
    "movdqa xmm4, [rax + 64]",
    ".balign 32",
    "0:",
    // e8 and e9 differ in the lowest bit ...
    "movdqu xmm5, [rdi]",
    "movdqa xmm6, xmm5",
    "pand xmm5, xmm0",
    "pcmpeqb xmm5, xmm1",
    // ... and 0f is followed by 80 to 8f.
    "movdqu xmm7, [rdi + 1]",
    "pcmpeqb xmm6, xmm2",
    "pand xmm7, xmm3",
    "pcmpeqb xmm7, xmm4",
    "pand xmm6, xmm7",
    "por xmm5, xmm6",
    "pmovmskb eax, xmm5",
    "mov [rdx], ax",
    "add rdi, 16",
    "add rdx, 2",
    "dec rsi",
    "jnz 0b",
    "movups xmm0, [rsp]",
    "movups xmm1, [rsp + 16]",
    "movups xmm2, [rsp + 32]",
    "movups xmm3, [rsp + 48]",
    "movups xmm4, [rsp + 64]",
    "movups xmm5, [rsp + 80]",
    "movups xmm6, [rsp + 96]",
    "movups xmm7, [rsp + 112]",
    "add rsp, 128",
    "ret",
    ".size search_branches, . - search_branches",
    ".type search_branches, @function",
    ".popsection",
);

unsafe extern "C" {
    fn search_escaped(first: *const u8, positions: usize) -> usize;
    fn search_branches(first: *const u8, blocks: usize, marks: *mut u16);
}

/// Looks at as many blocks of [`BLOCK`] positions from `from` on as there are whole ones with a byte behind them, and words in `marks`: sets the
/// bits of the positions where a near call or jump may begin, `e8`, `e9`, or `0f` and one of `80` to `8f`. Returns how many blocks.
pub fn near_branches(bytes: &[u8], from: usize, marks: &mut [u16]) -> usize {
    let blocks = (bytes.len().saturating_sub(from).saturating_sub(1) / BLOCK).min(marks.len());
    if blocks > 0 {
        // SAFETY: so many blocks and the byte behind them are in the slice, and as many words in the other.
        unsafe { search_branches(bytes.as_ptr().add(from), blocks, marks.as_mut_ptr()) };
    }
    blocks
}

/// The first index from `from` on (2 or more) of an opcode byte `01`, `ae` or `c7` that follows the escape byte `0f`, or `d5` and
/// a byte with the highest bit set. Where there is none: the first index that was not looked at, less than 16 before the end.
pub fn escaped_opcode(bytes: &[u8], from: usize) -> usize {
    assert!(from >= 2, "two bytes before a position belong to it");
    let positions = bytes.len().saturating_sub(from) / BLOCK * BLOCK;
    if positions == 0 {
        return from;
    }
    // SAFETY: `positions` bytes from `from` on and the two before are in the slice.
    from + unsafe { search_escaped(bytes.as_ptr().add(from), positions) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    fn matches(bytes: &[u8], at: usize) -> bool {
        matches!(bytes[at], 1 | 0xae | 0xc7) && (bytes[at - 1] == 0x0f || bytes[at - 1] & 0x80 != 0 && bytes[at - 2] == 0xd5)
    }

    #[test]
    fn what_one_looks_for_is_found_and_nothing_else() {
        // A small alphabet, so that matches and near misses are dense.
        const ALPHABET: [u8; 8] = [0x0f, 0xd5, 0x01, 0xae, 0xc7, 0x80, 0x7f, 0x00];
        let mut random = random::numbers(random::given().unwrap_or(0), 0);
        let mut bytes = [0; 259];
        for round in 0..random::rounds(4000) as usize {
            for byte in &mut bytes {
                *byte = if round % 4 == 0 || random(32) == 0 { ALPHABET[random(8) as usize] } else { 0x90 };
            }
            let bytes = &bytes[..bytes.len() - round % 40];
            let mut from = 2 + round % 17;
            loop {
                let at = escaped_opcode(bytes, from);
                assert!((from..at).all(|at| !matches(bytes, at)), "{round}: from {from}, {at}");
                if at >= bytes.len() || !matches(bytes, at) {
                    assert!(bytes.len() - at < BLOCK, "{round}: from {from}, {at}");
                    break;
                }
                from = at + 1;
            }
        }
    }

    #[test]
    fn branches_are_marked_and_nothing_else() {
        const ALPHABET: [u8; 8] = [0x0f, 0x80, 0x8f, 0x7f, 0xe8, 0xe9, 0xea, 0x90];
        let mut random = random::numbers(random::given().unwrap_or(0), 0);
        let mut bytes = [0; 259];
        for round in 0..random::rounds(4000) as usize {
            for byte in &mut bytes {
                *byte = ALPHABET[random(8) as usize];
            }
            let (from, most) = (round % 19, 1 + round % 16);
            let bytes = &bytes[..bytes.len() - round % 40];
            let mut marks = [0xffff; 16];
            let blocks = near_branches(bytes, from, &mut marks[..most]);
            assert_eq!(blocks, most.min((bytes.len() - from - 1) / BLOCK));
            for at in 0..blocks * BLOCK {
                let is_branch = matches!(bytes[from + at..], [0xe8 | 0xe9, ..] | [0x0f, 0x80..=0x8f, ..]);
                assert_eq!(marks[at / BLOCK] >> (at % BLOCK) & 1 == 1, is_branch, "{round}: {at}");
            }
            assert!(marks[blocks..].iter().all(|mark| *mark == 0xffff));
        }
        assert_eq!(near_branches(&bytes, 259, &mut [0; 2]), 0);
    }

    #[test]
    fn the_vector_registers_stay() {
        let bytes = [0x90; 64];
        let mut before = [[0u8; 16]; 9];
        for (at, register) in before.iter_mut().enumerate() {
            *register = core::array::from_fn(|byte| (at * 16 + byte) as u8 ^ 0x5a);
        }
        let (escaped, branches): (unsafe extern "C" fn(_, _) -> _, unsafe extern "C" fn(_, _, _)) =
            (search_escaped, search_branches);
        for (search, count) in [(escaped as *const (), 32), (branches as *const (), 2)] {
            let mut after = [[0u8; 16]; 9];
            let mut marks = [0u16; 2];
            // SAFETY: 32 positions, or two blocks of 16, from the tenth byte on are in the array, and two words in the other; what the functions
            // and the loads change is declared.
            unsafe {
                core::arch::asm!(
                    "movups xmm0, [r12]",
                    "movups xmm1, [r12 + 16]",
                    "movups xmm2, [r12 + 32]",
                    "movups xmm3, [r12 + 48]",
                    "movups xmm4, [r12 + 64]",
                    "movups xmm5, [r12 + 80]",
                    "movups xmm6, [r12 + 96]",
                    "movups xmm7, [r12 + 112]",
                    "movups xmm8, [r12 + 128]",
                    "call r14",
                    "movups [r13], xmm0",
                    "movups [r13 + 16], xmm1",
                    "movups [r13 + 32], xmm2",
                    "movups [r13 + 48], xmm3",
                    "movups [r13 + 64], xmm4",
                    "movups [r13 + 80], xmm5",
                    "movups [r13 + 96], xmm6",
                    "movups [r13 + 112], xmm7",
                    "movups [r13 + 128], xmm8",
                    in("r12") &before,
                    in("r13") &mut after,
                    in("r14") search,
                    in("rdi") bytes.as_ptr().add(10),
                    in("rsi") count,
                    in("rdx") marks.as_mut_ptr(),
                    clobber_abi("C"),
                );
            }
            assert_eq!(before, after);
        }
    }
}
