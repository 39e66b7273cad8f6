//! prctl(2): odds and ends of a thread or process.

use core::sync::atomic::Ordering;

use alloc::sync::Arc;

use janua_abi::linux::prctl::{mce, spec};
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::{Arg, Kind};
use janua_kernel::{UserPtr, UserStr};
use janua_object::Cred;

use crate::Thread;
use crate::cred::{self, capability};
use crate::exec;
use crate::signal::is_signal;
use crate::task;
use crate::thread::ThreadExt;

/// PR_* as an argument.
#[derive(Clone, Copy, Debug)]
pub struct PrctlOption(pub u32);

impl Arg for PrctlOption {
    const KIND: Kind = Kind::Named("prctl");
    fn decode(word: usize) -> Result<Self> {
        Ok(PrctlOption(word as u32))
    }
}

/// Options by number, and their names for the trace.
pub mod pr {
    pub use janua_abi::linux::prctl::*;

    /// The name of an option, without its PR_.
    pub fn name(option: u32) -> Option<&'static str> {
        Some(match option {
            SET_PDEATHSIG => "SET_PDEATHSIG",
            GET_PDEATHSIG => "GET_PDEATHSIG",
            GET_DUMPABLE => "GET_DUMPABLE",
            SET_DUMPABLE => "SET_DUMPABLE",
            GET_KEEPCAPS => "GET_KEEPCAPS",
            SET_KEEPCAPS => "SET_KEEPCAPS",
            GET_TIMING => "GET_TIMING",
            SET_TIMING => "SET_TIMING",
            SET_NAME => "SET_NAME",
            GET_NAME => "GET_NAME",
            GET_SECCOMP => "GET_SECCOMP",
            SET_SECCOMP => "SET_SECCOMP",
            CAPBSET_READ => "CAPBSET_READ",
            CAPBSET_DROP => "CAPBSET_DROP",
            GET_TSC => "GET_TSC",
            SET_TSC => "SET_TSC",
            GET_SECUREBITS => "GET_SECUREBITS",
            SET_SECUREBITS => "SET_SECUREBITS",
            SET_TIMERSLACK => "SET_TIMERSLACK",
            GET_TIMERSLACK => "GET_TIMERSLACK",
            TASK_PERF_EVENTS_DISABLE => "TASK_PERF_EVENTS_DISABLE",
            TASK_PERF_EVENTS_ENABLE => "TASK_PERF_EVENTS_ENABLE",
            MCE_KILL => "MCE_KILL",
            MCE_KILL_GET => "MCE_KILL_GET",
            SET_IO_FLUSHER => "SET_IO_FLUSHER",
            GET_IO_FLUSHER => "GET_IO_FLUSHER",
            SET_MEMORY_MERGE => "SET_MEMORY_MERGE",
            GET_MEMORY_MERGE => "GET_MEMORY_MERGE",
            SET_MM => "SET_MM",
            SET_CHILD_SUBREAPER => "SET_CHILD_SUBREAPER",
            GET_CHILD_SUBREAPER => "GET_CHILD_SUBREAPER",
            SET_NO_NEW_PRIVS => "SET_NO_NEW_PRIVS",
            GET_NO_NEW_PRIVS => "GET_NO_NEW_PRIVS",
            GET_TID_ADDRESS => "GET_TID_ADDRESS",
            SET_THP_DISABLE => "SET_THP_DISABLE",
            GET_THP_DISABLE => "GET_THP_DISABLE",
            CAP_AMBIENT => "CAP_AMBIENT",
            GET_SPECULATION_CTRL => "GET_SPECULATION_CTRL",
            SET_SPECULATION_CTRL => "SET_SPECULATION_CTRL",
            SET_MDWE => "SET_MDWE",
            GET_MDWE => "GET_MDWE",
            GET_AUXV => "GET_AUXV",
            SET_VMA => "SET_VMA",
            _ => return None,
        })
    }
}

const TSC_ENABLE: i32 = 1;

/// prctl(2).
pub fn prctl(thread: &Thread, option: PrctlOption, a: usize, b: usize, c: usize, d: usize) -> Result<usize> {
    let settings = &thread.process().settings;
    let write_int = |value: i32| UserPtr::<i32>::new(a).write(thread.user(), &value).map(|()| 0);
    match option.0 {
        pr::SET_PDEATHSIG => {
            let signal = u32::try_from(a).ok().filter(|signal| *signal == 0 || is_signal(*signal));
            thread.death_signal.store(signal.ok_or(Errno::EINVAL)?, Ordering::Relaxed);
            Ok(0)
        }
        pr::GET_PDEATHSIG => write_int(thread.death_signal.load(Ordering::Relaxed) as i32),
        pr::GET_DUMPABLE => Ok(settings.dumpable.load(Ordering::Relaxed) as usize),
        pr::SET_DUMPABLE if a <= 1 => {
            settings.dumpable.store(a as u32, Ordering::Relaxed);
            Ok(0)
        }
        pr::GET_KEEPCAPS => Ok(usize::from(thread.cred().securebits & cred::SECBIT_KEEP_CAPS != 0)),
        pr::SET_KEEPCAPS => capability::set_keep(thread, a),
        // Statistical timing, the only kind Linux has.
        pr::GET_TIMING => Ok(0),
        pr::SET_TIMING if a == 0 => Ok(0),
        pr::SET_NAME => set_name(thread, a),
        pr::GET_NAME => {
            let name = *thread.comm.lock();
            UserPtr::<[u8; 16]>::new(a).write(thread.user(), &name)?;
            Ok(0)
        }
        // No filter can be installed, so none is.
        pr::GET_SECCOMP => Ok(0),
        // The time stamp counter can be read, and that cannot be taken away.
        pr::GET_TSC => write_int(TSC_ENABLE),
        pr::SET_TSC if a == TSC_ENABLE as usize => Ok(0),
        pr::CAPBSET_READ => capability::bounding_read(thread, a),
        pr::CAPBSET_DROP => capability::bounding_drop(thread, a),
        pr::GET_SECUREBITS => Ok(thread.cred().securebits as usize),
        pr::SET_SECUREBITS => capability::set_securebits(thread, a),
        pr::SET_TIMERSLACK => {
            let slack = if (a as isize) <= 0 { thread.default_slack.load(Ordering::Relaxed) } else { a as u64 };
            thread.timer_slack.store(slack, Ordering::Relaxed);
            Ok(0)
        }
        pr::GET_TIMERSLACK => Ok(thread.timer_slack.load(Ordering::Relaxed) as usize),
        pr::SET_CHILD_SUBREAPER => {
            settings.subreaper.store(a != 0, Ordering::Relaxed);
            Ok(0)
        }
        pr::GET_CHILD_SUBREAPER => write_int(i32::from(settings.subreaper.load(Ordering::Relaxed))),
        pr::SET_NO_NEW_PRIVS => {
            no_more(&[b, c, d])?;
            set_no_new_privs(thread, a)
        }
        pr::GET_NO_NEW_PRIVS => {
            no_more(&[a, b, c, d])?;
            Ok(usize::from(thread.cred().no_new_privs))
        }
        pr::GET_TID_ADDRESS => {
            let address = thread.clear_child_tid.load(Ordering::Relaxed) as u64;
            UserPtr::<u64>::new(a).write(thread.user(), &address)?;
            Ok(0)
        }
        pr::GET_SPECULATION_CTRL => {
            no_more(&[b, c, d])?;
            speculation(a)
        }
        pr::SET_SPECULATION_CTRL => {
            no_more(&[c, d])?;
            set_speculation(a, b)
        }
        // A thread has no events: perf_event_open(2) is missing.
        pr::TASK_PERF_EVENTS_DISABLE | pr::TASK_PERF_EVENTS_ENABLE => Ok(0),
        pr::SET_IO_FLUSHER | pr::GET_IO_FLUSHER => io_flusher(thread, option.0 == pr::SET_IO_FLUSHER, [a, b, c, d]),
        pr::CAP_AMBIENT => capability::ambient(thread, a, b, [c, d]),
        _ => of_memory(thread, option, [a, b, c, d]),
    }
}

/// The options about a process' memory.
fn of_memory(thread: &Thread, option: PrctlOption, [a, b, c, d]: [usize; 4]) -> Result<usize> {
    let settings = &thread.process().settings;
    match option.0 {
        pr::MCE_KILL => {
            no_more(&[c, d])?;
            set_memory_error_policy(thread, a, b)
        }
        pr::MCE_KILL_GET => {
            no_more(&[a, b, c, d])?;
            Ok(thread.memory_errors.load(Ordering::Relaxed) as usize)
        }
        pr::SET_MM if !thread.cred().capable(task::CAP_SYS_RESOURCE) => Err(Errno::EPERM),
        pr::SET_THP_DISABLE => {
            no_more(&[b, c, d])?;
            settings.thp_disable.store(a != 0, Ordering::Relaxed);
            Ok(0)
        }
        pr::GET_THP_DISABLE => {
            no_more(&[a, b, c, d])?;
            Ok(usize::from(settings.thp_disable.load(Ordering::Relaxed)))
        }
        // What is merged is up to the host; like Linux where it merges nothing, what was asked for is kept.
        pr::SET_MEMORY_MERGE => {
            no_more(&[b, c, d])?;
            settings.merges_memory.store(a != 0, Ordering::Relaxed);
            Ok(0)
        }
        pr::GET_MEMORY_MERGE => {
            no_more(&[a, b, c, d])?;
            Ok(usize::from(settings.merges_memory.load(Ordering::Relaxed)))
        }
        pr::SET_MDWE => {
            no_more(&[b, c, d])?;
            let bits = u32::try_from(a).map_err(|_| Errno::EINVAL)?;
            thread.process().mm().ok_or(Errno::EINVAL)?.set_exec_gain(bits).map(|()| 0)
        }
        pr::GET_MDWE => {
            no_more(&[a, b, c, d])?;
            Ok(thread.process().mm().map_or(0, |mm| mm.exec_gain() as usize))
        }
        pr::GET_AUXV => {
            no_more(&[c, d])?;
            auxiliary_vector(thread, a, b)
        }
        pr::SET_VMA => name_memory(thread, a, b, c, UserStr(d)),
        _ => Err(Errno::EINVAL),
    }
}

/// PR_MCE_KILL: when the thread would be notified of memory that has failed. None ever does here.
fn set_memory_error_policy(thread: &Thread, what: usize, policy: usize) -> Result<usize> {
    let policy = match (what, u32::try_from(policy)) {
        (mce::CLEAR, Ok(0)) => mce::DEFAULT,
        (mce::SET, Ok(policy @ (mce::LATE | mce::EARLY | mce::DEFAULT))) => policy,
        (mce::SET, _) => {
            // Linux notes that there is a policy before it looks which.
            let _ = thread.memory_errors.compare_exchange(mce::DEFAULT, mce::LATE, Ordering::Relaxed, Ordering::Relaxed);
            return Err(Errno::EINVAL);
        }
        _ => return Err(Errno::EINVAL),
    };
    thread.memory_errors.store(policy, Ordering::Relaxed);
    Ok(0)
}

/// PR_SET_IO_FLUSHER, PR_GET_IO_FLUSHER: a thread that files are written by. Memory is never short in a way that it would wait for itself.
fn io_flusher(thread: &Thread, set: bool, [on, b, c, d]: [usize; 4]) -> Result<usize> {
    if !thread.cred().capable(task::CAP_SYS_RESOURCE) {
        return Err(Errno::EPERM);
    }
    no_more(&[b, c, d])?;
    if !set {
        no_more(&[on])?;
        return Ok(usize::from(thread.io_flusher.load(Ordering::Relaxed)));
    }
    if on > 1 {
        return Err(Errno::EINVAL);
    }
    thread.io_flusher.store(on == 1, Ordering::Relaxed);
    Ok(0)
}

/// Arguments that an option does not have.
fn no_more(words: &[usize]) -> Result<()> {
    if words.iter().any(|word| *word != 0) { Err(Errno::EINVAL) } else { Ok(()) }
}

/// PR_GET_SPECULATION_CTRL: that of a kernel without means of its own against speculation, whatever the machine below does for all.
fn speculation(kind: usize) -> Result<usize> {
    match kind {
        spec::STORE_BYPASS | spec::INDIRECT_BRANCH => Ok(spec::ENABLE),
        spec::L1D_FLUSH => Ok(spec::FORCE_DISABLE),
        _ => Err(Errno::ENODEV),
    }
}

/// PR_SET_SPECULATION_CTRL: no thread can be treated in another way, and the errors are those of Linux with such treatment switched off.
fn set_speculation(kind: usize, control: usize) -> Result<usize> {
    match (kind, control) {
        (spec::STORE_BYPASS, _) => Err(Errno::ENXIO),
        (spec::INDIRECT_BRANCH, spec::ENABLE) => Ok(0),
        (spec::INDIRECT_BRANCH, spec::DISABLE | spec::FORCE_DISABLE) => Err(Errno::EPERM),
        (spec::INDIRECT_BRANCH, _) => Err(Errno::ERANGE),
        (spec::L1D_FLUSH, _) => Err(Errno::EPERM),
        _ => Err(Errno::ENODEV),
    }
}

/// PR_GET_AUXV: the auxiliary vector, as far as it fits `len`; its size. Linux shows all of the array that it keeps for it, zero behind AT_NULL.
fn auxiliary_vector(thread: &Thread, addr: usize, len: usize) -> Result<usize> {
    /// `unsigned long saved_auxv[AT_VECTOR_SIZE]`: 28 pairs, as on Linux 6.18.
    const SIZE: usize = 28 * 2 * size_of::<u64>();
    let mm = thread.process().mm().ok_or(Errno::EINVAL)?;
    let mut bytes = exec::auxiliary_vector(&mm);
    bytes.resize(SIZE, 0);
    thread.user().copy_out(addr, &bytes[..len.min(SIZE)]).map_err(|_| Errno::EFAULT)?;
    Ok(SIZE)
}

/// PR_SET_NAME.
fn set_name(thread: &Thread, addr: usize) -> Result<usize> {
    let name = match UserStr(addr).read(thread.user(), 16, Errno::E2BIG) {
        // Longer ones are cut.
        Err(Errno::E2BIG) => UserPtr::<[u8; 15]>::new(addr).read(thread.user())?.to_vec(),
        other => other?,
    };
    thread.set_comm(&name);
    if let Some(context) = thread.context() {
        context.set_name(&name);
    }
    Ok(0)
}

/// PR_SET_NO_NEW_PRIVS, which cannot be taken back.
fn set_no_new_privs(thread: &Thread, on: usize) -> Result<usize> {
    if on != 1 {
        return Err(Errno::EINVAL);
    }
    let old = thread.cred();
    if !old.no_new_privs {
        *thread.cred.write() = Arc::new(Cred { no_new_privs: true, ..(*old).clone() });
    }
    Ok(0)
}

/// PR_SET_VMA, PR_SET_VMA_ANON_NAME: names anonymous memory for /proc/self/maps.
fn name_memory(thread: &Thread, what: usize, addr: usize, len: usize, name: UserStr) -> Result<usize> {
    const ANON_NAME: usize = 0;
    const MOST: usize = 80;
    if what != ANON_NAME {
        return Err(Errno::EINVAL);
    }
    let name = if name.is_null() {
        None
    } else {
        let name = name.read(thread.user(), MOST, Errno::EINVAL)?;
        let printable = |byte: &u8| (b' '..=b'~').contains(byte) && !b"\\`$[]".contains(byte);
        if !name.iter().all(printable) {
            return Err(Errno::EINVAL);
        }
        Some(Arc::from(name))
    };
    thread.process().mm().ok_or(Errno::ENOMEM)?.set_anon_name(addr, len, name)?;
    Ok(0)
}
