//! Time.

/// Nanoseconds; since boot for the monotonic clock, since 1970 for the real-time clock.
pub type Nanos = u64;

/// Clocks that run beside the two main ones (clock_gettime(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherClock {
    /// Monotonic, not slewed by the time daemon.
    MonotonicRaw,
    /// The two main ones as of the last tick: cheaper, and behind by up to a tick.
    MonotonicCoarse,
    RealtimeCoarse,
    /// Monotonic, counting time asleep too.
    Boottime,
    /// International atomic time: real time without leap seconds.
    Tai,
}

/// The clocks of a machine. Reading one never blocks.
pub trait Clock: Send + Sync {
    /// Nanoseconds since an arbitrary start; never steps back; counts while the machine sleeps only if it must.
    fn monotonic(&self) -> Nanos;
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    fn realtime(&self) -> Nanos;
    /// Another clock; where the machine has one less, the main clock it derives from.
    fn other(&self, clock: OtherClock) -> Nanos {
        match clock {
            OtherClock::RealtimeCoarse | OtherClock::Tai => self.realtime(),
            OtherClock::MonotonicRaw | OtherClock::MonotonicCoarse | OtherClock::Boottime => self.monotonic(),
        }
    }
}
