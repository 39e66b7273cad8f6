//! Time.

use crate::machine::ThreadId;

/// Nanoseconds; since boot for the monotonic clock, since 1970 for the real-time clock.
pub type Nanos = u64;

/// The clocks of a machine. Reading one never blocks.
pub trait Clock: Send + Sync {
    /// Nanoseconds since an arbitrary start; never steps back; counts while the machine sleeps only if it must.
    fn monotonic(&self) -> Nanos;
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    fn realtime(&self) -> Nanos;
    /// Nanoseconds of processor time the calling thread has used (user and kernel together).
    fn thread_cpu(&self) -> Nanos;
    /// Processor time another thread has used, or all threads of its task together; `None` when the machine cannot tell.
    fn cpu_of(&self, _thread: ThreadId, _whole_task: bool) -> Option<Nanos> {
        None
    }
}
