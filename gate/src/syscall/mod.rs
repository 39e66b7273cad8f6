//! Gate `syscall` on the bare machine: the instruction of 64-bit code, and on AMD's processors that of 32-bit programs, whose
//! second argument is in ebp, since the processor takes ecx for itself, and whose sixth is on top of the stack. The latter goes on
//! where [`super::sysenter`] does.

use janua_port::gate::Entering;
use janua_port::guest::Abi;
use janua_port::{Entry, Frame, GateId, TrapGate, UserMemory, Way};

mod entry;

/// The gate.
pub struct Syscall;

impl TrapGate for Syscall {
    fn id(&self) -> GateId {
        GateId::Syscall
    }

    fn ways(&self) -> &'static [Way] {
        &[Way::Syscall, Way::SyscallCompat]
    }

    fn entry(&self, way: Way, entering: Entering) -> Option<usize> {
        match way {
            Way::Syscall => Some(entry::native(entering.isolated)),
            Way::SyscallCompat => Some(entry::compat(entering.isolated)),
            _ => None,
        }
    }

    fn fixup(&self, pc: usize) -> Option<usize> {
        entry::fixup(pc)
    }

    fn accept(&self, entry: &Entry, _frame: &mut Frame, _user: &dyn UserMemory) -> Option<Abi> {
        match entry {
            Entry::Syscall => Some(Abi::Native),
            Entry::SyscallCompat => Some(Abi::Compat),
            _ => None,
        }
    }
}
