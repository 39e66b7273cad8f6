//! Rows about the gate `ring`: what a call costs when many are submitted by one store.

use crate::gate_ring::Ring;
use crate::meter::Meter;
use crate::{Samples, Skip};

/// Rows `by-ring-N`: so many getppid(2), each filled in, submitted by one store, made while the program waits, and their results read.
pub fn getppid<const N: usize>(meter: &Meter) -> Samples {
    let mut ring = Ring::open()?;
    let parent = i64::from(std::os::unix::process::parent_id());
    meter.each(|| {
        for tag in 0..N {
            // SAFETY: the call has no arguments.
            unsafe { ring.push(libc::SYS_getppid, [0; 6], tag) };
        }
        ring.make(|_, result| if result == parent { Ok(()) } else { Err(Skip(format!("a result by the ring was {result}"))) })
    })
}
