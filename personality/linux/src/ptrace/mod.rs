//! Tracing of one thread by another: ptrace(2).
//!
//! A tracee stops itself ([`stop`]) and lays its registers down where its tracer finds them (`crate::processor::regs`); what the tracer wants
//! written to its memory it writes itself. So nothing of the machine is needed to reach into another process but to read its memory,
//! and a tracer can have done in a tracee what the tracee could do by itself.

mod attach;
mod debug;
pub mod request;
mod stop;
mod tracee;
mod wait;

pub use attach::{Birth, birth, born, held, unborn};
pub use request::{PtraceRequest, ptrace};
pub use stop::{
    before_leave, call_begins, call_ends, clean, continued, event, hurry, is_inside, program_begins, signal_stop, stepped,
    stopped, trap,
};
pub use tracee::{Kind, Trace, Tracee, parent_learns, process_ended, renumber, thread_ended, tracer_ends};
pub use wait::look;

use crate::Seat;

/// Whether a thread is in a stop of its tracer's, for /proc.
pub fn is_stopped(seat: &Seat) -> bool {
    seat.trace.tracee().is_some_and(|tracee| tracee.state.lock().stop.is_some())
}

/// The number of a thread's tracer, 0 without one.
pub fn tracer_of(seat: &Seat) -> u32 {
    seat.trace.tracee().map_or(0, |tracee| tracee.tracer_tid())
}
