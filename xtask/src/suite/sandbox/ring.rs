//! Rings of calls, served by the thread itself and by a module.

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
