//! The place of `crate::x86` for a processor whose ABI of Linux' nobody has written: the crate is compiled for it, and a kernel of it has file
//! systems, sockets and all else, but runs no program (ENOEXEC) and has no call. This is the list of what a port to a processor writes.

use janua_abi::linux::{Errno, Result};
use janua_elf::Machine;
use janua_kernel::Row;
use janua_port::Frame;

use crate::{Linux, Thread};

pub const NAME: &str = "unknown";
pub const NAME_32: &str = NAME;

/// The calls are under other numbers on each processor.
pub static ROWS: &[Row<Linux>] = &[];
pub static ROWS_32: &[Row<Linux>] = &[];

/// No machine's.
pub fn runs(_machine: Machine) -> bool {
    false
}

/// For the program that [`runs`] has refused: at no address.
pub fn start(_entry: usize, _sp: usize, _is_32: bool) -> Frame {
    Frame::default()
}

/// A number that is no call's.
pub fn restart_syscall(_frame: &Frame) -> u64 {
    u32::MAX.into()
}

/// /proc/cpuinfo: the processors' numbers, and nothing of what they are.
pub mod cpuinfo {
    use core::fmt::Write;

    use janua_abi::linux::Result;
    use janua_port::machine::processors;

    use crate::procfs::{Subject, Text};

    pub fn cpuinfo(subject: &Subject, text: &mut Text) -> Result<()> {
        for cpu in processors(subject.kernel.machine) {
            let _ = write!(text, "processor\t: {cpu}\n\n");
        }
        Ok(())
    }
}

/// Signal frames.
pub mod frame {
    use crate::signal::SigSet;
    use janua_abi::linux::signal::{SigAction, SigInfo};

    use super::{Errno, Frame, Result, Thread};

    /// ENOSYS: no handler can run, and a signal that has one ends the process.
    pub fn push(_: &Thread, _: &mut Frame, _: &SigAction, _: &SigInfo, _: SigSet) -> Result<()> {
        Err(Errno::ENOSYS)
    }
}

/// Registers as tracers and core files have them.
pub mod regs {
    use alloc::vec::Vec;

    use janua_abi::linux::ptrace::{SyscallInfo, USER_REGS};

    use super::{Errno, Frame, Result, Thread};
    use crate::Seat;
    use crate::ptrace::Kind;

    pub fn general(_: &Thread, _: &Frame) -> [u64; USER_REGS] {
        [0; USER_REGS]
    }

    pub fn floating_point(_: &Thread) -> Vec<u8> {
        Vec::new()
    }

    /// No register sets: EINVAL to who asks for one, EIO to who changes one.
    #[derive(Default)]
    pub struct Registers {
        pub general: [u64; USER_REGS],
    }

    impl Registers {
        pub fn save(&mut self, _: &Thread, _: &Frame) {}

        pub fn is_changed(&self) -> bool {
            false
        }

        pub fn load(&mut self, _: &Thread, _: &mut Frame) {}

        pub fn set_general(&mut self, _: &Seat, _: [u64; USER_REGS]) -> Result<()> {
            Err(Errno::EIO)
        }

        pub fn set(&self, _kind: usize) -> Result<(Vec<u8>, usize)> {
            Err(Errno::EINVAL)
        }

        pub fn replace(&mut self, _: &Seat, _kind: usize, _: &[u8]) -> Result<()> {
            Err(Errno::EIO)
        }

        pub fn fxsave(&self) -> Result<Vec<u8>> {
            Err(Errno::EINVAL)
        }

        pub fn replace_fxsave(&mut self, _: &Seat, _: &[u8]) -> Result<()> {
            Err(Errno::EIO)
        }

        /// That of a tracee which is in no call.
        pub fn call(&self, _: Kind) -> SyscallInfo {
            SyscallInfo::default()
        }
    }
}

/// Thread areas of 32-bit programs on a processor of 64 bits.
pub mod thread_area {
    use janua_abi::linux::i386::UserDesc;

    use super::{Errno, Result, Thread};

    pub type Areas = ();

    pub fn reset(_: &Thread, _is_32: bool) {}

    pub fn begin(_: &Thread) {}

    pub fn for_clone(_: &Thread, _place: usize) -> Result<UserDesc> {
        Err(Errno::EINVAL)
    }
}

/// The vDSO of 32-bit programs on a processor of 64 bits.
pub mod vdso {
    use janua_object::mm::{Limits, Mm};
    use janua_port::{Compat, UserMemory};

    use super::{Errno, Result};

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Vdso {
        pub header: u32,
        pub vsyscall: u32,
        pub landing: u32,
    }

    pub fn map(_: &Mm, _: &dyn UserMemory, _: &dyn Compat, _: &Limits) -> Result<Vdso> {
        Err(Errno::ENOEXEC)
    }
}
