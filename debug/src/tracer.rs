//! Who is traced, what has stopped and why, and how it goes on.
//!
//! Everything stops when one thread has something to report, and waits for gdb. What the others have to report at that moment is kept, and
//! reported when they are to go on. A breakpoint is no such thing: its thread is put back before it, and comes to it again if it is still there.

use std::collections::BTreeMap;

use crate::host::{self, Found};
use crate::points::{Breakpoints, Hardware, Watched};
use crate::registers;
use crate::signals::Set;

/// What is reported to gdb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A signal (its number here) is about to be delivered, a step has ended (SIGTRAP), or gdb wanted a stop (SIGINT).
    Signal(u32),
    Breakpoint,
    Hardware(Hardware),
    /// A process has been made, which is stopped too.
    Fork(u32),
    Vfork(u32),
    VforkDone,
    /// The process has begun this program.
    Exec(Vec<u8>),
    Exited(u32),
    Killed(u32),
}

/// An event of a thread, to be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub pid: u32,
    pub tid: u32,
    pub what: What,
}

/// How a thread is to go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    pub step: bool,
    /// The signal that goes with it, 0 for none.
    pub signal: u32,
}

/// A traced thread.
struct Thread {
    pid: u32,
    running: bool,
    /// It goes on instruction by instruction.
    step: bool,
    /// Its process has been stopped by a signal: it does not run before that is over.
    group_stop: bool,
    pending: Option<What>,
}

/// A traced process.
struct Process {
    /// Its address space; those of a vfork share one.
    space: u64,
    watched: Watched,
}

/// Which events gdb wants reported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Events {
    pub fork: bool,
    pub vfork: bool,
    pub exec: bool,
}

/// All that is traced.
#[derive(Default)]
pub struct Tracer {
    threads: BTreeMap<u32, Thread>,
    processes: BTreeMap<u32, Process>,
    spaces: BTreeMap<u64, Breakpoints>,
    next_space: u64,
    /// Threads that have stopped for the first time before their maker has reported them.
    early: Vec<u32>,
    /// Processes whose end has been seen and not been reaped: who waits for them may not know yet.
    ended: Vec<u32>,
    pub events: Events,
    /// Signals that are delivered without a report.
    pub passed: Set,
    /// The thread that gdb asks about.
    pub selected: u32,
}

impl Tracer {
    /// Takes the first program, which is held before its first instruction: a report of its stop, or of its end if it could not be loaded.
    pub fn begin(&mut self, pid: u32) -> Report {
        let what = match host::look(Some(pid), true) {
            Some((_, Found::Exited(code))) => What::Exited(code),
            Some((_, Found::Killed(signal))) => What::Killed(signal),
            Some((_, Found::Stopped { .. })) => {
                self.adopt(pid, pid, None);
                return Report { pid, tid: pid, what: What::Signal(SIGTRAP) };
            }
            None => What::Exited(0),
        };
        self.ended.push(pid);
        Report { pid, tid: pid, what }
    }

    /// A thread that has stopped for the first time is known from now on.
    fn adopt(&mut self, pid: u32, tid: u32, space: Option<u64>) {
        // One that has been killed meanwhile will report it.
        let _ = host::set_options(tid);
        if !self.processes.contains_key(&pid) {
            let space = space.unwrap_or_else(|| self.new_space(Breakpoints::default()));
            self.processes.insert(pid, Process { space, watched: Watched::default() });
        }
        let watched = &self.processes[&pid].watched;
        if !watched.is_empty() {
            watched.set(tid);
        }
        self.threads.insert(tid, Thread { pid, running: false, step: false, group_stop: false, pending: None });
        if self.selected == 0 {
            self.selected = tid;
        }
    }

    fn new_space(&mut self, breakpoints: Breakpoints) -> u64 {
        self.next_space += 1;
        self.spaces.insert(self.next_space, breakpoints);
        self.next_space
    }

    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// The threads by process and number.
    pub fn threads(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.threads.iter().map(|(tid, thread)| (thread.pid, *tid))
    }

    pub fn process_of(&self, tid: u32) -> Option<u32> {
        self.threads.get(&tid).map(|thread| thread.pid)
    }

    /// Some thread of a process, or any.
    pub fn any_of(&self, pid: Option<u32>) -> Option<u32> {
        self.threads().find(|(of, _)| pid.is_none_or(|pid| pid == *of)).map(|(_, tid)| tid)
    }

    pub fn processes(&self) -> Vec<u32> {
        self.processes.keys().copied().collect()
    }

    pub fn breakpoints(&mut self, pid: u32) -> Option<&mut Breakpoints> {
        let space = self.processes.get(&pid)?.space;
        self.spaces.get_mut(&space)
    }

    /// Changes what the threads of a process watch. False when that cannot be.
    pub fn watch(&mut self, pid: u32, change: impl FnOnce(&mut Watched) -> bool) -> bool {
        let Some(process) = self.processes.get_mut(&pid) else { return false };
        let before = process.watched.clone();
        if !change(&mut process.watched) {
            return false;
        }
        let threads: Vec<u32> = self.threads.iter().filter(|(_, thread)| thread.pid == pid).map(|(tid, _)| *tid).collect();
        if threads.iter().all(|tid| process.watched.set(*tid)) {
            return true;
        }
        process.watched = before;
        for tid in threads {
            process.watched.set(tid);
        }
        false
    }

    /// Lets threads go on as `action` decides. Nothing does when one of them has something to report: that is returned.
    pub fn resume(&mut self, action: impl Fn(u32, u32) -> Option<Action>) -> Option<Report> {
        let due: Vec<(u32, Action)> =
            self.threads().filter_map(|(pid, tid)| action(pid, tid).map(|action| (tid, action))).collect();
        for (tid, _) in &due {
            if let Some(thread) = self.threads.get_mut(tid)
                && let Some(what) = thread.pending.take()
            {
                let pid = thread.pid;
                return match what {
                    What::Exited(_) | What::Killed(_) => self.end(*tid, what),
                    what => Some(Report { pid, tid: *tid, what }),
                };
            }
        }
        due.into_iter().for_each(|(tid, action)| self.go_on(tid, action));
        None
    }

    /// Whether anything runs.
    pub fn runs(&self) -> bool {
        self.threads.values().any(|thread| thread.running)
    }

    fn go_on(&mut self, tid: u32, action: Action) {
        let Some(thread) = self.threads.get_mut(&tid).filter(|thread| !thread.running) else { return };
        thread.step = action.step;
        thread.running = true;
        // One that has been killed meanwhile will report it.
        let _ = if thread.group_stop { host::listen(tid) } else { host::go_on(tid, action.step, action.signal) };
    }

    /// Takes what has happened: the first report there is, with all stopped.
    pub fn next_report(&mut self) -> Option<Report> {
        loop {
            let (tid, found) = host::look(None, false)?;
            if let Some(report) = self.take(tid, found, true) {
                self.stop();
                return Some(report);
            }
        }
    }

    /// Takes what one thread has reported. With `run` it goes on where there is nothing to report to gdb; otherwise it stays stopped.
    fn take(&mut self, tid: u32, found: Found, run: bool) -> Option<Report> {
        let (signal, event) = match found {
            Found::Stopped { signal, event } => (signal, event),
            Found::Exited(code) => return self.end(tid, What::Exited(code)),
            Found::Killed(signal) => return self.end(tid, What::Killed(signal)),
        };
        let Some(thread) = self.threads.get_mut(&tid) else {
            self.early.push(tid);
            return None;
        };
        thread.running = false;
        let (pid, step) = (thread.pid, thread.step);
        let report = |what| Some(Report { pid, tid, what });
        let again = Action { step, signal: 0 };
        match event {
            host::EVENT_STOP => thread.group_stop = signal != SIGTRAP,
            host::EVENT_CLONE | host::EVENT_FORK | host::EVENT_VFORK => {
                if let Some(what) = self.born(tid, pid, event, run) {
                    return report(what);
                }
            }
            host::EVENT_VFORK_DONE if self.events.vfork => return report(What::VforkDone),
            host::EVENT_EXEC => {
                self.begun(pid, tid);
                if self.events.exec {
                    let path = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
                    return report(What::Exec(path.into_os_string().into_encoded_bytes()));
                }
            }
            0 if signal == SIGTRAP => return self.trapped(pid, tid).and_then(report),
            0 if self.passed.has(signal) => {
                if run {
                    self.go_on(tid, Action { step, signal });
                } else if let Some(thread) = self.threads.get_mut(&tid) {
                    // It is not lost: gdb hears of it, and passes it on.
                    thread.pending = Some(What::Signal(signal));
                }
                return None;
            }
            0 => return report(What::Signal(signal)),
            _ => {}
        }
        if run {
            self.go_on(tid, again);
        }
        None
    }

    /// A thread has stopped with SIGTRAP, which has several reasons.
    fn trapped(&mut self, pid: u32, tid: u32) -> Option<What> {
        /// `si_code`s of a breakpoint.
        const BREAKS: [i32; 2] = [libc::TRAP_BRKPT, 0x80];
        let code = host::signal_info(tid).map_or(0, |info| i32::from_ne_bytes([info[8], info[9], info[10], info[11]]));
        let before = registers::pc(tid).unwrap_or(0).wrapping_sub(1);
        if BREAKS.contains(&code) && self.breakpoints(pid).is_some_and(|points| points.has(before)) {
            let _ = registers::set_pc(tid, before);
            return Some(What::Breakpoint);
        }
        let hit =
            self.processes.get(&pid).filter(|process| !process.watched.is_empty()).and_then(|process| process.watched.hit(tid));
        Some(hit.map_or(What::Signal(SIGTRAP), What::Hardware))
    }

    /// A thread has made another, or a process: what is reported to gdb.
    fn born(&mut self, maker: u32, pid: u32, event: i32, run: bool) -> Option<What> {
        let child = host::message(maker).ok()? as u32;
        match self.early.iter().position(|early| *early == child) {
            Some(at) => drop(self.early.swap_remove(at)),
            // Its first stop. One that has been killed before ends instead.
            None => match host::look(Some(child), true)? {
                (_, Found::Stopped { .. }) => {}
                _ => {
                    host::reap(child);
                    return None;
                }
            },
        }
        let own = group_of(child).unwrap_or(child);
        if own == pid {
            self.adopt(pid, child, None);
            if run {
                self.go_on(child, Action::default());
            }
            return None;
        }
        let space = self.processes.get(&pid)?.space;
        // A process that shares its maker's memory without a vfork is one whose maker goes on meanwhile.
        let shared = event != host::EVENT_FORK;
        let space = if shared { space } else { self.new_space(self.spaces.get(&space).cloned().unwrap_or_default()) };
        self.adopt(own, child, Some(space));
        match event {
            host::EVENT_VFORK if self.events.vfork => Some(What::Vfork(child)),
            host::EVENT_FORK | host::EVENT_CLONE if self.events.fork => Some(What::Fork(child)),
            _ => {
                self.detach(own);
                None
            }
        }
    }

    /// A process has begun another program, by a thread that is its only one now.
    fn begun(&mut self, pid: u32, tid: u32) {
        self.threads.retain(|other, thread| thread.pid != pid || *other == tid);
        let space = self.new_space(Breakpoints::default());
        let old = self.processes.insert(pid, Process { space, watched: Watched::default() });
        self.forget_space(old.map(|process| process.space));
        if !self.threads.contains_key(&self.selected) {
            self.selected = tid;
        }
    }

    fn forget_space(&mut self, space: Option<u64>) {
        if let Some(space) = space.filter(|space| self.processes.values().all(|process| process.space != *space)) {
            self.spaces.remove(&space);
        }
    }

    /// A thread has ended, or a process: gdb is notified of the latter.
    fn end(&mut self, tid: u32, what: What) -> Option<Report> {
        let known = self.threads.remove(&tid);
        let pid = known.map(|thread| thread.pid);
        if pid != Some(tid) {
            host::reap(tid);
            return None;
        }
        // It is reaped when gdb knows.
        self.ended.push(tid);
        self.threads.retain(|_, thread| thread.pid != tid);
        let old = self.processes.remove(&tid);
        self.forget_space(old.map(|process| process.space));
        if !self.threads.contains_key(&self.selected) {
            self.selected = self.any_of(None).unwrap_or(0);
        }
        Some(Report { pid: tid, tid, what })
    }

    /// Lets those know of ended processes who wait for them. The last thing done when the first program is among them: with it all ends.
    pub fn reap(&mut self) {
        self.ended.sort_unstable_by(|a, b| b.cmp(a));
        for pid in self.ended.drain(..) {
            host::reap(pid);
        }
    }

    /// Stops all that runs. What it has to report is kept.
    pub fn stop(&mut self) {
        let running: Vec<u32> = self.threads.iter().filter(|(_, thread)| thread.running).map(|(tid, _)| *tid).collect();
        for tid in &running {
            let _ = host::interrupt(*tid);
        }
        for tid in running {
            self.settle(tid);
        }
    }

    /// Waits until a thread has stopped or is gone.
    fn settle(&mut self, tid: u32) {
        while let Some(thread) = self.threads.get(&tid).filter(|thread| thread.running) {
            // A leader that has ended before its threads is reported with the last of them.
            if tid == thread.pid && is_over(tid) {
                return;
            }
            let Some((_, found)) = host::look(Some(tid), true) else {
                self.threads.remove(&tid);
                return;
            };
            let Some(Report { what, .. }) = self.take(tid, found, false) else { continue };
            match (self.threads.get_mut(&tid), what) {
                // It comes to it again.
                (Some(_), What::Breakpoint) => {}
                (Some(thread), what) => thread.pending = Some(what),
                // The process is gone, and gdb is to know: its leader stands for it until then.
                (None, what) => {
                    self.ended.retain(|pid| *pid != tid);
                    let dead = Thread { pid: tid, running: false, step: false, group_stop: false, pending: Some(what) };
                    self.threads.insert(tid, dead);
                }
            }
        }
    }

    /// Stops all and reports it as a signal of gdb's keyboard.
    pub fn interrupted(&mut self) -> Option<Report> {
        self.stop();
        let tid = if self.threads.contains_key(&self.selected) { self.selected } else { self.any_of(None)? };
        Some(Report { pid: self.process_of(tid)?, tid, what: What::Signal(libc::SIGINT as u32) })
    }

    /// Lets a process go on by itself; everything of it is stopped.
    pub fn detach(&mut self, pid: u32) {
        let Some(process) = self.processes.remove(&pid) else { return self.forget(pid) };
        let shared = self.processes.values().any(|other| other.space == process.space);
        if !shared && let Some(mut breakpoints) = self.spaces.remove(&process.space) {
            breakpoints.remove_all(pid);
        }
        let threads: Vec<u32> = self.threads.iter().filter(|(_, thread)| thread.pid == pid).map(|(tid, _)| *tid).collect();
        for tid in threads {
            let Some(thread) = self.threads.remove(&tid) else { continue };
            if !process.watched.is_empty() {
                Watched::default().set(tid);
            }
            let signal = match thread.pending {
                Some(What::Signal(signal)) if signal != SIGTRAP => signal,
                Some(What::Fork(child) | What::Vfork(child)) => {
                    self.detach(child);
                    0
                }
                _ => 0,
            };
            let _ = host::detach(tid, signal);
        }
        if !self.threads.contains_key(&self.selected) {
            self.selected = self.any_of(None).unwrap_or(0);
        }
    }

    /// Gives up a process that has ended, which has not been reported to gdb.
    fn forget(&mut self, pid: u32) {
        if self.threads.remove(&pid).is_some() {
            self.ended.push(pid);
        }
    }

    /// Lets everything go on by itself.
    pub fn detach_all(&mut self) {
        self.stop();
        let all: Vec<u32> = self.threads().map(|(pid, _)| pid).collect();
        all.into_iter().for_each(|pid| self.detach(pid));
        self.reap();
    }

    /// Ends a process, and waits for that.
    pub fn kill(&mut self, pid: u32) {
        if !self.processes.contains_key(&pid) {
            return self.forget(pid);
        }
        host::kill(pid);
        while self.processes.contains_key(&pid) {
            let Some((tid, found)) = host::look(None, true) else { break };
            // What stops on its way to its end goes on.
            if let Found::Stopped { .. } = found {
                let _ = host::go_on(tid, false, 0);
            } else {
                self.take(tid, found, false);
            }
        }
    }
}

const SIGTRAP: u32 = libc::SIGTRAP as u32;

/// The process of a thread.
fn group_of(tid: u32) -> Option<u32> {
    field(tid, "Tgid:")?.parse().ok()
}

/// Whether a process' first thread has ended, while others may live.
fn is_over(tid: u32) -> bool {
    field(tid, "State:").is_some_and(|state| state.starts_with(['Z', 'X']))
}

fn field(tid: u32, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    Some(text.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned())
}
