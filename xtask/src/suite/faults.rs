//! Host calls that fail on purpose (JANUA_FAULT), at one step after another: a guest may get the error, or not start, with a message;
//! the kernel goes on and the other guests too, nothing hangs and nothing is left behind.

use super::compare::{self, Verdict};
use crate::guard::Run;
use crate::tally::Tally;

/// Seconds one run may take.
const LIMIT: u64 = 30;

/// What is run: guests that are loaded, forked, share files and memory, and one that says at the end that it lives. The loop makes up
/// for a guest that could not be started: its shell gets an error, and goes on.
const SCRIPT: &str = r#"
ls / | sort | wc -l
(echo a; echo b) >made; cat made /etc/hostname | wc -l
mkdir d && mv made d/moved; head -c 300000 /dev/zero >d/large; rm -r d
for i in 1 2 3; do (exec sleep 0.01) & done; wait
printf alive
"#;

/// Errors, and up to which of the calls that could answer it each is tried.
const ERRORS: &[(&str, u32)] = &[("ENOMEM", 400), ("EMFILE", 80), ("EINTR", 160), ("ENOSPC", 60), ("EAGAIN", 12)];

/// How many places of an error are tried; `--long` tries all.
const TRIES: u32 = 40;

struct Test {
    name: String,
    fault: String,
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
            let name = format!("faults/{error}/{nth}");
            tests.push(Test { name, fault: format!("{error}:{nth}"), gate });
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

fn judge(test: &Test) -> Result<(), String> {
    let dir = compare::place().join("run").join(&test.name);
    compare::fresh(&dir)?;
    let command = compare::under(test.gate, &["/bin/sh", "-c", SCRIPT].map(str::to_owned));
    let run = Run { command, dir: &dir, env: vec![("JANUA_FAULT".into(), test.fault.clone())], limit: LIMIT, terminal: None };
    let outcome = run.outcome(&dir.with_extension("report"))?;
    let said = String::from_utf8_lossy(&outcome.output);
    let _ = compare::clear(&dir);
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
    // The first program lives to its end; or it could not be started, or not go on, which somebody says: Janua, its loader, or itself.
    match outcome.code {
        0 if said.ends_with("alive") => Ok(()),
        0 => failed("an exit code of 0, and not its end"),
        125 if !said.contains("janua: ") => failed("no word why"),
        _ => Ok(()),
    }
}
