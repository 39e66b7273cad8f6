//! One program run natively and on Janua, and what differs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::guard::{Outcome, Run};
use crate::{build, workspace};

/// The gates every program runs under; `quick` is the first alone.
pub const GATES: &[&str] = &["call", "sud", "seccomp"];

/// What stands for a gate where calls come by the first and run on a module, away from the thread that makes them.
pub const AWAY: &str = "away";

/// What stands for the gate `ptrace` under the jail `process`: the tests of [`TRACED`] run by it besides.
pub const PTRACE: &str = "ptrace";

/// What stands for the gate `call` under the jail `process`, where calls come by a mailbox: the same tests run by it.
pub const MAILBOX: &str = "mailbox";

/// The tests that run by [`PTRACE`] and by [`MAILBOX`] besides: of each kind of call and event something, with the first C library. All of them would take as long as the other gates together.
pub const TRACED: &[&str] = &[
    "exec/",
    "futex/",
    "gate/",
    "mm/f",
    "mm/mapped_file_race",
    "mm/membarrier",
    "mm/mp",
    "mm/mr",
    "pipe/",
    "proc/f",
    "proc/procfs_more",
    "proc/rusage_times",
    "proc/v",
    "proc/wait",
    "sig/a",
    "sig/faults",
    "thread/",
    "time/posix_timers",
    "time/vdso",
];

/// The gates that were asked for by name, of [`GATES`], [`PTRACE`] and [`MAILBOX`]: every test runs by these and by no other.
static ASKED: OnceLock<Vec<&'static str>> = OnceLock::new();

/// Takes the names of gates that `--gates=` lists, with commas.
pub fn ask(list: &str) -> Result<(), String> {
    let known = || GATES.iter().chain(&[PTRACE, MAILBOX]);
    let find = |name: &str| {
        known().find(|gate| **gate == name).copied().ok_or_else(|| {
            let all: Vec<&str> = known().copied().collect();
            format!("--gates: no such gate: {name} (there are {})", all.join(", "))
        })
    };
    let _ = ASKED.set(list.split(',').map(find).collect::<Result<_, _>>()?);
    Ok(())
}

/// The same for 32-bit code: where its threads find what is theirs.
pub const TRACED_32: &[&str] = &["i386/thread_area", "futex/pi", "thread/basics"];

/// The gates of this run.
pub fn gates() -> &'static [&'static str] {
    match (super::native(), ASKED.get(), super::quick()) {
        (true, ..) => &[],
        (false, Some(asked), _) => asked,
        (false, None, true) => &GATES[..1],
        (false, None, false) => GATES,
    }
}

/// What came of one test on one machine: its name (test/variant/gate) and the result.
pub enum Verdict {
    Passed(String),
    Failed(String, String),
    Skipped(String, String),
}

impl Verdict {
    /// Enters it in the tally.
    pub fn count(self, tally: &mut crate::tally::Tally) {
        match self {
            Verdict::Passed(name) => tally.pass(&name),
            Verdict::Failed(name, why) => tally.fail(&name, &why),
            Verdict::Skipped(name, reason) => tally.skip(&name, &reason),
        }
    }
}

/// A program in its own directory, to be run natively and under each gate.
pub struct Case {
    pub name: String,
    pub command: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Seconds.
    pub limit: u64,
    /// The exit code the native run must have; the output must have no line that begins with `NO: `.
    pub expect: i32,
    /// Besides, it runs once more with its calls away ([`AWAY`]).
    pub away: bool,
}

impl Case {
    /// Runs it natively, then under each gate for which `skip` has no reason.
    pub fn judge(&self, skip: &dyn Fn(&str) -> Option<String>) -> Vec<Verdict> {
        let name = |gate: &str| format!("{}/{gate}", self.name);
        let native = match self.native() {
            Ok(native) => native,
            Err(why) => return vec![Verdict::Failed(name("native"), why)],
        };
        let mut verdicts = Vec::new();
        if super::native() {
            verdicts.push(Verdict::Passed(name("native")));
        }
        let away = self.away && !super::native() && ASKED.get().is_none();
        let is_of =
            |list: &[&str], library| list.iter().any(|start| self.name.starts_with(start)) && self.name.ends_with(library);
        let listed = is_of(TRACED, "/glibc") || is_of(TRACED_32, "/i386");
        let traced = listed && !super::native() && !super::quick() && ASKED.get().is_none();
        for gate in gates().iter().chain(away.then_some(&AWAY)).chain([&PTRACE, &MAILBOX].into_iter().filter(|_| traced)) {
            if let Some(reason) = skip(gate) {
                verdicts.push(Verdict::Skipped(name(gate), reason));
                continue;
            }
            verdicts.push(match self.run(Some(gate)).and_then(|there| self.same(&native, &there)) {
                Ok(()) => Verdict::Passed(name(gate)),
                Err(why) => Verdict::Failed(name(gate), format!("{why}\n{}", self.again(gate))),
            });
        }
        verdicts
    }

    /// Runs it natively. A run that is not as it should be is an error of the test's own.
    pub fn native(&self) -> Result<Outcome, String> {
        let native = self.run(None)?;
        match self.faulty(&native) {
            Some(why) => Err(format!("the test itself fails without Janua: {why}")),
            None => Ok(native),
        }
    }

    /// The command line that repeats a run on Janua.
    fn again(&self, gate: &str) -> String {
        format!("again: mkdir -p {dir} && cd {dir} && {}", under(gate, &self.command).join(" "), dir = self.dir().display())
    }

    fn dir(&self) -> PathBuf {
        place().join("run").join(&self.name)
    }

    fn run(&self, gate: Option<&str>) -> Result<Outcome, String> {
        let dir = self.dir();
        let report = dir.with_extension("report");
        fresh(&dir)?;
        let command = match gate {
            Some(gate) => under(gate, &self.command),
            None => self.command.clone(),
        };
        let outcome = Run { command, dir: &dir, env: self.env.clone(), limit: self.limit, terminal: None }.outcome(&report)?;
        if gate.is_some() {
            let made: Vec<String> = fs::read_dir(&dir)
                .into_iter()
                .flatten()
                .flatten()
                .map(|e| e.file_name().to_string_lossy().into_owned())
                .collect();
            if !made.is_empty() {
                return Err(format!("changed the host: made {}", made.join(" ")));
            }
        }
        let _ = clear(&dir);
        Ok(outcome)
    }

    fn faulty(&self, native: &Outcome) -> Option<String> {
        let text = String::from_utf8_lossy(&native.output);
        if native.timeout {
            return Some(format!("{} s were not enough\n{text}", self.limit));
        }
        if native.code != self.expect {
            return Some(format!("exit code {}\n{text}", native.code));
        }
        if !native.left.is_empty() {
            return Some(format!("it leaves processes behind: {}", native.left.join(", ")));
        }
        text.lines().find(|line| line.starts_with("NO: ")).map(str::to_string)
    }

    /// What a run on Janua did otherwise than the native one.
    pub fn same(&self, native: &Outcome, there: &Outcome) -> Result<(), String> {
        let mut why = Vec::new();
        if there.timeout {
            why.push(format!("did not end within {} s", self.limit));
        } else if there.code != native.code {
            why.push(format!("exit code {}, native {}", there.code, native.code));
        }
        if there.output != native.output {
            why.push(difference(&native.output, &there.output));
        }
        if !there.left.is_empty() {
            why.push(format!("left behind: {}", there.left.join(", ")));
        }
        if why.is_empty() { Ok(()) } else { Err(why.join("\n")) }
    }
}

/// The options of `janua run` for a gate, or for what stands for one.
pub fn options(gate: &str) -> Vec<&str> {
    match gate {
        AWAY => vec!["--gate", "call", "--syscall-cores", "1", "--handover", "always"],
        MAILBOX => vec!["--gate", "call"],
        gate => vec!["--gate", gate],
    }
}

/// The command line that runs `command` on Janua.
pub fn under(gate: &str, command: &[String]) -> Vec<String> {
    let janua = build::janua().display().to_string();
    [janua.as_str(), "run"]
        .iter()
        .chain(&options(gate))
        .chain(jail(gate))
        .chain(&["--"])
        .map(ToString::to_string)
        .chain(command.iter().cloned())
        .collect()
}

/// What a run under this gate sets for the jail: nothing where there is one, and otherwise that none is wanted, or it would be
/// reported on standard error.
pub fn jail(gate: &str) -> &'static [&'static str] {
    if matches!(gate, PTRACE | MAILBOX) {
        return &["--jail", "process"];
    }
    if gate != "seccomp" && super::attacks::has_keys() { &[] } else { &["--jail", "none"] }
}

/// Where the tests build and run.
pub fn place() -> PathBuf {
    workspace::target().join("test")
}

/// An empty directory.
pub fn fresh(dir: &Path) -> Result<(), String> {
    clear(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))
}

/// Removes a directory, if there is one.
pub fn clear(dir: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// How many lines of a difference are shown.
const SHOWN: usize = 12;

/// The first lines that differ, `-` native, `+` Janua.
pub fn difference(native: &[u8], there: &[u8]) -> String {
    let lines = |bytes: &[u8]| -> Vec<String> {
        bytes
            .split_inclusive(|b| *b == b'\n')
            .map(|l| l.escape_ascii().to_string())
            .map(|l| l.strip_suffix("\\n").map_or(format!("{l}(no newline)"), str::to_string))
            .collect()
    };
    let (old, new) = (lines(native), lines(there));
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[same..].iter().rev().zip(new[same..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    if same > 0 {
        text += &format!("  {}\n", old[same - 1]);
    }
    for (sign, side) in [("-", &old), ("+", &new)] {
        let part = &side[same..side.len() - tail];
        for line in part.iter().take(SHOWN) {
            text += &format!("{sign} {line}\n");
        }
        if part.len() > SHOWN {
            text += &format!("{sign} ({} more lines)\n", part.len() - SHOWN);
        }
    }
    text.trim_end().to_string()
}

/// Does `work` for every item on a few threads; the results come in the items' order, and as they come.
pub fn parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync, mut result: impl FnMut(R) + Send) {
    // Most tests sleep and wait more than they compute.
    let threads = if super::retried().is_some() { 1 } else { 2 * std::thread::available_parallelism().map_or(2, usize::from) };
    let next = AtomicUsize::new(0);
    let done = Mutex::new((0usize, std::collections::BTreeMap::<usize, R>::new(), &mut result));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let answer = work(item);
                    let mut done = done.lock().unwrap_or_else(|e| e.into_inner());
                    let (shown, ready, result) = &mut *done;
                    ready.insert(index, answer);
                    while let Some(answer) = ready.remove(shown) {
                        result(answer);
                        *shown += 1;
                    }
                }
            });
        }
    });
}
