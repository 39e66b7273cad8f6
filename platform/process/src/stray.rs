//! Calls that no gate takes: the host has stopped a thread at one, and to its program there is no such thing.

use janua_port::trap::{Cause, Exception};
use janua_port::{Frame, UserMemory};

/// `int 0x80`, the one instruction of these that a processor refuses with a vector.
const INT80: [u8; 2] = [0xcd, 0x80];

/// What a processor without that call would report: for `int 0x80` a general protection fault with the entry of the interrupt table, for the others
/// that there is no such instruction. The frame is that of the instruction then.
pub fn call(frame: &mut Frame, user: &dyn UserMemory) -> Exception {
    let mut instruction = [0; 2];
    let at = frame.program_counter().wrapping_sub(INT80.len());
    let known = user.copy_in(&mut instruction, at).is_ok();
    frame.orig_rax = u64::MAX;
    if known && instruction == INT80 {
        frame.set_program_counter(at);
        return Exception { cause: Cause::Protection, addr: 0, number: 13, detail: u64::from(INT80[1]) << 3 | 2 };
    }
    // Where the host has it go on after the others differs.
    Exception { cause: Cause::Illegal, addr: frame.program_counter(), number: 6, detail: 0 }
}
