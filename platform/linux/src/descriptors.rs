//! Who pays for the host's descriptors. All processes of a sandbox have one table of them, so the process that makes one is charged for it
//! until it is closed, by whichever process ([`janua_port::accounts::Descriptors`]).

use core::sync::atomic::{AtomicU8, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_platform_boot::DESCRIPTORS_MOST;
use janua_port::{HostFd, Payer};

use crate::{area, boot, context, spawn};

/// By number: the payer's, and 0 for those that were there before the kernel. Memory is taken where it is used.
// SAFETY: a section of zeroes as `.bss` is, which the link puts behind it (`image/linux/far.ld`).
#[unsafe(link_section = ".bss.far")]
static PAYERS: [AtomicU8; DESCRIPTORS_MOST] = [const { AtomicU8::new(0) }; DESCRIPTORS_MOST];

/// Who pays for what the calling thread takes.
fn payer() -> Payer {
    let here = context::here();
    let serves = area::of(here).serves.load(Ordering::Relaxed) as usize;
    // The guest is there as long as it is served: its thread waits for the end of that.
    let who = serves.checked_sub(1).unwrap_or(here);
    if spawn::has_guest(who) { spawn::guest(who).payer() } else { Payer::KERNEL }
}

/// Makes a descriptor for the calling thread. ENFILE, and what `make` returns.
pub fn charged(make: impl FnOnce() -> Result<usize>) -> Result<HostFd> {
    made(payer(), make)
}

/// Makes a descriptor that serves the kernel itself.
pub fn own(make: impl FnOnce() -> Result<usize>) -> Result<HostFd> {
    made(Payer::KERNEL, make)
}

fn made(payer: Payer, make: impl FnOnce() -> Result<usize>) -> Result<HostFd> {
    let descriptors = &boot::accounts().descriptors;
    descriptors.take(payer)?;
    let made = make().and_then(|fd| Ok((PAYERS.get(fd).ok_or(Errno::ENFILE)?, HostFd(fd as i32))));
    match made {
        Ok((place, fd)) => {
            place.store(payer.number(), Ordering::Relaxed);
            Ok(fd)
        }
        Err(errno) => {
            descriptors.give(payer);
            // The table is everybody's, and not the calling process'.
            Err(if errno == Errno::EMFILE { Errno::ENFILE } else { errno })
        }
    }
}

/// Closes a descriptor and gives it back to whom it was charged.
pub fn closed(fd: HostFd, close: impl FnOnce()) {
    let payer = PAYERS.get(fd.0 as usize).and_then(|place| Payer::of_number(place.swap(0, Ordering::Relaxed)));
    close();
    if let Some(payer) = payer {
        boot::accounts().descriptors.give(payer);
    }
}
