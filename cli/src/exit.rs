//! Exit codes of `janua`, those a shell user knows.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// Janua itself failed: bad arguments, a missing facility of the host, a fault in the kernel.
pub const JANUA: u8 = 125;

/// A mistake in the command line of a command that runs no program.
pub const USAGE: u8 = 2;

/// The program was found and could not be executed.
#[allow(dead_code, reason = "used by the loader")]
pub const NOT_EXECUTABLE: u8 = 126;

/// The program was not found.
pub const NOT_FOUND: u8 = 127;

/// Prints why janua failed, on standard error, and gives the exit code for it.
pub fn fail(why: &dyn Display) -> ExitCode {
    say(&format_args!("janua: {why}\n"));
    ExitCode::from(JANUA)
}

/// Writes to standard error. Where that takes nothing (a full disk, a reader that has gone) there is nobody else to report to, and the exit code
/// stays what it is.
pub fn say(what: &dyn Display) {
    let _ = write!(io::stderr(), "{what}");
}

/// Prints on standard output: the exit code. A reader that closes early (`| head`) has seen what it wanted; any other loss is an error.
pub fn print(text: &[u8]) -> ExitCode {
    let mut out = io::stdout().lock();
    printed(out.write_all(text).and_then(|()| out.flush()))
}

/// The exit code when this has come of printing on standard output.
pub fn printed(result: io::Result<()>) -> ExitCode {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => fail(&format!("cannot write to standard output: {error}")),
        _ => ExitCode::SUCCESS,
    }
}
