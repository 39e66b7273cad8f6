//! Host signals: calls that trap, faults and kicks arrive here.

use core::fmt::Write;

use janua_abi::linux::Result;
use janua_abi::linux::signal::{SIG_IGN, SigAction, sa, si};
use janua_abi::linux::signal::{SIGBUS, SIGCHLD, SIGCONT, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSTOP, SIGSYS, SIGTRAP};
use janua_arch::x86_64::exception::ERROR_STORE;
use janua_arch::x86_64::{cpu, usercopy};
use janua_entry::hosted::entry;
use janua_entry::hosted::{self, Area, IMAGE_SIZE, KERNEL_BASE, KICK, Own, SIGNAL_ROOM};
use janua_port::guest::Abi;
use janua_port::{Flow, HostSignal, HostedGate, Trap};

use crate::area;
use crate::boot::Jail;
use crate::exception::exception;
use crate::machine;
use crate::spawn;
use crate::sys::{self, nr};
use crate::text;
use crate::user::{HostedUser, is_user};

/// `ss_flags`: the signal stack is none any more once a handler runs on it.
const SS_AUTODISARM: u32 = 1 << 31;

#[repr(C)]
struct AltStack {
    sp: usize,
    flags: u32,
    size: usize,
}

/// The head of the host's `siginfo_t`.
#[repr(C)]
struct Info {
    signal: i32,
    errno: i32,
    code: i32,
    pad: i32,
    /// Fault address.
    addr: u64,
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

/// Sets this process' dispositions; children inherit them. The gate's own signal, if it has one, goes to its own entry. Everything the kernel
/// does not use is ignored, so that a signal meant for the program (a Ctrl-C that reaches the whole group) is the supervisor's to
/// pass on.
pub fn set_handlers(jail: Jail, secret: u64, gate: &dyn HostedGate) -> Result<()> {
    entry::set_secret(secret);
    if jail == Jail::Pkey {
        /// The key register among the components of the extended state.
        const PKRU: u32 = 9;
        let [_, offset, ..] = cpu::cpuid(0xd, PKRU);
        entry::set_key_place(offset);
    }
    let handler = match jail {
        Jail::None | Jail::Process => entry::hosted_signal_entry as *const () as usize,
        Jail::Pkey => entry::hosted_signal_entry_pkey as *const () as usize,
    };
    let queued = gate.queued().zip(gate.queued_entry(jail == Jail::Pkey));
    for signal in 1..=64u32 {
        let own = queued.filter(|(queued, _)| *queued == signal).map(|(_, entry)| entry);
        let handled = own.is_some() || matches!(signal, SIGILL | SIGTRAP | SIGBUS | SIGFPE | SIGSEGV | SIGSYS | KICK);
        if matches!(signal, SIGKILL | SIGSTOP | SIGCONT | SIGCHLD) {
            continue;
        }
        let mut action = if handled {
            SigAction {
                handler: own.unwrap_or(handler) as u64,
                flags: sa::SIGINFO | sa::ONSTACK | sa::NODEFER | sa::RESTORER,
                // Never used as an address: the entry makes its own rt_sigreturn. It is how the entry knows a frame of the host's.
                restorer: secret,
                mask: 0,
            }
        } else {
            SigAction { handler: SIG_IGN, flags: 0, restorer: 0, mask: 0 }
        };
        // SAFETY: the structure is ours; the handler is written for this.
        unsafe { sys::raw(nr::RT_SIGACTION, [signal as usize, &raw const action as usize, 0, 8, 0, 0]) }?;
        // SAFETY: a field of ours. The secret must not stay on the stack, where its place could pass for a frame.
        unsafe { (&raw mut action.restorer).write_volatile(0) };
    }
    set_mask(0)
}

/// Replaces the calling thread's host signal mask.
pub fn set_mask(mask: u64) -> Result<()> {
    // SAFETY: the word is ours; 2 is SIG_SETMASK.
    unsafe { sys::raw(nr::RT_SIGPROCMASK, [2, &raw const mask as usize, 0, 8, 0, 0]) }.map(|_| ())
}

/// Makes the thread's kernel stack its alternate signal stack, until a host signal uses it; where the stack stays, the room for
/// host signals alone (see [`entry`]).
pub fn set_stack(index: usize) -> Result<()> {
    let stack = if machine::get().stack_stays {
        AltStack { sp: hosted::stack_start(index), flags: 0, size: SIGNAL_ROOM }
    } else {
        let (sp, size) = hosted::stack(index);
        AltStack { sp, flags: SS_AUTODISARM, size }
    };
    // SAFETY: the structure is ours, the stack belongs to the thread.
    unsafe { sys::raw(nr::SIGALTSTACK, [&raw const stack as usize, 0, 0, 0, 0, 0]) }.map(|_| ())
}

/// User code was interrupted; the entry has described by what in the area's arrival.
///
/// # Safety
/// Called by the entry assembly only, on the thread's own kernel stack.
pub unsafe extern "C" fn on_signal(area: *mut Area) -> *mut Area {
    let index = hosted::index_of(area as usize);
    let left = interrupted(area);
    // The signal was put on the thread's signal stack, which it may have had to give up for that. A kick from here on is fine: it finds
    // the frame whole, and this is done again.
    if !machine::get().stack_stays && set_stack(index).is_err() {
        sys::write_all(2, b"janua: the host takes no signal stack any more\n");
        machine::stop_sandbox(125);
    }
    left
}

fn interrupted(area: *mut Area) -> *mut Area {
    let index = hosted::index_of(area as usize);
    // SAFETY: the thread itself.
    let this = unsafe { area::own(index) };
    let arrival = this.arrival;
    let signal = arrival.signal as u32;
    let in_kernel = (arrival.rip as usize).wrapping_sub(KERNEL_BASE) < IMAGE_SIZE;
    let host = HostSignal { signal, code: arrival.code, number: arrival.number, arch: arrival.arch };
    let gate = machine::get().gate;
    let guest = spawn::guest(index);
    let frame = &mut this.frame;
    if let Some(pc) = entry::restoring(arrival.rip as usize, frame.rcx as usize) {
        if signal == SIGTRAP && arrival.code == si::TRAP_TRACE {
            // For who steps it is one instruction, and started over it would never be done.
            return spawn::carry_on(this, index, Flow::Resume);
        }
        frame.rip = pc as u64;
    }
    if signal == SIGSYS
        && !in_kernel
        && let Some(abi) = gate.accept(&host, frame, &HostedUser)
    {
        if abi == Abi::Native && gate.trap_id() != gate.id() {
            guest.call_trapped(frame);
        }
        return trapped_call(this, index, abi);
    }
    let flow = if signal == KICK || arrival.code <= 0 {
        text::settle(index);
        guest.trap(frame, Trap::Kick)
    } else if matches!(signal, SIGSEGV | SIGBUS) && gate.is_call_store(arrival.rip as usize) {
        // A rewritten call on a stack that is none, as at the end of a thread that has unmapped its own.
        frame.orig_rax = frame.rax;
        frame.rip = frame.rcx;
        frame.rax = janua_abi::linux::Errno::ENOSYS.as_result() as u64;
        return trapped_call(this, index, Abi::Native);
    } else {
        guest.trap(frame, Trap::Exception(exception(&arrival)))
    };
    spawn::carry_on(this, index, flow)
}

/// A call that came by the host's signal.
fn trapped_call(this: &mut Own, index: usize, abi: Abi) -> *mut Area {
    let gate = machine::get().gate;
    let guest = spawn::guest(index);
    let differs = gate.trap_id() != gate.id();
    if differs {
        guest.set_gate(gate.trap_id());
    }
    let flow = guest.call(&mut this.frame, abi);
    let area = spawn::carry_on(this, index, flow);
    if differs {
        guest.set_gate(gate.id());
    }
    area
}

/// The kernel itself was interrupted.
///
/// # Safety
/// Called by the entry assembly only, with what the host wrote on the thread's own kernel stack.
pub unsafe extern "C" fn on_nested(signal: i32, info: *mut u8, context: *mut u8) {
    // SAFETY: the host wrote both structures on this thread's kernel stack, which nobody else touches.
    let (info, context) = unsafe { (&*info.cast::<Info>(), &mut *context.cast::<Context>()) };
    let index = hosted::index_of(core::ptr::from_ref(context) as usize);
    in_kernel_code(signal as u32, info, context, index);
}

/// A signal while kernel code runs: a user copy that faulted goes on at its fixup, a kick has left its mark already, anything
/// else is a fault of the kernel and stops the sandbox.
fn in_kernel_code(signal: u32, info: &Info, context: &mut Context, index: usize) {
    const ALIGNMENT_CHECK: u64 = 1 << 18;
    match signal {
        // Set by the guest before a rewritten call: the kernel clears it and the exit sets it again.
        SIGBUS if context.eflags & ALIGNMENT_CHECK != 0 => {
            context.eflags &= !ALIGNMENT_CHECK;
            // SAFETY: the thread itself, between two of its instructions; the frame is whole while the kernel runs. By the place alone, since
            // what was interrupted may have it borrowed.
            unsafe {
                let flags = &raw mut (*hosted::area(index)).own.frame.rflags;
                flags.write_volatile(flags.read_volatile() | ALIGNMENT_CHECK);
            }
        }
        SIGSEGV if info.code == si::SEGV_ACCERR && context.err & ERROR_STORE != 0 && store_fault(info.addr, index) => {}
        SIGSEGV if info.code == si::SEGV_MAPERR && hole_fault(context.rip, info.addr, index) => {}
        SIGSEGV | SIGBUS if info.code > 0 => match usercopy::fixup(context.rip as usize) {
            Some(fixup) => context.rip = fixup as u64,
            None => kernel_fault(signal, info, context, index),
        },
        KICK => {}
        _ if info.code <= 0 => {}
        _ => kernel_fault(signal, info, context, index),
    }
}

/// A store to user memory that the page's rights forbade: whether the guest's memory has it in order now.
fn store_fault(addr: u64, index: usize) -> bool {
    is_user(addr as usize, 1) && spawn::has_guest(index) && spawn::guest(index).store_fault(addr as usize)
}

/// A user copy met memory that nothing is mapped at: whether something is now.
fn hole_fault(rip: u64, addr: u64, index: usize) -> bool {
    let copies = usercopy::fixup(rip as usize).is_some() && is_user(addr as usize, 1);
    copies && spawn::has_guest(index) && spawn::guest(index).hole_fault(addr as usize)
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
    // SAFETY: a copy of the thread's own frame: the thread was interrupted here, and does not come back.
    let frame = unsafe { (&raw const (*hosted::area(index)).own.frame).read_volatile() };
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
