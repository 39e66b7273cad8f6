//! Threads of a kernel's own, as [`janua_port::Machine::spawn_kernel`] makes them. Each is a thread of the host's that runs in its turns only: from
//! one sleep to the next, while everything else of the machine stands still. So they are as deterministic as guests.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use janua_port::Nanos;

use crate::memory::lock;

thread_local! {
    /// The kernel's thread that this thread of the host's is.
    static OWN: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

/// Unwinds a thread whose kernel has ended.
struct Ended;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Machine,
    Thread,
    /// There is none any more: the thread ends.
    Over,
}

struct State {
    turn: Turn,
    /// The address of the word it sleeps on; `None` before its first turn.
    sleeps_on: Option<usize>,
    deadline: Option<Nanos>,
    woken: bool,
    ended: Option<thread::Result<()>>,
}

pub struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn wait(&self, mut state: MutexGuard<'_, State>, until: impl Fn(Turn) -> bool) -> Turn {
        while !until(state.turn) {
            state = self.changed.wait(state).unwrap_or_else(|broken| broken.into_inner());
        }
        state.turn
    }

    /// Gives the turn back and waits for the next.
    fn sleep(&self, word: usize, deadline: Option<Nanos>) {
        let mut state = lock(&self.state);
        (state.sleeps_on, state.deadline, state.woken) = (Some(word), deadline, false);
        if state.turn == Turn::Thread {
            state.turn = Turn::Machine;
        }
        self.changed.notify_all();
        if self.wait(state, |turn| turn != Turn::Machine) == Turn::Over {
            resume_unwind(Box::new(Ended));
        }
    }

    /// Wakes it if it sleeps on this word.
    pub fn wake(&self, word: usize) {
        let mut state = lock(&self.state);
        state.woken |= state.sleeps_on == Some(word);
    }
}

/// One such thread, which ends with this.
pub struct OwnThread {
    pub shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl OwnThread {
    /// A thread that calls this in its first turn. `None` when the host has no more threads.
    pub fn new(name: &str, body: Box<dyn FnOnce() + Send>) -> Option<OwnThread> {
        let state = State { turn: Turn::Machine, sleeps_on: None, deadline: None, woken: true, ended: None };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let own = shared.clone();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            OWN.set(Some(own.clone()));
            if own.wait(lock(&own.state), |turn| turn != Turn::Machine) == Turn::Over {
                return;
            }
            let ended = catch_unwind(AssertUnwindSafe(body));
            let mut state = lock(&own.state);
            state.ended = Some(ended);
            (state.woken, state.deadline) = (false, None);
            if state.turn == Turn::Thread {
                state.turn = Turn::Machine;
            }
            own.changed.notify_all();
        });
        Some(OwnThread { shared, thread: Some(thread.ok()?) })
    }

    /// Whether it can run: it has not begun, or has been woken.
    pub fn is_ready(&self) -> bool {
        lock(&self.shared.state).woken
    }

    /// Its next turn: until when it sleeps then. A panic of the thread's goes on here.
    pub fn step(&self) -> Option<Nanos> {
        let mut state = lock(&self.shared.state);
        if state.ended.is_some() {
            return None;
        }
        state.turn = Turn::Thread;
        self.shared.changed.notify_all();
        self.shared.wait(state, |turn| turn != Turn::Thread);
        let mut state = lock(&self.shared.state);
        match &mut state.ended {
            Some(ended) => {
                let ended = core::mem::replace(ended, Ok(()));
                drop(state);
                ended.unwrap_or_else(|panic| resume_unwind(panic));
                None
            }
            None => state.deadline,
        }
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        lock(&self.shared.state).turn = Turn::Over;
        self.shared.changed.notify_all();
        // It has nothing left to report.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Sleeps, if the calling thread of the host's is one of a kernel's: whether it is.
pub fn park(word: &AtomicU32, deadline: Option<Nanos>) -> bool {
    let Some(own) = OWN.with_borrow(Clone::clone) else { return false };
    own.sleep(address(word), deadline);
    true
}

/// By what a sleeper is found.
pub fn address(word: &AtomicU32) -> usize {
    core::ptr::from_ref(word).addr()
}
