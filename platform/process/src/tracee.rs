//! A host thread in a guest's process, as the thread of the kernel's that traces it has it.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

use janua_abi::linux::process::wait::NOHANG;
use janua_abi::linux::ptrace::{NT_X86_XSTATE, event, option, request};
use janua_abi::linux::signal::si::KERNEL as SI_KERNEL;
use janua_abi::linux::signal::{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
use janua_abi::linux::{Errno, Result};
use janua_entry::hosted::KICK;
use janua_paging::{PAGE, PageFrame};
use janua_platform_linux::sys::{self, nr};
use janua_port::Frame;

use crate::look::Looks;
use crate::mailbox::{self, Mailbox, State, Words};
use crate::near::{Choice, Near};
use crate::physical::Physical;
use crate::stub::{self, Request};

/// `struct user_regs_struct`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Regs {
    pub frame: Frame,
    pub fs_base: u64,
    pub gs_base: u64,
    pub ds: u64,
    pub es: u64,
    pub fs: u64,
    pub gs: u64,
}

/// What the host calls `siginfo_t`, as far as it is used.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct Info {
    pub signal: i32,
    pub errno: i32,
    pub code: i32,
    pad: i32,
    pub addr: u64,
    rest: [u64; 13],
}

/// Why user code stopped.
pub enum Halt {
    /// A call by an instruction; the frame has its number.
    Call,
    /// A call by the mailbox.
    Asked,
    /// An exception, as the host's signal reports it.
    Fault { signal: u32, code: i32, addr: usize },
    /// Somebody wants the thread.
    Kicked,
}

/// The thread is not there any more: somebody outside has ended its process.
pub struct Lost;

/// The largest XSAVE area.
pub const XSTATE_MOST: usize = 16 << 10;

/// Where a host thread is while the kernel's does anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// Stopped, and the registers are known.
    Stopped,
    /// Stopped in a call by its mailbox, and nobody has asked for the registers yet.
    Calls,
    /// In a call by its mailbox: it looks for the answer, unless it does not keep to that.
    Looks,
}

/// A host thread that is traced, and stopped whenever somebody needs it to be.
pub struct Tracee {
    /// 0 before it is traced.
    pub tid: u32,
    regs: Regs,
    /// A kick came while it made calls for the kernel.
    kicked: bool,
    at: At,
    /// Where its rewritten calls come, if it has such a place.
    mailbox: Option<Mailbox>,
    /// The frame of the call it is in, by the mailbox.
    asked: Frame,
    looks: Looks,
    /// What the guest knows of looking ([`Mailbox::set_patience`]).
    patient: bool,
    /// False from each stop on until somebody else sets it.
    runs: Arc<AtomicBool>,
    near: Near,
    /// What the host is to call it, with a zero at its end, and whether it does.
    name: [u8; NAME],
    is_named: bool,
}

/// Bytes of a thread's name for the host.
pub const NAME: usize = 16;

/// wait4(2) for any kind of thread.
const WALL: usize = 0x4000_0000;

fn trace(request: u32, tid: u32, addr: usize, data: usize) -> Result<usize> {
    // SAFETY: data that is an address is that of a structure of the caller's, which the request fits.
    unsafe { sys::raw(nr::PTRACE, [request as usize, tid as usize, addr, data, 0, 0]) }
}

/// Waits for a change of a child's or a tracee's: its status. ECHILD.
pub fn wait(tid: u32) -> Result<u32> {
    let mut status = 0u32;
    // SAFETY: the word is ours.
    unsafe { sys::raw_retry(nr::WAIT4, [tid as usize, &raw mut status as usize, WALL, 0, 0, 0]) }?;
    Ok(status)
}

/// Whether a child has ended that nobody traces; its status is taken then.
pub fn has_ended(pid: u32) -> bool {
    // SAFETY: no memory is involved.
    let waited = unsafe { sys::raw(nr::WAIT4, [pid as usize, 0, WALL | NOHANG as usize, 0, 0, 0]) };
    matches!(waited, Ok(1..) | Err(Errno::ECHILD))
}

impl Tracee {
    /// None as yet. `runs` becomes false whenever it has stopped.
    pub fn none(regs: Regs, runs: Arc<AtomicBool>) -> Tracee {
        let asked = Frame::start(0, 0);
        Tracee {
            tid: 0,
            regs,
            kicked: false,
            at: At::Stopped,
            mailbox: None,
            asked,
            looks: Looks::NEW,
            patient: false,
            runs,
            near: Near::new(),
            name: [0; NAME],
            is_named: true,
        }
    }

    /// The same for a thread that goes on in another process.
    pub fn next(regs: Regs, runs: Arc<AtomicBool>, choice: &Choice) -> Tracee {
        Tracee { near: Near::next(choice), ..Tracee::none(regs, runs) }
    }

    /// The host is to call it so, from its next trip on.
    pub fn set_name(&mut self, name: [u8; NAME]) {
        self.is_named = name == [0; NAME];
        self.name = name;
    }

    pub fn name(&self) -> [u8; NAME] {
        self.name
    }

    /// Who chooses where it runs.
    pub fn choice(&self) -> Choice {
        self.near.choice()
    }

    /// From now on its calls may come by a mailbox.
    pub fn set_mailbox(&mut self, mailbox: Mailbox) {
        mailbox.set(State::Idle);
        mailbox.set_patience(false);
        (self.mailbox, self.patient) = (Some(mailbox), false);
    }

    pub fn mailbox(&self) -> Option<Mailbox> {
        self.mailbox
    }

    /// Its registers; those of the frame are the caller's to keep.
    pub fn regs(&mut self) -> core::result::Result<&mut Regs, Lost> {
        self.halt()?;
        Ok(&mut self.regs)
    }

    /// Whether it is in a call by its mailbox that can be completed there.
    pub fn is_asked(&self) -> bool {
        self.at != At::Stopped
    }

    /// Whether it may be running: it looks for the answer to a call, or should.
    pub fn looks(&self) -> bool {
        self.at == At::Looks
    }

    /// Begins to trace a thread that waits in the stub's code: on the thread that will go on to do so.
    pub fn seize(&mut self, tid: u32) -> core::result::Result<(), Lost> {
        // The stop before its end is reported at once; the end of a process' first thread waits for that of the others.
        let options = (option::EXITKILL | option::TRACESYSGOOD | option::TRACEEXIT) as usize;
        trace(request::SEIZE, tid, 0, options).map_err(|_| Lost)?;
        self.tid = tid;
        self.near.approach(tid);
        trace(request::INTERRUPT, tid, 0, 0).map_err(|_| Lost)?;
        loop {
            if self.stopped()?.1 == event::STOP {
                return Ok(());
            }
            self.go(request::CONT)?;
        }
    }

    /// Whether the host lets the caller trace it.
    pub fn is_traced(&self) -> bool {
        self.tid != 0
    }

    /// Waits for the next stop: signal and event. When the thread is [`Lost`] it has its number still only if it is at its end.
    fn stopped(&mut self) -> core::result::Result<(u32, u32), Lost> {
        let status = if self.tid == 0 { Err(Errno::ECHILD) } else { wait(self.tid) };
        self.reported(status)
    }

    /// The same if there is one already.
    fn stopped_by_now(&mut self) -> core::result::Result<Option<(u32, u32)>, Lost> {
        let mut status = 0u32;
        if self.tid == 0 {
            return Err(Lost);
        }
        // SAFETY: the word is ours.
        let waited =
            unsafe { sys::raw(nr::WAIT4, [self.tid as usize, &raw mut status as usize, WALL | NOHANG as usize, 0, 0, 0]) };
        match waited {
            Ok(0) | Err(Errno::EINTR) => Ok(None),
            Ok(_) => self.reported(Ok(status)).map(Some),
            Err(errno) => self.reported(Err(errno)).map(Some),
        }
    }

    fn reported(&mut self, status: Result<u32>) -> core::result::Result<(u32, u32), Lost> {
        const STOPPED: u32 = 0x7f;
        self.looks.ends();
        self.near.stops();
        self.runs.store(false, Ordering::SeqCst);
        match status {
            Ok(status) if status & 0xff == STOPPED && status >> 16 == event::EXIT => Err(Lost),
            Ok(status) if status & 0xff == STOPPED => Ok((status >> 8 & 0xff, status >> 16)),
            _ => {
                self.tid = 0;
                Err(Lost)
            }
        }
    }

    fn go(&mut self, how: u32) -> core::result::Result<(), Lost> {
        trace(how, self.tid, 0, 0).map(|_| ()).map_err(|_| Lost)
    }

    fn set(&mut self, regs: &Regs) -> core::result::Result<(), Lost> {
        trace(request::SETREGS, self.tid, 0, &raw const *regs as usize).map(|_| ()).map_err(|_| Lost)
    }

    fn get(&mut self) -> core::result::Result<Regs, Lost> {
        let mut regs = Regs::default();
        trace(request::GETREGS, self.tid, 0, &raw mut regs as usize).map_err(|_| Lost)?;
        Ok(regs)
    }

    /// What must be done before it can go on from this frame: it may be stopped for that.
    pub fn prepare(&mut self, frame: &Frame) -> core::result::Result<(), Lost> {
        if same_but_for_result(&self.asked, frame) { Ok(()) } else { self.halt() }
    }

    /// Runs user code from the frame on, for which it is prepared, until it stops or has left a call in its mailbox.
    pub fn run(&mut self, frame: &mut Frame) -> core::result::Result<Halt, Lost> {
        if core::mem::take(&mut self.kicked) {
            return Ok(Halt::Kicked);
        }
        if self.at != At::Stopped {
            return self.answer(frame, frame.rax);
        }
        let mut regs = Regs { frame: *frame, ..self.regs };
        // The host is not to restart anything.
        regs.frame.orig_rax = u64::MAX;
        match trace(request::SETREGS, self.tid, 0, &raw const regs as usize) {
            Ok(_) => {}
            // Registers that no program can have: the processor would refuse to go on with them.
            Err(Errno::EIO) => return Ok(Halt::Fault { signal: SIGSEGV, code: SI_KERNEL, addr: 0 }),
            Err(_) => return Err(Lost),
        }
        self.go_on(frame)
    }

    /// Completes the call that came by the mailbox, and goes on as [`Tracee::run`].
    pub fn answer(&mut self, frame: &mut Frame, result: u64) -> core::result::Result<Halt, Lost> {
        let Some(mailbox) = &self.mailbox else { return Err(Lost) };
        mailbox.answer(result);
        match core::mem::replace(&mut self.at, At::Stopped) {
            At::Looks => self.watch(frame),
            // It goes on where it is, and finds the answer.
            At::Calls | At::Stopped => self.go_on(frame),
        }
    }

    /// The call that came by the mailbox.
    pub fn words(&self) -> Words {
        self.mailbox.as_ref().map_or(Words { number: u64::MAX, words: [0; 6] }, Mailbox::call)
    }

    /// Its frame, with words that have been read.
    pub fn asked(&mut self, call: &Words) -> Frame {
        if let Some(mailbox) = &self.mailbox {
            self.asked = mailbox.frame(call);
        }
        self.asked
    }

    fn emulate(&mut self) -> core::result::Result<(), Lost> {
        if self.mailbox.is_some() && self.looks.is_likely() {
            if self.near.part(self.tid) {
                self.looks.moves();
            }
        } else {
            self.near.approach(self.tid);
        }
        self.near.runs();
        self.go(request::SYSEMU)?;
        if self.mailbox.is_some() {
            self.looks.begins();
        }
        Ok(())
    }

    fn go_on(&mut self, frame: &mut Frame) -> core::result::Result<Halt, Lost> {
        self.emulate()?;
        self.watch(frame)
    }

    /// Waits until the thread, which runs user code, stops or has left a call.
    fn watch(&mut self, frame: &mut Frame) -> core::result::Result<Halt, Lost> {
        const CALL: u32 = SIGTRAP | 0x80;
        let Some((signal, event)) = self.change()? else {
            self.at = At::Looks;
            return Ok(Halt::Asked);
        };
        if signal == CALL && self.mailbox.is_some_and(|mailbox| mailbox.has_call()) {
            self.looks.missed();
            self.at = At::Calls;
            return Ok(Halt::Asked);
        }
        self.looks.disturbed();
        self.regs = self.get()?;
        *frame = self.regs.frame;
        let inside = mailbox::holds(frame.program_counter());
        if let Some(mailbox) = self.mailbox.filter(|_| inside) {
            let stops = signal == CALL && mailbox::is_stop(frame.program_counter());
            if stops && !mailbox.has_answer() {
                // Whatever its word holds now: there is nothing else that it can mean.
                self.at = At::Calls;
                return Ok(Halt::Asked);
            }
            mailbox.leave(frame);
            if stops || event == 0 && signal == SIGTRAP {
                // An answer that was not waited for; or the call is made step by step, and by an instruction then.
                frame.orig_rax = u64::MAX;
                return Ok(Halt::Kicked);
            }
        }
        if signal == CALL {
            return Ok(Halt::Call);
        }
        frame.orig_rax = u64::MAX;
        if event == 0 && matches!(signal, SIGSEGV | SIGBUS | SIGILL | SIGFPE | SIGTRAP) {
            let info = self.info()?;
            // What is sent by a process has another code.
            if info.code > 0 {
                return Ok(Halt::Fault { signal, code: info.code, addr: info.addr as usize });
            }
        }
        Ok(Halt::Kicked)
    }

    fn set_patience(&mut self, looked_at: bool) {
        if let Some(mailbox) = self.mailbox.filter(|_| self.patient != looked_at) {
            mailbox.set_patience(looked_at);
            self.patient = looked_at;
        }
    }

    /// Waits for a call in the mailbox (none) or a stop.
    fn change(&mut self) -> core::result::Result<Option<(u32, u32)>, Lost> {
        let Some(mailbox) = self.mailbox else { return self.stopped().map(Some) };
        if self.looks.begin() {
            self.set_patience(true);
            loop {
                if self.looks.turns(|| mailbox.has_call()) {
                    self.near.settle(self.tid);
                    return Ok(None);
                }
                if let Some(stop) = self.stopped_by_now()? {
                    return Ok(Some(stop));
                }
                if self.looks.is_over() {
                    break;
                }
            }
            self.near.settle(self.tid);
        }
        self.set_patience(false);
        // Who has not seen that yet has left its call before, or stops after a while.
        fence(Ordering::SeqCst);
        if mailbox.has_call() {
            return Ok(None);
        }
        self.stopped().map(Some)
    }

    /// Makes sure that the thread is stopped, and its registers are known: in the middle of a call that came by its mailbox.
    pub fn halt(&mut self) -> core::result::Result<(), Lost> {
        /// How often the kernel looks before it sees to it.
        const LOOKS: u32 = 64;
        let Some(mailbox) = self.mailbox.filter(|_| self.at != At::Stopped) else { return Ok(()) };
        if core::mem::replace(&mut self.at, At::Stopped) == At::Looks {
            mailbox.set(State::Stop);
            let mut looks = 0;
            let stop = loop {
                if let Some(stop) = self.stopped_by_now()? {
                    break stop;
                }
                if looks == LOOKS {
                    // It does not do what it should, or has no processor.
                    trace(request::INTERRUPT, self.tid, 0, 0).map_err(|_| Lost)?;
                    break self.stopped()?;
                }
                let _ = sys::words(nr::SCHED_YIELD, [0; 6]);
                looks += 1;
            };
            self.kicked |= stop.0 == KICK;
        }
        mailbox.set(State::Idle);
        self.regs = self.get()?;
        Ok(())
    }

    fn info(&mut self) -> core::result::Result<Info, Lost> {
        let mut info = Info { signal: 0, errno: 0, code: 0, pad: 0, addr: 0, rest: [0; 13] };
        trace(request::GETSIGINFO, self.tid, 0, &raw mut info as usize).map_err(|_| Lost)?;
        Ok(info)
    }

    /// Runs code of the stub's up to its `int3`: rbx and the result.
    fn serve(&mut self, regs: &Regs) -> core::result::Result<(usize, isize), Lost> {
        self.set(regs)?;
        if !self.looks.is_likely() {
            self.near.approach(self.tid);
        }
        loop {
            self.go(request::CONT)?;
            let (signal, event) = self.stopped()?;
            if event == 0 && signal == SIGTRAP {
                let regs = self.get()?;
                // Anybody with the user's rights may have sent one.
                if stub::is_done(regs.frame.rip as usize) {
                    return Ok((regs.frame.rbx as usize, regs.frame.rax as isize));
                }
            }
            self.kicked |= signal == KICK;
        }
    }

    /// What registers are in the stub's code: none of the guest's, of which the host might refuse some.
    fn stub_regs(rip: usize) -> Regs {
        let mut frame = Frame::start(rip as u64, 0);
        frame.orig_rax = u64::MAX;
        Regs { frame, ..Regs::default() }
    }

    /// Makes one host call in the guest's process.
    pub fn call(&mut self, request: &Request) -> core::result::Result<Result<usize>, Lost> {
        self.halt()?;
        let mut regs = Tracee::stub_regs(if request[0] == nr::CLONE.number() { stub::thread() } else { stub::one() });
        let frame = &mut regs.frame;
        let words = request.map(|word| word as u64);
        [frame.rax, frame.rdi, frame.rsi, frame.rdx, frame.r10, frame.r8, frame.r9, _] = words;
        let (_, result) = self.serve(&regs)?;
        Ok(Errno::from_raw(result))
    }

    /// Makes host calls in the guest's process, in one trip for each [`stub::MOST`]: false when one failed, behind which none was made.
    /// `page` is the process' page of requests.
    pub fn calls(&mut self, page: PageFrame, requests: &[Request]) -> core::result::Result<bool, Lost> {
        self.halt()?;
        let place = Physical::pointer(page);
        let mut rest = requests;
        while !rest.is_empty() {
            let mut count = 0;
            if !core::mem::replace(&mut self.is_named, true) {
                // SAFETY: as below.
                unsafe { place.add(stub::NAME_PLACE).cast::<[u8; NAME]>().write_volatile(self.name) };
                put(place, 0, &stub::name());
                count = 1;
            }
            let part;
            (part, rest) = rest.split_at(rest.len().min(stub::MOST - count));
            for request in part {
                put(place, count, request);
                count += 1;
            }
            let mut regs = Tracee::stub_regs(stub::many());
            let end = stub::requests() + count * size_of::<Request>();
            (regs.frame.rbx, regs.frame.rbp) = (stub::requests() as u64, end as u64);
            let served = self.serve(&regs);
            // The guest can read the page: it is not to learn what another in its process was, or will be, mapped to.
            (0..count).for_each(|at| put(place, at, &[0; _]));
            if served?.0 != end {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lets the thread end by itself, untraced.
    pub fn end(&mut self) {
        let _ = self.halt();
        let mut regs = Tracee::stub_regs(stub::one());
        regs.frame.rax = nr::EXIT.number() as u64;
        while self.tid != 0 {
            if self.set(&regs).is_ok() {
                let _ = trace(request::DETACH, self.tid, 0, 0);
                self.tid = 0;
            } else {
                // Somebody has ended it: it is on its way.
                let _ = self.stopped();
            }
        }
    }

    /// Lets the thread wait in the stub's code, untraced, as a new one does.
    pub fn rest(&mut self) -> core::result::Result<(), Lost> {
        self.halt()?;
        self.set(&Tracee::stub_regs(stub::rest()))?;
        trace(request::DETACH, self.tid, 0, 0).map_err(|_| Lost)?;
        self.tid = 0;
        Ok(())
    }

    /// Its vector and floating-point registers, in the host's form: how many bytes.
    pub fn xstate(&mut self, out: &mut [u8; XSTATE_MOST]) -> Result<usize> {
        self.halt().map_err(|Lost| Errno::ESRCH)?;
        let mut range = [out.as_mut_ptr() as usize, XSTATE_MOST];
        trace(request::GETREGSET, self.tid, NT_X86_XSTATE, range.as_mut_ptr() as usize)?;
        Ok(range[1])
    }

    /// Sets them, from what [`Tracee::xstate`] has given, changed perhaps. EINVAL.
    pub fn set_xstate(&mut self, area: &[u8]) -> Result<()> {
        self.halt().map_err(|Lost| Errno::ESRCH)?;
        let range = [area.as_ptr() as usize, area.len()];
        trace(request::SETREGSET, self.tid, NT_X86_XSTATE, range.as_ptr() as usize).map(|_| ())
    }

    /// Sets an entry of its descriptor table (`struct user_desc`).
    pub fn set_thread_area(&mut self, entry: u32, descriptor: usize) -> Result<()> {
        self.halt().map_err(|Lost| Errno::ESRCH)?;
        trace(request::SET_THREAD_AREA, self.tid, entry as usize, descriptor).map(|_| ())
    }
}

/// Puts a request into a page of them.
fn put(page: *mut u8, at: usize, request: &Request) {
    // SAFETY: within the page, which is a process' page of requests, and which nobody else writes; guests' processes can only read it.
    unsafe { page.cast::<Request>().add(at).write_volatile(*request) };
}

/// Whether user code that has one of these frames goes on as with the other, but for the result of its call.
fn same_but_for_result(one: &Frame, other: &Frame) -> bool {
    let words = |frame: &Frame| {
        let Frame { r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rcx, rdx, rsi, rdi, rip, cs, rflags, rsp, ss, .. } = *frame;
        [r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rcx, rdx, rsi, rdi, rip, cs, rflags, rsp, ss]
    };
    words(one) == words(other)
}

/// Whether a thread whose stops another thread of the kernel's takes is stopped, or ended, so that it runs no user code until that one lets it.
pub fn is_stopped(tid: u32) -> bool {
    /// P_PID; WSTOPPED, WEXITED, WNOWAIT; the signal of a change.
    const ID: usize = 1;
    const CHANGES: usize = 2 | 4 | 0x0100_0000;
    const CHANGED: u32 = janua_abi::linux::signal::SIGCHLD;
    let mut info = Info { signal: 0, errno: 0, code: 0, pad: 0, addr: 0, rest: [0; 13] };
    let options = WALL | NOHANG as usize | CHANGES;
    // SAFETY: the structure is ours.
    let waited = unsafe { sys::raw(nr::WAITID, [ID, tid as usize, &raw mut info as usize, options, 0, 0]) };
    match waited {
        Ok(_) => info.signal as u32 == CHANGED,
        Err(errno) => errno == Errno::ECHILD,
    }
}

/// Sleeps until the word is no longer `value`, or a moment.
pub fn moment(word: &AtomicU32, value: u32) {
    use janua_port::Clock;
    const MOMENT: u64 = 100_000;
    if word.load(Ordering::SeqCst) == value {
        let end = janua_platform_linux::clock::HostClock.monotonic() + MOMENT;
        janua_platform_linux::spawn::park(word, value, Some(end));
    }
}

const _: () = assert!(size_of::<Regs>() == 27 * 8 && size_of::<Info>() == 128 && PAGE.is_multiple_of(size_of::<Request>()));
