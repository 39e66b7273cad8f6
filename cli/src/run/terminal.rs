//! The outside's terminal while a sandbox runs.

use std::fs::File;

use janua_platform_host::sandbox::Sandbox;
use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr};

/// The terminal's settings before the program changed them.
pub struct Saved {
    terminal: Option<(File, Termios)>,
}

impl Saved {
    /// Takes the settings of the controlling terminal, if there is one.
    pub fn new() -> Saved {
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok();
        let terminal = terminal.and_then(|tty| tcgetattr(&tty).ok().map(|settings| (tty, settings)));
        Saved { terminal }
    }

    /// Puts the settings back.
    pub fn restore(&self) {
        if let Some((tty, settings)) = &self.terminal {
            // Nothing can be done about a terminal that is gone.
            let _ = tcsetattr(tty, OptionalActions::Drain, settings);
        }
    }

    /// The run is over: a terminal that a killed program left raw is put back, as shells do for theirs. Not when standard output goes
    /// elsewhere, or we are in the background: then the terminal may be a pager's, or another job's.
    pub fn over(&self) {
        let Some((tty, settings)) = &self.terminal else { return };
        let ours = self.is_ours();
        let same = |now: &Termios| {
            let flags = |t: &Termios| (t.input_modes, t.output_modes, t.control_modes, t.local_modes);
            flags(now) == flags(settings)
        };
        if ours && isatty(std::io::stdout()) && tcgetattr(tty).is_ok_and(|now| !same(&now)) {
            self.restore();
        }
    }

    /// Whether we are in the foreground of the terminal.
    fn is_ours(&self) -> bool {
        self.terminal.as_ref().is_some_and(|(tty, _)| tcgetpgrp(tty).is_ok_and(|group| group == getpgrp()))
    }

    /// The program stopped: stop like it, so that the shell outside takes over, and go on with it when continued.
    pub fn stop(&self, sandbox: &Sandbox, signal: u32) {
        // In the background the settings are another job's.
        let inside = self.terminal.as_ref().filter(|_| self.is_ours()).and_then(|(tty, _)| tcgetattr(tty).ok());
        if inside.is_some() {
            self.restore();
        }
        let how = [Signal::TTIN, Signal::TTOU].into_iter().find(|how| how.as_raw() as u32 == signal).unwrap_or(Signal::STOP);
        let _ = kill_process(getpid(), how);
        // Continued: back in the foreground, with the program's settings.
        if let (Some((tty, _)), Some(inside)) = (&self.terminal, inside.filter(|_| self.is_ours())) {
            let _ = tcsetattr(tty, OptionalActions::Drain, &inside);
        }
        let _ = sandbox.signal(Signal::CONT.as_raw());
    }
}
