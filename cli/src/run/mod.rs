//! `janua run`: loads the kernel image, starts the program on it and supervises the sandbox.

use std::process::ExitCode;

use crate::exit;
use crate::options::RunOptions;

/// The kernel image, as built by `cargo xtask image`.
#[allow(dead_code, reason = "read by the loader")]
static IMAGE: &[u8] = include_bytes!(env!("JANUA_IMAGE_LINUX"));

/// Runs the program and gives its exit code.
pub fn run(options: RunOptions) -> ExitCode {
    exit::fail(&format!(
        "cannot run {}: this build has no loader for its kernel image",
        options.program.to_string_lossy()
    ))
}
