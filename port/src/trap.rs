//! Why user code stopped, other than by a call, in the machine's words. What becomes of it (a signal, a message to a pager, the end)
//! the personality decides.

use crate::space::Access;

/// Why user code stopped, other than by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// The processor did not carry an instruction out, or was to stop behind it.
    Exception(Exception),
    /// Somebody asked for the thread's attention ([`crate::Context::kick`]).
    Kick,
}

/// An exception of the processor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    pub cause: Cause,
    /// The address that the machine names: for a page that of the memory, otherwise the instruction's; 0 where it names none.
    pub addr: usize,
    /// How the processor numbers it, and what it reports beside that: on x86 the vector and its error code, on SPARC the trap type and the
    /// MMU's fault status. For who shows them to programs.
    pub number: u32,
    pub detail: u64,
}

/// What the processor refused, or stopped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An access to memory.
    Page {
        access: Access,
        refusal: Refusal,
    },
    /// An address that no page can have, or something that only the kernel may do; which, the processor does not report.
    Protection,
    /// A segment that is not there.
    Segment,
    /// An access that is not aligned as it must be.
    Alignment,
    /// No instruction of this processor's.
    Illegal,
    /// An instruction that only the kernel may execute.
    Privileged,
    /// A software trap by which no gate takes calls.
    Software,
    Arithmetic(Arithmetic),
    /// The end of a single step.
    Step,
    /// An access, or an instruction, at an address that is watched.
    Watchpoint,
    Breakpoint,
    /// An instruction that raises what steps and watched addresses do (on x86 `int1`).
    DebugTrap,
    /// A call of the host's, made by no gate.
    HostCall,
}

/// Why a page refused an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing is mapped at the address.
    Unmapped,
    /// The mapping does not allow it.
    Rights,
    /// A protection key that user code has closed itself.
    Key,
    /// The mapping reaches beyond the end of what is behind it, or there is no memory for the page.
    BeyondEnd,
    /// The memory is broken.
    Broken,
}

/// What went wrong with numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// An integer division by zero, or with a quotient that is too large.
    Division,
    /// An integer too large for its place.
    Overflow,
    FloatInvalid,
    FloatDivision,
    FloatOverflow,
    FloatUnderflow,
    FloatInexact,
}
