//! Gate `vsyscall`: three calls at fixed addresses in the kernel's half, emulated (as Linux does with `vsyscall=xonly`): the page
//! is not mapped, fetching an instruction at one of the three entries faults, and the fault is the call. It is executed
//! as if by the `ret` of the function that once lay there.

use janua_abi::linux::Errno;
use janua_port::guest::Abi;
use janua_port::{Entry, Frame, GateId, TrapGate, UserMemory, Way};

const PAGE_FAULT: u8 = 14;
/// Bit of the error code: the fault was an instruction fetch. Processors without the no-execute bit leave it clear.
const FETCH: u64 = 1 << 4;
/// The entries and the numbers of the calls they stand for: gettimeofday, time, getcpu.
const ENTRIES: [(usize, u64); 3] =
    [(0xffff_ffff_ff60_0000, 96), (0xffff_ffff_ff60_0400, 201), (0xffff_ffff_ff60_0800, 309)];

/// The gate.
pub struct Vsyscall;

impl TrapGate for Vsyscall {
    fn id(&self) -> GateId {
        GateId::Vsyscall
    }

    fn ways(&self) -> &'static [Way] {
        &[Way::Exception(PAGE_FAULT)]
    }

    fn accept(&self, entry: &Entry, frame: &mut Frame, user: &dyn UserMemory) -> Option<Abi> {
        let Entry::Vector { number: PAGE_FAULT, error, addr } = *entry else { return None };
        if error & FETCH == 0 || addr != frame.program_counter() {
            return None;
        }
        let (_, number) = ENTRIES.into_iter().find(|(entry, _)| *entry == addr)?;
        let mut back = [0; 8];
        user.copy_in(&mut back, frame.stack_pointer()).ok()?;
        frame.rip = u64::from_le_bytes(back);
        frame.rsp += 8;
        frame.orig_rax = number;
        frame.rax = Errno::ENOSYS.as_result() as u64;
        Some(Abi::Native)
    }
}
