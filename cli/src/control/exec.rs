//! `janua exec`: a program beside the others of a sandbox, and this command as its keyboard, screen and signals.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use janua_abi::linux::signal;
use janua_platform_host::channel::Caught;
use janua_platform_host::found;
use janua_port::outside::{Program, WindowSize};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

use super::client::{Exec, ask, reach};
use super::detach::printable;
use super::pipes;
use super::wire::{self, Ask, Received, Reply};

const SIGWINCH: i32 = signal::SIGWINCH as i32;
/// What is passed on: SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM.
const PASSED_ON: [i32; 6] = [1, 2, 3, 10, 12, 15];

/// How long a supervisor may take to begin a program: one that is stopped never does.
const BEGINS: Duration = Duration::from_secs(30);
/// How long what a program wrote last may take to arrive when it has ended, milliseconds.
const LAST_WORDS: i32 = 2000;

pub fn run(what: Exec) -> Result<ExitCode, String> {
    let socket = reach(&what.name)?;
    let screen = Screen::open()?;
    let program = program(&what, screen.as_ref())?;
    let streams = [
        io::stdin().as_fd().try_clone_to_owned(),
        io::stdout().as_fd().try_clone_to_owned(),
        io::stderr().as_fd().try_clone_to_owned(),
    ];
    let mut streams: Vec<OwnedFd> =
        streams.into_iter().collect::<Result<_, _>>().map_err(|error| format!("cannot hand over a descriptor: {error}"))?;
    let shown = pipes::in_place_of_terminals(&program.files, &mut streams)?;
    let mut handed: Vec<BorrowedFd<'_>> = program.files.iter().map(|number| streams[*number as usize].as_fd()).collect();
    handed.extend(screen.as_ref().map(|screen| screen.inside.as_fd()));
    let caught = Caught::take(&[&PASSED_ON[..], &[SIGWINCH]].concat()).ok_or("the host gives no descriptor for signals")?;
    wire::send(&socket, &Ask::Run(Box::new(program)), &handed).map_err(|error| match error {
        rustix::io::Errno::TOOBIG | rustix::io::Errno::MSGSIZE => "arguments and environment are too long".to_owned(),
        error => format!("the sandbox's supervisor does not take it: {error}"),
    })?;
    drop(handed);
    drop(streams);
    let end = match screen {
        Some(screen) => screen.play(&socket, &caught),
        None => follow(&socket, &caught),
    };
    // What the program wrote last, unless others that it began hold the pipe.
    while shown.recv_timeout(Duration::from_millis(LAST_WORDS as u64)).is_ok() {}
    end.report()
}

fn program(what: &Exec, screen: Option<&Screen>) -> Result<Program, String> {
    let bytes = |text: &OsString| text.as_bytes().to_vec();
    let mut envp = Vec::new();
    if screen.is_some() {
        envp.extend(std::env::var_os("TERM").map(|term| [b"TERM=", term.as_bytes()].concat()));
    }
    for setting in &what.env {
        envp.push(match setting.as_bytes() {
            [b'=', ..] | [] => return Err(format!("--env {}: not of the form K=V, or K", setting.to_string_lossy())),
            text if text.contains(&b'=') => text.to_vec(),
            name => {
                let value = std::env::var_os(OsStr::from_bytes(name));
                let value =
                    value.ok_or_else(|| format!("--env {}: it is not in your environment", setting.to_string_lossy()))?;
                [name, b"=", value.as_bytes()].concat()
            }
        });
    }
    if let Some(cwd) = what.cwd.as_ref().filter(|cwd| !cwd.is_absolute()) {
        return Err(format!("--cwd {}: the path must begin with /", cwd.display()));
    }
    // A terminal inside takes the places of the one here.
    let files = (0..3).filter(|number| found::was_open(*number) && !(screen.is_some() && is_terminal(*number)));
    Ok(Program {
        path: what.command.first().map(bytes).unwrap_or_default(),
        argv: what.command.iter().map(bytes).collect(),
        envp,
        cwd: what.cwd.as_ref().map(|cwd| cwd.as_os_str().as_bytes().to_vec()),
        files: files.collect(),
        terminal: screen.map(|_| size()),
        tile: what.tile,
    })
}

pub(super) fn is_terminal(number: u32) -> bool {
    match number {
        0 => isatty(io::stdin()),
        1 => isatty(io::stdout()),
        _ => isatty(io::stderr()),
    }
}

fn size() -> WindowSize {
    tcgetwinsize(io::stdout()).map(|size| WindowSize { rows: size.ws_row, columns: size.ws_col }).unwrap_or_default()
}

/// How it ended.
struct End {
    /// Until when the program is to have begun; none once it has.
    begins: Option<Instant>,
    said: Vec<String>,
    /// The wait status.
    status: Option<u32>,
    why: Option<String>,
}

impl End {
    fn new() -> End {
        End { begins: Some(Instant::now() + BEGINS), said: Vec::new(), status: None, why: None }
    }

    /// Takes in a message of the supervisor's. True when it was the last.
    fn hear(&mut self, socket: &OwnedFd) -> bool {
        loop {
            match wire::receive(socket) {
                Received::Message(Reply::Started { .. }, _) => self.begins = None,
                Received::Message(Reply::Says(text), _) => self.said.push(text),
                Received::Message(Reply::Exited(status), _) => self.status = Some(status),
                Received::Message(Reply::Refused(why), _) => self.why = Some(why),
                Received::Nothing => return false,
                Received::End => self.why = Some("the sandbox's supervisor has been killed".to_owned()),
                Received::Message(..) | Received::Garbage => {
                    self.why = Some("the sandbox's supervisor is of another version of janua".to_owned())
                }
            }
            if self.status.is_some() || self.why.is_some() {
                return true;
            }
        }
    }

    /// How long to wait at most, milliseconds.
    fn patience(&self) -> Option<i32> {
        let left = self.begins?.saturating_duration_since(Instant::now());
        Some(left.as_millis() as i32 + 1)
    }

    /// Whether the supervisor has not begun the program in time.
    fn is_silent(&mut self) -> bool {
        let silent = self.begins.is_some_and(|begins| Instant::now() >= begins);
        if silent {
            self.why = Some("the sandbox's supervisor does not answer: is it stopped?".to_owned());
        }
        silent
    }

    fn report(self) -> Result<ExitCode, String> {
        for text in &self.said {
            crate::exit::say(&format_args!("{}", printable(text)));
        }
        let Some(status) = self.status else { return Err(self.why.unwrap_or_default()) };
        Ok(ExitCode::from(match status & 0x7f {
            0 => (status >> 8) as u8,
            signal => 128 + signal as u8,
        }))
    }
}

/// Passes the signals that come on. True when the window has changed. One that would end a program that has not begun ends the wait for it.
fn pass_on(socket: &OwnedFd, caught: &Caught, end: &mut End) -> bool {
    let mut changed = false;
    while let Some(signal) = caught.next() {
        match signal {
            SIGWINCH => changed = true,
            signal if end.begins.is_some() => end.status = Some(signal as u32),
            // A supervisor that is gone is noticed elsewhere.
            signal => drop(ask(socket, &Ask::Signal(signal as u32))),
        }
    }
    changed
}

fn nonblocking(socket: &OwnedFd) {
    let flags = rustix::fs::fcntl_getfl(socket);
    let _ = flags.and_then(|flags| rustix::fs::fcntl_setfl(socket, flags | rustix::fs::OFlags::NONBLOCK));
}

/// Waits for the end of a program that has all its descriptors.
fn follow(socket: &OwnedFd, caught: &Caught) -> End {
    let mut end = End::new();
    nonblocking(socket);
    loop {
        let ready = caught.wait(&[socket.as_raw_fd()], &[], end.patience());
        if ready & 1 != 0 && end.hear(socket) {
            return end;
        }
        pass_on(socket, caught, &mut end);
        if end.status.is_some() || end.is_silent() {
            return end;
        }
    }
}

/// The terminal here, as keyboard and screen of one inside.
struct Screen {
    /// Our end of the line, and the kernel's.
    line: OwnedFd,
    inside: OwnedFd,
    settings: Termios,
}

impl Screen {
    /// `None` without a terminal to type on and to look at.
    fn open() -> Result<Option<Screen>, String> {
        if !found::was_open(0) || !found::was_open(1) || !isatty(io::stdin()) || !isatty(io::stdout()) {
            return Ok(None);
        }
        let failed = |error: rustix::io::Errno| format!("cannot use the terminal: {error}");
        let settings = tcgetattr(io::stdin()).map_err(failed)?;
        let (line, inside) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
                .map_err(failed)?;
        Ok(Some(Screen { line, inside, settings }))
    }

    /// Hands on what is typed and shown, until the end.
    fn play(self, socket: &OwnedFd, caught: &Caught) -> End {
        let Screen { line, inside, settings } = self;
        drop(inside);
        nonblocking(socket);
        let mut raw = settings.clone();
        raw.make_raw();
        // Without it one sees everything twice.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &raw);
        let mut end = End::new();
        let mut typed = Vec::new();
        let (mut keyboard, mut over) = (true, false);
        loop {
            let none = -1;
            let reading = [socket.as_raw_fd(), line.as_raw_fd(), if keyboard && typed.is_empty() && !over { 0 } else { none }];
            let reading = if over { [none, reading[1], none] } else { reading };
            let writing = [if typed.is_empty() { none } else { line.as_raw_fd() }];
            let ready = caught.wait(&reading, &writing, if over { Some(LAST_WORDS) } else { end.patience() });
            if !over && end.is_silent() {
                break;
            }
            if ready & 2 != 0 && !show(&line) && over || over && ready == 0 {
                break;
            }
            if ready & 1 != 0 && end.hear(socket) {
                over = true;
            }
            if ready & 4 != 0 {
                keyboard = type_some(&mut typed);
                if !keyboard {
                    // The terminal is gone: so is the program's.
                    let _ = rustix::net::shutdown(&line, rustix::net::Shutdown::Write);
                }
            }
            if ready & 8 != 0 {
                match rustix::io::write(&line, &typed) {
                    Ok(count) => drop(typed.drain(..count)),
                    Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                    Err(_) => typed.clear(),
                }
            }
            if pass_on(socket, caught, &mut end) {
                let _ = ask(socket, &Ask::Resize(size()));
            }
            if end.status.is_some() && !over {
                break;
            }
        }
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &settings);
        end
    }
}

/// Shows what has come. False at the line's end.
fn show(line: &OwnedFd) -> bool {
    let mut bytes = [0; 16 << 10];
    match rustix::io::read(line, &mut bytes) {
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => true,
        Ok(0) | Err(_) => false,
        Ok(count) => {
            let mut out = io::stdout().lock();
            // A terminal that is gone shows nothing.
            let _ = out.write_all(&bytes[..count]).and_then(|()| out.flush());
            true
        }
    }
}

/// Takes what was typed. False when the terminal is gone.
fn type_some(typed: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 4096];
    match rustix::io::read(io::stdin(), &mut bytes) {
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => true,
        Ok(0) | Err(_) => false,
        Ok(count) => {
            typed.extend_from_slice(&bytes[..count]);
            true
        }
    }
}
