//! `cargo xtask`: builds Janua, checks its rules and runs its tests.
//!
//! Progress and diagnostics go to standard error; standard output carries results only.

#![forbid(unsafe_code)]

mod guard;
#[path = "../../test/random.rs"]
mod random;
mod rules;
mod scan;
mod suite;
mod tally;
mod workspace;

use std::process::ExitCode;

use janua_build::{build, packages, process, toolchain, user};

const HELP: &str = "\
Build, check and test Janua.

usage: cargo xtask COMMAND [ARGS]       (from anywhere: ./janua build, ./janua test)

  build [--boot|--leon3]  build the kernel image (with --boot also that for bare x86_64 machines, with --leon3 that for the LEON3 too)
                          and the `janua` command (target/release/janua)
  image [PLATFORM]        build the kernel image of a platform only (linux, x86_64, leon3) and print its path
  user                    build the system-call library and the applications on it (target/user)
  layers                  check the rules of the source tree (docs/rules.md)
  scan [FILE]             disassemble the kernel images, or FILE; fail on instructions they must not hold
  support                 write docs/support.md from the system-call tables
  test [SUITE] [FILTER]   run every suite, or one of them, or the tests in it whose name holds FILTER;
                          --quick: the first gate and C library only;
                          --native: the tests themselves, without Janua;
                          --long: the longer form of random and repeated tests;
                          --seed=N: the seed of random tests (without it JANUA_SEED, or else the number of the day);
                          --built: with the `janua` that stands, not built anew
  packages                list the Debian packages the build and the tests install, and why

JANUA_FAST=1 builds the kernel image incrementally and without link-time optimisation: quick to build, slow to run.

test suites, in the order they run:
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or(&[]);
    let result = match args.first().map(String::as_str) {
        Some("build") => build::command(rest).map(|()| ExitCode::SUCCESS),
        Some("image") => match rest.first().map(String::as_str) {
            None | Some("linux") => build::image(),
            Some("x86_64") => build::image_x86_64(),
            // The machine has no programs but these.
            Some("leon3") => build::image_leon3().and_then(|image| user::build(&user::LEON3).map(|_| image)),
            Some(other) => Err(format!("no such platform: {other} (there are linux, x86_64 and leon3)")),
        }
        .map(|image| {
            println!("{}", image.embedded.display());
            ExitCode::SUCCESS
        }),
        Some("user") => user::build(&user::X86_64).map(|built| {
            println!("{}\n{}", built.library.display(), built.programs.display());
            ExitCode::SUCCESS
        }),
        Some("layers") => rules::command(),
        Some("scan") => scan::command(rest.first().map(String::as_str)),
        Some("support") => suite::support::write().map(|()| ExitCode::SUCCESS),
        Some("test") => suite::command(rest),
        Some("guard") => guard::command(rest),
        Some("packages") => {
            packages::print();
            Ok(ExitCode::SUCCESS)
        }
        None | Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            suite::print_list();
            Ok(ExitCode::SUCCESS)
        }
        Some(other) => Err(format!("no such command: {other} (cargo xtask help lists them)")),
    };
    result.unwrap_or_else(|why| {
        eprintln!("xtask: {why}");
        ExitCode::FAILURE
    })
}
