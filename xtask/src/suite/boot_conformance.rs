//! The programs of `test/conformance` on the bare x86_64 machine: many in one boot, run one after the other by
//! `test/boot/runner.c`, judged by their native runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use super::boot;
use super::compare::{self, Verdict};
use super::conformance::{self, Test};
use super::skips::Skips;
use crate::guard::{Outcome, Run};
use crate::tally::Tally;
use crate::{build, process};

/// How programs run.
struct Way {
    /// Its part of the tests' names.
    suite: &'static str,
    /// Its names in the column of gates of the list of skips.
    gates: &'static [&'static str],
    /// Options of `janua boot`.
    options: &'static [&'static str],
    /// The working directory is on a disk.
    disk: bool,
}

const WAYS: &[Way] = &[
    Way { suite: "conformance", gates: &["x86_64"], options: &[], disk: false },
    Way { suite: "disk-conformance", gates: &["x86_64"], options: &[], disk: true },
    // Calls run on a module, away from the threads that make them.
    Way {
        suite: "away-conformance",
        gates: &["x86_64", compare::AWAY],
        options: &["--syscall-cores", "1", "--handover", "always"],
        disk: false,
    },
];

impl Way {
    /// Whether a test of these runs so. Where a call runs and where files are is no matter of the program's C library: one does, and of a test that is not
    /// built with that all others.
    fn takes(&self, test: &Test, all: &[Test]) -> bool {
        const ONE: &str = "musl";
        let every = !super::quick() && (super::long() || self.suite == "conformance");
        let chosen = test.variant.name == ONE || !all.iter().any(|other| other.test == test.test && other.variant.name == ONE);
        (every || chosen) && (!self.disk || ON_DISK.contains(&test.test.as_str()))
    }
}

/// Programs of one boot.
const BATCH: usize = 24;
/// Boots at a time: each wants a processor for itself.
const BOOTS: usize = 2;
/// Seconds one boot may take besides what its programs may.
const LIMIT: u64 = 120;
/// Where the programs are inside.
const PLACE: &str = "test";
/// Programs about files and what is mapped of them, which run with their working directory on a disk, too.
const ON_DISK: &[&str] = &[
    "fs/append_position",
    "fs/lseek",
    "fs/read_write",
    "fs/sendfile_copy",
    "fs/truncate_fallocate",
    "mm/edge_copies",
    "mm/fixed",
    "mm/locked_pages",
    "mm/madvise",
    "mm/mapped_file",
    "mm/mapped_file_race",
    "mm/mmap_flavours",
    "mm/mprotect",
    "mm/mremap",
    "mm/shared",
];

/// A test with the run it is judged by.
struct Ready<'a> {
    test: &'a Test,
    /// Its name here.
    name: String,
    program: PathBuf,
    native: Outcome,
    skip: Option<String>,
}

/// The test's name in this suite.
fn name(test: &Test, way: &Way) -> String {
    format!("boot/{}/{}", way.suite, test.name)
}

/// Runs the tests whose name (`boot/conformance/area/name/variant`, or another way's) holds the filter.
pub fn run(filter: Option<&str>, image: &Path, dir: &Path, tally: &mut Tally) -> Result<(), String> {
    let all = conformance::find()?;
    for way in WAYS {
        let tests: Vec<&Test> =
            all.iter().filter(|test| super::wanted(filter, &name(test, way)) && way.takes(test, &all)).collect();
        if !tests.is_empty() {
            run_all(&tests, way, image, dir, tally)?;
        }
    }
    Ok(())
}

fn run_all(tests: &[&Test], way: &Way, image: &Path, dir: &Path, tally: &mut Tally) -> Result<(), String> {
    let skips = Skips::read()?;
    let mut ready = Vec::new();
    compare::parallel(
        tests,
        |test| prepare(test, way, &skips),
        |prepared| match prepared {
            Ok(prepared) => ready.push(prepared),
            Err(verdict) => verdict.count(tally),
        },
    );
    let tree = dir.join("conformance");
    make_tree(&tree, &ready)?;
    let batches: Mutex<Vec<Vec<&Ready>>> = Mutex::new(ready.chunks(BATCH).rev().map(|batch| batch.iter().collect()).collect());
    let verdicts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..BOOTS {
            let (batches, verdicts, tree) = (&batches, &verdicts, &tree);
            scope.spawn(move || {
                let next = || batches.lock().unwrap_or_else(|e| e.into_inner()).pop();
                while let Some(batch) = next() {
                    let mut judged = boot_batch(batch, way, image, tree, &dir.join(format!("boot-{worker}")));
                    verdicts.lock().unwrap_or_else(|e| e.into_inner()).append(&mut judged);
                }
            });
        }
    });
    verdicts.into_inner().unwrap_or_else(|e| e.into_inner()).into_iter().for_each(|verdict| verdict.count(tally));
    Ok(())
}

/// Builds a test and runs it natively.
fn prepare<'a>(test: &'a Test, way: &Way, skips: &Skips) -> Result<Ready<'a>, Verdict> {
    let name = name(test, way);
    if let Some(reason) = test.too_new() {
        return Err(Verdict::Skipped(name, reason));
    }
    let program = conformance::build(test).map_err(|why| Verdict::Failed(format!("{name}/build"), why))?;
    let native = test.case(&program).native().map_err(|why| Verdict::Failed(format!("{name}/native"), why))?;
    Ok(Ready { test, name, program, native, skip: way.gates.iter().find_map(|gate| skips.reason(&test.test, gate)) })
}

/// The path of a test's program inside; its last part is the test's name, as natively.
fn inside(test: &Test) -> String {
    format!("/{PLACE}/{}/{}", test.variant.name, test.test)
}

/// The file tree of all boots: the runner, the programs, their libraries.
fn make_tree(tree: &Path, ready: &[Ready]) -> Result<(), String> {
    let described = |e: std::io::Error| format!("{}: {e}", tree.display());
    compare::fresh(tree)?;
    for dir in ["bin", "dev", "etc", "proc", "tmp", "usr/bin"] {
        fs::create_dir_all(tree.join(dir)).map_err(described)?;
    }
    for (name, content) in [
        ("passwd", "root:x:0:0:root:/root:/bin/sh\n"),
        ("group", "root:x:0:\n"),
        ("hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    ] {
        fs::write(tree.join("etc").join(name), content).map_err(described)?;
    }
    // What tests start by name: the host's own, as natively.
    for name in ["sh", "true", "false", "cat", "echo", "ls", "sleep"] {
        let program = Path::new("/bin").join(name);
        fs::copy(&program, tree.join("bin").join(name)).map_err(described)?;
        boot::add_libraries(&program, tree)?;
    }
    let mut command = Command::new("musl-gcc");
    command.args(["-static", "-O1", "-o"]).arg(tree.join("bin/runner"));
    command.arg(crate::workspace::root().join("test/boot/runner.c"));
    process::step("boot-runner", "compiling test/boot/runner.c", &mut command)?;
    // glibc loads it when a thread is cancelled; no program names it.
    for unwinder in ["lib/x86_64-linux-gnu/libgcc_s.so.1", "lib32/libgcc_s.so.1"] {
        let (there, place) = (Path::new("/").join(unwinder), tree.join(unwinder));
        fs::create_dir_all(place.parent().unwrap_or(tree)).map_err(described)?;
        // Without 32-bit libraries no 32-bit test was built.
        if there.exists() {
            fs::copy(there, place).map_err(described)?;
        }
    }
    for ready in ready {
        let place = tree.join(inside(ready.test).trim_start_matches('/'));
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(described)?;
        }
        fs::hard_link(&ready.program, &place).or_else(|_| fs::copy(&ready.program, &place).map(drop)).map_err(described)?;
        if matches!(ready.test.variant.name, "glibc" | "i386") {
            boot::add_libraries(&ready.program, tree)?;
        }
    }
    Ok(())
}

/// Boots until every program of the batch has had its turn: one that takes the machine with it fails, and the rest goes on in
/// a new boot.
fn boot_batch(batch: Vec<&Ready>, way: &Way, image: &Path, tree: &Path, dir: &Path) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let mut rest = &batch[..];
    while !rest.is_empty() {
        let (reported, end) = match boot(rest, way, image, tree, dir) {
            Ok(reported) => reported,
            Err(why) => {
                verdicts.extend(rest.iter().map(|ready| Verdict::Failed(ready.name.clone(), why.clone())));
                break;
            }
        };
        let mut done = 0;
        for ready in rest {
            match reported.get(&inside(ready.test)) {
                Some(Some(there)) => verdicts.push(judge(ready, there)),
                Some(None) => verdicts.push(stopped(ready, &end)),
                None if done == 0 => verdicts.push(stopped(ready, &end)),
                None => break,
            }
            done += 1;
        }
        rest = &rest[done..];
    }
    verdicts
}

fn judge(ready: &Ready, there: &Outcome) -> Verdict {
    let name = ready.name.clone();
    let result = ready.test.case(&ready.program).same(&ready.native, there);
    match (result, &ready.skip) {
        (Ok(()), None) => Verdict::Passed(name),
        (Ok(()), Some(_)) => Verdict::Failed(name, "it passes, and the list of skips says it need not: take it out".into()),
        (Err(_), Some(reason)) => Verdict::Skipped(name, reason.clone()),
        (Err(why), None) => Verdict::Failed(name, why),
    }
}

fn stopped(ready: &Ready, end: &str) -> Verdict {
    Verdict::Failed(ready.name.clone(), format!("the machine ended while it ran\n{end}"))
}

/// What the runner reported of each program, `None` for one that began and did not end; and what else the machine printed.
type Reported = (BTreeMap<String, Option<Outcome>>, String);

fn boot(batch: &[&Ready], way: &Way, image: &Path, tree: &Path, dir: &Path) -> Result<Reported, String> {
    let _ = fs::create_dir_all(dir);
    let mut command = vec![build::janua().display().to_string(), "boot".into()];
    command.extend(way.options.iter().map(ToString::to_string));
    if way.disk {
        let disk = dir.join("disk.img");
        let _ = fs::remove_file(&disk);
        command.extend(["--disk".into(), disk.display().to_string(), "--disk-size".into(), "256M".into()]);
    }
    command.extend(["--env".into(), format!("{}={}", crate::random::VARIABLE, super::seed()), "--ramfs".into()]);
    command.extend([tree.display().to_string(), "--".into(), "/bin/runner".into()]);
    // Inherited by the native runs, which report it.
    command.push(rustix::process::nice(0).unwrap_or(0).to_string());
    command.extend(batch.iter().map(|ready| format!("{}:{}", ready.test.limit, inside(ready.test))));
    let env = vec![("JANUA_IMAGE_X86_64".to_string(), image.display().to_string())];
    let limit = LIMIT + batch.iter().map(|ready| ready.test.limit).sum::<u64>();
    let outcome = Run { command, dir, env, limit, terminal: None }.outcome(&dir.join("report"))?;
    let (reported, mut rest) = parse(&outcome.output);
    if outcome.timeout {
        rest.push_str(&format!("(it was stopped after {limit} s)"));
    }
    Ok((reported, rest))
}

/// Takes the runner's output apart.
fn parse(output: &[u8]) -> Reported {
    let mut reported: BTreeMap<String, Option<Outcome>> = BTreeMap::new();
    let mut other = String::new();
    let mut running: Option<String> = None;
    let mut left = output;
    while !left.is_empty() {
        let end = left.iter().position(|byte| *byte == b'\n').map_or(left.len(), |at| at + 1);
        let (line, behind) = left.split_at(end);
        left = behind;
        let line = String::from_utf8_lossy(line);
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match (&words[..], &running) {
            (["@begin", path], _) => {
                reported.insert((*path).into(), None);
                running = Some((*path).into());
            }
            (["@end", status, outlived, bytes], Some(path)) => {
                let len = bytes.parse().unwrap_or(0).min(left.len());
                let (output, behind) = left.split_at(len);
                left = behind.strip_prefix(b"\n").unwrap_or(behind);
                let outcome = Outcome {
                    output: output.to_vec(),
                    code: status.parse().unwrap_or(-1),
                    timeout: *status == "timeout",
                    left: if *outlived == "0" { Vec::new() } else { vec!["a process".into()] },
                };
                reported.insert(path.clone(), Some(outcome));
                running = None;
            }
            _ => other.push_str(&line),
        }
    }
    (reported, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runners_words_come_apart() {
        let text = b"@begin /a\n@end 3 0 6\n@end\nx\n@begin /b\n@end timeout 1 0\n\njanua: kernel fault\n@begin /c\n";
        let (reported, other) = parse(text);
        let outcome = |code, timeout, output: &[u8]| Outcome { output: output.into(), code, timeout, left: Vec::new() };
        assert_eq!(reported["/a"], Some(outcome(3, false, b"@end\nx")));
        assert!(reported["/b"].as_ref().is_some_and(|b| b.timeout && b.output.is_empty() && b.left.len() == 1));
        assert_eq!(reported["/c"], None);
        assert_eq!(other, "janua: kernel fault\n");
    }
}
