//! The address space: one, for the one task a LEON3 has.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_paging::{Platform, UserSpace};
use janua_port::Space;
use janua_port::space::Bounds;

use crate::frames::{FRAMES, Physical};
use crate::tables::{self, HIGH, Hardware, LOW};

/// User space.
pub struct Only;

/// Makes the space, once. ENOMEM, EBUSY.
pub fn make() -> Result<Arc<UserSpace<Only>>> {
    static MADE: AtomicBool = AtomicBool::new(false);
    if MADE.swap(true, Ordering::Relaxed) {
        return Err(Errno::EBUSY);
    }
    let table = tables::make().map_err(|_| Errno::ENOMEM)?;
    Ok(UserSpace::new(&FRAMES, table, Only))
}

impl Platform for Only {
    type Frames = Physical;
    type Table = Hardware;

    /// No personality here moves mappings.
    const MOVES: bool = false;

    fn bounds(&self) -> Bounds {
        Bounds { low: LOW, high: HIGH, holes: [(0, 0); 2] }
    }

    /// A register window goes to a stack in the middle of a trap, and cannot wait for a page (`arch/src/sparc/window.rs`).
    fn settle(&self, paged: &janua_paging::Space<Physical, Hardware>, addr: usize, len: usize) -> Result<()> {
        paged.bring_all(addr, addr + len)
    }

    fn leave(_space: &UserSpace<Only>) -> Result<Arc<dyn Space>> {
        Err(Errno::ENOSYS)
    }
}
