//! Accounts of what a machine's guests use together, and how much of it they may have.
//!
//! They are where the machine wants them: on a hosted machine in memory that the supervisor reads as well. An account changes by single
//! atomic additions; nobody holds a lock for it.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::{Errno, Result};

use crate::Machine;

/// An amount in use and its limit.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Account {
    used: AtomicUsize,
    limit: AtomicUsize,
    /// The most that was in use at a time.
    peak: AtomicUsize,
    /// How often somebody was refused for the limit.
    refused: AtomicUsize,
}

impl Account {
    /// Nothing is in use; `usize::MAX` is no limit.
    pub const fn new(limit: usize) -> Account {
        Account {
            used: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            peak: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        }
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether more is in use than the limit allows.
    pub fn is_over(&self) -> bool {
        self.used() > self.limit()
    }

    /// What is left below the limit.
    pub fn left(&self) -> usize {
        self.limit().saturating_sub(self.used())
    }

    /// Takes an amount if the limit allows it. A refusal is counted.
    pub fn take(&self, amount: usize) -> bool {
        let limit = self.limit();
        let fits = |used: usize| used.checked_add(amount).filter(|sum| *sum <= limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(used) => {
                self.note_peak(used + amount);
                true
            }
            Err(_) => {
                self.refuse();
                false
            }
        }
    }

    /// Takes an amount whatever the limit is: whether it has kept to it.
    #[inline]
    pub fn force(&self, amount: usize) -> bool {
        let used = self.used.fetch_add(amount, Ordering::Relaxed).wrapping_add(amount);
        let within = used <= self.limit();
        if within {
            self.note_peak(used);
        }
        within
    }

    /// Gives an amount back.
    #[inline]
    pub fn give(&self, amount: usize) {
        self.used.fetch_sub(amount, Ordering::Relaxed);
    }

    /// Counts somebody who was refused.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    fn note_peak(&self, used: usize) {
        // Mostly a read: a peak is rare.
        if used > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(used, Ordering::Relaxed);
        }
    }
}

/// Who pays for a descriptor of the host: a user, or the kernel. Users share a payer when their ids are the same modulo 254.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payer(u8);

impl Payer {
    /// Of what serves no user in particular. It may use the reserve.
    pub const KERNEL: Payer = Payer(1);

    /// A real user id.
    pub const fn user(uid: u32) -> Payer {
        Payer((uid % 254) as u8 + 2)
    }

    /// As a number from 1 to 255, for tables in which 0 is nobody.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// [`Payer::number`] back; `None` for 0.
    pub const fn of_number(number: u8) -> Option<Payer> {
        if number == 0 { None } else { Some(Payer(number)) }
    }
}

/// Descriptors of the host. A user takes one only while it holds fewer than are still free, so that nobody has more than half of what
/// the others have left; and a part stays for the kernel.
#[repr(C)]
#[derive(Debug)]
pub struct Descriptors {
    pub all: Account,
    held: [AtomicU32; 256],
}

/// Most descriptors kept for the kernel, and which part of all of them at most.
const RESERVE: usize = 1024;
const RESERVE_PART: usize = 8;

impl Descriptors {
    const fn new(limit: usize) -> Descriptors {
        Descriptors { all: Account::new(limit), held: [const { AtomicU32::new(0) }; 256] }
    }

    /// Takes one. ENFILE.
    pub fn take(&self, payer: Payer) -> Result<()> {
        let held = &self.held[usize::from(payer.0)];
        if payer != Payer::KERNEL {
            // Two threads may both see the last one: what they take then is out of the reserve.
            let reserve = RESERVE.min(self.all.limit() / RESERVE_PART);
            if held.load(Ordering::Relaxed) as usize >= self.all.left().saturating_sub(reserve) {
                self.all.refuse();
                return Err(Errno::ENFILE);
            }
        }
        held.fetch_add(1, Ordering::Relaxed);
        self.all.force(1);
        Ok(())
    }

    /// Gives one back.
    pub fn give(&self, payer: Payer) {
        self.held[usize::from(payer.0)].fetch_sub(1, Ordering::Relaxed);
        self.all.give(1);
    }
}

/// Bytes that spaces have resident together, of which some may be shared: each comes with what it has resident by itself, shared or not,
/// which is found quickly; `share` returns its share, which takes as long as it has mappings. A result beyond `bound` is a lower bound.
///
/// Nobody makes the look slow by mappings without memory: the largest spaces come first, none is asked for its share once the result is
/// certain, and small ones never are.
pub fn resident_together<T>(spaces: &mut [(usize, T)], bound: usize, mut share: impl FnMut(&T) -> Option<usize>) -> usize {
    const SMALL: usize = 64;
    spaces.sort_unstable_by_key(|(alone, _)| core::cmp::Reverse(*alone));
    let mut rest: usize = spaces.iter().map(|(alone, _)| alone).sum();
    // What one has is there, however many share it.
    let mut sum = spaces.first().map_or(0, |(alone, _)| *alone);
    if sum > bound {
        return sum;
    }
    sum = 0;
    for (alone, space) in spaces.iter() {
        if sum > bound {
            return sum;
        }
        if rest <= bound / SMALL {
            break;
        }
        rest -= alone;
        // One that has ended meanwhile has nothing.
        sum += share(space).unwrap_or(0);
    }
    sum + rest
}

/// All accounts of a machine.
///
/// Memory is counted twice over. *Firm* is what is there and stays: the kernel's heap, the bytes of files in memory, shared memory.
/// Private memory of guests is counted when it is mapped, although it is only there when it is touched. As long as all of it together is
/// within the limit nobody has to look. Beyond that, what guests really have resident decides, which the machine reports.
#[repr(C)]
#[derive(Debug)]
pub struct Accounts {
    /// Bytes: firm memory, and private memory as mapped.
    pub memory: Account,
    firm: AtomicUsize,
    /// Of the memory as mapped: bytes of page tables that the mappings may need.
    tables: AtomicUsize,
    /// Processes that were ended because memory was used up.
    killed: AtomicUsize,
    /// The thread ([`crate::machine::ThreadId`]) that asked for heap beyond the limit; 0 for none.
    culprit: AtomicUsize,
    /// Bytes that may be promised before somebody has to look at what is resident again.
    room: AtomicUsize,
    /// Not 0 while somebody looks at what is resident.
    watched: AtomicU32,
    /// Not 0 once the kernel ended for want of heap.
    exhausted: AtomicU32,
    /// Bytes of files in memory: overlay, tmpfs.
    pub disk: Account,
    /// Threads.
    pub tasks: Account,
    /// Descriptors of the host, which all guests and the kernel have out of one table.
    pub descriptors: Descriptors,
}

/// What limits nothing, for machines whose guests may have all there is.
pub static UNLIMITED: Accounts = Accounts::new(usize::MAX, usize::MAX, usize::MAX, usize::MAX);

impl Accounts {
    /// Limits in bytes, bytes, threads and descriptors; `usize::MAX` is none.
    pub const fn new(memory: usize, disk: usize, tasks: usize, descriptors: usize) -> Accounts {
        Accounts {
            memory: Account::new(memory),
            firm: AtomicUsize::new(0),
            tables: AtomicUsize::new(0),
            killed: AtomicUsize::new(0),
            culprit: AtomicUsize::new(0),
            room: AtomicUsize::new(0),
            watched: AtomicU32::new(0),
            exhausted: AtomicU32::new(0),
            disk: Account::new(disk),
            tasks: Account::new(tasks),
            descriptors: Descriptors::new(descriptors),
        }
    }

    /// Takes private memory. With `spare` it is to be had beyond the limit too, since most of it may never be touched
    /// (MAP_NORESERVE); what is touched is seen by [`Accounts::excess`]. ENOMEM.
    #[inline]
    pub fn take_private(&self, machine: &dyn Machine, bytes: usize, spare: bool) -> Result<()> {
        if self.memory.force(bytes) { Ok(()) } else { self.beyond(machine, bytes, spare) }
    }

    #[cold]
    fn beyond(&self, machine: &dyn Machine, bytes: usize, spare: bool) -> Result<()> {
        self.have_watched(machine);
        if spare || self.take_room(bytes) || self.fits(machine, bytes) {
            self.memory.note_peak(self.memory.used());
            return Ok(());
        }
        self.memory.give(bytes);
        self.memory.refuse();
        Err(Errno::ENOMEM)
    }

    /// Gives private memory back.
    #[inline]
    pub fn give_private(&self, bytes: usize) {
        self.memory.give(bytes);
    }

    /// Counts page tables that mappings may need. They are there only once something is accessed, so nobody is refused: beyond the limit
    /// what is there is looked at.
    pub fn add_tables(&self, machine: &dyn Machine, bytes: usize) {
        self.tables.fetch_add(bytes, Ordering::Relaxed);
        if !self.memory.force(bytes) {
            self.have_watched(machine);
        }
    }

    /// Mappings that may need page tables are gone.
    pub fn give_tables(&self, bytes: usize) {
        self.tables.fetch_sub(bytes, Ordering::Relaxed);
        self.memory.give(bytes);
    }

    /// Whether guests may have so much of page tables that those must be asked for with what is resident. It takes longer.
    pub fn has_tables(&self) -> bool {
        const PART: usize = 64;
        self.tables.load(Ordering::Relaxed) > self.memory.limit() / PART
    }

    /// Takes firm memory. ENOMEM.
    pub fn take_firm(&self, machine: &dyn Machine, bytes: usize) -> Result<()> {
        // Firm only when it is certain: a look meanwhile must not take it for memory in use.
        if !self.memory.force(bytes) {
            self.beyond(machine, bytes, false)?;
        }
        self.firm.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Takes firm memory whatever the limit is: whether it has kept to it.
    pub fn add_firm(&self, bytes: usize) -> bool {
        self.firm.fetch_add(bytes, Ordering::Relaxed);
        self.memory.force(bytes)
    }

    /// Gives firm memory back.
    pub fn give_firm(&self, bytes: usize) {
        self.firm.fetch_sub(bytes, Ordering::Relaxed);
        self.memory.give(bytes);
    }

    /// Bytes of firm memory.
    pub fn firm(&self) -> usize {
        self.firm.load(Ordering::Relaxed)
    }

    /// Whether `bytes` more of firm memory would keep to the limit by themselves, for who can do without.
    pub fn has_firm(&self, bytes: usize) -> bool {
        self.firm().saturating_add(bytes) <= self.memory.limit()
    }

    /// Whether firm memory alone is beyond the limit.
    pub fn is_tight(&self) -> bool {
        self.firm() > self.memory.limit()
    }

    /// Whether `bytes` more are within the limit by what is resident. A quick look may count memory twice that a fork has shared, so a
    /// second one makes sure.
    fn fits(&self, machine: &dyn Machine, bytes: usize) -> bool {
        let firm = self.firm().saturating_add(bytes);
        let Some(room) = self.memory.limit().checked_sub(firm) else { return false };
        let Some(quick) = machine.resident_guests(None) else {
            // It is not known: what is mapped counts, but for page tables that may never be there.
            return self.memory.used().saturating_sub(self.tables.load(Ordering::Relaxed)) <= self.memory.limit();
        };
        quick <= room || machine.resident_guests(Some(room)).is_some_and(|resident| resident <= room)
    }

    /// Bytes in use beyond the limit, by what is resident; `None` when mapped memory is within the limit, or that is not known. The other
    /// number is how many bytes are left. An excess beyond `tolerance` is too much, and may be more than is reported.
    pub fn excess(&self, machine: &dyn Machine, tolerance: usize) -> Option<(usize, usize)> {
        if !self.memory.is_over() {
            return None;
        }
        let limit = self.memory.limit();
        let used = |exact| machine.resident_guests(exact).map(|resident| self.firm().saturating_add(resident));
        let mut now = used(None)?;
        if now > limit {
            now = used(Some(limit.saturating_add(tolerance).saturating_sub(self.firm())))?;
        }
        let left = limit.saturating_sub(now);
        // Half of it, since what was promised before may be touched meanwhile.
        self.room.store(left / 2, Ordering::Relaxed);
        Some((now.saturating_sub(limit), left))
    }

    fn take_room(&self, bytes: usize) -> bool {
        self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes)).is_ok()
    }

    /// Sees to it that somebody looks at what is resident ([`Accounts::excess`]), until nothing is beyond the limit any more.
    fn have_watched(&self, machine: &dyn Machine) {
        if self.watched.swap(1, Ordering::SeqCst) == 0 {
            machine.wake_service();
        }
    }

    /// Nobody looks any more. `true`: somebody must nevertheless.
    pub fn stop_watch(&self) -> bool {
        self.room.store(0, Ordering::Relaxed);
        self.watched.store(0, Ordering::SeqCst);
        self.memory.used.load(Ordering::SeqCst) > self.memory.limit()
    }

    /// Counts a process that was ended for memory.
    pub fn note_killed(&self) {
        self.killed.fetch_add(1, Ordering::Relaxed);
    }

    pub fn killed(&self) -> usize {
        self.killed.load(Ordering::Relaxed)
    }

    /// Names the thread that asks for heap beyond the limit.
    pub fn blame(&self, thread: usize) {
        self.culprit.store(thread, Ordering::Relaxed);
    }

    /// The thread ends: nobody who gets its number afterwards is to end for it.
    #[inline]
    pub fn forgive(&self, thread: usize) {
        if self.has_culprit() {
            let _ = self.culprit.compare_exchange(thread, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Whether a thread is named.
    #[inline]
    pub fn has_culprit(&self) -> bool {
        self.culprit.load(Ordering::Relaxed) != 0
    }

    /// The thread that was named, once.
    pub fn take_culprit(&self) -> Option<usize> {
        Some(self.culprit.swap(0, Ordering::Relaxed)).filter(|thread| *thread != 0)
    }

    /// The kernel's heap cannot grow where that is not foreseen: the sandbox ends.
    pub fn note_exhausted(&self) {
        self.exhausted.store(1, Ordering::Relaxed);
    }

    pub fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn no_user_has_more_descriptors_than_are_left() {
        let table = Descriptors::new(1024);
        let take_all = |payer| (0..).take_while(|_| table.take(payer).is_ok()).count();
        let [first, second, third] = [0, 1000, 65534].map(Payer::user);
        assert_eq!([take_all(first), take_all(second), take_all(third)], [448, 224, 112]);
        assert_eq!((table.all.used(), table.all.refused()), (784, 3));
        // What is given back others may have too.
        (0..448).for_each(|_| table.give(first));
        assert_eq!(take_all(third), 224);
        // The kernel's reserve is left in any case.
        let users = (1..254).map(|uid| take_all(Payer::user(uid))).sum::<usize>();
        assert!(users > 0 && table.all.left() >= 128);
        assert_eq!(table.take(Payer::KERNEL), Ok(()));
        assert_eq!(Payer::of_number(first.number()), Some(first));
        assert_eq!(Payer::of_number(0), None);
    }

    #[test]
    fn only_who_matters_is_asked_for_its_share() {
        let count = |spaces: &[usize], bound: usize, share: usize| {
            let mut spaces: Vec<_> = spaces.iter().copied().zip(0..).collect();
            let mut asked = Vec::new();
            let sum = resident_together(&mut spaces, bound, |space| {
                asked.push(*space);
                Some(share)
            });
            (sum, asked)
        };
        // Within the bound after all, by what they share; those that have next to nothing are not asked.
        assert_eq!(count(&[1, 40_000, 2, 40_000, 40_000], 64_000, 15_000), (45_003, vec![1, 3, 4]));
        // One is beyond it alone.
        assert_eq!(count(&[1, 40_000, 65_000], 64_000, 15_000), (65_000, vec![]));
        // Two are, together.
        assert_eq!(count(&[10_000, 60_000, 60_000, 10_000], 64_000, 50_000), (100_000, vec![1, 2]));
        assert_eq!(count(&[30_000; 4], 64_000, 30_000).0, 90_000);
        assert_eq!(count(&[], 64_000, 1), (0, vec![]));
        assert_eq!(resident_together(&mut [(5000, ())], 64_000, |()| None), 0);
    }

    #[test]
    fn an_account_keeps_its_limit() {
        let account = Account::new(10);
        assert!(account.take(6) && account.take(4) && !account.take(1));
        assert_eq!((account.used(), account.peak(), account.refused(), account.left()), (10, 10, 1, 0));
        account.give(4);
        assert!(!account.force(5) && account.is_over());
        account.give(5);
        assert_eq!((account.used(), account.peak(), account.is_over()), (6, 10, false));
        assert!(!account.take(usize::MAX));
    }
}
