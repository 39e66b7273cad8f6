//! Rules on the text of the sources.

use super::{Breach, Tree};

/// Layers that run on the host with the standard library.
const HOSTED: &[&str] = &["cli", "bench", "debug", "xtask", "test"];
/// A platform that only tests are linked with.
const MODEL: &str = "platform/model";

/// Lines from which a file is long enough to ask for a split, and from which it must be split.
const LONG: usize = 800;
const TOO_LONG: usize = 1000;

/// Rule `no-std`: every crate root that may be linked into a kernel says `no_std`.
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
