//! Time, from the host's vDSO.

use janua_abi::linux::time::{TimeSpec, clock};
use janua_port::clock::OtherClock;
use janua_port::{Clock, Nanos};

use crate::boot;
use crate::sys::{self, nr};

fn by_call(clock: i32) -> Nanos {
    let mut time = TimeSpec::default();
    // SAFETY: `time` is ours and of the right size.
    let _ = unsafe { sys::raw(nr::CLOCK_GETTIME, [clock as usize, &raw mut time as usize, 0, 0, 0, 0]) };
    time.sec as u64 * 1_000_000_000 + time.nsec as u64
}

fn by_vdso(clock: i32) -> Nanos {
    let address = boot::info().vdso.clock_gettime;
    if address == 0 {
        return by_call(clock);
    }
    let mut time = TimeSpec::default();
    // SAFETY: the supervisor found this address in the vDSO's symbol table; the vDSO is mapped in every process and no guest
    // may unmap it; the function takes a clock and a timespec and uses no vector registers.
    unsafe {
        let function: extern "C" fn(i32, *mut TimeSpec) -> i32 = core::mem::transmute(address as usize);
        function(clock, &raw mut time);
    }
    time.sec as u64 * 1_000_000_000 + time.nsec as u64
}

/// The host's clocks.
pub struct HostClock;

impl Clock for HostClock {
    fn monotonic(&self) -> Nanos {
        by_vdso(clock::MONOTONIC)
    }

    fn realtime(&self) -> Nanos {
        by_vdso(clock::REALTIME)
    }

    fn other(&self, clock: OtherClock) -> Nanos {
        by_vdso(match clock {
            OtherClock::MonotonicRaw => 4,
            OtherClock::RealtimeCoarse => 5,
            OtherClock::MonotonicCoarse => 6,
            OtherClock::Boottime => 7,
            OtherClock::Tai => 11,
        })
    }
}

/// Processor time the calling thread has used.
pub fn of_caller() -> Nanos {
    by_call(clock::THREAD_CPUTIME_ID)
}

/// The same of another, by the host's ids of its process and of itself, or of all of the process.
pub fn of_other((pid, tid): (u32, u32), whole_task: bool) -> Option<Nanos> {
    // clock_getcpuclockid(3): the complement of the id above three bits, of which 2 is "scheduler" and 4 "one thread". The
    // host lets a thread be measured from within its own process only, but a process from anywhere.
    let clock = if whole_task { !(pid as usize) << 3 | 2 } else { !(tid as usize) << 3 | 6 };
    let mut time = TimeSpec::default();
    // SAFETY: `time` is ours and of the right size.
    unsafe { sys::raw(nr::CLOCK_GETTIME, [clock as u32 as usize, &raw mut time as usize, 0, 0, 0, 0]) }.ok()?;
    Some(time.sec as u64 * 1_000_000_000 + time.nsec as u64)
}
