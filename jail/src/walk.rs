//! Instructions whose work the kernel does, because they must not run where they are ([`super::guard`]).

use alloc::vec;

use janua_object::mm::jail::Interrupted;
use janua_port::{Frame, PAGE};
use janua_text::decode::LONGEST;
use janua_text::scan;
use janua_text::step::{self, Core};

/// Does the instructions of a page that must not run, until they lead out of it. A constant that a just-in-time compiler has placed in its
/// code can happen to have the bytes of a forbidden instruction: an address, for instance, which differs from run to run.
pub fn walk(by: &mut Interrupted<'_>, page: usize) -> bool {
    // Then signals have their turn, and the next fetch faults again.
    const MOST: usize = 256;
    for count in 0..MOST {
        let rip = by.frame.rip;
        if count > 0 && rip as usize / PAGE != page {
            break;
        }
        let mut bytes = [0; LONGEST];
        let got = by.context.memory().copy_in_partial(&mut bytes, rip as usize);
        let code = &bytes[..got];
        // What would be a forbidden instruction stays one.
        if scan::hits(code).next().is_some_and(|hit| is_itself(code, hit.at)) {
            return count > 0;
        }
        match step::step(&mut User(by), code, rip) {
            Some(next) => by.frame.rip = next,
            None => return count > 0,
        }
    }
    true
}

/// Whether the instruction that `code` starts with is the find at `at`: nothing but prefixes is before that.
fn is_itself(code: &[u8], at: usize) -> bool {
    let prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    code[..at].iter().all(prefix)
}

/// Whether the page at `addr` may hold a part of the instruction about to run.
pub fn is_near(frame: &Frame, addr: usize) -> bool {
    let (first, page) = (frame.rip as usize, addr / PAGE);
    first / PAGE == page || first.wrapping_add(LONGEST - 1) / PAGE == page
}

/// Does the store of an instruction that is in the page it stores to: if it were tried again, the fetch would take the right
/// to write away, the store the right to execute, and so on.
pub fn step_over(by: &mut Interrupted<'_>) -> bool {
    let mut bytes = [0; LONGEST];
    let got = by.context.memory().copy_in_partial(&mut bytes, by.frame.rip as usize);
    step_as(by, &bytes[..got])
}

/// Does the work of an instruction, whatever is at its place.
pub fn step_as(by: &mut Interrupted<'_>, instruction: &[u8]) -> bool {
    let rip = by.frame.rip;
    match step::step(&mut User(by), instruction, rip) {
        Some(next) => by.frame.rip = next,
        None => return false,
    }
    true
}

/// The thread's registers and memory.
struct User<'a, 'b>(&'a mut Interrupted<'b>);

impl Core for User<'_, '_> {
    fn register(&self, number: usize) -> u64 {
        self.0.frame.register(number)
    }

    fn set_register(&mut self, number: usize, value: u64) {
        self.0.frame.set_register(number, value);
    }

    fn flags(&self) -> u64 {
        self.0.frame.rflags
    }

    fn set_flags(&mut self, flags: u64) {
        self.0.frame.rflags = flags;
    }

    fn load(&mut self, addr: u64, bytes: &mut [u8]) -> bool {
        self.0.context.memory().copy_in(bytes, addr as usize).is_ok()
    }

    fn store(&mut self, addr: u64, bytes: &[u8]) -> bool {
        self.0.context.memory().copy_out(addr as usize, bytes).is_ok()
    }

    fn set_vector(&mut self, number: usize, value: u128) -> bool {
        // The legacy area: sixteen registers from 160 on; the header's first word marks them as not in their initial state.
        const REGISTERS: usize = 160;
        const PRESENT: usize = 512;
        const SSE: u8 = 1 << 1;
        let Ok(registers) = self.0.context.registers() else { return false };
        let mut area = vec![0; self.0.fpu_size];
        registers.fpu_save(&mut area);
        let Some(place) = area.get_mut(REGISTERS + 16 * number..).and_then(|place| place.first_chunk_mut()) else {
            return false;
        };
        *place = value.to_le_bytes();
        if let Some(present) = area.get_mut(PRESENT) {
            *present |= SSE;
        }
        registers.fpu_restore(&area).is_ok()
    }

    fn restore(&mut self, addr: u64, mask: u64) -> bool {
        let Ok(registers) = self.0.context.registers() else { return false };
        let mut area = vec![0; self.0.fpu_size];
        // A compacted area may end before a page that is not there.
        let got = self.0.context.memory().copy_in_partial(&mut area, addr as usize);
        addr.is_multiple_of(64) && registers.fpu_restore_part(&area[..got], mask).is_ok()
    }
}
