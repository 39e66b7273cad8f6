//! Gate `sysenter` of 64-bit code on the bare machine, on Intel's processors (AMD's refuse it there). The processor saves nothing:
//! a program leaves the address to go on at in rcx and its stack pointer in r11, the two registers `syscall` overwrites.
//! The two bytes before that address are `sysenter` or `int 0x30`: a call that is to be made again after a signal is made by them.

use janua_port::guest::Abi;
use janua_port::{Entry, Frame, TrapGate, UserMemory, Way};

/// The gate.
pub struct Sysenter;

impl TrapGate for Sysenter {
    fn id(&self) -> u8 {
        20
    }

    fn name(&self) -> &'static str {
        "sysenter"
    }

    fn ways(&self) -> &'static [Way] {
        &[Way::Sysenter]
    }

    fn accept(&self, entry: &Entry, _frame: &mut Frame, _user: &dyn UserMemory) -> Option<Abi> {
        (*entry == Entry::Sysenter).then_some(Abi::Native)
    }
}
