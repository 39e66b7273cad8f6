//! Identifiers and keys of IPC objects, and who may do what with them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::capability::{CAP_IPC_OWNER, CAP_SYS_ADMIN};
use janua_abi::linux::ipc::{IPC_CREAT, IPC_EXCL, IPC_PRIVATE, IpcPerm};
use janua_abi::linux::{Errno, Result};
use janua_rt::Mutex;

use crate::caller::Cred;

/// Most objects of a kind at the start (SHMMNI and the like).
pub const MOST: usize = 32000;
/// Most there can ever be: the step between an identifier's generations.
const STEP: usize = 32768;

/// Owner, creator and mode of an object.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    pub key: i32,
    pub uid: u32,
    pub gid: u32,
    pub cuid: u32,
    pub cgid: u32,
    /// Nine permission bits.
    pub mode: u32,
}

impl Owner {
    pub fn new(key: i32, mode: u32, cred: &Cred) -> Owner {
        Owner { key, uid: cred.euid, gid: cred.egid, cuid: cred.euid, cgid: cred.egid, mode: mode & 0o777 }
    }

    /// EACCES unless the caller has the rights asked for in any of the three groups of bits of `want` (0400, 0600 and so on).
    pub fn check(&self, cred: &Cred, want: u32) -> Result<()> {
        let want = (want >> 6 | want >> 3 | want) & 7;
        let granted = if cred.euid == self.uid || cred.euid == self.cuid {
            self.mode >> 6
        } else if [self.gid, self.cgid].iter().any(|&gid| cred.egid == gid || cred.groups.contains(&gid)) {
            self.mode >> 3
        } else {
            self.mode
        };
        if want & !granted == 0 || cred.capable(CAP_IPC_OWNER) { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// EPERM unless the caller may remove the object or change its owner.
    pub fn check_owner(&self, cred: &Cred) -> Result<()> {
        let owns = cred.euid == self.uid || cred.euid == self.cuid || cred.capable(CAP_SYS_ADMIN);
        if owns { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// IPC_SET: new owner and mode.
    pub fn set(&mut self, to: &IpcPerm) {
        self.uid = to.uid;
        self.gid = to.gid;
        self.mode = to.mode & 0o777;
    }

    pub fn as_perm(&self, id: i32, flags: u32) -> IpcPerm {
        let &Owner { key, uid, gid, cuid, cgid, mode } = self;
        IpcPerm { key, uid, gid, cuid, cgid, mode: mode | flags, seq: (id as usize / STEP) as u16, ..IpcPerm::default() }
    }
}

/// What [`Ids`] must know of an object.
pub trait Object {
    /// Its owner at this moment.
    fn owner(&self) -> Owner;
    /// It has been taken out; who waits on it must learn that.
    fn removed(&self);
}

struct Slot<T> {
    key: i32,
    seq: u16,
    object: Option<Arc<T>>,
}

struct Table<T> {
    slots: Vec<Slot<T>>,
    /// How many objects there may be.
    most: usize,
}

/// The objects of a kind.
pub struct Ids<T>(Mutex<Table<T>>);

impl<T: Object> Default for Ids<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Object> Ids<T> {
    pub const fn new() -> Ids<T> {
        Ids(Mutex::new(Table { slots: Vec::new(), most: MOST }))
    }

    /// How many objects there may be (/proc/sys/kernel/shmmni, msgmni).
    pub fn most(&self) -> usize {
        self.0.lock().most
    }

    /// EINVAL for more than identifiers can tell apart.
    pub fn set_most(&self, most: usize) -> Result<()> {
        if most > STEP {
            return Err(Errno::EINVAL);
        }
        self.0.lock().most = most;
        Ok(())
    }

    /// shmget, semget, msgget: the identifier of the object with a key, made when there is none and `flags` ask for it.
    /// `fits` judges one that is there; `make` is given the new identifier.
    pub fn get(
        &self,
        key: i32,
        flags: u32,
        cred: &Cred,
        fits: impl FnOnce(&T) -> Result<()>,
        make: impl FnOnce(i32) -> Result<Arc<T>>,
    ) -> Result<i32> {
        let mut table = self.0.lock();
        if key != IPC_PRIVATE {
            let there = table.slots.iter().enumerate().find_map(|(at, slot)| match &slot.object {
                Some(object) if slot.key == key => Some((id(at, slot.seq), object)),
                _ => None,
            });
            match there {
                Some(_) if flags & (IPC_CREAT | IPC_EXCL) == IPC_CREAT | IPC_EXCL => return Err(Errno::EEXIST),
                Some((id, object)) => {
                    fits(object)?;
                    object.owner().check(cred, flags)?;
                    return Ok(id);
                }
                None if flags & IPC_CREAT == 0 => return Err(Errno::ENOENT),
                None => {}
            }
        }
        let at = table.slots.iter().position(|slot| slot.object.is_none()).unwrap_or(table.slots.len());
        let used = table.slots.iter().filter(|slot| slot.object.is_some()).count();
        if used >= table.most || at >= STEP {
            return Err(Errno::ENOSPC);
        }
        let seq = table.slots.get(at).map_or(0, |slot| (slot.seq + 1) & 0x7fff);
        let object = make(id(at, seq))?;
        let slot = Slot { key, seq, object: Some(object) };
        match table.slots.get_mut(at) {
            Some(old) => *old = slot,
            None => table.slots.push(slot),
        }
        Ok(id(at, seq))
    }

    /// The object with an identifier. EINVAL.
    pub fn find(&self, id: i32) -> Result<Arc<T>> {
        let (at, seq) = parts(id)?;
        match self.0.lock().slots.get(at) {
            Some(Slot { seq: there, object: Some(object), .. }) if *there == seq => Ok(object.clone()),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The object at an index, and its identifier (SHM_STAT and the like). EINVAL.
    pub fn at(&self, index: i32) -> Result<(i32, Arc<T>)> {
        let at = usize::try_from(index).map_err(|_| Errno::EINVAL)? % STEP;
        match self.0.lock().slots.get(at) {
            Some(Slot { seq, object: Some(object), .. }) => Ok((id(at, *seq), object.clone())),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Takes an object out.
    pub fn remove(&self, id: i32) {
        let Ok((at, seq)) = parts(id) else { return };
        let taken = match self.0.lock().slots.get_mut(at) {
            Some(slot) if slot.seq == seq => slot.object.take(),
            _ => None,
        };
        if let Some(object) = taken {
            object.removed();
        }
    }

    /// Lets nobody find an object by its key any more.
    pub fn forget_key(&self, id: i32) {
        let Ok((at, seq)) = parts(id) else { return };
        if let Some(slot) = self.0.lock().slots.get_mut(at)
            && slot.seq == seq
        {
            slot.key = IPC_PRIVATE;
        }
    }

    /// All objects with their identifiers, and the highest index in use (0 when none is).
    pub fn all(&self) -> (Vec<(i32, Arc<T>)>, usize) {
        let table = self.0.lock();
        let all: Vec<_> = table
            .slots
            .iter()
            .enumerate()
            .filter_map(|(at, slot)| slot.object.clone().map(|object| (id(at, slot.seq), object)))
            .collect();
        let highest = all.last().map_or(0, |(id, _)| *id as usize % STEP);
        (all, highest)
    }
}

fn id(at: usize, seq: u16) -> i32 {
    (usize::from(seq) * STEP + at) as i32
}

fn parts(id: i32) -> Result<(usize, u16)> {
    let id = usize::try_from(id).map_err(|_| Errno::EINVAL)?;
    Ok((id % STEP, (id / STEP) as u16))
}
