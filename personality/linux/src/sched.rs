//! Scheduling as programs see it (sched(7)): the machine schedules; policies and priorities are remembered, their rules kept,
//! and affinity, nice values and deadlines passed on.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::layout::Layout;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_object::Cred;
use janua_port::PAGE;
use janua_port::machine::{Demand, Machine};
use janua_rt::{AtomicU64, Mutex};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::task::tree::INIT;
use crate::task::{CAP_SYS_NICE, access};
use crate::thread::ThreadExt;
use crate::{Seat, Task, Thread};

/// SCHED_*.
pub mod policy {
    pub const OTHER: u32 = 0;
    pub const FIFO: u32 = 1;
    pub const RR: u32 = 2;
    pub const BATCH: u32 = 3;
    pub const IDLE: u32 = 5;
    pub const DEADLINE: u32 = 6;
    /// In the policy word: children start with SCHED_OTHER.
    pub const RESET_ON_FORK: u32 = 0x4000_0000;
}

/// SCHED_FLAG_*.
mod attribute {
    pub const RESET_ON_FORK: u64 = 0x1;
    /// RECLAIM and DL_OVERRUN: kept with a deadline.
    pub const OF_DEADLINE: u64 = 0x6;
    pub const KEEP_POLICY: u64 = 0x8;
    pub const KEEP_PARAMS: u64 = 0x10;
    pub const UTIL_CLAMP: u64 = 0x60;
}

/// What SCHED_DEADLINE gives a thread: so much time, until then, in each period; nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Deadline {
    runtime: u64,
    deadline: u64,
    period: u64,
    /// [`attribute::OF_DEADLINE`].
    flags: u64,
}

impl Deadline {
    /// EINVAL for what makes no sense (sched(7)), or a period outside of 100 us to 2^22 us, which are Linux' limits.
    fn check(&self) -> Result<()> {
        const LEAST_RUNTIME: u64 = 1 << 10;
        const PERIODS: core::ops::RangeInclusive<u64> = 100_000..=(1 << 22) * 1000;
        let fine = self.deadline != 0
            && self.runtime >= LEAST_RUNTIME
            && (self.deadline | self.period) >> 63 == 0
            && self.period >= self.deadline
            && self.deadline >= self.runtime
            && PERIODS.contains(&self.period);
        if fine { Ok(()) } else { Err(Errno::EINVAL) }
    }

    /// The part of a processor it needs, in 2^-20.
    fn share(&self) -> u64 {
        (self.runtime << 20).checked_div(self.period).unwrap_or(0)
    }
}

/// A thread's policy and what goes with it.
#[derive(Default)]
pub struct Sched {
    /// SCHED_*, with RESET_ON_FORK.
    pub policy: AtomicU32,
    /// 1..=99 for the real-time policies, else 0.
    pub priority: AtomicU32,
    /// ioprio_set(2)'s word, which threads made with CLONE_IO share.
    io: Mutex<Option<Arc<AtomicU32>>>,
    /// The slice it asked for under the fair policies, nanoseconds; 0 for the usual one.
    slice: AtomicU64,
    deadline: Mutex<Deadline>,
    /// Processors allowed, bit n of word n/64; empty for all.
    affinity: Mutex<Vec<u64>>,
}

impl Sched {
    /// Takes another thread's over (a child from its parent), or shares what is about i/o.
    pub fn copy_from(&self, other: &Sched, shares_io: bool) {
        let policy = other.policy.load(Ordering::Relaxed);
        if policy & policy::RESET_ON_FORK == 0 {
            self.policy.store(policy, Ordering::Relaxed);
            self.priority.store(other.priority.load(Ordering::Relaxed), Ordering::Relaxed);
            self.slice.store(other.slice.load(Ordering::Relaxed), Ordering::Relaxed);
        } else if !other.is_real_time() {
            self.policy.store(policy & !policy::RESET_ON_FORK, Ordering::Relaxed);
        }
        let io = other.io_context().filter(|io| shares_io || io.load(Ordering::Relaxed) >> IO_CLASS_SHIFT != 0);
        *self.io.lock() = io.map(|io| if shares_io { io } else { Arc::new(AtomicU32::new(io.load(Ordering::Relaxed))) });
        let affinity = other.affinity.lock().clone();
        *self.affinity.lock() = affinity;
    }

    /// The word of ioprio_set(2), once there is one.
    pub fn io_context(&self) -> Option<Arc<AtomicU32>> {
        self.io.lock().clone()
    }

    /// Takes over all that a thread had which has ended: what its process shows until it is waited for.
    pub fn keep(&self, other: &Sched) {
        for (own, theirs) in [(&self.policy, &other.policy), (&self.priority, &other.priority)] {
            own.store(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.slice.store(other.slice.load(Ordering::Relaxed), Ordering::Relaxed);
        *self.deadline.lock() = *other.deadline.lock();
        *self.affinity.lock() = core::mem::take(&mut *other.affinity.lock());
    }

    /// SCHED_*, without RESET_ON_FORK.
    fn plain_policy(&self) -> u32 {
        self.policy.load(Ordering::Relaxed) & !policy::RESET_ON_FORK
    }

    /// Whether what it has is given back at a fork.
    fn resets(&self) -> bool {
        self.policy.load(Ordering::Relaxed) & policy::RESET_ON_FORK != 0
    }

    fn is_real_time(&self) -> bool {
        matches!(self.plain_policy(), policy::FIFO | policy::RR | policy::DEADLINE)
    }

    /// The time promised to a thread with a deadline is its own: it makes no other thread unless that starts anew. EAGAIN.
    pub fn check_fork(&self) -> Result<()> {
        if self.plain_policy() == policy::DEADLINE && !self.resets() { Err(Errno::EAGAIN) } else { Ok(()) }
    }

    /// The nice value of a child of a process that has this one.
    pub fn inherited_nice(&self, nice: i32) -> i32 {
        if !self.resets() {
            return nice;
        }
        if self.is_real_time() { 0 } else { nice.max(0) }
    }

    /// The processors the thread may use, in words.
    pub fn processors(&self, machine: &dyn Machine) -> Vec<u64> {
        let affinity = self.affinity.lock().clone();
        if affinity.is_empty() { allowed(machine) } else { affinity }
    }
}

/// The processors guests may use, in words.
fn allowed(machine: &dyn Machine) -> Vec<u64> {
    let (mut words, mut found) = (Vec::new(), 0);
    while found < machine.cpus() {
        let word = machine.allowed(words.len());
        found += word.count_ones() as usize;
        words.push(word);
    }
    words
}

/// Whom a call is about: a thread, or a process that has ended and not been waited for.
struct Target {
    seat: Option<Arc<Seat>>,
    task: Arc<Task>,
}

impl Target {
    /// The thread `pid` names, 0 being the caller's own. EINVAL, ESRCH.
    fn of(thread: &Thread, pid: i32) -> Result<Target> {
        let number = u32::try_from(pid).map_err(|_| Errno::EINVAL)?;
        let seat = if number == 0 { thread.seat() } else { thread.kernel.thread(number) };
        let task = match &seat {
            Some(seat) => seat.task.clone(),
            // The first process has no thread, and is no such one.
            None => thread.kernel.process(number).filter(|task| task.pid != INIT).ok_or(Errno::ESRCH)?,
        };
        Ok(Target { seat, task })
    }

    fn sched(&self) -> &Sched {
        self.seat.as_ref().map_or(&self.task.last_sched, |seat| &seat.sched)
    }

    fn cred(&self) -> Option<Arc<Cred>> {
        self.seat.as_ref().map(|seat| seat.cred()).or_else(|| self.task.last_cred.read().clone())
    }

    fn nice(&self) -> i32 {
        self.task.settings.nice.load(Ordering::Relaxed)
    }
}

/// What `pid` names, for a call that only asks: the first process is scheduled like any other.
fn with<R>(thread: &Thread, pid: i32, read: impl FnOnce(&Sched) -> R) -> Result<R> {
    match Target::of(thread, pid) {
        Err(Errno::ESRCH) if pid.unsigned_abs() == INIT => Ok(read(&Sched::default())),
        target => Ok(read(target?.sched())),
    }
}

/// `pid` of the calls that know no invalid number.
fn any(pid: i32) -> Result<i32> {
    if pid < 0 { Err(Errno::ESRCH) } else { Ok(pid) }
}

/// Whether the caller may change another thread's scheduling: same user or CAP_SYS_NICE.
fn may_change(thread: &Thread, target: &Target) -> bool {
    let mine = thread.cred();
    let same = target.cred().is_some_and(|theirs| mine.euid == theirs.euid || mine.euid == theirs.uid);
    same || mine.capable(CAP_SYS_NICE)
}

/// sched_yield(2).
pub fn sched_yield(thread: &Thread) {
    thread.machine().park().yield_turn();
}

/// sched_setaffinity(2).
pub fn sched_setaffinity(thread: &Thread, pid: i32, len: usize, mask: UserPtr<u8>) -> Result<()> {
    let target = Target::of(thread, any(pid)?)?;
    let allowed = allowed(thread.machine());
    let mut words = vec![0u64; allowed.len()];
    let bytes = words.as_mut_slice().as_mut_bytes();
    let len = len.min(bytes.len());
    thread.user().copy_in(&mut bytes[..len], mask.addr()).map_err(|_| Errno::EFAULT)?;
    if !may_change(thread, &target) {
        return Err(Errno::EPERM);
    }
    for (word, allowed) in words.iter_mut().zip(&allowed) {
        *word &= allowed;
    }
    if target.sched().plain_policy() == policy::DEADLINE && words != allowed {
        return Err(Errno::EBUSY);
    }
    if words.iter().all(|word| *word == 0) {
        return Err(Errno::EINVAL);
    }
    if let Some(seat) = &target.seat {
        // Another's place in the machine must not be a third one's by then.
        let _held = if core::ptr::eq::<Thread>(&***seat, thread) { None } else { Some(access::hold_thread(seat)?) };
        seat.context().ok_or(Errno::ESRCH)?.restrict(&words)?;
    }
    *target.sched().affinity.lock() = words;
    Ok(())
}

/// sched_getaffinity(2): how many bytes were stored.
pub fn sched_getaffinity(thread: &Thread, pid: i32, len: usize, mask: UserPtr<u8>) -> Result<usize> {
    if !len.is_multiple_of(8) {
        return Err(Errno::EINVAL);
    }
    let words = with(thread, any(pid)?, |sched| sched.processors(thread.machine()))?;
    if len < size_of_val(&*words) {
        return Err(Errno::EINVAL);
    }
    let bytes = words.as_slice().as_bytes();
    let len = len.min(bytes.len());
    thread.user().copy_out(mask.addr(), &bytes[..len]).map_err(|_| Errno::EFAULT)?;
    Ok(len)
}

/// Priorities a policy has; EINVAL for no policy.
fn priorities(policy: u32) -> Result<core::ops::RangeInclusive<u32>> {
    match policy {
        policy::FIFO | policy::RR => Ok(1..=99),
        policy::OTHER | policy::BATCH | policy::IDLE | policy::DEADLINE => Ok(0..=0),
        _ => Err(Errno::EINVAL),
    }
}

/// sched_get_priority_max(2).
pub fn sched_get_priority_max(_thread: &Thread, policy: u32) -> Result<u32> {
    priorities(policy).map(|range| *range.end())
}

/// sched_get_priority_min(2).
pub fn sched_get_priority_min(_thread: &Thread, policy: u32) -> Result<u32> {
    priorities(policy).map(|range| *range.start())
}

/// sched_getscheduler(2).
pub fn sched_getscheduler(thread: &Thread, pid: i32) -> Result<u32> {
    with(thread, pid, |sched| sched.policy.load(Ordering::Relaxed))
}

/// sched_getparam(2): `struct sched_param` is one int.
pub fn sched_getparam(thread: &Thread, pid: i32, param: UserPtr<u32>) -> Result<()> {
    if param.is_null() {
        return Err(Errno::EINVAL);
    }
    let priority = with(thread, pid, |sched| sched.priority.load(Ordering::Relaxed))?;
    param.write(thread.user(), &priority)
}

/// sched_setscheduler(2).
pub fn sched_setscheduler(thread: &Thread, pid: i32, policy: i32, param: UserPtr<u32>) -> Result<()> {
    let word = u32::try_from(policy).map_err(|_| Errno::EINVAL)?;
    if param.is_null() {
        return Err(Errno::EINVAL);
    }
    let priority = param.read(thread.user())?;
    let target = Target::of(thread, pid)?;
    let (policy, reset) = (word & !policy::RESET_ON_FORK, word & policy::RESET_ON_FORK != 0);
    set(thread, &target, &Change { policy, reset, priority, ..Change::default() })
}

/// sched_setparam(2).
pub fn sched_setparam(thread: &Thread, pid: i32, param: UserPtr<u32>) -> Result<()> {
    if param.is_null() {
        return Err(Errno::EINVAL);
    }
    let priority = param.read(thread.user())?;
    let target = Target::of(thread, pid)?;
    let (policy, reset) = (target.sched().plain_policy(), target.sched().resets());
    set(thread, &target, &Change { policy, reset, priority, ..Change::default() })
}

/// What a thread is to become.
#[derive(Default)]
struct Change {
    policy: u32,
    /// SCHED_RESET_ON_FORK.
    reset: bool,
    priority: u32,
    deadline: Deadline,
    /// Under the fair policies: slice and nice value, where they change.
    fair: Option<(u64, i32)>,
}

/// Whether only CAP_SYS_NICE gives a thread this policy and priority: a deadline, more than RLIMIT_RTPRIO allows, an end of
/// SCHED_RESET_ON_FORK, a lower nice value than RLIMIT_NICE gives, or an end of SCHED_IDLE, which counts as one.
fn needs_right(target: &Target, change: &Change) -> bool {
    let (now, policy) = (target.sched().plain_policy(), change.policy);
    let limit = target.task.limits.soft(rlimit::RTPRIO);
    let most = u64::from(target.sched().priority.load(Ordering::Relaxed)).max(limit);
    let real_time = matches!(policy, policy::FIFO | policy::RR);
    let beyond = real_time && (policy != now && limit == 0 || u64::from(change.priority) > most);
    let reset_undone = target.sched().resets() && !change.reset;
    let leaves_idle = now == policy::IDLE && policy != policy::IDLE && !is_within(&target.task, target.nice());
    let nicer = change.fair.is_some_and(|(_, nice)| nice < target.nice() && !is_within(&target.task, nice));
    policy == policy::DEADLINE || beyond || reset_undone || leaves_idle || nicer
}

/// A deadline is promised to threads that may use every processor (EPERM), and only as long as all of them need no more than 95 % of the
/// processors, which is Linux' default (EBUSY).
fn admit(thread: &Thread, target: &Target, deadline: &Deadline) -> Result<()> {
    let machine = thread.machine();
    if target.sched().processors(machine) != allowed(machine) {
        return Err(Errno::EPERM);
    }
    let most = (95 << 20) / 100 * machine.cpus() as u64;
    let of_others = |seat: &Arc<Seat>| {
        !core::ptr::eq(&raw const seat.sched, target.sched()) && seat.sched.plain_policy() == policy::DEADLINE
    };
    let tree = thread.kernel.tree.lock();
    let promised: u64 = tree.threads().filter(of_others).map(|seat| seat.sched.deadline.lock().share()).sum();
    if promised + deadline.share() > most { Err(Errno::EBUSY) } else { Ok(()) }
}

/// Has the machine promise a thread what it is to have by its new policy. EBUSY where it has no such time left, ESRCH. A machine that promises nothing
/// schedules the thread as any other.
fn promise(thread: &Thread, target: &Target, change: &Change) -> Result<()> {
    let had = target.sched().plain_policy() == policy::DEADLINE;
    let demand = (change.policy == policy::DEADLINE).then_some(Demand {
        budget: change.deadline.runtime,
        deadline: change.deadline.deadline,
        period: change.deadline.period,
    });
    let Some(seat) = target.seat.as_ref().filter(|_| had || demand.is_some()) else { return Ok(()) };
    // Another's place in the machine must not be a third one's by then.
    let _held = if core::ptr::eq::<Thread>(&***seat, thread) { None } else { Some(access::hold_thread(seat)?) };
    match seat.context().ok_or(Errno::ESRCH)?.promise(demand) {
        Ok(()) | Err(Errno::ENOSYS) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn set(thread: &Thread, target: &Target, change: &Change) -> Result<()> {
    if !priorities(change.policy)?.contains(&change.priority) {
        return Err(Errno::EINVAL);
    }
    if change.policy == policy::DEADLINE {
        change.deadline.check()?;
    }
    if !may_change(thread, target) {
        return Err(Errno::EPERM);
    }
    if !thread.cred().capable(CAP_SYS_NICE) && needs_right(target, change) {
        return Err(Errno::EPERM);
    }
    if change.policy == policy::DEADLINE {
        admit(thread, target, &change.deadline)?;
    }
    if let Some((_, nice)) = change.fair {
        set_nice(thread, &target.task, nice)?;
    }
    promise(thread, target, change)?;
    let sched = target.sched();
    let reset = if change.reset { policy::RESET_ON_FORK } else { 0 };
    *sched.deadline.lock() = change.deadline;
    sched.policy.store(change.policy | reset, Ordering::Relaxed);
    sched.priority.store(change.priority, Ordering::Relaxed);
    if let Some((slice, _)) = change.fair {
        sched.slice.store(slice, Ordering::Relaxed);
    }
    Ok(())
}

/// sched_rr_get_interval(2).
pub fn sched_rr_get_interval(thread: &Thread, pid: i32, interval: UserPtr<impl Layout<[i64; 2]>>) -> Result<()> {
    let policy = with(thread, pid, |sched| sched.policy.load(Ordering::Relaxed))? & !policy::RESET_ON_FORK;
    // Linux's RR slice, and the slice of its fair classes at 250 ticks a second.
    let nanos = match policy {
        policy::RR => 100_000_000,
        policy::FIFO | policy::DEADLINE => 0,
        _ => 4_000_000,
    };
    interval.store(thread.user(), &[0, nanos])
}

/// `struct sched_attr`, 56 bytes; 48 in its first version.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    util_min: u32,
    util_max: u32,
}

const FIRST_SIZE: usize = 48;

/// Policies whose threads have nice values and slices.
fn is_fair(policy: u32) -> bool {
    matches!(policy, policy::OTHER | policy::BATCH | policy::IDLE)
}

impl SchedAttr {
    /// Reads as much as the program specifies. E2BIG, with the size known here, for less than the first version or for anything in
    /// what is not known; EINVAL, EFAULT.
    fn read(thread: &Thread, attr: UserPtr<u32>) -> Result<SchedAttr> {
        let size = match attr.read(thread.user())? as usize {
            0 => FIRST_SIZE,
            size => size,
        };
        let too_big = || match attr.write(thread.user(), &(size_of::<SchedAttr>() as u32)) {
            Ok(()) => Errno::E2BIG,
            Err(errno) => errno,
        };
        if !(FIRST_SIZE..=PAGE).contains(&size) {
            return Err(too_big());
        }
        let bytes = attr.cast::<u8>().slice(size).read_vec(thread.user(), PAGE)?;
        let (known, unknown) = bytes.split_at(size.min(size_of::<SchedAttr>()));
        if unknown.iter().any(|byte| *byte != 0) {
            return Err(too_big());
        }
        let mut given = SchedAttr::new_zeroed();
        given.as_mut_bytes()[..known.len()].copy_from_slice(known);
        if given.flags & attribute::UTIL_CLAMP != 0 && size < size_of::<SchedAttr>() {
            return Err(Errno::EINVAL);
        }
        given.nice = given.nice.clamp(-20, 19);
        Ok(given)
    }

    /// What a thread's policy has, its policy itself left out.
    fn of(target: &Target) -> SchedAttr {
        let sched = target.sched();
        let mut attr = SchedAttr::new_zeroed();
        match sched.plain_policy() {
            policy::DEADLINE => {
                let Deadline { runtime, deadline, period, flags } = *sched.deadline.lock();
                (attr.runtime, attr.deadline, attr.period, attr.flags) = (runtime, deadline, period, flags);
            }
            policy if is_fair(policy) => {
                attr.nice = target.nice();
                attr.runtime = sched.slice.load(Ordering::Relaxed);
            }
            _ => attr.priority = sched.priority.load(Ordering::Relaxed),
        }
        attr
    }
}

/// sched_setattr(2).
pub fn sched_setattr(thread: &Thread, pid: i32, attr: UserPtr<u32>, flags: u32) -> Result<()> {
    use attribute::{KEEP_PARAMS, KEEP_POLICY, OF_DEADLINE, RESET_ON_FORK, UTIL_CLAMP};
    if attr.is_null() || pid < 0 || flags != 0 {
        return Err(Errno::EINVAL);
    }
    let given = SchedAttr::read(thread, attr)?;
    if given.policy >> 31 != 0 {
        return Err(Errno::EINVAL);
    }
    let target = Target::of(thread, pid)?;
    let old = target.sched();
    let keeps_policy = given.flags & KEEP_POLICY != 0;
    let (policy, reset) = match keeps_policy {
        true => (old.plain_policy(), old.resets()),
        false => (given.policy, given.flags & RESET_ON_FORK != 0),
    };
    if given.flags & !(RESET_ON_FORK | KEEP_POLICY | KEEP_PARAMS | OF_DEADLINE | UTIL_CLAMP) != 0 {
        return Err(Errno::EINVAL);
    }
    priorities(policy)?;
    if given.flags & UTIL_CLAMP != 0 {
        // As on a Linux that does not clamp.
        return Err(Errno::EOPNOTSUPP);
    }
    let keeps = given.flags & KEEP_PARAMS != 0;
    let wanted = if keeps { SchedAttr::of(&target) } else { given };
    let period = if wanted.period == 0 { wanted.deadline } else { wanted.period };
    let flags = if keeps { wanted.flags } else { given.flags & OF_DEADLINE };
    let deadline = match policy {
        policy::DEADLINE => Deadline { runtime: wanted.runtime, deadline: wanted.deadline, period, flags },
        _ => Deadline::default(),
    };
    // Linux' bounds of a slice: 0.1 to 100 ms.
    let slice = if wanted.runtime == 0 { 0 } else { wanted.runtime.clamp(100_000, 100_000_000) };
    let fair = (is_fair(policy) && !keeps).then_some((slice, wanted.nice));
    set(thread, &target, &Change { policy, reset, priority: wanted.priority, deadline, fair })
}

/// sched_getattr(2).
pub fn sched_getattr(thread: &Thread, pid: i32, attr: UserPtr<u8>, size: usize, flags: u32) -> Result<()> {
    if attr.is_null() || !(FIRST_SIZE..=PAGE).contains(&size) || flags != 0 || pid < 0 {
        return Err(Errno::EINVAL);
    }
    let target = Target::of(thread, pid)?;
    let mut answer = SchedAttr::of(&target);
    let len = size.min(size_of::<SchedAttr>());
    answer.size = len as u32;
    answer.policy = target.sched().plain_policy();
    answer.flags |= u64::from(target.sched().resets());
    if is_fair(answer.policy) && answer.runtime == 0 {
        // What Linux gives: 0.7 ms, and as much again for each doubling of up to eight processors.
        answer.runtime = 700_000 * u64::from(1 + thread.machine().cpus().clamp(1, 8).ilog2());
    }
    thread.user().copy_out(attr.addr(), &answer.as_bytes()[..len]).map_err(|_| Errno::EFAULT)
}

/// Whose priority: PRIO_PROCESS, PRIO_PGRP, PRIO_USER.
fn whose(thread: &Thread, which: u32, who: u32) -> Result<Vec<Arc<Task>>> {
    let tree = thread.kernel.tree.lock();
    let tasks: Vec<Arc<Task>> = match which {
        0 if who == 0 => vec![thread.task.clone()],
        0 => tree.process(who).cloned().or_else(|| tree.thread(who).map(|seat| seat.task.clone())).into_iter().collect(),
        1 => tree.group(if who == 0 { thread.process().pgrp() } else { who }).cloned().collect(),
        2 => {
            let uid = if who == 0 { thread.cred().uid } else { who };
            tree.processes().filter(|task| crate::task::uid_of(task) == uid).cloned().collect()
        }
        _ => return Err(Errno::EINVAL),
    };
    if tasks.is_empty() { Err(Errno::ESRCH) } else { Ok(tasks) }
}

/// getpriority(2) as the call: 20 minus the nice value, the highest of all meant.
pub fn getpriority(thread: &Thread, which: u32, who: u32) -> Result<i32> {
    let nice = whose(thread, which, who)?.iter().map(|task| task.settings.nice.load(Ordering::Relaxed)).min();
    Ok(20 - nice.unwrap_or(0))
}

/// Whether the caller may give a process this nice value: EPERM for another user's, EACCES for more than RLIMIT_NICE gives.
fn may_nice(thread: &Thread, task: &Task, nice: i32) -> Result<()> {
    let cred = thread.cred();
    if cred.capable(CAP_SYS_NICE) {
        return Ok(());
    }
    let uid = crate::task::uid_of(task);
    if cred.euid != uid && cred.uid != uid {
        return Err(Errno::EPERM);
    }
    let nice = nice.clamp(-20, 19);
    if nice >= task.settings.nice.load(Ordering::Relaxed) || is_within(task, nice) { Ok(()) } else { Err(Errno::EACCES) }
}

/// Whether RLIMIT_NICE gives a process this nice value.
fn is_within(task: &Task, nice: i32) -> bool {
    i64::from(20 - nice) <= i64::try_from(task.limits.soft(rlimit::NICE)).unwrap_or(i64::MAX)
}

/// Gives a process a nice value, and its threads on the machine. The errors of [`may_nice`], and EACCES or EPERM where the machine
/// may not: outside of the sandbox, lowering a value again takes a privilege that the sandbox need not have.
fn set_nice(thread: &Thread, task: &Task, nice: i32) -> Result<()> {
    may_nice(thread, task, nice)?;
    let nice = nice.clamp(-20, 19);
    for seat in task.threads() {
        let Ok(_held) = access::hold_thread(&seat) else { continue };
        match seat.context().map_or(Err(Errno::ESRCH), |context| context.set_nice(nice)) {
            // A thread that has just ended or has not begun, or a machine without priorities.
            Ok(()) | Err(Errno::ESRCH | Errno::ENOSYS) => {}
            Err(errno) => return Err(errno),
        }
    }
    task.settings.nice.store(nice, Ordering::Relaxed);
    Ok(())
}

/// setpriority(2).
pub fn setpriority(thread: &Thread, which: u32, who: u32, nice: i32) -> Result<()> {
    for task in whose(thread, which, who)? {
        set_nice(thread, &task, nice)?;
    }
    Ok(())
}

/// The classes of ioprio_set(2)'s word lie above this bit.
const IO_CLASS_SHIFT: u32 = 13;

/// ioprio_set(2), for single processes.
pub fn ioprio_set(thread: &Thread, which: i32, who: i32, word: u32) -> Result<()> {
    const PROCESS: i32 = 1;
    let class = word >> IO_CLASS_SHIFT & 7;
    let level = word & 7;
    match class {
        0 if level != 0 => return Err(Errno::EINVAL),
        0 | 2 | 3 => {}
        1 if thread.cred().capable(crate::task::CAP_SYS_ADMIN) || thread.cred().capable(CAP_SYS_NICE) => {}
        1 => return Err(Errno::EPERM),
        _ => return Err(Errno::EINVAL),
    }
    if which != PROCESS {
        return Err(Errno::EINVAL);
    }
    let target = Target::of(thread, who).map_err(|_| Errno::ESRCH)?;
    if !may_change(thread, &target) {
        return Err(Errno::EPERM);
    }
    // One that has ended has no requests to come.
    if let Some(seat) = &target.seat {
        seat.sched.io.lock().get_or_insert_default().store(word, Ordering::Relaxed);
    }
    Ok(())
}

/// ioprio_get(2), for single processes.
pub fn ioprio_get(thread: &Thread, which: i32, who: i32) -> Result<u32> {
    const PROCESS: i32 = 1;
    if which != PROCESS {
        return Err(Errno::EINVAL);
    }
    let target = Target::of(thread, who).map_err(|_| Errno::ESRCH)?;
    Ok(target.sched().io_context().map_or(0, |word| word.load(Ordering::Relaxed)))
}

/// getcpu(2).
pub fn getcpu(thread: &Thread, cpu: UserPtr<u32>, node: UserPtr<u32>) -> Result<()> {
    if let Some(cpu) = cpu.non_null() {
        cpu.write(thread.user(), &(thread.machine().cpu() as u32))?;
    }
    // One node: memory is equally far from every processor.
    node.non_null().map_or(Ok(()), |node| node.write(thread.user(), &0))
}
