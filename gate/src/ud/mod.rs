//! Gate `ud`: LOCK NOP (F0 90), an instruction no processor executes. Fiasco's programs fetch their kernel information page by
//! it; here it carries calls in the registers of `syscall` and keeps rcx and r11.

use janua_arch::x86_64::exception::INVALID_OPCODE;
use janua_abi::linux::Errno;
use janua_port::gate::Entering;
use janua_port::guest::Abi;
use janua_port::{Entry, Frame, GateId, TrapGate, UserMemory, Way};

mod entry;

const LOCK_NOP: [u8; 2] = [0xf0, 0x90];

/// The gate.
pub struct Ud;

impl TrapGate for Ud {
    fn id(&self) -> GateId {
        GateId::Ud
    }

    fn ways(&self) -> &'static [Way] {
        &[Way::Exception(INVALID_OPCODE)]
    }

    fn entry(&self, way: Way, entering: Entering) -> Option<usize> {
        (way == Way::Exception(INVALID_OPCODE)).then(|| entry::native(entering.isolated, entering.guarded))
    }

    fn fixup(&self, pc: usize) -> Option<usize> {
        entry::fixup(pc)
    }

    fn accept(&self, entry: &Entry, frame: &mut Frame, user: &dyn UserMemory) -> Option<Abi> {
        let Entry::Vector { number: INVALID_OPCODE, .. } = *entry else { return None };
        let mut code = [0; 2];
        user.copy_in(&mut code, frame.program_counter()).ok().filter(|()| code == LOCK_NOP)?;
        frame.rip += code.len() as u64;
        frame.orig_rax = frame.rax;
        frame.rax = Errno::ENOSYS.as_result() as u64;
        Some(Abi::Native)
    }
}
