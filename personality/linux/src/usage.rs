//! What processes have used: getrusage(2). How processor time is known is in [`crate::time::cpu`].

use core::sync::atomic::Ordering;

use janua_abi::linux::layout::Layout;
use janua_abi::linux::process::{Rusage, TimeVal};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_port::machine::Usage;

use crate::Thread;
use crate::thread::ThreadExt;
use crate::time::cpu;

/// getrusage(2).
pub fn getrusage(thread: &Thread, who: i32, usage: UserPtr<impl Layout<Rusage>>) -> Result<()> {
    const SELF: i32 = 0;
    const CHILDREN: i32 = -1;
    const THREAD: i32 = 1;
    let process = thread.process();
    if who != CHILDREN {
        note_peak(thread);
    }
    let own_peak = process.usage.maxrss.load(Ordering::Relaxed);
    let answer = match who {
        SELF => rusage(cpu::usage_of_task(&thread.task, Some(thread)), own_peak),
        CHILDREN => rusage(process.usage.children.get(), process.usage.children_maxrss.load(Ordering::Relaxed)),
        THREAD => rusage(cpu::usage_of_caller(thread), own_peak),
        _ => return Err(Errno::EINVAL),
    };
    usage.store(thread.user(), &answer)
}

/// `struct rusage` of a use and a largest resident set in KiB. Blocks, messages, swaps and signals are not counted.
pub fn rusage(usage: Usage, maxrss: u64) -> Rusage {
    Rusage {
        utime: TimeVal::from_nanos(usage.user),
        stime: TimeVal::from_nanos(usage.system),
        maxrss: maxrss as i64,
        minflt: usage.minor_faults as i64,
        majflt: usage.major_faults as i64,
        nvcsw: usage.waits as i64,
        nivcsw: usage.preemptions as i64,
        ..Rusage::default()
    }
}

/// Asks the machine how much memory the calling process has had. KiB, as getrusage(2) gives it.
pub fn note_peak(thread: &Thread) {
    let peak = thread.context().map_or(0, |context| context.peak_resident()) / 1024;
    thread.process().usage.maxrss.fetch_max(peak, Ordering::Relaxed);
}
