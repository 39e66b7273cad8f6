//! `janua bench pingpong`: what calls and messages of L4 cost on Linux, under the jail `process`, as in figures 5.1 to 5.3 of U. Steinberg's report on
//! Fiasco-UX, which `janua report` shows beside them.
//!
//! The column `native` is the host: its own null call (getppid), and its part of each step by which a kernel in another process serves a call. The
//! program is `user/l4/programs/costs.c`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::invasive::output;
use crate::model::{Cell, Configuration, Kind, Measurement, Method, NATIVE, Refused, RowResult, SCHEMA, Unit};
use crate::stats::Summary;
use crate::{Failure, Plan, machine};

/// More rounds than this show nothing new.
const ROUNDS_MOST: usize = 5;
/// The configuration that is Janua's.
const OWN: &str = "l4v2 ptrace/process";

/// The null call, natively by another name.
const NULL: &str = "id_nearest";
const NATIVE_NULL: &str = "syscall";

/// Rows of calls and messages by name, with what they are and their group.
const ROWS: &[(&str, &str, &str)] = &[
    (NULL, "a null call: id_nearest, natively getppid (Figure 5.1)", "null call"),
    ("ipc-intra", "a short message within an address space (Figure 5.2)", "messages"),
    ("ipc-inter", "a short message between two address spaces", "messages"),
    ("long-intra", "a message, every other with a string of 4 KiB, within an address space", "messages"),
    ("long-inter", "the same between two address spaces", "messages"),
    ("map-1", "a page asked for and mapped by a message", "flexpages"),
    ("map-64", "64 pages asked for and mapped by a message", "flexpages"),
    ("map-touch-1", "a page asked for, mapped and touched", "flexpages"),
    ("map-touch-64", "64 pages asked for, mapped and each touched", "flexpages"),
];

/// Samples in nanoseconds by row.
type Figures = BTreeMap<String, Vec<f64>>;

fn steps() -> impl Iterator<Item = &'static janua_probe::Row> {
    janua_probe::all().filter(|row| row.group == janua_probe::Group::Step)
}

/// Names and titles of the rows.
pub fn rows() -> Vec<(&'static str, &'static str)> {
    let own = ROWS.iter().map(|(name, title, _)| (*name, *title));
    own.chain(steps().map(|row| (row.name, row.title))).collect()
}

/// Measures.
pub fn measure(plan: &Plan) -> Result<Measurement, Failure> {
    let mut machine = machine::describe();
    machine.load[0] = machine::load();
    let rounds = plan.runs.min(ROUNDS_MOST);
    let (mut native, mut own) = (Ok(Figures::new()), Ok(Figures::new()));
    for round in 1..=rounds {
        eprintln!("janua: round {round} of {rounds}");
        add(&mut native, natively(plan, machine.tsc_hz));
        add(&mut own, run(plan, machine.tsc_hz));
    }
    machine.load[1] = machine::load();
    let configurations = vec![
        Configuration::native(),
        Configuration { name: OWN.into(), gate: Some("l4".into()), jail: Some("process".into()) },
    ];
    let chosen = |name: &str| plan.only.is_empty() || plan.only.iter().any(|only| only == name);
    let row = |name: &str, title: &str, group: &str| RowResult {
        name: name.into(),
        title: title.into(),
        group: group.into(),
        unit: Unit::Nanoseconds,
        cells: vec![cell(NATIVE, &native, name), cell(OWN, &own, name)],
    };
    let own_rows = ROWS.iter().filter(|(name, ..)| chosen(name)).map(|(name, title, group)| row(name, title, group));
    let steps =
        steps().filter(|step| chosen(step.name)).map(|step| row(step.name, step.title, "the host's part of a null call"));
    let rows: Vec<RowResult> = own_rows.chain(steps).collect();
    if rows.is_empty() {
        return Failure::new("--only names no row of this table\n       `janua bench pingpong --list` names them");
    }
    Ok(Measurement {
        schema: SCHEMA,
        kind: Kind::Pingpong,
        date: machine::now(),
        tool: machine::tool("JANUA_IMAGE", plan.image),
        machine,
        method: Method { runs: rounds, samples: 20, pinned: None },
        configurations,
        refused: vec![uml()],
        notes: notes(&rows),
        rows,
    })
}

fn add(all: &mut Result<Figures, String>, figures: Result<Figures, String>) {
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

fn cell(configuration: &str, figures: &Result<Figures, String>, name: &str) -> Cell {
    let (result, skipped) = match figures {
        Ok(figures) => match figures.get(name).and_then(|samples| Summary::of(samples)) {
            None => (None, Some("it has no such row".to_owned())),
            result => (result, None),
        },
        Err(why) => (None, Some(why.clone())),
    };
    Cell { configuration: configuration.into(), result, skipped, fast_share: None }
}

/// User Mode Linux is not measured by this command, and why.
fn uml() -> Refused {
    let there = ["/usr/bin/linux.uml", "/usr/bin/linux"].into_iter().find(|path| Path::new(path).exists());
    let reason = there.map_or("it is not installed; ".to_owned(), |path| {
        format!("{path} is there, but this command does not start it yet; ")
    });
    Refused {
        name: "User Mode Linux".into(),
        reason: reason + "figures of its getppid, measured on another day, are among the gates' peers",
    }
}

/// What the figures show about the aims.
fn notes(rows: &[RowResult]) -> Vec<String> {
    let figure = |name: &str| {
        let row = rows.iter().find(|row| row.name == name)?;
        row.under(OWN).or_else(|| row.under(NATIVE)).map(|summary| summary.min)
    };
    let aims: [(&str, &str, &str, Option<f64>); 5] = [
        (NULL, "step-all", "a null call, as a multiple of the host's part of it", None),
        ("ipc-intra", NULL, "a message within an address space, in null calls", Some(2.3)),
        ("ipc-inter", NULL, "a message between address spaces, in null calls", Some(2.3)),
        ("map-64", "map-1", "64 pages mapped, as a multiple of one", Some(1.5)),
        ("map-touch-64", "map-touch-1", "64 pages mapped and touched, as a multiple of one", None),
    ];
    aims.into_iter()
        .filter_map(|(name, by, what, most)| {
            let ratio = figure(name)? / figure(by)?;
            let aim = most.map_or_else(String::new, |most| format!(" (the aim: at most {most})"));
            Some(format!("{what}: {ratio:.2}{aim}"))
        })
        .collect()
}

/// The rows of an output in which each is a line of ticks.
fn parse(text: &str, tsc_hz: f64) -> Figures {
    let lines = text.lines().filter_map(|line| line.strip_prefix("row ")?.split_once(' '));
    let samples =
        |words: &str| words.split(' ').filter_map(|word| word.parse::<f64>().ok()).map(|ticks| ticks * 1e9 / tsc_hz).collect();
    lines.map(|(name, words)| (name.to_owned(), samples(words))).collect()
}

/// The host's own figures.
fn natively(plan: &Plan, tsc_hz: f64) -> Result<Figures, String> {
    let names = std::iter::once(NATIVE_NULL).chain(steps().map(|row| row.name));
    let mut command = Command::new(&plan.command);
    command.args(["probe", "--samples", &plan.samples.to_string()]).args(names);
    // The kernel's threads and tasks are on one processor: the host's figures are of one, too.
    let pinned = machine::Pinned::to(machine::quiet_processor());
    let (text, _) = output(&mut command)?;
    drop(pinned);
    let mut figures = parse(&text, tsc_hz);
    if let Some(samples) = figures.remove(NATIVE_NULL) {
        figures.insert(NULL.into(), samples);
    }
    Ok(figures)
}

/// One run of the program.
fn run(plan: &Plan, tsc_hz: f64) -> Result<Figures, String> {
    let mut command = Command::new(&plan.command);
    command.args(["run", "--personality", "l4v2", "--module", "sigma0", "--module", "costs"]);
    let (text, _) = output(&mut command)?;
    Ok(parse(&text, tsc_hz))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_nanoseconds() {
        let figures = parse("row ipc-intra 20 40\nelse 1\nrow map-1 10\n", 2e9);
        assert_eq!(figures["ipc-intra"], [10.0, 20.0]);
        assert_eq!((figures["map-1"].len(), figures.len()), (1, 2));
    }

    #[test]
    fn every_row_has_a_name_of_its_own() {
        let rows = rows();
        assert!(rows.iter().any(|(name, _)| *name == NULL) && rows.iter().any(|(name, _)| *name == "step-all"));
        for (at, (name, _)) in rows.iter().enumerate() {
            assert!(rows[at + 1..].iter().all(|(other, _)| other != name), "{name}");
        }
    }

    #[test]
    fn aims_are_beside_what_was_measured() {
        let row = |name: &str, nanoseconds: f64| RowResult {
            name: name.into(),
            title: String::new(),
            group: String::new(),
            unit: Unit::Nanoseconds,
            cells: vec![cell(OWN, &Ok(Figures::from([(name.to_owned(), vec![nanoseconds])])), name)],
        };
        let said = notes(&[row(NULL, 100.0), row("ipc-inter", 150.0)]);
        assert_eq!(said, ["a message between address spaces, in null calls: 1.50 (the aim: at most 2.3)"]);
    }
}
