//! Gates: how a guest's calls become entries of the kernel. A gate pushes: a host ([`HostedGate`]) or the processor itself ([`TrapGate`])
//! arrives with a frame. Or it is pulled: the machine runs user code and looks why it stopped ([`PullGate`]). Or it is a queue, which user code
//! fills and the kernel empties while both run ([`QueueGate`]).

use alloc::sync::Arc;

use janua_abi::linux::Result;
use janua_abi::ring;
use janua_arch::Frame;

use crate::UserMemory;
use crate::context::Context;
use crate::guest::{Abi, Flow, Guest, PlainCalls, Verdict};
use crate::trap::{Exception, Trap};
use crate::user::Window;

/// What the host reported about an interruption, as far as gates need it.
#[derive(Clone, Copy, Debug)]
pub struct HostSignal {
    pub signal: u32,
    pub code: i32,
    /// The call's number and architecture (AUDIT_ARCH_*), for SIGSYS.
    pub number: i32,
    pub arch: u32,
}

/// The gates' numbers and names, here alone: frames are counted by the number, and the command passes it to the kernel image; the name is
/// what `--gate` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum GateId {
    Sud = 1,
    Seccomp,
    Call,
    Signal,
    Ta,
    Syscall,
    Int,
    Ud,
    Vsyscall,
    Sysenter,
    CallGate,
    Ptrace,
    L4,
    Ring,
}

impl GateId {
    /// In the order of their numbers, the first being 1.
    pub const ALL: [GateId; 14] = {
        use GateId::{Call, CallGate, Int, L4, Ptrace, Ring, Seccomp, Signal, Sud, Syscall, Sysenter, Ta, Ud, Vsyscall};
        [Sud, Seccomp, Call, Signal, Ta, Syscall, Int, Ud, Vsyscall, Sysenter, CallGate, Ptrace, L4, Ring]
    };

    pub const fn number(self) -> u8 {
        self as u8
    }

    /// `None` for 0, which means calls that came by no gate, and for numbers no gate has.
    pub fn from_number(number: u8) -> Option<GateId> {
        Self::ALL.into_iter().find(|id| id.number() == number)
    }

    pub const fn name(self) -> &'static str {
        match self {
            GateId::Sud => "sud",
            GateId::Seccomp => "seccomp",
            GateId::Call => "call",
            GateId::Signal => "signal",
            GateId::Ta => "ta",
            GateId::Syscall => "syscall",
            GateId::Int => "int",
            GateId::Ud => "ud",
            GateId::Vsyscall => "vsyscall",
            GateId::Sysenter => "sysenter",
            GateId::CallGate => "callgate",
            GateId::Ptrace => "ptrace",
            GateId::L4 => "l4",
            GateId::Ring => "ring",
        }
    }
}

/// What becomes of a call that user code makes and the gate did not catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// The host ends the process: the gate catches every call by other means, so this one was made behind its back.
    Kill,
    /// The host turns it into SIGSYS: this is how calls reach the gate.
    Trap,
}

/// One way of entering. The platform calls it; it never calls back.
pub trait HostedGate: Sync {
    fn id(&self) -> GateId;
    /// Once, in the first process before guests exist: what is inherited by all.
    fn arm_sandbox(&self) -> Result<()>;
    /// What the platform's filter of host calls does with calls from outside the kernel's text.
    fn outside(&self) -> Outside {
        Outside::Kill
    }
    /// In each new thread, before it first runs user code.
    fn arm_thread(&self, selector: *mut u8) -> Result<()>;
    /// In a thread that will not run user code again: from here on its own calls depend on the selector no more, which may
    /// be another thread's by the time they are made.
    fn disarm_thread(&self) -> Result<()>;
    /// What calls that trapped are counted as, where calls can also come another way.
    fn trap_id(&self) -> GateId {
        self.id()
    }
    /// Where rewritten call sites jump, for a gate that rewrites; `keyed` when kernel memory is closed by a protection key
    /// while user code runs.
    fn call_entry(&self, _keyed: bool) -> Option<usize> {
        None
    }
    /// Whether a fault at `pc` is one of that entry's stores before it has changed anything: then the call is one all the same, and comes by
    /// the host's signal, with its number in rax and its return address in rcx.
    fn is_call_store(&self, _pc: usize) -> bool {
        false
    }
    /// What the exit writes into the selector.
    fn selector_value(&self) -> u8;
    /// The host signal by which user code calls, when it is not SIGSYS: user code sends it to its own process, and may make the
    /// host calls for that. Its handler is [`HostedGate::queued_entry`], and [`HostedGate::accept`] never sees it.
    fn queued(&self) -> Option<u32> {
        None
    }
    /// The host's handler of that signal, as [`HostedGate::call_entry`].
    fn queued_entry(&self, _keyed: bool) -> Option<usize> {
        None
    }
    /// In each new process of the sandbox, in its first thread, before user code runs there.
    fn arm_process(&self, _pid: u32) -> Result<()> {
        Ok(())
    }
    /// [`crate::Context::entry_descriptor`], for a thread the host knows by these numbers.
    fn entry_descriptor(&self, _keyed: bool, _pid: u32, _tid: u32) -> (usize, [usize; 3]) {
        (janua_abi::invasive::record::entry::INSTRUCTION, [0; 3])
    }
    /// Whether this signal is a call that came by this gate; completes the frame (result register, number) if so.
    fn accept(&self, signal: &HostSignal, frame: &mut Frame, user: &dyn UserMemory) -> Option<Abi>;
}

/// Why a processor left user code for a kernel that runs on the bare machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The instruction `syscall` of 64-bit code. The frame has the number in `orig_rax` and -ENOSYS in `rax`.
    Syscall,
    /// The instruction `sysenter`, which saves nothing: programs leave the address to go on at in rcx and their stack pointer in
    /// r11. The frame is as for [`Entry::Syscall`] otherwise.
    Sysenter,
    /// The instruction `sysenter` in a 32-bit program. The frame is complete but for the call's mark: it goes on at the program's
    /// landing place, with the sixth argument where `int $0x80` has it.
    SysenterCompat,
    /// The instruction `syscall` of 32-bit code, on AMD's processors. The frame is as for [`Entry::SysenterCompat`], with the second
    /// argument, too, where `int $0x80` has it.
    SyscallCompat,
    /// A far call through the call gate. The frame is as for [`Entry::Syscall`] otherwise.
    CallGate,
    /// An exception, or a software interrupt. `orig_rax` is -1; `rip` is the instruction's for faults, the next one's otherwise.
    Vector {
        number: u8,
        /// The processor's error code, 0 when there is none.
        error: u64,
        /// The address of a page fault.
        addr: usize,
    },
}

/// What of the processor a [`TrapGate`] takes calls by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Syscall,
    Sysenter,
    SysenterCompat,
    SyscallCompat,
    CallGate,
    /// A vector that user code may raise by `int`, or a trap type it may raise by `ta`.
    Interrupt(u8),
    /// An exception that may be a call.
    Exception(u8),
}

/// How an image's processor has to be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entering {
    /// User code has page tables of its own, which map little of the kernel.
    pub isolated: bool,
    /// The processor keeps the kernel from user memory until the kernel allows it (SMAP).
    pub guarded: bool,
}

/// Why user code came back to who ran it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A call; number and words are in the frame.
    Call(Abi),
    /// A call of the machine's own ABI that it has made itself ([`Guest::plain`]): the result is in the frame.
    Returned(Verdict),
    /// An exception of its.
    Exception(Exception),
    /// Nothing of its doing: its turn is over, or somebody else may have use for the processor.
    Pause,
}

/// A gate of the pull shape: there is no entry that user code goes through. The platform's loop runs it in here, and gets back why it
/// stopped; what becomes of that is the same as with gates that push ([`pull`]).
pub trait PullGate {
    /// Runs user code from `frame` on, and leaves there what it has come to.
    fn resume(&mut self, frame: &mut Frame) -> Stop;
}

/// User code's next stay outside the kernel, and how the kernel handles what ended it.
pub fn pull(gate: &mut impl PullGate, guest: &dyn Guest, frame: &mut Frame) -> Flow {
    match gate.resume(frame) {
        Stop::Call(abi) => guest.call(frame, abi),
        Stop::Returned(verdict) => guest.returned(frame, Abi::Native, verdict),
        Stop::Exception(exception) => guest.trap(frame, Trap::Exception(exception)),
        Stop::Pause => Flow::Resume,
    }
}

/// What user code has put into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submission {
    /// A call of the machine's own ABI: number and words. The tag comes back with its result.
    ///
    /// With `link` the next call that is taken is linked to this one: it begins when this one has ended with at least that result. Otherwise, and
    /// where this one is never made (it is cancelled before it begins, or refused), that call and all that are linked to it are given up: ECANCELED.
    /// The chain ends at a call without `link`, and not where the queue happens to be empty; cancellations are part of none.
    Call { number: usize, words: [usize; 6], tag: u64, link: Option<isize> },
    /// The call that was submitted with the tag `of` is to be given up. The result, which `tag` comes back with, is 0 when that call had not ended
    /// (it has a result of its own, ECANCELED as a rule), and ENOENT where there is no such call.
    Cancel { of: u64, tag: u64 },
}

/// The number of a call whose entry means nothing: it ends with EINVAL.
pub const NO_CALL: usize = usize::MAX;

impl Submission {
    /// What an entry of a ring asks for; one whose flags mean nothing is a call of the number [`NO_CALL`].
    pub fn of(entry: &ring::Submission) -> Submission {
        let ring::Submission { number, flags, words, tag } = *entry;
        let (number, link) = match (number, flags) {
            (ring::CANCEL, 0) => return Submission::Cancel { of: words[0], tag },
            (ring::CANCEL, _) => (NO_CALL, None),
            (_, 0) => (number as usize, None),
            (_, ring::flags::LINK) => (number as usize, Some(0)),
            (_, ring::flags::LINK_WHOLE) => (number as usize, Some(words[2] as isize)),
            (_, ring::flags::LINK_HARD) => (number as usize, Some(isize::MIN)),
            _ => (NO_CALL, None),
        };
        Submission::Call { number, words: words.map(|word| word as usize), tag, link }
    }

    /// The entry that asks for this.
    pub fn entry(&self) -> ring::Submission {
        match *self {
            Submission::Cancel { of, tag } => {
                ring::Submission { number: ring::CANCEL, flags: 0, words: [of, 0, 0, 0, 0, 0], tag }
            }
            Submission::Call { number, words, tag, link } => {
                let flags = match link {
                    None => 0,
                    Some(isize::MIN) => ring::flags::LINK_HARD,
                    Some(0) => ring::flags::LINK,
                    Some(_) => ring::flags::LINK_WHOLE,
                };
                ring::Submission { number: number as u32, flags, words: words.map(|word| word as u64), tag }
            }
        }
    }
}

/// What calls of a queue return at once, and whose they are.
pub struct QueuedCalls<'a> {
    /// Their functions: what each returns is its result.
    pub functions: &'a PlainCalls,
    /// [`Plain::thread`](crate::Plain::thread).
    pub thread: *const (),
}

/// The end of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub tag: u64,
    /// As in the result register: a value, or the negated error.
    pub result: isize,
}

/// A gate of the queue shape: user code leaves calls in a place that the kernel looks into, goes on, and finds their results in another. No frame
/// comes with them, and no order but that of linked calls.
///
/// The kernel is in one of these methods at a time, on any thread of its own, and calls none after the queue is closed. What is in user memory the
/// gate reads once and believes nothing of it.
pub trait QueueGate: Send + Sync {
    /// Takes the next submission, if there is one: it is not offered again.
    fn take(&self) -> Option<Submission>;
    /// Puts a completion where user code finds it. False when there is no room: then the kernel keeps it, takes no submission before it is rid of it,
    /// and offers it again when the queue is looked into next.
    fn complete(&self, completion: Completion) -> bool;
    /// Completions that user code has not taken yet.
    fn unreaped(&self) -> usize;
    /// Whether the kernel is to look into the queue though nobody has asked for it, until it rests ([`QueueGate::rest`]). False where user code always rings.
    fn is_watched(&self) -> bool {
        false
    }
    /// From now on user code rings when it submits something, until a submission is taken. What it submits before it can have known is found by a look.
    fn rest(&self) {}
    /// Reads what user code has counted, once for all that is taken and posted until the next look: how many submissions there are at most.
    fn look(&self) -> usize {
        usize::MAX
    }
    /// [`QueueGate::take`] for as many as there are at the last look and `into` has room for, in the form that programs write them in: how many. User code may
    /// learn of it by [`QueueGate::settle`] alone.
    fn take_some(&self, into: &mut [ring::Submission]) -> usize {
        let mut taken = 0;
        while let Some(place) = into.get_mut(taken)
            && let Some(submission) = self.take()
        {
            *place = submission.entry();
            taken += 1;
        }
        taken
    }
    /// Makes the calls of the next submissions from where user code has put them, and completes them: no more than `most`, nor than there are and than there is room for
    /// their ends at the last look, up to the first that `calls` has no function for or that is linked. How many; none where the memory is not in place. User code
    /// may learn of it by [`QueueGate::settle`] alone.
    fn make_some(&self, _calls: &QueuedCalls<'_>, _most: usize) -> usize {
        0
    }
    /// [`QueueGate::complete`] for as many of these as there is room for at the last look: how many. User code may learn of it by [`QueueGate::settle`] alone.
    fn complete_some(&self, completions: &[ring::Completion]) -> usize {
        let posted = |one: &&ring::Completion| self.complete(Completion { tag: one.tag, result: one.result as isize });
        completions.iter().take_while(posted).count()
    }
    /// Shows user code what has been taken and completed: completions that it had not taken at the last look.
    fn settle(&self) -> usize {
        self.unreaped()
    }
}

/// A gate by which programs make queues themselves, in their own memory.
pub trait RingGate: Sync {
    fn id(&self) -> GateId;
    /// A queue in the memory of this thread, which begins at `at` and holds so many submissions and completions. `watched`: a module will look into it
    /// until there has been nothing for a while ([`QueueGate::rest`]); otherwise it is looked into when user code asks. `window`: where else the kernel reaches the same memory,
    /// and sooner. EINVAL for numbers that are no powers of two, or too large, or an address that is no multiple of 64; EFAULT where the memory cannot be written.
    fn open(
        &self,
        context: Arc<dyn Context>,
        at: usize,
        entries: (u32, u32),
        watched: bool,
        window: Option<Arc<dyn Window>>,
    ) -> Result<Arc<dyn QueueGate>>;
}

/// One way of entering a kernel on the bare machine. The platform calls it; it never calls back.
pub trait TrapGate: Sync {
    fn id(&self) -> GateId;
    /// The ways it takes calls by. A way that no gate of an image takes is shut.
    fn ways(&self) -> &'static [Way];
    /// Where the processor goes by one of them: the gate's entry code. `None` where it is part of the platform's own; a way without a vector
    /// (`syscall`, `sysenter`, the call gate) is shut then.
    fn entry(&self, _way: Way, _entering: Entering) -> Option<usize> {
        None
    }
    /// Where the kernel goes on after a fault at `pc`, if that is where an entry of this gate looks at user memory.
    fn fixup(&self, _pc: usize) -> Option<usize> {
        None
    }
    /// Whether this entry is a call that came by this gate; completes the frame (number, result register, next instruction) if so.
    fn accept(&self, entry: &Entry, frame: &mut Frame, user: &dyn UserMemory) -> Option<Abi>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_known_by_their_numbers_and_names() {
        for (at, id) in GateId::ALL.into_iter().enumerate() {
            assert_eq!((usize::from(id.number()), GateId::from_number(id.number())), (at + 1, Some(id)));
            assert_eq!(GateId::ALL.iter().filter(|other| other.name() == id.name()).count(), 1, "{}", id.name());
        }
        assert_eq!([0, GateId::ALL.len() as u8 + 1, u8::MAX].map(GateId::from_number), [None; 3]);
    }
}
