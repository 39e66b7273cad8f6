//! The signal frames of 32-bit code: pushing them, and taking them back (sigreturn(2), rt_sigreturn(2)).
//!
//! From high to low on the handler's stack: the vector state in XSAVE form (64-byte aligned, closed by a magic number), before it
//! the x87 state as FSAVE stores it, then `struct sigframe_ia32`, or `struct rt_sigframe_ia32` for SA_SIGINFO, so placed that the
//! handler finds the stack as after a call. As with the frames of 64-bit code, what comes back is a claim.

use janua_abi::linux::i386::ptrace::USER_I387_32;
use janua_abi::linux::i386::signal::{FpState32, RtSigFrame32, SigContext32, SigFrame32, SigInfo32, StackT32, UContext32};
use janua_abi::linux::i386::stat::{halves, whole};
use janua_abi::linux::layout::Layout;
use janua_abi::linux::signal::{FPX_SW_OFFSET, SIGSEGV, SigAction, SigInfo, StackT, UC_FP_XSTATE, sa, ss};
use janua_abi::linux::{Errno, Result, auxv as kinds};
use janua_kernel::UserPtr;
use janua_port::{Frame, Segments, Vdso32};
use zerocopy::{FromZeros, IntoBytes};

use super::{vdso, x87};
use crate::Thread;
use crate::signal::{self, SigSet, altstack, set_mask};
use crate::thread::ThreadExt;
use crate::x86::frame::{FXSAVE_SIZE, read_fpu, save_fpu};

/// What FSAVE's form adds before the vector state, and to the size the frame gives.
const FSAVE: usize = size_of::<FpState32>();

/// Pushes a frame for a handler and points the registers at it. EFAULT when the stack cannot take it.
pub fn push(thread: &Thread, frame: &mut Frame, action: &SigAction, info: &SigInfo, mask: SigSet) -> Result<()> {
    let user = thread.user();
    let mut stack = *thread.signals.altstack.lock();
    let old_sp = frame.rsp & 0xffff_ffff;
    let nested = altstack::contains(&stack, old_sp);
    let switch = action.flags & sa::ONSTACK != 0 && stack.size != 0 && !nested;
    let sp = if switch { stack.sp.wrapping_add(stack.size) } else { old_sp };

    let fpu = save(thread)?;
    // The vector state is what is aligned, FSAVE's form is before it.
    let fp_at = match fpu.len() {
        0 => sp,
        len => (sp.wrapping_sub((len - FSAVE) as u64) & !63).wrapping_sub(FSAVE as u64),
    };
    let rt = action.flags & sa::SIGINFO != 0;
    let size = if rt { size_of::<RtSigFrame32>() } else { size_of::<SigFrame32>() } as u64;
    let at = (fp_at.wrapping_sub(size).wrapping_add(4) & !15).wrapping_sub(4);
    if (switch || nested) && !altstack::contains_range(&stack, at, sp) {
        return Err(Errno::EFAULT);
    }
    if at >> 32 != 0 {
        return Err(Errno::EFAULT);
    }
    if !fpu.is_empty() {
        user.copy_out(fp_at as usize, &fpu).map_err(|_| Errno::EFAULT)?;
    }
    let at = at as u32;
    let context = context(thread, frame, mask, if fpu.is_empty() { 0 } else { fp_at as u32 });
    let signal = info.signal() as i32;
    if rt {
        stack.flags = altstack::state(&stack, old_sp) | stack.flags & ss::AUTODISARM;
        let mut pushed = RtSigFrame32::new_zeroed();
        pushed.signal = signal;
        pushed.pinfo = at + core::mem::offset_of!(RtSigFrame32, info) as u32;
        pushed.puc = at + core::mem::offset_of!(RtSigFrame32, uc) as u32;
        pushed.info = SigInfo32::store(info)?;
        pushed.uc = UContext32 {
            flags: if fpu.len() > FSAVE + FXSAVE_SIZE { UC_FP_XSTATE as u32 } else { 0 },
            link: 0,
            stack: StackT32::store(&stack)?,
            mcontext: context,
            sigmask: halves(mask.0),
        };
        pushed.retcode[..7].copy_from_slice(&vdso::RT_SIGRETURN_CODE);
        let retcode = at + core::mem::offset_of!(RtSigFrame32, retcode) as u32;
        pushed.pretcode = restorer(thread, action, |vdso| vdso.rt_sigreturn, retcode);
        frame.rdx = pushed.pinfo.into();
        frame.rcx = pushed.puc.into();
        UserPtr::<RtSigFrame32>::new(at as usize).write(user, &pushed)?;
    } else {
        let mut pushed = SigFrame32::new_zeroed();
        pushed.signal = signal;
        pushed.sc = context;
        pushed.extramask = halves(mask.0)[1];
        pushed.retcode = vdso::SIGRETURN_CODE;
        let retcode = at + core::mem::offset_of!(SigFrame32, retcode) as u32;
        pushed.pretcode = restorer(thread, action, |vdso| vdso.sigreturn, retcode);
        frame.rdx = 0;
        frame.rcx = 0;
        UserPtr::<SigFrame32>::new(at as usize).write(user, &pushed)?;
    }
    if stack.flags & ss::AUTODISARM != 0 {
        *thread.signals.altstack.lock() = altstack::DISABLED;
    }
    let registers = thread.registers()?;
    registers.fpu_reset();
    registers.set_segments(Segments { ds: Segments::FLAT.ds, es: Segments::FLAT.es, ..registers.segments() });
    frame.rax = info.signal().into();
    frame.call_user32(action.handler as u32, at);
    Ok(())
}

/// Where a handler returns to: what the program gave, the vDSO, or the code in the frame itself.
fn restorer(thread: &Thread, action: &SigAction, offset: fn(Vdso32) -> u32, retcode: u32) -> u32 {
    if action.flags & sa::RESTORER != 0 {
        return action.restorer as u32;
    }
    let Some(mm) = thread.process().mm() else { return retcode };
    let auxv = mm.image().auxv;
    let vdso = auxv.as_chunks::<2>().0.iter().find(|[kind, _]| *kind == kinds::AT_SYSINFO_EHDR);
    match (vdso.and_then(|[_, at]| u32::try_from(*at).ok()), thread.machine().compat()) {
        (Some(vdso), Some(compat)) => vdso + offset(compat.vdso()),
        _ => retcode,
    }
}

fn context(thread: &Thread, frame: &Frame, mask: SigSet, fpstate: u32) -> SigContext32 {
    let fault = *thread.signals.fault.lock();
    let segments = thread.registers().map_or(Segments::FLAT, |registers| registers.segments());
    SigContext32 {
        gs: segments.gs.into(),
        fs: segments.fs.into(),
        es: segments.es.into(),
        ds: segments.ds.into(),
        edi: frame.rdi as u32,
        esi: frame.rsi as u32,
        ebp: frame.rbp as u32,
        esp: frame.rsp as u32,
        ebx: frame.rbx as u32,
        edx: frame.rdx as u32,
        ecx: frame.rcx as u32,
        eax: frame.rax as u32,
        trapno: fault.vector as u32,
        err: fault.error as u32,
        eip: frame.rip as u32,
        cs: frame.cs as u32,
        eflags: frame.rflags as u32,
        esp_at_signal: frame.rsp as u32,
        ss: frame.ss as u32,
        fpstate,
        oldmask: mask.0 as u32,
        cr2: fault.addr as u32,
    }
}

/// sigreturn(2)
pub fn sigreturn(thread: &Thread, frame: &mut Frame) -> isize {
    // The handler's return has taken off the return address and the signal's number.
    let at = frame.rsp.wrapping_sub(8) as u32;
    let result = UserPtr::<SigFrame32>::new(at as usize).read(thread.user()).and_then(|saved| {
        restore(thread, frame, &saved.sc)?;
        set_mask(thread, SigSet(whole([saved.sc.oldmask, saved.extramask])));
        Ok(())
    });
    finish(thread, frame, result)
}

/// rt_sigreturn(2)
pub fn rt_sigreturn(thread: &Thread, frame: &mut Frame) -> isize {
    let at = frame.rsp.wrapping_sub(4) as u32;
    let result = UserPtr::<RtSigFrame32>::new(at as usize).read(thread.user()).and_then(|saved| {
        restore(thread, frame, &saved.uc.mcontext)?;
        set_mask(thread, SigSet(whole(saved.uc.sigmask)));
        let stack: StackT = saved.uc.stack.load();
        // As on Linux, an alternate stack that is no longer good does not keep the handler from returning.
        let _ = altstack::change(thread, &stack, frame.rsp);
        Ok(())
    });
    finish(thread, frame, result)
}

/// A frame that cannot be read or makes no sense ends in SIGSEGV.
fn finish(thread: &Thread, frame: &mut Frame, result: Result<()>) -> isize {
    frame.orig_rax = u64::MAX;
    match result {
        Ok(()) => frame.rax as isize,
        Err(_) => {
            signal::force(thread, signal::kernel_signal(SIGSEGV));
            0
        }
    }
}

fn restore(thread: &Thread, frame: &mut Frame, saved: &SigContext32) -> Result<()> {
    if !frame.set_code_segment((saved.cs as u16 | 3).into()) {
        return Err(Errno::EFAULT);
    }
    load(thread, saved.fpstate as usize)?;
    let [ds, es, fs, gs] = [saved.ds, saved.es, saved.fs, saved.gs].map(|word| word as u16);
    thread.registers()?.set_segments(Segments { ds, es, fs, gs });
    frame.rdi = saved.edi.into();
    frame.rsi = saved.esi.into();
    frame.rbp = saved.ebp.into();
    frame.rbx = saved.ebx.into();
    frame.rdx = saved.edx.into();
    frame.rcx = saved.ecx.into();
    frame.rax = saved.eax.into();
    frame.rip = saved.eip.into();
    frame.rsp = saved.esp.into();
    frame.set_user_flags(saved.eflags.into());
    Ok(())
}

/// The calling thread's floating-point and vector state as it goes into a frame; empty when the machine has none.
fn save(thread: &Thread) -> Result<alloc::vec::Vec<u8>> {
    let mut area = save_fpu(thread)?;
    if area.is_empty() {
        return Ok(area);
    }
    if area.len() > FXSAVE_SIZE {
        // The size of the whole counts FSAVE's form.
        let size = (area.len() + FSAVE) as u32;
        area[FPX_SW_OFFSET + 4..FPX_SW_OFFSET + 8].copy_from_slice(&size.to_le_bytes());
    }
    let head = x87::frame(&area);
    let mut whole = head.as_bytes().to_vec();
    whole.append(&mut area);
    Ok(whole)
}

/// Loads the state from a frame. What FSAVE's form has of the x87 registers counts.
fn load(thread: &Thread, at: usize) -> Result<()> {
    let registers = thread.registers()?;
    if at == 0 || thread.machine().isa().fpu.size < FXSAVE_SIZE {
        registers.fpu_reset();
        return Ok(());
    }
    let head = UserPtr::<FpState32>::new(at).read(thread.user())?;
    let mut area = read_fpu(thread, at.wrapping_add(FSAVE), FSAVE)?;
    x87::put(&mut area, &head.as_bytes()[..USER_I387_32]);
    registers.fpu_restore(&area)
}
