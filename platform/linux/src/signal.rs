//! Host signals: calls, faults and kicks arrive here.

use core::fmt::Write;

use janua_abi::linux::Result;
use janua_arch::x86_64::hosted::{self, Area, IMAGE_SIZE, KERNEL_BASE};
use janua_arch::x86_64::{frame, usercopy};
use janua_port::{Frame, HostSignal, Trap};

use crate::machine;
use crate::spawn;
use crate::sys::{self, nr};
use crate::area;

pub const SIGILL: u32 = 4;
pub const SIGTRAP: u32 = 5;
pub const SIGBUS: u32 = 7;
pub const SIGFPE: u32 = 8;
pub const SIGKILL: u32 = 9;
pub const SIGSEGV: u32 = 11;
pub const SIGCHLD: u32 = 17;
pub const SIGCONT: u32 = 18;
pub const SIGSTOP: u32 = 19;
pub const SIGSYS: u32 = 31;
/// The host signal that gets a thread's attention: SIGURG, which nothing else uses. Not a real-time one: those queue, the host
/// lays a frame on the stack for each that is pending before the first handler runs, and enough of them overflow it.
pub const KICK: u32 = 23;

const SA_SIGINFO: u64 = 4;
const SA_ONSTACK: u64 = 0x0800_0000;
const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESTORER: u64 = 0x0400_0000;
const SIG_IGN: u64 = 1;

#[repr(C)]
struct Action {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

#[repr(C)]
struct AltStack {
    sp: usize,
    flags: i32,
    size: usize,
}

/// The head of the host's `siginfo_t`.
#[repr(C)]
struct Info {
    signal: i32,
    errno: i32,
    code: i32,
    pad: i32,
    /// Fault address, or the dispatched call's address.
    addr: u64,
    /// SIGSYS: number and architecture.
    number: i32,
    arch: u32,
}

/// The host's `ucontext_t` as far as it is used: registers at offset 40 (REG_R8 first), then the pointer to the xsave area.
#[repr(C)]
struct Context {
    flags: u64,
    link: u64,
    stack: [u64; 3],
    r8: u64,
    r9: u64,
    r10: u64,
    r11: u64,
    r12: u64,
    r13: u64,
    r14: u64,
    r15: u64,
    rdi: u64,
    rsi: u64,
    rbp: u64,
    rbx: u64,
    rdx: u64,
    rax: u64,
    rcx: u64,
    rsp: u64,
    rip: u64,
    eflags: u64,
    segments: u64,
    err: u64,
    trapno: u64,
    oldmask: u64,
    cr2: u64,
    fpstate: u64,
}

const _: () = assert!(core::mem::offset_of!(Context, r8) == 40 && core::mem::offset_of!(Context, fpstate) == 224);

/// Sets this process' dispositions; children inherit them. Everything the kernel does not use is ignored, so that a signal
/// meant for the program (a Ctrl-C that reaches the whole group) is the supervisor's to pass on.
pub fn set_handlers() -> Result<()> {
    for signal in 1..=64u32 {
        let handled = matches!(signal, SIGILL | SIGTRAP | SIGBUS | SIGFPE | SIGSEGV | SIGSYS | KICK);
        if matches!(signal, SIGKILL | SIGSTOP | SIGCONT | SIGCHLD) {
            continue;
        }
        let action = if handled {
            Action {
                handler: hosted::hosted_signal_entry as *const () as u64,
                flags: SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTORER,
                // Never used: the entry makes its own rt_sigreturn.
                restorer: hosted::hosted_signal_entry as *const () as u64,
                mask: 0,
            }
        } else {
            Action { handler: SIG_IGN, flags: 0, restorer: 0, mask: 0 }
        };
        // SAFETY: the structure is ours; the handler is written for this.
        unsafe { sys::raw(nr::RT_SIGACTION, [signal as usize, &raw const action as usize, 0, 8, 0, 0]) }?;
    }
    set_mask(0)
}

/// Replaces the calling thread's host signal mask.
pub fn set_mask(mask: u64) -> Result<()> {
    // SAFETY: the word is ours; 2 is SIG_SETMASK.
    unsafe { sys::raw(nr::RT_SIGPROCMASK, [2, &raw const mask as usize, 0, 8, 0, 0]) }.map(|_| ())
}

/// Makes the thread's kernel stack its alternate signal stack.
pub fn set_stack(index: usize) -> Result<()> {
    let (sp, size) = hosted::stack(index);
    let stack = AltStack { sp, flags: 0, size };
    // SAFETY: the structure is ours, the stack belongs to the thread.
    unsafe { sys::raw(nr::SIGALTSTACK, [&raw const stack as usize, 0, 0, 0, 0, 0]) }.map(|_| ())
}

/// The Rust end of `hosted_signal_entry`.
///
/// # Safety
/// Called by the entry assembly only, with the host's arguments, on the thread's own kernel stack.
pub unsafe extern "C" fn on_signal(signal: i32, info: *mut u8, context: *mut u8, in_guest: u8) -> *mut Area {
    // SAFETY: the host wrote both structures on this thread's kernel stack, which nobody else touches.
    let (info, context) = unsafe { (&*info.cast::<Info>(), &mut *context.cast::<Context>()) };
    let index = hosted::index_of(core::ptr::from_ref(context) as usize);
    let signal = signal as u32;
    let in_kernel = (context.rip as usize).wrapping_sub(KERNEL_BASE) < IMAGE_SIZE;
    if in_guest == 0 {
        in_kernel_code(signal, info, context, index);
        return core::ptr::null_mut();
    }
    if let Some(entered) = hosted::way_in(context.rip as usize) {
        in_kernel_code(signal, info, context, index);
        // The interrupted entry goes on as if it had cleared the word itself. To set the word again would open a gap for
        // the next kick between here and there.
        context.rip = entered as u64;
        context.rax = u64::from(in_guest);
        return core::ptr::null_mut();
    }
    // User code, or the last steps of the way out: then the frame holds the user's registers, whole.
    // SAFETY: the thread itself.
    let this = unsafe { area::of_mut(index) };
    if !in_kernel {
        save(context, &mut this.frame);
    }
    load_fpu(context.fpstate);
    let host = HostSignal { signal, code: info.code, number: info.number, arch: info.arch };
    let machine = machine::get();
    let guest = spawn::guest(this);
    let frame = &mut this.frame;
    let flow = if signal == SIGSYS && !in_kernel
        && let Some(abi) = machine.gate.accept(&host, frame)
    {
        guest.call(frame, abi)
    } else if signal == KICK || info.code <= 0 {
        guest.trap(frame, Trap::Kick)
    } else {
        let trap = Trap::Fault {
            signal,
            code: info.code,
            addr: info.addr as usize,
            vector: context.trapno as u32,
            error: context.err,
        };
        guest.trap(frame, trap)
    };
    spawn::carry_on(this, index, flow)
}

/// A signal while kernel code runs: a user copy that faulted goes on at its fixup, a kick has left its mark already, anything
/// else is a fault of the kernel and stops the sandbox.
fn in_kernel_code(signal: u32, info: &Info, context: &mut Context, index: usize) {
    match signal {
        SIGSEGV | SIGBUS if info.code > 0 => match usercopy::fixup(context.rip as usize) {
            Some(fixup) => context.rip = fixup as u64,
            None => kernel_fault(signal, info, context, index),
        },
        KICK => {}
        _ if info.code <= 0 => {}
        _ => kernel_fault(signal, info, context, index),
    }
}

fn save(context: &Context, frame: &mut Frame) {
    *frame = Frame {
        r15: context.r15,
        r14: context.r14,
        r13: context.r13,
        r12: context.r12,
        rbp: context.rbp,
        rbx: context.rbx,
        r11: context.r11,
        r10: context.r10,
        r9: context.r9,
        r8: context.r8,
        rax: context.rax,
        rcx: context.rcx,
        rdx: context.rdx,
        rsi: context.rsi,
        rdi: context.rdi,
        orig_rax: u64::MAX,
        rip: context.rip,
        cs: context.segments & 0xffff,
        rflags: context.eflags,
        rsp: context.rsp,
        ss: frame::USER_SS,
    };
}

/// Loads the interrupted code's vector registers, which the host saved and reset before it called the handler. From here on
/// they are the guest's again and the kernel, which is built without any, leaves them alone.
fn load_fpu(fpstate: u64) {
    if fpstate == 0 {
        return;
    }
    // SAFETY: the host's own signal frame on our stack; fx_sw_reserved at 464 holds the magic, the size and the component mask.
    unsafe {
        let magic = ((fpstate + 464) as *const u32).read_unaligned();
        let mask = if magic == 0x4650_5853 { ((fpstate + 472) as *const u64).read_unaligned() } else { 3 };
        hosted::hosted_fpu_load(fpstate as *const u8, mask & !(1 << 9));
    }
}

/// A line buffer for reports: no allocation, since the heap may be what broke.
struct Report {
    bytes: [u8; 1024],
    len: usize,
}

impl Write for Report {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let n = text.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + n].copy_from_slice(&text.as_bytes()[..n]);
        self.len += n;
        Ok(())
    }
}

#[cold]
fn kernel_fault(signal: u32, info: &Info, context: &Context, index: usize) -> ! {
    let frame = &area::of(index).frame;
    let mut report = Report { bytes: [0; 1024], len: 0 };
    let _ = writeln!(
        report,
        "janua: kernel fault: signal {signal} code {} at {:#x} (image+{:#x}), address {:#x}, error {:#x}, sp {:#x}, thread slot {index}",
        info.code,
        context.rip,
        (context.rip as usize).wrapping_sub(KERNEL_BASE),
        info.addr,
        context.err,
        context.rsp,
    );
    let _ = writeln!(
        report,
        "janua: last entry: call {} ({:#x}, {:#x}, {:#x}, {:#x}, {:#x}, {:#x}) from {:#x}",
        frame.orig_rax as i64, frame.rdi, frame.rsi, frame.rdx, frame.r10, frame.r8, frame.r9, frame.rip
    );
    sys::write_all(2, &report.bytes[..report.len]);
    machine::stop_sandbox(125)
}
