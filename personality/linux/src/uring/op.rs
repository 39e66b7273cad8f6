//! One operation that is under way.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::task::Wake;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use janua_abi::linux::uring::Sqe;
use janua_abi::linux::{Errno, Result};
use janua_object::Cred;
use janua_object::fdtable::FdTable;
use janua_port::Nanos;
use janua_rt::Mutex;

use super::issuer::{Issuer, Job};
use super::ring::{Completion, Ring};
use super::submit::Chain;
use super::turn::post;

/// How an operation ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reply {
    pub result: i64,
    /// Flags of its completion.
    pub flags: u32,
    /// What is linked to it is given up.
    pub failed: bool,
    pub more: [u64; 2],
}

impl Reply {
    pub fn error(errno: Errno) -> Reply {
        Reply { result: errno.as_result() as i64, failed: true, ..Reply::default() }
    }

    pub fn value(result: usize) -> Reply {
        Reply { result: result as i64, ..Reply::default() }
    }

    /// Of a transfer of `whole` bytes: with fewer it has failed as far as its chain is concerned.
    pub fn transfer(done: Result<usize>, whole: usize) -> Reply {
        match done {
            Ok(done) => Reply { failed: done != whole, ..Reply::value(done) },
            Err(errno) => Reply::error(errno),
        }
    }
}

impl From<Result<usize>> for Reply {
    fn from(result: Result<usize>) -> Reply {
        result.map_or_else(Reply::error, Reply::value)
    }
}

impl From<Result<()>> for Reply {
    fn from(result: Result<()>) -> Reply {
        result.map(|()| 0).into()
    }
}

/// What an operation does, as far as it has not been done.
pub type Doing = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// A limit for an operation (IORING_OP_LINK_TIMEOUT).
pub struct Limit {
    pub sqe: Sqe,
    /// When; counted from the operation's begin until that is known.
    pub at: Nanos,
    /// It has passed, and the operation was cancelled for it.
    pub passed: bool,
}

/// What only the thread that has the operation looks at.
#[derive(Default)]
pub struct Running {
    pub doing: Option<Doing>,
    /// The descriptors it is made with, where those are not the thread's.
    pub table: Option<Arc<FdTable>>,
    /// The identity it is made with, where that is not the thread's.
    pub cred: Option<Arc<Cred>>,
    /// What is linked to it.
    pub rest: Option<Chain>,
    pub limit: Option<Limit>,
    /// When it asks to be looked at.
    pub timed: Option<Nanos>,
}

/// What others may change of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    pub user_data: u64,
    /// The events a poll waits for.
    pub events: u32,
    /// When a timeout is over.
    pub deadline: Option<Nanos>,
}

/// An operation.
pub struct Op {
    me: Weak<Op>,
    /// No other has it.
    pub number: usize,
    pub ring: Arc<Ring>,
    pub issuer: Arc<Issuer>,
    pub sqe: Sqe,
    /// What the file is known by that it works on, 0 for none.
    pub file: usize,
    /// The address of its iocb, of one that was submitted by io_submit(2), and the eventfd it signals.
    pub iocb: u64,
    pub event: Option<Arc<janua_object::OpenFile>>,
    pub terms: Mutex<Terms>,
    pub running: Mutex<Running>,
    /// It waits to be polled.
    queued: AtomicBool,
    cancelled: AtomicBool,
    /// It was woken by a completion of its own ring: a poll that goes on ends then, since each of its completions would bring the next.
    pub fed: AtomicBool,
}

impl Op {
    pub fn new(
        ring: &Arc<Ring>,
        issuer: &Arc<Issuer>,
        (sqe, file): (Sqe, usize),
        (iocb, event): (u64, Option<Arc<janua_object::OpenFile>>),
        running: Running,
    ) -> Arc<Op> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Arc::new_cyclic(|me| Op {
            me: me.clone(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            ring: ring.clone(),
            issuer: issuer.clone(),
            sqe,
            file,
            iocb,
            event,
            terms: Mutex::new(Terms { user_data: sqe.user_data, ..Terms::default() }),
            running: Mutex::new(running),
            queued: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            fed: AtomicBool::new(false),
        })
    }

    /// Has it polled once more by its thread.
    pub fn wake_up(self: &Arc<Self>) {
        if self.ring.feeds_itself() {
            self.fed.store(true, Ordering::SeqCst);
        }
        if !self.queued.swap(true, Ordering::SeqCst) {
            self.issuer.send(&self.ring, Job::Step(self.clone()));
        }
    }

    /// Its thread is about to poll it: a wake-up from here on is another.
    pub fn take_up(&self) {
        self.queued.store(false, Ordering::SeqCst);
    }

    /// Has it end. False when it was to end already.
    pub fn cancel(&self) -> bool {
        if self.cancelled.swap(true, Ordering::SeqCst) {
            return false;
        }
        self.me.upgrade().inspect(Op::wake_up);
        true
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    pub fn user_data(&self) -> u64 {
        self.terms.lock().user_data
    }

    /// By the operation itself, on its thread: posts a completion that is not its last. False when the ring has no room for it: then it must end.
    pub fn post_more(&self, result: i64, flags: u32) -> bool {
        let access = self.ring.access(&self.issuer.double);
        let completion = Completion { user_data: self.user_data(), result, flags, more: [0; 2] };
        let posted = post(&self.ring, &access, &completion);
        self.ring.notify(&access, false);
        posted
    }
}

impl Wake for Op {
    fn wake(self: Arc<Self>) {
        self.wake_up();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_up();
    }
}
