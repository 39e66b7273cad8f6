//! The keeper: a second process that does what is left to do when `janua boot` is killed: it puts the terminal's settings back and
//! ends QEMU. It is in a session of its own, so that what kills a whole job does not kill it too.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// The first argument of a `janua` that is a keeper.
pub const ARGUMENT: &str = "keep-boot";

/// What the keeper sends when it has seen the terminal's settings, and receives when nothing is left to do.
const READY: u8 = b'r';
const DONE: u8 = b'd';

/// The keeper as its `janua` sees it.
pub struct Keeper {
    child: Child,
    line: UnixStream,
}

impl Keeper {
    /// Starts a keeper for a machine; with `terminal` it sees the settings of standard input's before this returns.
    pub fn start(machine: &Child, terminal: bool) -> io::Result<Keeper> {
        let pid = i32::try_from(machine.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
        let machine = pidfd_open(pid, PidfdFlags::empty())?;
        let (line, its) = UnixStream::pair()?;
        let terminal = if terminal { Stdio::from(io::stdin().as_fd().try_clone_to_owned()?) } else { Stdio::null() };
        // Its standard streams are what it works with; it prints nothing.
        let child = Command::new("/proc/self/exe")
            .arg(ARGUMENT)
            .stdin(OwnedFd::from(its))
            .stdout(terminal)
            .stderr(Stdio::from(machine))
            .spawn()?;
        let mut keeper = Keeper { child, line };
        keeper.line.read_exact(&mut [0])?;
        Ok(keeper)
    }

    /// Nothing is left to do.
    pub fn dismiss(mut self) {
        // One that was killed is dismissed too.
        let _ = self.line.write_all(&[DONE]);
        let _ = self.child.wait();
    }
}

/// The keeper itself.
pub fn keep() -> ExitCode {
    let (line, terminal, machine) = (rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr());
    let _ = rustix::process::setsid();
    let settings = tcgetattr(terminal);
    let mut word = [0];
    if rustix::io::write(line, &[READY]).is_err() {
        return ExitCode::FAILURE;
    }
    let said = loop {
        match rustix::io::read(line, &mut word) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other,
        }
    };
    if said == Ok(1) && word == [DONE] {
        return ExitCode::SUCCESS;
    }
    // What is gone already needs nothing.
    let _ = pidfd_send_signal(machine, Signal::KILL);
    if let Ok(settings) = settings {
        let _ = tcsetattr(terminal, OptionalActions::Now, &settings);
    }
    ExitCode::SUCCESS
}
