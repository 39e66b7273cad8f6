//! Memory is used up: somebody is chosen and killed, so that the others go on.
//!
//! A thread that gets no page reports it and waits a little ([`wait`]); a thread of the kernel's own chooses ([`serve`]): the space
//! with most pages in memory, not the first program's unless there is no other. When it is the kernel's heap that has grown into
//! its reserve, the thread whose call made it grow goes: a program that makes the kernel keep more and more has few pages itself.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use janua_port::Nanos;
use janua_port::machine::ThreadId;

use crate::frames::FRAMES;
use crate::space::BareSpace;
use crate::thread::{self, Thread};
use crate::{clock, sched};

/// Changes when somebody asks.
static ASKED: AtomicU32 = AtomicU32::new(0);
/// Changes when a choice has been made, or memory has come back.
static ANSWERED: AtomicU32 = AtomicU32::new(0);
/// 1 while the memory of one who was killed has not come back.
static EXPECTED: AtomicU32 = AtomicU32::new(0);
/// The heap asks: it cannot wake anybody itself.
static HEAP_ASKS: AtomicBool = AtomicBool::new(false);
/// The thread whose call made the heap grow; 0 is none.
static GROWER: AtomicU64 = AtomicU64::new(0);

/// How long a thread that waits for memory sleeps before another look.
const LOOK: Nanos = 20_000_000;
/// How long one that was killed may give no memory back before another is chosen. It may hang on what a thread holds that waits for
/// memory itself; otherwise it ends as soon as it runs.
const PATIENCE: Nanos = 10_000_000_000;

/// The heap has grown into its reserve. Takes no lock: the heap's is held.
pub fn ask() {
    if let Some(id) = sched::current_id() {
        GROWER.store(id.0, Ordering::Relaxed);
        HEAP_ASKS.store(true, Ordering::Release);
    }
}

/// Passes on what the heap asked for. Called where no lock is held.
#[inline]
pub fn look() {
    if HEAP_ASKS.load(Ordering::Relaxed) && HEAP_ASKS.swap(false, Ordering::AcqRel) {
        wake();
    }
}

fn wake() {
    ASKED.fetch_add(1, Ordering::SeqCst);
    sched::unpark(&ASKED, 1);
}

/// There was no page: asks for one, and waits a little.
pub fn wait() {
    let answered = ANSWERED.load(Ordering::SeqCst);
    wake();
    sched::park(&ANSWERED, answered, Some(clock::now() + LOOK));
}

/// The kernel thread that chooses.
pub fn serve() {
    let mut seen = ASKED.load(Ordering::SeqCst);
    loop {
        sched::park(&ASKED, seen, None);
        let asked = ASKED.load(Ordering::SeqCst);
        if asked == seen {
            continue;
        }
        seen = asked;
        if FRAMES.is_low() {
            EXPECTED.store(1, Ordering::SeqCst);
            if choose() {
                expect();
            }
        }
        ANSWERED.fetch_add(1, Ordering::SeqCst);
        sched::unpark(&ANSWERED, u32::MAX);
    }
}

/// Waits for the memory of the one who was killed, as long as some comes.
fn expect() {
    let (mut free, mut end) = (FRAMES.pages().1, clock::now() + PATIENCE);
    while EXPECTED.load(Ordering::SeqCst) != 0 && clock::now() < end {
        sched::park(&EXPECTED, 1, Some(clock::now() + LOOK));
        let now_free = FRAMES.pages().1;
        if now_free > free {
            end = clock::now() + PATIENCE;
        }
        free = now_free;
    }
}

/// The memory of the one who was killed is free.
pub fn came_back() {
    EXPECTED.store(0, Ordering::SeqCst);
    sched::unpark(&EXPECTED, 1);
}

/// Kills one. Returns whether there was one to kill.
fn choose() -> bool {
    let grower = thread::find(ThreadId(GROWER.swap(0, Ordering::Relaxed))).filter(|thread| thread.guest.is_some());
    let Some(victim) = grower.or_else(largest) else { return false };
    let (Some(space), Some(guest)) = (victim.space.lock().clone(), victim.guest.as_deref()) else { return false };
    let space = BareSpace::of(&space);
    space.own.condemn();
    guest.out_of_memory(space.bytes().0);
    true
}

/// A thread of the space with most pages.
fn largest() -> Option<Arc<Thread>> {
    let mut chosen: Option<(bool, u64, Arc<Thread>)> = None;
    for thread in thread::all() {
        let Some(space) = thread.space.lock().clone().filter(|_| thread.guest.is_some()) else { continue };
        let (first, bytes) = (BareSpace::of(&space).own.is_first(), BareSpace::of(&space).bytes().0);
        if chosen.as_ref().is_none_or(|(least, most, _)| (!first, bytes) > (!least, *most)) {
            chosen = Some((first, bytes, thread));
        }
    }
    chosen.map(|(.., thread)| thread)
}
