//! The address space: one, for the one task a LEON3 has.

use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_port::space::Bounds;
use janua_port::{Backing, Prot, Space};

use crate::frames::PAGE;
use crate::tables::{self, HIGH, LOW};

/// User space.
pub struct UserSpace;

fn pages(addr: usize, len: usize) -> Result<impl Iterator<Item = usize>> {
    let bounds = Bounds { low: LOW, high: HIGH, holes: [(0, 0); 2] };
    if !bounds.contains(addr, len) || addr % PAGE != 0 || len % PAGE != 0 {
        return Err(Errno::ENOMEM);
    }
    Ok((addr..addr + len).step_by(PAGE))
}

impl Space for UserSpace {
    fn map(&self, addr: usize, len: usize, prot: Prot, backing: &Backing) -> Result<()> {
        if !matches!(backing, Backing::Anon | Backing::AnonShared) {
            return Err(Errno::ENODEV);
        }
        for page in pages(addr, len)? {
            if !tables::map(page, prot) {
                self.unmap(addr, page - addr)?;
                return Err(Errno::ENOMEM);
            }
        }
        Ok(())
    }

    fn unmap(&self, addr: usize, len: usize) -> Result<()> {
        pages(addr, len)?.for_each(tables::unmap);
        Ok(())
    }

    fn protect(&self, addr: usize, len: usize, prot: Prot) -> Result<()> {
        for page in pages(addr, len)? {
            if !tables::protect(page, prot) {
                return Err(Errno::ENOMEM);
            }
        }
        Ok(())
    }

    fn remap(&self, _old: usize, _old_len: usize, _new: usize, _new_len: usize) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    fn remap_keep(&self, _old: usize, _len: usize, _new: usize) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    fn advise(&self, _addr: usize, _len: usize, _advice: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    fn sync(&self, _addr: usize, _len: usize, _flags: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    fn resident(&self, addr: usize, len: usize, out: &mut [u8]) -> Result<()> {
        for (page, byte) in pages(addr, len)?.zip(out) {
            *byte = tables::is_mapped(page).into();
        }
        Ok(())
    }

    fn reset(self: Arc<Self>, shared: bool) -> Result<Arc<dyn Space>> {
        if shared {
            return Err(Errno::ENOSYS);
        }
        self.unmap(LOW, HIGH - LOW)?;
        Ok(self)
    }

    fn bounds(&self) -> Bounds {
        Bounds { low: LOW, high: HIGH, holes: [(0, 0); 2] }
    }
}
