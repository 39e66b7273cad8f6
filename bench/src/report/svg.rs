//! Plots as inline SVG: horizontal bars and distributions on a logarithmic scale.

use std::fmt::Write;

use super::escape;
use crate::stats::Summary;

/// Colours that stay apart for most eyes (Okabe and Ito).
const COLOURS: [&str; 8] = ["#555555", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#a0921f"];

const WIDTH: f64 = 980.0;
/// Where the scale begins and ends.
const LEFT: f64 = 340.0;
const RIGHT: f64 = 860.0;
/// Height of one bar.
const BAR: f64 = 13.0;
/// Room between groups of bars.
const GAP: f64 = 8.0;

/// What is drawn for one series in one group.
pub enum Mark<'a> {
    /// A bar from the scale's beginning, and the text at its end.
    Bar(f64, String),
    /// A distribution: a line from least to greatest, a box of the middle four fifths, a tick at the median.
    Spread(&'a Summary),
}

/// One group of marks under a label: series index and mark.
pub struct Group<'a> {
    pub label: String,
    pub marks: Vec<(usize, Mark<'a>)>,
}

/// A logarithmic scale in whole decades.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(values: impl Iterator<Item = f64>) -> Option<Scale> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            (low, high) = (low.min(value.log10()), high.max(value.log10()));
        }
        // A value at a decade's edge would have no bar: begin a little lower.
        (low <= high).then(|| Scale { low: (low - 0.05).floor(), high: (high + 0.001).ceil() })
    }

    /// How far along the scale a value is, from 0 to 1.
    fn part(&self, value: f64) -> f64 {
        ((value.max(f64::MIN_POSITIVE).log10() - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn at(&self, value: f64) -> f64 {
        LEFT + self.part(value) * (RIGHT - LEFT)
    }

    /// Values with a line and a label: decades, and 2 and 5 between when there is room.
    fn ticks(&self) -> Vec<f64> {
        let steps: &[f64] = if self.high - self.low <= 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let decades = self.low as i32..=self.high as i32;
        let all = decades.flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
        all.filter(|value| value.log10() <= self.high + 1e-9).collect()
    }
}

fn number(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{} G", v / 1e9),
        v if v >= 1e6 => format!("{} M", v / 1e6),
        v if v >= 1e4 => format!("{} k", v / 1e3),
        v if v >= 1.0 => format!("{v:.0}"),
        v => format!("{v}"),
    }
}

/// A plot. `axis` names the scale with its unit; `reference` draws a line, for example at native's 1. Empty without data.
pub fn plot(title: &str, axis: &str, series: &[String], groups: &[Group], reference: Option<(f64, &str)>) -> String {
    let values = groups.iter().flat_map(|group| &group.marks).flat_map(|(_, mark)| match mark {
        Mark::Bar(value, _) => vec![*value],
        Mark::Spread(summary) => vec![summary.min, summary.max],
    });
    let Some(scale) = Scale::of(values.chain(reference.iter().map(|(value, _)| *value))) else { return String::new() };
    let used = |index: usize| groups.iter().any(|group| group.marks.iter().any(|(s, _)| *s == index));
    let shown: Vec<(usize, &String)> = series.iter().enumerate().filter(|(index, _)| used(*index)).collect();
    let top = 46.0 + 18.0 * shown.len().div_ceil(4) as f64;
    let body: f64 = groups.iter().map(|group| group.marks.len() as f64 * BAR + GAP).sum();
    let height = top + body + 44.0;
    let mut svg = heading(title, height);
    legend(&mut svg, shown.into_iter());
    for tick in scale.ticks() {
        let x = scale.at(tick);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{}\" class=\"grid\"/><text x=\"{x:.1}\" y=\"{}\" class=\"tick\">{}</text>",
            top + body,
            top + body + 15.0,
            number(tick)
        );
    }
    let mut y = top + GAP / 2.0;
    for group in groups {
        let middle = y + group.marks.len() as f64 * BAR / 2.0 + 4.0;
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{middle:.1}\" class=\"label\">{}</text>", LEFT - 8.0, escape(&group.label));
        for (index, mark) in &group.marks {
            draw(&mut svg, &scale, y, *index, mark);
            y += BAR;
        }
        y += GAP;
    }
    if let Some((value, name)) = reference {
        let x = scale.at(value);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{}\" class=\"reference\"/><text x=\"{x:.1}\" y=\"{}\" class=\"tick\">{}</text>",
            top + body,
            top - 3.0,
            escape(name)
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" class=\"axis\">{}</text>\n</svg>",
        (LEFT + RIGHT) / 2.0,
        top + body + 34.0,
        escape(axis)
    );
    svg
}

/// One line of a plot of curves.
pub struct Line {
    pub name: String,
    /// Places and values, places rising.
    pub points: Vec<(f64, f64)>,
}

/// A plot of curves, both scales logarithmic. Places at or below 0 are at the left edge. Empty without data.
pub fn lines(title: &str, across: &str, up: &str, curves: &[Line]) -> String {
    const HEIGHT: f64 = 260.0;
    const TOP: f64 = 52.0;
    const SIDE: f64 = 80.0;
    let points = || curves.iter().flat_map(|line| &line.points);
    let Some(values) = Scale::of(points().map(|point| point.1)) else { return String::new() };
    let places = Scale::of(points().map(|point| point.0.max(1.0))).unwrap_or(Scale { low: 0.0, high: 1.0 });
    let x = |place: f64| SIDE + places.part(place) * (RIGHT - SIDE);
    let y = |value: f64| TOP + (1.0 - values.part(value)) * HEIGHT;
    let mut svg = heading(title, TOP + HEIGHT + 44.0);
    legend(&mut svg, curves.iter().map(|line| &line.name).enumerate());
    for tick in places.ticks() {
        let (x, bottom) = (x(tick), TOP + HEIGHT);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" class=\"grid\"/><text x=\"{x:.1}\" y=\"{}\" class=\"tick\">{}</text>",
            bottom + 15.0,
            number(tick)
        );
    }
    for tick in values.ticks() {
        let y = y(tick);
        let _ = writeln!(
            svg,
            "<line x1=\"{SIDE}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"grid\"/><text x=\"{}\" y=\"{:.1}\" class=\"label\">{}</text>",
            SIDE - 8.0,
            y + 4.0,
            number(tick)
        );
    }
    for (index, line) in curves.iter().enumerate() {
        let colour = colour(index);
        let place = |point: &(f64, f64)| format!("{:.1},{:.1}", x(point.0), y(point.1));
        let path: Vec<String> = line.points.iter().map(place).collect();
        let _ = writeln!(svg, "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>", path.join(" "));
        for point in &line.points {
            let _ = writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", x(point.0), y(point.1));
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" class=\"axis\">{}; upward: {}; both logarithmic</text>\n</svg>",
        (SIDE + RIGHT) / 2.0,
        TOP + HEIGHT + 34.0,
        escape(across),
        escape(up)
    );
    svg
}

/// An opened drawing with its title.
fn heading(title: &str, height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"{0}\">\n<title>{0}</title>\n\
         <text x=\"0\" y=\"16\" class=\"title\">{0}</text>\n",
        escape(title)
    )
}

/// Names beside their colours, four a line.
fn legend<'a>(svg: &mut String, names: impl Iterator<Item = (usize, &'a String)>) {
    for (place, (index, name)) in names.enumerate() {
        let (x, y) = ((place % 4) as f64 * 245.0, 38.0 + (place / 4) as f64 * 18.0);
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"12\" height=\"10\" fill=\"{}\"/><text x=\"{}\" y=\"{y}\">{}</text>",
            y - 9.0,
            colour(index),
            x + 17.0,
            escape(name)
        );
    }
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

fn draw(svg: &mut String, scale: &Scale, y: f64, index: usize, mark: &Mark) {
    let colour = colour(index);
    match mark {
        Mark::Bar(value, text) => {
            let end = scale.at(*value);
            let _ = writeln!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{}\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 class=\"value\">{}</text>",
                y + 1.0,
                end - LEFT,
                BAR - 2.0,
                end + 4.0,
                y + BAR - 2.5,
                escape(text)
            );
        }
        Mark::Spread(summary) => {
            let (least, greatest, median) = (scale.at(summary.min), scale.at(summary.max), scale.at(summary.median));
            let (low, high) = (scale.at(summary.p10), scale.at(summary.p90));
            let (width, above, below, middle) = (high - low, y + 1.0, y + BAR - 1.0, y + BAR / 2.0);
            let box_height = BAR - 2.0;
            let _ = writeln!(
                svg,
                "<line x1=\"{least:.1}\" x2=\"{greatest:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\" stroke=\"{colour}\"/>\
                 <rect x=\"{low:.1}\" y=\"{above:.1}\" width=\"{width:.1}\" height=\"{box_height}\" fill=\"{colour}\" \
                 fill-opacity=\"0.45\" stroke=\"{colour}\"/><line x1=\"{median:.1}\" x2=\"{median:.1}\" y1=\"{above:.1}\" \
                 y2=\"{below:.1}\" stroke=\"{colour}\" stroke-width=\"2.5\"/>"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(value: f64) -> Group<'static> {
        Group { label: "a < b".into(), marks: vec![(0, Mark::Bar(value, "t & u".into()))] }
    }

    #[test]
    fn nothing_is_drawn_without_data() {
        assert_eq!(plot("t", "a", &[], &[], None), "");
        assert_eq!(plot("t", "a", &["s".into()], &[group(0.0)], None), "");
    }

    #[test]
    fn texts_are_escaped_and_bars_inside() {
        let svg = plot("<t>", "ns & more", &["s\"".into()], &[group(100.0), group(1e6)], Some((1.0, "native")));
        for text in ["&lt;t&gt;", "ns &amp; more", "a &lt; b", "t &amp; u", "native"] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn the_scale_is_logarithmic() {
        let scale = Scale::of([10.0, 1000.0].into_iter()).unwrap();
        let step = scale.at(100.0) - scale.at(10.0);
        assert!((scale.at(1000.0) - scale.at(100.0) - step).abs() < 1e-6 && step > 0.0);
        assert!(scale.ticks().contains(&100.0));
        assert!(Scale::of(std::iter::empty()).is_none());
    }
}
