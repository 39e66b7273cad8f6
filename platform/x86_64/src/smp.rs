//! The other cores: each is reset, begins in real mode at a page below 1 MiB ([`crate::boot`]), and becomes a thread that ends at
//! once; from then on it runs what is ready.
//!
//! They are started one after the other. A core that does not come in time is given up: it finds no stack if it comes later.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use janua_arch::x86_64::cpu::rdtsc;
use janua_port::{Frame, Nanos};

use crate::boot::OtherPage;
use crate::core::{self as cores, Core};
use crate::{apic, clock, cpu, fpu, report, sched, shoot, tables, thread, tiles};

/// How long a core may take to come. Emulated ones wait for the host's.
const PATIENCE: Nanos = 5_000_000_000;

/// The core that starts, and its thread.
static STARTING: AtomicPtr<Core> = AtomicPtr::new(core::ptr::null_mut());
static THREAD: AtomicPtr<thread::Thread> = AtomicPtr::new(core::ptr::null_mut());

/// Starts all other cores of a list, which has the calling one's number too.
pub fn start(ids: &[u32]) {
    let own = apic::id();
    if tiles::own() == 0 {
        // Other tiles find it there: by it their first core began.
        page().fill();
    }
    for id in ids.iter().filter(|id| **id != own) {
        if let Err(why) = start_one(*id) {
            say(*id, why);
        }
    }
}

fn say(id: u32, why: &str) {
    use core::fmt::Write;
    let _ = writeln!(report::Voice, "janua: the core with APIC number {id} is not used: {why}");
}

/// Waits until `done`, or in vain.
fn wait(patience: Nanos, mut done: impl FnMut() -> bool) -> bool {
    let end = clock::now() + patience;
    while !done() {
        if clock::now() > end {
            return false;
        }
        shoot::relax();
    }
    true
}

/// Where cores of this tile begin.
fn page() -> OtherPage {
    OtherPage::of(tiles::own())
}

/// Makes a core begin with what has been left in a page: whether it has taken it in time.
pub fn begin(id: u32, page: OtherPage) -> bool {
    apic::send_init(id);
    wait(10_000_000, || false);
    apic::send_start(id, page.number());
    if !wait(200_000_000, || page.is_taken()) {
        apic::send_start(id, page.number());
    }
    wait(PATIENCE, || page.is_taken()) || !page.take_back()
}

fn start_one(id: u32) -> Result<(), &'static str> {
    let number = cores::count();
    let thread = thread::make(Frame::start(0, 0), None, None, None, Some(other_main)).map_err(|_| "no memory")?;
    // SAFETY: the thread does not run; its stack begins as `switch_stack` would leave it, with six registers.
    let stack = unsafe { (*thread.own.get()).sp } + 6 * 8;
    STARTING.store(Box::leak(Box::new(Core::new(number, id))), Ordering::Release);
    THREAD.store(alloc::sync::Arc::into_raw(thread).cast_mut(), Ordering::Release);
    BACKWARDS.store(0, Ordering::Relaxed);
    MEETING.store(0, Ordering::Release);
    page().leave(tables::kernel_root(), stack, 0);
    if !begin(id, page()) {
        return Err("it did not start");
    }
    // It has the stack, so it is on its way: not to be given up any more.
    compare_counters(false);
    while MEETING.load(Ordering::Acquire) < VERDICT {
        shoot::relax();
    }
    match MEETING.load(Ordering::Acquire) {
        GOOD => wait(u64::MAX >> 1, || cores::count() > number).then_some(()).ok_or("it did not start"),
        UNFIT => Err("it has not what the first one has"),
        _ => Err("its time-stamp counter differs from the first one's"),
    }
}

/// First code of another core, on the stack of its first thread.
extern "C" fn other_main() -> ! {
    // SAFETY: made by `start_one` for this core, which waits.
    let core = unsafe { &*STARTING.load(Ordering::Acquire) };
    // SAFETY: made from an `Arc` by `start_one`, and taken back once.
    let thread = unsafe { alloc::sync::Arc::from_raw(THREAD.load(Ordering::Acquire)) };
    // SAFETY: this core's own.
    unsafe { cores::join(core) };
    let fit = fpu::is_alike();
    apic::init_local();
    let ready = fit && sched::enter_as(core, thread).is_ok();
    let same = compare_counters(true);
    if !ready || !same {
        MEETING.store(if ready { DIFFERENT } else { UNFIT }, Ordering::Release);
        cpu::halt();
    }
    MEETING.store(GOOD, Ordering::Release);
    core.announce();
    sched::end()
}

/// How far the two cores have come that compare their counters; then the verdict.
static MEETING: AtomicUsize = AtomicUsize::new(0);
const ROUNDS: usize = 16;
const VERDICT: usize = 1 << 16;
const GOOD: usize = VERDICT;
const UNFIT: usize = VERDICT + 1;
const DIFFERENT: usize = VERDICT + 2;
static COUNTED: AtomicU64 = AtomicU64::new(0);
static BACKWARDS: AtomicUsize = AtomicUsize::new(0);

/// Two cores read their counters in turn: whether each reading was later than the one before, as it must be for one clock.
fn compare_counters(second: bool) -> bool {
    for round in 0..ROUNDS {
        if (round % 2 == 1) == second {
            while MEETING.load(Ordering::Acquire) != round {
                core::hint::spin_loop();
            }
            let now = rdtsc();
            if round > 0 && now < COUNTED.load(Ordering::Acquire) {
                BACKWARDS.fetch_add(1, Ordering::AcqRel);
            }
            COUNTED.store(now, Ordering::Release);
            MEETING.store(round + 1, Ordering::Release);
        }
    }
    BACKWARDS.load(Ordering::Acquire) == 0
}
