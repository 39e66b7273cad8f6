//! A guest thread's life: it is made, run, and ended, each on the thread of the kernel's that traces it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use janua_abi::linux::signal::si::KERNEL as SI_KERNEL;
use janua_abi::linux::signal::{SIGBUS, SIGSEGV};
use janua_abi::linux::{Errno, Result};
use janua_arch::x86_64::exception::{ERROR_FETCH, ERROR_STORE};
use janua_paging::{Access, Refused};
use janua_platform_linux::clock::HostClock;
use janua_platform_linux::machine as linux;
use janua_platform_linux::{exception, spawn, sys};
use janua_port::drive::{PARKED, park};
use janua_port::gate::{PullGate, Stop, pull};
use janua_port::guest::{Abi, Outcome, Plain, Verdict};
use janua_port::trap::{Arithmetic, Cause, Exception, Refusal};
use janua_port::{
    Carrier, Clock, Context, Frame, Guest, HostSignal, Nanos, Next, Space, Spawn, SpawnKind, UserMemory, drive, space,
};
use janua_rt::Mutex;
use janua_text::access;

use crate::context::ProcessContext;
use crate::mailbox::{self, Mailbox, Words};
use crate::mirror::{Mirror, Pages};
use crate::physical::MEMORY;
use crate::space::{self as spaces, ProcessSpace};
use crate::spare::{self, Counted, Spare};
use crate::stray;
use crate::stub;
use crate::thread::Thread;
use crate::tracee::{Halt, Lost, Regs, Tracee, XSTATE_MOST};
use crate::zygote;

/// A page fault of user code, and how the processor reports it.
const PAGE_FAULT: u32 = 14;
const PRESENT: u64 = 1;
const USER: u64 = 4;
/// The longest instruction.
const LONGEST: usize = 15;

/// What a new thread begins with.
struct Birth {
    thread: Arc<Thread>,
    /// Its host thread, which waits in the stub's code.
    tid: u32,
    /// It is the first of its process, whether or not that had another guest before.
    leads: Option<Made>,
    /// Whose child it is.
    parent: Option<Arc<Mirror>>,
    frame: Frame,
    /// The vector and floating-point registers of who made it, where the host's thread does not have them anyway.
    xstate: Option<Vec<u8>>,
}

/// A process for a guest, whose only thread waits in the stub's code.
#[derive(Clone, Copy)]
struct Made {
    pid: u32,
    pages: Pages,
    /// What the host counted for it when it was another's.
    before: Option<Counted>,
}

/// The vector registers of a thread that has used none.
static UNUSED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The first guest thread of the machine, in an empty space.
pub fn spawn_first(guest: Arc<dyn Guest>) -> Result<(Arc<dyn Context>, Arc<dyn Space>)> {
    let space: Arc<dyn Space> = spaces::empty();
    let frame = Frame::start(0, 0);
    let thread = Thread::new(guest.clone(), space.clone(), Regs { frame, ..Regs::default() });
    let context: Arc<dyn Context> = Arc::new(ProcessContext(thread.clone()));
    guest.attach(context.clone());
    begin(guest, Birth { thread, tid: 0, leads: Some(made()?), parent: None, frame, xstate: None })?;
    Ok((context, space))
}

/// [`Context::spawn`], of the calling thread.
pub fn spawn(creator: &Thread, spawn: Spawn) -> Result<Arc<dyn Context>> {
    let Spawn { kind, frame, tls, guest, space } = spawn;
    let space = space.unwrap_or_else(|| creator.space.lock().clone());
    // Who has lost its process finds out when it goes on.
    let mut regs = *creator.tracee.lock().regs().map_err(|Lost| Errno::EAGAIN)?;
    regs.frame = frame;
    regs.fs_base = tls.map_or(regs.fs_base, |tls| tls as u64);
    let thread = Thread::new(guest.clone(), space, regs);
    thread.tracee.lock().set_name(creator.tracee.lock().name());
    *thread.areas.lock() = *creator.areas.lock();
    let context: Arc<dyn Context> = Arc::new(ProcessContext(thread.clone()));
    guest.attach(context.clone());
    let (tid, leads, xstate) = conceive(creator, kind).inspect_err(|_| {
        // The guest and its context hold each other.
        thread.guest.lock().take();
    })?;
    let parent = leads.map(|_| creator.mirror());
    begin(guest, Birth { thread, tid, leads, parent, frame, xstate })?;
    Ok(context)
}

/// A new host thread of the creator's process, or a process with its pages and the vector registers that it is to have.
fn conceive(creator: &Thread, kind: SpawnKind) -> Result<(u32, Option<Made>, Option<Vec<u8>>)> {
    match kind {
        SpawnKind::Thread | SpawnKind::SharedSpace => {
            // Of the same process: all that a process is for is the space.
            let request = [sys::nr::CLONE.number(), stub::THREAD_FLAGS as usize, 0, 0, 0, 0, 0, 0];
            // Who made it finds out when it goes on.
            let made = creator.tracee.lock().call(&request).unwrap_or(Err(Errno::EAGAIN));
            Ok((made? as u32, None, None))
        }
        SpawnKind::Fork => {
            let mut area = Box::new([0; XSTATE_MOST]);
            let len = creator.tracee.lock().xstate(&mut area)?;
            Ok((0, Some(made()?), Some(area[..len].to_vec())))
        }
    }
}

/// A process: one that is left of another guest, or a new one.
fn made() -> Result<Made> {
    match spare::take() {
        Some(Spare { pid, pages, counted }) => Ok(Made { pid, pages, before: Some(counted) }),
        None => made_new(),
    }
}

/// A new process and its pages.
fn made_new() -> Result<Made> {
    // First, as a process without them could do nothing, not even end.
    let pages = Pages::take()?;
    let made = zygote::make(pages).map(|pid| Made { pid, pages, before: None });
    made.inspect_err(|_| pages.release())
}

impl Made {
    /// The process is the one of this page table.
    fn belongs_to(&self, mirror: &Mirror) {
        mirror.set_process(self.pid, self.pages);
        match self.before {
            Some(before) => mirror.set_counted_before(before),
            None => mirror.has_word(),
        }
    }

    /// Begins to trace its thread, with these vector registers, or as one that has used none: on the thread that will go on to do so.
    /// If it is one that was left, and cannot be used any more, another takes its place.
    fn seize(self, tracee: &mut Tracee, mirror: &Mirror, xstate: Option<&[u8]>) -> core::result::Result<Made, Lost> {
        let (mut made, mut seized) = (self, tracee.seize(self.pid));
        if seized.is_err() && self.before.is_some() {
            // They are released once: with the process, or not at all.
            let _ = mirror.part();
            spare::give_up(self.pid, self.pages, tracee);
            made = made_new().map_err(|_| Lost)?;
            mirror.set_counted_before(Counted::default());
            made.belongs_to(mirror);
            seized = tracee.seize(made.pid);
        }
        seized?;
        match xstate {
            Some(area) => tracee.set_xstate(area).map_err(|_| Lost)?,
            None if made.before.is_some() => tracee.set_xstate(&UNUSED.lock()).map_err(|_| Lost)?,
            None if UNUSED.lock().is_empty() => {
                let mut area = Box::new([0; XSTATE_MOST]);
                let len = tracee.xstate(&mut area).map_err(|_| Lost)?;
                // The first process alone comes here.
                *UNUSED.lock() = area[..len].to_vec();
            }
            None => {}
        }
        Ok(made)
    }
}

fn begin(guest: Arc<dyn Guest>, birth: Birth) -> Result<()> {
    let thread = birth.thread.clone();
    let mirror = thread.mirror();
    let tid = birth.leads.map_or(birth.tid, |made| made.pid);
    thread.set_tid(tid);
    mirror.add(thread.clone());
    if let Some(made) = birth.leads {
        made.belongs_to(&mirror);
        if let Some(parent) = &birth.parent {
            // Each page would have come by a fault, and counts as one.
            thread.note_faults(&mirror, mirror.inherit(parent));
        }
    }
    let begun = spawn::spawn_beside(guest, Box::new(move || live(birth)));
    if begun.is_err() {
        // Nobody else will trace it: the caller does, to its end.
        let mut tracee = thread.next_tracee(Regs::default());
        if tracee.seize(tid).is_ok() {
            tracee.end();
        } else {
            mirror.abandon();
        }
        thread.set_ended();
        thread.set_tid(0);
        if mirror.remove(&thread, 0) == 0 {
            spaces::reap(&mirror);
        }
        thread.guest.lock().take();
    }
    begun
}

/// Makes a process fit for its space, in its first thread.
fn furnish(tracee: &mut Tracee, mirror: &Mirror) -> core::result::Result<(), Lost> {
    mirror.settle(tracee)?;
    join(tracee, mirror)?;
    for command in (0..u32::BITS).map(|bit| 1 << bit).filter(|command| mirror.barriers() & command != 0) {
        let _ = tracee.call(&[sys::nr::MEMBARRIER.number(), command as usize, 0, 0, 0, 0, 0, 0])?;
    }
    Ok(())
}

/// Makes another thread of a process fit for it.
fn join(tracee: &mut Tracee, mirror: &Mirror) -> core::result::Result<(), Lost> {
    if !mailbox::are_used() {
        return Ok(());
    }
    let (number, page) = mirror.take_mailbox(tracee)?;
    tracee.set_mailbox(Mailbox::new(page, number));
    let descriptor = mailbox::descriptor(number);
    tracee.set_thread_area(descriptor.entry, &raw const descriptor as usize).map_err(|_| Lost)
}

/// The calling thread goes on in another space, which is empty.
pub fn move_to(own: &Thread, space: Arc<dyn Space>) -> Result<()> {
    let made = made()?;
    let fresh = ProcessSpace::of(&space).own.mirror().clone();
    made.belongs_to(&fresh);
    let old = own.mirror();
    let thread = old.threads().into_iter().find(|thread| core::ptr::eq(&**thread, own)).ok_or(Errno::ESRCH)?;
    {
        let mut tracee = own.tracee.lock();
        let regs = *tracee.regs().map_err(|Lost| Errno::EAGAIN)?;
        let mut next = own.next_tracee(regs);
        next.set_name(tracee.name());
        if made.seize(&mut next, &fresh, None).and_then(|_| furnish(&mut next, &fresh)).is_err() {
            if !next.is_traced() {
                fresh.abandon();
            }
            next.end();
            spaces::reap(&fresh);
            return Err(Errno::EAGAIN);
        }
        tracee.end();
        give_back(&tracee, &old);
        *tracee = next;
    }
    fresh.begins();
    own.set_tid(fresh.pid());
    own.change_space(space);
    fresh.add(thread);
    if old.remove(own, 0) == 0 {
        spaces::reap(&old);
    }
    Ok(())
}

/// The body of a guest thread's thread in the kernel.
fn live(birth: Birth) {
    let Birth { thread, tid, leads, mut frame, xstate, .. } = birth;
    thread.enter();
    let arrived = {
        let mut tracee = thread.tracee.lock();
        let mirror = thread.mirror();
        let seized = match leads {
            Some(made) => made.seize(&mut tracee, &mirror, xstate.as_deref()).map(|made| thread.set_tid(made.pid)),
            None => tracee.seize(tid),
        };
        let seized = seized.inspect_err(|_| mirror.abandon());
        let fit = if leads.is_some() { furnish } else { join };
        let seized = seized.and_then(|()| fit(&mut tracee, &mirror));
        if leads.is_some() {
            for descriptor in thread.areas.lock().iter().flatten() {
                let _ = tracee.set_thread_area(descriptor.entry, &raw const *descriptor as usize);
            }
        }
        seized
    };
    let guest = thread.guest.lock().clone();
    if let Some(guest) = guest {
        if arrived.is_err() {
            guest.ended_outside();
        }
        thread.set_gate(&*guest, linux::get().gate.trap_id());
        let mut flow = guest.start(&mut frame);
        let mut carrier = Carried(&thread);
        while drive(&mut carrier, &*guest, &mut frame, flow) == Next::User {
            flow = pull(&mut Traced { thread: &thread, guest: &*guest }, &*guest, &mut frame);
        }
    }
    end(&thread);
}

/// The mailbox of a thread that has been let go is the next one's.
fn give_back(tracee: &Tracee, mirror: &Mirror) {
    if let Some(mailbox) = tracee.mailbox() {
        mirror.return_mailbox(mailbox.number());
    }
}

fn end(thread: &Thread) {
    let mirror = thread.mirror();
    thread.set_ended();
    thread.set_tid(0);
    let is_kept = {
        let mut tracee = thread.tracee.lock();
        let is_kept = spare::keep(thread, &mirror, &mut tracee);
        if !is_kept {
            tracee.end();
        }
        give_back(&tracee, &mirror);
        is_kept
    };
    if mirror.remove(thread, janua_platform_linux::clock::of_caller()) == 0 && !is_kept {
        spaces::reap(&mirror);
    }
    thread.guest.lock().take();
    // The last reference to a space may be the thread's.
    let gone = core::mem::replace(&mut *thread.space.lock(), spaces::empty());
    drop(gone);
    thread.leave();
}

/// The calling thread, as [`drive()`] has it.
struct Carried<'a>(&'a Thread);

impl Carrier for Carried<'_> {
    fn enter_user(&mut self) {
        self.0.set_in_guest(1);
        compiler_fence(Ordering::SeqCst);
    }
    fn stay(&mut self) {
        self.0.set_in_guest(0);
    }
    fn sleep(&mut self, word: &AtomicU32, deadline: Option<Nanos>) {
        spawn::park(word, PARKED, deadline);
    }
    fn wait(&mut self, word: &AtomicU32, deadline: Option<Nanos>) {
        // Who waits is not to look for an answer meanwhile, and not to be taken for a thread that may run.
        let mut tracee = self.0.tracee.lock();
        if tracee.looks() {
            // Who has lost its process finds out when it goes on.
            let _ = tracee.halt();
            self.0.ran.end();
            self.0.set_runs(false);
        }
        drop(tracee);
        park(self, word, deadline);
    }
}

/// What a call is that needs no frame ([`janua_port::guest::PlainCalls`]).
type PlainCall = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, *const ()) -> Outcome;

/// What user code has come to.
enum Came {
    /// A call, whose frame is there; by an instruction, where calls may come otherwise too.
    Call { trapped: bool },
    /// A call that has been made, whose frame is there with its result.
    Returned(Verdict),
    /// An exception, as the host's signal reports it.
    Fault { signal: u32, code: i32, addr: usize },
    /// Nothing of its doing.
    Nothing,
}

/// The gate of a traced thread: its host thread is run until it stops.
struct Traced<'a> {
    thread: &'a Thread,
    guest: &'a dyn Guest,
}

impl Traced<'_> {
    /// Runs user code until it stops, or has made a call that is not finished here. With what the host's mappings were when it began.
    fn run(&self, mirror: &Mirror, frame: &mut Frame) -> core::result::Result<(Came, u64), Lost> {
        let mut tracee = self.thread.tracee.lock();
        tracee.prepare(frame)?;
        self.thread.set_runs(true);
        while mirror.is_waiting() {
            tracee.halt()?;
            self.thread.set_runs(false);
            mirror.make_ready(&mut tracee)?;
            self.thread.set_runs(true);
        }
        let generation = mirror.generation();
        self.thread.ran.begin();
        let mut halt = tracee.run(frame);
        let came = loop {
            match halt {
                Ok(Halt::Asked) => {}
                Ok(Halt::Call) => break Ok(Came::Call { trapped: true }),
                Ok(Halt::Kicked) => break Ok(Came::Nothing),
                Ok(Halt::Fault { signal, code, addr }) => break Ok(Came::Fault { signal, code, addr }),
                Err(Lost) => break Err(Lost),
            }
            let words = tracee.words();
            drop(tracee);
            let answer = self.answer(&words);
            tracee = self.thread.tracee.lock();
            if let Some((outcome, false)) = answer
                && tracee.is_asked()
            {
                if !tracee.looks() {
                    self.thread.set_runs(true);
                }
                if !mirror.is_waiting() {
                    halt = tracee.answer(frame, outcome.result() as u64);
                    continue;
                }
            }
            *frame = tracee.asked(&words);
            let Some((outcome, has_work)) = answer else { break Ok(Came::Call { trapped: false }) };
            frame.set_result(outcome.result());
            break Ok(if has_work { Came::Returned(outcome.verdict()) } else { Came::Nothing });
        };
        if !tracee.looks() {
            self.thread.ran.end();
            self.thread.set_runs(false);
        }
        Ok((came?, generation))
    }

    /// Makes a call that came by the mailbox, if it is one that can do without a frame: what it came to, and whether something is to be done after it.
    fn answer(&self, call: &Words) -> Option<(Outcome, bool)> {
        let Plain { native, thread, work, .. } = self.guest.plain()?;
        let function = native.get(usize::try_from(call.number).ok()?)?.load(Ordering::Relaxed);
        if function.is_null() {
            return None;
        }
        // SAFETY: by `Guest::plain` it is a function of the call's six words and of this pointer, which is good as long as the guest lives.
        let outcome = unsafe {
            let function = core::mem::transmute::<*mut (), PlainCall>(function);
            let [a, b, c, d, e, f] = call.words;
            function(a, b, c, d, e, f, thread)
        };
        let is_done = outcome.verdict() == Verdict::DONE && work.load(Ordering::Relaxed) == 0;
        Some((outcome, !is_done))
    }

    /// What was tried at an address, as far as what the host's process has there shows it; none when the host's mappings have
    /// changed since, so that it is to be tried again.
    fn tried(&self, mirror: &Mirror, frame: &Frame, addr: usize, generation: u64) -> Option<Access> {
        let shown = mirror.shown(addr);
        if !shown.is_some_and(|prot| prot.exec) && self.is_fetch(mirror, frame, addr) {
            return Some(Access::Execute);
        }
        match shown {
            Some(prot) if prot.read && mirror.generation() != generation => None,
            Some(prot) if prot.read => Some(Access::Write),
            _ if access::only_stores(&self.code(frame), !frame.is_compat_mode()) => Some(Access::Write),
            _ => Some(Access::Read),
        }
    }

    /// Whether it was the instruction itself that could not be fetched, of which the host's process cannot run what is at `addr`.
    fn is_fetch(&self, mirror: &Mirror, frame: &Frame, addr: usize) -> bool {
        let before = addr.wrapping_sub(frame.rip as usize);
        // Its first bytes can be run: what it lacks is in the next page, or it is data.
        before < LONGEST
            && (!mirror.shown(frame.rip as usize).is_some_and(|prot| prot.exec)
                || access::goes_on_beyond(&self.code(frame), frame.is_compat_mode(), before))
    }

    /// The instruction, and zeroes behind what can be read.
    fn code(&self, frame: &Frame) -> [u8; LONGEST] {
        let mut code = [0; LONGEST];
        ProcessContext::memory_of(self.thread).copy_in_partial(&mut code, frame.rip as usize);
        code
    }

    /// Brings a page, or returns what stops that.
    fn page_fault(&self, mirror: &Mirror, addr: usize, access: Access) -> core::result::Result<(), Refused> {
        let space = self.thread.space.lock().clone();
        let space = ProcessSpace::of(&space);
        let before = space.paged().brought();
        space.fault(addr, access)?;
        // Each page that has come with it would have been one.
        let pages = space.paged().brought().saturating_sub(before);
        self.thread.note_faults(mirror, pages.max(1));
        let mut tracee = self.thread.tracee.lock();
        if mirror.bring(&mut tracee, addr).is_err() {
            self.guest.ended_outside();
        }
        Ok(())
    }

    fn step(&mut self, frame: &mut Frame) -> Stop {
        let mirror = self.thread.mirror();
        loop {
            let Ok((came, generation)) = self.run(&mirror, frame) else {
                self.thread.set_runs(false);
                self.guest.ended_outside();
                return Stop::Pause;
            };
            let (signal, code, addr) = match came {
                Came::Nothing => return Stop::Pause,
                Came::Call { trapped: false } => {
                    self.thread.set_gate(self.guest, linux::get().gate.id());
                    return Stop::Call(Abi::Native);
                }
                Came::Returned(verdict) => return Stop::Returned(verdict),
                Came::Call { trapped: true } => {
                    let gate = linux::get().gate;
                    let number = frame.orig_rax as i32;
                    let signal = HostSignal { signal: janua_abi::linux::signal::SIGTRAP, code: 0, number, arch: 0 };
                    let context = ProcessContext::memory_of(self.thread);
                    let Some(abi) = gate.accept(&signal, frame, &context) else {
                        return Stop::Exception(stray::call(frame, &context));
                    };
                    if gate.trap_id() != gate.id() && abi == Abi::Native {
                        self.guest.call_trapped(frame);
                    }
                    self.thread.set_gate(self.guest, gate.trap_id());
                    return Stop::Call(abi);
                }
                Came::Fault { signal, code, addr } => (signal, code, addr),
            };
            let is_page = matches!((signal, code), (SIGSEGV, 1 | 2) | (SIGBUS, 2));
            if !is_page {
                // To the host it may be an exception, and a call by the gate.
                if (signal, code) == (SIGSEGV, SI_KERNEL) {
                    let arrived = HostSignal { signal, code, number: 0, arch: 0 };
                    if let Some(abi) = linux::get().gate.accept(&arrived, frame, &ProcessContext::memory_of(self.thread)) {
                        return Stop::Call(abi);
                    }
                }
                return Stop::Exception(self.other(frame, signal, code, addr));
            }
            if mirror.is_overdue(addr) {
                continue;
            }
            let Some(access) = self.tried(&mirror, frame, addr, generation) else { continue };
            let refused = match self.page_fault(&mirror, addr, access) {
                Ok(()) if self.guest.has_work() => return Stop::Pause,
                Ok(()) => continue,
                Err(refused) => refused,
            };
            if refused == Refused::NoMemory {
                if !self.waits_for_memory() {
                    let space = self.thread.space.lock().clone();
                    self.guest.out_of_memory(ProcessSpace::of(&space).bytes().0);
                }
                return Stop::Pause;
            }
            let present = mirror.shown(addr).is_some();
            return Stop::Exception(refusal(refused, access, addr, present));
        }
    }

    /// There was no page: whether there is one now, or the thread has something else to do, its end perhaps. Who is ended for memory is the service thread's to
    /// choose, which keeps looking as long as guests have more mapped than there is: the one that has most.
    fn waits_for_memory(&self) -> bool {
        /// It may have to end one after another.
        const PATIENCE: Nanos = 5_000_000_000;
        const LOOK: Nanos = 2_000_000;
        let end = HostClock.monotonic() + PATIENCE;
        let word = AtomicU32::new(0);
        while !self.guest.has_work() && MEMORY.is_used_up() {
            let now = HostClock.monotonic();
            if now > end {
                return false;
            }
            linux::wake_service();
            spawn::park(&word, 0, Some(now + LOOK));
        }
        true
    }

    /// Any other exception, out of the host's signal. The host does not report the processor's own words: what they were is known from
    /// the instruction.
    fn other(&self, frame: &Frame, signal: u32, code: i32, addr: usize) -> Exception {
        /// `int` with a vector, and the vector that anybody may raise by it although no gate takes it.
        const INT: u8 = 0xcd;
        const OVERFLOW: u8 = 4;
        let cause = exception::cause(signal, code, 0);
        let bytes = self.code(frame);
        let mut before = [0; 2];
        ProcessContext::memory_of(self.thread).copy_in_partial(&mut before, (frame.rip as usize).wrapping_sub(2));
        let (number, detail) = match cause {
            Cause::Arithmetic(Arithmetic::Division) if !matches!(bytes[0], 0x9b | 0xd8..=0xdf) => (0, 0),
            Cause::Arithmetic(_) if matches!(bytes[0], 0x9b | 0xd8..=0xdf) => (16, 0),
            Cause::Arithmetic(_) => (19, 0),
            Cause::Step | Cause::Watchpoint | Cause::DebugTrap => (1, 0),
            Cause::Breakpoint => (3, 0),
            Cause::Illegal => (6, 0),
            Cause::Segment => (12, 0),
            Cause::Alignment => (17, 0),
            // The selector's error code: an entry of the table of interrupts.
            _ if bytes[0] == INT => (13, u64::from(bytes[1]) << 3 | 2),
            _ if before == [INT, OVERFLOW] => (u32::from(OVERFLOW), 0),
            _ => (13, 0),
        };
        let addr = if matches!(cause, Cause::Protection | Cause::Segment | Cause::Breakpoint) { 0 } else { addr };
        Exception { cause, addr, number, detail }
    }
}

impl PullGate for Traced<'_> {
    fn resume(&mut self, frame: &mut Frame) -> Stop {
        let stop = self.step(frame);
        self.thread.set_in_guest(0);
        stop
    }
}

/// The exception of an access that is refused.
fn refusal(refused: Refused, access: Access, addr: usize, present: bool) -> Exception {
    let refusal = match refused {
        Refused::Unmapped => Refusal::Unmapped,
        Refused::Denied => Refusal::Rights,
        Refused::BeyondEnd | Refused::NoMemory | Refused::Failed => Refusal::BeyondEnd,
    };
    let present = if present { PRESENT } else { 0 };
    let (access, tried) = match access {
        Access::Read => (space::Access::Load, 0),
        Access::Write => (space::Access::Store, ERROR_STORE),
        Access::Execute => (space::Access::Fetch, ERROR_FETCH),
    };
    Exception { cause: Cause::Page { access, refusal }, addr, number: PAGE_FAULT, detail: USER | present | tried }
}
