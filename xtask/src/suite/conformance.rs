//! The C programs of `test/conformance`: each is built with several C libraries, run natively, then on Janua under each
//! gate; output and exit code must be the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::compare::{self, Case, Verdict};
use super::skips::{self, Skips};
use crate::tally::Tally;
use crate::workspace;

/// Seconds a test may take, unless it specifies another limit.
const LIMIT: u64 = 60;

const FLAGS: &[&str] = &["-O1", "-g", "-std=gnu11", "-w", "-pthread", "-mno-red-zone"];

/// A C library and how programs are linked to it.
pub struct Variant {
    pub name: &'static str,
    compiler: &'static [&'static str],
    libraries: &'static [&'static str],
    /// Only for the tests that ask for it.
    on_request: bool,
}

const VARIANTS: &[Variant] = &[
    Variant { name: "glibc", compiler: &["gcc"], libraries: &["-lrt", "-lutil", "-lm", "-ldl"], on_request: false },
    Variant {
        name: "musl",
        // The kernel's own headers come from the host's directory, behind musl's.
        compiler: &["musl-gcc", "-static", "-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"],
        libraries: &["-lm"],
        on_request: false,
    },
    Variant { name: "glibc-static", compiler: &["gcc", "-static"], libraries: &["-lrt", "-lutil", "-lm"], on_request: true },
    Variant { name: "i386", compiler: &["gcc", "-m32"], libraries: &["-lrt", "-lutil", "-lm", "-ldl"], on_request: false },
    Variant {
        name: "i386-static",
        compiler: &["gcc", "-m32", "-static"],
        libraries: &["-lrt", "-lutil", "-lm"],
        on_request: true,
    },
];

/// One program with one C library.
pub struct Test {
    /// `area/name/variant`.
    pub name: String,
    /// `area/name`.
    pub test: String,
    source: PathBuf,
    pub variant: &'static Variant,
    pub limit: u64,
    /// The first Linux that has what it asks for, where that is a late one.
    since: Option<String>,
    /// It needs rings of the host's (io_uring), which not every host lets everybody have.
    rings: bool,
}

impl Test {
    /// Why its native run cannot be had on this host, if it cannot.
    pub fn too_new(&self) -> Option<String> {
        if self.rings && !host_has_rings() {
            return Some("the host lets nobody use io_uring here".to_string());
        }
        self.since
            .as_ref()
            .filter(|version| !host_has(version))
            .map(|version| format!("the host's Linux is older than {version}"))
    }

    /// Its native run, by which the others are judged.
    pub fn case(&self, program: &Path) -> Case {
        Case {
            name: self.name.clone(),
            command: vec![program.display().to_string()],
            env: Vec::new(),
            limit: self.limit,
            expect: 0,
            away: true,
        }
    }
}

/// Runs the tests whose name (`area/name/variant`) holds the filter.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let skips = Skips::read()?;
    let tests = find()?;
    let names: Vec<String> = tests
        .iter()
        .map(|t| t.test.clone())
        .chain(super::programs::names()?)
        .chain(super::terminal::names())
        .chain(super::sandbox::names())
        .collect();
    for stale in skips.stale(&names) {
        tally.fail(skips::LIST, &format!("there is no test {stale}"));
    }
    let chosen: Vec<Test> = tests
        .into_iter()
        .filter(|t| super::wanted(filter, &t.name))
        .filter(|t| !super::quick() || t.variant.name == "glibc")
        .collect();
    compare::parallel(&chosen, |test| judge(test, &skips), |verdicts| verdicts.into_iter().for_each(|v| v.count(tally)));
    Ok(())
}

/// Whether the host's io_uring is there for this process: not where it is switched off, nor where a filter of calls may refuse it, as in containers.
fn host_has_rings() -> bool {
    let switch = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    matches!(switch.trim(), "" | "0") && !status.lines().any(|line| line.starts_with("Seccomp:") && line.ends_with('2'))
}

/// Whether the host's Linux is at least this version ("6.13").
pub fn host_has(version: &str) -> bool {
    let numbers =
        |text: &str| text.split(|c: char| !c.is_ascii_digit()).take(2).map(|n| n.parse().unwrap_or(0)).collect::<Vec<u32>>();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    numbers(&release) >= numbers(version)
}

fn judge(test: &Test, skips: &Skips) -> Vec<Verdict> {
    if let Some(reason) = test.too_new() {
        return vec![Verdict::Skipped(test.name.clone(), reason)];
    }
    let program = match build(test) {
        Ok(program) => program,
        Err(why) => {
            return vec![Verdict::Failed(format!("{}/build", test.name), why)];
        }
    };
    test.case(&program).judge(&|gate| skips.reason(&test.test, gate))
}

/// Every program, with every variant it is built in.
pub fn find() -> Result<Vec<Test>, String> {
    let root = workspace::root().join("test/conformance");
    let mut tests = Vec::new();
    for area in sorted(&root)? {
        if !area.is_dir() {
            continue;
        }
        for source in sorted(&area)? {
            if source.extension().is_none_or(|e| e != "c") {
                continue;
            }
            let text = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
            let test = source.strip_prefix(&root).unwrap_or(&source).with_extension("").display().to_string();
            let names = |key: &str| directive(&text, key).unwrap_or_default();
            let (also, only, not) = (names("also"), names("only"), names("not"));
            let listed = |list: &str, variant: &Variant| list.split(' ').any(|v| v == variant.name);
            let limit = directive(&text, "seconds")
                .map_or(Ok(LIMIT), |s| s.parse())
                .map_err(|e| format!("{}: seconds: {e}", source.display()))?;
            let since = directive(&text, "linux");
            for variant in VARIANTS {
                let chosen = match only.as_str() {
                    "" => (!variant.on_request || listed(&also, variant)) && !listed(&not, variant),
                    only => listed(only, variant),
                };
                if !chosen {
                    continue;
                }
                tests.push(Test {
                    name: format!("{test}/{}", variant.name),
                    test: test.clone(),
                    source: source.clone(),
                    variant,
                    limit,
                    since: since.clone(),
                    rings: directive(&text, "host").is_some_and(|host| host == "io_uring"),
                });
            }
        }
    }
    Ok(tests)
}

/// What a source specifies in a line `/* key: value */`.
pub fn directive(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let value = line.strip_prefix("/* ")?.strip_suffix(" */")?;
        value.strip_prefix(key)?.strip_prefix(": ").map(str::to_string)
    })
}

/// The files of a directory by name.
pub fn sorted(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?.flatten().map(|e| e.path()).collect();
    files.sort();
    Ok(files)
}

/// Builds a test unless what is there is newer than its sources.
pub fn build(test: &Test) -> Result<PathBuf, String> {
    let program = compare::place().join("bin").join(test.variant.name).join(&test.test);
    let header = workspace::root().join("test/conformance/t.h");
    let time = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    let newest = time(&test.source).max(time(&header));
    if time(&program) > newest {
        return Ok(program);
    }
    if let Some(dir) = program.parent() {
        fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    let [compiler, options @ ..] = test.variant.compiler else {
        return Err("a variant without a compiler".into());
    };
    let output = Command::new(compiler)
        .args(options)
        .args(FLAGS)
        .arg("-I")
        .arg(workspace::root().join("test/conformance"))
        .arg("-o")
        .arg(&program)
        .arg(&test.source)
        .args(test.variant.libraries)
        .output()
        .map_err(|e| format!("{compiler}: {e}"))?;
    if output.status.success() {
        return Ok(program);
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}
