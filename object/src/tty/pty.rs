//! Pseudoterminals (pty(7)): a master, which plays keyboard and screen, and a slave, which is the terminal. The terminal at the
//! end of a line ([`super::line`]) is one whose master is the kernel.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

use janua_abi::linux::capability::CAP_SYS_ADMIN;
use janua_abi::linux::signal::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGWINCH};
use janua_abi::linux::termios::{Termios, Winsize, lflag, request};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_rt::{Mutex, WaitQueue};

use super::discipline::Discipline;
use super::job::Job;
use super::{GroupSignals, Terminal};
use crate::caller::Caller;
use crate::file::{Events, File, OpenFile};
use crate::vfs::{Attr, FileKind, device};

mod settings;

/// Major number of slaves.
pub const SLAVE_MAJOR: u32 = 136;

/// Status bytes of packet mode (ioctl_tty(2)).
mod packet {
    pub const FLUSHREAD: u8 = 1;
    pub const FLUSHWRITE: u8 = 2;
    pub const STOP: u8 = 4;
    pub const START: u8 = 8;
}

/// Requests, beside those for settings and the foreground, that are not for background processes.
pub(super) const CHANGES: [u32; 7] = [
    request::TCFLSH,
    request::TCXONC,
    request::TCSBRK,
    request::TCSBRKP,
    request::TIOCSBRK,
    request::TIOCCBRK,
    request::TIOCSETD,
];

#[derive(Default)]
struct State {
    line: Discipline,
    size: Winsize,
    locked: bool,
    /// TIOCEXCL, of the slave and of the master.
    exclusive: [bool; 2],
    master_open: bool,
    /// Open descriptions of the slave, and whether there ever was one.
    slaves: usize,
    had_slave: bool,
    packet_mode: bool,
    packet_status: u8,
    /// Bits per second that the settings give as numbers, of the input and of the output.
    speeds: [u32; 2],
    /// Which settings do not change (TIOCSLCKTRMIOS).
    locks: Option<Termios>,
}

/// What shows a terminal's output at once, instead of a master that reads it.
pub trait Screen: Send + Sync {
    /// Shows bytes, and returns how many. After fewer than all [`Pty::screen_ready`] reports when there is room again.
    fn show(&self, bytes: &[u8]) -> usize;
    /// Something typed was read: the keyboard may have room again.
    fn input_taken(&self);
}

/// A pair. Lock order: `state`, then wait queues; signals are sent without locks.
pub struct Pty {
    pub number: u32,
    /// The slave's device number and name.
    device: u64,
    label: String,
    screen: Option<Arc<dyn Screen>>,
    state: Mutex<State>,
    pub job: Job,
    signals: Arc<dyn GroupSignals>,
    master_waits: WaitQueue,
    slave_waits: WaitQueue,
    pub attr: Mutex<Attr>,
}

impl Pty {
    /// A pair whose master is about to be opened; the slave is locked until TIOCSPTLCK unlocks it.
    pub fn new(number: u32, attr: Attr, signals: Arc<dyn GroupSignals>) -> Arc<Pty> {
        let device = device::number(SLAVE_MAJOR, number);
        let state = State { locked: true, master_open: true, ..State::default() };
        Arc::new(Pty::made(number, device, format!("/dev/pts/{number}"), None, state, attr, signals))
    }

    /// A terminal without a master's file: what is written goes to `screen`, what is typed comes by [`Pty::type_bytes`]. `number`: its
    /// own among the slaves, if it has one.
    pub fn at_screen(
        number: Option<u32>,
        device: u64,
        label: &str,
        screen: Arc<dyn Screen>,
        attr: Attr,
        signals: Arc<dyn GroupSignals>,
    ) -> Arc<Pty> {
        let state = State { master_open: true, ..State::default() };
        Arc::new(Pty::made(number.unwrap_or(0), device, String::from(label), Some(screen), state, attr, signals))
    }

    fn made(
        number: u32,
        device: u64,
        label: String,
        screen: Option<Arc<dyn Screen>>,
        state: State,
        attr: Attr,
        signals: Arc<dyn GroupSignals>,
    ) -> Pty {
        Pty {
            number,
            device,
            label,
            screen,
            state: Mutex::new(state),
            job: Job::default(),
            signals,
            master_waits: WaitQueue::new(),
            slave_waits: WaitQueue::new(),
            attr: Mutex::new(Attr { mode: FileKind::CharDevice as u32 | 0o620, rdev: device, ..attr }),
        }
    }

    /// The slave's file. EIO while locked or when the master is gone, EBUSY when held exclusively.
    pub fn open_slave(self: &Arc<Pty>, privileged: bool) -> Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        if state.locked || !state.master_open {
            return Err(Errno::EIO);
        }
        if state.exclusive[0] && !privileged {
            return Err(Errno::EBUSY);
        }
        state.slaves += 1;
        state.had_slave = true;
        Ok(Arc::new(Slave { pty: self.clone() }))
    }

    /// The slave's file for a caller that opens it with these flags, whose controlling terminal it may become.
    pub fn open_by(self: &Arc<Pty>, caller: &dyn Caller, open: u32) -> Result<Arc<dyn File>> {
        let file = self.open_slave(caller.cred().capable(CAP_SYS_ADMIN))?;
        self.job.take_at_open(caller, self.clone(), open);
        Ok(file)
    }

    /// Wakes both sides after any change of the state.
    fn changed(&self) {
        self.output_changed();
        self.slave_waits.wake_all();
    }

    /// There may be output: shows it, or wakes the master.
    fn output_changed(&self) {
        let Some(screen) = &self.screen else { return self.master_waits.wake_all() };
        // Shown with the lock held, so that bytes keep their order.
        let mut state = self.state.lock();
        if state.line.stopped || state.line.output.is_empty() {
            return;
        }
        let (first, second) = state.line.output.as_slices();
        let mut shown = screen.show(first);
        if shown == first.len() && !second.is_empty() {
            shown += screen.show(second);
        }
        state.line.output.drain(..shown);
    }

    /// The screen has room again.
    pub fn screen_ready(&self) {
        self.changed();
    }

    /// Whether all output has been shown.
    pub fn is_shown(&self) -> bool {
        self.state.lock().line.output.is_empty()
    }

    /// The keyboard is gone: readers find the end, the session is notified.
    pub fn unplug(&self) {
        self.state.lock().master_open = false;
        self.hang_up();
        self.changed();
    }

    fn hang_up(&self) {
        let (session, foreground) = self.job.clear();
        if session != 0 {
            // The session's leader leads the group of the same number.
            self.signals.send(session, SIGHUP);
            self.signals.send(session, SIGCONT);
        }
        if foreground != 0 && foreground != session {
            self.signals.send(foreground, SIGHUP);
            self.signals.send(foreground, SIGCONT);
        }
    }

    /// Sets the window's size, and notifies the foreground group if it is another one (SIGWINCH).
    pub fn set_size(&self, size: Winsize) {
        let changed = core::mem::replace(&mut self.state.lock().size, size) != size;
        let foreground = self.job.foreground();
        if changed && foreground != 0 {
            self.signals.send(foreground, SIGWINCH);
        }
    }

    /// Requests both sides know; `None` for all others.
    fn common(
        self: &Arc<Pty>,
        (caller, file): (&dyn Caller, &OpenFile),
        request: u32,
        arg: usize,
        master: bool,
    ) -> Option<Result<usize>> {
        let user = caller.user();
        if CHANGES.contains(&request)
            && !master
            && let Err(errno) = self.job.check_change(caller)
        {
            return Some(Err(errno));
        }
        let done = |result: Result<()>| Some(result.map(|()| 0));
        match request {
            request::TIOCGWINSZ => {
                let size = self.state.lock().size;
                done(UserPtr::<Winsize>::new(arg).write(user, &size))
            }
            request::TIOCSWINSZ => match UserPtr::<Winsize>::new(arg).read(user) {
                Ok(size) => {
                    self.set_size(size);
                    Some(Ok(0))
                }
                Err(errno) => Some(Err(errno)),
            },
            request::TCFLSH => Some(self.flush(arg, master)),
            request::TCXONC => Some(self.flow(arg)),
            request::TCSBRK | request::TCSBRKP | request::TIOCSBRK | request::TIOCCBRK => Some(Ok(0)),
            request::TIOCEXCL | request::TIOCNXCL => {
                self.state.lock().exclusive[usize::from(master)] = request == request::TIOCEXCL;
                Some(Ok(0))
            }
            request::TIOCGEXCL => {
                let exclusive = self.state.lock().exclusive[usize::from(master)];
                done(UserPtr::new(arg).write(user, &u32::from(exclusive)))
            }
            request::TIOCGDEV => done(UserPtr::new(arg).write(user, &(self.device as u32))),
            request::TIOCGETD => done(UserPtr::<u32>::new(arg).write(user, &0)),
            // There is one discipline.
            request::TIOCSETD => done(match UserPtr::<u32>::new(arg).read(user) {
                Ok(0) => Ok(()),
                Ok(_) => Err(Errno::EINVAL),
                Err(errno) => Err(errno),
            }),
            request::TIOCSTI => Some(Err(Errno::EIO)),
            _ => self.settings(caller, request, arg, master).or_else(|| {
                let terminal = || -> Arc<dyn Terminal> { self.clone() };
                self.job.ioctl((caller, file), &terminal, request, arg, master)
            }),
        }
    }

    /// TIOCSIG: a signal as if its character had been typed.
    fn send_typed(&self, signal: usize) -> Result<usize> {
        let signal = u32::try_from(signal).ok().filter(|signal| [SIGINT, SIGQUIT, SIGTSTP].contains(signal));
        let signal = signal.ok_or(Errno::EINVAL)?;
        let foreground = self.job.foreground();
        if foreground != 0 {
            self.signals.send(foreground, signal);
        }
        Ok(0)
    }

    fn flush(&self, arg: usize, master: bool) -> Result<usize> {
        const TCIFLUSH: usize = 0;
        const TCOFLUSH: usize = 1;
        const TCIOFLUSH: usize = 2;
        if arg > TCIOFLUSH {
            return Err(Errno::EINVAL);
        }
        {
            let mut state = self.state.lock();
            // The master's input is the slave's output.
            let input = arg == TCIOFLUSH || (arg == TCIFLUSH) != master;
            let output = arg == TCIOFLUSH || (arg == TCOFLUSH) != master;
            if input {
                state.line.flush_input();
                state.packet_status |= packet::FLUSHREAD;
            }
            if output {
                state.line.flush_output();
                state.packet_status |= packet::FLUSHWRITE;
            }
        }
        self.changed();
        Ok(0)
    }

    fn flow(&self, arg: usize) -> Result<usize> {
        const TCOOFF: usize = 0;
        const TCOON: usize = 1;
        const TCIOFF: usize = 2;
        const TCION: usize = 3;
        {
            let mut state = self.state.lock();
            match arg {
                TCOOFF => {
                    state.line.stopped = true;
                    state.packet_status |= packet::STOP;
                }
                TCOON => {
                    state.line.stopped = false;
                    state.packet_status |= packet::START;
                }
                TCIOFF | TCION => {}
                _ => return Err(Errno::EINVAL),
            }
        }
        self.changed();
        Ok(0)
    }

    /// How many bytes the keyboard may deliver now.
    pub fn input_room(&self) -> usize {
        let state = self.state.lock();
        let left = super::discipline::INPUT_MOST.saturating_sub(state.line.readable());
        // One byte at a time where room is short: what was taken from the keyboard must be delivered.
        if state.line.has_input_room() { left.max(1) } else { 0 }
    }

    /// Bytes from the master's side: typed on the keyboard. The number taken.
    pub fn type_bytes(&self, bytes: &[u8]) -> usize {
        let mut signals = Vec::new();
        let mut taken = 0;
        {
            let mut state = self.state.lock();
            for byte in bytes {
                if !state.line.has_input_room() {
                    break;
                }
                signals.extend(state.line.type_byte(*byte));
                taken += 1;
            }
        }
        self.changed();
        let foreground = self.job.foreground();
        for signal in signals {
            if foreground != 0 {
                self.signals.send(foreground, signal);
            }
        }
        taken
    }
}

impl Terminal for Pty {
    fn open(self: Arc<Self>) -> Result<Arc<dyn File>> {
        self.open_slave(true)
    }
    fn device(&self) -> u64 {
        self.device
    }
    fn job(&self) -> &Job {
        &self.job
    }
}

/// The slave's side, one per open.
pub struct Slave {
    pub pty: Arc<Pty>,
}

impl Drop for Slave {
    fn drop(&mut self) {
        self.pty.state.lock().slaves -= 1;
        self.pty.changed();
    }
}

impl File for Slave {
    fn before_transfer(&self, caller: &dyn Caller, write: bool) -> Result<usize> {
        if !write {
            self.pty.job.check_read(caller)?;
        } else if self.pty.state.lock().line.termios.lflag & lflag::TOSTOP != 0 {
            self.pty.job.check_change(caller)?;
        }
        Ok(1)
    }

    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        let taken = {
            let mut state = self.pty.state.lock();
            match state.line.read(buf.left()) {
                Some(taken) => taken,
                // Hung up: nothing will come any more.
                None if !state.master_open => return Ok(0),
                None => return Err(Errno::EAGAIN),
            }
        };
        match &self.pty.screen {
            Some(screen) => screen.input_taken(),
            None => self.pty.master_waits.wake_all(),
        }
        buf.put(&taken)
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        let mut done = 0;
        loop {
            let mut state = self.pty.state.lock();
            if !state.master_open {
                return Err(Errno::EIO);
            }
            if buf.left() == 0 {
                return Ok(done);
            }
            if !state.line.has_output_room() {
                return if done > 0 { Ok(done) } else { Err(Errno::EAGAIN) };
            }
            drop(state);
            let mut bytes = [0; 256];
            let n = match buf.get(&mut bytes) {
                Ok(n) => n,
                Err(errno) => return if done > 0 { Ok(done) } else { Err(errno) },
            };
            state = self.pty.state.lock();
            for byte in &bytes[..n] {
                state.line.put(*byte);
            }
            drop(state);
            done += n;
            self.pty.output_changed();
        }
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.pty.slave_waits);
        }
        let state = self.pty.state.lock();
        if !state.master_open {
            return Events::ALWAYS | Events::HUP | Events::ERR;
        }
        let mut events = Events::empty();
        if state.line.is_ready() {
            events |= Events::IN | Events::RDNORM;
        }
        if state.line.has_output_room() {
            events |= Events::OUT | Events::WRNORM;
        }
        events
    }

    fn streams(&self) -> bool {
        true
    }

    fn wait_limit(&self, write: bool) -> Option<u64> {
        if write { None } else { self.pty.state.lock().line.read_timeout() }
    }

    fn timed_out(&self, write: bool) -> Result<usize> {
        if write { Err(Errno::EAGAIN) } else { Ok(0) }
    }

    fn ioctl(&self, file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        if !self.pty.state.lock().master_open {
            return Err(Errno::EIO);
        }
        if let Some(result) = self.pty.common((caller, file), request, arg, false) {
            return result;
        }
        let value = match request {
            request::FIONREAD => self.pty.state.lock().line.readable(),
            request::TIOCOUTQ => self.pty.state.lock().line.output.len(),
            // A terminal, but no master (that is asked where descriptors are made).
            request::TIOCGPTPEER => return Err(Errno::EIO),
            _ => return Err(Errno::ENOTTY),
        };
        UserPtr::<u32>::new(arg).write(caller.user(), &(value as u32)).map(|()| 0)
    }

    fn attr(&self) -> Result<Attr> {
        Ok(*self.pty.attr.lock())
    }

    fn label(&self) -> String {
        self.pty.label.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The master's side.
pub struct Master {
    pty: Arc<Pty>,
    /// Called when the master is gone and the number is free.
    gone: Arc<dyn Fn(u32) + Send + Sync>,
}

impl Master {
    pub fn new(pty: Arc<Pty>, gone: Arc<dyn Fn(u32) + Send + Sync>) -> Master {
        Master { pty, gone }
    }

    /// The pair.
    pub fn pty(&self) -> &Arc<Pty> {
        &self.pty
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        self.pty.unplug();
        (self.gone)(self.pty.number);
    }
}

impl File for Master {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        let bytes: Vec<u8> = {
            let mut state = self.pty.state.lock();
            if state.packet_mode && state.packet_status != 0 {
                let status = core::mem::take(&mut state.packet_status);
                drop(state);
                return buf.put(&[status]);
            }
            if state.line.output.is_empty() || state.line.stopped {
                let over = state.had_slave && state.slaves == 0;
                return Err(if over { Errno::EIO } else { Errno::EAGAIN });
            }
            let mode = usize::from(state.packet_mode);
            let n = state.line.output.len().min(buf.left().saturating_sub(mode));
            core::iter::repeat_n(0, mode).chain(state.line.output.drain(..n)).collect()
        };
        self.pty.slave_waits.wake_all();
        buf.put(&bytes)
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        let mut done = 0;
        while buf.left() > 0 {
            let mut bytes = [0; 64];
            let room = self.pty.input_room().min(bytes.len());
            if room == 0 {
                break;
            }
            let n = match buf.get(&mut bytes[..room]) {
                Ok(n) => n,
                Err(errno) => return if done > 0 { Ok(done) } else { Err(errno) },
            };
            self.pty.type_bytes(&bytes[..n]);
            done += n;
        }
        if done == 0 && buf.left() > 0 { Err(Errno::EAGAIN) } else { Ok(done) }
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.pty.master_waits);
        }
        let state = self.pty.state.lock();
        let mut events = Events::empty();
        let status = state.packet_mode && state.packet_status != 0;
        if !state.line.output.is_empty() && !state.line.stopped || status {
            events |= Events::IN | Events::RDNORM;
        }
        events.set(Events::PRI, status);
        if state.line.has_input_room() {
            events |= Events::OUT | Events::WRNORM;
        }
        if state.had_slave && state.slaves == 0 {
            events |= Events::HUP;
        }
        events
    }

    fn streams(&self) -> bool {
        true
    }

    fn ioctl(&self, file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        let user = caller.user();
        let pty = &self.pty;
        let word = UserPtr::<u32>::new(arg);
        match request {
            request::TIOCGPTN => word.write(user, &pty.number).map(|()| 0),
            request::TIOCSPTLCK => {
                pty.state.lock().locked = word.read(user)? != 0;
                Ok(0)
            }
            request::TIOCGPTLCK => word.write(user, &u32::from(pty.state.lock().locked)).map(|()| 0),
            request::TIOCPKT => {
                let on = word.read(user)? != 0;
                let mut state = pty.state.lock();
                state.packet_mode = on;
                state.packet_status = 0;
                Ok(0)
            }
            request::TIOCSIG => pty.send_typed(arg),
            request::TIOCGPKT => word.write(user, &u32::from(pty.state.lock().packet_mode)).map(|()| 0),
            request::FIONREAD => {
                let held = pty.state.lock().line.output.len() as u32;
                word.write(user, &held).map(|()| 0)
            }
            request::TIOCOUTQ => {
                let held = pty.state.lock().line.readable() as u32;
                word.write(user, &held).map(|()| 0)
            }
            _ => pty.common((caller, file), request, arg, true).unwrap_or(Err(Errno::ENOTTY)),
        }
    }

    fn attr(&self) -> Result<Attr> {
        let attr = *self.pty.attr.lock();
        Ok(Attr { rdev: device::number(5, 2), mode: FileKind::CharDevice as u32 | 0o666, ..attr })
    }

    fn label(&self) -> String {
        String::from("/dev/ptmx")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
