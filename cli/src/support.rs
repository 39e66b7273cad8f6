//! `janua support`: the table of system calls, read from the rows that the kernel itself is built of. As text: to link the rows would
//! take the whole kernel, compiled a second time for the host.

use std::fmt::Write as _;
use std::process::ExitCode;

use crate::args::Support;
use crate::exit;

/// How the page docs/support.md begins.
const HEAD: &str = "\
# System calls

Generated from the tables of calls of the personalities `linux`, `invasive`, `l4v2` and `pal` (`personality/linux/src/table.rs`, `personality/linux/src/shared.rs`,
`personality/linux/src/generic.rs`, `personality/linux/src/x86/i386/table.rs`, `personality/invasive/src/table.rs`, `personality/l4v2/src/table.rs`, `personality/pal/src/table.rs`) by `cargo xtask support`; `janua support` prints the same. A
missing call of Linux' returns -ENOSYS, as does a number that is not listed; one of the personality `invasive` ends the application, as a
number that is not listed does. Of the personality `l4v2` the number is that of the software interrupt less 0x30; others are exceptions. Of the personality `pal` the library (`user/libpal`)
makes the calls, and reports PAL_ERROR_NOTIMPLEMENTED for a number that is not listed. The place is where a call may run when there are modules (`--syscall-cores`): on one for calls of its kind, or at `home`,
on the thread that makes it.
";

/// The rows that both tables of the personality `linux` name, without numbers.
const SHARED: &str = include_str!("../../personality/linux/src/shared.rs");
/// The rows that both tables of the personality `linux` end with.
const GENERIC: &str = include_str!("../../personality/linux/src/generic.rs");
/// The tables, each with its heading and the source files that declare its rows (`janua_kernel::calls!`).
const TABLES: [(&str, [&str; 2]); 5] = [
    ("x86-64", [include_str!("../../personality/linux/src/table.rs"), GENERIC]),
    ("i386", [include_str!("../../personality/linux/src/x86/i386/table.rs"), GENERIC]),
    ("invasive", [include_str!("../../personality/invasive/src/table.rs"), ""]),
    ("l4v2", [include_str!("../../personality/l4v2/src/table.rs"), ""]),
    ("pal", [include_str!("../../personality/pal/src/table.rs"), ""]),
];

/// One call.
struct Line {
    number: usize,
    name: &'static str,
    /// With its arguments.
    call: String,
    /// Where it may run.
    place: &'static str,
    state: &'static str,
    remark: &'static str,
}

/// The row that a line of source declares, `39 getpid() => plain task::getpid, task, Full;`, or names, `39 shared::getpid;`. `None` for any other line.
fn row(source: &'static str) -> Option<Line> {
    let (number, rest) = source.trim().split_once(' ')?;
    let number = number.parse().ok()?;
    let rest = match rest.strip_prefix("shared::") {
        Some(name) => shared(name.strip_suffix(';')?)?,
        None => rest,
    };
    let (declared, handled) = rest.split_once(") => ")?;
    let (name, params) = declared.split_once('(')?;
    // `name: Type, name: Type`; an array's type has no comma.
    let names: Vec<&str> = params.split(", ").filter_map(|param| param.split_once(':')).map(|(name, _)| name).collect();
    let (_, placed) = handled.split_once(", ")?;
    let (place, support) = placed.split_once(", ")?;
    let (state, remark) = match support.strip_suffix(';')?.split_once("(\"") {
        None => ("full", ""),
        Some((state, note)) => (if state == "Partial" { "partial" } else { "missing" }, note.strip_suffix("\")")?),
    };
    Some(Line { number, name, call: format!("{name}({})", names.join(", ")), place, state, remark })
}

/// What is declared for several tables by this name.
fn shared(name: &str) -> Option<&'static str> {
    SHARED.lines().map(str::trim).find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('(')))
}

/// The tables, each with its heading.
fn tables() -> [(&'static str, Vec<Line>); 5] {
    TABLES.map(|(heading, sources)| (heading, sources.into_iter().flat_map(str::lines).filter_map(row).collect()))
}

/// The name of rows that only fill a gap in the numbers.
const UNASSIGNED: &str = "unassigned";

/// Prints the table.
pub fn print(which: &Support) -> ExitCode {
    let wanted =
        |row: &Line| row.name != UNASSIGNED && which.filter.as_ref().is_none_or(|filter| row.name.contains(filter.as_str()));
    let tables = tables().map(|(heading, rows)| (heading, rows.into_iter().filter(wanted).collect::<Vec<_>>()));
    if tables.iter().all(|(_, rows)| rows.is_empty()) {
        let filter = which.filter.as_deref().unwrap_or_default();
        return exit::fail(&format!("no system call has `{filter}` in its name\n       janua support lists them all"));
    }
    let mut text = String::from(if which.markdown { HEAD } else { "" });
    for (heading, rows) in tables.iter().filter(|(_, rows)| !rows.is_empty()) {
        text += &if which.markdown { markdown(heading, rows) } else { plain(heading, rows) };
    }
    exit::print(text.as_bytes())
}

/// `182 full, 60 partial, 115 missing`.
fn summary(rows: &[Line]) -> String {
    let count = |word: &str| rows.iter().filter(|row| row.state == word).count();
    format!("{} full, {} partial, {} missing", count("full"), count("partial"), count("missing"))
}

fn plain(heading: &str, rows: &[Line]) -> String {
    let mut text = format!("{heading}\n");
    for row in rows {
        let line = format!("{:>4}  {:<8} {:<4} {:<52} {}", row.number, row.state, row.place, row.call, row.remark);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n{}\n", summary(rows));
    text
}

fn markdown(heading: &str, rows: &[Line]) -> String {
    let mut text = format!(
        "\n## {heading}\n\n{}.\n\n| number | call | place | state | remark |\n| ---: | --- | --- | --- | --- |\n",
        summary(rows)
    );
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} | `{}` | {} | {} | {} |", row.number, row.call, row.place, row.state, row.remark);
    }
    text
}

#[cfg(test)]
mod tests {
    use janua_kernel::Personality;
    use janua_kernel::table::{Row, Support as State};

    use super::*;

    /// Each row that is linked was read, in order, and reads the same.
    fn same<P: Personality>(read: &[Line], rows: &[Row<P>]) {
        assert_eq!(read.len(), rows.len());
        for (line, row) in read.iter().zip(rows) {
            let names: Vec<&str> = row.params.iter().map(|p| p.name).collect();
            let (state, remark) = match row.support {
                State::Full => ("full", ""),
                State::Partial(note) => ("partial", note),
                State::Missing(note) => ("missing", note),
            };
            let call = format!("{}({})", row.name, names.join(", "));
            assert_eq!(
                (line.number, line.name, &line.call, line.place, line.state, line.remark),
                (row.number, row.name, &call, row.place.name(), state, remark)
            );
        }
    }

    #[test]
    fn the_rows_that_are_read_are_those_that_are_linked() {
        let [(_, x86_64), (_, i386), (_, invasive), (_, l4v2), (_, pal)] = tables();
        same(&x86_64, janua_personality_linux::table::ROWS);
        same(&i386, janua_personality_linux::x86::i386::table::ROWS);
        same(&invasive, janua_personality_invasive::table::ROWS);
        same(&l4v2, janua_personality_l4v2::table::ROWS);
        same(&pal, janua_personality_pal::table::ROWS);
    }

    #[test]
    fn every_row_says_where_it_stands() {
        for row in tables().iter().flat_map(|(_, rows)| rows) {
            assert!(row.state == "full" || !row.remark.is_empty(), "{} says {} and not why", row.name, row.state);
        }
    }
}
