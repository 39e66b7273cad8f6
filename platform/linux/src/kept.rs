//! Host processes whose guests have ended, for the next programs of a vfork's children: a process that is used again need not be made by the host, be
//! given its gate and its supervisor's end, meet the kernel's pages anew, and be taken down.
//!
//! A sandbox keeps a few for a moment. Each waits on its only thread's stack, without guest memory and without signals. A thread that moves to a
//! process of its own ([`crate::space`]) leaves its registers on its stack, which is shared memory, and ends; the process goes on there.
//!
//! What the host keeps for a process, besides memory and registers, would be the next guest's too. So one for which a guest had anything set
//! ([`Shared::touched`]), or that ever had a second thread, is not kept, and one that has grown large neither, since the host does not forget that. What it has counted
//! so far is taken off what it counts for the next guest.

use alloc::collections::BTreeMap;
use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use janua_arch::x86_64::segments::Segments;
use janua_entry::hosted::{self, Area, ENDED, SEVERAL, Shared};
use janua_port::machine::Usage;
use janua_port::{Clock, Nanos};

use crate::clock::{self, HostClock};
use crate::lock::Mutex;
use crate::{area, guard, machine, signal, space, spare, spawn, text, usage};

/// How many wait at most, and for how long.
const MOST: usize = 4;
const STAYS: Nanos = 20_000_000;

/// A process whose guest has had more memory at once is not kept: what the next one has at most is known only where that is more
/// ([`peak_of`]).
const LARGE: u64 = 8 << 20;

/// What the word of a thread that waits says: it waits, it goes on on another's stack.
const WAITS: u32 = 0;
const GOES_ON: u32 = 1;

/// One more than the areas of the threads that wait; 0 where there is none.
static WAITING: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];

/// What the host had counted for a process before its guest, by its id.
struct Counted {
    cpu: Nanos,
    usage: Usage,
    peak: u64,
}

static COUNTED: Mutex<BTreeMap<u32, Counted>> = Mutex::new(BTreeMap::new());
/// How many there are of these, for who need not look.
static COUNTS: AtomicU32 = AtomicU32::new(0);

global_asm!(
    ".pushsection .text.hosted, \"ax\", @progbits",
    // rdi: a word for the stack pointer, rsi: the word that another process' thread sleeps on. The calling thread goes on there, where this returns;
    // here it ends. Its stack is the other's from the exchange on.
    ".globl hosted_hand_over",
    ".type hosted_hand_over, @function",
    "hosted_hand_over:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rdi], rsp",
    "mov eax, {goes_on}",
    "xchg dword ptr [rsi], eax",
    "mov rdi, rsi",
    "mov esi, 1",
    "mov edx, 1",
    "mov eax, 202",
    "syscall",
    "mov edi, {ended}",
    "mov eax, 60",
    "syscall",
    "ud2",
    ".size hosted_hand_over, . - hosted_hand_over",

    // rdi: the other's stack pointer, rsi: a word, rdx: the bit in it that marks the calling thread's own area taken.
    ".globl hosted_go_on",
    ".type hosted_go_on, @function",
    "hosted_go_on:",
    "mov rsp, rdi",
    "not rdx",
    "lock and qword ptr [rsi], rdx",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    ".size hosted_go_on, . - hosted_go_on",

    // rdi: area, rsi: where its kernel stack starts. What is on the stack is given up.
    ".globl hosted_kept",
    ".type hosted_kept, @function",
    "hosted_kept:",
    "mov rsp, rsi",
    "xor ebp, ebp",
    "call {wait}",
    "ud2",
    ".size hosted_kept, . - hosted_kept",
    ".popsection",
    goes_on = const GOES_ON,
    ended = const ENDED,
    wait = sym wait,
);

unsafe extern "C" {
    fn hosted_hand_over(stack: *mut usize, word: *const AtomicU32);
    fn hosted_go_on(stack: usize, taken: *const AtomicU64, bit: u64) -> !;
    fn hosted_kept(area: *mut Area, stack: usize) -> !;
}

/// Threads that are looking into the process of another, of whose guest they have found that it lives.
static LOOKS: AtomicU32 = AtomicU32::new(0);

/// As long as there is one, a process whose guest ends is not kept: what was begun with one guest would be done to the next.
pub struct Look(());

impl Look {
    /// To be made before the look whether the guest lives.
    pub fn new() -> Look {
        LOOKS.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Look(())
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        LOOKS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The calling process has, or is about to have, a second thread: it is not to be kept.
pub fn note_several() {
    several().store(1, Ordering::Relaxed);
}

fn several() -> &'static AtomicU64 {
    // SAFETY: in the page of the selectors' line 0, mapped for the process' life and its own; zero at its start.
    unsafe { &*(SEVERAL as *const AtomicU64) }
}

/// Takes one that waits out of its place.
fn take() -> Option<usize> {
    WAITING.iter().find_map(|place| {
        if place.load(Ordering::Relaxed) == 0 {
            return None;
        }
        (place.swap(0, Ordering::AcqRel) as usize).checked_sub(1)
    })
}

/// Moves the calling thread, whose area this is, to a process that waits for one, if there is one and the thread is as any other to the host:
/// then this returns there, and the thread that called is no more. Its signals are blocked, and its calls do not depend on its selector.
pub fn move_to_one(index: usize) -> bool {
    let this = area::of(index);
    if this.touched.load(Ordering::Relaxed) {
        return false;
    }
    let Some(kept) = take() else { return false };
    let other = area::of(kept);
    this.host_tid.store(other.host_tid.load(Ordering::Relaxed), Ordering::Relaxed);
    this.host_pid.store(other.host_pid.load(Ordering::Relaxed), Ordering::Relaxed);
    for (place, word) in this.counted.iter().zip(&other.counted) {
        place.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    text::inherit_from(index, kept);
    // What the new thread has is its process'.
    this.identified.store(false, Ordering::Relaxed);
    // SAFETY: the other thread waits, and does not look before it is notified; the two words are of its own part.
    let stack = unsafe { &raw mut area::own(kept).inherited };
    // SAFETY: the other goes on here with all that is on this stack, which nobody else touches.
    unsafe { hosted_hand_over(stack, &raw const other.spare) };
    true
}

/// The calling thread has just come to a process that waited.
pub fn arrived(index: usize) {
    // SAFETY: the selector of this thread, which the host reads only after `arm_again`.
    unsafe { hosted::selector(index).write_volatile(hosted::SELECTOR_ALLOW) };
    area::set_space(index, None);
    guard::set(index);
    // SAFETY: the thread itself.
    unsafe { area::own(index) }.guarded = area::of(index).space.load(Ordering::Relaxed);
    if signal::set_stack(index).is_err() {
        crate::sys::write_all(2, b"janua: the host takes no signal stack any more\n");
        machine::stop_sandbox(125);
    }
}

/// The calling thread, whose guest is gone and was the last of its process, waits for another one if the process is fit for that and there is room:
/// then it does not return.
pub fn keep(index: usize) {
    let this = area::of(index);
    // Who looks into the process from afar, or sets something for its guest, finds that this has ended, or is found here.
    fence(Ordering::SeqCst);
    let seen = LOOKS.load(Ordering::SeqCst) != 0;
    let pid = this.host_pid.load(Ordering::Relaxed);
    let plain = pid == this.host_tid.load(Ordering::Relaxed)
        && !machine::get().stack_stays
        && several().load(Ordering::Relaxed) == 0
        && !this.touched.load(Ordering::SeqCst)
        && Segments::current() == Segments::default();
    let room = || WAITING.iter().any(|place| place.load(Ordering::Relaxed) == 0);
    if !plain || seen || !room() || !usage::is_numbered() || signal::set_mask(u64::MAX).is_err() || !count(index, pid) {
        return;
    }
    if space::drop_guest_memory().is_err() {
        return;
    }
    // Guests may read it, and the last exit has left registers there. A selector of 0 lets calls pass.
    // SAFETY: the thread's own line, in memory of this process alone, which nothing of Rust's is in.
    unsafe { hosted::selector(index).write_bytes(0, 1 << hosted::SELECTOR_SHIFT) };
    // SAFETY: the thread itself, which has nothing left to do on its stack.
    unsafe { hosted_kept(hosted::area(index), hosted::stack_start(index)) }
}

/// Notes what the host has counted for the calling process and its only thread. Whether that leaves room for the next guest's.
fn count(index: usize, pid: u32) -> bool {
    let Some((usage, peak)) = usage::of_callers_process() else { return false };
    if usage::of_guest(index, peak) > LARGE {
        return false;
    }
    spare::note_counted(area::of(index));
    let cpu = clock::of_caller();
    let mut counted = COUNTED.lock();
    counted.insert(pid, Counted { cpu, usage, peak });
    COUNTS.store(counted.len() as u32, Ordering::Relaxed);
    true
}

/// The calling process, whose last guest has ended, is about to end.
pub fn forget(this: &Shared) {
    if COUNTS.load(Ordering::Relaxed) != 0 {
        let mut counted = COUNTED.lock();
        counted.remove(&this.host_pid.load(Ordering::Relaxed));
        COUNTS.store(counted.len() as u32, Ordering::Relaxed);
    }
}

fn counted<T>(pid: u32, look: impl FnOnce(&Counted) -> T) -> Option<T> {
    if COUNTS.load(Ordering::Relaxed) == 0 { None } else { COUNTED.lock().get(&pid).map(look) }
}

/// Processor time of a process' guest, out of what the host has counted.
pub fn cpu_of(pid: u32, cpu: Nanos) -> Nanos {
    cpu.saturating_sub(counted(pid, |before| before.cpu).unwrap_or(0))
}

/// The same for all that it has used.
pub fn usage_of(pid: u32, usage: Usage) -> Usage {
    counted(pid, |before| spare::without(usage, &before.usage)).unwrap_or(usage)
}

/// The most bytes that a process' guest has had in memory at once, out of what the host knows of the process; `now` it has so many. Where the guest before it
/// had more, it is only known to lie between: the lower bound.
pub fn peak_of(pid: u32, peak: u64, now: impl FnOnce() -> Option<u64>) -> u64 {
    if counted(pid, |before| peak <= before.peak) == Some(true) { now().unwrap_or(peak) } else { peak }
}

/// A thread waits for another to go on with, on an empty stack.
///
/// # Safety
/// Called by `hosted_kept` with the calling thread's area.
unsafe extern "C" fn wait(area: *mut Area) -> ! {
    let index = hosted::index_of(area as usize);
    let this = area::of(index);
    this.spare.store(WAITS, Ordering::Relaxed);
    let name = index as u64 + 1;
    let place = WAITING.iter().find(|place| place.compare_exchange(0, name, Ordering::SeqCst, Ordering::Relaxed).is_ok());
    let Some(place) = place else { leave(index) };
    let mut end = Some(HostClock.monotonic() + STAYS);
    loop {
        if this.spare.load(Ordering::Acquire) == GOES_ON {
            break;
        }
        if end.is_some_and(|end| HostClock.monotonic() >= end) {
            if place.compare_exchange(name, 0, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                leave(index);
            }
            // Who has taken it goes on here.
            end = None;
        }
        spawn::park(&this.spare, WAITS, end);
    }
    // SAFETY: the thread itself.
    let stack = core::mem::take(&mut unsafe { area::own(index) }.inherited);
    let (word, bit) = area::taken(index);
    // SAFETY: what `hosted_hand_over` left there, and nobody else goes on with; nothing of this area is used afterwards.
    unsafe { hosted_go_on(stack, word, bit) }
}

fn leave(index: usize) -> ! {
    forget(area::of(index));
    spawn::finish(index)
}
