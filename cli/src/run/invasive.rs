//! What the kernel is told of an invasive application: the program itself, and the machine it is to find.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use janua_personality_invasive::config::Config as Encoded;

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
        let names: Vec<&str> = programs.iter().map(|(name, _)| *name).collect();
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err((
            127,
            format!("{shown}: no invasive application of this name comes with janua\n       there are: {there}; a file is named with a slash"),
        ));
    }
    std::fs::read(name).map_err(|error| {
        let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
        (code, format!("{shown}: {error}"))
    })
}

/// The configuration of a run.
pub fn make(options: &RunOptions, machine: Machine, program: Vec<u8>) -> Result<Config, String> {
    let files = config::standard_files();
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
        stats: options.stats,
        ..Encoded::default()
    };
    Ok(Config {
        encoded: encoded.encode(),
        shown: Vec::new(),
        root: None,
        trace: encoded.trace.map(|fd| fd.0),
        inherited: files.iter().map(|file| file.host.0).collect(),
    })
}
