//! membarrier(2): barriers on the cores that run a space's threads, by an interrupt to each ([`crate::shoot`]).
//!
//! One kind of barrier serves for all: it makes stores visible and serialises, on the cores that use the space or on all cores. What
//! the commands differ in is who must have registered for them.

use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::{Errno, Result};

use crate::shoot;
use crate::tables::Root;

/// Commands (membarrier(2), linux/membarrier.h). Those of restartable sequences are not known here.
const GLOBAL: u32 = 1 << 0;
const GLOBAL_EXPEDITED: u32 = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: u32 = 1 << 2;
const PRIVATE_EXPEDITED: u32 = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: u32 = 1 << 4;
const PRIVATE_EXPEDITED_SYNC_CORE: u32 = 1 << 5;
const REGISTER_PRIVATE_EXPEDITED_SYNC_CORE: u32 = 1 << 6;
const GET_REGISTRATIONS: u32 = 1 << 9;
const ALL: u32 = GLOBAL
    | GLOBAL_EXPEDITED
    | REGISTER_GLOBAL_EXPEDITED
    | PRIVATE_EXPEDITED
    | REGISTER_PRIVATE_EXPEDITED
    | PRIVATE_EXPEDITED_SYNC_CORE
    | REGISTER_PRIVATE_EXPEDITED_SYNC_CORE
    | GET_REGISTRATIONS;

/// What a space has registered for: the commands it did so with.
#[derive(Default)]
pub struct Registered(AtomicU32);

impl Registered {
    /// As at a fork.
    pub fn copy(&self) -> Registered {
        Registered(AtomicU32::new(self.0.load(Ordering::Relaxed)))
    }

    /// As at an exec.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// membarrier(2) for a space. EINVAL for commands there are none of, EPERM without the registration.
pub fn membarrier(root: &Root, registered: &Registered, command: u32) -> Result<usize> {
    let before = |needed: u32| if registered.0.load(Ordering::Relaxed) & needed != 0 { Ok(()) } else { Err(Errno::EPERM) };
    match command {
        0 => return Ok(ALL as usize),
        GLOBAL | GLOBAL_EXPEDITED => shoot::barrier_elsewhere(None),
        PRIVATE_EXPEDITED => {
            before(REGISTER_PRIVATE_EXPEDITED)?;
            shoot::barrier_elsewhere(Some(root));
        }
        PRIVATE_EXPEDITED_SYNC_CORE => {
            before(REGISTER_PRIVATE_EXPEDITED_SYNC_CORE)?;
            shoot::barrier_elsewhere(Some(root));
        }
        REGISTER_GLOBAL_EXPEDITED | REGISTER_PRIVATE_EXPEDITED | REGISTER_PRIVATE_EXPEDITED_SYNC_CORE => {
            registered.0.fetch_or(command, Ordering::Relaxed);
        }
        GET_REGISTRATIONS => {
            let reported = registered.0.load(Ordering::Relaxed);
            // Linux reports the second kind of private registration as both.
            let both = if reported & REGISTER_PRIVATE_EXPEDITED_SYNC_CORE != 0 { REGISTER_PRIVATE_EXPEDITED } else { 0 };
            return Ok((reported | both) as usize);
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}
