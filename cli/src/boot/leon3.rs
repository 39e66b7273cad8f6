//! QEMU as the LEON3: one application of the invasive personality, alone on the machine.
//!
//! Kernel and application share the one serial line. What the kernel prints besides output, the exit code among it, is a line that
//! begins with [`OWN`]; QEMU's own exit code is always 0.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, ExitCode, Stdio};

use janua_personality_outside::invasive::Config;
use janua_platform_bare::outside::{EXIT_MARK, MODULE, MODULE_MARK, OWN, WINDOWS_MARK};

use super::application;
use super::keeper::Keeper;
use super::qemu::memory_file;
use crate::exit;
use crate::options::BootOptions;
use crate::run::invasive::{Programs, find_among};

/// The kernel image, as built by `cargo xtask image leon3`; empty when the command was built without one.
static IMAGE: &[u8] = include_bytes!(env!("JANUA_IMAGE_LEON3"));

/// The applications that come with Janua, built for the machine.
const PROGRAMS: Programs = include!(concat!(env!("OUT_DIR"), "/programs-leon3.rs"));

const QEMU: &str = "qemu-system-sparc";
/// The most memory the machine takes, MiB.
const MEMORY_MOST: u32 = 1024;

/// Boots and gives the application's exit code.
pub fn boot(options: &BootOptions) -> ExitCode {
    let image = match std::env::var_os("JANUA_IMAGE_LEON3") {
        Some(path) => match fs::read(&path) {
            Ok(image) => image,
            Err(error) => {
                let path = path.to_string_lossy();
                return exit::fail(&format!("cannot read the kernel image {path} (JANUA_IMAGE_LEON3): {error}"));
            }
        },
        None if IMAGE.is_empty() => {
            return exit::fail(
                &"this janua holds no kernel for the LEON3: it was built without\n       in the source tree, ./janua boot --platform leon3 builds it with that; then copy target/release/janua anew",
            );
        }
        None => IMAGE.to_vec(),
    };
    let program = match find_among(PROGRAMS, &options.program) {
        Ok(program) => program,
        Err((code, why)) => {
            crate::exit::say(&format_args!("janua: {why}\n"));
            return ExitCode::from(code);
        }
    };
    let Some(machine) = options.invasive else {
        return exit::fail(&"the LEON3 runs applications of the personality `invasive`");
    };
    let config = Config { tiles: 1, ..application(options, machine, program) };
    match run(&image, &config.encode(), options, machine.stats) {
        Ok(code) => ExitCode::from(code),
        Err(why) => exit::fail(&why),
    }
}

fn run(image: &[u8], config: &[u8], options: &BootOptions, stats: bool) -> Result<u8, String> {
    let memory = options.memory.min(MEMORY_MOST);
    let size = u32::try_from(config.len()).map_err(|_| "the program is too large for the machine")?;
    let header = [MODULE_MARK, memory << 20, size, 0].map(u32::to_be_bytes).concat();
    let image = memory_file("janua-kernel", image)?;
    let module = memory_file("janua-module", &[&header, config].concat())?;
    let path = |file: &fs::File| format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut command = Command::new(QEMU);
    command
        .args(["-M", "leon3_generic", "-m", &memory.to_string(), "-nodefaults", "-no-user-config"])
        .args(["-display", "none", "-serial", "stdio", "-monitor", "none"])
        .args(["-kernel", &path(&image)])
        .arg("-device")
        .arg(format!("loader,file={},addr={MODULE:#x},force-raw=on", path(&module)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    if let Some(shift) = options.icount {
        command.arg("-icount").arg(format!("shift={shift}"));
    }
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{QEMU} is not installed, and `janua boot --platform leon3` needs it as the machine\n       on Debian and Ubuntu: apt-get install qemu-system-sparc"
        ),
        _ => format!("cannot start {QEMU}: {error}"),
    })?;
    let keeper = Keeper::start(&child, false).inspect_err(|_| drop(child.kill()));
    let keeper = keeper.map_err(|error| format!("cannot start a process beside {QEMU}: {error}"))?;
    let code = listen(&mut child, stats);
    let status = child.wait();
    keeper.dismiss();
    let status = status.map_err(|error| format!("cannot wait for {QEMU}: {error}"))?;
    match code {
        Some(code) if status.success() => Ok(code),
        _ => Err(format!("the machine ended without an exit code (QEMU: {status})")),
    }
}

/// Passes output on, the kernel's lines to standard error, and remembers the exit code.
fn listen(child: &mut Child, stats: bool) -> Option<u8> {
    let mut line = child.stdout.take()?;
    let (mut code, mut own, mut bytes) = (None, None::<Vec<u8>>, [0; 4096]);
    while let Ok(len @ 1..) = line.read(&mut bytes) {
        let mut output = Vec::with_capacity(len);
        for &byte in &bytes[..len] {
            match &mut own {
                None if [byte] == *OWN.as_bytes() => own = Some(Vec::new()),
                // The UART's line ends are the program's.
                None => output.push(byte),
                Some(text) if byte != b'\n' => text.push(byte),
                Some(text) => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    if let Some(numbers) = text.strip_prefix(WINDOWS_MARK) {
                        let numbers: Vec<&str> = numbers.split(' ').collect();
                        if let ([spilled, filled, switches], true) = (&numbers[..], stats) {
                            crate::exit::say(&format_args!(
                                "janua: windows spilled: {spilled}, filled: {filled}; switches between cores: {switches}\n"
                            ));
                        }
                        own = None;
                        continue;
                    }
                    match text.strip_prefix(EXIT_MARK).and_then(|code| code.parse().ok()) {
                        Some(reported) => code = Some(reported),
                        None => crate::exit::say(&format_args!("{text}\n")),
                    }
                    own = None;
                }
            }
        }
        // Nothing is left to do when standard output is closed.
        let _ = io::stdout().lock().write_all(&output);
        let _ = io::stdout().lock().flush();
    }
    code
}
