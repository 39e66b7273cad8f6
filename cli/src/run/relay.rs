//! What is between gdb and the sandbox: this command, started again and of no sandbox, passes packets on, so that nothing inside speaks to gdb but by
//! [`janua_debug::Filter`].
//!
//! It is no child of the supervisor's, which takes its children for processes of the sandbox, and ends when either side does: so also when
//! the supervisor is killed.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use janua_debug::{Filter, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The first argument of a `janua` that starts one that passes packets on.
pub const ARGUMENT: &str = "relay-gdb";
/// And the second one of the latter.
const APART: &str = "apart";

/// How long who reads no more is waited for when the other side is gone.
const PATIENCE: Duration = Duration::from_secs(1);

const GONE: PollFlags = PollFlags::HUP.union(PollFlags::ERR).union(PollFlags::RDHUP);

/// A relay as its supervisor sees it. Dropping it ends it, once it has passed on to gdb what it got last.
pub struct Relay(UnixStream);

impl Relay {
    /// Starts one for a connection of gdb's: besides, what the sandbox gets.
    pub fn start(gdb: OwnedFd) -> io::Result<(OwnedFd, Relay)> {
        let (inner, outer) = UnixStream::pair()?;
        let started = Command::new("/proc/self/exe").arg(ARGUMENT).stdin(gdb).stdout(OwnedFd::from(outer)).status()?;
        if !started.success() {
            return Err(io::Error::other("what passes packets on cannot be started"));
        }
        Ok((inner.try_clone()?.into(), Relay(inner)))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Whatever fails here, it ends with this process at the latest.
        let _ = self.0.shutdown(Shutdown::Write);
        let _ = self.0.set_nonblocking(false);
        let _ = self.0.set_read_timeout(Some(2 * PATIENCE));
        while self.0.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
    }
}

/// Passes packets on between standard input, which is gdb's connection, and standard output, which is the sandbox's.
pub fn relay() -> ExitCode {
    let apart = std::env::args_os().nth(2).is_some_and(|argument| argument == APART);
    let done = if apart { Between::new().and_then(Between::run) } else { start_apart() };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::exit::say(&format_args!("janua: --gdb: {error}: the connection to gdb is ended\n"));
            ExitCode::FAILURE
        }
    }
}

/// The one that stays has no parent here, and no terminal whose signals are for the program.
fn start_apart() -> io::Result<()> {
    rustix::process::setsid()?;
    Command::new("/proc/self/exe").args([ARGUMENT, APART]).spawn().map(drop)
}

/// The two connections, and what of each is still to be passed on.
struct Between {
    gdb: File,
    sandbox: File,
    to_gdb: Vec<u8>,
    to_sandbox: Vec<u8>,
    filter: Filter,
}

/// What a read has found.
enum Found {
    Bytes(usize),
    Nothing,
    End,
}

impl Between {
    fn new() -> io::Result<Between> {
        let gdb = File::from(rustix::stdio::stdin().try_clone_to_owned()?);
        let sandbox = File::from(rustix::stdio::stdout().try_clone_to_owned()?);
        rustix::io::ioctl_fionbio(&gdb, true)?;
        rustix::io::ioctl_fionbio(&sandbox, true)?;
        Ok(Between { gdb, sandbox, to_gdb: Vec::new(), to_sandbox: Vec::new(), filter: Filter::default() })
    }

    /// Runs until either side is gone. The error names what the sandbox has sent that gdb must not get.
    fn run(mut self) -> io::Result<()> {
        loop {
            let (gdb, sandbox) = self.wait()?;
            if sandbox.intersects(GONE) {
                while self.hear_sandbox()? {}
                return flush(&self.gdb, &mut self.to_gdb);
            }
            if sandbox.contains(PollFlags::IN) && self.to_gdb.is_empty() {
                self.hear_sandbox()?;
            }
            if gdb.intersects(GONE) {
                // Its last words, and that it is gone.
                flush(&self.sandbox, &mut self.to_sandbox)?;
            }
            if gdb.intersects(GONE | PollFlags::IN) && self.to_sandbox.is_empty() && !self.hear_gdb() {
                return Ok(());
            }
            push(&self.gdb, &mut self.to_gdb);
            push(&self.sandbox, &mut self.to_sandbox);
        }
    }

    /// Waits until something can be done: what, at each side. Neither is read before the other has taken what came last.
    fn wait(&self) -> io::Result<(PollFlags, PollFlags)> {
        let wanted = |to: &[u8], from: &[u8]| {
            let read = if from.is_empty() { PollFlags::IN } else { PollFlags::empty() };
            let write = if to.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            read | write | PollFlags::RDHUP
        };
        let mut both = [
            PollFd::new(&self.gdb, wanted(&self.to_gdb, &self.to_sandbox)),
            PollFd::new(&self.sandbox, wanted(&self.to_sandbox, &self.to_gdb)),
        ];
        match poll(&mut both, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok((both[0].revents(), both[1].revents())),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Takes what has come of gdb. False at its end.
    fn hear_gdb(&mut self) -> bool {
        let mut room = [0; 4096];
        match read(&self.gdb, &mut room) {
            Found::Bytes(count) => self.to_sandbox.extend_from_slice(&room[..count]),
            Found::Nothing => {}
            Found::End => return false,
        }
        true
    }

    /// Takes what has come out of the sandbox. False when there is nothing.
    fn hear_sandbox(&mut self) -> io::Result<bool> {
        let mut room = [0; 4096];
        let Found::Bytes(count) = read(&self.sandbox, &mut room) else { return Ok(false) };
        self.filter.pass(&room[..count], &mut self.to_gdb).map_err(|refusal| {
            io::Error::other(match refusal {
                Refusal::FileIo => "the sandbox asks gdb to use files of the host (File-I/O)",
                Refusal::Garbage => "what came out of the sandbox is not gdb's protocol",
            })
        })?;
        Ok(true)
    }
}

fn read(mut file: &File, room: &mut [u8]) -> Found {
    match file.read(room) {
        Ok(0) => Found::End,
        Ok(count) => Found::Bytes(count),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Found::Nothing,
        Err(_) => Found::End,
    }
}

/// Writes what can be written at once. Nobody is there for the rest after an error, which the next read finds too.
fn push(mut file: &File, bytes: &mut Vec<u8>) {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(count) => drop(bytes.drain(..count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => bytes.clear(),
        }
    }
}

/// Writes all of it, unless nobody reads for a while.
fn flush(file: &File, bytes: &mut Vec<u8>) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        push(file, bytes);
        let left = end.saturating_duration_since(Instant::now());
        if bytes.is_empty() || left.is_zero() {
            bytes.clear();
            return Ok(());
        }
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
