//! Time, from the host's vDSO.

use janua_port::{Clock, Nanos};

use crate::boot;
use crate::sys::{self, nr};

#[repr(C)]
#[derive(Default)]
struct Timespec {
    seconds: i64,
    nanos: i64,
}

const REALTIME: usize = 0;
const MONOTONIC: usize = 1;
const THREAD_CPU: usize = 3;

fn by_call(clock: usize) -> Nanos {
    let mut time = Timespec::default();
    // SAFETY: `time` is ours and of the right size.
    let _ = unsafe { sys::raw(nr::CLOCK_GETTIME, [clock, &raw mut time as usize, 0, 0, 0, 0]) };
    time.seconds as u64 * 1_000_000_000 + time.nanos as u64
}

fn by_vdso(clock: usize) -> Nanos {
    let address = boot::info().vdso_clock_gettime;
    if address == 0 {
        return by_call(clock);
    }
    let mut time = Timespec::default();
    // SAFETY: the supervisor found this address in the vDSO's symbol table; the vDSO is mapped in every process and no guest
    // may unmap it; the function takes a clock and a timespec and uses no vector registers.
    unsafe {
        let function: extern "C" fn(usize, *mut Timespec) -> i32 = core::mem::transmute(address as usize);
        function(clock, &raw mut time);
    }
    time.seconds as u64 * 1_000_000_000 + time.nanos as u64
}

/// The host's clocks.
pub struct HostClock;

impl Clock for HostClock {
    fn monotonic(&self) -> Nanos {
        by_vdso(MONOTONIC)
    }

    fn realtime(&self) -> Nanos {
        by_vdso(REALTIME)
    }

    fn thread_cpu(&self) -> Nanos {
        by_call(THREAD_CPU)
    }
}
