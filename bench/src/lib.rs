//! `janua bench` and `janua report`: measuring gates, calls and programs, natively and on Janua, in the same run.
//!
//! What is measured is [`janua_probe`], which runs unchanged natively and as a guest, and programs of the machine. Every round
//! measures native and each gate with its jail in turn, so that whatever disturbs the machine disturbs them alike; a figure is
//! the least of all rounds, and a ratio is one of two figures of the same run.

#![forbid(unsafe_code)]

mod apps;
pub mod bare;
mod choice;
pub mod emulated;
mod events;
mod invasive;
mod machine;
mod messages;
pub mod model;
mod pingpong;
mod print;
mod private;
mod probe;
mod programs;
pub mod report;
mod rows;
pub mod stats;
pub mod tasks;
mod whole;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use model::{Kind, Measurement};

/// What `janua bench` was asked to do.
pub struct Plan {
    pub kind: Kind,
    /// What carries the kernel, for [`Kind::Invasive`]; for [`Kind::Events`] what does besides Linux.
    pub platform: Platform,
    /// Gates to try, by name; those this machine or this build lacks are skipped with the reason.
    pub gates: Vec<String>,
    /// Jails to try, by name.
    pub jails: Vec<String>,
    /// Whether gates and jails were named by the user: one that does not work is an error then.
    pub named: bool,
    /// Rows to measure, by name; empty: all of the kind.
    pub only: Vec<String>,
    /// Rounds.
    pub runs: usize,
    /// The most samples of a row in one round.
    pub samples: usize,
    /// Where to write the measurement.
    pub json: Option<PathBuf>,
    /// The janua command, which is measured.
    pub command: PathBuf,
    /// Time slices of the bare machine's scheduler, as `janua boot --slice` has them, each of which is measured; none: the one it has by itself.
    pub slices: &'static [&'static str],
    /// The bare machine is measured too.
    pub emulated: Option<emulated::Tree>,
    /// The profile its kernel image was built with.
    pub image: &'static str,
}

/// What carries the measured kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    Linux,
    /// Under QEMU: instructions are counted, and time is emulated.
    X86_64,
    /// Under QEMU, where instructions are counted.
    Leon3,
}

/// Why nothing was measured, for people.
#[derive(Debug)]
pub struct Failure(pub String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Failure {
    fn new<T>(why: impl Into<String>) -> Result<T, Failure> {
        Err(Failure(why.into()))
    }
}

/// Measures, prints the table on standard output, and writes the file.
pub fn run(plan: &Plan) -> Result<(), Failure> {
    // Before minutes are spent.
    let create = || plan.json.as_deref().map(|path| create(path).map(|file| (path, file))).transpose();
    let (file, measurement) = match plan.kind {
        Kind::Invasive => (create()?, invasive::measure(plan)?),
        Kind::Pingpong => (create()?, pingpong::measure(plan)?),
        Kind::Messages => (create()?, messages::measure(plan)?),
        Kind::Events => (create()?, events::measure(plan)?),
        _ => {
            let rows = rows::chosen(plan)?;
            let choice = choice::discover(plan)?;
            (create()?, rows::measure(plan, &rows, choice))
        }
    };
    deliver(&measurement, file)
}

/// Prints the table, and writes the file if there is one.
fn deliver(measurement: &Measurement, file: Option<(&std::path::Path, File)>) -> Result<(), Failure> {
    let printed = show(&print::table(measurement));
    if let Some((path, mut file)) = file {
        let text = measurement.to_json();
        file.write_all(text.as_bytes()).map_err(|error| Failure(format!("{}: {error}", path.display())))?;
        eprintln!("written: {0} (janua report {0} makes a page of it)", path.display());
    }
    printed
}

/// Prints on standard output. A reader that closes early has seen what it wanted; any other loss is an error.
pub fn show(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Failure::new(format!("cannot write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// The names and titles of a kind's rows.
pub fn list(kind: Kind) -> String {
    let mut text = String::new();
    for (name, title) in rows::all(kind) {
        text += &format!("{name:<16} {title}\n");
    }
    text
}

fn create(path: &std::path::Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| Failure(format!("cannot write {}: {error}", path.display())))
}

/// Makes one page of the measurements in `files`.
pub fn report(files: &[PathBuf], output: &std::path::Path) -> Result<(), Failure> {
    let (mut measurements, mut left_out) = (Vec::new(), Vec::new());
    for path in files {
        match measurement(path) {
            Ok(measurement) => measurements.push(measurement),
            Err(Failure(why)) => left_out.push(why),
        }
    }
    if measurements.is_empty() && !left_out.is_empty() {
        return Err(Failure(left_out.join("\n")));
    }
    let page = report::page(&measurements);
    create(output)?
        .write_all(page.as_bytes())
        .map_err(|error| Failure(format!("cannot write {}: {error}", output.display())))?;
    eprintln!("written: {}", output.display());
    // The page is made from the others.
    if left_out.is_empty() { Ok(()) } else { Err(Failure(format!("not on the page: {}", left_out.join("\n")))) }
}

/// What a file contains.
fn measurement(path: &std::path::Path) -> Result<Measurement, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure(format!("cannot read {}: {error}", path.display())))?;
    Measurement::from_json(&text)
        .map_err(|why| Failure(format!("{}: {why}\n       give files that `janua bench --json FILE` wrote", path.display())))
}

/// The measured program, given its arguments: `janua probe`.
pub fn probe_main(args: &[std::ffi::OsString]) -> ExitCode {
    janua_probe::main(args)
}
