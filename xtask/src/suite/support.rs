//! `docs/support.md`, generated from the system-call tables by `janua support --markdown`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::tally::Tally;
use crate::{build, workspace};

fn page() -> PathBuf {
    workspace::root().join("docs/support.md")
}

/// What the page must hold.
fn generated() -> Result<String, String> {
    let output =
        Command::new(build::janua()).args(["support", "--markdown"]).output().map_err(|e| format!("janua support: {e}"))?;
    if !output.status.success() {
        return Err(format!("janua support --markdown: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("janua support: {e}"))
}

/// `cargo xtask support`.
pub fn write() -> Result<(), String> {
    build::all()?;
    fs::write(page(), generated()?).map_err(|e| format!("{}: {e}", page().display()))
}

/// The suite: the committed page is what would be generated now.
pub fn suite(_: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let committed = fs::read_to_string(page()).unwrap_or_default();
    let current = generated()? == committed;
    let remedy = || "docs/support.md is not what the tables say; run: cargo xtask support".to_string();
    tally.check("docs/support.md", current.then_some(()).ok_or_else(remedy));
    Ok(())
}
