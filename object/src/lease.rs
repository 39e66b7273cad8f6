//! Leases of files (fcntl(2), F_SETLEASE). Who holds one hears of it before another opens the file in a way that matters, and has a while to
//! give it up, for which the other waits.
//!
//! A lease is a description's. Holders are notified with no lock held.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use janua_abi::linux::{Errno, Result};
use janua_port::Nanos;
use janua_rt::{AtomicU64, Mutex, Notify, WaitQueue};

use crate::lock::{FileKey, Mode};

/// How long a holder may keep others waiting at first.
const BREAK_TIME: Nanos = 45_000_000_000;

/// Why a holder is notified.
pub mod notice {
    /// The lease is over, by its own request or by time.
    pub const OVER: u32 = 0;
    /// Somebody waits.
    pub const BREAK: u32 = 1;
}

struct Lease {
    description: u64,
    mode: Mode,
    /// It is to be given up, or to become a shared one, by then.
    leave: Option<Nanos>,
    weaken: Option<Nanos>,
    holder: Arc<dyn Notify>,
}

impl Lease {
    fn hinders(&self, writes: bool) -> bool {
        writes || self.mode == Mode::Exclusive
    }

    /// What it is once the holder has done what is asked of it; `None` for nothing.
    fn target(&self) -> Option<Mode> {
        match self.weaken {
            _ if self.leave.is_some() => None,
            Some(_) => Some(Mode::Shared),
            None => Some(self.mode),
        }
    }

    fn is_late(&self, now: Nanos) -> bool {
        self.leave.is_some_and(|at| at <= now)
    }
}

/// A lease for listings.
pub struct Shown {
    pub file: FileKey,
    pub description: u64,
    /// It is to be given up or to become weaker.
    pub is_breaking: bool,
    /// What it is then; `None` for nothing.
    pub target: Option<Mode>,
}

/// All leases of a kernel.
pub struct Leases {
    count: AtomicUsize,
    /// How long a holder may keep others waiting (/proc/sys/fs/lease-break-time).
    pub break_time: AtomicU64,
    files: Mutex<HashMap<FileKey, Vec<Lease>>>,
    /// Woken when a lease is given up or becomes weaker.
    pub changed: WaitQueue,
}

impl Default for Leases {
    fn default() -> Leases {
        let (count, files, changed) = Default::default();
        Leases { count, break_time: AtomicU64::new(BREAK_TIME), files, changed }
    }
}

impl Leases {
    /// Whether there is any.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::SeqCst) != 0
    }

    /// Does something with the leases of a file, after those whose time is over have gone; those that go with it are notified.
    fn change<T>(&self, key: FileKey, now: Nanos, act: impl FnOnce(&mut Vec<Lease>) -> T) -> T {
        let mut gone = Vec::new();
        let mut files = self.files.lock();
        let leases = files.entry(key).or_default();
        let before = (leases.len(), weak(leases));
        gone.extend(leases.extract_if(.., |lease| lease.is_late(now)));
        for lease in leases.iter_mut().filter(|lease| lease.weaken.is_some_and(|at| at <= now)) {
            lease.weaken = None;
            lease.mode = Mode::Shared;
        }
        let result = act(leases);
        let after = (leases.len(), weak(leases));
        let eased = before != after;
        if leases.is_empty() {
            files.remove(&key);
        }
        // Under the lock, so that nobody else changes it meanwhile.
        self.count.store(self.count.load(Ordering::Relaxed) + after.0 - before.0, Ordering::SeqCst);
        drop(files);
        for lease in gone {
            lease.holder.notify(notice::OVER);
        }
        if eased {
            self.changed.wake_all();
        }
        result
    }

    /// Takes a lease for a description, or changes its: what it had. The caller looks then whether the file is used in a way that forbids
    /// it, and takes it back. EAGAIN beside others' leases.
    pub fn set(&self, key: FileKey, description: u64, mode: Mode, holder: Arc<dyn Notify>, now: Nanos) -> Result<Option<Mode>> {
        self.change(key, now, |leases| {
            let mut others = leases.iter().filter(|lease| lease.description != description);
            if others.any(|lease| mode == Mode::Exclusive || lease.leave.is_some()) {
                return Err(Errno::EAGAIN);
            }
            if let Some(own) = leases.iter_mut().find(|lease| lease.description == description) {
                let before = core::mem::replace(&mut own.mode, mode);
                if mode == Mode::Shared {
                    own.weaken = None;
                }
                return Ok(Some(before));
            }
            leases.try_reserve(1).map_err(|_| Errno::ENOLCK)?;
            leases.push(Lease { description, mode, leave: None, weaken: None, holder });
            Ok(None)
        })
    }

    /// Gives a description's lease up. EAGAIN without one.
    pub fn clear(&self, key: FileKey, description: u64, now: Nanos) -> Result<()> {
        let holder = self.change(key, now, |leases| {
            let at = leases.iter().position(|lease| lease.description == description)?;
            Some(leases.remove(at).holder)
        });
        holder.ok_or(Errno::EAGAIN)?.notify(notice::OVER);
        Ok(())
    }

    /// Takes back what was just set; nobody is notified.
    pub fn withdraw(&self, key: FileKey, description: u64, now: Nanos) {
        self.change(key, now, |leases| leases.retain(|lease| lease.description != description));
    }

    /// The lease of a description, as it will be once what is asked for is done.
    pub fn get(&self, key: FileKey, description: u64, now: Nanos) -> Option<Mode> {
        self.change(key, now, |leases| leases.iter().find(|lease| lease.description == description)?.target())
    }

    /// Somebody opens the file: holders are notified, once. EJUKEBOX while a lease is in the way.
    pub fn open(&self, key: FileKey, writes: bool, now: Nanos) -> Result<()> {
        if !self.any() || !self.files.lock().contains_key(&key) {
            return Ok(());
        }
        let mut reported = Vec::new();
        let hindered = self.change(key, now, |leases| {
            let mut hindered = false;
            for lease in leases.iter_mut().filter(|lease| lease.hinders(writes)) {
                hindered = true;
                let known = lease.leave.is_some() || !writes && lease.weaken.is_some();
                if !known {
                    let slot = if writes { &mut lease.leave } else { &mut lease.weaken };
                    *slot = Some(now.saturating_add(self.break_time.load(Ordering::Relaxed)));
                    reported.push(lease.holder.clone());
                }
            }
            hindered
        });
        for holder in reported {
            holder.notify(notice::BREAK);
        }
        if hindered { Err(Errno::EJUKEBOX) } else { Ok(()) }
    }

    /// When the next lease ends that somebody waits for, of those that are not late at `now`.
    pub fn deadline(&self, now: Nanos) -> Option<Nanos> {
        let files = self.files.lock();
        files.values().flatten().flat_map(|lease| lease.leave.into_iter().chain(lease.weaken)).filter(|at| *at > now).min()
    }

    /// All of them.
    pub fn list(&self) -> Vec<Shown> {
        let files = self.files.lock();
        let shown = |(file, lease): (&FileKey, &Lease)| Shown {
            file: *file,
            description: lease.description,
            is_breaking: lease.leave.is_some() || lease.weaken.is_some(),
            target: lease.target(),
        };
        files.iter().flat_map(|(file, leases)| leases.iter().map(move |lease| (file, lease))).map(shown).collect()
    }
}

fn weak(leases: &[Lease]) -> usize {
    leases.iter().filter(|lease| lease.mode == Mode::Shared).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU32;

    #[derive(Default)]
    struct Holder(AtomicU32, AtomicU32);

    impl Notify for Holder {
        fn notify(&self, what: u32) {
            if what == notice::BREAK { &self.0 } else { &self.1 }.fetch_add(1, Ordering::Relaxed);
        }
    }

    const FILE: FileKey = (1, 2);

    #[test]
    fn a_lease_that_is_not_given_up_ends_by_time() {
        let (leases, holder) = (Leases::default(), Arc::new(Holder::default()));
        assert_eq!(leases.set(FILE, 7, Mode::Exclusive, holder.clone(), 0), Ok(None));
        assert_eq!((leases.open((1, 3), true, 5), leases.open(FILE, true, 5)), (Ok(()), Err(Errno::EJUKEBOX)));
        assert_eq!((leases.open(FILE, false, 6), leases.open(FILE, true, 7)), (Err(Errno::EJUKEBOX), Err(Errno::EJUKEBOX)));
        assert_eq!((holder.0.load(Ordering::Relaxed), leases.get(FILE, 7, 8)), (1, None));
        // A lease of another file that nobody asks for again does not count once it is late.
        assert_eq!(leases.set((1, 4), 9, Mode::Exclusive, holder.clone(), 0), Ok(None));
        assert_eq!(leases.open((1, 4), true, 1), Err(Errno::EJUKEBOX));
        assert_eq!((leases.deadline(8), leases.deadline(1 + BREAK_TIME)), (Some(1 + BREAK_TIME), Some(5 + BREAK_TIME)));
        leases.withdraw((1, 4), 9, 9);
        assert_eq!(leases.open(FILE, true, 5 + BREAK_TIME), Ok(()));
        assert!(!leases.any() && holder.1.load(Ordering::Relaxed) == 1);
    }

    #[test]
    fn for_a_reader_it_becomes_a_shared_one() {
        let (leases, holder) = (Leases::default(), Arc::new(Holder::default()));
        leases.set(FILE, 7, Mode::Exclusive, holder.clone(), 0).unwrap();
        assert_eq!(leases.open(FILE, false, 5), Err(Errno::EJUKEBOX));
        assert_eq!(leases.get(FILE, 7, 6), Some(Mode::Shared));
        assert_eq!(leases.open(FILE, false, 5 + BREAK_TIME), Ok(()));
        assert_eq!((leases.get(FILE, 7, 6 + BREAK_TIME), holder.1.load(Ordering::Relaxed)), (Some(Mode::Shared), 0));
        assert_eq!(leases.set(FILE, 8, Mode::Exclusive, holder.clone(), 0), Err(Errno::EAGAIN));
        assert_eq!(leases.set(FILE, 8, Mode::Shared, holder.clone(), 0), Ok(None));
        assert_eq!((leases.clear(FILE, 7, 0), leases.clear(FILE, 7, 0)), (Ok(()), Err(Errno::EAGAIN)));
        assert!(leases.any());
    }
}
