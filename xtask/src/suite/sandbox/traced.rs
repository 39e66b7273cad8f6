//! The trace of `--trace`: one can read it, and it is whole or reports that it is not.

use std::fs;

use super::{Sandbox, expect, text};
use crate::suite::compare;

/// Calls are there with their words and results, and the program is the same.
pub fn trace(s: &Sandbox) -> Result<(), String> {
    let plain = s.run(&[], &["/bin/ls", "/"])?;
    let traced = s.run(&["--trace=/dev/null"], &["/bin/ls", "/"])?;
    if plain.output != traced.output || traced.code != 0 {
        return Err(format!("tracing changes the output\n{}", compare::difference(&plain.output, &traced.output)));
    }
    let file = s.dir.join("trace");
    let option = format!("--trace={}", file.display());
    let outcome = s.run(&[&option], &["/bin/sh", "-c", "cat /etc/hostname /none >/dev/null 2>&1; exit 3"])?;
    expect("traced", &outcome, 3, &[])?;
    let lines = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let has = |parts: &[&str]| lines.lines().any(|l| parts.iter().all(|p| l.contains(p)));
    let wanted: &[&[&str]] = &[
        &["openat(", "\"/etc/hostname\"", "O_RDONLY", " = "],
        &["openat(", "\"/none\"", "= -1 ENOENT"],
        &["execve(", "cat"],
        &["write("],
        &["arch_prctl(ARCH_SET_FS, "],
        &["exit_group(3)"],
    ];
    match wanted.iter().find(|w| !has(w)) {
        Some(line) => Err(format!("no line with {line:?} in\n{}", lines.lines().take(60).collect::<Vec<_>>().join("\n"))),
        None => Ok(()),
    }
}

/// A trace that cannot be written is reported once, or ends the run.
pub fn trace_lost(s: &Sandbox) -> Result<(), String> {
    let outcome = s.run(&["--trace=/dev/full"], &["/bin/sh", "-c", "echo on; exit 3"])?;
    expect("said", &outcome, 3, &["trace cannot be written (ENOSPC)", "on"])?;
    if text(&outcome).matches("trace cannot").count() != 1 {
        return Err(format!("said more than once:\n{}", text(&outcome)));
    }
    expect(
        "ended",
        &s.run(&["--trace=/dev/full", "--trace-whole"], &["/bin/sh", "-c", "echo on; exit 3"])?,
        125,
        &["sandbox is stopped"],
    )
}

/// Each thread has its lines.
pub fn trace_of_forks(s: &Sandbox) -> Result<(), String> {
    let file = s.dir.join("trace");
    let option = format!("--trace={}", file.display());
    let outcome = s.run(&[&option], &["/bin/sh", "-c", "for i in 1 2 3; do (echo $i | cat) & done; wait"])?;
    if outcome.code != 0 {
        return Err(format!("code {}\n{}", outcome.code, text(&outcome)));
    }
    let lines = fs::read_to_string(&file).map_err(|e| e.to_string())?;
    let who: std::collections::BTreeSet<&str> = lines.lines().filter_map(|l| l.split_whitespace().next()).collect();
    let whole = lines.lines().filter(|l| l.contains("execve(")).count();
    if who.len() < 4 || whole < 3 {
        return Err(format!(
            "{} threads, {whole} execve in\n{}",
            who.len(),
            lines.lines().take(60).collect::<Vec<_>>().join("\n")
        ));
    }
    Ok(())
}
