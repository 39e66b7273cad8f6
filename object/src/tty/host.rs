//! The outside's terminal: bytes, settings and window size are the host terminal's own, sessions and groups are this kernel's.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;

use janua_abi::linux::fcntl::open::O_RDWR;
use janua_abi::linux::termios::{Termio, Termios, Termios2, Winsize, lflag, request};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_port::{Host, HostFd};
use zerocopy::IntoBytes;

use super::Terminal;
use super::job::Job;
use super::pty::CHANGES;
use crate::caller::Caller;
use crate::file::{Events, File, OpenFile};
use crate::hostfile::HostFile;
use crate::vfs::{Attr, FileKind, device};

/// Device number of the console.
pub const CONSOLE: u64 = device::number(5, 1);

/// The terminal outside.
pub struct Console {
    host: &'static dyn Host,
    /// A descriptor of its own, for settings and for opening it anew.
    fd: HostFd,
    pub job: Job,
}

/// Whether a host descriptor is a terminal.
pub fn is_terminal(host: &dyn Host, fd: HostFd) -> bool {
    let mut termios = Termios::default();
    host.ioctl(fd, request::TCGETS, termios.as_mut_bytes()).is_ok()
}

impl Console {
    /// The terminal behind `fd`, which it then owns.
    pub fn new(host: &'static dyn Host, fd: HostFd) -> Arc<Console> {
        Arc::new(Console { host, fd, job: Job::default() })
    }

    /// A file for bytes through `fd`, one of the program's own descriptors of this terminal.
    pub fn file(self: &Arc<Console>, fd: HostFd) -> Result<Arc<dyn File>> {
        Ok(Arc::new(HostTty { console: self.clone(), bytes: HostFile::new(self.host, fd)? }))
    }

    /// Whether the sandbox is in the background of the session outside. The host, which cannot stop it by a signal, refuses to read then, even
    /// nothing.
    fn in_background(&self) -> bool {
        self.host.read(self.fd, &mut [], None) == Err(Errno::EIO) && self.host.poll(self.fd, Events::HUP.bits()) == 0
    }

    /// [`Job::check_read`], for the session outside as well.
    fn check_read(&self, caller: &dyn Caller) -> Result<()> {
        self.job.check_read(caller)?;
        if self.in_background() { self.job.stop_reader(caller) } else { Ok(()) }
    }

    /// [`Job::check_change`], for the session outside as well.
    fn check_change(&self, caller: &dyn Caller) -> Result<()> {
        self.job.check_change(caller)?;
        if self.in_background() { self.job.stop_changer(caller) } else { Ok(()) }
    }

    fn termios(&self) -> Result<Termios> {
        let mut termios = Termios::default();
        self.host.ioctl(self.fd, request::TCGETS, termios.as_mut_bytes())?;
        Ok(termios)
    }
}

impl Terminal for Console {
    fn open(self: Arc<Self>) -> Result<Arc<dyn File>> {
        let fd = self.host.files().ok_or(Errno::ENXIO)?.open(self.fd, b"", O_RDWR, 0, 0)?;
        self.file(fd)
    }
    fn device(&self) -> u64 {
        CONSOLE
    }
    fn job(&self) -> &Job {
        &self.job
    }
}

/// An open file of the console.
pub struct HostTty {
    console: Arc<Console>,
    bytes: HostFile,
}

impl File for HostTty {
    fn before_transfer(&self, caller: &dyn Caller, write: bool) -> Result<usize> {
        if !write {
            self.console.check_read(caller)?;
        } else if self.console.termios()?.lflag & lflag::TOSTOP != 0 {
            self.console.check_change(caller)?;
        }
        Ok(1)
    }
    fn read(&self, file: &OpenFile, caller: &dyn Caller, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        self.bytes.read(file, caller, buf, offset)
    }
    fn write(&self, file: &OpenFile, caller: &dyn Caller, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize> {
        self.bytes.write(file, caller, buf, offset)
    }
    fn poll(&self, file: &OpenFile, caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        self.bytes.poll(file, caller, table)
    }
    fn streams(&self) -> bool {
        true
    }

    fn ioctl(&self, file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        let console = &self.console;
        if CHANGES.contains(&request) {
            console.check_change(caller)?;
        }
        let (host, fd, user) = (console.host, console.fd, caller.user());
        match request {
            request::TCGETS => UserPtr::new(arg).write(user, &console.termios()?).map(|()| 0),
            request::TCGETS2 => {
                let mut settings = Termios2::default();
                host.ioctl(fd, request, settings.as_mut_bytes())?;
                UserPtr::new(arg).write(user, &settings).map(|()| 0)
            }
            request::TCSETS2 | request::TCSETSW2 | request::TCSETSF2 => {
                console.check_change(caller)?;
                let mut settings = UserPtr::<Termios2>::new(arg).read(user)?;
                host.ioctl(fd, request, settings.as_mut_bytes())
            }
            request::TCSETS | request::TCSETSW | request::TCSETSF => {
                console.check_change(caller)?;
                let mut termios = UserPtr::<Termios>::new(arg).read(user)?;
                host.ioctl(fd, request, termios.as_mut_bytes())
            }
            request::TCGETA => UserPtr::new(arg).write(user, &Termio::of(&console.termios()?)).map(|()| 0),
            request::TCSETA | request::TCSETAW | request::TCSETAF => {
                console.check_change(caller)?;
                let mut termios = UserPtr::<Termio>::new(arg).read(user)?.apply(&console.termios()?);
                // TCSETS, TCSETSW and TCSETSF come in the same order.
                host.ioctl(fd, request - request::TCSETA + request::TCSETS, termios.as_mut_bytes())
            }
            request::TIOCGWINSZ => {
                let mut size = Winsize::default();
                host.ioctl(fd, request, size.as_mut_bytes())?;
                UserPtr::new(arg).write(user, &size).map(|()| 0)
            }
            request::TIOCSWINSZ => {
                let mut size = UserPtr::<Winsize>::new(arg).read(user)?;
                host.ioctl(fd, request, size.as_mut_bytes())
            }
            request::TCFLSH | request::TCXONC | request::TCSBRK | request::TCSBRKP => host.ioctl_word(fd, request, arg),
            request::FIONREAD | request::TIOCOUTQ | request::TIOCGETD => {
                let mut word = [0u8; 4];
                host.ioctl(fd, request, &mut word)?;
                UserPtr::new(arg).write(user, &u32::from_le_bytes(word)).map(|()| 0)
            }
            request::TIOCSTI => Err(Errno::EIO),
            _ => {
                let terminal = || -> Arc<dyn Terminal> { console.clone() };
                console.job.ioctl((caller, file), &terminal, request, arg, false).unwrap_or(Err(Errno::ENOTTY))
            }
        }
    }

    fn attr(&self) -> Result<Attr> {
        let attr = self.bytes.attr()?;
        Ok(Attr { rdev: CONSOLE, mode: FileKind::CharDevice as u32 | 0o600, ..attr })
    }
    fn label(&self) -> String {
        String::from("/dev/console")
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
