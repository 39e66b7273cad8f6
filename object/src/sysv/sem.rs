//! Semaphore sets (semop(2)).
//!
//! An operation on a set is tried as a whole under the set's lock; one that cannot go on waits on the set's queue and is
//! tried again whenever a value has changed. The first to come after a change wins, as POSIX allows.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use janua_abi::linux::ipc::{IPC_NOWAIT, SEM_UNDO, Sembuf, SemidDs};
use janua_abi::linux::{Errno, Result};
use janua_rt::{Mutex, WaitQueue};

use super::ids::{Object, Owner};

/// Most semaphores in a set.
pub const SEMMSL: usize = 32000;
/// Most operations in one call.
pub const SEMOPM: usize = 500;
/// Largest value.
pub const SEMVMX: i32 = 32767;
/// Most that a process' end adds to a semaphore; it takes one more at most.
const SEMAEM: i32 = SEMVMX;

#[derive(Clone, Copy, Default)]
struct Sem {
    value: i32,
    /// Who changed it last.
    pid: u32,
}

struct State {
    owner: Owner,
    sems: Vec<Sem>,
    otime: i64,
    ctime: i64,
    removed: bool,
    /// What each process's end adds to each semaphore (SEM_UNDO).
    undo: BTreeMap<u32, Vec<i32>>,
    /// Semaphore and kind (true: for zero) of each waiting call.
    waiting: Vec<(u16, bool)>,
}

/// A set of semaphores.
pub struct SemSet {
    state: Mutex<State>,
    pub queue: WaitQueue,
}

/// What became of an attempt.
pub enum Attempt {
    Done,
    /// It would have to wait for this semaphore; for zero if `true`.
    Wait(u16, bool),
}

/// A waiting call, counted by GETNCNT and GETZCNT until it is dropped.
pub struct Waiting {
    set: Arc<SemSet>,
    what: (u16, bool),
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.set.state.lock();
        if let Some(at) = state.waiting.iter().position(|what| *what == self.what) {
            state.waiting.swap_remove(at);
        }
    }
}

impl SemSet {
    /// `now` in seconds.
    pub fn new(owner: Owner, count: usize, now: i64) -> Arc<SemSet> {
        Arc::new(SemSet {
            state: Mutex::new(State {
                owner,
                sems: vec![Sem::default(); count],
                otime: 0,
                ctime: now,
                removed: false,
                undo: BTreeMap::new(),
                waiting: Vec::new(),
            }),
            queue: WaitQueue::new(),
        })
    }

    pub fn len(&self) -> usize {
        self.state.lock().sems.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts the caller as waiting.
    pub fn wait(self: &Arc<Self>, num: u16, zero: bool) -> Waiting {
        self.state.lock().waiting.push((num, zero));
        Waiting { set: self.clone(), what: (num, zero) }
    }

    /// Tries all operations or none. EFBIG for a number beyond the set, ERANGE for a value beyond [`SEMVMX`] or more to undo than [`SEMAEM`], EAGAIN for one that
    /// would wait with IPC_NOWAIT, EIDRM once the set is gone.
    pub fn attempt(&self, ops: &[Sembuf], pid: u32, now: i64) -> Result<Attempt> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if state.removed {
            return Err(Errno::EIDRM);
        }
        if ops.iter().any(|op| usize::from(op.num) >= state.sems.len()) {
            return Err(Errno::EFBIG);
        }
        let count = state.sems.len();
        let mut done = 0;
        let mut refused = Ok(Attempt::Done);
        for op in ops {
            let sem = &mut state.sems[usize::from(op.num)];
            let value = sem.value + i32::from(op.op);
            let blocked = if op.op == 0 { sem.value != 0 } else { value < 0 };
            if blocked {
                let waits = u32::from(op.flags) & IPC_NOWAIT == 0;
                refused = if waits { Ok(Attempt::Wait(op.num, op.op == 0)) } else { Err(Errno::EAGAIN) };
                break;
            }
            if value > SEMVMX {
                refused = Err(Errno::ERANGE);
                break;
            }
            if op.flags & SEM_UNDO != 0 && op.op != 0 {
                let undo = &mut state.undo.entry(pid).or_insert_with(|| vec![0; count])[usize::from(op.num)];
                if !(-SEMAEM - 1..=SEMAEM).contains(&(*undo - i32::from(op.op))) {
                    refused = Err(Errno::ERANGE);
                    break;
                }
                *undo -= i32::from(op.op);
            }
            sem.value = value;
            done += 1;
        }
        if done < ops.len() {
            // None, then: what was done is taken back.
            for op in &ops[..done] {
                state.sems[usize::from(op.num)].value -= i32::from(op.op);
                if op.flags & SEM_UNDO != 0
                    && let Some(undo) = state.undo.get_mut(&pid)
                {
                    undo[usize::from(op.num)] += i32::from(op.op);
                }
            }
            return refused;
        }
        for op in ops {
            state.sems[usize::from(op.num)].pid = pid;
        }
        state.otime = now;
        drop(guard);
        if ops.iter().any(|op| op.op != 0) {
            self.queue.wake_all();
        }
        Ok(Attempt::Done)
    }

    /// Undoes what a process asked to have undone at its end.
    pub fn process_ended(&self, pid: u32) {
        let mut state = self.state.lock();
        let Some(undo) = state.undo.remove(&pid) else { return };
        for (sem, by) in state.sems.iter_mut().zip(undo) {
            if by != 0 {
                sem.value = (sem.value + by).clamp(0, SEMVMX);
                sem.pid = pid;
            }
        }
        drop(state);
        self.queue.wake_all();
    }

    /// One semaphore's value, last pid, and waiters for more and for zero. EINVAL.
    pub fn look(&self, num: usize) -> Result<(i32, u32, usize, usize)> {
        let state = self.state.lock();
        let sem = state.sems.get(num).ok_or(Errno::EINVAL)?;
        let count = |zero: bool| state.waiting.iter().filter(|what| **what == (num as u16, zero)).count();
        Ok((sem.value, sem.pid, count(false), count(true)))
    }

    pub fn values(&self) -> Vec<u16> {
        self.state.lock().sems.iter().map(|sem| sem.value as u16).collect()
    }

    /// SETVAL and SETALL: values from semaphore `first` on. ERANGE, EINVAL. What was to be undone of them is forgotten.
    pub fn set_values(&self, first: usize, values: &[i32], pid: u32, now: i64) -> Result<()> {
        if values.iter().any(|value| !(0..=SEMVMX).contains(value)) {
            return Err(Errno::ERANGE);
        }
        let mut state = self.state.lock();
        if state.removed {
            return Err(Errno::EIDRM);
        }
        let end = first.checked_add(values.len()).ok_or(Errno::EINVAL)?;
        for (sem, value) in state.sems.get_mut(first..end).ok_or(Errno::EINVAL)?.iter_mut().zip(values) {
            *sem = Sem { value: *value, pid };
        }
        for undo in state.undo.values_mut() {
            undo[first..end].fill(0);
        }
        state.ctime = now;
        drop(state);
        self.queue.wake_all();
        Ok(())
    }

    /// Changes the owner (IPC_SET).
    pub fn set_owner(&self, now: i64, change: impl FnOnce(&mut Owner) -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        change(&mut state.owner)?;
        state.ctime = now;
        Ok(())
    }

    pub fn stat(&self, id: i32) -> SemidDs {
        let state = self.state.lock();
        SemidDs {
            perm: state.owner.as_perm(id, 0),
            otime: state.otime,
            ctime: state.ctime,
            nsems: state.sems.len() as u64,
            ..SemidDs::default()
        }
    }
}

impl Object for SemSet {
    fn owner(&self) -> Owner {
        self.state.lock().owner
    }
    fn removed(&self) {
        self.state.lock().removed = true;
        self.queue.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Cred;

    fn set(count: usize) -> Arc<SemSet> {
        SemSet::new(Owner::new(1, 0o600, &Cred::of_user(0, 0, Vec::new())), count, 0)
    }

    fn op(num: u16, op: i16, flags: u16) -> Sembuf {
        Sembuf { num, op, flags }
    }

    #[test]
    fn all_or_none() {
        let set = set(2);
        set.set_values(0, &[1, 0], 7, 0).unwrap();
        assert!(matches!(set.attempt(&[op(0, -1, 0), op(1, -1, 0)], 7, 0), Ok(Attempt::Wait(1, false))));
        assert_eq!(set.values(), [1, 0]);
        assert!(matches!(set.attempt(&[op(0, -1, 0), op(1, 2, 0)], 7, 0), Ok(Attempt::Done)));
        assert_eq!(set.values(), [0, 2]);
        assert!(matches!(set.attempt(&[op(1, 0, IPC_NOWAIT as u16)], 7, 0), Err(Errno::EAGAIN)));
        assert!(matches!(set.attempt(&[op(2, 0, 0)], 7, 0), Err(Errno::EFBIG)));
        assert!(matches!(set.attempt(&[op(1, i16::MAX, 0)], 7, 0), Err(Errno::ERANGE)));
    }

    #[test]
    fn undo() {
        let set = set(1);
        set.attempt(&[op(0, 3, SEM_UNDO)], 7, 0).unwrap();
        set.attempt(&[op(0, -1, SEM_UNDO)], 8, 0).unwrap();
        set.process_ended(8);
        assert_eq!(set.values(), [3]);
        set.process_ended(7);
        assert_eq!(set.values(), [0]);
    }
}
