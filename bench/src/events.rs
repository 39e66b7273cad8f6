//! `janua bench events`: what events of libpal cost, as in Tables 3 and 4 of Y. Bieri's thesis, and what no other has measured: how long it takes until a
//! thread runs that waits for 1 to 64 of them.
//!
//! The column `native` is a bare futex: the same rows by futex(2), of several words by futex_waitv(2). The programs are `user/libpal/programs/costs.c` and
//! `bench/probe/src/events.rs`.

use std::collections::BTreeMap;
use std::process::Command;

use crate::choice::{self, Choice};
use crate::invasive::output;
use crate::model::{Cell, Configuration, Kind, Measurement, Method, NATIVE, RowResult, SCHEMA, Unit};
use crate::stats::Summary;
use crate::{Failure, Plan, Platform, emulated, machine};

/// The program on libpal.
const PROGRAM: &str = "costs";

/// A row, and its samples in a round: fewer of what takes long.
struct Row {
    name: &'static str,
    title: &'static str,
    samples: usize,
}

const fn row(name: &'static str, title: &'static str, samples: usize) -> Row {
    Row { name, title, samples }
}

/// The group of the thesis' rows.
pub const DELAYS: &str = "an event set after a while";
/// Those of the latency.
pub const WAKES: &str = "from setting an event to its waiter running";

const ROWS: &[Row] = &[
    row("delay-3000", "set by a new thread after 3,000 µs (Table 3)", 300),
    row("delay-30000", "after 30,000 µs", 50),
    row("delay-100000", "after 100,000 µs", 20),
    row("wake-1", "1 event is waited for", 300),
    row("wake-2", "2 events", 300),
    row("wake-4", "4 events", 300),
    row("wake-8", "8 events", 300),
    row("wake-16", "16 events", 300),
    row("wake-32", "32 events", 300),
    row("wake-64", "64 events", 300),
];

/// Samples in nanoseconds by row, and why there are none.
#[derive(Default)]
struct Figures {
    samples: BTreeMap<String, Vec<f64>>,
    skipped: BTreeMap<String, String>,
}

/// A configuration, and the command that measures it.
struct Way {
    configuration: Configuration,
    command: Vec<String>,
}

/// Names and titles of the rows.
pub fn rows() -> Vec<(&'static str, &'static str)> {
    ROWS.iter().map(|row| (row.name, row.title)).collect()
}

/// What is measured, native first.
fn ways(plan: &Plan, choice: &Choice) -> Vec<Way> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut ways = vec![Way { configuration: Configuration::native(), command: words(&["probe", "events"]) }];
    for configuration in choice.configurations.iter().filter(|configuration| configuration.is_hosted()) {
        let mut command = words(&choice::run_arguments(configuration));
        command.extend(words(&["--personality", "pal", "--", PROGRAM]));
        ways.push(Way { configuration: configuration.clone(), command });
    }
    let bare = |slice: Option<&str>| {
        let mut configuration = Configuration::emulated();
        let mut command = words(&["boot", "--personality", "pal"]);
        if let Some(slice) = slice {
            configuration.name = format!("{}, slice {slice}", emulated::NAME);
            command.extend(words(&["--slice", slice]));
        }
        command.extend(words(&["--", PROGRAM]));
        Way { configuration, command }
    };
    if plan.platform == Platform::X86_64 {
        if plan.slices.is_empty() {
            ways.push(bare(None));
        }
        ways.extend(plan.slices.iter().map(|slice| bare(Some(slice))));
    }
    ways
}

/// Measures.
pub fn measure(plan: &Plan) -> Result<Measurement, Failure> {
    if let Some(unknown) = plan.only.iter().find(|only| ROWS.iter().all(|row| row.name != **only)) {
        return Failure::new(format!(
            "`bench events` has no row called `{unknown}`\n       `janua bench events --list` names them"
        ));
    }
    let chosen: Vec<&Row> = ROWS.iter().filter(|row| plan.only.is_empty() || plan.only.iter().any(|o| o == row.name)).collect();
    let choice = choice::discover(plan)?;
    let ways = ways(plan, &choice);
    let mut machine = machine::describe();
    machine.load[0] = machine::load();
    let mut figures: Vec<Figures> = ways.iter().map(|_| Figures::default()).collect();
    for round in 1..=plan.runs {
        eprintln!("janua: round {round} of {}", plan.runs);
        for (way, all) in ways.iter().zip(&mut figures) {
            run(plan, way, &chosen, all);
        }
    }
    machine.load[1] = machine::load();
    let configurations: Vec<Configuration> = ways.into_iter().map(|way| way.configuration).collect();
    let rows: Vec<RowResult> = chosen.iter().map(|row| result(row, &configurations, &figures)).collect();
    Ok(Measurement {
        schema: SCHEMA,
        kind: Kind::Events,
        date: machine::now(),
        tool: machine::tool("JANUA_IMAGE", plan.image),
        machine,
        method: Method { runs: plan.runs, samples: ROWS[0].samples, pinned: None },
        notes: notes(&rows, &configurations),
        configurations,
        refused: choice.refused,
        rows,
    })
}

fn result(row: &Row, configurations: &[Configuration], figures: &[Figures]) -> RowResult {
    let cell = |(configuration, figures): (&Configuration, &Figures)| {
        let result = figures.samples.get(row.name).and_then(|samples| Summary::of(samples));
        let why = figures.skipped.get(row.name).cloned().unwrap_or_else(|| "it has no such row".to_owned());
        let skipped = result.is_none().then_some(why);
        Cell { configuration: configuration.name.clone(), result, skipped, fast_share: None }
    };
    RowResult {
        name: row.name.into(),
        title: row.title.into(),
        group: if row.name.starts_with("delay") { DELAYS } else { WAKES }.into(),
        unit: Unit::Nanoseconds,
        cells: configurations.iter().zip(figures).map(cell).collect(),
    }
}

/// One run of a configuration's program, for all rows.
fn run(plan: &Plan, way: &Way, rows: &[&Row], into: &mut Figures) {
    let mut command = Command::new(&plan.command);
    command.args(&way.command);
    for row in rows {
        command.args([row.name.to_owned(), row.samples.to_string()]);
    }
    if let Err(why) = output(&mut command).and_then(|(text, _)| parse(&text, into)) {
        into.skipped.extend(rows.iter().map(|row| (row.name.to_owned(), why.clone())));
    }
}

/// Takes a program's lines in: the counter's rate, then rows in its ticks.
fn parse(text: &str, into: &mut Figures) -> Result<(), String> {
    let rate = text.lines().find_map(|line| line.strip_prefix("rate ")?.parse::<f64>().ok()).filter(|rate| *rate > 0.0);
    let rate = rate.ok_or("the program's output is not what it should be")?;
    for line in text.lines() {
        let (kind, rest) = line.split_once(' ').unwrap_or_default();
        let (name, rest) = rest.split_once(' ').unwrap_or_default();
        match kind {
            "row" => {
                let samples = rest.split(' ').filter_map(|word| word.parse::<f64>().ok()).map(|ticks| ticks * 1e9 / rate);
                into.samples.entry(name.to_owned()).or_default().extend(samples);
            }
            "skip" => drop(into.skipped.insert(name.to_owned(), rest.to_owned())),
            _ => {}
        }
    }
    Ok(())
}

/// What the figures show about the aims.
fn notes(rows: &[RowResult], configurations: &[Configuration]) -> Vec<String> {
    let find = |name: &str| rows.iter().find(|row| row.name == name);
    let median = |name: &str, under: &str| find(name)?.under(under).map(|summary| summary.median);
    let counts = rows.iter().filter_map(|row| Some(format!("{} {}", row.under(NATIVE)?.samples, row.name)));
    let mut notes = vec![format!("samples: {}", counts.collect::<Vec<_>>().join(", "))];
    if configurations.iter().any(|configuration| configuration.name.starts_with(emulated::NAME)) {
        notes.push(emulated::NOTE.to_owned());
    }
    for configuration in configurations {
        let under = &*configuration.name;
        if let (Some(own), Some(native)) =
            (median("wake-1", under), median("wake-1", NATIVE).filter(|_| configuration.is_hosted()))
        {
            notes.push(format!(
                "{under}: set to running {:.2} x a bare futex wake (medians; the aim: at most 1.3)",
                own / native
            ));
        }
        if let (Some(many), Some(one)) = (median("wake-64", under), median("wake-1", under)) {
            notes.push(format!("{under}: waiting for 64 {:.2} x waiting for one (medians; the aim: at most 3)", many / one));
        }
        let over = |row: &RowResult| {
            let delay: f64 = row.name.strip_prefix("delay-")?.parse().ok()?;
            let summary = row.under(under)?;
            Some(format!("{:.0} ± {:.0}", summary.mean / 1e3 - delay, summary.deviation / 1e3))
        };
        let over: Vec<String> = rows.iter().filter_map(over).collect();
        if !over.is_empty() {
            notes.push(format!("{under}: over the programmed delays by {} µs (means, deviations)", over.join(", ")));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_nanoseconds() {
        let mut figures = Figures::default();
        parse("rate 2000000000\nrow wake-1 20 40\nskip wake-2 no such call\n", &mut figures).unwrap();
        parse("rate 1000000000\nrow wake-1 30\n", &mut figures).unwrap();
        assert_eq!(figures.samples["wake-1"], [10.0, 20.0, 30.0]);
        assert_eq!(figures.skipped["wake-2"], "no such call");
        assert!(parse("row wake-1 1\n", &mut figures).is_err() && parse("rate 0\n", &mut figures).is_err());
    }

    #[test]
    fn aims_are_beside_what_was_measured() {
        let configurations = [Configuration::native(), Configuration::janua("call", "none")];
        let figures = |wake: f64| {
            let mut figures = Figures::default();
            for (name, sample) in [("delay-3000", 3_050_000.0), ("wake-1", wake), ("wake-64", 2.0 * wake)] {
                figures.samples.insert(name.to_owned(), vec![sample]);
            }
            figures
        };
        let figures = [figures(5000.0), figures(6000.0)];
        let rows: Vec<RowResult> = ROWS.iter().map(|row| result(row, &configurations, &figures)).collect();
        let notes = notes(&rows, &configurations);
        for said in
            ["call/none: set to running 1.20 x", "waiting for 64 2.00 x", "native: over the programmed delays by 50 ± 0 µs"]
        {
            assert!(notes.iter().any(|note| note.contains(said)), "{said}: {notes:?}");
        }
        assert_eq!(rows[1].cells[0].skipped.as_deref(), Some("it has no such row"));
    }
}
