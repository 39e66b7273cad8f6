//! Host threads whose guest threads have ended, for the next ones of the same process: a thread that is used again need not be made, be given its
//! identity, gate and signal stack, and be taken down.
//!
//! A process keeps one for a moment, in a word of its own beside that of its members. The thread waits on its kernel stack with its area taken and
//! its guest gone. To the next guest it is what a new one is: registers come from who makes it, as the host would copy them, and what the host has
//! counted for the thread so far is taken off what it counts for that guest. What else the host keeps for a thread (its processors, nice value,
//! descriptors of its own) a new thread has from its maker; so neither a thread for which any of that was set, nor one made by it, is kept or makes
//! use of one that is.

use alloc::boxed::Box;
use alloc::vec;
use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use janua_arch::x86_64::segments::Segments;
use janua_entry::hosted::{self, Area, NAME_WORDS, Own, SPARE, Shared};
use janua_port::machine::{Scheduled, Usage};
use janua_port::{Clock, Nanos, Registers};

use crate::clock::{self, HostClock};
use crate::registers::{self, HostedRegisters};
use crate::{area, context, machine, signal, spawn, sys, usage};

/// How long one waits for the next guest thread.
const STAYS: Nanos = 20_000_000;

/// What a spare thread's word says: it waits, a guest thread begins, it is to end.
const WAITS: u32 = 0;
const BEGINS: u32 = 1;
const ENDS: u32 = 2;

/// Registers that a new thread has from its maker, beside those of the frame.
struct Inherited {
    vector: Box<[u8]>,
    tls: usize,
    gs: usize,
    name: [u64; NAME_WORDS],
}

global_asm!(
    ".pushsection .text.hosted, \"ax\", @progbits",
    // rdi: area, rsi: where its kernel stack starts. What is on the stack is given up: the thread waits as one that has just been made.
    ".globl hosted_spare",
    ".type hosted_spare, @function",
    "hosted_spare:",
    "mov rsp, rsi",
    "xor ebp, ebp",
    "call {wait}",
    "ud2",
    ".size hosted_spare, . - hosted_spare",
    ".popsection",
    wait = sym wait,
);

unsafe extern "C" {
    fn hosted_spare(area: *mut Area, stack: usize) -> !;
}

/// One more than the area of the process' spare thread; 0 where there is none.
fn slot() -> &'static AtomicU64 {
    // SAFETY: in the page of the selectors' line 0, mapped for the process' life and its own; zero at its start.
    unsafe { &*(SPARE as *const AtomicU64) }
}

fn notify(index: usize, what: u32) {
    let word = &area::of(index).spare;
    word.store(what, Ordering::Release);
    spawn::unpark(word, 1);
}

/// Whether the calling thread is as any other of its process to the host.
fn is_plain(this: &Shared) -> bool {
    !this.touched.load(Ordering::SeqCst) && Segments::current() == Segments::default() && registers::has_base_instructions()
}

/// A spare thread of the calling thread's process, which makes a thread: its area.
pub fn take() -> Option<usize> {
    if slot().load(Ordering::Relaxed) == 0 || !is_plain(area::of(context::here())) {
        return None;
    }
    let index = (slot().swap(0, Ordering::AcqRel) as usize).checked_sub(1)?;
    let own_pid = area::of(context::here()).host_pid.load(Ordering::Relaxed);
    if area::of(index).host_pid.load(Ordering::Relaxed) == own_pid {
        return Some(index);
    }
    // Of another process that shares the space.
    notify(index, ENDS);
    None
}

/// What a thread that the caller makes is to begin with.
fn inherited(tls: Option<usize>) -> Inherited {
    let mut vector = vec![0; registers::layout().size].into_boxed_slice();
    HostedRegisters.fpu_save(&mut vector);
    let name = area::of(context::here()).name.each_ref().map(|word| word.load(Ordering::Relaxed));
    Inherited { vector, tls: tls.unwrap_or_else(|| HostedRegisters.tls()), gs: HostedRegisters.gs(), name }
}

/// A guest thread begins in a spare thread, whose area is prepared for it.
pub fn begin(index: usize, tls: Option<usize>) {
    let inherited = Box::into_raw(Box::new(inherited(tls)));
    // SAFETY: the thread waits, and does not look before it is notified.
    unsafe { area::own(index) }.inherited = inherited as usize;
    notify(index, BEGINS);
}

/// The last guest thread of the process has ended.
pub fn dismiss() {
    if let Some(index) = (slot().swap(0, Ordering::SeqCst) as usize).checked_sub(1) {
        notify(index, ENDS);
    }
}

/// The calling thread, whose guest is gone, waits for another one if it is fit for that and the process has room for it: then it does not return.
pub fn keep(index: usize) {
    let this = area::of(index);
    // Who sets something for the guest that has ended finds it gone, or is found to have done so.
    fence(Ordering::SeqCst);
    let leads = this.host_pid.load(Ordering::Relaxed) == this.host_tid.load(Ordering::Relaxed);
    let fits = !leads && !machine::get().stack_stays && !hosted::is_empty() && is_plain(this);
    if !fits || slot().load(Ordering::Relaxed) != 0 {
        return;
    }
    // SAFETY: the thread itself, which has nothing left to do on its stack.
    unsafe { hosted_spare(hosted::area(index), hosted::stack_start(index)) }
}

/// What the host has counted for the calling thread is not the next guest's.
pub fn note_counted(this: &Shared) {
    let counted = (this.host_pid.load(Ordering::Relaxed), this.host_tid.load(Ordering::Relaxed));
    let scheduled = usage::scheduled(counted).unwrap_or_default();
    let usage = usage::of_caller().unwrap_or_default();
    set_counted(this, &usage, &scheduled, clock::of_caller());
}

/// The host has counted nothing yet for the thread of an area.
pub fn nothing_counted(this: &Shared) {
    this.counted.iter().for_each(|word| word.store(0, Ordering::Relaxed));
}

fn set_counted(this: &Shared, usage: &Usage, scheduled: &Scheduled, cpu: Nanos) {
    let Usage { user, system, minor_faults, major_faults, waits, preemptions } = *usage;
    let words = [cpu, user, system, minor_faults, major_faults, waits, preemptions, scheduled.waited, scheduled.times];
    for (place, word) in this.counted.iter().zip(words) {
        place.store(word, Ordering::Relaxed);
    }
}

/// `usage` without what was counted before.
pub fn without(usage: Usage, before: &Usage) -> Usage {
    Usage {
        user: usage.user.saturating_sub(before.user),
        system: usage.system.saturating_sub(before.system),
        minor_faults: usage.minor_faults.saturating_sub(before.minor_faults),
        major_faults: usage.major_faults.saturating_sub(before.major_faults),
        waits: usage.waits.saturating_sub(before.waits),
        preemptions: usage.preemptions.saturating_sub(before.preemptions),
    }
}

/// Processor time of the thread of an area, out of what the host has counted.
pub fn cpu_of(this: &Shared, cpu: Nanos) -> Nanos {
    cpu.saturating_sub(this.counted[0].load(Ordering::Relaxed))
}

/// The same for all that it has used.
pub fn usage_of(this: &Shared, usage: Usage) -> Usage {
    let at = |at: usize| this.counted[at].load(Ordering::Relaxed);
    let before =
        Usage { user: at(1), system: at(2), minor_faults: at(3), major_faults: at(4), waits: at(5), preemptions: at(6) };
    without(usage, &before)
}

/// The same for how it has had the processor.
pub fn scheduled_of(this: &Shared, scheduled: Scheduled) -> Scheduled {
    let less = |word: u64, at: usize| word.saturating_sub(this.counted[at].load(Ordering::Relaxed));
    Scheduled { ran: less(scheduled.ran, 0), waited: less(scheduled.waited, 7), times: less(scheduled.times, 8) }
}

/// A thread waits for its next guest, on an empty stack.
///
/// # Safety
/// Called by `hosted_spare` with the calling thread's area.
unsafe extern "C" fn wait(area: *mut Area) -> ! {
    let index = hosted::index_of(area as usize);
    let this = area::of(index);
    note_counted(this);
    this.spare.store(WAITS, Ordering::Relaxed);
    let name = index as u64 + 1;
    if slot().compare_exchange(0, name, Ordering::SeqCst, Ordering::Relaxed).is_err() {
        spawn::finish(index);
    }
    // The last guest thread of the process has looked before, or finds this one.
    let mut end = Some(if hosted::is_empty() { 0 } else { HostClock.monotonic() + STAYS });
    loop {
        match this.spare.load(Ordering::Acquire) {
            BEGINS => break,
            ENDS => spawn::finish(index),
            _ => {}
        }
        if end.is_some_and(|end| HostClock.monotonic() >= end) {
            if slot().compare_exchange(name, 0, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                spawn::finish(index);
            }
            // Who has taken it says what for.
            end = None;
        }
        spawn::park(&this.spare, WAITS, end);
    }
    // SAFETY: the thread itself.
    let own = unsafe { area::own(index) };
    inherit(this, own);
    if signal::set_stack(index).is_err() {
        sys::write_all(2, b"janua: the host takes no signal stack any more\n");
        machine::stop_sandbox(125);
    }
    spawn::begin_guest(own, index)
}

/// The registers and the name of who has made the guest thread that begins.
fn inherit(this: &Shared, own: &mut Own) {
    // SAFETY: made by `begin` for this thread alone.
    let inherited = unsafe { Box::from_raw(core::mem::take(&mut own.inherited) as *mut Inherited) };
    let Inherited { vector, tls, gs, name } = *inherited;
    // What a processor has given it takes.
    let _ = HostedRegisters.fpu_restore(&vector);
    HostedRegisters.set_tls(tls);
    HostedRegisters.set_gs(gs);
    if this.name.each_ref().map(|word| word.load(Ordering::Relaxed)) != name {
        context::call_thread(this, name);
    }
}
