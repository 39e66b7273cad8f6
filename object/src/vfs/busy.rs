//! What an inode keeps of its users: writing to a program that runs, or running a file that is being written, is refused (ETXTBSY);
//! and a thread that changes mode or owners by what it has read of them does so alone.

use core::sync::atomic::{AtomicI32, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_rt::{Mutex, MutexGuard};

/// The users of an inode.
#[derive(Default)]
pub struct Busy {
    /// Descriptions open for writing (above zero) or running programs (below); never both.
    count: AtomicI32,
    rights: Mutex<()>,
}

impl Busy {
    pub fn new() -> Busy {
        Busy::default()
    }

    /// Held from the look at a file's mode and owners to their change: a set-user-ID bit that its owner gives must not arrive when the
    /// file has become another's.
    pub fn hold_rights(&self) -> MutexGuard<'_, ()> {
        self.rights.lock()
    }

    /// One writer more. ETXTBSY while the file runs.
    pub fn begin_write(&self) -> Result<()> {
        self.step(|count| if count < 0 { None } else { count.checked_add(1) })
    }

    pub fn end_write(&self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }

    /// The same until the result is dropped.
    pub fn writer(&self) -> Result<Writer<'_>> {
        self.begin_write().map(|()| Writer(self))
    }

    /// The file runs once more. ETXTBSY while it is being written.
    pub fn begin_run(&self) -> Result<()> {
        self.step(|count| if count > 0 { None } else { count.checked_sub(1) })
    }

    pub fn end_run(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// ETXTBSY while the file runs.
    pub fn check_write(&self) -> Result<()> {
        if self.count.load(Ordering::Acquire) < 0 { Err(Errno::ETXTBSY) } else { Ok(()) }
    }

    /// Descriptions open for writing (above zero) or running programs (below).
    pub fn users(&self) -> i32 {
        self.count.load(Ordering::Acquire)
    }

    fn step(&self, step: impl Fn(i32) -> Option<i32>) -> Result<()> {
        self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, step).map(|_| ()).map_err(|_| Errno::ETXTBSY)
    }
}

/// One who writes to a file without a description of it.
pub struct Writer<'a>(&'a Busy);

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.0.end_write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_kind_at_a_time() {
        let busy = Busy::new();
        assert_eq!((busy.begin_write(), busy.begin_run()), (Ok(()), Err(Errno::ETXTBSY)));
        busy.end_write();
        assert_eq!((busy.begin_run(), busy.begin_run(), busy.begin_write()), (Ok(()), Ok(()), Err(Errno::ETXTBSY)));
        busy.end_run();
        busy.end_run();
        assert_eq!(busy.begin_write(), Ok(()));
    }
}
