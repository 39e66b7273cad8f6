//! What makes programs slow without making them wrong, as far as it can be seen without a clock: calls that trap, and what processes leave behind
//! in each other's page tables.

use std::fs;

use super::{Sandbox, clean, expect, text, up};
use crate::suite::{attacks, compare};
use crate::workspace;

/// The cancellation points of C libraries go by the gate `call` once their file has been rewritten, also those of several threads.
pub fn cancellation_points(s: &Sandbox) -> Result<(), String> {
    let program = compare::place().join("bin/sandbox/cancellation");
    attacks::build(&workspace::root().join("test/sandbox/cancellation.c"), &program, &[])?;
    let outcome = s.run(&["--stats"], &[&program.display().to_string()])?;
    let lines = ["alone: 4020", "thread: 4020\nthread: 4020\nthread: 4020", "cancelled: -125, no such call: -38"];
    expect("cancellation points", &outcome, 0, &lines)?;
    let said = text(&outcome);
    let by = |gate: &str| said.lines().find_map(|line| line.strip_suffix(gate)?.parse::<u32>().ok()).unwrap_or(0);
    let (fast, slow) = (by(" calls by the gate call"), by(" calls by the gate sud"));
    // A few trap before they are worth it, and a few of the start's are never rewritten.
    if s.gate == "call" && (fast < 16_000 || slow > 200) {
        Err(format!("{fast} calls without a trap, {slow} with one:\n{said}"))
    } else {
        Ok(())
    }
}

/// The dynamic linker of a sandbox's only program is not worth rewriting; that of a shell's programs is, from the second on.
pub fn first_linker(s: &Sandbox) -> Result<(), String> {
    let by = |said: &str, gate: &str| said.lines().find_map(|line| line.strip_suffix(gate)?.parse::<u32>().ok()).unwrap_or(0);
    let (one, many) = (
        s.run(&["--stats"], &["/bin/true"])?,
        s.run(&["--stats"], &["/bin/sh", "-c", "/bin/true;/bin/true;/bin/true;exit 0"])?,
    );
    for outcome in [&one, &many] {
        expect("true", outcome, 0, &[])?;
    }
    let (one, many) = (text(&one), text(&many));
    if s.gate != "call" {
        return Ok(());
    }
    if !one.contains("0 call sites in 0 files") {
        return Err(format!("one program:\n{one}"));
    }
    // 34 and 130 at the time of writing.
    let (fast, slow) = (by(&many, " calls by the gate call"), by(&many, " calls by the gate sud"));
    if slow > 45 || fast < 2 * slow { Err(format!("{fast} calls without a trap, {slow} with one:\n{many}")) } else { Ok(()) }
}

/// A call in code made at run time goes by the gate `call`, also when its process had several threads before the first of them.
pub fn calls_made_at_run_time(s: &Sandbox) -> Result<(), String> {
    let program = compare::place().join("bin/sandbox/made_calls");
    attacks::build(&workspace::root().join("test/sandbox/made_calls.c"), &program, &[])?;
    let outcome = s.run(&["--stats"], &[&program.display().to_string()])?;
    expect("calls made at run time", &outcome, 0, &["thread: 5000\nthread: 5000\nthread: 5000\nthread: 5000"])?;
    let said = text(&outcome);
    let by = |gate: &str| said.lines().find_map(|line| line.strip_suffix(gate)?.parse::<u32>().ok()).unwrap_or(0);
    let (fast, slow) = (by(" calls by the gate call"), by(" calls by the gate sud"));
    // While a page is written its threads trap on.
    if s.gate == "call" && (fast < 15_000 || slow > 2000) {
        Err(format!("{fast} calls without a trap, {slow} with one:\n{said}"))
    } else {
        Ok(())
    }
}

/// A process made after a thousand others have come and gone begins with no more of the kernel's memory in its page tables than one
/// made before, nor has its parent: the host copies and clears those tables for each process that follows.
pub fn many_processes(s: &Sandbox) -> Result<(), String> {
    let program = compare::place().join("bin/sandbox/many");
    attacks::build(&workspace::root().join("test/sandbox/many.c"), &program, &[])?;
    let running = up(s, &format!("exec {}", program.display()))?;
    let mut tables = Vec::new();
    for pid in running.processes() {
        // One that has just ended has none.
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let kib = status.lines().find_map(|line| line.strip_prefix("VmPTE:")?.split_whitespace().next()?.parse::<u64>().ok());
        tables.extend(kib);
    }
    fs::remove_file(s.dir.join("ready")).map_err(|e| e.to_string())?;
    expect("many processes", &clean(running.wait()?)?, 0, &[])?;
    // 110 at the time of writing; 260 with what a thousand have left behind.
    if tables.len() < 4 || tables.iter().any(|kib| *kib > 190) {
        Err(format!("KiB of page tables: {tables:?}"))
    } else {
        Ok(())
    }
}
