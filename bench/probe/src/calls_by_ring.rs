//! Rows about the gate `ring`: what a call costs when many are submitted by one store.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::meter::Meter;
use crate::{Samples, Skip, sys};

const OPEN: i64 = 400;
const CLOSE: i64 = 401;
const WAIT: i64 = 402;

/// Entries of each kind in the memory below.
const ENTRIES: usize = 256;

#[repr(C)]
struct Call {
    number: u32,
    flags: u32,
    words: [u64; 6],
    tag: u64,
}

#[repr(C)]
struct End {
    tag: AtomicU64,
    result: AtomicU64,
}

/// The ring's memory: counts, submissions, completions.
#[repr(C, align(4096))]
struct Memory {
    submitted: AtomicU32,
    reaped: AtomicU32,
    unused: [u64; 7],
    posted: AtomicU64,
    taken: AtomicU64,
    flags: AtomicU64,
    unused_too: [u64; 5],
    calls: [Call; ENTRIES],
    ends: [End; ENTRIES],
}

/// Closes the thread's ring before its memory goes.
struct Opened;

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: without arguments.
        let _ = unsafe { sys::call3::<CLOSE>("ring_close", 0, 0, 0) };
    }
}

/// Rows `by-ring-N`: so many getppid(2), each filled in, submitted by one store, made while the program waits, and their results read.
pub fn getppid<const N: usize>(meter: &Meter) -> Samples {
    // SAFETY: numbers, for which all bits zero are a value.
    let mut memory: Box<Memory> = unsafe { Box::new(core::mem::MaybeUninit::<Memory>::zeroed()).assume_init() };
    let at = (&raw mut *memory) as usize;
    // SAFETY: memory for a ring of this size, until `Opened` is dropped.
    let opened = unsafe { sys::call::<OPEN>([at, ENTRIES, ENTRIES, 1, 0, 0]) };
    if opened < 0 {
        return Err(Skip::call("ring_open", -opened));
    }
    let closes = Opened;
    let (mut submitted, mut reaped) = (0_u32, 0_u32);
    let parent = i64::from(std::os::unix::process::parent_id());
    let samples = meter.each(|| {
        for n in 0..N as u32 {
            let call = &mut memory.calls[submitted.wrapping_add(n) as usize % ENTRIES];
            call.number = libc::SYS_getppid as u32;
            call.flags = 0;
            call.tag = u64::from(n);
        }
        submitted = submitted.wrapping_add(N as u32);
        memory.submitted.store(submitted, Ordering::Release);
        // SAFETY: no pointers.
        let there = unsafe { sys::call::<WAIT>([N, 0, 0, 0, 0, 0]) };
        let posted = memory.posted.load(Ordering::Acquire) as u32;
        let mut right = 0;
        while reaped != posted {
            right += usize::from(memory.ends[reaped as usize % ENTRIES].result.load(Ordering::Relaxed) as i64 == parent);
            reaped = reaped.wrapping_add(1);
        }
        memory.reaped.store(reaped, Ordering::Release);
        if right == N { Ok(()) } else { Err(Skip(format!("ring_wait gave {there}, and {right} of {N} results are right"))) }
    });
    drop(closes);
    samples
}
