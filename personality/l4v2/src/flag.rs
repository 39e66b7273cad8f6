//! `cli` and `sti` of user code, which trap: the thread's own flag in place of the processor's.

use janua_kernel::thread::work;
use janua_port::Frame;

use crate::Thread;
use crate::registers::Registers;
use crate::system::ThreadExt;

const CLI: u8 = 0xfa;
const STI: u8 = 0xfb;

/// Does the instruction that was refused, if it is one of the two: whether it is. The thread goes on behind it.
pub fn emulate(thread: &Thread, frame: &mut Frame) -> bool {
    let mut instruction = [0];
    let at = frame.program_counter();
    if thread.user().copy_in_partial(&mut instruction, at) < instruction.len() {
        return false;
    }
    let masked = match instruction[0] {
        CLI => true,
        STI => false,
        _ => return false,
    };
    frame.set_program_counter(at + instruction.len());
    thread.note(&Registers::of(frame));
    let mut state = thread.state();
    state.set_masked(thread.key, masked);
    if !state.has_turn(thread.key) {
        thread.set_work(work::LOOK);
    }
    true
}
