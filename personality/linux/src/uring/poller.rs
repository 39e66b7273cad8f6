//! Who looks into the rings that programs need not announce (IORING_SETUP_SQPOLL).
//!
//! One thread of the kernel's for all of them. It reads how far the program has come, and reminds a thread of the program's, which takes what is there in its
//! own memory: so this works wherever the kernel's threads reach no user memory. After some time in vain it flags to the program that it sleeps, and does.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use janua_abi::linux::uring::sq_ring;
use janua_abi::linux::{Errno, Result};
use janua_port::{Machine, Nanos};
use janua_rt::wake::{self, Raised};
use janua_rt::{AtomicU64, Mutex};

use super::issuer::{self, Issuer, Job};
use super::ring::Ring;
use super::submit::need_wakeup;
use crate::{Task, Thread};

/// Time between two looks, nanoseconds.
const INTERVAL: Nanos = 50_000;

/// Most rings that are looked into.
const MOST: usize = 256;

struct Watched {
    ring: Weak<Ring>,
    /// The process that has it.
    task: Weak<Task>,
    /// When there was something in it last.
    last: AtomicU64,
}

/// The looker's own.
pub struct Poller {
    rings: Mutex<Vec<Arc<Watched>>>,
    word: AtomicU32,
    started: AtomicBool,
}

impl Default for Poller {
    fn default() -> Poller {
        Poller { rings: Mutex::default(), word: AtomicU32::new(wake::QUIET), started: AtomicBool::new(false) }
    }
}

/// Has a ring looked into from now on. EAGAIN when there are too many, and where the kernel can have no threads.
pub fn add(thread: &Thread, ring: &Arc<Ring>) -> Result<()> {
    let poller = &thread.kernel.rings.poller;
    let machine = thread.machine();
    let watched = Watched {
        ring: Arc::downgrade(ring),
        task: Arc::downgrade(&thread.task),
        last: AtomicU64::new(machine.clock().monotonic()),
    };
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

/// A program announces its ring, which was not looked into any more.
pub fn wake(thread: &Thread, ring: &Arc<Ring>) {
    let poller = &thread.kernel.rings.poller;
    let now = thread.machine().clock().monotonic();
    for watched in &*poller.rings.lock() {
        if core::ptr::eq(watched.ring.as_ptr(), Arc::as_ptr(ring)) {
            watched.last.store(now, Ordering::Relaxed);
        }
    }
    ring.flag(&ring.access(thread), sq_ring::NEED_WAKEUP, false);
    poller.rouse(thread.machine());
}

impl Poller {
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
            let active = rings.iter().filter(|watched| watched.look(now)).count();
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

impl Watched {
    /// Looks into the ring: whether to look again soon.
    fn look(&self, now: Nanos) -> bool {
        let Some(ring) = self.ring.upgrade().filter(|ring| !ring.is_closed()) else { return false };
        let access = ring.shared.from_anywhere();
        if ring.disabled.load(Ordering::SeqCst) {
            return true;
        }
        if ring.unsubmitted(&access) != 0 {
            self.last.store(now, Ordering::Relaxed);
            if !ring.asked.swap(true, Ordering::SeqCst) {
                match self.taker(&ring) {
                    Some(issuer) => issuer.send(&ring, Job::Take(ring.clone())),
                    None => ring.asked.store(false, Ordering::SeqCst),
                }
            }
            return true;
        }
        if ring.is_flagged(sq_ring::NEED_WAKEUP) {
            return false;
        }
        if now.saturating_sub(self.last.load(Ordering::Relaxed)) < ring.shape.idle {
            return true;
        }
        need_wakeup(&ring, true);
        // What came before the program could see that is not lost.
        if ring.unsubmitted(&access) == 0 {
            return false;
        }
        need_wakeup(&ring, false);
        true
    }

    /// Who takes what is in the ring: the thread that made it, or another of its process.
    fn taker(&self, ring: &Ring) -> Option<Arc<Issuer>> {
        let mut place = ring.issuer.lock();
        if let Some(issuer) = place.as_ref().and_then(Weak::upgrade).filter(|issuer| !issuer.is_over()) {
            return Some(issuer);
        }
        let task = self.task.upgrade()?;
        let issuer = task.threads().iter().find_map(|seat| issuer::of(seat).ok())?;
        *place = Some(Arc::downgrade(&issuer));
        Some(issuer)
    }
}
