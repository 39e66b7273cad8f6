//! Source files with code and comments told apart.

use std::fs;
use std::path::Path;

use crate::workspace;

/// A source file of the project.
pub struct SourceFile {
    /// Path relative to the workspace root.
    pub path: String,
    /// One entry a line.
    pub lines: Vec<Line>,
}

/// A line of a source file. In a file that is not Rust all of it is `code`.
#[derive(Default, Debug)]
pub struct Line {
    /// The line without comments, and with string and character literals emptied.
    pub code: String,
    /// The text of comments on the line.
    pub comment: String,
}

impl SourceFile {
    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The first part of the path: the layer the file belongs to.
    pub fn layer(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }

    /// Whether it is test code: under a `tests`, `test` or `benches` directory, or a file `tests.rs`.
    pub fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "test" | "benches" | "tests.rs"))
    }
}

/// Every source file below the workspace root, build output and hidden directories left out.
pub fn all() -> Result<Vec<SourceFile>, String> {
    let mut files = Vec::new();
    walk(workspace::root(), &mut files).map_err(|e| format!("reading the source tree: {e}"))?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn walk(dir: &Path, files: &mut Vec<SourceFile>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() && !path.is_symlink() {
            if !name.starts_with('.') && name != "target" && path != workspace::target() {
                walk(&path, files)?;
            }
        } else if [".rs", ".c", ".h", ".S", ".s"].iter().any(|end| name.ends_with(end)) {
            let text = fs::read_to_string(&path)?;
            let lines = if name.ends_with(".rs") {
                split(&text)
            } else {
                text.lines().map(|l| Line { code: l.into(), comment: String::new() }).collect()
            };
            files.push(SourceFile { path: workspace::relative(&path), lines });
        }
    }
    Ok(())
}

/// Splits Rust text into lines of code and comments.
pub fn split(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let mut lines = vec![Line::default()];
    let mut at = 0;
    // What the character at `at` is part of.
    let mut inside = Inside::Code;
    while at < chars.len() {
        let c = chars[at];
        let next = chars.get(at + 1).copied().unwrap_or('\0');
        if c == '\n' {
            if inside == Inside::LineComment {
                inside = Inside::Code;
            }
            lines.push(Line::default());
            at += 1;
            continue;
        }
        let last = lines.len() - 1;
        let line = &mut lines[last];
        let ends_line = next == '\n';
        (inside, at) = match inside {
            Inside::Code => in_code(&chars, at, line),
            Inside::LineComment => {
                line.comment.push(c);
                (inside, at)
            }
            Inside::BlockComment(depth) => match (c, next) {
                ('*', '/') if depth == 1 => (Inside::Code, at + 1),
                ('*', '/') => (Inside::BlockComment(depth - 1), at + 1),
                ('/', '*') => (Inside::BlockComment(depth + 1), at + 1),
                _ => {
                    line.comment.push(c);
                    (inside, at)
                }
            },
            Inside::Text => match c {
                // An escaped line end still ends the line.
                '\\' if !ends_line => (inside, at + 1),
                '"' => {
                    line.code.push('"');
                    (Inside::Code, at)
                }
                _ => (inside, at),
            },
            Inside::RawText(hashes) => {
                if c == '"' && chars[at + 1..].iter().take_while(|&&h| h == '#').count() >= hashes {
                    line.code.push('"');
                    (Inside::Code, at + hashes)
                } else {
                    (inside, at)
                }
            }
        };
        at += 1;
    }
    lines
}

/// Takes what begins at a character of code into its line: what follows, and the last character taken.
fn in_code(chars: &[char], at: usize, line: &mut Line) -> (Inside, usize) {
    let (c, next) = (chars[at], chars.get(at + 1).copied().unwrap_or('\0'));
    match c {
        '/' if next == '/' => return (Inside::LineComment, at + 1),
        '/' if next == '*' => return (Inside::BlockComment(1), at + 1),
        '"' => {
            line.code.push('"');
            return (Inside::Text, at);
        }
        'r' if !follows_word(&line.code) => {
            if let Some(hashes) = raw_hashes(&chars[at + 1..]) {
                line.code.push('"');
                return (Inside::RawText(hashes), at + hashes + 1);
            }
        }
        '\'' => {
            if let Some(length) = character_literal(&chars[at..]) {
                line.code.push_str("' '");
                return (Inside::Code, at + length - 1);
            }
        }
        _ => {}
    }
    line.code.push(c);
    (Inside::Code, at)
}

#[derive(PartialEq, Clone, Copy)]
enum Inside {
    Code,
    LineComment,
    BlockComment(u32),
    Text,
    RawText(usize),
}

fn follows_word(code: &str) -> bool {
    // `br"` is raw too; a longer word that ends in r is not.
    let word: String = code.chars().rev().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    !(word.is_empty() || word == "b" || word == "c")
}

/// The hashes of a raw string that begins after its `r`.
fn raw_hashes(after: &[char]) -> Option<usize> {
    let hashes = after.iter().take_while(|&&c| c == '#').count();
    (after.get(hashes) == Some(&'"')).then_some(hashes)
}

/// The length of the character literal here; `None` when the quote begins a lifetime.
fn character_literal(chars: &[char]) -> Option<usize> {
    match chars.get(1)? {
        '\\' => chars.iter().skip(3).take(12).position(|&c| c == '\'').map(|n| n + 4),
        _ => (chars.get(2) == Some(&'\'')).then_some(3),
    }
}

/// The words of a line of code: identifiers and single signs.
pub fn words(code: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if word(first) { rest.find(|c| !word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        words.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_code() {
        let lines = split(
            "let a = \"unsafe // no\"; // unsafe yes\nlet c = '\"'; let l: &'static str = r#\"unsafe \" {\"#;\n/* unsafe /* nested */ still */ fn f() {}",
        );
        assert_eq!(lines[0].code.trim(), "let a = \"\";");
        assert_eq!(lines[0].comment.trim(), "unsafe yes");
        assert_eq!(lines[1].code.trim(), "let c = ' '; let l: &'static str = \"\";");
        assert_eq!(lines[2].code.trim(), "fn f() {}");
        assert!(lines[2].comment.contains("nested"));
    }

    #[test]
    fn literals_over_several_lines_keep_the_count() {
        let lines = split("let a = \"x\\\n unsafe\n\";\nb '\\'' '\\u{1F600}' \"\\\"unsafe\"");
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[1].code.trim(), "");
        assert_eq!(lines[3].code.trim(), "b ' ' ' ' \"\"");
    }

    #[test]
    fn words_of_a_line() {
        assert_eq!(words("  pub unsafe fn f(a: u8)"), ["pub", "unsafe", "fn", "f", "(", "a", ":", "u8", ")"]);
    }
}
