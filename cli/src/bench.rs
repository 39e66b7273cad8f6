//! `janua bench` and `janua report`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Subcommand, ValueHint};
use janua_bench::model::Kind;
use janua_bench::{Failure, Plan, Platform};

use crate::{args, exit};

/// The profile of the embedded kernel image, if its build has set it.
const IMAGE: &str = match option_env!("JANUA_IMAGE_PROFILE") {
    Some(profile) => profile,
    None => "of unknown profile",
};

/// QEMU's plugin that models a TLB (`bench/tlb`); empty when the command was built without it.
static TLB_PLUGIN: &[u8] = include_bytes!(env!("JANUA_TLB_PLUGIN"));

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  janua bench gates                              every gate and jail here, and the host's own gates
  janua bench gates --jail none --json none.json
  janua bench calls --gate sud --runs 3          quicker
  janua bench calls --only pipe,futex-thr,stat   some rows
  janua bench calls --list                       the names of the rows
  janua bench apps --json apps.json              compile, find, Python, git, tar, redis
  janua bench tasks --json tasks.json            calls at home and away
  janua bench scale --gate call --only alive-10,alive-1000
                                                 a fork among 10 and 1,000 sleeping processes
  janua bench messages                           a message between two tiles, in bare round trips
  janua bench pingpong --json pingpong.json      calls and messages of L4, beside Fiasco's figures
  janua bench events --platform x86_64           events of libpal, on linux and the bare machine
  janua report gates.json calls.json apps.json   a page with plots

On the bare machine, and of the personality invasive:
  janua bench gates --platform x86_64 --kpti on  every gate, in instructions and time
  janua bench calls --platform x86_64 --gate call
                                                 beside the platform linux, in emulated time
  janua bench calls --personality invasive       claims, i-lets and empty calls, beside OctoPOS'
                                                 figures
  janua bench calls --personality invasive --platform x86_64
                                                 the same by syscall and int 0x30

Every round measures native and each gate with its jail in turn. A figure is the best of all
rounds; a ratio is that figure divided by native's of the same run, so below 1 is faster than the
host. `~` marks rows whose native samples scattered: measure again when the machine is quiet.")]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Ways into a kernel: the host's own and Janua's, and null calls with 0 to 6 arguments
    Gates(Options),
    /// Common calls: files, memory, pipes, futexes, sockets, processes, time; start-up; memory of idle processes
    Calls(Options),
    /// Real programs: compiler, find, Python with sqlite, git, tar, ls, redis
    Apps(Options),
    /// The six tasks of a thesis on asynchronous system calls: calls at home, and on modules
    Tasks(Tasks),
    /// Calls and messages of L4: within an address space and between two, flexpages, and the host's part of each step
    Pingpong(Options),
    /// Messages between tiles: 56 bytes there and back, beside a bare round trip of a cache line
    Messages(Options),
    /// Events of libpal beside a bare futex: set after a while (Tables 3 and 4 of a thesis on Barrelfish), and how long it takes until who waits for 1 to
    /// 64 of them runs
    Events(Options),
    /// Curves: processes, threads, mappings, descriptors, files, sockets, sandboxes, 10 to 10,000 of them
    Scale(Options),
}

#[derive(clap::Args)]
struct Tasks {
    /// The platform that carries Janua: linux, or x86_64, QEMU's bare machine, where instructions are counted and caches simulated
    #[arg(long, value_name = "NAME", default_value = "linux", value_parser = ["linux", "x86_64"], hide_possible_values = true)]
    platform: String,

    /// On linux: the gate, as `janua run` has it
    #[arg(long, value_name = "GATE")]
    gate: Option<String>,

    /// On linux: the jail, as `janua run` has it
    #[arg(long, value_name = "JAIL")]
    jail: Option<String>,

    /// Measure these tasks only, of 0 to 9 (from 6 on: reads of 64 bytes to 1 MiB)
    #[arg(long, value_name = "TASK,...", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..=9))]
    only: Vec<u8>,

    /// Rounds; 20, on x86_64 3, when left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,

    /// End after M minutes with the rounds that fit, one at least, and report how many they were. On x86_64 half of the time is for what is simulated
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u16).range(1..))]
    minutes: Option<u16>,

    /// Do the work as often as the thesis: hours instead of minutes
    #[arg(long)]
    thesis: bool,

    /// Write the measurement to FILE, for `janua report`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,

    /// List the rows and measure nothing
    #[arg(long)]
    list: bool,
}

#[derive(clap::Args)]
struct Options {
    /// The platform that carries Janua: linux; x86_64, QEMU's bare machine (with `gates` and `calls --personality invasive`; with
    /// other `calls` and `events` it is measured beside linux); leon3 (with `calls --personality invasive`)
    #[arg(long, value_name = "NAME", default_value = "linux", value_parser = ["linux", "x86_64", "leon3"], hide_possible_values = true)]
    platform: String,

    /// Measure the calls of this personality: linux or invasive (with `calls`)
    #[arg(long, value_name = "NAME", default_value = "linux", value_parser = ["linux", "invasive"], hide_possible_values = true)]
    personality: String,

    /// On x86_64: with page-table isolation or without; left out, both
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"], hide_possible_values = true)]
    kpti: Option<String>,

    /// Measure these gates only; without it all that work here
    #[arg(long, value_name = "GATE,...", value_delimiter = ',')]
    gate: Vec<String>,

    /// Measure these jails only; without it all that work here
    #[arg(long, value_name = "JAIL,...", value_delimiter = ',')]
    jail: Vec<String>,

    /// Measure these rows only (--list names them)
    #[arg(long, value_name = "ROW,...", value_delimiter = ',')]
    only: Vec<String>,

    /// Rounds; 10, of `scale` 3, when left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,

    /// The most samples of a row in one round
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=4096))]
    samples: u16,

    /// Write the measurement to FILE, for `janua report`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,

    /// List the rows and measure nothing
    #[arg(long)]
    list: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  janua bench gates --json gates.json && janua report gates.json
  janua report -o all.html monday/*.json tuesday/*.json

The page needs nothing from the network. Figures published by others are shown beside the measured
ones, labelled as theirs.")]
pub struct Report {
    /// Where to write the page
    #[arg(short, long, value_name = "FILE", default_value = "report.html", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    /// What `janua bench --json FILE` wrote; none: a page of the published figures only
    #[arg(value_name = "JSON", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
}

/// The values an option of `janua run` takes, without `auto`.
fn values_of(option: &str) -> Vec<String> {
    let command = args::Args::command();
    let run = command.find_subcommand("run");
    let argument = run.and_then(|run| run.get_arguments().find(|argument| argument.get_id() == option));
    let values = argument.map(clap::Arg::get_possible_values).unwrap_or_default();
    values.iter().map(|value| value.get_name().to_owned()).filter(|name| name != "auto").collect()
}

/// The thesis' two time slices, and none, where the bare machine's can be chosen.
fn slices() -> &'static [&'static str] {
    let command = args::Args::command();
    let boot = command.find_subcommand("boot");
    let chosen = boot.is_some_and(|boot| boot.get_arguments().any(|argument| argument.get_id() == "slice"));
    if chosen { &["80ms", "1ms", "tickless"] } else { &[] }
}

/// The values asked for, or all there are.
fn choose(option: &str, asked: Vec<String>) -> Result<Vec<String>, Failure> {
    let known = values_of(option);
    if let Some(wrong) = asked.iter().find(|name| !known.contains(name)) {
        return Err(Failure(format!("no {option} is called `{wrong}`\n       there are: {}", known.join(", "))));
    }
    Ok(if asked.is_empty() { known } else { asked })
}

/// `janua bench`.
pub fn run(bench: Bench) -> ExitCode {
    let (kind, options) = match bench.what {
        What::Tasks(options) => {
            return tasks(options).map_or_else(|why| exit::fail(&why), |()| ExitCode::SUCCESS);
        }
        What::Gates(options) => (Kind::Gates, options),
        What::Calls(options) => (Kind::Calls, options),
        What::Apps(options) => (Kind::Apps, options),
        What::Scale(options) => (Kind::Scale, options),
        What::Pingpong(options) => (Kind::Pingpong, options),
        What::Messages(options) => (Kind::Messages, options),
        What::Events(options) => (Kind::Events, options),
    };
    let kind = match (options.personality.as_str(), kind) {
        ("invasive", Kind::Calls) => Kind::Invasive,
        ("invasive", _) => {
            return exit::fail(
                &"only the calls of the personality `invasive` are measured\n       janua bench calls --personality invasive",
            );
        }
        _ => kind,
    };
    if options.platform == "leon3" && kind != Kind::Invasive {
        return exit::fail(
            &"on the LEON3 only the calls of the personality `invasive` are measured\n       janua bench calls --personality invasive --platform leon3",
        );
    }
    if options.platform == "x86_64" && !matches!(kind, Kind::Calls | Kind::Invasive | Kind::Events) {
        let measured = bare_plan(kind, options).and_then(|plan| plan.map_or(Ok(()), |plan| janua_bench::bare::run(&plan)));
        return measured.map_or_else(|why| exit::fail(&why), |()| ExitCode::SUCCESS);
    }
    if options.list {
        return exit::print(janua_bench::list(kind).as_bytes());
    }
    let measured = plan(kind, options).and_then(|plan| janua_bench::run(&plan));
    measured.map_or_else(|why| exit::fail(&why), |()| ExitCode::SUCCESS)
}

/// `janua bench tasks`.
fn tasks(options: Tasks) -> Result<(), Failure> {
    if options.list {
        return janua_bench::show(&janua_bench::tasks::list());
    }
    let bare = options.platform == "x86_64";
    if bare && (options.gate.is_some() || options.jail.is_some()) {
        return Err(Failure("x86_64 has no jail, and programs choose their gate\n       leave --gate and --jail out".into()));
    }
    for (option, value) in [("gate", &options.gate), ("jail", &options.jail)] {
        choose(option, value.iter().cloned().collect())?;
    }
    janua_bench::tasks::run(&janua_bench::tasks::Plan {
        platform: if bare { Platform::X86_64 } else { Platform::Linux },
        gate: options.gate,
        jail: options.jail,
        only: options.only,
        // As many as the thesis asks for; a round on the emulated machine takes minutes.
        runs: options.runs.map_or(if bare { 3 } else { 20 }, usize::from),
        minutes: options.minutes,
        thesis: options.thesis,
        json: options.json,
        command: own_command()?,
        image: IMAGE,
        plugin: TLB_PLUGIN,
    })
}

/// How many rounds are measured.
fn rounds(kind: Kind, asked: Option<u16>) -> usize {
    // A round of curves takes minutes.
    asked.map_or(if kind == Kind::Scale { 3 } else { 10 }, usize::from)
}

fn own_command() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure(format!("cannot find the janua command: {error}")))
}

/// What to measure on the bare machine; `None` after the rows were listed.
fn bare_plan(kind: Kind, options: Options) -> Result<Option<janua_bench::bare::Plan>, Failure> {
    if kind != Kind::Gates {
        return Err(Failure(format!(
            "`bench {}` is for the platform linux\n       x86_64 has `bench gates`, `bench calls` and `bench events`",
            kind.name()
        )));
    }
    if !(options.gate.is_empty() && options.jail.is_empty()) {
        return Err(Failure(
            "x86_64 has all its gates at once, and no jail\n       choose rows by --only (--list names them)".into(),
        ));
    }
    if options.list {
        janua_bench::show(&janua_bench::bare::list())?;
        return Ok(None);
    }
    Ok(Some(janua_bench::bare::Plan {
        isolation: match options.kpti.as_deref() {
            Some("on") => vec!["on"],
            Some(_) => vec!["off"],
            None => vec!["off", "on"],
        },
        only: options.only,
        runs: rounds(kind, options.runs),
        json: options.json,
        command: own_command()?,
        image: IMAGE,
        plugin: TLB_PLUGIN,
    }))
}

fn plan(kind: Kind, options: Options) -> Result<Plan, Failure> {
    if options.kpti.is_some() {
        return Err(Failure("--kpti is of the platform x86_64\n       add --platform x86_64, or leave --kpti out".into()));
    }
    let command = own_command()?;
    let emulated = options.platform == "x86_64" && kind == Kind::Calls;
    let mut gates = options.gate;
    let named = !(gates.is_empty() && options.jail.is_empty());
    if kind == Kind::Events && gates.is_empty() {
        // Waiting is the same by every gate.
        gates.push("call".into());
    }
    Ok(Plan {
        emulated: emulated.then(|| janua_bench::emulated::Tree::new(&command)).transpose()?,
        kind,
        platform: match options.platform.as_str() {
            "leon3" => Platform::Leon3,
            "x86_64" => Platform::X86_64,
            _ => Platform::Linux,
        },
        named,
        gates: choose("gate", gates)?,
        jails: choose("jail", options.jail)?,
        only: options.only,
        runs: rounds(kind, options.runs),
        slices: slices(),
        samples: options.samples.into(),
        json: options.json,
        command,
        image: IMAGE,
    })
}

/// `janua report`.
pub fn report(report: &Report) -> ExitCode {
    janua_bench::report(&report.files, &report.output).map_or_else(|why| exit::fail(&why), |()| ExitCode::SUCCESS)
}

/// `janua probe`: the measured program, for `janua bench`.
pub fn probe(arguments: &[OsString]) -> ExitCode {
    janua_bench::probe_main(arguments)
}

#[cfg(test)]
mod tests {
    use super::{choose, values_of};

    #[test]
    fn gates_and_jails_are_those_of_run() {
        let gates = values_of("gate");
        assert!(gates.contains(&"sud".to_owned()) && gates.contains(&"seccomp".to_owned()));
        assert!(!gates.contains(&"auto".to_owned()));
        assert!(values_of("jail").contains(&"none".to_owned()));
    }

    #[test]
    fn unknown_names_are_refused() {
        assert_eq!(choose("gate", vec!["sud".into()]).unwrap(), ["sud"]);
        assert!(choose("gate", vec!["gateway".into()]).unwrap_err().to_string().contains("no gate is called `gateway`"));
        assert!(!choose("jail", Vec::new()).unwrap().is_empty());
    }
}
