//! 32-bit guests: thread-local storage by entries of the host's descriptor table, and the segment registers.

use core::sync::atomic::Ordering;

use janua_abi::linux::i386::UserDesc;
use janua_abi::linux::i386::process::FIRST_THREAD_AREA;
use janua_abi::linux::{Errno, Result};
use janua_arch::x86_64::vdso32::{self, Data, Instruction};
use janua_entry::hosted::entry::THREAD_ENTRY;
use janua_port::{Compat, Vdso32};

use crate::context::here;
use crate::{area, identity};

/// The first entry, and how many of the host's three guests have. The last is the kernel's, by which it knows a thread.
const FIRST: u32 = FIRST_THREAD_AREA;
const COUNT: u32 = 2;
const _: () = assert!(FIRST + COUNT == THREAD_ENTRY);

/// One of the calling thread's entries. EINVAL.
pub fn set_thread_area(descriptor: &UserDesc) -> Result<()> {
    if !(FIRST..FIRST + COUNT).contains(&descriptor.entry) {
        return Err(Errno::EINVAL);
    }
    area::of(here()).touched.store(true, Ordering::Relaxed);
    identity::set_entry(descriptor)
}

/// 32-bit guests of this platform.
pub struct HostedCompat;

impl Compat for HostedCompat {
    fn thread_areas(&self) -> (u32, u32) {
        (FIRST, COUNT)
    }

    fn vdso(&self) -> Vdso32 {
        vdso32::PLACES
    }

    /// By `int $0x80` whatever the processor offers: a gate turns it into a trap, and a faster instruction would be no faster.
    fn vdso_image(&self) -> [u8; vdso32::SIZE] {
        vdso32::image(Instruction::Int80, &Data::default())
    }
}
