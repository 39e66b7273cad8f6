//! Threads: a flow of control in a task, with the one call it may have pending.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use core::task::{self, Poll, Waker};

use janua_abi::linux::{Errno, Result};
use janua_port::context::Context;
use janua_port::guest::Abi;
use janua_port::user::NoMemory;
use janua_port::{Frame, Guest, Machine, Registers, UserMemory};
use janua_rt::slot::{Handler, Slotted};
use janua_rt::{AtomicU64, Mutex, OnceArc, wake};

use crate::table::{Row, SeatOf, Words};
use crate::task::{Kernel, Personality, Task};

/// Work flags of a thread: why the way back to user code must not be the short one.
pub mod work {
    /// A signal may be deliverable.
    pub const SIGNAL: u32 = 1;
    /// The frame is to be replaced by [`super::Thread::replace_frame`]'s.
    pub const FRAME: u32 = 2;
    /// The thread must end.
    pub const KILL: u32 = 4;
    /// The thread must stop (job control, ptrace).
    pub const STOP: u32 = 8;
    /// A saved signal mask must be put back (sigsuspend, ppoll).
    pub const MASK: u32 = 16;
    /// The thread is to look at what nobody else can see, its processor time. No reason for a call to give up.
    pub const LOOK: u32 = 128;
    /// The call's result is a code for the way back. Only the thread itself marks this and the next, and takes them off at once.
    pub(crate) const CODED: u32 = 32;
    /// The call waits.
    pub(crate) const WAITS: u32 = 64;
}

/// How a thread is woken: the word it parks on. Wakers are handles to this.
pub struct WakeState {
    /// See [`janua_rt::wake`].
    pub word: AtomicU32,
    machine: &'static dyn Machine,
}

impl WakeState {
    fn raise(&self) {
        wake::raise(&self.word, || self.machine.park().unpark(&self.word, 1));
    }
}

impl Wake for WakeState {
    fn wake(self: Arc<Self>) {
        self.raise();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.raise();
    }
}

/// A thread. The personality's part is reached by deref.
pub struct Thread<P: Personality> {
    pub kernel: Arc<Kernel<P>>,
    pub task: Arc<Task<P>>,
    pub(crate) wake: Arc<WakeState>,
    pub(crate) waker: Waker,
    /// Earliest deadline asked for during the current poll; `u64::MAX` is none.
    pub(crate) deadline: AtomicU64,
    work: AtomicU32,
    /// What the machine has of it, from just before it starts.
    context: OnceArc<dyn Context>,
    pub(crate) gate: AtomicU8,
    /// The registers at entry of a call that may wait, for handlers that need them; the replacement goes the same way.
    pub(crate) frame: Mutex<Option<Frame>>,
    pub(crate) pending: Mutex<Option<(Option<&'static Row<P>>, Pending)>>,
    /// Where it is, while it is stopped.
    pub(crate) stopped: Mutex<Option<Blocked>>,
    /// The personality is asked before and after each call ([`Seat::watch_calls`]).
    watched: AtomicBool,
    /// A call the personality lets wait before it begins.
    pub(crate) entering: Mutex<Option<Abi>>,
    /// What the trace has read of the call under way.
    pub(crate) taken: Mutex<crate::trace::Taken>,
    /// The personality's own.
    pub ext: P::Thread,
}

/// What the slot holds.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    pub words: [usize; 6],
    pub started: u64,
    /// Stack pointer and program counter of the user code that called.
    pub at: [usize; 2],
}

/// Where a thread is that waits or is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The call it waits in, and its words; `None` for a thread that is stopped outside one.
    pub number: Option<usize>,
    pub words: [usize; 6],
    /// Stack pointer and program counter of its user code.
    pub at: [usize; 2],
}

impl<P: Personality> core::ops::Deref for Thread<P> {
    type Target = P::Thread;
    fn deref(&self) -> &P::Thread {
        &self.ext
    }
}

impl<P: Personality> Thread<P> {
    /// A thread of `task`, not yet running.
    pub fn new(task: Arc<Task<P>>, ext: P::Thread) -> Thread<P> {
        let machine = task.kernel.machine;
        let wake = Arc::new(WakeState { word: AtomicU32::new(0), machine });
        Thread {
            kernel: task.kernel.clone(),
            task,
            waker: wake.clone().into(),
            wake,
            deadline: AtomicU64::new(u64::MAX),
            work: AtomicU32::new(0),
            context: OnceArc::default(),
            gate: AtomicU8::new(0),
            frame: Mutex::new(None),
            pending: Mutex::new(None),
            stopped: Mutex::new(None),
            watched: AtomicBool::new(false),
            entering: Mutex::new(None),
            taken: Mutex::default(),
            ext,
        }
    }

    /// The machine it runs on.
    pub fn machine(&self) -> &'static dyn Machine {
        self.kernel.machine
    }

    /// What the machine has of it, from just before it starts.
    #[inline]
    pub fn context(&self) -> Option<&dyn Context> {
        self.context.get()
    }

    /// [`Guest::attach`].
    pub(crate) fn attach(&self, context: Arc<dyn Context>) {
        // A machine does it once.
        let _ = self.context.set(context);
    }

    /// The memory of this thread's task; none before the thread has begun to run.
    #[inline]
    pub fn user(&self) -> &dyn UserMemory {
        match self.context() {
            Some(context) => context.memory(),
            None => &NoMemory,
        }
    }

    /// Its registers beyond the frame. EXDEV, as [`Context::registers`]; ESRCH before the thread has begun to run.
    pub fn registers(&self) -> Result<&dyn Registers> {
        self.context().ok_or(Errno::ESRCH)?.registers()
    }

    /// Wakes the call that this thread waits in.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Whether a call of this thread waits.
    pub fn is_waiting(&self) -> bool {
        self.pending.lock().is_some()
    }

    /// Where it waits or is stopped; `None` for one that runs.
    pub fn blocked(&self) -> Option<Blocked> {
        if let Some((row, pending)) = &*self.pending.lock() {
            return Some(Blocked { number: row.map(|row| row.number), words: pending.words, at: pending.at });
        }
        *self.stopped.lock()
    }

    /// Whether the thread has been woken and has not looked yet at what for.
    pub fn is_woken(&self) -> bool {
        wake::is_raised(&self.wake.word)
    }

    /// Whether the personality is asked before and after each call.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// The work flags ([`work`]).
    pub fn work(&self) -> u32 {
        self.work.load(Ordering::SeqCst)
    }

    /// The word of [`Thread::work`].
    pub fn work_word(&self) -> &AtomicU32 {
        &self.work
    }

    /// Takes work flags back, whose work is done.
    pub fn clear_work(&self, flags: u32) {
        self.work.fetch_and(!flags, Ordering::SeqCst);
    }

    /// Flags work without waking: for the thread itself.
    pub fn set_work(&self, flags: u32) {
        self.work.fetch_or(flags, Ordering::SeqCst);
    }

    /// Flags work and gets the thread's attention, wherever it is: a waiting call is polled again, user code is interrupted.
    pub fn interrupt(&self, flags: u32) {
        self.work.fetch_or(flags, Ordering::SeqCst);
        self.wake.raise();
        // One that has not begun to run looks at its work when it does.
        if let Some(context) = self.context() {
            context.kick();
        }
    }

    /// Before each poll: forget old wake-ups and deadlines, so that what this poll leaves behind is what counts.
    pub(crate) fn prepare_poll(&self) {
        wake::rearm(&self.wake.word);
        self.deadline.store(u64::MAX, Ordering::Relaxed);
    }

    /// Builds a call in the slot and polls it once. Whether it waits is marked, and whether its result is no program's.
    #[inline]
    pub fn begin<H>(seat: SeatOf<'_, P>, call: H, words: Words) -> isize
    where
        H: for<'a> Handler<'a, Thread<P>, Words>,
    {
        let thread = seat.get_ref().owner();
        thread.prepare_poll();
        match seat.start(call, words, &mut task::Context::from_waker(&thread.waker)) {
            Poll::Ready(result) => {
                if P::is_special(result) {
                    thread.set_work(work::CODED);
                }
                result
            }
            Poll::Pending => {
                thread.set_work(work::WAITS);
                0
            }
        }
    }

    /// Whether the call just made waits. Its marks are gone then.
    #[inline]
    pub(crate) fn take_marks(&self) -> bool {
        let marks = self.work() & (work::CODED | work::WAITS);
        if marks != 0 {
            self.clear_work(marks);
        }
        marks & work::WAITS != 0
    }

    /// The registers the pending call entered with. Only inside a `frame_wait` handler.
    pub fn frame(&self) -> Frame {
        self.frame.lock().unwrap_or_default()
    }

    /// Makes the way back use these registers instead of those the call entered with (exec, sigreturn).
    pub fn replace_frame(&self, frame: Frame) {
        *self.frame.lock() = Some(frame);
        self.set_work(work::FRAME);
    }

    /// Takes the replacement, when [`work::FRAME`] is set.
    pub fn take_frame(&self) -> Option<Frame> {
        self.clear_work(work::FRAME);
        self.frame.lock().take()
    }
}

/// A thread and the slot of its pending call; what the machine carries.
pub struct Seat<P: Personality> {
    pub(crate) slotted: Pin<Arc<Slotted<Thread<P>>>>,
}

impl<P: Personality> core::ops::Deref for Seat<P> {
    type Target = Thread<P>;
    fn deref(&self) -> &Thread<P> {
        self.slotted.owner()
    }
}

impl<P: Personality> Seat<P> {
    pub fn new(thread: Thread<P>) -> Arc<Seat<P>> {
        Arc::new(Seat { slotted: Arc::pin(Slotted::new(thread)) })
    }

    /// From now on the personality is asked before and after each call of the thread, none of which the entry makes itself then; or no
    /// longer. For the thread itself.
    pub fn watch_calls(&self, watch: bool) {
        if self.watched.swap(watch, Ordering::Relaxed) != watch
            && let Some(context) = self.context()
        {
            context.set_plain(self.plain());
        }
    }
}
