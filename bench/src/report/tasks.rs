//! The six tasks beside the thesis' Tables 5.2 to 5.7 and Figures 5.1 to 5.6.

use std::fmt::Write;

use janua_probe::tasks::LENGTHS;

use super::svg::{Group, Line, Mark, lines, plot};
use super::{bars, escape, names, published, short, theirs};
use crate::model::{Measurement, NATIVE, RowResult, Unit};
use crate::print::amount;

/// The configuration that others are compared with.
const HOME: &str = "home";

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
    crossovers(html, measurement);
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

/// Where it begins to pay to have calls made otherwise than one by one at home: over the size of a batch, and over the length of a call.
fn crossovers(html: &mut String, measurement: &Measurement) {
    let multiple = |row: &RowResult, name: &str| Some(row.under(name)?.min / row.under(HOME)?.min);
    let batch = |name: &str| name.strip_prefix("ring of ")?.parse::<f64>().ok();
    let in_memory = || measurement.rows.iter().filter(|row| row.name.starts_with("task") && row.name.ends_with("-memory"));
    let of_task = |row: &RowResult| {
        let points = measurement.configurations.iter().filter_map(|way| Some((batch(&way.name)?, multiple(row, &way.name)?)));
        Line { name: short(&row.title), points: points.collect() }
    };
    drawn(html, "Batches of the gate `ring`", "calls of a batch", in_memory().map(of_task).collect());
    let length = |row: &RowResult| {
        let number: usize = row.name.strip_prefix("task")?.strip_suffix("-memory")?.parse().ok()?;
        LENGTHS.get(number.checked_sub(6)?).map(|bytes| *bytes as f64)
    };
    let of_way = |name: String| {
        let points = in_memory().filter_map(|row| Some((length(row)?, multiple(row, &name)?))).collect();
        Line { name, points }
    };
    let ways = names(measurement).into_iter().filter(|name| name != HOME && name != NATIVE);
    drawn(html, "Lengths of a call", "bytes that one call reads", ways.map(of_way).collect());
}

/// Lines of multiples of home's least time, and where each first is home's.
fn drawn(html: &mut String, title: &str, across: &str, mut curves: Vec<Line>) {
    curves.retain(|curve| curve.points.len() > 1);
    if curves.is_empty() {
        return;
    }
    let crossing = |curve: &Line| match crossover(&curve.points) {
        Some(at) => format!("{}: from {} on", curve.name, at.round()),
        None => format!("{}: nowhere", curve.name),
    };
    let crossings: Vec<String> = curves.iter().map(crossing).collect();
    html.push_str(&lines(title, across, "multiple of home’s least time", &curves));
    let _ = writeln!(html, "<p>Not dearer than at home ({}): {}.</p>", escape(across), escape(&crossings.join("; ")));
}

/// From where on all points are at most 1: between two points on a line through their logarithms.
fn crossover(points: &[(f64, f64)]) -> Option<f64> {
    let first = points.len() - points.iter().rev().take_while(|(_, multiple)| *multiple <= 1.0).count();
    let (at, multiple) = *points.get(first)?;
    let Some((before, above)) = first.checked_sub(1).and_then(|before| points.get(before)) else { return Some(at) };
    let part = above.ln() / (above.ln() - multiple.ln());
    Some((before.ln() + part * (at.ln() - before.ln())).exp())
}

/// Least times, medians, means and deviations, and home's multiple.
fn spread(html: &mut String, measurement: &Measurement) {
    html.push_str("<table>\n<tr><th>least; median; mean ± deviation (multiple of home’s mean)</th>");
    for name in names(measurement) {
        let _ = write!(html, "<th>{}</th>", escape(&name));
    }
    html.push_str("</tr>\n");
    for row in &measurement.rows {
        let _ = write!(html, "<tr><td>{}</td>", escape(&row.title));
        let home = row.under(HOME).map(|summary| summary.mean);
        for name in names(measurement) {
            let Some(summary) = row.under(&name) else {
                html.push_str("<td class=\"skip\">–</td>");
                continue;
            };
            let deviation =
                if summary.samples > 1 { format!(" ± {}", amount(summary.deviation, row.unit)) } else { String::new() };
            let multiple =
                home.filter(|home| *home > 0.0 && name != HOME).map(|home| format!(" ({:.2} x)", summary.mean / home));
            let figure = |value| amount(value, row.unit);
            let (least, median, mean) = (figure(summary.min), figure(summary.median), figure(summary.mean));
            let _ = write!(html, "<td>{least}; {median}; {mean}{deviation}{}</td>", multiple.unwrap_or_default());
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::example;

    #[test]
    fn a_crossover_is_between_the_points_around_it() {
        assert_eq!(crossover(&[(1.0, 4.0), (16.0, 0.25)]).map(f64::round), Some(4.0));
        assert_eq!(crossover(&[(1.0, 0.9), (4.0, 0.5)]), Some(1.0), "everywhere");
        assert_eq!(crossover(&[(1.0, 0.9), (4.0, 1.5)]), None, "not for good");
        assert_eq!(crossover(&[(1.0, 2.0), (4.0, 1.0)]), Some(4.0));
    }

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
