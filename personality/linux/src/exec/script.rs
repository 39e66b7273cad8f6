//! `#!` lines.

use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};

/// Bytes at the start of a file that exec looks at.
pub const LOOK: usize = 256;

/// What a script's first line specifies.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    pub interpreter: Vec<u8>,
    /// The rest of the line, one argument, blanks inside included.
    pub argument: Option<Vec<u8>>,
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Reads the first line of a file from its first [`LOOK`] bytes. `Ok(None)` when it is no script; ENOEXEC when the line names
/// no interpreter or the name may have been cut off.
pub fn parse(start: &[u8]) -> Result<Option<Script>> {
    let Some(text) = start.strip_prefix(b"#!") else { return Ok(None) };
    let text = &text[..text.len().min(LOOK - 2)];
    let line_end = text.iter().position(|&byte| byte == b'\n' || byte == 0);
    // A line that goes on is cut one byte short of what is looked at.
    let line = &text[..line_end.unwrap_or(text.len().min(LOOK - 3))];
    let name_start = line.iter().position(|&byte| !is_blank(byte)).ok_or(Errno::ENOEXEC)?;
    let line_rest = &line[name_start..];
    let name_end = line_rest.iter().position(|&byte| is_blank(byte));
    if name_end.is_none() && line_end.is_none() && start.len() >= LOOK {
        return Err(Errno::ENOEXEC);
    }
    let (name, rest) = line_rest.split_at(name_end.unwrap_or(line_rest.len()));
    let from = rest.iter().position(|&byte| !is_blank(byte));
    let argument = from.map(|from| {
        let end = rest.iter().rposition(|&byte| !is_blank(byte)).unwrap_or(from);
        rest[from..=end].to_vec()
    });
    Ok(Some(Script { interpreter: name.to_vec(), argument }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(line: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        parse(line).ok().flatten().map(|script| (script.interpreter, script.argument))
    }

    #[test]
    fn lines() {
        assert_eq!(script(b"#!/bin/sh\necho"), Some((b"/bin/sh".to_vec(), None)));
        assert_eq!(script(b"#! /usr/bin/env  python3 -u \n"), Some((b"/usr/bin/env".to_vec(), Some(b"python3 -u".to_vec()))));
        assert_eq!(script(b"#!/bin/sh"), Some((b"/bin/sh".to_vec(), None)));
        assert_eq!(parse(b"#!\n"), Err(Errno::ENOEXEC));
        assert_eq!(parse(b"#!   \n"), Err(Errno::ENOEXEC));
        assert_eq!(parse(b"echo"), Ok(None));
        let mut long = b"#!/".to_vec();
        long.resize(LOOK, b'x');
        assert_eq!(parse(&long), Err(Errno::ENOEXEC));
        long[200] = b' ';
        assert!(script(&long).is_some());
    }
}
