//! Two sides on two processors, when a row asks for that: the scheduler would often put them on one.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Samples, Skip};

/// Whether the row being measured wants its two sides apart.
static APART: AtomicBool = AtomicBool::new(false);

fn allowed() -> Result<libc::cpu_set_t, Skip> {
    // SAFETY: a set of plain words, filled by the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Err(Skip::last("sched_getaffinity"));
        }
        Ok(set)
    }
}

fn allow(set: &libc::cpu_set_t) -> bool {
    // SAFETY: a set that lives.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) == 0 }
}

/// Moves the calling thread to the first or the last of the processors it may use, when the row wants that.
fn settle(last: bool) -> bool {
    if !APART.load(Ordering::Relaxed) {
        return true;
    }
    let Ok(set) = allowed() else { return false };
    // SAFETY: asks about, and makes, sets of plain words; the indices are in their range.
    unsafe {
        let mut processors = (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set));
        let Some(processor) = (if last { processors.next_back() } else { processors.next() }) else { return false };
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut one);
        allow(&one)
    }
}

/// To be called by the side that replies, as soon as it runs. Where it cannot move it stays.
pub fn other_side() {
    settle(true);
}

/// Measures `row` with this side on one processor and the side that calls [`other_side`] on another.
pub fn apart(row: impl FnOnce() -> Samples) -> Samples {
    let before = allowed()?;
    APART.store(true, Ordering::Relaxed);
    // The other side inherits what this one may use, so this one moves only after the other was started (`this_side`).
    let samples = row();
    APART.store(false, Ordering::Relaxed);
    allow(&before);
    samples
}

/// To be called by the side that measures, after the other was started.
pub fn this_side() -> Result<(), Skip> {
    if settle(false) { Ok(()) } else { Err(Skip("the processors cannot be chosen here".into())) }
}
