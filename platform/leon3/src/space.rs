//! The address space: one, for the one task a LEON3 has.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_paging::{Behind, Object, PAGE};
use janua_port::space::Bounds;
use janua_port::{Backing, Prot, Space};

use crate::frames::{FRAMES, Physical};
use crate::tables::{self, HIGH, Hardware, LOW};

/// User space.
pub struct UserSpace(Arc<janua_paging::Space<Physical, Hardware>>);

const BOUNDS: Bounds = Bounds { low: LOW, high: HIGH, holes: [(0, 0); 2] };

/// Makes the space, once. ENOMEM, EBUSY.
pub fn make() -> Result<Arc<UserSpace>> {
    static MADE: AtomicBool = AtomicBool::new(false);
    if MADE.swap(true, Ordering::Relaxed) {
        return Err(Errno::EBUSY);
    }
    let table = tables::make().map_err(|_| Errno::ENOMEM)?;
    Ok(Arc::new(UserSpace(janua_paging::Space::new(&FRAMES, table))))
}

fn check(addr: usize, len: usize) -> Result<()> {
    let aligned = addr.is_multiple_of(PAGE) && len.is_multiple_of(PAGE) && len > 0;
    if aligned && BOUNDS.contains(addr, len) { Ok(()) } else { Err(Errno::EINVAL) }
}

impl UserSpace {
    /// Gives mappings their pages: a register window goes to a stack in the middle of a trap, and cannot wait for one
    /// (`arch/src/sparc/window.rs`).
    fn bring(&self, addr: usize, len: usize) -> Result<()> {
        self.0.bring_all(addr, addr + len)
    }
}

impl Space for UserSpace {
    fn map(&self, addr: usize, len: usize, prot: Prot, backing: &Backing) -> Result<()> {
        check(addr, len)?;
        let behind = match backing {
            Backing::Anon => Behind::Zero,
            Backing::AnonShared => Behind::Object { object: Object::new(&FRAMES, len as u64), page: 0, shared: true },
            // There is no host.
            Backing::Host { .. } => return Err(Errno::ENODEV),
        };
        self.0.map(addr, addr + len, prot, behind)?;
        self.bring(addr, len).inspect_err(|_| self.0.unmap(addr, addr + len))
    }

    fn unmap(&self, addr: usize, len: usize) -> Result<()> {
        check(addr, len)?;
        self.0.unmap(addr, addr + len);
        Ok(())
    }

    fn protect(&self, addr: usize, len: usize, prot: Prot) -> Result<()> {
        check(addr, len)?;
        self.0.protect(addr, addr + len, prot)?;
        self.bring(addr, len)
    }

    fn remap(&self, old: usize, old_len: usize, new: usize, new_len: usize) -> Result<()> {
        // No personality here moves mappings; who does has to take the move back where pages are lacking.
        let _ = (old, old_len, new, new_len);
        Err(Errno::ENOSYS)
    }

    fn remap_keep(&self, old: usize, len: usize, new: usize) -> Result<()> {
        let _ = (old, len, new);
        Err(Errno::ENOSYS)
    }

    fn advise(&self, addr: usize, len: usize, advice: u32) -> Result<()> {
        check(addr, len)?;
        self.0.advise(addr, addr + len, advice)?;
        self.bring(addr, len)
    }

    fn sync(&self, addr: usize, len: usize, _flags: u32) -> Result<()> {
        // No file is behind a mapping.
        check(addr, len)
    }

    fn resident(&self, addr: usize, len: usize, out: &mut [u8]) -> Result<()> {
        check(addr, len)?;
        self.0.residence(addr, addr + len, out);
        Ok(())
    }

    fn reset(self: Arc<Self>, shared: bool) -> Result<Arc<dyn Space>> {
        if shared {
            return Err(Errno::ENOSYS);
        }
        self.0.clear();
        Ok(self)
    }

    fn bounds(&self) -> Bounds {
        BOUNDS
    }
}
