//! What the kernel is given about an invasive application: the program itself, and the machine it is to find.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use janua_personality_outside::invasive::Config as Encoded;

use super::config::{self, Config};
use crate::options::{Machine, RunOptions};

/// Applications by name.
pub type Programs = &'static [(&'static str, &'static [u8])];

/// The applications that come with Janua (`user/programs`, `user/nas`), by name.
const PROGRAMS: Programs = include!(concat!(env!("OUT_DIR"), "/programs-x86_64.rs"));

/// A program's bytes: a file when the name has a slash, otherwise one that comes with Janua. An error has the exit code.
pub fn find(name: &OsStr) -> Result<Vec<u8>, (u8, String)> {
    find_among(PROGRAMS, name)
}

/// The same among the applications for another machine.
pub fn find_among(programs: Programs, name: &OsStr) -> Result<Vec<u8>, (u8, String)> {
    let shown = name.to_string_lossy();
    if !name.as_bytes().contains(&b'/') {
        // For work on the applications, as JANUA_IMAGE is for work on the kernel.
        if let Some(bytes) = std::env::var_os("JANUA_USER").and_then(|dir| std::fs::read(Path::new(&dir).join(name)).ok()) {
            return Ok(bytes);
        }
        if let Some((_, bytes)) = programs.iter().find(|(known, _)| OsStr::new(known) == name) {
            return Ok(bytes.to_vec());
        }
        return Err((127, format!("{shown}: {}; a file is named with a slash", lacks(programs))));
    }
    std::fs::read(name).map_err(|error| {
        let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
        (code, format!("{shown}: {error}"))
    })
}

/// Why a program is not among those that come with Janua, and what there is.
fn lacks(programs: Programs) -> String {
    if programs.is_empty() {
        // `build.rs` takes what there is when the command is built.
        return "this janua was built without the invasive applications (target/user)\n       `./janua build` builds them and a janua that has them"
            .into();
    }
    let names: Vec<&str> = programs.iter().map(|(name, _)| *name).collect();
    format!("no invasive application of this name comes with janua\n       there are: {}", names.join(", "))
}

/// The configuration of a run.
pub fn make(options: &RunOptions, machine: Machine, program: Vec<u8>) -> Result<Config, String> {
    let files = config::standard_files(true);
    let args = std::iter::once(&options.program).chain(&options.args);
    let encoded = Encoded {
        program,
        args: args.map(|arg| arg.as_bytes().to_vec()).collect(),
        tiles: machine.tiles,
        cores: machine.cores,
        library: machine.library.number(),
        answers: machine.answers,
        asks_ids: machine.asks_ids,
        output: files.iter().find(|file| file.fd == 1).map(|file| file.host),
        trace: config::trace(options)?,
        trace_whole: options.trace_whole,
        stats: options.stats,
        ..Encoded::default()
    };
    Ok(Config {
        idle: Vec::new(),
        encoded: encoded.encode(),
        shown: Vec::new(),
        root: None,
        trace: encoded.trace.map(|fd| fd.0),
        inherited: files.iter().map(|file| file.host.0).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_reported_with_why() {
        let why = |programs, name: &str| find_among(programs, OsStr::new(name)).unwrap_err();
        let (code, text) = why(&[("cg", b""), ("hello", b"")], "hell");
        assert_eq!(code, 127);
        assert!(text.starts_with("hell: no invasive application") && text.contains("there are: cg, hello; a file"));
        let (code, text) = why(&[], "calls");
        assert_eq!(code, 127);
        assert!(text.contains("built without the invasive applications") && text.contains("./janua build"));
    }
}
