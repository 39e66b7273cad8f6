//! What gdb asks of one thread at rest, answered by the crate `gdbstub`: registers, memory, breakpoints, files, descriptions.
//!
//! The crate knows one process, and its machine of states is gone when a packet makes no sense to it. So what concerns threads and processes
//! is [`crate::session`]'s, which hands the rest on packet by packet; to the crate the thread that gdb has selected is all there is.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use gdbstub::common::Pid;
use gdbstub::conn::Connection;
use gdbstub::stub::GdbStub;
use gdbstub::stub::state_machine::GdbStubStateMachine;
use gdbstub::target::ext::auxv::{Auxv, AuxvOps};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::single_register_access::{SingleRegisterAccess, SingleRegisterAccessOps};
use gdbstub::target::ext::base::singlethread::SingleThreadBase;
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint, SwBreakpointOps,
    WatchKind,
};
use gdbstub::target::ext::exec_file::{ExecFile, ExecFileOps};
use gdbstub::target::ext::host_io::*;
use gdbstub::target::ext::target_description_xml_override::{TargetDescriptionXmlOverride, TargetDescriptionXmlOverrideOps};
use gdbstub::target::{Target, TargetError, TargetResult};

use crate::host;
use crate::packets::{MOST, packet};
use crate::points::{Hardware, Watched};
use crate::registers::{Bank, Bytes, Number, X86};
use crate::tracer::Tracer;

/// Files gdb may have open.
const FILES_MOST: usize = 64;

/// What the crate is asked about.
#[derive(Default)]
pub struct Guests {
    pub tracer: Tracer,
    files: Vec<Option<File>>,
}

impl Guests {
    /// The selected thread and its process.
    fn selected(&self) -> TargetResult<(u32, u32), Guests> {
        let tid = self.tracer.selected;
        self.tracer.process_of(tid).map(|pid| (pid, tid)).ok_or(TargetError::Errno(libc::ESRCH as u8))
    }

    fn bank(&self) -> TargetResult<Bank, Guests> {
        Ok(Bank::of(self.selected()?.1)?)
    }

    fn watch(&mut self, change: impl FnOnce(&mut Watched) -> bool) -> TargetResult<bool, Guests> {
        let (pid, _) = self.selected()?;
        Ok(self.tracer.watch(pid, change))
    }

    fn file(&self, fd: u32) -> HostIoResult<&File, Guests> {
        self.files.get(fd as usize).and_then(Option::as_ref).ok_or(HostIoError::Errno(HostIoErrno::EBADF))
    }
}

/// The part of `bytes` that is asked for.
fn part(bytes: &[u8], offset: u64, length: usize, buf: &mut [u8]) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
    let count = rest.len().min(length).min(buf.len());
    buf[..count].copy_from_slice(&rest[..count]);
    count
}

impl Target for Guests {
    type Arch = X86;
    type Error = Infallible;

    fn base_ops(&mut self) -> BaseOps<'_, X86, Infallible> {
        BaseOps::SingleThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_target_description_xml_override(&mut self) -> Option<TargetDescriptionXmlOverrideOps<'_, Self>> {
        Some(self)
    }

    fn support_auxv(&mut self) -> Option<AuxvOps<'_, Self>> {
        Some(self)
    }

    fn support_exec_file(&mut self) -> Option<ExecFileOps<'_, Self>> {
        Some(self)
    }

    fn support_host_io(&mut self) -> Option<HostIoOps<'_, Self>> {
        Some(self)
    }
}

impl SingleThreadBase for Guests {
    fn read_registers(&mut self, registers: &mut Bytes) -> TargetResult<(), Self> {
        registers.0 = self.bank()?.bytes();
        Ok(())
    }

    fn write_registers(&mut self, registers: &Bytes) -> TargetResult<(), Self> {
        let mut bank = self.bank()?;
        if !bank.replace(&registers.0) {
            return Err(TargetError::Errno(libc::EINVAL as u8));
        }
        Ok(bank.store(self.tracer.selected)?)
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, (), Self>> {
        Some(self)
    }

    fn read_addrs(&mut self, start: u64, data: &mut [u8]) -> TargetResult<usize, Self> {
        let (pid, _) = self.selected()?;
        let count = host::read_memory(pid, start, data)?;
        if count == 0 && !data.is_empty() {
            return Err(TargetError::Errno(libc::EFAULT as u8));
        }
        if let Some(breakpoints) = self.tracer.breakpoints(pid) {
            breakpoints.hide(start, &mut data[..count]);
        }
        Ok(count)
    }

    fn write_addrs(&mut self, start: u64, data: &[u8]) -> TargetResult<(), Self> {
        let (pid, _) = self.selected()?;
        let Some(breakpoints) = self.tracer.breakpoints(pid) else { return Err(TargetError::NonFatal) };
        // What could not be written is not kept, either.
        let before = breakpoints.clone();
        let bytes = breakpoints.keep(start, data);
        Ok(host::write_memory(pid, start, &bytes).inspect_err(|_| *breakpoints = before)?)
    }
}

impl SingleRegisterAccess<()> for Guests {
    fn read_register(&mut self, (): (), number: Number, buf: &mut [u8]) -> TargetResult<usize, Self> {
        let bytes = self.bank()?.one(number.0).ok_or(TargetError::NonFatal)?;
        buf.get_mut(..bytes.len()).ok_or(TargetError::NonFatal)?.copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn write_register(&mut self, (): (), number: Number, value: &[u8]) -> TargetResult<(), Self> {
        let mut bank = self.bank()?;
        if !bank.replace_one(number.0, value) {
            return Err(TargetError::Errno(libc::EINVAL as u8));
        }
        Ok(bank.store(self.tracer.selected)?)
    }
}

impl Breakpoints for Guests {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Guests {
    fn add_sw_breakpoint(&mut self, address: u64, _kind: usize) -> TargetResult<bool, Self> {
        let (pid, _) = self.selected()?;
        Ok(self.tracer.breakpoints(pid).is_some_and(|breakpoints| breakpoints.insert(pid, address)))
    }

    fn remove_sw_breakpoint(&mut self, address: u64, _kind: usize) -> TargetResult<bool, Self> {
        let (pid, _) = self.selected()?;
        Ok(self.tracer.breakpoints(pid).is_some_and(|breakpoints| breakpoints.remove(pid, address)))
    }
}

impl HwBreakpoint for Guests {
    fn add_hw_breakpoint(&mut self, address: u64, _kind: usize) -> TargetResult<bool, Self> {
        self.watch(|watched| watched.add(Hardware::Execute(address)))
    }

    fn remove_hw_breakpoint(&mut self, address: u64, _kind: usize) -> TargetResult<bool, Self> {
        self.watch(|watched| watched.remove(Hardware::Execute(address)))
    }
}

/// What watches changes of an address; reads cannot be watched.
fn change_of(address: u64, len: u64, kind: WatchKind) -> Option<Hardware> {
    (kind == WatchKind::Write).then(|| Hardware::Write(address, usize::try_from(len).unwrap_or(0)))
}

impl HwWatchpoint for Guests {
    fn add_hw_watchpoint(&mut self, address: u64, len: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        match change_of(address, len, kind) {
            Some(point) => self.watch(|watched| watched.add(point)),
            None => Ok(false),
        }
    }

    fn remove_hw_watchpoint(&mut self, address: u64, len: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        match change_of(address, len, kind) {
            Some(point) => self.watch(|watched| watched.remove(point)),
            None => Ok(false),
        }
    }
}

impl TargetDescriptionXmlOverride for Guests {
    fn target_description_xml(&self, annex: &[u8], offset: u64, length: usize, buf: &mut [u8]) -> TargetResult<usize, Self> {
        if annex != b"target.xml" {
            return Err(TargetError::Errno(libc::ENOENT as u8));
        }
        Ok(part(self.bank()?.description().as_bytes(), offset, length, buf))
    }
}

impl Auxv for Guests {
    fn get_auxv(&self, offset: u64, length: usize, buf: &mut [u8]) -> TargetResult<usize, Self> {
        let (pid, _) = self.selected()?;
        Ok(part(&std::fs::read(format!("/proc/{pid}/auxv"))?, offset, length, buf))
    }
}

impl ExecFile for Guests {
    fn get_exec_file(&self, pid: Option<Pid>, offset: u64, length: usize, buf: &mut [u8]) -> TargetResult<usize, Self> {
        let pid = match pid {
            Some(pid) => u32::try_from(pid.get()).map_err(|_| TargetError::NonFatal)?,
            None => self.selected()?.0,
        };
        let path = std::fs::read_link(format!("/proc/{pid}/exe"))?;
        Ok(part(path.as_os_str().as_bytes(), offset, length, buf))
    }
}

impl HostIo for Guests {
    fn support_open(&mut self) -> Option<HostIoOpenOps<'_, Self>> {
        Some(self)
    }

    fn support_close(&mut self) -> Option<HostIoCloseOps<'_, Self>> {
        Some(self)
    }

    fn support_pread(&mut self) -> Option<HostIoPreadOps<'_, Self>> {
        Some(self)
    }

    fn support_fstat(&mut self) -> Option<HostIoFstatOps<'_, Self>> {
        Some(self)
    }

    fn support_readlink(&mut self) -> Option<HostIoReadlinkOps<'_, Self>> {
        Some(self)
    }

    fn support_setfs(&mut self) -> Option<HostIoSetfsOps<'_, Self>> {
        Some(self)
    }
}

fn refused<T>(error: io::Error) -> HostIoResult<T, Guests> {
    Err(HostIoError::Errno(match error.raw_os_error() {
        Some(libc::EPERM) => HostIoErrno::EPERM,
        Some(libc::EACCES) => HostIoErrno::EACCES,
        Some(libc::ENOTDIR) => HostIoErrno::ENOTDIR,
        Some(libc::ENAMETOOLONG) => HostIoErrno::ENAMETOOLONG,
        Some(libc::EINVAL) => HostIoErrno::EINVAL,
        Some(libc::EISDIR) => HostIoErrno::EISDIR,
        Some(libc::ENOENT) => HostIoErrno::ENOENT,
        _ => HostIoErrno::EIO,
    }))
}

impl HostIoOpen for Guests {
    /// For reading: nobody debugs by writing files of the sandbox.
    fn open(&mut self, name: &[u8], flags: HostIoOpenFlags, _mode: HostIoOpenMode) -> HostIoResult<u32, Self> {
        let writes = HostIoOpenFlags::O_WRONLY | HostIoOpenFlags::O_RDWR | HostIoOpenFlags::O_CREAT | HostIoOpenFlags::O_TRUNC;
        if flags.intersects(writes) {
            return Err(HostIoError::Errno(HostIoErrno::EACCES));
        }
        // A fifo without a writer must not hold the server up.
        let mut options = File::options();
        std::os::unix::fs::OpenOptionsExt::custom_flags(options.read(true), libc::O_NONBLOCK | libc::O_NOCTTY);
        let file = match options.open(Path::new(std::ffi::OsStr::from_bytes(name))) {
            Ok(file) => file,
            Err(error) => return refused(error),
        };
        let at = match self.files.iter().position(Option::is_none) {
            Some(free) => free,
            None if self.files.len() < FILES_MOST => {
                self.files.push(None);
                self.files.len() - 1
            }
            None => return Err(HostIoError::Errno(HostIoErrno::EMFILE)),
        };
        self.files[at] = Some(file);
        Ok(at as u32)
    }
}

impl HostIoClose for Guests {
    fn close(&mut self, fd: u32) -> HostIoResult<(), Self> {
        self.file(fd)?;
        self.files[fd as usize] = None;
        Ok(())
    }
}

impl HostIoPread for Guests {
    fn pread(&mut self, fd: u32, count: usize, offset: u64, buf: &mut [u8]) -> HostIoResult<usize, Self> {
        let count = count.min(buf.len());
        self.file(fd)?.read_at(&mut buf[..count], offset).or_else(refused)
    }
}

impl HostIoFstat for Guests {
    fn fstat(&mut self, fd: u32) -> HostIoResult<HostIoStat, Self> {
        let meta = match self.file(fd)?.metadata() {
            Ok(meta) => meta,
            Err(error) => return refused(error),
        };
        Ok(HostIoStat {
            st_dev: meta.dev() as u32,
            st_ino: meta.ino() as u32,
            st_mode: HostIoOpenMode::from_bits_truncate(meta.mode()),
            st_nlink: meta.nlink() as u32,
            st_uid: meta.uid(),
            st_gid: meta.gid(),
            st_rdev: meta.rdev() as u32,
            st_size: meta.size(),
            st_blksize: meta.blksize(),
            st_blocks: meta.blocks(),
            st_atime: meta.atime() as u32,
            st_mtime: meta.mtime() as u32,
            st_ctime: meta.ctime() as u32,
        })
    }
}

impl HostIoReadlink for Guests {
    fn readlink(&mut self, name: &[u8], buf: &mut [u8]) -> HostIoResult<usize, Self> {
        let target = match std::fs::read_link(Path::new(std::ffi::OsStr::from_bytes(name))) {
            Ok(target) => target,
            Err(error) => return refused(error),
        };
        let bytes = target.as_os_str().as_bytes();
        match buf.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                Ok(bytes.len())
            }
            None => Err(HostIoError::Errno(HostIoErrno::ENAMETOOLONG)),
        }
    }
}

impl HostIoSetfs for Guests {
    /// All processes have one tree of names.
    fn setfs(&mut self, _fs: FsKind) -> HostIoResult<(), Self> {
        Ok(())
    }
}

/// Where the crate's answers go.
#[derive(Default)]
struct Collected(Vec<u8>);

impl Connection for Collected {
    type Error = Infallible;

    fn write(&mut self, byte: u8) -> Result<(), Infallible> {
        self.0.push(byte);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The crate, always at rest.
pub struct Answers(Option<GdbStubStateMachine<'static, Guests, Collected>>);

impl Answers {
    pub fn new(guests: &mut Guests) -> Answers {
        let stub = GdbStub::builder(Collected::default()).packet_buffer_size(MOST + 4).build().ok();
        let mut answers = Answers(stub.and_then(|stub| stub.run_state_machine(guests).ok()));
        // Acknowledging is the connection's affair.
        answers.put(guests, b"QStartNoAckMode");
        answers
    }

    /// The answer to a packet, as a packet. What makes no sense to the crate is an error.
    pub fn answer(&mut self, guests: &mut Guests, said: &[u8]) -> Vec<u8> {
        self.put(guests, said).unwrap_or_else(|| {
            *self = Answers::new(guests);
            packet(b"E01")
        })
    }

    /// `None` if the crate is gone.
    fn put(&mut self, guests: &mut Guests, said: &[u8]) -> Option<Vec<u8>> {
        let mut machine = self.0.take()?;
        for byte in packet(said) {
            let GdbStubStateMachine::Idle(idle) = machine else { return None };
            machine = idle.incoming_data(guests, byte).ok()?;
        }
        let GdbStubStateMachine::Idle(mut idle) = machine else { return None };
        let answer = core::mem::take(&mut idle.borrow_conn().0);
        self.0 = Some(idle.into());
        Some(answer)
    }
}
