//! Which of a thread's registers are what: 32-bit code's, of which there are the lower halves.

use janua_abi::l4v2::id::Id;
use janua_port::Frame;

#[expect(clippy::cast_possible_truncation, reason = "32-bit code has lower halves only")]
const fn low(register: u64) -> u32 {
    register as u32
}

/// The registers as 32-bit code has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
    pub esi: u32,
    pub edi: u32,
    pub ebp: u32,
    pub esp: u32,
    pub eip: u32,
    pub eflags: u32,
}

impl Registers {
    pub fn of(frame: &Frame) -> Registers {
        Registers {
            eax: low(frame.rax),
            ebx: low(frame.rbx),
            ecx: low(frame.rcx),
            edx: low(frame.rdx),
            esi: low(frame.rsi),
            edi: low(frame.rdi),
            ebp: low(frame.rbp),
            esp: low(frame.rsp),
            eip: low(frame.rip),
            eflags: low(frame.rflags),
        }
    }

    /// The thread a call is about.
    pub fn partner(&self) -> Id {
        Id { low: self.esi, high: self.edi }
    }

    /// The other thread a call names: a preempter, a pager.
    pub fn second(&self) -> Id {
        Id { low: self.ebx, high: self.ebp }
    }
}

/// Sets the registers in which calls leave a thread's name.
pub fn set_partner(frame: &mut Frame, id: Id) {
    (frame.rsi, frame.rdi) = (id.low.into(), id.high.into());
}

/// Sets those of a second name.
pub fn set_second(frame: &mut Frame, id: Id) {
    (frame.rbx, frame.rbp) = (id.low.into(), id.high.into());
}
