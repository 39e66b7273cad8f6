//! The command line, and what it means.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Parser, Subcommand, ValueHint};
use clap_complete::Shell;

mod beside;
mod boot;
mod modules;

pub use boot::Boot;

use crate::bench::{Bench, Report};
use crate::control::Name;
use crate::control::client::{Exec, Kill, List, Logs, Move, Pause, Resume, Stats, Wait};
use crate::environment::environment;

use crate::options::{Bind, Gate, Gdb, Jail, Library, Machine, Net, Personality, Root, RunOptions, Trace};

/// Run unmodified Linux programs on a kernel of their own, inside an ordinary process.
#[derive(Parser)]
#[command(name = "janua", version, max_term_width = 100, subcommand_required = true)]
#[command(after_help = "\
Examples:
  janua run -- /bin/sh -c 'uname -a; ls /'    a shell on Janua's kernel
  janua run --bind .::rw -- make -j2          let writes reach the current directory
  janua run --trace -- ls /                   show every system call
  janua run --name web --detach -- redis-server; janua list; janua exec web -- ps aux; janua kill web
  janua doctor                                what this machine offers

Exit codes: janua run and janua boot exit as the program does (128+n after signal n); 127: program not
found, 126: not executable, 125: janua itself failed or its command line was wrong, 124: --time was over;
standard error says why, and --status-fd reports it to programs. janua exec and janua wait exit as run would. Other commands: 0, 2 for a mistake in the command
line, 125 for other failures.")]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run a program
    ///
    /// By default the program sees the host's files read-only under a private overlay in memory, starts in the current
    /// directory, has no network but its own loopback, and gets the terminal, the environment and standard input,
    /// output and error. What it writes is gone when it ends, except below a writable --bind. When it ends, whatever it left
    /// running ends too.
    Run(Box<Run>),
    /// List the sandboxes that run, with their processes
    List(List),
    /// Run one more program in a sandbox that runs
    ///
    /// It begins where the sandbox's program began: its user, directory, environment. On a terminal it gets one of its own inside. It ends
    /// when the command does, and with the sandbox.
    Exec(Box<Exec>),
    /// End a sandbox, or send its program a signal
    Kill(Kill),
    /// Pause a sandbox, until janua resume
    Pause(Pause),
    /// Let a paused sandbox go on
    Resume(Resume),
    /// Show what a sandbox uses, and how many system calls it has made
    Stats(Stats),
    /// Move a module, which takes system calls, to another of a sandbox's syscall cores (janua run --syscall-cores)
    Move(Move),
    /// Show what a sandbox in the background has written
    Logs(Logs),
    /// Wait for the end of a sandbox and exit as it did
    Wait(Wait),
    /// Boot the kernel on a bare machine and run a program on it
    ///
    /// The machine is QEMU's, emulated in software. The program sees a file tree in memory, made of a directory (--ramfs) or of
    /// this host's busybox, and no network but its own loopback; what it writes is gone at the end, unless the files are on a
    /// disk (--disk). Its standard input, output and error are the machine's serial line; the kernel's own messages go to standard error.
    /// On a terminal the line is a terminal inside too, and every key goes there: Ctrl-] q ends the machine (exit code 130).
    Boot(Box<Boot>),
    /// Show what this machine offers, what is chosen by default, and why
    Doctor,
    /// Print the table of system calls: which are complete, partial or missing
    Support(Support),
    /// Print where the kernel's functions are, for perf, and with --elf for debuggers
    Symbols(crate::symbols::Symbols),
    /// Measure gates, calls and programs, natively and on Janua
    Bench(Bench),
    /// Make a web page from what `janua bench` measured
    Report(Report),
    /// The program that `janua bench` measures
    #[command(hide = true, disable_help_flag = true)]
    Probe {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  janua completions bash > ~/.local/share/bash-completion/completions/janua
  janua completions zsh > ~/.zfunc/_janua
  janua completions fish > ~/.config/fish/completions/janua.fish")]
    Completions {
        #[arg(value_enum)]
        shell: Shell,
    },
}

#[derive(clap::Args)]
pub struct Support {
    /// Only calls whose name holds this text
    pub filter: Option<String>,
    /// Print the page docs/support.md
    #[arg(long, conflicts_with = "filter")]
    pub markdown: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  janua run -- /bin/sh -c 'echo $((6*7)); head -3 /proc/self/status'
  janua run --bind src:/src --bind out:/out:rw --cwd /src -- make
  janua run --root ./alpine -- /bin/busybox sh
  janua run --env LANG=C --env DEBUG=1 -- env
  janua run --memory 256M --pids 50 --time 10s -- ./untrusted
  janua run --personality invasive --tiles 2 --cores 2 -- hello
  janua run --personality l4v2 --module sigma0 --module pingpong
  janua run --personality pal --manifest hello.manifest -- hello
  janua run --gdb 1234 -- ./program & gdb -ex 'target remote :1234'
  janua run --gate seccomp --trace=calls.txt --stats -- python3 -c 'print(42)'

Exit code: the program's; 128+n if signal n ended it; 127: not found; 126: found, but not
executable; 125: janua failed or its kernel faulted, and standard error says why; 124: --time
ran out.")]
pub struct Run {
    /// The gate, by which system calls enter the kernel: call (rewritten call sites), sud, seccomp, ptrace (with the jail process), or
    /// auto for the best here
    #[arg(long, value_name = "GATE", default_value = "auto", value_parser = crate::gates::Names, hide_possible_values = true)]
    gate: String,

    /// The jail, which locks the kernel's memory while the program runs: pkey, process, none, or auto for the best here; `janua doctor`
    /// reports what is behind it
    #[arg(long, value_name = "JAIL", default_value = "auto", value_parser = named(&["auto", "pkey", "process", "none"]), hide_possible_values = true)]
    jail: String,

    /// The files at /: host, or a directory of the host
    #[arg(long, value_name = "DIR|host", default_value = "host", value_hint = ValueHint::DirPath)]
    root: OsString,

    /// Show the host's SRC at DST (at its own place without one), read-only unless rw is said; can be repeated. DIR:/:rw is a
    /// root that keeps what is written; `.::rw` is the current directory at its own place, writable. `\:` is a colon in a path
    #[arg(long, value_name = "SRC[:DST[:ro|rw]]", value_hint = ValueHint::AnyPath)]
    bind: Vec<OsString>,

    /// Set K to V in the program's environment, or pass your K on; can be repeated. Without --root the environment is yours,
    /// with it a clean one (PATH, HOME, TERM, LANG)
    #[arg(long, value_name = "K[=V]")]
    env: Vec<OsString>,

    /// The directory to start in, a path inside
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    cwd: Option<PathBuf>,

    /// The network: none (a loopback of its own) or host
    #[arg(long, value_name = "none|host", default_value = "none", value_parser = ["none", "host"], hide_possible_values = true)]
    net: String,

    #[command(flatten)]
    limits: crate::allowance::Allowance,

    /// Which system calls exist: linux; invasive for programs on Janua's system-call library (OctoPOS); l4v2 for a system of L4, Version 2; or pal for
    /// programs on libpal (Graphene's Platform Adaptation Layer)
    #[arg(long, value_name = "NAME", default_value = "linux", value_parser = named(&["linux", "invasive", "l4v2", "pal"]), hide_possible_values = true)]
    personality: String,

    /// l4v2: a program and its arguments, in one word: sigma0 first, the root task last, and between them what the root task is to find in
    /// memory. A name without a slash is one that comes with janua
    #[arg(long = "module", value_name = "PROGRAM [ARGUMENT...]")]
    modules: Vec<OsString>,

    /// pal: what the program may use, and how it begins (docs/pal.md). A program's name without a slash is one that comes with janua
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    manifest: Option<PathBuf>,

    #[command(flatten)]
    beside: beside::Beside,

    /// How the library calls: sys-lib-yes (through the gate), sys-lib-no (the dispatcher, without a gate) or vanilla
    /// (the kernel's functions); the latter two only without a jail
    #[arg(long, help_heading = "The system-call library (OctoPOS; --personality invasive)", value_name = "CONFIGURATION", default_value = "sys-lib-yes", value_parser = ["sys-lib-yes", "sys-lib-no", "vanilla"], hide_possible_values = true)]
    library: String,

    /// Whether the library answers calls itself that need no privilege: on or off
    #[arg(long, help_heading = "The system-call library (OctoPOS; --personality invasive)", value_name = "on|off", default_value = "on", value_parser = ["on", "off"], hide_possible_values = true)]
    answers: String,

    /// Have the library ask the host for its ids at each call by the gate signal, as OctoPOS' guest layer does
    #[arg(long, help_heading = "The system-call library (OctoPOS; --personality invasive)")]
    ask_ids: bool,

    /// Write every system call with its arguments and result to FILE, or to standard error
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, value_hint = ValueHint::FilePath)]
    trace: Option<Option<PathBuf>>,

    /// End the run when a line of the trace cannot be written; without it that is said once, and calls are missing
    #[arg(long, requires = "trace")]
    trace_whole: bool,

    #[command(flatten)]
    away: modules::Away,

    /// At the end, print the calls made by name, with count, time and gate
    #[arg(long)]
    stats: bool,

    /// Wait for gdb at a port of this machine (0: any that is free) or at a socket's path, and let it have the program from its first
    /// instruction on: `target remote :PORT` in gdb
    #[arg(long, value_name = "PORT|PATH", conflicts_with = "detach", value_hint = ValueHint::FilePath)]
    gdb: Option<OsString>,

    /// What `janua exec`, kill, logs and wait find it by; without it the number of the host process `janua list` shows
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Go on in the background once the program runs, and print the name; `janua logs` shows what it writes
    #[arg(long, short = 'd')]
    detach: bool,

    /// The program and its arguments; a name without a slash is looked up in PATH
    #[arg(value_name = "PROGRAM", required_unless_present = "modules", num_args = 1.., trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// The names of what is built.
fn named(built: &[&'static str]) -> PossibleValuesParser {
    PossibleValuesParser::new(built.iter().map(|name| PossibleValue::new(*name)))
}

/// Bytes, from a number that may have a unit. The error is what clap shows.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| "not a number with K, M, G or T, as in 256M".to_string())?;
    let unit = &text[digits.len()..];
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("the unit `{unit}` is not K, M, G or T")),
    };
    number.checked_mul(1 << shift).ok_or_else(|| "too large".to_string())
}

/// Why no module runs calls of another personality's, and what to do about it.
const AWAY_OF_LINUX: &str =
    "--syscall-cores: only calls of the personality `linux` are made on other cores than the one that makes them";
const AT_HOME: &str = "leave --syscall-cores out";

/// What is wrong with modules, for both commands that take them.
const MODULES_OF_L4: &str = "--module is for the personality `l4v2`";
const TWO_MODULES: &str = "a system of L4 needs two modules";

/// What is wrong with a manifest there, and what to do about it.
const MANIFEST_OF_PAL: &str = "--manifest is for the personality `pal`";
const ADD_PAL: &str = "add --personality pal, or leave --manifest out";

/// Why a request is refused, and what to do about it.
#[derive(Debug)]
pub struct Refusal {
    cause: String,
    remedy: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n       {}", self.cause, self.remedy)
    }
}

impl Refusal {
    /// With a remedy more.
    fn or(mut self, remedy: &str) -> Refusal {
        self.remedy = format!("{}; {remedy}", self.remedy);
        self
    }
}

pub fn refuse<T>(cause: impl Into<String>, remedy: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { cause: cause.into(), remedy: remedy.into() })
}

impl Run {
    /// Whether something is asked for that only programs on the system-call library have.
    fn asks_for_library(&self) -> bool {
        self.library != "sys-lib-yes" || self.answers != "on" || self.ask_ids
    }

    /// Why the modules are none of a system of L4, or what else is given beside them is for programs with files.
    fn check_modules(&self) -> Result<(), Refusal> {
        if self.personality != "l4v2" {
            if self.modules.is_empty() {
                return Ok(());
            }
            return refuse(MODULES_OF_L4, "add --personality l4v2, or give a program after --");
        }
        let files = self.root != "host" || !self.bind.is_empty() || self.cwd.is_some() || self.net != "none";
        if files || !self.command.is_empty() || !self.env.is_empty() || self.away.is_on() {
            return refuse(
                "the personality `l4v2` has modules, and neither files nor a program with an environment",
                "give --module for each, and of the other options only limits, --trace, --stats, --name and --detach",
            );
        }
        if self.modules.len() < 2 {
            return refuse(TWO_MODULES, "give --module sigma0, and --module with the root task");
        }
        Ok(())
    }

    /// What is asked for, or why it cannot be.
    pub fn options(self) -> Result<RunOptions, Refusal> {
        let for_library = self.asks_for_library();
        self.check_modules()?;
        let tiles = self.beside.kernels(&self.personality, self.away.is_on())?;
        let mut command = self.command.into_iter();
        // Others see the last module as the program.
        let program = command.next().or_else(|| self.modules.last().cloned());
        let Some(program) = program.filter(|p| !p.is_empty()) else {
            return refuse("the program's name is empty", "give a program after --");
        };
        let personality = match self.personality.as_str() {
            "linux" | "l4v2" | "pal" if for_library => {
                return refuse(
                    "--library, --answers and --ask-ids are for the personality `invasive`",
                    "add --personality invasive, or leave them out",
                );
            }
            "linux" => Personality::Linux,
            "l4v2" => Personality::L4v2,
            "invasive" => Personality::Invasive(Machine {
                tiles: self.beside.tiles,
                cores: self.beside.cores.unwrap_or(2),
                library: library(&self.library),
                answers: self.answers == "on",
                asks_ids: self.ask_ids,
            }),
            // clap knows no other names.
            _ => Personality::Pal,
        };
        if self.away.is_on() && personality != Personality::Linux {
            return refuse(AWAY_OF_LINUX, AT_HOME);
        }
        if self.manifest.is_some() && personality != Personality::Pal {
            return refuse(MANIFEST_OF_PAL, ADD_PAL);
        }
        let gate = crate::gates::named(&self.gate)?;
        let jail = jail(&self.jail)?;
        if personality == Personality::L4v2
            && (gate.is_some_and(|gate| gate != Gate::Ptrace) || jail.is_some_and(|jail| jail != Jail::Process))
        {
            return refuse(
                "tasks of L4 are host processes of their own, which the kernel traces: there is no other gate or jail for them",
                "leave --gate and --jail out",
            );
        }
        if gate == Some(Gate::Signal) && matches!(personality, Personality::Linux | Personality::Pal) {
            return refuse(
                "the gate `signal` is for programs on Janua's system-call library",
                "add --personality invasive, or leave --gate out",
            );
        }
        let (root, binds) = files(&self.root, &self.bind)?;
        // Secrets of the caller's environment are no business of a foreign tree.
        let foreign = root != Root::Host;
        Ok(RunOptions {
            gate,
            jail,
            root,
            binds,
            environment: environment(std::env::vars_os().collect(), &self.env, foreign)?,
            cwd: cwd(self.cwd)?,
            net: if self.net == "host" { Net::Host } else { Net::None },
            personality,
            tiles,
            trace_whole: self.trace_whole,
            allowed: self.limits.into(),
            trace: self.trace.map(|file| file.map_or(Trace::Stderr, Trace::File)),
            stats: self.stats,
            modules: self.away.modules()?,
            program,
            args: command.collect(),
            l4_modules: self.modules,
            manifest: self.manifest,
            name: self.name.as_deref().map(name).transpose()?,
            detach: self.detach,
            gdb: self.gdb.as_deref().map(|place| gdb(place, personality)).transpose()?,
        })
    }
}

/// Where gdb connects: a number is a port, what has a slash a socket.
fn gdb(place: &OsStr, personality: Personality) -> Result<Gdb, Refusal> {
    let shown = place.to_string_lossy();
    if personality != Personality::Linux {
        return refuse("--gdb: only programs of the personality `linux` can be traced", "leave --gdb out");
    }
    match shown.parse() {
        Ok(port) => Ok(Gdb::Port(port)),
        Err(_) if place.as_bytes().contains(&b'/') => Ok(Gdb::Socket(place.into())),
        Err(_) => refuse(
            format!("--gdb {shown}: neither a port (0 to 65535) nor the path of a socket"),
            "for example --gdb 1234, or --gdb ./gdb.socket",
        ),
    }
}

fn name(text: &str) -> Result<Name, Refusal> {
    Name::given(text).or_else(|why| refuse(format!("--name {text}: {why}"), "for example --name web"))
}

/// A configuration by the thesis' name for it; clap knows no other names.
fn library(name: &str) -> Library {
    match name {
        "vanilla" => Library::Vanilla,
        "sys-lib-no" => Library::Dispatcher,
        _ => Library::Gate,
    }
}

fn jail(name: &str) -> Result<Option<Jail>, Refusal> {
    if name == "auto" {
        return Ok(None);
    }
    match Jail::ALL.into_iter().find(|jail| jail.name() == name) {
        Some(jail) => Ok(Some(jail)),
        None => refuse(format!("there is no jail `{name}`"), "jails that are: pkey, process, none"),
    }
}

fn root(value: &OsStr) -> Result<Root, Refusal> {
    if value == "host" {
        return Ok(Root::Host);
    }
    let path = existing(Path::new(value), "--root")?;
    if !path.is_dir() {
        return refuse(
            format!("--root {}: not a directory", path.display()),
            "give a directory that holds a file tree, or host",
        );
    }
    // The name is found without the right to look inside.
    if let Err(error) = path.join(".").metadata() {
        return refuse(format!("--root {}: {error}", path.display()), "give a directory you may look into");
    }
    Ok(if path == Path::new("/") { Root::Host } else { Root::Directory(path) })
}

/// The root and the binds. A bind at / is the root; one that is writable keeps what is written.
fn files(root_given: &OsStr, binds: &[OsString]) -> Result<(Root, Vec<Bind>), Refusal> {
    let mut root = root(root_given)?;
    let mut rest: Vec<Bind> = binds.iter().map(|b| bind(b)).collect::<Result<_, _>>()?;
    while let Some(at) = rest.iter().position(|bind| bind.target.components().eq([Component::RootDir])) {
        let bind = rest.remove(at);
        let what = format!("--bind {}:/", bind.source.display());
        if root != Root::Host {
            return refuse(format!("{what}: there is another root already"), "give one --root or one --bind at /");
        }
        if bind.source == Path::new("/") && bind.writable {
            return refuse(
                format!("{what}:rw: the host's whole file tree cannot be made writable"),
                "bind the directories that are to be written, each at its own place (--bind DIR::rw)",
            );
        }
        root = match (bind.writable, bind.source == Path::new("/")) {
            (true, _) => Root::Writable(bind.source),
            (false, true) => Root::Host,
            (false, false) => Root::Directory(bind.source),
        };
    }
    Ok((root, rest))
}

/// The parts of a value between colons; `\:` is a colon in a part, and `\\` a backslash.
fn parts(value: &OsStr) -> Vec<OsString> {
    let mut parts = vec![Vec::new()];
    let mut bytes = value.as_bytes().iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b':' => parts.push(Vec::new()),
            b'\\' if matches!(bytes.peek(), Some(b':' | b'\\')) => {
                parts.last_mut().into_iter().for_each(|part| part.extend(bytes.next()))
            }
            byte => parts.last_mut().into_iter().for_each(|part| part.push(byte)),
        }
    }
    parts.into_iter().map(OsString::from_vec).collect()
}

/// `SRC[:DST[:ro|rw]]`; an empty `DST` is `SRC`'s own place.
fn bind(value: &OsStr) -> Result<Bind, Refusal> {
    let shown = value.to_string_lossy();
    let parts = parts(value);
    let mut parts = parts.iter().map(OsString::as_os_str);
    let source = parts.next().unwrap_or_default();
    let target = parts.next().filter(|t| !t.is_empty());
    let writable = match parts.next().map(OsStr::as_bytes) {
        None | Some(b"ro") => false,
        Some(b"rw") => true,
        Some(other) => {
            let other = String::from_utf8_lossy(other);
            return refuse(format!("--bind {shown}: `{other}` is neither ro nor rw"), "write it as SRC[:DST[:ro|rw]]");
        }
    };
    if parts.next().is_some() {
        return refuse(
            format!("--bind {shown}: too many colons"),
            "write it as SRC[:DST[:ro|rw]], and a colon in a path as \\:",
        );
    }
    if source.is_empty() {
        return refuse(format!("--bind {shown}: no source"), "write it as SRC[:DST[:ro|rw]]");
    }
    let source = existing(Path::new(source), "--bind").map_err(|refusal| match value.as_bytes().contains(&b':') {
        true => refusal.or("a colon that belongs to a path is written \\:"),
        false => refusal,
    })?;
    let target = target.map_or_else(|| source.clone(), PathBuf::from);
    if !target.is_absolute() {
        return refuse(
            format!("--bind {shown}: the place inside must begin with /"),
            format!("for example --bind {}:/mnt", source.display()),
        );
    }
    Ok(Bind { source, target, writable })
}

/// `path` made absolute, with symbolic links resolved.
fn existing(path: &Path, option: &str) -> Result<PathBuf, Refusal> {
    path.canonicalize()
        .or_else(|error| refuse(format!("{option} {}: {error}", path.display()), "give a path that exists on the host"))
}

fn cwd(path: Option<PathBuf>) -> Result<Option<PathBuf>, Refusal> {
    match path {
        Some(path) if !path.is_absolute() => refuse(
            format!("--cwd {}: the path must begin with /", path.display()),
            "it is a path inside, as the program sees it",
        ),
        other => Ok(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    use janua_platform_bare::Slicing;

    use crate::options::BootPlatform;

    fn parse(args: &[&str]) -> Result<RunOptions, String> {
        let all = ["janua", "run"].iter().chain(args);
        match Args::try_parse_from(all).map_err(|e| e.to_string())?.command {
            Command::Run(run) => run.options().map_err(|r| r.to_string()),
            _ => Err("not run".into()),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn boot_says_what_it_cannot() {
        let boot = |args: &[&str]| match Args::try_parse_from(["janua", "boot"].iter().chain(args))
            .map_err(|e| e.to_string())?
            .command
        {
            Command::Boot(boot) => boot.options().map_err(|r| r.to_string()),
            _ => Err("not boot".into()),
        };
        let options = boot(&["--env", "A=1", "--", "sh", "-c", "x"]).unwrap();
        assert_eq!((options.memory, options.ramfs, options.cwd), (512, None, None));
        assert_eq!((options.program, options.args), ("sh".into(), vec!["-c".into(), "x".into()]));
        assert!(options.environment.contains(&("A".into(), "1".into())));
        let options = boot(&["--disk", "d.img", "--disk-size", "2G", "x"]).unwrap();
        assert_eq!((options.disk, options.disk_size), (Some(PathBuf::from("d.img")), Some(2 << 30)));
        for wrong in ["2X", "G", "-1", "99999999999T"] {
            assert!(boot(&["--disk", "d.img", "--disk-size", wrong, "x"]).is_err(), "{wrong}");
        }
        assert!(boot(&["--disk-size", "2G", "x"]).is_err());
        assert_eq!((boot(&["x"]).unwrap().smp, boot(&["--smp", "4", "x"]).unwrap().smp), (2, 4));
        assert!(Args::try_parse_from(["janua", "boot", "--smp", "0", "x"]).is_err());
        assert_eq!((boot(&["--kpti", "on", "x"]).unwrap().kpti, boot(&["x"]).unwrap().kpti), (Some(true), None));
        let slice = |text: &str| {
            Args::try_parse_from(["janua", "boot", "--slice", text, "x"]).map(|_| boot(&["--slice", text, "x"]).unwrap().slice)
        };
        assert_eq!((boot(&["x"]).unwrap().slice, slice("tickless").unwrap()), (None, Some(Slicing::Tickless)));
        assert_eq!(slice("80ms").unwrap(), Some(Slicing::Ticks(80_000_000)));
        for wrong in ["0ms", "80", "1h", "20s", "99us", "fast"] {
            assert!(slice(wrong).unwrap_err().to_string().contains(wrong), "{wrong}");
        }
        assert!(boot(&["--platform", "leon3", "--slice", "1ms", "x"]).unwrap_err().contains("--slice"));
        assert!(boot(&["--platform", "leon3", "--ramfs", "/", "x"]).unwrap_err().contains("has no files"));
        for invasive in [["--library", "vanilla"], ["--gate", "int"], ["--answers", "off"]] {
            assert!(boot(&[&invasive[..], &["x"]].concat()).unwrap_err().contains("for the personality `invasive`"));
        }
        let invasive = |args: &[&str]| boot(&[&["--personality", "invasive"], args, &["x"]].concat());
        let machine = invasive(&["--smp", "4", "--tiles", "2", "--gate", "int"]).unwrap().invasive.unwrap();
        assert_eq!((machine.tiles, machine.cores, machine.interrupts), (2, 2, true));
        assert!(invasive(&["--smp", "4", "--tiles", "3"]).unwrap_err().contains("--smp 6"));
        assert!(invasive(&["--cores", "2"]).unwrap_err().contains("--smp N"));
        assert!(invasive(&["--ramfs", "/"]).unwrap_err().contains("has no files"));
        assert!(invasive(&["--library", "vanilla", "--gate", "int"]).unwrap_err().contains("--gate"));
        assert!(boot(&["--platform", "leon3", "--personality", "linux", "x"]).unwrap_err().contains("not there on a LEON3"));
        assert!(boot(&["--platform", "leon3", "--tiles", "2", "x"]).unwrap_err().contains("one tile"));
        assert!(boot(&["--platform", "leon3", "--disk", "d.img", "x"]).unwrap_err().contains("has no files"));
        let options = boot(&["--platform", "leon3", "--library", "vanilla", "x"]).unwrap();
        let machine = options.invasive.unwrap();
        assert_eq!((options.platform, machine.library, machine.cores), (BootPlatform::Leon3, Library::Vanilla, 2));
        assert!(boot(&["--ramfs", "/nonexistent/dir", "x"]).unwrap_err().contains("--ramfs /nonexistent/dir"));
    }

    #[test]
    fn systems_of_l4_have_modules_and_no_program() {
        let boot =
            |args: &[&str]| match Args::try_parse_from([&["janua", "boot"], args].concat()).map_err(|e| e.to_string())?.command
            {
                Command::Boot(boot) => boot.options().map_err(|r| r.to_string()),
                _ => Err("not boot".into()),
            };
        let two = ["--module", "sigma0", "--module", "pingpong time"];
        let l4 = |args: &[&str]| boot(&[&["--personality", "l4v2"], args].concat());
        let system = l4(&[&two[..], &["--stats"]].concat()).unwrap().l4.unwrap();
        assert_eq!((system.modules, system.stats), (vec!["sigma0".into(), "pingpong time".into()], true));
        assert!(boot(&["x"]).unwrap().l4.is_none());
        assert!(boot(&two).unwrap_err().contains("for the personality `l4v2`"));
        assert!(l4(&two[..2]).unwrap_err().contains("two modules"));
        assert!(l4(&[]).is_err());
        for wrong in [["--tiles", "2"], ["--ramfs", "/"], ["--env", "A=1"], ["--disk", "d"], ["--gate", "int"], ["--", "x"]] {
            assert!(l4(&[&two[..], &wrong].concat()).unwrap_err().contains("neither files nor a program"), "{wrong:?}");
        }
        assert!(l4(&[&two[..], &["--platform", "leon3"]].concat()).unwrap_err().contains("for x86"));
    }

    #[test]
    fn picoprocesses_have_manifests() {
        let pal = |args: &[&str]| parse(&[&["--personality", "pal"], args].concat());
        let options = pal(&["--manifest", "a.manifest", "--gate", "sud", "--", "hello"]).unwrap();
        assert_eq!((options.personality, options.manifest), (Personality::Pal, Some("a.manifest".into())));
        assert!(parse(&["--manifest", "a.manifest", "--", "x"]).unwrap_err().contains("for the personality `pal`"));
        assert!(pal(&["--tiles", "2", "--", "x"]).unwrap_err().contains("for the personalities `linux` and `invasive`"));
        assert!(pal(&["--gate", "signal", "--", "x"]).unwrap_err().contains("--personality invasive"));
    }

    #[test]
    fn picoprocesses_boot_with_manifests() {
        let boot =
            |args: &[&str]| match Args::try_parse_from([&["janua", "boot"], args].concat()).map_err(|e| e.to_string())?.command
            {
                Command::Boot(boot) => boot.options().map_err(|r| r.to_string()),
                _ => Err("not boot".into()),
            };
        let pal = |args: &[&str]| boot(&[&["--personality", "pal"], args].concat());
        let options = pal(&["--manifest", "a.manifest", "--smp", "4", "--cwd", "/tmp", "--", "hello", "x"]).unwrap();
        assert_eq!(options.pal.unwrap().manifest, Some("a.manifest".into()));
        assert_eq!((options.smp, options.cwd, options.program), (4, Some("/tmp".into()), "hello".into()));
        assert!(pal(&["x"]).unwrap().pal.is_some() && boot(&["x"]).unwrap().pal.is_none());
        assert!(boot(&["--manifest", "a.manifest", "--", "x"]).unwrap_err().contains("for the personality `pal`"));
        for wrong in [["--gate", "int"], ["--library", "vanilla"], ["--answers", "off"]] {
            assert!(pal(&[&wrong[..], &["x"]].concat()).unwrap_err().contains("for the personality `invasive`"), "{wrong:?}");
        }
        assert!(pal(&["--syscall-cores", "1", "x"]).unwrap_err().contains("--syscall-cores"));
        assert!(pal(&["--module", "sigma0", "--", "x"]).unwrap_err().contains("for the personality `l4v2`"));
        assert!(pal(&["--platform", "leon3", "x"]).unwrap_err().contains("for x86"));
    }

    #[test]
    fn systems_of_l4_run_traced() {
        let two = ["--module", "sigma0", "--module", "pingpong time"];
        let l4 = |args: &[&str]| parse(&[&["--personality", "l4v2"], args].concat());
        let options = l4(&[&two[..], &["--stats", "--gate", "ptrace", "--jail", "process"]].concat()).unwrap();
        assert_eq!((options.personality, options.l4_modules.len()), (Personality::L4v2, 2));
        assert_eq!(options.program, "pingpong time");
        assert!(parse(&two).unwrap_err().contains("for the personality `l4v2`"));
        assert!(l4(&two[..2]).unwrap_err().contains("two modules"));
        assert!(l4(&["--", "x"]).unwrap_err().contains("neither files nor a program"));
        for wrong in [["--tiles", "2"], ["--gdb", "1"]] {
            assert!(l4(&[&two[..], &wrong].concat()).is_err(), "{wrong:?}");
        }
        for wrong in
            [["--bind", "/"], ["--env", "A=1"], ["--cwd", "/"], ["--net", "host"], ["--syscall-cores", "1"], ["--", "x"]]
        {
            assert!(l4(&[&two[..], &wrong].concat()).unwrap_err().contains("neither files nor a program"), "{wrong:?}");
        }
        for wrong in [["--gate", "call"], ["--jail", "none"], ["--jail", "pkey"]] {
            assert!(l4(&[&two[..], &wrong].concat()).unwrap_err().contains("host processes of their own"), "{wrong:?}");
        }
    }

    #[test]
    fn defaults() {
        let options = parse(&["--", "true"]).unwrap();
        assert_eq!(options.gate, None);
        assert_eq!(options.root, Root::Host);
        assert_eq!(options.net, Net::None);
        assert_eq!(options.trace, None);
        assert_eq!(options.program, "true");
        assert!(options.args.is_empty() && !options.stats && options.cwd.is_none());
    }

    #[test]
    fn the_program_keeps_its_own_options() {
        let options = parse(&["sh", "-c", "--gate", "--", "x"]).unwrap();
        assert_eq!(options.program, "sh");
        assert_eq!(options.args, ["-c", "--gate", "--", "x"]);
        assert_eq!(parse(&["--trace", "--", "ls", "-l"]).unwrap().trace, Some(Trace::Stderr));
        assert_eq!(parse(&["--trace=f", "--", "ls"]).unwrap().trace, Some(Trace::File("f".into())));
        assert_eq!(parse(&["--trace", "ls"]).unwrap().program, "ls");
    }

    #[test]
    fn binds() {
        let bind = |text: &str| parse(&["--bind", text, "--", "x"]).map(|o| o.binds[0].clone());
        assert_eq!(bind("/tmp").unwrap(), Bind { source: "/tmp".into(), target: "/tmp".into(), writable: false });
        assert_eq!(bind("/tmp:/x:rw").unwrap(), Bind { source: "/tmp".into(), target: "/x".into(), writable: true });
        assert!(bind("/tmp::rw").unwrap().writable);
        assert!(bind("/tmp:/x:wr").unwrap_err().contains("neither ro nor rw"));
        assert!(bind("/tmp:x").unwrap_err().contains("must begin with /"));
        assert!(bind("/nonexistent/dir").unwrap_err().contains("--bind /nonexistent/dir"));
        assert!(bind("/a:/b:ro:x").unwrap_err().contains("too many colons"));
        let place = std::env::temp_dir().join(format!("janua:bind-{}", std::process::id()));
        std::fs::create_dir(&place).unwrap();
        let text = place.to_str().unwrap();
        assert!(bind(text).unwrap_err().contains("a colon that belongs to a path is written \\:"));
        let escaped = bind(&format!("{}:/x\\:y", text.replace(':', "\\:"))).unwrap();
        assert_eq!((escaped.source, escaped.target), (place.canonicalize().unwrap(), "/x:y".into()));
        std::fs::remove_dir(&place).unwrap();
    }

    #[test]
    fn what_is_not_built_says_so() {
        assert!(parse(&["--gate", "kvm", "--", "x"]).unwrap_err().contains("not built yet"));
        assert!(parse(&["--gate", "signal", "--", "x"]).unwrap_err().contains("--personality invasive"));
        for invasive in [&["--library", "vanilla"][..], &["--answers", "off"], &["--ask-ids"]] {
            assert!(parse(&[invasive, &["--", "x"]].concat()).unwrap_err().contains("for the personality `invasive`"));
            assert!(parse(&[invasive, &["--personality", "invasive", "--", "x"]].concat()).is_ok());
        }
        let said = parse(&["--gate", "nonsense", "--", "x"]).unwrap_err();
        assert!(said.contains("no gate `nonsense`") && said.contains("call, sud, seccomp, ptrace (linux); signal, "), "{said}");
        assert!(parse(&["--gaet", "sud", "--", "x"]).is_err());
        assert!(parse(&["--"]).is_err());
        assert!(parse(&["--", ""]).is_err());
    }

    #[test]
    fn gdb_has_a_place() {
        assert_eq!(parse(&["--gdb", "1234", "--", "x"]).unwrap().gdb, Some(Gdb::Port(1234)));
        assert_eq!(parse(&["--gdb", "./1234", "--", "x"]).unwrap().gdb, Some(Gdb::Socket("./1234".into())));
        for wrong in ["65536", "-1", "", "port"] {
            assert!(parse(&[&format!("--gdb={wrong}"), "--", "x"]).unwrap_err().contains("neither a port"), "{wrong}");
        }
        assert!(parse(&["--gdb", "1", "--detach", "--", "x"]).is_err());
        assert!(parse(&["--gdb", "1", "--personality", "invasive", "--", "x"]).unwrap_err().contains("--gdb"));
    }

    #[test]
    fn settings_replace_or_add() {
        let own: [(OsString, OsString); 2] = [("A", "1"), ("B", "2")].map(|(k, v)| (k.into(), v.into()));
        let all = environment(own.to_vec(), &["B=x=y".into(), "C=".into(), "A".into()], false).unwrap();
        assert_eq!(all, [("A", "1"), ("B", "x=y"), ("C", "")].map(|(k, v)| (k.into(), v.into())));
        assert!(environment(Vec::new(), &["=x".into()], false).is_err());
        assert!(environment(Vec::new(), &["x".into()], false).is_err());
        let foreign = environment(own.to_vec(), &["B".into()], true).unwrap();
        assert!(foreign.contains(&("B".into(), "2".into())) && !foreign.iter().any(|(key, _)| key == "A"));
    }

    #[test]
    fn places_with_colons_and_roots() {
        assert_eq!(parts(OsStr::new(r"a\:b\:c:d\\e")), ["a:b:c", r"d\e"]);
        assert_eq!(parse(&["--bind", "/usr:/:ro", "--", "x"]).unwrap().root, Root::Directory("/usr".into()));
        assert_eq!(parse(&["--bind", "/usr:/./:rw", "--", "x"]).unwrap().root, Root::Writable("/usr".into()));
        assert!(parse(&["--bind", "/usr:/:rw", "--root", "/etc", "--", "x"]).is_err());
    }
}
