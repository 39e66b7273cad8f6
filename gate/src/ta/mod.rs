//! The gate of the SPARC: `ta 0x10`, number in %o0, arguments in %o1 to %o5 and in the word at %sp + 92 of the caller.
//!
//! Calls whose rows are `direct` never get here: the trap's handler calls their functions itself (`arch/src/sparc/entry.rs`).

use janua_port::gate::Way;
use janua_port::guest::Abi;
use janua_port::{Entry, Frame, GateId, TrapGate, UserMemory};

/// Trap type of `ta 0x10`.
const TRAP: u8 = 0x90;
/// Where a caller leaves the seventh word, from its stack pointer on: behind the window's save area, the word for a structure's
/// address and the places of six arguments.
const SEVENTH: usize = 92;

/// `ta 0x10`.
pub struct Ta;

impl TrapGate for Ta {
    fn id(&self) -> GateId {
        GateId::Ta
    }

    fn ways(&self) -> &'static [Way] {
        &[Way::Interrupt(TRAP)]
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
