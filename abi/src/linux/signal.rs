//! Signals as the interface has them: numbers, codes, `siginfo_t`, `struct sigaction`, the x86-64 signal frame.
//!
//! Source: signal(7), sigaction(2), and the layouts of asm/siginfo.h, asm/sigcontext.h, asm/ucontext.h.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

macro_rules! numbers {
    ($($name:ident = $n:literal,)*) => {
        $(pub const $name: u32 = $n;)*

        /// The symbolic name of a standard signal, "SIGRT_n" being the caller's to write.
        pub fn name(signal: u32) -> Option<&'static str> {
            match signal { $($n => Some(stringify!($name)),)* _ => None }
        }
    };
}

numbers! {
    SIGHUP = 1, SIGINT = 2, SIGQUIT = 3, SIGILL = 4, SIGTRAP = 5, SIGABRT = 6, SIGBUS = 7, SIGFPE = 8,
    SIGKILL = 9, SIGUSR1 = 10, SIGSEGV = 11, SIGUSR2 = 12, SIGPIPE = 13, SIGALRM = 14, SIGTERM = 15, SIGSTKFLT = 16,
    SIGCHLD = 17, SIGCONT = 18, SIGSTOP = 19, SIGTSTP = 20, SIGTTIN = 21, SIGTTOU = 22, SIGURG = 23, SIGXCPU = 24,
    SIGXFSZ = 25, SIGVTALRM = 26, SIGPROF = 27, SIGWINCH = 28, SIGIO = 29, SIGPWR = 30, SIGSYS = 31,
}

/// The first signal that queues.
pub const SIGRTMIN: u32 = 32;
/// The last signal.
pub const SIGMAX: u32 = 64;

/// `sa_flags`.
pub mod sa {
    pub const NOCLDSTOP: u64 = 1;
    pub const NOCLDWAIT: u64 = 2;
    pub const SIGINFO: u64 = 4;
    pub const RESTORER: u64 = 0x0400_0000;
    pub const ONSTACK: u64 = 0x0800_0000;
    pub const RESTART: u64 = 0x1000_0000;
    pub const NODEFER: u64 = 0x4000_0000;
    pub const RESETHAND: u64 = 0x8000_0000;
    /// The kernel's own mark on a handler set by a call of the i386 ABI: its frames are those of 32-bit code.
    pub const COMPAT: u64 = 1 << 32;
    /// Flags this kernel knows; SA_UNSUPPORTED (0x400) is cleared from what sigaction(2) gives back.
    pub const KNOWN: u64 = 0xdc00_0007;
}

/// `sa_handler` values with a meaning of their own.
pub const SIG_DFL: u64 = 0;
pub const SIG_IGN: u64 = 1;

/// `si_code`: who made a signal.
pub mod si {
    pub const USER: i32 = 0;
    pub const KERNEL: i32 = 0x80;
    pub const QUEUE: i32 = -1;
    pub const TIMER: i32 = -2;
    pub const MESGQ: i32 = -3;
    pub const ASYNCIO: i32 = -4;
    pub const SIGIO: i32 = -5;
    pub const TKILL: i32 = -6;
    pub const CLD_EXITED: i32 = 1;
    pub const CLD_KILLED: i32 = 2;
    pub const CLD_DUMPED: i32 = 3;
    pub const CLD_TRAPPED: i32 = 4;
    pub const CLD_STOPPED: i32 = 5;
    pub const CLD_CONTINUED: i32 = 6;
    pub const SEGV_MAPERR: i32 = 1;
    pub const ILL_ILLOPN: i32 = 2;
    pub const ILL_ILLTRP: i32 = 4;
    pub const ILL_PRVOPC: i32 = 5;
    pub const FPE_INTDIV: i32 = 1;
    pub const FPE_INTOVF: i32 = 2;
    pub const FPE_FLTDIV: i32 = 3;
    pub const FPE_FLTOVF: i32 = 4;
    pub const FPE_FLTUND: i32 = 5;
    pub const FPE_FLTRES: i32 = 6;
    pub const FPE_FLTINV: i32 = 7;
    pub const SEGV_ACCERR: i32 = 2;
    pub const SEGV_PKUERR: i32 = 4;
    pub const BUS_ADRALN: i32 = 1;
    pub const BUS_ADRERR: i32 = 2;
    pub const BUS_MCEERR_AR: i32 = 4;
    pub const TRAP_BRKPT: i32 = 1;
    pub const TRAP_TRACE: i32 = 2;
    pub const TRAP_HWBKPT: i32 = 4;
    pub const POLL_IN: i32 = 1;
    pub const POLL_OUT: i32 = 2;
    pub const POLL_MSG: i32 = 3;
    pub const POLL_ERR: i32 = 4;
    pub const POLL_HUP: i32 = 6;
    pub const SYS_SECCOMP: i32 = 1;
}

/// `siginfo_t`: 128 bytes, what a signal carries.
#[repr(C, align(8))]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SigInfo {
    pub signo: i32,
    pub errno: i32,
    pub code: i32,
    _pad: i32,
    /// The union: which member depends on signal and code. Offsets below count from the start of the structure.
    fields: [u8; 112],
}

const _: () = assert!(size_of::<SigInfo>() == 128);

impl SigInfo {
    /// A signal with a code and nothing else.
    pub const fn new(signal: u32, code: i32) -> SigInfo {
        SigInfo { signo: signal as i32, errno: 0, code, _pad: 0, fields: [0; 112] }
    }

    /// kill(2) and its variants: `code` is [`si::USER`], [`si::TKILL`] or [`si::QUEUE`].
    pub fn by_process(signal: u32, code: i32, pid: u32, uid: u32) -> SigInfo {
        SigInfo::new(signal, code).with_u32(16, pid).with_u32(20, uid)
    }

    /// SIGCHLD (or the exit signal of clone): `status` is the exit code or the signal; times in clock ticks.
    pub fn child(signal: u32, code: i32, pid: u32, uid: u32, status: i32, utime: u64, stime: u64) -> SigInfo {
        SigInfo::by_process(signal, code, pid, uid).with_u32(24, status as u32).with_u64(32, utime).with_u64(40, stime)
    }

    /// A fault at `addr`.
    pub fn fault(signal: u32, code: i32, addr: u64) -> SigInfo {
        SigInfo::new(signal, code).with_u64(16, addr)
    }

    /// A timer's expiry: its id, how many expiries it stands for beyond the first, and its value.
    pub fn timer(signal: u32, id: i32, overrun: i32, value: u64) -> SigInfo {
        SigInfo::new(signal, si::TIMER).with_u32(16, id as u32).with_u32(20, overrun as u32).with_u64(24, value)
    }

    /// Readiness of a descriptor (F_SETSIG): `band` is poll(2) bits.
    pub fn poll(signal: u32, code: i32, band: u64, fd: i32) -> SigInfo {
        SigInfo::new(signal, code).with_u64(16, band).with_u32(24, fd as u32)
    }

    /// The same with a value (sigqueue(3)).
    pub fn with_value(self, value: u64) -> SigInfo {
        self.with_u64(24, value)
    }

    fn with_u32(mut self, offset: usize, value: u32) -> SigInfo {
        self.fields[offset - 16..offset - 12].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn with_u64(mut self, offset: usize, value: u64) -> SigInfo {
        self.fields[offset - 16..offset - 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn u32_at(&self, offset: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.fields[offset - 16..offset - 12]);
        u32::from_ne_bytes(bytes)
    }

    fn u64_at(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.fields[offset - 16..offset - 8]);
        u64::from_ne_bytes(bytes)
    }

    /// The signal number.
    pub fn signal(&self) -> u32 {
        self.signo as u32
    }

    /// `si_pid` (sender, child).
    pub fn pid(&self) -> u32 {
        self.u32_at(16)
    }

    /// `si_uid`.
    pub fn uid(&self) -> u32 {
        self.u32_at(20)
    }

    /// `si_status` of a child.
    pub fn status(&self) -> i32 {
        self.u32_at(24) as i32
    }

    /// `si_utime` and `si_stime` of a child, clock ticks.
    pub fn child_times(&self) -> (u64, u64) {
        (self.u64_at(32), self.u64_at(40))
    }

    /// `si_value` (also `si_ptr`; `si_int` is its low half).
    pub fn value(&self) -> u64 {
        self.u64_at(24)
    }

    /// `si_addr` of a fault.
    pub fn addr(&self) -> u64 {
        self.u64_at(16)
    }

    /// `si_timerid` and `si_overrun`.
    pub fn timer_fields(&self) -> (i32, i32) {
        (self.u32_at(16) as i32, self.u32_at(20) as i32)
    }

    /// Replaces `si_overrun`, known only when a timer's signal is taken.
    pub fn set_overrun(&mut self, overrun: i32) {
        *self = self.with_u32(20, overrun as u32);
    }

    /// `si_band` and `si_fd`.
    pub fn poll_fields(&self) -> (u64, i32) {
        (self.u64_at(16), self.u32_at(24) as i32)
    }
}

impl core::fmt::Debug for SigInfo {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "signal {} code {}", self.signo, self.code)
    }
}

/// `struct kernel_sigaction`: what rt_sigaction(2) takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SigAction {
    pub handler: u64,
    pub flags: u64,
    pub restorer: u64,
    pub mask: u64,
}

/// `stack_t` (sigaltstack(2)).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct StackT {
    pub sp: u64,
    pub flags: u32,
    pub _pad: u32,
    pub size: u64,
}

/// `ss_flags`.
pub mod ss {
    pub const ONSTACK: u32 = 1;
    pub const DISABLE: u32 = 2;
    pub const AUTODISARM: u32 = 1 << 31;
}

/// Least size of an alternate stack.
pub const MINSIGSTKSZ: u64 = 2048;

/// `struct sigcontext`, 64 bit: the registers in a signal frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SigContext {
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rsp: u64,
    pub rip: u64,
    pub eflags: u64,
    pub cs: u16,
    pub gs: u16,
    pub fs: u16,
    pub ss: u16,
    pub err: u64,
    pub trapno: u64,
    pub oldmask: u64,
    pub cr2: u64,
    /// Address of the saved vector and floating-point state, 0 when there is none.
    pub fpstate: u64,
    pub reserved: [u64; 8],
}

/// `uc_flags`: the frame has extended state; `ss` is stored; `ss` is to be restored strictly.
pub const UC_FP_XSTATE: u64 = 1;
pub const UC_SIGCONTEXT_SS: u64 = 2;
pub const UC_STRICT_RESTORE_SS: u64 = 4;

/// `struct ucontext`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct UContext {
    pub flags: u64,
    pub link: u64,
    pub stack: StackT,
    pub mcontext: SigContext,
    pub sigmask: u64,
}

/// `struct rt_sigframe`: what a handler finds on its stack, return address first.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RtSigFrame {
    pub pretcode: u64,
    pub uc: UContext,
    pub info: SigInfo,
}

const _: () = {
    assert!(size_of::<SigContext>() == 256);
    assert!(size_of::<UContext>() == 304);
    assert!(size_of::<RtSigFrame>() == 440);
};

/// The software-reserved part of the FXSAVE area in a signal frame (`struct _fpx_sw_bytes`, at offset 464 of the area): gives
/// the size of the whole state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct FpxSwBytes {
    pub magic1: u32,
    /// Bytes of the state and the closing magic number.
    pub extended_size: u32,
    pub xfeatures: u64,
    /// Bytes of the state.
    pub xstate_size: u32,
    pub padding: [u32; 7],
}

const _: () = assert!(size_of::<FpxSwBytes>() == 48);

/// Where [`FpxSwBytes`] is in the FXSAVE area.
pub const FPX_SW_OFFSET: usize = 464;
/// In [`FpxSwBytes::magic1`].
pub const FP_XSTATE_MAGIC1: u32 = 0x4650_5853;
/// Behind the state.
pub const FP_XSTATE_MAGIC2: u32 = 0x4650_5845;

/// `struct signalfd_siginfo`: what a read of a signalfd gives.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SignalFdInfo {
    pub signo: u32,
    pub errno: i32,
    pub code: i32,
    pub pid: u32,
    pub uid: u32,
    pub fd: i32,
    pub tid: u32,
    pub band: u32,
    pub overrun: u32,
    pub trapno: u32,
    pub status: i32,
    pub int: i32,
    pub ptr: u64,
    pub utime: u64,
    pub stime: u64,
    pub addr: u64,
    pub addr_lsb: u16,
    pub _pad2: u16,
    pub syscall: i32,
    pub call_addr: u64,
    pub arch: u32,
    pub _pad: [u8; 28],
}

const _: () = assert!(size_of::<SignalFdInfo>() == 128);
