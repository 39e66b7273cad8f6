//! Gate `vsyscall`: three calls at fixed addresses in the kernel's half, emulated (as Linux does with `vsyscall=xonly`): the page
//! is not mapped, fetching an instruction at one of the three entries faults, and the fault is the call. It is executed
//! as if by the `ret` of the function that once lay there.

use janua_abi::linux::Errno;
use janua_entry::bare::VSYSCALLS;
use janua_port::gate::Entering;
use janua_port::guest::Abi;
use janua_port::{Entry, Frame, GateId, TrapGate, UserMemory, Way};

mod entry;

const PAGE_FAULT: u8 = 14;
/// Bit of the error code: the fault was an instruction fetch. Processors without the no-execute bit leave it clear.
const FETCH: u64 = 1 << 4;
/// The entries, in the order of [`VSYSCALLS`].
const ENTRIES: [usize; 3] = [0xffff_ffff_ff60_0000, 0xffff_ffff_ff60_0400, 0xffff_ffff_ff60_0800];

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
        if error & FETCH == 0 || addr != frame.program_counter() {
            return None;
        }
        let (_, number) = ENTRIES.into_iter().zip(VSYSCALLS).find(|(entry, _)| *entry == addr)?;
        let mut back = [0; 8];
        user.copy_in(&mut back, frame.stack_pointer()).ok()?;
        frame.rip = u64::from_le_bytes(back);
        frame.rsp += 8;
        frame.orig_rax = number.into();
        frame.rax = Errno::ENOSYS.as_result() as u64;
        Some(Abi::Native)
    }
}
