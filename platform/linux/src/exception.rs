//! The processor's exceptions, out of the signals by which the host reports them (sigaction(2)).

use janua_abi::linux::signal::{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
use janua_arch::x86_64::exception::{ERROR_FETCH, ERROR_STORE};
use janua_entry::hosted::Arrival;
use janua_port::space::Access;
use janua_port::trap::{Arithmetic, Cause, Exception, Refusal};

/// What the host's signal reports.
pub fn exception(arrival: &Arrival) -> Exception {
    Exception {
        cause: cause(arrival.signal as u32, arrival.code, arrival.error),
        addr: arrival.addr as usize,
        number: arrival.vector as u32,
        detail: arrival.error,
    }
}

/// The same of its parts: the error code is the processor's for a page fault.
pub fn cause(signal: u32, code: i32, error: u64) -> Cause {
    let access = match error {
        error if error & ERROR_FETCH != 0 => Access::Fetch,
        error if error & ERROR_STORE != 0 => Access::Store,
        _ => Access::Load,
    };
    let page = |refusal| Cause::Page { access, refusal };
    match (signal, code) {
        // SEGV_MAPERR, SEGV_ACCERR, SEGV_PKUERR; else SI_KERNEL.
        (SIGSEGV, 1) => page(Refusal::Unmapped),
        (SIGSEGV, 2) => page(Refusal::Rights),
        (SIGSEGV, 4) => page(Refusal::Key),
        (SIGSEGV, _) => Cause::Protection,
        // BUS_ADRALN, BUS_ADRERR, BUS_MCEERR_AR; else SI_KERNEL.
        (SIGBUS, 1) => Cause::Alignment,
        (SIGBUS, 2) => page(Refusal::BeyondEnd),
        (SIGBUS, 4) => page(Refusal::Broken),
        (SIGBUS, _) => Cause::Segment,
        // Privileged instructions are SIGSEGV on x86.
        (SIGILL, _) => Cause::Illegal,
        (SIGFPE, code) => Cause::Arithmetic(arithmetic(code)),
        // TRAP_BRKPT, which on x86 is int1 and not int3; TRAP_TRACE, TRAP_HWBKPT; else SI_KERNEL.
        (SIGTRAP, 1) => Cause::DebugTrap,
        (SIGTRAP, 2) => Cause::Step,
        (SIGTRAP, 4) => Cause::Watchpoint,
        (SIGTRAP, _) => Cause::Breakpoint,
        // SIGSYS that no gate takes.
        _ => Cause::HostCall,
    }
}

/// FPE_INTDIV and so on.
fn arithmetic(code: i32) -> Arithmetic {
    match code {
        1 => Arithmetic::Division,
        2 => Arithmetic::Overflow,
        3 => Arithmetic::FloatDivision,
        4 => Arithmetic::FloatOverflow,
        5 => Arithmetic::FloatUnderflow,
        6 => Arithmetic::FloatInexact,
        // FPE_FLTINV, and "subscript out of range", which nothing raises.
        _ => Arithmetic::FloatInvalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fault_tells_what_was_tried() {
        let tried = |error| cause(SIGSEGV, 2, error);
        let rights = |access| Cause::Page { access, refusal: Refusal::Rights };
        // User mode and present beside.
        assert_eq!(tried(0b101), rights(Access::Load));
        assert_eq!(tried(0b111), rights(Access::Store));
        assert_eq!(tried(0b1_0101), rights(Access::Fetch));
        assert_eq!(cause(SIGSEGV, 1, 0b110), Cause::Page { access: Access::Store, refusal: Refusal::Unmapped });
        assert_eq!(cause(SIGBUS, 2, 0b100), Cause::Page { access: Access::Load, refusal: Refusal::BeyondEnd });
    }

    #[test]
    fn what_is_no_page_fault_has_no_access() {
        const SI_KERNEL: i32 = 128;
        assert_eq!(cause(SIGSEGV, SI_KERNEL, 0), Cause::Protection);
        assert_eq!(cause(SIGTRAP, SI_KERNEL, 0), Cause::Breakpoint);
        assert_eq!(cause(SIGTRAP, 1, 0), Cause::DebugTrap);
        assert_eq!(cause(SIGTRAP, 2, 0), Cause::Step);
        assert_eq!(cause(SIGBUS, 1, 0), Cause::Alignment);
        assert_eq!(cause(SIGFPE, 1, 0), Cause::Arithmetic(Arithmetic::Division));
        assert_eq!(cause(SIGFPE, 7, 0), Cause::Arithmetic(Arithmetic::FloatInvalid));
    }
}
