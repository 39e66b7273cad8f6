//! Who looks into the rings that programs need not announce (IORING_SETUP_SQPOLL).
//!
//! One thread of the kernel's for all of them, unless there are modules ([`super::server`]). It reads how far the program has come, and reminds a thread of
//! the program's, which takes what is there in its own memory: so this works wherever the kernel's threads reach no user memory. After some time in vain it
//! flags to the program that it sleeps, and does.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};

use janua_abi::linux::uring::sq_ring;
use janua_abi::linux::{Errno, Result};
use janua_port::{Machine, Nanos};
use janua_rt::Mutex;
use janua_rt::wake::{self, Raised};

use super::issuer::{self, Issuer, Job};
use super::ring::{Maker, Ring};
use super::server;
use super::submit::need_wakeup;
use crate::{Task, Thread};

/// Time between two looks, nanoseconds.
pub const INTERVAL: Nanos = 50_000;

/// Most rings that are looked into.
const MOST: usize = 256;

/// A ring that is looked into.
pub struct Watched {
    ring: Weak<Ring>,
    /// The process that has it.
    task: Weak<Task>,
    /// How many had been taken at the last look, and how many were left.
    seen: Mutex<(u32, u32)>,
}

/// The looker's own.
pub struct Poller {
    rings: Mutex<Vec<Arc<Watched>>>,
    word: AtomicU32,
    started: AtomicBool,
    /// Rings that modules look into, which are not among those above.
    served: AtomicUsize,
}

impl Default for Poller {
    fn default() -> Poller {
        Poller {
            rings: Mutex::default(),
            word: AtomicU32::new(wake::QUIET),
            started: AtomicBool::new(false),
            served: AtomicUsize::new(0),
        }
    }
}

/// Has a ring looked into from now on. EAGAIN when there are too many, and where the kernel can have no threads.
pub fn add(thread: &Thread, ring: &Arc<Ring>) -> Result<()> {
    let poller = &thread.kernel.rings.poller;
    let machine = thread.machine();
    *ring.maker.lock() = Some(Maker::of(thread));
    if server::add(thread, ring)? {
        return Ok(());
    }
    let watched = Watched::new(thread, ring);
    {
        let mut rings = poller.rings.lock();
        rings.retain(|watched| watched.ring.strong_count() > 0);
        if rings.len() >= MOST {
            return Err(Errno::EAGAIN);
        }
        rings.push(Arc::new(watched));
    }
    if !poller.started.swap(true, Ordering::SeqCst) {
        let run = poller.clone();
        if let Err(errno) = machine.spawn_kernel("rings", Box::new(move || run.run(machine))) {
            poller.started.store(false, Ordering::SeqCst);
            return Err(errno);
        }
    }
    poller.rouse(machine);
    Ok(())
}

/// A program announces its ring, which was not looked into any more, or not yet.
pub fn wake(thread: &Thread, ring: &Arc<Ring>) {
    let poller = &thread.kernel.rings.poller;
    let machine = thread.machine();
    ring.lively.store(machine.clock().monotonic(), Ordering::Relaxed);
    ring.flag(&ring.access(thread), sq_ring::NEED_WAKEUP, false);
    match ring.served.get() {
        Some(chore) => chore.wake(),
        None => poller.rouse(machine),
    }
}

impl Poller {
    /// One more ring is looked into by a module, until [`Poller::gone`]. EAGAIN when there are too many.
    pub fn one_more(&self) -> Result<()> {
        if self.served.fetch_add(1, Ordering::Relaxed) < MOST {
            return Ok(());
        }
        self.gone();
        Err(Errno::EAGAIN)
    }

    /// One less.
    pub fn gone(&self) {
        self.served.fetch_sub(1, Ordering::Relaxed);
    }

    fn rouse(&self, machine: &dyn Machine) {
        if wake::raise(&self.word) == Raised::Unpark {
            machine.park().unpark(&self.word, 1);
        }
    }

    fn run(&self, machine: &'static dyn Machine) {
        loop {
            wake::rearm(&self.word);
            let rings = self.rings.lock().clone();
            let now = machine.clock().monotonic();
            let active = rings.iter().filter(|watched| watched.remind(watched.find(now), now) == Some(true)).count();
            drop(rings);
            if active > 0 {
                // A wake-up cuts this short, or comes to the next look.
                machine.park().park(&self.word, self.word.load(Ordering::Relaxed), Some(now + INTERVAL));
            } else if wake::intend_to_park(&self.word) {
                machine.park().park(&self.word, wake::PARKED, None);
            }
        }
    }
}

/// What a look into a ring has found.
pub enum Found {
    Submissions(Arc<Ring>),
    /// It is to be looked into again soon. Nothing has been in it for so long.
    Nothing {
        quiet: Nanos,
    },
    /// It is not, until its program announces it, and the program can see that.
    Asleep,
    Closed,
}

impl Watched {
    pub fn new(thread: &Thread, ring: &Arc<Ring>) -> Watched {
        Watched { ring: Arc::downgrade(ring), task: Arc::downgrade(&thread.task), seen: Mutex::default() }
    }

    /// Looks into the ring.
    pub fn find(&self, now: Nanos) -> Found {
        let Some(ring) = self.ring.upgrade().filter(|ring| !ring.is_closed()) else { return Found::Closed };
        // The program that made it is over: another in its process, with rights of its own perhaps, makes nothing for who has the ring still.
        if self.task.upgrade().is_none_or(|task| !ring.is_made_in(&task)) {
            if !ring.is_flagged(sq_ring::NEED_WAKEUP) {
                need_wakeup(&ring, true);
            }
            return Found::Closed;
        }
        let access = ring.shared.from_anywhere();
        // Who enables it announces it.
        if ring.disabled.load(Ordering::SeqCst) {
            return Found::Asleep;
        }
        let left = ring.unsubmitted(&access);
        let seen = (ring.head.load(Ordering::SeqCst), left);
        if core::mem::replace(&mut *self.seen.lock(), seen) != seen {
            ring.lively.store(now, Ordering::Relaxed);
        }
        if left != 0 {
            return Found::Submissions(ring);
        }
        if ring.is_flagged(sq_ring::NEED_WAKEUP) {
            return Found::Asleep;
        }
        let quiet = now.saturating_sub(ring.lively.load(Ordering::Relaxed));
        if quiet < ring.shape.idle {
            return Found::Nothing { quiet };
        }
        need_wakeup(&ring, true);
        // What came before the program could see that is not lost.
        fence(Ordering::SeqCst);
        if ring.unsubmitted(&access) == 0 {
            return Found::Asleep;
        }
        need_wakeup(&ring, false);
        Found::Nothing { quiet }
    }

    /// Reminds a thread of the program's of what has been found: whether to look again soon. `None` for a ring that is closed.
    pub fn remind(&self, found: Found, now: Nanos) -> Option<bool> {
        match found {
            Found::Submissions(ring) => {
                if !ring.asked.swap(true, Ordering::SeqCst) {
                    match self.taker(&ring) {
                        Some(issuer) => issuer.send(&ring, Job::Take(ring.clone())),
                        None => ring.asked.store(false, Ordering::SeqCst),
                    }
                }
                if now.saturating_sub(ring.lively.load(Ordering::Relaxed)) < ring.shape.idle {
                    return Some(true);
                }
                // Its process is stopped, or over while another has the ring: who goes on with it announces it.
                if !ring.is_flagged(sq_ring::NEED_WAKEUP) {
                    need_wakeup(&ring, true);
                }
                Some(false)
            }
            Found::Nothing { .. } => Some(true),
            Found::Asleep => Some(false),
            Found::Closed => None,
        }
    }

    /// Who takes what is in the ring: the thread that made it, or another of its program.
    fn taker(&self, ring: &Ring) -> Option<Arc<Issuer>> {
        let mut place = ring.issuer.lock();
        if let Some(issuer) = place.as_ref().and_then(Weak::upgrade).filter(|issuer| !issuer.is_over()) {
            return Some(issuer);
        }
        let task = self.task.upgrade().filter(|task| ring.is_made_in(task))?;
        let issuer = task.threads().iter().find_map(|seat| issuer::of(seat).ok())?;
        *place = Some(Arc::downgrade(&issuer));
        Some(issuer)
    }
}
