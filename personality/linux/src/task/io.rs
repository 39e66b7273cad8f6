//! What programs read and write, for /proc/PID/io.
//!
//! Nothing is counted before somebody has looked: to count would cost every read and write a little. The first look at a process has its
//! threads count from then on, which makes their calls somewhat slower ([`watch::COUNT`]); so the numbers are right for who compares two
//! looks, as programs do that show rates. Transfers by rings are not counted.

use core::sync::atomic::{AtomicBool, Ordering};

use janua_kernel::thread::{watch, work};
use janua_port::Frame;
use janua_rt::AtomicU64;

use crate::{Seat, Task, Thread};

/// Bytes and calls.
#[derive(Default)]
pub struct Moved {
    pub read: AtomicU64,
    pub written: AtomicU64,
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    /// The thread has begun to count.
    begun: AtomicBool,
}

impl Moved {
    fn all(&self) -> [&AtomicU64; 4] {
        [&self.read, &self.written, &self.reads, &self.writes]
    }

    /// Takes in what another has counted.
    pub fn add(&self, other: &Moved) {
        for (sum, one) in self.all().into_iter().zip(other.all()) {
            sum.fetch_add(one.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// The calling thread begins to count, if its process is to.
pub fn begin(thread: &Thread) {
    if thread.task.usage.io_counted.load(Ordering::Relaxed)
        && !thread.io.begun.swap(true, Ordering::Relaxed)
        && let Some(seat) = thread.seat()
    {
        seat.note_watch(watch::COUNT);
        seat.see_watch();
    }
}

/// Has the threads of a process count from now on.
pub fn look(task: &Task) {
    if !task.usage.io_counted.swap(true, Ordering::SeqCst) {
        for seat in task.threads() {
            // The call it waits in counts already.
            seat.note_watch(watch::COUNT);
            seat.interrupt(work::LOOK);
        }
    }
}

/// A call of a thread that counts is over.
pub fn count(thread: &Thread, frame: &Frame) {
    let table = if frame.is_compat_call() { &thread.kernel.compat } else { &thread.kernel.table };
    let name = table.get(frame.number() & 0xffff_ffff).map_or("", |row| row.name);
    let (reads, writes) = match name {
        "read" | "pread64" | "readv" | "preadv" | "preadv2" => (true, false),
        "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" => (false, true),
        "sendfile" | "sendfile64" | "copy_file_range" => (true, true),
        _ => return,
    };
    let moved = u64::try_from(frame.result()).unwrap_or(0);
    let io = &thread.io;
    for (counted, bytes, calls) in [(reads, &io.read, &io.reads), (writes, &io.written, &io.writes)] {
        if counted {
            bytes.fetch_add(moved, Ordering::Relaxed);
            calls.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What a process has moved, those of its threads that are gone among it; or one thread.
pub fn moved(task: &Task, thread: Option<&Seat>) -> Moved {
    let sum = Moved::default();
    match thread {
        Some(seat) => sum.add(&seat.io),
        None => {
            // Under the lock under which one that ends hands over what it has.
            let group = task.group.lock();
            sum.add(&task.usage.io);
            group.threads.iter().for_each(|seat| sum.add(&seat.io));
        }
    }
    sum
}
