//! The bare x86_64 machine's gates in the report: what each costs beside page-table isolation, and the article's two tables row by row.

use std::fmt::Write;

use super::published::{GETTIMEOFDAY, GETTIMEOFDAY_SOURCE};
use super::svg::plot;
use super::{bars, escape, names, theirs};
use crate::bare::{ARTICLE, GATES, WHAT_INSTRUCTIONS_ARE};
use crate::model::Measurement;

/// What a row's name begins with, and a column's heading.
const FIGURES: [(&str, &str); 3] = [("count", "instructions"), ("walks", "page-table walks"), ("emulated", "emulated ns")];

/// Whether the measurement is of the bare machine.
pub fn is_bare(measurement: &Measurement) -> bool {
    measurement.configurations.iter().any(|configuration| configuration.name.starts_with("x86_64 kpti"))
}

/// Plots, tables, and what the figures are and are not.
pub fn gates(html: &mut String, measurement: &Measurement) {
    let series = names(measurement);
    for (prefix, title, axis) in [
        ("count", "getppid by every gate: instructions", "instructions per call, not time, logarithmic"),
        ("emulated", "getppid by every gate: emulated time", "nanoseconds of QEMU’s per call, not a processor’s, logarithmic"),
    ] {
        let rows = GATES.iter().filter_map(|(gate, _)| {
            let name = format!("{prefix}-null-{gate}-0");
            measurement.rows.iter().find(|row| row.name == name)
        });
        html.push_str(&plot(title, axis, &series, &bars(measurement, rows), None));
    }
    let gates = GATES.iter().map(|(gate, title)| (format!("null-{gate}-0"), *title, Vec::new()));
    table(html, measurement, "getppid by", &[], gates.collect());
    let article = ARTICLE.iter().map(|(name, title)| {
        let published = GETTIMEOFDAY.iter().find(|(known, ..)| known == name);
        let figures = published.map(|(_, on, off)| vec![*on, *off]).unwrap_or_default();
        ((*name).to_owned(), *title, figures)
    });
    let mut rows = String::new();
    table(
        &mut rows,
        measurement,
        "gettimeofday by",
        &["ns, isolation on (theirs)", "ns, isolation off (theirs)"],
        article.collect(),
    );
    theirs(html, &rows, GETTIMEOFDAY_SOURCE);
    let _ = writeln!(html, "<p>{}</p>", escape(WHAT_INSTRUCTIONS_ARE));
}

/// A table of rows, each with the others' figures and ours of every configuration. Rows without any of ours are left out.
fn table(html: &mut String, measurement: &Measurement, head: &str, others: &[&str], rows: Vec<(String, &str, Vec<f64>)>) {
    let _ = write!(html, "<table>\n<tr><th>{head}</th>");
    for other in others {
        let _ = write!(html, "<th>{}</th>", escape(other));
    }
    let columns: Vec<(&str, &str, String)> = FIGURES
        .iter()
        .flat_map(|(prefix, what)| names(measurement).into_iter().map(move |name| (*prefix, *what, name)))
        .collect();
    for (_, what, name) in &columns {
        let _ = write!(html, "<th>{what}, {}</th>", escape(name.trim_start_matches("x86_64 ")));
    }
    html.push_str("</tr>\n");
    for (name, title, theirs) in rows {
        let figure = |(prefix, _, configuration): &(&str, &str, String)| {
            let row = measurement.rows.iter().find(|row| row.name == format!("{prefix}-{name}"))?;
            row.under(configuration).map(|summary| summary.min)
        };
        let figures: Vec<Option<f64>> = columns.iter().map(figure).collect();
        if figures.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(html, "<tr><td>{}</td>", escape(title));
        for value in theirs.into_iter().map(Some).chain(figures) {
            match value {
                Some(value) => {
                    let _ = write!(html, "<td>{value:.0}</td>");
                }
                None => html.push_str("<td class=\"skip\">–</td>"),
            }
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Cell, Configuration, Kind, Machine, Method, RowResult, SCHEMA, Tool, Unit};
    use crate::stats::Summary;

    #[test]
    fn the_articles_rows_stand_beside_ours() {
        let configuration = Configuration { name: "x86_64 kpti on".into(), gate: None, jail: None };
        let cell = |value: f64| Cell {
            configuration: configuration.name.clone(),
            result: Summary::of(&[value]),
            skipped: None,
            fast_share: None,
        };
        let row = |name: &str, unit, value| RowResult {
            name: name.into(),
            title: name.into(),
            group: "g".into(),
            unit,
            cells: vec![cell(value)],
        };
        let measurement = Measurement {
            schema: SCHEMA,
            kind: Kind::Gates,
            date: String::new(),
            tool: Tool { version: String::new(), commit: String::new(), image: String::new() },
            machine: Machine::default(),
            method: Method::default(),
            configurations: vec![configuration.clone()],
            refused: Vec::new(),
            rows: vec![
                row("count-null-int30-0", Unit::Instructions, 49.0),
                row("walks-null-int30-0", Unit::Misses, 13.0),
                row("count-tod-syscall", Unit::Instructions, 177.0),
            ],
            notes: Vec::new(),
        };
        assert!(is_bare(&measurement));
        let mut html = String::new();
        gates(&mut html, &measurement);
        assert!(html.contains("<tr><td>int 0x30</td><td>49</td><td>13</td><td class=\"skip\">–</td></tr>"), "{html}");
        assert!(html.contains("<tr><td>syscall</td><td>278</td><td>103</td><td>177</td>"), "{html}");
        // Nothing of ours: no row.
        assert!(!html.contains("vDSO-32"), "{html}");
    }
}
