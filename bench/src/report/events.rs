//! Events beside the thesis' Tables 3 and 4, and the curve of waiting for several at once.

use std::fmt::Write;

use janua_probe::point_of;

use super::svg::{Line, lines};
use super::{escape, names, published};
use crate::events::{DELAYS, WAKES};
use crate::model::{Measurement, RowResult};
use crate::print::times;

/// The figures and tables of a measurement.
pub fn section(html: &mut String, measurement: &Measurement) {
    beside(html, measurement);
    let wakes: Vec<&RowResult> = measurement.rows.iter().filter(|row| row.group == WAKES).collect();
    let line = |name: String| {
        let point = |row: &&RowResult| Some((point_of(&row.name)? as f64, row.under(&name)?.median));
        Line { points: wakes.iter().filter_map(point).collect(), name }
    };
    let curves: Vec<Line> = names(measurement).into_iter().map(line).filter(|line| line.points.len() > 1).collect();
    if !curves.is_empty() {
        html.push_str(&lines(WAKES, "events waited for at once", "nanoseconds, medians", &curves));
    }
    multiples(html, measurement, &wakes);
}

/// Means and deviations in microseconds, and theirs.
fn beside(html: &mut String, measurement: &Measurement) {
    let rows: Vec<&RowResult> = measurement.rows.iter().filter(|row| row.group == DELAYS).collect();
    let Some(theirs) = published::events().filter(|_| !rows.is_empty()) else { return };
    let _ = write!(html, "<table>\n<tr><th>mean ± deviation, µs</th>");
    for name in names(measurement) {
        let _ = write!(html, "<th>{}</th>", escape(&name));
    }
    for column in &theirs.columns[1..] {
        let _ = write!(html, "<th>{} (theirs)</th>", escape(column));
    }
    html.push_str("</tr>\n");
    for (row, published) in rows.iter().filter_map(|row| Some((row, published::event(theirs, point_of(&row.name)?)?))) {
        let _ = write!(html, "<tr><td>{}</td>", escape(&row.title));
        for name in names(measurement) {
            match row.under(&name) {
                Some(summary) => {
                    let _ = write!(html, "<td>{:.0} ± {:.0}</td>", summary.mean / 1e3, summary.deviation / 1e3);
                }
                None => html.push_str("<td class=\"skip\">–</td>"),
            }
        }
        for cell in published {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        }
        html.push_str("</tr>\n");
    }
    let _ = writeln!(html, "</table>\n<p class=\"source\">“theirs”: {}</p>", escape(theirs.source));
}

/// What waiting for several costs as a multiple of waiting for one.
fn multiples(html: &mut String, measurement: &Measurement, wakes: &[&RowResult]) {
    let Some(one) = wakes.iter().find(|row| point_of(&row.name) == Some(1)) else { return };
    html.push_str("<table>\n<tr><th>median, as a multiple of one event’s</th>");
    for name in names(measurement) {
        let _ = write!(html, "<th>{}</th>", escape(&name));
    }
    html.push_str("</tr>\n");
    for row in wakes {
        let _ = write!(html, "<tr><td>{}</td>", escape(&row.title));
        for name in names(measurement) {
            let multiple = row.under(&name).zip(one.under(&name)).map(|(row, one)| times(row.median / one.median));
            let _ = write!(html, "<td>{}</td>", multiple.as_deref().unwrap_or("–"));
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
    fn the_thesis_figures_stand_beside_the_measured() {
        let mut measurement = example();
        let row = |name: &str, group: &str| RowResult { name: name.into(), group: group.into(), ..measurement.rows[0].clone() };
        let rows = vec![row("delay-3000", DELAYS), row("delay-100000", DELAYS), row("wake-1", WAKES), row("wake-64", WAKES)];
        measurement.rows = rows;
        let mut html = String::new();
        section(&mut html, &measurement);
        assert_eq!(html.matches("<svg").count(), 1);
        assert!(html.contains("3367 ± 506") && html.contains("160020 ± 84"), "{html}");
        assert!(!html.contains("30219"), "a row that was not measured");
        assert_eq!(html.matches("1.00 x").count(), 4, "{html}");
    }
}
