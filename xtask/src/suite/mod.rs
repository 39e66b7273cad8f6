//! `cargo xtask test`: every suite in turn, one tally, one closing line.

mod attacks;
mod boot;
mod boot_conformance;
mod boot_disk;
mod boot_fault;
mod boot_terminal;
mod boot_tiles;
mod command;
mod compare;
mod conformance;
mod crates;
mod fast;
mod faults;
mod invasive;
mod invasive_boot;
mod keys;
mod keys_linux;
mod keys_scripts;
mod l4;
mod leon3;
mod limits;
mod pal;
mod programs;
mod sandbox;
mod skips;
mod style;
pub mod support;
mod terminal;
mod toolchains;
mod walls;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::Mode;

use crate::packages::{self, Need};
use crate::tally::Tally;
use crate::{build, process, random, rules, scan};

/// One suite of tests.
struct Suite {
    name: &'static str,
    about: &'static str,
    /// Runs the tests whose name holds the filter (all without one). An `Err` is one more failed test.
    run: fn(filter: Option<&str>, tally: &mut Tally) -> Result<(), String>,
    /// Whether the host's load or timing may change a result: what failed is tried again at the end.
    moving: bool,
}

/// Every suite, in the order they run: cheap ones first.
#[rustfmt::skip]
const SUITES: &[Suite] = &[
    Suite { name: "layers", about: "the rules of the source tree (docs/rules.md)", run: layers, moving: false },
    Suite { name: "scan", about: "the instructions of the kernel images for x86-64", run: image, moving: false },
    Suite { name: "style", about: "cargo fmt, clippy and doc have nothing to say", run: style::run, moving: false },
    Suite { name: "unit", about: "unit tests of every crate, on the host", run: crates::unit, moving: true },
    Suite { name: "model", about: "kernels on the model machine: enter, wait, wake, kick, stop, leave; two side by side", run: crates::model, moving: false },
    Suite { name: "fuzz", about: "the fuzz targets, bounded: kept inputs and some of the day's (fuzz/)", run: crates::fuzz, moving: false },
    Suite { name: "miri", about: "the locks, queues and call slots under Miri, where that can be had", run: crates::miri, moving: false },
    Suite { name: "models", about: "loom models of the wait queue and the lock word", run: crates::models, moving: false },
    Suite { name: "command", about: "the janua command: answers, refusals, exit codes, streams", run: command::suite, moving: true },
    Suite { name: "support", about: "docs/support.md is what the tables say", run: support::suite, moving: false },
    Suite {
        name: "conformance",
        about: "C programs, natively and under each gate (test/conformance)",
        run: conformance::run,
        moving: true,
    },
    Suite {
        name: "programs",
        about: "real programs, natively and under each gate (test/programs)",
        run: programs::run,
        moving: true,
    },
    Suite { name: "fast", about: "how many calls of real programs go by the gate `call`", run: fast::run, moving: false },
    Suite { name: "terminal", about: "programs on a terminal, natively and under each gate", run: terminal::run, moving: true },
    Suite { name: "boot", about: "programs on the bare x86_64 machine, under QEMU (test/boot)", run: boot::run, moving: true },
    Suite { name: "invasive", about: "applications on the system-call library (user/), under each gate", run: invasive::run, moving: true },
    Suite { name: "l4", about: "systems of L4 on Linux, and on the bare x86_64 machine under QEMU (test/l4)", run: l4::run, moving: true },
    Suite { name: "pal", about: "programs on libpal, by each gate; manifests (test/pal)", run: pal::suite, moving: true },
    Suite { name: "leon3", about: "applications on the LEON3, under QEMU (test/leon3)", run: leon3::run, moving: true },
    Suite { name: "attacks", about: "ways round the jail, each with its end (test/attacks)", run: attacks::run, moving: true },
    Suite { name: "walls", about: "what a compromised kernel can reach (test/walls)", run: walls::run, moving: true },
    Suite { name: "toolchains", about: "kernel images by every compiler this machine can offer", run: toolchains::run, moving: true },
    Suite { name: "keys", about: "attacks and a sample of conformance with protection keys, emulated", run: keys::run, moving: true },
    Suite { name: "faults", about: "host calls that fail on purpose, at one step after another", run: faults::run, moving: true },
    Suite { name: "limits", about: "limits of memory, disk, threads, time and processors (test/limits)", run: limits::run, moving: true },
    Suite { name: "sandbox", about: "exit codes, faults, an untouched host, the trace", run: sandbox::run, moving: true },
];

/// Lists the suites.
pub fn print_list() {
    for suite in SUITES {
        println!("  {:12} {}", suite.name, suite.about);
    }
}

/// Whether the tests are only tried without Janua.
static NATIVE: AtomicBool = AtomicBool::new(false);

/// Whether `--native` was given.
fn native() -> bool {
    NATIVE.load(Ordering::Relaxed)
}

/// Whether only the first gate and the first C library are tried.
static QUICK: AtomicBool = AtomicBool::new(false);

/// Whether `--quick` was given.
fn quick() -> bool {
    QUICK.load(Ordering::Relaxed)
}

/// Whether random and repeated tests run their longer form.
static LONG: AtomicBool = AtomicBool::new(false);

/// Whether `--long` was given.
pub fn long() -> bool {
    LONG.load(Ordering::Relaxed)
}

/// Whether one suite was asked for by name.
static NAMED: AtomicBool = AtomicBool::new(false);

/// Whether one suite was asked for by name.
fn named() -> bool {
    NAMED.load(Ordering::Relaxed)
}

/// The seed of this run's random tests.
static SEED: OnceLock<u64> = OnceLock::new();

/// The seed of this run's random tests: what `--seed` or the environment gave, or else the days since 1970 in UTC, so that
/// every day brings other numbers. It stays the same to the end of the run, also for what is tried again after midnight.
pub fn seed() -> u64 {
    *SEED.get_or_init(|| {
        random::given().unwrap_or_else(|| UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs() / DAY.as_secs()))
    })
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// `cargo xtask test [--quick | --native] [--built] [--long] [--gates=LIST] [--seed=N] [SUITE] [FILTER]`.
pub fn command(args: &[String]) -> Result<ExitCode, String> {
    process::start_clean()?;
    // Files that tests make have the rights the tests specify, whatever the umask of the user that runs them.
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    let (flags, args): (Vec<&String>, Vec<&String>) = args.iter().partition(|a| a.starts_with('-'));
    let mut built = false;
    for flag in flags {
        match flag.as_str() {
            "--quick" => QUICK.store(true, Ordering::Relaxed),
            "--native" => NATIVE.store(true, Ordering::Relaxed),
            "--long" => LONG.store(true, Ordering::Relaxed),
            "--built" => built = true,
            other => {
                if let Some(list) = other.strip_prefix("--gates=") {
                    compare::ask(list)?;
                    continue;
                }
                let Some(word) = other.strip_prefix("--seed=") else {
                    return Err(format!(
                        "no such option: {other} (there are --quick, --native, --long, --built, --gates=LIST and --seed=N)"
                    ));
                };
                let _ = SEED.set(word.parse().map_err(|e| format!("--seed={word}: {e}"))?);
            }
        }
    }
    let named = args.first().and_then(|name| SUITES.iter().find(|s| s.name == **name));
    NAMED.store(named.is_some(), Ordering::Relaxed);
    let (chosen, filter): (Vec<&Suite>, _) = match named {
        Some(suite) => (vec![suite], args.get(1)),
        None => (SUITES.iter().collect(), args.first()),
    };
    if let Some(surplus) = args.get(if named.is_some() { 2 } else { 1 }) {
        return Err(format!("too many arguments: {surplus} (usage: cargo xtask test [SUITE] [FILTER])"));
    }
    let filter = filter.map(|f| f.as_str());
    packages::ensure(Need::Test)?;
    println!("random tests: --seed={}", seed());
    let (mut tally, mut again) = (Tally::default(), Vec::new());
    // These run nothing of an image.
    let without = named.is_some_and(|suite| ["model", "fuzz", "miri", "models"].contains(&suite.name));
    if !native() && !built && !without {
        tally.suite("build", |tally| {
            build::all()?;
            tally.pass("build");
            Ok(())
        });
    }
    if tally.counts().1 == 0 {
        for suite in chosen {
            let before = tally.counts().1;
            tally.suite(suite.name, |tally| (suite.run)(filter, tally));
            // Results of rules and tables are the same every time.
            let failed = tally.failures_since(before);
            if suite.moving && !failed.is_empty() && failed.len() <= AGAIN_AT_MOST && !native() {
                again.push((suite, failed));
            }
        }
        for (suite, failed) in again {
            try_again(suite, failed, &mut tally);
        }
    }
    let passed = tally.finish();
    if !passed {
        println!("random tests fail again with --seed={}", seed());
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn wanted(filter: Option<&str>, name: &str) -> bool {
    if let Some(failed) = retried() {
        return failed.iter().any(|f| related(f, name));
    }
    filter.is_none_or(|f| name.contains(f))
}

/// Whether one of two names is the other or begins with it: a suite chooses by `area/test/variant`, and the names of results add the gate.
fn related(one: &str, other: &str) -> bool {
    let holds = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    holds(one, other) || holds(other, one)
}

/// With more failed tests in a suite than this, nothing is tried again: the reason is no passing one.
const AGAIN_AT_MOST: usize = 12;

/// How often a failed test is tried again.
const TRIES: usize = 2;

/// The failed tests that are tried again now.
static RETRIED: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// The failed tests that are tried again now, one at a time, if that is what this run does.
fn retried() -> Option<Vec<String>> {
    RETRIED.lock().unwrap_or_else(|e| e.into_inner()).clone()
}

/// Tries the failed tests of a suite again, alone, after everything else has run: hosts are shared, and a test that compares with a
/// native run can meet a moment in which the host itself does otherwise. What passes then is listed as such, never hidden.
fn try_again(suite: &Suite, mut failed: Vec<String>, tally: &mut Tally) {
    println!("== {}, what failed once more", suite.name);
    for _ in 0..TRIES {
        *RETRIED.lock().unwrap_or_else(|e| e.into_inner()) = Some(failed.clone());
        let mut second = Tally::default();
        let ran = (suite.run)(None, &mut second);
        *RETRIED.lock().unwrap_or_else(|e| e.into_inner()) = None;
        if ran.is_err() {
            return;
        }
        let still = second.failures_since(0);
        // What did not run this time has not passed.
        let passed = |name: &String| !still.contains(name) && second.has_passed(|run| related(run, name));
        for name in failed.iter().filter(|name| passed(name)) {
            tally.passed_later(name);
        }
        failed.retain(|name| !passed(name));
        if failed.is_empty() {
            return;
        }
    }
}

fn layers(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    for (name, breaches) in rules::check()? {
        if !wanted(filter, name) {
            continue;
        }
        let warnings = rules::describe(&breaches, true);
        if !warnings.is_empty() {
            println!("warning: {}", warnings.replace('\n', "\nwarning: "));
        }
        let errors = rules::describe(&breaches, false);
        tally.check(name, if errors.is_empty() { Ok(()) } else { Err(errors) });
    }
    Ok(())
}

fn image(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let images = [
        ("linux", build::image()?),
        ("linux-l4", build::image_l4()?),
        ("linux-pal", build::image_pal()?),
        ("x86_64", build::image_x86_64()?),
    ];
    for (name, image) in images {
        let findings = scan::scan(&image.full)?;
        for rule in scan::RULES.iter().filter(|r| wanted(filter, r)) {
            let lines: Vec<&str> = findings.breaches.iter().filter(|(r, _)| r == rule).map(|(_, l)| l.as_str()).collect();
            tally.check(&format!("{name}/{rule}"), if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) });
        }
        if findings.instructions == 0 {
            tally.fail(&format!("{name}/scan"), "the image holds no instruction at all");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::related;

    #[test]
    fn names_of_tests_and_their_results() {
        assert!(related("sig/core/glibc/call", "sig/core/glibc"));
        assert!(related("sandbox", "sandbox/trace"));
        assert!(!related("sig/core", "sig/core_more"));
    }
}
