//! Descriptor tables.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_rt::Mutex;

use crate::file::OpenFile;

#[derive(Clone)]
struct Slot {
    file: Arc<OpenFile>,
    cloexec: bool,
}

#[derive(Default)]
struct Table {
    slots: Vec<Option<Slot>>,
    /// No free descriptor is below this.
    first_free: usize,
    /// Numbers that calls under way have set aside, in no order: free slots that are nobody else's.
    reserved: Vec<usize>,
}

impl Table {
    /// Takes the lowest free number from `from` on; its slot is there. EMFILE at `limit`, ENOMEM.
    fn take_number(&mut self, from: usize, limit: u64) -> Result<usize> {
        let start = from.max(self.first_free);
        let is_free = |&at: &usize| self.slots[at].is_none() && (self.reserved.is_empty() || !self.reserved.contains(&at));
        let at = (start..self.slots.len()).find(is_free).unwrap_or(self.slots.len().max(start));
        if at as u64 >= limit || at > i32::MAX as usize {
            return Err(Errno::EMFILE);
        }
        self.grow(at)?;
        if from <= self.first_free {
            self.first_free = at + 1;
        }
        Ok(at)
    }

    /// Makes slot `at` there. The numbers a table is long are the program's choice: ENOMEM.
    fn grow(&mut self, at: usize) -> Result<()> {
        if let Some(more) = (at + 1).checked_sub(self.slots.len()).filter(|&more| more > 0) {
            self.slots.try_reserve(more).map_err(|_| Errno::ENOMEM)?;
            self.slots.resize(at + 1, None);
        }
        Ok(())
    }

    fn unreserve(&mut self, at: usize) {
        if let Some(index) = self.reserved.iter().position(|&other| other == at) {
            self.reserved.swap_remove(index);
        }
    }
}

/// The part of `first..=last` that the table has.
fn range(table: &Table, first: u32, last: u32) -> Option<core::ops::Range<usize>> {
    let end = (last as usize).saturating_add(1).min(table.slots.len());
    let start = first as usize;
    (start < end).then_some(start..end)
}

/// Descriptors and what they refer to. Shared by the threads of a process, and by tasks made with
/// CLONE_FILES; a thread may have one of its own.
#[derive(Default)]
pub struct FdTable {
    table: Mutex<Table>,
    /// How many slots there are: for who looks without the lock.
    slots: AtomicUsize,
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

    fn take_number(&self, table: &mut Table, from: usize, limit: u64) -> Result<usize> {
        let at = table.take_number(from, limit)?;
        self.slots.store(table.slots.len(), Ordering::Relaxed);
        Ok(at)
    }

    /// Whether there is a free number below `limit` for certain, unless others take it. It is not sure where a number near the limit is or was taken.
    #[inline]
    pub fn has_room(&self, limit: u64) -> bool {
        (self.slots.load(Ordering::Relaxed) as u64) < limit
    }

    /// Installs a file at the lowest free descriptor from `from` on. EMFILE at `limit` (RLIMIT_NOFILE), ENOMEM.
    pub fn install(&self, file: Arc<OpenFile>, from: usize, cloexec: bool, limit: u64) -> Result<Fd> {
        let mut table = self.table.lock();
        let at = self.take_number(&mut table, from, limit)?;
        table.slots[at] = Some(Slot { file, cloexec });
        Ok(Fd(at as i32))
    }

    /// Sets the lowest free number aside, for a call that must not act before it is sure of one. EMFILE at `limit`.
    pub fn reserve(self: &Arc<Self>, limit: u64) -> Result<Reserved> {
        let mut table = self.table.lock();
        let at = self.take_number(&mut table, 0, limit)?;
        table.reserved.push(at);
        Ok(Reserved { table: self.clone(), at: Some(at) })
    }

    /// Installs a file at exactly this descriptor: what was there, for the caller to flush. EBADF outside the limit, EBUSY for
    /// a number set aside, ENOMEM.
    pub fn install_at(&self, file: Arc<OpenFile>, fd: Fd, cloexec: bool, limit: u64) -> Result<Option<Arc<OpenFile>>> {
        let at = usize::try_from(fd.0).map_err(|_| Errno::EBADF)?;
        if at as u64 >= limit {
            return Err(Errno::EBADF);
        }
        let mut table = self.table.lock();
        if at >= table.slots.len() {
            table.grow(at)?;
            self.slots.store(table.slots.len(), Ordering::Relaxed);
        }
        if table.reserved.contains(&at) {
            return Err(Errno::EBUSY);
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

    /// Takes a descriptor out that a call has just made and does not hand out after all: another thread may have closed it already, and its
    /// number may be another file's.
    pub fn take_back(&self, fd: Fd, file: &Arc<OpenFile>) {
        let Ok(at) = usize::try_from(fd.0) else { return };
        let taken = {
            let mut table = self.table.lock();
            let slot = table.slots.get_mut(at).and_then(|slot| slot.take_if(|slot| Arc::ptr_eq(&slot.file, file)));
            if slot.is_some() {
                table.first_free = table.first_free.min(at);
            }
            slot
        };
        drop(taken);
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

    /// A copy for fork: same descriptions. ENOMEM.
    pub fn duplicate(&self) -> Result<FdTable> {
        let table = self.table.lock();
        // What calls of this process have set aside is free there.
        let first_free = table.reserved.iter().copied().fold(table.first_free, usize::min);
        let mut slots = Vec::new();
        slots.try_reserve_exact(table.slots.len()).map_err(|_| Errno::ENOMEM)?;
        slots.extend_from_slice(&table.slots);
        let copy = Table { slots, first_free, reserved: Vec::new() };
        Ok(FdTable { slots: AtomicUsize::new(copy.slots.len()), table: Mutex::new(copy) })
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

    /// How many descriptors are open.
    pub fn count(&self) -> usize {
        self.table.lock().slots.iter().filter(|slot| slot.is_some()).count()
    }

    /// Open descriptors in order.
    pub fn numbers(&self) -> Vec<Fd> {
        let table = self.table.lock();
        (0..table.slots.len()).filter(|&at| table.slots[at].is_some()).map(|at| Fd(at as i32)).collect()
    }
}

/// A number set aside; it is free again unless a file is installed there.
pub struct Reserved {
    table: Arc<FdTable>,
    /// `None` once it has been used.
    at: Option<usize>,
}

impl Reserved {
    /// Installs a file at the number.
    pub fn install(mut self, file: Arc<OpenFile>, cloexec: bool) -> Result<Fd> {
        let at = self.at.take().ok_or(Errno::EBADF)?;
        let mut table = self.table.table.lock();
        table.unreserve(at);
        table.slots[at] = Some(Slot { file, cloexec });
        Ok(Fd(at as i32))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(at) = self.at {
            let mut table = self.table.table.lock();
            table.unreserve(at);
            table.first_free = table.first_free.min(at);
        }
    }
}
