//! Resource limits (getrlimit(2)): the numbers, and who may change them.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::layout::Layout;
use janua_abi::linux::process::{Rlimit, rlimit};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::{Arg, Kind};
use janua_rt::{AtomicU64, Mutex};

use crate::process::Process;
use crate::task::{CAP_SYS_RESOURCE, access};
use crate::thread::ThreadExt;
use crate::{Task, Thread};

/// Limits a program started from a shell usually finds.
const DEFAULTS: [Rlimit; rlimit::COUNT] = {
    const ALL: Rlimit = Rlimit { soft: rlimit::INFINITY, hard: rlimit::INFINITY };
    let mut limits = [ALL; rlimit::COUNT];
    limits[rlimit::STACK as usize] = Rlimit { soft: 8 << 20, hard: rlimit::INFINITY };
    limits[rlimit::CORE as usize] = Rlimit { soft: 0, hard: rlimit::INFINITY };
    limits[rlimit::NPROC as usize] = Rlimit { soft: 32768, hard: 32768 };
    limits[rlimit::NOFILE as usize] = Rlimit { soft: 1024, hard: 1 << 20 };
    limits[rlimit::MEMLOCK as usize] = Rlimit { soft: 8 << 20, hard: 8 << 20 };
    limits[rlimit::SIGPENDING as usize] = Rlimit { soft: 32768, hard: 32768 };
    limits[rlimit::MSGQUEUE as usize] = Rlimit { soft: 819_200, hard: 819_200 };
    limits[rlimit::NICE as usize] = Rlimit { soft: 0, hard: 0 };
    limits[rlimit::RTPRIO as usize] = Rlimit { soft: 0, hard: 0 };
    limits
};

/// The limits of a process.
pub struct Limits {
    all: Mutex<[Rlimit; rlimit::COUNT]>,
    /// The soft ones again, for calls that ask for several each time. Written under the lock.
    soft: [AtomicU64; rlimit::COUNT],
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::from(DEFAULTS)
    }
}

impl From<[Rlimit; rlimit::COUNT]> for Limits {
    fn from(limits: [Rlimit; rlimit::COUNT]) -> Limits {
        Limits { soft: limits.map(|limit| AtomicU64::new(limit.soft)), all: Mutex::new(limits) }
    }
}

impl Limits {
    /// The given limits; the usual ones for those that are `None`.
    pub fn new(given: &[Option<Rlimit>; rlimit::COUNT]) -> Limits {
        let mut limits = DEFAULTS;
        for (limit, given) in limits.iter_mut().zip(given) {
            *limit = given.unwrap_or(*limit);
        }
        Limits::from(limits)
    }

    /// A copy for fork.
    pub fn duplicate(&self) -> Limits {
        let limits = *self.all.lock();
        Limits::from(limits)
    }

    /// Both limits of a resource; no limit for a number that is none.
    pub fn get(&self, resource: u32) -> Rlimit {
        const NONE: Rlimit = Rlimit { soft: rlimit::INFINITY, hard: rlimit::INFINITY };
        self.all.lock().get(resource as usize).copied().unwrap_or(NONE)
    }

    /// The limit in force.
    pub fn soft(&self, resource: u32) -> u64 {
        self.soft.get(resource as usize).map_or(rlimit::INFINITY, |soft| soft.load(Ordering::Relaxed))
    }

    pub fn set(&self, resource: u32, limit: Rlimit) {
        let mut all = self.all.lock();
        if let (Some(slot), Some(soft)) = (all.get_mut(resource as usize), self.soft.get(resource as usize)) {
            *slot = limit;
            soft.store(limit.soft, Ordering::Relaxed);
        }
    }
}

/// Most descriptors anybody may ask for at the start, and ever (/proc/sys/fs/nr_open).
pub const NR_OPEN: u64 = 1 << 20;

/// A resource as an argument.
#[derive(Clone, Copy, Debug)]
pub struct Resource(pub u32);

impl Arg for Resource {
    const KIND: Kind = Kind::Named("rlimit");
    fn decode(word: usize) -> Result<Self> {
        Ok(Resource(word as u32))
    }
}

impl Resource {
    /// The name of a resource without its RLIMIT_.
    pub fn name(number: u32) -> Option<&'static str> {
        const NAMES: [&str; rlimit::COUNT] = [
            "CPU",
            "FSIZE",
            "DATA",
            "STACK",
            "CORE",
            "RSS",
            "NPROC",
            "NOFILE",
            "MEMLOCK",
            "AS",
            "LOCKS",
            "SIGPENDING",
            "MSGQUEUE",
            "NICE",
            "RTPRIO",
            "RTTIME",
        ];
        NAMES.get(number as usize).copied()
    }

    fn check(self) -> Result<u32> {
        if (self.0 as usize) < rlimit::COUNT { Ok(self.0) } else { Err(Errno::EINVAL) }
    }
}

/// getrlimit(2).
pub fn getrlimit(thread: &Thread, resource: Resource, old: UserPtr<impl Layout<Rlimit>>) -> Result<()> {
    old.store(thread.user(), &thread.process().limits.get(resource.check()?))
}

/// setrlimit(2).
pub fn setrlimit(thread: &Thread, resource: Resource, new: UserPtr<impl Layout<Rlimit>>) -> Result<()> {
    let new = new.load(thread.user())?;
    change(thread, &thread.task, resource.check()?, new)
}

/// prlimit(2).
pub fn prlimit64(thread: &Thread, pid: i32, resource: Resource, new: UserPtr<Rlimit>, old: UserPtr<Rlimit>) -> Result<()> {
    let resource = resource.check()?;
    let new = new.non_null().map(|new| new.read(thread.user())).transpose()?;
    let task = match pid {
        0 => thread.task.clone(),
        _ => u32::try_from(pid).ok().and_then(|pid| find(thread, pid)).ok_or(Errno::ESRCH)?,
    };
    if task.pid != thread.process().pid && !may_limit(thread, &task) {
        return Err(Errno::EPERM);
    }
    let before = task.limits.get(resource);
    if let Some(new) = new {
        change(thread, &task, resource, new)?;
    }
    match old.non_null() {
        Some(old) => old.write(thread.user(), &before),
        None => Ok(()),
    }
}

fn find(thread: &Thread, pid: u32) -> Option<Arc<Task>> {
    let tree = thread.kernel.tree.lock();
    tree.process(pid).cloned().or_else(|| tree.thread(pid).map(|seat| seat.task.clone()))
}

/// The same user in every respect, or CAP_SYS_RESOURCE (prlimit(2)). Nobody one that is closed.
fn may_limit(thread: &Thread, target: &Process) -> bool {
    if access::is_closed(&thread.kernel, target) {
        return false;
    }
    let mine = thread.cred();
    if mine.capable(CAP_SYS_RESOURCE) {
        return true;
    }
    let Some(theirs) = target.group.lock().threads.first().map(|seat| seat.cred()) else { return false };
    [theirs.uid, theirs.euid, theirs.suid].iter().all(|uid| *uid == mine.uid)
        && [theirs.gid, theirs.egid, theirs.sgid].iter().all(|gid| *gid == mine.gid)
}

fn change(thread: &Thread, target: &Arc<Task>, resource: u32, new: Rlimit) -> Result<()> {
    if new.soft > new.hard {
        return Err(Errno::EINVAL);
    }
    if resource == rlimit::NOFILE && new.hard > thread.kernel.nr_open.load(Ordering::Relaxed) {
        return Err(Errno::EPERM);
    }
    if new.hard > target.limits.get(resource).hard && !thread.cred().capable(CAP_SYS_RESOURCE) {
        return Err(Errno::EPERM);
    }
    target.limits.set(resource, new);
    if resource == rlimit::CPU {
        crate::time::interval::watch_limit(target);
    }
    Ok(())
}
