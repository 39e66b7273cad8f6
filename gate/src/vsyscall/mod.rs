//! Gate `vsyscall`: three calls at fixed addresses in the kernel's half, emulated (as Linux does with `vsyscall=xonly`): the page
//! is not mapped, fetching an instruction at one of the three entries faults, and the fault is the call. It is executed
//! as if by the `ret` of the function that once lay there.

use janua_abi::linux::Errno;
use janua_abi::linux::vsyscall::{CALLS, START, STEP};
use janua_arch::x86_64::exception::{ERROR_FETCH, PAGE_FAULT};
use janua_port::gate::Entering;
use janua_port::guest::Abi;
use janua_port::{Entry, Frame, GateId, TrapGate, UserMemory, Way};

mod entry;

/// The gate.
pub struct Vsyscall;

impl TrapGate for Vsyscall {
    fn id(&self) -> GateId {
        GateId::Vsyscall
    }

    fn ways(&self) -> &'static [Way] {
        &[Way::Exception(PAGE_FAULT)]
    }

    fn entry(&self, way: Way, entering: Entering) -> Option<usize> {
        (way == Way::Exception(PAGE_FAULT)).then(|| entry::native(entering.isolated, entering.guarded))
    }

    fn fixup(&self, pc: usize) -> Option<usize> {
        entry::fixup(pc)
    }

    fn accept(&self, entry: &Entry, frame: &mut Frame, user: &dyn UserMemory) -> Option<Abi> {
        let Entry::Vector { number: PAGE_FAULT, error, addr } = *entry else { return None };
        if error & ERROR_FETCH == 0 || addr != frame.program_counter() {
            return None;
        }
        let (_, number) = (START..).step_by(STEP as usize).zip(CALLS).find(|(entry, _)| *entry == addr as u64)?;
        let mut back = [0; 8];
        user.copy_in(&mut back, frame.stack_pointer()).ok()?;
        frame.rip = u64::from_le_bytes(back);
        frame.rsp += 8;
        frame.orig_rax = number.into();
        frame.rax = Errno::ENOSYS.as_result() as u64;
        Some(Abi::Native)
    }
}
