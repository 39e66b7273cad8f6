//! Where `unsafe` may be, and that each use states why it is sound.

use super::source::{SourceFile, words};
use super::{Breach, Tree};

/// The layers that talk to hardware, to the host or to shared memory.
const HOME: &[&str] = &["arch", "gate", "platform", "rt"];

/// Guest code: the measured program, which makes its calls by every gate itself, the one that traces others for gdb, and the library for rings of calls.
/// And a plugin, which QEMU talks to in C.
const GUESTS: &[&str] = &["bench/probe", "bench/tlb", "debug", "user/ring"];

fn is_guest(path: &str) -> bool {
    GUESTS.iter().any(|guest| path.starts_with(guest))
}

fn places(file: &SourceFile) -> impl Iterator<Item = usize> + '_ {
    file.lines.iter().enumerate().filter(|(_, line)| words(&line.code).contains(&"unsafe")).map(|(n, _)| n)
}

/// The one exception: the attribute that gives an image's entry point its name, under a root that denies all else.
fn names_entry(file: &SourceFile, number: usize) -> bool {
    file.layer() == "image" && file.lines[number].code.trim() == "#[unsafe(no_mangle)]"
}

fn rust_outside_tests(tree: &Tree) -> impl Iterator<Item = &SourceFile> {
    tree.files.iter().filter(|f| f.is_rust() && !f.is_test())
}

/// Rule `unsafe-home`: `unsafe` is only in the layers of `HOME`, and in tests.
pub fn home(tree: &Tree) -> Vec<Breach> {
    rust_outside_tests(tree)
        .filter(|f| !HOME.contains(&f.layer()) && !is_guest(&f.path))
        .flat_map(|f| places(f).map(move |n| (f, n)))
        .filter(|(f, n)| !names_entry(f, *n))
        .map(|(f, n)| {
            let what = format!("`unsafe` outside {}", HOME.join(", "));
            Breach::new("unsafe-home", format!("{}:{}", f.path, n + 1), what)
        })
        .collect()
}

/// Rule `forbid-unsafe`: every crate root of another layer declares `#![forbid(unsafe_code)]`.
pub fn forbidden_elsewhere(tree: &Tree) -> Vec<Breach> {
    let elsewhere = |dir: &str| !is_guest(dir) && !HOME.iter().any(|h| dir.split('/').next() == Some(h));
    let roots = tree.members.iter().filter(|m| elsewhere(&m.dir));
    roots
        .flat_map(|m| &m.roots)
        .filter_map(|root| tree.files.iter().find(|f| f.path == *root))
        .filter(|f| {
            let lint = if f.layer() == "image" { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
            !f.lines.iter().any(|l| l.code.replace(' ', "").contains(lint))
        })
        .map(|f| Breach::new("forbid-unsafe", f.path.clone(), "this crate root lacks #![forbid(unsafe_code)]"))
        .collect()
}

/// Rule `safety-comment`: an unsafe block or impl has a `SAFETY:` comment, a public unsafe fn a `# Safety` section.
pub fn commented(tree: &Tree) -> Vec<Breach> {
    rust_outside_tests(tree)
        .flat_map(|f| places(f).map(move |n| (f, n)))
        .filter_map(|(f, n)| {
            let lacks = lacks(f, n)?;
            Some(Breach::new("safety-comment", format!("{}:{}", f.path, n + 1), lacks))
        })
        .collect()
}

/// What the `unsafe` on line `number` lacks, if anything.
fn lacks(file: &SourceFile, number: usize) -> Option<&'static str> {
    let line = &file.lines[number];
    let found = words(&line.code);
    let after = found.iter().position(|w| *w == "unsafe").and_then(|at| found.get(at + 1)).copied();
    let opens = match after {
        Some(word) => word == "{" || word == "impl",
        // The brace is on the next line.
        None => true,
    };
    if opens {
        return (!explained(file, number, "SAFETY", 3)).then_some("no `// SAFETY:` comment says why this is sound");
    }
    let function = matches!(after, Some("fn" | "extern")) && found.first() == Some(&"pub") && found.contains(&"fn");
    (function && !explained(file, number, "# Safety", 0)).then_some("no `# Safety` section says what the caller must ensure")
}

/// Whether `mark` is in a comment on the line, or above it across comments, attributes and at most `slack`
/// lines of code (the rest of the statement).
fn explained(file: &SourceFile, number: usize, mark: &str, mut slack: u32) -> bool {
    if file.lines[number].comment.contains(mark) {
        return true;
    }
    for line in file.lines[..number].iter().rev() {
        if line.comment.contains(mark) {
            return true;
        }
        let code = line.code.trim();
        let neutral = code.starts_with("#[") || (code.is_empty() && !line.comment.is_empty());
        if !neutral {
            if slack == 0 || code.is_empty() {
                return false;
            }
            slack -= 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::source::split;
    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile { path: "rt/src/x.rs".into(), lines: split(text) }
    }

    #[test]
    fn blocks_need_a_reason() {
        assert!(lacks(&file("fn f() {\n    unsafe { g() }\n}"), 1).is_some());
        assert!(lacks(&file("fn f() {\n    // SAFETY: g is pure.\n    unsafe { g() }\n}"), 2).is_none());
        assert!(lacks(&file("// SAFETY: long\n// reason.\nlet a =\n    unsafe { g() };"), 3).is_none());
        assert!(lacks(&file("unsafe { g() } // SAFETY: g is pure."), 0).is_none());
        assert!(lacks(&file("// SAFETY: of another.\n\nunsafe { g() }"), 2).is_some());
    }

    #[test]
    fn functions_need_a_contract() {
        assert!(lacks(&file("/// Does.\npub unsafe fn f() {}"), 1).is_some());
        assert!(lacks(&file("/// Does.\n/// # Safety\n/// Never.\n#[inline]\npub unsafe fn f() {}"), 4).is_none());
        assert!(lacks(&file("unsafe extern \"C\" {"), 0).is_none());
    }
}
