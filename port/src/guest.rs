//! The thread a machine carries, as the machine and the gates see it.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicPtr, AtomicU32};
use core::task::Poll;

use janua_arch::Frame;

use crate::accounts::Payer;
use crate::clock::Nanos;
use crate::context::Context;
use crate::gate::GateId;
use crate::trap::Trap;

/// What the machine does with the thread next. Scheduling is a return value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go back to user code with the frame as it is now.
    Resume,
    /// The call (or a stop) waits: park until the thread is woken or the deadline (monotonic) passes, then [`Guest::poll`].
    Wait(Option<Nanos>),
    /// The thread is over; never touch the guest again.
    Exit,
}

/// Which ABI a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// The machine's own: x86-64 `syscall` registers.
    Native,
    /// i386: by int 0x80, and in 32-bit programs by sysenter or syscall.
    Compat,
}

/// What is to be done after a call whose function an entry has called, beside its result. Entries test it together with the thread's
/// work flags, with which it shares no bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Verdict(u32);

impl Verdict {
    /// The result is the program's.
    pub const DONE: Verdict = Verdict(0);
    /// The result is an internal code, not the program's.
    pub const INTERNAL: Verdict = Verdict(1 << 30);
    /// There is no result yet: the call waits.
    pub const PENDING: Verdict = Verdict(1 << 31);
    /// All its bits.
    pub const BITS: u32 = Verdict::INTERNAL.0 | Verdict::PENDING.0;

    /// That of a register in which an entry has joined it with work flags or the like.
    pub const fn from_register(word: u32) -> Verdict {
        Verdict(word & Verdict::BITS)
    }
}

/// What the function of a call returns, in the two registers a C function has for it.
#[cfg(target_pointer_width = "64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Outcome {
    result: isize,
    verdict: Verdict,
}

/// What the function of a call returns, in the two registers a C function has for it: here the halves of a double word, since a structure
/// would go by memory. The result is in the first, that of a function of one word.
#[cfg(target_pointer_width = "32")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Outcome(u64);

impl Outcome {
    /// There is no result yet.
    pub const PENDING: Outcome = Outcome::new(0, Verdict::PENDING);

    /// A result and what is to be done about it.
    #[inline]
    #[cfg(target_pointer_width = "64")]
    pub const fn new(result: isize, verdict: Verdict) -> Outcome {
        Outcome { result, verdict }
    }

    /// A result and what is to be done about it.
    #[inline]
    #[cfg(target_pointer_width = "32")]
    pub const fn new(result: isize, verdict: Verdict) -> Outcome {
        Outcome((result as u32 as u64) << 32 | verdict.0 as u64)
    }

    /// The result; of no meaning for [`Verdict::PENDING`].
    #[inline]
    pub const fn result(self) -> isize {
        #[cfg(target_pointer_width = "64")]
        return self.result;
        #[cfg(target_pointer_width = "32")]
        return (self.0 >> 32) as u32 as isize;
    }

    /// What is to be done about the result.
    #[inline]
    pub const fn verdict(self) -> Verdict {
        #[cfg(target_pointer_width = "64")]
        return self.verdict;
        #[cfg(target_pointer_width = "32")]
        return Verdict(self.0 as u32);
    }

    /// The result, once there is one.
    #[inline]
    pub fn poll(self) -> Poll<isize> {
        if self.verdict() == Verdict::PENDING { Poll::Pending } else { Poll::Ready(self.result()) }
    }
}

impl From<isize> for Outcome {
    /// A result that is the program's.
    #[inline]
    fn from(result: isize) -> Outcome {
        Outcome::new(result, Verdict::DONE)
    }
}

/// The places of a [`PlainCalls`]. The last one is always null, so that an entry may take it for every number beyond the end.
pub const PLAIN_CALLS: usize = 512;

/// The calls of one ABI that a machine may make straight from its entry: functions by number, null where there is none.
///
/// Each is a [`crate::words::WordsFn`] of the call's six words and of [`Plain::thread`], in the order in which the machine's gates have
/// them. It returns an [`Outcome`].
pub type PlainCalls = [AtomicPtr<()>; PLAIN_CALLS];

/// The table of a thread none of whose calls are made like that.
pub static NO_CALLS: PlainCalls = [const { AtomicPtr::new(core::ptr::null_mut()) }; PLAIN_CALLS];

/// What a machine needs to make calls straight from its entry, before their frame is whole.
#[derive(Clone, Copy)]
pub struct Plain<'a> {
    pub native: &'a PlainCalls,
    pub compat: &'a PlainCalls,
    /// Good as long as the guest lives.
    pub thread: *const (),
    /// Where it is not 0 after a call, or the call's verdict is not [`Verdict::DONE`], [`Guest::returned`] must be called on the frame, which
    /// then must be whole.
    pub work: &'a AtomicU32,
}

/// A guest thread. Gates call [`Guest::call`] and [`Guest::trap`] on a frame (push), run loops do the same on the frame they
/// fetched (pull). Exactly one core is inside a guest's methods at a time, except for [`Guest::wake_word`], [`Guest::has_work`] and
/// [`Guest::out_of_memory`].
pub trait Guest: Send + Sync {
    /// What the machine has of the thread; once, before anything else.
    fn attach(&self, context: Arc<dyn Context>);
    /// A system call: number and arguments are in the frame.
    fn call(&self, frame: &mut Frame, abi: Abi) -> Flow;
    /// The call about to be made came by a trap though calls can be rewritten: an occasion to rewrite it. The frame may go on
    /// elsewhere afterwards.
    fn call_trapped(&self, _frame: &mut Frame) {}
    /// The calls the machine may make without [`Guest::call`]; `None` while calls are watched (`--trace`, `--stats`).
    fn plain(&self) -> Option<Plain<'_>> {
        None
    }
    /// The end of a call made by [`Guest::plain`], whose result is in the frame, when it left work behind or has a verdict.
    fn returned(&self, _frame: &mut Frame, _abi: Abi, _verdict: Verdict) -> Flow {
        Flow::Resume
    }
    /// An exception or a kick. Its handling may wait, like a call's.
    fn trap(&self, frame: &mut Frame, trap: Trap) -> Flow;
    /// A store of the kernel's to user memory at `addr` faulted on the page's rights: whether to try it again. Called from the fault,
    /// on top of whatever the kernel was doing.
    fn store_fault(&self, addr: usize) -> bool;
    /// A copy of the kernel's from or to user memory faulted at `addr`, where nothing is mapped: whether something is now (a stack that
    /// grows). Called like [`Guest::store_fault`].
    fn hole_fault(&self, _addr: usize) -> bool {
        false
    }
    /// Goes on with what waits. Only after [`Flow::Wait`].
    fn poll(&self, frame: &mut Frame) -> Flow;
    /// Runs on a new thread before it first enters user mode.
    fn start(&self, frame: &mut Frame) -> Flow;
    /// The word to park on: 0 quiet, 1 when the thread has been woken since it last was polled, 2 put there by who parks on it,
    /// in exchange for 0.
    fn wake_word(&self) -> &AtomicU32;
    /// Whether something waits that must be looked at before user code runs (signals, a kill). Read after the machine has
    /// marked the thread as being in user code.
    fn has_work(&self) -> bool;
    /// The machine has no memory left and has chosen the thread's task, which has `resident` bytes, to end. Called by another thread,
    /// whatever this one does.
    fn out_of_memory(&self, _resident: u64) {}
    /// Somebody outside has ended the thread's process, or its machine can run its code no longer: the task is to end as by SIGKILL. Called by
    /// the thread itself, outside of calls; it looks for work next.
    fn ended_outside(&self) {}
    /// Who pays for what the thread's call takes of the host. Called in the middle of calls, by the thread itself.
    fn payer(&self) -> Payer {
        Payer::KERNEL
    }
    /// The gate by which the last call came, for statistics.
    fn set_gate(&self, gate: GateId);
}
