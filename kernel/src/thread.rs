//! Threads: a flow of control in a task, with the one call it may have pending.

use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use core::task::{self, Poll, Waker};

use janua_abi::linux::{Errno, Result};
use janua_port::context::Context;
use janua_port::guest::{Abi, Outcome, Verdict};
use janua_port::machine::ThreadId;
use janua_port::user::NoMemory;
use janua_port::{Frame, Guest, Machine, Nanos, Registers, UserMemory};
use janua_rt::executor::Ran;
use janua_rt::slot::{Handler, Slotted};
use janua_rt::wake::{self, Raised};
use janua_rt::{AtomicU64, Mutex};

use crate::errand::AwayMemory;
use crate::module::{Away, Module, Remote};
use crate::queue::Queue;
use crate::table::{Row, SeatOf, Words};
use crate::task::{Kernel, Personality, Task};

/// Work flags of a thread: why it must return to user mode by the slow path.
pub mod work {
    /// The personality may want the thread ([`crate::Personality::leave`]): a call that waits gives up.
    pub const INTERRUPT: u32 = 1;
    /// The frame is to be replaced by [`super::Thread::replace_frame`]'s.
    pub const FRAME: u32 = 2;
    /// The thread must end.
    pub const KILL: u32 = 4;
    /// The thread must stop.
    pub const STOP: u32 = 8;
    /// The personality has something to put back once the call is over. No reason for a call to give up.
    pub const RESTORE: u32 = 16;
    /// The thread is to look at what nobody else can see, its processor time. No reason for a call to give up.
    pub const LOOK: u32 = 32;
    /// The personality has something to do on this thread alone ([`crate::Personality::errands`]). No reason for a call to give up.
    pub const TASK: u32 = 64;
    // A call's verdict is joined with them where an entry tests both.
    const _: () = assert!((INTERRUPT | FRAME | KILL | STOP | RESTORE | LOOK | TASK) & super::Verdict::BITS == 0);
}

/// How a thread is woken. Wakers are handles to this.
pub struct WakeState {
    /// Of the thread's call, wherever that is: the word the thread parks on while it is at home. See [`janua_rt::wake`].
    pub word: AtomicU32,
    /// The word it parks on while its call is away.
    pub home: AtomicU32,
    pub(crate) machine: &'static dyn Machine,
    /// The call while it is away, and the module that has it.
    away: Mutex<Option<(Away, Arc<Module>)>>,
}

impl WakeState {
    pub(crate) fn new(machine: &'static dyn Machine) -> WakeState {
        let word = || AtomicU32::new(wake::QUIET);
        WakeState { word: word(), home: word(), machine, away: Mutex::new(None) }
    }

    pub(crate) fn raise(&self) {
        match wake::raise(&self.word) {
            Raised::Nothing => {}
            Raised::Unpark => self.machine.park().unpark(&self.word, 1),
            Raised::Queue => self.queue(),
        }
    }

    /// By who sends a call to a module: puts it into the module's queue, now and whenever it is woken.
    pub(crate) fn send(&self, call: Away, module: &Arc<Module>) {
        *self.away.lock() = Some((call.clone(), module.clone()));
        wake::send(&self.word);
        module.submit(call);
    }

    /// The call is over, and with no module any more.
    pub(crate) fn come_home(&self) {
        let away = self.away.lock().take();
        drop(away);
    }

    /// The call waits, and its module is done with it.
    fn goes_home(&self) {
        if let Some((_, module)) = &*self.away.lock() {
            module.goes_home();
        }
    }

    /// Puts the call into its module's queue.
    #[cold]
    fn queue(&self) {
        let away = self.away.lock().clone();
        if let Some((call, module)) = away {
            module.submit(call);
        }
    }

    /// Raises a word of a thread that sleeps on no other.
    pub(crate) fn raise_word(&self, word: &AtomicU32) {
        if wake::raise(word) == Raised::Unpark {
            self.machine.park().unpark(word, 1);
        }
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
    /// What the machine has of it, and its memory while its call is away.
    pub(crate) far: AwayMemory,
    /// Its call is with a module, or its result has not been fetched yet. The thread's own.
    sent: AtomicBool,
    /// The module has yet to build the call.
    unbuilt: AtomicBool,
    /// The number of the row of the call that is away, and whether it stays there while it waits.
    sent_row: AtomicUsize,
    stays: AtomicBool,
    /// It works beside its owner's calls, on the owner's thread.
    beside: bool,
    /// The call under way has been away, if not to its end.
    went_away: AtomicBool,
    /// What came of a call that was away.
    outcome: Mutex<Option<Returned>>,
    pub(crate) gate: AtomicU8,
    /// The registers at entry of a call that may wait, for handlers that need them; the replacement goes the same way.
    pub(crate) frame: Mutex<Option<Frame>>,
    pub(crate) pending: Mutex<Option<(Option<&'static Row<P>>, Pending)>>,
    /// Where it is, while it is stopped.
    pub(crate) stopped: Mutex<Option<Blocked>>,
    /// Why the personality is asked before and after each call ([`Seat::watch_calls`]), by [`watch`]; 0 if it is not.
    watched: AtomicU8,
    /// A call the personality lets wait before it begins.
    pub(crate) entering: Mutex<Option<Abi>>,
    /// Its queues of submissions.
    pub(crate) queues: Mutex<Vec<Arc<Queue<P>>>>,
    /// What the trace has read of the call under way.
    pub(crate) taken: Mutex<crate::trace::Taken>,
    /// The personality's own.
    pub ext: P::Thread,
}

/// What came of a call that was away.
#[derive(Clone, Copy)]
pub(crate) enum Returned {
    /// It is over.
    Over(isize),
    /// It waits, and its thread goes on with it.
    Waits,
}

/// What the slot holds.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    pub words: [usize; 6],
    pub started: u64,
    /// Stack pointer and program counter of the user code that called.
    pub at: [usize; 2],
}

/// Why the personality is asked before and after each call of a thread.
pub mod watch {
    /// It is traced.
    pub const TRACE: u8 = 1;
    /// What its calls move is counted.
    pub const COUNT: u8 = 2;
}

/// Where a thread is that waits or is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The call it waits in, and its words; `None` for a thread that is stopped outside one.
    pub number: Option<usize>,
    /// The call's name; empty where it is not known.
    pub name: &'static str,
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
        let wake = Arc::new(WakeState::new(machine));
        Thread {
            kernel: task.kernel.clone(),
            task,
            waker: wake.clone().into(),
            far: AwayMemory::new(wake.clone()),
            sent: AtomicBool::new(false),
            unbuilt: AtomicBool::new(false),
            sent_row: AtomicUsize::new(0),
            stays: AtomicBool::new(false),
            beside: false,
            went_away: AtomicBool::new(false),
            outcome: Mutex::new(None),
            wake,
            deadline: AtomicU64::new(u64::MAX),
            work: AtomicU32::new(0),
            gate: AtomicU8::new(0),
            frame: Mutex::new(None),
            pending: Mutex::new(None),
            stopped: Mutex::new(None),
            watched: AtomicU8::new(0),
            entering: Mutex::new(None),
            queues: Mutex::default(),
            taken: Mutex::default(),
            ext,
        }
    }

    /// What makes submissions for `owner` ([`crate::queue`], [`crate::chore`]): a thread of the same task with its memory, whose calls are always with a
    /// module, which reaches that memory from where it runs. None before the owner has begun to run.
    pub fn stand_in(owner: &Thread<P>, ext: P::Thread) -> Option<Thread<P>> {
        let context = owner.shared_context()?;
        let thread = Thread::new(owner.task.clone(), ext);
        thread.attach(context);
        thread.far.direct.store(true, Ordering::Relaxed);
        thread.sent.store(true, Ordering::Relaxed);
        Some(thread)
    }

    /// One for work that `owner` does beside its own calls, on its own thread: of the same task, with its memory, woken by nobody. What waits for it is
    /// polled by [`Thread::poll_for`]. None before the owner has begun to run.
    pub fn double(owner: &Thread<P>, ext: P::Thread) -> Option<Thread<P>> {
        let context = owner.shared_context()?;
        let thread = Thread { beside: true, ..Thread::new(owner.task.clone(), ext) };
        thread.attach(context);
        Some(thread)
    }

    /// As [`Thread::double`], for calls that are built in a slot of its own; what wakes them wakes this.
    pub(crate) fn helper(owner: &Thread<P>, ext: P::Thread, waker: Waker) -> Option<Thread<P>> {
        let mut thread = Thread::double(owner, ext)?;
        thread.waker = waker;
        Some(thread)
    }

    /// Polls a future in which this thread, a [`Thread::double`], waits: what it came to, and the time at which it asks to be polled again.
    pub fn poll_for<F: Future + ?Sized>(&self, future: Pin<&mut F>, waker: &Waker) -> (Poll<F::Output>, Option<Nanos>) {
        self.deadline.store(u64::MAX, Ordering::Relaxed);
        let polled = future.poll(&mut task::Context::from_waker(waker));
        (polled, self.look_again())
    }

    /// The machine it runs on.
    pub fn machine(&self) -> &'static dyn Machine {
        self.kernel.machine
    }

    /// What the machine has of it, from just before it starts.
    #[inline]
    pub fn context(&self) -> Option<&dyn Context> {
        self.far.context.get()
    }

    /// The same for keeps, as gates have it whose rings are in the thread's memory.
    pub fn shared_context(&self) -> Option<Arc<dyn Context>> {
        self.far.context.share()
    }

    /// [`Guest::attach`].
    pub(crate) fn attach(&self, context: Arc<dyn Context>) {
        // A machine does it once.
        let _ = self.far.context.set(context);
    }

    /// The memory of this thread's task; none before the thread has begun to run.
    #[inline]
    pub fn user(&self) -> &dyn UserMemory {
        match self.context() {
            Some(context) if !self.is_sent() => context.memory(),
            _ => self.user_elsewhere(),
        }
    }

    /// That of a thread whose call is away, or that has not begun.
    #[cold]
    #[inline(never)]
    fn user_elsewhere(&self) -> &dyn UserMemory {
        if self.is_sent() { &self.far } else { &NoMemory }
    }

    /// Its registers beyond the frame. EXDEV, as [`Context::registers`]; ESRCH before the thread has begun to run.
    pub fn registers(&self) -> Result<&dyn Registers> {
        self.context().ok_or(Errno::ESRCH)?.registers()
    }

    /// Whether the call under way is with a module.
    #[inline]
    pub(crate) fn is_sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed)
    }

    /// Whether others wait for what runs this thread's call now.
    pub(crate) fn may_not_block(&self) -> bool {
        self.beside || self.is_sent()
    }

    /// The call that begins is made at home.
    pub(crate) fn set_home(&self) {
        if self.went_away.load(Ordering::Relaxed) {
            self.went_away.store(false, Ordering::Relaxed);
        }
    }

    /// At the end of a call: whether a module has made it, or begun it.
    pub(crate) fn was_away(&self) -> bool {
        self.is_sent() || self.went_away.load(Ordering::Relaxed)
    }

    /// The word to park on.
    pub(crate) fn park_word(&self) -> &AtomicU32 {
        if self.is_sent() { &self.wake.home } else { &self.wake.word }
    }

    /// By the thread, woken while its call is away: does its errands. What came of the call, if it has come home.
    pub(crate) fn fetch(&self) -> Option<Returned> {
        wake::rearm(&self.wake.home);
        self.far.serve();
        let returned = self.outcome.lock().take()?;
        self.be_home();
        Some(returned)
    }

    fn be_home(&self) {
        self.far.close();
        self.wake.come_home();
        self.sent.store(false, Ordering::Relaxed);
    }

    /// Wakes the call that this thread waits in.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Whether a call of this thread is away and runs there, or is over and comes home: neither waits for anything.
    fn runs_away(&self) -> bool {
        wake::is_under_way(&self.wake.word) || self.is_sent() && !wake::is_away(&self.wake.word)
    }

    /// Whether a call of this thread waits.
    pub fn is_waiting(&self) -> bool {
        self.pending.lock().is_some() && !self.runs_away()
    }

    /// Where it waits or is stopped; `None` for one that runs.
    pub fn blocked(&self) -> Option<Blocked> {
        if self.runs_away() {
            return None;
        }
        if let Some((row, pending)) = &*self.pending.lock() {
            let name = row.map_or("", |row| row.name);
            return Some(Blocked { number: row.map(|row| row.number), name, words: pending.words, at: pending.at });
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
        self.watched.load(Ordering::Relaxed) != 0
    }

    /// Whether it is, for this reason ([`watch`]).
    pub fn is_watched_for(&self, why: u8) -> bool {
        self.watched.load(Ordering::Relaxed) & why != 0
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

    /// Flags [`work::TASK`], and has the thread see to it soon wherever it waits; where it runs user code only with `kick`.
    pub fn remind(&self, kick: bool) {
        self.work.fetch_or(work::TASK, Ordering::SeqCst);
        self.wake.raise();
        self.wake.raise_word(&self.wake.home);
        if kick && let Some(context) = self.context() {
            context.kick();
        }
    }

    /// Before each poll: forget old wake-ups and deadlines, so that what this poll leaves behind is what counts.
    pub(crate) fn prepare_poll(&self) {
        wake::rearm(&self.wake.word);
        self.deadline.store(u64::MAX, Ordering::Relaxed);
    }

    /// Builds a call in the slot and polls it once.
    #[inline]
    pub fn begin<H>(seat: SeatOf<'_, P>, call: H, words: Words) -> Outcome
    where
        H: for<'a> Handler<'a, Thread<P>, Words>,
    {
        let thread = seat.get_ref().owner();
        thread.prepare_poll();
        match seat.start(call, words, &mut task::Context::from_waker(&thread.waker)) {
            Poll::Ready(result) if P::is_special(result) => Outcome::new(result, Verdict::INTERNAL),
            Poll::Ready(result) => result.into(),
            Poll::Pending => Outcome::PENDING,
        }
    }

    /// By a module, for a [`Thread::stand_in`]: does something with its memory.
    pub fn away_for<T>(&self, what: impl FnOnce() -> T) -> T {
        let work_for = |on| self.context().into_iter().for_each(|context| context.work_for(on));
        work_for(true);
        let result = what();
        work_for(false);
        result
    }

    /// By a module: builds this call in the slot, or goes on with the one that is there, and polls it once.
    pub(crate) fn poll_away(seat: SeatOf<'_, P>, call: Option<(&'static Row<P>, Words)>) -> Poll<isize> {
        let thread = seat.get_ref().owner();
        thread.away_for(|| {
            thread.prepare_poll();
            match call {
                Some((row, words)) => row.build(seat, words),
                None => seat.poll(&mut task::Context::from_waker(&thread.waker)).unwrap_or(Poll::Ready(0)),
            }
        })
    }

    /// The time the last poll has asked for.
    pub(crate) fn look_again(&self) -> Option<Nanos> {
        let deadline = self.deadline.load(Ordering::Relaxed);
        (deadline != u64::MAX).then_some(deadline)
    }

    /// Which thread the machine knows it by.
    pub(crate) fn id(&self) -> ThreadId {
        self.context().map_or_else(ThreadId::default, Context::id)
    }

    /// The registers the pending call entered with. Only inside a `frame_wait` handler.
    pub fn frame(&self) -> Frame {
        self.frame.lock().unwrap_or_default()
    }

    /// Makes the thread return to user mode with these registers instead of those the call entered with.
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

impl<P: Personality> Remote for Slotted<Thread<P>> {
    fn run(self: Pin<&Self>) -> Ran {
        let thread = self.get_ref().owner();
        let machine = thread.kernel.machine;
        let polled = if thread.unbuilt.swap(false, Ordering::Relaxed) {
            let pending = *thread.pending.lock();
            match pending {
                Some((Some(row), pending)) => Thread::poll_away(self, Some((row, pending.words))),
                _ => Poll::Ready(0),
            }
        } else {
            Thread::poll_away(self, None)
        };
        // In this order: once the outcome is to be had, the thread may send its next call.
        let returned = match polled {
            Poll::Ready(result) => {
                wake::finish(&thread.wake.word);
                Returned::Over(result)
            }
            Poll::Pending if thread.stays.load(Ordering::Relaxed) => return Ran::Waits(thread.look_again()),
            Poll::Pending => {
                thread.wake.goes_home();
                wake::give_back(&thread.wake.word);
                Returned::Waits
            }
        };
        *thread.outcome.lock() = Some(returned);
        if wake::raise(&thread.wake.home) == Raised::Unpark {
            machine.park().unpark(&thread.wake.home, 1);
        }
        Ran::Done
    }

    fn wake(&self) -> &WakeState {
        &self.owner().wake
    }
    fn kind(&self) -> usize {
        self.owner().sent_row.load(Ordering::Relaxed)
    }
    fn nice(&self) -> i8 {
        P::nice(self.owner())
    }
}

impl<P: Personality> Seat<P> {
    /// Sends the pending call, of this row, to a module.
    pub(crate) fn send(&self, row: &Row<P>, module: &Arc<Module>) {
        self.sent_row.store(row.number, Ordering::Relaxed);
        self.stays.store(!module.adaptive, Ordering::Relaxed);
        self.went_away.store(true, Ordering::Relaxed);
        self.far.direct.store(module.direct, Ordering::Relaxed);
        self.far.open();
        self.unbuilt.store(true, Ordering::Relaxed);
        self.sent.store(true, Ordering::Relaxed);
        self.wake.send(Away(self.slotted.clone()), module);
    }

    /// Takes the call back from the module it was sent to. False when that has begun it, or had.
    pub(crate) fn take_back(&self, module: &Arc<Module>) -> bool {
        if !wake::take_back(&self.wake.word) {
            return false;
        }
        module.withdraw(&Away(self.slotted.clone()));
        self.unbuilt.store(false, Ordering::Relaxed);
        self.went_away.store(false, Ordering::Relaxed);
        self.be_home();
        true
    }

    /// From now on the personality is asked after each call of the thread, of which the entry may go on to make some itself until the thread has called
    /// [`Seat::see_watch`]. For others.
    pub fn note_watch(&self, why: u8) {
        self.watched.fetch_or(why, Ordering::Relaxed);
    }

    /// What others have noted holds for all calls of the thread from now on. For the thread itself.
    pub fn see_watch(&self) {
        if let Some(context) = self.context() {
            context.set_plain(self.plain());
        }
    }

    pub fn new(thread: Thread<P>) -> Arc<Seat<P>> {
        Arc::new(Seat { slotted: Arc::pin(Slotted::new(thread)) })
    }

    /// From now on the personality is asked before and after each call of the thread, none of which the entry makes itself then; or no
    /// longer for this reason ([`watch`]). For the thread itself.
    pub fn watch_calls(&self, why: u8, watch: bool) {
        let before =
            if watch { self.watched.fetch_or(why, Ordering::Relaxed) } else { self.watched.fetch_and(!why, Ordering::Relaxed) };
        let after = if watch { before | why } else { before & !why };
        if (before == 0) != (after == 0)
            && let Some(context) = self.context()
        {
            context.set_plain(self.plain());
        }
    }
}
