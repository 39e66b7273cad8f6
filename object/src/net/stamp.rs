//! The time of the last datagram a program has read (SIOCGSTAMP, socket(7)).

use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::net::ioctl::{SIOCGSTAMP, SIOCGSTAMP_NEW, SIOCGSTAMPNS, SIOCGSTAMPNS_NEW};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_rt::AtomicU64;

use crate::caller::Caller;

/// Nothing was read yet; something was, whose arrival nobody has looked at.
const NONE: u64 = 0;
const UNKNOWN: u64 = 1;

/// The time of a socket's last datagram. Arrivals are looked at from the first question on.
#[derive(Default)]
pub struct Stamp {
    wanted: AtomicBool,
    last: AtomicU64,
}

impl Stamp {
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// A datagram that arrived then (0: unknown) is read.
    pub fn note(&self, stamp: u64) {
        self.last.store(stamp.max(UNKNOWN), Ordering::Relaxed);
    }
}

/// SIOCGSTAMP and its variants. ENOENT when nothing was read yet, ENOTTY for other requests.
pub fn ioctl(stamp: &Stamp, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
    let unit = match request {
        SIOCGSTAMP | SIOCGSTAMP_NEW => 1000,
        SIOCGSTAMPNS | SIOCGSTAMPNS_NEW => 1,
        _ => return Err(Errno::ENOTTY),
    };
    stamp.wanted.store(true, Ordering::Relaxed);
    let time = match stamp.last.load(Ordering::Relaxed) {
        NONE => return Err(Errno::ENOENT),
        UNKNOWN => {
            // It is now, and stays so until the next.
            let now = caller.machine().clock().realtime();
            stamp.last.store(now, Ordering::Relaxed);
            now
        }
        time => time,
    };
    let time = [time / 1_000_000_000, time % 1_000_000_000 / unit];
    if caller.is_32() && matches!(request, SIOCGSTAMP | SIOCGSTAMPNS) {
        UserPtr::new(arg).write(caller.user(), &time.map(|word| word as u32))?;
    } else {
        UserPtr::new(arg).write(caller.user(), &time)?;
    }
    Ok(0)
}
