//! ptrace(2) of 32-bit tracers: words of four bytes, and their own layouts of registers and signals. What has neither is done by the row of
//! 64-bit ones.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use janua_abi::linux::i386::UserDesc;
use janua_abi::linux::i386::ptrace::{USER_DEBUG32, USER_REGS32, USER_SIZE32, request32};
use janua_abi::linux::i386::signal::SigInfo32;
use janua_abi::linux::ptrace::request;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;

use super::thread_area;
use crate::Thread;
use crate::ptrace::Tracee;
use crate::ptrace::request::{self as common, PtraceRequest, seat, with_stop};

/// ptrace(2).
pub async fn ptrace(thread: &Thread, request: PtraceRequest, pid: i32, addr: usize, data: usize) -> Result<usize> {
    match request.0 {
        request::POKETEXT | request::POKEDATA => {
            let tracee = common::stopped(thread, pid)?;
            common::poke(thread, &tracee, addr, &(data as u32).to_ne_bytes()).await?;
            Ok(0)
        }
        request::PEEKTEXT
        | request::PEEKDATA
        | request::PEEKUSER
        | request::POKEUSER
        | request::GETREGS
        | request::SETREGS
        | request::GETFPREGS
        | request::SETFPREGS
        | request32::GETFPXREGS
        | request32::SETFPXREGS
        | request32::GET_THREAD_AREA
        | request::GETREGSET
        | request::SETREGSET
        | request::GETEVENTMSG
        | request::GETSIGINFO
        | request::SETSIGINFO
        | request::PEEKSIGINFO => {
            let tracee = common::stopped(thread, pid)?;
            of_stopped(thread, &tracee, request.0, addr, data)
        }
        _ => common::ptrace(thread, request, pid, addr, data).await,
    }
}

fn of_stopped(thread: &Thread, tracee: &Arc<Tracee>, request: u32, addr: usize, data: usize) -> Result<usize> {
    let user = thread.user();
    match request {
        request::PEEKTEXT | request::PEEKDATA => {
            let mut word = [0; 4];
            common::peek(thread, &*seat(tracee)?, addr, &mut word)?;
            UserPtr::<[u8; 4]>::new(data).write(user, &word)?;
        }
        request::GETREGSET | request::SETREGSET => common::register_set::<[u32; 2]>(thread, tracee, request, addr, data)?,
        request::GETEVENTMSG => {
            let message = with_stop(tracee, |state| Ok(state.message))?;
            UserPtr::<u32>::new(data).write(user, &(message as u32))?;
        }
        request::GETSIGINFO | request::SETSIGINFO => common::signal_info::<SigInfo32>(thread, tracee, request, data)?,
        request::PEEKSIGINFO => return common::peek_signals::<SigInfo32>(thread, tracee, addr, data),
        request32::GET_THREAD_AREA => {
            let entry = u32::try_from(addr as i32).map_err(|_| Errno::EIO)?;
            let area = thread_area::of(&*seat(tracee)?, entry)?;
            UserPtr::<UserDesc>::new(data).write(user, &area)?;
        }
        _ => of_registers(thread, tracee, request, addr, data)?,
    }
    Ok(0)
}

fn of_registers(thread: &Thread, tracee: &Tracee, request: u32, addr: usize, data: usize) -> Result<()> {
    let user = thread.user();
    let target = seat(tracee)?;
    let out = |bytes: Vec<u8>| user.copy_out(data, &bytes).map_err(|_| Errno::EFAULT);
    let read = |len: usize| -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        user.copy_in(&mut bytes, data).map_err(|_| Errno::EFAULT)?;
        Ok(bytes)
    };
    match request {
        request::PEEKUSER => {
            let at = place(addr)?;
            let word = with_stop(tracee, |state| {
                Ok(match at {
                    Place::Register(at) => state.registers.general32()[at],
                    Place::Debug(at) => state.debug.get(at) as u32,
                    Place::Other => 0,
                })
            })?;
            UserPtr::<u32>::new(data).write(user, &word)
        }
        request::POKEUSER => {
            let at = place(addr)?;
            with_stop(tracee, |state| match at {
                Place::Register(at) => {
                    let mut words = state.registers.general32();
                    words[at] = data as u32;
                    state.registers.replace32(&target, &words)
                }
                Place::Debug(at) => state.debug.set(at, data as u64),
                Place::Other => Ok(()),
            })
        }
        request::GETREGS => {
            let words = with_stop(tracee, |state| Ok(state.registers.general32()))?;
            UserPtr::<[u32; USER_REGS32]>::new(data).write(user, &words)
        }
        request::SETREGS => {
            let words = UserPtr::<[u32; USER_REGS32]>::new(data).read(user)?;
            with_stop(tracee, |state| state.registers.replace32(&target, &words))
        }
        request::GETFPREGS => out(with_stop(tracee, |state| state.registers.x87())?),
        request32::GETFPXREGS => out(with_stop(tracee, |state| state.registers.fxsave())?),
        request::SETFPREGS => {
            let bytes = read(with_stop(tracee, |state| state.registers.x87())?.len())?;
            with_stop(tracee, |state| state.registers.replace_x87(&target, &bytes))
        }
        _ => {
            let bytes = read(with_stop(tracee, |state| state.registers.fxsave())?.len())?;
            with_stop(tracee, |state| state.registers.replace_fxsave(&target, &bytes))
        }
    }
}

/// What is at an offset in a 32-bit `struct user`.
enum Place {
    Register(usize),
    Debug(usize),
    Other,
}

/// EIO for what is no word of it.
fn place(offset: usize) -> Result<Place> {
    match offset / 4 {
        _ if !offset.is_multiple_of(4) || offset > USER_SIZE32 => Err(Errno::EIO),
        at if at < USER_REGS32 => Ok(Place::Register(at)),
        at if USER_DEBUG32.contains(&offset) => Ok(Place::Debug(at - USER_DEBUG32.start / 4)),
        _ => Ok(Place::Other),
    }
}
