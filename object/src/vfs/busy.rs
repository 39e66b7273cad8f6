//! Writing to a program that runs, or running a file that is being written, is refused (ETXTBSY).

use core::sync::atomic::{AtomicI32, Ordering};

use janua_abi::linux::{Errno, Result};

/// Counts, in an inode, descriptions open for writing (above zero) or running programs (below); never both.
#[derive(Default)]
pub struct Busy(AtomicI32);

impl Busy {
    pub const fn new() -> Busy {
        Busy(AtomicI32::new(0))
    }

    /// One writer more. ETXTBSY while the file runs.
    pub fn begin_write(&self) -> Result<()> {
        self.step(|count| if count < 0 { None } else { count.checked_add(1) })
    }

    pub fn end_write(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    /// The file runs once more. ETXTBSY while it is being written.
    pub fn begin_run(&self) -> Result<()> {
        self.step(|count| if count > 0 { None } else { count.checked_sub(1) })
    }

    pub fn end_run(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// ETXTBSY while the file runs.
    pub fn check_write(&self) -> Result<()> {
        if self.0.load(Ordering::Acquire) < 0 { Err(Errno::ETXTBSY) } else { Ok(()) }
    }

    fn step(&self, step: impl Fn(i32) -> Option<i32>) -> Result<()> {
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, step).map(|_| ()).map_err(|_| Errno::ETXTBSY)
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
