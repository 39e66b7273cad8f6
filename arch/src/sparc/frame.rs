//! The saved user registers.

/// A guest thread's registers while it is in the kernel by the slow path. The local and in registers of its window are not
/// here: they stay in the register file, or in the window's save area on the user's stack.
///
/// The layout is known to the entry and exit assembly.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Frame {
    /// Processor state. The exit restores the condition codes and the mode of applications without protection.
    pub psr: u32,
    pub pc: u32,
    pub npc: u32,
    pub y: u32,
    /// %g0 (always 0) to %g7.
    pub g: [u32; 8],
    /// %o0 to %o7.
    pub o: [u32; 8],
    /// The number of the call this frame entered with, `u32::MAX` when it did not enter by a call.
    pub number: u32,
    /// The call's seventh word: its sixth argument.
    pub seventh: u32,
}

const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(Frame, g) == 16);
    assert!(offset_of!(Frame, o) == 48);
    assert!(size_of::<Frame>() == 88);
};

impl Frame {
    /// A frame that starts user code at `pc` on `sp` with all other registers zero. The 64 bytes at `sp` are the window's save
    /// area: its first registers.
    pub fn start(pc: u32, sp: u32) -> Frame {
        let mut frame = Frame { pc, npc: pc.wrapping_add(4), number: u32::MAX, ..Frame::default() };
        frame.o[6] = sp;
        frame
    }

    /// A frame that starts the function at `function` as if it had been called with these words, on a stack that ends at
    /// `stack_end`, which is a multiple of 8. There is nowhere to return to.
    pub fn start_function(function: usize, stack_end: usize, words: [usize; 3]) -> Frame {
        /// The caller's part of a stack: a window's save area and places for arguments.
        const CALLER: usize = 96;
        let mut frame = Frame::start(function as u32, (stack_end - CALLER) as u32);
        for (register, word) in frame.o.iter_mut().zip(words) {
            *register = word as u32;
        }
        frame
    }

    /// Goes on behind the trap instruction.
    pub fn skip(&mut self) {
        self.pc = self.npc;
        self.npc = self.npc.wrapping_add(4);
    }

    /// Whether user code can be made to stop behind each instruction: the processor has no flag for it.
    pub const STEPS: bool = false;

    pub fn is_stepped(&self) -> bool {
        false
    }

    /// Nothing: see [`Frame::STEPS`].
    pub fn set_stepped(&mut self, _stepped: bool) {}

    /// There is no second ABI.
    pub fn mark_compat_call(&mut self) {}

    pub fn is_compat_call(&self) -> bool {
        false
    }

    /// There is no second kind of user code.
    pub fn is_compat_mode(&self) -> bool {
        false
    }

    /// Makes the frame, which is behind its trap instruction, execute it again with the number in `number`. It was in no delay slot.
    pub fn restart_call(&mut self, number: u64) {
        self.o[0] = number as u32;
        self.pc = self.pc.wrapping_sub(4);
        self.npc = self.npc.wrapping_sub(4);
        self.number = u32::MAX;
    }

    /// The same with the number it had.
    pub fn repeat_call(&mut self) {
        self.restart_call(self.number.into());
    }

    /// Whether it entered by a call that could be made again.
    pub fn is_call(&self) -> bool {
        self.number != u32::MAX
    }

    /// From now on it is that of no call.
    pub fn forget_call(&mut self) {
        self.number = u32::MAX;
    }

    /// The number of a call.
    pub fn number(&self) -> usize {
        self.number as usize
    }

    /// The six argument words of a call: %o1 to %o5 and the word at %sp + 92.
    pub fn args(&self) -> [usize; 6] {
        let [_, a, b, c, d, e, ..] = self.o;
        [a, b, c, d, e, self.seventh].map(|word| word as usize)
    }

    /// There is no second ABI: the same words.
    pub fn compat_args(&self) -> [usize; 6] {
        self.args()
    }

    pub fn set_result(&mut self, value: isize) {
        self.o[0] = value as u32;
    }

    pub fn result(&self) -> isize {
        self.o[0] as isize
    }

    pub fn stack_pointer(&self) -> usize {
        self.o[6] as usize
    }

    /// The window's save area goes with it: its owner has put 64 bytes there.
    pub fn set_stack_pointer(&mut self, sp: usize) {
        self.o[6] = sp as u32;
    }

    pub fn program_counter(&self) -> usize {
        self.pc as usize
    }

    pub fn set_program_counter(&mut self, pc: usize) {
        self.pc = pc as u32;
        self.npc = self.pc.wrapping_add(4);
    }
}
