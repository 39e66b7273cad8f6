//! The gate of the SPARC: `ta 0x10`, number in %o0, arguments in %o1 to %o5 and in the word at %sp + 92 of the caller.
//!
//! Calls whose rows are `direct` never get here: the trap's handler calls their functions itself ([`entry`]).

use janua_entry::leon3::SEVENTH;
use janua_port::gate::Way;
use janua_port::guest::Abi;
use janua_port::{Entry, Frame, GateId, TrapGate, UserMemory};

mod entry;

/// Trap type of `ta 0x10`.
const TRAP: u8 = 0x90;

/// `ta 0x10`.
pub struct Ta;

impl TrapGate for Ta {
    fn id(&self) -> GateId {
        GateId::Ta
    }

    fn ways(&self) -> &'static [Way] {
        &[Way::Interrupt(TRAP)]
    }

    fn fixup(&self, pc: usize) -> Option<usize> {
        entry::fixup(pc)
    }

    fn accept(&self, entry: &Entry, frame: &mut Frame, user: &dyn UserMemory) -> Option<Abi> {
        if !matches!(entry, Entry::Vector { number: TRAP, .. }) {
            return None;
        }
        frame.seventh = user.load_u32(frame.stack_pointer().wrapping_add(SEVENTH)).ok()?;
        frame.number = frame.o[0];
        frame.skip();
        Some(Abi::Native)
    }
}
