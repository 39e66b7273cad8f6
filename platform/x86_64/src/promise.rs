//! Real time: threads that were promised time ([`janua_rt::rbed`], sched(7)'s SCHED_DEADLINE).
//!
//! A promise is one core's, the first of those that have room for it, and its thread runs on no other: its affinity is that core. (So a set of
//! demands that fits into all cores together may not fit into one after the other.) What the queues know of a thread is made from its
//! word here each time it comes to one ([`Thread::account_on`]); so a change writes the word first and then looks through
//! the queues, and who comes to one later is counted by the new word already.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_port::machine::Demand;
use janua_rt::rbed::{Kind, Refused};

use crate::core::{self as cores, Core};
use crate::lock::Mutex;
use crate::thread::Thread;
use crate::{apic, sched};

/// Where a thread's promise is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    pub core: usize,
    /// As the core's queue gave it.
    pub number: usize,
}

/// A thread's promise, in one word.
#[derive(Default)]
pub struct Word(AtomicU64);

impl Word {
    pub const fn new() -> Word {
        Word(AtomicU64::new(0))
    }

    fn decode(word: u64) -> Option<Promise> {
        let word = word.checked_sub(1)? as usize;
        Some(Promise { core: word >> 32, number: word & 0xffff_ffff })
    }

    pub fn get(&self) -> Option<Promise> {
        Word::decode(self.0.load(Ordering::Relaxed))
    }

    fn replace(&self, promise: Option<Promise>) -> Option<Promise> {
        let word = promise.map_or(0, |promise| (promise.core << 32 | promise.number) as u64 + 1);
        Word::decode(self.0.swap(word, Ordering::SeqCst))
    }
}

/// Held while a thread's promise or affinity changes.
static CHANGES: Mutex<()> = Mutex::new(());

fn errno(refused: Refused) -> Errno {
    match refused {
        Refused::Invalid => Errno::EINVAL,
        Refused::Full => Errno::EBUSY,
    }
}

/// [`janua_port::Context::promise`].
pub fn set(thread: &Arc<Thread>, demand: Option<Demand>) -> Result<()> {
    {
        let _one = CHANGES.lock();
        let old = thread.promise.get();
        let new = match (old, demand) {
            (None, None) => return Ok(()),
            (Some(_), None) => None,
            (Some(old), Some(demand)) if change(old, demand)? => return Ok(()),
            (_, Some(demand)) => Some(admit(thread, demand)?),
        };
        thread.affinity.store(new.map_or(u64::MAX, |promise| 1 << promise.core), Ordering::SeqCst);
        let old = thread.promise.replace(new);
        if thread.ended.load(Ordering::SeqCst) {
            // It may have looked for promises before this one was there.
            end(thread);
        }
        count_anew(thread, old);
    }
    sched::leave_if_unwelcome();
    Ok(())
}

/// Makes a promise another where it is: whether there is room for that.
fn change(old: Promise, demand: Demand) -> Result<bool> {
    let core = cores::get(old.core).ok_or(Errno::ESRCH)?;
    match core.turn.queue(|ready, now| ready.queue.change(old.number, demand, now)) {
        Ok(()) => Ok(true),
        Err(Refused::Full) => Ok(false),
        Err(refused) => Err(errno(refused)),
    }
}

/// Has a core promise it: its own where that has room, or else the one that has most.
fn admit(thread: &Thread, demand: Demand) -> Result<Promise> {
    let own = thread.last.load(Ordering::Relaxed);
    let mut order: Vec<&Core> = cores::all().collect();
    order.sort_by_cached_key(|core| (core.number != own, Reverse(core.turn.queue(|ready, _| ready.queue.room()))));
    let mut result = Err(Errno::EBUSY);
    for core in order {
        match core.turn.queue(|ready, now| ready.queue.admit(Kind::Hard, demand, now)) {
            Ok(number) => return Ok(Promise { core: core.number, number }),
            Err(refused) => result = Err(errno(refused)),
        }
    }
    result
}

/// Where a thread was found.
enum Found {
    Runs,
    Waits(Arc<Thread>),
}

/// Has it counted by its promise as that is now, wherever it runs or waits, and takes the old one back.
fn count_anew(thread: &Arc<Thread>, old: Option<Promise>) {
    for core in cores::all() {
        let found = core.turn.queue(|ready, now| {
            let found = if ready.runs == thread.serial {
                let clock = ready.queue.clock();
                ready.queue.convert(thread.account_on(core.number, clock, clock), now);
                Some(Found::Runs)
            } else {
                ready.queue.remove(|other| other.serial == thread.serial).map(Found::Waits)
            };
            if let Some(old) = old.filter(|old| old.core == core.number) {
                ready.queue.dismiss(old.number, now);
            }
            found
        });
        match found {
            Some(Found::Waits(thread)) => sched::make_ready(thread, true),
            Some(Found::Runs) if core.number == cores::here().number => apic::arm(core.turn.alarm()),
            Some(Found::Runs) => apic::send(core.apic(), apic::RESCHEDULE),
            None => {}
        }
    }
}

/// The running thread ends: its time is others' from now on, and not only when its core has left its stack, on which it may be idle for long.
pub fn leave(thread: &Arc<Thread>) {
    if thread.promise.get().is_some() {
        let _one = CHANGES.lock();
        let old = thread.promise.replace(None);
        count_anew(thread, old);
    }
}

/// A thread has ended, and no core is on its stack.
pub fn end(thread: &Thread) {
    if let Some(promise) = thread.promise.replace(None)
        && let Some(core) = cores::get(promise.core)
    {
        core.turn.queue(|ready, now| ready.queue.dismiss(promise.number, now));
    }
}

/// Sets a thread's affinity, unless its promise does: whether it did.
pub fn restrict(thread: &Thread, allowed: u64) -> bool {
    let _one = CHANGES.lock();
    let free = thread.promise.get().is_none();
    if free {
        thread.affinity.store(allowed, Ordering::SeqCst);
    }
    free
}

/// [`janua_port::Park::yield_turn`].
pub fn yield_turn() {
    let next = match sched::current().promise.get() {
        None => None,
        Some(_) => cores::here().turn.queue(|ready, now| ready.queue.finish(now)),
    };
    match next {
        Some(next) => sched::park(&AtomicU32::new(0), 0, Some(next)),
        None => sched::yield_now(),
    }
}
