//! What `./janua build` runs: [`build::command`], with its progress on standard error.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use janua_build::build;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match build::command(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
