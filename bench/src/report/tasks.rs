//! The six tasks beside the thesis' Tables 5.2 to 5.7 and Figures 5.1 to 5.6.

use std::fmt::Write;

use super::svg::{Group, Mark, plot};
use super::{bars, escape, names, published, short, theirs};
use crate::model::{Measurement, Unit};
use crate::print::amount;

/// The figures and tables of a measurement.
pub fn section(html: &mut String, measurement: &Measurement) {
    let mut groups: Vec<(&str, Unit)> = Vec::new();
    for row in &measurement.rows {
        if !groups.iter().any(|(name, _)| *name == row.group) {
            groups.push((&row.group, row.unit));
        }
    }
    for (group, unit) in groups {
        match unit {
            Unit::Nanoseconds => times(html, measurement, group),
            _ => {
                let bars = bars(measurement, measurement.rows.iter().filter(|row| row.group == group));
                html.push_str(&plot(group, "logarithmic", &names(measurement), &bars, None));
            }
        }
    }
    spread(html, measurement);
}

/// Times beside the thesis', which are of another machine and of more work: what compares is one of its bars with the other.
fn times(html: &mut String, measurement: &Measurement, group: &str) {
    let mut series = names(measurement);
    let own = series.len();
    series.extend(["zCore (theirs)".into(), "asynchronous (theirs)".into()]);
    let rows = || measurement.rows.iter().filter(|row| row.group == group);
    let disk = group.ends_with("disk");
    let mut drawn: Vec<Group> = Vec::new();
    for row in rows() {
        let mut marks = bars(measurement, std::iter::once(row)).pop().map(|group| group.marks).unwrap_or_default();
        let number = row.name.strip_prefix("task").and_then(|rest| rest[..1].parse::<usize>().ok());
        if let Some(cells) = number.and_then(published::task) {
            for (at, cell) in cells.iter().skip(if disk { 2 } else { 0 }).take(2).enumerate() {
                let value = cell * 1e6;
                marks.push((own + at, Mark::Bar(value, amount(value, Unit::Nanoseconds))));
            }
        }
        drawn.push(Group { label: short(&row.title), marks });
    }
    let figure = plot(&format!("The tasks: {group}"), "nanoseconds, logarithmic", &series, &drawn, None);
    theirs(html, &figure, published::ZCORE);
}

/// Means and deviations, and home's multiple.
fn spread(html: &mut String, measurement: &Measurement) {
    html.push_str("<table>\n<tr><th>mean ± deviation (multiple of home’s mean)</th>");
    for name in names(measurement) {
        let _ = write!(html, "<th>{}</th>", escape(&name));
    }
    html.push_str("</tr>\n");
    for row in &measurement.rows {
        let _ = write!(html, "<tr><td>{}</td>", escape(&row.title));
        let home = row.under("home").map(|summary| summary.mean);
        for name in names(measurement) {
            let Some(summary) = row.under(&name) else {
                html.push_str("<td class=\"skip\">–</td>");
                continue;
            };
            let deviation =
                if summary.samples > 1 { format!(" ± {}", amount(summary.deviation, row.unit)) } else { String::new() };
            let multiple =
                home.filter(|home| *home > 0.0 && name != "home").map(|home| format!(" ({:.2} x)", summary.mean / home));
            let _ = write!(html, "<td>{}{deviation}{}</td>", amount(summary.mean, row.unit), multiple.unwrap_or_default());
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RowResult;
    use crate::model::tests::example;

    #[test]
    fn the_thesis_figures_stand_beside_the_measured() {
        let mut measurement = example();
        let row = |name: &str, group: &str, unit| RowResult {
            name: name.into(),
            title: name.into(),
            group: group.into(),
            unit,
            ..measurement.rows[0].clone()
        };
        let rows = vec![
            row("task0-memory", "time, files in memory", Unit::Nanoseconds),
            row("task0-disk", "time, files on a disk", Unit::Nanoseconds),
            row("task0-memory-L1D-core-0", "misses", Unit::Misses),
        ];
        measurement.rows = rows;
        let mut html = String::new();
        section(&mut html, &measurement);
        assert_eq!(html.matches("<svg").count(), 3);
        assert!(html.contains("21.4 s") && html.contains("4.94 s"), "the thesis' task 0 in memory");
        assert!(html.contains("5.02 s"), "and on its disk");
    }
}
