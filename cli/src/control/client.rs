//! The commands on running sandboxes, but for how a list is written and a program is run.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueHint;
use rustix::fd::OwnedFd;

use super::place::{Name, Place};
use super::wire::{self, Ask, Received, Reply};
use super::{exec, list, log, stats};
use crate::exit;

#[derive(clap::Args)]
#[command(after_help = "\
PID is a process's number on the host for a sandbox, and inside for its processes, which follow it; HOST is theirs on
the host. CPU is processor time. A sandbox's memory is what counts against its --memory, a process's what it alone has
resident.")]
pub struct List {
    /// Print an array of JSON
    #[arg(long)]
    pub json: bool,
    /// Print names only
    #[arg(long, short, conflicts_with = "json")]
    pub quiet: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  janua exec web -- ps aux
  janua exec web -- sh
  echo 'flushall' | janua exec web -- redis-cli

Exit code: the program's; 128+n if signal n ended it; 127: not found; 126: found, but not executable; 125: there is no
such sandbox, or it refuses. What the program left running goes on until the sandbox ends.")]
pub struct Exec {
    /// The sandbox
    pub name: String,
    /// Set K to V in the program's environment, or pass your K on; can be repeated
    #[arg(long, value_name = "K[=V]")]
    pub env: Vec<OsString>,
    /// The directory to start in, a path inside; without it where the sandbox's program started
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cwd: Option<PathBuf>,
    /// The tile to run on, of a sandbox started with --place spread; without it the first. No terminal, then
    #[arg(long, value_name = "N")]
    pub tile: Option<u32>,
    /// The program and its arguments; a name without a slash is looked up in PATH inside
    #[arg(value_name = "PROGRAM", required = true, num_args = 1.., trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

#[derive(clap::Args)]
pub struct Kill {
    /// The sandboxes
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// The signal, by name or number, for the sandbox's program; without it, or with KILL, all of the sandbox ends
    #[arg(long, short, value_name = "S", default_value = "KILL", value_parser = signal)]
    pub signal: u32,
}

#[derive(clap::Args)]
#[command(after_help = "\
Nothing inside is notified, and time goes on: a sleep that was to end meanwhile ends at once, and so does what janua run --time
allows. A signal of janua kill --signal is taken when the sandbox goes on; without --signal it ends as ever.")]
pub struct Pause {
    /// The sandboxes
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
}

#[derive(clap::Args)]
pub struct Resume {
    /// The sandboxes; those that run are left as they are
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
}

#[derive(clap::Args)]
#[command(after_help = "\
MOST is the most at a time, REFUSED how often somebody got nothing for the limit. Memory is what counts against --memory, disk
files in memory (--disk), tasks threads (--pids). Calls are counted in a sandbox that janua run --stats has started.")]
pub struct Stats {
    /// The sandboxes
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Print an array of JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
janua stats shows where the modules are. One that has been moved stays there; CORE `auto` has it go where there is less to do
again, as all do at first.")]
pub struct Move {
    /// The sandbox
    pub name: String,
    /// The module: all, or with several cores all0, all1 and on; with --modules kind fs, mm, ipc, task, time or net
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub module: String,
    /// The syscall core, from 0 on; or auto
    #[arg(value_parser = core_number)]
    pub core: Core,
}

/// Where a module is to be: on a syscall core, or wherever there is less to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    Number(u32),
    Auto,
}

#[derive(clap::Args)]
pub struct Logs {
    /// The sandbox; one that has ended, too
    pub name: String,
    /// Go on with what is still written, until the sandbox ends
    #[arg(long, short)]
    pub follow: bool,
}

#[derive(clap::Args)]
#[command(after_help = "Exit code: that of the sandbox, as janua run would give it; 125: there is no such sandbox.")]
pub struct Wait {
    /// The sandbox; one in the background that has ended, too
    pub name: String,
}

/// A signal's number.
fn signal(text: &str) -> Result<u32, String> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
        "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
        "PWR", "SYS",
    ];
    if let Ok(number) = text.parse() {
        return if (1..=64).contains(&number) { Ok(number) } else { Err("signals have the numbers 1 to 64".to_owned()) };
    }
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    NAMES
        .iter()
        .position(|known| *known == name)
        .map(|at| at as u32 + 1)
        .ok_or_else(|| "no such signal; for example TERM".to_owned())
}

fn core_number(text: &str) -> Result<Core, String> {
    match text {
        "auto" => Ok(Core::Auto),
        _ => text.parse().map(Core::Number).map_err(|_| "not the number of a core, and not auto".to_owned()),
    }
}

/// The place of all sandboxes and the name of one.
fn place_of(name: &str) -> Result<(Place, Name), String> {
    let unknown = || format!("there is no sandbox named {}\n       janua list shows those that run", name.escape_debug());
    let parsed = Name::parse(name).ok_or_else(unknown)?;
    Ok((Place::find()?.ok_or_else(unknown)?, parsed))
}

/// A connection to the sandbox of this name.
pub fn reach(name: &str) -> Result<OwnedFd, String> {
    let (place, name) = place_of(name)?;
    place.reach(&name)?.ok_or_else(|| match place.ended(&name) {
        Some(code) => format!("the sandbox {name} has ended, with exit code {code}"),
        None => format!("there is no sandbox named {name}\n       janua list shows those that run"),
    })
}

/// The next reply. `patient`: however long it takes. The error means that the supervisor does not reply, or is gone.
pub fn reply(socket: &OwnedFd, patient: bool) -> Result<Reply, String> {
    loop {
        return match wire::receive(socket) {
            Received::Message(reply, _) => Ok(reply),
            Received::Nothing if patient => continue,
            Received::Nothing => Err("the sandbox's supervisor does not answer: is it stopped?".to_owned()),
            Received::End => Err("the sandbox's supervisor has been killed".to_owned()),
            Received::Garbage => Err("the sandbox's supervisor is of another version of janua".to_owned()),
        };
    }
}

pub fn ask(socket: &OwnedFd, ask: &Ask) -> Result<(), String> {
    wire::send(socket, ask, &[]).map_err(|error| format!("the sandbox's supervisor does not take it: {error}"))
}

fn described(result: Result<ExitCode, String>) -> ExitCode {
    result.unwrap_or_else(|why| exit::fail(&why))
}

pub fn list(which: &List) -> ExitCode {
    described(Place::find().map(|place| list::print(place.as_ref(), which)))
}

pub fn exec(what: Exec) -> ExitCode {
    described(exec::run(what))
}

pub fn kill(which: &Kill) -> ExitCode {
    each(&which.names, |name| kill_one(name, which.signal))
}

pub fn pause(which: &Pause) -> ExitCode {
    each(&which.names, |name| hold(name, true))
}

pub fn resume(which: &Resume) -> ExitCode {
    each(&which.names, |name| hold(name, false))
}

pub fn stats(which: &Stats) -> ExitCode {
    stats::print(&which.names, which.json)
}

pub fn move_module(which: &Move) -> ExitCode {
    described(move_one(which).map(|()| ExitCode::SUCCESS))
}

fn move_one(which: &Move) -> Result<(), String> {
    let Move { name, module, core } = which;
    let socket = reach(name)?;
    let core = match core {
        Core::Number(core) => Some(*core),
        Core::Auto => None,
    };
    ask(&socket, &Ask::Move(module.clone(), core))?;
    match reply(&socket, false)? {
        Reply::Done => Ok(()),
        Reply::Refused(why) => Err(format!("the module {} of {name} has not been moved: {why}", module.escape_debug())),
        _ => Err("the sandbox's supervisor is of another version of janua".to_owned()),
    }
}

/// Does it to all of them, whatever becomes of one.
fn each(names: &[String], to: impl Fn(&str) -> Result<(), String>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for name in names {
        if let Err(why) = to(name) {
            code = exit::fail(&why);
        }
    }
    code
}

/// Pauses a sandbox, or lets it go on.
fn hold(name: &str, paused: bool) -> Result<(), String> {
    let socket = reach(name)?;
    ask(&socket, &Ask::Pause(paused))?;
    match reply(&socket, false)? {
        Reply::Done => Ok(()),
        Reply::Refused(why) => Err(why),
        _ => Err("the sandbox's supervisor is of another version of janua".to_owned()),
    }
}

fn kill_one(name: &str, signal: u32) -> Result<(), String> {
    const KILL: u32 = 9;
    let socket = reach(name)?;
    ask(&socket, &Ask::Kill(signal))?;
    match wire::receive(&socket) {
        Received::Message(Reply::Done | Reply::Ended(_), _) => Ok(()),
        Received::Message(Reply::Refused(why), _) => Err(why),
        Received::Message(..) | Received::Garbage => Err("the sandbox's supervisor is of another version of janua".to_owned()),
        // It had more to end than can be ended in that time.
        Received::Nothing if signal == KILL => {
            let supervisor = rustix::net::sockopt::socket_peercred(&socket).map(|peer| peer.pid);
            let killed = supervisor.and_then(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
            killed.map_err(|error| format!("the sandbox's supervisor does not answer, and cannot be killed: {error}"))
        }
        Received::Nothing => Err("the sandbox's supervisor does not answer: is it stopped?".to_owned()),
        Received::End if signal == KILL => Ok(()),
        Received::End => Err("the sandbox's supervisor has been killed".to_owned()),
    }
}

pub fn wait(which: &Wait) -> ExitCode {
    described(wait_for(&which.name).map(ExitCode::from))
}

fn wait_for(name: &str) -> Result<u8, String> {
    let (place, parsed) = place_of(name)?;
    if let Some(socket) = place.reach(&parsed)? {
        // It may end before it hears.
        let _ = ask(&socket, &Ask::Wait);
        match reply(&socket, true) {
            Ok(Reply::Ended(code)) => return Ok(code),
            Ok(_) => return Err("the sandbox's supervisor is of another version of janua".to_owned()),
            Err(why) => return place.ended(&parsed).ok_or(why),
        }
    }
    place.ended(&parsed).ok_or_else(|| format!("there is no sandbox named {parsed}\n       janua list shows those that run"))
}

pub fn logs(which: &Logs) -> ExitCode {
    described(show_log(which).map(|()| ExitCode::SUCCESS))
}

fn show_log(which: &Logs) -> Result<(), String> {
    let (place, name) = place_of(&which.name)?;
    let mut runs = place.reach(&name)?.is_some();
    let Ok(mut file) = place.read(&name, log::NEWER) else {
        return Err(match runs {
            true => format!("the sandbox {name} has no log: it runs in the foreground"),
            false => format!("there is no sandbox named {name}\n       janua list shows those that run"),
        });
    };
    let mut out = io::stdout().lock();
    // How many pieces there were.
    let mut copy = |file: &mut File| -> io::Result<usize> {
        let mut piece = [0; 16 << 10];
        let mut sum = 0;
        loop {
            match file.read(&mut piece) {
                Ok(0) | Err(_) => return out.flush().map(|()| sum),
                Ok(count) => out.write_all(&piece[..count])?,
            }
            sum += 1;
        }
    };
    let mut show = || -> io::Result<()> {
        if let Ok(mut file) = place.read(&name, log::OLDER) {
            copy(&mut file)?;
        }
        loop {
            let some = copy(&mut file)?;
            // What it wrote last, and what it wrote to the next file.
            if some == 0 && !runs || !which.follow {
                return Ok(());
            }
            if some == 0 {
                std::thread::sleep(Duration::from_millis(100));
                runs = matches!(place.reach(&name), Ok(Some(_)));
                if let Some(next) = next_file(&file, &place, &name) {
                    copy(&mut file)?;
                    file = next;
                }
            }
        }
    };
    match show() {
        // A reader that closes early has seen what it wanted.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("cannot write to standard output: {error}")),
        _ => Ok(()),
    }
}

/// The file that has taken the place of `old`, if one has.
fn next_file(old: &File, place: &Place, name: &Name) -> Option<File> {
    use std::os::unix::fs::MetadataExt;
    let next = place.read(name, log::NEWER).ok()?;
    let (old, new) = (old.metadata().ok()?, next.metadata().ok()?);
    ((old.dev(), old.ino()) != (new.dev(), new.ino())).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for (text, number) in [("TERM", 15), ("sigterm", 15), ("9", 9), ("SYS", 31), ("64", 64)] {
            assert_eq!(signal(text), Ok(number), "{text}");
        }
        for wrong in ["0", "65", "-1", "NOPE", ""] {
            assert!(signal(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cores_have_numbers() {
        assert_eq!((core_number("0"), core_number("auto")), (Ok(Core::Number(0)), Ok(Core::Auto)));
        for wrong in ["", "-1", "x", "4294967296", "1 "] {
            assert!(core_number(wrong).is_err(), "{wrong}");
        }
    }
}
