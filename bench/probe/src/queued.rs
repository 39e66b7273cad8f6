//! System calls by a signal queued to oneself, as OctoPOS' guest layer on Linux makes them (E. Dengler's thesis, 4.2.1): the
//! signal's value points at a record with number, six words and result; the handler lets the signal through again, looks the number
//! up and calls the function. What Janua's gate `signal` is compared with.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::isolate::isolated;
use crate::meter::Meter;
use crate::{Samples, Skip, sys};

/// A real-time signal that no C library uses for itself.
const SIGNAL: i32 = 40;
/// What the empty functions return.
const ANSWER: usize = 42;
const EMPTY: usize = 6;

#[repr(C)]
struct Record {
    number: usize,
    words: [usize; 6],
    result: usize,
}

/// The head of the host's `siginfo_t` as far as a queued signal has it.
#[repr(C)]
struct Info {
    signal: i32,
    errno: i32,
    code: i32,
    pad: i32,
    pid: i32,
    uid: u32,
    value: usize,
    rest: [usize; 12],
}

const _: () = assert!(size_of::<Info>() == 128);

type Function = fn([usize; 6]) -> usize;

fn empty(words: [usize; 6]) -> usize {
    std::hint::black_box(words);
    ANSWER
}

/// The table of functions: filled before the first call, as at boot.
static TABLE: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];

fn dispatch(number: usize, words: [usize; 6]) -> usize {
    let Some(function) = TABLE.get(number).map(|entry| entry.load(Ordering::Relaxed)).filter(|address| *address != 0) else {
        // The thesis' dispatcher panics.
        std::process::abort()
    };
    // SAFETY: the table holds addresses of `Function`s only.
    unsafe { std::mem::transmute::<usize, Function>(function)(words) }
}

extern "C" fn on_call(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the signal comes from `call` only, whose record outlives it.
    let record = unsafe { &mut *((*info.cast::<Info>()).value as *mut Record) };
    // The function may take long, or make such calls itself.
    let mask = 1u64 << (SIGNAL - 1);
    const SIG_UNBLOCK: usize = 1;
    // SAFETY: the mask is ours.
    unsafe { sys::call::<{ libc::SYS_rt_sigprocmask }>([SIG_UNBLOCK, &raw const mask as usize, 0, 8, 0, 0]) };
    record.result = dispatch(record.number, record.words);
}

/// One call; asks the host for thread and process where `ids` does not give them.
fn call(ids: Option<(usize, usize)>) -> Result<(), Skip> {
    let mut record = Record { number: EMPTY, words: [7; 6], result: 0 };
    let info =
        Info { signal: SIGNAL, errno: 0, code: -1, pad: 0, pid: 0, uid: 0, value: &raw mut record as usize, rest: [0; 12] };
    // SAFETY: neither call has an argument or an effect.
    let (tid, pid) = ids.unwrap_or_else(|| unsafe {
        (sys::call::<{ libc::SYS_gettid }>([0; 6]) as usize, sys::call::<{ libc::SYS_getpid }>([0; 6]) as usize)
    });
    // SAFETY: information and record live until the handler has run, which is before the call returns.
    let sent =
        unsafe { sys::call::<{ libc::SYS_rt_tgsigqueueinfo }>([pid, tid, SIGNAL as usize, &raw const info as usize, 0, 0]) };
    // SAFETY: the handler may have written it.
    let result = unsafe { (&raw const record.result).read_volatile() };
    match (sent, result) {
        (0, ANSWER) => Ok(()),
        (error, _) if error < 0 => Err(Skip::call("rt_tgsigqueueinfo", -error)),
        _ => Err(Skip("the handler did not run".into())),
    }
}

fn listen() -> Result<(), Skip> {
    TABLE[EMPTY].store(empty as *const () as usize, Ordering::Relaxed);
    // SAFETY: installs a handler that touches the record it is given only.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_call as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        if libc::sigaction(SIGNAL, &action, ptr::null_mut()) != 0 {
            return Err(Skip::last("sigaction"));
        }
    }
    Ok(())
}

/// Row `queued-3`: three host calls a call, as in the thesis.
pub fn asking(meter: &Meter) -> Samples {
    isolated(|| {
        listen()?;
        meter.each(|| call(None))
    })
}

/// Row `queued-1`: one, the ids known: the improvement the thesis proposes.
pub fn knowing(meter: &Meter) -> Samples {
    isolated(|| {
        listen()?;
        // SAFETY: neither call has an argument or an effect.
        let (tid, pid) =
            unsafe { (sys::call::<{ libc::SYS_gettid }>([0; 6]) as usize, sys::call::<{ libc::SYS_getpid }>([0; 6]) as usize) };
        meter.each(|| call(Some((tid, pid))))
    })
}
