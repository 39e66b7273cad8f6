//! Curves: one plot for each thing that there can be many of.

use janua_probe::point_of;

use super::svg::{Line, lines};
use crate::model::{Measurement, RowResult};
use crate::print::best;

/// A plot for each group of rows.
pub fn curves(html: &mut String, measurement: &Measurement) {
    let mut rest: &[RowResult] = &measurement.rows;
    while let Some(first) = rest.first() {
        let (curve, others) = rest.split_at(rest.iter().take_while(|row| row.group == first.group).count());
        html.push_str(&lines(&first.group, "N", "nanoseconds", &of(measurement, curve)));
        rest = others;
    }
}

/// A line for each configuration, from the points that were measured.
fn of(measurement: &Measurement, curve: &[RowResult]) -> Vec<Line> {
    let line = |name: &String| {
        let point = |row: &RowResult| Some((point_of(&row.name)? as f64, best(row.under(name)?, row.unit)));
        Line { name: name.clone(), points: curve.iter().filter_map(point).collect() }
    };
    measurement.configurations.iter().map(|configuration| line(&configuration.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::example;

    #[test]
    fn each_group_has_its_plot() {
        let mut measurement = example();
        let row = |name: &str, group: &str| RowResult { name: name.into(), group: group.into(), ..measurement.rows[0].clone() };
        let rows = vec![row("alive-10", "a fork"), row("alive-100", "a fork"), row("files-10", "a file")];
        measurement.rows = rows;
        let mut html = String::new();
        curves(&mut html, &measurement);
        assert_eq!(html.matches("<svg").count(), 2);
        assert_eq!(html.matches("<circle").count(), 2 * 3);
        assert!(html.contains("a fork") && html.contains("a file"));
    }
}
