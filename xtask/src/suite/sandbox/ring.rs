//! Rings of calls, served by the thread itself and by a module.

use std::fs;
use std::thread;
use std::time::Duration;

use super::{Sandbox, compare, expect, text};
use crate::workspace;

/// What waits, is cancelled, refused or forged, and how rings end (test/sandbox/ring.c).
pub fn ring(s: &Sandbox) -> Result<(), String> {
    let program = compare::place().join("bin/sandbox/ring");
    crate::suite::attacks::build(&workspace::root().join("test/sandbox/ring.c"), &program, &[])?;
    let program = program.display().to_string();
    let alone = s.run(&[], &[&program])?;
    expect("without modules", &alone, 0, &["served by the thread", "forged rings: as it should", "close: as it should"])?;
    let away = s.run(&["--syscall-cores", "1"], &[&program])?;
    expect("with a module", &away, 0, &["served by", "forged rings: as it should", "close: as it should"])?;
    // A module that reaches user memory looks into it: no key is in its way then, nor what rewrites calls.
    let looks = s.gate == "ptrace" || compare::jail(s.gate).ends_with(&["none"]) && s.gate != "call";
    if looks != text(&away).contains("served by a module") {
        return Err(format!("not served by whom it should be\n{}", text(&away)));
    }
    Ok(())
}

/// Whose memory rings are in, and what becomes of it (test/sandbox/ring_memory.c). Of all that a module has shared it keeps nothing.
pub fn memory(s: &Sandbox) -> Result<(), String> {
    let program = compare::place().join("bin/sandbox/ring_memory");
    crate::suite::attacks::build(&workspace::root().join("test/sandbox/ring_memory.c"), &program, &[])?;
    let program = program.display().to_string();
    let alone = s.run(&[], &[&program])?;
    expect("without modules", &alone, 0, &["served by the thread", "many threads that end with theirs: as it should", "over"])?;
    let away = s.run(&["--syscall-cores", "1"], &[&program])?;
    expect("with a module", &away, 0, &["served by", "many threads that end with theirs: as it should", "over"])?;
    let bind = format!("{0}:{0}:rw", s.dir.display());
    let [ready, gone] = ["ready", "gone"].map(|name| s.dir.join(name));
    let names = [&ready, &gone].map(|path| path.display().to_string());
    let running = s.start(s.line(&["--syscall-cores", "1", "--bind", &bind], &[&program, &names[0], &names[1]]))?;
    let shared = |pid: i32| {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        maps.lines().filter(|line| line.contains("janua-segments")).count()
    };
    // What a thread that has ended has left is closed by the service thread, soon.
    let mut left = None;
    for _ in 0..1000 {
        thread::sleep(Duration::from_millis(20));
        if ready.exists() {
            left = Some(running.processes().into_iter().map(shared).sum::<usize>());
        }
        if left == Some(0) {
            break;
        }
    }
    fs::write(&gone, "").map_err(|e| e.to_string())?;
    expect("waiting", &running.wait()?, 0, &["over"])?;
    if left == Some(0) { Ok(()) } else { Err(format!("{left:?} mappings of rings are left")) }
}
