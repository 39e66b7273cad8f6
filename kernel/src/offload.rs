//! Work that blocks in the machine, handed to workers by those who may not stand still ([`janua_rt::offload`]).
//!
//! A thread at home may: while it waits for the disk nobody else has use for it. A module may not, since others' calls wait for its turn, nor may a thread
//! that makes submissions beside its own calls. The workers are threads of the kernel's own. The service starts them, as the thread that asks for one may be in an
//! address space that ends before they do.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::Poll;

use janua_port::{Machine, Nanos};
use janua_rt::offload::{Limits, Pool, Workers};
use janua_rt::{AtomicU64, OnceArc};

use crate::task::Personality;
use crate::thread::{Thread, work};
use crate::wait::Cut;

/// What a kernel has of workers, and of work that waits for one. Each may be held up for as long as a disk takes; a sandbox has no more threads for that.
const LIMITS: Limits = Limits { workers: 4, queue: 64 };

/// How long a worker is kept that has nothing to do, nanoseconds.
const KEPT: Nanos = 10_000_000_000;

/// Workers that are threads of the machine's.
struct Threads {
    machine: &'static dyn Machine,
    /// How many the service is to start.
    wanted: AtomicU32,
}

impl Workers for Threads {
    fn request(&self) {
        self.wanted.fetch_add(1, Ordering::Release);
        self.machine.wake_service();
    }

    fn sleep(&self, word: &AtomicU32, expected: u32) -> bool {
        let until = self.machine.clock().monotonic() + KEPT;
        self.machine.park().park(word, expected, Some(until));
        self.machine.clock().monotonic() < until
    }

    fn wake(&self, word: &AtomicU32) {
        self.machine.park().unpark(word, 1);
    }
}

/// A kernel's workers. There are none before its service has looked for the first time.
#[derive(Default)]
pub struct Offload {
    pool: OnceArc<Pool<Threads>>,
    /// What workers were to do so far.
    handed: AtomicU64,
}

impl Offload {
    /// By the kernel's service: starts workers that have been asked for. From the first time on they can be.
    pub fn serve(&self, machine: &'static dyn Machine) {
        let Some(pool) = self.pool.get() else {
            let threads = Threads { machine, wanted: AtomicU32::new(0) };
            // The service alone does it.
            let _ = self.pool.set(Arc::new(Pool::new(threads, LIMITS)));
            return;
        };
        if pool.workers().wanted.load(Ordering::Relaxed) == 0 {
            return;
        }
        for _ in 0..pool.workers().wanted.swap(0, Ordering::Acquire) {
            let started =
                self.pool.share().is_some_and(|pool| machine.spawn_kernel("worker", Box::new(move || pool.work())).is_ok());
            if !started {
                pool.refused();
            }
        }
    }

    /// How much workers were given to do, for `--stats`; empty for nothing.
    pub fn report(&self) -> String {
        match self.handed.load(Ordering::Relaxed) {
            0 => String::new(),
            handed => format!("workers: {handed} times for what blocks\n"),
        }
    }

    /// How many workers there are, and how much work waits for one.
    pub fn counts(&self) -> (usize, usize) {
        self.pool.get().map_or((0, 0), Pool::counts)
    }
}

impl<P: Personality> Thread<P> {
    /// Does what may block in the machine: itself where nobody else waits for this thread, otherwise by a worker. An interruption does not cut it short;
    /// only who is killed or cancelled gives up, and what has begun by then goes on without it.
    pub async fn offload<T: Send + 'static>(&self, blocks: impl FnOnce() -> T + Send + 'static) -> Result<T, Cut> {
        let pool = match self.kernel.modules.offload.pool.get() {
            Some(pool) if self.may_not_block() => pool,
            _ => return Ok(blocks()),
        };
        self.kernel.modules.offload.handed.fetch_add(1, Ordering::Relaxed);
        let mut offloaded = pin!(pool.offload(blocks));
        poll_fn(|cx| match offloaded.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Ok(result)),
            Poll::Pending if self.work() & work::KILL != 0 => Poll::Ready(Err(Cut::Interrupted)),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}
