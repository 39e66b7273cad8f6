//! `janua run`: starts the program on the embedded kernel and supervises the sandbox.

pub mod cgroup;
mod config;
mod gdb;
pub mod invasive;
pub mod l4;
pub mod limits;
mod outcome;
pub mod pal;
mod relay;
mod terminal;
pub mod tiles;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use janua_abi::linux::signal;
use janua_platform_host::channel::Garbage;
use janua_platform_host::sandbox::{self, Event, Limits, Sandbox, Setup};
use janua_platform_host::wall::Needs;

use crate::choice::Choice;
use crate::control::detach::{self, Detached};
use crate::control::server::Server;
use crate::exit;
pub use gdb::{ARGUMENT as DEBUGGER, debug};
use outcome::Outcome;
pub use outcome::escaped;
pub use relay::{ARGUMENT as RELAY, relay};
use tiles::{Made, Tiles};

use crate::options::{Gate, Jail, Library, Net, Personality, Root, RunOptions};

/// Bytes that begin where a page does, in memory and so in the command's file.
#[repr(C, align(4096))]
struct Paged<T: ?Sized>(T);

static PAGED: &Paged<[u8]> = &Paged(*include_bytes!(env!("JANUA_IMAGE_LINUX")));

/// The kernel image, as built by `cargo xtask image`. Sandboxes map its text from the command's file.
pub static IMAGE: &[u8] = &PAGED.0;

const SIGINT: i32 = signal::SIGINT as i32;
const SIGKILL: i32 = signal::SIGKILL as i32;
const SIGTERM: i32 = signal::SIGTERM as i32;

/// How long a kernel that runs may take to see a signal; a second one after that ends the sandbox.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the host ends a process with that makes a call its filter forbids.
const SIGSYS: i32 = signal::SIGSYS as i32;

/// Runs the program and gives its exit code.
pub fn run(options: RunOptions) -> ExitCode {
    let allowed = options.allowed;
    if let Some(fd) = allowed.status_fd.filter(|fd| !sandbox::is_open(*fd)) {
        return exit::fail(&format!(
            "--status-fd {fd}: no such descriptor is open\n       for example --status-fd 3 3>status.json"
        ));
    }
    if let Some(fd) = allowed.status_fd.filter(|fd| !sandbox::is_writable(*fd)) {
        return exit::fail(&format!(
            "--status-fd {fd}: this descriptor cannot be written to\n       for example --status-fd 3 3>status.json"
        ));
    }
    let mut detached = match options.detach.then(detach::begin).transpose() {
        Ok(detached) => detached,
        Err(code) => return code,
    };
    let started = Instant::now();
    let mut server = None;
    let outcome = supervise(options, &mut server, &mut detached);
    let code = outcome.report(&allowed, started.elapsed());
    // Who waited for the end finds the log whole and the name free.
    let ran = detached.as_mut().is_none_or(Detached::finish_log);
    if let Some(mut server) = server {
        server.end(outcome.code(), ran);
    }
    if let Some(detached) = detached {
        detached.end(outcome.code());
    }
    code
}

fn supervise(options: RunOptions, server: &mut Option<Server>, detached: &mut Option<Detached>) -> Outcome {
    limits::raise();
    let command = std::iter::once(&options.program).chain(&options.args).map(|word| word.to_string_lossy().into_owned());
    let server = match Server::new(options.name.clone(), options.detach, command.collect()) {
        Ok(made) => server.insert(made),
        Err(why) => return Outcome::fault(why),
    };
    if let Some(why) = limits::too_low() {
        return Outcome::fault(why);
    }
    let Choice { gate, jail, unlocked } = match choose(&options) {
        Ok(choice) => choice,
        Err(why) => return Outcome::fault(why),
    };
    if let Some(why) = unlocked {
        crate::exit::say(&format_args!(
            "janua: no jail ({why}): a hostile program can take over its kernel, and reaches what `janua doctor` lists; \
             --jail none runs without this line\n"
        ));
    }
    if let Some(Err(why)) = detached.as_mut().map(|detached| detached.redirect(server)) {
        return Outcome::fault(why);
    }
    match run_in(&options, gate, jail, server, detached) {
        Ok(outcome) => outcome,
        Err(outcome) => {
            if let Some(detached) = detached {
                detached.failed();
            }
            *outcome
        }
    }
}

/// Runs the program. The error is an outcome without any run.
fn run_in(
    options: &RunOptions,
    gate: Gate,
    jail: Jail,
    server: &mut Server,
    detached: &mut Option<Detached>,
) -> Result<Outcome, Box<Outcome>> {
    let failed = |why: String| Box::new(Outcome::fault(why));
    if options.gdb.is_some() && gdb::is_missing(options) {
        let why = format!("{}: there is no such program inside the sandbox", options.program.to_string_lossy());
        return Err(Box::new(Outcome::not_begun(exit::NOT_FOUND, why)));
    }
    // It ends when the sandbox has.
    let (gdb, _relay) = gdb::accept(options.gdb.as_ref()).map_err(failed)?.unzip();
    let config = match options.personality {
        Personality::Linux => config::make(options, gdb),
        Personality::Invasive(machine) => match invasive::find(&options.program) {
            Ok(program) => invasive::make(options, machine, program),
            Err((code, why)) => return Err(Box::new(Outcome::not_begun(code, why))),
        },
        Personality::L4v2 => match l4::modules(&options.l4_modules) {
            Ok(modules) => l4::make(options, modules),
            Err((code, why)) => return Err(Box::new(Outcome::not_begun(code, why))),
        },
        Personality::Pal => match pal::make(options) {
            Ok(config) => Ok(config),
            Err((code, why)) => return Err(Box::new(Outcome::not_begun(code, why))),
        },
    };
    let config = config.map_err(failed)?;
    let own = match options.personality {
        Personality::L4v2 => l4::image().map_err(failed)?,
        Personality::Pal => pal::image().map_err(failed)?,
        Personality::Linux | Personality::Invasive(_) => IMAGE,
    };
    let other = other_image().map_err(failed)?;
    let limits = options.allowed.limits();
    let mut group = options.allowed.for_group(&limits).and_then(|limits| cgroup::Group::make(&limits).ok());
    let setup = Setup {
        image: other.as_deref().unwrap_or(own),
        gate: gate.number(),
        jail: jail.number(),
        needs: Needs {
            shown: &config.shown,
            root: config.root,
            trace: config.trace,
            inherited: &config.inherited,
            everything: options.root == Root::Host && matches!(options.personality, Personality::Linux | Personality::Pal),
            network: options.net == Net::Host,
        },
        limits,
        group: group.as_ref().map(cgroup::Group::directory),
        config: &config.encoded,
        tile: None,
        fault: fault().map_err(failed)?,
    };
    let Made { mut tiles, own, links } = tiles::start(options.tiles, &setup, &config.idle).map_err(failed)?;
    let setup = Setup { tile: own, ..setup };
    let sandbox = Sandbox::start(&setup).map_err(|error| {
        failed(match error.errno {
            0 => format!("the kernel image is broken: {}", error.what),
            errno => format!("{}: {}", error.what, crate::choice::host_error(errno)),
        })
    })?;
    drop(links);
    tiles.listen(&sandbox);
    server.listen(&tiles);
    if let Some(detached) = detached {
        // Who keeps the log has to find its end.
        sandbox::close(config.inherited.iter().copied().chain(config.trace));
        if options.personality != Personality::Linux {
            detached.runs(server);
        }
    }
    if !sandbox.is_grouped() {
        group = None;
    }
    Ok(watch(sandbox, options, &limits, group.as_ref(), server, detached, tiles))
}

/// Supervises a sandbox until its end.
fn watch(
    mut sandbox: Sandbox,
    options: &RunOptions,
    limits: &Limits,
    group: Option<&cgroup::Group>,
    server: &mut Server,
    detached: &mut Option<Detached>,
    mut tiles: Tiles,
) -> Outcome {
    let terminal = terminal::Saved::new();
    // When the kernel was last asked to end its program, and had no such request pending.
    let mut asked: Option<Instant> = None;
    loop {
        match sandbox.wait() {
            Event::Ended(code) => {
                // What it sent last is still to be passed on.
                if let (Ok(requests), Some(detached)) = (server.events(&sandbox, &mut tiles), detached.as_mut()) {
                    requests.first.iter().for_each(|answer| detached.hear(answer, server));
                }
                let outcome = Outcome::ended(code).of(&sandbox, limits, &options.allowed);
                destroy(sandbox, tiles);
                terminal.over();
                return outcome.grouped(group, limits);
            }
            // In the background nobody would continue it.
            Event::Stopped(_) if detached.is_some() => {}
            Event::Stopped(signal) => terminal.stop(&sandbox, signal),
            Event::Channel => match server.events(&sandbox, &mut tiles) {
                Ok(requests) => {
                    if let Some(detached) = detached {
                        requests.first.iter().for_each(|answer| detached.hear(answer, server));
                    }
                    for signal in requests.signals {
                        sandbox.signal(signal);
                    }
                    if requests.kill {
                        let outcome = Outcome::killed().of(&sandbox, limits, &options.allowed);
                        destroy(sandbox, tiles);
                        terminal.restore();
                        return outcome.grouped(group, limits);
                    }
                }
                Err(Garbage) => {
                    destroy(sandbox, tiles);
                    terminal.restore();
                    return Outcome::fault(
                        "the sandbox's kernel says what it never would, so it is not itself any more: the sandbox is stopped",
                    );
                }
            },
            Event::Signal(signal) => {
                let taken = sandbox.signal(signal);
                if !matches!(signal, SIGINT | SIGTERM) {
                    continue;
                }
                if taken {
                    asked = Some(Instant::now());
                } else if asked.is_some_and(|asked| asked.elapsed() >= PATIENCE) {
                    destroy(sandbox, tiles);
                    terminal.restore();
                    return Outcome::fault("the sandbox has not taken the last signal: it is stopped");
                }
            }
            Event::Timeout => {
                let time = limits.time.unwrap_or_default();
                let outcome = Outcome::timeout(time).of(&sandbox, limits, &options.allowed);
                destroy(sandbox, tiles);
                terminal.restore();
                return outcome.grouped(group, limits);
            }
            Event::Lost { pid, signal } => {
                let short = signal == SIGKILL && group.is_some_and(|group| group.counted().killed > 0);
                let outcome = short.then(|| Outcome::ended(limits::KILLED).of(&sandbox, limits, &options.allowed));
                destroy(sandbox, tiles);
                terminal.restore();
                return outcome.map_or_else(|| lost(pid, signal), |outcome| outcome.grouped(group, limits));
            }
        }
    }
}

/// Ends all that is left of a sandbox.
fn destroy(sandbox: Sandbox, tiles: Tiles) {
    sandbox.destroy();
    drop(tiles);
}

/// A process of the sandbox is gone that its kernel has not ended, by this signal (0: none).
fn lost(pid: i32, signal: i32) -> Outcome {
    let used = janua_platform_host::sandbox::used_by_children();
    if limits::is_time(signal, used.user + used.system) {
        crate::exit::say(&format_args!("janua: the host's limit of processor time (ulimit -t) ended the sandbox\n"));
        return Outcome::ended(limits::KILLED);
    }
    let how = match signal {
        0 => "ended by itself".to_owned(),
        SIGSYS => "made a call that the second wall forbids (signal 31)".to_owned(),
        signal => format!("was killed by signal {signal}"),
    };
    Outcome::fault(format!("host process {pid} of the sandbox {how}, not by the kernel: the sandbox is stopped"))
}

/// The gate and the jail of a run.
fn choose(options: &RunOptions) -> Result<Choice, String> {
    let machine = match options.personality {
        Personality::Linux | Personality::Pal => return crate::choice::choose(options.gate, options.jail),
        Personality::L4v2 => return crate::choice::choose(Some(Gate::Ptrace), Some(Jail::Process)),
        Personality::Invasive(machine) => machine,
    };
    let jail = match (machine.library, options.jail) {
        (Library::Gate, jail) => jail,
        (_, None | Some(Jail::None)) => Some(Jail::None),
        (_, Some(Jail::Pkey | Jail::Process)) => {
            return Err("a configuration without a gate calls the kernel's functions, which the jails forbid\n       \
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
