//! The list of tests that are not run, each with its reason.

use std::fs;

use crate::workspace;

/// Where the list is.
pub const LIST: &str = "test/conformance/skips.txt";

struct Skip {
    test: String,
    gate: String,
    reason: String,
}

/// The lines of [`LIST`]: `TEST GATE REASON`, where `TEST` may end in `*` and `GATE` may be `*`.
pub struct Skips(Vec<Skip>);

impl Skips {
    /// Reads the list. A line without a reason is an error.
    pub fn read() -> Result<Skips, String> {
        let text = fs::read_to_string(workspace::root().join(LIST)).map_err(|e| format!("{LIST}: {e}"))?;
        let mut skips = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut parts = line.splitn(3, char::is_whitespace);
            match (parts.next(), parts.next(), parts.next().map(str::trim)) {
                (Some(test), Some(gate), Some(reason)) if !reason.is_empty() => {
                    skips.push(Skip { test: test.into(), gate: gate.into(), reason: reason.into() })
                }
                _ => {
                    return Err(format!("{LIST}:{}: a line is: test, gate, reason", number + 1));
                }
            }
        }
        Ok(Skips(skips))
    }

    /// Why this test is not run under this gate, if it is not.
    pub fn reason(&self, test: &str, gate: &str) -> Option<String> {
        self.0.iter().find(|s| matches(&s.test, test) && (s.gate == "*" || s.gate == gate)).map(|s| s.reason.clone())
    }

    /// The lines that match none of `tests`: they must not stay.
    pub fn stale<'a>(&'a self, tests: &'a [String]) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(|s| !tests.iter().any(|t| matches(&s.test, t))).map(|s| s.test.as_str())
    }
}

fn matches(pattern: &str, test: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => test.starts_with(start),
        None => test == pattern,
    }
}
