//! The one core: every gate ends in [`Seat::enter`].

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::{Context, Poll};

use janua_port::guest::{Abi, Verdict};
use janua_port::trap::Exception;
use janua_port::{Flow, Frame, GateId, Guest, Nanos, Payer, Plain, Spun, Trap, words};
use janua_rt::wake;

use crate::module::Module;
use crate::table::{Row, Run, Words};
use crate::task::{Before, Leave, Personality, Trapped};
use crate::thread::{Blocked, Pending, Returned, Seat, Thread, work};
use crate::wait::EVENTS;

/// How long a thread spins for a call that it has handed over, nanoseconds. What nobody has begun by then it makes itself.
const LOOK: Nanos = 15_000;

impl<P: Personality> Seat<P> {
    /// A system call: number and words are in the frame. Returns how the thread goes on.
    #[inline]
    pub fn enter(&self, frame: &mut Frame, abi: Abi) -> Flow {
        if self.is_watched() { self.enter_watched(frame, abi) } else { self.make(frame, abi) }
    }

    /// The same when the personality is to be asked first, which may let the thread wait.
    #[cold]
    fn enter_watched(&self, frame: &mut Frame, abi: Abi) -> Flow {
        loop {
            if abi == Abi::Compat {
                frame.mark_compat_call();
            }
            match P::call_begins(self, frame) {
                Before::Make => return self.make(frame, abi),
                Before::Skip => return self.finish(frame, frame.result()),
                Before::Wait => {}
            }
            let words = if abi == Abi::Native { frame.args() } else { frame.compat_args() };
            if let Some(flow) = self.stop(frame, Some(P::number(frame.number())), words) {
                *self.entering.lock() = Some(abi);
                return flow;
            }
        }
    }

    #[inline]
    fn make(&self, frame: &mut Frame, abi: Abi) -> Flow {
        let number = P::number(frame.number());
        let (row, words) = match abi {
            Abi::Native => (self.kernel.table.get(number), frame.args()),
            Abi::Compat => {
                frame.mark_compat_call();
                (self.kernel.compat.get(number), frame.compat_args())
            }
        };
        let Some(row) = row else {
            let result = P::unknown(self, frame, number);
            if self.kernel.tracer.is_on() {
                self.trace_unknown(abi, number, words, result);
            }
            return self.finish(frame, result);
        };
        if self.is_observed() {
            return self.enter_observed(frame, row, words);
        }
        match self.run(frame, row, words) {
            Poll::Ready(result) => self.finish(frame, result),
            Poll::Pending => self.suspend(frame, Some(row), words, 0),
        }
    }

    /// The call of a known row, in force or not, unseen by trace and statistics: what is left of [`Seat::enter`] where no number
    /// has to be looked up.
    #[inline]
    pub fn enter_row(&self, frame: &mut Frame, row: &'static Row<P>) -> Flow {
        let words = frame.args();
        match self.run(frame, row, words) {
            Poll::Ready(result) => self.finish(frame, result),
            Poll::Pending => self.suspend(frame, Some(row), words, 0),
        }
    }

    #[inline]
    fn run(&self, frame: &mut Frame, row: &'static Row<P>, words: Words) -> Poll<isize> {
        match row.run {
            Run::Plain(run) | Run::Wait(run) => words::call(run, words, self.slotted.as_ref()).poll(),
            Run::Frame(run) => Poll::Ready(run(self, frame, words)),
            Run::FrameWait(run) => {
                *self.frame.lock() = Some(*frame);
                words::call(run, words, self.slotted.as_ref()).poll()
            }
            Run::Missing => Poll::Ready(P::unknown(self, frame, row.number)),
        }
    }

    #[cold]
    fn enter_observed(&self, frame: &mut Frame, row: &'static Row<P>, words: Words) -> Flow {
        let watched = self.kernel.tracer.is_on() || self.kernel.stats.is_on();
        let started = if watched { self.kernel.machine.clock().monotonic() } else { 0 };
        if watched {
            self.trace_enter(row, words);
        }
        if let Some(module) = self.kernel.modules.choose(row.place, self.id()) {
            return self.make_away(frame, row, words, started, module);
        }
        self.set_home();
        self.make_home(frame, row, words, started)
    }

    /// Makes a call here, which may be observed.
    fn make_home(&self, frame: &mut Frame, row: &'static Row<P>, words: Words, started: u64) -> Flow {
        match self.run(frame, row, words) {
            Poll::Ready(result) => {
                if started != 0 {
                    self.observe(row, words, result, started);
                }
                self.finish(frame, result)
            }
            Poll::Pending => self.suspend(frame, Some(row), words, started),
        }
    }

    /// Hands a call to a module, and looks for a while whether it comes home.
    fn make_away(&self, frame: &mut Frame, row: &'static Row<P>, words: Words, started: u64, module: &Arc<Module>) -> Flow {
        let waits = self.suspend(frame, Some(row), words, started);
        self.send(row, module);
        loop {
            match self.kernel.machine.park().spin(&self.wake.home, wake::QUIET, LOOK) {
                Spun::Changed => match self.fetch() {
                    Some(returned) => return self.come_home(frame, returned),
                    // It was an errand. More may follow.
                    None => self.see_to_errands(),
                },
                // The module has no processor: this thread has one.
                Spun::Unchanged if module.adaptive && self.take_back(module) => {
                    *self.pending.lock() = None;
                    return self.make_home(frame, row, words, started);
                }
                Spun::Unchanged | Spun::Wanted => return waits,
            }
        }
    }

    /// A call that was away is home.
    fn come_home(&self, frame: &mut Frame, returned: Returned) -> Flow {
        match returned {
            Returned::Over(result) => self.end_of_wait(frame, result),
            Returned::Waits => self.poll_home(frame),
        }
    }

    /// After the wake-up that may have been for them has been taken note of.
    #[inline]
    fn see_to_errands(&self) {
        if self.work() & work::TASK != 0 {
            P::errands(self);
        }
    }

    fn wait(&self) -> Flow {
        Flow::Wait(self.look_again())
    }

    fn suspend(&self, frame: &Frame, row: Option<&'static Row<P>>, words: Words, started: u64) -> Flow {
        let at = [frame.stack_pointer(), frame.program_counter()];
        *self.pending.lock() = Some((row, Pending { words, started, at }));
        self.wait()
    }

    /// The end of a call: result into the frame, then the return to user mode.
    #[inline]
    fn finish(&self, frame: &mut Frame, result: isize) -> Flow {
        frame.set_result(result);
        if self.work() == 0 && !P::is_special(result) && !self.is_watched() {
            return Flow::Resume;
        }
        if self.is_watched() {
            P::call_ends(self, frame);
        }
        self.leave(frame)
    }

    #[cold]
    fn leave(&self, frame: &mut Frame) -> Flow {
        if self.work() & work::FRAME != 0
            && let Some(replacement) = self.take_frame()
        {
            *frame = replacement;
        }
        loop {
            if let Some(flow) = P::leave(self, frame).done() {
                return flow;
            }
            if let Some(flow) = self.stop(frame, None, [0; 6]) {
                return flow;
            }
        }
    }

    /// An exception whose handling may wait, in the slot.
    #[cold]
    fn handle(&self, frame: &mut Frame, exception: Exception) -> Flow {
        async fn handled<P: Personality>(thread: &Thread<P>, exception: Exception) -> isize {
            P::handle(thread, exception).await;
            0
        }
        *self.frame.lock() = Some(*frame);
        self.prepare_poll();
        let polled = self.slotted.as_ref().start(handled::<P>, exception, &mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            return self.leave(frame);
        }
        *self.stopped.lock() =
            Some(Blocked { number: None, name: "", words: [0; 6], at: [frame.stack_pointer(), frame.program_counter()] });
        self.wait()
    }

    /// Polls what waits in the slot.
    fn poll_home(&self, frame: &mut Frame) -> Flow {
        self.prepare_poll();
        self.see_to_errands();
        let result = match self.slotted.as_ref().poll(&mut Context::from_waker(&self.waker)) {
            Some(Poll::Pending) => return self.wait(),
            Some(Poll::Ready(result)) => result,
            None => return self.leave(frame),
        };
        self.end_of_wait(frame, result)
    }

    /// What waited is over: a call, whose result this is, or a stop.
    fn end_of_wait(&self, frame: &mut Frame, result: isize) -> Flow {
        let pending = self.pending.lock().take();
        if let Some((row, pending)) = pending {
            if let Some(row) = row
                && pending.started != 0
            {
                self.observe(row, pending.words, result, pending.started);
            }
            return self.finish(frame, result);
        }
        // What waited was a stop, or the handling of an exception, whose result means nothing.
        *self.stopped.lock() = None;
        let entering = self.entering.lock().take();
        match entering {
            Some(abi) => self.enter_watched(frame, abi),
            None => self.leave(frame),
        }
    }

    /// Whether calls are seen by trace or statistics, or run away: the entry makes none of them itself then.
    #[inline]
    fn is_observed(&self) -> bool {
        self.kernel.tracer.is_on() || self.kernel.stats.is_on() || self.kernel.modules.is_on()
    }

    /// Stopped, before this call or outside one: waits in the slot. `None` when that is over at once.
    fn stop(&self, frame: &Frame, number: Option<usize>, words: Words) -> Option<Flow> {
        self.prepare_poll();
        async fn stopped<P: Personality>(thread: &Thread<P>, (): ()) -> isize {
            P::stopped(thread).await
        }
        let stopped = self.slotted.as_ref().start(stopped::<P>, (), &mut Context::from_waker(&self.waker));
        if stopped.is_ready() {
            return None;
        }
        let at = [frame.stack_pointer(), frame.program_counter()];
        *self.stopped.lock() = Some(Blocked { number, name: "", words, at });
        Some(self.wait())
    }
}

impl<P: Personality> Thread<P> {
    /// A call that was seen to begin is over: counts it, and writes its line.
    #[cold]
    pub(crate) fn observe(&self, row: &'static Row<P>, words: Words, result: isize, started: u64) {
        let spent = self.kernel.machine.clock().monotonic().saturating_sub(started);
        let compat = self.kernel.compat.holds(row);
        self.kernel.stats.count(compat, row.number, self.gate.load(Ordering::Relaxed), spent, result);
        self.trace_leave(row, words, result);
    }
}

impl<P: Personality> Guest for Seat<P> {
    fn attach(&self, context: Arc<dyn janua_port::Context>) {
        Thread::attach(self, context);
    }

    fn call(&self, frame: &mut Frame, abi: Abi) -> Flow {
        self.enter(frame, abi)
    }

    fn plain(&self) -> Option<Plain<'_>> {
        if self.is_observed() || self.is_watched() {
            return None;
        }
        Some(Plain {
            native: self.kernel.table.plain(),
            compat: self.kernel.compat.plain(),
            thread: core::ptr::from_ref(self.slotted.as_ref().get_ref()).cast(),
            work: self.work_word(),
        })
    }

    fn returned(&self, frame: &mut Frame, abi: Abi, verdict: Verdict) -> Flow {
        let number = P::number(frame.number());
        let row = match abi {
            Abi::Native => self.kernel.table.get(number),
            Abi::Compat => {
                frame.mark_compat_call();
                self.kernel.compat.get(number)
            }
        };
        if verdict == Verdict::PENDING {
            let words = if abi == Abi::Native { frame.args() } else { frame.compat_args() };
            return self.suspend(frame, row, words, 0);
        }
        let result = frame.result();
        self.finish(frame, result)
    }

    fn trap(&self, frame: &mut Frame, trap: Trap) -> Flow {
        match (P::trap(self, frame, trap), trap) {
            (Trapped::Wait, Trap::Exception(exception)) => self.handle(frame, exception),
            _ if self.work() == 0 => Flow::Resume,
            _ => self.leave(frame),
        }
    }

    fn store_fault(&self, addr: usize) -> bool {
        P::store_fault(self, addr)
    }

    fn hole_fault(&self, addr: usize) -> bool {
        P::hole_fault(self, addr)
    }

    fn out_of_memory(&self, resident: u64) {
        P::out_of_memory(self, resident);
    }

    fn ended_outside(&self) {
        P::ended_outside(self);
    }

    fn payer(&self) -> Payer {
        P::payer(self)
    }

    fn call_trapped(&self, frame: &mut Frame) {
        P::call_trapped(self, frame);
    }

    fn poll(&self, frame: &mut Frame) -> Flow {
        EVENTS.advance();
        if !self.is_sent() {
            return self.poll_home(frame);
        }
        match self.fetch() {
            Some(returned) => self.come_home(frame, returned),
            None => {
                self.see_to_errands();
                Flow::Wait(None)
            }
        }
    }

    fn start(&self, frame: &mut Frame) -> Flow {
        match P::start(self, frame) {
            Leave::Resume if self.work() == 0 => Flow::Resume,
            Leave::Exit => Flow::Exit,
            _ => self.leave(frame),
        }
    }

    fn wake_word(&self) -> &AtomicU32 {
        self.park_word()
    }

    fn has_work(&self) -> bool {
        self.work() != 0
    }

    fn set_gate(&self, gate: GateId) {
        self.gate.store(gate.number(), Ordering::Relaxed);
    }
}
