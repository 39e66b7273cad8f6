//! Ways into a kernel, from 64-bit code.

use std::arch::asm;
use std::hint::black_box;
use std::ptr;

use crate::apart::{apart, other_side, this_side};
use crate::isolate::isolated;
use crate::meter::Meter;
use crate::{Samples, Skip, sys};

/// The vsyscall page's entries (arch/x86/entry/vsyscall in Linux): the addresses are part of the system-call interface.
const VSYSCALL_GETTIMEOFDAY: usize = 0xffff_ffff_ff60_0000;
const VSYSCALL_TIME: usize = 0xffff_ffff_ff60_0400;

/// Row `loop`: the loop round every null call, without a call.
pub fn empty_loop(meter: &Meter) -> Samples {
    meter.many(u64::MAX, |count| {
        // SAFETY: counts a register down.
        unsafe { asm!("2:", "dec {n}", "jnz 2b", n = inout(reg) count => _, options(nomem, nostack)) };
        Ok(())
    })
}

/// `count` null calls (getppid).
#[inline(always)]
fn getppid(count: u64) {
    // SAFETY: getppid has no arguments and no effect; rbx is not available to inline assembly, r12 is.
    unsafe {
        asm!("2:", "mov eax, {nr}", "syscall", "dec r12", "jnz 2b", nr = const libc::SYS_getppid,
            inout("r12") count => _, out("rax") _, out("rcx") _, out("r11") _, options(nostack));
    }
}

/// Row `syscall`.
pub fn syscall(meter: &Meter) -> Samples {
    meter.many(u64::MAX, |count| {
        getppid(count);
        Ok(())
    })
}

/// Row `syscall-2thr`: the same while a second thread does nothing else.
pub fn syscall_two_threads(meter: &Meter) -> Samples {
    use std::sync::atomic::{AtomicBool, Ordering};
    let (on, off) = (AtomicBool::new(false), AtomicBool::new(false));
    let measure = || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                other_side();
                on.store(true, Ordering::Release);
                while !off.load(Ordering::Relaxed) {
                    getppid(64);
                }
            });
            while !on.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let samples = this_side().and_then(|()| syscall(meter));
            off.store(true, Ordering::Relaxed);
            samples
        })
    };
    apart(measure)
}

/// Rows `null-0` to `null-6`: the null call with as many argument registers loaded before each.
pub fn null<const ARGUMENTS: usize>(meter: &Meter) -> Samples {
    macro_rules! calls {
        ($count:expr $(, $load:literal)*) => {
            // SAFETY: getppid ignores its arguments.
            unsafe {
                asm!("2:", $($load,)* "mov eax, {nr}", "syscall", "dec r12", "jnz 2b", nr = const libc::SYS_getppid,
                    inout("r12") $count => _, out("rax") _, out("rcx") _, out("r11") _, out("rdi") _, out("rsi") _,
                    out("rdx") _, out("r10") _, out("r8") _, out("r9") _, options(nostack))
            }
        };
    }
    meter.many(u64::MAX, |count| {
        match ARGUMENTS {
            0 => calls!(count),
            1 => calls!(count, "mov edi, 1"),
            2 => calls!(count, "mov edi, 1", "mov esi, 2"),
            3 => calls!(count, "mov edi, 1", "mov esi, 2", "mov edx, 3"),
            4 => calls!(count, "mov edi, 1", "mov esi, 2", "mov edx, 3", "mov r10d, 4"),
            5 => calls!(count, "mov edi, 1", "mov esi, 2", "mov edx, 3", "mov r10d, 4", "mov r8d, 5"),
            _ => calls!(count, "mov edi, 1", "mov esi, 2", "mov edx, 3", "mov r10d, 4", "mov r8d, 5", "mov r9d, 6"),
        }
        Ok(())
    })
}

/// Rows `call-0` to `call-6`: a function that returns 42, with as many arguments.
pub fn function<const ARGUMENTS: usize>(meter: &Meter) -> Samples {
    #[inline(never)]
    extern "C" fn empty(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64) -> u64 {
        42
    }
    macro_rules! calls {
        ($count:expr $(, $load:literal)*) => {
            // SAFETY: calls `empty` by its convention; the stack is lined up by the prologue before and the epilogue after.
            unsafe {
                asm!("mov r13, rsp", "and rsp, -16", "2:", $($load,)* "call {f}", "dec r12", "jnz 2b", "mov rsp, r13",
                    f = sym empty, inout("r12") $count => _, out("r13") _, clobber_abi("C"))
            }
        };
    }
    meter.many(u64::MAX, |count| {
        match ARGUMENTS {
            0 => calls!(count),
            1 => calls!(count, "mov edi, 1"),
            2 => calls!(count, "mov edi, 1", "mov esi, 2"),
            3 => calls!(count, "mov edi, 1", "mov esi, 2", "mov edx, 3"),
            4 => calls!(count, "mov edi, 1", "mov esi, 2", "mov edx, 3", "mov ecx, 4"),
            5 => calls!(count, "mov edi, 1", "mov esi, 2", "mov edx, 3", "mov ecx, 4", "mov r8d, 5"),
            _ => calls!(count, "mov edi, 1", "mov esi, 2", "mov edx, 3", "mov ecx, 4", "mov r8d, 5", "mov r9d, 6"),
        }
        Ok(())
    })
}

/// Row `int80`: the 32-bit table's getppid, from a 64-bit process.
pub fn int80(meter: &Meter) -> Samples {
    /// getppid in the i386 table.
    const GETPPID: i64 = 64;
    isolated(|| {
        let mut result = 0_i64;
        meter.many(u64::MAX, |count| {
            // SAFETY: no arguments, no effect. Older kernels clear r8 to r11.
            unsafe {
                asm!("2:", "mov eax, {nr}", "int 0x80", "dec r12", "jnz 2b", nr = const GETPPID,
                    inout("r12") count => _, out("rax") result, out("r8") _, out("r9") _, out("r10") _, out("r11") _,
                    options(nostack));
            }
            if result as i32 <= 0 { Err(Skip::call("int 0x80", -i64::from(result as i32))) } else { Ok(()) }
        })
    })
}

fn through_vsyscall(meter: &Meter, entry: usize) -> Samples {
    isolated(|| {
        let mut time = [0_i64; 2];
        let mut result = 0_i64;
        let samples = meter.many(u64::MAX, |count| {
            // SAFETY: the page's entries are functions of two pointers; where they are not there the child ends, which is reported.
            unsafe {
                asm!("mov r13, rsp", "and rsp, -16", "2:", "mov rdi, {time}", "xor esi, esi", "call {entry}", "dec r12",
                    "jnz 2b", "mov rsp, r13", entry = in(reg) entry, time = in(reg) &raw mut time, inout("r12") count => _,
                    out("r13") _, out("rax") result, out("rdi") _, out("rsi") _, out("rcx") _, out("r11") _);
            }
            Ok(())
        })?;
        if result < 0 { Err(Skip::call("vsyscall", -result)) } else { Ok(samples) }
    })
}

/// Row `vsyscall`.
pub fn vsyscall(meter: &Meter) -> Samples {
    through_vsyscall(meter, VSYSCALL_TIME)
}

/// Row `tod-vsyscall`.
pub fn tod_vsyscall(meter: &Meter) -> Samples {
    through_vsyscall(meter, VSYSCALL_GETTIMEOFDAY)
}

/// Row `vdso`: what the C library does, which is the vDSO's function where there is one.
pub fn vdso(meter: &Meter) -> Samples {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    meter.each(|| {
        // SAFETY: the time goes to a local.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, black_box(&mut time)) };
        Ok(())
    })
}

/// Row `tod-vdso`.
pub fn tod_vdso(meter: &Meter) -> Samples {
    let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
    meter.each(|| {
        // SAFETY: the time goes to a local.
        unsafe { libc::gettimeofday(black_box(&mut time), ptr::null_mut()) };
        Ok(())
    })
}

/// Row `clock`.
pub fn clock(meter: &Meter) -> Samples {
    let mut time = [0_i64; 2];
    let to = (&raw mut time) as usize;
    meter.each(|| {
        // SAFETY: the time goes to a local.
        unsafe { sys::call3::<{ libc::SYS_clock_gettime }>("clock_gettime", libc::CLOCK_MONOTONIC as usize, to, 0) }.map(drop)
    })
}

/// Row `tod-syscall`.
pub fn tod_syscall(meter: &Meter) -> Samples {
    let mut time = [0_i64; 2];
    let to = (&raw mut time) as usize;
    meter.each(|| {
        // SAFETY: the time goes to a local.
        unsafe { sys::call3::<{ libc::SYS_gettimeofday }>("gettimeofday", to, 0, 0) }.map(drop)
    })
}

/// Row `signal`.
pub fn signal(meter: &Meter) -> Samples {
    extern "C" fn handler(_: i32) {}
    isolated(|| {
        // SAFETY: the handler does nothing; the process is this row's own.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            if libc::sigaction(libc::SIGUSR1, &action, ptr::null_mut()) != 0 {
                return Err(Skip::last("sigaction"));
            }
        }
        // SAFETY: two questions.
        let (process, thread) = unsafe { (libc::getpid() as usize, libc::gettid() as usize) };
        meter.each(|| {
            // SAFETY: the signal is handled.
            unsafe { sys::call3::<{ libc::SYS_tgkill }>("tgkill", process, thread, libc::SIGUSR1 as usize) }.map(drop)
        })
    })
}
