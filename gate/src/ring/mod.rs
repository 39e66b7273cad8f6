//! Gate `ring`: submissions and completions in two rings of a program's memory ([`janua_abi::ring`]).
//!
//! Of what the program writes, the two counts and the entries, each is read once and nothing is believed: the kernel's counts are its own, a distance between counts
//! that a ring cannot have is nothing submitted or no room, places are taken modulo the size. What cannot be read or written is as if nothing were submitted; a completion is lost with its memory.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_abi::ring::{self, ANNOUNCE, at};
use janua_port::gate::{Completion, Submission};
use janua_port::{Context, GateId, Nanos, QueueGate, RingGate};
use zerocopy::IntoBytes;

/// The gate.
pub struct Rings;

impl RingGate for Rings {
    fn id(&self) -> GateId {
        GateId::Ring
    }

    fn open(&self, context: Arc<dyn Context>, at: usize, entries: (u32, u32), watched: bool) -> Result<Arc<dyn QueueGate>> {
        let fits = |count: u32| count.is_power_of_two() && count <= ring::MOST;
        if !fits(entries.0) || !fits(entries.1) || !at.is_multiple_of(64) {
            return Err(Errno::EINVAL);
        }
        let bytes = ring::bytes(entries.0, entries.1);
        if at.checked_add(bytes).is_none() {
            return Err(Errno::EFAULT);
        }
        let made = Ring {
            context,
            at,
            submissions: entries.0,
            completions: entries.1,
            submitted: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            reaped: AtomicU32::new(0),
            posted: AtomicU32::new(0),
            vain: AtomicU32::new(0),
            watched,
            announced: AtomicBool::new(!watched),
        };
        let mut head = [0_u8; at::ENTRIES];
        head[at::FLAGS] = if watched { 0 } else { ANNOUNCE as u8 };
        made.context.memory().copy_out(at, &head).map_err(|_| Errno::EFAULT)?;
        Ok(Arc::new(made))
    }
}

/// How often a module looks into a ring in vain before the program has to announce what it submits: some 100 microseconds.
const LOOKS: u32 = 250;

/// The rings of a thread. Who asks is the kernel, one thread of its at a time: nothing here needs an order of its own.
struct Ring {
    context: Arc<dyn Context>,
    at: usize,
    submissions: u32,
    completions: u32,
    /// The program's count at the last look, and the kernel's own.
    submitted: AtomicU32,
    taken: AtomicU32,
    reaped: AtomicU32,
    posted: AtomicU32,
    /// A module looks into it.
    watched: bool,
    /// Looks in vain since there was something.
    vain: AtomicU32,
    /// The flags state that the program has to announce what it submits.
    announced: AtomicBool,
}

fn get(count: &AtomicU32) -> u32 {
    count.load(Ordering::Relaxed)
}

impl Ring {
    /// Stores one of the kernel's words, in one step: after what was written before.
    fn store(&self, offset: usize, value: u32) {
        // A program without the memory has no use for the word.
        let _ = self.context.memory().copy_out(self.at + offset, u64::from(value).as_bytes());
    }

    /// Submissions that wait to be taken.
    fn waiting(&self) -> u32 {
        let distance = || get(&self.submitted).wrapping_sub(get(&self.taken));
        if distance() == 0
            && let Ok(now) = self.context.memory().load_u32(self.at + at::SUBMITTED)
        {
            self.submitted.store(now, Ordering::Relaxed);
        }
        let waiting = distance();
        if waiting <= self.submissions {
            return waiting;
        }
        // The program is to have the chance of a better count.
        self.submitted.store(get(&self.taken), Ordering::Relaxed);
        0
    }

    /// Completions there is room for.
    fn room(&self, wanted: u32) -> u32 {
        let room = || self.completions.saturating_sub(get(&self.posted).wrapping_sub(get(&self.reaped)));
        if room() < wanted
            && let Ok(now) = self.context.memory().load_u32(self.at + at::REAPED)
        {
            self.reaped.store(now, Ordering::Relaxed);
        }
        room()
    }

    /// So many entries are copied.
    fn took(&self, count: u32) {
        let taken = get(&self.taken).wrapping_add(count);
        self.taken.store(taken, Ordering::Relaxed);
        self.store(at::TAKEN, taken);
        self.vain.store(0, Ordering::Relaxed);
        if self.watched {
            self.announce(false);
        }
    }

    fn announce(&self, on: bool) {
        if self.announced.swap(on, Ordering::Relaxed) != on {
            self.store(at::FLAGS, if on { ANNOUNCE as u32 } else { 0 });
        }
    }
}

impl QueueGate for Ring {
    fn take(&self) -> Option<Submission> {
        let mut one = [ring::Submission::default()];
        (self.take_some(&mut one) == 1).then(|| Submission::of(&one[0]))
    }

    fn complete(&self, completion: Completion) -> bool {
        self.complete_some(&[ring::Completion { tag: completion.tag, result: completion.result as i64 }]) == 1
    }

    fn unreaped(&self) -> usize {
        let posted = get(&self.posted);
        let reaped = self.context.memory().load_u32(self.at + at::REAPED).unwrap_or(posted);
        posted.wrapping_sub(reaped).min(self.completions) as usize
    }

    fn look_after(&self) -> Option<Nanos> {
        if get(&self.vain) < LOOKS {
            self.vain.fetch_add(1, Ordering::Relaxed);
            return Some(0);
        }
        // The program may have looked at the flags before they are set: what it has submitted by then is found here.
        self.announce(true);
        if self.waiting() == 0 {
            return None;
        }
        self.announce(false);
        self.vain.store(0, Ordering::Relaxed);
        Some(0)
    }

    fn take_some(&self, into: &mut [ring::Submission]) -> usize {
        let first = get(&self.taken) & (self.submissions - 1);
        // As far as they are contiguous.
        let count = (self.waiting().min(self.submissions - first) as usize).min(into.len());
        if count == 0 {
            return 0;
        }
        let at = self.at + at::ENTRIES + first as usize * size_of::<ring::Submission>();
        if self.context.memory().copy_in(into[..count].as_mut_bytes(), at).is_err() {
            return 0;
        }
        self.took(count as u32);
        count
    }

    fn complete_some(&self, completions: &[ring::Completion]) -> usize {
        let count = (self.room(completions.len() as u32) as usize).min(completions.len());
        let start = self.at + ring::bytes(self.submissions, 0);
        let first = get(&self.posted);
        let mut done = 0;
        while done < count {
            let place = first.wrapping_add(done as u32) & (self.completions - 1);
            let next = (count - done).min((self.completions - place) as usize);
            let at = start + place as usize * size_of::<ring::Completion>();
            // Without the memory there is nobody to find it.
            let _ = self.context.memory().copy_out(at, completions[done..done + next].as_bytes());
            done += next;
        }
        if count > 0 {
            // The count last, so that who reads it finds the entries.
            let posted = first.wrapping_add(count as u32);
            self.posted.store(posted, Ordering::Relaxed);
            self.store(at::POSTED, posted);
        }
        count
    }
}

#[cfg(test)]
mod tests;
