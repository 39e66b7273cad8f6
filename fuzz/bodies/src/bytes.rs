//! An input taken apart from its start.

/// What is left of an input. Behind its end there are zeroes.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let (now, rest) = self.0.split_at(N.min(self.0.len()));
        out[..now.len()].copy_from_slice(now);
        self.0 = rest;
        out
    }

    pub fn byte(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }

    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// A number below a bound, of as many bytes as that has: what random tests ask of their stream of numbers.
    pub fn below(&mut self, bound: u64) -> u64 {
        let value = match bound {
            0..=0x100 => self.byte().into(),
            0x101..=0x1_0000 => u16::from_le_bytes(self.take()).into(),
            0x1_0001..=0x1_0000_0000 => self.word().into(),
            _ => self.long(),
        };
        value % bound
    }
}
