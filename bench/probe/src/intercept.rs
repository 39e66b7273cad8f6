//! The host's own means of catching a program's calls: what a user-mode kernel can be built on.

use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering, compiler_fence};

use crate::isolate::{isolated, wait};
use crate::meter::Meter;
use crate::{Samples, Skip, sys};

/// What an intercepted getppid returns: the round trip is known to have gone through the handler.
const ANSWER: i64 = 42;

/// The selector byte of Syscall User Dispatch.
static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;

/// Puts the result in the interrupted program's rax.
extern "C" fn answer(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // The handler's own return is a system call.
    SELECTOR.store(ALLOW, Ordering::Relaxed);
    // SAFETY: the kernel hands a SA_SIGINFO handler the context of what it interrupted.
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RAX as usize] = ANSWER };
}

fn on_sigsys() -> Result<(), Skip> {
    // SAFETY: installs a handler that only writes to its own frame and a static.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = answer as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        if libc::sigaction(libc::SIGSYS, &action, ptr::null_mut()) != 0 {
            return Err(Skip::last("sigaction"));
        }
    }
    Ok(())
}

fn prctl(what: &str, args: [usize; 5]) -> Result<(), Skip> {
    // SAFETY: the two uses below set up interception in a process of their own and point to live data.
    let result = unsafe { sys::call::<{ libc::SYS_prctl }>([args[0], args[1], args[2], args[3], args[4], 0]) };
    if result < 0 { Err(Skip::call(what, -result)) } else { Ok(()) }
}

/// An intercepted getppid.
fn caught() -> Result<(), Skip> {
    // SAFETY: no arguments, no effect.
    match unsafe { sys::call::<{ libc::SYS_getppid }>([0; 6]) } {
        ANSWER => Ok(()),
        _ => Err(Skip("the call was not intercepted".into())),
    }
}

/// Row `sud`.
pub fn sud(meter: &Meter) -> Samples {
    /// PR_SET_SYSCALL_USER_DISPATCH and its ON (linux/prctl.h).
    const DISPATCH: usize = 59;
    const ON: usize = 1;
    isolated(|| {
        on_sigsys()?;
        prctl("prctl(PR_SET_SYSCALL_USER_DISPATCH)", [DISPATCH, ON, 0, 0, SELECTOR.as_ptr() as usize])?;
        meter.each(|| {
            SELECTOR.store(BLOCK, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            caught()
        })
    })
}

/// Row `seccomp`.
pub fn seccomp(meter: &Meter) -> Samples {
    isolated(|| {
        on_sigsys()?;
        prctl("prctl(PR_SET_NO_NEW_PRIVS)", [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0])?;
        let statement = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
        let filter = [
            // The number is the first word of struct seccomp_data.
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_getppid as u32),
            statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_TRAP),
            statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        let mode = libc::SECCOMP_MODE_FILTER as usize;
        prctl("prctl(PR_SET_SECCOMP)", [libc::PR_SET_SECCOMP as usize, mode, (&raw const program) as usize, 0, 0])?;
        meter.each(caught)
    })
}

/// Makes one call.
fn getppid() {
    // SAFETY: no arguments, no effect.
    unsafe { sys::call::<{ libc::SYS_getppid }>([0; 6]) };
}

/// A child that does nothing but this, stopped under this process's ptrace.
fn tracee(body: fn()) -> Result<libc::pid_t, Skip> {
    // SAFETY: one thread; the child calls nothing but the calls below.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(Skip::last("fork"));
    }
    if child == 0 {
        // SAFETY: the child ends by its parent's SIGKILL, or with it.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
                libc::_exit(1);
            }
            libc::raise(libc::SIGSTOP);
        }
        loop {
            body();
        }
    }
    let status = wait(child)?;
    if libc::WIFSTOPPED(status) { Ok(child) } else { Err(Skip("ptrace is not permitted here".into())) }
}

/// Measures `step`, one round trip of a traced child that does nothing but `body`, after `first`, which may refuse it.
pub fn traced(
    meter: &Meter,
    body: fn(),
    first: impl Fn(libc::pid_t) -> Result<(), Skip>,
    step: impl Fn(libc::pid_t) -> Result<(), Skip>,
) -> Samples {
    isolated(|| {
        let child = tracee(body)?;
        let samples = first(child).and_then(|()| meter.each(|| step(child)));
        // SAFETY: the child is ours and not yet reaped.
        unsafe { libc::kill(child, libc::SIGKILL) };
        wait(child)?;
        samples
    })
}

/// Lets a stopped child go on until it stops again.
pub fn resume(child: libc::pid_t, request: u32) -> Result<(), Skip> {
    // SAFETY: the child is stopped; resuming has no pointers.
    if unsafe { libc::ptrace(request, child, 0, 0) } != 0 {
        return Err(Skip::last("ptrace"));
    }
    wait(child).map(drop)
}

/// Row `sysemu`: what a kernel on ptrace does for each call.
pub fn sysemu(meter: &Meter) -> Samples {
    traced(
        meter,
        getppid,
        |_| Ok(()),
        |child| {
            resume(child, libc::PTRACE_SYSEMU)?;
            // SAFETY: the child is stopped; the registers are a local.
            unsafe {
                let mut registers: libc::user_regs_struct = std::mem::zeroed();
                libc::ptrace(libc::PTRACE_GETREGS, child, 0, &raw mut registers);
                registers.rax = ANSWER as u64;
                if libc::ptrace(libc::PTRACE_SETREGS, child, 0, &raw const registers) != 0 {
                    return Err(Skip::last("ptrace"));
                }
            }
            Ok(())
        },
    )
}

/// Row `syscall-stop`.
pub fn syscall_stop(meter: &Meter) -> Samples {
    traced(
        meter,
        getppid,
        |_| Ok(()),
        |child| {
            resume(child, libc::PTRACE_SYSCALL)?;
            resume(child, libc::PTRACE_SYSCALL)
        },
    )
}
