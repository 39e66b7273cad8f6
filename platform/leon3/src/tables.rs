//! Page tables of the SPARC reference MMU: three levels of 256, 64 and 64 entries, pages of 4 KiB.
//!
//! There is one address space. The kernel's part of level 1 is the boot code's; user space lies below it.

use janua_arch::sparc::cpu;
use janua_port::Prot;

use crate::boot::JANUA_LEVEL1;
use crate::frames::{self, PAGE};
use crate::lock::Mutex;

/// User space: not its beginning, so that a null pointer leads nowhere, nor the page of devices ([`DEVICES`]), and up to where the
/// memory is mapped.
pub const LOW: usize = 0x1_0000;
/// Where user code may read the page with the timers, its stopwatch: the counter of the running one is at 0x320.
pub const DEVICES: usize = 0xf000;
pub const HIGH: usize = 0x4000_0000;

/// Low bits of an entry: a pointer to a table, a page.
const TABLE: u32 = 1;
const PAGE_ENTRY: u32 = 2;
const CACHED: u32 = 0x80;
/// The address in an entry.
const ADDRESS: u32 = 0xffff_ff00;

/// Guards the tables.
static TABLES: Mutex<()> = Mutex::new(());

/// The access field. Rights the MMU does not have apart come together: what may be written may be read; pages without any right are
/// the supervisor's.
fn access(prot: Prot) -> u32 {
    let code = match (prot.write, prot.exec, prot.read) {
        (true, true, _) => 3,
        (true, false, _) => 1,
        (false, true, true) => 2,
        (false, true, false) => 4,
        (false, false, true) => 0,
        (false, false, false) => 7,
    };
    code << 2
}

/// The entry of a user address, its tables made if `make`. `None` without them.
fn entry(addr: usize, make: bool) -> Option<*mut u32> {
    let mut table = JANUA_LEVEL1.0.get().cast::<u32>();
    for index in [addr >> 24, addr >> 18 & 63] {
        // SAFETY: a table of at least 64 entries, of 256 on level 1; the lock is held.
        let slot = unsafe { table.add(index) };
        // SAFETY: as above.
        let mut found = unsafe { slot.read_volatile() };
        if found == 0 {
            if !make {
                return None;
            }
            // A frame a table: most of it is not used, and tables are few.
            found = (frames::take()? >> 4) as u32 | TABLE;
            // SAFETY: as above.
            unsafe { slot.write_volatile(found) };
        }
        table = ((found & !3) << 4) as *mut u32;
    }
    // SAFETY: the index is below 64.
    Some(unsafe { table.add(addr >> 12 & 63) })
}

fn flush() {
    // SAFETY: the kernel is the supervisor.
    unsafe { cpu::mmu_flush() };
}

/// Makes the page at `addr` (page aligned, the user's) a new one of zeros. False without memory.
#[must_use]
pub fn map(addr: usize, prot: Prot) -> bool {
    let _guard = TABLES.lock();
    let Some(slot) = entry(addr, true) else { return false };
    let Some(frame) = frames::take() else { return false };
    // SAFETY: an entry of a table; the lock is held.
    let old = unsafe { slot.replace((frame >> 4) as u32 | CACHED | access(prot) | PAGE_ENTRY) };
    flush();
    release(old);
    true
}

/// Lets user code read the page of devices at `device` at the address `addr`, for good. False without memory.
#[must_use]
pub fn show(addr: usize, device: usize) -> bool {
    let _guard = TABLES.lock();
    let Some(slot) = entry(addr, true) else { return false };
    // SAFETY: an entry of a table; the lock is held. Access 0 is reading, for all.
    unsafe { slot.write_volatile((device >> 4) as u32 | PAGE_ENTRY) };
    true
}

/// Removes the page at `addr`, if there is one.
pub fn unmap(addr: usize) {
    let _guard = TABLES.lock();
    if let Some(slot) = entry(addr, false) {
        // SAFETY: an entry of a table; the lock is held.
        let old = unsafe { slot.replace(0) };
        flush();
        release(old);
    }
}

/// Changes the rights to the page at `addr`. False when there is none.
#[must_use]
pub fn protect(addr: usize, prot: Prot) -> bool {
    let _guard = TABLES.lock();
    let Some(slot) = entry(addr, false) else { return false };
    // SAFETY: an entry of a table; the lock is held.
    let old = unsafe { slot.read_volatile() };
    if old == 0 {
        return false;
    }
    // SAFETY: as above.
    unsafe { slot.write_volatile(old & ADDRESS | CACHED | access(prot) | PAGE_ENTRY) };
    flush();
    true
}

/// Whether there is a page at `addr`.
pub fn is_mapped(addr: usize) -> bool {
    let _guard = TABLES.lock();
    // SAFETY: an entry of a table; the lock is held.
    entry(addr, false).is_some_and(|slot| unsafe { slot.read_volatile() } != 0)
}

fn release(old: u32) {
    if old != 0 {
        // SAFETY: a page of user space, made by `map`; its entry is gone and so are the translations of it.
        unsafe { frames::give_back(((old & ADDRESS) << 4) as usize & !(PAGE - 1)) };
    }
}
