//! The saved user registers.

/// A guest thread's registers while it is in the kernel. Every entry fills all of it; every exit restores all of it.
///
/// The layout is known to the entry and exit assembly.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Frame {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    /// The number of the call this frame entered with, -1 when it did not enter by a call (or must not be restarted).
    pub orig_rax: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
}

const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(Frame, orig_rax) == 15 * 8);
    assert!(offset_of!(Frame, rip) == 16 * 8);
    assert!(size_of::<Frame>() == 21 * 8);
};

/// 64-bit user code segment of the host and of our own descriptor tables.
pub const USER_CS: u64 = 0x33;
/// User stack segment.
pub const USER_SS: u64 = 0x2b;
/// 32-bit user code segment.
pub const USER32_CS: u64 = 0x23;

/// In [`Frame::orig_rax`]: the number is one of the i386 ABI.
const COMPAT_CALL: u64 = 1 << 32;

/// TF.
const STEP: u64 = 1 << 8;

/// Flag bits user code may set: CF PF AF ZF SF TF DF OF NT RF AC ID.
pub const USER_FLAGS: u64 = 0x0025_4dd5 | 0x0000_0400;
/// Always set: bit 1, and the interrupt flag in user mode.
pub const FIXED_FLAGS: u64 = 0x202;

impl Frame {
    /// A frame that starts user code at `rip` on `rsp` with all other registers zero.
    pub fn start(rip: u64, rsp: u64) -> Frame {
        Frame { rip, rsp, cs: USER_CS, ss: USER_SS, rflags: FIXED_FLAGS, orig_rax: u64::MAX, ..Frame::default() }
    }

    /// A frame that starts the function at `function` as if it had been called with these words, on a stack that ends at
    /// `stack_end`, which is a multiple of 16. There is nowhere to return to.
    pub fn start_function(function: usize, stack_end: usize, words: [usize; 3]) -> Frame {
        let [rdi, rsi, rdx] = words.map(|word| word as u64);
        // As behind a call: the return address is below a multiple of 16.
        Frame { rdi, rsi, rdx, ..Frame::start(function as u64, stack_end as u64 - 8) }
    }

    /// The same for 32-bit code.
    pub fn start32(eip: u32, esp: u32) -> Frame {
        Frame { cs: USER32_CS, ..Frame::start(eip.into(), esp.into()) }
    }

    /// Takes flags from a signal frame (or another word of the guest's): AC OF DF TF SF ZF AF PF CF RF as given, all
    /// others as user code has them at its start.
    pub fn set_user_flags(&mut self, flags: u64) {
        const SETTABLE: u64 = 0x0005_0dd5;
        self.rflags = flags & SETTABLE | FIXED_FLAGS;
    }

    /// Takes the code segment from a signal frame; false when it is none of user code.
    #[must_use]
    pub fn set_code_segment(&mut self, selector: u64) -> bool {
        if !matches!(selector, USER_CS | USER32_CS) {
            return false;
        }
        self.cs = selector;
        self.ss = USER_SS;
        true
    }

    /// Makes 64-bit user code go on at `rip` on `rsp`, with direction, single-step and resume flags clear.
    pub fn call_user(&mut self, rip: u64, rsp: u64) {
        self.cs = USER_CS;
        self.go_on(rip, rsp);
    }

    /// The same for 32-bit code.
    pub fn call_user32(&mut self, eip: u32, esp: u32) {
        self.cs = USER32_CS;
        self.go_on(eip.into(), esp.into());
    }

    fn go_on(&mut self, rip: u64, rsp: u64) {
        self.rip = rip;
        self.rsp = rsp;
        self.ss = USER_SS;
        self.rflags = self.rflags & !0x0001_0500 | FIXED_FLAGS;
        self.orig_rax = u64::MAX;
    }

    /// Notes that the call this frame entered with is one of the i386 ABI.
    pub fn mark_compat_call(&mut self) {
        self.orig_rax = self.orig_rax & 0xffff_ffff | COMPAT_CALL;
    }

    /// Whether the call this frame entered with was one of the i386 ABI.
    pub fn is_compat_call(&self) -> bool {
        self.orig_rax as i64 >= 0 && self.orig_rax & COMPAT_CALL != 0
    }

    /// Whether user code was 32-bit code.
    pub fn is_compat_mode(&self) -> bool {
        self.cs == USER32_CS
    }

    /// The number of a native call.
    pub fn number(&self) -> usize {
        self.orig_rax as usize
    }

    /// The six argument words of a native call.
    pub fn args(&self) -> [usize; 6] {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9].map(|word| word as usize)
    }

    /// The six argument words of an i386 call, zero-extended.
    pub fn compat_args(&self) -> [usize; 6] {
        [self.rbx, self.rcx, self.rdx, self.rsi, self.rdi, self.rbp].map(|word| word as u32 as usize)
    }

    pub fn set_result(&mut self, value: isize) {
        self.rax = value as u64;
    }

    pub fn result(&self) -> isize {
        self.rax as isize
    }

    /// Makes the frame execute its two-byte call instruction again with the number in `number`.
    pub fn restart_call(&mut self, number: u64) {
        self.rax = number & !COMPAT_CALL;
        self.rip = self.rip.wrapping_sub(2);
        self.orig_rax = u64::MAX;
    }

    /// The same with the number it had.
    pub fn repeat_call(&mut self) {
        self.restart_call(self.orig_rax);
    }

    /// Whether it entered by a call that could be made again.
    pub fn is_call(&self) -> bool {
        self.orig_rax as i64 >= 0
    }

    /// From now on it is that of no call.
    pub fn forget_call(&mut self) {
        self.orig_rax = u64::MAX;
    }

    /// Whether user code can be made to stop behind each instruction.
    pub const STEPS: bool = true;

    /// Whether user code stops behind its next instruction (the trap flag).
    pub fn is_stepped(&self) -> bool {
        self.rflags & STEP != 0
    }

    pub fn set_stepped(&mut self, stepped: bool) {
        self.rflags = self.rflags & !STEP | if stepped { STEP } else { 0 };
    }

    /// A general register by its number in instruction encodings (0 is rax, 15 is r15); 0 for other numbers.
    pub fn register(&self, number: usize) -> u64 {
        let mut copy = *self;
        copy.register_mut(number).map_or(0, |value| *value)
    }

    /// Sets a general register by its number; nothing for other numbers.
    pub fn set_register(&mut self, number: usize, value: u64) {
        if let Some(register) = self.register_mut(number) {
            *register = value;
        }
    }

    fn register_mut(&mut self, number: usize) -> Option<&mut u64> {
        Some(match number {
            0 => &mut self.rax,
            1 => &mut self.rcx,
            2 => &mut self.rdx,
            3 => &mut self.rbx,
            4 => &mut self.rsp,
            5 => &mut self.rbp,
            6 => &mut self.rsi,
            7 => &mut self.rdi,
            8 => &mut self.r8,
            9 => &mut self.r9,
            10 => &mut self.r10,
            11 => &mut self.r11,
            12 => &mut self.r12,
            13 => &mut self.r13,
            14 => &mut self.r14,
            15 => &mut self.r15,
            _ => return None,
        })
    }

    pub fn stack_pointer(&self) -> usize {
        self.rsp as usize
    }

    pub fn set_stack_pointer(&mut self, sp: usize) {
        self.rsp = sp as u64;
    }

    pub fn program_counter(&self) -> usize {
        self.rip as usize
    }

    pub fn set_program_counter(&mut self, pc: usize) {
        self.rip = pc as u64;
    }
}
