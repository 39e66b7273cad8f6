//! Gate `callgate`: a far call (`call fword ptr`, selector 0x53) through a descriptor of the processor's table, on the bare machine.
//! Registers as for `syscall`, but rcx and r11 are kept.
//!
//! Behind the far call is an `int 0x30` (two bytes), which the return skips: a call that is to be made again after a signal
//! is made by it, as Linux' 32-bit vDSO has an `int 0x80` behind its `sysenter`.

use janua_port::gate::Entering;
use janua_port::guest::Abi;
use janua_port::{Entry, Frame, GateId, TrapGate, UserMemory, Way};

mod entry;

/// Bytes of the `int 0x30` behind the call.
const RESTART: u64 = 2;

/// The gate.
pub struct CallGate;

impl TrapGate for CallGate {
    fn id(&self) -> GateId {
        GateId::CallGate
    }

    fn ways(&self) -> &'static [Way] {
        &[Way::CallGate]
    }

    fn entry(&self, way: Way, entering: Entering) -> Option<usize> {
        (way == Way::CallGate).then(|| entry::native(entering.isolated))
    }

    fn accept(&self, entry: &Entry, frame: &mut Frame, _user: &dyn UserMemory) -> Option<Abi> {
        if *entry != Entry::CallGate {
            return None;
        }
        frame.rip = frame.rip.wrapping_add(RESTART);
        Some(Abi::Native)
    }
}
