//! A pseudoterminal's settings as ioctl(2) reads and writes them: in three layouts, with speeds that mean nothing, and some of them
//! locked.

use alloc::sync::Arc;

use janua_abi::linux::capability::CAP_SYS_ADMIN;
use janua_abi::linux::termios::{Termio, Termios, Termios2, cflag, request};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;

use super::{Pty, State};
use crate::caller::Caller;

impl State {
    fn settings(&self) -> Termios2 {
        let [input_speed, output_speed] = self.speeds;
        Termios2 { termios: self.line.termios, input_speed, output_speed }.with_speeds()
    }

    fn set_settings(&mut self, new: Termios2) {
        let old = self.line.termios;
        let mut termios = self.locks.map_or(new.termios, |locks| new.termios.but_locked(&locks, &old));
        let new = Termios2 { termios, ..new }.with_speeds();
        self.speeds = [new.input_speed, new.output_speed];
        // There is no line that could lose or garble a byte.
        termios.cflag = termios.cflag & !(cflag::CSIZE | cflag::PARENB) | cflag::CS8 | cflag::CREAD;
        self.line.set_termios(termios);
    }
}

impl Pty {
    /// The requests about settings, which both sides know; `None` for all others.
    pub(super) fn settings(
        self: &Arc<Pty>,
        caller: &dyn Caller,
        request: u32,
        arg: usize,
        master: bool,
    ) -> Option<Result<usize>> {
        let user = caller.user();
        let whole = || self.state.lock().settings();
        let given = |old: Termios2| -> Result<Termios2> {
            Ok(match request {
                request::TCSETS2 | request::TCSETSW2 | request::TCSETSF2 => UserPtr::new(arg).read(user)?,
                request::TCSETA | request::TCSETAW | request::TCSETAF => {
                    Termios2 { termios: UserPtr::<Termio>::new(arg).read(user)?.apply(&old.termios), ..old }
                }
                request::TIOCSSOFTCAR => {
                    let local = if UserPtr::<u32>::new(arg).read(user)? == 0 { 0 } else { cflag::CLOCAL };
                    let cflag = old.termios.cflag & !cflag::CLOCAL | local;
                    Termios2 { termios: Termios { cflag, ..old.termios }, ..old }
                }
                _ => Termios2 { termios: UserPtr::new(arg).read(user)?, ..old },
            })
        };
        let result = match request {
            request::TCGETS => UserPtr::new(arg).write(user, &whole().termios),
            request::TCGETS2 => UserPtr::new(arg).write(user, &whole()),
            request::TCGETA => UserPtr::new(arg).write(user, &Termio::of(&whole().termios)),
            request::TCSETS | request::TCSETSW | request::TCSETS2 | request::TCSETSW2 | request::TCSETA | request::TCSETAW => {
                self.change(caller, false, master, given)
            }
            request::TCSETSF | request::TCSETSF2 | request::TCSETAF => self.change(caller, true, master, given),
            request::TIOCGSOFTCAR => {
                let local = whole().termios.cflag & cflag::CLOCAL != 0;
                UserPtr::new(arg).write(user, &u32::from(local))
            }
            request::TIOCSSOFTCAR => self.change(caller, false, true, given),
            request::TIOCGLCKTRMIOS => {
                let none = Termios { iflag: 0, oflag: 0, cflag: 0, lflag: 0, line: 0, cc: [0; 19] };
                let locks = self.state.lock().locks.unwrap_or(none);
                UserPtr::new(arg).write(user, &locks)
            }
            request::TIOCSLCKTRMIOS => self.lock_settings(caller, arg),
            _ => return None,
        };
        Some(result.map(|()| 0))
    }

    fn lock_settings(&self, caller: &dyn Caller, arg: usize) -> Result<()> {
        if !caller.cred().capable(CAP_SYS_ADMIN) {
            return Err(Errno::EPERM);
        }
        let locks = UserPtr::<Termios>::new(arg).read(caller.user())?;
        self.state.lock().locks = Some(locks);
        Ok(())
    }

    /// Changes the settings to what `new` makes of those there are.
    fn change(
        self: &Arc<Pty>,
        caller: &dyn Caller,
        flush: bool,
        master: bool,
        new: impl Fn(Termios2) -> Result<Termios2>,
    ) -> Result<()> {
        if !master {
            self.job.check_change(caller)?;
        }
        let old = self.state.lock().settings();
        let new = new(old)?;
        {
            let mut state = self.state.lock();
            if flush {
                state.line.flush_input();
            }
            state.set_settings(new);
        }
        self.changed();
        Ok(())
    }
}
