//! What the Linux host offers to the linux platform, found by trying it.
//!
//! A kernel version or a configuration file reports what *should* work; container runtimes and hardened hosts refuse
//! more than that. So each probe does the thing itself. What would change the calling process is done in a forked
//! child, and the child's fate is the result.

#![no_std]

extern crate alloc;

pub mod channel;
pub mod found;
pub mod group;
pub mod image;
mod memory;
pub mod namespaces;
mod pause;
mod probe_jail;
pub mod processes;
pub mod sandbox;
pub mod tiles;
pub mod wall;

pub use janua_platform_boot as boot;
pub use probe_jail::{call_gate, call_under_pkey, protected_signal_stack, thread_descriptor};

use core::ffi::{c_int, c_long, c_void};
use core::ptr;

use janua_abi::linux::prctl;
use janua_abi::linux::ptrace as trace;
use janua_entry::hosted::entry::THREAD_ENTRY;
use janua_port::PAGE;

/// The result of a probe: an errno when the host refuses.
pub type Probe = Result<(), Refused>;

/// How the host refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A system call failed with this errno.
    Errno(i32),
    /// The forked child was ended by this signal.
    Signal(i32),
    /// The call succeeded and had no effect.
    NoEffect,
}

const SYSCALL_DISPATCH_FILTER_ALLOW: u8 = 0;
const SYSCALL_DISPATCH_FILTER_BLOCK: u8 = 1;

/// Exit code of a probing child for "no effect"; every other one is an errno, 0 is success.
const NO_EFFECT: c_int = 255;

fn errno() -> i32 {
    // SAFETY: the C library gives a valid pointer to the calling thread's errno.
    unsafe { *libc::__errno_location() }
}

fn answer(result: c_long) -> Probe {
    if result < 0 { Err(Refused::Errno(errno())) } else { Ok(()) }
}

/// Syscall User Dispatch (Linux 5.11, `prctl(PR_SET_SYSCALL_USER_DISPATCH)`): a call is blocked and its SIGSYS caught.
pub fn syscall_user_dispatch() -> Probe {
    in_child(syscall_user_dispatch_here)
}

fn syscall_user_dispatch_here() -> Probe {
    static mut SELECTOR: u8 = SYSCALL_DISPATCH_FILTER_ALLOW;
    extern "C" fn caught(_: c_int) {
        // SAFETY: the only thread that runs (a child that borrows memory has its lender wait); the host reads the byte at the next
        // system call, below.
        unsafe {
            ptr::write_volatile(&raw mut SELECTOR, SYSCALL_DISPATCH_FILTER_ALLOW);
            libc::_exit(0)
        }
    }
    catch_sigsys(caught)?;
    let selector = &raw mut SELECTOR;
    // SAFETY: the selector is a static byte, and the child never returns to code that does not expect dispatch.
    let armed =
        unsafe { libc::prctl(prctl::SET_SYSCALL_USER_DISPATCH as c_int, prctl::SYS_DISPATCH_ON, 0usize, 0usize, selector) };
    answer(armed.into())?;
    // SAFETY: the only thread that runs writes the static; from here on every call of the child's traps until `caught` ran.
    unsafe {
        ptr::write_volatile(selector, SYSCALL_DISPATCH_FILTER_BLOCK);
        libc::syscall(libc::SYS_getppid);
        ptr::write_volatile(selector, SYSCALL_DISPATCH_FILTER_ALLOW);
    }
    Err(Refused::NoEffect)
}

/// seccomp filters with `SECCOMP_RET_TRAP` (Linux 3.5): a call is trapped and its SIGSYS caught.
pub fn seccomp_trap() -> Probe {
    in_child(|| {
        extern "C" fn caught(_: c_int) {
            // SAFETY: ends the child; the filter lets every call but getppid pass.
            unsafe { libc::_exit(0) }
        }
        catch_sigsys(caught)?;
        let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
        let mut filter = [
            // The call's number is the first word of `struct seccomp_data`.
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
            libc::sock_filter {
                code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
                jt: 0,
                jf: 1,
                k: libc::SYS_getppid as u32,
            },
            statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_TRAP),
            statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: plain words; only the child is bound by it.
        answer(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1usize, 0usize, 0usize, 0usize) }.into())?;
        // SAFETY: `program` and the filter it points at outlive the call, which copies them.
        answer(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) })?;
        // SAFETY: takes no argument; traps into `caught`.
        unsafe { libc::syscall(libc::SYS_getppid) };
        Err(Refused::NoEffect)
    })
}

/// Calls of a traced thread are stopped and not made (PTRACE_SYSEMU): a child's call comes back with a result that no host gives.
pub fn traced_calls() -> Probe {
    traced(|_| Ok(()))
}

/// The same, and the thread can be given a descriptor that it cannot change: by which rewritten calls know their mailbox.
pub fn traced_mailboxes() -> Probe {
    // `struct user_desc`: a 32-bit data segment, not writable.
    let descriptor = [THREAD_ENTRY, 0, 1, 1 | 1 << 3];
    let place = descriptor.as_ptr() as usize;
    traced(|request| request(trace::request::SET_THREAD_AREA, THREAD_ENTRY as usize, place))
}

/// A call to a traced child: the request and its two words.
type TraceRequest<'a> = &'a dyn Fn(u32, usize, usize) -> Probe;

fn traced(prepare: impl Fn(TraceRequest<'_>) -> Probe) -> Probe {
    // No process has this number: not the caller either, which the child compares with it.
    const ANSWER: usize = i32::MAX as usize;
    const WALL: c_int = libc::__WALL;
    // SAFETY: takes no argument.
    let own = unsafe { libc::getpid() };
    // SAFETY: one thread, as for `in_child`; the child makes calls of words only, and ends.
    let child = unsafe { libc::fork() };
    answer(child.into())?;
    if child == 0 {
        // SAFETY: words only; ends without running what the parent registered for its own exit.
        unsafe {
            // It would wait for ever for a parent that was killed; one that has been already sends no signal.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // This call may be the one that is stopped.
            let mut parent = libc::syscall(libc::SYS_getppid);
            if parent == i64::from(own) {
                libc::pause();
                parent = libc::syscall(libc::SYS_getppid);
            }
            libc::_exit(if parent == ANSWER as i64 { 0 } else { NO_EFFECT })
        }
    }
    let request = |number: u32, addr: usize, data: usize| {
        // SAFETY: the registers outlive the request that fills or reads them; all else are words.
        answer(unsafe { libc::syscall(libc::SYS_ptrace, number, child, addr, data) })
    };
    let stopped = || {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the result.
        let got = unsafe { libc::waitpid(child, &raw mut status, WALL) };
        if got == child && libc::WIFSTOPPED(status) { Ok(()) } else { Err(Refused::NoEffect) }
    };
    let tried = || {
        // The registers' words: rax, the number of the call, and where it goes on.
        const RAX: usize = 10;
        const NUMBER: usize = 15;
        let mut registers = [0usize; trace::USER_REGS];
        request(trace::request::SEIZE, 0, (trace::option::EXITKILL | trace::option::TRACESYSGOOD) as usize)?;
        request(trace::request::INTERRUPT, 0, 0)?;
        stopped()?;
        prepare(&request)?;
        // Its pause is over, whether it had begun or not.
        loop {
            request(trace::request::SYSEMU, 0, 0)?;
            stopped()?;
            request(trace::request::GETREGS, 0, registers.as_mut_ptr() as usize)?;
            let number = registers[NUMBER];
            registers[RAX] = if number == libc::SYS_getppid as usize { ANSWER } else { -i64::from(libc::EINTR) as usize };
            registers[NUMBER] = usize::MAX;
            request(trace::request::SETREGS, 0, registers.as_ptr() as usize)?;
            if number == libc::SYS_getppid as usize {
                return request(trace::request::DETACH, 0, 0);
            }
        }
    };
    let done = tried();
    if done.is_err() {
        // SAFETY: the child is ours and not reaped yet.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    let end = reap(child);
    done.and(end)
}

/// Memory protection keys: a key can be had from the host.
pub fn protection_key() -> Probe {
    // SAFETY: takes plain words; the key is given back at once.
    let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, 0) };
    answer(key)?;
    // SAFETY: the key is ours and no memory carries it.
    answer(unsafe { libc::syscall(libc::SYS_pkey_free, key) })
}

/// Code can be run from an anonymous shared file (a memfd), as the kernel image is.
pub fn executable_memfd() -> Probe {
    // SAFETY: the name is a valid C string.
    let fd = unsafe { libc::memfd_create(c"janua-probe".as_ptr(), libc::MFD_CLOEXEC) };
    answer(fd.into())?;
    // SAFETY: `fd` is ours; a fresh mapping at an address the host chooses touches no memory in use.
    let (mapped, why) = unsafe {
        let sized = libc::ftruncate(fd, PAGE as libc::off_t);
        let prot = libc::PROT_READ | libc::PROT_EXEC;
        let at = libc::mmap(ptr::null_mut(), PAGE, prot, libc::MAP_SHARED, fd, 0);
        let why = errno();
        if at != libc::MAP_FAILED {
            libc::munmap(at, PAGE);
        }
        libc::close(fd);
        (sized == 0 && at != libc::MAP_FAILED, why)
    };
    if mapped { Ok(()) } else { Err(Refused::Errno(why)) }
}

fn catch_sigsys(handler: extern "C" fn(c_int)) -> Probe {
    // SAFETY: an all-zero sigaction is a valid one (no flags, empty mask); the handler only ends the process.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const c_void as usize;
        answer(libc::sigaction(libc::SIGSYS, &action, ptr::null_mut()).into())
    }
}

/// Runs `probe` in a forked child and reports what became of it. The calling process must have one thread.
fn in_child(probe: impl FnOnce() -> Probe) -> Probe {
    // SAFETY: one thread, so the child may go on with everything it inherits; it leaves by `_exit` below.
    let child = unsafe { libc::fork() };
    answer(child.into())?;
    if child == 0 {
        let code = match probe() {
            Ok(()) => 0,
            Err(Refused::Errno(errno)) => errno,
            Err(_) => NO_EFFECT,
        };
        // SAFETY: ends the child without running what the parent registered for its own exit.
        unsafe { libc::_exit(code) }
    }
    reap(child)
}

/// Runs `make` while the calling thread may use no processor but the one it is on; so may what `make` starts, for good. A process that
/// borrows this one's memory would otherwise begin on another processor, and each later change of that memory would have to interrupt
/// that one: a millisecond for a start, on a virtual machine whose other processor sleeps.
fn on_this_processor<R>(make: impl FnOnce() -> R) -> R {
    const SIZE: usize = size_of::<libc::cpu_set_t>();
    // SAFETY: all-zero sets are valid, and of the size given; sched_getcpu takes nothing, CPU_SET looks at its bounds.
    unsafe {
        let (mut old, mut here): (libc::cpu_set_t, libc::cpu_set_t) = (core::mem::zeroed(), core::mem::zeroed());
        let cpu = libc::sched_getcpu();
        let known = cpu >= 0 && libc::sched_getaffinity(0, SIZE, &raw mut old) == 0;
        if known {
            libc::CPU_SET(cpu as usize, &mut here);
        }
        let moved = known && libc::sched_setaffinity(0, SIZE, &raw const here) == 0;
        let made = make();
        if moved {
            libc::sched_setaffinity(0, SIZE, &raw const old);
        }
        made
    }
}

/// How many processors the calling thread may use.
pub fn processors() -> usize {
    // SAFETY: an all-zero set is valid, and of the size given.
    unsafe {
        let mut all: libc::cpu_set_t = core::mem::zeroed();
        match libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut all) {
            0 => libc::CPU_COUNT(&all) as usize,
            _ => 1,
        }
    }
}

/// Leaves the calling thread, and what it starts, `count` of the processors it may use, from that at the place `first` on. Without one, which they are is left
/// to chance, so that several sandboxes do not meet on the same. A host that refuses leaves it all.
fn use_processors(count: usize, first: Option<usize>) {
    const SIZE: usize = size_of::<libc::cpu_set_t>();
    // SAFETY: all-zero sets are valid, and of the size given; CPU_SET and CPU_ISSET look at their bounds.
    unsafe {
        let (mut all, mut some): (libc::cpu_set_t, libc::cpu_set_t) = (core::mem::zeroed(), core::mem::zeroed());
        if libc::sched_getaffinity(0, SIZE, &raw mut all) != 0 {
            return;
        }
        let most = SIZE * 8;
        let mine = libc::CPU_COUNT(&all) as usize;
        if count >= mine {
            return;
        }
        let first = first.unwrap_or_else(|| libc::getpid() as usize) % mine;
        let allowed = || (0..most).filter(|cpu| libc::CPU_ISSET(*cpu, &all));
        for cpu in allowed().chain(allowed()).skip(first).take(count) {
            libc::CPU_SET(cpu, &mut some);
        }
        libc::sched_setaffinity(0, SIZE, &raw const some);
    }
}

/// Waits for the child of a probe: code 0 is success, `NO_EFFECT` no effect, any other an errno.
fn reap(child: libc::pid_t) -> Probe {
    let mut status = 0;
    // SAFETY: `status` is a valid place for the result.
    while unsafe { libc::waitpid(child, &mut status, 0) } < 0 {
        if errno() != libc::EINTR {
            return Err(Refused::Errno(errno()));
        }
    }
    if libc::WIFSIGNALED(status) {
        return Err(Refused::Signal(libc::WTERMSIG(status)));
    }
    match libc::WEXITSTATUS(status) {
        0 => Ok(()),
        NO_EFFECT => Err(Refused::NoEffect),
        errno => Err(Refused::Errno(errno)),
    }
}
