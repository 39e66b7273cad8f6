//! Job control: which session a terminal belongs to and which group is in its foreground.

use alloc::sync::Arc;

use janua_abi::linux::capability::CAP_SYS_ADMIN;
use janua_abi::linux::signal::{SIGCONT, SIGHUP, SIGTTIN, SIGTTOU};
use janua_abi::linux::termios::request;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_rt::Mutex;

use super::{Controlling, Terminal};
use crate::caller::Caller;
use crate::file::{OpenFile, flags};

#[derive(Clone, Copy, Default)]
struct State {
    session: u32,
    foreground: u32,
}

/// Whether a file with these flags is open for reading.
fn reads(open: u32) -> bool {
    open & flags::O_ACCMODE != flags::O_WRONLY
}

/// The job-control state of a terminal.
#[derive(Default)]
pub struct Job {
    state: Mutex<State>,
}

impl Job {
    /// The foreground process group; 0 when there is none.
    pub fn foreground(&self) -> u32 {
        self.state.lock().foreground
    }

    /// The session whose controlling terminal this is; 0 for none.
    pub fn session(&self) -> u32 {
        self.state.lock().session
    }

    /// Gives the terminal to a session.
    pub fn set(&self, session: u32, foreground: u32) {
        *self.state.lock() = State { session, foreground };
    }

    /// Takes it away from a session, unless another has it by now: the foreground group, 0 for none.
    pub fn clear_of(&self, session: u32) -> u32 {
        let mut state = self.state.lock();
        if state.session == session { core::mem::take(&mut *state).foreground } else { 0 }
    }

    /// Takes it away; who had it: session and foreground group.
    pub fn clear(&self) -> (u32, u32) {
        let old = core::mem::take(&mut *self.state.lock());
        (old.session, old.foreground)
    }

    /// Whether the caller is a background process of this terminal.
    fn in_background(&self, caller: &dyn Caller) -> bool {
        let state = *self.state.lock();
        state.session != 0 && state.session == caller.session() && ![0, caller.pgrp()].contains(&state.foreground)
    }

    /// A read from the background stops the reader (SIGTTIN); where that cannot be, EIO.
    pub fn check_read(&self, caller: &dyn Caller) -> Result<()> {
        if self.in_background(caller) { self.stop_reader(caller) } else { Ok(()) }
    }

    /// What becomes of a read from the background.
    pub fn stop_reader(&self, caller: &dyn Caller) -> Result<()> {
        if caller.job_signal_ignored(SIGTTIN) || caller.is_group_orphaned() {
            return Err(Errno::EIO);
        }
        caller.signal_group(caller.pgrp(), SIGTTIN);
        Err(Errno::ERESTARTSYS)
    }

    /// A change from the background stops its maker (SIGTTOU), unless that is ignored or blocked; where it cannot be, EIO.
    pub fn check_change(&self, caller: &dyn Caller) -> Result<()> {
        if self.in_background(caller) { self.stop_changer(caller) } else { Ok(()) }
    }

    /// What becomes of a change from the background.
    pub fn stop_changer(&self, caller: &dyn Caller) -> Result<()> {
        if caller.job_signal_ignored(SIGTTOU) {
            return Ok(());
        }
        if caller.is_group_orphaned() {
            return Err(Errno::EIO);
        }
        caller.signal_group(caller.pgrp(), SIGTTOU);
        Err(Errno::ERESTARTSYS)
    }

    /// Makes `terminal` the caller's controlling terminal if it may be: a session leader without one, a terminal without a
    /// session, and opened for reading.
    pub fn take_at_open(&self, caller: &dyn Caller, terminal: Arc<dyn Terminal>, open: u32) {
        if open & flags::O_NOCTTY != 0 || !reads(open) {
            return;
        }
        let free = self.state.lock().session == 0;
        if free && caller.is_session_leader() && caller.terminal().is_none() {
            self.set(caller.session(), caller.pgrp());
            caller.set_terminal(Some(Arc::new(Controlling(terminal))));
        }
    }

    /// Whether this is the caller's controlling terminal.
    fn is_mine(&self, caller: &dyn Caller) -> bool {
        self.session() == caller.session() && caller.terminal().is_some()
    }

    /// The requests of ioctl(2) about sessions and groups; `None` for all others. `master`: asked on a pty's master side, which
    /// may look at the other side's group.
    pub fn ioctl(
        &self,
        (caller, file): (&dyn Caller, &OpenFile),
        terminal: &dyn Fn() -> Arc<dyn Terminal>,
        request: u32,
        arg: usize,
        master: bool,
    ) -> Option<Result<usize>> {
        Some(match request {
            request::TIOCGPGRP => self.get(caller, arg, master, |state| state.foreground),
            request::TIOCGSID => self.get(caller, arg, master, |state| state.session),
            request::TIOCSPGRP => self.set_foreground(caller, arg),
            request::TIOCSCTTY => self.become_controlling(caller, reads(file.flags()), terminal, arg),
            request::TIOCNOTTY => self.give_up(caller),
            _ => return None,
        })
    }

    fn get(&self, caller: &dyn Caller, arg: usize, master: bool, what: fn(&State) -> u32) -> Result<usize> {
        if !master && !self.is_mine(caller) {
            return Err(Errno::ENOTTY);
        }
        let value = what(&self.state.lock());
        UserPtr::<u32>::new(arg).write(caller.user(), &value).map(|()| 0)
    }

    fn set_foreground(&self, caller: &dyn Caller, arg: usize) -> Result<usize> {
        if !self.is_mine(caller) {
            return Err(Errno::ENOTTY);
        }
        // One that cannot be stopped has no terminal to give away.
        self.check_change(caller).map_err(|errno| if errno == Errno::EIO { Errno::ENOTTY } else { errno })?;
        let pgrp = UserPtr::<i32>::new(arg).read(caller.user())?;
        let pgrp = u32::try_from(pgrp).map_err(|_| Errno::EINVAL)?;
        match caller.session_of_group(pgrp) {
            None => Err(Errno::ESRCH),
            Some(session) if session != caller.session() => Err(Errno::EPERM),
            Some(_) => {
                self.state.lock().foreground = pgrp;
                Ok(0)
            }
        }
    }

    fn become_controlling(
        &self,
        caller: &dyn Caller,
        reads: bool,
        terminal: &dyn Fn() -> Arc<dyn Terminal>,
        arg: usize,
    ) -> Result<usize> {
        if caller.is_session_leader() && self.session() == caller.session() {
            return Ok(0);
        }
        if !caller.is_session_leader() || caller.terminal().is_some() {
            return Err(Errno::EPERM);
        }
        // A terminal of another session can be stolen, by root who asks for it.
        if self.session() != 0 && !(arg == 1 && caller.cred().capable(CAP_SYS_ADMIN)) {
            return Err(Errno::EPERM);
        }
        if !reads && !caller.cred().capable(CAP_SYS_ADMIN) {
            return Err(Errno::EPERM);
        }
        self.set(caller.session(), caller.pgrp());
        caller.set_terminal(Some(Arc::new(Controlling(terminal()))));
        Ok(0)
    }

    fn give_up(&self, caller: &dyn Caller) -> Result<usize> {
        if !self.is_mine(caller) {
            return Err(Errno::ENOTTY);
        }
        if caller.is_session_leader() {
            let (_, foreground) = self.clear();
            caller.set_terminal(None);
            if foreground != 0 {
                caller.signal_group(foreground, SIGHUP);
                caller.signal_group(foreground, SIGCONT);
            }
        }
        Ok(0)
    }
}
