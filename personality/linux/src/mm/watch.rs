//! What happens when memory is used up (`--memory`).
//!
//! As long as everything that is mapped is within the limit nothing can happen. Beyond it the service thread looks, as often as the room
//! that is left asks for, at what is resident, and ends the process that has most when that is too much: what is mapped and never
//! touched (stacks, reserves, the pages that a fork shares) does not count.

use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU32, Ordering};

use janua_kernel::task::Personality;
use janua_port::Nanos;
use janua_port::machine::ThreadId;
use janua_rt::Mutex;

use crate::linux::Linux;
use crate::{Kernel, Seat, Task};

/// Time between two looks at least, and at most.
const SHORTEST: Nanos = 2_000_000;
const LONGEST: Nanos = 200_000_000;
/// Bytes that a processor can touch in a nanosecond, generously.
const TOUCHED: usize = 4;
/// A share of the limit: what is resident is counted by the host with some delay.
const TOLERANCE: usize = 32;
/// How long the end of a process may take before another one is chosen.
const PATIENCE: Nanos = 2_000_000_000;

/// How many looks in turn must find too much: memory that is shared out or taken back just then may seem to be there twice.
const LOOKS: u32 = 3;

/// The process that was ended last, and when; and how many looks have found too much.
#[derive(Default)]
pub struct Watch {
    victim: Mutex<Option<(Weak<Task>, Nanos)>>,
    looks: AtomicU32,
}

/// Looks if it must, and returns when to look again; `None` is not before somebody asks for more than there is.
pub fn run(kernel: &Kernel) -> Option<Nanos> {
    let (machine, accounts) = (kernel.machine, kernel.machine.accounts());
    // One that is being ended already is not ended again.
    if let Some(thread) = accounts.take_culprit().filter(|_| !is_being_ended(kernel, machine.clock().monotonic())) {
        let of_thread = |seat: &Arc<Seat>| seat.context().is_some_and(|context| context.id() == ThreadId(thread as u64));
        if let Some(seat) = kernel.processes().iter().find_map(|task| task.threads().into_iter().find(of_thread)) {
            end(kernel, &seat);
        }
    }
    // What was touched while the look lasted it may not have seen.
    let begun = machine.clock().monotonic();
    let tolerance = accounts.memory.limit() / TOLERANCE;
    let Some((over, left)) = accounts.excess(machine, tolerance) else {
        // Somebody has gone beyond it meanwhile; or what is resident here is not known, and then looking on does not help.
        let tells = || machine.resident_guests(None).is_some();
        return accounts.stop_watch().then(|| if tells() { 0 } else { begun + LONGEST });
    };
    let now = machine.clock().monotonic();
    let too_much = over > tolerance;
    let looks = if too_much { kernel.watch.looks.load(Ordering::Relaxed) + 1 } else { 0 };
    kernel.watch.looks.store(looks, Ordering::Relaxed);
    if looks >= LOOKS && !is_being_ended(kernel, now) {
        let own = |task: &Arc<Task>| {
            let seat = task.threads().into_iter().next()?;
            Some((seat.context()?.resident_own()?, seat))
        };
        if let Some((_, seat)) = kernel.processes().iter().filter_map(own).max_by_key(|(bytes, _)| *bytes) {
            end(kernel, &seat);
        }
    }
    let time = (left / (TOUCHED * machine.cpus())) as Nanos;
    Some((begun + time.min(LONGEST)).max(now + SHORTEST))
}

fn is_being_ended(kernel: &Kernel, now: Nanos) -> bool {
    let victim = kernel.watch.victim.lock();
    victim
        .as_ref()
        .is_some_and(|(task, since)| now < since + PATIENCE && task.upgrade().is_some_and(|task| task.ended().is_none()))
}

fn end(kernel: &Kernel, seat: &Arc<Seat>) {
    let machine = kernel.machine;
    *kernel.watch.victim.lock() = Some((Arc::downgrade(&seat.task), machine.clock().monotonic()));
    machine.accounts().note_killed();
    let resident = seat.context().and_then(|context| context.resident_own());
    Linux::out_of_memory(seat, resident.unwrap_or(0) as u64);
}
