//! What the gates on a Linux host share: the signal of a system call, and calls of their own.

use janua_abi::linux::ptrace::{ARCH_I386, ARCH_X86_64};
use janua_abi::linux::{Errno, Result};
use janua_entry::hosted::hostcall::hostcall;
use janua_port::guest::Abi;
use janua_port::{Frame, HostSignal};

/// What both SIGSYS gates do with a call: the number is the host's word, the result register starts out as ENOSYS.
pub fn take_call(signal: &HostSignal, frame: &mut Frame) -> Option<Abi> {
    frame.orig_rax = i64::from(signal.number) as u64;
    frame.rax = Errno::ENOSYS.as_result() as u64;
    match signal.arch {
        ARCH_X86_64 => Some(Abi::Native),
        ARCH_I386 => Some(Abi::Compat),
        _ => None,
    }
}

/// prctl(2) or another host call of words.
pub fn host(number: usize, a: usize, b: usize, c: usize, d: usize, e: usize) -> Result<usize> {
    // SAFETY: used in this crate for prctl, seccomp and setrlimit only; pointers among the words are to memory that outlives the call
    // (a filter or a limit on the caller's stack) or is never unmapped (a selector).
    Errno::from_raw(unsafe { hostcall(number, a, b, c, d, e, 0) })
}
