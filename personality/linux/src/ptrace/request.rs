//! The call: what each request does.

use alloc::sync::Arc;
use alloc::vec;
use core::future::poll_fn;
use core::task::Poll;

use janua_abi::linux::layout::Layout;
use janua_abi::linux::ptrace::*;
use janua_abi::linux::signal::{SIGKILL, SigInfo};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::{Arg, Kind as ArgKind};
use janua_kernel::thread::work;
use janua_port::Frame;
use janua_rt::{Held, Target};
use zerocopy::IntoBytes;

use super::attach;
use super::tracee::{How, Kind, State, Tracee};
use crate::signal::{self, SigSet, UNBLOCKABLE};
use crate::task::{CAP_SYS_PTRACE, access};
use crate::thread::ThreadExt;
use crate::{Seat, Thread};

/// A request as an argument.
#[derive(Clone, Copy, Debug)]
pub struct PtraceRequest(pub u32);

impl Arg for PtraceRequest {
    const KIND: ArgKind = ArgKind::Named("ptrace");
    fn decode(word: usize) -> Result<Self> {
        // A long on Linux; what is beyond 32 bits is no request.
        Ok(PtraceRequest(u32::try_from(word).unwrap_or(u32::MAX)))
    }
}

const WORD: usize = size_of::<usize>();

/// ptrace(2) as the call: PTRACE_PEEK* store what they read at `data`.
pub async fn ptrace(thread: &Thread, request: PtraceRequest, pid: i32, addr: usize, data: usize) -> Result<usize> {
    let request = request.0;
    if request == request::TRACEME {
        return attach::trace_me(thread).map(|()| 0);
    }
    let tid = number(pid)?;
    match request {
        request::ATTACH => return attach::attach(thread, tid, false, 0).await.map(|()| 0),
        request::SEIZE if addr != 0 => return Err(Errno::EIO),
        request::SEIZE => {
            let options = attach::options(data).map_err(|_| Errno::EIO)?;
            return attach::attach(thread, tid, true, options).await.map(|()| 0);
        }
        _ => {}
    }
    let tracee = tracee(thread, tid)?;
    match request {
        request::INTERRUPT if tracee.seized => tracee.trap(),
        request::INTERRUPT => return Err(Errno::EIO),
        request::KILL => {
            let _ = signal::send_task(&tracee.task, signal::kernel_signal(SIGKILL));
        }
        request::POKETEXT | request::POKEDATA => {
            with_stop(&tracee, |_| Ok(()))?;
            poke(thread, &tracee, addr, &data.to_ne_bytes()).await?;
        }
        _ => return of_stopped(thread, &tracee, request, addr, data),
    }
    Ok(0)
}

fn number(pid: i32) -> Result<u32> {
    u32::try_from(pid).map_err(|_| Errno::ESRCH)
}

/// What the caller's thread traces by this number, when that is stopped. ESRCH.
pub fn stopped(thread: &Thread, pid: i32) -> Result<Arc<Tracee>> {
    let tracee = tracee(thread, number(pid)?)?;
    with_stop(&tracee, |_| Ok(()))?;
    Ok(tracee)
}

/// What the caller's thread traces by this number. ESRCH.
fn tracee(thread: &Thread, tid: u32) -> Result<Arc<Tracee>> {
    let tree = thread.kernel.tree.lock();
    let own = |tracee: &&Arc<Tracee>| tracee.tracer == thread.process().pid && tracee.tracer_tid() == thread.tid();
    tree.tracee(tid).filter(own).cloned().ok_or(Errno::ESRCH)
}

/// Looks at or changes what is there as long as the tracee is stopped. ESRCH when it is not.
pub fn with_stop<T>(tracee: &Tracee, act: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
    let mut state = tracee.state.lock();
    if state.stop.is_none() || state.listening {
        return Err(Errno::ESRCH);
    }
    act(&mut state)
}

/// The tracee as a thread. ESRCH when it is gone.
pub fn seat(tracee: &Tracee) -> Result<Arc<Seat>> {
    tracee.seat().ok_or(Errno::ESRCH)
}

fn of_stopped(thread: &Thread, tracee: &Arc<Tracee>, request: u32, addr: usize, data: usize) -> Result<usize> {
    with_stop(tracee, |_| Ok(()))?;
    match request {
        request::SINGLESTEP | request::SYSEMU_SINGLESTEP if !Frame::STEPS => return Err(Errno::EIO),
        request::CONT => attach::go_on(tracee, data, How::Run)?,
        request::SYSCALL => attach::go_on(tracee, data, How::Calls)?,
        request::SINGLESTEP => attach::go_on(tracee, data, How::Step)?,
        request::SYSEMU => attach::go_on(tracee, data, How::Emulate)?,
        request::SYSEMU_SINGLESTEP => attach::go_on(tracee, data, How::EmulateStep)?,
        request::DETACH => attach::detach(thread, tracee, attach::signal_number(data)?)?,
        request::LISTEN => listen(tracee)?,
        request::SETOPTIONS | request::OLDSETOPTIONS => {
            let options = attach::options(data)?;
            with_stop(tracee, |state| {
                state.options = options;
                Ok(())
            })?;
        }
        request::GETEVENTMSG => {
            let message = with_stop(tracee, |state| Ok(state.message))?;
            UserPtr::<u64>::new(data).write(thread.user(), &message)?;
        }
        request::PEEKTEXT | request::PEEKDATA => {
            let mut word = [0; WORD];
            peek(thread, &*seat(tracee)?, addr, &mut word)?;
            UserPtr::<[u8; WORD]>::new(data).write(thread.user(), &word)?;
        }
        request::GET_SYSCALL_INFO => return call_info(thread, tracee, addr, data),
        request::GETSIGINFO | request::SETSIGINFO => signal_info::<SigInfo>(thread, tracee, request, data)?,
        request::PEEKSIGINFO => return peek_signals::<SigInfo>(thread, tracee, addr, data),
        request::GETSIGMASK | request::SETSIGMASK => mask(thread, tracee, request, addr, data)?,
        request::GETREGSET | request::SETREGSET => register_set::<[usize; 2]>(thread, tracee, request, addr, data)?,
        _ => of_registers(thread, tracee, request, addr, data)?,
    }
    Ok(0)
}

/// PTRACE_LISTEN: a stop of the process goes on until something happens. EIO in another stop.
fn listen(tracee: &Tracee) -> Result<()> {
    let due = with_stop(tracee, |state| {
        let group = state.stop.is_some_and(|stop| stop.kind == Kind::Group && stop.code >> 8 == event::STOP);
        if !group {
            return Err(Errno::EIO);
        }
        state.listening = true;
        state.report = None;
        Ok(state.trap)
    })?;
    if due {
        tracee.trap();
    }
    Ok(())
}

fn of_registers(thread: &Thread, tracee: &Tracee, request: u32, addr: usize, data: usize) -> Result<()> {
    let user = thread.user();
    let target = seat(tracee)?;
    let fxsave = || with_stop(tracee, |state| state.registers.fxsave());
    match request {
        request::PEEKUSER => {
            let word = with_stop(tracee, |state| {
                let word = user_word(&state.registers.general, addr)?;
                Ok(if USER_DEBUG.contains(&addr) { state.debug.get(debug_register(addr)) } else { word })
            })?;
            UserPtr::<u64>::new(data).write(user, &word)
        }
        request::POKEUSER => with_stop(tracee, |state| {
            user_word(&state.registers.general, addr)?;
            let mut general = state.registers.general;
            match general.get_mut(addr / WORD) {
                Some(word) => *word = data as u64,
                None if Frame::STEPS && USER_DEBUG.contains(&addr) => {
                    return state.debug.set(debug_register(addr), data as u64);
                }
                // The rest of `struct user` can only be read.
                None => return Err(Errno::EIO),
            }
            state.registers.set_general(&target, general)
        }),
        request::GETREGS => {
            let general = with_stop(tracee, |state| Ok(state.registers.general))?;
            UserPtr::<[u64; USER_REGS]>::new(data).write(user, &general)
        }
        request::SETREGS => {
            let general = UserPtr::<[u64; USER_REGS]>::new(data).read(user)?;
            with_stop(tracee, |state| state.registers.set_general(&target, general))
        }
        request::GETFPREGS => user.copy_out(data, &fxsave()?).map_err(|_| Errno::EFAULT),
        request::SETFPREGS => {
            let mut bytes = fxsave()?;
            user.copy_in(&mut bytes, data).map_err(|_| Errno::EFAULT)?;
            with_stop(tracee, |state| state.registers.replace_fxsave(&target, &bytes))
        }
        _ => Err(Errno::EIO),
    }
}

/// PTRACE_GETREGSET, PTRACE_SETREGSET: the set `kind` has the shape of the tracee's code, the vector that of the tracer's.
pub fn register_set<V: Layout<[usize; 2]>>(
    thread: &Thread,
    tracee: &Tracee,
    request: u32,
    kind: usize,
    vector: usize,
) -> Result<()> {
    let user = thread.user();
    let target = seat(tracee)?;
    let vector = UserPtr::<V>::new(vector);
    let [base, len] = vector.load(user)?;
    let (bytes, element) = with_stop(tracee, |state| state.registers.set(kind))?;
    if len % element != 0 {
        return Err(Errno::EINVAL);
    }
    let len = len.min(bytes.len());
    if request == request::GETREGSET {
        user.copy_out(base, &bytes[..len]).map_err(|_| Errno::EFAULT)?;
    } else {
        let mut bytes = vec![0; len];
        user.copy_in(&mut bytes, base).map_err(|_| Errno::EFAULT)?;
        with_stop(tracee, |state| state.registers.replace(&target, kind, &bytes))?;
    }
    vector.store(user, &[base, len])
}

/// The word at an offset in `struct user`: what is no register is 0. EIO for what is no word of it.
fn user_word(general: &[u64; USER_REGS], offset: usize) -> Result<u64> {
    if !offset.is_multiple_of(WORD) || offset >= USER_SIZE {
        return Err(Errno::EIO);
    }
    Ok(general.get(offset / WORD).copied().unwrap_or(0))
}

/// Which debug register is at an offset in `struct user`.
fn debug_register(offset: usize) -> usize {
    (offset - USER_DEBUG.start) / WORD
}

/// PTRACE_GETSIGINFO, PTRACE_SETSIGINFO.
pub fn signal_info<S: Layout<SigInfo>>(thread: &Thread, tracee: &Tracee, request: u32, data: usize) -> Result<()> {
    let place = UserPtr::<S>::new(data);
    if request == request::GETSIGINFO {
        let info = with_stop(tracee, |state| state.stop.and_then(|stop| stop.info).ok_or(Errno::EINVAL))?;
        return place.store(thread.user(), &info);
    }
    let info = place.load(thread.user())?;
    with_stop(tracee, |state| {
        let place = state.stop.as_mut().and_then(|stop| stop.info.as_mut()).ok_or(Errno::EINVAL)?;
        *place = info;
        Ok(())
    })
}

/// PTRACE_GETSIGMASK, PTRACE_SETSIGMASK.
fn mask(thread: &Thread, tracee: &Tracee, request: u32, addr: usize, data: usize) -> Result<()> {
    let user = thread.user();
    match request {
        _ if addr != size_of::<u64>() => Err(Errno::EINVAL),
        request::GETSIGMASK => {
            let target = seat(tracee)?;
            // Within a call with a mask of its own it is the one that comes back.
            let mask = target.signals.saved.lock().unwrap_or(target.signals.blocked());
            UserPtr::<u64>::new(data).write(user, &mask.0)
        }
        _ => {
            let mask = SigSet(UserPtr::<u64>::new(data).read(user)?).without(UNBLOCKABLE);
            let target = seat(tracee)?;
            with_stop(tracee, |_| {
                // It is the mask behind the call, too, if that has one of its own (sigsuspend).
                *target.signals.saved.lock() = None;
                target.signals.store_blocked(mask);
                target.set_work(work::INTERRUPT);
                Ok(())
            })
        }
    }
}

/// PTRACE_PEEKSIGINFO: how many signals of a queue were copied.
pub fn peek_signals<S: Layout<SigInfo>>(thread: &Thread, tracee: &Tracee, args: usize, data: usize) -> Result<usize> {
    const SHARED: u32 = 1;
    let args = UserPtr::<PeekSigInfoArgs>::new(args).read(thread.user())?;
    if args.flags & !SHARED != 0 || args.nr < 0 {
        return Err(Errno::EINVAL);
    }
    let target = seat(tracee)?;
    let mut copied = 0;
    while copied < args.nr as usize {
        let Some(at) = usize::try_from(args.off).ok().and_then(|at| at.checked_add(copied)) else { break };
        let info = if args.flags & SHARED != 0 {
            tracee.task.group.lock().pending.entry(at)
        } else {
            target.signals.pending.lock().entry(at)
        };
        let Some(info) = info else { break };
        let place = data.wrapping_add(copied * size_of::<S>());
        match UserPtr::<S>::new(place).store(thread.user(), &info) {
            Err(errno) if copied == 0 => return Err(errno),
            Err(_) => break,
            Ok(()) => copied += 1,
        }
    }
    Ok(copied)
}

/// PTRACE_GET_SYSCALL_INFO: how many bytes there are to report.
fn call_info(thread: &Thread, tracee: &Tracee, room: usize, data: usize) -> Result<usize> {
    let info = with_stop(tracee, |state| {
        let kind = state.stop.map_or(Kind::Event, |stop| stop.kind);
        Ok(state.registers.call(kind))
    })?;
    let size = SYSCALL_INFO_SIZES.get(usize::from(info.op)).copied().unwrap_or(0);
    let bytes = info.as_bytes();
    thread.user().copy_out(data, &bytes[..size.min(room)]).map_err(|_| Errno::EFAULT)?;
    Ok(size)
}

/// Holds a tracee whose memory its tracer is to reach: a program that cannot be read stays so for who traces it. EIO.
fn reach<'a>(thread: &Thread, target: &'a Seat) -> Result<Held<'a>> {
    let held = access::hold_thread(target).map_err(|_| Errno::EIO)?;
    if access::is_dumpable(&target.task) || thread.capable(CAP_SYS_PTRACE) { Ok(held) } else { Err(Errno::EIO) }
}

/// Whether two threads use the same memory.
fn same_memory(thread: &Thread, target: &Seat) -> bool {
    match (thread.process().mm(), target.process().mm()) {
        (Some(own), Some(other)) => own.id == other.id,
        _ => false,
    }
}

/// A word of the tracee's memory. EIO.
pub fn peek(thread: &Thread, target: &Seat, addr: usize, word: &mut [u8]) -> Result<()> {
    if target.process().mm().is_none() {
        return Err(Errno::EIO);
    }
    let _held = if same_memory(thread, target) { None } else { Some(reach(thread, target)?) };
    if target.user().copy_in_partial(word, addr) == word.len() { Ok(()) } else { Err(Errno::EIO) }
}

/// Writes to the tracee's memory: from here where its rights allow that, otherwise the tracee does it. EIO.
pub async fn poke(thread: &Thread, tracee: &Tracee, addr: usize, bytes: &[u8]) -> Result<()> {
    let target = seat(tracee)?;
    let written = {
        let _held = reach(thread, &target)?;
        // In memory that both share it is a store like any other.
        if same_memory(thread, &target) {
            target.user().copy_out_partial(addr, bytes)
        } else {
            thread.kernel.write_remote(target.user(), addr, bytes)
        }
    };
    if written == bytes.len() {
        return Ok(());
    }
    let mut registration = None;
    // Nothing but a kill cuts it short: the tracee is stopped, and does it at once or is gone.
    poll_fn(|cx| {
        if registration.is_none() {
            registration = Some(tracee.answered.register(Target::Task(cx.waker().clone()), u32::MAX));
        }
        match tracee.force(addr, bytes) {
            Some(done) => Poll::Ready(done),
            None if thread.work() & work::KILL != 0 => Poll::Ready(Err(Errno::EINTR)),
            None => Poll::Pending,
        }
    })
    .await
}
