//! What the kernel is given about a system of L4: its modules, and how much memory it has.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use janua_personality_outside::l4v2::{Config as Encoded, MEMORY_MOST, Module};

use super::config::{self, Config};
use super::invasive::Programs;
use crate::options::RunOptions;

/// The kernel image of the personality for Linux; empty in a command that was built without it.
static IMAGE: &[u8] = include_bytes!(env!("JANUA_IMAGE_LINUX_L4"));

/// The programs that come with Janua (`user/l4`), by name.
const PROGRAMS: Programs = include!(concat!(env!("OUT_DIR"), "/programs-l4.rs"));

/// Physical memory is this part of what there is.
const SHARE: u64 = 4;
/// What there is without a limit of the user's, bytes: as much as a bare machine has.
const USUAL: u64 = 512 << 20;

/// The image, or what would make it.
pub fn image() -> Result<&'static [u8], String> {
    if IMAGE.is_empty() {
        return Err("this janua was built without the kernel image of the personality `l4v2`\n       in the source tree, ./janua build builds one that has it; then copy target/release/janua anew".into());
    }
    Ok(IMAGE)
}

/// Bytes of physical memory, where there are so many in all.
pub fn physical(all: u64) -> u64 {
    // Whole pages.
    (all / SHARE).min(MEMORY_MOST) & !0xfff
}

/// The modules. An error has the exit code.
pub fn modules(named: &[OsString]) -> Result<Vec<Module>, (u8, String)> {
    named.iter().map(|module| find(module)).collect()
}

/// The configuration of a run.
pub fn make(options: &RunOptions, modules: Vec<Module>) -> Result<Config, String> {
    let files = config::standard_files(true);
    let limit = options.allowed.memory.filter(|limit| *limit != usize::MAX).map_or(USUAL, |limit| limit as u64);
    let encoded = Encoded {
        modules,
        memory: physical(limit),
        output: files.iter().find(|file| file.fd == 1).map(|file| file.host),
        trace: config::trace(options)?,
        trace_whole: options.trace_whole,
        stats: options.stats,
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

/// A module: its file's bytes, when the name has a slash, or those of a program that comes with Janua. An error has the exit code.
fn find(module: &OsStr) -> Result<Module, (u8, String)> {
    let command = module.as_bytes().to_vec();
    let name = OsStr::from_bytes(command.split(|byte| *byte == b' ').next().unwrap_or_default());
    let shown = name.to_string_lossy();
    if name.as_bytes().contains(&b'/') {
        return match std::fs::read(Path::new(name)) {
            Ok(bytes) => Ok(Module { command, bytes }),
            Err(error) => {
                Err((if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }, format!("{shown}: {error}")))
            }
        };
    }
    if let Some((_, bytes)) = PROGRAMS.iter().find(|(known, _)| OsStr::new(known) == name) {
        return Ok(Module { command, bytes: bytes.to_vec() });
    }
    let names: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
    let there = if names.is_empty() { "none: `./janua build` builds them".into() } else { names.join(", ") };
    Err((
        127,
        format!(
            "{shown}: no program of L4 of this name comes with janua\n       there are: {there}; a file is named with a slash"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_reported_with_why() {
        let (code, why) = find(OsStr::new("sigma9 with arguments")).unwrap_err();
        assert_eq!(code, 127);
        assert!(why.starts_with("sigma9: no program of L4"), "{why}");
        let (code, why) = find(OsStr::new("/nowhere/at/all x")).unwrap_err();
        assert_eq!(code, 127);
        assert!(why.starts_with("/nowhere/at/all: "), "{why}");
        let (code, _) = find(OsStr::new("/")).unwrap_err();
        assert_eq!(code, 126);
    }
}
