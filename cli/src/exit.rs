//! Exit codes of `janua`, those a shell user knows.

use std::fmt::Display;
use std::process::ExitCode;

/// Janua itself failed: bad arguments, a missing facility of the host, a fault in the kernel.
pub const JANUA: u8 = 125;

/// A mistake in the command line of a command that runs no program.
pub const USAGE: u8 = 2;

/// The program was found and could not be executed.
#[allow(dead_code, reason = "used by the loader")]
pub const NOT_EXECUTABLE: u8 = 126;

/// The program was not found.
#[allow(dead_code, reason = "used by the loader")]
pub const NOT_FOUND: u8 = 127;

/// Prints why janua failed, on standard error, and gives the exit code for it.
pub fn fail(why: &dyn Display) -> ExitCode {
    eprintln!("janua: {why}");
    ExitCode::from(JANUA)
}
