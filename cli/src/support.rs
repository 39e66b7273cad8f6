//! `janua support`: the table of system calls.

use std::process::ExitCode;

use crate::args::Support;
use crate::exit;

/// Prints the table.
pub fn print(_: &Support) -> ExitCode {
    exit::fail(&"this build holds no personality, so there is no table of system calls")
}
