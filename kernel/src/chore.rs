//! Chores: what a module does beside calls, again and again, for as long as it is wanted.
//!
//! A chore is a job of one module's executor, like a call that is away: it is done in the module's turns, by one thread at a time, goes with the module
//! from core to core, and is woken by the same word ([`janua_rt::wake`]), so that a wake-up during a turn brings another turn.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::pin::Pin;

use janua_port::Nanos;
use janua_rt::executor::Ran;
use janua_rt::wake;

use crate::module::{Away, Module, Remote};
use crate::task::Personality;
use crate::thread::{Thread, WakeState};

/// When a chore is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When it is woken, or at this time.
    At(Nanos),
    /// When it is woken.
    Woken,
    /// Never again.
    Over,
}

/// Something that a module does.
pub struct Chore {
    me: Weak<Chore>,
    wake: Arc<WakeState>,
    module: Arc<Module>,
    body: Box<dyn Fn() -> Next + Send + Sync>,
}

impl Chore {
    /// A chore for the module that a thread's calls on files go to, which does `body` in a turn of its own once it has begun. `None` where the kernel has
    /// no modules.
    pub fn new<P: Personality>(thread: &Thread<P>, body: Box<dyn Fn() -> Next + Send + Sync>) -> Option<Arc<Chore>> {
        let kernel = &thread.kernel;
        let module = kernel.modules.for_queues_of(thread.id())?.clone();
        let wake = Arc::new(WakeState::new(kernel.machine));
        Some(Arc::new_cyclic(|me| Chore { me: me.clone(), wake, module, body }))
    }

    /// Whether its module reaches user memory from where it runs ([`Thread::stand_in`]).
    pub fn reaches_memory(&self) -> bool {
        self.module.direct
    }

    /// Has it done for the first time; once.
    pub fn begin(&self) {
        if let Some(me) = self.me.upgrade() {
            let job: Pin<Arc<Self>> = Pin::new(me);
            self.wake.send(Away(job), &self.module);
        }
    }

    /// There is something to be done. Nothing before it has begun, nor when it is over.
    pub fn wake(&self) {
        self.wake.raise();
    }
}

impl Remote for Chore {
    fn run(self: Pin<&Self>) -> Ran {
        self.module.did_chore();
        match (self.body)() {
            Next::At(time) => Ran::Waits(Some(time)),
            Next::Woken => Ran::Waits(None),
            Next::Over => {
                wake::finish(&self.wake.word);
                self.wake.come_home();
                Ran::Done
            }
        }
    }

    fn wake(&self) -> &WakeState {
        &self.wake
    }
}
