//! Processes: thread groups with what their threads share.
//!
//! Lock order: [`crate::task::Tree`], then a process' `group`, then the small locks of its threads (pending signals, masks).
//! Two processes' groups are never held together. [`Process::still`] comes before all of these.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use janua_abi::linux::process::Rusage;
use janua_abi::linux::signal::SIGCHLD;
use janua_object::Cred;
use janua_object::fdtable::FdTable;
use janua_object::mm::Mm;
use janua_object::sysv::sem::SemSet;
use janua_port::Nanos;
use janua_port::machine;
use janua_rt::{AtomicU64, Hold, Mutex, RwLock, WaitQueue};

use crate::Seat;
use crate::fs::FsContext;
use crate::limits::Limits;
use crate::signal::{Actions, Queue, SigSet};
use crate::task::Place;
use crate::user::ThreadCharge;

/// The personality's part of a task.
pub struct Process {
    pub pid: u32,
    /// What tells it from all others that have been or will be: the inode number of its descriptors.
    pub inode: u64,
    /// Descriptors of its leader, or of its first thread once that has ended; each thread has them too
    /// ([`crate::thread::ThreadState::files`]). After the end: an empty table.
    pub files: RwLock<Arc<FdTable>>,
    /// Root, working directory, umask of its leader; each thread has them too ([`crate::thread::ThreadState::fs`]).
    pub fs: RwLock<Arc<FsContext>>,
    /// Memory; replaced by exec. `None` before the first program is loaded, after the end, and for init.
    pub mm: RwLock<Option<Arc<Mm>>>,
    /// Held by a thread that looks into the process for another ([`crate::task::access::hold`]); whole by exec from before the old memory
    /// goes until the new program's rights are set, and by a thread that ends before its place in the machine may be another's.
    pub still: Hold,
    /// The number of the program it runs, new with each exec ([`crate::task::access::new_program`]). Written while `still` is held.
    pub program: AtomicU64,
    /// The outside's number for it, where that has asked for it; 0 otherwise.
    pub outer: AtomicU32,
    /// The tile it runs on, as its home has it; 0: this one. Set under the group's lock ([`crate::place`]).
    pub tile: AtomicU32,
    /// The number by which the home tile knows it, or whom it descends from; 0: its home is here.
    pub home: AtomicU32,
    /// When it started, monotonic.
    pub started: Nanos,
    /// The parent's pid, 0 for init. Written under the tree's lock.
    pub parent: AtomicU32,
    /// The number of the parent's thread that made it.
    pub maker: AtomicU32,
    /// The process group. Written under the tree's lock.
    pub pgrp: AtomicU32,
    /// The session. Written under the tree's lock.
    pub session: RwLock<Arc<Session>>,
    /// What the parent is sent at the end; 0 for nothing. SIGCHLD again once the process, or the parent, has called exec.
    pub exit_signal: AtomicU32,
    /// The number of the program the parent ran at the birth.
    pub parent_program: AtomicU64,
    pub actions: RwLock<Arc<Actions>>,
    /// The numbers in `group.pending`, for reading without its lock. Written under it.
    pub pending_set: AtomicU64,
    pub group: Mutex<Group>,
    pub limits: Limits,
    pub usage: Usage,
    pub settings: Settings,
    pub interval: crate::time::interval::IntervalTimers,
    pub posix_timers: crate::time::PosixTimers,
    /// The name of the thread that ended last, for when it is gone.
    pub last_comm: Mutex<Vec<u8>>,
    /// How the first thread, or the last, was scheduled, for when it is gone.
    pub last_sched: crate::sched::Sched,
    /// The credentials of the last thread, for when it is gone.
    pub last_cred: RwLock<Option<Arc<Cred>>>,
    /// It has asked for signals about directories (F_NOTIFY), which end with it.
    pub announced: AtomicBool,
    /// Its contexts of asynchronous i/o.
    pub aio: Mutex<crate::uring::aio::Contexts>,
    /// The semaphore sets, by id, in which its end undoes something (SEM_UNDO).
    pub undoes: Mutex<BTreeMap<i32, Weak<SemSet>>>,
    /// There has been something to undo, or threads were made that share it: what kcmp(2) tells apart.
    pub has_undoes: AtomicBool,
    /// What is counted of its last thread: a process that has ended counts (`--pids`, RLIMIT_NPROC) until it is taken out of the tree.
    pub counted: Mutex<Option<(Place, ThreadCharge)>>,
    /// Woken when a child ends, stops or continues (wait4).
    pub children: WaitQueue,
    /// Woken when a signal becomes pending for the process or one of its threads (signalfd).
    pub signalled: WaitQueue,
    /// Woken at the end (pidfds), when a thread of an exec goes, and when a vfork child lets go of the parent's memory.
    pub changes: WaitQueue,
    /// What a personality keeps for it that has calls of its own and is otherwise this one ([`crate::start::Interface`]).
    pub extension: RwLock<Option<Extension>>,
}

/// What this personality knows nothing of.
pub type Extension = Arc<dyn Any + Send + Sync>;

/// The threads of a process, and what happens to them together.
#[derive(Default)]
pub struct Group {
    /// Live threads; the leader first as long as it lives.
    pub threads: Vec<Arc<Seat>>,
    /// Signals for whichever thread takes them.
    pub pending: Queue,
    pub state: State,
    /// A job-control stop in force.
    pub stop: Option<Stop>,
    /// A stop or continuation the parent may wait for.
    pub report: Option<Report>,
    /// A thread is in exec and waits for the others to go.
    pub exec: Option<u32>,
    /// The end is to leave a core file.
    pub dump: Option<crate::signal::coredump::Dump>,
    /// SIGKILL came when the end was decided already: a core file is given up.
    pub killed: bool,
}

/// How far a process is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Running,
    /// All threads have been asked to end; the wait status.
    Exiting(u32),
    /// No threads are left; the wait status waits for the parent.
    Dead(u32),
}

/// A stop of all threads.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    pub signal: u32,
    /// Every thread has stopped and the parent has been notified.
    pub complete: bool,
}

/// What the parent may learn by wait4(2), once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    Stopped(u32),
    Continued,
}

/// A session (setsid(2)).
pub struct Session {
    pub id: u32,
    /// The controlling terminal.
    pub terminal: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

impl Session {
    pub fn new(id: u32) -> Arc<Session> {
        Arc::new(Session { id, terminal: Mutex::new(None) })
    }
}

/// What the machine has counted, as a sum that grows ([`janua_port::machine::Usage`]).
#[derive(Default)]
pub struct Spent([AtomicU64; 6]);

impl Spent {
    pub fn add(&self, usage: machine::Usage) {
        let machine::Usage { user, system, minor_faults, major_faults, waits, preemptions } = usage;
        for (sum, more) in self.0.iter().zip([user, system, minor_faults, major_faults, waits, preemptions]) {
            sum.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub fn get(&self) -> machine::Usage {
        let [user, system, minor_faults, major_faults, waits, preemptions] =
            core::array::from_fn(|at| self.0[at].load(Ordering::Relaxed));
        machine::Usage { user, system, minor_faults, major_faults, waits, preemptions }
    }

    /// User and system time together.
    pub fn time(&self) -> Nanos {
        let usage = self.get();
        usage.user + usage.system
    }
}

/// Processor time and counts of what has ended (getrusage(2)). Nanoseconds.
#[derive(Default)]
pub struct Usage {
    /// Of threads that are gone.
    pub threads: Spent,
    /// Of children that were waited for, with theirs.
    pub children: Spent,
    /// What calls of threads that are gone have moved.
    pub io: crate::task::io::Moved,
    /// Whether that is counted ([`crate::task::io`]).
    pub io_counted: AtomicBool,
    /// Largest resident set, KiB: own, and of children that were waited for.
    pub maxrss: AtomicU64,
    pub children_maxrss: AtomicU64,
}

impl Usage {
    /// Takes in a child that has been waited for, with what it has taken in itself.
    pub fn add_child(&self, child: &Usage) {
        self.children.add(child.threads.get());
        self.children.add(child.children.get());
        let most = child.maxrss.load(Ordering::Relaxed).max(child.children_maxrss.load(Ordering::Relaxed));
        self.children_maxrss.fetch_max(most, Ordering::Relaxed);
    }

    /// Own and children's use together, as a wait gives it.
    pub fn whole(&self) -> Rusage {
        let both = Spent::default();
        both.add(self.threads.get());
        both.add(self.children.get());
        let most = self.maxrss.load(Ordering::Relaxed).max(self.children_maxrss.load(Ordering::Relaxed));
        crate::usage::rusage(both.get(), most)
    }
}

/// The user id of a login and its number, where there was none.
pub const NO_LOGIN: u32 = u32::MAX;

/// What prctl(2) and the like set for a whole process.
pub struct Settings {
    /// PR_SET_DUMPABLE: 0, 1 or 2.
    pub dumpable: AtomicU32,
    /// PR_SET_CHILD_SUBREAPER.
    pub subreaper: AtomicBool,
    /// PR_SET_THP_DISABLE.
    pub thp_disable: AtomicBool,
    /// PR_SET_MEMORY_MERGE
    pub merges_memory: AtomicBool,
    /// Has called exec since fork: its parent may no longer change its group.
    pub has_execed: AtomicBool,
    /// Nice value (setpriority(2)).
    pub nice: AtomicI32,
    /// personality(2).
    pub personality: AtomicU32,
    /// /proc/PID/oom_score_adj.
    pub oom_score_adj: AtomicI32,
    /// The least value that may be set without CAP_SYS_RESOURCE: the last one set with it.
    pub oom_score_adj_min: AtomicI32,
    /// /proc/PID/coredump_filter.
    pub coredump_filter: AtomicU32,
    /// Who logged in, and the number of that login: /proc/PID/loginuid and sessionid ([`NO_LOGIN`] when nobody did).
    pub login: [AtomicU32; 2],
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            dumpable: AtomicU32::new(1),
            subreaper: AtomicBool::new(false),
            thp_disable: AtomicBool::new(false),
            merges_memory: AtomicBool::new(false),
            has_execed: AtomicBool::new(false),
            nice: AtomicI32::new(0),
            personality: AtomicU32::new(0),
            oom_score_adj: AtomicI32::new(0),
            oom_score_adj_min: AtomicI32::new(0),
            coredump_filter: AtomicU32::new(crate::signal::coredump::DEFAULT_FILTER),
            login: [const { AtomicU32::new(NO_LOGIN) }; 2],
        }
    }
}

impl Settings {
    /// What a forked child takes over: all but the subreaper's role and the mark of exec.
    pub fn inherit(&self) -> Settings {
        let settings = Settings::default();
        settings.dumpable.store(self.dumpable.load(Ordering::Relaxed), Ordering::Relaxed);
        settings.thp_disable.store(self.thp_disable.load(Ordering::Relaxed), Ordering::Relaxed);
        settings.merges_memory.store(self.merges_memory.load(Ordering::Relaxed), Ordering::Relaxed);
        settings.nice.store(self.nice.load(Ordering::Relaxed), Ordering::Relaxed);
        settings.personality.store(self.personality.load(Ordering::Relaxed), Ordering::Relaxed);
        settings.oom_score_adj.store(self.oom_score_adj.load(Ordering::Relaxed), Ordering::Relaxed);
        settings.oom_score_adj_min.store(self.oom_score_adj_min.load(Ordering::Relaxed), Ordering::Relaxed);
        settings.coredump_filter.store(self.coredump_filter.load(Ordering::Relaxed), Ordering::Relaxed);
        for (word, own) in settings.login.iter().zip(&self.login) {
            word.store(own.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        settings
    }
}

impl Process {
    /// A process of its own session and group, with the usual limits and no memory yet.
    pub fn new(pid: u32, fs: Arc<FsContext>, started: Nanos) -> Process {
        let program = crate::task::access::new_program();
        Process {
            pid,
            // No other process has begun with this program's number.
            inode: program,
            files: RwLock::new(Arc::new(FdTable::new())),
            fs: RwLock::new(fs),
            mm: RwLock::new(None),
            still: Hold::new(),
            program: AtomicU64::new(program),
            outer: AtomicU32::new(0),
            tile: AtomicU32::new(0),
            home: AtomicU32::new(0),
            started,
            parent: AtomicU32::new(0),
            maker: AtomicU32::new(0),
            pgrp: AtomicU32::new(pid),
            session: RwLock::new(Session::new(pid)),
            exit_signal: AtomicU32::new(SIGCHLD),
            parent_program: AtomicU64::new(0),
            actions: RwLock::new(Arc::new(Actions::default())),
            pending_set: AtomicU64::new(0),
            group: Mutex::new(Group::default()),
            limits: Limits::default(),
            usage: Usage::default(),
            settings: Settings::default(),
            interval: Default::default(),
            posix_timers: Default::default(),
            last_comm: Mutex::new(Vec::new()),
            last_sched: crate::sched::Sched::default(),
            last_cred: RwLock::new(None),
            announced: AtomicBool::new(false),
            aio: Mutex::default(),
            undoes: Mutex::new(BTreeMap::new()),
            has_undoes: AtomicBool::new(false),
            counted: Mutex::new(None),
            children: WaitQueue::new(),
            signalled: WaitQueue::new(),
            changes: WaitQueue::new(),
            extension: RwLock::new(None),
        }
    }

    pub fn parent(&self) -> u32 {
        self.parent.load(Ordering::Relaxed)
    }

    pub fn pgrp(&self) -> u32 {
        self.pgrp.load(Ordering::Relaxed)
    }

    pub fn session(&self) -> Arc<Session> {
        self.session.read().clone()
    }

    pub fn actions(&self) -> Arc<Actions> {
        self.actions.read().clone()
    }

    /// All descriptor tables of its threads, each once.
    pub fn tables(&self) -> Vec<Arc<FdTable>> {
        let mut tables = alloc::vec![self.files()];
        for seat in self.threads() {
            let files = seat.files();
            if !tables.iter().any(|table| Arc::ptr_eq(table, &files)) {
                tables.push(files);
            }
        }
        tables
    }

    /// The descriptors of its leader.
    pub fn files(&self) -> Arc<FdTable> {
        self.files.read().clone()
    }

    /// Root, working directory and umask of its leader.
    pub fn fs(&self) -> Arc<FsContext> {
        self.fs.read().clone()
    }

    /// The memory, as long as there is any.
    pub fn mm(&self) -> Option<Arc<Mm>> {
        self.mm.read().clone()
    }

    /// Signals pending for the process as a whole.
    pub fn pending(&self) -> SigSet {
        SigSet(self.pending_set.load(Ordering::SeqCst))
    }

    /// The wait status when no thread is left.
    pub fn ended(&self) -> Option<u32> {
        match self.group.lock().state {
            State::Dead(status) => Some(status),
            _ => None,
        }
    }

    /// The number of its program.
    pub fn program(&self) -> u64 {
        self.program.load(Ordering::Relaxed)
    }

    /// The live threads.
    pub fn threads(&self) -> Vec<Arc<Seat>> {
        self.group.lock().threads.clone()
    }
}
