//! Rules on the text of the sources.

use super::source::{SourceFile, words};
use super::{Breach, Tree};

/// Layers that run on the host with the standard library.
const HOSTED: &[&str] = &["cli", "bench", "debug", "fuzz", "xtask", "test"];
/// A platform that only tests are linked with.
const MODEL: &str = "platform/model";

/// Lines from which a file is long enough to ask for a split, and from which it must be split.
const LONG: usize = 800;
const TOO_LONG: usize = 1000;

/// Most lines of a function, from its `fn` to its closing brace: what fits a screen with its documentation.
const FUNCTION: usize = 80;

/// Rule `no-std`: every crate root that may be linked into a kernel declares `no_std`.
pub fn no_std(tree: &Tree) -> Vec<Breach> {
    tree.members
        .iter()
        .filter(|m| !HOSTED.iter().any(|h| m.dir.split('/').next() == Some(h)) && m.dir != MODEL)
        .flat_map(|m| &m.roots)
        .filter_map(|root| tree.files.iter().find(|f| f.path == *root))
        .filter(|f| !f.lines.iter().any(|l| l.code.starts_with("#![") && l.code.contains("no_std")))
        .map(|f| Breach::new("no-std", f.path.clone(), "this crate root lacks #![no_std]"))
        .collect()
}

/// Rule `finished`: no placeholder macro is in the code.
pub fn finished(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.files.iter().filter(|f| f.is_rust()) {
        for (number, line) in file.lines.iter().enumerate() {
            for name in ["todo!", "unimplemented!", "dbg!"] {
                if line.code.contains(name) {
                    let place = format!("{}:{}", file.path, number + 1);
                    breaches.push(Breach::new("finished", place, format!("`{name}` in committed code")));
                }
            }
        }
    }
    breaches
}

/// Rule `file-length`: a file holds one concept; a long one is warned of, a very long one refused.
pub fn length(tree: &Tree) -> Vec<Breach> {
    tree.files
        .iter()
        .filter(|f| f.lines.len() > LONG)
        .map(|f| {
            let lines = f.lines.len();
            let breach = Breach::new("file-length", f.path.clone(), format!("{lines} lines; split it by concept"));
            if lines > TOO_LONG { breach } else { breach.warning() }
        })
        .collect()
}

/// Rule `function-length`: no function is longer than a screen.
pub fn functions(tree: &Tree) -> Vec<Breach> {
    tree.files.iter().filter(|f| f.is_rust()).flat_map(|f| long_functions(f, FUNCTION)).collect()
}

/// The functions of a file with more than `most` lines.
fn long_functions(file: &SourceFile, most: usize) -> Vec<Breach> {
    let mut breaches = Vec::new();
    // Functions that have begun: name, first line, and the braces that are open outside of the body; `None` before its first one.
    let mut begun: Vec<(String, usize, Option<usize>)> = Vec::new();
    let (mut depth, mut nested) = (0usize, 0usize);
    for (number, line) in file.lines.iter().enumerate() {
        let words = words(&line.code);
        for (at, word) in words.iter().enumerate() {
            let name = words.get(at + 1).filter(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '_'));
            match *word {
                "fn" if name.is_some() => begun.push((name.unwrap_or(&"").to_string(), number, None)),
                "(" | "[" => nested += 1,
                ")" | "]" => nested = nested.saturating_sub(1),
                // A declaration without a body; within brackets it is the length of an array.
                ";" if nested == 0 && begun.last().is_some_and(|(_, _, body)| body.is_none()) => drop(begun.pop()),
                "{" => {
                    if let Some((_, _, body @ None)) = begun.last_mut()
                        && nested == 0
                    {
                        *body = Some(depth);
                    }
                    depth += 1;
                }
                "}" => {
                    depth = depth.saturating_sub(1);
                    if let Some((name, first, _)) = begun.pop_if(|(_, _, body)| *body == Some(depth)) {
                        let lines = number + 1 - first;
                        if lines > most {
                            let what = format!("`{name}` has {lines} lines, {most} at most; split it by what it does");
                            breaches.push(Breach::new("function-length", format!("{}:{}", file.path, first + 1), what));
                        }
                    }
                }
                _ => {}
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::source::split;

    #[test]
    fn long_functions_are_found_where_they_begin() {
        let text = "trait A {\n    fn declared(&self, a: [u8; 3]) -> u8;\n}\nfn one() {\n    fn inner(f: fn(u8)) {\n        // }\n        a(|| { 1; });\n    }\n    b();\n    let c = \"}\";\n}\nfn short() {}\n";
        let file = SourceFile { path: "a.rs".into(), lines: split(text) };
        let places = |most| long_functions(&file, most).into_iter().map(|breach| breach.place).collect::<Vec<_>>();
        assert_eq!(places(8), Vec::<String>::new());
        assert_eq!(places(7), ["a.rs:4"]);
        assert_eq!(places(3), ["a.rs:5", "a.rs:4"]);
        assert_eq!(places(0).len(), 3);
    }
}
