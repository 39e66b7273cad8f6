//! The table on the terminal.

use std::fmt::Write;

use crate::model::{Kind, Measurement, NATIVE, NOISY, RowResult, Unit};
use crate::stats::Summary;

/// A number of a unit, short: three digits and the unit that suits.
pub fn amount(value: f64, unit: Unit) -> String {
    let (value, name) = match unit {
        Unit::Nanoseconds if value >= 1e9 => (value / 1e9, "s"),
        Unit::Nanoseconds if value >= 1e6 => (value / 1e6, "ms"),
        Unit::Nanoseconds if value >= 1e4 => (value / 1e3, "µs"),
        Unit::Nanoseconds => (value, "ns"),
        Unit::Instructions => (value, "insns"),
        Unit::Misses => (value, "misses"),
        Unit::Kibibytes if value >= 10240.0 => (value / 1024.0, "MiB"),
        Unit::Kibibytes => (value, "KiB"),
        Unit::PerSecond if value >= 1e4 => (value / 1e3, "k/s"),
        Unit::PerSecond => (value, "/s"),
    };
    let digits = if value >= 100.0 || value == 0.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {name}")
}

/// A ratio, short.
pub fn times(ratio: f64) -> String {
    let digits = if ratio >= 100.0 {
        0
    } else if ratio >= 10.0 {
        1
    } else {
        2
    };
    format!("{ratio:.digits$} x")
}

/// The figure that represents a row: the least time, the greatest rate.
pub fn best(summary: &Summary, unit: Unit) -> f64 {
    match unit {
        Unit::PerSecond => summary.max,
        Unit::Nanoseconds | Unit::Instructions | Unit::Misses | Unit::Kibibytes => summary.min,
    }
}

fn cell(kind: Kind, row: &RowResult, configuration: &str) -> String {
    let Some(summary) = row.under(configuration) else { return "-".into() };
    let figure = amount(best(summary, row.unit), row.unit);
    if kind == Kind::Tasks && summary.samples > 1 {
        // Of work that takes long, how much one run is like another is a part of the figure.
        return format!("{figure:>9} {:>9} ± {:<9}", amount(summary.median, row.unit), amount(summary.deviation, row.unit));
    }
    if configuration == NATIVE {
        let spread = summary.spread() * 100.0;
        let mark = if spread > NOISY * 100.0 { "~" } else { " " };
        return format!("{figure:>9} {:>9} {spread:>3.0} %{mark}", amount(summary.median, row.unit));
    }
    let ratio = row.ratio(configuration).map_or_else(String::new, times);
    let share = row.cells.iter().find(|cell| cell.configuration == configuration).and_then(|cell| cell.fast_share);
    let share = share.map_or_else(String::new, |share| format!(" {:.1} % fast", share * 100.0));
    format!("{figure:>9} {ratio:>8}{share}")
}

/// The whole text: machine, table, reasons, notes.
pub fn table(measurement: &Measurement) -> String {
    let mut text = String::new();
    let (machine, method, tool) = (&measurement.machine, &measurement.method, &measurement.tool);
    let _ = writeln!(
        text,
        "janua {} {}, image: {}\n{}, {} processors{}, Linux {}, {}",
        tool.version,
        tool.commit,
        tool.image,
        machine.processor,
        machine.processors,
        if machine.virtual_machine { " (virtual)" } else { "" },
        machine.kernel,
        measurement.date
    );
    let pinned = method.pinned.map_or_else(|| "not pinned".to_owned(), |cpu| format!("pinned to processor {cpu}"));
    let _ = writeln!(
        text,
        "{} rounds of up to {} samples, {pinned}; figures are {}\n",
        method.runs,
        method.samples,
        match measurement.kind {
            Kind::Tasks => "the best of all, median and standard deviation",
            _ => "the best of all, native also median and spread; ratios are best to best",
        }
    );
    let width = measurement.rows.iter().map(|row| row.title.chars().count()).max().unwrap_or(0);
    let columns: Vec<usize> = measurement
        .configurations
        .iter()
        .map(|c| {
            measurement
                .rows
                .iter()
                .map(|row| cell(measurement.kind, row, &c.name).chars().count())
                .max()
                .unwrap_or(0)
                .max(c.name.len())
        })
        .collect();
    let mut group = "";
    for row in &measurement.rows {
        if row.group != group {
            group = &row.group;
            let _ = write!(text, "{}{:width$}", if text.ends_with("\n\n") { "" } else { "\n" }, group.to_uppercase());
            for (configuration, column) in measurement.configurations.iter().zip(&columns) {
                let _ = write!(text, "   {:<column$}", configuration.name);
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        let _ = write!(text, "{:<width$}", row.title);
        for (configuration, column) in measurement.configurations.iter().zip(&columns) {
            let _ = write!(text, "   {:<column$}", cell(measurement.kind, row, &configuration.name));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    let reasons = reasons(measurement);
    for (title, lines) in [("not measured", reasons), ("note", measurement.notes.clone())] {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n{title}");
        }
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// Why rows and configurations are missing, one line a reason.
pub fn reasons(measurement: &Measurement) -> Vec<String> {
    let mut grouped: Vec<(String, Vec<String>)> = Vec::new();
    let mut note = |reason: &str, name: String| match grouped.iter_mut().find(|(known, _)| known == reason) {
        Some((_, names)) => names.push(name),
        None => grouped.push((reason.to_owned(), vec![name])),
    };
    for refused in &measurement.refused {
        note(&refused.reason, refused.name.clone());
    }
    for row in &measurement.rows {
        for cell in &row.cells {
            // What is only of the host is understood.
            if let Some(why) = cell.skipped.as_ref().filter(|why| *why != "of the host only") {
                note(why, format!("{} under {}", row.name, cell.configuration));
            }
        }
    }
    grouped.into_iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::example;

    #[test]
    fn amounts() {
        assert_eq!(amount(95.34, Unit::Nanoseconds), "95.3 ns");
        assert_eq!(amount(1234.0, Unit::Nanoseconds), "1234 ns");
        assert_eq!(amount(62_700.0, Unit::Nanoseconds), "62.7 µs");
        assert_eq!(amount(2.5e9, Unit::Nanoseconds), "2.50 s");
        assert_eq!(amount(104_000.0, Unit::PerSecond), "104 k/s");
        assert_eq!(amount(180.0, Unit::Kibibytes), "180 KiB");
        assert_eq!((times(0.4), times(12.34), times(154.2)), ("0.40 x".into(), "12.3 x".into(), "154 x".into()));
    }

    #[test]
    fn the_table_holds_every_row_and_reason() {
        let text = table(&example());
        for word in ["getppid by syscall", "10.0 x", "kvm/none: not built", "int80 under sud/none", "a < b"] {
            assert!(text.contains(word), "{word} is missing in\n{text}");
        }
        let tasks = table(&Measurement { kind: Kind::Tasks, ..example() });
        assert!(tasks.contains("1000 ns   1100 ns ± 100 ns") && tasks.contains("standard deviation"), "no spread in\n{tasks}");
    }
}
