//! The gates of the bare x86_64 machine: small programs in ring 3 ([`janua_probe::bare`], [`janua_probe::bare32`]), booted by `janua boot`.
//!
//! Twice for each setting of page-table isolation: counting instructions and what a TLB would miss, and by the clock.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use janua_probe::{bare, bare32};

use crate::model::{Cell, Configuration, Kind, Measurement, Method, RowResult, SCHEMA, Unit};
use crate::report::published;
use crate::stats::Summary;
use crate::{Failure, create, machine, print, private};

/// What `janua bench gates --platform x86_64` was asked to do.
pub struct Plan {
    /// Settings of page-table isolation to measure: `off`, `on`.
    pub isolation: Vec<&'static str>,
    /// Rows to measure, by the probe's names; empty: all.
    pub only: Vec<String>,
    /// Boots for each setting by the clock.
    pub runs: usize,
    pub json: Option<PathBuf>,
    /// The janua command.
    pub command: PathBuf,
    /// The profile of the kernel image.
    pub image: &'static str,
    /// QEMU's plugin that models a TLB, a file's content; empty when there is none.
    pub plugin: &'static [u8],
}

/// Seconds one boot may take.
const PATIENCE: &str = "120";

/// The row that wants the vsyscall page to be code: it has a boot of its own.
pub(crate) const NATIVE_PAGE: &str = "tod-vsyscall-native";

/// A boot of its own: what is run there, and its rows.
struct Machine {
    program: &'static str,
    /// Of `janua boot`.
    options: &'static [&'static str],
    has: fn(&str) -> bool,
}

const MACHINES: [Machine; 4] = [
    Machine { program: "gates", options: &[], has: |name| !is_32(name) && name != NATIVE_PAGE },
    Machine { program: "native", options: &["--vsyscall", "native"], has: |name| name == NATIVE_PAGE },
    Machine { program: "gates32", options: &[], has: |name| is_32(name) && !name.contains(OF_AMD) },
    // The same emulation with another maker's name, which has the instruction.
    Machine {
        program: "amd32",
        options: &["--cpu", "max,vendor=AuthenticAMD"],
        has: |name| is_32(name) && name.contains(OF_AMD),
    },
];

/// In the names of rows that want a processor of AMD's.
const OF_AMD: &str = "syscall-32";

/// Whether a row is one of 32-bit programs.
fn is_32(name: &str) -> bool {
    bare32::names().contains(&name)
}

/// The rows of all programs, but for their loops.
fn names() -> Vec<&'static str> {
    bare::names().into_iter().chain(bare32::names()).filter(|name| !name.starts_with("loop")).collect()
}

/// What a row's count is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Instructions,
    Walks,
    Time,
}

impl Of {
    /// What its rows' names begin with.
    fn prefix(self) -> &'static str {
        match self {
            Of::Instructions => "count",
            Of::Walks => "walks",
            Of::Time => "emulated",
        }
    }
}

/// The gates in the order of the tables: the probe's name, and what it is.
pub(crate) const GATES: &[(&str, &str)] = &[
    ("syscall", "syscall"),
    ("sysenter", "sysenter"),
    ("callgate", "call gate"),
    ("int30", "int 0x30"),
    ("int80", "int 0x80"),
    ("ud", "LOCK NOP (#UD)"),
    ("vsyscall", "vsyscall, emulated"),
    ("int80-32", "int 0x80 from 32-bit code"),
    ("sysenter-32", "sysenter from 32-bit code"),
    ("syscall-32", "syscall from 32-bit code"),
];

/// The gettimeofday rows in the article's order: the probe's name, and the article's.
pub(crate) const ARTICLE: &[(&str, &str)] = &[
    ("tod-int80", "int 80h"),
    ("tod-sysenter", "sysenter"),
    ("tod-syscall", "syscall"),
    ("tod-vsyscall", "vsyscall emulate"),
    ("tod-vsyscall-native", "vsyscall native"),
    ("tod-vdso", "vDSO"),
    ("tod-vdso32", "vDSO-32"),
    ("tod-syscall-32", "syscall from 32-bit code"),
];

/// What instruction counts are and what they are not: printed below the tables.
pub(crate) const WHAT_INSTRUCTIONS_ARE: &str = "\
Instructions are not time. The counts are of QEMU's -icount: exact, the same on every machine, and blind to what an instruction
costs. On a processor most instructions of these paths take a cycle or less, and two or three take nearly all the time. `int` and
faults go through microcode: they read the descriptor table, check rights, change stacks and push five words, and `iretq` undoes it with
as many checks; both drain the pipeline, some hundred cycles together. `syscall` and `sysret` do none of it: they move two registers and
load fixed selectors, some tens of cycles, and leave to software what the others do in hardware (find a stack, save the return address). So `int`
executes fewer instructions than `syscall` and costs several times more; the article measured 317 against 103 ns. With page-table isolation
each way adds a write of CR3: a few instructions here, and on a processor 175 to 196 ns, most of it for translations to be found again:
the walks are how often a processor with the TLB of the article's (Broadwell: 64 entries for data, 128 for instructions, 1536 behind them)
has to read the page tables for one call, in a model that sees every instruction and access.
Emulated time is QEMU's cost to pretend, on this host: exceptions leave its translated code, a write of CR3 empties its whole software
cache of translations. It says nothing about a processor, and is given so that nobody takes instructions for time.";

/// One boot: the probe's samples by name, and why the rest is missing.
struct Boot {
    rows: Vec<(String, Vec<f64>)>,
    ended: Option<String>,
    /// Page-table walks of instructions and data together, by the rows' names; or why there are none.
    walks: Result<Vec<(String, Vec<f64>)>, String>,
}

/// Measures, prints, and writes the file.
pub fn run(plan: &Plan) -> Result<(), Failure> {
    let known = names();
    if let Some(unknown) = plan.only.iter().find(|name| !known.contains(&name.as_str())) {
        return Failure::new(format!("there is no row called `{unknown}` on x86_64\n       its rows: {}", known.join(", ")));
    }
    let file = plan.json.as_deref().map(|path| create(path).map(|file| (path, file))).transpose()?;
    let measurement = measure(plan)?;
    let text = text(&measurement);
    let printed = crate::show(&text);
    if let Some((path, mut file)) = file {
        std::io::Write::write_all(&mut file, measurement.to_json().as_bytes())
            .map_err(|error| Failure(format!("{}: {error}", path.display())))?;
        eprintln!("written: {0} (janua report {0} makes a page of it)", path.display());
    }
    printed
}

/// The names of the rows.
pub fn list() -> String {
    names().iter().fold(String::new(), |mut text, name| {
        let _ = writeln!(text, "{name}");
        text
    })
}

fn configuration(isolation: &str) -> Configuration {
    Configuration { name: format!("x86_64 kpti {isolation}"), gate: None, jail: None }
}

fn measure(plan: &Plan) -> Result<Measurement, Failure> {
    let mut machine = machine::describe();
    let tree = Tree::new(plan)?;
    let wanted: Vec<&'static str> =
        names().into_iter().filter(|name| plan.only.is_empty() || plan.only.iter().any(|only| only == name)).collect();
    let mut rows = Vec::new();
    let mut boots = Vec::new();
    for isolation in &plan.isolation {
        let counted = boot(plan, &tree, isolation, true)?;
        let mut timed = boot(plan, &tree, isolation, false)?;
        for _ in 1..plan.runs {
            for (name, samples) in boot(plan, &tree, isolation, false)?.rows {
                if let Some((_, all)) = timed.rows.iter_mut().find(|(known, _)| *known == name) {
                    all.extend(samples);
                }
            }
        }
        boots.push((counted, timed));
    }
    for of in [Of::Instructions, Of::Walks, Of::Time] {
        for name in &wanted {
            let cells = plan.isolation.iter().zip(&boots).map(|(isolation, (counted, timed))| {
                let boot = if of == Of::Time { timed } else { counted };
                let result = per_call(boot, name, of, machine.tsc_hz);
                let none = || if of == Of::Walks { boot.walks.as_ref().err() } else { None }.or(boot.ended.as_ref()).cloned();
                let skipped = result.is_none().then(|| none().unwrap_or_else(|| "not measured".into()));
                Cell { configuration: configuration(isolation).name, result, skipped, fast_share: None }
            });
            let (group, unit) = match of {
                Of::Instructions => ("instructions", Unit::Instructions),
                Of::Walks => ("page-table walks of a modelled TLB", Unit::Misses),
                Of::Time => ("emulated time", Unit::Nanoseconds),
            };
            let kind = if name.starts_with("tod-") { "gettimeofday" } else { "null call" };
            rows.push(RowResult {
                name: format!("{}-{name}", of.prefix()),
                title: title(name),
                group: format!("{kind} on the bare machine, {group}"),
                unit,
                cells: cells.collect(),
            });
        }
    }
    machine.load[1] = machine::load();
    Ok(Measurement {
        schema: SCHEMA,
        kind: Kind::Gates,
        date: machine::now(),
        tool: machine::tool("JANUA_IMAGE_X86_64", plan.image),
        machine,
        method: Method { runs: plan.runs, samples: bare::SAMPLES as usize, pinned: None },
        configurations: plan.isolation.iter().map(|isolation| configuration(isolation)).collect(),
        refused: Vec::new(),
        rows,
        notes: vec![
            "the machine is QEMU's, emulated in software, with an Intel processor's instructions; syscall from 32-bit code is measured on \
             the same under AMD's name, which has it".into(),
            "sysenter and syscall from 32-bit code are reached by the vDSO's __kernel_vsyscall, whose pushes and pops are counted".into(),
            "instructions are exact counts by -icount shift=0, not time; emulated time is QEMU's on this host, not a processor's".into(),
            "page-table walks are those of a model of the TLB of the article's processor (Broadwell), which sees every instruction and access; \
             each write of CR3 empties it"
                .into(),
        ],
    })
}

fn title(name: &str) -> String {
    if let Some((_, theirs)) = ARTICLE.iter().find(|(known, _)| *known == name) {
        return format!("gettimeofday by {theirs}");
    }
    let (gate, count) = name.trim_start_matches("null-").rsplit_once('-').unwrap_or((name, ""));
    let gate = GATES.iter().find(|(known, _)| *known == gate).map_or(gate, |(_, title)| title);
    format!("{gate}, {count} argument{}", if count == "1" { "" } else { "s" })
}

/// A row's figure for one call, the loop round it taken off: the least count, or all times.
fn per_call(boot: &Boot, name: &str, of: Of, tsc_hz: f64) -> Option<Summary> {
    let rows = if of == Of::Walks { boot.walks.as_ref().ok()? } else { &boot.rows };
    let samples = |name: &str| rows.iter().find(|(known, _)| known == name).map(|(_, samples)| samples.as_slice());
    let least = |samples: &[f64]| samples.iter().copied().fold(f64::INFINITY, f64::min);
    let around = least(samples(if is_32(name) { bare32::LOOP } else { "loop" })?);
    let each = |ticks: f64| (ticks - around).max(0.0) / bare::TURNS as f64;
    match of {
        // What is more than the least was interrupted.
        Of::Instructions | Of::Walks => Summary::of(&[each(least(samples(name)?))]),
        Of::Time => Summary::of(&samples(name)?.iter().map(|ticks| each(*ticks) * 1e9 / tsc_hz).collect::<Vec<_>>()),
    }
}

/// The file tree of the machine, the probe alone; beside it the plugin and what it writes. Removed in the end.
struct Tree(PathBuf);

impl Tree {
    fn new(plan: &Plan) -> Result<Tree, Failure> {
        let dir = private::directory(&std::env::temp_dir(), "janua-bench")?;
        let tree = Tree(dir.clone());
        let wanted = |name: &str| plan.only.is_empty() || plan.only.iter().any(|known| known == name);
        let mut made = fs::create_dir(tree.root()).and_then(|()| fs::write(tree.plugin(), plan.plugin));
        for Machine { program, has, .. } in MACHINES {
            let of_it = |name: &str| wanted(name) && has(name);
            let file = if program.ends_with("32") {
                bare32::elf(|name| name == bare32::LOOP || of_it(name))
            } else {
                bare::elf(|name| name == "loop" || of_it(name))
            };
            made = made.and_then(|()| tree.add(program, &file));
        }
        made.map_err(|error| Failure(format!("{}: {error}", dir.display())))?;
        Ok(tree)
    }

    fn add(&self, name: &str, file: &[u8]) -> std::io::Result<()> {
        let path = self.root().join(name);
        fs::write(&path, file)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
    }

    fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    fn plugin(&self) -> PathBuf {
        self.0.join("tlb.so")
    }

    /// What the plugin writes.
    fn misses(&self) -> PathBuf {
        self.0.join("misses")
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // It is small, and in a directory for such things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The boots of a setting as one.
fn boot(plan: &Plan, tree: &Tree, isolation: &str, count: bool) -> Result<Boot, Failure> {
    let mut all = Boot { rows: Vec::new(), ended: None, walks: Ok(Vec::new()) };
    let wanted = |machine: &Machine| plan.only.is_empty() || plan.only.iter().any(|only| (machine.has)(only));
    for machine in MACHINES.iter().filter(|machine| wanted(machine)) {
        let one = boot_once(plan, tree, isolation, count, machine)?;
        add_rows(&mut all.rows, one.rows);
        all.ended = all.ended.or(one.ended);
        all.walks = match (all.walks, one.walks) {
            (Ok(mut walks), Ok(more)) => {
                add_rows(&mut walks, more);
                Ok(walks)
            }
            (Err(why), _) | (_, Err(why)) => Err(why),
        };
    }
    Ok(all)
}

/// Every boot has its loop: the first one's of a name is taken, they are alike.
fn add_rows(all: &mut Vec<(String, Vec<f64>)>, more: Vec<(String, Vec<f64>)>) {
    for (name, samples) in more {
        if !all.iter().any(|(known, _)| *known == name) {
            all.push((name, samples));
        }
    }
}

fn boot_once(plan: &Plan, tree: &Tree, isolation: &str, count: bool, machine: &Machine) -> Result<Boot, Failure> {
    if !count {
        return start(plan, tree, isolation, machine, Meter::Clock);
    }
    let why = if plan.plugin.is_empty() {
        "this janua was built without its plugin for QEMU: build it by ./janua build".to_owned()
    } else {
        match start(plan, tree, isolation, machine, Meter::CountAndModel) {
            Ok(boot) => return Ok(boot),
            // The machine itself works without, or the next start reports why not.
            Err(why) => format!(
                "QEMU did not run with a plugin, which it can when built with --enable-plugins, as Debian's qemu-system-x86 is: {why}"
            ),
        }
    };
    start(plan, tree, isolation, machine, Meter::Count).map(|boot| Boot { walks: Err(why), ..boot })
}

/// What a boot measures by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meter {
    Clock,
    /// Instructions.
    Count,
    /// The same, with the plugin.
    CountAndModel,
}

fn start(plan: &Plan, tree: &Tree, isolation: &str, machine: &Machine, meter: Meter) -> Result<Boot, Failure> {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", PATIENCE]).arg(&plan.command).args(["boot", "--smp", "1", "--kpti", isolation]);
    if meter != Meter::Clock {
        command.args(["--icount", "0"]);
    }
    if meter == Meter::CountAndModel {
        // Without isolation the kernel's pages are global.
        let global = if isolation == "off" { "on" } else { "off" };
        let plugin = format!("{},out={},global={global}", tree.plugin().display(), tree.misses().display());
        command.args(["--plugin", &plugin]);
    }
    command.args(machine.options);
    let program = format!("/{}", machine.program);
    command.arg("--ramfs").arg(tree.root()).args(["--", &program]).stdin(Stdio::null());
    let output = command.output().map_err(|error| Failure(format!("timeout: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<_> = text.lines().filter_map(row).collect();
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim_start_matches("janua: ");
    let ended = (!output.status.success()).then(|| format!("the machine ended early ({}) {said}", output.status));
    if rows.is_empty() {
        return Failure::new(ended.unwrap_or_else(|| "the measuring program wrote nothing".into()));
    }
    let walks = match meter {
        Meter::CountAndModel => {
            let misses = fs::read_to_string(tree.misses()).map_err(|error| Failure(format!("the plugin's counts: {error}")))?;
            Ok(walks(&rows, &misses))
        }
        _ => Err("not counted".into()),
    };
    Ok(Boot { rows, ended, walks })
}

/// The plugin's lines by the rows they are of: it writes one for each time the probe ran a record, which is once before the samples.
/// A line has misses of the first level, instructions and data; walks, instructions and data; writes of CR3.
fn walks(rows: &[(String, Vec<f64>)], misses: &str) -> Vec<(String, Vec<f64>)> {
    let walks = misses.lines().map(|line| {
        let mut words = line.split_ascii_whitespace().skip(2).map_while(|word| word.parse::<f64>().ok());
        words.next().unwrap_or_default() + words.next().unwrap_or_default()
    });
    let walks: Vec<f64> = walks.collect();
    let records = walks.chunks_exact(1 + bare::SAMPLES as usize).map(|record| record[1..].to_vec());
    rows.iter().map(|(name, _)| name.clone()).zip(records).collect()
}

/// `row NAME TICKS...`
fn row(line: &str) -> Option<(String, Vec<f64>)> {
    let mut words = line.split_ascii_whitespace();
    (words.next() == Some("row")).then_some(())?;
    let name = words.next()?.to_owned();
    let samples: Vec<f64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    samples.iter().all(|sample| *sample > 0.0).then_some((name, samples))
}

/// The tables for a terminal.
fn text(measurement: &Measurement) -> String {
    let mut text = String::new();
    let tool = &measurement.tool;
    let _ = writeln!(text, "janua {} {}, x86_64 emulated by QEMU, {}", tool.version, tool.commit, measurement.date);
    let figure = |name: &str, configuration: &Configuration| {
        let row = measurement.rows.iter().find(|row| row.name == name)?;
        row.under(&configuration.name).map(|summary| summary.min)
    };
    let cell = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.0}"));
    for configuration in &measurement.configurations {
        for (of, what) in [
            (Of::Instructions, "INSTRUCTIONS A CALL (not time)"),
            (Of::Walks, "PAGE-TABLE WALKS A CALL (of a modelled TLB)"),
            (Of::Time, "EMULATED TIME A CALL, ns (not a processor's)"),
        ] {
            let _ = writeln!(text, "\n{what}, {}, by arguments", configuration.name);
            let _ = writeln!(text, "{:28}{}", "getppid by", (0..7).fold(String::new(), |line, n| line + &format!("{n:>8}")));
            for (gate, title) in GATES {
                let figures: Vec<_> =
                    (0..7).map(|n| figure(&format!("{}-null-{gate}-{n}", of.prefix()), configuration)).collect();
                if figures.iter().any(Option::is_some) {
                    let cells = figures.into_iter().fold(String::new(), |line, value| line + &format!("{:>8}", cell(value)));
                    let _ = writeln!(text, "{title:28}{cells}");
                }
            }
        }
    }
    let _ = writeln!(text, "\nvsyscall calls getcpu, whose three arguments are null: there is no null call among its three.");
    let _ = writeln!(text, "\nGETTIMEOFDAY, the article's tables beside ours");
    let mut head = format!("{:28}{:>14}{:>14}", "", "theirs, on", "theirs, off");
    for configuration in &measurement.configurations {
        let short = configuration.name.trim_start_matches("x86_64 ");
        let _ = write!(head, "{:>16}{:>10}{:>16}", format!("{short}, insns"), "walks", format!("{short}, ns"));
    }
    let _ = writeln!(text, "{head}");
    for (name, theirs) in ARTICLE {
        let published = published::GETTIMEOFDAY.iter().find(|(known, ..)| known == name);
        let (on, off) = (published.map(|(_, on, _)| *on), published.map(|(.., off)| *off));
        let mut line = format!("{theirs:28}{:>14}{:>14}", cell(on), cell(off));
        for configuration in &measurement.configurations {
            for (of, width) in [(Of::Instructions, 16), (Of::Walks, 10), (Of::Time, 16)] {
                let _ = write!(line, "{:>width$}", cell(figure(&format!("{}-{name}", of.prefix()), configuration)));
            }
        }
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "theirs: ns, with page-table isolation on and off. {}", published::GETTIMEOFDAY_SOURCE);
    let _ = writeln!(text, "\n{WHAT_INSTRUCTIONS_ARE}");
    for reason in print::reasons(measurement) {
        let _ = writeln!(text, "not measured: {reason}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_probe() {
        assert_eq!(row("row null-ud-3 12 13"), Some(("null-ud-3".into(), vec![12.0, 13.0])));
        assert_eq!((row("roe null 1"), row("row"), row("row x y")), (None, None, None));
    }

    #[test]
    fn the_loop_is_taken_off() {
        let rows = vec![("loop".into(), vec![2009.0, 2008.0]), ("null-ud-0".into(), vec![54_008.0, 52_008.0])];
        let boot = Boot { rows, ended: None, walks: Err("none".into()) };
        assert_eq!(per_call(&boot, "null-ud-0", Of::Instructions, 1e9).unwrap().min, 50.0);
        assert_eq!(per_call(&boot, "null-ud-0", Of::Time, 2e9).unwrap().max, 26.0);
        assert!(per_call(&boot, "nothing", Of::Time, 1e9).is_none());
        assert!(per_call(&boot, "null-ud-0", Of::Walks, 1e9).is_none());
    }

    #[test]
    fn the_plugins_lines_are_the_rows_in_their_order() {
        let rows = [("loop".to_owned(), vec![1.0]), ("null-int30-0".to_owned(), vec![2.0])];
        let record = |walks: u64| format!("9 9 {walks} 3 2\n") + &format!("8 8 {walks} 2 2\n").repeat(bare::SAMPLES as usize);
        let counted = walks(&rows, &(record(0) + &record(7000)));
        assert_eq!(counted[0].1, [2.0; bare::SAMPLES as usize]);
        assert_eq!(counted[1], ("null-int30-0".to_owned(), vec![7002.0; bare::SAMPLES as usize]));
        let boot = Boot { rows: rows.to_vec(), ended: None, walks: Ok(counted) };
        assert_eq!(per_call(&boot, "null-int30-0", Of::Walks, 1e9).unwrap().min, 7.0);
    }

    #[test]
    fn titles() {
        assert_eq!(title("null-ud-1"), "LOCK NOP (#UD), 1 argument");
        assert_eq!(title("null-sysenter-32-0"), "sysenter from 32-bit code, 0 arguments");
        assert_eq!(title("tod-vdso"), "gettimeofday by vDSO");
    }
}
