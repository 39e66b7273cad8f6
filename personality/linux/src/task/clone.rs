//! Birth: clone(2), clone3(2), fork(2), vfork(2).

use core::sync::atomic::{AtomicBool, Ordering};

use janua_rt::WaitQueue;

use crate::Thread;

/// What a vfork parent waits for: its child no longer uses the parent's memory.
#[derive(Default)]
pub struct VforkDone {
    done: AtomicBool,
    queue: WaitQueue,
}

/// Lets a vfork parent go on: the thread has got memory of its own (exec) or ends.
pub fn release_vfork(thread: &Thread) {
    let done = thread.vfork.lock().take();
    if let Some(done) = done {
        done.done.store(true, Ordering::SeqCst);
        done.queue.wake_all();
    }
}
