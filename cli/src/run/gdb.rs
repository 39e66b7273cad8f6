//! `janua run --gdb`: the connection is accepted before the sandbox is made, and one to what passes packets on ([`mod@super::relay`]) goes into it
//! with the program that serves gdb: this one.
//!
//! So nothing of the program runs before gdb has it, a second gdb finds nobody, and the sandbox needs no right to listen.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use janua_personality_outside::linux::{BootDebugger, BootFile, FIRST_PID};
use janua_platform_host::found;
use janua_port::HostFd;

use super::relay::Relay;
use crate::options::{Gdb, Root, RunOptions};

/// The first argument of a `janua` that serves gdb, inside.
pub const ARGUMENT: &str = "serve-gdb";

/// Serves gdb inside a sandbox, about its first program.
pub fn debug() -> ExitCode {
    ExitCode::from(janua_debug::serve(FIRST_PID))
}

/// Whether there is no such program, as far as the host's files tell: gdb would be waited for in vain. In doubt there may be one.
pub fn is_missing(options: &RunOptions) -> bool {
    let host = options.root == Root::Host;
    let here = options.cwd.clone().or_else(|| std::env::current_dir().ok().filter(|_| host));
    let name = options.program.as_bytes();
    let path = options.environment.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_bytes());
    let dirs: Vec<&[u8]> = match name.contains(&b'/') {
        true => vec![b""],
        // As the kernel looks it up.
        false => path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin").split(|byte| *byte == b':').collect(),
    };
    dirs.into_iter().all(|dir| {
        let place = Path::new(OsStr::from_bytes(dir)).join(OsStr::from_bytes(name));
        let place = if place.is_absolute() { Some(place) } else { here.as_ref().map(|here| here.join(place)) };
        place.is_some_and(|place| is_absent(&place, options))
    })
}

/// Whether nothing of that name can be inside.
fn is_absent(place: &Path, options: &RunOptions) -> bool {
    const OWN: [&str; 3] = ["/proc", "/dev", "/sys"];
    let absent = |error: io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    let bind = options.binds.iter().rev().find(|bind| place.starts_with(&bind.target));
    if bind.is_none() && OWN.iter().any(|own| place.starts_with(own)) {
        return false;
    }
    if options.root == Root::Host && options.binds.is_empty() {
        return fs::metadata(place).is_err_and(absent);
    }
    let (mut outside, mut inside) = match (bind, &options.root) {
        (Some(bind), _) => (bind.source.clone(), bind.target.clone()),
        (None, Root::Host) => (PathBuf::from("/"), PathBuf::from("/")),
        (None, Root::Directory(root) | Root::Writable(root)) => (root.clone(), PathBuf::from("/")),
    };
    for part in place.strip_prefix(&inside).unwrap_or(place).components() {
        let Component::Normal(part) = part else { return false };
        outside.push(part);
        inside.push(part);
        if options.binds.iter().any(|bind| bind.target.starts_with(&inside)) {
            return false;
        }
        match fs::symlink_metadata(&outside) {
            // Where it leads inside is the kernel's to find out.
            Ok(file) if file.is_symlink() => return false,
            Ok(_) => {}
            Err(error) => return absent(error),
        }
    }
    false
}

/// Waits for gdb, where that is asked for: what the sandbox gets, and the relay to gdb.
pub fn accept(place: Option<&Gdb>) -> Result<Option<(OwnedFd, Relay)>, String> {
    let Some(place) = place else { return Ok(None) };
    let connection = match place {
        Gdb::Port(port) => at_port(*port),
        Gdb::Socket(path) => at_socket(path),
    }?;
    Relay::start(connection).map(Some).map_err(|error| format!("--gdb: {error}"))
}

fn waiting(target: &str) {
    crate::exit::say(&format_args!("janua: waiting for gdb: target remote {target}\n"));
}

fn at_port(port: u16) -> Result<OwnedFd, String> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::AddrInUse => format!("--gdb {port}: the port is taken\n       give another, or 0 for any that is free"),
        _ => format!("--gdb {port}: {error}"),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
    waiting(&format!(":{}", listener.local_addr().map_err(failed)?.port()));
    let (stream, _) = listener.accept().map_err(failed)?;
    // Each packet is answered before the next comes.
    stream.set_nodelay(true).map_err(failed)?;
    Ok(stream.into())
}

fn at_socket(path: &Path) -> Result<OwnedFd, String> {
    let shown = path.display();
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::AddrInUse => {
            format!("--gdb {shown}: there is a file of this name already\n       give another, or remove it")
        }
        _ => format!("--gdb {shown}: {error}"),
    };
    let listener = match UnixListener::bind(path) {
        // The socket of one that was killed while it waited.
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_deserted(path) => {
            std::fs::remove_file(path).and_then(|()| UnixListener::bind(path))
        }
        other => other,
    };
    let listener = listener.map_err(failed)?;
    waiting(&shown.to_string());
    let accepted = listener.accept();
    // Nobody else is to come; one that is gone already is as good.
    let _ = std::fs::remove_file(path);
    Ok(accepted.map_err(failed)?.0.into())
}

/// Whether it is a socket at which nobody listens. The host refuses connections to any other file in the same way.
fn is_deserted(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
        && UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// What the kernel is given for the debugger: this program, the connection, and where to print what a person is to read.
pub fn debugger(connection: OwnedFd) -> Result<BootDebugger, String> {
    let program = File::open("/proc/self/exe").map_err(|error| format!("--gdb: cannot open this program: {error}"))?;
    let handed = [(janua_debug::CONNECTION, connection), (janua_debug::PROGRAM, program.into())];
    let said = io::stderr().as_fd().try_clone_to_owned().ok().filter(|_| found::was_open(2)).map(|stderr| (2, stderr));
    let file = |(fd, file): (i32, OwnedFd)| BootFile { fd: fd as u32, host: HostFd(file.into_raw_fd()), name: Vec::new() };
    Ok(BootDebugger {
        program: janua_debug::PROGRAM as u32,
        argv: vec![b"janua-gdb".to_vec(), ARGUMENT.into()],
        files: said.into_iter().chain(handed).map(file).collect(),
    })
}
