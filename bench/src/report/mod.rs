//! `janua report`: one self-contained page of any number of measurements.

mod bare;
mod events;
mod goals;
pub(crate) mod published;
mod scale;
mod svg;
mod tasks;

use std::fmt::Write;

use crate::model::{Configuration, Kind, Measurement, NATIVE, NOISY, RowResult, Unit};
use crate::print::{amount, best, reasons, times};
use published::{Published, TABLES, best_peer};
use svg::{Group, Mark, plot};

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;color:#1b1b1b;background:#fff;max-width:1020px;margin:2em auto;padding:0 1em}
h1{font-size:1.7em}h2{margin-top:2.2em;border-bottom:1px solid #ccc}h3{margin-top:1.8em}
table{border-collapse:collapse;font-size:13px;margin:1em 0}th,td{padding:3px 9px;border-bottom:1px solid #e2e2e2;text-align:right;
vertical-align:top}th{background:#f4f4f4;border-bottom:1px solid #bbb}th:first-child,td:first-child{text-align:left}
table.facts td{text-align:left}td.better{color:#00664b;font-weight:600}td.skip{color:#777}td.group{background:#fafafa;font-weight:600}
.source{color:#555;font-size:13px}.note{background:#fff6dd;border-left:4px solid #e69f00;padding:.4em .8em;margin:.6em 0}
.theirs{border-left:4px solid #56b4e9;padding-left:.9em}details{margin:.8em 0}summary{cursor:pointer}
svg{display:block;margin:1.2em 0;max-width:100%;height:auto;font:11.5px system-ui,sans-serif}
svg .title{font-size:14px;font-weight:600}svg .label{text-anchor:end}svg .tick{text-anchor:middle;fill:#555}
svg .axis{text-anchor:middle;fill:#333}svg .value{fill:#333;font-size:10.5px}svg .grid{stroke:#e3e3e3}
svg .reference{stroke:#c00;stroke-dasharray:4 3}";

/// Text made safe inside an element or a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// The page.
pub fn page(measurements: &[Measurement]) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Janua: measurements</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>Janua: measurements</h1>\n"
    );
    html.push_str(
        "<p>Times are the best of all rounds; a ratio is Janua’s figure through the native figure of the same run: below 1 is faster than \
         the host. The cost of reading the timer is taken off. Native and Janua take turns in every round.</p>\n",
    );
    html.push_str(&goals::table(measurements));
    for kind in [
        Kind::Gates,
        Kind::Calls,
        Kind::Apps,
        Kind::Scale,
        Kind::Invasive,
        Kind::Tasks,
        Kind::Pingpong,
        Kind::Messages,
        Kind::Events,
    ] {
        for measurement in measurements.iter().filter(|measurement| measurement.kind == kind) {
            section(&mut html, measurement);
        }
    }
    others(&mut html);
    html.push_str("</body>\n</html>\n");
    html
}

fn section(html: &mut String, measurement: &Measurement) {
    let title = match measurement.kind {
        Kind::Gates if bare::is_bare(measurement) => "Gates of the bare x86_64 machine",
        Kind::Gates => "Gates: ways into a kernel",
        Kind::Calls => "Calls",
        Kind::Apps => "Programs",
        Kind::Scale => "Scale: what an operation costs among many things",
        Kind::Invasive => "The invasive interface (OctoPOS)",
        Kind::Tasks => "Tasks: calls at home and on modules",
        Kind::Messages => "Messages between tiles",
        Kind::Pingpong => "Calls and messages of L4 (Fiasco's figures are in the tables at the end)",
        Kind::Events => "Events of libpal",
    };
    let _ = writeln!(html, "<section>\n<h2>{title}</h2>");
    for note in &measurement.notes {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", escape(note));
    }
    machine(html, measurement);
    match measurement.kind {
        Kind::Gates if bare::is_bare(measurement) => bare::gates(html, measurement),
        Kind::Gates => gates(html, measurement),
        Kind::Calls => ratios(html, measurement, "Calls: multiples of native"),
        Kind::Invasive => invasive(html, measurement),
        // Each row is of one kernel: there are no ratios.
        Kind::Pingpong => {}
        Kind::Messages => ratios(html, measurement, "Messages: multiples of a bare round trip"),
        Kind::Scale => scale::curves(html, measurement),
        Kind::Tasks => tasks::section(html, measurement),
        Kind::Events => events::section(html, measurement),
        Kind::Apps => ratios(html, measurement, "Programs: wall time, or for rates its inverse, as multiples of native"),
    }
    if !matches!(measurement.kind, Kind::Scale | Kind::Tasks) {
        distributions(html, measurement);
    }
    table(html, measurement);
    let reasons = reasons(measurement);
    if !reasons.is_empty() {
        html.push_str("<details><summary>Not measured, and why</summary><ul>\n");
        for reason in reasons {
            let _ = writeln!(html, "<li>{}</li>", escape(&reason));
        }
        html.push_str("</ul></details>\n");
    }
    html.push_str("</section>\n");
}

fn machine(html: &mut String, measurement: &Measurement) {
    let (machine, method, tool) = (&measurement.machine, &measurement.method, &measurement.tool);
    let pinned = method.pinned.map_or_else(|| "not pinned".into(), |cpu| format!("pinned to processor {cpu}"));
    let virtual_machine = if machine.virtual_machine { ", virtual machine" } else { "" };
    let facts = [
        ("measured", format!("{}, {} rounds of up to {} samples, {pinned}", measurement.date, method.runs, method.samples)),
        ("by", format!("janua {}, commit {}, kernel image: {}", tool.version, tool.commit, tool.image)),
        ("processor", format!("{} × {} ({}){virtual_machine}", machine.processors, machine.processor, machine.stepping)),
        ("host", format!("Linux {} {}", machine.kernel, machine.kernel_version)),
        (
            "memory, load",
            format!("{} MiB; load {:.2} before, {:.2} after", machine.memory_kib / 1024, machine.load[0], machine.load[1]),
        ),
        ("time stamp counter", format!("{:.1} MHz{}", machine.tsc_hz / 1e6, if machine.tsc_steady { ", steady" } else { "" })),
        ("page-table isolation", machine.mitigations.get("meltdown").cloned().unwrap_or_else(|| "not known".into())),
    ];
    html.push_str("<table class=\"facts\">\n");
    for (name, value) in facts {
        let _ = writeln!(html, "<tr><td>{name}</td><td>{}</td></tr>", escape(&value));
    }
    html.push_str("</table>\n<details><summary>Processor flags and mitigations</summary>\n");
    let _ = writeln!(html, "<p class=\"source\">{}</p>\n<ul>", escape(&machine.flags.join(" ")));
    for (name, answer) in &machine.mitigations {
        let _ = writeln!(html, "<li>{}: {}</li>", escape(name), escape(answer));
    }
    html.push_str("</ul></details>\n");
}

fn names(measurement: &Measurement) -> Vec<String> {
    measurement.configurations.iter().map(|configuration| configuration.name.clone()).collect()
}

/// Bars of the best figures, one group a row.
fn bars<'a>(measurement: &Measurement, rows: impl Iterator<Item = &'a RowResult>) -> Vec<Group<'a>> {
    rows.map(|row| {
        let marks = measurement.configurations.iter().enumerate().filter_map(|(index, configuration)| {
            let figure = best(row.under(&configuration.name)?, row.unit);
            let ratio = row.ratio(&configuration.name).filter(|_| configuration.name != NATIVE);
            let ratio = ratio.map_or_else(String::new, |ratio| format!(" ({})", times(ratio)));
            Some((index, Mark::Bar(figure, format!("{}{ratio}", amount(figure, row.unit)))))
        });
        Group { label: short(&row.title), marks: marks.collect() }
    })
    .filter(|group| !group.marks.is_empty())
    .collect()
}

/// A label that fits beside a plot: what is in parentheses is left out.
fn short(title: &str) -> String {
    title.split(" (").next().unwrap_or(title).to_owned()
}

fn of_group<'a>(measurement: &'a Measurement, group: &'a str) -> impl Iterator<Item = &'a RowResult> {
    measurement.rows.iter().filter(move |row| row.group == group)
}

fn gates(html: &mut String, measurement: &Measurement) {
    let series = names(measurement);
    let groups = bars(measurement, of_group(measurement, "gate"));
    html.push_str(&plot("Every gate on one machine", "nanoseconds per operation, logarithmic", &series, &groups, None));

    let mut series_with_theirs = series.clone();
    series_with_theirs.push("article, isolation on (theirs)".into());
    series_with_theirs.push("article, isolation off (theirs)".into());
    let mut groups = bars(measurement, of_group(measurement, "gettimeofday"));
    let measured = of_group(measurement, "gettimeofday").filter(|row| row.cells.iter().any(|cell| cell.result.is_some()));
    for (group, row) in groups.iter_mut().zip(measured) {
        let theirs = published::GETTIMEOFDAY.iter().find(|(name, ..)| *name == row.name);
        for (index, value) in theirs.into_iter().flat_map(|(_, on, off)| [(0, *on), (1, *off)]) {
            group.marks.push((series.len() + index, Mark::Bar(value, amount(value, Unit::Nanoseconds))));
        }
    }
    let title = "gettimeofday by every gate of the host, beside the article’s figures";
    let figure = plot(title, "nanoseconds per call, logarithmic", &series_with_theirs, &groups, None);
    theirs(html, &figure, published::GETTIMEOFDAY_SOURCE);

    let mut series_with_theirs = series.clone();
    let kept: Vec<_> = published::EMPTY_CALLS.iter().filter(|(name, ..)| name.ends_with(", system calls")).collect();
    series_with_theirs
        .extend(kept.iter().map(|(name, ..)| format!("OctoPOS {} (theirs)", name.split(',').next().unwrap_or(name))));
    let mut groups = bars(measurement, of_group(measurement, "null call"));
    for (count, group) in groups.iter_mut().enumerate() {
        for (index, (_, ticks, nanoseconds)) in kept.iter().enumerate() {
            let Some(value) = ticks.get(count).map(|ticks| ticks * nanoseconds) else { continue };
            group.marks.push((series.len() + index, Mark::Bar(value, amount(value, Unit::Nanoseconds))));
        }
    }
    let title = "Null call with 0 to 6 arguments, beside OctoPOS’ Table 5.2";
    let figure = plot(title, "nanoseconds per call, logarithmic", &series_with_theirs, &groups, None);
    theirs(html, &figure, published::EMPTY_CALLS_SOURCE);
}

/// The thesis' tables: empty calls beside its Table 5.2, and the rest of its chapter 5.2, which it has as plots only.
fn invasive(html: &mut String, measurement: &Measurement) {
    for unit in [Unit::Nanoseconds, Unit::Instructions] {
        let rows: Vec<RowResult> = measurement.rows.iter().filter(|row| row.unit == unit).cloned().collect();
        if !rows.is_empty() {
            invasive_in(html, &Measurement { rows, ..measurement.clone() }, unit);
        }
    }
}

/// The same for the rows of one unit.
fn invasive_in(html: &mut String, measurement: &Measurement, unit: Unit) {
    let mut series = names(measurement);
    let counted = unit == Unit::Instructions;
    let bare = measurement.configurations.iter().any(|c| c.gate.as_deref() == Some("int"));
    // Theirs of the same kind of machine: where instructions are counted ticks, otherwise nanoseconds.
    let (machine, axis) = match (bare, counted) {
        (true, true) => ("x64native", "instructions, theirs ticks of 0.48 ns, logarithmic"),
        (true, false) => ("x64native", "nanoseconds per call, emulated (theirs: of a processor), logarithmic"),
        (false, true) => ("leon", "instructions, theirs ticks of 20 ns, logarithmic"),
        (false, false) => ("x86guest", "nanoseconds per call, logarithmic"),
    };
    let kept: Vec<_> = published::EMPTY_CALLS.iter().filter(|(name, ..)| name.starts_with(machine)).collect();
    series.extend(kept.iter().map(|(name, ..)| format!("OctoPOS {name} (theirs)")));
    let own = measurement.configurations.len();
    let in_group = |group: &'static str| measurement.rows.iter().filter(move |row| row.group.split(", ").next() == Some(group));
    let mut groups = bars(measurement, in_group("empty call"));
    for (count, group) in groups.iter_mut().enumerate() {
        for (index, (_, ticks, nanoseconds)) in kept.iter().enumerate() {
            let per_tick = if counted { 1.0 } else { *nanoseconds };
            let Some(value) = ticks.get(count).map(|ticks| ticks * per_tick).filter(|value| *value > 0.0) else { continue };
            let text = if counted { format!("{value:.0} ticks") } else { amount(value, unit) };
            group.marks.push((own + index, Mark::Bar(value, text)));
        }
    }
    let title = "Empty calls with 0 to 6 parameters, beside OctoPOS’ Table 5.2";
    let figure = plot(title, axis, &series, &groups, None);
    theirs(html, &figure, published::EMPTY_CALLS_SOURCE);
    for (group, title) in [("selected functions", "Selected functions"), ("Listing 5.1", "Invade, infect, wait, retreat")] {
        let groups = bars(measurement, in_group(group));
        html.push_str(&plot(title, axis, &names(measurement), &groups, None));
    }
    let name = if counted { "instructions" } else { "ns" };
    let _ = write!(html, "<table>\n<tr><th>mean ± deviation, {name}</th>");
    for name in names(measurement) {
        let _ = write!(html, "<th>{}</th>", escape(&name));
    }
    html.push_str("</tr>\n");
    for row in &measurement.rows {
        let _ = write!(html, "<tr><td>{}</td>", escape(&row.title));
        for name in names(measurement) {
            match row.under(&name) {
                Some(summary) => {
                    let _ = write!(html, "<td>{:.0} ± {:.0}</td>", summary.mean, summary.deviation);
                }
                None => html.push_str("<td class=\"skip\">–</td>"),
            }
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
}

/// A figure with somebody else's numbers in it, and whose they are.
fn theirs(html: &mut String, figure: &str, source: &str) {
    if !figure.is_empty() {
        let _ = writeln!(html, "{figure}<p class=\"source\">“theirs”: {}</p>", escape(source));
    }
}

/// Bars of ratios, with the best peer's where there is one.
fn ratios(html: &mut String, measurement: &Measurement, title: &str) {
    let mut series = names(measurement);
    series.push("best of five peers (another day)".into());
    let peer = series.len() - 1;
    let groups: Vec<Group> = measurement
        .rows
        .iter()
        .map(|row| {
            let own = measurement.configurations.iter().enumerate().filter(|(_, c)| c.name != NATIVE);
            let mut marks: Vec<(usize, Mark)> = own
                .filter_map(|(index, configuration)| {
                    let ratio = row.ratio(&configuration.name)?;
                    let figure = best(row.under(&configuration.name)?, row.unit);
                    Some((index, Mark::Bar(ratio, format!("{} = {}", times(ratio), amount(figure, row.unit)))))
                })
                .collect();
            if let Some((ratio, name)) = best_peer(&row.name).filter(|_| !marks.is_empty()) {
                marks.push((peer, Mark::Bar(ratio, format!("{} {}", times(ratio), name.split(' ').next().unwrap_or(name)))));
            }
            Group { label: short(&row.title), marks }
        })
        .filter(|group| !group.marks.is_empty())
        .collect();
    let figure = plot(title, "multiple of native, logarithmic: less is better", &series, &groups, Some((1.0, "native")));
    html.push_str(&figure);
    if groups.iter().any(|group| group.marks.iter().any(|(index, _)| *index == peer)) {
        let _ = writeln!(html, "<p class=\"source\">Peers: {}</p>", escape(published::PEERS_SOURCE));
    }
}

fn distributions(html: &mut String, measurement: &Measurement) {
    let groups: Vec<Group> = measurement
        .rows
        .iter()
        .filter(|row| row.unit == Unit::Nanoseconds && row.group != "timer" && row.group != "function call")
        .map(|row| {
            let spread = |(index, c): (usize, &Configuration)| {
                row.under(&c.name).filter(|summary| summary.samples > 1).map(|summary| (index, Mark::Spread(summary)))
            };
            let marks = measurement.configurations.iter().enumerate().filter_map(spread).collect();
            Group { label: short(&row.title), marks }
        })
        .filter(|group| !group.marks.is_empty())
        .collect();
    let figure = plot("Distributions", "nanoseconds per operation, logarithmic", &names(measurement), &groups, None);
    if !figure.is_empty() {
        let _ = writeln!(
            html,
            "<details><summary>Distributions</summary>\n{figure}<p class=\"source\">Line: least to greatest sample; box: the middle four \
             fifths; thick tick: median.</p></details>"
        );
    }
}

fn table(html: &mut String, measurement: &Measurement) {
    html.push_str("<table>\n<tr><th>row</th><th>native</th><th>median</th><th>spread</th>");
    let others: Vec<&Configuration> = measurement.configurations.iter().filter(|c| c.name != NATIVE).collect();
    for configuration in &others {
        let _ = write!(html, "<th>{}</th><th>median</th><th>ratio</th>", escape(&configuration.name));
    }
    html.push_str("</tr>\n");
    let mut group = "";
    for row in &measurement.rows {
        if row.group != group {
            group = &row.group;
            let _ = writeln!(html, "<tr><td class=\"group\" colspan=\"{}\">{}</td></tr>", 4 + 3 * others.len(), escape(group));
        }
        let _ = write!(html, "<tr><td>{}</td>", escape(&row.title));
        match row.under(NATIVE) {
            Some(summary) => {
                let mark = if summary.spread() > NOISY { " ~" } else { "" };
                let (figure, median) = (amount(best(summary, row.unit), row.unit), amount(summary.median, row.unit));
                let _ = write!(html, "<td>{figure}</td><td>{median}</td><td>{:.0} %{mark}</td>", summary.spread() * 100.0);
            }
            None => html.push_str("<td class=\"skip\">–</td><td></td><td></td>"),
        }
        for configuration in &others {
            figures(html, row, &configuration.name);
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
}

/// Three cells: a configuration's best figure, median and ratio.
fn figures(html: &mut String, row: &RowResult, configuration: &str) {
    let cell = row.cells.iter().find(|cell| cell.configuration == configuration);
    let Some(summary) = cell.and_then(|cell| cell.result.as_ref()) else {
        let why = cell.and_then(|cell| cell.skipped.as_deref()).unwrap_or_default();
        let _ = write!(html, "<td class=\"skip\" title=\"{}\">–</td><td></td><td></td>", escape(why));
        return;
    };
    let (figure, median) = (amount(best(summary, row.unit), row.unit), amount(summary.median, row.unit));
    let ratio = row.ratio(configuration);
    let class = if ratio.is_some_and(|ratio| ratio <= 1.0) { " class=\"better\"" } else { "" };
    let share = cell.and_then(|cell| cell.fast_share);
    let share = share.map_or_else(String::new, |share| format!("<br>{:.1} % fast calls", share * 100.0));
    let ratio = ratio.map_or_else(|| "–".into(), times);
    let _ = write!(html, "<td>{figure}</td><td>{median}</td><td{class}>{ratio}{share}</td>");
}

/// What others published.
fn others(html: &mut String) {
    html.push_str("<section class=\"theirs\">\n<h2>Figures of others</h2>\n<p>Theirs, on their machines: for orientation, not for comparison digit by digit.</p>\n");
    for Published { title, source, columns, rows } in TABLES {
        let _ = writeln!(html, "<h3>{}</h3>\n<p class=\"source\">{}</p>\n<table>\n<tr>", escape(title), escape(source));
        columns.iter().for_each(|column| {
            let _ = write!(html, "<th>{}</th>", escape(column));
        });
        html.push_str("</tr>\n");
        for row in *rows {
            let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
            let _ = writeln!(html, "<tr>{cells}</tr>");
        }
        html.push_str("</table>\n");
    }
    let _ = writeln!(
        html,
        "<h3>Peers, as multiples of native</h3>\n<p class=\"source\">{}</p>\n<table>\n<tr><th>row</th>{}</tr>",
        escape(published::PEERS_SOURCE),
        published::PEER_NAMES.map(|name| format!("<th>{}</th>", escape(name))).concat()
    );
    for (name, ratios) in published::PEERS {
        let title = janua_probe::ROWS.iter().find(|row| row.name == *name).map_or(*name, |row| row.title);
        let cells = ratios.map(|ratio| format!("<td>{}</td>", times(ratio))).concat();
        let _ = writeln!(html, "<tr><td>{}</td>{cells}</tr>", escape(title));
    }
    html.push_str("</table>\n</section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::example;

    /// Elements that have no end.
    const VOID: [&str; 3] = ["meta", "br", "!DOCTYPE"];

    /// Every element that is opened is closed, in order.
    fn well_formed(page: &str) -> Result<(), String> {
        let mut open: Vec<&str> = Vec::new();
        for part in page.split('<').skip(1) {
            let (tag, _) = part.split_once('>').ok_or_else(|| format!("`<` without `>`: {part:.40}"))?;
            if tag.ends_with('/') {
                continue;
            }
            if let Some(name) = tag.strip_prefix('/') {
                let last = open.pop();
                if last != Some(name) {
                    return Err(format!("</{name}> closes {last:?}"));
                }
            } else {
                let name = tag.split_whitespace().next().unwrap_or_default();
                if !VOID.contains(&name) {
                    open.push(name);
                }
            }
        }
        if open.is_empty() { Ok(()) } else { Err(format!("never closed: {open:?}")) }
    }

    #[test]
    fn the_check_finds_what_is_wrong() {
        assert!(well_formed("<p><b>x</b></p>").is_ok());
        assert!(well_formed("<p><b>x</p></b>").is_err());
        assert!(well_formed("<p>").is_err());
        assert!(well_formed("a < b").is_err());
    }

    #[test]
    fn the_page_is_well_formed_and_escaped() {
        let mut calls = example();
        calls.kind = Kind::Calls;
        let page = page(&[example(), calls]);
        well_formed(&page).unwrap();
        assert!(page.contains("A &lt;CPU&gt; &amp; co") && !page.contains("<CPU>"));
        assert!(page.contains("a &lt; b"));
        assert!(page.contains("reason &lt;b&gt;&amp;&quot;"));
        assert!(page.matches("<svg").count() >= 4);
        assert!(page.contains("10.0 x"));
        assert!(!page.contains("NaN"));
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = page(&[example()]);
        for word in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(word), "{word}");
        }
    }

    #[test]
    fn without_measurements_the_published_remain() {
        let page = page(&[]);
        well_formed(&page).unwrap();
        assert!(page.contains("OctoPOS") && page.contains("692"));
    }

    #[test]
    fn escapes() {
        assert_eq!(escape("<a href=\"x\">'&'"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;");
    }
}
