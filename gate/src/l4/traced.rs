//! The same calls of a traced thread: the host has no vectors for them, so that each is a general protection fault, which the kernel's thread learns by a
//! signal. The instruction shows what it was.

use janua_abi::l4v2::{CALLS, FIRST_VECTOR};
use janua_abi::linux::Result;
use janua_abi::linux::signal::{SIGSEGV, si};
use janua_port::guest::Abi;
use janua_port::{Frame, GateId, HostSignal, HostedGate, UserMemory};

/// `int` with a vector behind it.
const INT: u8 = 0xcd;

/// The gate where the kernel is in another process than its guests.
pub struct Traced;

impl HostedGate for Traced {
    fn id(&self) -> GateId {
        GateId::L4
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
        if (signal.signal, signal.code) != (SIGSEGV, si::KERNEL) {
            return None;
        }
        let mut instruction = [0; 2];
        let at = frame.program_counter();
        user.copy_in(&mut instruction, at).ok()?;
        let call = instruction[1].checked_sub(FIRST_VECTOR).filter(|call| instruction[0] == INT && *call < CALLS)?;
        frame.set_program_counter(at + instruction.len());
        // All registers are words of the call.
        frame.orig_rax = call.into();
        Some(Abi::Compat)
    }
}

#[cfg(test)]
mod tests {
    use janua_port::Fault;

    use super::*;

    /// Two bytes of code at an address.
    struct Code(usize, [u8; 2]);

    impl UserMemory for Code {
        fn is_user(&self, _: usize, _: usize) -> bool {
            true
        }
        fn copy_in_partial(&self, out: &mut [u8], from: usize) -> usize {
            let len = if from == self.0 { out.len().min(2) } else { 0 };
            out[..len].copy_from_slice(&self.1[..len]);
            len
        }
        fn copy_out_partial(&self, _: usize, _: &[u8]) -> usize {
            0
        }
        fn load_u32(&self, _: usize) -> core::result::Result<u32, Fault> {
            Err(Fault)
        }
        fn cmpxchg_u32(&self, _: usize, _: u32, _: u32) -> core::result::Result<u32, Fault> {
            Err(Fault)
        }
    }

    fn accept(code: i32, at: usize, bytes: [u8; 2]) -> (Option<Abi>, Frame) {
        let mut frame = Frame { rax: 0x1234_5678, orig_rax: u64::MAX, ..Frame::start32(0x1000, 0) };
        let signal = HostSignal { signal: SIGSEGV, code, number: 0, arch: 0 };
        (Traced.accept(&signal, &mut frame, &Code(at, bytes)), frame)
    }

    #[test]
    fn each_vector_is_a_call_that_goes_on_behind_its_instruction() {
        for call in 0..CALLS {
            let (abi, frame) = accept(si::KERNEL, 0x1000, [INT, FIRST_VECTOR + call]);
            assert_eq!((abi, frame.number(), frame.rax), (Some(Abi::Compat), usize::from(call), 0x1234_5678));
            assert_eq!(frame.program_counter(), 0x1002);
        }
    }

    #[test]
    fn nothing_else_is() {
        for bytes in [[INT, 0x2f], [INT, 0x37], [INT, 0x80], [0x90, 0x30], [0xcc, 0xcd]] {
            let (abi, frame) = accept(si::KERNEL, 0x1000, bytes);
            assert_eq!((abi, frame.program_counter(), frame.orig_rax), (None, 0x1000, u64::MAX), "{bytes:x?}");
        }
        // A page that is not there, the same bytes at a page fault, and code that cannot be read.
        assert_eq!(accept(1, 0x1000, [INT, 0x30]).0, None);
        assert_eq!(accept(si::KERNEL, 0x2000, [INT, 0x30]).0, None);
    }
}
