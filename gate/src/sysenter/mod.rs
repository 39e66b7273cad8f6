//! Gate `sysenter` on the bare machine, on Intel's processors (AMD's refuse it there). The processor saves nothing, not even
//! which code it came from, so the program decides what it means.
//!
//! In a program of 64-bit code the address to go on at is in rcx and the stack pointer in r11, the two registers `syscall` overwrites.
//! The two bytes before that address are `sysenter` or `int 0x30`: a call that is to be made again after a signal is made by them.
//!
//! In a 32-bit program it is Linux' entry: the registers are those of `int $0x80`, but that ebp is the stack pointer and points at
//! the sixth argument; the call goes on at a fixed address of the vDSO, in front of which is an `int $0x80`.

use janua_port::gate::Entering;
use janua_port::guest::Abi;
use janua_port::{Entry, Frame, GateId, TrapGate, UserMemory, Way};

mod entry;

/// The gate.
pub struct Sysenter;

impl TrapGate for Sysenter {
    fn id(&self) -> GateId {
        GateId::Sysenter
    }

    fn ways(&self) -> &'static [Way] {
        &[Way::Sysenter, Way::SysenterCompat]
    }

    fn entry(&self, way: Way, entering: Entering) -> Option<usize> {
        match way {
            Way::Sysenter => Some(entry::native(entering.isolated)),
            Way::SysenterCompat => Some(entry::compat(entering.isolated)),
            _ => None,
        }
    }

    fn fixup(&self, pc: usize) -> Option<usize> {
        entry::fixup(pc)
    }

    fn accept(&self, entry: &Entry, _frame: &mut Frame, _user: &dyn UserMemory) -> Option<Abi> {
        match entry {
            Entry::Sysenter => Some(Abi::Native),
            Entry::SysenterCompat => Some(Abi::Compat),
            _ => None,
        }
    }
}
