//! Which rows are measured, and the rounds that measure them.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use janua_probe::{Group, Row, all as every_row};

use crate::apps::{self, APPS, App, Work};
use crate::choice::Choice;
use crate::machine::{self, quiet_processor};
use crate::model::{Cell, Configuration, Kind, Measurement, Method, NATIVE, NOISY, RowResult, SCHEMA, Unit};
use crate::probe::{self, Collected};
use crate::stats::Summary;
use crate::whole::{self, WholeRow};
use crate::{Failure, Plan, emulated, programs};

/// What is to be measured.
pub struct Chosen {
    probe: Vec<&'static Row>,
    whole: Vec<&'static WholeRow>,
    apps: Vec<&'static App>,
}

fn group_name(group: Group) -> &'static str {
    match group {
        Group::Timer => "timer",
        Group::Gate => "gate",
        Group::Article => "gettimeofday",
        Group::Function => "function call",
        Group::Null => "null call",
        Group::File => "files",
        Group::Memory => "memory",
        Group::Pair => "round trips",
        Group::Process => "processes",
        Group::Time => "time",
        Group::Step => "steps of the path",
        Group::Scale(curve) => curve.title(),
    }
}

fn kind_of(group: Group) -> Kind {
    match group {
        Group::Timer | Group::Gate | Group::Article | Group::Function | Group::Null => Kind::Gates,
        Group::File | Group::Memory | Group::Pair | Group::Process | Group::Time => Kind::Calls,
        Group::Step => Kind::Pingpong,
        Group::Scale(_) => Kind::Scale,
    }
}

/// The rows of a kind: name and title.
pub fn all(kind: Kind) -> Vec<(&'static str, &'static str)> {
    let probe = every_row().filter(|row| kind_of(row.group) == kind).map(|row| (row.name, row.title));
    match kind {
        Kind::Gates => probe.collect(),
        Kind::Calls | Kind::Scale => probe.chain(whole::of(kind).map(|row| (row.name, row.title))).collect(),
        Kind::Apps => APPS.iter().map(|app| (app.name, app.title)).collect(),
        Kind::Invasive => crate::invasive::rows(),
        Kind::Tasks => Vec::new(),
        Kind::Pingpong => crate::pingpong::rows(),
        Kind::Messages => crate::messages::rows(),
        Kind::Events => crate::events::rows(),
    }
}

/// The rows a plan asks for.
pub fn chosen(plan: &Plan) -> Result<Chosen, Failure> {
    let names = all(plan.kind);
    if let Some(unknown) = plan.only.iter().find(|name| names.iter().all(|(known, _)| known != name)) {
        let list: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        return Failure::new(format!(
            "`bench {}` has no row called `{unknown}`\n       its rows: {}",
            plan.kind.name(),
            list.join(", ")
        ));
    }
    let wanted = |name: &str| {
        names.iter().any(|(known, _)| *known == name) && (plan.only.is_empty() || plan.only.iter().any(|only| only == name))
    };
    Ok(Chosen {
        probe: every_row().filter(|row| wanted(row.name)).collect(),
        whole: whole::of(plan.kind).filter(|row| wanted(row.name)).collect(),
        apps: APPS.iter().filter(|app| wanted(app.name)).collect(),
    })
}

/// Figures of rows that are not the probe's, by row and configuration.
#[derive(Default)]
struct Figures {
    samples: BTreeMap<(&'static str, usize), Vec<f64>>,
    skipped: BTreeMap<(&'static str, usize), String>,
    fast: BTreeMap<(&'static str, usize), f64>,
}

/// Shows on a terminal how far it is.
struct Progress(bool);

impl Progress {
    fn show(&self, what: &str) {
        if self.0 {
            // Nobody reads it: nobody misses it.
            let _ = write!(std::io::stderr(), "\r\x1b[K{what}");
        }
    }
}

/// Measures in rounds: each round takes every configuration in turn, each time beginning with another.
pub fn measure(plan: &Plan, chosen: &Chosen, choice: Choice) -> Measurement {
    let progress = Progress(std::io::stderr().is_terminal());
    let mut machine = machine::describe();
    let mut notes = Vec::new();
    let pin = quiet_processor();
    let configurations = choice.configurations;
    let mut collected: Vec<Collected> = configurations.iter().map(|_| Collected::default()).collect();
    for (configuration, into) in configurations.iter().zip(&mut collected) {
        if configuration.name != NATIVE {
            for row in chosen.probe.iter().filter(|row| row.host_only) {
                into.skipped.insert(row.name, "of the host only".into());
            }
        }
    }
    let mut figures = Figures::default();
    let mut work = None;
    if !chosen.apps.is_empty() {
        progress.show("making files to work on");
        match Work::new() {
            Ok(made) => work = Some(made),
            Err(Failure(why)) => notes.push(format!("the programs were not measured: {why}")),
        }
    }
    for run in 0..plan.runs {
        for turn in 0..configurations.len() {
            let index = (run + turn) % configurations.len();
            let configuration = &configurations[index];
            progress.show(&format!("round {} of {}: {}", run + 1, plan.runs, configuration.name));
            let of = |cores: u8| chosen.probe.iter().copied().filter(move |row| row.cores == cores).collect::<Vec<_>>();
            probe::round(plan, configuration, &of(1), pin, &mut collected[index]);
            if machine.processors > 1 {
                probe::round(plan, configuration, &of(2), None, &mut collected[index]);
            }
            for row in chosen.whole.iter().filter(|row| run == 0 || !row.once) {
                let measured = configuration.name == NATIVE || configuration.is_hosted();
                let result = if measured {
                    (row.measure)(plan, configuration)
                } else {
                    Err("of the host and the platform linux".into())
                };
                figures.take(&[row.name], index, result.map(|samples| vec![samples]));
            }
            for app in work.iter().flat_map(|_| &chosen.apps) {
                let names: Vec<&'static str> = apps::rows(app).iter().map(|(name, ..)| *name).collect();
                let Some(work) = &work else { continue };
                progress.show(&format!("round {} of {}: {}, {}", run + 1, plan.runs, configuration.name, app.name));
                let result = work.run(plan, configuration, app);
                figures.take(&names, index, result.map(|each| each.into_iter().map(|figure| vec![figure]).collect()));
            }
        }
    }
    count_shares(plan, chosen, &configurations, work.as_ref(), &progress, &mut figures);
    progress.show("");
    machine.load[1] = machine::load();
    let rows = results(chosen, &configurations, &collected, &figures, machine.tsc_hz);
    notes.extend(warnings(plan, &rows, &machine));
    notes.extend(plan.emulated.as_ref().map(|_| emulated::NOTE.to_owned()));
    Measurement {
        schema: SCHEMA,
        kind: plan.kind,
        date: machine::now(),
        tool: machine::tool("JANUA_IMAGE", plan.image),
        machine,
        method: Method { runs: plan.runs, samples: plan.samples, pinned: pin },
        configurations,
        refused: choice.refused,
        rows,
        notes,
    }
}

/// How many of the calls go by a gate without a trap, by runs of their own.
fn count_shares(
    plan: &Plan,
    chosen: &Chosen,
    configurations: &[Configuration],
    work: Option<&Work>,
    progress: &Progress,
    figures: &mut Figures,
) {
    for (index, configuration) in configurations.iter().enumerate() {
        for app in &chosen.apps {
            progress.show(&format!("counting calls: {}, {}", configuration.name, app.name));
            if let Some(share) = work.and_then(|work| work.fast_share(plan, configuration, app)) {
                figures.fast.insert((app.name, index), share);
            }
        }
    }
    let null_call = chosen.probe.iter().find(|row| row.name == "syscall");
    for (index, configuration) in configurations.iter().enumerate().filter(|(_, c)| c.is_hosted()) {
        if let Some(share) = null_call.and_then(|row| probe_share(plan, configuration, row)) {
            figures.fast.insert(("syscall", index), share);
        }
    }
}

/// The share of a row's calls that go by a gate without a trap, counted by a run of its own.
fn probe_share(plan: &Plan, configuration: &Configuration, row: &Row) -> Option<f64> {
    let command = plan.command.to_string_lossy();
    let run = programs::run(plan, configuration, &["--stats"], &[&command, "probe", "--samples", "10", row.name]);
    programs::fast_share(&run.ok()?.stderr)
}

impl Figures {
    fn take(&mut self, names: &[&'static str], index: usize, result: Result<Vec<Vec<f64>>, String>) {
        match result {
            Ok(figures) => {
                for (name, samples) in names.iter().zip(figures) {
                    self.samples.entry((*name, index)).or_default().extend(samples);
                }
            }
            Err(why) => {
                for name in names {
                    self.skipped.insert((*name, index), why.clone());
                }
            }
        }
    }

    fn row(&self, name: &'static str, title: &str, group: &str, unit: Unit, configurations: &[Configuration]) -> RowResult {
        let cell = |(index, configuration): (usize, &Configuration)| Cell {
            configuration: configuration.name.clone(),
            result: self.samples.get(&(name, index)).and_then(|samples| Summary::of(samples)),
            skipped: self.skipped.get(&(name, index)).cloned(),
            fast_share: self.fast.get(&(name, index)).copied(),
        };
        RowResult {
            name: name.into(),
            title: title.into(),
            group: group.into(),
            unit,
            cells: configurations.iter().enumerate().map(cell).collect(),
        }
    }
}

fn results(
    chosen: &Chosen,
    configurations: &[Configuration],
    collected: &[Collected],
    figures: &Figures,
    tsc_hz: f64,
) -> Vec<RowResult> {
    let nanoseconds = 1e9 / tsc_hz;
    let probe = chosen.probe.iter().map(|row| {
        let cell = |(index, (configuration, collected)): (usize, (&Configuration, &Collected))| {
            let samples =
                collected.samples.get(row.name).map(|ticks| ticks.iter().map(|t| t * nanoseconds).collect::<Vec<_>>());
            let result = samples.as_deref().and_then(Summary::of);
            let skipped = collected.skipped.get(row.name).cloned();
            let skipped = skipped.or_else(|| result.is_none().then(|| "it wants two processors".to_owned()));
            let fast_share = figures.fast.get(&(row.name, index)).copied();
            Cell { configuration: configuration.name.clone(), result, skipped, fast_share }
        };
        RowResult {
            name: row.name.into(),
            title: row.title.into(),
            group: group_name(row.group).into(),
            unit: Unit::Nanoseconds,
            cells: configurations.iter().zip(collected).enumerate().map(cell).collect(),
        }
    });
    let whole = chosen.whole.iter().map(|row| figures.row(row.name, row.title, row.group, row.unit, configurations));
    let apps = chosen.apps.iter().flat_map(|app| apps::rows(app));
    let apps = apps.map(|(name, title, unit)| figures.row(name, title, "programs", unit, configurations));
    probe.chain(whole).chain(apps).collect()
}

/// What a reader must know to trust the figures or not.
fn warnings(plan: &Plan, rows: &[RowResult], machine: &crate::model::Machine) -> Vec<String> {
    let mut notes = Vec::new();
    let spreads: Vec<f64> = rows.iter().filter_map(|row| row.under(NATIVE)).map(Summary::spread).collect();
    let noisy = spreads.iter().filter(|spread| **spread > NOISY).count();
    if noisy * 4 > spreads.len() {
        notes.push(format!(
            "the machine was noisy: in {noisy} of {} rows the middle four fifths of the native samples spread over more than {:.0} % of \
             their median; trust the minima, and measure again when it is quiet",
            spreads.len(),
            NOISY * 100.0
        ));
    }
    let busy = machine.load[0].max(0.0);
    if busy > machine.processors as f64 * 0.75 {
        notes.push(format!("the machine was busy when this began: load {busy:.1} on {} processors", machine.processors));
    }
    if !machine.tsc_steady {
        notes.push(
            "the time stamp counter is not said to be steady here: times may be wrong by the processor's frequency".into(),
        );
    }
    if std::env::var_os("JANUA_IMAGE").is_some() {
        notes.push("JANUA_IMAGE was set: the kernel image measured is not the one built into the command".into());
    } else if plan.image != "image" {
        notes.push(match plan.image {
            "image-fast" => {
                "the kernel image is the variant for work on the kernel (JANUA_FAST=1), which runs slower: build it with \
                             `./janua build` to measure"
                    .into()
            }
            _ => "how the kernel image was built is not known: measure with one built by `./janua build`".into(),
        });
    }
    notes
}
