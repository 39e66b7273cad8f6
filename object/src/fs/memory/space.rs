//! What the files of a memory file system cost.

use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};
use janua_port::Machine;
use janua_rt::AtomicU64;

use super::PAGE;

/// Pages in use and how many there may be.
pub struct Space {
    pub machine: &'static dyn Machine,
    used: AtomicU64,
    /// `u64::MAX` is no limit.
    limit: AtomicU64,
    /// They count as files, not only as memory.
    files: bool,
}

impl Space {
    pub fn of_files(machine: &'static dyn Machine, limit: u64) -> Space {
        Space { machine, used: AtomicU64::new(0), limit: AtomicU64::new(limit), files: true }
    }

    /// For files that are memory of programs.
    pub fn of_memory(machine: &'static dyn Machine) -> Space {
        Space { machine, used: AtomicU64::new(0), limit: AtomicU64::new(u64::MAX), files: false }
    }

    /// The error when there is no room.
    fn full(&self) -> Errno {
        if self.files { Errno::ENOSPC } else { Errno::ENOMEM }
    }

    /// ENOSPC at the file system's own limit or the sandbox's, ENOMEM for memory. `firm`: the pages are the host's, and count as
    /// memory by themselves.
    pub fn charge(&self, pages: u64, firm: bool) -> Result<()> {
        if pages == 0 {
            return Ok(());
        }
        let used = self.used.fetch_add(pages, Ordering::Relaxed).saturating_add(pages);
        let accounts = self.machine.accounts();
        let bytes = usize::try_from(pages).unwrap_or(usize::MAX).saturating_mul(PAGE);
        let taken = used <= self.limit.load(Ordering::Relaxed) && (!self.files || accounts.disk.take(bytes));
        if taken && (!firm || accounts.take_firm(self.machine, bytes).is_ok()) {
            return Ok(());
        }
        if taken && self.files {
            accounts.disk.give(bytes);
        }
        self.used.fetch_sub(pages, Ordering::Relaxed);
        Err(self.full())
    }

    pub fn release(&self, pages: u64, firm: bool) {
        if pages == 0 {
            return;
        }
        self.used.fetch_sub(pages, Ordering::Relaxed);
        let bytes = pages as usize * PAGE;
        if self.files {
            self.machine.accounts().disk.give(bytes);
        }
        if firm {
            self.machine.accounts().give_firm(bytes);
        }
    }

    /// Pages move from the kernel's heap to the host. ENOSPC, ENOMEM.
    pub fn harden(&self, pages: u64) -> Result<()> {
        let bytes = pages as usize * PAGE;
        self.machine.accounts().take_firm(self.machine, bytes).map_err(|_| self.full())
    }

    /// Pages in use and their limit.
    pub fn pages(&self) -> (u64, u64) {
        (self.used.load(Ordering::Relaxed), self.limit.load(Ordering::Relaxed))
    }

    /// Pages that the sandbox's account of files in memory leaves; `u64::MAX` where there is no limit.
    pub fn room(&self) -> u64 {
        let disk = &self.machine.accounts().disk;
        match disk.limit() {
            usize::MAX => u64::MAX,
            _ if !self.files => u64::MAX,
            limit => (limit.saturating_sub(disk.used()) / PAGE) as u64,
        }
    }

    pub fn set_limit(&self, pages: u64) {
        self.limit.store(pages, Ordering::Relaxed);
    }
}
