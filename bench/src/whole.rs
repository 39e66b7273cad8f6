//! Rows about whole programs and sandboxes: start-up, and the memory of idle processes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::{fs, thread, time::Duration};

use crate::Plan;
use crate::model::{Configuration, Kind, NATIVE, Unit};
use crate::programs::{self, on_path, run_bare};

/// A row that this process measures itself.
pub struct WholeRow {
    pub name: &'static str,
    pub title: &'static str,
    pub group: &'static str,
    pub unit: Unit,
    /// Only the first round measures it: it does not vary, or takes long.
    pub once: bool,
    pub measure: fn(&Plan, &Configuration) -> Result<Vec<f64>, String>,
}

/// Every such row but those of curves.
const ROWS: &[WholeRow] = &[
    WholeRow {
        name: "start",
        title: "start and end of /bin/true",
        group: "start",
        unit: Unit::Nanoseconds,
        once: false,
        measure: start,
    },
    WholeRow {
        name: "start-bwrap",
        title: "start and end of /bin/true (natively: in the sandbox of bwrap)",
        group: "start",
        unit: Unit::Nanoseconds,
        once: false,
        measure: start_beside_bwrap,
    },
    memory("memory-0", "memory of a sandbox with one program, all told", sandbox),
    memory("memory-1", "memory of an idle process, 1 of them", |plan, under| idle(plan, under, 1)),
    memory("memory-10", "memory of an idle process, 10 of them, each", |plan, under| idle(plan, under, 10)),
    memory("memory-100", "memory of an idle process, 100 of them, each", |plan, under| idle(plan, under, 100)),
];

/// Rows of curves.
const SCALE: &[WholeRow] = &[
    sandboxes("sandboxes-0", "N = 0", |plan, under| beside(plan, under, 0)),
    sandboxes("sandboxes-10", "N = 10", |plan, under| beside(plan, under, 10)),
    sandboxes("sandboxes-100", "N = 100", |plan, under| beside(plan, under, 100)),
];

/// The rows of a kind.
pub fn of(kind: Kind) -> std::slice::Iter<'static, WholeRow> {
    match kind {
        Kind::Calls => ROWS.iter(),
        Kind::Scale => SCALE.iter(),
        Kind::Gates | Kind::Apps | Kind::Invasive | Kind::Tasks | Kind::Pingpong | Kind::Messages | Kind::Events => [].iter(),
    }
}

const fn sandboxes(
    name: &'static str,
    title: &'static str,
    measure: fn(&Plan, &Configuration) -> Result<Vec<f64>, String>,
) -> WholeRow {
    let group = "start and end of /bin/true beside N sandboxes (natively: programs)";
    WholeRow { name, title, group, unit: Unit::Nanoseconds, once: false, measure }
}

const fn memory(
    name: &'static str,
    title: &'static str,
    measure: fn(&Plan, &Configuration) -> Result<Vec<f64>, String>,
) -> WholeRow {
    WholeRow { name, title, group: "idle memory", unit: Unit::Kibibytes, once: true, measure }
}

/// A sandbox of the host's namespaces that shows all files, read-only, as Janua does.
const BWRAP: &[&str] = &["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "/bin/true"];

fn start(plan: &Plan, configuration: &Configuration) -> Result<Vec<f64>, String> {
    starts(plan, configuration, &["/bin/true"])
}

fn start_beside_bwrap(plan: &Plan, configuration: &Configuration) -> Result<Vec<f64>, String> {
    if !on_path(BWRAP[0]) {
        return Err("bwrap (bubblewrap) is not installed".to_owned());
    }
    if configuration.name == NATIVE { starts(plan, configuration, BWRAP) } else { start(plan, configuration) }
}

fn starts(plan: &Plan, configuration: &Configuration, words: &[&str]) -> Result<Vec<f64>, String> {
    const STARTS: usize = 5;
    (0..STARTS).map(|_| Ok(run_bare(plan, configuration, words)?.as_nanos() as f64)).collect()
}

/// Starts while `number` others wait.
fn beside(plan: &Plan, configuration: &Configuration, number: usize) -> Result<Vec<f64>, String> {
    let others = (0..number).map(|_| Idle::start(plan, configuration, 0)).collect::<Result<Vec<Idle>, String>>()?;
    let samples = start(plan, configuration);
    others.into_iter().try_for_each(Idle::end)?;
    samples
}

fn sandbox(plan: &Plan, configuration: &Configuration) -> Result<Vec<f64>, String> {
    Ok(vec![footprint(plan, configuration, 0)?])
}

/// What each of `number` idle processes adds to a sandbox without them.
fn idle(plan: &Plan, configuration: &Configuration, number: usize) -> Result<Vec<f64>, String> {
    let (without, with) = (footprint(plan, configuration, 0)?, footprint(plan, configuration, number)?);
    Ok(vec![(with - without).max(0.0) / number as f64])
}

/// The memory of a measured program with `number` idle children, in KiB: the proportional share of every process's anonymous and
/// shared-memory pages (which the kernel's memory is), and page tables; under Janua with its supervisor. Pages of files are left
/// out: they are the host's cache, and all that run the same libraries share them.
fn footprint(plan: &Plan, configuration: &Configuration, number: usize) -> Result<f64, String> {
    let idle = Idle::start(plan, configuration, number)?;
    // Children that were started may not have got to their waiting.
    thread::sleep(Duration::from_millis(300));
    let total = family(idle.0.id()).into_iter().map(kibibytes).sum();
    idle.end()?;
    Ok(total)
}

/// A measured program that waits, with idle children.
struct Idle(Child);

impl Idle {
    fn start(plan: &Plan, configuration: &Configuration, number: usize) -> Result<Idle, String> {
        let own = plan.command.to_string_lossy();
        let number = number.to_string();
        let mut command = programs::command(plan, configuration, &[], &[&own, "probe", "--idle", &number]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut idle = Idle(command.spawn().map_err(|error| error.to_string())?);
        let mut line = String::new();
        let answer = idle.0.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        if matches!(answer, Some(Ok(_))) && line.trim() == "ready" {
            return Ok(idle);
        }
        let _ = idle.0.kill();
        let _ = idle.end();
        Err("the idle processes did not start".to_owned())
    }

    /// Ends the program: its standard input ends.
    fn end(mut self) -> Result<(), String> {
        drop(self.0.stdin.take());
        self.0.wait().map(drop).map_err(|error| error.to_string())
    }
}

/// A process and all its descendants.
fn family(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // The parent is the second field after the name, which ends with the last parenthesis.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        children.entry(parent.unwrap_or(0)).or_default().push(pid);
    }
    let mut all = vec![root];
    let mut next = 0;
    while next < all.len() {
        all.extend(children.get(&all[next]).into_iter().flatten());
        next += 1;
    }
    all
}

/// Memory and page tables of one process.
fn kibibytes(pid: u32) -> f64 {
    let of = |file: &str, key: &str| -> f64 {
        let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
    };
    of("smaps_rollup", "Pss_Anon:") + of("smaps_rollup", "Pss_Shmem:") + of("status", "VmPTE:")
}
