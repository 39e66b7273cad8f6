//! Gate `call` of a kernel in another process: rewritten calls leave their words in a mailbox of their thread, and what is not rewritten traps as in
//! [`crate::ptrace`].
//!
//! The code that the sites jump to is the platform's, which maps it (`platform/process/src/mailbox.rs`): it is in guests' processes, where there is nothing
//! of the kernel's.

use janua_abi::linux::Result;
use janua_port::guest::Abi;
use janua_port::{Frame, GateId, HostSignal, HostedGate, UserMemory};

use crate::ptrace::Ptrace;

/// The gate.
pub struct Mailbox;

impl HostedGate for Mailbox {
    fn id(&self) -> GateId {
        GateId::Call
    }

    fn trap_id(&self) -> GateId {
        Ptrace.id()
    }

    fn arm_sandbox(&self) -> Result<()> {
        Ptrace.arm_sandbox()
    }

    fn arm_thread(&self, selector: *mut u8) -> Result<()> {
        Ptrace.arm_thread(selector)
    }

    fn disarm_thread(&self) -> Result<()> {
        Ptrace.disarm_thread()
    }

    fn selector_value(&self) -> u8 {
        Ptrace.selector_value()
    }

    fn accept(&self, signal: &HostSignal, frame: &mut Frame, user: &dyn UserMemory) -> Option<Abi> {
        Ptrace.accept(signal, frame, user)
    }
}
