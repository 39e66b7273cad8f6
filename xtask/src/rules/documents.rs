//! Rules that keep the documents true.

use std::fs;
use std::path::PathBuf;

use super::{Breach, RULES, Tree};
use crate::workspace;

/// Rule `true-paths`: where a document names `path/file.rs:function`, the file exists and defines the function.
pub fn true_paths(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (document, text) in documents() {
        for (number, line) in text.lines().enumerate() {
            for (path, item) in references(line) {
                let place = format!("{document}:{}", number + 1);
                let Some(file) = tree.files.iter().find(|f| f.path == path) else {
                    breaches.push(Breach::new("true-paths", place, format!("there is no file {path}")));
                    continue;
                };
                let name = item.rsplit("::").next().unwrap_or(item);
                if !name.is_empty() && !file.lines.iter().any(|l| defines(&l.code, name)) {
                    breaches.push(Breach::new("true-paths", place, format!("{path} does not define `{name}`")));
                }
            }
        }
    }
    breaches
}

/// Rule `found-pages`: README.md links every page of `docs/`, and a page links every note.
pub fn found_pages(_: &Tree) -> Vec<Breach> {
    let pages = documents();
    let text_of = |path: &str| pages.iter().find(|(page, _)| page == path).map_or("", |(_, text)| text);
    let readme = text_of("README.md");
    let of_docs = pages.iter().map(|(path, _)| path.as_str()).filter(|path| path.starts_with("docs/"));
    let lost = of_docs.filter(|path| !links(readme, path)).map(|path| (path.to_owned(), "README.md does not link it"));
    let notes = notes().into_iter().filter(|note| {
        let name = note.strip_prefix("docs/").unwrap_or(note);
        !pages.iter().any(|(_, text)| links(text, name) || links(text, &format!("../../../docs/{name}")))
    });
    lost.chain(notes.map(|note| (note, "no page links it")))
        .map(|(path, what)| Breach::new("found-pages", path, what))
        .collect()
}

/// Whether a text of Markdown has a link to a page, or to a place in it.
fn links(text: &str, page: &str) -> bool {
    text.match_indices(page).any(|(at, _)| {
        let behind = &text[at + page.len()..];
        text[..at].ends_with("](") && (behind.starts_with(')') || behind.starts_with('#'))
    })
}

/// The folders of the gates.
fn gates() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(workspace::root().join("gate/src")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir())
}

/// What a gate's page describes, by its headings.
const OF_GATES: [&str; 4] = ["How a call enters and returns", "What it accepts", "What it costs", "Who may use it"];

/// Pieces of assembly of which only gates make entries; a platform has those that it shares with them, which go to its loop.
const ENTRY_PIECES: [&str; 6] =
    ["bare_entries", "bare_find_function", "bare_make_short_call", "bare_call32", "hosted_open", "hosted_locate"];
/// Instructions of entries and exits, which are no affair of the crate of the processor.
const ENTRY_INSTRUCTIONS: [&str; 4] = ["iretq", "sysret", "swapgs", "wrpkru"];

/// What of a gate's entry code is outside the folder of gates.
fn strayed(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.files.iter().filter(|f| f.is_rust() && !f.path.starts_with("gate/")) {
        let pieces = file.lines.iter().enumerate().filter_map(|(number, line)| {
            let piece = super::source::words(&line.code).into_iter().find(|word| ENTRY_PIECES.contains(word))?;
            Some((number, format!("`{piece}` is a piece of gates' entries")))
        });
        breaches.extend(pieces.map(|(number, what)| Breach::new("whole-gates", format!("{}:{}", file.path, number + 1), what)));
        if file.layer() != "arch" {
            continue;
        }
        // Assembly is in string literals.
        let text = fs::read_to_string(workspace::root().join(&file.path)).unwrap_or_default();
        let code = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
        for (number, line) in code {
            if let Some(instruction) = ENTRY_INSTRUCTIONS.iter().find(|instruction| line.contains(**instruction)) {
                let what = format!("`{instruction}` belongs to an entry or an exit");
                breaches.push(Breach::new("whole-gates", format!("{}:{}", file.path, number + 1), what));
            }
        }
    }
    breaches
}

/// Rule `whole-gates`: a gate is a folder with code, entry and page, and is listed.
pub fn whole_gates(tree: &Tree) -> Vec<Breach> {
    let list = fs::read_to_string(workspace::root().join("docs/gates.md")).unwrap_or_default();
    let root = fs::read_to_string(workspace::root().join("gate/src/lib.rs")).unwrap_or_default();
    let declared = root
        .lines()
        .filter_map(|line| line.strip_prefix("gates!(")?.split_once(": "))
        .flat_map(|(_, names)| names.trim_end_matches(");").split_whitespace().map(String::from).collect::<Vec<_>>());
    let mut declared: Vec<String> = declared.collect();
    let mut breaches = strayed(tree);
    for gate in gates() {
        let name = gate.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = format!("gate/src/{name}");
        let page = fs::read_to_string(gate.join("README.md")).unwrap_or_default();
        let lacking = OF_GATES.iter().filter(|heading| !page.contains(&format!("\n## {heading}\n")));
        breaches.extend(lacking.map(|heading| Breach::new("whole-gates", &place, format!("its page lacks \"{heading}\""))));
        if !gate.join("mod.rs").exists() {
            breaches.push(Breach::new("whole-gates", &place, "it has no mod.rs"));
        }
        // A gate that is pulled has none: its page names the loop that runs user code.
        let entered = page.contains("`gate/entry/src/") || page.contains("pulls (`platform/");
        if !gate.join("entry.rs").exists() && !entered {
            let what = "it has no entry.rs, and its page names no entry that it shares, nor who pulls";
            breaches.push(Breach::new("whole-gates", &place, what));
        }
        if !list.contains(&format!("(../gate/src/{name}/README.md)")) {
            breaches.push(Breach::new("whole-gates", &place, "docs/gates.md does not list it"));
        }
        declared.retain(|other| *other != name);
    }
    breaches.extend(declared.iter().map(|name| Breach::new("whole-gates", "gate/src/lib.rs", format!("{name} is no folder"))));
    breaches
}

/// Rule `named-rules`: `docs/rules.md` has a heading for every rule and for no other.
pub fn named_rules(_: &Tree) -> Vec<Breach> {
    let page = "docs/rules.md";
    let Ok(text) = fs::read_to_string(workspace::root().join(page)) else {
        return vec![Breach::new("named-rules", page, "the page is missing")];
    };
    let headings: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("### ")).map(|h| h.trim_matches('`')).collect();
    let names = || RULES.iter().map(|(name, _)| *name).chain(crate::scan::RULES.iter().copied());
    let missing = names().filter(|n| !headings.contains(n)).map(|n| (n, "has no heading"));
    let surplus = headings.iter().filter(|h| !names().any(|n| n == **h)).map(|h| (*h, "is no rule that is checked"));
    missing.chain(surplus).map(|(n, what)| Breach::new("named-rules", page, format!("`{n}` {what}"))).collect()
}

/// README.md, the pages in docs/ and those of the gates, with their paths.
fn documents() -> Vec<(String, String)> {
    let mut pages = vec![workspace::root().join("README.md")];
    let docs = fs::read_dir(workspace::root().join("docs")).into_iter().flatten().flatten();
    pages.extend(docs.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "md")));
    pages.extend(gates().map(|gate| gate.join("README.md")));
    pages.sort();
    pages.iter().filter_map(|p| Some((workspace::relative(p), fs::read_to_string(p).ok()?))).collect()
}

/// The paths of every page: those of [`documents`], the notes, and how to contribute.
pub fn all() -> Vec<String> {
    documents().into_iter().map(|(path, _)| path).chain(notes()).chain(["CONTRIBUTING.md".into()]).collect()
}

/// The paths of the notes: what was tried, and what is known of it.
fn notes() -> Vec<String> {
    let notes = fs::read_dir(workspace::root().join("docs/notes")).into_iter().flatten().flatten();
    notes.map(|entry| workspace::relative(&entry.path())).filter(|path| path.ends_with(".md")).collect()
}

/// The `path/file.rs:item` references in backquotes on a line of Markdown; `item` may be empty or a `Type::method`.
fn references(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split('`').skip(1).step_by(2).filter_map(|quoted| {
        let end = [".rs", ".S"].iter().find_map(|ext| {
            let at = quoted.find(ext)? + ext.len();
            quoted[at..].chars().next().is_none_or(|c| c == ':').then_some(at)
        })?;
        let (path, item) = quoted.split_at(end);
        let item = item.trim_start_matches(':').trim_end_matches("()");
        let plain = |s: &str| s.chars().all(|c| c.is_alphanumeric() || "_:/.-".contains(c));
        (path.contains('/') && plain(path) && plain(item)).then_some((path, item))
    })
}

/// Whether a line of code defines an item called `name` (in assembly text: a label).
fn defines(code: &str, name: &str) -> bool {
    let words = super::source::words(code);
    words.windows(2).any(|pair| {
        pair[1] == name
            && matches!(pair[0], "fn" | "struct" | "enum" | "trait" | "const" | "static" | "macro_rules" | "mod" | "type" | "!")
    }) || (words.first() == Some(&name) && words.get(1) == Some(&":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_references() {
        let line = "Then `kernel/src/call.rs:enter` runs; see `rt/src/slot.rs` and `Slot::new`, `a.rs b`.";
        let found: Vec<_> = references(line).collect();
        assert_eq!(found, [("kernel/src/call.rs", "enter"), ("rt/src/slot.rs", "")]);
    }

    #[test]
    fn finds_links() {
        let text = "See [x](docs/async.md#pinned), `docs/gates.md` and [y](docs/one-call.md.bak).";
        assert!(links(text, "docs/async.md"));
        assert!(!links(text, "docs/gates.md") && !links(text, "docs/one-call.md") && !links(text, "async.md"));
    }

    #[test]
    fn finds_definitions() {
        assert!(defines("pub fn enter(thread: &Thread) -> Flow {", "enter"));
        assert!(defines("macro_rules! calls {", "calls"));
        assert!(!defines("enter(thread)", "enter"));
    }
}
