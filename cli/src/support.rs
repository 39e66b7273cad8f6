//! `janua support`: the table of system calls, from the rows the kernel itself dispatches on.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use janua_kernel::Personality;
use janua_kernel::table::{Row, Support as State};
use janua_personality_linux::i386::table::ROWS as I386_ROWS;
use janua_personality_linux::table::ROWS;

use crate::args::Support;
use crate::exit;

/// How the page docs/support.md begins.
const HEAD: &str = "\
# System calls

Generated from the tables of calls of the personalities `linux` and `invasive` (`personality/linux/src/table.rs`,
`personality/linux/src/i386/table.rs`, `personality/invasive/src/table.rs`) by `cargo xtask support`; `janua support` prints the same. A
missing call of Linux' answers -ENOSYS, as does a number that is not listed; one of the personality `invasive` ends the application, as a
number that is not listed does.
";

/// One call.
struct Line {
    number: usize,
    name: &'static str,
    /// With its arguments.
    call: String,
    state: &'static str,
    remark: &'static str,
}

fn lines<P: Personality>(rows: &[Row<P>]) -> Vec<Line> {
    let line = |row: &Row<P>| {
        let names: Vec<&str> = row.params.iter().map(|p| p.name).collect();
        let (state, remark) = match row.support {
            State::Full => ("full", ""),
            State::Partial(note) => ("partial", note),
            State::Missing(note) => ("missing", note),
        };
        Line { number: row.number, name: row.name, call: format!("{}({})", row.name, names.join(", ")), state, remark }
    };
    rows.iter().map(line).collect()
}

/// The tables, each with its heading.
fn tables() -> [(&'static str, Vec<Line>); 3] {
    [("x86-64", lines(ROWS)), ("i386", lines(I386_ROWS)), ("invasive", lines(janua_personality_invasive::table::ROWS))]
}

/// The name of rows that only fill a gap in the numbers.
const UNASSIGNED: &str = "unassigned";

/// Prints the table.
pub fn print(which: &Support) -> ExitCode {
    let wanted = |row: &Line| {
        row.name != UNASSIGNED && which.filter.as_ref().is_none_or(|filter| row.name.contains(filter.as_str()))
    };
    let tables = tables().map(|(heading, rows)| (heading, rows.into_iter().filter(wanted).collect::<Vec<_>>()));
    if tables.iter().all(|(_, rows)| rows.is_empty()) {
        let filter = which.filter.as_deref().unwrap_or_default();
        return exit::fail(&format!("no system call has `{filter}` in its name\n       janua support lists them all"));
    }
    let mut text = String::from(if which.markdown { HEAD } else { "" });
    for (heading, rows) in tables.iter().filter(|(_, rows)| !rows.is_empty()) {
        text += &if which.markdown { markdown(heading, rows) } else { plain(heading, rows) };
    }
    // A reader that closes early (`| head`) has seen what it wanted.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// `182 full, 60 partial, 115 missing`.
fn summary(rows: &[Line]) -> String {
    let count = |word: &str| rows.iter().filter(|row| row.state == word).count();
    format!("{} full, {} partial, {} missing", count("full"), count("partial"), count("missing"))
}

fn plain(heading: &str, rows: &[Line]) -> String {
    let mut text = format!("{heading}\n");
    for row in rows {
        let line = format!("{:>4}  {:<8} {:<52} {}", row.number, row.state, row.call, row.remark);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n{}\n", summary(rows));
    text
}

fn markdown(heading: &str, rows: &[Line]) -> String {
    let mut text =
        format!("\n## {heading}\n\n{}.\n\n| number | call | state | remark |\n| ---: | --- | --- | --- |\n", summary(rows));
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} | `{}` | {} | {} |", row.number, row.call, row.state, row.remark);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_where_it_stands() {
        for row in tables().iter().flat_map(|(_, rows)| rows) {
            assert!(row.state == "full" || !row.remark.is_empty(), "{} says {} and not why", row.name, row.state);
        }
    }
}
