//! The scripts of `test/programs`: real programs, each script run whole, natively and on Janua under each gate; output
//! and exit code must be the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::compare::{self, Case, Verdict};
use super::conformance::sorted;
use super::skips::Skips;
use crate::tally::Tally;
use crate::{process, workspace};

/// Seconds a script may take, unless it specifies another limit.
const LIMIT: u64 = 180;

/// A script and what its head specifies.
struct Script {
    name: String,
    path: PathBuf,
    limit: u64,
    expect: i32,
    shell: String,
    /// Programs it needs that are too large to be installed for it.
    needs: Vec<String>,
}

/// The names of all scripts, as the skip list writes them.
pub fn names() -> Result<Vec<String>, String> {
    Ok(find()?.into_iter().map(|s| s.name).collect())
}

/// Runs the scripts whose name holds the filter.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let skips = Skips::read()?;
    let chosen: Vec<Script> = find()?.into_iter().filter(|s| super::wanted(filter, &s.name)).collect();
    if chosen.is_empty() {
        return Ok(());
    }
    let bin = guests()?;
    compare::parallel(
        &chosen,
        |script| judge(script, &bin, &skips),
        |verdicts| verdicts.into_iter().for_each(|v| v.count(tally)),
    );
    Ok(())
}

fn judge(script: &Script, bin: &Path, skips: &Skips) -> Vec<Verdict> {
    if let Some(lacking) = script.needs.iter().find(|program| !process::on_path(program)) {
        return vec![Verdict::Skipped(script.name.clone(), format!("{lacking} is not installed"))];
    }
    Case {
        name: script.name.clone(),
        command: vec![script.shell.clone(), script.path.display().to_string()],
        env: vec![
            ("BIN".into(), bin.display().to_string()),
            ("SOURCES".into(), workspace::root().join("test/programs").display().to_string()),
        ],
        limit: script.limit,
        expect: script.expect,
        away: false,
    }
    .judge(&|gate| skips.reason(&script.name, gate))
}

/// Every `test/programs/*.sh`.
fn find() -> Result<Vec<Script>, String> {
    let mut scripts = Vec::new();
    for path in sorted(&workspace::root().join("test/programs"))? {
        if path.extension().is_none_or(|e| e != "sh") {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let number = |key: &str, default: u64| match directive(&text, key) {
            Some(value) => value.parse().map_err(|e| format!("{}: {key}: {e}", path.display())),
            None => Ok(default),
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        scripts.push(Script {
            name: format!("programs/{stem}"),
            limit: number("seconds", LIMIT)?,
            expect: number("exit", 0)? as i32,
            shell: directive(&text, "shell").unwrap_or("/bin/sh").to_string(),
            needs: directive(&text, "needs").unwrap_or_default().split_whitespace().map(str::to_string).collect(),
            path,
        });
    }
    Ok(scripts)
}

/// What a script specifies in a line `# key: value`.
fn directive<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(": "))
}

/// Builds the guests that are not of the distribution: a static Go program and a static Rust program.
fn guests() -> Result<PathBuf, String> {
    let bin = compare::place().join("bin");
    fs::create_dir_all(&bin).map_err(|e| format!("{}: {e}", bin.display()))?;
    let sources = workspace::root().join("test/programs");
    process::step(
        "guest-go",
        "building the Go guest",
        go_build().arg(bin.join("guest-go")).arg(".").current_dir(sources.join("go")),
    )?;
    let mut build = Command::new("rustc");
    build
        .args(["--edition", "2021", "-O", "-C", "target-feature=+crt-static", "-o"])
        .arg(bin.join("guest-rust"))
        .arg(sources.join("rust/main.rs"));
    process::step("guest-rust", "building the Rust guest", &mut build)?;
    Ok(bin)
}

/// `go build -o`, static and without the network: the program's place and what it is made from are to come.
pub fn go_build() -> Command {
    let mut build = Command::new(if process::on_path("go") { "go" } else { "/usr/local/go/bin/go" });
    build.args(["build", "-o"]);
    build.env("CGO_ENABLED", "0").env("GOFLAGS", "-trimpath").env("GOTOOLCHAIN", "local").env("GOPROXY", "off");
    build
}
