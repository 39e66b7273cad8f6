//! Runs the measured program and collects its samples.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use janua_probe::Row;

use crate::choice::start_arguments;
use crate::machine::Pinned;
use crate::model::{Configuration, Kind};
use crate::{Plan, emulated};

/// How long one row may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// The same for a point of a curve: ten thousand things are made first.
const LONG_PATIENCE: Duration = Duration::from_secs(120);

/// The samples of one configuration so far: by row, in ticks, or why there are none.
#[derive(Default)]
pub struct Collected {
    pub samples: BTreeMap<&'static str, Vec<f64>>,
    pub skipped: BTreeMap<&'static str, String>,
}

/// One round of `rows` under a configuration, pinned when a processor is given. A row that fails is not tried again.
pub fn round(plan: &Plan, configuration: &Configuration, rows: &[&'static Row], pin: Option<usize>, into: &mut Collected) {
    let mut rows: Vec<&'static Row> = rows.iter().copied().filter(|row| !into.skipped.contains_key(row.name)).collect();
    // What a thousand things leave behind is not the next point's.
    let at_once = if plan.kind == Kind::Scale { 1 } else { usize::MAX };
    while !rows.is_empty() {
        let done = once(plan, configuration, &rows[..rows.len().min(at_once)], pin, into);
        // What fell is skipped now; what comes after it is measured by a new process.
        rows.drain(..done);
    }
}

/// Measures rows in order by one process; returns how many are dealt with, at least one.
fn once(plan: &Plan, configuration: &Configuration, rows: &[&'static Row], pin: Option<usize>, into: &mut Collected) -> usize {
    let mut command = Command::new(&plan.command);
    let emulated = configuration.name == emulated::NAME;
    command.args(start_arguments(plan, configuration, rows[0].cores));
    command.arg("probe").args(["--samples", &plan.samples.to_string()]).args(rows.iter().map(|row| row.name));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let spawned = {
        // An emulator has threads besides its processors'.
        let _pinned = pin.filter(|_| !emulated).map(|processor| Pinned::to(Some(processor)));
        command.spawn()
    };
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            into.skipped.insert(rows[0].name, format!("{}: {error}", plan.command.display()));
            return 1;
        }
    };
    let (output, errors) = (lines(child.stdout.take()), lines(child.stderr.take()));
    let mut done = 0;
    let patience = if plan.kind == Kind::Scale { LONG_PATIENCE } else { PATIENCE };
    let why = loop {
        match output.recv_timeout(patience) {
            Ok(line) => done += usize::from(take(&line, rows, into)),
            Err(RecvTimeoutError::Timeout) => {
                // Janua ends its guests with itself.
                let _ = child.kill();
                break format!("not done after {} seconds", patience.as_secs());
            }
            Err(RecvTimeoutError::Disconnected) => break String::new(),
        }
    };
    let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    if done < rows.len() {
        let why =
            if why.is_empty() { format!("the measuring program ended early ({status}) {}", last_words(&errors)) } else { why };
        into.samples.remove(rows[done].name);
        into.skipped.insert(rows[done].name, why.trim().to_owned());
        done += 1;
    }
    done
}

/// The lines of a child's output, as they come.
fn lines(output: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(output) = output {
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}

/// The first of what was written to standard error, on one line.
fn last_words(errors: &Receiver<String>) -> String {
    let mut said = Vec::new();
    while let Ok(line) = errors.recv_timeout(Duration::from_millis(200)) {
        if !line.trim().is_empty() && said.len() < 2 {
            said.push(line.trim().to_owned());
        }
    }
    said.join("; ")
}

/// Takes one line in; whether it closes a row.
fn take(line: &str, rows: &[&'static Row], into: &mut Collected) -> bool {
    let mut words = line.splitn(3, ' ');
    let (kind, name, rest) = (words.next(), words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let Some(row) = rows.iter().find(|row| row.name == name) else { return false };
    match kind {
        Some("row") => {
            let samples = rest.split(' ').filter_map(|number| number.parse::<f64>().ok());
            into.samples.entry(row.name).or_default().extend(samples);
            true
        }
        Some("skip") => {
            into.skipped.insert(row.name, rest.to_owned());
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let rows: Vec<&'static Row> = janua_probe::ROWS.iter().take(3).collect();
        let (first, second) = (rows[0].name, rows[1].name);
        let mut into = Collected::default();
        assert!(!take(&format!("begin {first}"), &rows, &mut into));
        assert!(take(&format!("row {first} 1.5 2"), &rows, &mut into));
        assert!(take(&format!("row {first} 3"), &rows, &mut into));
        assert!(take(&format!("skip {second} no such thing"), &rows, &mut into));
        assert!(!take("row nothing 1", &rows, &mut into));
        assert!(!take("", &rows, &mut into));
        assert_eq!(into.samples[first], [1.5, 2.0, 3.0]);
        assert_eq!(into.skipped[second], "no such thing");
    }
}
