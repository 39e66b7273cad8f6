//! Signals: dispositions, `siginfo_t`, and the frames handlers find on their stack (asm/sigframe.h, uapi asm/sigcontext.h).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::structs;
use crate::linux::Result;
use crate::linux::layout::Layout;
use crate::linux::signal::{
    SIGBUS, SIGCHLD, SIGFPE, SIGILL, SIGIO, SIGSEGV, SIGSYS, SIGTRAP, SigAction, SigInfo, StackT, sa, si,
};
use crate::linux::time::SigEvent;

structs! {
    /// `struct compat_sigaction`
    SigAction32 (20) { handler: u32, flags: u32, restorer: u32, mask: [u32; 2], }
    /// `struct compat_old_sigaction` (sigaction(2) of old).
    OldSigAction32 (16) { handler: u32, mask: u32, flags: u32, restorer: u32, }
    /// `compat_stack_t`
    StackT32 (12) { sp: u32, flags: u32, size: u32, }
    /// `compat_siginfo_t`: the union follows three words.
    SigInfo32 (128) { signo: i32, errno: i32, code: i32, fields: [u32; 29], }
    /// `struct compat_sigevent`
    SigEvent32 (64) { value: u32, signo: i32, notify: i32, tid: i32, pad: [i32; 12], }
    /// `struct sigcontext_32`: a segment register takes the low half of its word.
    SigContext32 (88) {
        gs: u32,
        fs: u32,
        es: u32,
        ds: u32,
        edi: u32,
        esi: u32,
        ebp: u32,
        esp: u32,
        ebx: u32,
        edx: u32,
        ecx: u32,
        eax: u32,
        trapno: u32,
        err: u32,
        eip: u32,
        cs: u32,
        eflags: u32,
        esp_at_signal: u32,
        ss: u32,
        fpstate: u32,
        oldmask: u32,
        cr2: u32,
    }
    /// `struct ucontext_ia32`
    UContext32 (116) {
        flags: u32,
        link: u32,
        stack: StackT32,
        mcontext: SigContext32,
        sigmask: [u32; 2],
    }
    /// `struct rt_sigframe_ia32`: return address, the handler's three arguments, what two of them point to, code.
    RtSigFrame32 (268) {
        pretcode: u32,
        signal: i32,
        pinfo: u32,
        puc: u32,
        info: SigInfo32,
        uc: UContext32,
        /// The instructions of the return, which debuggers know a frame by; not executed.
        retcode: [u8; 8],
    }
    /// The head of `_fpstate_32`, as FSAVE stores it; FXSAVE's form follows.
    FpState32 (112) {
        cw: u32,
        sw: u32,
        tag: u32,
        ipoff: u32,
        cssel: u32,
        dataoff: u32,
        datasel: u32,
        registers: [[u16; 5]; 8],
        status: u16,
        /// 0: FXSAVE's form follows.
        magic: u16,
    }
}

/// `struct sigframe_ia32`, for handlers without SA_SIGINFO.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SigFrame32 {
    pub pretcode: u32,
    pub signal: i32,
    pub sc: SigContext32,
    /// Room of the floating-point state before it had a place of its own.
    pub unused: [[u32; 26]; 6],
    /// The upper half of the mask.
    pub extramask: u32,
    pub retcode: [u8; 8],
}

const _: () = assert!(size_of::<SigFrame32>() == 732);

impl Layout<SigAction> for SigAction32 {
    fn load(self) -> SigAction {
        SigAction {
            handler: self.handler.into(),
            flags: self.flags.into(),
            restorer: self.restorer.into(),
            mask: super::stat::whole(self.mask),
        }
    }
    fn store(value: &SigAction) -> Result<Self> {
        Ok(SigAction32 {
            handler: value.handler as u32,
            flags: (value.flags & !sa::COMPAT) as u32,
            restorer: value.restorer as u32,
            mask: super::stat::halves(value.mask),
        })
    }
}

impl Layout<SigAction> for OldSigAction32 {
    fn load(self) -> SigAction {
        SigAction {
            handler: self.handler.into(),
            flags: self.flags.into(),
            restorer: self.restorer.into(),
            mask: self.mask.into(),
        }
    }
    fn store(value: &SigAction) -> Result<Self> {
        Ok(OldSigAction32 {
            handler: value.handler as u32,
            mask: value.mask as u32,
            flags: (value.flags & !sa::COMPAT) as u32,
            restorer: value.restorer as u32,
        })
    }
}

impl Layout<StackT> for StackT32 {
    fn load(self) -> StackT {
        StackT { sp: self.sp.into(), flags: self.flags, _pad: 0, size: self.size.into() }
    }
    fn store(value: &StackT) -> Result<Self> {
        Ok(StackT32 { sp: value.sp as u32, flags: value.flags, size: value.size as u32 })
    }
}

impl Layout<SigEvent> for SigEvent32 {
    fn load(self) -> SigEvent {
        SigEvent { value: self.value.into(), signo: self.signo, notify: self.notify, tid: self.tid, _pad: [0; 11] }
    }
    fn store(value: &SigEvent) -> Result<Self> {
        Ok(SigEvent32 { value: value.value as u32, signo: value.signo, notify: value.notify, tid: value.tid, pad: [0; 12] })
    }
}

/// Which member of the union a signal's code means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    /// Sender and value, or nothing: `_kill`, `_rt`.
    Rt,
    Timer,
    Poll,
    Child,
    Fault,
    Sys,
}

fn member(signal: u32, code: i32) -> Member {
    match (signal, code) {
        (_, si::TIMER) => Member::Timer,
        (_, si::SIGIO) => Member::Poll,
        (_, ..=0 | si::KERNEL) => Member::Rt,
        (SIGILL | SIGFPE | SIGSEGV | SIGBUS | SIGTRAP, _) => Member::Fault,
        (SIGCHLD, _) => Member::Child,
        (SIGIO, _) => Member::Poll,
        (SIGSYS, _) => Member::Sys,
        // Readiness by another signal (F_SETSIG).
        (_, ..=si::POLL_HUP) => Member::Poll,
        _ => Member::Rt,
    }
}

impl Layout<SigInfo> for SigInfo32 {
    fn load(self) -> SigInfo {
        let signal = self.signo as u32;
        let f = &self.fields;
        let mut info = match member(signal, self.code) {
            Member::Timer => SigInfo::timer(signal, f[0] as i32, f[1] as i32, f[2].into()),
            Member::Poll => SigInfo::poll(signal, self.code, f[0].into(), f[1] as i32),
            Member::Child => SigInfo::child(signal, self.code, f[0], f[1], f[2] as i32, f[3].into(), f[4].into()),
            Member::Fault => SigInfo::fault(signal, self.code, f[0].into()),
            Member::Rt | Member::Sys => SigInfo::by_process(signal, self.code, f[0], f[1]).with_value(f[2].into()),
        };
        info.errno = self.errno;
        info
    }
    fn store(value: &SigInfo) -> Result<Self> {
        let mut out = SigInfo32 { signo: value.signo, errno: value.errno, code: value.code, ..SigInfo32::default() };
        let words: &mut [u32] = &mut out.fields;
        match member(value.signal(), value.code) {
            Member::Timer => {
                let (id, overrun) = value.timer_fields();
                words[..3].copy_from_slice(&[id as u32, overrun as u32, value.value() as u32]);
            }
            Member::Poll => {
                let (band, fd) = value.poll_fields();
                words[..2].copy_from_slice(&[band as u32, fd as u32]);
            }
            Member::Child => {
                let (user, system) = value.child_times();
                let reported = [value.pid(), value.uid(), value.status() as u32, user as u32, system as u32];
                words[..5].copy_from_slice(&reported);
            }
            Member::Fault => words[0] = value.addr() as u32,
            Member::Rt | Member::Sys => words[..3].copy_from_slice(&[value.pid(), value.uid(), value.value() as u32]),
        }
        Ok(out)
    }
}
