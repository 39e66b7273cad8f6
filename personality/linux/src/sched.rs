//! Scheduling as programs see it (sched(7)): the machine schedules; policies and priorities are remembered, their rules kept,
//! and affinity passed on.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::layout::Layout;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_port::machine::Machine;
use janua_rt::Mutex;
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

/// A thread's policy and static priority.
#[derive(Default)]
pub struct Sched {
    /// SCHED_*, with RESET_ON_FORK.
    pub policy: AtomicU32,
    /// 1..=99 for the real-time policies, else 0.
    pub priority: AtomicU32,
    /// ioprio_set(2)'s word.
    pub io_priority: AtomicU32,
    /// Processors allowed, bit n of word n/64; empty for all.
    affinity: Mutex<Vec<u64>>,
}

impl Sched {
    /// Takes another thread's over (a child from its parent).
    pub fn copy_from(&self, other: &Sched) {
        let policy = other.policy.load(Ordering::Relaxed);
        let real_time = matches!(policy & !policy::RESET_ON_FORK, policy::FIFO | policy::RR | policy::DEADLINE);
        if policy & policy::RESET_ON_FORK == 0 {
            self.policy.store(policy, Ordering::Relaxed);
            self.priority.store(other.priority.load(Ordering::Relaxed), Ordering::Relaxed);
        } else if !real_time {
            self.policy.store(policy & !policy::RESET_ON_FORK, Ordering::Relaxed);
        }
        self.io_priority.store(other.io_priority.load(Ordering::Relaxed), Ordering::Relaxed);
        let affinity = other.affinity.lock().clone();
        *self.affinity.lock() = affinity;
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

/// The thread `pid` names, 0 being the caller's own.
fn target(thread: &Thread, pid: i32) -> Result<Arc<Seat>> {
    match pid {
        0 => thread.seat().ok_or(Errno::ESRCH),
        1.. => thread.kernel.thread(pid.unsigned_abs()).ok_or(Errno::ESRCH),
        _ => Err(Errno::EINVAL),
    }
}

/// What `pid` names, for a call that only asks: the first process, which has no thread, is scheduled like any other.
fn with<R>(thread: &Thread, pid: i32, read: impl FnOnce(&Sched) -> R) -> Result<R> {
    match target(thread, pid) {
        Err(Errno::ESRCH) if pid.unsigned_abs() == INIT => Ok(read(&Sched::default())),
        target => Ok(read(&target?.sched)),
    }
}

/// `pid` of the calls that know no invalid number.
fn any(pid: i32) -> Result<i32> {
    if pid < 0 { Err(Errno::ESRCH) } else { Ok(pid) }
}

/// Whether the caller may change another thread's scheduling: same user or CAP_SYS_NICE.
fn may_change(thread: &Thread, target: &Thread) -> bool {
    let (mine, theirs) = (thread.cred(), target.cred());
    mine.euid == theirs.euid || mine.euid == theirs.uid || mine.capable(CAP_SYS_NICE)
}

/// sched_yield(2).
pub fn sched_yield(thread: &Thread) {
    thread.machine().park().yield_now();
}

/// sched_setaffinity(2).
pub fn sched_setaffinity(thread: &Thread, pid: i32, len: usize, mask: UserPtr<u8>) -> Result<()> {
    let target = target(thread, any(pid)?)?;
    let allowed = allowed(thread.machine());
    let mut words = vec![0u64; allowed.len()];
    let bytes = words.as_mut_slice().as_mut_bytes();
    let len = len.min(bytes.len());
    thread.user().copy_in(&mut bytes[..len], mask.addr()).map_err(|_| Errno::EFAULT)?;
    if !may_change(thread, &target) {
        return Err(Errno::EPERM);
    }
    for (word, allowed) in words.iter_mut().zip(allowed) {
        *word &= allowed;
    }
    if words.iter().all(|word| *word == 0) {
        return Err(Errno::EINVAL);
    }
    let itself = core::ptr::eq::<Thread>(&**target, thread);
    if itself {
        thread.machine().set_affinity(None, &words)?;
    } else {
        // Its place in the machine must not be another's by then.
        let _held = access::hold_thread(&target)?;
        thread.machine().set_affinity(Some(target.machine_id()), &words)?;
    }
    *target.sched.affinity.lock() = words;
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
    let policy = u32::try_from(policy).map_err(|_| Errno::EINVAL)?;
    if param.is_null() {
        return Err(Errno::EINVAL);
    }
    let priority = param.read(thread.user())?;
    let target = target(thread, pid)?;
    set(thread, &target, policy, priority)
}

/// sched_setparam(2).
pub fn sched_setparam(thread: &Thread, pid: i32, param: UserPtr<u32>) -> Result<()> {
    if param.is_null() {
        return Err(Errno::EINVAL);
    }
    let priority = param.read(thread.user())?;
    let target = target(thread, pid)?;
    set(thread, &target, target.sched.policy.load(Ordering::Relaxed), priority)
}

/// Whether only CAP_SYS_NICE gives a thread this policy and priority: more than RLIMIT_RTPRIO allows, an end of SCHED_RESET_ON_FORK, or
/// one of SCHED_IDLE, which counts as a lower nice value (RLIMIT_NICE).
fn needs_right(target: &Thread, word: u32, priority: u32) -> bool {
    let (policy, old) = (word & !policy::RESET_ON_FORK, target.sched.policy.load(Ordering::Relaxed));
    let now = old & !policy::RESET_ON_FORK;
    let limit = target.limit(rlimit::RTPRIO);
    let most = u64::from(target.sched.priority.load(Ordering::Relaxed)).max(limit);
    let real_time = matches!(policy, policy::FIFO | policy::RR);
    let beyond = real_time && (policy != now && limit == 0 || u64::from(priority) > most);
    let reset_undone = old & policy::RESET_ON_FORK != 0 && word & policy::RESET_ON_FORK == 0;
    let nice = target.process().settings.nice.load(Ordering::Relaxed);
    let leaves_idle = now == policy::IDLE && policy != policy::IDLE && !is_within(&target.task, nice);
    beyond || reset_undone || leaves_idle
}

fn set(thread: &Thread, target: &Thread, word: u32, priority: u32) -> Result<()> {
    let policy = word & !policy::RESET_ON_FORK;
    if policy == policy::DEADLINE || !priorities(policy)?.contains(&priority) {
        return Err(Errno::EINVAL);
    }
    let cred = thread.cred();
    if !may_change(thread, target) {
        return Err(Errno::EPERM);
    }
    if !cred.capable(CAP_SYS_NICE) && needs_right(target, word, priority) {
        return Err(Errno::EPERM);
    }
    target.sched.policy.store(word, Ordering::Relaxed);
    target.sched.priority.store(priority, Ordering::Relaxed);
    Ok(())
}

/// sched_rr_get_interval(2).
pub fn sched_rr_get_interval(thread: &Thread, pid: i32, interval: UserPtr<impl Layout<[i64; 2]>>) -> Result<()> {
    let policy = with(thread, pid, |sched| sched.policy.load(Ordering::Relaxed))? & !policy::RESET_ON_FORK;
    // Linux's RR slice, and the slice of its fair classes at 250 ticks a second.
    let nanos = match policy {
        policy::RR => 100_000_000,
        policy::FIFO => 0,
        _ => 4_000_000,
    };
    interval.store(thread.user(), &[0, nanos])
}

/// `struct sched_attr` in its first version, 48 bytes.
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
}

/// sched_setattr(2).
pub fn sched_setattr(thread: &Thread, pid: i32, attr: UserPtr<u32>, flags: u32) -> Result<()> {
    const RESET_ON_FORK: u64 = 1;
    const KEEP_POLICY: u64 = 8;
    const KEEP_PARAMS: u64 = 0x10;
    if attr.is_null() || flags != 0 {
        return Err(Errno::EINVAL);
    }
    let size = match attr.read(thread.user())? as usize {
        0 => size_of::<SchedAttr>(),
        size => size,
    };
    if !(48..=4096).contains(&size) {
        attr.write(thread.user(), &(size_of::<SchedAttr>() as u32))?;
        return Err(Errno::E2BIG);
    }
    let given = attr.cast::<SchedAttr>().read(thread.user())?;
    if given.flags & !(RESET_ON_FORK | KEEP_POLICY | KEEP_PARAMS) != 0 {
        return Err(Errno::EINVAL);
    }
    let target = target(thread, pid)?;
    let old = &target.sched;
    let word = if given.flags & KEEP_POLICY != 0 { old.policy.load(Ordering::Relaxed) } else { given.policy };
    let keep = given.flags & KEEP_PARAMS != 0;
    let priority = if keep { old.priority.load(Ordering::Relaxed) } else { given.priority };
    let reset = if given.flags & RESET_ON_FORK != 0 { policy::RESET_ON_FORK } else { 0 };
    let policy = word & !policy::RESET_ON_FORK;
    let fair = matches!(policy, policy::OTHER | policy::BATCH);
    if fair && !keep {
        may_nice(thread, &target.task, given.nice)?;
    }
    set(thread, &target, policy | reset, priority)?;
    if fair && !keep {
        set_nice(thread, &target.task, given.nice)?;
    }
    Ok(())
}

/// sched_getattr(2).
pub fn sched_getattr(thread: &Thread, pid: i32, attr: UserPtr<u8>, size: usize, flags: u32) -> Result<()> {
    if attr.is_null() || !(48..=4096).contains(&size) || flags != 0 {
        return Err(Errno::EINVAL);
    }
    let target = target(thread, pid)?;
    let word = target.sched.policy.load(Ordering::Relaxed);
    let mut answer = SchedAttr::new_zeroed();
    answer.size = size_of::<SchedAttr>() as u32;
    answer.policy = word & !policy::RESET_ON_FORK;
    answer.flags = u64::from(word & policy::RESET_ON_FORK != 0);
    answer.priority = target.sched.priority.load(Ordering::Relaxed);
    answer.nice = target.process().settings.nice.load(Ordering::Relaxed);
    attr.cast::<SchedAttr>().write(thread.user(), &answer)
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
        match thread.machine().set_nice(seat.machine_id(), nice) {
            // A thread that has just ended, or a machine without priorities.
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
    let target = target(thread, who).map_err(|_| Errno::ESRCH)?;
    if !may_change(thread, &target) {
        return Err(Errno::EPERM);
    }
    target.sched.io_priority.store(word, Ordering::Relaxed);
    Ok(())
}

/// ioprio_get(2), for single processes.
pub fn ioprio_get(thread: &Thread, which: i32, who: i32) -> Result<u32> {
    const PROCESS: i32 = 1;
    if which != PROCESS {
        return Err(Errno::EINVAL);
    }
    Ok(target(thread, who).map_err(|_| Errno::ESRCH)?.sched.io_priority.load(Ordering::Relaxed))
}

/// getcpu(2).
pub fn getcpu(thread: &Thread, cpu: UserPtr<u32>, node: UserPtr<u32>) -> Result<()> {
    if let Some(cpu) = cpu.non_null() {
        cpu.write(thread.user(), &(thread.machine().cpu() as u32))?;
    }
    // One node: memory is equally far from every processor.
    node.non_null().map_or(Ok(()), |node| node.write(thread.user(), &0))
}
