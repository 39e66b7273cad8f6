//! What cargo's own tools report of the source: `cargo fmt`, `cargo clippy` and `cargo doc` find nothing.

use std::process::Stdio;

use crate::tally::Tally;
use crate::{build, process, workspace};

/// The compiler whose tools the tree is kept clean for (the minor number of 1.x). Others know other lints, and rustfmt now and then
/// breaks a line elsewhere: what they report is no fault of the tree's.
const KEPT_FOR: u32 = 95;

/// One of cargo's tools: its name, what it is asked of the crates, and what follows their names.
struct Tool {
    name: &'static str,
    arguments: &'static [&'static str],
    rest: &'static [&'static str],
    /// Whether it compiles, so that the images, which are for another target, are left out.
    compiles: bool,
}

#[rustfmt::skip]
const TOOLS: &[Tool] = &[
    Tool { name: "fmt", arguments: &["--all"], rest: &["--", "--check", "--color=never"], compiles: false },
    Tool { name: "clippy", arguments: &["--workspace", "--all-targets", "--quiet", "--color=never"], rest: &["--", "-Dwarnings"], compiles: true },
    Tool { name: "doc", arguments: &["--workspace", "--no-deps", "--document-private-items", "--quiet", "--color=never"], rest: &[], compiles: true },
];

pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    for tool in TOOLS.iter().filter(|tool| super::wanted(filter, tool.name)) {
        match unfit(tool) {
            Some(reason) => tally.skip(tool.name, &reason),
            None => tally.check(tool.name, ask(tool)),
        }
    }
    Ok(())
}

/// Why a tool cannot judge here.
fn unfit(tool: &Tool) -> Option<String> {
    let version = process::output(workspace::cargo().arg("--version")).unwrap_or_default();
    let minor = version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    if minor != Some(KEPT_FOR) {
        return Some(format!("the tree is kept clean for Rust 1.{KEPT_FOR}; here is {}", version.trim()));
    }
    // rustup runs in place of a component that is not installed, and fails. Documentation is the compiler's own.
    let missing = tool.name != "doc" && process::output(workspace::cargo().args([tool.name, "--version"])).is_none();
    missing.then(|| format!("cargo {} is not installed", tool.name))
}

fn ask(tool: &Tool) -> Result<(), String> {
    let mut cargo = workspace::cargo();
    cargo.arg(tool.name).args(tool.arguments);
    if tool.compiles {
        cargo.env("JANUA_IMAGE_LINUX", &build::image()?.embedded).env("RUSTDOCFLAGS", "-Dwarnings");
        for member in workspace::members()?.iter().filter(|m| m.dir.starts_with("image/")) {
            cargo.args(["--exclude", &member.name]);
        }
    }
    let output = cargo.args(tool.rest).stdin(Stdio::null()).output().map_err(|e| format!("cargo {}: {e}", tool.name))?;
    if output.status.success() {
        return Ok(());
    }
    Err(head(&[output.stdout, output.stderr].concat()))
}

/// As much as shows what to do; the tool prints the rest again.
fn head(said: &[u8]) -> String {
    const LINES: usize = 60;
    let text = String::from_utf8_lossy(said);
    let mut head: Vec<&str> = text.lines().take(LINES).collect();
    if text.lines().count() > LINES {
        head.push("...");
    }
    head.join("\n")
}
