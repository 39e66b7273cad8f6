//! Translations that must be forgotten on every core that may remember them.
//!
//! One request at a time. Who makes it has changed the tables before, and reads which cores use them after; a core that begins to
//! use a root says so ([`Root::active`]) before it loads it. So a core either is asked, or reads the tables as they are now.
//!
//! A core in the kernel has interrupts off, and answers where it spins ([`relax`]) or when it leaves: it may be spinning for a
//! lock that the asking core holds. Nothing else in the kernel waits for another core.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::core as cores;
use crate::lock::Mutex;
use crate::tables::{self, Root};
use crate::apic;

/// Who asks, one at a time.
static ASKING: Mutex<()> = Mutex::new(());
/// The request: root, first address, end.
static REQUEST: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
/// The cores that have not answered.
static WAITED_FOR: AtomicU64 = AtomicU64::new(0);

/// Makes the other cores that use a root forget what they remember of `start..end`. Returns when they have.
pub fn forget_elsewhere(root: &Root, start: usize, end: usize) {
    if cores::count() < 2 {
        return;
    }
    let here = cores::here().bit();
    if root.active() & !here == 0 {
        return;
    }
    let asking = ASKING.lock();
    let asked = root.active() & !here;
    for (slot, value) in REQUEST.iter().zip([root.address(), start, end]) {
        slot.store(value, Ordering::Relaxed);
    }
    WAITED_FOR.store(asked, Ordering::SeqCst);
    for core in cores::all().filter(|core| core.bit() & asked != 0) {
        apic::send(core.apic, apic::FORGET);
    }
    while WAITED_FOR.load(Ordering::Acquire) != 0 {
        core::hint::spin_loop();
    }
    drop(asking);
}

/// Answers the request there may be.
pub fn answer() {
    if WAITED_FOR.load(Ordering::Acquire) == 0 {
        return;
    }
    let here = cores::here().bit();
    if WAITED_FOR.load(Ordering::Acquire) & here == 0 {
        return;
    }
    let [root, start, end] = REQUEST.each_ref().map(|slot| slot.load(Ordering::Relaxed));
    tables::forget(root, start, end);
    WAITED_FOR.fetch_and(!here, Ordering::AcqRel);
}

/// What a core does each turn of a loop in which it waits for another core.
#[inline]
pub fn relax() {
    core::hint::spin_loop();
    answer();
}
