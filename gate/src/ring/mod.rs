//! Gate `ring`: submissions and completions in two rings of a program's memory ([`janua_abi::ring`]).
//!
//! Of what the program writes, the two counts and the entries, each is read once and nothing is believed: the kernel's counts are its own, a distance between counts
//! that a ring cannot have is nothing submitted or no room, places are taken modulo the size. What cannot be read or written is as if nothing were submitted; a completion is lost with its memory.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_abi::ring::{self, ANNOUNCE, at};
use janua_port::gate::{Completion, QueuedCalls, Submission};
use janua_port::user::Window;
use janua_port::{Context, Fault, GateId, QueueGate, RingGate, UserMemory};
use zerocopy::IntoBytes;

mod direct;

/// The gate.
pub struct Rings;

impl RingGate for Rings {
    fn id(&self) -> GateId {
        GateId::Ring
    }

    fn open(
        &self,
        context: Arc<dyn Context>,
        at: usize,
        entries: (u32, u32),
        watched: bool,
        window: Option<Arc<dyn Window>>,
    ) -> Result<Arc<dyn QueueGate>> {
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
            window,
            submissions: entries.0,
            completions: entries.1,
            submitted: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            reaped: AtomicU32::new(0),
            posted: AtomicU32::new(0),
            settled: AtomicBool::new(true),
            watched,
            announced: AtomicBool::new(!watched),
        };
        let mut head = [0_u8; at::ENTRIES];
        head[at::FLAGS] = if watched { 0 } else { ANNOUNCE as u8 };
        made.context.memory().copy_out(at, &head).map_err(|_| Errno::EFAULT)?;
        Ok(Arc::new(made))
    }
}

/// Where the program's two counts are, and the kernel's: each pair is one copy.
const THEIRS: usize = at::SUBMITTED;
const OURS: usize = at::POSTED;
const _: () = assert!(at::REAPED == THEIRS + 4 && at::TAKEN == OURS + 8);

/// The rings of a thread. Who asks is the kernel, one thread of its at a time: nothing here needs an order of its own.
struct Ring {
    context: Arc<dyn Context>,
    at: usize,
    /// The same memory for a module that runs elsewhere.
    window: Option<Arc<dyn Window>>,
    submissions: u32,
    completions: u32,
    /// The program's count at the last look, and the kernel's own.
    submitted: AtomicU32,
    taken: AtomicU32,
    reaped: AtomicU32,
    posted: AtomicU32,
    /// The program has been shown the kernel's counts as they are.
    settled: AtomicBool,
    /// A module looks into it.
    watched: bool,
    /// The flags state that the program has to announce what it submits.
    announced: AtomicBool,
}

fn get(count: &AtomicU32) -> u32 {
    count.load(Ordering::Relaxed)
}

impl Ring {
    /// Its memory, and where in that it begins.
    #[inline]
    fn memory(&self) -> (&dyn UserMemory, usize) {
        match self.window.as_ref().and_then(|window| window.here()) {
            Some(memory) => (memory, 0),
            None => (self.context.memory(), self.at),
        }
    }

    #[inline]
    fn read(&self, offset: usize, out: &mut [u8]) -> core::result::Result<(), Fault> {
        let (memory, at) = self.memory();
        memory.copy_in(out, at + offset)
    }

    #[inline]
    fn write(&self, offset: usize, data: &[u8]) -> core::result::Result<(), Fault> {
        let (memory, at) = self.memory();
        memory.copy_out(at + offset, data)
    }

    /// Stores one of the kernel's words, in one step: after what was written before.
    fn store(&self, offset: usize, value: u32) {
        // A program without the memory has no use for the word.
        let _ = self.write(offset, u64::from(value).as_bytes());
    }

    /// Submissions that waited to be taken at the last look: none if that is a number which cannot be.
    fn waiting(&self) -> u32 {
        let waiting = get(&self.submitted).wrapping_sub(get(&self.taken));
        if waiting <= self.submissions { waiting } else { 0 }
    }

    /// Completions there was room for at the last look.
    fn room(&self) -> u32 {
        self.completions.saturating_sub(get(&self.posted).wrapping_sub(get(&self.reaped)))
    }

    fn announce(&self, on: bool) {
        if self.announced.load(Ordering::Relaxed) != on {
            self.announced.store(on, Ordering::Relaxed);
            self.store(at::FLAGS, if on { ANNOUNCE as u32 } else { 0 });
        }
    }
}

impl QueueGate for Ring {
    fn take(&self) -> Option<Submission> {
        let mut one = [ring::Submission::default()];
        self.look();
        let taken = self.take_some(&mut one) == 1;
        self.settle();
        taken.then(|| Submission::of(&one[0]))
    }

    fn complete(&self, completion: Completion) -> bool {
        self.look();
        let posted = self.complete_some(&[ring::Completion { tag: completion.tag, result: completion.result as i64 }]) == 1;
        self.settle();
        posted
    }

    fn unreaped(&self) -> usize {
        self.look();
        self.settle()
    }

    fn is_watched(&self) -> bool {
        self.watched
    }

    fn rest(&self) {
        self.announce(true);
    }

    #[inline]
    fn look(&self) -> usize {
        let mut theirs = [0_u32; 2];
        if self.read(THEIRS, theirs.as_mut_bytes()).is_ok() {
            self.submitted.store(theirs[0], Ordering::Relaxed);
            self.reaped.store(theirs[1], Ordering::Relaxed);
        }
        self.waiting() as usize
    }

    fn take_some(&self, into: &mut [ring::Submission]) -> usize {
        let taken = get(&self.taken);
        let first = taken & (self.submissions - 1);
        // As far as they are contiguous.
        let count = (self.waiting().min(self.submissions - first) as usize).min(into.len());
        if count == 0 {
            return 0;
        }
        let offset = at::ENTRIES + first as usize * size_of::<ring::Submission>();
        if self.read(offset, into[..count].as_mut_bytes()).is_err() {
            return 0;
        }
        self.taken.store(taken.wrapping_add(count as u32), Ordering::Relaxed);
        self.settled.store(false, Ordering::Relaxed);
        if self.watched {
            self.announce(false);
        }
        count
    }

    #[inline]
    fn make_some(&self, calls: &QueuedCalls<'_>, most: usize) -> usize {
        let (taken, posted) = (get(&self.taken), get(&self.posted));
        let (first, place) = (taken & (self.submissions - 1), posted & (self.completions - 1));
        // As far as both are contiguous.
        let count =
            self.waiting().min(self.submissions - first).min(self.room()).min(self.completions - place).min(most as u32);
        if count == 0 || !self.context.memory().is_direct(self.at, ring::bytes(self.submissions, self.completions)) {
            return 0;
        }
        let entries = self.at + at::ENTRIES + first as usize * size_of::<ring::Submission>();
        let ends = self.at + ring::bytes(self.submissions, place);
        let made = direct::make(entries, ends, count, calls);
        if made > 0 {
            self.taken.store(taken.wrapping_add(made), Ordering::Relaxed);
            // One that could not be written is lost with its memory.
            self.posted.store(posted.wrapping_add(made), Ordering::Relaxed);
            self.settled.store(false, Ordering::Relaxed);
            if self.watched {
                self.announce(false);
            }
        }
        made as usize
    }

    fn complete_some(&self, completions: &[ring::Completion]) -> usize {
        let count = (self.room() as usize).min(completions.len());
        let start = ring::bytes(self.submissions, 0);
        let first = get(&self.posted);
        let mut done = 0;
        while done < count {
            let place = first.wrapping_add(done as u32) & (self.completions - 1);
            let next = (count - done).min((self.completions - place) as usize);
            let offset = start + place as usize * size_of::<ring::Completion>();
            // Without the memory there is nobody to find it.
            let _ = self.write(offset, completions[done..done + next].as_bytes());
            done += next;
        }
        if count > 0 {
            self.posted.store(first.wrapping_add(count as u32), Ordering::Relaxed);
            self.settled.store(false, Ordering::Relaxed);
        }
        count
    }

    fn settle(&self) -> usize {
        let posted = get(&self.posted);
        if !self.settled.load(Ordering::Relaxed) {
            self.settled.store(true, Ordering::Relaxed);
            // Each in one step, and after what they count, so that who reads them finds it. A program without the memory has no use for them.
            let ours = [u64::from(posted), u64::from(get(&self.taken))];
            let _ = self.write(OURS, ours.as_bytes());
        }
        posted.wrapping_sub(get(&self.reaped)).min(self.completions) as usize
    }
}

#[cfg(test)]
mod tests;
