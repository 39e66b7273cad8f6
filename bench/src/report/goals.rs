//! What Janua sets out to reach, and what was measured of it.

use std::fmt::Write;

use super::escape;
use super::published::best_peer;
use crate::model::{Measurement, NATIVE, RowResult};
use crate::print::{amount, best, times};

/// How a goal is put.
enum Goal {
    /// At most this multiple of native.
    Times(f64),
    /// At most this much more than native, in the row's unit.
    More(f64),
}

/// Goals by row, for the gate and jail that are the default.
const GOALS: &[(&str, Goal)] = &[
    ("syscall", Goal::Times(0.55)),
    ("syscall-2thr", Goal::Times(0.55)),
    ("fork-wait", Goal::Times(2.0)),
    ("fork-exec-wait", Goal::Times(2.0)),
    ("stat", Goal::Times(0.9)),
    ("pread-4k", Goal::Times(1.8)),
    ("open-close", Goal::Times(3.2)),
    ("pipe", Goal::Times(2.4)),
    ("futex-thr", Goal::Times(1.5)),
    ("fault", Goal::Times(1.0)),
    ("start", Goal::More(8e6)),
    ("memory-1", Goal::More(200.0)),
    ("memory-10", Goal::More(200.0)),
    ("memory-100", Goal::More(200.0)),
    ("compile", Goal::Times(1.15)),
    ("find", Goal::Times(1.15)),
    ("python-sqlite", Goal::Times(1.15)),
    ("git-status", Goal::Times(1.15)),
    ("redis-set", Goal::Times(1.0)),
    ("redis-get", Goal::Times(1.0)),
    // Native is the thesis' method there.
    ("empty-0", Goal::Times(0.6)),
];

/// The last measurement that has a result of the row under its first gate and jail, the row, and that configuration's name.
fn latest<'a>(measurements: &'a [Measurement], name: &str) -> Option<(&'a RowResult, &'a str)> {
    measurements.iter().rev().find_map(|measurement| {
        let configuration = measurement.configurations.iter().find(|c| c.name != NATIVE)?;
        let row = measurement.rows.iter().find(|row| row.name == name)?;
        (row.under(&configuration.name).is_some() && row.under(NATIVE).is_some()).then_some((row, configuration.name.as_str()))
    })
}

/// The table of goals; empty when none was measured.
pub fn table(measurements: &[Measurement]) -> String {
    let mut lines = String::new();
    for (name, goal) in GOALS {
        let Some((row, configuration)) = latest(measurements, name) else { continue };
        let (Some(native), Some(own)) = (row.under(NATIVE), row.under(configuration)) else { continue };
        let (native, own) = (best(native, row.unit), best(own, row.unit));
        let (measured, wanted, reached) = match goal {
            Goal::Times(most) => match row.ratio(configuration) {
                Some(ratio) => (times(ratio), format!("at most {}", times(*most)), ratio <= *most),
                None => continue,
            },
            Goal::More(most) => {
                let more = own - native;
                (
                    format!("+{}", amount(more.max(0.0), row.unit)),
                    format!("at most +{}", amount(*most, row.unit)),
                    more <= *most,
                )
            }
        };
        let peer = best_peer(name).map_or_else(|| "–".into(), |(ratio, who)| format!("{} ({who})", times(ratio)));
        let (class, word) = if reached { (" class=\"better\"", "reached") } else { ("", "not yet") };
        let _ = writeln!(
            lines,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{measured}</td><td>{wanted}</td><td{class}>{word}</td><td>{}</td></tr>",
            escape(&row.title),
            amount(native, row.unit),
            escape(configuration),
            amount(own, row.unit),
            escape(&peer),
        );
    }
    if lines.is_empty() {
        return lines;
    }
    format!(
        "<section>\n<h2>Goals</h2>\n<table>\n<tr><th>row</th><th>native</th><th>under</th><th>Janua</th><th>measured</th><th>goal</th>\
         <th></th><th>best peer</th></tr>\n{lines}</table>\n</section>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::example;

    #[test]
    fn goals_are_compared() {
        let mut measurement = example();
        assert!(table(std::slice::from_ref(&measurement)).contains("not yet"));
        let row = &mut measurement.rows[0];
        row.cells.swap(0, 1);
        row.cells[0].configuration = NATIVE.into();
        row.cells[1].configuration = "sud/none".into();
        let table = table(&[measurement]);
        assert!(table.contains("reached") && table.contains("0.10 x"), "{table}");
    }

    #[test]
    fn nothing_measured_no_table() {
        assert_eq!(table(&[]), "");
    }
}
