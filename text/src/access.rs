//! What an instruction does with memory.

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess};

use crate::decode;

/// Whether all that the instruction at the start of some code, `wide` if of 64 bits, does with memory is to store, or to change what is there: then
/// a fault of it is one of a store. One that loads from one place and stores to another is none.
pub fn only_stores(code: &[u8], wide: bool) -> bool {
    let found = if wide { decode::at(code, 0, 0) } else { decode::at32(code) };
    let Some(found) = found else { return false };
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(&found).used_memory();
    let stores =
        |access| matches!(access, OpAccess::Write | OpAccess::ReadWrite | OpAccess::ReadCondWrite | OpAccess::CondWrite);
    !used.is_empty() && used.iter().all(|memory| stores(memory.access()))
}

/// Whether the instruction at the start of code goes on beyond its first `len` bytes, which alone are known for sure: then it cannot be fetched without the
/// others. `compat`: it is 32-bit code.
pub fn goes_on_beyond(code: &[u8], compat: bool, len: usize) -> bool {
    let mut decoder = Decoder::new(if compat { 32 } else { 64 }, code.get(..len).unwrap_or(code), DecoderOptions::NONE);
    // Where it is cut off there is none.
    decoder.decode().is_invalid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_stores_and_both() {
        assert!(only_stores(&[0x48, 0x89, 0x07], true), "mov [rdi], rax");
        assert!(only_stores(&[0x48, 0x01, 0x07], true), "add [rdi], rax");
        assert!(only_stores(&[0x50], true), "push rax");
        assert!(only_stores(&[0xf3, 0x48, 0xab], true), "rep stosq");
        assert!(!only_stores(&[0x48, 0x8b, 0x07], true), "mov rax, [rdi]");
        assert!(!only_stores(&[0x48, 0x39, 0x07], true), "cmp [rdi], rax");
        assert!(!only_stores(&[0xf3, 0x48, 0xa5], true), "rep movsq");
        assert!(!only_stores(&[0xff, 0x37], true), "push [rdi]");
        assert!(only_stores(&[0x60], false), "pusha, which 64-bit code does not have");
        assert!(only_stores(&[0xc7, 0x05, 8, 0, 0, 0, 1, 0, 0, 0], false), "mov dword [8], 1");
        assert!(only_stores(&[0xa3, 0, 0, 0, 0xc0], false), "mov [0xc0000000], eax");
        assert!(!only_stores(&[0xa1, 0, 0, 0, 0xc0], false), "mov eax, [0xc0000000]");
        assert!(!only_stores(&[0x90], true), "nop");
        assert!(!only_stores(&[], true) && !only_stores(&[], false));
    }

    #[test]
    fn an_instruction_goes_on_until_its_last_byte() {
        let load = [0x48, 0x8b, 0x05, 1, 0, 0, 0, 0xc3];
        assert!((1..7).all(|len| goes_on_beyond(&load, false, len)), "mov rax, [rip + 1]");
        assert!(!goes_on_beyond(&load, false, 7) && !goes_on_beyond(&load, false, 8));
        // inc eax, then a load; in 64-bit code a prefix.
        assert!(!goes_on_beyond(&[0x40], true, 1) && goes_on_beyond(&[0x40], false, 1));
    }
}
