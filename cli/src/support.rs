//! `janua support`: the table of system calls, from the rows the kernel itself dispatches on.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use janua_kernel::table::Row;
use janua_personality_linux::Linux;
use janua_personality_linux::i386::table::ROWS as I386_ROWS;
use janua_personality_linux::table::ROWS;

use crate::args::Support;
use crate::exit;

/// How the page docs/support.md begins.
const HEAD: &str = "\
# System calls of the linux personality

Generated from the tables of calls in `personality/linux/src/table.rs` and `personality/linux/src/i386/table.rs` by `cargo
xtask support`; `janua support` prints the same. A missing call answers -ENOSYS, as does a number that is not listed.
";

/// The tables, each with its heading.
const TABLES: [(&str, &[Row<Linux>]); 2] = [("x86-64", ROWS), ("i386", I386_ROWS)];

/// The name of rows that only fill a gap in the numbers.
const UNASSIGNED: &str = "unassigned";

/// Prints the table.
pub fn print(which: &Support) -> ExitCode {
    let wanted = |row: &&Row<Linux>| {
        row.name != UNASSIGNED && which.filter.as_ref().is_none_or(|filter| row.name.contains(filter.as_str()))
    };
    let tables = TABLES.map(|(heading, rows)| (heading, rows.iter().filter(wanted).collect::<Vec<_>>()));
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

/// The word for how much of a call there is, and the note.
fn state(row: &Row<Linux>) -> (&'static str, &'static str) {
    match row.support {
        janua_kernel::table::Support::Full => ("full", ""),
        janua_kernel::table::Support::Partial(note) => ("partial", note),
        janua_kernel::table::Support::Missing(note) => ("missing", note),
    }
}

fn call(row: &Row<Linux>) -> String {
    let names: Vec<&str> = row.params.iter().map(|p| p.name).collect();
    format!("{}({})", row.name, names.join(", "))
}

/// `182 full, 60 partial, 115 missing`.
fn summary(rows: &[&Row<Linux>]) -> String {
    let count = |word: &str| rows.iter().filter(|r| state(r).0 == word).count();
    format!("{} full, {} partial, {} missing", count("full"), count("partial"), count("missing"))
}

fn plain(heading: &str, rows: &[&Row<Linux>]) -> String {
    let mut text = format!("{heading}\n");
    for row in rows {
        let (word, note) = state(row);
        let line = format!("{:>4}  {:<8} {:<52} {note}", row.number, word, call(row));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n{}\n", summary(rows));
    text
}

fn markdown(heading: &str, rows: &[&Row<Linux>]) -> String {
    let mut text =
        format!("\n## {heading}\n\n{}.\n\n| number | call | state | remark |\n| ---: | --- | --- | --- |\n", summary(rows));
    for row in rows {
        let (word, note) = state(row);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} | `{}` | {word} | {note} |", row.number, call(row));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_where_it_stands() {
        for row in TABLES.iter().flat_map(|(_, rows)| *rows) {
            let (word, note) = state(row);
            assert!(word == "full" || !note.is_empty(), "{} says {word} and not why", row.name);
        }
    }
}
