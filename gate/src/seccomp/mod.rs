//! Gate `seccomp`: the platform's filter turns each call made outside the kernel's text into a SIGSYS (Linux 3.5).
//!
//! The filter is the platform's second wall, which looks at the instruction pointer; this gate only asks it to trap what it would
//! kill otherwise. It is inherited by every process and thread and can never be taken off. On its own it does not stop a guest
//! that jumps to a `syscall` in kernel text; that is what the jail is for.

use janua_abi::linux::Result;
use janua_abi::linux::signal::SIGSYS;
use janua_entry::hosted::SELECTOR_ALLOW;
use janua_port::gate::Outside;
use janua_port::guest::Abi;
use janua_port::{Frame, GateId, HostSignal, HostedGate, UserMemory};

/// `si_code` of a filtered call.
const SYS_SECCOMP: i32 = 1;

/// The gate.
pub struct Seccomp;

impl HostedGate for Seccomp {
    fn id(&self) -> GateId {
        GateId::Seccomp
    }

    fn arm_sandbox(&self) -> Result<()> {
        Ok(())
    }

    fn outside(&self) -> Outside {
        Outside::Trap
    }

    fn arm_thread(&self, _selector: *mut u8) -> Result<()> {
        Ok(())
    }

    fn disarm_thread(&self) -> Result<()> {
        Ok(())
    }

    fn selector_value(&self) -> u8 {
        SELECTOR_ALLOW
    }

    fn accept(&self, signal: &HostSignal, frame: &mut Frame, _user: &dyn UserMemory) -> Option<Abi> {
        if signal.signal == SIGSYS && signal.code == SYS_SECCOMP {
            crate::take_call(signal, frame)
        } else {
            None
        }
    }
}
