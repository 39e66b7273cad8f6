//! Gate `int`: software interrupts on the bare machine. `int 0x80` carries i386 calls, whatever code it is executed by, as on
//! Linux; `int 0x30` carries the machine's own calls, in the registers of `syscall` but for rcx and r11, which it keeps.

use janua_abi::linux::Errno;
use janua_port::gate::Entering;
use janua_port::guest::Abi;
use janua_port::{Entry, Frame, GateId, TrapGate, UserMemory, Way};

mod entry;

const COMPAT: u8 = 0x80;
const NATIVE: u8 = 0x30;

/// The gate.
pub struct Int;

impl TrapGate for Int {
    fn id(&self) -> GateId {
        GateId::Int
    }

    fn ways(&self) -> &'static [Way] {
        &[Way::Interrupt(NATIVE), Way::Interrupt(COMPAT)]
    }

    fn entry(&self, way: Way, entering: Entering) -> Option<usize> {
        match way {
            Way::Interrupt(NATIVE) => Some(entry::native(entering.isolated)),
            Way::Interrupt(COMPAT) => Some(entry::compat(entering.isolated)),
            _ => None,
        }
    }

    fn accept(&self, entry: &Entry, frame: &mut Frame, _user: &dyn UserMemory) -> Option<Abi> {
        let Entry::Vector { number, .. } = *entry else { return None };
        let abi = match number {
            NATIVE => Abi::Native,
            COMPAT => Abi::Compat,
            _ => return None,
        };
        // An i386 number is 32 bits wide.
        frame.orig_rax = if abi == Abi::Compat { frame.rax & 0xffff_ffff } else { frame.rax };
        frame.rax = Errno::ENOSYS.as_result() as u64;
        Some(abi)
    }
}
