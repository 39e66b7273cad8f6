//! Instructions of 64-bit code at offsets of a byte slice.

use alloc::vec;
use alloc::vec::Vec;

use iced_x86::{ConstantOffsets, Decoder, DecoderOptions, Instruction};

/// The longest instruction, bytes.
pub const LONGEST: usize = 15;

/// The instruction at `offset` of `code`, whose first byte has the address `base`. `None` where there is none, or where it is
/// cut off by the end of the slice.
pub fn at(code: &[u8], base: u64, offset: usize) -> Option<Instruction> {
    decode(code, base, offset).map(|(instruction, _)| instruction)
}

/// An instruction of 32-bit code, that at the start of `code`; `None` as for [`at`].
pub fn at32(code: &[u8]) -> Option<Instruction> {
    let bytes = code.get(..code.len().min(LONGEST))?;
    let instruction = Decoder::with_ip(32, bytes, 0, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// As [`at`], with the places of its constants.
pub fn with_constants(code: &[u8], base: u64, offset: usize) -> Option<(Instruction, ConstantOffsets)> {
    let (instruction, decoder) = decode(code, base, offset)?;
    let constants = decoder.get_constant_offsets(&instruction);
    Some((instruction, constants))
}

fn decode(code: &[u8], base: u64, offset: usize) -> Option<(Instruction, Decoder<'_>)> {
    let end = code.len().min(offset.checked_add(LONGEST)?);
    let bytes = code.get(offset..end)?;
    let mut decoder = Decoder::with_ip(64, bytes, base.wrapping_add(offset as u64), DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then_some((instruction, decoder))
}

/// Lengths of instructions of one slice.
pub struct Lengths<'a> {
    code: &'a [u8],
    decoder: Decoder<'a>,
}

impl<'a> Lengths<'a> {
    pub fn new(code: &'a [u8]) -> Lengths<'a> {
        Lengths { code, decoder: Decoder::with_ip(64, code, 0, DecoderOptions::NONE) }
    }

    /// Bytes of the instruction at `offset`, 0 where there is none.
    pub fn at(&mut self, offset: usize) -> u8 {
        if let Some(length) = self.code.get(offset..).and_then(common_length) {
            return length;
        }
        if self.decoder.set_position(offset).is_err() {
            return 0;
        }
        let instruction = self.decoder.decode();
        if instruction.is_invalid() { 0 } else { instruction.len() as u8 }
    }
}

/// The length of the instruction that `code` starts with, when it is one of the common ones: no prefix but REX, the general
/// instructions of the first map, and of the second those that compilers use most; 0 for bytes no instruction starts with.
/// `None` decides nothing: ask the decoder.
fn common_length(code: &[u8]) -> Option<u8> {
    let (rex, first) = match *code.first()? {
        rex @ 0x40..=0x4f => (rex, *code.get(1)?),
        first => (0, first),
    };
    let prefix = usize::from(rex != 0);
    let (opcodes, modrm, immediate) = if first == 0x0f {
        let second = *code.get(prefix + 1)?;
        let (modrm, immediate) = match second {
            0x05 | 0x0b | 0xa2 => (false, 0),
            0x10 | 0x11 | 0x1f | 0x28 | 0x29 | 0x40..=0x4f | 0x57 | 0x90..=0x9f | 0xa3 | 0xab | 0xaf => (true, 0),
            0xb6 | 0xb7 | 0xbe | 0xbf => (true, 0),
            0x80..=0x8f => (false, 4),
            _ => return None,
        };
        (2, modrm, immediate)
    } else {
        let form = || code.get(prefix + 1).map(|modrm| modrm >> 3 & 7);
        let (modrm, immediate) = match first {
            0x00..=0x3f => match first & 7 {
                0..=3 => (true, 0),
                4 => (false, 1),
                5 => (false, 4),
                _ if first & 0x26 == 0x26 && first & 7 == 6 => return None,
                _ => return Some(0),
            },
            0x50..=0x5f | 0x90..=0x99 | 0xa4..=0xa7 | 0xaa..=0xaf | 0xc3 | 0xc9 | 0xcc | 0xf5 | 0xf8..=0xfd => (false, 0),
            0x63 | 0x84..=0x8b | 0xd0..=0xd3 => (true, 0),
            0x8d if *code.get(prefix + 1)? < 0xc0 => (true, 0),
            0x68 | 0xa9 | 0xe8 | 0xe9 => (false, 4),
            0x6a | 0x70..=0x7f | 0xa8 | 0xb0..=0xb7 | 0xeb => (false, 1),
            0xb8..=0xbf => (false, if rex & 8 != 0 { 8 } else { 4 }),
            0x69 | 0x81 => (true, 4),
            0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 => (true, 1),
            0xc6 if form()? == 0 => (true, 1),
            0xc7 if form()? == 0 => (true, 4),
            0xf6 => (true, if form()? < 2 { 1 } else { 0 }),
            0xf7 => (true, if form()? < 2 { 4 } else { 0 }),
            0xfe if form()? < 2 => (true, 0),
            0xff if matches!(form()?, 0 | 1 | 2 | 4 | 6) => (true, 0),
            0x60..=0x62 | 0x82 | 0x9a | 0xce | 0xd4 | 0xd6 | 0xea if first != 0x62 => return Some(0),
            _ => return None,
        };
        (1, modrm, immediate)
    };
    let mut length = prefix + opcodes;
    if modrm {
        let byte = *code.get(length)?;
        let (mode, base) = (byte >> 6, byte & 7);
        length += 1;
        if mode != 3 {
            let base = if base == 4 {
                length += 1;
                *code.get(length - 1)? & 7
            } else {
                base
            };
            length += match mode {
                0 if base == 5 => 4,
                0 => 0,
                1 => 1,
                _ => 4,
            };
        }
    }
    length += immediate;
    (length <= code.len()).then_some(length as u8)
}

/// Where instructions start just before an offset, as far as the bytes show.
///
/// Code read from a wrong offset falls in with the right sequence after a few instructions. So decoding starts at each of 16
/// neighbouring offsets well before the place in question, one of which is right if the bytes are code at all; a start whose
/// sequence meets an invalid instruction was wrong. What all remaining sequences agree on is certain.
pub struct Before {
    first: usize,
    end: usize,
    /// For each offset from `first` on: how many sequences have an instruction start there.
    seen: Vec<u8>,
    sequences: u8,
    /// An instruction is known to start at `end`.
    executed: bool,
}

/// What is known of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// An instruction starts there.
    Yes,
    /// None does.
    No,
    /// The sequences do not agree, or none is left.
    Unknown,
}

impl Before {
    /// Decodes what is up to `span` bytes before `offset` (itself included as a place to ask for). An instruction is taken
    /// to start at the first byte of `code` when it is `whole`: a segment from its beginning.
    pub fn new(code: &[u8], whole: bool, offset: usize, span: usize) -> Before {
        Before::decode(code, whole, false, offset, span)
    }

    /// The same for an `offset` at which an instruction has been executed: sequences that do not lead there were wrong.
    pub fn executed(code: &[u8], offset: usize, span: usize) -> Before {
        Before::decode(code, false, true, offset, span)
    }

    fn decode(code: &[u8], whole: bool, executed: bool, offset: usize, span: usize) -> Before {
        let end = offset.min(code.len());
        let first = end.saturating_sub(span);
        let mut before = Before { first, end, seen: vec![0; end - first + 1], sequences: 0, executed };
        // The length of the instruction at each offset once it has been decoded; 0 means none.
        let mut lengths = vec![u8::MAX; end - first + 1];
        let starts = if whole && first == 0 { 1 } else { 16 };
        let mut decoder = Lengths::new(code);
        for start in first..(first + starts).min(end) {
            before.follow(&mut decoder, start, &mut lengths);
        }
        before
    }

    fn follow(&mut self, decoder: &mut Lengths<'_>, start: usize, lengths: &mut [u8]) {
        for count in [false, true] {
            let mut at = start;
            while at < self.end {
                let Some(length) = lengths.get_mut(at - self.first) else { return };
                if *length == u8::MAX {
                    *length = decoder.at(at);
                }
                if *length == 0 {
                    return;
                }
                if count && let Some(seen) = self.seen.get_mut(at - self.first) {
                    *seen += 1;
                }
                at += usize::from(*length);
            }
            if self.executed && at != self.end {
                return;
            }
            if count {
                self.sequences += 1;
                if at == self.end
                    && let Some(seen) = self.seen.last_mut()
                {
                    *seen += 1;
                }
            }
        }
    }

    /// What is known of `offset`.
    pub fn boundary(&self, offset: usize) -> Boundary {
        let seen = offset.checked_sub(self.first).and_then(|at| self.seen.get(at));
        match seen {
            Some(&seen) if self.sequences > 0 && seen == self.sequences => Boundary::Yes,
            Some(0) if self.sequences > 0 => Boundary::No,
            _ => Boundary::Unknown,
        }
    }

    /// The offset at which the instruction before `offset` starts, when all agree on it.
    pub fn previous(&self, offset: usize) -> Option<usize> {
        let from = offset.checked_sub(LONGEST).map_or(self.first, |from| from.max(self.first));
        let previous = (from..offset).rev().find(|&at| self.boundary(at) != Boundary::No)?;
        (self.boundary(previous) == Boundary::Yes).then_some(previous)
    }

    /// Every offset at which some sequence has an instruction.
    pub fn possible(&self) -> impl Iterator<Item = usize> {
        let first = self.first;
        self.seen.iter().enumerate().filter(|(_, seen)| **seen > 0).map(move |(at, _)| first + at)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;
    use std::{fs, println};

    use super::*;

    /// What the decoder returns.
    fn true_length(code: &[u8]) -> u8 {
        at(code, 0, 0).map_or(0, |instruction| instruction.len() as u8)
    }

    fn check(code: &[u8]) {
        if let Some(length) = common_length(code) {
            assert_eq!(length, true_length(code), "{code:02x?}");
        }
    }

    #[test]
    fn common_instructions_have_their_lengths() {
        let mut known = 0;
        for prefix in [None, Some(0x40), Some(0x41), Some(0x44), Some(0x48), Some(0x4f)] {
            for escape in [None, Some(0x0f)] {
                for opcode in 0..=255u8 {
                    for modrm in 0..=255u8 {
                        for sib in [0, 0x24, 0x25, 0xe5, 0xff] {
                            let mut code: Vec<u8> = prefix.into_iter().chain(escape).chain([opcode, modrm, sib]).collect();
                            code.resize(16, 0x11);
                            check(&code);
                            known += usize::from(common_length(&code).is_some());
                            for end in 0..12 {
                                check(&code[..end]);
                            }
                        }
                    }
                }
            }
        }
        assert!(known > 100_000);
    }

    #[test]
    fn real_code_has_its_lengths() {
        for path in ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/python3", "/usr/bin/busybox"] {
            let Ok(bytes) = fs::read(path) else { continue };
            let mut known = 0;
            for start in (0..bytes.len()).step_by(3) {
                let code = &bytes[start..bytes.len().min(start + LONGEST)];
                check(code);
                known += usize::from(common_length(code).is_some());
            }
            println!("{path}: {known} of {}", bytes.len() / 3);
        }
    }
}
