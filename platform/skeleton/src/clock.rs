//! Time.

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

    /// The same counter plus the time at start, as a real-time clock, a boot parameter or the host gave it.
    fn realtime(&self) -> Nanos {
        missing("Clock::realtime")
    }
}
