//! Threads: what is a thread's own.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::i386::UserDesc;
use janua_abi::linux::prctl::mce;
use janua_abi::linux::signal::StackT;
use janua_object::Cred;
use janua_object::fdtable::FdTable;
use janua_object::vfs::Remembered;
use janua_object::vfs::access::searches_all;
use janua_rt::{AtomicU64, Mutex, RwLock};

use crate::caller::ThisThread;
use crate::fs::FsContext;
use crate::process::Process;
use crate::signal::{Queue, SigSet};
use crate::task::clone::VforkDone;
use crate::user::{ThreadCharge, UserCount};
use crate::{Seat, Thread};

/// A thread's timer slack at the start, nanoseconds (prctl(2), PR_SET_TIMERSLACK).
pub const TIMER_SLACK: u64 = 50_000;

/// The personality's part of a thread.
pub struct ThreadState {
    /// Changes once: when a thread that does not lead its process calls exec, it becomes the leader.
    tid: AtomicU32,
    /// This thread as the machine carries it.
    me: Mutex<Weak<Seat>>,
    pub cred: RwLock<Arc<Cred>>,
    /// Root, working directory, umask: its process' other threads have the same, until it makes them its own (unshare(2)).
    pub fs: RwLock<Arc<FsContext>>,
    /// Descriptors: its process' other threads have the same, until it makes them its own (unshare(2)). After the end: an empty table.
    pub files: RwLock<Arc<FdTable>>,
    pub charge: Mutex<ThreadCharge>,
    pub signals: ThreadSignals,
    /// The name, at most 15 bytes and NUL.
    pub comm: Mutex<[u8; 16]>,
    /// Where to store 0 and wake a futex at the end (set_tid_address(2)), 0 for nowhere.
    pub clear_child_tid: AtomicUsize,
    /// Where the thread stores its own number at its start (CLONE_CHILD_SETTID), 0 for nowhere.
    pub set_child_tid: AtomicUsize,
    /// The wait status this thread ends with, once it has been made to end.
    pub exit_status: AtomicU32,
    /// It ends by itself, whatever becomes of its process meanwhile.
    pub leaves: AtomicBool,
    /// The first thread of a program that the outside has asked for, which has still to load it.
    pub loads: AtomicBool,
    /// Set in a vfork child as long as its parent waits, see [`crate::task::release_vfork`].
    pub vfork: Mutex<Option<Arc<VforkDone>>>,
    /// PR_SET_PDEATHSIG.
    pub death_signal: AtomicU32,
    /// PR_SET_TIMERSLACK, nanoseconds.
    pub timer_slack: AtomicU64,
    /// PR_MCE_KILL: how it would be notified of memory that has failed.
    pub memory_errors: AtomicU32,
    /// PR_SET_IO_FLUSHER
    pub io_flusher: AtomicBool,
    /// What 0 sets it to: that of the thread which made this one.
    pub default_slack: AtomicU64,
    pub sched: crate::sched::Sched,
    pub futex: crate::futex::ThreadFutex,
    /// Where restart_syscall(2) goes on.
    pub restart: Mutex<Option<crate::restart::Restart>>,
    /// Paths it names again and again. Only the thread itself uses it.
    pub paths: Mutex<Remembered>,
    /// Thread areas of 32-bit code; and one to be set by the thread itself at its start.
    pub areas: Mutex<crate::processor::thread_area::Areas>,
    pub new_area: Mutex<Option<UserDesc>>,
    /// Whether and how it is traced (ptrace(2)).
    pub trace: crate::ptrace::Trace,
    /// What it has under way by rings.
    pub uring: Mutex<crate::uring::Held>,
    /// Its rings that modules look into.
    pub ring_servers: Mutex<Vec<Arc<crate::uring::Server>>>,
    /// Its ring of the gate `ring`.
    pub ring: Mutex<Option<crate::ring::Ring>>,
    /// Processor time at the last look, nanoseconds: what others know of a running thread's.
    pub cpu_seen: AtomicU64,
    /// What its calls have moved, since that is counted.
    pub io: crate::task::io::Moved,
}

/// A thread's signals.
#[derive(Default)]
pub struct ThreadSignals {
    /// The mask. Only the thread itself changes it.
    blocked: AtomicU64,
    /// Signals sigtimedwait(2) waits for: blocked by right, unblocked while it waits.
    waited: AtomicU64,
    pub pending: Mutex<Queue>,
    /// The numbers in `pending`, for reading without its lock.
    pub pending_set: AtomicU64,
    /// The mask to put back when a temporary one is over (sigsuspend(2), ppoll(2)).
    pub saved: Mutex<Option<SigSet>>,
    pub altstack: Mutex<StackT>,
    /// The last processor exception, for the frames of handlers.
    pub fault: Mutex<Fault>,
    /// In a job-control stop. Written under the group's lock.
    pub stopped: AtomicBool,
    /// It has taken a signal that stops and not yet acted on it; a continuation meanwhile takes the mark off. Set under the lock of
    /// the queue the signal was in.
    pub stop_taken: AtomicBool,
}

/// A processor exception as a signal frame shows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fault {
    /// Exception number.
    pub vector: u64,
    pub error: u64,
    /// The address of a page fault.
    pub addr: u64,
}

impl ThreadSignals {
    pub fn blocked(&self) -> SigSet {
        SigSet(self.blocked.load(Ordering::SeqCst))
    }

    /// Sets the mask and nothing else; see [`crate::signal::set_mask`].
    pub(crate) fn store_blocked(&self, mask: SigSet) {
        self.blocked.store(mask.0, Ordering::SeqCst);
    }

    /// Signals sigtimedwait waits for just now.
    pub(crate) fn waited(&self) -> SigSet {
        SigSet(self.waited.load(Ordering::SeqCst))
    }

    pub(crate) fn store_waited(&self, set: SigSet) {
        self.waited.store(set.0, Ordering::SeqCst);
    }

    /// Signals pending for this thread alone.
    pub fn pending(&self) -> SigSet {
        SigSet(self.pending_set.load(Ordering::SeqCst))
    }
}

impl ThreadState {
    /// A thread's state at its birth; mask and name are set by who makes it.
    pub fn new(tid: u32, cred: Arc<Cred>, fs: Arc<FsContext>, files: Arc<FdTable>, user: Arc<UserCount>) -> ThreadState {
        ThreadState {
            tid: AtomicU32::new(tid),
            me: Mutex::new(Weak::new()),
            cred: RwLock::new(cred),
            fs: RwLock::new(fs),
            files: RwLock::new(files),
            charge: Mutex::new(ThreadCharge::new(user)),
            signals: ThreadSignals::default(),
            comm: Mutex::new([0; 16]),
            clear_child_tid: AtomicUsize::new(0),
            set_child_tid: AtomicUsize::new(0),
            exit_status: AtomicU32::new(0),
            leaves: AtomicBool::new(false),
            loads: AtomicBool::new(false),
            vfork: Mutex::new(None),
            death_signal: AtomicU32::new(0),
            timer_slack: AtomicU64::new(TIMER_SLACK),
            memory_errors: AtomicU32::new(mce::DEFAULT),
            io_flusher: AtomicBool::new(false),
            default_slack: AtomicU64::new(TIMER_SLACK),
            sched: crate::sched::Sched::default(),
            futex: crate::futex::ThreadFutex::default(),
            restart: Mutex::new(None),
            paths: Mutex::default(),
            areas: Mutex::default(),
            new_area: Mutex::new(None),
            trace: crate::ptrace::Trace::default(),
            uring: Mutex::default(),
            ring_servers: Mutex::default(),
            ring: Mutex::new(None),
            cpu_seen: AtomicU64::new(0),
            io: crate::task::io::Moved::default(),
        }
    }

    pub fn tid(&self) -> u32 {
        self.tid.load(Ordering::Relaxed)
    }

    pub(crate) fn set_tid(&self, tid: u32) {
        self.tid.store(tid, Ordering::Relaxed);
    }

    pub(crate) fn set_seat(&self, seat: &Arc<Seat>) {
        *self.me.lock() = Arc::downgrade(seat);
    }

    /// This thread as the machine carries it; `None` only before it is started and after it is gone.
    pub fn seat(&self) -> Option<Arc<Seat>> {
        self.me.lock().upgrade()
    }

    /// Root, working directory and umask.
    pub fn fs(&self) -> Arc<FsContext> {
        self.fs.read().clone()
    }

    /// The descriptors.
    pub fn files(&self) -> Arc<FdTable> {
        self.files.read().clone()
    }

    pub fn cred(&self) -> Arc<Cred> {
        self.cred.read().clone()
    }

    /// Whether the thread has a capability.
    pub fn capable(&self, capability: u32) -> bool {
        self.cred.read().capable(capability)
    }

    /// Whether the thread may search every directory.
    pub fn searches_all(&self) -> bool {
        searches_all(&self.cred.read())
    }

    /// Sets the name, cut to 15 bytes.
    pub fn set_comm(&self, name: &[u8]) {
        let mut comm = [0; 16];
        let len = name.len().min(15);
        comm[..len].copy_from_slice(&name[..len]);
        *self.comm.lock() = comm;
    }

    /// The name without its padding.
    pub fn comm(&self) -> alloc::vec::Vec<u8> {
        let comm = *self.comm.lock();
        comm.iter().copied().take_while(|byte| *byte != 0).collect()
    }
}

/// What handlers need of the calling thread, beyond what the kernel's type offers.
pub trait ThreadExt {
    /// The thread's process.
    fn process(&self) -> &Process;
    /// The thread as objects see it.
    fn caller(&self) -> ThisThread<'_>;
    /// Replaces the signal mask for the rest of this call. It comes back at the call's end, or when the handler that ends the
    /// call returns. SIGKILL and SIGSTOP stay unblocked.
    fn set_temporary_mask(&self, mask: SigSet);
    /// The soft limit of a resource (RLIMIT_*).
    fn limit(&self, resource: u32) -> u64;
}

impl ThreadExt for Thread {
    fn process(&self) -> &Process {
        &self.task.ext
    }

    fn caller(&self) -> ThisThread<'_> {
        ThisThread(self, false)
    }

    fn set_temporary_mask(&self, mask: SigSet) {
        crate::signal::set_temporary_mask(self, mask);
    }

    fn limit(&self, resource: u32) -> u64 {
        self.process().limits.soft(resource)
    }
}
