//! Gate `l4`: the software interrupts by which programs of L4 make their calls, one a call.

use janua_abi::l4v2::{CALLS, FIRST_VECTOR};
use janua_port::guest::Abi;
use janua_port::{Entry, Frame, GateId, TrapGate, UserMemory, Way};

mod traced;

pub use traced::Traced;

/// The gate of the bare machine.
pub struct L4;

static WAYS: [Way; CALLS as usize] = {
    let mut ways = [Way::Interrupt(FIRST_VECTOR); CALLS as usize];
    let mut at = 0;
    while at < ways.len() {
        ways[at] = Way::Interrupt(FIRST_VECTOR + at as u8);
        at += 1;
    }
    ways
};

impl TrapGate for L4 {
    fn id(&self) -> GateId {
        GateId::L4
    }

    fn ways(&self) -> &'static [Way] {
        &WAYS
    }

    fn accept(&self, entry: &Entry, frame: &mut Frame, _user: &dyn UserMemory) -> Option<Abi> {
        let Entry::Vector { number, .. } = *entry else { return None };
        let call = number.checked_sub(FIRST_VECTOR).filter(|call| *call < CALLS)?;
        // All registers are words of the call.
        frame.orig_rax = call.into();
        Some(Abi::Compat)
    }
}

#[cfg(test)]
mod tests {
    use janua_port::user::NoMemory;

    use super::*;

    #[test]
    fn each_vector_is_a_call_and_changes_no_register() {
        for call in 0..CALLS {
            let mut frame = Frame { rax: 0x1234_5678_9abc, ..Frame::default() };
            let entry = Entry::Vector { number: FIRST_VECTOR + call, error: 0, addr: 0 };
            assert_eq!(L4.accept(&entry, &mut frame, &NoMemory), Some(Abi::Compat));
            assert_eq!((frame.number(), frame.rax), (usize::from(call), 0x1234_5678_9abc));
            assert!(L4.ways().contains(&Way::Interrupt(FIRST_VECTOR + call)));
        }
    }

    #[test]
    fn other_vectors_are_none() {
        for number in [0x2f, 0x37, 0x80, 14] {
            let mut frame = Frame::default();
            assert_eq!(L4.accept(&Entry::Vector { number, error: 0, addr: 0 }, &mut frame, &NoMemory), None);
        }
    }
}
