//! Host calls that fail on purpose (JANUA_FAULT), at one step after another: a guest may get the error, or not start, with a message;
//! the kernel goes on and the other guests too, nothing hangs and nothing is left behind.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::compare::{self, Verdict};
use crate::guard::{Outcome, Run};
use crate::tally::Tally;

/// Seconds one run may take.
const LIMIT: u64 = 30;

/// What is run: guests that are loaded, forked, share files and memory, and one that prints `alive` at the end. The loop makes up
/// for a guest that could not be started: its shell gets an error, and goes on.
const SCRIPT: &str = r#"
ls / | sort | wc -l
(echo a; echo b) >made; cat made /etc/hostname | wc -l
mkdir d && mv made d/moved; head -c 300000 /dev/zero >d/large; rm -r d
for i in 1 2 3; do (exec sleep 0.01) & done; wait
printf alive
"#;

/// Errors, and up to which of the calls that could return it each is tried. The script makes more of them under every gate.
const ERRORS: &[(&str, u32)] = &[("ENOMEM", 400), ("EMFILE", 60), ("EINTR", 160), ("ENOSPC", 60), ("EAGAIN", 10)];

/// How many places of an error are tried; `--long` tries all.
const TRIES: u32 = 40;

struct Test {
    name: String,
    error: &'static str,
    /// Which call fails, counted from 1.
    nth: u32,
    gate: &'static str,
}

/// Runs the tests whose name holds the filter.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let mut tests = Vec::new();
    for (error, most) in ERRORS {
        let step = if super::long() { 1 } else { most.div_ceil(TRIES) };
        for (number, nth) in (1..=*most).step_by(step as usize).enumerate() {
            let gates = compare::gates();
            // The gates in turn: what fails is below them.
            let Some(gate) = gates.get(number % gates.len().max(1)) else { continue };
            tests.push(Test { name: format!("faults/{error}/{nth}"), error, nth, gate });
        }
    }
    tests.retain(|test| super::wanted(filter, &test.name));
    compare::parallel(
        &tests,
        |test| match judge(test) {
            Ok(()) => Verdict::Passed(test.name.clone()),
            Err(why) => Verdict::Failed(test.name.clone(), why),
        },
        |verdict| verdict.count(tally),
    );
    Ok(())
}

/// How a run ended, and how many calls it made that could have failed.
struct Ran {
    outcome: Outcome,
    faults: Option<u64>,
}

impl Test {
    fn dir(&self) -> PathBuf {
        compare::place().join("run").join(&self.name)
    }

    fn run(&self) -> Result<Ran, String> {
        let dir = self.dir();
        compare::fresh(&dir)?;
        let reported = dir.with_extension("json").display().to_string();
        let with_status = ["sh", "-c", "report=$1; shift; exec \"$@\" 9>\"$report\"", "sh", &reported].map(str::to_owned);
        let mut command = compare::under(self.gate, &["/bin/sh", "-c", SCRIPT].map(str::to_owned));
        command.splice(2..2, ["--status-fd", "9"].map(str::to_owned));
        let command = with_status.into_iter().chain(command).collect();
        let env = vec![("JANUA_FAULT".into(), format!("{}:{}", self.error, self.nth))];
        let run = Run { command, dir: &dir, env, limit: LIMIT, terminal: None };
        let outcome = run.outcome(&dir.with_extension("report"))?;
        let faults =
            fs::read_to_string(&reported).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok()?["faults"].as_u64());
        let _ = fs::remove_file(&reported);
        let _ = compare::clear(&dir);
        Ok(Ran { outcome, faults })
    }
}

fn judge(test: &Test) -> Result<(), String> {
    let Ran { outcome, faults } = test.run()?;
    let said = String::from_utf8_lossy(&outcome.output);
    let failed = |what: &str| Err(format!("{what} (exit {})\n{said}", outcome.code));
    if outcome.timeout {
        return failed("did not end");
    }
    if !outcome.left.is_empty() {
        return failed("left processes behind");
    }
    if said.contains("kernel fault") || said.contains("not by the kernel") {
        return failed("the kernel did not live");
    }
    if faults.is_none_or(|calls| calls < test.nth.into()) {
        return failed(&format!("no call failed: only {faults:?} were made that could"));
    }
    // The first program lives to its end; or it could not be started, or not go on, as somebody reports: Janua, its loader, or itself.
    let says_why = |line: &str| line.contains(": ") || line.starts_with("cannot ");
    match outcome.code {
        0 if said.ends_with("alive") => Ok(()),
        0 => failed("an exit code of 0, and not its end"),
        125 if !said.contains("janua: ") => failed("no word why"),
        // The loader of glibc goes down without a word when it gets ENOMEM, on every kernel.
        139 if test.error == "ENOMEM" => Ok(()),
        _ if !said.lines().any(says_why) => failed("no word why"),
        _ => Ok(()),
    }
}
