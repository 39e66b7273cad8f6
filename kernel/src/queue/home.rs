//! Queues that no module looks into. Their calls are made by the thread itself when it asks for that ([`HomeQueue::serve`]), many of them after one entry.
//!
//! What returns at once is made as the thread: it needs no slot, so that a call of the thread may wait in that meanwhile. What may wait is made by a *helper* with a
//! slot of its own, made when one is needed; to handlers it is the calling thread, as the stand-ins of [`super::Queue`] are. A helper whose call waits is polled again
//! when that has been woken and the thread asks again, or waits for completions.
//!
//! All of it is the thread's own, which has it behind a lock that nobody else takes. What others do is to leave a helper's number in [`Woken`].

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};

use janua_abi::linux::{Errno, Result};
use janua_port::gate::{NO_CALL, QueueGate, Submission};
use janua_port::{GateId, Nanos, words};
use janua_rt::slot::Slotted;
use janua_rt::{Mutex, WaitQueue};

use super::batch::Batch;
use super::{Link, MOST, Pool, Taken, WAITING};
use crate::table::{CallFn, Row, Run, SeatOf, Words};
use crate::task::{Kernel, Personality};
use crate::thread::{Seat, Thread, work};
use crate::wait::PollTable;

/// Batches that are taken before the thread looks at what else it has to do.
const TURNS: usize = 1024;

/// A queue of one thread's, whose calls that thread makes.
pub struct HomeQueue<P: Personality> {
    kernel: Arc<Kernel<P>>,
    gate: Arc<dyn QueueGate>,
    /// No entries are taken while there is no room for ends that have not been posted.
    batch: Batch<P>,
    pool: Pool,
    helpers: Vec<Option<Helper<P>>>,
    woken: Arc<Woken>,
}

/// Where one call at a time is made that may wait.
struct Helper<P: Personality> {
    stand_in: Pin<Box<Slotted<Thread<P>>>>,
    bell: Arc<Bell>,
    call: Option<Call<P>>,
}

struct Call<P: Personality> {
    row: &'static Row<P>,
    words: Words,
    link: Option<Link>,
    started: Nanos,
}

/// Helpers whose call has been woken since it was polled.
#[derive(Default)]
struct Woken {
    helpers: Mutex<Vec<usize>>,
    /// Woken with them.
    events: WaitQueue,
}

/// What a helper's call is woken by.
struct Bell {
    woken: Arc<Woken>,
    at: usize,
    rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            self.woken.helpers.lock().push(self.at);
            self.woken.events.wake_all();
        }
    }
}

impl<P: Personality> HomeQueue<P> {
    /// A queue of this thread's, with so many helpers at most. EINVAL for none or more than [`MOST`], ENOSYS where the personality has no queues.
    pub fn open(thread: &Thread<P>, gate: Arc<dyn QueueGate>, helpers: usize) -> Result<HomeQueue<P>> {
        if helpers == 0 || helpers > MOST {
            return Err(Errno::EINVAL);
        }
        P::stand_in(thread).ok_or(Errno::ENOSYS)?;
        Ok(HomeQueue {
            kernel: thread.kernel.clone(),
            gate,
            batch: Batch::new(&thread.kernel.table, |_| true),
            pool: Pool::new(helpers),
            helpers: (0..helpers).map(|_| None).collect(),
            woken: Arc::default(),
        })
    }

    /// By the thread: makes what has been submitted, and goes on with what has been woken. How many completions are to be taken.
    pub fn serve(&mut self, seat: SeatOf<'_, P>) -> usize {
        self.go_on(seat);
        self.batch.learn(&self.kernel.table);
        let mut left = self.gate.look();
        for turn in 0..TURNS {
            let room = WAITING.saturating_sub(self.pool.waiting.len());
            if !self.flush() || left == 0 || (turn > 0 && !seat.get_ref().owner().goes_on()) {
                break;
            }
            let mut count = 0;
            if self.makes_in_place(seat) && room > 0 {
                count = self.batch.make_in_place(&*self.gate, seat);
            }
            if count == 0 {
                count = self.batch.take(&*self.gate, room);
                self.make(seat, count);
            }
            if count == 0 {
                break;
            }
            left = left.saturating_sub(count);
        }
        self.flush();
        self.gate.settle()
    }

    /// By the thread, as a step of [`Thread::wait_polling`]: serves. How many completions are to be taken, when they are so many.
    pub fn step(&mut self, seat: &Seat<P>, least: usize, table: Option<&mut PollTable>) -> Option<usize> {
        if let Some(table) = table {
            table.add(&self.woken.events);
        }
        let unreaped = self.serve(seat.slotted.as_ref());
        if unreaped >= least {
            return Some(unreaped);
        }
        if let Some(next) = self.next() {
            seat.wake_at(next);
        }
        None
    }

    /// By the thread: ends the queue with all its calls; one that waits is interrupted, and dropped if it waits on. They have no completions.
    pub fn close(mut self) {
        self.pool.waiting.clear();
        for at in 0..self.helpers.len() {
            let _ = self.interrupt(at);
            let Some(helper) = &mut self.helpers[at] else { continue };
            if helper.call.take().is_some() {
                helper.stand_in.as_ref().clear();
                P::take_back(helper.stand_in.owner());
            }
        }
    }

    /// Posts what is over. False when there was no room for all of it.
    #[inline]
    fn flush(&mut self) -> bool {
        let done = &mut self.batch.done;
        if done.is_empty() {
            return true;
        }
        let posted = self.gate.complete_some(done);
        if posted == done.len() {
            done.clear();
            return true;
        }
        done.drain(..posted);
        false
    }

    /// Makes the entries that have been copied.
    #[inline]
    fn make(&mut self, seat: SeatOf<'_, P>, count: usize) {
        let mut at = 0;
        loop {
            if self.makes_in_place(seat) {
                at = self.batch.make(seat, at, count);
            }
            if at == count {
                return;
            }
            let submission = Submission::of(self.batch.entry(at));
            self.submit(seat, submission);
            at += 1;
        }
    }

    /// Whether calls that return at once are made as they come: nobody watches them, and none of them is linked to one before it.
    #[inline]
    fn makes_in_place(&self, seat: SeatOf<'_, P>) -> bool {
        self.pool.open.is_none() && !self.is_seen() && !seat.get_ref().owner().is_watched()
    }

    fn is_seen(&self) -> bool {
        self.kernel.tracer.is_on() || self.kernel.stats.is_on()
    }

    fn submit(&mut self, seat: SeatOf<'_, P>, submission: Submission) {
        match submission {
            Submission::Cancel { of, tag } => {
                let result = self.cancel(of).map_or_else(Errno::as_result, |()| 0);
                self.batch.end(tag, result);
                self.begin_waiting(seat);
            }
            Submission::Call { number, words, tag, link } => match self.pool.push(number, words, tag, link) {
                true => self.begin_waiting(seat),
                false => self.cancelled(tag),
            },
        }
    }

    /// Begins calls that wait for a helper, while there are helpers.
    fn begin_waiting(&mut self, seat: SeatOf<'_, P>) {
        while !self.pool.free.is_empty() {
            let Some(taken) = self.pool.pop() else { return };
            let Taken { tag, link, .. } = taken;
            match self.begin(seat, &taken) {
                Ok(Poll::Ready(result)) => self.over(tag, link, result, true),
                Ok(Poll::Pending) => {}
                Err(errno) => self.over(tag, link, errno.as_result(), false),
            }
        }
    }

    /// Begins a call. EXDEV for one that is made by another gate alone, ENOSYS for one that is not there.
    fn begin(&mut self, seat: SeatOf<'_, P>, taken: &Taken) -> Result<Poll<isize>> {
        let owner = seat.get_ref().owner();
        if taken.number == NO_CALL {
            return Err(Errno::EINVAL);
        }
        let row = self.kernel.table.get(P::number(taken.number)).ok_or(Errno::ENOSYS)?;
        if matches!(row.run, Run::Missing) {
            return Err(Errno::ENOSYS);
        }
        // Of a watched thread the personality is to be asked before and after each call.
        if !self.batch.may(row) || owner.is_watched() {
            return Err(Errno::EXDEV);
        }
        let started = if self.is_seen() { self.kernel.machine.clock().monotonic() } else { 0 };
        match row.run {
            Run::Plain(run) => Ok(Poll::Ready(plain_seen(row, run, seat, taken.words, started))),
            Run::Wait(run) => {
                let at = self.pool.free.pop().ok_or(Errno::EAGAIN)?;
                let begun = self.begin_at(at, owner, (row, run), taken, started);
                match begun {
                    Ok(Poll::Pending) => self.pool.tags[at] = Some(taken.tag),
                    _ => self.pool.free.push(at),
                }
                begun
            }
            _ => Err(Errno::EXDEV),
        }
    }

    fn begin_at(
        &mut self,
        at: usize,
        owner: &Thread<P>,
        (row, run): (&'static Row<P>, CallFn<P>),
        taken: &Taken,
        started: Nanos,
    ) -> Result<Poll<isize>> {
        let words = taken.words;
        let helper = self.helper(at, owner)?;
        let thread = helper.stand_in.owner();
        thread.clear_work(u32::MAX);
        P::lend(owner, thread, row)?;
        if started != 0 {
            thread.trace_enter(row, words);
        }
        let polled = words::call(run, words, helper.stand_in.as_ref()).poll();
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
    fn helper(&mut self, at: usize, owner: &Thread<P>) -> Result<&mut Helper<P>> {
        let place = &mut self.helpers[at];
        if place.is_none() {
            let bell = Arc::new(Bell { woken: self.woken.clone(), at, rung: AtomicBool::new(false) });
            let ext = P::stand_in(owner).ok_or(Errno::ENOSYS)?;
            let thread = Thread::helper(owner, ext, Waker::from(bell.clone())).ok_or(Errno::ESRCH)?;
            thread.gate.store(GateId::Ring.number(), Ordering::Relaxed);
            *place = Some(Helper { stand_in: Box::pin(Slotted::new(thread)), bell, call: None });
        }
        place.as_mut().ok_or(Errno::ENOMEM)
    }

    /// Goes on with the calls that have been woken, and with those whose time has come.
    #[inline]
    fn go_on(&mut self, seat: SeatOf<'_, P>) {
        if self.pool.free.len() < self.helpers.len() {
            self.go_on_with(seat);
        }
    }

    fn go_on_with(&mut self, seat: SeatOf<'_, P>) {
        let woken = core::mem::take(&mut *self.woken.helpers.lock());
        for at in woken {
            if let Some(helper) = self.helpers.get(at).and_then(Option::as_ref) {
                helper.bell.rung.store(false, Ordering::SeqCst);
            }
            self.poll(at);
        }
        if self.next().is_some() {
            let now = self.kernel.machine.clock().monotonic();
            for at in 0..self.helpers.len() {
                if self.deadline(at).is_some_and(|deadline| deadline <= now) {
                    self.poll(at);
                }
            }
        }
        self.begin_waiting(seat);
    }

    /// Polls a helper's call.
    fn poll(&mut self, at: usize) {
        let Some(helper) = self.helpers.get_mut(at).and_then(Option::as_mut) else { return };
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
        let tag = self.pool.tags[at].take();
        self.pool.free.push(at);
        if let Some(tag) = tag {
            self.over(tag, link, end_of::<P>(result), true);
        }
    }

    /// Has a call end that waits, if it lets itself be interrupted. ENOENT when it does not wait.
    fn interrupt(&mut self, at: usize) -> Result<()> {
        let helper = self.helpers.get(at).and_then(Option::as_ref).filter(|helper| helper.call.is_some());
        helper.ok_or(Errno::ENOENT)?.stand_in.owner().set_work(work::KILL);
        self.poll(at);
        Ok(())
    }

    /// Has the submission of this tag end. ENOENT when there is none, or no longer.
    fn cancel(&mut self, tag: u64) -> Result<()> {
        if let Some(at) = self.pool.waiting.iter().position(|taken| taken.tag == tag) {
            let link = self.pool.waiting.remove(at).and_then(|taken| taken.link);
            self.over(tag, link, Errno::ECANCELED.as_result(), false);
            return Ok(());
        }
        let at = self.pool.tags.iter().position(|one| *one == Some(tag)).ok_or(Errno::ENOENT)?;
        self.interrupt(at)
    }

    fn cancelled(&mut self, tag: u64) {
        self.batch.end(tag, Errno::ECANCELED.as_result());
    }

    /// A call is over: what is linked to it may begin, or is given up.
    fn over(&mut self, tag: u64, link: Option<Link>, result: isize, begun: bool) {
        self.batch.end(tag, result);
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

/// A call that returns at once, made as the thread, and seen by trace and statistics if it `started`.
fn plain_seen<P: Personality>(
    row: &'static Row<P>,
    run: CallFn<P>,
    seat: SeatOf<'_, P>,
    words: Words,
    started: Nanos,
) -> isize {
    let make = || match words::call(run, words, seat).poll() {
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
