//! Gate `seccomp`: a filter that turns each call made outside the kernel's text into a SIGSYS (Linux 3.5).
//!
//! The filter looks at the instruction pointer: calls from the kernel's range pass, all others trap with code SYS_SECCOMP. It
//! is inherited by every process and thread and can never be taken off. On its own it does not stop a guest that jumps to a
//! `syscall` in kernel text; that is what the jail is for.

use janua_abi::linux::Result;
use janua_arch::x86_64::hosted::{KERNEL_BASE, SELECTOR_ALLOW};
use janua_port::guest::Abi;
use janua_port::{Frame, HostSignal, HostedGate};

const PRCTL: usize = 157;
const SECCOMP: usize = 317;
const PR_SET_NO_NEW_PRIVS: usize = 38;
const SET_MODE_FILTER: usize = 1;
/// `si_code` of a filtered call.
const SYS_SECCOMP: i32 = 1;

const RET_ALLOW: u32 = 0x7fff_0000;
const RET_TRAP: u32 = 0x0003_0000;
/// Offset of the upper half of `seccomp_data.instruction_pointer`.
const IP_HIGH: u32 = 12;

/// One BPF instruction (`struct sock_filter`).
#[repr(C)]
#[derive(Clone, Copy)]
struct Filter {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

#[repr(C)]
struct Program {
    len: u16,
    filter: *const Filter,
}

const LOAD_WORD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// The gate.
pub struct Seccomp;

impl HostedGate for Seccomp {
    fn id(&self) -> u8 {
        2
    }

    fn name(&self) -> &'static str {
        "seccomp"
    }

    fn arm_sandbox(&self) -> Result<()> {
        // The image lies in the 4 GiB that start at KERNEL_BASE, so the upper word of the address tells.
        let filter = [
            Filter { code: LOAD_WORD, jt: 0, jf: 0, k: IP_HIGH },
            Filter { code: JUMP_EQUAL, jt: 0, jf: 1, k: (KERNEL_BASE >> 32) as u32 },
            Filter { code: RETURN, jt: 0, jf: 0, k: RET_ALLOW },
            Filter { code: RETURN, jt: 0, jf: 0, k: RET_TRAP },
        ];
        let program = Program { len: filter.len() as u16, filter: filter.as_ptr() };
        crate::host(PRCTL, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)?;
        crate::host(SECCOMP, SET_MODE_FILTER, 0, &raw const program as usize, 0, 0).map(|_| ())
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

    fn accept(&self, signal: &HostSignal, frame: &mut Frame) -> Option<Abi> {
        if signal.signal == crate::SIGSYS && signal.code == SYS_SECCOMP {
            crate::take_call(signal, frame)
        } else {
            None
        }
    }
}
