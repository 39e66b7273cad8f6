//! Gate `sud`: Syscall User Dispatch (Linux 5.11).
//!
//! The host looks at the thread's selector byte on every call; while it is "block" the call becomes a SIGSYS with code
//! SYS_USER_DISPATCH and is not executed. There is no allowed range: the kernel's own calls pass because the entry writes
//! "allow", so a guest that jumps to a `syscall` in kernel text is caught like anywhere else. The host forgets the dispatch at
//! clone and fork, so every new thread arms itself before it runs user code.

use core::ops::Range;

use janua_abi::linux::prctl;
use janua_abi::linux::Result;
use janua_abi::linux::signal::SIGSYS;
use janua_entry::hosted::SELECTOR_BLOCK;
use janua_port::guest::Abi;
use janua_port::{Frame, GateId, HostSignal, HostedGate, UserMemory};

const PRCTL: usize = 157;
/// `si_code` of a dispatched call.
const SYS_USER_DISPATCH: i32 = 2;

/// Dispatches the calling thread's calls by the selector, but for those made from `allowed` (empty: from nowhere).
pub(crate) fn arm(selector: *mut u8, allowed: Range<usize>) -> Result<()> {
    let (start, len) = (allowed.start, allowed.len());
    crate::host(PRCTL, prctl::SET_SYSCALL_USER_DISPATCH as usize, prctl::SYS_DISPATCH_ON, start, len, selector as usize).map(|_| ())
}

/// The gate.
pub struct Sud;

impl HostedGate for Sud {
    fn id(&self) -> GateId {
        GateId::Sud
    }

    fn arm_sandbox(&self) -> Result<()> {
        Ok(())
    }

    fn arm_thread(&self, selector: *mut u8) -> Result<()> {
        arm(selector, 0..0)
    }

    fn disarm_thread(&self) -> Result<()> {
        crate::host(PRCTL, prctl::SET_SYSCALL_USER_DISPATCH as usize, prctl::SYS_DISPATCH_OFF, 0, 0, 0).map(|_| ())
    }

    fn selector_value(&self) -> u8 {
        SELECTOR_BLOCK
    }

    fn accept(&self, signal: &HostSignal, frame: &mut Frame, _user: &dyn UserMemory) -> Option<Abi> {
        if signal.signal == SIGSYS && signal.code == SYS_USER_DISPATCH {
            crate::take_call(signal, frame)
        } else {
            None
        }
    }
}
