//! Systems of L4, Version 2, on the bare machine.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use janua_personality_outside::l4v2::{Config, Module};
use janua_platform_bare::outside::SERIAL;

use super::{image, qemu};
use crate::exit;
use crate::options::{BootOptions, L4System};
use crate::run::invasive::Programs;

/// The programs that come with Janua (`user/l4`), by name.
const PROGRAMS: Programs = include!(concat!(env!("OUT_DIR"), "/programs-l4.rs"));

/// Physical memory, MiB: this part of the machine's.
const SHARE: u32 = 4;
/// The most there can be.
const MOST: u32 = 1024;

/// Boots a system.
pub fn boot(options: &BootOptions, system: &L4System) -> ExitCode {
    let modules = match system.modules.iter().map(|module| find(module)).collect::<Result<Vec<Module>, _>>() {
        Ok(modules) => modules,
        Err((code, why)) => {
            eprintln!("janua: {why}");
            return ExitCode::from(code);
        }
    };
    let config = Config {
        modules,
        memory: u64::from((options.memory / SHARE).min(MOST)) << 20,
        output: Some(SERIAL[1]),
        stats: system.stats,
        ..Config::default()
    };
    match image().and_then(|image| qemu::run(&image, &config.encode(), None, options)) {
        Ok(code) => ExitCode::from(code),
        Err(why) => exit::fail(&why),
    }
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
