//! `janua boot`: packs a file tree, starts QEMU with the kernel for the bare machine, shows its console, passes the exit code on.

mod console;
mod disk;
mod format;
mod keeper;
pub mod kvm;
mod l4;
mod leon3;
mod qemu;
mod tree;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use janua_personality_outside::archive;
use janua_personality_outside::invasive::Config;
use janua_personality_outside::linux::{BootConfig, BootFile, BootMount, BootMountKind};
use janua_platform_bare::outside::{INITRD, SERIAL};

use crate::exit;
use crate::options::{BootMachine, BootOptions, BootPlatform};
use crate::run::{invasive, pal};

/// The kernel image, as built by `cargo xtask image x86_64`; empty when the command was built without one.
static IMAGE: &[u8] = include_bytes!(env!("JANUA_IMAGE_X86_64"));

pub use keeper::{ARGUMENT as KEEPER, keep};

/// The kernel image; why there is none.
fn image() -> Result<Vec<u8>, String> {
    match std::env::var_os("JANUA_IMAGE_X86_64") {
        // For work on the kernel, as JANUA_IMAGE is for `janua run`.
        Some(path) => std::fs::read(&path).map_err(|error| {
            let path = path.to_string_lossy();
            format!("cannot read the kernel image {path} (JANUA_IMAGE_X86_64): {error}")
        }),
        None if IMAGE.is_empty() => {
            Err("this janua holds no kernel for the bare machine: it was built without\n       in the source tree, ./janua boot builds it with that; then copy target/release/janua anew".into())
        }
        None => Ok(IMAGE.to_vec()),
    }
}

/// Boots and gives the program's exit code.
pub fn boot(options: &BootOptions) -> ExitCode {
    if options.platform == BootPlatform::Leon3 {
        return leon3::boot(options);
    }
    if let Some(system) = &options.l4 {
        return l4::boot(options, system);
    }
    if let Some(machine) = options.invasive {
        return boot_invasive(options, machine);
    }
    let encoded = match encoded(options) {
        Ok(encoded) => encoded,
        Err((code, why)) => {
            crate::exit::say(&format_args!("janua: {why}\n"));
            return ExitCode::from(code);
        }
    };
    match image().and_then(|image| run(options, &image, &encoded)) {
        Ok(code) => ExitCode::from(code),
        Err(why) => exit::fail(&why),
    }
}

/// What each kernel is given about its program with files, by tile. An error has the exit code.
fn encoded(options: &BootOptions) -> Result<Vec<Vec<u8>>, (u8, String)> {
    let others =
        options.tiles.iter().flat_map(|tiles| &tiles.programs).map(|program| other_config(options, program.as_deref()));
    std::iter::once(config(options)).chain(others).map(|config| encoded_one(options, config)).collect()
}

/// The configuration of a tile beside the first, with a program of its own or without one.
fn other_config(options: &BootOptions, program: Option<&[OsString]>) -> BootConfig {
    let mut config = config(options);
    // The line is the first tile's.
    config.terminal = None;
    match program {
        Some(words) => {
            config.argv = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            config.program = config.argv.first().cloned().unwrap_or_default();
        }
        None => config.idle = true,
    }
    config
}

fn encoded_one(options: &BootOptions, mut config: BootConfig) -> Result<Vec<u8>, (u8, String)> {
    let Some(program) = &options.pal else { return Ok(config.encode()) };
    let given = pal::Given {
        manifest: program.manifest.as_deref(),
        has_cwd: options.cwd.is_some(),
        keeps_files: options.disk.is_some(),
    };
    pal::complete(&mut config, given)
}

/// Boots an invasive application.
fn boot_invasive(options: &BootOptions, machine: BootMachine) -> ExitCode {
    let program = match invasive::find(&options.program) {
        Ok(program) => program,
        Err((code, why)) => {
            crate::exit::say(&format_args!("janua: {why}\n"));
            return ExitCode::from(code);
        }
    };
    let config = Config {
        output: Some(SERIAL[1]),
        stats: machine.stats,
        // There are as many processors as cores.
        pinned: true,
        ..application(options, machine, program)
    };
    match image().and_then(|image| qemu::run(&image, &config.encode(), None, options)) {
        Ok(code) => ExitCode::from(code),
        Err(why) => exit::fail(&why),
    }
}

/// What every bare machine is given about an invasive application.
fn application(options: &BootOptions, machine: BootMachine, program: Vec<u8>) -> Config {
    let args = std::iter::once(&options.program).chain(&options.args);
    Config {
        program,
        args: args.map(|arg| arg.as_bytes().to_vec()).collect(),
        tiles: machine.tiles,
        cores: machine.cores,
        library: machine.library.number(),
        answers: machine.answers,
        interrupts: machine.interrupts,
        ..Config::default()
    }
}

fn run(options: &BootOptions, image: &[u8], configs: &[Vec<u8>]) -> Result<u8, String> {
    let pack = |mut archive: Vec<u8>| {
        match &options.ramfs {
            Some(file) if file.is_file() => tree::take(file, &mut archive),
            Some(dir) => tree::pack(dir, &mut archive),
            None if options.pal.is_some() => {
                tree::pack_empty(&mut archive);
                Ok(())
            }
            None => tree::pack_default(&mut archive),
        }?;
        Ok(archive)
    };
    let module = archive::module_of_tiles(configs);
    let (module, disk) = match &options.disk {
        Some(disk) => (module, Some(disk::prepare(disk, options.disk_size, || pack(Vec::new()))?)),
        None => (pack(module)?, None),
    };
    qemu::run(image, &module, disk.as_deref(), options)
}

/// The configuration that runs the program of [`kvm::test`].
fn test_config() -> BootConfig {
    config(&BootOptions { program: kvm::PROGRAM.into(), ..BootOptions::default() })
}

fn config(options: &BootOptions) -> BootConfig {
    let text = |text: &std::ffi::OsStr| text.as_bytes().to_vec();
    let mount = |kind, target: &str| BootMount { kind, target: target.into(), read_only: false };
    BootConfig {
        program: text(&options.program),
        argv: std::iter::once(&options.program).chain(&options.args).map(|arg| text(arg)).collect(),
        envp: options.environment.iter().map(|(key, value)| [key.as_bytes(), b"=", value.as_bytes()].concat()).collect(),
        cwd: options.cwd.as_ref().map_or_else(|| b"/".to_vec(), |cwd| text(cwd.as_os_str())),
        umask: 0o022,
        hostname: b"janua".to_vec(),
        domainname: b"(none)".to_vec(),
        terminal: console::Terminal::is_there().then_some(SERIAL[0]),
        files: (0..).zip(SERIAL).map(|(fd, host)| BootFile { fd, host, name: Vec::new() }).collect(),
        mounts: vec![
            mount(if options.disk.is_some() { BootMountKind::Disk } else { BootMountKind::Archive { archive: INITRD } }, "/"),
            mount(BootMountKind::Proc, "/proc"),
            mount(BootMountKind::Sys, "/sys"),
            mount(BootMountKind::Dev, "/dev"),
            mount(BootMountKind::Memory, "/dev/shm"),
        ],
        modules: options.modules.clone(),
        stats: options.stats,
        ..BootConfig::default()
    }
}
