//! A host thread in a guest's process, as the thread of the kernel's that traces it has it.

use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::process::wait::NOHANG;
use janua_abi::linux::ptrace::{NT_X86_XSTATE, event, option, request};
use janua_abi::linux::signal::si::KERNEL as SI_KERNEL;
use janua_abi::linux::signal::{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
use janua_abi::linux::{Errno, Result};
use janua_entry::hosted::KICK;
use janua_paging::{PAGE, PageFrame};
use janua_platform_linux::sys::{self, nr};
use janua_port::Frame;

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
    /// A call; the frame has its number.
    Call,
    /// An exception, as the host's signal tells of it.
    Fault { signal: u32, code: i32, addr: usize },
    /// Somebody wants the thread.
    Kicked,
}

/// The thread is not there any more: somebody outside has ended its process.
pub struct Lost;

/// The largest XSAVE area.
pub const XSTATE_MOST: usize = 16 << 10;

/// A host thread that is traced, and stopped whenever somebody has this.
pub struct Tracee {
    /// 0 before it is traced.
    pub tid: u32,
    pub regs: Regs,
    /// A kick came while it made calls for the kernel.
    kicked: bool,
}

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
    pub const fn none(regs: Regs) -> Tracee {
        Tracee { tid: 0, regs, kicked: false }
    }

    /// Begins to trace a thread that waits in the stub's code: on the thread that will go on to do so.
    pub fn seize(&mut self, tid: u32) -> core::result::Result<(), Lost> {
        // The stop before its end is reported at once; the end of a process' first thread waits for that of the others.
        let options = (option::EXITKILL | option::TRACESYSGOOD | option::TRACEEXIT) as usize;
        trace(request::SEIZE, tid, 0, options).map_err(|_| Lost)?;
        self.tid = tid;
        trace(request::INTERRUPT, tid, 0, 0).map_err(|_| Lost)?;
        loop {
            if self.stopped()?.1 == event::STOP {
                return Ok(());
            }
            self.go(request::CONT)?;
        }
    }

    /// Waits for the next stop: signal and event. When the thread is [`Lost`] it has its number still only if it stands at its end.
    fn stopped(&mut self) -> core::result::Result<(u32, u32), Lost> {
        const STOPPED: u32 = 0x7f;
        match if self.tid == 0 { Err(Errno::ECHILD) } else { wait(self.tid) } {
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

    /// Runs user code from its registers on until it stops.
    pub fn run(&mut self) -> core::result::Result<Halt, Lost> {
        if core::mem::take(&mut self.kicked) {
            return Ok(Halt::Kicked);
        }
        let mut regs = self.regs;
        // The host is not to restart anything.
        regs.frame.orig_rax = u64::MAX;
        match trace(request::SETREGS, self.tid, 0, &raw const regs as usize) {
            Ok(_) => {}
            // Registers that no program can have: the processor would refuse to go on with them.
            Err(Errno::EIO) => return Ok(Halt::Fault { signal: SIGSEGV, code: SI_KERNEL, addr: 0 }),
            Err(_) => return Err(Lost),
        }
        self.go(request::SYSEMU)?;
        let (signal, event) = self.stopped()?;
        self.regs = self.get()?;
        const CALL: u32 = SIGTRAP | 0x80;
        if signal == CALL {
            return Ok(Halt::Call);
        }
        self.regs.frame.orig_rax = u64::MAX;
        if event == 0 && matches!(signal, SIGSEGV | SIGBUS | SIGILL | SIGFPE | SIGTRAP) {
            let info = self.info()?;
            // What is sent by a process has another code.
            if info.code > 0 {
                return Ok(Halt::Fault { signal, code: info.code, addr: info.addr as usize });
            }
        }
        Ok(Halt::Kicked)
    }

    fn info(&mut self) -> core::result::Result<Info, Lost> {
        let mut info = Info { signal: 0, errno: 0, code: 0, pad: 0, addr: 0, rest: [0; 13] };
        trace(request::GETSIGINFO, self.tid, 0, &raw mut info as usize).map_err(|_| Lost)?;
        Ok(info)
    }

    /// Runs code of the stub's up to its `int3`: rbx and the result.
    fn serve(&mut self, regs: &Regs) -> core::result::Result<(usize, isize), Lost> {
        self.set(regs)?;
        loop {
            self.go(request::CONT)?;
            let (signal, event) = self.stopped()?;
            if event == 0 && signal == SIGTRAP {
                let regs = self.get()?;
                return Ok((regs.frame.rbx as usize, regs.frame.rax as isize));
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
        for part in requests.chunks(stub::MOST) {
            let place = Physical::pointer(page).cast::<Request>();
            for (at, request) in part.iter().enumerate() {
                // SAFETY: within the page, which nobody else writes; guests' processes can only read it.
                unsafe { place.add(at).write_volatile(*request) };
            }
            let mut regs = Tracee::stub_regs(stub::many());
            let end = stub::requests() + size_of_val(part);
            (regs.frame.rbx, regs.frame.rbp) = (stub::requests() as u64, end as u64);
            let (at, _) = self.serve(&regs)?;
            if at != end {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lets the thread end by itself, untraced.
    pub fn end(&mut self) {
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

    /// Its vector and floating-point registers, in the host's form: how many bytes.
    pub fn xstate(&mut self, out: &mut [u8; XSTATE_MOST]) -> Result<usize> {
        let mut range = [out.as_mut_ptr() as usize, XSTATE_MOST];
        trace(request::GETREGSET, self.tid, NT_X86_XSTATE, range.as_mut_ptr() as usize)?;
        Ok(range[1])
    }

    /// Sets them, from what [`Tracee::xstate`] has given, changed perhaps. EINVAL.
    pub fn set_xstate(&mut self, area: &[u8]) -> Result<()> {
        let range = [area.as_ptr() as usize, area.len()];
        trace(request::SETREGSET, self.tid, NT_X86_XSTATE, range.as_ptr() as usize).map(|_| ())
    }

    /// Sets an entry of its descriptor table (`struct user_desc`).
    pub fn set_thread_area(&mut self, entry: u32, descriptor: usize) -> Result<()> {
        trace(request::SET_THREAD_AREA, self.tid, entry as usize, descriptor).map(|_| ())
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
