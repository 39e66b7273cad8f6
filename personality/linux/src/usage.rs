//! What processes have used: getrusage(2).
//!
//! The machine counts a thread's processor time as a whole, without telling user code from the kernel's; all of it is given as
//! user time. A thread's time is known exactly to itself; of the other threads of a process it is what they themselves saw
//! when they last asked, so that of several busy threads a call can be a little behind.

use core::sync::atomic::Ordering;

use janua_abi::linux::process::{Rusage, TimeVal};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_port::Nanos;

use crate::Thread;
use crate::process::Process;
use crate::thread::ThreadExt;

/// The calling thread's processor time.
pub fn thread_cpu(thread: &Thread) -> Nanos {
    let now = thread.machine().clock().thread_cpu();
    thread.cpu_seen.store(now, Ordering::Relaxed);
    now
}

/// The processor time of the calling thread's process, its ended threads included.
pub fn process_cpu(thread: &Thread) -> Nanos {
    thread_cpu(thread);
    seen_cpu(thread.process())
}

/// What is known of any process' processor time.
pub fn seen_cpu(process: &Process) -> Nanos {
    let live: Nanos = process.threads().iter().map(|seat| seat.cpu_seen.load(Ordering::Relaxed)).sum();
    process.usage.threads.load(Ordering::Relaxed) + live
}

/// Processor time of children that have been waited for.
pub fn children_cpu(process: &Process) -> Nanos {
    process.usage.children.load(Ordering::Relaxed)
}

/// getrusage(2).
pub fn getrusage(thread: &Thread, who: i32, usage: UserPtr<Rusage>) -> Result<()> {
    const SELF: i32 = 0;
    const CHILDREN: i32 = -1;
    const THREAD: i32 = 1;
    let process = thread.process();
    let (time, maxrss) = match who {
        SELF => (process_cpu(thread), process.usage.maxrss.load(Ordering::Relaxed)),
        CHILDREN => (children_cpu(process), process.usage.children_maxrss.load(Ordering::Relaxed)),
        THREAD => (thread_cpu(thread), process.usage.maxrss.load(Ordering::Relaxed)),
        _ => return Err(Errno::EINVAL),
    };
    let answer = Rusage { utime: TimeVal::from_nanos(time), maxrss: maxrss as i64, ..Rusage::default() };
    usage.write(thread.user(), &answer)
}
