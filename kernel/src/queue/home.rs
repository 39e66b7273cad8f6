//! Queues that no module looks into. Their calls are made by the thread itself when it asks for that ([`HomeQueue::serve`]), many of them after one entry.
//!
//! What returns at once is made as the thread: it needs no slot, so that a call of the thread may wait in that meanwhile. What may wait is made by a *helper* with a
//! slot of its own, made when one is needed; to handlers it is the calling thread, as the stand-ins of [`super::Queue`] are. A helper whose call waits is polled again
//! when that has been woken and the thread asks again, or waits for completions.
//!
//! All of it is behind one lock, which only the thread itself takes. What others do is to leave a helper's number in [`HomeQueue::woken`].

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::task::Wake;
use alloc::vec::Vec;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};

use janua_abi::linux::{Errno, Result};
use janua_abi::ring::{Completion, Submission as Entry};
use janua_port::gate::{NO_CALL, QueueGate, Submission};
use janua_port::{GateId, Nanos};
use janua_rt::slot::Slotted;
use janua_rt::{Mutex, WaitQueue};

use super::{Link, MOST, Pool, Taken, WAITING};
use crate::place::Place;
use crate::table::{self, CallFn, Row, Run, SeatOf, Words};
use crate::task::{Kernel, Personality};
use crate::thread::{Seat, Thread, work};
use crate::wait::Cut;

/// Entries that are copied at a time.
const BATCH: usize = 32;

/// Batches that are taken before the thread looks at what else it has to do.
const TURNS: usize = 1024;

/// A queue of one thread's, whose calls that thread makes.
pub struct HomeQueue<P: Personality> {
    kernel: Arc<Kernel<P>>,
    me: Weak<HomeQueue<P>>,
    gate: Arc<dyn QueueGate>,
    /// By number, whether calls of a row are made from queues.
    allowed: Box<[bool]>,
    state: Mutex<State<P>>,
    /// Helpers whose call has been woken since it was polled.
    woken: Mutex<Vec<usize>>,
    /// Woken with them.
    events: WaitQueue,
}

struct State<P: Personality> {
    closed: bool,
    /// The entries that are being made, copied out of the program's memory.
    entries: Box<[Entry; BATCH]>,
    pool: Pool,
    helpers: Vec<Option<Helper<P>>>,
    /// Ends that have not been posted yet, oldest first. No entries are taken while there is no room for them.
    done: Vec<Completion>,
}

/// Where one call at a time is made that may wait.
struct Helper<P: Personality> {
    stand_in: Pin<Box<Slotted<Thread<P>>>>,
    bell: Arc<Bell<P>>,
    call: Option<Call<P>>,
}

struct Call<P: Personality> {
    row: &'static Row<P>,
    words: Words,
    link: Option<Link>,
    started: Nanos,
}

/// What a helper's call is woken by.
struct Bell<P: Personality> {
    queue: Weak<HomeQueue<P>>,
    at: usize,
    rung: AtomicBool,
}

impl<P: Personality> Wake for Bell<P> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::SeqCst)
            && let Some(queue) = self.queue.upgrade()
        {
            queue.woken.lock().push(self.at);
            queue.events.wake_all();
        }
    }
}

impl<P: Personality> HomeQueue<P> {
    /// A queue of this thread's, with so many helpers at most. EINVAL for none or more than [`MOST`], ENOSYS where the personality has no queues.
    pub fn open(thread: &Thread<P>, gate: Arc<dyn QueueGate>, helpers: usize) -> Result<Arc<HomeQueue<P>>> {
        if helpers == 0 || helpers > MOST {
            return Err(Errno::EINVAL);
        }
        P::stand_in(thread).ok_or(Errno::ENOSYS)?;
        let may = |row: &'static Row<P>| {
            matches!(row.run, Run::Plain(_) | Run::Wait(_)) && row.place != Place::Home && P::may_queue(row)
        };
        Ok(Arc::new_cyclic(|me| HomeQueue {
            kernel: thread.kernel.clone(),
            me: me.clone(),
            gate,
            allowed: thread.kernel.table.rows().iter().map(may).collect(),
            state: Mutex::new(State {
                closed: false,
                entries: Box::new([Entry::default(); BATCH]),
                pool: Pool::new(helpers),
                helpers: (0..helpers).map(|_| None).collect(),
                done: Vec::with_capacity(BATCH),
            }),
            woken: Mutex::default(),
            events: WaitQueue::new(),
        }))
    }

    /// By the thread: makes what has been submitted, and goes on with what has been woken. How many completions are to be taken.
    pub fn serve(&self, seat: SeatOf<'_, P>) -> usize {
        let state = &mut *self.state.lock();
        if !state.closed {
            self.turn(state, seat);
        }
        self.gate.unreaped()
    }

    /// By the thread: serves until so many completions are there to be taken; how many are.
    pub async fn wait(&self, thread: &Thread<P>, seat: &Seat<P>, least: usize, deadline: Option<Nanos>) -> Result<usize, Cut> {
        let step = |table: Option<&mut crate::wait::PollTable>| {
            if let Some(table) = table {
                table.add(&self.events);
            }
            let unreaped = self.serve(seat.slotted.as_ref());
            let state = self.state.lock();
            if unreaped >= least || state.closed {
                return Some(unreaped);
            }
            if let Some(next) = state.next() {
                thread.wake_at(next);
            }
            None
        };
        thread.wait_polling(deadline, step).await
    }

    /// By the thread: ends the queue with all its calls; one that waits is interrupted, and dropped if it waits on. They have no completions.
    pub fn close(&self) {
        let state = &mut *self.state.lock();
        state.closed = true;
        state.pool.waiting.clear();
        for at in 0..state.helpers.len() {
            let _ = self.interrupt(state, at);
            let Some(helper) = &mut state.helpers[at] else { continue };
            if helper.call.take().is_some() {
                helper.stand_in.as_ref().clear();
                P::take_back(helper.stand_in.owner());
            }
        }
        state.helpers.clear();
        state.done.clear();
        self.events.wake_all();
    }

    fn turn(&self, state: &mut State<P>, seat: SeatOf<'_, P>) {
        self.go_on(state, seat);
        for _ in 0..TURNS {
            if !self.flush(state) {
                return;
            }
            let room = BATCH.min(WAITING.saturating_sub(state.pool.waiting.len()));
            let count = self.gate.take_some(&mut state.entries[..room]);
            if count == 0 {
                return;
            }
            self.make(state, seat, count);
            if !seat.get_ref().owner().goes_on() {
                break;
            }
        }
        self.flush(state);
    }

    /// Posts what is over. False when there was no room for all of it.
    #[inline]
    fn flush(&self, state: &mut State<P>) -> bool {
        if state.done.is_empty() {
            return true;
        }
        let posted = self.gate.complete_some(&state.done);
        if posted == state.done.len() {
            state.done.clear();
            return true;
        }
        state.done.drain(..posted);
        false
    }

    /// Makes the entries that have been copied.
    fn make(&self, state: &mut State<P>, seat: SeatOf<'_, P>, count: usize) {
        let seen = self.is_seen() || seat.get_ref().owner().is_watched();
        for at in 0..count {
            let entry = &state.entries[at];
            if entry.flags == 0
                && !seen
                && state.pool.open.is_none()
                && let Some(run) = self.plain(entry.number)
            {
                if let Poll::Ready(result) = table::call(run, seat, entry.words.map(|word| word as usize)).poll() {
                    state.done.push(Completion { tag: entry.tag, result: result as i64 });
                }
                continue;
            }
            let submission = Submission::of(entry);
            self.submit(state, seat, submission);
        }
    }

    fn is_seen(&self) -> bool {
        self.kernel.tracer.is_on() || self.kernel.stats.is_on()
    }

    /// The function of a row whose calls return at once.
    #[inline]
    fn plain(&self, number: u32) -> Option<CallFn<P>> {
        let row = self.kernel.table.get(P::number(number as usize))?;
        match row.run {
            Run::Plain(run) if self.allowed[row.number] => Some(run),
            _ => None,
        }
    }

    fn submit(&self, state: &mut State<P>, seat: SeatOf<'_, P>, submission: Submission) {
        match submission {
            Submission::Cancel { of, tag } => {
                let result = self.cancel(state, of).map_or_else(Errno::as_result, |()| 0);
                state.end(tag, result);
                self.begin_waiting(state, seat);
            }
            Submission::Call { number, words, tag, link } => match state.pool.push(number, words, tag, link) {
                true => self.begin_waiting(state, seat),
                false => state.cancelled(tag),
            },
        }
    }

    /// Begins calls that wait for a helper, while there are helpers.
    fn begin_waiting(&self, state: &mut State<P>, seat: SeatOf<'_, P>) {
        while !state.pool.free.is_empty() {
            let Some(taken) = state.pool.pop() else { return };
            let Taken { tag, link, .. } = taken;
            match self.begin(state, seat, &taken) {
                Ok(Poll::Ready(result)) => state.over(tag, link, result, true),
                Ok(Poll::Pending) => {}
                Err(errno) => state.over(tag, link, errno.as_result(), false),
            }
        }
    }

    /// Begins a call. EXDEV for one that is made by another gate alone, ENOSYS for one that is not there.
    fn begin(&self, state: &mut State<P>, seat: SeatOf<'_, P>, taken: &Taken) -> Result<Poll<isize>> {
        let owner = seat.get_ref().owner();
        if taken.number == NO_CALL {
            return Err(Errno::EINVAL);
        }
        let row = self.kernel.table.get(P::number(taken.number)).ok_or(Errno::ENOSYS)?;
        if matches!(row.run, Run::Missing) {
            return Err(Errno::ENOSYS);
        }
        // Of a watched thread the personality is to be asked before and after each call.
        if !self.allowed[row.number] || owner.is_watched() {
            return Err(Errno::EXDEV);
        }
        let started = if self.is_seen() { self.kernel.machine.clock().monotonic() } else { 0 };
        match row.run {
            Run::Plain(run) => Ok(Poll::Ready(plain_seen(row, run, seat, taken.words, started))),
            Run::Wait(run) => {
                let at = state.pool.free.pop().ok_or(Errno::EAGAIN)?;
                let begun = self.begin_at(state, at, owner, (row, run), taken, started);
                match begun {
                    Ok(Poll::Pending) => state.pool.tags[at] = Some(taken.tag),
                    _ => state.pool.free.push(at),
                }
                begun
            }
            _ => Err(Errno::EXDEV),
        }
    }

    fn begin_at(
        &self,
        state: &mut State<P>,
        at: usize,
        owner: &Thread<P>,
        (row, run): (&'static Row<P>, CallFn<P>),
        taken: &Taken,
        started: Nanos,
    ) -> Result<Poll<isize>> {
        let words = taken.words;
        let helper = self.helper(state, at, owner)?;
        let thread = helper.stand_in.owner();
        thread.clear_work(u32::MAX);
        P::lend(owner, thread, row)?;
        if started != 0 {
            thread.trace_enter(row, words);
        }
        let polled = table::call(run, helper.stand_in.as_ref(), words).poll();
        let Poll::Ready(result) = polled else {
            helper.call = Some(Call { row, words, link: taken.link, started });
            return Ok(Poll::Pending);
        };
        if started != 0 {
            thread.observe(row, words, result, started);
        }
        P::take_back(thread);
        Ok(Poll::Ready(end_of::<P>(result)))
    }

    /// The helper of a number, made if need be.
    fn helper<'a>(&self, state: &'a mut State<P>, at: usize, owner: &Thread<P>) -> Result<&'a mut Helper<P>> {
        let place = &mut state.helpers[at];
        if place.is_none() {
            let bell = Arc::new(Bell { queue: self.me.clone(), at, rung: AtomicBool::new(false) });
            let ext = P::stand_in(owner).ok_or(Errno::ENOSYS)?;
            let thread = Thread::helper(owner, ext, Waker::from(bell.clone())).ok_or(Errno::ESRCH)?;
            thread.gate.store(GateId::Ring.number(), Ordering::Relaxed);
            *place = Some(Helper { stand_in: Box::pin(Slotted::new(thread)), bell, call: None });
        }
        place.as_mut().ok_or(Errno::ENOMEM)
    }

    /// Goes on with the calls that have been woken, and with those whose time has come.
    fn go_on(&self, state: &mut State<P>, seat: SeatOf<'_, P>) {
        if state.pool.free.len() == state.helpers.len() {
            return;
        }
        let woken = core::mem::take(&mut *self.woken.lock());
        for at in woken {
            if let Some(helper) = state.helpers.get(at).and_then(Option::as_ref) {
                helper.bell.rung.store(false, Ordering::SeqCst);
            }
            self.step(state, at);
        }
        if state.next().is_some() {
            let now = self.kernel.machine.clock().monotonic();
            for at in 0..state.helpers.len() {
                if state.deadline(at).is_some_and(|deadline| deadline <= now) {
                    self.step(state, at);
                }
            }
        }
        self.begin_waiting(state, seat);
    }

    /// Polls a helper's call.
    fn step(&self, state: &mut State<P>, at: usize) {
        let Some(helper) = state.helpers.get_mut(at).and_then(Option::as_mut) else { return };
        let Some(Call { row, words, link, started }) = helper.call else { return };
        let thread = helper.stand_in.owner();
        thread.prepare_poll();
        let polled = helper.stand_in.as_ref().poll(&mut Context::from_waker(thread.waker()));
        let Poll::Ready(result) = polled.unwrap_or(Poll::Ready(0)) else { return };
        if started != 0 {
            thread.observe(row, words, result, started);
        }
        P::take_back(thread);
        helper.call = None;
        let tag = state.pool.tags[at].take();
        state.pool.free.push(at);
        if let Some(tag) = tag {
            state.over(tag, link, end_of::<P>(result), true);
        }
    }

    /// Has a call end that waits, if it lets itself be interrupted. ENOENT when it does not wait.
    fn interrupt(&self, state: &mut State<P>, at: usize) -> Result<()> {
        let helper = state.helpers.get(at).and_then(Option::as_ref).filter(|helper| helper.call.is_some());
        helper.ok_or(Errno::ENOENT)?.stand_in.owner().set_work(work::KILL);
        self.step(state, at);
        Ok(())
    }

    /// Has the submission of this tag end. ENOENT when there is none, or no longer.
    fn cancel(&self, state: &mut State<P>, tag: u64) -> Result<()> {
        if let Some(at) = state.pool.waiting.iter().position(|taken| taken.tag == tag) {
            let link = state.pool.waiting.remove(at).and_then(|taken| taken.link);
            state.over(tag, link, Errno::ECANCELED.as_result(), false);
            return Ok(());
        }
        let at = state.pool.tags.iter().position(|one| *one == Some(tag)).ok_or(Errno::ENOENT)?;
        self.interrupt(state, at)
    }
}

/// A call that returns at once, made as the thread, and seen by trace and statistics if it `started`.
fn plain_seen<P: Personality>(
    row: &'static Row<P>,
    run: CallFn<P>,
    seat: SeatOf<'_, P>,
    words: Words,
    started: Nanos,
) -> isize {
    let make = || match table::call(run, seat, words).poll() {
        Poll::Ready(result) => result,
        Poll::Pending => 0,
    };
    if started == 0 {
        return make();
    }
    let owner = seat.get_ref().owner();
    let gate = owner.gate.swap(GateId::Ring.number(), Ordering::Relaxed);
    owner.trace_enter(row, words);
    let result = make();
    owner.observe(row, words, result, started);
    owner.gate.store(gate, Ordering::Relaxed);
    result
}

/// Only its cancellation cuts a call short.
fn end_of<P: Personality>(result: isize) -> isize {
    if P::is_special(result) { Errno::ECANCELED.as_result() } else { result }
}

impl<P: Personality> State<P> {
    fn end(&mut self, tag: u64, result: isize) {
        self.done.push(Completion { tag, result: result as i64 });
    }

    fn cancelled(&mut self, tag: u64) {
        self.end(tag, Errno::ECANCELED.as_result());
    }

    /// A call is over: what is linked to it may begin, or is given up.
    fn over(&mut self, tag: u64, link: Option<Link>, result: isize, begun: bool) {
        self.end(tag, result);
        if link.is_some() {
            let goes_on = begun && link.is_some_and(|link| result >= link.least);
            self.pool.unlink(link, goes_on).into_iter().for_each(|taken| self.cancelled(taken.tag));
        }
    }

    /// When a helper's call asks to be polled.
    fn deadline(&self, at: usize) -> Option<Nanos> {
        let helper = self.helpers[at].as_ref().filter(|helper| helper.call.is_some())?;
        helper.stand_in.owner().look_again()
    }

    /// The earliest of them.
    fn next(&self) -> Option<Nanos> {
        (0..self.helpers.len()).filter_map(|at| self.deadline(at)).min()
    }
}
