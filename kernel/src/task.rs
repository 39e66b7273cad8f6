//! A kernel instance, its tasks, and what a personality brings.

use alloc::string::String;
use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_port::trap::Exception;
use janua_port::{Flow, Frame, Machine, Payer, Trap};

use crate::module::Modules;
use crate::stats::Stats;
use crate::table::{Row, Table, Words};
use crate::thread::Thread;
use crate::trace::Tracer;

/// A set of calls with their meaning, and the state it keeps for the kernel, each task and each thread.
pub trait Personality: Sized + Send + Sync + 'static {
    /// One per kernel instance: what would otherwise be globals.
    type System: Send + Sync;
    /// One per task (protection domain).
    type Task: Send + Sync;
    /// One per thread.
    type Thread: Send + Sync;

    /// Runs on a new thread before it first enters user mode.
    fn start(thread: &Thread<Self>, frame: &mut Frame) -> Leave;
    /// A number outside the table or not in force.
    fn unknown(_thread: &Thread<Self>, _frame: &mut Frame, _number: usize) -> isize {
        Errno::ENOSYS.as_result()
    }
    /// An exception in user code, or a kick.
    fn trap(thread: &Thread<Self>, frame: &mut Frame, trap: Trap) -> Trapped;
    /// Handles an exception where that takes time, as with a pager; begun by [`Trapped::Wait`]. It waits as a call does, and gives up
    /// like one. Afterwards the thread goes on at its frame, or at [`Thread::replace_frame`]'s, and meets the exception again where
    /// nothing has been done about it.
    fn handle(_thread: &Thread<Self>, _exception: Exception) -> impl Future<Output = ()> + Send {
        async {}
    }
    /// [`janua_port::Guest::store_fault`].
    fn store_fault(_thread: &Thread<Self>, _addr: usize) -> bool {
        false
    }
    /// [`janua_port::Guest::hole_fault`].
    fn hole_fault(_thread: &Thread<Self>, _addr: usize) -> bool {
        false
    }
    /// [`janua_port::Guest::out_of_memory`].
    fn out_of_memory(_thread: &Thread<Self>, _resident: u64) {}
    /// [`janua_port::Guest::ended_outside`].
    fn ended_outside(_thread: &Thread<Self>) {}
    /// [`janua_port::Guest::payer`].
    fn payer(_thread: &Thread<Self>) -> Payer {
        Payer::KERNEL
    }
    /// [`janua_port::Guest::call_trapped`].
    fn call_trapped(_thread: &Thread<Self>, _frame: &mut Frame) {}
    /// The number of the call that a register's word means: some personalities look at a part of it only.
    fn number(word: usize) -> usize {
        word
    }
    /// What the trace prints for a call with a special result.
    const SPECIAL: &'static str = "it was interrupted";
    /// Whether the trace shows a result as an address; `compat`: of a call of the machine's second ABI.
    fn is_address(value: usize, _compat: bool) -> bool {
        value > u32::MAX as usize
    }
    /// A call of a watched thread ([`crate::Seat::watch_calls`]) is about to be made; asked again after [`Before::Wait`], with the frame
    /// as it is then.
    fn call_begins(_thread: &Thread<Self>, _frame: &mut Frame) -> Before {
        Before::Make
    }
    /// The call of a watched thread is over, with its number and result in the frame: [`Personality::leave`] comes next.
    fn call_ends(_thread: &Thread<Self>, _frame: &Frame) {}
    /// What [`crate::thread::work::TASK`] asks for: done on the thread itself, while a call of its waits or on its return to user mode.
    fn errands(_thread: &Thread<Self>) {}
    /// Whether this result of a call needs [`Personality::leave`] even though no work is flagged (restart codes).
    fn is_special(result: isize) -> bool;
    /// Slow return to user mode, when work is flagged or the result is special: the thread may stop or end there, or go on elsewhere.
    fn leave(thread: &Thread<Self>, frame: &mut Frame) -> Leave;
    /// The call that waits as long as the thread is stopped; started by [`Leave::Wait`]. It does not wait where threads are never stopped.
    fn stopped(_thread: &Thread<Self>) -> impl Future<Output = isize> + Send {
        async { 0 }
    }
    /// Writes the decoded value of a [`crate::table::Kind::Named`] argument, or returns false.
    fn trace_named(_family: &str, _word: usize, _out: &mut dyn core::fmt::Write) -> bool {
        false
    }
    /// What the trace writes for argument `at` of a call in place of its word: what memory holds there. Asked before the call
    /// with no result, for what the call reads, and after it with the result, for what the call wrote.
    fn trace_data(
        _thread: &Thread<Self>,
        _row: &'static Row<Self>,
        _at: usize,
        _words: Words,
        _result: Option<isize>,
    ) -> Option<String> {
        None
    }
    /// A thread's nice value, for modules whose policy is by priority.
    fn nice(_thread: &Thread<Self>) -> i8 {
        0
    }
    /// The number the trace shows for a thread.
    fn trace_id(thread: &Thread<Self>) -> u32;
    /// The personality's part of what makes submissions for a thread ([`crate::queue`]): the same identity, and nothing that others could find
    /// or interrupt. `None` where threads have no queues.
    fn stand_in(_thread: &Thread<Self>) -> Option<Self::Thread> {
        None
    }
    /// Whether calls of this row may be made by a stand-in, or are about the calling thread itself.
    fn may_queue(_row: &'static Row<Self>) -> bool {
        true
    }
    /// A submission of the thread's is about to begin: from now on its stand-in has what the thread has, rights and files among it. Called by a
    /// module, whatever the thread does. An error is the submission's result: a call that is about the calling thread itself.
    fn lend(_thread: &Thread<Self>, _stand_in: &Thread<Self>, _row: &'static Row<Self>) -> Result<()> {
        Ok(())
    }
    /// The submission is over: its stand-in gives up what it was lent.
    fn take_back(_stand_in: &Thread<Self>) {}
}

/// What [`Personality::call_begins`] decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    Make,
    /// There is no call; the result is in the frame.
    Skip,
    /// Run [`Personality::stopped`] in the slot, then ask again.
    Wait,
}

/// What [`Personality::trap`] decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trapped {
    /// There is nothing more to do than what the thread's work flags ask for.
    Done,
    /// Run [`Personality::handle`] in the slot. For exceptions only.
    Wait,
}

/// What [`Personality::leave`] decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    Resume,
    /// Run [`Personality::stopped`] in the slot, then come back to `leave`.
    Wait,
    Exit,
}

impl Leave {
    pub(crate) fn done(self) -> Option<Flow> {
        match self {
            Leave::Resume => Some(Flow::Resume),
            Leave::Exit => Some(Flow::Exit),
            Leave::Wait => None,
        }
    }
}

/// One kernel: everything a sandbox shares. There may be several in a machine.
pub struct Kernel<P: Personality> {
    pub machine: &'static dyn Machine,
    pub table: Table<P>,
    /// The calls of the machine's second ABI ([`janua_port::guest::Abi::Compat`]); empty when the personality has none.
    pub compat: Table<P>,
    pub tracer: Tracer,
    pub stats: Stats,
    /// Where calls run that are not made at home.
    pub modules: Modules,
    /// The personality's own.
    pub system: P::System,
}

impl<P: Personality> core::ops::Deref for Kernel<P> {
    type Target = P::System;
    fn deref(&self) -> &P::System {
        &self.system
    }
}

/// A protection domain: what its threads share.
pub struct Task<P: Personality> {
    pub kernel: Arc<Kernel<P>>,
    /// The personality's own.
    pub ext: P::Task,
}

impl<P: Personality> core::ops::Deref for Task<P> {
    type Target = P::Task;
    fn deref(&self) -> &P::Task {
        &self.ext
    }
}
