//! Page tables of the SPARC reference MMU: the user part of the one context there is. The kernel's part of the root is the boot code's.

use core::sync::atomic::{Ordering, compiler_fence};

use janua_arch::sparc::cpu;
use janua_paging::format::srmmu::{PAGE_ENTRY, Srmmu};
use janua_paging::table::NoMemory;
use janua_paging::tree::{Nodes, Tree};
use janua_paging::{Frames, PAGE, PageFrame};

use crate::boot::JANUA_LEVEL1;
use crate::clock;
use crate::frames::{FRAMES, Physical};

/// User space: not its beginning, so that a null pointer leads nowhere, nor the page of devices ([`DEVICES`]), and up to where the
/// memory is mapped.
pub const LOW: usize = 0x1_0000;
/// Where user code may read the page with the timers, its stopwatch: the counter of the running one is at 0x320.
pub const DEVICES: usize = 0xf000;
pub const HIGH: usize = 0x4000_0000;

/// The memory of the tables.
pub struct UserPart(());

/// The tables of user space.
pub type Hardware = Tree<Srmmu, UserPart>;

/// The tables with the page of devices, which user code may read. Called once.
pub fn make() -> Result<Hardware, NoMemory> {
    let mut tables = Tree::new(JANUA_LEVEL1.0.get() as usize, UserPart(()));
    // Access 0 is reading, for all; devices are not cached.
    tables.show(DEVICES, (clock::DEVICES >> 4) as u32 | PAGE_ENTRY)?;
    Ok(tables)
}

/// An entry of a table, by their addresses.
fn place(table: usize, index: usize) -> *mut u32 {
    (table as *mut u32).wrapping_add(index)
}

impl Nodes<Srmmu> for UserPart {
    const END: usize = HIGH;

    #[inline]
    fn load(&self, table: usize, index: usize) -> u32 {
        // SAFETY: a table of user space's, which is where it is mapped; who changes it has `&mut self`.
        unsafe { place(table, index).read_volatile() }
    }

    #[inline]
    fn store(&mut self, table: usize, index: usize, word: u32) {
        // SAFETY: as above.
        unsafe { place(table, index).write_volatile(word) };
    }

    fn make(&mut self) -> Option<usize> {
        // A frame a table: most of it is not used, and tables are few.
        FRAMES.take().map(Physical::address_of)
    }

    fn free(&mut self, table: usize) {
        // The root is the boot code's.
        if table == JANUA_LEVEL1.0.get() as usize {
            return;
        }
        FRAMES.release(PageFrame(table / PAGE));
    }

    fn flush(&mut self, _start: usize, _end: usize) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the kernel is the supervisor.
        unsafe { cpu::mmu_flush() };
    }
}
