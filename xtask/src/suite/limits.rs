//! The limits of a sandbox (`janua run --memory`, `--disk`, `--pids`, `--time`, `--cpus`, and the host's on descriptors): each is met,
//! inside as an error, outside as a line on standard error and in the outcome that `--status-fd` writes; and nothing that was given
//! back stays counted. The programs are the parts of `test/limits/limits.c`.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::compare::{self, Verdict};
use crate::guard::{Outcome, Run};
use crate::tally::Tally;
use crate::{build, workspace};

/// Seconds one run may take; a limit of time that is met takes one.
const LIMIT: u64 = 60;

/// Options, the part and its argument, the exit code, the limit that is met, words of what is printed.
struct Row {
    name: &'static str,
    options: &'static [&'static str],
    part: &'static [&'static str],
    code: i32,
    limit: Option<&'static str>,
    words: &'static [&'static str],
}

const fn row(
    name: &'static str,
    options: &'static [&'static str],
    part: &'static [&'static str],
    (code, limit): (i32, Option<&'static str>),
    words: &'static [&'static str],
) -> Row {
    Row { name, options, part, code, limit, words }
}

const MEMORY: Option<&str> = Some("memory");
const DISK: Option<&str> = Some("disk");
const PIDS: Option<&str> = Some("pids");

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("limits/private", &["--memory", "64M"], &["private"], (3, MEMORY), &["mmap: ENOMEM", "limit met: memory (64M; "]),
    row("limits/piece", &["--memory", "64m"], &["piece"], (3, MEMORY), &["mmap: ENOMEM", "memory (64M; 1 request refused)"]),
    row("limits/spare", &["--memory", "64M"], &["spare"], (137, MEMORY), &["is killed", "memory (64M; 1 process killed)"]),
    row("limits/tables", &["--memory", "64M"], &["tables"], (137, MEMORY), &["is killed", "memory (64M; 1 process killed)"]),
    row("limits/tables_of_mappings", &["--memory", "64M"], &["tables_of_mappings"], (137, MEMORY), &["is killed"]),
    row("limits/tables_kept", &["--memory", "64M"], &["tables_kept"], (137, MEMORY), &["is killed"]),
    row("limits/timers", &["--memory", "64M"], &["timers"], (137, MEMORY), &["is killed"]),
    row("limits/shared", &["--memory", "64M"], &["shared"], (3, MEMORY), &["mmap: ENOMEM"]),
    row("limits/segments", &["--memory", "64M"], &["segments"], (3, MEMORY), &["shmget: ENOMEM"]),
    row("limits/memfd", &["--memory", "64M"], &["memfd"], (3, MEMORY), &["write: ENOMEM"]),
    row("limits/holes", &["--memory", "64M"], &["holes"], (3, MEMORY), &["mmap: ENOMEM"]),
    row("limits/memory_of_files", &["--memory", "64M", "--disk", "max"], &["files", "/tmp"], (3, MEMORY), &["write: ENOSPC"]),
    row("limits/overlay", &["--disk", "16M"], &["files", "/tmp"], (3, DISK), &["write: ENOSPC", "limit met: disk (16M; "]),
    row("limits/tmpfs", &["--disk", "16M"], &["files", "/dev/shm"], (3, DISK), &["write: ENOSPC"]),
    row("limits/small_files", &["--disk", "4M"], &["small", "/tmp"], (3, DISK), &["write: ENOSPC"]),
    row("limits/threads", &["--pids", "20"], &["threads"], (3, PIDS), &["pthread_create: EAGAIN", "limit met: pids (20; 1 request refused)"]),
    row("limits/processes", &["--pids", "20"], &["processes"], (3, PIDS), &["fork: EAGAIN", "limit met: pids (20; 1 request refused)"]),
    row("limits/ended_children", &["--pids", "20"], &["ended"], (3, PIDS), &["fork: EAGAIN", "limit met: pids (20; 1 request refused)"]),
    row("limits/heap", &["--memory", "64M"], &["heap"], (137, MEMORY), &["is killed"]),
    row("limits/many_polls", &["--memory", "128M"], &["many_polls"], (0, MEMORY), &["still here"]),
    row("limits/long_tables", &["--memory", "64M"], &["long_tables"], (0, MEMORY), &["still here"]),
    row("limits/attributes", &["--memory", "64M"], &["attributes", "/tmp"], (0, None), &["enough names"]),
    row("limits/echo", &["--memory", "64M"], &["echo"], (0, None), &["all typed"]),
    row("limits/record", &["--memory", "128M"], &["record"], (0, None), &["not sent"]),
    row("limits/watches", &["--memory", "64M"], &["watches"], (0, None), &["128 instances"]),
    row("limits/queues", &["--memory", "64M"], &["queues", "/tmp"], (0, None), &["120 are reported, most events are there"]),
    row("limits/names", &["--memory", "170M"], &["names", "/tmp"], (0, MEMORY), &["many names"]),
    row("limits/returned", &["--memory", "256M"], &["returned", "/tmp"], (0, None), &["all given back"]),
    row("limits/core", &["--memory", "64M"], &["core", "/tmp"], (0, None), &["over soon"]),
    row("limits/fork", &["--memory", "64M"], &["fork"], (0, None), &["4 children"]),
    row("limits/cycles", &["--memory", "64M", "--disk", "16M", "--pids", "5"], &["cycles", "/tmp"], (0, None), &["all rounds"]),
    row("limits/start", &["--memory", "64K"], &["fork"], (125, MEMORY), &["limit met: memory (64K; less than the kernel itself takes)"]),
    row("limits/none", &["--memory", "max", "--disk", "max"], &["cycles", "/dev/shm"], (0, None), &["all rounds"]),
];

type Own = (&'static str, fn(&Place) -> Result<(), String>);

const OTHERS: &[Own] = &[
    ("limits/time", time),
    ("limits/cpus", cpus),
    ("limits/outcome", outcome),
    ("limits/refused", refused),
    ("limits/cgroup", cgroup),
    ("limits/descriptors", descriptors),
    ("limits/descriptors_given_back", descriptors_given_back),
    ("limits/many_objects", many_objects),
];

/// Runs the tests whose name holds the filter, under each gate.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let program = compare::place().join("bin/limits/limits");
    super::attacks::build(&workspace::root().join("test/limits/limits.c"), &program, &[])?;
    let names = ROWS.iter().map(|row| row.name).chain(OTHERS.iter().map(|(name, _)| *name));
    let chosen: Vec<(&str, &str)> = names
        .filter(|name| super::wanted(filter, name))
        .flat_map(|name| compare::gates().iter().map(move |gate| (name, *gate)))
        .collect();
    compare::parallel(
        &chosen,
        |&(name, gate)| {
            let full = format!("{name}/{gate}");
            let place = Place { gate, dir: compare::place().join("run").join(&full), program: program.clone() };
            let result = compare::fresh(&place.dir).and_then(|()| place.judge(name));
            let _ = compare::clear(&place.dir);
            match result {
                Ok(()) => Verdict::Passed(full),
                Err(why) => Verdict::Failed(full, why),
            }
        },
        |verdict| verdict.count(tally),
    );
    Ok(())
}

/// One test's surroundings.
struct Place {
    gate: &'static str,
    dir: PathBuf,
    program: PathBuf,
}

impl Place {
    fn judge(&self, name: &str) -> Result<(), String> {
        if let Some((_, test)) = OTHERS.iter().find(|(other, _)| *other == name) {
            return test(self);
        }
        let row = ROWS.iter().find(|row| row.name == name).ok_or("no such row")?;
        let program = self.program.display().to_string();
        let command: Vec<&str> = std::iter::once(program.as_str()).chain(row.part.iter().copied()).collect();
        let (outcome, status) = self.run(row.options, &command)?;
        self.expect(&outcome, &status, row.code, row.limit, row.words)?;
        // Whatever the program had, it has no more. What stays is the kernel's own and the files that were left.
        let used = |account: &str| status["limits"][account]["used"].as_u64();
        let left = used("disk").ok_or("no account of the disk")?;
        if row.code == 0 && left != 0 {
            return Err(format!("{left} bytes of files stay counted\n{status}"));
        }
        if used("pids") != Some(0) {
            return Err(format!("threads stay counted\n{status}"));
        }
        if status["limits"]["memory"]["used"] != status["limits"]["memory"]["firm"] {
            return Err(format!("private memory stays counted\n{status}"));
        }
        Ok(())
    }

    /// Runs a program under these limits: how it ended, and what was written to the status descriptor.
    fn run(&self, options: &[&str], program: &[&str]) -> Result<(Outcome, Value), String> {
        self.run_after(":", options, program)
    }

    /// Runs a part of the test program where the host gives all of the sandbox 1024 descriptors: it prints `says` and exits with 0.
    fn with_few_descriptors(&self, part: &[&str], says: &str) -> Result<(), String> {
        let program = self.program.display().to_string();
        let command: Vec<&str> = std::iter::once(program.as_str()).chain(part.iter().copied()).collect();
        let (outcome, status) = self.run_after("ulimit -n 1024", &[], &command)?;
        self.expect(&outcome, &status, 0, None, &[says])
    }

    /// [`Place::run`] after a command of the shell.
    fn run_after(&self, before: &str, options: &[&str], program: &[&str]) -> Result<(Outcome, Value), String> {
        let janua = build::janua().display().to_string();
        let status = self.dir.with_extension("json").display().to_string();
        let head = ["run", "--gate", self.gate];
        let line = head.iter().chain(compare::jail(self.gate)).chain(options).chain(&["--status-fd", "9", "--"]);
        let script = format!("{before} && status=$1 && shift && exec \"$@\" 9>\"$status\"");
        let script = ["sh", "-c", &script, "sh", &status, &janua];
        let command = script.iter().chain(line).chain(program).map(ToString::to_string).collect();
        let run = Run { command, dir: &self.dir, env: Vec::new(), limit: LIMIT, terminal: None };
        let outcome = run.start(&self.dir.with_extension("report"))?.wait()?;
        let said = fs::read_to_string(&status).map_err(|e| format!("{status}: {e}"))?;
        let _ = fs::remove_file(&status);
        if outcome.timeout || !outcome.left.is_empty() {
            return Err(format!("did not end, or left something behind\n{}", text(&outcome)));
        }
        if said.lines().count() != 1 {
            return Err(format!("the outcome is not one line: {said:?}\n{}", text(&outcome)));
        }
        let value = serde_json::from_str(&said).map_err(|e| format!("the outcome is no JSON: {e}\n{said}"))?;
        Ok((outcome, value))
    }

    fn expect(&self, outcome: &Outcome, status: &Value, code: i32, limit: Option<&str>, words: &[&str]) -> Result<(), String> {
        let said = text(outcome);
        let wrong = |what: String| Err(format!("{what}\n{status}\n{said}"));
        if outcome.code != code || status["exit"].as_i64() != Some(code.into()) {
            return wrong(format!("exit code {}, not {code}", outcome.code));
        }
        if status["limit"].as_str() != limit {
            return wrong(format!("the limit is not {limit:?}"));
        }
        let lines = said.lines().filter(|line| line.starts_with("janua: limit met: ")).count();
        if lines != usize::from(limit.is_some()) {
            return wrong(format!("{lines} lines tell of a limit"));
        }
        match words.iter().find(|word| !said.contains(*word)) {
            Some(word) => wrong(format!("nobody says {word:?}")),
            None => Ok(()),
        }
    }
}

fn text(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.output).into_owned()
}

fn time(p: &Place) -> Result<(), String> {
    // Nothing in it wants to end.
    let script = "trap '' TERM INT; sh -c 'while :; do :; done' & while :; do sleep 100; done";
    let (outcome, status) = p.run(&["--time", "300ms"], &["/bin/sh", "-c", script])?;
    p.expect(&outcome, &status, 124, Some("time"), &["limit met: time (300ms; the sandbox was ended)"])?;
    let wall = status["usage"]["wall"].as_f64().unwrap_or(0.0);
    if wall < 0.3 { Err(format!("{wall} s is too early")) } else { Ok(()) }
}

fn cpus(p: &Place) -> Result<(), String> {
    // A program that asks for more gets no more.
    let script = "nproc; taskset -p ffffffff $$ >/dev/null 2>&1; nproc";
    let (outcome, status) = p.run(&["--cpus", "1"], &["/bin/sh", "-c", script])?;
    p.expect(&outcome, &status, 0, None, &[])?;
    if text(&outcome).lines().collect::<Vec<_>>()[..] != ["1", "1"] {
        return Err(text(&outcome));
    }
    // Which one is left to chance; it keeps its number inside, and may be asked for.
    let script = "own=$(taskset -cp $$ | sed 's/.*: //'); taskset -c $own grep -c \"^processor.*: $own$\" /proc/cpuinfo";
    for _ in 0..4 {
        let (outcome, status) = p.run(&["--cpus", "1"], &["/bin/sh", "-c", script])?;
        p.expect(&outcome, &status, 0, None, &[])?;
        if text(&outcome) != "1\n" {
            return Err(text(&outcome));
        }
    }
    Ok(())
}

fn outcome(p: &Place) -> Result<(), String> {
    let (outcome, status) = p.run(&[], &["/bin/sh", "-c", "exit 7"])?;
    p.expect(&outcome, &status, 7, None, &[])?;
    let (outcome, status) = p.run(&[], &["/bin/sh", "-c", "kill -TERM $$"])?;
    p.expect(&outcome, &status, 143, None, &[])?;
    if status["signal"].as_u64() != Some(15) || !status["fault"].is_null() {
        return Err(format!("{status}"));
    }
    let (outcome, status) = p.run(&[], &["/no/such/program"])?;
    p.expect(&outcome, &status, 127, None, &["no such file"])
}

fn descriptors(p: &Place) -> Result<(), String> {
    p.with_few_descriptors(&["descriptors"], "others live")
}

fn descriptors_given_back(p: &Place) -> Result<(), String> {
    p.with_few_descriptors(&["given_back", "/tmp"], "all rounds")
}

fn many_objects(p: &Place) -> Result<(), String> {
    p.with_few_descriptors(&["many_objects"], "all there")
}

/// What a cgroup does is seen in the suite `keys`, on a host that has all of its controllers; here, that a sandbox has one just when
/// `janua doctor` reports one and a limit was asked for, and leaves none behind.
fn cgroup(p: &Place) -> Result<(), String> {
    let doctor = std::process::Command::new(build::janua()).arg("doctor").output().map_err(|e| format!("janua doctor: {e}"))?;
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let line = doctor.lines().find(|line| line.contains("  cgroup  ")).ok_or("janua doctor says nothing of a cgroup")?;
    let offered = line.trim_start().starts_with("yes");
    let (outcome, status) = p.run(&[], &["/bin/true"])?;
    p.expect(&outcome, &status, 0, None, &[])?;
    if !status["cgroup"].is_null() {
        return Err(format!("a cgroup that nobody asked for\n{status}"));
    }
    let (outcome, status) = p.run(&["--memory", "64M", "--pids", "20"], &["/bin/true"])?;
    p.expect(&outcome, &status, 0, None, &[])?;
    match status["cgroup"]["path"].as_str() {
        Some(path) if std::path::Path::new(path).exists() => Err(format!("{path} is left behind")),
        path if path.is_some() != offered => Err(format!("{status}\n{line}")),
        _ => Ok(()),
    }
}

fn refused(p: &Place) -> Result<(), String> {
    let janua = build::janua().display().to_string();
    for (option, value, word) in [
        ("--memory", "10X", "the unit"),
        ("--memory", "0", "the least is 1"),
        ("--disk", "big", "not a number"),
        ("--pids", "0", "not in"),
        ("--time", "10y", "the unit"),
        ("--status-fd", "77", "no such descriptor"),
    ] {
        let command = [&janua, "run", option, value, "--", "true"].map(str::to_string).to_vec();
        let run = Run { command, dir: &p.dir, env: Vec::new(), limit: LIMIT, terminal: None };
        let outcome = run.start(&p.dir.with_extension("report"))?.wait()?;
        if outcome.code != 125 || !text(&outcome).contains(word) {
            return Err(format!("{option} {value}: exit code {}\n{}", outcome.code, text(&outcome)));
        }
    }
    Ok(())
}
