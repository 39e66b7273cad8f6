//! Probes for the gate `call` and the jail `pkey`.

use core::arch::{asm, global_asm};
use core::ffi::{c_int, c_long, c_void};
use core::ptr;

use janua_entry::hosted::entry::{THREAD_ENTRY, THREAD_SELECTOR};
use janua_port::PAGE;

use crate::{Probe, Refused, answer, errno, in_child, on_this_processor, reap, syscall_user_dispatch_here};

/// What the gate `call` knows threads by: a descriptor whose limit the host sets for the calling thread (set_thread_area(2) in
/// the host's 32-bit interface) and user code reads (`lsl`).
pub fn thread_descriptor() -> Probe {
    in_child(|| thread_descriptor_here(&mut Left::default()))
}

/// Signal frames on a stack that the interrupted code may not touch (protection keys, Linux 6.12).
pub fn protected_signal_stack() -> Probe {
    in_child(|| protected_signal_stack_here(&mut Left::default()))
}

/// All that the gate `call` needs under the jail `pkey`.
pub fn call_under_pkey() -> Probe {
    asked_at_start(|left| {
        thread_descriptor_here(left)?;
        protected_signal_stack_here(left)
    })
}

/// All that the gate `call` needs without a jail.
pub fn call_gate() -> Probe {
    asked_at_start(|left| {
        thread_descriptor_here(left)?;
        syscall_user_dispatch_here()
    })
}

/// Every start asks, so the child borrows this process' memory instead of having its page tables copied.
fn asked_at_start(probe: impl FnOnce(&mut Left) -> Probe) -> Probe {
    let mut left = Left::default();
    let probe = in_borrower(|| probe(&mut left));
    left.tidy();
    probe
}

/// What a probe leaves behind in the memory that it ran in: mappings, and a key.
#[derive(Default)]
struct Left {
    mappings: [Option<(*mut c_void, usize)>; 2],
    key: Option<c_long>,
}

impl Left {
    /// New memory, to be given back by [`Left::tidy`].
    fn map(&mut self, len: usize, flags: c_int) -> Result<*mut c_void, Refused> {
        let at = anonymous(len, flags)?;
        let free = self.mappings.iter_mut().find(|mapping| mapping.is_none());
        *free.expect("a probe maps two places at most") = Some((at, len));
        Ok(at)
    }

    fn tidy(self) {
        // SAFETY: made by a probe that has ended, and known to nobody else.
        unsafe {
            for (at, len) in self.mappings.into_iter().flatten() {
                libc::munmap(at, len);
            }
            if let Some(key) = self.key {
                libc::syscall(libc::SYS_pkey_free, key);
            }
        }
    }
}

/// Runs `probe` in a child that shares this process' memory and nothing else, and reports what became of it. This process waits.
fn in_borrower(probe: impl FnOnce() -> Probe) -> Probe {
    const STACK: usize = 64 << 10;
    struct Task<F>(Option<F>, Probe);
    extern "C" fn run<F: FnOnce() -> Probe>(task: *mut c_void) -> c_int {
        // SAFETY: the task of the caller, who waits.
        let task = unsafe { &mut *task.cast::<Task<F>>() };
        if let Some(probe) = task.0.take() {
            task.1 = probe();
        }
        // SAFETY: ends the child alone, without what this process registered for its own exit.
        unsafe { libc::_exit(i32::from(task.1.is_err())) }
    }
    fn entry<F: FnOnce() -> Probe>(_: &Task<F>) -> extern "C" fn(*mut c_void) -> c_int {
        run::<F>
    }
    let mut task = Task(Some(probe), Ok(()));
    let stack = anonymous(STACK, libc::MAP_STACK)?;
    let run = entry(&task);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child runs on a stack of its own while this thread, the only one, is suspended (CLONE_VFORK); signal handlers and
    // alternate stack are the child's own.
    let child = on_this_processor(|| unsafe { libc::clone(run, stack.byte_add(STACK), flags, (&raw mut task).cast()) });
    let fate = answer(child.into()).and_then(|()| reap(child));
    // SAFETY: the child is gone, and its stack with it.
    unsafe { libc::munmap(stack, STACK) };
    match fate {
        Err(Refused::Errno(1)) if task.1.is_err() => task.1,
        fate => fate,
    }
}

fn anonymous(len: usize, flags: c_int) -> Result<*mut c_void, Refused> {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags);
    // SAFETY: new memory at an address the host chooses.
    let at = unsafe { libc::mmap(ptr::null_mut(), len, prot, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(Refused::Errno(errno())) } else { Ok(at) }
}

fn thread_descriptor_here(left: &mut Left) -> Probe {
    const LIMIT: u32 = 0x4a61;
    const SET_THREAD_AREA: u32 = 243;
    // `struct user_desc`: a 32-bit data segment, not writable.
    let descriptor = [THREAD_ENTRY, 0, LIMIT, 1 | 1 << 3];
    let page = left.map(PAGE, libc::MAP_32BIT)?;
    let mut result = SET_THREAD_AREA as i32;
    let mut limit = u32::from(THREAD_SELECTOR);
    let found: u8;
    // SAFETY: the page is ours and is below 4 GiB; the call changes a descriptor that nothing in this process uses. `lsl` only
    // looks. Where the host has no 32-bit calls the child ends by SIGSEGV.
    unsafe {
        page.cast::<[u32; 4]>().write(descriptor);
        asm!(
            "xchg rbx, {page}",
            "int 0x80",
            "xchg rbx, {page}",
            page = inout(reg) page => _,
            inout("eax") result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
        asm!("lsl {0:e}, {0:e}", "setz {1}", inout(reg) limit, out(reg_byte) found);
    }
    if result < 0 {
        return Err(Refused::Errno(-result));
    }
    if found == 1 && limit == LIMIT { Ok(()) } else { Err(Refused::NoEffect) }
}

global_asm!(
    ".pushsection .text",
    // A signal handler whose stack is closed: it must not touch it. Ends the process with code 0.
    "janua_probe_closed_handler:",
    "mov eax, 231",
    "xor edi, edi",
    "syscall",
    "ud2",
    ".popsection",
);

unsafe extern "C" {
    fn janua_probe_closed_handler();
}

fn protected_signal_stack_here(left: &mut Left) -> Probe {
    const DISABLE_ACCESS: usize = 1;
    const STACK: usize = 64 << 10;
    let stack = left.map(STACK, 0)?;
    // SAFETY: plain words; this process ends soon.
    let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, DISABLE_ACCESS) };
    answer(key)?;
    left.key = Some(key);
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: our own memory, which nothing else uses.
    answer(unsafe { libc::syscall(libc::SYS_pkey_mprotect, stack, STACK, prot, key) })?;
    let alternate = libc::stack_t { ss_sp: stack, ss_flags: 0, ss_size: STACK };
    // SAFETY: an all-zero sigaction is a valid one; the handler is written for a stack it may not touch. A host that cannot
    // write the frame ends the child by SIGSEGV.
    unsafe {
        answer(libc::sigaltstack(&raw const alternate, ptr::null_mut()).into())?;
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = janua_probe_closed_handler as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK;
        answer(libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()).into())?;
        libc::raise(libc::SIGUSR1);
    }
    Err(Refused::NoEffect)
}
