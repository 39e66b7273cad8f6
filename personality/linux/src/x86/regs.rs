//! The registers of a stopped tracee, as its tracer reads and sets them. They are copied at the stop and, if they have been changed,
//! taken back when the tracee goes on.

use alloc::vec::Vec;

use janua_abi::linux::i386::ptrace::{NT_PRXFPREG, USER_REGS32};
use janua_abi::linux::ptrace::{ARCH_I386, ARCH_X86_64, NT_PRFPREG, NT_PRSTATUS, NT_X86_XSTATE, SyscallInfo, USER_REGS};
use janua_abi::linux::{Errno, Result};
use janua_port::{Frame, Segments};

use crate::ptrace::Kind;
use crate::thread::ThreadExt;
use crate::x86::frame::{FXSAVE_SIZE, LEGACY_FEATURES, save_fpu};
use crate::x86::i386::x87;
use crate::{Seat, Thread};

/// Places in `struct user_regs_struct`.
mod at {
    pub const R10: usize = 7;
    pub const R9: usize = 8;
    pub const R8: usize = 9;
    pub const RAX: usize = 10;
    pub const RDX: usize = 12;
    pub const RSI: usize = 13;
    pub const RDI: usize = 14;
    pub const ORIG_RAX: usize = 15;
    pub const RIP: usize = 16;
    pub const CS: usize = 17;
    pub const EFLAGS: usize = 18;
    pub const RSP: usize = 19;
    pub const SS: usize = 20;
    pub const FS_BASE: usize = 21;
    pub const GS_BASE: usize = 22;
    pub const DS: usize = 23;
    pub const ES: usize = 24;
    pub const FS: usize = 25;
    pub const GS: usize = 26;
}

/// The places of an i386 `struct user_regs_struct` in the other: ebx ecx edx esi edi ebp eax ds es fs gs orig_eax eip cs eflags esp ss.
const I386: [usize; USER_REGS32] = [5, 11, 12, 13, 14, 4, 10, 23, 24, 25, 26, 15, 16, 17, 18, 19, 20];

/// The selectors of user code (64-bit, 32-bit) and of its stack.
const USER_CS: u64 = 0x33;
const USER32_CS: u64 = 0x23;
const USER_SS: u64 = 0x2b;

/// Where an XSAVE area names the components it holds, and where software names those there can be.
const PRESENT: usize = 512;
const POSSIBLE: usize = 464;

/// A tracee's registers.
#[derive(Default)]
pub struct Registers {
    /// `struct user_regs_struct`.
    pub general: [u64; USER_REGS],
    /// User code is 32-bit code.
    is_32: bool,
    /// The call it is in is one of the i386 ABI.
    is_compat_call: bool,
    fpu: Vec<u8>,
    changed: bool,
    fpu_changed: bool,
}

/// `struct user_regs_struct` of the calling thread, in whose memory `frame` is to be understood.
#[rustfmt::skip]
pub fn general(thread: &Thread, frame: &Frame) -> [u64; USER_REGS] {
    let mut general = [0; USER_REGS];
    let rip = thread.process().mm().map_or(frame.rip, |mm| mm.pc_shown(frame.rip as usize) as u64);
    let number = if frame.is_compat_call() { frame.orig_rax & 0xffff_ffff } else { frame.orig_rax };
    let first = [
        frame.r15, frame.r14, frame.r13, frame.r12, frame.rbp, frame.rbx, frame.r11, frame.r10, frame.r9, frame.r8, frame.rax,
        frame.rcx, frame.rdx, frame.rsi, frame.rdi, number, rip, frame.cs, frame.rflags, frame.rsp, frame.ss,
    ];
    general[..first.len()].copy_from_slice(&first);
    if let Ok(registers) = thread.registers() {
        general[at::FS_BASE] = registers.tls() as u64;
        general[at::GS_BASE] = registers.gs() as u64;
        let Segments { ds, es, fs, gs } = registers.segments();
        general[at::DS..=at::GS].copy_from_slice(&[ds, es, fs, gs].map(u64::from));
    }
    general
}

/// The x87 and SSE state of the calling thread as FXSAVE stores it (NT_PRFPREG); empty when the machine has none.
pub fn floating_point(thread: &Thread) -> Vec<u8> {
    let mut area = save_fpu(thread).unwrap_or_default();
    area.truncate(FXSAVE_SIZE);
    area
}

impl Registers {
    /// Those of the calling thread.
    pub fn save(&mut self, thread: &Thread, frame: &Frame) {
        self.general = general(thread, frame);
        self.is_32 = frame.is_compat_mode();
        self.is_compat_call = frame.is_compat_call();
        self.changed = false;
        self.fpu_changed = false;
        let fpu = thread.machine().isa().fpu;
        self.fpu.resize(fpu.size, 0);
        if let Ok(registers) = thread.registers() {
            registers.fpu_save(&mut self.fpu);
        }
        if let Some(possible) = self.fpu.get_mut(POSSIBLE..POSSIBLE + 8) {
            possible.copy_from_slice(&fpu.features.to_le_bytes());
        }
    }

    /// Whether the tracer has changed any.
    pub fn is_changed(&self) -> bool {
        self.changed || self.fpu_changed
    }

    /// Gives the calling thread what has been changed.
    pub fn load(&mut self, thread: &Thread, frame: &mut Frame) {
        let Ok(registers) = thread.registers() else { return };
        if core::mem::take(&mut self.changed) {
            #[rustfmt::skip]
            let [
                r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, number, rip, cs, flags, rsp, ..,
            ] = self.general;
            *frame = Frame { r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, rip, rsp, ..*frame };
            frame.orig_rax = number;
            if self.is_compat_call && number as i32 != -1 {
                frame.mark_compat_call();
            }
            // Checked when it was set.
            let _ = frame.set_code_segment(cs);
            frame.set_user_flags(flags);
            self.load_segments(registers);
        }
        if core::mem::take(&mut self.fpu_changed) {
            // What software has written there is none of the processor's.
            self.fpu[POSSIBLE..FXSAVE_SIZE].fill(0);
            let _ = registers.fpu_restore(&self.fpu);
        }
    }

    fn load_segments(&self, registers: &dyn janua_port::Registers) {
        let [ds, es, fs, gs] = [at::DS, at::ES, at::FS, at::GS].map(|at| self.general[at] as u16);
        let (old, new) = (registers.segments(), Segments { ds, es, fs, gs });
        if old != new {
            registers.set_segments(new);
        }
        // The base of a selector that a 32-bit thread gets is its segment's; in 64-bit code it is a register of its own.
        let follows = |old: u16, new: u16| self.is_32 && old != new;
        let (fs_base, gs_base) = (self.general[at::FS_BASE], self.general[at::GS_BASE]);
        if !follows(old.fs, fs) && registers.tls() as u64 != fs_base {
            registers.set_tls(fs_base as usize);
        }
        if !follows(old.gs, gs) && registers.gs() as u64 != gs_base {
            registers.set_gs(gs_base as usize);
        }
    }

    /// Whether the tracee can have the selectors: each stays, or is one that it can have. The two of 64-bit code's FS and GS can become 0
    /// only, since setting their bases does that, too.
    fn can_have_selectors(&self, new: &[u64; USER_REGS]) -> bool {
        let stays = |at: usize| new[at] == self.general[at];
        // Null, or a segment of user code. Whether it exists is seen when it is loaded.
        let is_user = |selector: u64| selector == 0 || selector & 3 == 3;
        let data = |at: usize| stays(at) || is_user(new[at]);
        let based = |at: usize| stays(at) || new[at] == 0 || self.is_32 && is_user(new[at]);
        (stays(at::CS) || matches!(new[at::CS], USER_CS | USER32_CS))
            && (stays(at::SS) || new[at::SS] == USER_SS)
            && data(at::DS)
            && data(at::ES)
            && based(at::FS)
            && based(at::GS)
    }

    /// Replaces the general registers. EIO for values that no user code can have, or that this machine cannot give it.
    pub fn set_general(&mut self, seat: &Seat, mut new: [u64; USER_REGS]) -> Result<()> {
        for at in [at::CS, at::SS, at::DS, at::ES, at::FS, at::GS] {
            // What is beyond the 16 bits of a selector is ignored, as on Linux.
            new[at] &= 0xffff;
        }
        let user = seat.user();
        let base = |value: u64| value == 0 || user.in_range(value as usize, 1);
        let code = new[at::RIP] == self.general[at::RIP] || user.is_code(new[at::RIP] as usize);
        let bases = [at::FS_BASE, at::GS_BASE].iter().all(|&at| new[at] == self.general[at] || base(new[at]));
        if !self.can_have_selectors(&new) || !code || !bases {
            return Err(Errno::EIO);
        }
        self.general = new;
        self.general[at::EFLAGS] |= 0x202;
        self.changed = true;
        Ok(())
    }

    /// A register set as bytes, and the size of its elements. EINVAL for one there is not.
    pub fn set(&self, kind: usize) -> Result<(Vec<u8>, usize)> {
        Ok(match kind {
            NT_PRSTATUS if self.is_32 => (self.general32().iter().flat_map(|word| word.to_le_bytes()).collect(), 4),
            NT_PRSTATUS => (self.general.iter().flat_map(|word| word.to_le_bytes()).collect(), 8),
            NT_PRFPREG if self.is_32 => (self.x87()?, 4),
            NT_PRXFPREG if !self.is_32 => return Err(Errno::EINVAL),
            NT_PRFPREG | NT_PRXFPREG => (self.fxsave()?, 4),
            NT_X86_XSTATE if self.fpu.len() > FXSAVE_SIZE => (self.fpu.clone(), 8),
            _ => return Err(Errno::EINVAL),
        })
    }

    /// Replaces the beginning of a register set. EINVAL, EIO.
    pub fn replace(&mut self, seat: &Seat, kind: usize, bytes: &[u8]) -> Result<()> {
        match kind {
            NT_PRSTATUS => {
                let mut new = self.general;
                if self.is_32 {
                    let mut words = self.general32();
                    for (register, word) in words.iter_mut().zip(bytes.chunks_exact(4)) {
                        *register = u32::from_le_bytes(word.try_into().unwrap_or_default());
                    }
                    return self.replace32(seat, &words);
                }
                for (register, word) in new.iter_mut().zip(bytes.chunks_exact(8)) {
                    *register = u64::from_le_bytes(word.try_into().unwrap_or_default());
                }
                self.set_general(seat, new)
            }
            NT_PRFPREG if self.is_32 => self.replace_x87(seat, bytes),
            NT_PRXFPREG if !self.is_32 => Err(Errno::EINVAL),
            NT_PRFPREG | NT_PRXFPREG => self.replace_fxsave(seat, bytes),
            NT_X86_XSTATE if self.fpu.len() > FXSAVE_SIZE && bytes.len() == self.fpu.len() => {
                self.set_fpu(seat, bytes.to_vec())
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// The general registers as 32-bit tracers see them.
    pub fn general32(&self) -> [u32; USER_REGS32] {
        I386.map(|at| self.general[at] as u32)
    }

    /// Replaces them. EIO.
    pub fn replace32(&mut self, seat: &Seat, words: &[u32; USER_REGS32]) -> Result<()> {
        let mut new = self.general;
        for (&at, &word) in I386.iter().zip(words).filter(|&(&at, &word)| self.general[at] as u32 != word) {
            // A number is signed: -1 is no call.
            new[at] = if at == at::ORIG_RAX { word as i32 as u64 } else { word.into() };
        }
        self.set_general(seat, new)
    }

    /// The x87 and SSE state as FXSAVE stores it. EINVAL where there is none.
    pub fn fxsave(&self) -> Result<Vec<u8>> {
        let mut area = self.fpu.get(..FXSAVE_SIZE).ok_or(Errno::EINVAL)?.to_vec();
        area[POSSIBLE..].fill(0);
        Ok(area)
    }

    /// Replaces its beginning. EINVAL.
    pub fn replace_fxsave(&mut self, seat: &Seat, bytes: &[u8]) -> Result<()> {
        let mut area = self.fpu.clone();
        area.get_mut(..FXSAVE_SIZE).and_then(|area| area.get_mut(..bytes.len())).ok_or(Errno::EINVAL)?.copy_from_slice(bytes);
        if let Some(present) = area.get_mut(PRESENT) {
            *present |= LEGACY_FEATURES as u8;
        }
        self.set_fpu(seat, area)
    }

    /// The x87 state as FSAVE stores it (`struct user_i387_ia32_struct`). EINVAL where there is none.
    pub fn x87(&self) -> Result<Vec<u8>> {
        Ok(x87::of(&self.fxsave()?, self.general[at::CS] as u32))
    }

    /// Replaces its beginning. EINVAL.
    pub fn replace_x87(&mut self, seat: &Seat, bytes: &[u8]) -> Result<()> {
        let (mut area, mut whole) = (self.fxsave()?, self.x87()?);
        whole.get_mut(..bytes.len()).ok_or(Errno::EINVAL)?.copy_from_slice(bytes);
        x87::put(&mut area, &whole);
        self.replace_fxsave(seat, &area)
    }

    /// EINVAL for components there are not, and bits of MXCSR that are reserved.
    fn set_fpu(&mut self, seat: &Seat, mut area: Vec<u8>) -> Result<()> {
        let word = |at: usize| area.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
        let reserved = area.get(26..28) != Some(&[0; 2]);
        if reserved || word(PRESENT) & !(seat.machine().isa().fpu.features | LEGACY_FEATURES) != 0 || word(PRESENT + 8) != 0 {
            return Err(Errno::EINVAL);
        }
        area[POSSIBLE..FXSAVE_SIZE].copy_from_slice(&self.fpu[POSSIBLE..FXSAVE_SIZE]);
        self.fpu = area;
        self.fpu_changed = true;
        Ok(())
    }

    /// What PTRACE_GET_SYSCALL_INFO reports at a stop of this kind.
    pub fn call(&self, kind: Kind) -> SyscallInfo {
        let general = &self.general;
        let number = [at::RDI, at::RSI, at::RDX, at::R10, at::R8, at::R9];
        let compat = &I386[..6];
        let words = if self.is_compat_call { compat } else { &number };
        let mut info = SyscallInfo {
            op: 0,
            pad: [0; 3],
            arch: if self.is_compat_call || self.is_32 { ARCH_I386 } else { ARCH_X86_64 },
            instruction_pointer: general[at::RIP],
            stack_pointer: general[at::RSP],
            words: [0; 7],
        };
        match kind {
            Kind::Entry => {
                info.op = 1;
                info.words[0] = general[at::ORIG_RAX];
                for (word, &at) in info.words[1..].iter_mut().zip(words) {
                    *word = if self.is_compat_call { general[at] & 0xffff_ffff } else { general[at] };
                }
            }
            Kind::Exit => {
                info.op = 2;
                info.words[0] = general[at::RAX];
                info.words[1] = u64::from(Errno::from_raw(general[at::RAX] as isize).is_err());
            }
            _ => {}
        }
        info
    }
}
