//! Who there is: processes, threads, process groups and families, under one lock.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};

use crate::process::Session;
use crate::ptrace::Tracee;
use crate::{Seat, Task};

/// Process ids end here (/proc/sys/kernel/pid_max).
pub const PID_MAX: u32 = 4_194_304;
/// After a wrap the lowest ids stay with what was started first.
const RESERVED: u32 = 300;
/// The process that adopts orphans. It is the kernel's own and has no threads.
pub const INIT: u32 = 1;
/// The first program.
pub const FIRST: u32 = janua_personality_outside::linux::FIRST_PID;
/// The program that the outside has the first one traced by, where it does: the last number there is, which is given to no other.
pub const DEBUGGER: u32 = PID_MAX - 1;

/// Some of the processes, by pid: there may be thousands, and one comes and goes at a time.
type Members = BTreeMap<u32, Arc<Task>>;

/// All processes and threads of a kernel.
#[derive(Default)]
pub struct Tree {
    /// By pid, those included that have ended and not been waited for.
    processes: BTreeMap<u32, Arc<Task>>,
    /// By tid.
    threads: BTreeMap<u32, Weak<Seat>>,
    /// Members of each process group.
    groups: BTreeMap<u32, Members>,
    /// Children by their parent's pid.
    children: BTreeMap<u32, Members>,
    /// Who is traced, by the tracer's process and the tracee's number, those included that have ended and not been waited for.
    tracees: BTreeMap<(u32, u32), Arc<Tracee>>,
    /// The tracer's process by the tracee's number.
    tracers: BTreeMap<u32, u32>,
    /// By id.
    sessions: BTreeMap<u32, Weak<Session>>,
    last_pid: u32,
    /// Where the numbers given out begin again after a wrap, and where they end; 0 for all there are.
    range: (u32, u32),
    /// The first program's parent is outside, in its session as far as job control goes: its group is not orphaned while it stays in
    /// that session, which is init's.
    pub job_control_outside: bool,
}

impl Tree {
    /// A number no process, thread, group or session uses. EAGAIN when there is none.
    pub fn allocate_pid(&mut self) -> Result<u32> {
        let (first, end) = self.range;
        // The last one is the debugger's alone.
        let end = if end == 0 { DEBUGGER } else { end.min(DEBUGGER) };
        for _ in 0..PID_MAX {
            self.last_pid += 1;
            if self.last_pid >= end {
                self.last_pid = first.max(RESERVED);
            }
            let pid = self.last_pid;
            let used = self.processes.contains_key(&pid)
                || self.threads.contains_key(&pid)
                || self.tracers.contains_key(&pid)
                || self.groups.contains_key(&pid)
                || self.sessions.get(&pid).is_some_and(|session| session.strong_count() > 0);
            if !used {
                return Ok(pid);
            }
        }
        Err(Errno::EAGAIN)
    }

    /// From now on only numbers of this range are given out.
    pub fn give_out(&mut self, first: u32, end: u32) {
        self.range = (first, end);
        self.last_pid = self.last_pid.max(first);
    }

    /// The last number given out.
    pub fn last_pid(&self) -> u32 {
        self.last_pid
    }

    /// The next number is looked for behind this one (/proc/sys/kernel/ns_last_pid).
    pub fn set_last_pid(&mut self, last: u32) {
        self.last_pid = last;
    }

    pub fn process(&self, pid: u32) -> Option<&Arc<Task>> {
        self.processes.get(&pid)
    }

    /// All processes in order of their numbers.
    pub fn processes(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.processes.values()
    }

    pub fn thread(&self, tid: u32) -> Option<Arc<Seat>> {
        self.threads.get(&tid).and_then(Weak::upgrade)
    }

    /// All live threads in order of their numbers.
    pub fn threads(&self) -> impl Iterator<Item = Arc<Seat>> {
        self.threads.values().filter_map(Weak::upgrade)
    }

    /// Number of threads.
    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// The members of a process group.
    pub fn group(&self, pgrp: u32) -> impl Iterator<Item = &Arc<Task>> {
        self.groups.get(&pgrp).into_iter().flat_map(Members::values)
    }

    /// Whether a process group has members.
    pub fn has_group(&self, pgrp: u32) -> bool {
        self.groups.contains_key(&pgrp)
    }

    /// The children of a process, or the one of them with the pid `only`.
    pub fn children(&self, pid: u32, only: Option<u32>) -> impl Iterator<Item = &Arc<Task>> {
        let children = self.children.get(&pid);
        let range = only.map_or(0..=u32::MAX, |only| only..=only);
        children.into_iter().flat_map(move |children| children.range(range.clone())).map(|(_, child)| child)
    }

    /// Enters a process, by its `parent` and `pgrp`.
    pub fn insert_process(&mut self, task: &Arc<Task>) {
        self.processes.insert(task.pid, task.clone());
        self.groups.entry(task.pgrp()).or_default().insert(task.pid, task.clone());
        self.children.entry(task.parent()).or_default().insert(task.pid, task.clone());
    }

    pub fn insert_thread(&mut self, tid: u32, seat: &Arc<Seat>) {
        self.threads.insert(tid, Arc::downgrade(seat));
    }

    /// Takes a thread out; what it was.
    pub fn remove_thread(&mut self, tid: u32) -> Weak<Seat> {
        self.threads.remove(&tid).unwrap_or_default()
    }

    /// Takes a process out for good: it has been waited for, or nobody will.
    pub fn remove_process(&mut self, task: &Arc<Task>) {
        if self.processes.get(&task.pid).is_some_and(|one| Arc::ptr_eq(one, task)) {
            self.processes.remove(&task.pid);
        }
        remove_from(&mut self.groups, task.pgrp(), task);
        remove_from(&mut self.children, task.parent(), task);
        task.counted.lock().take();
    }

    pub fn set_pgrp(&mut self, task: &Arc<Task>, pgrp: u32) {
        remove_from(&mut self.groups, task.pgrp(), task);
        task.pgrp.store(pgrp, Ordering::Relaxed);
        self.groups.entry(pgrp).or_default().insert(task.pid, task.clone());
    }

    /// Puts a process into a new session and group of its own.
    pub fn new_session(&mut self, task: &Arc<Task>) {
        self.set_pgrp(task, task.pid);
        let session = Session::new(task.pid);
        self.sessions.retain(|_, session| session.strong_count() > 0);
        self.sessions.insert(session.id, Arc::downgrade(&session));
        *task.session.write() = session;
    }

    /// The traced thread of this number.
    pub fn tracee(&self, tid: u32) -> Option<&Arc<Tracee>> {
        self.tracees.get(&(*self.tracers.get(&tid)?, tid))
    }

    /// Those that a process traces.
    pub fn tracees(&self, tracer: u32) -> impl Iterator<Item = &Arc<Tracee>> {
        self.tracees.range((tracer, 0)..=(tracer, u32::MAX)).map(|(_, tracee)| tracee)
    }

    pub fn insert_tracee(&mut self, tracee: &Arc<Tracee>) {
        self.tracers.insert(tracee.tid(), tracee.tracer);
        self.tracees.insert((tracee.tracer, tracee.tid()), tracee.clone());
    }

    pub fn remove_tracee(&mut self, tracee: &Arc<Tracee>) {
        let key = (tracee.tracer, tracee.tid());
        if self.tracees.get(&key).is_some_and(|known| Arc::ptr_eq(known, tracee)) {
            self.tracees.remove(&key);
            self.tracers.remove(&key.1);
        }
    }

    /// Gives a process another parent.
    pub fn set_parent(&mut self, task: &Arc<Task>, parent: u32) {
        remove_from(&mut self.children, task.parent(), task);
        task.parent.store(parent, Ordering::Relaxed);
        self.children.entry(parent).or_default().insert(task.pid, task.clone());
    }

    /// Whether nobody is left who could continue a stopped group: no member has a parent in another group of the same
    /// session (credentials(7), setpgid(2)).
    pub fn is_orphaned(&self, pgrp: u32) -> bool {
        self.is_orphaned_without(pgrp, None)
    }

    /// The same, as if `gone` had ended already.
    pub fn is_orphaned_without(&self, pgrp: u32, gone: Option<u32>) -> bool {
        !self.group(pgrp).any(|member| {
            if Some(member.pid) == gone || member.ended().is_some() {
                return false;
            }
            self.processes.get(&member.parent()).is_some_and(|parent| self.holds(pgrp, member, parent))
        })
    }

    /// Whether `member`, by its `parent`, keeps its group from being orphaned.
    pub fn holds(&self, pgrp: u32, member: &Task, parent: &Task) -> bool {
        if member.pid == FIRST && self.job_control_outside && member.session().id == INIT {
            return true;
        }
        parent.pid != INIT && parent.pgrp() != pgrp && parent.session().id == member.session().id
    }
}

fn remove_from(lists: &mut BTreeMap<u32, Members>, key: u32, task: &Arc<Task>) {
    if let Some(list) = lists.get_mut(&key) {
        list.remove(&task.pid);
        if list.is_empty() {
            lists.remove(&key);
        }
    }
}
