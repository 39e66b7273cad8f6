//! The directory in which a user's supervisors are found: a socket for each, by the sandbox's name.
//!
//! It is `janua` in $XDG_RUNTIME_DIR, /run/janua for root without one, or /tmp/janua-UID, and is used only if it is the user's own and
//! closed to all others. A socket at which nobody listens is what a killed supervisor left; the next command that sees it removes it. Who
//! makes or removes a name does so with the directory locked (flock(2)), but for names that nobody else can want: the numbers of
//! supervisors' processes, which are the names of sandboxes that were given none.

use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, flock};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
use rustix::process::{geteuid, getpid};

/// Connections that may wait to be taken.
const WAITING: i32 = 128;
/// Ended sandboxes of which is known how they ended, and what they wrote.
const KEPT: usize = 32;
/// How long a supervisor may take to reply.
const PATIENCE: Duration = Duration::from_secs(3);

/// The name of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// A name as somebody may give it: letters, digits, `_`, `.` and `-`, up to 64 of them, the first a letter or `_`, or a digit
    /// where others than digits follow: a number alone is the name of a sandbox that was given none.
    pub fn given(text: &str) -> Result<Name, String> {
        let own = |text: &str| !text.bytes().all(|byte| byte.is_ascii_digit());
        match Name::parse(text) {
            Some(name) if own(text) => Ok(name),
            Some(_) => Err("a number alone is the name of a sandbox that was given none".to_owned()),
            None => Err("a name has letters, digits, _, . and -, at most 64, and begins with none of the last two".to_owned()),
        }
    }

    /// Any sandbox's name.
    pub fn parse(text: &str) -> Option<Name> {
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let first = text.bytes().next()?;
        let whole = text.len() <= 64 && text.bytes().all(fine) && !b".-".contains(&first);
        whole.then(|| Name(text.to_owned()))
    }

    /// The name of a sandbox that was given none: its supervisor's number.
    pub fn own() -> Name {
        Name(getpid().as_raw_nonzero().to_string())
    }

    /// The process whose number this is.
    fn number(&self) -> Option<u32> {
        self.0.parse().ok()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a name cannot be had.
pub enum Taken {
    /// A sandbox of that name runs.
    Running,
    /// There is no place for it.
    Failed(String),
}

/// The directory.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    dir: File,
}

/// What is in the directory's path besides the user's own.
fn path() -> PathBuf {
    let uid = geteuid().as_raw();
    let own =
        |dir: &PathBuf| dir.is_absolute() && dir.metadata().is_ok_and(|meta| meta.is_dir() && (meta.uid() == uid || uid == 0));
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(own) {
        Some(dir) => dir.join("janua"),
        None if uid == 0 && Path::new("/run").is_dir() => PathBuf::from("/run/janua"),
        None => PathBuf::from(format!("/tmp/janua-{uid}")),
    }
}

impl Place {
    /// The directory, made if it is not there.
    pub fn make() -> Result<Place, String> {
        let path = path();
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(format!("cannot make {}: {error}", path.display()));
            }
            _ => {}
        }
        Place::open(path)?.ok_or_else(|| "it has been removed".to_owned())
    }

    /// The directory, if there is one.
    pub fn find() -> Result<Option<Place>, String> {
        Place::open(path())
    }

    fn open(path: PathBuf) -> Result<Option<Place>, String> {
        use rustix::fs::{Mode, OFlags, open};
        let dir = match open(&path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Ok(dir) => File::from(dir),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(format!("cannot open {}: {error}", path.display())),
        };
        let meta = dir.metadata().map_err(|error| format!("cannot look at {}: {error}", path.display()))?;
        let uid = geteuid().as_raw();
        if (meta.uid() != uid && uid != 0) || meta.mode() & 0o077 != 0 {
            return Err(format!("{} is not yours alone: it must be your directory, with mode 0700", path.display()));
        }
        Ok(Some(Place { path, dir }))
    }

    /// A file of the directory that belongs to a sandbox; no sandbox's name begins with a dot.
    pub fn file(&self, name: &Name, kind: &str) -> PathBuf {
        self.path.join(format!(".{name}.{kind}"))
    }

    fn address(&self, name: &Name) -> Result<SocketAddrUnix, String> {
        let path = self.path.join(name.as_str());
        SocketAddrUnix::new(&path).map_err(|_| format!("{} is too long for the address of a socket", path.display()))
    }

    /// A socket at which others find this process by the name.
    pub fn claim(&self, name: &Name) -> Result<OwnedFd, Taken> {
        let failed =
            |what: &str, error: rustix::io::Errno| Taken::Failed(format!("{what} in {}: {error}", self.path.display()));
        let _locked = name.number().is_none().then(|| self.lock());
        let address = self.address(name).map_err(Taken::Failed)?;
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
                .map_err(|error| failed("cannot make a socket", error))?;
        match bind(&socket, &address) {
            Err(rustix::io::Errno::ADDRINUSE) => {
                if !matches!(self.reach(name), Ok(None)) {
                    return Err(Taken::Running);
                }
                self.forget(name);
                bind(&socket, &address)
            }
            other => other,
        }
        .and_then(|()| listen(&socket, WAITING))
        .map_err(|error| failed("cannot make a socket", error))?;
        Ok(socket)
    }

    /// Held until the result is dropped. Who cannot lock goes without: names are the user's own.
    fn lock(&self) -> Option<File> {
        let dir = File::open(&self.path).ok()?;
        flock(&dir, FlockOperation::LockExclusive).ok()?;
        Some(dir)
    }

    /// Takes a name out.
    pub fn forget(&self, name: &Name) {
        // Another may have been quicker.
        let _ = rustix::fs::unlinkat(&self.dir, name.as_str(), rustix::fs::AtFlags::empty());
    }

    /// A connection to a sandbox's supervisor; `None` when there is none.
    pub fn reach(&self, name: &Name) -> Result<Option<OwnedFd>, String> {
        use rustix::io::Errno;
        let described = |error: Errno| format!("cannot reach the sandbox {name}: {error}");
        let address = self.address(name)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).map_err(described)?;
        set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE)).map_err(described)?;
        match connect(&socket, &address) {
            Ok(()) => {}
            Err(Errno::NOENT | Errno::CONNREFUSED) => return Ok(None),
            Err(error) => return Err(described(error)),
        }
        let owner = socket_peercred(&socket).map_err(described)?.uid;
        if owner != geteuid() && !geteuid().is_root() {
            return Err(format!("the sandbox {name} is not yours"));
        }
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).map_err(described)?;
        Ok(Some(socket))
    }

    /// All sandboxes that run, by name; those at whose sockets nobody listens any more are taken out.
    pub fn all(&self) -> Vec<(Name, OwnedFd)> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut names: Vec<Name> = entries.filter_map(|entry| Name::parse(entry.file_name().to_str()?)).collect();
        names.sort();
        let mut all = Vec::new();
        for name in names {
            match self.reach(&name) {
                Ok(Some(socket)) => all.push((name, socket)),
                Ok(None) => self.remove_stale(&name),
                Err(_) => {}
            }
        }
        all
    }

    /// Removes a name that nobody listens at. A number is left alone while a process of it runs: that may be about to listen.
    fn remove_stale(&self, name: &Name) {
        let _locked = self.lock();
        let may_come = name.number().is_some_and(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok());
        if !may_come && matches!(self.reach(name), Ok(None)) {
            self.forget(name);
            if !self.file(name, "end").exists() {
                super::log::remove(self, name);
            }
        }
    }

    /// Notes how a sandbox ended, for those who come later; the oldest notes go.
    pub fn note_end(&self, name: &Name, code: u8) {
        let (new, end) = (self.file(name, "end.new"), self.file(name, "end"));
        // Without it those who come later find no sandbox of that name.
        let _ = fs::write(&new, format!("{code}\n")).and_then(|()| fs::rename(&new, &end));
        for old in self.ended_names().into_iter().skip(KEPT) {
            self.forget_end(&old);
        }
    }

    /// Takes out what is left of an ended sandbox.
    pub fn forget_end(&self, name: &Name) {
        let _ = fs::remove_file(self.file(name, "end"));
        super::log::remove(self, name);
    }

    /// How a sandbox of that name ended that went on in the background.
    pub fn ended(&self, name: &Name) -> Option<u8> {
        fs::read_to_string(self.file(name, "end")).ok()?.trim().parse().ok()
    }

    /// Names of ended sandboxes, the latest first.
    pub fn ended_names(&self) -> Vec<Name> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| {
            let file = entry.file_name();
            let name = Name::parse(file.to_str()?.strip_prefix('.')?.strip_suffix(".end")?)?;
            Some((entry.metadata().ok()?.modified().ok()?, name))
        });
        let mut all: Vec<_> = named.collect();
        all.sort();
        all.into_iter().rev().map(|(_, name)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for fine in ["web", "a-b_c.d", "9a", "_", "W3"] {
            assert!(Name::given(fine).is_ok(), "{fine}");
        }
        for wrong in ["", "12", ".x", "-x", "a/b", "a b", "ä", "a\n", &"x".repeat(65)] {
            assert!(Name::given(wrong).is_err(), "{wrong}");
        }
        assert!(Name::parse("12").is_some() && Name::parse("..").is_none());
    }
}
