//! Probes for the gate `call` and the jail `pkey`.

use core::arch::{asm, global_asm};
use core::ffi::{c_int, c_void};
use core::ptr;

use janua_arch::x86_64::entry::{THREAD_ENTRY, THREAD_SELECTOR};

use crate::{Probe, Refused, answer, errno, in_child, syscall_user_dispatch_here};

/// What the gate `call` knows threads by: a descriptor whose limit the host sets for the calling thread (set_thread_area(2) in
/// the host's 32-bit interface) and user code reads (`lsl`).
pub fn thread_descriptor() -> Probe {
    in_child(thread_descriptor_here)
}

/// Signal frames on a stack that the interrupted code may not touch (protection keys, Linux 6.12).
pub fn protected_signal_stack() -> Probe {
    in_child(protected_signal_stack_here)
}

/// All that the gate `call` needs under the jail `pkey`, in one child.
pub fn call_under_pkey() -> Probe {
    in_child(|| {
        thread_descriptor_here()?;
        protected_signal_stack_here()
    })
}

/// All that the gate `call` needs without a jail.
pub fn call_gate() -> Probe {
    in_child(|| {
        thread_descriptor_here()?;
        syscall_user_dispatch_here()
    })
}

const PAGE: usize = 4096;

fn anonymous(len: usize, flags: c_int) -> Result<*mut c_void, Refused> {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags);
    // SAFETY: new memory at an address the host chooses.
    let at = unsafe { libc::mmap(ptr::null_mut(), len, prot, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(Refused::Errno(errno())) } else { Ok(at) }
}

fn thread_descriptor_here() -> Probe {
    const LIMIT: u32 = 0x4a61;
    const SET_THREAD_AREA: u32 = 243;
    // `struct user_desc`: a 32-bit data segment, not writable.
    let descriptor = [THREAD_ENTRY, 0, LIMIT, 1 | 1 << 3];
    let page = anonymous(PAGE, libc::MAP_32BIT)?;
    let mut result = SET_THREAD_AREA as i32;
    let mut limit = u32::from(THREAD_SELECTOR);
    let found: u8;
    // SAFETY: the page is ours and lies below 4 GiB; the call changes a descriptor that nothing in this process uses. `lsl` only
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

fn protected_signal_stack_here() -> Probe {
    const DISABLE_ACCESS: usize = 1;
    const STACK: usize = 64 << 10;
    let stack = anonymous(STACK, 0)?;
    // SAFETY: plain words; this process ends soon.
    let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, DISABLE_ACCESS) };
    answer(key)?;
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
