//! QEMU as the bare machine.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustix::fs::MemfdFlags;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::console::{Keyboard, Terminal};
use super::keeper::Keeper;
use super::kvm;
use crate::options::{BootOptions, Library};
use janua_platform_bare::Slicing;
use janua_platform_bare::outside::EXIT_MARK;

const QEMU: &str = "qemu-system-x86_64";
/// QEMU's exit code after the kernel has powered off: what it writes to the exit device, twice and one.
const POWERED_OFF: i32 = 33;
/// In QEMU's warnings of what its emulation lacks of a processor that was asked for by name: dozens, which do not concern the program.
const LACKS: &str = "TCG doesn't support requested feature";
/// The kernel's line when it takes input.
const LISTENS: &str = "janua-listens";
/// The exit code when the person at the keyboard ended the machine: as if by an interrupt.
const ENDED_BY_HAND: u8 = 128 + 2;

/// MiB a machine needs besides the file tree: the kernel's heap and tables, and something for programs.
const SPARE: u32 = 40;

/// What executes the machine's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// Software.
    Tcg,
    /// The processor.
    Kvm,
}

/// How a machine is to be.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    pub accelerator: Accelerator,
    /// MiB.
    pub memory: u32,
    pub processors: u32,
    /// The emulated processor; without a name the one with all there is.
    pub model: Option<&'a str>,
}

/// A machine that can be started.
pub struct Machine {
    pub command: Command,
    /// What the command names under /proc.
    _files: [File; 2],
}

/// A machine, with a disk when there is a file for it; its standard error is piped.
pub fn machine(shape: Shape<'_>, image: &[u8], module: &[u8], disk: Option<&Path>) -> Result<Machine, String> {
    // Inherited, and read by their names under /proc: nothing is left behind in a directory.
    let files = [memory_file("janua-kernel", image)?, memory_file("janua-initrd", module)?];
    let [image, module] = [&files[0], &files[1]].map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()));
    let (accelerator, processor) = match shape.accelerator {
        Accelerator::Tcg => ("tcg", shape.model.unwrap_or("max,vendor=GenuineIntel")),
        Accelerator::Kvm => ("kvm", "host"),
    };
    let mut command = Command::new(QEMU);
    command
        .args(["-M", "microvm", "-accel", accelerator, "-cpu", processor, "-smp", &shape.processors.to_string()])
        .args(["-m", &shape.memory.to_string(), "-nodefaults", "-no-user-config", "-no-reboot"])
        .args(["-display", "none", "-serial", "stdio", "-monitor", "none"])
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"])
        // The kernel's own voice, apart from what programs write.
        .args(["-debugcon", "file:/proc/self/fd/2"])
        .args(["-kernel", &image, "-initrd", &module])
        .stderr(Stdio::piped());
    if let Some(disk) = disk {
        // The kernel is notified of what the disk cannot do: QEMU would rather stop the machine. A comma stands for itself when doubled.
        let drive = format!(
            "id=disk,format=raw,if=none,werror=report,rerror=report,file={}",
            disk.display().to_string().replace(',', ",,")
        );
        command
            .args(["-global", "virtio-mmio.force-legacy=false", "-drive", &drive])
            .args(["-device", "virtio-blk-device,drive=disk"]);
    }
    Ok(Machine { command, _files: files })
}

/// What the platform reads; everything else is in the configuration.
fn command_line(options: &BootOptions) -> String {
    let isolation = options.kpti.map(|on| if on { "kpti=on" } else { "kpti=off" });
    let vsyscall = options.native_vsyscall.then_some("vsyscall=native");
    // Calls without a gate are calls of the kernel's functions.
    let protection = options.invasive.filter(|machine| machine.library != Library::Gate).map(|_| "protection=off");
    let slice = options.slice.map(|slice| format!("{}{slice}", Slicing::WORD));
    let tiles = options.tiles.as_ref().map(|tiles| format!("tiles={} cores={}", tiles.kernels.count, tiles.kernels.cores));
    let messages = options.tiles.as_ref().and_then(|tiles| tiles.messages).map(|number| format!("messages={number}"));
    isolation
        .into_iter()
        .chain(vsyscall)
        .chain(tiles.as_deref())
        .chain(messages.as_deref())
        .chain(protection)
        .chain(slice.as_deref())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The exit code in a line of the kernel's.
pub fn exit_code(line: &str) -> Option<u8> {
    line.trim_end().strip_prefix(EXIT_MARK)?.parse().ok()
}

/// Runs the machine to its end: the program's exit code.
pub fn run(image: &[u8], module: &[u8], disk: Option<&Path>, options: &BootOptions) -> Result<u8, String> {
    let BootOptions { memory, smp, .. } = *options;
    // Each tile has an image and files of its own.
    let tiles = options.tiles.as_ref().map_or(1, |tiles| tiles.kernels.count);
    let needed = (mebibytes(image.len() + 2 * module.len()) + SPARE) * tiles;
    if needed > memory {
        return Err(format!(
            "the file tree ({} MiB) does not fit into a machine of {memory} MiB: it is there packed and unpacked{}\n       give the machine more (--memory {needed}), or a smaller tree",
            mebibytes(module.len()),
            if tiles > 1 { ", for each tile" } else { "" }
        ));
    }
    // Only the emulation counts instructions, has plugins, or is another processor.
    let emulated = options.icount.is_some() || options.plugin.is_some() || options.cpu.is_some();
    let accelerator = if !emulated && kvm::is_usable() { Accelerator::Kvm } else { Accelerator::Tcg };
    let mut machine =
        machine(Shape { accelerator, memory, processors: smp, model: options.cpu.as_deref() }, image, module, disk)?;
    machine.command.args(["-append", &command_line(options)]);
    if let Some(shift) = options.icount {
        machine.command.arg("-icount").arg(format!("shift={shift}"));
    }
    if let Some(plugin) = &options.plugin {
        machine.command.arg("-plugin").arg(plugin);
    }
    // Invasive applications and systems of L4 read nothing, and what they write is not for a terminal in raw mode.
    let reads = options.invasive.is_none() && options.l4.is_none();
    let interactive = reads && Terminal::is_there();
    let mut child = machine.command.stdin(if reads { Stdio::piped() } else { Stdio::null() }).spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{QEMU} is not installed, and `janua boot` needs it as the machine\n       on Debian and Ubuntu: apt-get install qemu-system-x86"
        ),
        _ => format!("cannot start {QEMU}: {error}"),
    })?;
    let keeper = Keeper::start(&child, interactive).inspect_err(|_| drop(child.kill()));
    let keeper = keeper.map_err(|error| format!("cannot start a process beside {QEMU}: {error}"))?;
    let ended = converse(&mut child, interactive);
    keeper.dismiss();
    ended
}

/// Connects the machine's line with the standard streams until the machine ends.
fn converse(child: &mut Child, interactive: bool) -> Result<u8, String> {
    let terminal = interactive.then(Terminal::raw).transpose().map_err(|error| format!("cannot set the terminal: {error}"));
    let terminal = terminal.inspect_err(|_| drop(child.kill()))?;
    let keyboard = child.stdin.take().map(|line| Keyboard::new(File::from(OwnedFd::from(line)), interactive));
    let code = listen(child, keyboard.as_ref());
    let status = child.wait().map_err(|error| format!("cannot wait for {QEMU}: {error}"))?;
    drop(terminal);
    match (status.code(), code) {
        (Some(POWERED_OFF), Some(code)) => Ok(code),
        (None, _) if keyboard.is_some_and(|keyboard| keyboard.has_quit()) => {
            crate::exit::say(&format_args!("janua: the machine was ended from the keyboard\n"));
            Ok(ENDED_BY_HAND)
        }
        (Some(code), _) => Err(format!("the machine ended without powering off (QEMU's exit code {code})")),
        (None, _) => Err(format!("{QEMU} was killed by signal {}", status.signal().unwrap_or(0))),
    }
}

/// Passes the machine's messages on to standard error, but for three: that the kernel listens at its line, the exit code, which is
/// the result, and [`LACKS`].
fn listen(child: &mut Child, keyboard: Option<&Arc<Keyboard>>) -> Option<u8> {
    let mut code = None;
    let Some(voice) = child.stderr.take() else { return code };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut machine = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let mut voice = BufReader::new(voice);
    let mut line = Vec::new();
    while voice.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if text == LISTENS {
            if let (Some(keyboard), Some(machine)) = (keyboard, machine.take()) {
                keyboard.feed(move || {
                    // A machine that has ended needs no end.
                    let _ = pidfd_send_signal(machine, Signal::KILL);
                });
            }
        } else if let Some(reported) = exit_code(text) {
            code = Some(reported);
        } else if !text.contains(LACKS) {
            // Nothing is left to do when standard error is closed.
            let _ = io::stderr().write_all(&line);
        }
        line.clear();
    }
    code
}

fn mebibytes(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX)
}

/// A file in memory that QEMU, started from here, finds under its descriptor's name.
pub fn memory_file(name: &str, bytes: &[u8]) -> Result<File, String> {
    // Without close-on-exec, so that QEMU finds it.
    let described = |error: io::Error| format!("cannot make a file in memory for QEMU: {error}");
    let mut file = File::from(rustix::fs::memfd_create(name, MemfdFlags::empty()).map_err(|error| described(error.into()))?);
    file.write_all(bytes).map_err(described)?;
    Ok(file)
}
