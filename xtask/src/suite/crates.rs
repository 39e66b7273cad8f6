//! The tests that cargo runs: unit tests on the host, and the loom models.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::compare;
use crate::tally::Tally;
use crate::{build, workspace};

/// `cargo test` of every member that builds for the host, but for the fuzz targets.
pub fn unit(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let image = build::image()?;
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast"]).env("JANUA_IMAGE_LINUX", &image.embedded);
    // Tests that make files make them there, whatever /tmp is like.
    let files = compare::place().join("unit");
    compare::fresh(&files)?;
    cargo.env("TMPDIR", &files);
    for member in workspace::members()?.iter().filter(|m| m.dir.starts_with("image/")) {
        cargo.args(["--exclude", &member.name]);
    }
    // Those are a suite of their own.
    cargo.args(["--exclude", FUZZ]);
    run(cargo, filter, tally)
}

/// The crate of what fuzz targets do.
const FUZZ: &str = "janua-fuzz";

/// The fuzz targets, each for a bounded number of inputs.
pub fn fuzz(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--no-fail-fast", "--package", FUZZ]);
    run(cargo, filter, tally)
}

/// The models of the crates that have some: `cargo test` with loom's types in place of the real ones.
pub fn models(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let modelled = modelled()?;
    if modelled.is_empty() {
        return Err("no crate has loom models (a [target.'cfg(loom)'.dependencies] entry)".into());
    }
    let mut cargo = workspace::cargo();
    cargo
        .args(["test", "--release", "--no-fail-fast", "--target-dir"])
        .arg(workspace::target().join("loom"))
        .env("RUSTFLAGS", "--cfg loom");
    for package in &modelled {
        cargo.args(["--package", package]);
    }
    run(cargo, filter, tally)
}

/// Kernels on the model machine: a second or two, so that one runs it while one works on the kernel. The hostile programs for it, which
/// take longer, are among the unit tests.
pub fn model(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--no-fail-fast", "--package", "janua-personality-linux"]);
    cargo.args(["--test", "model", "--test", "side_by_side", "--test", "queue"]);
    run(cargo, filter, tally)
}

/// The toolchain that may have Miri; no released one has.
const NIGHTLY: &str = "nightly";

/// The unsafe code of `rt` on an interpreter that knows what memory may be used for, in an order of events that the seed chooses.
pub fn miri(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let rustup = |words: &[&str]| {
        let mut command = Command::new("rustup");
        // What cargo has set for its own compiler is not for another.
        for variable in ["RUSTUP_TOOLCHAIN", "RUSTC", "RUSTDOC", "CARGO", "RUSTFLAGS"] {
            command.env_remove(variable);
        }
        command.args(["run", NIGHTLY, "cargo", "miri"]).args(words).current_dir(workspace::root());
        command.env("CARGO_TARGET_DIR", workspace::target().join("miri"));
        command
    };
    // It builds a standard library of its own the first time.
    let setup = rustup(&["setup"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !setup.is_ok_and(|status| status.success()) {
        tally.skip("miri", "there is none here: rustup toolchain install nightly -c miri -c rust-src");
        return Ok(());
    }
    for seed in 0..if super::long() { 32 } else { 2 } {
        let mut cargo =
            rustup(&["test", "--no-fail-fast", "--package", "janua-rt", "--lib", "--test", "threads", "--test", "offload"]);
        cargo.env("MIRIFLAGS", format!("-Zmiri-seed={}", super::seed().wrapping_add(seed) as u32));
        run(cargo, filter, tally)?;
    }
    Ok(())
}

/// Packages whose manifest names loom.
fn modelled() -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for member in workspace::members()? {
        let path = workspace::root().join(&member.dir).join("Cargo.toml");
        let manifest = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        if manifest.contains("cfg(loom)") {
            names.push(member.name);
        }
    }
    Ok(names)
}

/// Runs a `cargo test` and counts what its runners report.
fn run(mut cargo: Command, filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    cargo.arg("--");
    match super::retried() {
        Some(failed) => cargo.arg("--exact").args(failed),
        None => cargo.args(filter),
    };
    cargo.env(crate::random::VARIABLE, super::seed().to_string());
    if super::long() {
        cargo.env(crate::random::LONG, "1");
    }
    cargo.env("CARGO_TERM_COLOR", "never").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = cargo.stderr(Stdio::piped()).spawn().map_err(|e| format!("cargo test: {e}"))?;
    let stderr = child.stderr.take();
    let messages = std::thread::spawn(move || stderr.map(std::io::read_to_string).and_then(Result::ok).unwrap_or_default());
    let mut report = Report::default();
    for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
        report.line(&line.map_err(|e| format!("cargo test: {e}"))?, tally);
    }
    let status = child.wait().map_err(|e| format!("cargo test: {e}"))?;
    let messages = messages.join().unwrap_or_default();
    for (name, why) in report.failures() {
        tally.fail(&name, &why);
    }
    match (status.success(), report.failed) {
        (true, _) if report.passed == 0 && filter.is_none() => Err("cargo test ran no test at all".into()),
        (true, _) => Ok(()),
        (false, 0) => Err(format!("cargo test failed ({status})\n{messages}")),
        (false, _) => Ok(()),
    }
}

/// What the lines of test runners add up to.
#[derive(Default)]
struct Report {
    passed: u32,
    failed: u32,
    names: Vec<String>,
    text: String,
}

impl Report {
    fn line(&mut self, line: &str, tally: &mut Tally) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            let count = |what: &str| {
                counts
                    .split([';', '.'])
                    .find_map(|part| part.trim().strip_suffix(what)?.trim().parse::<u32>().ok())
                    .unwrap_or(0)
            };
            self.passed += count("passed");
            self.failed += count("failed");
        } else if let Some(test) = line.strip_prefix("test ") {
            if let Some(name) = test.strip_suffix(" ... ok") {
                tally.pass(name.split(" - should panic").next().unwrap_or(name));
            } else if let Some(name) = test.strip_suffix(" ... FAILED") {
                self.names.push(name.to_string());
            } else if let Some((name, rest)) = test.split_once(" ... ignored") {
                tally.skip(
                    name,
                    rest.trim_start_matches(", ")
                        .trim()
                        .split('\n')
                        .next()
                        .filter(|r| !r.is_empty())
                        .unwrap_or("ignored, without a reason"),
                );
            }
        } else if !line.is_empty() && !line.starts_with("running ") {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// Names of failed tests, the first with all that the runners printed.
    fn failures(&self) -> Vec<(String, String)> {
        let mut text = self.text.clone();
        self.names.iter().map(|name| (name.clone(), std::mem::take(&mut text))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_a_runner_s_lines() {
        let (mut report, mut tally) = (Report::default(), Tally::default());
        for line in [
            "running 3 tests",
            "test a ... ok",
            "test b ... FAILED",
            "test c ... ignored, needs a terminal",
            "thread 'b' panicked",
            "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ] {
            report.line(line, &mut tally);
        }
        assert_eq!((report.passed, report.failed), (1, 1));
        assert_eq!(report.failures(), [("b".to_string(), "thread 'b' panicked\n".to_string())]);
        assert_eq!(tally.counts(), (1, 0, 1));
    }
}
