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
            "this janua was built without the kernel image of the personality `pal`\n       in the source tree, ./janua build builds one that has it; then copy target/release/janua anew"
                .into(),
        );
    }
    Ok(IMAGE)
}

/// The configuration of a run. An error has the exit code.
pub fn make(options: &RunOptions) -> Result<Config, (u8, String)> {
    let mut boot = config::boot(options, None).map_err(|why| (125, why))?;
    let given = Given {
        manifest: options.manifest.as_deref(),
        has_cwd: options.cwd.is_some(),
        keeps_files: matches!(options.root, Root::Writable(_)),
    };
    let encoded = complete(&mut boot, given)?;
    Ok(config::of(&boot, encoded))
}

/// What is asked for beside what every sandbox has.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    pub manifest: Option<&'a Path>,
    /// A working directory, in place of the manifest's.
    pub has_cwd: bool,
    /// What is put among the files stays there.
    pub keeps_files: bool,
}

/// Makes a configuration of the personality `linux` one of this personality: the bytes for the kernel. An error has the exit code.
pub fn complete(boot: &mut BootConfig, given: Given<'_>) -> Result<Vec<u8>, (u8, String)> {
    let failed = |why: String| (125, why);
    let text = given.manifest.map(read).transpose().map_err(failed)?;
    let manifest = match (given.manifest, &text) {
        (Some(path), Some(text)) => Manifest::parse(text).map_err(|why| failed(format!("{}: {why}", path.display())))?,
        _ => Manifest::default(),
    };
    apply(boot, &manifest, given.has_cwd);
    if !boot.program.contains(&b'/') {
        boot.texts.push(own_program(&boot.program, given.keeps_files)?);
        boot.program = [PLACE.as_bytes(), b"/", &boot.program].concat();
    }
    Ok(Encoded { boot: boot.encode(), manifest: text }.encode())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// What a manifest changes about how a program begins.
fn apply(boot: &mut BootConfig, manifest: &Manifest, has_cwd: bool) {
    if let Some(exec) = &manifest.exec {
        boot.program = exec.as_bytes().to_vec();
    }
    if let (Some(name), Some(first)) = (&manifest.execname, boot.argv.first_mut()) {
        *first = name.as_bytes().to_vec();
    }
    manifest.env.iter().for_each(|entry| set_variable(&mut boot.envp, entry.as_bytes()));
    if let Some(dir) = manifest.start_dir.as_ref().filter(|_| !has_cwd) {
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
fn own_program(name: &[u8], kept: bool) -> Result<BootText, (u8, String)> {
    let name = OsStr::from_bytes(name);
    let shown = name.to_string_lossy();
    if kept {
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
