//! What processes have used: getrusage(2). How processor time is known stands in [`crate::time::cpu`].

use core::sync::atomic::Ordering;

use janua_abi::linux::process::{Rusage, TimeVal};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;

use crate::Thread;
use crate::thread::ThreadExt;
use crate::time::cpu;

/// getrusage(2).
pub fn getrusage(thread: &Thread, who: i32, usage: UserPtr<Rusage>) -> Result<()> {
    const SELF: i32 = 0;
    const CHILDREN: i32 = -1;
    const THREAD: i32 = 1;
    let process = thread.process();
    if who != CHILDREN {
        note_peak(thread);
    }
    let ((user, system), maxrss) = match who {
        SELF => (cpu::split_of_task(&thread.task, Some(thread)), process.usage.maxrss.load(Ordering::Relaxed)),
        CHILDREN => (cpu::split_of_children(&thread.task), process.usage.children_maxrss.load(Ordering::Relaxed)),
        THREAD => ((cpu::own(thread), 0), process.usage.maxrss.load(Ordering::Relaxed)),
        _ => return Err(Errno::EINVAL),
    };
    let answer = Rusage {
        utime: TimeVal::from_nanos(user),
        stime: TimeVal::from_nanos(system),
        maxrss: maxrss as i64,
        ..Rusage::default()
    };
    usage.write(thread.user(), &answer)
}

/// Asks the machine how much memory the calling process has had. KiB, as getrusage(2) gives it.
pub fn note_peak(thread: &Thread) {
    let peak = thread.machine().peak_resident() / 1024;
    thread.process().usage.maxrss.fetch_max(peak, Ordering::Relaxed);
}
