//! Faults of user code that the program must not notice: below a mapping that grows, or from how the kernel keeps code
//! (`janua_object::mm::guard`).

use alloc::vec;

use janua_object::mm::Mm;
use janua_port::Frame;
use janua_port::space::Access;
use janua_text::scan;
use janua_text::step::{self, Core};

use crate::Thread;
use crate::thread::ThreadExt;

const SIGILL: u32 = 4;
const SIGSEGV: u32 = 11;
/// `si_code`: nothing is mapped.
const SEGV_MAPERR: i32 = 1;
/// `si_code`: the mapping does not allow the access.
const SEGV_ACCERR: i32 = 2;
/// Bits of a page fault's error code.
const STORE: u64 = 1 << 1;
const FETCH: u64 = 1 << 4;

/// The longest instruction, bytes.
const LONGEST: usize = 15;
const PAGE: usize = 4096;

/// Whether a fault has been dealt with, so that the thread goes on at `frame`.
pub fn fault(thread: &Thread, frame: &mut Frame, signal: u32, code: i32, addr: usize, error: u64) -> bool {
    let Some(mm) = thread.process().mm() else { return false };
    // The work of an instruction is done for 64-bit code only.
    let steps = !frame.is_compat_mode();
    match signal {
        SIGSEGV if code == SEGV_MAPERR => mm.grow_down(addr, &super::limits(thread), thread.tid()),
        SIGSEGV if code == SEGV_ACCERR && error & FETCH != 0 => {
            mm.fault(addr, Access::Fetch) || steps && mm.is_barred(addr) && walk(thread, frame, addr / PAGE)
        }
        SIGSEGV if code == SEGV_ACCERR && error & STORE != 0 => {
            mm.fault(addr, Access::Store) && (!is_near(frame, addr) || steps && step_over(thread, frame))
        }
        SIGILL if steps => defused(thread, frame, &mm),
        _ => false,
    }
}

/// Does the instructions of a page that must not run, until they lead out of it. A constant that a just-in-time compiler has placed in its
/// code can happen to have the bytes of a forbidden instruction: an address, for instance, which differs from run to run.
fn walk(thread: &Thread, frame: &mut Frame, page: usize) -> bool {
    // Then signals have their turn, and the next fetch faults again.
    const MOST: usize = 256;
    for count in 0..MOST {
        let rip = frame.rip;
        if count > 0 && rip as usize / PAGE != page {
            break;
        }
        let mut bytes = [0; LONGEST];
        let got = thread.user().copy_in_partial(&mut bytes, rip as usize);
        let code = &bytes[..got];
        // What would be a forbidden instruction stays one.
        if scan::hits(code).next().is_some_and(|hit| is_itself(code, hit.at)) {
            return count > 0;
        }
        match step::step(&mut User { thread, frame }, code, rip) {
            Some(next) => frame.rip = next,
            None => return count > 0,
        }
    }
    true
}

/// Whether the instruction that `code` starts with is the find at `at`: nothing but prefixes stands before that.
fn is_itself(code: &[u8], at: usize) -> bool {
    let prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    code[..at].iter().all(prefix)
}

/// Whether the page at `addr` may hold a part of the instruction about to run.
fn is_near(frame: &Frame, addr: usize) -> bool {
    let (first, page) = (frame.rip as usize, addr / PAGE);
    first / PAGE == page || first.wrapping_add(LONGEST - 1) / PAGE == page
}

/// Does the store of an instruction that lies in the page it stores to: if it were tried again, the fetch would take the right
/// to write away, the store the right to execute, and so on.
fn step_over(thread: &Thread, frame: &mut Frame) -> bool {
    let mut bytes = [0; LONGEST];
    let got = thread.user().copy_in_partial(&mut bytes, frame.rip as usize);
    let rip = frame.rip;
    match step::step(&mut User { thread, frame }, &bytes[..got], rip) {
        Some(next) => frame.rip = next,
        None => return false,
    }
    true
}

/// Does the work of an instruction that was overwritten.
fn defused(thread: &Thread, frame: &mut Frame, mm: &Mm) -> bool {
    let Some((bytes, len)) = mm.defused(frame.rip as usize) else { return false };
    let rip = frame.rip;
    match step::step(&mut User { thread, frame }, &bytes[..len], rip) {
        Some(next) => frame.rip = next,
        None => return false,
    }
    true
}

/// The thread's registers and memory.
struct User<'a> {
    thread: &'a Thread,
    frame: &'a mut Frame,
}

impl Core for User<'_> {
    fn register(&self, number: usize) -> u64 {
        self.frame.register(number)
    }

    fn set_register(&mut self, number: usize, value: u64) {
        self.frame.set_register(number, value);
    }

    fn flags(&self) -> u64 {
        self.frame.rflags
    }

    fn set_flags(&mut self, flags: u64) {
        self.frame.rflags = flags;
    }

    fn load(&mut self, addr: u64, bytes: &mut [u8]) -> bool {
        self.thread.user().copy_in(bytes, addr as usize).is_ok()
    }

    fn store(&mut self, addr: u64, bytes: &[u8]) -> bool {
        self.thread.user().copy_out(addr as usize, bytes).is_ok()
    }

    fn set_vector(&mut self, number: usize, value: u128) -> bool {
        // The legacy area: sixteen registers from 160 on; the header's first word says that they are not in their initial state.
        const REGISTERS: usize = 160;
        const PRESENT: usize = 512;
        const SSE: u8 = 1 << 1;
        let Ok(registers) = self.thread.registers() else { return false };
        let mut area = vec![0; self.thread.machine().fpu().size];
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
        let Ok(registers) = self.thread.registers() else { return false };
        let mut area = vec![0; self.thread.machine().fpu().size];
        // A compacted area may end before a page that is not there.
        let got = self.thread.user().copy_in_partial(&mut area, addr as usize);
        addr.is_multiple_of(64) && registers.fpu_restore_part(&area[..got], mask).is_ok()
    }
}
