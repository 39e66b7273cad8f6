//! What an instruction does with memory.

use iced_x86::{InstructionInfoFactory, OpAccess};

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
}
