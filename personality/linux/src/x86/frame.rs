//! The x86-64 signal frame: pushing it, and taking it back (rt_sigreturn(2)).
//!
//! From high to low on the handler's stack: the vector state (64-byte aligned, XSAVE form, closed by a magic number), then
//! `struct rt_sigframe` so placed that the handler finds the stack as after a call. The frame is the guest's memory: what comes
//! back from it is a claim, and nothing in it can raise the thread's rights.

use alloc::vec;
use alloc::vec::Vec;

use janua_abi::linux::signal::*;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_port::Frame;
use zerocopy::{FromBytes, IntoBytes};

use crate::Thread;
use crate::signal::{self, SigSet, altstack};
use crate::thread::ThreadExt;

/// Bytes below the stack pointer that leaf functions may use (System V ABI, x86-64).
const RED_ZONE: u64 = 128;
/// The legacy region, and the XSAVE header behind it.
pub const FXSAVE_SIZE: usize = 512;
const XSAVE_HEADER: usize = 64;
/// x87 and SSE: what FXSAVE holds.
pub(super) const LEGACY_FEATURES: u64 = 3;

/// Pushes a frame for a handler and points the registers at it. EFAULT when the stack cannot take it.
pub fn push(thread: &Thread, frame: &mut Frame, action: &SigAction, info: &SigInfo, mask: SigSet) -> Result<()> {
    if action.flags & sa::COMPAT != 0 {
        return super::i386::frame::push(thread, frame, action, info, mask);
    }
    if action.flags & sa::RESTORER == 0 {
        return Err(Errno::EFAULT);
    }
    let user = thread.user();
    let mut stack = *thread.signals.altstack.lock();
    let nested = altstack::contains(&stack, frame.rsp);
    let mut sp = frame.rsp.wrapping_sub(RED_ZONE);
    let switch = action.flags & sa::ONSTACK != 0 && stack.size != 0 && !nested;
    if switch {
        sp = stack.sp.wrapping_add(stack.size);
    }
    let fpu = save_fpu(thread)?;
    let fp_at = sp.wrapping_sub(fpu.len() as u64) & !63;
    let frame_at = (fp_at.wrapping_sub(size_of::<RtSigFrame>() as u64) & !15).wrapping_sub(8);
    // A frame that runs over the end of the alternate stack would land in somebody else's memory.
    if (switch || nested) && !altstack::contains_range(&stack, frame_at, sp) {
        return Err(Errno::EFAULT);
    }
    if !fpu.is_empty() {
        user.copy_out(fp_at as usize, &fpu).map_err(|_| Errno::EFAULT)?;
    }

    stack.flags = altstack::state(&stack, frame.rsp) | stack.flags & ss::AUTODISARM;
    let flags = if fpu.len() > FXSAVE_SIZE { UC_FP_XSTATE } else { 0 } | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
    let pushed = RtSigFrame {
        pretcode: action.restorer,
        uc: UContext {
            flags,
            link: 0,
            stack,
            mcontext: context(thread, frame, mask, if fpu.is_empty() { 0 } else { fp_at }),
            sigmask: mask.0,
        },
        info: *info,
    };
    UserPtr::<RtSigFrame>::new(frame_at as usize).write(user, &pushed)?;

    if stack.flags & ss::AUTODISARM != 0 {
        *thread.signals.altstack.lock() = altstack::DISABLED;
    }
    thread.registers()?.fpu_reset();
    const INFO: u64 = core::mem::offset_of!(RtSigFrame, info) as u64;
    const UC: u64 = core::mem::offset_of!(RtSigFrame, uc) as u64;
    frame.rdi = u64::from(info.signal());
    frame.rsi = frame_at + INFO;
    frame.rdx = frame_at + UC;
    // The number of vector registers in use, should the handler be variadic.
    frame.rax = 0;
    frame.call_user(action.handler, frame_at);
    Ok(())
}

/// The general registers as a handler sees them, and its last fault.
fn context(thread: &Thread, frame: &Frame, mask: SigSet, fpstate: u64) -> SigContext {
    let fault = *thread.signals.fault.lock();
    // The program's own code, not the trampoline a rewritten call came from.
    let program_counter = match thread.process().mm() {
        Some(mm) => mm.pc_shown(frame.rip as usize) as u64,
        None => frame.rip,
    };
    SigContext {
        r8: frame.r8,
        r9: frame.r9,
        r10: frame.r10,
        r11: frame.r11,
        r12: frame.r12,
        r13: frame.r13,
        r14: frame.r14,
        r15: frame.r15,
        rdi: frame.rdi,
        rsi: frame.rsi,
        rbp: frame.rbp,
        rbx: frame.rbx,
        rdx: frame.rdx,
        rax: frame.rax,
        rcx: frame.rcx,
        rsp: frame.rsp,
        rip: program_counter,
        eflags: frame.rflags,
        cs: frame.cs as u16,
        gs: 0,
        fs: 0,
        ss: frame.ss as u16,
        err: fault.error,
        trapno: fault.vector,
        oldmask: mask.0,
        cr2: fault.addr,
        fpstate,
        reserved: [0; 8],
    }
}

/// A thread's vector state as it goes into a frame; empty when the machine has none. EXDEV, as [`Thread::registers`].
pub fn save_fpu(thread: &Thread) -> Result<Vec<u8>> {
    let size = thread.machine().isa().fpu.size;
    if size < FXSAVE_SIZE {
        return Ok(Vec::new());
    }
    let extended = size >= FXSAVE_SIZE + XSAVE_HEADER;
    let mut area = vec![0; if extended { size + 4 } else { FXSAVE_SIZE }];
    thread.registers()?.fpu_save(&mut area[..size]);
    if extended {
        let present = features(&area);
        let words = FpxSwBytes {
            magic1: FP_XSTATE_MAGIC1,
            extended_size: area.len() as u32,
            xfeatures: present | LEGACY_FEATURES,
            xstate_size: size as u32,
            padding: [0; 7],
        };
        area[FPX_SW_OFFSET..FPX_SW_OFFSET + size_of::<FpxSwBytes>()].copy_from_slice(words.as_bytes());
        area[size..].copy_from_slice(&FP_XSTATE_MAGIC2.to_ne_bytes());
    }
    Ok(area)
}

/// XSTATE_BV of an area in XSAVE form.
fn features(area: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&area[FXSAVE_SIZE..FXSAVE_SIZE + 8]);
    u64::from_ne_bytes(bytes)
}

/// Loads vector state from a frame.
fn load_fpu(thread: &Thread, at: u64) -> Result<()> {
    let registers = thread.registers()?;
    if at == 0 || thread.machine().isa().fpu.size < FXSAVE_SIZE {
        registers.fpu_reset();
        return Ok(());
    }
    registers.fpu_restore(&read_fpu(thread, at as usize, 0)?)
}

/// Reads vector state from a frame; an area without the magic numbers counts as the legacy part alone. `before` are bytes that
/// come before it and are counted in the size it gives.
pub fn read_fpu(thread: &Thread, at: usize, before: usize) -> Result<Vec<u8>> {
    let size = thread.machine().isa().fpu.size;
    let user = thread.user();
    let mut area = vec![0; size];
    user.copy_in(&mut area[..FXSAVE_SIZE], at).map_err(|_| Errno::EFAULT)?;
    if size >= FXSAVE_SIZE + XSAVE_HEADER {
        let words =
            FpxSwBytes::read_from_bytes(&area[FPX_SW_OFFSET..FPX_SW_OFFSET + size_of::<FpxSwBytes>()]).unwrap_or_default();
        let claimed = words.xstate_size as usize;
        let whole = words.magic1 == FP_XSTATE_MAGIC1
            && claimed >= FXSAVE_SIZE + XSAVE_HEADER
            && claimed <= size
            && words.extended_size as usize == claimed + 4 + before
            && UserPtr::<u32>::new(at.wrapping_add(claimed)).read(user) == Ok(FP_XSTATE_MAGIC2);
        if whole {
            let rest = &mut area[FXSAVE_SIZE..claimed];
            user.copy_in(rest, at.wrapping_add(FXSAVE_SIZE)).map_err(|_| Errno::EFAULT)?;
            let wanted = features(&area) & words.xfeatures;
            area[FXSAVE_SIZE..FXSAVE_SIZE + 8].copy_from_slice(&wanted.to_ne_bytes());
        } else {
            area[FXSAVE_SIZE..FXSAVE_SIZE + 8].copy_from_slice(&LEGACY_FEATURES.to_ne_bytes());
        }
        // Where FXSAVE leaves room for software there is nothing the processor may see.
        area[FPX_SW_OFFSET..FXSAVE_SIZE].fill(0);
    }
    Ok(area)
}

/// rt_sigreturn(2): everything as the frame on the stack has it, as far as user code may set it. A frame that cannot be read or
/// makes no sense ends in SIGSEGV.
pub fn sigreturn(thread: &Thread, frame: &mut Frame) -> isize {
    match pop(thread, frame) {
        Ok(()) => frame.rax as isize,
        Err(_) => {
            frame.orig_rax = u64::MAX;
            signal::force(thread, signal::kernel_signal(SIGSEGV));
            0
        }
    }
}

fn pop(thread: &Thread, frame: &mut Frame) -> Result<()> {
    // The handler's `ret` has taken the return address off.
    let at = frame.rsp.wrapping_sub(8) as usize;
    let saved = UserPtr::<RtSigFrame>::new(at).read(thread.user())?;
    let context = &saved.uc.mcontext;
    // The return must not go where user code cannot run.
    if !thread.user().is_code(context.rip as usize) {
        return Err(Errno::EFAULT);
    }
    if !frame.set_code_segment(u64::from(context.cs | 3)) {
        return Err(Errno::EFAULT);
    }
    load_fpu(thread, context.fpstate)?;
    frame.r8 = context.r8;
    frame.r9 = context.r9;
    frame.r10 = context.r10;
    frame.r11 = context.r11;
    frame.r12 = context.r12;
    frame.r13 = context.r13;
    frame.r14 = context.r14;
    frame.r15 = context.r15;
    frame.rdi = context.rdi;
    frame.rsi = context.rsi;
    frame.rbp = context.rbp;
    frame.rbx = context.rbx;
    frame.rdx = context.rdx;
    frame.rax = context.rax;
    frame.rcx = context.rcx;
    frame.rsp = context.rsp;
    frame.rip = match thread.process().mm() {
        Some(mm) => mm.pc_real(context.rip as usize) as u64,
        None => context.rip,
    };
    frame.set_user_flags(context.eflags);
    // What is restored is no call that could be restarted.
    frame.orig_rax = u64::MAX;
    signal::set_mask(thread, SigSet(saved.uc.sigmask));
    // As on Linux, an alternate stack that is no longer good does not keep the handler from returning.
    let _ = altstack::change(thread, &saved.uc.stack, frame.rsp);
    Ok(())
}
