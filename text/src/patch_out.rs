//! Overwriting an instruction that holds, or is, a forbidden one.
//!
//! C libraries have a few that really are: the dynamic linker restores the vector registers with `xrstor` when it has found a
//! function, and `pkey_set` loads the key register. In large programs the bytes also come up inside others, most often as the
//! distance of a `lea`. Where the instruction that holds the first of the bytes found by [`crate::scan`] is known beyond doubt, and
//! [`crate::step`] can do its work, it is overwritten with an invalid one, which traps; `wrpkru` stays a SIGILL, as on a
//! processor without keys. Elsewhere the bytes are left alone, and the page that holds them must not run.

use core::ops::Range;

use iced_x86::Mnemonic;

use crate::decode::{self, Before, Boundary};
use crate::step;

/// Longest instruction, bytes.
pub const LONGEST: usize = decode::LONGEST;
/// Bytes before a find that [`instruction`] wants to see.
pub const BEFORE: usize = 96;

/// The place of the instruction that the first byte found, at `at`, belongs to; `None` when that is not certain or nobody could do
/// its work. `code` are up to [`BEFORE`] bytes before the find and [`LONGEST`] from it on.
pub fn instruction(code: &[u8], at: usize) -> Option<Range<usize>> {
    // With less in front all sequences may agree by chance.
    if at < BEFORE / 2 {
        return None;
    }
    let before = Before::new(code, false, at, BEFORE);
    let start = (at + 1 - LONGEST..=at).rev().find(|&start| before.boundary(start) != Boundary::No)?;
    if before.boundary(start) != Boundary::Yes {
        return None;
    }
    let found = decode::at(code, 0, start)?;
    let range = start..start + found.len();
    let known = found.mnemonic() == Mnemonic::Wrpkru || step::knows(&found);
    (known && found.len() >= 2 && range.contains(&at)).then_some(range)
}

/// What is put in place of an instruction of this length: `ud2`, and `int3` behind it, which nothing reaches.
pub fn filler(len: usize) -> [u8; LONGEST] {
    let mut bytes = [0xcc; LONGEST];
    bytes[..2].copy_from_slice(&[0x0f, 0x0b]);
    debug_assert!((2..=LONGEST).contains(&len));
    bytes
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::scan;

    /// _dl_runtime_resolve_xsavec of glibc 2.36 from its call on.
    const RESOLVE: [u8; 61] = [
        0xe8, 0x00, 0x00, 0x00, 0x00, 0x49, 0x89, 0xc3, 0xb8, 0xee, 0x00, 0x00, 0x00, 0x31, 0xd2, 0x0f, 0xae, 0x6c, 0x24, 0x40,
        0x4c, 0x8b, 0x4c, 0x24, 0x30, 0x4c, 0x8b, 0x44, 0x24, 0x28, 0x48, 0x8b, 0x7c, 0x24, 0x20, 0x48, 0x8b, 0x74, 0x24, 0x18,
        0x48, 0x8b, 0x54, 0x24, 0x10, 0x48, 0x8b, 0x4c, 0x24, 0x08, 0x48, 0x8b, 0x04, 0x24, 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x1c,
        0x24,
    ];

    fn in_code(code: &[u8]) -> Vec<u8> {
        // push %rbx; mov %rsp,%rbx; and $-64,%rsp; sub 0x...(%rip),%rsp over and over.
        let filler = [0x53, 0x48, 0x89, 0xe3, 0x48, 0x83, 0xe4, 0xc0, 0x48, 0x2b, 0x25, 0x10, 0x20, 0x03, 0x00];
        let mut all: Vec<u8> = filler.iter().copied().cycle().take(120).collect();
        all.extend_from_slice(code);
        all.extend_from_slice(&[0x90; LONGEST]);
        all
    }

    fn found(code: &[u8]) -> Option<Range<usize>> {
        let hit = scan::hits(code).next().expect("a find");
        instruction(code, hit.at)
    }

    #[test]
    fn the_dynamic_linkers() {
        let mut code = in_code(&RESOLVE);
        assert_eq!(found(&code), Some(135..140));
        code[135..140].copy_from_slice(&filler(5)[..5]);
        assert_eq!(scan::hits(&code).count(), 0);
    }

    #[test]
    fn prefixes_belong_to_it() {
        assert_eq!(found(&in_code(&[0x48, 0x0f, 0xae, 0x2f, 0xc3])), Some(120..124));
        assert_eq!(found(&in_code(&[0x31, 0xc9, 0x31, 0xd2, 0x0f, 0x01, 0xef, 0xc3])), Some(124..127));
    }

    #[test]
    fn inside_others() {
        // mov $0xef010f, %eax, and a call whose distance ends with the first byte of the find.
        assert_eq!(found(&in_code(&[0xb8, 0x0f, 0x01, 0xef, 0x00, 0xc3])), Some(120..125));
        assert_eq!(found(&in_code(&[0xe8, 0x00, 0x00, 0x00, 0x0f, 0xae, 0x68, 0x00])), Some(120..125));
        // lea 0x2bae0f(%rip), %rdi (gdb); movsd 0x128ae0f(%rip), %xmm1 (node).
        assert_eq!(found(&in_code(&[0x48, 0x8d, 0x3d, 0x0f, 0xae, 0x2b, 0x00])), Some(120..127));
        assert_eq!(found(&in_code(&[0xf2, 0x0f, 0x10, 0x0d, 0x0f, 0xae, 0x28, 0x01])), Some(120..128));
        // call *0x6dae0f(%rip) (a Rust program's, by its table of addresses).
        assert_eq!(found(&in_code(&[0xff, 0x15, 0x0f, 0xae, 0x6d, 0x00])), Some(120..126));
        // One whose work nobody does: vpaddd 0x28ae0f(%rip), %ymm0, %ymm0.
        assert_eq!(found(&in_code(&[0xc5, 0xfd, 0xfe, 0x05, 0x0f, 0xae, 0x28, 0x00])), None);
    }

    #[test]
    fn with_little_before_it_nothing_is_certain() {
        assert_eq!(found(&[0x90, 0x0f, 0x01, 0xef, 0xc3]), None);
    }
}
