//! Gate `ptrace`: the host stops a traced thread at each call (PTRACE_SYSEMU), and does not make it.
//!
//! The machine pulls: it runs user code until that stops, and asks here what the stop means. Nothing of the program is changed, and nothing
//! of the kernel is in its address space.

use janua_abi::linux::signal::SIGTRAP;
use janua_abi::linux::{Errno, Result};
use janua_port::guest::Abi;
use janua_port::{Frame, GateId, HostSignal, HostedGate, UserMemory};

/// `int $0x80`.
const INT80: [u8; 2] = [0xcd, 0x80];

/// The gate.
pub struct Ptrace;

impl HostedGate for Ptrace {
    fn id(&self) -> GateId {
        GateId::Ptrace
    }

    fn arm_sandbox(&self) -> Result<()> {
        Ok(())
    }

    // Who traces a thread has armed it.
    fn arm_thread(&self, _selector: *mut u8) -> Result<()> {
        Ok(())
    }

    fn disarm_thread(&self) -> Result<()> {
        Ok(())
    }

    fn selector_value(&self) -> u8 {
        janua_entry::hosted::SELECTOR_ALLOW
    }

    fn accept(&self, signal: &HostSignal, frame: &mut Frame, user: &dyn UserMemory) -> Option<Abi> {
        if signal.signal != SIGTRAP {
            return None;
        }
        frame.orig_rax = i64::from(signal.number) as u64;
        frame.rax = Errno::ENOSYS.as_result() as u64;
        let mut instruction = [0; 2];
        // The host reports which of its two tables the call was for by an extra request alone; 64-bit code has another instruction for each.
        let is_compat = frame.is_compat_mode() || {
            let read = user.copy_in(&mut instruction, frame.program_counter().wrapping_sub(INT80.len()));
            read.is_ok() && instruction == INT80
        };
        Some(if is_compat { Abi::Compat } else { Abi::Native })
    }
}

#[cfg(test)]
mod tests {
    use janua_port::user::NoMemory;

    use super::*;

    #[test]
    fn a_stop_at_a_call_is_one_of_the_code_that_made_it() {
        let stop = |signal| HostSignal { signal, code: 0, number: 39, arch: 0 };
        let mut frame = Frame { rax: 5, ..Frame::start32(0x1000, 0) };
        assert_eq!(Ptrace.accept(&stop(11), &mut frame, &NoMemory), None);
        assert_eq!(Ptrace.accept(&stop(SIGTRAP), &mut frame, &NoMemory), Some(Abi::Compat));
        assert_eq!((frame.orig_rax, frame.rax as i64), (39, -38));
        // Where the instruction cannot be read any more it was the usual one.
        let mut frame = Frame::start(0x1000, 0);
        assert_eq!(Ptrace.accept(&stop(SIGTRAP), &mut frame, &NoMemory), Some(Abi::Native));
    }
}
