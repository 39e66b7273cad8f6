//! What other cores must have done before one goes on: forget translations that they may remember, or be seen at a point where all
//! their stores are visible (membarrier(2)).
//!
//! One request at a time. Who makes it has changed the tables before, and reads which cores use them after; a core that begins to
//! use a root notes it ([`Root::active`]) before it loads it. So a core either is asked, or reads the tables as they are now.
//!
//! A core in the kernel has interrupts off, and polls where it spins ([`relax`]) or when it leaves: it may be spinning for a
//! lock that the asking core holds. Nothing else in the kernel waits for another core.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use crate::apic;
use crate::core as cores;
use crate::lock::Mutex;
use crate::tables::{self, Root};

/// Who asks, one at a time.
static ASKING: Mutex<()> = Mutex::new(());
/// The request: root, first address, end. Without a root it is a barrier.
static REQUEST: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
/// The cores that have not served it.
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
    let _asking = ASKING.lock();
    ask(root.active() & !here, [root.address(), start, end]);
}

/// Makes the other cores that run user code with this root, or all of them without one, pass a barrier: what they stored before is
/// visible, nothing they read after was read before, and no instruction was fetched before. Returns when they have.
pub fn barrier_elsewhere(root: Option<&Root>) {
    fence(Ordering::SeqCst);
    let _asking = ASKING.lock();
    let all = cores::all().fold(0, |set, core| set | core.bit());
    // A core that begins to use the root from now on passes a barrier by that ([`tables::enter`]).
    ask(root.map_or(all, Root::active) & !cores::here().bit(), [0; 3]);
}

/// Sends a request, with [`ASKING`] held, and waits until all have served it.
fn ask(asked: u64, request: [usize; 3]) {
    for (slot, value) in REQUEST.iter().zip(request) {
        slot.store(value, Ordering::Relaxed);
    }
    WAITED_FOR.store(asked, Ordering::SeqCst);
    for core in cores::all().filter(|core| core.bit() & asked != 0) {
        apic::send(core.apic(), apic::FORGET);
    }
    while WAITED_FOR.load(Ordering::Acquire) != 0 {
        core::hint::spin_loop();
    }
}

/// Serves the request there may be.
pub fn answer() {
    if WAITED_FOR.load(Ordering::Acquire) == 0 {
        return;
    }
    let here = cores::here().bit();
    if WAITED_FOR.load(Ordering::Acquire) & here == 0 {
        return;
    }
    let [root, start, end] = REQUEST.each_ref().map(|slot| slot.load(Ordering::Relaxed));
    if root == 0 {
        // Leaf 0, which every processor has: to ask serialises (Intel SDM 3A, 9.3).
        let _ = janua_arch::x86_64::cpu::cpuid(0, 0);
    } else {
        tables::forget(root, start, end);
    }
    WAITED_FOR.fetch_and(!here, Ordering::AcqRel);
}

/// What a core does each turn of a loop in which it waits for another core.
#[inline]
pub fn relax() {
    core::hint::spin_loop();
    answer();
}
