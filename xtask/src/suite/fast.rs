//! How many calls of real programs go by the gate `call`, which traps for none: more than 99 of 100, as `janua run --stats` counts
//! them. The kinds of system-call sites that C libraries, compilers and runtimes make are all among them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::compare;
use crate::guard::Run;
use crate::tally::Tally;
use crate::{build, process, workspace};

/// Seconds a program may take.
const LIMIT: u64 = 120;

/// Name, the program that must be there, and the command; `$DIR` is the test's directory, `$SOURCES` that of what it runs.
const PROGRAMS: &[(&str, &str, &[&str])] = &[
    ("musl-static", "musl-gcc", &["$DIR/musl-static"]),
    ("musl-dynamic", "musl-gcc", &["$DIR/musl-dynamic"]),
    ("glibc-static", "gcc", &["$DIR/glibc-static"]),
    ("glibc-dynamic", "gcc", &["$DIR/glibc-dynamic"]),
    // What glibc has from 2.41 on, and musl has, whatever the C library here.
    ("cancellation", "gcc", &["$DIR/cancellation"]),
    ("busybox", "busybox", &["busybox", "find", "/usr/share/doc", "-name", "copyright"]),
    ("find", "find", &["find", "/usr/share/doc", "-size", "+1"]),
    ("ls", "ls", &["ls", "-lR", "/usr/share/doc"]),
    ("tar", "tar", &["tar", "cf", "/dev/shm/archive", "/usr/share/doc"]),
    ("shell", "sh", &["sh", "-c", "n=0; while [ $n -lt 300 ]; do /bin/true; n=$((n+1)); done"]),
    ("bash", "bash", &["bash", "-c", "trap 'true' USR1; for n in {1..200}; do kill -USR1 $$; /bin/true; done"]),
    ("perl", "perl", &["perl", "-e", "for (1..2000) { open my $file, '<', '/etc/passwd'; my @lines = <$file> }"]),
    ("python", "/usr/bin/python3", &["/usr/bin/python3", "-c", "import os\nfor n in range(20000): os.stat('/etc')"]),
    ("node", "node", &["node", "-e", "for (let n = 0; n < 3000; n++) require('fs').readFileSync('/etc/passwd')"]),
    ("java", "javac", &["java", "$SOURCES/Reads.java"]),
    ("go", "$DIR/go", &["$DIR/go"]),
    ("rust", "$DIR/rust", &["$DIR/rust"]),
    ("rust-static", "$DIR/rust-static", &["$DIR/rust-static"]),
];

/// Runs the tests whose name holds the filter.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let chosen: Vec<_> = PROGRAMS.iter().filter(|(name, ..)| super::wanted(filter, &format!("fast/{name}"))).collect();
    if chosen.is_empty() || !compare::gates().contains(&"call") {
        return Ok(());
    }
    let dir = compare::place().join("bin/fast");
    prepare(&dir)?;
    for (name, needed, words) in chosen {
        let full = format!("fast/{name}");
        let needed = needed.replace("$DIR", &dir.display().to_string());
        if !(process::on_path(&needed) || Path::new(&needed).is_file()) {
            tally.skip(&full, &format!("{needed} is not installed"));
            continue;
        }
        let words: Vec<String> = words.iter().map(|word| place(word, &dir)).collect();
        tally.check(&full, is_fast(&words, &dir));
    }
    Ok(())
}

fn sources() -> PathBuf {
    workspace::root().join("test/fast")
}

fn place(word: &str, dir: &Path) -> String {
    word.replace("$DIR", &dir.display().to_string()).replace("$SOURCES", &sources().display().to_string())
}

/// Builds the programs of `test/fast`, each by every way its language has.
fn prepare(dir: &Path) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let sources = sources();
    let ways: [(&str, &str, &[&str]); 7] = [
        ("musl-static", "musl-gcc", &["-O1", "-static", "reads.c"]),
        ("musl-dynamic", "musl-gcc", &["-O1", "-fPIE", "-pie", "reads.c"]),
        ("glibc-static", "gcc", &["-O1", "-static", "reads.c"]),
        ("glibc-dynamic", "gcc", &["-O1", "-fPIE", "-pie", "reads.c"]),
        ("cancellation", "gcc", &["-O1", "-pthread", "../sandbox/cancellation.c"]),
        ("rust", "rustc", &["--edition", "2021", "-O", "reads.rs"]),
        ("rust-static", "rustc", &["--edition", "2021", "-O", "-C", "target-feature=+crt-static", "reads.rs"]),
    ];
    for (name, compiler, options) in ways {
        let mut build = Command::new(compiler);
        process::step(
            name,
            "building a program that reads files",
            build.args(options).arg("-o").arg(dir.join(name)).current_dir(&sources),
        )?;
    }
    let mut build = super::programs::go_build();
    process::step("go", "building a program that reads files", build.arg(dir.join("go")).arg("reads.go").current_dir(&sources))
}

fn is_fast(words: &[String], dir: &Path) -> Result<(), String> {
    let janua = build::janua().display().to_string();
    let head = [janua.as_str(), "run", "--gate", "call"]
        .into_iter()
        .chain(compare::jail("call").iter().copied())
        .chain(["--stats", "--"]);
    let command = head.map(str::to_string).chain(words.iter().cloned()).collect();
    let run = Run { command, dir, env: Vec::new(), limit: LIMIT, terminal: None };
    let outcome = run.start(&dir.join("fast.report"))?.wait()?;
    let said = String::from_utf8_lossy(&outcome.output).into_owned();
    if outcome.code != 0 || outcome.timeout {
        return Err(format!("code {}\n{said}", outcome.code));
    }
    // Every gate but `call` and the vDSO traps.
    let counts = said
        .lines()
        .filter_map(|line| line.split_once(" calls by the gate "))
        .filter_map(|(count, gate)| Some((count.parse::<u64>().ok()?, gate)));
    let (fast, slow): (Vec<_>, Vec<_>) = counts.partition(|(_, gate)| matches!(*gate, "call" | "vdso"));
    let sum = |counts: &[(u64, &str)]| counts.iter().map(|(count, _)| count).sum::<u64>();
    let (fast, slow) = (sum(&fast), sum(&slow));
    if fast > 1000 && fast > 99 * slow { Ok(()) } else { Err(format!("{fast} calls without a trap, {slow} with one\n{said}")) }
}
