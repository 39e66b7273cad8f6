//! QEMU as the bare machine.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};

use rustix::fs::MemfdFlags;

const QEMU: &str = "qemu-system-x86_64";
/// QEMU's exit code after the kernel has powered off: what it writes to the exit device, twice and one.
const POWERED_OFF: i32 = 33;
/// Begins the kernel's last line; the program's exit code follows.
const EXIT_MARK: &str = "janua-exit ";

/// Runs the machine to its end: the program's exit code.
pub fn run(image: &[u8], module: &[u8], memory: u32) -> Result<u8, String> {
    // Inherited, and read by their names under /proc: nothing is left behind in a directory.
    let image = memory_file("janua-kernel", image)?;
    let module = memory_file("janua-initrd", module)?;
    let path = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut command = Command::new(QEMU);
    // Software emulation always: virtualisation inside a virtual machine boots, and then fails in the gates.
    command
        .args(["-M", "microvm", "-accel", "tcg", "-cpu", "max,vendor=GenuineIntel", "-smp", "1"])
        .args(["-m", &memory.to_string(), "-nodefaults", "-no-user-config", "-no-reboot"])
        .args(["-display", "none", "-serial", "stdio", "-monitor", "none"])
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"])
        // The kernel's own voice, apart from what programs write.
        .args(["-debugcon", "file:/proc/self/fd/2"])
        .arg("-kernel")
        .arg(path(&image))
        .arg("-initrd")
        .arg(path(&module))
        .stderr(Stdio::piped());
    // On a terminal QEMU would switch echo and editing off, and the machine has none of its own: lines are edited here.
    let on_terminal = rustix::termios::isatty(io::stdin());
    if on_terminal {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{QEMU} is not installed, and `janua boot` needs it as the machine\n       on Debian and Ubuntu: apt-get install qemu-system-x86"
        ),
        _ => format!("cannot start {QEMU}: {error}"),
    })?;
    if let Some(mut line) = child.stdin.take() {
        // Ends with the process; it is over when the terminal is, or the machine.
        std::thread::spawn(move || io::copy(&mut io::stdin().lock(), &mut line));
    }
    let code = listen(&mut child);
    let status = child.wait().map_err(|error| format!("cannot wait for {QEMU}: {error}"))?;
    match (status.code(), code) {
        (Some(POWERED_OFF), Some(code)) => Ok(code),
        (Some(code), _) => Err(format!("the machine ended without powering off (QEMU's exit code {code})")),
        (None, _) => Err("QEMU was killed".into()),
    }
}

/// Passes the kernel's messages on to standard error: the exit code among them.
fn listen(child: &mut Child) -> Option<u8> {
    let mut code = None;
    let Some(voice) = child.stderr.take() else { return code };
    let mut voice = BufReader::new(voice);
    let mut line = Vec::new();
    while voice.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
        let text = String::from_utf8_lossy(&line);
        match text.trim_end().strip_prefix(EXIT_MARK).and_then(|code| code.parse().ok()) {
            Some(told) => code = Some(told),
            // Nothing is left to do when standard error is closed.
            None => drop(io::stderr().write_all(&line)),
        }
        line.clear();
    }
    code
}

fn memory_file(name: &str, bytes: &[u8]) -> Result<File, String> {
    // Without close-on-exec, so that QEMU finds it.
    let told = |error: io::Error| format!("cannot make a file in memory for {QEMU}: {error}");
    let mut file = File::from(rustix::fs::memfd_create(name, MemfdFlags::empty()).map_err(|error| told(error.into()))?);
    file.write_all(bytes).map_err(told)?;
    Ok(file)
}
