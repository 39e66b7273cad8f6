//! Time.

use janua_port::machine::ThreadId;
use janua_port::{Clock, Nanos};

use crate::missing;

/// A clock nobody has wound up.
pub struct SkeletonClock;

impl Clock for SkeletonClock {
    /// A counter of the machine's, scaled to nanoseconds (a time-stamp counter, a timer, the host's CLOCK_MONOTONIC). It must
    /// never step back, on no processor, and be cheap: every timeout and every traced call reads it.
    fn monotonic(&self) -> Nanos {
        missing("Clock::monotonic")
    }

    /// The same counter plus what a real-time clock, a boot parameter or the host said the time was at start.
    fn realtime(&self) -> Nanos {
        missing("Clock::realtime")
    }

    /// What the calling thread has run since its start, user and kernel together: accumulated at each switch on bare metal, the
    /// host's CLOCK_THREAD_CPUTIME_ID on a hosted machine. Only grows.
    fn thread_cpu(&self) -> Nanos {
        missing("Clock::thread_cpu")
    }

    /// The same of another thread or of all threads of its task. `None` is an answer: the kernel then shows what it last saw.
    fn cpu_of(&self, _thread: ThreadId, _whole_task: bool) -> Option<Nanos> {
        None
    }
}
