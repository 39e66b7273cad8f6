//! `janua bench calls --personality invasive`: what the calls of the invasive interface cost, as in chapter 5.2 of E. Dengler's
//! thesis: each call 100,000 times, of which the last 1,000 count, the stopwatch's own cost taken off, in the three configurations.
//!
//! The column `native` is the thesis' own method on this host: a signal queued to oneself by three host calls, in an ordinary
//! process without Janua ([`janua_probe`]'s row `queued-3`).

use std::collections::BTreeMap;
use std::process::Command;

use crate::machine;
use crate::model::{Cell, Configuration, Kind, Measurement, Method, NATIVE, RowResult, SCHEMA, Unit};
use crate::stats::Summary;
use crate::{Failure, Plan, Platform};

/// More rounds than this take minutes and show nothing new.
const ROUNDS_MOST: usize = 3;
/// The program (`user/programs/calls.c`).
const PROGRAM: &str = "calls";
/// How often it makes each call.
const CALLS: u32 = 100_000;
/// The same where instructions are counted on a machine that makes no difference between the first calls and the last.
const CALLS_COUNTED: u32 = 3_000;
/// What is kept with the rows of a run on the LEON3: windows spilled and filled.
const WINDOWS: &str = "windows";
/// The row the others are freed of.
const STOPWATCH: &str = "stopwatch";

/// A configuration: its name, gate and jail, options of `janua run` or `janua boot`.
struct Way {
    name: &'static str,
    gate: Option<&'static str>,
    jail: &'static str,
    options: &'static [&'static str],
}

/// Those on the LEON3.
#[rustfmt::skip]
const WAYS_LEON3: &[Way] = &[
    Way { name: "sys-lib-yes ta", gate: Some("ta"), jail: "mmu", options: &[] },
    Way { name: "sys-lib-no", gate: None, jail: "none", options: &["--library", "sys-lib-no"] },
    Way { name: "vanilla", gate: None, jail: "none", options: &["--library", "vanilla"] },
];

/// Those on bare x86_64.
const WAYS_X86_64: &[Way] = &[
    Way { name: "sys-lib-yes syscall", gate: Some("syscall"), jail: "ring 3", options: &["--gate", "syscall"] },
    Way { name: "sys-lib-yes int 0x30", gate: Some("int"), jail: "ring 3", options: &["--gate", "int"] },
    Way { name: "sys-lib-no", gate: None, jail: "none", options: &["--library", "sys-lib-no"] },
    Way { name: "vanilla", gate: None, jail: "none", options: &["--library", "vanilla"] },
];

/// On the LEON3 an instruction takes two to this power of nanoseconds, so that the stopwatch's tick of 25 resolves single ones.
const ICOUNT_LEON3: u32 = 5;
/// On x86_64 its tick is a nanosecond.
const ICOUNT_X86_64: u32 = 0;

/// The whole table, measured in one unit.
struct Pass {
    unit: Unit,
    /// Under QEMU, when instructions are counted: what one takes, as above.
    icount: Option<u32>,
    /// What rows' names begin with, and what is printed behind the titles of groups.
    prefix: &'static str,
    behind: &'static str,
    rounds: usize,
    calls: u32,
}

/// What is measured on a platform, and how.
fn passes(plan: &Plan) -> (&'static [Way], Vec<Pass>) {
    let rounds = plan.runs.min(ROUNDS_MOST);
    let time = Pass { unit: Unit::Nanoseconds, icount: None, prefix: "", behind: "", rounds, calls: CALLS };
    // Instructions are the same every time.
    let count = |shift| Pass { unit: Unit::Instructions, icount: Some(shift), prefix: "", behind: "", rounds: 1, calls: CALLS };
    match plan.platform {
        Platform::Linux => (WAYS, vec![time]),
        Platform::X86_64 => (
            WAYS_X86_64,
            vec![
                Pass { behind: ", emulated time", ..time },
                Pass { prefix: "count-", behind: ", instructions", calls: CALLS_COUNTED, ..count(ICOUNT_X86_64) },
            ],
        ),
        Platform::Leon3 => (WAYS_LEON3, vec![count(ICOUNT_LEON3)]),
    }
}

const WAYS: &[Way] = &[
    Way {
        name: "sys-lib-yes signal/pkey",
        gate: Some("signal"),
        jail: "pkey",
        options: &["--gate", "signal", "--jail", "pkey"],
    },
    Way {
        name: "sys-lib-yes signal/none",
        gate: Some("signal"),
        jail: "none",
        options: &["--gate", "signal", "--jail", "none"],
    },
    Way {
        name: "sys-lib-yes signal/none, 3 host calls",
        gate: Some("signal"),
        jail: "none",
        options: &["--gate", "signal", "--jail", "none", "--ask-ids"],
    },
    Way { name: "sys-lib-yes call/pkey", gate: Some("call"), jail: "pkey", options: &["--gate", "call", "--jail", "pkey"] },
    Way { name: "sys-lib-no", gate: None, jail: "none", options: &["--library", "sys-lib-no"] },
    Way { name: "vanilla", gate: None, jail: "none", options: &["--library", "vanilla"] },
];

/// Rows by name, with what they are and their group.
const ROWS: &[(&str, &str, &str)] = &[
    (STOPWATCH, "stopwatch started and stopped (Table 5.1)", "timer"),
    ("empty-0", "empty call, 0 parameters (Table 5.2)", "empty call"),
    ("empty-1", "empty call, 1 parameter", "empty call"),
    ("empty-2", "empty call, 2 parameters", "empty call"),
    ("empty-3", "empty call, 3 parameters", "empty call"),
    ("empty-4", "empty call, 4 parameters", "empty call"),
    ("empty-5", "empty call, 5 parameters", "empty call"),
    ("empty-6", "empty call, 6 parameters", "empty call"),
    ("get_cpu_id", "get_cpu_id", "selected functions"),
    ("get_tile_id", "get_tile_id", "selected functions"),
    ("get_compute_tile_count", "get_compute_tile_count", "selected functions"),
    ("simple_ilet_init", "simple_ilet_init", "selected functions"),
    ("simple_signal_init", "simple_signal_init", "selected functions"),
    ("invade", "invade_simple", "Listing 5.1"),
    ("infect", "infect", "Listing 5.1"),
    ("wait", "simple_signal_wait, with the other core's work", "Listing 5.1"),
    ("retreat", "retreat", "Listing 5.1"),
    ("listing-5.1", "the whole of Listing 5.1", "Listing 5.1"),
];

/// Samples in nanoseconds by row.
type Figures = BTreeMap<String, Vec<f64>>;

/// Measures.
pub fn measure(plan: &Plan) -> Result<Measurement, Failure> {
    let mut machine = machine::describe();
    machine.tsc_hz = janua_probe::ticks_per_second();
    machine.load[0] = machine::load();
    let (ways, passes) = passes(plan);
    let measured: Vec<(Pass, Vec<Result<Figures, String>>)> = passes
        .into_iter()
        .map(|pass| (collect(plan, ways, &pass, machine.tsc_hz), pass))
        .map(|(all, pass)| (pass, all))
        .collect();
    machine.load[1] = machine::load();
    // The thesis' method is the host's.
    let hosted = plan.platform == Platform::Linux;
    let configurations: Vec<Configuration> = hosted
        .then(Configuration::native)
        .into_iter()
        .chain(ways.iter().map(|way| Configuration {
            name: way.name.into(),
            gate: way.gate.map(Into::into),
            jail: Some(way.jail.into()),
        }))
        .collect();
    let chosen = |name: &str| plan.only.is_empty() || plan.only.iter().any(|only| only == name);
    let row = |pass: &Pass, collected: &[Result<Figures, String>], (name, title, group): &(&str, &str, &str)| RowResult {
        name: format!("{}{name}", pass.prefix),
        title: (*title).into(),
        group: format!("{group}{}", pass.behind),
        unit: pass.unit,
        cells: configurations
            .iter()
            .zip(collected.iter().skip(usize::from(!hosted)))
            .map(|(configuration, figures)| cell(configuration, figures, name))
            .collect(),
    };
    let rows: Vec<RowResult> = measured
        .iter()
        .flat_map(|(pass, collected)| {
            ROWS.iter().filter(|(name, ..)| chosen(name)).map(move |named| row(pass, collected, named))
        })
        .collect();
    if rows.is_empty() {
        return Failure::new(
            "--only names no row of this table\n       `janua bench calls --personality invasive --list` names them",
        );
    }
    Ok(Measurement {
        schema: SCHEMA,
        kind: Kind::Invasive,
        date: machine::now(),
        tool: machine::tool("JANUA_IMAGE", plan.image),
        machine,
        method: Method { runs: measured.iter().map(|(pass, _)| pass.rounds).max().unwrap_or(0), samples: 1000, pinned: None },
        configurations,
        refused: Vec::new(),
        notes: match plan.platform {
            Platform::Linux => notes(&rows),
            Platform::X86_64 => notes_x86_64(&rows),
            Platform::Leon3 => notes_leon3(&rows, measured.first().map_or(&[], |(_, collected)| collected)),
        },
        rows,
    })
}

/// The figures of the thesis' method and of each way, in this order, of all rounds.
fn collect(plan: &Plan, ways: &[Way], pass: &Pass, tsc_hz: f64) -> Vec<Result<Figures, String>> {
    let mut collected: Vec<Result<Figures, String>> = (0..=ways.len()).map(|_| Ok(Figures::new())).collect();
    for round in 1..=pass.rounds {
        eprintln!("janua: round {round} of {}{}", pass.rounds, pass.behind);
        let native = match plan.platform {
            Platform::Linux => native(plan, tsc_hz),
            Platform::X86_64 | Platform::Leon3 => Err("there is no host on this machine".to_owned()),
        };
        let own = ways.iter().map(|way| run(plan, way, pass));
        for (all, figures) in collected.iter_mut().zip(std::iter::once(native).chain(own)) {
            match (all.as_mut(), figures) {
                (Ok(all), Ok(figures)) => {
                    for (name, samples) in figures {
                        all.entry(name).or_default().extend(samples);
                    }
                }
                (Ok(_), Err(why)) => *all = Err(why),
                (Err(_), _) => {}
            }
        }
    }
    collected
}

fn cell(configuration: &Configuration, figures: &Result<Figures, String>, name: &str) -> Cell {
    let (result, skipped) = match figures {
        Ok(figures) => match figures.get(name).and_then(|samples| Summary::of(samples)) {
            None => (None, Some("it has no such row".to_owned())),
            result => (result, None),
        },
        Err(why) => (None, Some(why.clone())),
    };
    Cell { configuration: configuration.name.clone(), result, skipped, fast_share: None }
}

/// What the figures show about the goal.
fn notes(rows: &[RowResult]) -> Vec<String> {
    let mut notes = vec![
        "native here is the thesis' method on this host: three host calls and a signal handler in an ordinary process"
            .to_owned(),
    ];
    let median = |row: &RowResult, name: &str| row.under(name).map(|summary| summary.median);
    if let Some(row) = rows.iter().find(|row| row.name == "empty-0")
        && let (Some(native), Some(vanilla)) = (median(row, NATIVE), median(row, "vanilla"))
    {
        for way in WAYS.iter().filter(|way| way.name.starts_with("sys-lib-yes")) {
            let Some(own) = median(row, way.name) else { continue };
            notes.push(format!(
                "{}: an empty call costs {:.0} ns more than vanilla, {:.0} % of the three-host-call method's {:.0} ns (medians)",
                way.name,
                own - vanilla,
                (own - vanilla) / native * 100.0,
                native
            ));
        }
    }
    notes
}

/// The same for bare x86_64, where the goal is that `syscall` adds half of what `int 0x30` does.
fn notes_x86_64(rows: &[RowResult]) -> Vec<String> {
    let mut notes = vec![
        "bare x86_64 in QEMU: instructions are exact and not time; emulated time is what QEMU takes on this host, and compares only \
         with itself; without page-table isolation; the thesis' figures are of a processor"
            .to_owned(),
    ];
    let median = |row: &RowResult, name: &str| row.under(name).map(|summary| summary.median);
    for row in rows.iter().filter(|row| row.group.starts_with("empty call")) {
        if let (Some(syscall), Some(int), Some(vanilla)) =
            (median(row, WAYS_X86_64[0].name), median(row, WAYS_X86_64[1].name), median(row, "vanilla"))
        {
            let (by_syscall, by_int) = (syscall - vanilla, int - vanilla);
            let unit = if row.unit == Unit::Instructions { "instructions" } else { "ns of emulated time" };
            notes.push(format!(
                "{}: syscall adds {by_syscall:.0} {unit} to vanilla, int 0x30 {by_int:.0}: {:.0} % (medians)",
                row.title,
                by_syscall / by_int * 100.0
            ));
        }
    }
    notes
}

/// The same for the LEON3.
fn notes_leon3(rows: &[RowResult], collected: &[Result<Figures, String>]) -> Vec<String> {
    let mut notes = vec![
        "figures of the LEON3 are instructions, counted by QEMU; the thesis' are ticks of a processor at 50 MHz".to_owned(),
    ];
    let median = |row: &RowResult, name: &str| row.under(name).map(|summary| summary.median);
    for row in rows.iter().filter(|row| row.group == "empty call") {
        if let (Some(gate), Some(vanilla)) = (median(row, WAYS_LEON3[0].name), median(row, "vanilla")) {
            notes.push(format!("{}: the gate adds {:.0} instructions to vanilla", row.title, gate - vanilla));
        }
    }
    for (way, figures) in WAYS_LEON3.iter().zip(collected.iter().skip(1)) {
        if let Some([spilled, filled, ..]) = figures.as_ref().ok().and_then(|figures| figures.get(WINDOWS)).map(Vec::as_slice) {
            notes.push(format!("{}: register windows spilled {spilled:.0}, filled {filled:.0} in the whole run", way.name));
        }
    }
    notes
}

/// The thesis' method, for the rows of empty calls: its cost does not depend on the number of words, which are in a record.
fn native(plan: &Plan, tsc_hz: f64) -> Result<Figures, String> {
    let (output, _) = output(Command::new(&plan.command).args(["probe", "--samples", "1000", "queued-3"]))?;
    let line = output.lines().find_map(|line| line.strip_prefix("row queued-3 ")).ok_or("the probe has no such row")?;
    let samples: Vec<f64> =
        line.split(' ').filter_map(|word| word.parse::<f64>().ok()).map(|ticks| ticks * 1e9 / tsc_hz).collect();
    Ok((0..=6).map(|words| (format!("empty-{words}"), samples.clone())).collect())
}

/// One run of the program in a configuration.
fn run(plan: &Plan, way: &Way, pass: &Pass) -> Result<Figures, String> {
    let mut command = Command::new(&plan.command);
    match plan.platform {
        Platform::Linux => command.args(["run", "--personality", "invasive"]),
        Platform::X86_64 => command.args(["boot", "--platform", "x86_64", "--personality", "invasive", "--kpti", "off"]),
        Platform::Leon3 => command.args(["boot", "--platform", "leon3", "--stats"]),
    };
    if let Some(shift) = pass.icount {
        command.args(["--icount", &shift.to_string()]);
    }
    command.args(["--answers", "off"]).args(way.options).args(["--", PROGRAM, &pass.calls.to_string()]);
    let (text, said) = output(&mut command)?;
    let mut figures = parse(&text).ok_or("the program's output is not what it should be")?;
    if let Some(shift) = pass.icount {
        figures.values_mut().flatten().for_each(|nanoseconds| *nanoseconds /= f64::from(1 << shift));
    }
    if plan.platform == Platform::Leon3 {
        figures.insert(WINDOWS.into(), windows(&said));
    }
    Ok(figures)
}

/// The program's lines as nanoseconds, free of the stopwatch's cost.
fn parse(text: &str) -> Option<Figures> {
    let tick = text.lines().find_map(|line| line.strip_prefix("tick "))?.parse::<f64>().ok()? / 1e9;
    let mut figures: Figures = text
        .lines()
        .filter_map(|line| line.strip_prefix("row ")?.split_once(' '))
        .map(|(name, words)| {
            (name.to_owned(), words.split(' ').filter_map(|w| w.parse::<f64>().ok()).map(|t| t * tick).collect())
        })
        .collect();
    let stopwatch = Summary::of(figures.get(STOPWATCH)?)?.median;
    for samples in figures.iter_mut().filter(|(name, _)| *name != STOPWATCH).flat_map(|(_, samples)| samples) {
        *samples = (*samples - stopwatch).max(0.0);
    }
    Some(figures)
}

/// The numbers of the line that `janua boot --stats` ends with.
fn windows(said: &str) -> Vec<f64> {
    let line = said.lines().find(|line| line.contains("windows spilled")).unwrap_or_default();
    line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// What a program that succeeds writes: its output, and the rest.
pub fn output(command: &mut Command) -> Result<(String, String), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        return Ok((text(&output.stdout), text(&output.stderr)));
    }
    Err(refusal(&String::from_utf8_lossy(&output.stderr)).unwrap_or_else(|| output.status.to_string()))
}

/// The first message of a command that failed, with the lines indented under it, as one line.
fn refusal(said: &str) -> Option<String> {
    let mut lines = said.lines();
    let first = lines.next()?;
    let more = lines.take_while(|line| line.starts_with(' ')).map(str::trim);
    Some(std::iter::once(first).chain(more).collect::<Vec<_>>().join("; "))
}

/// Names and titles of the rows.
pub fn rows() -> Vec<(&'static str, &'static str)> {
    ROWS.iter().map(|(name, title, _)| (*name, *title)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_counted() {
        let said = "x\njanua: windows spilled: 385, filled: 339; switches between cores: 1\n";
        assert_eq!(windows(said), [385.0, 339.0, 1.0]);
        assert!(windows("").is_empty());
    }

    #[test]
    fn a_refusal_is_shown_whole() {
        let said = "janua: calls: not there\n       `./janua build` builds it\njanua: something else\n";
        assert_eq!(refusal(said).unwrap(), "janua: calls: not there; `./janua build` builds it");
        assert_eq!(refusal(""), None);
    }

    #[test]
    fn lines_become_nanoseconds() {
        let figures = parse("tick 500000000\nrow stopwatch 20 20 20\nrow empty-0 220 420\nrow wait 10\n").unwrap();
        assert_eq!(figures["empty-0"], [100.0, 200.0]);
        assert_eq!(figures["stopwatch"], [10.0; 3]);
        assert_eq!(figures["wait"], [0.0]);
        assert!(parse("row stopwatch 1\n").is_none());
        assert!(parse("tick 5\nrow empty-0 1\n").is_none());
    }
}
