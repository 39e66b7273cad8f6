//! `janua bench tasks`: the six tasks of Wu's thesis ([`janua_probe::tasks`]), with calls made at home and by modules.
//!
//! On Linux what is measured is time. The bare machine in QEMU has emulated time, and besides what every core executes, and what its caches and TLBs would
//! miss in a model that sees every access (`bench/tlb`), in a boot of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use janua_probe::tasks::TASKS;

use crate::emulated::Tree;
use crate::model::{Cell, Configuration, Kind, Measurement, Method, NATIVE, RowResult, SCHEMA, Unit};
use crate::stats::Summary;
use crate::{Failure, Platform, create, machine, private};

/// What `janua bench tasks` was asked to do.
pub struct Plan {
    pub platform: Platform,
    /// Of the platform linux; `janua run` chooses where there is none.
    pub gate: Option<String>,
    pub jail: Option<String>,
    /// Tasks, by number (below [`TASKS`]); empty: all.
    pub only: Vec<u8>,
    pub runs: usize,
    /// No more runs than fit into so many minutes, and one in any case.
    pub minutes: Option<u16>,
    /// As often as in the thesis, rather than so that a round ends in seconds.
    pub thesis: bool,
    pub json: Option<PathBuf>,
    pub command: PathBuf,
    pub image: &'static str,
    /// QEMU's plugin, a file's content; empty when there is none.
    pub plugin: &'static [u8],
}

/// Where calls run, and how they get there.
#[derive(Clone, Copy)]
struct Way {
    /// Of its configuration.
    name: &'static str,
    options: &'static [&'static str],
    /// Calls are submitted to the gate `ring`, so many at once.
    batch: Option<u32>,
}

impl Way {
    const fn by_itself(name: &'static str, options: &'static [&'static str]) -> Way {
        Way { name, options, batch: None }
    }

    const fn ring(name: &'static str, batch: u32) -> Way {
        Way { name, options: &[], batch: Some(batch) }
    }

    /// Whether it chooses the gate, and so the jail.
    fn has_gate(&self) -> bool {
        self.options.contains(&"--gate")
    }
}

const WAYS: &[Way] = &[
    Way::by_itself("home", &[]),
    Way::by_itself("one", &["--syscall-cores", "1"]),
    Way::by_itself("kind", &["--syscall-cores", "1", "--modules", "kind"]),
    Way::by_itself("one, always", &["--syscall-cores", "1", "--handover", "always"]),
    Way::by_itself("kind, always", &["--syscall-cores", "1", "--modules", "kind", "--handover", "always"]),
    Way::ring("ring of 1", 1),
    Way::ring("ring of 4", 4),
    Way::ring("ring of 16", 16),
    Way::ring("ring of 64", 64),
    Way::ring("ring of 256", 256),
];

/// On Linux a module looks into rings where it reaches the program's memory.
const LOOKED_AT: Way = Way {
    name: "ring of 64, looked at",
    options: &["--gate", "sud", "--jail", "none", "--syscall-cores", "1"],
    batch: Some(64),
};

/// Where the files are: the row's part of the name, and the words of the thesis.
const MODES: [(&str, &str); 2] = [("memory", "files in memory"), ("disk", "files on a disk")];

/// Files in memory are below this, natively and inside.
const MEMORY: &str = "/dev/shm";

/// Seconds one run of all tasks may take.
const PATIENCE: &str = "600";

/// Misses of a thousand instructions, in the order of the plugin's line.
const CACHES: [&str; 5] = ["L1I", "L1D", "LLC", "ITLB", "DTLB"];
const CORES: [&str; 3] = ["core 0", "core 1", "both cores"];

const TITLES: [&str; TASKS] = [
    "many cheap calls",
    "stat of 1,200 files",
    "words of 1,200 files",
    "two of task 0",
    "two of task 1",
    "two of task 2",
    "reads of 64 bytes",
    "reads of 4 KiB",
    "reads of 64 KiB",
    "reads of 1 MiB",
];

/// The first task that is not the thesis': one call again and again, which has no file on a disk.
const LENGTHS: u8 = 6;

impl Plan {
    fn tasks(&self, disk: bool) -> Vec<u8> {
        let all = if disk { 0..LENGTHS } else { 0..TASKS as u8 };
        all.filter(|number| self.only.is_empty() || self.only.contains(number)).collect()
    }

    /// How often a task does its work, in a mode. The thesis' counts, or some that end in seconds.
    fn count(&self, number: u8, disk: bool, modelled: bool) -> u32 {
        if let Some(length) = number.checked_sub(LENGTHS) {
            let count = [20_000, 10_000, 1_000, 60][usize::from(length)];
            return if modelled { count / 20 } else { count };
        }
        match (number % 3, self.thesis && !modelled) {
            (0, true) => 10_000_000,
            (0, false) => {
                if modelled {
                    2_000
                } else {
                    20_000
                }
            }
            (1, true) if !disk => 100,
            (1, false) if !disk && !modelled => 5,
            _ => 1,
        }
    }

    /// The tasks as the measured program has them.
    fn words(&self, batch: Option<u32>, disk: bool, modelled: bool) -> Vec<String> {
        let batch = batch.map_or(String::new(), |batch| format!(":{batch}"));
        let word = |number| format!("{number}:{}{batch}", self.count(number, disk, modelled));
        self.tasks(disk).into_iter().map(word).collect()
    }

    fn ways(&self) -> Vec<Way> {
        let native = (!self.is_bare()).then_some(Way::by_itself(NATIVE, &[]));
        native.into_iter().chain(WAYS.iter().copied()).chain((!self.is_bare()).then_some(LOOKED_AT)).collect()
    }

    fn is_bare(&self) -> bool {
        self.platform == Platform::X86_64
    }

    /// Whether there are boots for instructions and misses, beside those for times.
    fn has_model(&self) -> bool {
        self.is_bare() && !self.plugin.is_empty()
    }
}

/// Until when is measured, if that is bounded.
struct Limit {
    begin: Instant,
    end: Option<Instant>,
}

impl Limit {
    fn new(minutes: Option<u16>) -> Limit {
        let begin = Instant::now();
        Limit { begin, end: minutes.map(|minutes| begin + Duration::from_secs(60 * u64::from(minutes))) }
    }

    /// The first part of it.
    fn part(&self, part: f64) -> Limit {
        Limit { begin: self.begin, end: self.end.map(|end| self.begin + (end - self.begin).mul_f64(part)) }
    }

    /// Whether there is time for something that takes so long.
    fn fits(&self, takes: Duration) -> bool {
        self.end.is_none_or(|end| Instant::now() + takes < end)
    }
}

/// Measures, prints the table, and writes the file.
pub fn run(plan: &Plan) -> Result<(), Failure> {
    let file = plan.json.as_deref().map(|path| create(path).map(|file| (path, file))).transpose()?;
    let measurement = measure(plan)?;
    crate::deliver(&measurement, file)
}

/// The samples of one row, by configuration: figures, or why there are none.
struct Table {
    rows: Vec<RowResult>,
}

impl Table {
    fn add(&mut self, row: &Named, configuration: &str, samples: &[f64]) {
        let cell = Cell { configuration: configuration.into(), result: Summary::of(samples), skipped: None, fast_share: None };
        self.put(row, cell);
    }

    fn skip(&mut self, row: &Named, configuration: &str, why: &str) {
        let cell = Cell { configuration: configuration.into(), result: None, skipped: Some(why.into()), fast_share: None };
        self.put(row, cell);
    }

    fn put(&mut self, row: &Named, cell: Cell) {
        match self.rows.iter_mut().find(|known| known.name == row.name) {
            Some(known) => known.cells.push(cell),
            None => self.rows.push(RowResult {
                name: row.name.clone(),
                title: row.title.clone(),
                group: row.group.clone(),
                unit: row.unit,
                cells: vec![cell],
            }),
        }
    }
}

/// A row without its figures.
struct Named {
    name: String,
    title: String,
    group: String,
    unit: Unit,
}

fn time_row(number: u8, mode: (&str, &str)) -> Named {
    Named {
        name: format!("task{number}-{}", mode.0),
        title: format!("task {number}: {}, {}", TITLES[usize::from(number)], mode.1),
        group: format!("time, {}", mode.1),
        unit: Unit::Nanoseconds,
    }
}

fn counted_row(number: u8, mode: (&str, &str), what: &str, core: &str, unit: Unit) -> Named {
    let group = if unit == Unit::Instructions { "instructions" } else { "misses of 1,000 instructions, simulated" };
    Named {
        name: format!("task{number}-{}-{what}-{}", mode.0, core.replace(' ', "-")),
        title: format!("task {number}: {what}, {core}, {}", mode.1),
        group: format!("{group}, {}", mode.1),
        unit,
    }
}

fn measure(plan: &Plan) -> Result<Measurement, Failure> {
    let place = Place::new(plan)?;
    let mut machine = machine::describe();
    let ways = plan.ways();
    // By way and mode, then by task: nanoseconds of each run.
    let mut times: Vec<Result<Vec<Vec<f64>>, String>> =
        ways.iter().flat_map(|_| MODES).map(|_| Ok(vec![Vec::new(); TASKS])).collect();
    let limit = Limit::new(plan.minutes);
    let timing = limit.part(if plan.has_model() { 0.5 } else { 1.0 });
    let (mut runs, mut longest) = (0, Duration::ZERO);
    while runs < plan.runs && (runs == 0 || timing.fits(longest)) {
        let (round, began) = (runs, Instant::now());
        eprintln!("round {} of {}{}", round + 1, if limit.end.is_some() { "at most " } else { "" }, plan.runs);
        for step in 0..ways.len() * MODES.len() {
            // Another one first in each round.
            let at = (step + round) % times.len();
            let (way, disk) = (ways[at / MODES.len()], at % MODES.len() == 1);
            if plan.tasks(disk).is_empty() {
                continue;
            }
            let Ok(samples) = &mut times[at] else { continue };
            if let Err(why) = place.time(plan, way, disk).and_then(|text| read_times(&text, samples)) {
                times[at] = Err(why);
            }
        }
        runs += 1;
        longest = longest.max(began.elapsed());
    }
    let mut table = Table { rows: Vec::new() };
    for (disk, mode) in MODES.into_iter().enumerate() {
        for number in plan.tasks(disk == 1) {
            for (at, way) in ways.iter().enumerate() {
                let row = time_row(number, mode);
                match &times[at * MODES.len() + disk] {
                    Ok(samples) => table.add(&row, way.name, &samples[usize::from(number)]),
                    Err(why) => table.skip(&row, way.name, why),
                }
            }
        }
    }
    if plan.is_bare() {
        for (disk, mode) in MODES.into_iter().enumerate() {
            for way in WAYS {
                model(plan, &place, &mut table, (*way, disk == 1, mode), &limit);
            }
        }
    }
    machine.load[1] = machine::load();
    let configuration = |way: &Way| match way.name {
        NATIVE => Configuration::native(),
        name if way.has_gate() => Configuration { name: name.into(), gate: Some("sud".into()), jail: Some("none".into()) },
        name => Configuration { name: name.into(), gate: plan.gate.clone(), jail: plan.jail.clone() },
    };
    Ok(Measurement {
        schema: SCHEMA,
        kind: Kind::Tasks,
        date: machine::now(),
        tool: machine::tool(if plan.is_bare() { "JANUA_IMAGE_X86_64" } else { "JANUA_IMAGE" }, plan.image),
        machine,
        method: Method { runs, samples: 1, pinned: None },
        configurations: ways.iter().map(configuration).collect(),
        refused: Vec::new(),
        rows: table.rows,
        notes: notes(plan, runs),
    })
}

fn notes(plan: &Plan, runs: usize) -> Vec<String> {
    let counts = |disk| plan.words(None, disk, false).join(", ");
    let bound =
        plan.minutes.map(|minutes| format!("{runs} of at most {} runs, as many as fit in {minutes} minutes", plan.runs));
    let mut notes: Vec<String> = bound.into_iter().collect();
    notes.extend([
        format!("how often each task does its work (TASK:COUNT): in memory {}, on a disk {}", counts(false), counts(true)),
        "home: calls are made by the threads that make them; one, kind: by a module for all, or one for each kind, on one syscall core, when \
         that looks worth it; always: every call that can be handed over is"
            .into(),
        "ring of N: so many calls at once by the gate `ring`, made by the thread itself when it waits for them; looked at: made by a module that \
         looks into the ring. The directory is read without it"
            .into(),
    ]);
    notes.push(if plan.is_bare() {
        "x86_64 is QEMU's machine of two processors: times are emulated and compare with one another only. Instructions and misses are of one \
         boot with a model of caches and TLBs that sees every instruction and access (simulated): that slows the machine down, so what spins for a \
         time executes fewer instructions than otherwise. The work there is done less often"
            .into()
    } else {
        "instructions and misses are not measured on the platform linux: valgrind cannot run a program that maps its kernel at a fixed address \
         and traps its own calls, and hardware counters are not read. They are on x86_64 (--platform x86_64), simulated"
            .into()
    });
    notes
}

/// The times that the measured program printed, added to those of earlier rounds.
fn read_times(text: &str, samples: &mut [Vec<f64>]) -> Result<(), String> {
    let rate = text.lines().find_map(|line| line.trim().strip_prefix("rate ")?.parse::<f64>().ok());
    let rate = rate.ok_or_else(|| format!("the tasks have not begun: {}", text.lines().last().unwrap_or_default().trim()))?;
    let mut seen = 0;
    for line in text.lines().map(str::trim) {
        if let Some(why) = line.strip_prefix("skip ") {
            return Err(why.into());
        }
        let Some((number, ticks)) = line.strip_prefix("row task").and_then(|rest| rest.split_once(' ')) else { continue };
        let (Ok(number), Ok(ticks)) = (number.parse::<usize>(), ticks.parse::<f64>()) else { continue };
        samples.get_mut(number).ok_or("a task of no such number")?.push(ticks / rate * 1e9);
        seen += 1;
    }
    if seen > 0 { Ok(()) } else { Err("no task was timed".into()) }
}

/// What each core did in each task, from the plugin's file: instructions, then misses in the order of [`CACHES`].
fn read_counts(text: &str) -> Vec<Vec<[u64; 6]>> {
    let mut tasks = vec![Vec::new()];
    for line in text.lines() {
        if line == "end" {
            tasks.push(Vec::new());
            continue;
        }
        let mut words = line.split(' ').skip(2).map(|word| word.parse::<u64>().unwrap_or(0));
        let mut core = [0; 6];
        core.iter_mut().for_each(|count| *count = words.next().unwrap_or(0));
        if let Some(task) = tasks.last_mut() {
            task.push(core);
        }
    }
    tasks.pop();
    tasks
}

/// One boot with the model, unless the time for that is over: rows of instructions and misses.
fn model(plan: &Plan, place: &Place, table: &mut Table, (way, disk, mode): (Way, bool, (&str, &str)), limit: &Limit) {
    let counted = if limit.fits(Duration::ZERO) {
        eprintln!("caches of: {}, {}", way.name, mode.1);
        place.count(plan, way, disk).map(|text| read_counts(&text))
    } else {
        Err("the minutes were over before this boot".into())
    };
    for (at, number) in plan.tasks(disk).into_iter().enumerate() {
        let cores = counted.as_ref().map(|tasks| tasks.get(at).filter(|cores| !cores.is_empty()));
        for (core, core_name) in CORES.into_iter().enumerate() {
            let instructions = counted_row(number, mode, "instructions", core_name, Unit::Instructions);
            let of_caches = CACHES.map(|cache| counted_row(number, mode, cache, core_name, Unit::Misses));
            let counts = match cores {
                Ok(Some(cores)) if core < 2 => cores.get(core).copied().unwrap_or_default(),
                Ok(Some(cores)) => cores.iter().fold([0; 6], |sums, core| std::array::from_fn(|at| sums[at] + core[at])),
                Ok(None) | Err(_) => {
                    let why = cores.err().map_or("the machine ended before this task", String::as_str);
                    [&instructions].into_iter().chain(&of_caches).for_each(|row| table.skip(row, way.name, why));
                    continue;
                }
            };
            table.add(&instructions, way.name, &[counts[0] as f64]);
            for (row, misses) in of_caches.iter().zip(&counts[1..]) {
                match counts[0] {
                    0 => table.skip(row, way.name, "the core has executed nothing"),
                    instructions => table.add(row, way.name, &[*misses as f64 * 1000.0 / instructions as f64]),
                }
            }
        }
    }
}

/// Where the measured program is and works, removed in the end.
struct Place {
    dir: PathBuf,
    /// Below [`MEMORY`].
    memory: PathBuf,
    tree: Option<Tree>,
}

impl Drop for Place {
    fn drop(&mut self) {
        // Both are in directories for such things.
        let _ = fs::remove_dir_all(&self.dir);
        let _ = fs::remove_dir_all(&self.memory);
    }
}

impl Place {
    fn new(plan: &Plan) -> Result<Place, Failure> {
        let dir = private::directory(&std::env::temp_dir(), "janua-tasks")?;
        let mut place = Place { dir, memory: private::directory(Path::new(MEMORY), "janua-tasks")?, tree: None };
        place.tree = plan.is_bare().then(|| Tree::new(&plan.command)).transpose()?;
        if plan.is_bare() && !plan.plugin.is_empty() {
            fs::write(place.plugin(), plan.plugin)
                .map_err(|error| Failure(format!("{}: {error}", place.plugin().display())))?;
        }
        Ok(place)
    }

    fn plugin(&self) -> PathBuf {
        self.dir.join("plugin.so")
    }

    /// Runs the tasks once: what they printed.
    fn time(&self, plan: &Plan, way: Way, disk: bool) -> Result<String, String> {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", PATIENCE]);
        match &self.tree {
            Some(tree) => self.boot(&mut command, plan, tree, way, disk, &[]),
            None => self.host(&mut command, plan, way, disk),
        }
        let dir = self.files(plan, disk);
        finish(command.args(["probe", "task", &dir.display().to_string(), "1"]).args(plan.words(way.batch, disk, false)))
    }

    /// Boots once with the model of caches: what the plugin wrote.
    fn count(&self, plan: &Plan, way: Way, disk: bool) -> Result<String, String> {
        let tree = self.tree.as_ref().ok_or("only an emulated machine has a model")?;
        if plan.plugin.is_empty() {
            return Err("this janua was built without its plugin for QEMU: build it by ./janua build".into());
        }
        let out = self.dir.join("counts");
        let plugin = format!("{},out={},model=caches", self.plugin().display(), out.display());
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", PATIENCE]);
        self.boot(&mut command, plan, tree, way, disk, &["--plugin", &plugin]);
        let dir = self.files(plan, disk);
        finish(command.args(["probe", "task", &dir.display().to_string(), "1"]).args(plan.words(way.batch, disk, true)))?;
        fs::read_to_string(&out).map_err(|error| format!("{}: {error}", out.display()))
    }

    fn files(&self, plan: &Plan, disk: bool) -> PathBuf {
        match (disk, plan.is_bare()) {
            (false, _) => self.memory.join("files"),
            (true, true) => "/tasks".into(),
            (true, false) => self.dir.join("files"),
        }
    }

    fn host(&self, command: &mut Command, plan: &Plan, way: Way, disk: bool) {
        command.arg(&plan.command);
        if way.name == NATIVE {
            return;
        }
        command.arg("run");
        let asked = [("--gate", &plan.gate), ("--jail", &plan.jail)];
        for (option, value) in asked.into_iter().filter(|_| !way.has_gate()) {
            command.args(value.iter().flat_map(|value| [option, value.as_str()]));
        }
        if disk {
            command.arg("--bind").arg(format!("{}::rw", self.dir.display()));
        }
        command.args(way.options).arg("--").arg(&plan.command);
    }

    fn boot(&self, command: &mut Command, plan: &Plan, tree: &Tree, way: Way, disk: bool, more: &[&str]) {
        command.arg(&plan.command).args(["boot", "--smp", "2"]);
        if disk {
            let image = self.dir.join("disk");
            // Each begins with a new one: what is cached of it is the machine's own.
            let _ = fs::remove_file(&image);
            command.arg("--disk").arg(image).args(["--disk-size", "256M"]);
        }
        command.arg("--ramfs").arg(tree.root()).args(way.options).args(more).args(["--", Tree::PROGRAM]);
    }
}

fn finish(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(std::process::Stdio::null()).output().map_err(|error| format!("timeout: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        return Err(format!("{}: {}", output.status, last.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The names and titles of the rows of time.
pub fn list() -> String {
    let modes = |number: u8| if number < LENGTHS { &MODES[..] } else { &MODES[..1] };
    let line = |row: Named| format!("{:<16} {}\n", row.name, row.title);
    (0..TASKS as u8).flat_map(|number| modes(number).iter().map(move |mode| line(time_row(number, *mode)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_errors_are_reported() {
        let mut samples = vec![Vec::new(); 6];
        read_times("rate 2e9\r\nrow task0 4000\r\nrow task5 2000\r\n", &mut samples).unwrap();
        assert_eq!((samples[0].as_slice(), samples[5].as_slice()), ([2000.0].as_slice(), [1000.0].as_slice()));
        assert!(read_times("rate 1\nskip task1 no files\n", &mut samples).unwrap_err().contains("no files"));
        assert!(read_times("janua: no\n", &mut samples).unwrap_err().contains("janua: no"));
        assert!(read_times("rate 1\n", &mut samples).is_err());
        assert!(read_times("rate 1\nrow task9 1\n", &mut samples).is_err());
    }

    #[test]
    fn what_does_not_fit_is_not_begun() {
        assert!(Limit::new(None).part(0.5).fits(Duration::from_secs(1 << 20)));
        let limit = Limit::new(Some(60));
        assert!(limit.fits(Duration::from_secs(40 * 60)) && !limit.fits(Duration::from_secs(60 * 60)));
        assert!(limit.part(0.5).fits(Duration::from_secs(20 * 60)) && !limit.part(0.5).fits(Duration::from_secs(40 * 60)));
        assert!(!Limit::new(Some(0)).fits(Duration::ZERO));
    }

    #[test]
    fn counts_are_by_task_and_core() {
        let tasks = read_counts("core 0 100 1 2 3 4 5\ncore 1 50 0 0 0 0 0\nend\ncore 0 7 0 0 0 0 0\nend\ncore 0 9");
        assert_eq!(tasks.len(), 2, "what was not ended is no task");
        assert_eq!(tasks[0], [[100, 1, 2, 3, 4, 5], [50, 0, 0, 0, 0, 0]]);
        assert_eq!(tasks[1][0][0], 7);
    }
}
