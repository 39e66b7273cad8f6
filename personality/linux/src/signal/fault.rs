//! Exceptions of user code as signals (signal(7), sigaction(2)).

use janua_abi::linux::signal::*;
use janua_port::Frame;
use janua_port::trap::{Arithmetic, Cause, Exception, Refusal};

use crate::Thread;
use crate::ptrace;
use crate::signal::{self, SigInfo};
use crate::thread::{Fault, ThreadExt};

/// Signal and `si_code` as Linux on x86 has them.
fn signal_of(cause: Cause) -> (u32, i32) {
    match cause {
        Cause::Page { refusal, .. } => match refusal {
            Refusal::Unmapped => (SIGSEGV, si::SEGV_MAPERR),
            Refusal::Rights => (SIGSEGV, si::SEGV_ACCERR),
            Refusal::Key => (SIGSEGV, si::SEGV_PKUERR),
            Refusal::BeyondEnd => (SIGBUS, si::BUS_ADRERR),
            Refusal::Broken => (SIGBUS, si::BUS_MCEERR_AR),
        },
        Cause::Protection => (SIGSEGV, si::KERNEL),
        Cause::Segment => (SIGBUS, si::KERNEL),
        Cause::Alignment => (SIGBUS, si::BUS_ADRALN),
        Cause::Illegal => (SIGILL, si::ILL_ILLOPN),
        Cause::Privileged => (SIGILL, si::ILL_PRVOPC),
        Cause::Software => (SIGILL, si::ILL_ILLTRP),
        Cause::Arithmetic(arithmetic) => (SIGFPE, float_code(arithmetic)),
        Cause::Step => (SIGTRAP, si::TRAP_TRACE),
        Cause::Watchpoint => (SIGTRAP, si::TRAP_HWBKPT),
        Cause::Breakpoint => (SIGTRAP, si::KERNEL),
        Cause::DebugTrap => (SIGTRAP, si::TRAP_BRKPT),
        Cause::HostCall => (SIGSYS, si::SYS_SECCOMP),
    }
}

fn float_code(arithmetic: Arithmetic) -> i32 {
    match arithmetic {
        Arithmetic::Division => si::FPE_INTDIV,
        Arithmetic::Overflow => si::FPE_INTOVF,
        Arithmetic::FloatInvalid => si::FPE_FLTINV,
        Arithmetic::FloatDivision => si::FPE_FLTDIV,
        Arithmetic::FloatOverflow => si::FPE_FLTOVF,
        Arithmetic::FloatUnderflow => si::FPE_FLTUND,
        Arithmetic::FloatInexact => si::FPE_FLTRES,
    }
}

/// Whether a single step ended on the way from a rewritten site to the kernel, which is no place of the program's: then the steps go on.
fn steps_to_call(thread: &Thread, frame: &Frame, cause: Cause) -> bool {
    cause == Cause::Step && thread.process().mm().is_some_and(|mm| mm.is_on_the_way(frame.program_counter()))
}

/// What becomes of an exception: nothing that the program notices, or a signal it cannot block.
pub fn raise(thread: &Thread, frame: &mut Frame, exception: &Exception) {
    let &Exception { cause, addr, number, detail } = exception;
    if crate::mm::fault(thread, frame, cause, addr) || steps_to_call(thread, frame, cause) {
        return;
    }
    let (signal, code) = match cause {
        Cause::Step if thread.trace.is_on() => match ptrace::stepped(thread, frame) {
            Some(code) => (SIGTRAP, code),
            None => return,
        },
        cause => signal_of(cause),
    };
    let addr = addr as u64;
    *thread.signals.fault.lock() = Fault { vector: number.into(), error: detail, addr };
    signal::force(thread, SigInfo::fault(signal, code, addr));
}

#[cfg(test)]
mod tests {
    use janua_port::space::Access;

    use super::*;

    #[test]
    fn causes_are_the_signals_of_linux() {
        let page = |refusal| Cause::Page { access: Access::Load, refusal };
        // Numbers as in <asm-generic/siginfo.h>.
        let expected = [
            (page(Refusal::Unmapped), (11, 1)),
            (page(Refusal::Rights), (11, 2)),
            (page(Refusal::Key), (11, 4)),
            (page(Refusal::BeyondEnd), (7, 2)),
            (Cause::Protection, (11, 128)),
            (Cause::Alignment, (7, 1)),
            (Cause::Illegal, (4, 2)),
            (Cause::Arithmetic(Arithmetic::Division), (8, 1)),
            (Cause::Arithmetic(Arithmetic::FloatInvalid), (8, 7)),
            (Cause::Step, (5, 2)),
            (Cause::Breakpoint, (5, 128)),
            (Cause::DebugTrap, (5, 1)),
        ];
        for (cause, signal) in expected {
            assert_eq!(signal_of(cause), signal, "{cause:?}");
        }
    }
}
