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

/// The same, with the places of its constants.
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

/// Bytes of the instruction at `offset` of the decoder's code, 0 where there is none.
fn length_at(decoder: &mut Decoder<'_>, offset: usize) -> u8 {
    if decoder.set_position(offset).is_err() {
        return 0;
    }
    let instruction = decoder.decode();
    if instruction.is_invalid() { 0 } else { instruction.len() as u8 }
}

/// Where instructions start just before an offset, as far as the bytes tell.
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
    /// Decodes what lies up to `span` bytes before `offset` (itself included as a place to ask for). An instruction is taken
    /// to start at the first byte of `code` when it is `whole`: a segment from its beginning.
    pub fn new(code: &[u8], whole: bool, offset: usize, span: usize) -> Before {
        let end = offset.min(code.len());
        let first = end.saturating_sub(span);
        let mut before = Before { first, end, seen: vec![0; end - first + 1], sequences: 0 };
        // The length of the instruction at each offset once it has been decoded; 0 stands for none.
        let mut lengths = vec![u8::MAX; end - first + 1];
        let starts = if whole && first == 0 { 1 } else { 16 };
        let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
        for start in first..(first + starts).min(end) {
            before.follow(&mut decoder, start, &mut lengths);
        }
        before
    }

    fn follow(&mut self, decoder: &mut Decoder<'_>, start: usize, lengths: &mut [u8]) {
        for count in [false, true] {
            let mut at = start;
            while at < self.end {
                let Some(length) = lengths.get_mut(at - self.first) else { return };
                if *length == u8::MAX {
                    *length = length_at(decoder, at);
                }
                if *length == 0 {
                    return;
                }
                if count && let Some(seen) = self.seen.get_mut(at - self.first) {
                    *seen += 1;
                }
                at += usize::from(*length);
            }
            if count {
                self.sequences += 1;
                if at == self.end && let Some(seen) = self.seen.last_mut() {
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
