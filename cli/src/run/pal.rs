//! What the kernel is given about a picoprocess: the sandbox of the personality `linux`, the program, and the manifest.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use janua_abi::linux::process::{Rlimit, rlimit};
use janua_personality_outside::linux::{BootConfig, BootText};
use janua_personality_outside::pal::Config as Encoded;
use janua_personality_outside::pal::manifest::Manifest;

use super::config::{self, Config};
use super::invasive::Programs;
use crate::options::{Root, RunOptions};

/// The kernel image of the personality for Linux; empty in a command that was built without it.
static IMAGE: &[u8] = include_bytes!(env!("JANUA_IMAGE_LINUX_PAL"));

/// The programs that come with Janua (`user/libpal/programs`), by name.
const PROGRAMS: Programs = include!(concat!(env!("OUT_DIR"), "/programs-pal.rs"));

/// Where a program that comes with Janua is inside.
const PLACE: &str = "/pal";

/// The image, or what would make it.
pub fn image() -> Result<&'static [u8], String> {
    if IMAGE.is_empty() {
        return Err(
            "this janua was built without the kernel image of the personality `pal`\n       `./janua build` builds one that has it"
                .into(),
        );
    }
    Ok(IMAGE)
}

/// The configuration of a run. An error has the exit code.
pub fn make(options: &RunOptions) -> Result<Config, (u8, String)> {
    let failed = |why: String| (125, why);
    let text = options.manifest.as_deref().map(read).transpose().map_err(failed)?;
    let manifest = match (&options.manifest, &text) {
        (Some(path), Some(text)) => Manifest::parse(text).map_err(|why| failed(format!("{}: {why}", path.display())))?,
        _ => Manifest::default(),
    };
    let mut boot = config::boot(options, None).map_err(failed)?;
    apply(&mut boot, options, &manifest);
    if !boot.program.contains(&b'/') {
        boot.texts.push(own_program(options, &boot.program)?);
        boot.program = [PLACE.as_bytes(), b"/", &boot.program].concat();
    }
    let encoded = Encoded { boot: boot.encode(), manifest: text };
    Ok(config::of(&boot, encoded.encode()))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// What a manifest changes about how a program begins.
fn apply(boot: &mut BootConfig, options: &RunOptions, manifest: &Manifest) {
    if let Some(exec) = &manifest.exec {
        boot.program = exec.as_bytes().to_vec();
    }
    if let (Some(name), Some(first)) = (&manifest.execname, boot.argv.first_mut()) {
        *first = name.as_bytes().to_vec();
    }
    manifest.env.iter().for_each(|entry| set_variable(&mut boot.envp, entry.as_bytes()));
    if let Some(dir) = manifest.start_dir.as_ref().filter(|_| options.cwd.is_none()) {
        boot.cwd = dir.as_bytes().to_vec();
        boot.cwd_asked = true;
    }
    if let Some(stack) = manifest.stack {
        boot.limits[rlimit::STACK as usize] = Some(Rlimit { soft: stack, hard: stack });
    }
}

/// Sets a variable (`NAME=VALUE`) where it is, or adds it: the first of a name is the one that counts.
fn set_variable(all: &mut Vec<Vec<u8>>, entry: &[u8]) {
    let name = |entry: &[u8]| entry.iter().position(|byte| *byte == b'=').map(|end| entry[..end].to_vec());
    match all.iter_mut().find(|other| name(other) == name(entry)) {
        Some(other) => *other = entry.to_vec(),
        None => all.push(entry.to_vec()),
    }
}

/// A program that comes with Janua, as a file inside. An error has the exit code.
fn own_program(options: &RunOptions, name: &[u8]) -> Result<BootText, (u8, String)> {
    let name = OsStr::from_bytes(name);
    let shown = name.to_string_lossy();
    if matches!(options.root, Root::Writable(_)) {
        return Err((
            125,
            format!(
                "{shown}: what comes with janua is not put into a root that keeps everything\n       name a file with a slash"
            ),
        ));
    }
    // For work on the programs, as JANUA_IMAGE is for work on the kernel.
    let other = std::env::var_os("JANUA_USER").and_then(|dir| std::fs::read(PathBuf::from(dir).join(name)).ok());
    let known = || PROGRAMS.iter().find(|(known, _)| OsStr::new(known) == name).map(|(_, bytes)| bytes.to_vec());
    match other.or_else(known) {
        Some(text) => Ok(BootText { path: format!("{PLACE}/{shown}").into_bytes(), text, executable: true }),
        None => {
            let names: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
            let there = if names.is_empty() { "none: `./janua build` builds them".into() } else { names.join(", ") };
            Err((
                127,
                format!(
                    "{shown}: no program on libpal of this name comes with janua\n       there are: {there}; a file is named with a slash"
                ),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::set_variable;

    #[test]
    fn a_variable_of_the_manifest_takes_the_caller_s_place() {
        let mut all: Vec<Vec<u8>> = ["HOME=/home/a", "PATH=/bin", "HOMES=2"].map(Vec::from).into();
        for entry in ["HOME=/root", "NEW=1", "NEW=2"] {
            set_variable(&mut all, entry.as_bytes());
        }
        assert_eq!(all, ["HOME=/root", "PATH=/bin", "HOMES=2", "NEW=2"].map(Vec::from));
    }
}
