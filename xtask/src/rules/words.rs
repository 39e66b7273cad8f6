//! Rule `field-words`: what the field has a term for is called by it.

use std::fs;

use super::{Breach, Tree, documents};
use crate::workspace;

/// This file names the phrases.
const HERE: &str = "xtask/src/rules/words.rs";

/// Phrases of the project's former dialect, and the term to use. The words of a name count as well as those of a text; a `*` stands for any ending.
const PHRASES: &[(&str, &str)] = &[
    ("short way", "fast path"),
    ("short ways", "fast paths"),
    ("long way", "slow path"),
    ("long ways", "slow paths"),
    ("way in", "entry"),
    ("ways in", "entries"),
    ("way out", "exit"),
    ("ways out", "exits"),
    ("way back", "return to user mode, return address"),
    ("ways back", "returns"),
    ("whoever", "the caller, the thread that ..."),
    ("kin", "variants, and the like"),
    ("numbering*", "ABI, system-call table"),
    ("wish*", "request, or hint for an address"),
    ("glanc*", "uncached stat"),
    ("bury", "reap"),
    ("buries", "reaps"),
    ("buried", "reaped"),
    ("soil*", "mark dirty"),
    ("defus*", "patch out"),
    ("is told", "is notified, is given, gets, learns"),
    ("are told", "are notified, are given, get, learn"),
    ("be told", "be notified, be reported, be given, be known"),
    ("been told", "been notified, been given, knows"),
    ("being told", "being notified, being reported, a notice"),
    ("was told", "was notified, was given"),
    ("not told", "not reported, not known"),
    ("nobody's", "unowned, not in use, no ..."),
    ("tells the", "reports, shows, notifies"),
    ("says whether", "returns whether"),
    ("answers whether", "returns whether"),
    ("answers with", "returns, replies with"),
    ("news", "events, notices"),
    ("shortcut*", "fast path"),
    ("door", "entry, entry descriptor"),
    ("doors", "entries"),
    ("bed", "wait bucket"),
    ("beds", "wait buckets"),
    ("fn tell*", "notify, report"),
    ("lies", "is (at, in)"),
    ("looks on", "spins, polls"),
    ("barred", "non-executable"),
    ("was taken over", "compromised"),
    ("been taken over", "compromised"),
];

/// Words before "way in" with which it is ordinary English, or the loop `for way in`.
const ORDINARY: &[&str] = &["for", "same"];

/// Rule `field-words`: no phrase of the list is in a source file or a document.
pub fn field_words(tree: &Tree) -> Vec<Breach> {
    let sources = tree.files.iter().map(|file| file.path.clone()).filter(|path| path != HERE);
    let paths = sources.chain(documents::all());
    let texts = paths.filter_map(|path| Some((fs::read_to_string(workspace::root().join(&path)).ok()?, path)));
    texts.flat_map(|(text, path)| hits(&text).map(|hit| hit.at(&path)).collect::<Vec<_>>()).collect()
}

/// A phrase that was found.
#[derive(Debug, PartialEq, Eq)]
struct Hit {
    line: usize,
    phrase: &'static str,
    term: &'static str,
}

impl Hit {
    fn at(self, path: &str) -> Breach {
        let what = format!("\"{}\": the field's term is {}", self.phrase, self.term);
        Breach::new("field-words", format!("{path}:{}", self.line), what)
    }
}

/// Where the phrases are in a text.
fn hits(text: &str) -> impl Iterator<Item = Hit> {
    let words = words(text);
    let phrases: Vec<(Vec<&str>, _)> = PHRASES.iter().map(|entry| (parts(entry.0), entry)).collect();
    let mut found = Vec::new();
    for at in 0..words.len() {
        for &(ref parts, &(phrase, term)) in &phrases {
            let mut here = words[at..].iter();
            let is_phrase = parts.iter().all(|part| here.next().is_some_and(|(_, word)| matches(part, word)));
            let is_ordinary = phrase == "way in" && at > 0 && ORDINARY.contains(&words[at - 1].1.as_str());
            if is_phrase && !is_ordinary {
                found.push(Hit { line: words[at].0, phrase, term });
            }
        }
    }
    found.into_iter()
}

/// The words of a phrase. An apostrophe is one without letters, as in the texts ([`words`]).
fn parts(phrase: &str) -> Vec<&str> {
    phrase
        .split(' ')
        .flat_map(|word| word.split_inclusive('\''))
        .flat_map(|word| match word.strip_suffix('\'') {
            Some(word) => vec![word, ""],
            None => vec![word],
        })
        .collect()
}

fn matches(part: &str, word: &str) -> bool {
    part.strip_suffix('*').map_or(part == word, |start| word.starts_with(start))
}

/// The words of a text in lower case, with their lines. `snake_case` and `CamelCase` are several words. Signs other than those of
/// comments and names count as a word without letters: no phrase reaches across them.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut before = ' ';
        for c in line.chars() {
            if c.is_alphanumeric() {
                let goes_on = before.is_alphanumeric() && !(before.is_lowercase() && c.is_uppercase());
                match words.last_mut() {
                    Some((_, word)) if goes_on => word.extend(c.to_lowercase()),
                    _ => words.push((number + 1, c.to_lowercase().collect())),
                }
            } else if !(c.is_whitespace() || "_-/!*#|>".contains(c)) {
                words.push((number + 1, String::new()));
            }
            before = c;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, &'static str)> {
        hits(text).map(|hit| (hit.line, hit.phrase)).collect()
    }

    #[test]
    fn phrases_are_found_in_texts_and_names() {
        assert_eq!(found("// The short way.\n\nfn is_way_out() {}"), [(1, "short way"), (3, "way out")]);
        assert_eq!(found("End::Glanced(WishList, CALL_NUMBERING)"), [(1, "glanc*"), (1, "wish*"), (1, "numbering*")]);
        assert_eq!(found("* mmap(2) and its kin;\n whoever comes"), [(1, "kin"), (2, "whoever")]);
    }

    #[test]
    fn phrases_are_found_across_lines() {
        assert_eq!(found("    /// takes the long\n    /// way, and\n# the way-\n# back"), [(1, "long way"), (3, "way back")]);
    }

    #[test]
    fn other_words_are_left_alone() {
        let text = "for way in WAYS {} // skin, kind; in the same way in both. That way. In here; a way, back to it; shortway";
        assert_eq!(found(text), []);
        assert_eq!(found("The fast path, the slow path, entry and exit; away in a buffer"), []);
    }

    #[test]
    fn each_phrase_is_found_and_has_a_term() {
        for &(phrase, term) in PHRASES {
            let text = phrase.replace('*', "");
            assert!(hits(&text).any(|hit| hit.phrase == phrase), "{phrase}");
            assert_eq!(found(term), [], "{phrase}");
        }
    }
}
