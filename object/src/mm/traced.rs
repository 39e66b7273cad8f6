//! Address spaces whose threads are traced (ptrace(2)): the program's own code, and stores that a mapping's rights forbid.

use core::sync::atomic::Ordering;

use janua_abi::linux::mman::PAGE_SIZE;
use janua_abi::linux::{Errno, Result};
use janua_port::UserMemory;

use super::vma::VmFlags;
use super::{Limits, Mm};

impl Mm {
    /// Puts the program's own instructions back wherever calls have been rewritten, and leaves calls alone from now on: a debugger
    /// reads code, writes breakpoints into it and goes through it step by step. For a thread of this space.
    pub fn use_own_code(&self) -> Result<()> {
        if self.own_code.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        self.put_code_back()
    }

    /// Calls may be rewritten again.
    pub fn allow_rewriting(&self) {
        self.own_code.store(false, Ordering::SeqCst);
    }

    /// Whether calls are left alone here.
    pub(super) fn has_own_code(&self) -> bool {
        self.own_code.load(Ordering::Relaxed)
    }

    /// Writes to memory as a debugger may: also where the mapping is read-only, if it is private; the page is the process' own
    /// then. It goes the way of mprotect(2), so that what guards executable memory looks at what is written, and what counts memory counts
    /// it. `user` is the memory of the calling thread, which runs in this space. EIO where nothing may be written.
    pub fn force_write(&self, user: &dyn UserMemory, addr: usize, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let at = addr.checked_add(done).ok_or(Errno::EIO)?;
            let page = at & !(PAGE_SIZE - 1);
            let len = (page + PAGE_SIZE - at).min(bytes.len() - done);
            self.force_page(user, page, at, &bytes[done..done + len])?;
            done += len;
        }
        Ok(())
    }

    fn force_page(&self, user: &dyn UserMemory, page: usize, at: usize, bytes: &[u8]) -> Result<()> {
        let flags = {
            let state = self.lock_state();
            let (_, vma) = state.list.find(at).filter(|(_, vma)| !vma.is_special()).ok_or(Errno::EIO)?;
            vma.flags
        };
        let copy = || user.copy_out(at, bytes).map_err(|_| Errno::EIO);
        if flags.contains(VmFlags::WRITE) {
            return copy();
        }
        if flags & (VmFlags::SHARED | VmFlags::MAY_WRITE) != VmFlags::MAY_WRITE {
            return Err(Errno::EIO);
        }
        let prot = flags.prot();
        let open = janua_port::Prot { read: true, write: true, exec: prot.exec };
        self.protect(page, PAGE_SIZE, open, false, &Limits::NONE).map_err(|_| Errno::EIO)?;
        let copied = copy();
        self.protect(page, PAGE_SIZE, prot, false, &Limits::NONE).map_err(|_| Errno::EIO)?;
        copied
    }
}
