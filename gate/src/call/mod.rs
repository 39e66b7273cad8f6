//! Gate `call`: call sites rewritten to jumps into the kernel; what is not rewritten traps as in [`crate::sud`].
//!
//! The kernel's text side finds and patches the sites when code is mapped or first traps; each jumps through a trampoline to
//! the entry given here. The entry knows the thread by its descriptor in the host's table, so the host must have its 32-bit
//! interface.

use janua_abi::invasive::record;
use janua_abi::linux::Result;
use janua_port::guest::Abi;
use janua_port::{Frame, GateId, HostSignal, HostedGate, UserMemory};

use crate::sud::Sud;

mod entry;
mod mailbox;

pub use mailbox::Mailbox;

/// The gate.
pub struct Call;

impl HostedGate for Call {
    fn id(&self) -> GateId {
        GateId::Call
    }

    fn trap_id(&self) -> GateId {
        Sud.id()
    }

    fn call_entry(&self, keyed: bool) -> Option<usize> {
        Some(entry::address(keyed))
    }

    fn is_call_store(&self, pc: usize) -> bool {
        entry::is_store(pc)
    }

    fn arm_sandbox(&self) -> Result<()> {
        Sud.arm_sandbox()
    }

    fn arm_thread(&self, selector: *mut u8) -> Result<()> {
        Sud.arm_thread(selector)
    }

    fn disarm_thread(&self) -> Result<()> {
        Sud.disarm_thread()
    }

    fn selector_value(&self) -> u8 {
        Sud.selector_value()
    }

    fn entry_descriptor(&self, keyed: bool, _pid: u32, _tid: u32) -> (usize, [usize; 3]) {
        (record::entry::JUMP, [self.call_entry(keyed).unwrap_or(0), 0, 0])
    }

    fn accept(&self, signal: &HostSignal, frame: &mut Frame, user: &dyn UserMemory) -> Option<Abi> {
        Sud.accept(signal, frame, user)
    }
}
