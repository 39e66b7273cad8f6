//! What an instruction does with memory.

use iced_x86::{InstructionInfoFactory, OpAccess};

use crate::decode;

/// Whether all that the instruction at the start of 64-bit code does with memory is to store, or to change what is there: then a fault of it
/// is one of a store. One that loads from one place and stores to another is none.
pub fn only_stores(code: &[u8]) -> bool {
    let Some(found) = decode::at(code, 0, 0) else { return false };
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
        assert!(only_stores(&[0x48, 0x89, 0x07]), "mov [rdi], rax");
        assert!(only_stores(&[0x48, 0x01, 0x07]), "add [rdi], rax");
        assert!(only_stores(&[0x50]), "push rax");
        assert!(only_stores(&[0xf3, 0x48, 0xab]), "rep stosq");
        assert!(!only_stores(&[0x48, 0x8b, 0x07]), "mov rax, [rdi]");
        assert!(!only_stores(&[0x48, 0x39, 0x07]), "cmp [rdi], rax");
        assert!(!only_stores(&[0xf3, 0x48, 0xa5]), "rep movsq");
        assert!(!only_stores(&[0xff, 0x37]), "push [rdi]");
        assert!(!only_stores(&[0x90]), "nop");
        assert!(!only_stores(&[]));
    }
}
