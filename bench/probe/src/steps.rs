//! The steps by which a kernel in another process serves calls of L4: the host's part of each, alone. The traced child makes such calls (`int 0x30`), which
//! the host refuses.

use crate::intercept::{resume, traced};
use crate::meter::Meter;
use crate::{Samples, Skip};

fn int() {
    // SAFETY: it changes nothing; the host stops the child there.
    unsafe { core::arch::asm!("int 0x30", options(nostack)) };
}

/// Goes on from one refused call to the next, which is the same one.
fn go_on(child: libc::pid_t) -> Result<(), Skip> {
    resume(child, libc::PTRACE_SYSEMU)
}

fn ask<T>(child: libc::pid_t, request: u32, out: &mut T) -> Result<(), Skip> {
    // SAFETY: the child is stopped; the request fits what it is to fill, or to be taken from.
    let done = unsafe { libc::ptrace(request, child, 0, &raw mut *out) };
    if done == 0 { Ok(()) } else { Err(Skip::last("ptrace")) }
}

fn registers_of(child: libc::pid_t) -> Result<libc::user_regs_struct, Skip> {
    // SAFETY: integers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    ask(child, libc::PTRACE_GETREGS, &mut registers)?;
    Ok(registers)
}

fn signal_of(child: libc::pid_t) -> Result<(), Skip> {
    // SAFETY: integers.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    ask(child, libc::PTRACE_GETSIGINFO, &mut info)?;
    if info.si_signo == libc::SIGSEGV { Ok(()) } else { Err(Skip("the child was not stopped at int 0x30".into())) }
}

/// Row `step-stop`.
pub fn stop(meter: &Meter) -> Samples {
    traced(meter, int, go_on, go_on)
}

/// Row `step-getregs`.
pub fn registers(meter: &Meter) -> Samples {
    traced(meter, int, go_on, |child| registers_of(child).map(drop))
}

/// Row `step-setregs`: with those read each time, whose cost is in it.
pub fn set_registers(meter: &Meter) -> Samples {
    traced(meter, int, go_on, |child| ask(child, libc::PTRACE_SETREGS, &mut registers_of(child)?))
}

/// Row `step-siginfo`.
pub fn signal(meter: &Meter) -> Samples {
    traced(meter, int, go_on, signal_of)
}

/// Row `step-peek`.
pub fn code(meter: &Meter) -> Samples {
    let at = int as *const ();
    traced(meter, int, go_on, |child| {
        // SAFETY: the child is stopped, and has this function where this process has it.
        let word = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, child, at, 0) };
        if word != -1 { Ok(()) } else { Err(Skip::last("ptrace")) }
    })
}

/// Row `step-all`.
pub fn all(meter: &Meter) -> Samples {
    traced(meter, int, go_on, |child| {
        ask(child, libc::PTRACE_SETREGS, &mut registers_of(child)?)?;
        go_on(child)?;
        signal_of(child)
    })
}
