//! Instructions that no guest may have in executable memory where a protection key locks the kernel.
//!
//! `wrpkru` and the instructions that restore extended state load the key register; `wrfsbase` and `wrgsbase` load a
//! segment base. Processors decode from any byte, so what counts is the bytes, at whatever offset, and never where a
//! compiler meant an instruction to start. Prefixes are not looked at: with some of them the processor refuses the
//! instruction, but what it refuses differs between processors. (Intel SDM volume 2; for the REX2 form of map 1, the
//! Intel APX architecture specification, 3.1.2.)

use core::ops::Range;

/// The longest pattern less one: bytes on either side of a range that must be scanned with it so that nothing that
/// crosses its ends is missed.
pub const CONTEXT: usize = 3;

/// What the bytes at a hit decode to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `0f 01 ef`, and with the map chosen by a REX2 prefix (`d5` and a byte with bit 7 set) `01 ef`.
    Wrpkru,
    /// `0f ae /5` with a memory operand, 32-bit and 64-bit forms. The register form is `lfence`.
    Xrstor,
    /// `0f c7 /3` with a memory operand. Privileged, so that user code only gets a fault from it.
    Xrstors,
    /// `f3 0f ae /2` with a register operand; reported with and without `f3`.
    Wrfsbase,
    /// `f3 0f ae /3` with a register operand; likewise.
    Wrgsbase,
}

impl Kind {
    /// Whether the instruction can load the protection key register.
    pub fn loads_keys(self) -> bool {
        matches!(self, Kind::Wrpkru | Kind::Xrstor | Kind::Xrstors)
    }
}

/// Bytes that would decode to an instruction of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Offset of the first opcode byte (`0f`, or `d5` of a REX2 form); prefixes come before it.
    pub at: usize,
    /// Bytes from `at` on that make the hit: changing any of them ends it.
    pub len: usize,
    pub kind: Kind,
}

/// All hits in `bytes`, in order.
pub fn hits(bytes: &[u8]) -> Hits<'_> {
    Hits { bytes, at: 1 }
}

/// The hits of `bytes` that have at least one byte in `range`: for a range that is given with its context.
pub fn hits_touching(bytes: &[u8], range: Range<usize>) -> impl Iterator<Item = Hit> {
    hits(bytes).filter(move |hit| hit.at < range.end && hit.at + hit.len > range.start)
}

/// Iterator of [`hits`].
pub struct Hits<'a> {
    bytes: &'a [u8],
    /// Where the next byte is looked for that follows the escape byte.
    at: usize,
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Not zero when a byte of `word` is `byte`.
pub(crate) fn has(word: u64, byte: u8) -> u64 {
    let word = word ^ (LOW * byte as u64);
    word.wrapping_sub(LOW) & !word & HIGH
}

impl Iterator for Hits<'_> {
    type Item = Hit;

    fn next(&mut self) -> Option<Hit> {
        loop {
            self.at = next_candidate(self.bytes, self.at)?;
            self.at += 1;
            if let Some(hit) = examine(self.bytes, self.at - 1) {
                return Some(hit);
            }
        }
    }
}

/// The first index from `at` on of an opcode byte `01`, `ae` or `c7` that follows an escape.
fn next_candidate(bytes: &[u8], at: usize) -> Option<usize> {
    // The first two bytes, and the last fifteen, one by one.
    let near = (at..bytes.len().min(2)).find(|&at| is_candidate(bytes, at));
    near.or_else(|| (skip(bytes, at.max(2))..bytes.len()).find(|&at| is_candidate(bytes, at)))
}

/// An index from `from` on before which there is no candidate.
#[cfg(target_arch = "x86_64")]
fn skip(bytes: &[u8], from: usize) -> usize {
    janua_arch::x86_64::search::escaped_opcode(bytes, from)
}

/// Other machines run no guests whose code has to be scanned.
#[cfg(not(target_arch = "x86_64"))]
fn skip(_bytes: &[u8], from: usize) -> usize {
    from
}

fn is_candidate(bytes: &[u8], at: usize) -> bool {
    at > 0
        && at < bytes.len()
        && matches!(bytes[at], 0x01 | 0xae | 0xc7)
        && (bytes[at - 1] == 0x0f || bytes[at - 1] & 0x80 != 0 && at > 1 && bytes[at - 2] == 0xd5)
}

/// The hit whose opcode byte behind the escape is at `at`, a candidate.
fn examine(bytes: &[u8], at: usize) -> Option<Hit> {
    let modrm = *bytes.get(at + 1)?;
    let (register, extension) = (modrm >= 0xc0, modrm >> 3 & 7);
    let kind = match (bytes[at], extension) {
        (0x01, _) if modrm == 0xef => Kind::Wrpkru,
        (0xae, 5) if !register => Kind::Xrstor,
        (0xae, 2) if register => Kind::Wrfsbase,
        (0xae, 3) if register => Kind::Wrgsbase,
        (0xc7, 3) if !register => Kind::Xrstors,
        _ => return None,
    };
    let first = if bytes[at - 1] == 0x0f { at - 1 } else { at - 2 };
    Some(Hit { at: first, len: at + 2 - first, kind })
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::random;

    fn all(bytes: &[u8]) -> Vec<(usize, Kind)> {
        hits(bytes).map(|hit| (hit.at, hit.kind)).collect()
    }

    /// The definition, byte by byte.
    fn slow(bytes: &[u8]) -> Vec<(usize, Kind)> {
        let mut found = Vec::new();
        for at in 0..bytes.len() {
            for (escape, rest) in [(1, &bytes[at..]), (2, &bytes[at..])] {
                let escaped = match escape {
                    1 => rest[0] == 0x0f,
                    _ => rest[0] == 0xd5 && rest.len() > 1 && rest[1] & 0x80 != 0 && rest[1] != 0x0f,
                };
                if let (true, Some(&[opcode, modrm])) = (escaped, rest.get(escape..escape + 2).and_then(|b| b.first_chunk())) {
                    let kind = match (opcode, modrm >> 6, modrm >> 3 & 7) {
                        (0x01, 3, 5) if modrm & 7 == 7 => Kind::Wrpkru,
                        (0xae, 0..=2, 5) => Kind::Xrstor,
                        (0xc7, 0..=2, 3) => Kind::Xrstors,
                        (0xae, 3, 2) => Kind::Wrfsbase,
                        (0xae, 3, 3) => Kind::Wrgsbase,
                        _ => continue,
                    };
                    found.push((at, kind));
                }
            }
        }
        found
    }

    #[test]
    fn every_second_and_third_byte() {
        for opcode in 0..=255u8 {
            for modrm in 0..=255u8 {
                for bytes in [vec![0x0f, opcode, modrm], vec![0xd5, 0x80, opcode, modrm], vec![0xd5, 0x08, opcode, modrm]] {
                    assert_eq!(all(&bytes), slow(&bytes), "{bytes:02x?}");
                }
            }
        }
    }

    #[test]
    fn known_encodings() {
        assert_eq!(all(&[0x0f, 0x01, 0xef]), [(0, Kind::Wrpkru)]);
        // rdpkru, xgetbv, lfence, mfence, sfence, xsave, xsaveopt, clflush, fxrstor, xsavec, cmpxchg16b, rdrand are none.
        for bytes in [
            &[0x0f, 0x01, 0xee][..],
            &[0x0f, 0x01, 0xd0],
            &[0x0f, 0xae, 0xe8],
            &[0x0f, 0xae, 0xf0],
            &[0x0f, 0xae, 0xf8],
            &[0x0f, 0xae, 0x64, 0x24, 0x40],
            &[0x0f, 0xae, 0x74, 0x24, 0x40],
            &[0x0f, 0xae, 0x3f],
            &[0x0f, 0xae, 0x0f],
            &[0x0f, 0xc7, 0x64, 0x24, 0x40],
            &[0x48, 0x0f, 0xc7, 0x0f],
            &[0x0f, 0xc7, 0xf0],
        ] {
            assert_eq!(all(bytes), [], "{bytes:02x?}");
        }
        // The dynamic linker's: xrstor 0x40(%rsp); xrstor64 (%rdi); xrstor 0x12345678(%rip).
        assert_eq!(all(&[0x0f, 0xae, 0x6c, 0x24, 0x40]), [(0, Kind::Xrstor)]);
        assert_eq!(all(&[0x48, 0x0f, 0xae, 0x2f]), [(1, Kind::Xrstor)]);
        assert_eq!(all(&[0x0f, 0xae, 0x2d, 0x78, 0x56, 0x34, 0x12]), [(0, Kind::Xrstor)]);
        assert_eq!(all(&[0x48, 0x0f, 0xc7, 0x1f]), [(1, Kind::Xrstors)]);
        assert_eq!(all(&[0xf3, 0x48, 0x0f, 0xae, 0xd8]), [(2, Kind::Wrgsbase)]);
        assert_eq!(all(&[0xf3, 0x0f, 0xae, 0xd7]), [(1, Kind::Wrfsbase)]);
        assert_eq!(all(&[0xd5, 0x80, 0x01, 0xef]), [(0, Kind::Wrpkru)]);
    }

    #[test]
    fn prefixes_do_not_hide() {
        for prefix in [0x26, 0x2e, 0x36, 0x3e, 0x40, 0x48, 0x4f, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3] {
            for bytes in [[prefix, 0x0f, 0x01, 0xef], [prefix, 0x0f, 0xae, 0x2f]] {
                assert_eq!(all(&bytes).len(), 1, "{bytes:02x?}");
            }
        }
    }

    #[test]
    fn every_offset_and_length() {
        for len in 3..40 {
            for at in 0..=len - 3 {
                let mut bytes = vec![0x90; len];
                bytes[at..at + 3].copy_from_slice(&[0x0f, 0x01, 0xef]);
                assert_eq!(all(&bytes), [(at, Kind::Wrpkru)], "{len} {at}");
                bytes.truncate(at + 2);
                assert_eq!(all(&bytes), []);
            }
        }
    }

    #[test]
    fn inside_other_instructions() {
        // mov $0xef010f, %eax and a relative call whose distance ends in 0f, followed by scas and a push.
        assert_eq!(all(&[0xb8, 0x0f, 0x01, 0xef, 0x00]), [(1, Kind::Wrpkru)]);
        assert_eq!(all(&[0xe8, 0x00, 0x00, 0x00, 0x0f, 0xae, 0x68, 0x00]), [(4, Kind::Xrstor)]);
        // Overlapping.
        assert_eq!(all(&[0x0f, 0xae, 0x2f, 0x0f, 0x01, 0xef]), [(0, Kind::Xrstor), (3, Kind::Wrpkru)]);
        assert_eq!(all(&[0xd5, 0x8f, 0x0f, 0x01, 0xef]), [(2, Kind::Wrpkru)]);
    }

    #[test]
    fn page_borders() {
        // Two pages with a wrpkru across their border: either half finds it with its context, neither without.
        for first in 1..3 {
            let mut bytes = vec![0x90; 8192];
            bytes[4096 - first..4096 - first + 3].copy_from_slice(&[0x0f, 0x01, 0xef]);
            assert_eq!(all(&bytes[..4096]), []);
            assert_eq!(all(&bytes[4096..]), []);
            let found: Vec<_> = hits_touching(&bytes[..4096 + CONTEXT], 0..4096).collect();
            assert_eq!(found, [Hit { at: 4096 - first, len: 3, kind: Kind::Wrpkru }]);
            let found: Vec<_> = hits_touching(&bytes[4096 - CONTEXT..], CONTEXT..CONTEXT + 4096).collect();
            assert_eq!(found, [Hit { at: CONTEXT - first, len: 3, kind: Kind::Wrpkru }]);
        }
        // What is wholly in the context is the neighbour's.
        let bytes = [&[0x0f, 0x01, 0xef][..], &[0x90; 16]].concat();
        assert_eq!(hits_touching(&bytes, 3..19).count(), 0);
    }

    #[test]
    fn as_the_definition_has_it() {
        // A small alphabet, so that hits and near misses are dense.
        const ALPHABET: [u8; 16] =
            [0x0f, 0x01, 0xef, 0xae, 0xc7, 0xd5, 0x80, 0x8f, 0x6c, 0xe8, 0x18, 0xd0, 0xd8, 0x00, 0x90, 0xee];
        let mut random = random::numbers(random::given().unwrap_or(0), 0);
        for round in 0..random::rounds(2000) as usize {
            let bytes: Vec<u8> = (0..round % 67).map(|_| ALPHABET[random(16) as usize]).collect();
            assert_eq!(all(&bytes), slow(&bytes), "{bytes:02x?}");
        }
    }
}
