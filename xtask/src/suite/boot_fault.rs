//! A fault of the kernel itself, on the bare machine: QEMU's debugger interface changes a register of a core that is in the kernel, so
//! that the image needs no hook for it. The kernel must name the core, print its frame, and power off with exit code 125.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::boot::LIMIT;
use crate::build;
use crate::guard::Run;
use crate::tally::Tally;

/// Numbers of registers (the GDB manual, "x86 Features").
const RSP: usize = 7;
pub(super) const RIP: usize = 16;
/// Code segments.
const USER_CODE: u32 = 0x33;
const KERNEL_CODE: u32 = 0x10;
/// An address of the kernel's half where nothing is.
const NOWHERE: u64 = 0xffff_ffff_ffff_0000;

/// The core, the register that is spoiled, and how the kernel's report begins and goes on.
#[rustfmt::skip]
const CASES: &[(&str, usize, usize, &str, &str)] = &[
    ("boot/fault/jump", 0, RIP, "janua: kernel fault: core 0 vector 14 ", "at 0xffffffffffff0000, address 0xffffffffffff0000\n"),
    ("boot/fault/other-core", 1, RIP, "janua: kernel fault: core 1 vector 14 ", "at 0xffffffffffff0000, address 0xffffffffffff0000\n"),
    ("boot/fault/stack", 0, RSP, "janua: kernel fault: core 0 vector 8 ", "janua: r12 "),
];

pub fn run(filter: Option<&str>, image: &Path, dir: &Path, tally: &mut Tally) {
    for (name, core, register, begins, goes_on) in CASES.iter().filter(|(name, ..)| super::wanted(filter, name)) {
        tally.check(name, check(image, dir, *core, *register, begins, goes_on));
    }
}

/// A directory with a QEMU that has a socket for a debugger, and the socket.
pub(super) fn debugged(dir: &Path) -> Result<(PathBuf, PathBuf), String> {
    let described = |error: io::Error| format!("{}: {error}", dir.display());
    let (tools, socket) = (dir.join("debugged"), dir.join("debugger"));
    let _ = fs::remove_file(&socket);
    fs::create_dir_all(&tools).map_err(described)?;
    let qemu = tools.join("qemu-system-x86_64");
    let script =
        format!("#!/bin/sh\nPATH=${{PATH#*:}} exec qemu-system-x86_64 \"$@\" -gdb unix:{},server,nowait\n", socket.display());
    fs::write(&qemu, script).map_err(described)?;
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).map_err(described)?;
    Ok((tools, socket))
}

/// The environment of a run with such a QEMU, which is found before the real one.
pub(super) fn environment(image: &Path, tools: &Path) -> Vec<(String, String)> {
    vec![
        ("JANUA_IMAGE_X86_64".to_string(), image.display().to_string()),
        ("PATH".to_string(), format!("{}:/usr/local/bin:/usr/bin:/bin", tools.display())),
    ]
}

fn check(image: &Path, dir: &Path, core: usize, register: usize, begins: &str, goes_on: &str) -> Result<(), String> {
    let (tools, socket) = debugged(dir)?;
    // Both cores are in user code and in the kernel by turns.
    const SCRIPT: &str = "(while :; do kill -0 $$; done) & while :; do kill -0 $$; done";
    let janua = build::janua().display().to_string();
    let command = [&janua, "boot", "--smp", "2", "--", "/bin/sh", "-c", SCRIPT].map(String::from).to_vec();
    let running =
        Run { command, dir, env: environment(image, &tools), limit: LIMIT, terminal: None }.start(&dir.join("report"))?;
    let spoiled = spoil(&socket, core, register);
    let outcome = running.wait()?;
    spoiled?;
    let output = String::from_utf8_lossy(&outcome.output);
    if outcome.code != 125 || !output.starts_with(begins) || !output.contains(goes_on) || output.lines().count() != 6 {
        return Err(format!("exit code {}; it wrote:\n{output}", outcome.code));
    }
    Ok(())
}

/// Waits until the core has been in user code, and then is in the kernel, and spoils the register.
pub(super) fn spoil(socket: &Path, core: usize, register: usize) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(LIMIT / 2);
    let mut last = "no debugger could be connected".to_string();
    let mut wanted = USER_CODE;
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
        let found = Debugger::connect(socket).and_then(|mut debugger| debugger.visit(core, wanted, register));
        match found {
            Ok(code) if code == wanted && wanted == USER_CODE => wanted = KERNEL_CODE,
            Ok(code) if code == wanted => return Ok(()),
            Ok(code) => last = format!("core {core} was not found with code segment {wanted:#x}, but with {code:#x}"),
            Err(error) => last = format!("{}: {error}", socket.display()),
        }
    }
    Err(last)
}

/// Waits until each core can reach the kernel's addresses that it is to reach, and no others.
pub(super) fn reaches(socket: &Path, wanted: &[(usize, u64, bool)]) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(LIMIT / 2);
    let mut last = "no debugger could be connected".to_string();
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
        let found = Debugger::connect(socket).and_then(|mut debugger| {
            let found: io::Result<Vec<bool>> =
                wanted.iter().map(|(core, address, _)| debugger.reaches(*core, *address)).collect();
            debugger.expect_ok("D")?;
            found
        });
        match found {
            Ok(found) if found.iter().eq(wanted.iter().map(|(.., reached)| reached)) => return Ok(()),
            Ok(found) => last = format!("of {wanted:x?} there is {found:?}"),
            Err(error) => last = format!("{}: {error}", socket.display()),
        }
    }
    Err(last)
}

/// The other end of GDB's remote protocol. The machine is paused while there is one.
struct Debugger(UnixStream);

impl Debugger {
    fn connect(socket: &Path) -> io::Result<Debugger> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut debugger = Debugger(stream);
        // The first answer may be to the connection itself: whatever comes before that to the question is passed over.
        debugger.ask("?")?;
        let about = debugger.send("qXfer:features:read:target.xml:0,ffb").and_then(|()| {
            loop {
                let answer = debugger.answer()?;
                if answer.starts_with(['l', 'm']) {
                    return Ok(answer);
                }
            }
        })?;
        // Without the description QEMU sets no single registers.
        if about.contains("x86-64") || about.contains("i386") { Ok(debugger) } else { Err(io::Error::other(about)) }
    }

    fn send(&mut self, packet: &str) -> io::Result<()> {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        write!(self.0, "${packet}#{sum:02x}")
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.0.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn answer(&mut self) -> io::Result<String> {
        while self.byte()? != b'$' {}
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                b'#' => break,
                byte => text.push(byte),
            }
        }
        let _sum = [self.byte()?, self.byte()?];
        self.0.write_all(b"+")?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn ask(&mut self, packet: &str) -> io::Result<String> {
        self.send(packet)?;
        self.answer()
    }

    fn expect_ok(&mut self, packet: &str) -> io::Result<()> {
        match self.ask(packet)? {
            answer if answer == "OK" => Ok(()),
            answer => Err(io::Error::other(format!("{packet}: {answer}"))),
        }
    }

    /// Whether the page tables that a core uses map an address.
    fn reaches(&mut self, core: usize, address: u64) -> io::Result<bool> {
        self.expect_ok(&format!("Hg{:x}", core + 1))?;
        Ok(!self.ask(&format!("m{address:x},8"))?.starts_with('E'))
    }

    /// A core's code segment. If it is `wanted` and the kernel's, spoils the register. Lets the machine go on.
    fn visit(&mut self, core: usize, wanted: u32, register: usize) -> io::Result<u32> {
        self.expect_ok(&format!("Hg{:x}", core + 1))?;
        let registers = self.ask("g")?;
        // 17 registers of 8 bytes, and the flags, come before.
        const AT: usize = 2 * (17 * 8 + 4);
        let segment = registers.get(AT..AT + 8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).map(u32::swap_bytes);
        let segment = segment.ok_or_else(|| io::Error::other(registers.as_str()))?;
        // An entry begins on user code's stack, where a fault of the kernel's is one more fault.
        let stack = registers.get(2 * 8 * RSP..2 * 8 * (RSP + 1));
        let on_own_stack = stack.is_some_and(|digits| digits.ends_with("ffff"));
        if segment == KERNEL_CODE && !on_own_stack {
            self.expect_ok("D")?;
            return Ok(0);
        }
        if segment == wanted && segment == KERNEL_CODE {
            let value: String = NOWHERE.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            self.expect_ok(&format!("P{register:x}={value}"))?;
        }
        self.expect_ok("D")?;
        Ok(segment)
    }
}
