//! Gate `syscall`: the instruction of 64-bit code, on the bare machine.

use janua_port::guest::Abi;
use janua_port::{Entry, Frame, TrapGate, UserMemory, Way};

/// The gate.
pub struct Syscall;

impl TrapGate for Syscall {
    fn id(&self) -> u8 {
        16
    }

    fn name(&self) -> &'static str {
        "syscall"
    }

    fn ways(&self) -> &'static [Way] {
        &[Way::Syscall]
    }

    fn accept(&self, entry: &Entry, _frame: &mut Frame, _user: &dyn UserMemory) -> Option<Abi> {
        (*entry == Entry::Syscall).then_some(Abi::Native)
    }
}
