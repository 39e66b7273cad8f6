//! The x87 state as FSAVE stores it, in signal frames of 32-bit code and for its tracers, from and to FXSAVE's form.

use alloc::vec::Vec;

use janua_abi::linux::i386::ptrace::USER_I387_32;
use janua_abi::linux::i386::signal::FpState32;
use zerocopy::{FromZeros, IntoBytes};

/// Offsets in FXSAVE's form.
mod fx {
    pub const CONTROL: usize = 0;
    pub const STATUS: usize = 2;
    pub const TAGS: usize = 4;
    pub const OPCODE: usize = 6;
    pub const INSTRUCTION: usize = 8;
    pub const OPERAND: usize = 16;
    pub const REGISTERS: usize = 32;
}

fn half(area: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([area[at], area[at + 1]])
}

fn word(area: &[u8], at: usize) -> u32 {
    u32::from(half(area, at)) | u32::from(half(area, at + 2)) << 16
}

/// What a signal frame holds of an FXSAVE area.
pub fn frame(area: &[u8]) -> FpState32 {
    let mut head = FpState32 {
        cw: u32::from(half(area, fx::CONTROL)) | 0xffff_0000,
        sw: u32::from(half(area, fx::STATUS)) | 0xffff_0000,
        tag: u32::from(full_tags(area)) | 0xffff_0000,
        ipoff: word(area, fx::INSTRUCTION),
        cssel: u32::from(half(area, fx::OPCODE)) << 16 | 0x23,
        dataoff: word(area, fx::OPERAND),
        datasel: 0xffff_002b,
        status: half(area, fx::STATUS),
        ..FpState32::default()
    };
    for (at, register) in head.registers.iter_mut().enumerate() {
        register.as_mut_bytes().copy_from_slice(&area[fx::REGISTERS + at * 16..][..10]);
    }
    head
}

/// What a tracer sees of it: `struct user_i387_ia32_struct`, with the code segment of the tracee and no operation.
pub fn of(area: &[u8], cs: u32) -> Vec<u8> {
    let head = FpState32 { cssel: cs, ..frame(area) };
    head.as_bytes()[..USER_I387_32].to_vec()
}

/// Puts such a state into an FXSAVE area.
pub fn put(area: &mut [u8], state: &[u8]) {
    let mut head = FpState32::new_zeroed();
    head.as_mut_bytes()[..USER_I387_32].copy_from_slice(&state[..USER_I387_32]);
    let mut put = |at: usize, bytes: &[u8]| area[at..at + bytes.len()].copy_from_slice(bytes);
    put(fx::CONTROL, &(head.cw as u16).to_le_bytes());
    put(fx::STATUS, &(head.sw as u16).to_le_bytes());
    put(fx::TAGS, &[short_tags(head.tag as u16), 0]);
    put(fx::OPCODE, &((head.cssel >> 16) as u16).to_le_bytes());
    put(fx::INSTRUCTION, &u64::from(head.ipoff).to_le_bytes());
    put(fx::OPERAND, &u64::from(head.dataoff).to_le_bytes());
    for (at, register) in head.registers.iter().enumerate() {
        put(fx::REGISTERS + at * 16, register.as_bytes());
    }
}

/// The tag word in its full form: two bits a register, from the one bit of FXSAVE's form and what the register holds.
fn full_tags(area: &[u8]) -> u16 {
    const SPECIAL: u16 = 2;
    const EMPTY: u16 = 3;
    let top = usize::from(half(area, fx::STATUS) >> 11 & 7);
    (0..8usize).fold(0, |tags, physical| {
        let register = &area[fx::REGISTERS + (physical.wrapping_sub(top) & 7) * 16..][..10];
        let mantissa = u64::from(word(register, 0)) | u64::from(word(register, 4)) << 32;
        let tag = match half(register, 8) & 0x7fff {
            _ if area[fx::TAGS] & 1 << physical == 0 => EMPTY,
            0x7fff => SPECIAL,
            0 if mantissa == 0 => 1,
            0 => SPECIAL,
            _ if mantissa >> 63 != 0 => 0,
            _ => SPECIAL,
        };
        tags | tag << (2 * physical)
    })
}

/// The one-bit form.
fn short_tags(full: u16) -> u8 {
    (0..8).fold(0, |tags, at| tags | u8::from(full >> (2 * at) & 3 != 3) << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags() {
        let mut area = [0u8; 512];
        assert_eq!(full_tags(&area), 0xffff);
        // One value pushed: the top is 7, and it is ST(0).
        area[fx::STATUS + 1] = 7 << 3;
        area[fx::TAGS] = 0x80;
        area[fx::REGISTERS..][..10].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f]);
        assert_eq!(full_tags(&area), 0x3fff);
        area[fx::REGISTERS..][..10].fill(0);
        assert_eq!(full_tags(&area), 0x7fff);
        assert_eq!((short_tags(0xffff), short_tags(0x3fff), short_tags(0x7fff)), (0, 0x80, 0x80));
    }
}
