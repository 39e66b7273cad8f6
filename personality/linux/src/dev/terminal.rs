//! Terminals of a kernel: pseudoterminals, /dev/tty, the console.

use alloc::sync::{Arc, Weak};

use janua_abi::linux::signal::{SIGCONT, SIGHUP, si};
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_object::Caller;
use janua_object::anon;
use janua_object::file::{File, OpenFile, flags};
use janua_object::hostfile::HostFile;
use janua_object::tty::host::{self, Console};
use janua_object::tty::line::Line;
use janua_object::tty::pts::{DevPts, Pairs};
use janua_object::tty::pty::Master;
use janua_object::tty::{Controlling, GroupSignals, Terminal};
use janua_object::vfs::{Device, FileKind, FileSystem, MountFlags, Path, Vfs};

use crate::boot::BootFile;
use crate::process::Session;
use crate::signal::{self, SigInfo};
use crate::thread::ThreadExt;
use crate::{Kernel, Task, Thread, fs};

/// Terminals send signals to groups of this kernel.
struct Groups(Weak<Kernel>);

impl GroupSignals for Groups {
    fn send(&self, pgrp: u32, number: u32) {
        if let Some(kernel) = self.0.upgrade() {
            signal::send_group(&kernel, pgrp, SigInfo::new(number, si::KERNEL));
        }
    }
}

/// /dev/tty: the caller's controlling terminal.
struct Own;

impl Device for Own {
    fn open(&self, caller: &dyn Caller, _path: &Path, _minor: u32, _flags: u32) -> Result<Arc<dyn File>> {
        let terminal = caller.terminal().and_then(|terminal| terminal.downcast::<Controlling>().ok());
        terminal.ok_or(Errno::ENXIO)?.0.clone().open()
    }
}

/// A session's controlling terminal. One that has been hung up, or that another session has taken, is it no more.
pub fn of_session(session: &Session) -> Option<Arc<dyn Terminal>> {
    let known = session.terminal.lock().clone();
    let terminal = known?.downcast::<Controlling>().ok()?.0.clone();
    (terminal.job().session() == session.id).then_some(terminal)
}

/// The terminal the first session has.
pub enum Outer {
    /// A terminal of the host's.
    Host(Arc<Console>),
    /// A line of bytes with a terminal at its other end: settings and line discipline are this kernel's.
    Line(Line),
}

impl Outer {
    pub fn terminal(&self) -> Arc<dyn Terminal> {
        match self {
            Outer::Host(console) => console.clone(),
            Outer::Line(line) => line.terminal.clone(),
        }
    }
}

/// /dev/console: the outside's terminal.
struct ConsoleDevice(Option<Arc<dyn Terminal>>);

impl Device for ConsoleDevice {
    fn open(&self, caller: &dyn Caller, _path: &Path, _minor: u32, open: u32) -> Result<Arc<dyn File>> {
        let console = self.0.clone().ok_or(Errno::ENXIO)?;
        console.job().take_at_open(caller, console.clone(), open);
        console.open()
    }
}

/// Registers the drivers and mounts /dev/pts.
pub fn register(kernel: &Arc<Kernel>, console: Option<&Outer>) -> Result<()> {
    let vfs: &Vfs = &kernel.vfs;
    let pairs = Pairs::new(vfs, Arc::new(Groups(Arc::downgrade(kernel))));
    vfs.devices.register(FileKind::CharDevice, 5, Some(0), Arc::new(Own));
    vfs.devices.register(FileKind::CharDevice, 5, Some(1), Arc::new(ConsoleDevice(console.map(Outer::terminal))));
    let again = pairs.clone();
    let mount =
        move |_: &Vfs, _: &dyn Caller, _: &[u8], _: &[u8]| -> Result<Arc<dyn FileSystem>> { Ok(DevPts::new(again.clone())) };
    vfs.register_type("devpts", Arc::new(mount));
    *kernel.pairs.write() = Some(pairs.clone());
    fs::setup::mount_at(kernel, DevPts::new(pairs), b"devpts", MountFlags::NOSUID | MountFlags::NOEXEC, b"/dev/pts")
}

/// TIOCGPTPEER (ioctl_tty(2)): the slave of `master` opened with the flags `open` of open(2), without a way to its name.
pub fn open_peer(thread: &Thread, master: &Master, open: u32) -> Result<Fd> {
    let pty = master.pty();
    let ops = pty.open_by(&thread.caller(), open)?;
    let place = fs::setup::place(&thread.kernel, alloc::format!("/dev/pts/{}", pty.number).as_bytes()).ok();
    let kept =
        open & (flags::O_ACCMODE | flags::O_APPEND | flags::O_NONBLOCK | flags::O_DSYNC | flags::O_SYNC) | flags::O_LARGEFILE;
    fs::fd::install(thread, OpenFile::new(ops, kept, place), open & flags::O_CLOEXEC != 0)
}

/// The outside's terminal, if the sandbox was given one.
pub fn console(kernel: &Arc<Kernel>) -> Result<Option<Outer>> {
    let (Some(fd), Some(host)) = (kernel.config.terminal, kernel.machine.host()) else { return Ok(None) };
    if host::is_terminal(host, fd) {
        return Ok(Some(Outer::Host(Console::new(host, fd))));
    }
    let machine = kernel.machine;
    let signals = Arc::new(Groups(Arc::downgrade(kernel)));
    let line = Line::new(host, fd, anon::attr(machine.clock()), signals, Arc::new(|| machine.wake_service()))?;
    Ok(Some(Outer::Line(line)))
}

/// Hands on what has come by the line, if there is one.
pub fn pump(kernel: &Kernel) {
    let outer = kernel.outer.read().clone();
    if let Some(Outer::Line(line)) = outer.as_deref() {
        let _ = line.pump();
    }
}

/// A file for one of the descriptors the program starts with: the console where it is the outside's terminal.
pub fn standard_file(kernel: &Kernel, console: Option<&Outer>, file: &BootFile) -> Result<Arc<OpenFile>> {
    let fd = file.host;
    let host = kernel.machine.host().ok_or(Errno::ENODEV)?;
    let ops = match console {
        Some(Outer::Host(console)) if host::is_terminal(host, fd) => console.file(fd)?,
        Some(Outer::Line(line)) if FileKind::of_mode(host.stat(fd)?.mode) == Some(FileKind::CharDevice) => {
            line.terminal.open_slave(true)?
        }
        _ => return HostFile::open(host, fd, &file.name),
    };
    let mode = host.flags(fd)? & (flags::O_ACCMODE | flags::O_APPEND) | flags::O_LARGEFILE;
    let place = fs::setup::place(kernel, b"/dev/console").ok();
    Ok(OpenFile::new(ops, mode, place))
}

/// Makes a terminal the controlling one of a program's session, which is in the foreground.
pub fn give(terminal: &Arc<dyn Terminal>, first: &Task) {
    terminal.job().set(first.session().id, first.pgrp());
    *first.session().terminal.lock() = Some(Arc::new(Controlling(terminal.clone())));
}

/// The controlling terminal of a process.
pub fn of(task: &Task) -> Option<Arc<dyn Terminal>> {
    of_session(&task.session())
}

/// The foreground group of a session's terminal.
pub fn foreground(first: &Task) -> Option<u32> {
    Some(of(first)?.job().foreground()).filter(|group| *group != 0)
}

/// The session's leader has ended: who is in the foreground is notified, and the terminal is free for others.
pub fn let_go(kernel: &Kernel, session: &Session) {
    let terminal = of_session(session);
    let before = session.terminal.lock().take();
    drop(before);
    let Some(terminal) = terminal else { return };
    let foreground = terminal.job().clear_of(session.id);
    if foreground != 0 {
        signal::send_group(kernel, foreground, SigInfo::new(SIGHUP, si::KERNEL));
        signal::send_group(kernel, foreground, SigInfo::new(SIGCONT, si::KERNEL));
    }
}
