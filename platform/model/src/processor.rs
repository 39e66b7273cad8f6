//! The part of x86-64 that guests of this machine are written in: enough for programs that call, compare, jump and fault.
//!
//! | bytes | instruction |
//! |---|---|
//! | `0f 05` | `syscall` |
//! | `cd 30` to `cd 36` | `int`: the calls 0 to 6 of the machine's second ABI, with all registers as they are |
//! | `cc` | `int3` |
//! | `0f 0b` | `ud2` |
//! | `90` | `nop` |
//! | `48/49 b8+r imm64` | `mov r64, imm64` |
//! | `48..4d 89 /r`, both registers | `mov r64, r64` |
//! | `48..4d 8b /r` and `89 /r` with a plain base | `mov r64, [r64]`, `mov [r64], r64` |
//! | `48 05 imm32` | `add rax, imm32` |
//! | `48 3d imm32` | `cmp rax, imm32` |
//! | `3c imm8` | `cmp al, imm8` |
//! | `e9 rel32`, `eb rel8`, `0f 84 rel32`, `0f 85 rel32` | `jmp`, `jmp`, `je`, `jne` |
//! | `c3` | `ret` |
//!
//! Anything else is an invalid instruction. Of the flags there is only ZF.

use janua_abi::linux::Errno;
use janua_paging::{Access, Refused};
use janua_port::gate::{PullGate, Stop};
use janua_port::guest::Abi;
use janua_port::trap::{Cause, Exception, Refusal};
use janua_port::{Frame, Guest, space};

use crate::memory::ModelSpace;

const ZERO: u64 = 1 << 6;
const PAGE_FAULT: u32 = 14;
const PROTECTION: u32 = 13;
const INVALID_OPCODE: u32 = 6;
const BREAKPOINT: u32 = 3;
/// Vectors of `int` that are calls.
const FIRST_INTERRUPT: u8 = 0x30;
const LAST_INTERRUPT: u8 = 0x36;

/// Why an instruction was not carried out.
enum Cut {
    /// No memory is left for a page: the task has to go, for which it may have to wait.
    NoMemory,
    Exception(Exception),
}

/// The gate of this machine: a guest's processor, which carries one instruction out at a time.
pub struct Stepper<'a> {
    pub guest: &'a dyn Guest,
    pub space: &'a ModelSpace,
}

impl PullGate for Stepper<'_> {
    fn resume(&mut self, frame: &mut Frame) -> Stop {
        let mut processor = Processor { frame, space: self.space };
        match processor.instruction() {
            Ok(None) => Stop::Pause,
            Ok(Some(abi)) => Stop::Call(abi),
            Err(Cut::NoMemory) => {
                self.guest.out_of_memory(self.space.bytes().0);
                Stop::Pause
            }
            Err(Cut::Exception(exception)) => {
                frame.orig_rax = u64::MAX;
                Stop::Exception(exception)
            }
        }
    }
}

struct Processor<'a> {
    frame: &'a mut Frame,
    space: &'a ModelSpace,
}

impl Processor<'_> {
    fn reach(&self, addr: usize, access: Access) -> Result<(), Cut> {
        let refused = match self.space.fault(addr, access) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        let refusal = match refused {
            Refused::NoMemory => return Err(Cut::NoMemory),
            Refused::Unmapped => Refusal::Unmapped,
            Refused::Denied => Refusal::Rights,
            Refused::BeyondEnd | Refused::Failed => Refusal::BeyondEnd,
        };
        // Present, write, user, fetch.
        let present = u64::from(refused == Refused::Denied);
        let (access, detail) = match access {
            Access::Read => (space::Access::Load, 4 | present),
            Access::Write => (space::Access::Store, 4 | present | 2),
            Access::Execute => (space::Access::Fetch, 4 | present | 16),
        };
        let cause = Cause::Page { access, refusal };
        Err(Cut::Exception(Exception { cause, addr, number: PAGE_FAULT, detail }))
    }

    fn load(&self, addr: u64) -> Result<u64, Cut> {
        let mut word = [0; 8];
        self.reach(addr as usize, Access::Read)?;
        self.reach(addr.wrapping_add(7) as usize, Access::Read)?;
        self.space.read(addr as usize, &mut word);
        Ok(u64::from_le_bytes(word))
    }

    fn store(&self, addr: u64, value: u64) -> Result<(), Cut> {
        self.reach(addr as usize, Access::Write)?;
        self.reach(addr.wrapping_add(7) as usize, Access::Write)?;
        self.space.write(addr as usize, &value.to_le_bytes());
        Ok(())
    }

    /// The instruction's bytes, zeroes behind what can be read.
    fn fetch(&self) -> Result<[u8; 10], Cut> {
        let at = self.frame.rip as usize;
        self.reach(at, Access::Execute)?;
        let mut bytes = [0; 10];
        self.space.read(at, &mut bytes);
        Ok(bytes)
    }

    fn register(&mut self, number: u8) -> &mut u64 {
        let f = &mut *self.frame;
        match number & 15 {
            0 => &mut f.rax,
            1 => &mut f.rcx,
            2 => &mut f.rdx,
            3 => &mut f.rbx,
            4 => &mut f.rsp,
            5 => &mut f.rbp,
            6 => &mut f.rsi,
            7 => &mut f.rdi,
            8 => &mut f.r8,
            9 => &mut f.r9,
            10 => &mut f.r10,
            11 => &mut f.r11,
            12 => &mut f.r12,
            13 => &mut f.r13,
            14 => &mut f.r14,
            _ => &mut f.r15,
        }
    }

    /// Carries one instruction out; of which ABI it was a call, if it was one.
    fn instruction(&mut self) -> Result<Option<Abi>, Cut> {
        let bytes = self.fetch()?;
        let int32 = |at: usize| i64::from(i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
        let len = match bytes {
            [0x0f, 0x05, ..] => {
                let f = &mut *self.frame;
                f.rip += 2;
                (f.rcx, f.r11) = (f.rip, f.rflags);
                f.orig_rax = f.rax;
                f.rax = Errno::ENOSYS.as_result() as u64;
                return Ok(Some(Abi::Native));
            }
            [0xcd, vector @ FIRST_INTERRUPT..=LAST_INTERRUPT, ..] => {
                self.frame.rip += 2;
                self.frame.orig_rax = u64::from(vector - FIRST_INTERRUPT);
                return Ok(Some(Abi::Compat));
            }
            [0xcc, ..] => {
                self.frame.rip += 1;
                let cause = Cause::Breakpoint;
                return Err(Cut::Exception(Exception { cause, addr: 0, number: BREAKPOINT, detail: 0 }));
            }
            // Flags of the kernel's.
            [0xfa | 0xfb, ..] => return Err(self.protected()),
            [0x90, ..] => 1,
            [rex @ (0x48 | 0x49), opcode @ 0xb8..=0xbf, ..] => {
                let value = u64::from_le_bytes([2, 3, 4, 5, 6, 7, 8, 9].map(|at: usize| bytes[at]));
                *self.register(opcode - 0xb8 + (rex & 1) * 8) = value;
                10
            }
            [rex @ 0x48..=0x4f, opcode @ (0x89 | 0x8b), how, ..] => self.mov(rex, opcode, how)?,
            [0x48, 0x05, ..] => {
                self.frame.rax = self.frame.rax.wrapping_add(int32(2) as u64);
                6
            }
            [0x48, 0x3d, ..] => {
                self.compared(self.frame.rax == int32(2) as u64);
                6
            }
            [0x3c, value, ..] => {
                self.compared(self.frame.rax as u8 == value);
                2
            }
            [0xeb, distance, ..] => 2 + i64::from(distance.cast_signed()),
            [0xe9, ..] => 5 + int32(1),
            [0x0f, condition @ (0x84 | 0x85), ..] => {
                let taken = (self.frame.rflags & ZERO != 0) == (condition == 0x84);
                6 + if taken { int32(2) } else { 0 }
            }
            [0xc3, ..] => {
                self.frame.rip = self.load(self.frame.rsp)?;
                self.frame.rsp += 8;
                return Ok(None);
            }
            _ => return Err(self.invalid()),
        };
        self.frame.rip = self.frame.rip.wrapping_add_signed(len);
        Ok(None)
    }

    /// What a comparison leaves in the flags.
    fn compared(&mut self, equal: bool) {
        self.frame.rflags = self.frame.rflags & !ZERO | if equal { ZERO } else { 0 };
    }

    fn protected(&self) -> Cut {
        Cut::Exception(Exception { cause: Cause::Protection, addr: 0, number: PROTECTION, detail: 0 })
    }

    fn invalid(&self) -> Cut {
        let addr = self.frame.rip as usize;
        Cut::Exception(Exception { cause: Cause::Illegal, addr, number: INVALID_OPCODE, detail: 0 })
    }

    /// `mov` between registers, or between one and the memory another points at.
    fn mov(&mut self, rex: u8, opcode: u8, how: u8) -> Result<i64, Cut> {
        let (reg, base) = ((how >> 3 & 7) + (rex & 4) * 2, (how & 7) + (rex & 1) * 8);
        match how >> 6 {
            3 => {
                let (from, to) = if opcode == 0x89 { (reg, base) } else { (base, reg) };
                *self.register(to) = *self.register(from);
            }
            // No scaled index, no displacement.
            0 if !matches!(how & 7, 4 | 5) => {
                let addr = *self.register(base);
                if opcode == 0x89 {
                    let value = *self.register(reg);
                    self.store(addr, value)?;
                } else {
                    *self.register(reg) = self.load(addr)?;
                }
            }
            _ => return Err(self.invalid()),
        }
        Ok(3)
    }
}
