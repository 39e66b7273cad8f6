//! `janua support`: the table of system calls, from the rows the kernel itself dispatches on.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use janua_kernel::table::Row;
use janua_personality_linux::Linux;
use janua_personality_linux::table::ROWS;

use crate::args::Support;
use crate::exit;

/// How the page docs/support.md begins.
const HEAD: &str = "\
# System calls of the linux personality

Generated from the table of calls in `personality/linux/src/table.rs` by `cargo xtask support`; `janua support` prints the
same. Numbers are those of x86-64. A missing call answers -ENOSYS, as does a number that is not listed.
";

/// The name of rows that only fill a gap in the numbers.
const UNASSIGNED: &str = "unassigned";

/// Prints the table.
pub fn print(which: &Support) -> ExitCode {
    let rows: Vec<&Row<Linux>> = ROWS
        .iter()
        .filter(|row| row.name != UNASSIGNED)
        .filter(|row| which.filter.as_ref().is_none_or(|f| row.name.contains(f.as_str())))
        .collect();
    if rows.is_empty() {
        let filter = which.filter.as_deref().unwrap_or_default();
        return exit::fail(&format!("no system call has `{filter}` in its name\n       janua support lists them all"));
    }
    let text = if which.markdown { markdown(&rows) } else { plain(&rows) };
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

fn plain(rows: &[&Row<Linux>]) -> String {
    let mut text = String::new();
    for row in rows {
        let (word, note) = state(row);
        let line = format!("{:>4}  {:<8} {:<52} {note}", row.number, word, call(row));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n{}", summary(rows));
    text
}

fn markdown(rows: &[&Row<Linux>]) -> String {
    let mut text =
        format!("{HEAD}\n{}.\n\n| number | call | state | remark |\n| ---: | --- | --- | --- |\n", summary(rows));
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
        for row in ROWS {
            let (word, note) = state(row);
            assert!(word == "full" || !note.is_empty(), "{} says {word} and not why", row.name);
        }
    }
}
