//! What can be set of the inet protocols (/proc/sys/net/ipv4).

use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use janua_abi::linux::{Errno, Result};

use super::ports::EPHEMERAL;
use crate::net::common::MostWaiting;

/// The first port that anybody may bind.
const FREE: u32 = 1024;

pub struct Settings {
    /// The first and the last port to choose from, in the lower and the upper half.
    ports: AtomicU32,
    /// ip_unprivileged_port_start.
    free: AtomicU32,
    /// ip_nonlocal_bind: addresses of others can be bound.
    pub nonlocal: AtomicBool,
    pub waiting: MostWaiting,
}

impl Default for Settings {
    fn default() -> Settings {
        let settings = Settings {
            ports: AtomicU32::new(0),
            free: AtomicU32::new(FREE),
            nonlocal: AtomicBool::new(false),
            waiting: MostWaiting::default(),
        };
        settings.store_ports(*EPHEMERAL.start(), *EPHEMERAL.end());
        settings
    }
}

impl Settings {
    fn store_ports(&self, first: u16, last: u16) {
        self.ports.store(u32::from(first) | u32::from(last) << 16, Ordering::Relaxed);
    }

    /// ip_local_port_range.
    pub fn ports(&self) -> RangeInclusive<u16> {
        let ports = self.ports.load(Ordering::Relaxed);
        ports as u16..=(ports >> 16) as u16
    }

    /// EINVAL for the wrong way round, and for ports not everybody may bind.
    pub fn set_ports(&self, first: u16, last: u16) -> Result<()> {
        if first == 0 || last < first || u32::from(first) < self.first_free() {
            return Err(Errno::EINVAL);
        }
        self.store_ports(first, last);
        Ok(())
    }

    pub fn first_free(&self) -> u32 {
        self.free.load(Ordering::Relaxed)
    }

    /// EINVAL for one behind the first to choose from.
    pub fn set_first_free(&self, first: u32) -> Result<()> {
        if first > u32::from(*self.ports().start()) {
            return Err(Errno::EINVAL);
        }
        self.free.store(first, Ordering::Relaxed);
        Ok(())
    }
}
