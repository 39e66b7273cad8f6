//! The rules of the source tree: what `cargo xtask layers` checks. `docs/rules.md` explains each by its name.

mod direction;
mod documents;
mod source;
mod text;
mod unsafety;
mod words;

use std::process::ExitCode;

use crate::workspace::{self, Member};
use source::SourceFile;

/// A place where a rule does not hold.
pub struct Breach {
    /// The rule's name in `docs/rules.md`.
    rule: &'static str,
    /// File, with a line where there is one.
    place: String,
    what: String,
    /// A warning is shown but fails nothing.
    warning: bool,
}

impl Breach {
    fn new(rule: &'static str, place: impl Into<String>, what: impl Into<String>) -> Breach {
        Breach { rule, place: place.into(), what: what.into(), warning: false }
    }

    fn warning(mut self) -> Breach {
        self.warning = true;
        self
    }
}

/// What the rules look at.
struct Tree {
    members: Vec<Member>,
    files: Vec<SourceFile>,
}

type Rule = fn(&Tree) -> Vec<Breach>;

/// Every rule, by the name `docs/rules.md` gives it.
const RULES: &[(&str, Rule)] = &[
    ("direction", direction::direction),
    ("neutral-kernel", direction::neutral_kernel),
    ("small-contract", direction::small_contract),
    ("one-jail", direction::one_jail),
    ("context-per-thread", direction::context_per_thread),
    ("x86-folder", direction::x86_folder),
    ("platform-is-a-crate", direction::platform_is_a_crate),
    ("no-std", text::no_std),
    ("unsafe-home", unsafety::home),
    ("forbid-unsafe", unsafety::forbidden_elsewhere),
    ("safety-comment", unsafety::commented),
    ("finished", text::finished),
    ("file-length", text::length),
    ("function-length", text::functions),
    ("whole-gates", documents::whole_gates),
    ("true-paths", documents::true_paths),
    ("found-pages", documents::found_pages),
    ("named-rules", documents::named_rules),
    ("field-words", words::field_words),
];

/// Checks every rule: its name, and the places where it does not hold.
pub fn check() -> Result<Vec<(&'static str, Vec<Breach>)>, String> {
    let tree = Tree { members: workspace::members()?, files: source::all()? };
    Ok(RULES.iter().map(|(name, rule)| (*name, rule(&tree))).collect())
}

/// One line a breach.
pub fn describe(breaches: &[Breach], warnings: bool) -> String {
    let lines: Vec<String> =
        breaches.iter().filter(|b| b.warning == warnings).map(|b| format!("{}: {}: {}", b.rule, b.place, b.what)).collect();
    lines.join("\n")
}

/// `cargo xtask layers`.
pub fn command() -> Result<ExitCode, String> {
    let results = check()?;
    let mut failed = 0;
    for (_, breaches) in &results {
        let warnings = describe(breaches, true);
        if !warnings.is_empty() {
            println!("warning: {}", warnings.replace('\n', "\nwarning: "));
        }
        let errors = describe(breaches, false);
        if !errors.is_empty() {
            println!("{errors}");
            failed += 1;
        }
    }
    println!("{} rules hold, {failed} do not (docs/rules.md explains each)", results.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
