//! The descriptor table of a process.

use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_rt::Mutex;

use crate::file::OpenFile;

#[derive(Clone)]
struct Slot {
    file: Arc<OpenFile>,
    cloexec: bool,
}

#[derive(Clone, Default)]
struct Table {
    slots: Vec<Option<Slot>>,
    /// No free descriptor lies below this.
    first_free: usize,
}

/// The part of `first..=last` that the table has.
fn range(table: &Table, first: u32, last: u32) -> Option<core::ops::Range<usize>> {
    let end = (last as usize).saturating_add(1).min(table.slots.len());
    let start = first as usize;
    (start < end).then_some(start..end)
}

/// Descriptors and what they refer to. Shared by the threads of a process (and by CLONE_FILES).
#[derive(Default)]
pub struct FdTable {
    table: Mutex<Table>,
}

impl FdTable {
    pub fn new() -> FdTable {
        FdTable::default()
    }

    /// The file behind a descriptor. EBADF.
    pub fn get(&self, fd: Fd) -> Result<Arc<OpenFile>> {
        let at = usize::try_from(fd.0).map_err(|_| Errno::EBADF)?;
        match self.table.lock().slots.get(at) {
            Some(Some(slot)) => Ok(slot.file.clone()),
            _ => Err(Errno::EBADF),
        }
    }

    /// Installs a file at the lowest free descriptor from `from` on. EMFILE at `limit` (RLIMIT_NOFILE).
    pub fn install(&self, file: Arc<OpenFile>, from: usize, cloexec: bool, limit: u64) -> Result<Fd> {
        let mut table = self.table.lock();
        let start = from.max(table.first_free);
        let at = (start..table.slots.len()).find(|&at| table.slots[at].is_none()).unwrap_or(table.slots.len().max(start));
        if at as u64 >= limit || at > i32::MAX as usize {
            return Err(Errno::EMFILE);
        }
        if at >= table.slots.len() {
            table.slots.resize(at + 1, None);
        }
        table.slots[at] = Some(Slot { file, cloexec });
        if from <= table.first_free {
            table.first_free = at + 1;
        }
        Ok(Fd(at as i32))
    }

    /// Installs a file at exactly this descriptor: what was there, for the caller to flush. EBADF outside the limit.
    pub fn install_at(&self, file: Arc<OpenFile>, fd: Fd, cloexec: bool, limit: u64) -> Result<Option<Arc<OpenFile>>> {
        let at = usize::try_from(fd.0).map_err(|_| Errno::EBADF)?;
        if at as u64 >= limit {
            return Err(Errno::EBADF);
        }
        let mut table = self.table.lock();
        if at >= table.slots.len() {
            table.slots.resize(at + 1, None);
        }
        Ok(table.slots[at].replace(Slot { file, cloexec }).map(|slot| slot.file))
    }

    /// Takes a descriptor out: the file, for the caller to flush. EBADF.
    pub fn remove(&self, fd: Fd) -> Result<Arc<OpenFile>> {
        let at = usize::try_from(fd.0).map_err(|_| Errno::EBADF)?;
        let mut table = self.table.lock();
        let slot = table.slots.get_mut(at).and_then(Option::take).ok_or(Errno::EBADF)?;
        table.first_free = table.first_free.min(at);
        Ok(slot.file)
    }

    pub fn cloexec(&self, fd: Fd) -> Result<bool> {
        let at = usize::try_from(fd.0).map_err(|_| Errno::EBADF)?;
        match self.table.lock().slots.get(at) {
            Some(Some(slot)) => Ok(slot.cloexec),
            _ => Err(Errno::EBADF),
        }
    }

    pub fn set_cloexec(&self, fd: Fd, cloexec: bool) -> Result<()> {
        let at = usize::try_from(fd.0).map_err(|_| Errno::EBADF)?;
        match self.table.lock().slots.get_mut(at) {
            Some(Some(slot)) => {
                slot.cloexec = cloexec;
                Ok(())
            }
            _ => Err(Errno::EBADF),
        }
    }

    /// Takes out every descriptor of `first..=last`.
    pub fn take_range(&self, first: u32, last: u32) -> Vec<Arc<OpenFile>> {
        let mut table = self.table.lock();
        let Some(range) = range(&table, first, last) else { return Vec::new() };
        table.first_free = table.first_free.min(range.start);
        table.slots[range].iter_mut().filter_map(Option::take).map(|slot| slot.file).collect()
    }

    /// Marks every descriptor of `first..=last` to be closed by exec.
    pub fn set_cloexec_range(&self, first: u32, last: u32) {
        let mut table = self.table.lock();
        if let Some(range) = range(&table, first, last) {
            table.slots[range].iter_mut().flatten().for_each(|slot| slot.cloexec = true);
        }
    }

    /// The end of the numbers in use: no descriptor is open from here on.
    pub fn end(&self) -> usize {
        self.table.lock().slots.len()
    }

    /// A copy for fork: same descriptions.
    pub fn duplicate(&self) -> FdTable {
        FdTable { table: Mutex::new(self.table.lock().clone()) }
    }

    /// Takes out what exec closes.
    pub fn take_cloexec(&self) -> Vec<Arc<OpenFile>> {
        self.take(|slot| slot.cloexec)
    }

    /// Takes out everything (exit).
    pub fn take_all(&self) -> Vec<Arc<OpenFile>> {
        self.take(|_| true)
    }

    fn take(&self, which: impl Fn(&Slot) -> bool) -> Vec<Arc<OpenFile>> {
        let mut table = self.table.lock();
        let mut taken = Vec::new();
        for at in 0..table.slots.len() {
            if table.slots[at].as_ref().is_some_and(&which) {
                taken.extend(table.slots[at].take().map(|slot| slot.file));
                table.first_free = table.first_free.min(at);
            }
        }
        taken
    }

    /// Open descriptors in order.
    pub fn numbers(&self) -> Vec<Fd> {
        let table = self.table.lock();
        (0..table.slots.len()).filter(|&at| table.slots[at].is_some()).map(|at| Fd(at as i32)).collect()
    }
}
