//! Advisory locks: POSIX record locks (by process), open file description locks and flock(2) (by description).
//!
//! Every file that is or was lately locked has a [`FileLocks`], found by device and inode number in the kernel's [`LockTable`].
//! A description that took a lock keeps its file's [`FileLocks`], so that its last close releases without a search.
//!
//! Lock order: [`LockTable::files`], then [`FileLocks::state`], then [`LockTable::waits`] or [`LockTable::processes`]. Queues are woken with none held.

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use janua_abi::linux::{Errno, Result};
use janua_rt::{Mutex, MutexGuard, WaitQueue};

/// Whose a lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A process (F_SETLK).
    Process(u32),
    /// An open file description (F_OFD_SETLK, flock), by [`crate::OpenFile::id`].
    Description(u64),
}

/// The two kinds of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Shared,
    Exclusive,
}

/// The end of a range that reaches to the end of the file, however far that may be.
pub const TO_END: u64 = i64::MAX as u64 + 1;

/// A lock on the bytes `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub owner: Owner,
    pub mode: Mode,
    pub start: u64,
    pub end: u64,
}

impl Record {
    fn hinders(&self, other: &Record) -> bool {
        self.owner != other.owner
            && self.start < other.end
            && other.start < self.end
            && (self.mode == Mode::Exclusive || other.mode == Mode::Exclusive)
    }
}

#[derive(Default)]
struct State {
    /// Sorted by start within each owner; ranges of one owner never overlap.
    records: Vec<Record>,
    /// flock(2) holders: at most one exclusive, or any number of shared.
    flocks: Vec<(u64, Mode)>,
    /// The processes that are in [`LockTable::processes`] with this file, and the one that was looked for last.
    noted: BTreeSet<u32>,
    last: Option<u32>,
}

/// Which file: device and inode number.
pub type FileKey = (u64, u64);

/// What is held on one file, for listings.
pub struct Held {
    pub file: FileKey,
    pub records: Vec<Record>,
    /// flock(2) holders by description.
    pub flocks: Vec<(u64, Mode)>,
}

/// The locks of one file.
pub struct FileLocks {
    this: Weak<FileLocks>,
    table: Arc<LockTable>,
    state: Mutex<State>,
    /// How often something has been released or weakened; changes with the state.
    changes: AtomicUsize,
    /// Woken whenever something is released or weakened.
    pub released: WaitQueue,
}

/// All locks of a kernel.
#[derive(Default)]
pub struct LockTable {
    files: Mutex<HashMap<FileKey, Weak<FileLocks>>>,
    /// Records held by processes, anywhere: none is the usual case, which lets close(2) look no further.
    process_records: AtomicUsize,
    /// The files on which a process holds records or has done so, by the process' number and the place of the file's locks: what is to be looked at when it
    /// is over, however many others are locked.
    processes: Mutex<BTreeMap<(u32, usize), Weak<FileLocks>>>,
    /// How many there are of these.
    noted: AtomicUsize,
    /// Who waits for whom, for deadlock detection: (waiting process, holding process), and for what each of its threads does.
    waits: Mutex<BTreeMap<(u32, u32), Vec<Cause>>>,
}

/// What a thread waits for: a file's locks as they were after so many changes. When they have changed since, it is being woken and waits for nobody.
struct Cause {
    file: Arc<FileLocks>,
    changes: usize,
}

impl Cause {
    fn holds(&self) -> bool {
        self.file.changes.load(Ordering::SeqCst) == self.changes
    }
}

/// A lock in the way of another, and the changes of its file's locks until then ([`WaitEntry::block_on`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hindrance {
    pub record: Record,
    changes: usize,
}

/// A thread's entry in the table of waits; dropped when it no longer waits.
pub struct WaitEntry<'a> {
    table: &'a LockTable,
    waiter: u32,
    /// Whom it waits for, the file, and the changes of its locks.
    held: Option<(u32, Arc<FileLocks>, usize)>,
}

impl LockTable {
    pub fn new() -> Arc<LockTable> {
        Arc::new(LockTable::default())
    }

    /// The locks of a file, made when there are none.
    pub fn of(self: &Arc<LockTable>, key: FileKey) -> Arc<FileLocks> {
        let mut files = self.files.lock();
        if let Some(locks) = files.get(&key).and_then(Weak::upgrade) {
            return locks;
        }
        // Files nobody has locks on any more go when the map would have to grow.
        if files.len() == files.capacity() {
            files.retain(|_, locks| locks.strong_count() > 0);
        }
        let locks = Arc::new_cyclic(|this| FileLocks {
            this: this.clone(),
            table: self.clone(),
            state: Mutex::new(State::default()),
            changes: AtomicUsize::new(0),
            released: WaitQueue::new(),
        });
        files.insert(key, Arc::downgrade(&locks));
        locks
    }

    /// The locks of a file, if there may be any.
    pub fn find(&self, key: FileKey) -> Option<Arc<FileLocks>> {
        self.files.lock().get(&key).and_then(Weak::upgrade)
    }

    /// Whether any process holds a record lock.
    pub fn any_process_records(&self) -> bool {
        self.process_records.load(Ordering::Relaxed) != 0
    }

    /// A process is over: its record locks with it.
    pub fn release_process(&self, pid: u32) {
        if self.noted.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut processes = self.processes.lock();
        let own: Vec<_> = processes.range((pid, 0)..=(pid, usize::MAX)).map(|(key, locks)| (*key, locks.upgrade())).collect();
        for (key, _) in &own {
            self.forget(&mut processes, *key);
        }
        drop(processes);
        for locks in own.into_iter().filter_map(|(_, locks)| locks) {
            {
                let mut state = locks.state.lock();
                state.noted.remove(&pid);
                state.last = None;
            }
            locks.release(Owner::Process(pid));
        }
    }

    fn forget(&self, processes: &mut BTreeMap<(u32, usize), Weak<FileLocks>>, key: (u32, usize)) {
        if processes.remove(&key).is_some() {
            self.noted.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Every held lock with its file (/proc/locks).
    pub fn list(&self) -> Vec<Held> {
        let all: Vec<_> = self.files.lock().iter().filter_map(|(key, locks)| Some((*key, locks.upgrade()?))).collect();
        all.into_iter()
            .map(|(file, locks)| {
                let state = locks.state.lock();
                Held { file, records: state.records.clone(), flocks: state.flocks.clone() }
            })
            .filter(|held| !held.records.is_empty() || !held.flocks.is_empty())
            .collect()
    }

    /// A place from which a thread of `waiter` announces whom it waits for.
    pub fn waiting(&self, waiter: u32) -> WaitEntry<'_> {
        WaitEntry { table: self, waiter, held: None }
    }
}

impl WaitEntry<'_> {
    /// Notes that the thread waits for what is in the way of its lock on `file`. EDEADLK when the owner of that waits, over any number of steps, for this process.
    pub fn block_on(&mut self, file: &Arc<FileLocks>, hindrance: &Hindrance) -> Result<()> {
        let holder = match hindrance.record.owner {
            Owner::Process(holder) => Some(holder),
            // A description waits for nobody.
            Owner::Description(_) => None,
        };
        let mut waits = self.table.waits.lock();
        self.forget(&mut waits);
        let Some(holder) = holder else { return Ok(()) };
        let cause = Cause { file: file.clone(), changes: hindrance.changes };
        // Each edge is looked at once, however many processes wait.
        let mut reached = BTreeSet::from([holder]);
        let mut left = alloc::vec![holder];
        while let Some(at) = left.pop() {
            // One whose hindrance may be gone tries again, since it is woken for that.
            if at == self.waiter && cause.holds() {
                return Err(Errno::EDEADLK);
            }
            let next = waits.range((at, 0)..=(at, u32::MAX)).filter(|(_, causes)| causes.iter().any(Cause::holds));
            left.extend(next.map(|(&(_, to), _)| to).filter(|&to| reached.insert(to)));
        }
        self.held = Some((holder, cause.file.clone(), cause.changes));
        waits.entry((self.waiter, holder)).or_default().push(cause);
        Ok(())
    }

    fn forget(&mut self, waits: &mut BTreeMap<(u32, u32), Vec<Cause>>) {
        let Some((holder, file, changes)) = self.held.take() else { return };
        if let Entry::Occupied(mut edge) = waits.entry((self.waiter, holder)) {
            let causes = edge.get_mut();
            if let Some(at) = causes.iter().position(|cause| Arc::ptr_eq(&cause.file, &file) && cause.changes == changes) {
                causes.swap_remove(at);
            }
            if causes.is_empty() {
                edge.remove();
            }
        }
    }
}

impl Drop for WaitEntry<'_> {
    fn drop(&mut self) {
        if self.held.is_some() {
            let table = self.table;
            self.forget(&mut table.waits.lock());
        }
    }
}

impl Drop for FileLocks {
    fn drop(&mut self) {
        let place = core::ptr::from_ref(self) as usize;
        let noted = core::mem::take(&mut self.state.get_mut().noted);
        if noted.is_empty() {
            return;
        }
        let mut processes = self.table.processes.lock();
        for pid in noted {
            self.table.forget(&mut processes, (pid, place));
        }
    }
}

impl FileLocks {
    /// Notes that the owner, if it is a process, holds something of this file.
    fn note(&self, state: &mut State, owner: Owner) {
        let Owner::Process(pid) = owner else { return };
        if state.last.replace(pid) == Some(pid) || !state.noted.insert(pid) {
            return;
        }
        let key = (pid, core::ptr::from_ref(self) as usize);
        self.table.processes.lock().insert(key, self.this.clone());
        self.table.noted.fetch_add(1, Ordering::Relaxed);
    }

    /// The first lock that hinders `wanted` (F_GETLK).
    pub fn conflict(&self, wanted: &Record) -> Option<Record> {
        self.state.lock().records.iter().filter(|held| held.hinders(wanted)).min_by_key(|held| held.start).copied()
    }

    /// Takes a record lock, replacing what its owner held in the range. `Err` is a lock in the way; nothing has changed then.
    pub fn set(&self, wanted: Record) -> core::result::Result<(), Hindrance> {
        let mut state = self.state.lock();
        if let Some(record) = state.records.iter().find(|held| held.hinders(&wanted)) {
            return Err(Hindrance { record: *record, changes: self.changes.load(Ordering::SeqCst) });
        }
        let before = state.records.len();
        let weakened = carve(&mut state.records, wanted.owner, wanted.start, wanted.end, Some(wanted.mode));
        insert_merged(&mut state.records, wanted);
        self.count(wanted.owner, before, state.records.len());
        self.note(&mut state, wanted.owner);
        self.changed(state, weakened);
        Ok(())
    }

    /// Releases the owner's locks in a range.
    pub fn clear(&self, owner: Owner, start: u64, end: u64) {
        let mut state = self.state.lock();
        let before = state.records.len();
        let released = carve(&mut state.records, owner, start, end, None);
        self.count(owner, before, state.records.len());
        self.changed(state, released);
    }

    /// Releases everything of an owner.
    pub fn release(&self, owner: Owner) {
        let mut state = self.state.lock();
        let before = state.records.len();
        state.records.retain(|held| held.owner != owner);
        let after = state.records.len();
        self.count(owner, before, after);
        let mut released = before != after;
        if let Owner::Description(id) = owner {
            let flocks = state.flocks.len();
            state.flocks.retain(|&(holder, _)| holder != id);
            released |= flocks != state.flocks.len();
        }
        self.changed(state, released);
    }

    /// flock(2): takes or converts the description's lock. `false` when others are in the way; a conversion has then given up
    /// the old lock, as on Linux.
    pub fn flock(&self, id: u64, mode: Mode) -> bool {
        let mut state = self.state.lock();
        if state.flocks.contains(&(id, mode)) {
            return true;
        }
        let before = state.flocks.len();
        state.flocks.retain(|&(holder, _)| holder != id);
        let converted = before != state.flocks.len();
        let hindered = match mode {
            Mode::Exclusive => !state.flocks.is_empty(),
            Mode::Shared => state.flocks.iter().any(|&(_, held)| held == Mode::Exclusive),
        };
        if !hindered {
            state.flocks.push((id, mode));
        }
        self.changed(state, converted);
        !hindered
    }

    /// Gives the description's flock(2) lock up.
    pub fn unflock(&self, id: u64) {
        let mut state = self.state.lock();
        let before = state.flocks.len();
        state.flocks.retain(|&(holder, _)| holder != id);
        let released = before != state.flocks.len();
        self.changed(state, released);
    }

    /// Unlocks, and has those who wait try again where something has been released or weakened.
    fn changed(&self, state: MutexGuard<'_, State>, released: bool) {
        if released {
            self.changes.fetch_add(1, Ordering::SeqCst);
        }
        drop(state);
        if released {
            self.released.wake_all();
        }
    }

    /// Keeps the table's number of process records; `before` and `after` are lengths of the list a single owner changed.
    fn count(&self, owner: Owner, before: usize, after: usize) {
        if matches!(owner, Owner::Process(_)) {
            let total = &self.table.process_records;
            if after > before {
                total.fetch_add(after - before, Ordering::Relaxed);
            } else {
                total.fetch_sub(before - after, Ordering::Relaxed);
            }
        }
    }
}

/// Cuts `start..end` out of the owner's records; whether anything got weaker by it, given what replaces it.
fn carve(records: &mut Vec<Record>, owner: Owner, start: u64, end: u64, replacement: Option<Mode>) -> bool {
    let mut weakened = false;
    let mut behind = None;
    records.retain_mut(|held| {
        if held.owner != owner || held.start >= end || held.end <= start {
            return true;
        }
        weakened |= match replacement {
            None => true,
            Some(mode) => held.mode == Mode::Exclusive && mode == Mode::Shared,
        };
        match (held.start < start, held.end > end) {
            // The only one of its owner's that is met: they do not overlap.
            (true, true) => {
                behind = Some(Record { start: end, ..*held });
                held.end = start;
                true
            }
            (true, false) => {
                held.end = start;
                true
            }
            (false, true) => {
                held.start = end;
                true
            }
            (false, false) => false,
        }
    });
    records.extend(behind);
    weakened
}

/// Adds a record whose range is free of its owner's, joined with neighbours of the same mode.
fn insert_merged(records: &mut Vec<Record>, mut new: Record) {
    records.retain(|held| {
        let joins = held.owner == new.owner && held.mode == new.mode;
        if joins && held.end == new.start {
            new.start = held.start;
            return false;
        }
        if joins && held.start == new.end {
            new.end = held.end;
            return false;
        }
        true
    });
    records.push(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Owner = Owner::Process(1);
    const B: Owner = Owner::Process(2);

    fn record(owner: Owner, mode: Mode, start: u64, end: u64) -> Record {
        Record { owner, mode, start, end }
    }

    /// What is in the way of a lock, as long as nothing has been released.
    fn by(owner: Owner) -> Hindrance {
        Hindrance { record: record(owner, Mode::Exclusive, 0, TO_END), changes: 0 }
    }

    fn held(locks: &FileLocks, owner: Owner) -> Vec<(Mode, u64, u64)> {
        let mut all: Vec<_> = locks
            .state
            .lock()
            .records
            .iter()
            .filter(|held| held.owner == owner)
            .map(|held| (held.mode, held.start, held.end))
            .collect();
        all.sort_by_key(|held| held.1);
        all
    }

    #[test]
    fn ranges_split_and_merge() {
        let locks = LockTable::new().of((1, 1));
        locks.set(record(A, Mode::Exclusive, 0, 100)).unwrap();
        locks.clear(A, 40, 60);
        assert_eq!(held(&locks, A), [(Mode::Exclusive, 0, 40), (Mode::Exclusive, 60, 100)]);
        locks.set(record(A, Mode::Shared, 30, 70)).unwrap();
        assert_eq!(held(&locks, A), [(Mode::Exclusive, 0, 30), (Mode::Shared, 30, 70), (Mode::Exclusive, 70, 100)]);
        locks.set(record(A, Mode::Exclusive, 30, 70)).unwrap();
        assert_eq!(held(&locks, A), [(Mode::Exclusive, 0, 100)]);
        locks.clear(A, 0, TO_END);
        assert!(held(&locks, A).is_empty() && !locks.table.any_process_records());
    }

    #[test]
    fn conflicts_are_by_owner_and_mode() {
        let locks = LockTable::new().of((1, 1));
        locks.set(record(A, Mode::Shared, 0, 10)).unwrap();
        locks.set(record(B, Mode::Shared, 5, 15)).unwrap();
        assert_eq!(locks.set(record(B, Mode::Exclusive, 5, 15)).unwrap_err().record.owner, A);
        assert_eq!(locks.set(record(B, Mode::Exclusive, 10, 15)), Ok(()));
        assert_eq!(locks.conflict(&record(A, Mode::Shared, 0, TO_END)).unwrap().start, 10);
        locks.table.release_process(2);
        assert_eq!(locks.conflict(&record(A, Mode::Exclusive, 0, TO_END)), None);
    }

    #[test]
    fn a_circle_of_waits_is_found() {
        let table = LockTable::new();
        let file = table.of((1, 1));
        let (mut one, mut two, mut three) = (table.waiting(1), table.waiting(2), table.waiting(3));
        assert_eq!(one.block_on(&file, &by(Owner::Process(2))), Ok(()));
        assert_eq!(two.block_on(&file, &by(Owner::Process(3))), Ok(()));
        assert_eq!(three.block_on(&file, &by(Owner::Process(1))), Err(Errno::EDEADLK));
        drop(one);
        assert_eq!(three.block_on(&file, &by(Owner::Process(1))), Ok(()));
    }

    #[test]
    fn a_wait_counts_as_long_as_one_thread_waits() {
        let table = LockTable::new();
        let file = table.of((1, 1));
        let (mut one, mut other, mut two) = (table.waiting(1), table.waiting(1), table.waiting(2));
        assert_eq!(one.block_on(&file, &by(Owner::Process(2))), Ok(()));
        assert_eq!(other.block_on(&file, &by(Owner::Process(2))), Ok(()));
        drop(one);
        assert_eq!(two.block_on(&file, &by(Owner::Process(1))), Err(Errno::EDEADLK));
        drop(other);
        assert_eq!(two.block_on(&file, &by(Owner::Process(1))), Ok(()));
        assert!(table.waits.lock().len() == 1);
    }

    /// Each of a row of processes waits for all behind it: the circle is looked for along each wait once, not along each way.
    #[test]
    fn many_waits_are_looked_through_once() {
        const COUNT: u32 = 200;
        let table = LockTable::new();
        let file = table.of((1, 1));
        let mut waits = Vec::new();
        for (waiter, holder) in (1..COUNT).flat_map(|waiter| (waiter + 1..=COUNT).map(move |holder| (waiter, holder))) {
            let mut entry = table.waiting(waiter);
            assert_eq!(entry.block_on(&file, &by(Owner::Process(holder))), Ok(()));
            waits.push(entry);
        }
        assert_eq!(table.waiting(COUNT).block_on(&file, &by(Owner::Process(1))), Err(Errno::EDEADLK));
        drop(waits);
        assert!(table.waits.lock().is_empty());
    }

    #[test]
    fn who_is_waited_for_no_longer_closes_no_circle() {
        let table = LockTable::new();
        let file = table.of((1, 1));
        let (mut one, mut two) = (table.waiting(1), table.waiting(2));
        assert_eq!(one.block_on(&file, &by(Owner::Process(2))), Ok(()));
        assert_eq!(one.block_on(&file, &by(Owner::Description(7))), Ok(()));
        assert_eq!(two.block_on(&file, &by(Owner::Process(1))), Ok(()));
    }

    /// Two processes take turns: who has been let go of waits for nobody, although it has not run yet.
    #[test]
    fn who_is_being_woken_closes_no_circle() {
        let table = LockTable::new();
        let file = table.of((1, 1));
        let (mut one, mut two) = (table.waiting(1), table.waiting(2));
        let all = |owner| record(owner, Mode::Exclusive, 0, TO_END);
        assert_eq!(file.set(all(A)), Ok(()));
        let hindrance = file.set(all(B)).unwrap_err();
        assert_eq!(two.block_on(&file, &hindrance), Ok(()));
        file.clear(A, 0, TO_END);
        // The second has its lock, and its entry still.
        assert_eq!(file.set(all(B)), Ok(()));
        let hindrance = file.set(all(A)).unwrap_err();
        assert_eq!(one.block_on(&file, &hindrance), Ok(()));
        // A true circle, by two files.
        let other = table.of((1, 2));
        assert_eq!(other.set(all(A)), Ok(()));
        let hindrance = other.set(all(B)).unwrap_err();
        assert_eq!(two.block_on(&other, &hindrance), Err(Errno::EDEADLK));
    }

    #[test]
    fn flock_is_by_description() {
        let locks = LockTable::new().of((1, 1));
        assert!(locks.flock(1, Mode::Shared) && locks.flock(2, Mode::Shared));
        assert!(!locks.flock(2, Mode::Exclusive), "another reader is in the way");
        assert!(locks.flock(1, Mode::Exclusive), "the failed conversion has given its lock up");
        locks.release(Owner::Description(1));
        assert!(locks.flock(2, Mode::Exclusive));
    }

    fn whole(pid: u32) -> Record {
        Record { owner: Owner::Process(pid), mode: Mode::Shared, start: 0, end: TO_END }
    }

    #[test]
    fn the_end_of_a_process_looks_at_its_own_files_only() {
        let table = LockTable::new();
        let files: Vec<_> = (0..100).map(|inode| table.of((1, inode))).collect();
        for (at, file) in files.iter().enumerate() {
            assert_eq!(file.set(whole(7)), Ok(()));
            if at % 50 == 0 {
                assert_eq!(file.set(whole(8)), Ok(()));
            }
        }
        assert_eq!(table.noted.load(Ordering::Relaxed), 102);
        table.release_process(9);
        assert_eq!(table.list().len(), 100);
        table.release_process(7);
        assert_eq!(table.list().len(), 2);
        assert!(table.list().iter().all(|held| held.records == [whole(8)]));
        assert_eq!(table.noted.load(Ordering::Relaxed), 2);
        // A number that is used again.
        assert_eq!(files[1].set(whole(7)), Ok(()));
        table.release_process(7);
        table.release_process(8);
        assert!(table.list().is_empty() && !table.any_process_records());
        assert_eq!(table.noted.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_file_nobody_has_locks_on_is_forgotten() {
        let table = LockTable::new();
        let file = table.of((1, 1));
        assert_eq!(file.set(whole(7)), Ok(()));
        file.clear(Owner::Process(7), 0, TO_END);
        drop(file);
        assert_eq!(table.noted.load(Ordering::Relaxed), 0);
        table.release_process(7);
    }
}
