//! `janua run`: starts the program on the embedded kernel and supervises the sandbox.

pub mod cgroup;
mod config;
pub mod invasive;
pub mod limits;
mod outcome;
mod terminal;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use janua_platform_host::sandbox::{self, Event, Sandbox, Setup};
use janua_platform_host::wall::Needs;

use crate::choice::Choice;
use crate::exit;
use outcome::Outcome;

use crate::options::{Gate, Jail, Library, Net, Personality, Root, RunOptions};

/// The kernel image, as built by `cargo xtask image`.
pub static IMAGE: &[u8] = include_bytes!(env!("JANUA_IMAGE_LINUX"));

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// How long a kernel that runs may take to see a signal; a second one after that ends the sandbox.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the host ends a process with that makes a call its filter forbids.
const SIGSYS: i32 = 31;

/// Runs the program and gives its exit code.
pub fn run(options: RunOptions) -> ExitCode {
    let allowed = options.allowed;
    if let Some(fd) = allowed.status_fd.filter(|fd| !sandbox::is_open(*fd)) {
        return exit::fail(&format!("--status-fd {fd}: no such descriptor is open\n       for example --status-fd 3 3>status.json"));
    }
    let started = Instant::now();
    supervise(options).tell(&allowed, started.elapsed())
}

fn supervise(options: RunOptions) -> Outcome {
    limits::raise();
    if let Some(why) = limits::too_low() {
        return Outcome::fault(why);
    }
    let Choice { gate, jail, unlocked } = match choose(&options) {
        Ok(choice) => choice,
        Err(why) => return Outcome::fault(why),
    };
    if let Some(why) = unlocked {
        eprintln!(
            "janua: no jail ({why}): a hostile program can take over its kernel, and reaches what `janua doctor` lists; \
             --jail none runs without this line"
        );
    }
    let config = match options.personality {
        Personality::Linux => config::make(&options),
        Personality::Invasive(machine) => match invasive::find(&options.program) {
            Ok(program) => invasive::make(&options, machine, program),
            Err((code, why)) => {
                eprintln!("janua: {why}");
                return Outcome::ended(code);
            }
        },
    };
    let config = match config {
        Ok(config) => config,
        Err(why) => return Outcome::fault(why),
    };
    let other = match other_image() {
        Ok(other) => other,
        Err(why) => return Outcome::fault(why),
    };
    let limits = options.allowed.limits();
    let mut group = options.allowed.for_group(&limits).and_then(|limits| cgroup::Group::make(&limits).ok());
    let setup = Setup {
        image: other.as_deref().unwrap_or(IMAGE),
        gate: gate.number(),
        jail: jail.number(),
        needs: Needs {
            shown: &config.shown,
            root: config.root,
            trace: config.trace,
            inherited: &config.inherited,
            everything: options.root == Root::Host && options.personality == Personality::Linux,
            network: options.net == Net::Host,
        },
        limits,
        group: group.as_ref().map(cgroup::Group::directory),
        config: &config.encoded,
        fault: match fault() {
            Ok(fault) => fault,
            Err(why) => return Outcome::fault(why),
        },
    };
    let mut sandbox = match Sandbox::start(&setup) {
        Ok(sandbox) => sandbox,
        Err(error) => {
            let why = match error.errno {
                0 => format!("the kernel image is broken: {}", error.what),
                errno => format!("{}: {}", error.what, std::io::Error::from_raw_os_error(errno)),
            };
            return Outcome::fault(why);
        }
    };
    if !sandbox.is_grouped() {
        group = None;
    }
    let terminal = terminal::Saved::new();
    // When the kernel was last asked to end its program, and had no such request pending.
    let mut asked: Option<Instant> = None;
    loop {
        match sandbox.wait() {
            Event::Ended(code) => {
                let outcome = Outcome::ended(code).of(&sandbox, &setup.limits, &options.allowed);
                sandbox.destroy();
                terminal.over();
                return outcome.grouped(group.as_ref(), &setup.limits);
            }
            Event::Stopped(signal) => terminal.stop(&sandbox, signal),
            Event::Signal(signal) => {
                let taken = sandbox.signal(signal);
                if !matches!(signal, SIGINT | SIGTERM) {
                    continue;
                }
                if taken {
                    asked = Some(Instant::now());
                } else if asked.is_some_and(|asked| asked.elapsed() >= PATIENCE) {
                    sandbox.destroy();
                    terminal.restore();
                    return Outcome::fault("the sandbox has not taken the last signal: it is stopped");
                }
            }
            Event::Timeout => {
                let time = setup.limits.time.unwrap_or_default();
                let outcome = Outcome::timeout(time).of(&sandbox, &setup.limits, &options.allowed);
                sandbox.destroy();
                terminal.restore();
                return outcome.grouped(group.as_ref(), &setup.limits);
            }
            Event::Lost { pid, signal } => {
                let short = signal == SIGKILL && group.as_ref().is_some_and(|group| group.counted().killed > 0);
                let outcome = short.then(|| Outcome::ended(limits::KILLED).of(&sandbox, &setup.limits, &options.allowed));
                sandbox.destroy();
                terminal.restore();
                if let Some(outcome) = outcome {
                    return outcome.grouped(group.as_ref(), &setup.limits);
                }
                let used = janua_platform_host::sandbox::used_by_children();
                if limits::is_time(signal, used.user + used.system) {
                    eprintln!("janua: the host's limit of processor time (ulimit -t) ended the sandbox");
                    return Outcome::ended(limits::KILLED);
                }
                let how = match signal {
                    0 => "ended by itself".to_owned(),
                    SIGSYS => "made a call that the second wall forbids (signal 31)".to_owned(),
                    signal => format!("was killed by signal {signal}"),
                };
                return Outcome::fault(format!(
                    "host process {pid} of the sandbox {how}, not by the kernel: the sandbox is stopped"
                ));
            }
        }
    }
}

/// The gate and the jail of a run.
fn choose(options: &RunOptions) -> Result<Choice, String> {
    let Personality::Invasive(machine) = options.personality else {
        return crate::choice::choose(options.gate, options.jail);
    };
    let jail = match (machine.library, options.jail) {
        (Library::Gate, jail) => jail,
        (_, None | Some(Jail::None)) => Some(Jail::None),
        (_, Some(Jail::Pkey)) => {
            return Err("a configuration without a gate calls the kernel's functions, which the jail `pkey` forbids\n       \
                        leave --jail out, or take --library sys-lib-yes"
                .to_owned());
        }
    };
    crate::choice::choose(Some(options.gate.unwrap_or(Gate::Signal)), jail)
}

/// For tests of the kernel: JANUA_FAULT=ENOMEM:N has the N-th host call that could fail so fail so.
fn fault() -> Result<(u32, u64), String> {
    const KNOWN: [(&str, u32); 5] = [("EINTR", 4), ("EAGAIN", 11), ("ENOMEM", 12), ("EMFILE", 24), ("ENOSPC", 28)];
    let Some(asked) = std::env::var_os("JANUA_FAULT") else { return Ok((0, 0)) };
    let asked = asked.to_string_lossy();
    let known = asked.split_once(':').and_then(|(name, nth)| {
        let (_, errno) = KNOWN.into_iter().find(|(known, _)| *known == name)?;
        Some((errno, nth.parse().ok()?))
    });
    known.ok_or_else(|| format!("JANUA_FAULT={asked}: it is ERRNO:N, of EINTR, EAGAIN, ENOMEM, EMFILE, ENOSPC"))
}

/// For work on the kernel: JANUA_IMAGE names an image to be used instead of the embedded one, which saves building the command
/// again.
pub fn other_image() -> Result<Option<Vec<u8>>, String> {
    match std::env::var_os("JANUA_IMAGE") {
        None => Ok(None),
        Some(path) => std::fs::read(&path)
            .map(Some)
            .map_err(|error| format!("cannot read the kernel image {} (JANUA_IMAGE): {error}", path.to_string_lossy())),
    }
}
