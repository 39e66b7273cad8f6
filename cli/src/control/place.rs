//! The directory in which a user's supervisors are found: a socket for each, by the sandbox's name.
//!
//! It is `janua` in $XDG_RUNTIME_DIR, /run/janua for root without one, or /tmp/janua-UID, and is used only if it is the user's own and
//! closed to all others; root is no exception, for who owns a directory decides where its names lead. What is in it is found by the
//! directory's descriptor, not by its path, and no link in it is followed. A socket at which nobody listens is what a killed supervisor left; the next command that sees it removes it. Who
//! makes or removes a name does so with the directory locked (flock(2)), but for names that nobody else can want: the numbers of
//! supervisors' processes, which are the names of sandboxes that were given none.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
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

/// The name of a file of the directory that belongs to a sandbox; no sandbox's name begins with a dot.
fn file(name: &Name, kind: &str) -> String {
    format!(".{name}.{kind}")
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
    dir: OwnedFd,
}

/// How directories are opened.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The directory in $XDG_RUNTIME_DIR, if that is the user's own: root may have been given another's, by su(1) or sudo(8).
fn runtime() -> Option<(PathBuf, OwnedFd)> {
    let path = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute())?;
    let dir = openat(CWD, &path, DIRECTORY, Mode::empty()).ok()?;
    let owner = fstat(&dir).ok()?.st_uid;
    (owner == geteuid().as_raw()).then_some((path, dir))
}

/// The directory that holds the user's own, and the name of that in it.
fn above() -> Result<(PathBuf, OwnedFd, String), String> {
    if let Some((path, dir)) = runtime() {
        return Ok((path, dir, "janua".to_owned()));
    }
    let uid = geteuid().as_raw();
    let (path, name) = match uid {
        0 if Path::new("/run").is_dir() => ("/run", "janua".to_owned()),
        _ => ("/tmp", format!("janua-{uid}")),
    };
    let dir = openat(CWD, path, DIRECTORY, Mode::empty()).map_err(|error| format!("cannot open {path}: {error}"))?;
    Ok((PathBuf::from(path), dir, name))
}

impl Place {
    /// The directory, made if it is not there.
    pub fn make() -> Result<Place, String> {
        let (path, above, name) = above()?;
        match mkdirat(&above, &name, Mode::RWXU) {
            Err(error) if error != Errno::EXIST => {
                return Err(format!("cannot make {}: {error}", path.join(name).display()));
            }
            _ => {}
        }
        Place::open(&path, &above, &name)?.ok_or_else(|| "it has been removed".to_owned())
    }

    /// The directory, if there is one.
    pub fn find() -> Result<Option<Place>, String> {
        let (path, above, name) = above()?;
        Place::open(&path, &above, &name)
    }

    fn open(path: &Path, above: &OwnedFd, name: &str) -> Result<Option<Place>, String> {
        let path = path.join(name);
        let dir = match openat(above, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(format!("cannot open {}: {error}", path.display())),
        };
        let found = fstat(&dir).map_err(|error| format!("cannot look at {}: {error}", path.display()))?;
        if found.st_uid != geteuid().as_raw() || found.st_mode & 0o077 != 0 {
            return Err(format!("{} is not yours alone: it must be your directory, with mode 0700", path.display()));
        }
        Ok(Some(Place { path, dir }))
    }

    /// Opens a file of the directory that belongs to a sandbox, to be read.
    pub fn read(&self, name: &Name, kind: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.dir, file(name, kind), flags, Mode::empty())?))
    }

    /// Makes such a file anew, to be written.
    pub fn create(&self, name: &Name, kind: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.remove(name, kind);
        Ok(File::from(openat(&self.dir, file(name, kind), flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// Whether there is such a file.
    fn has(&self, name: &Name, kind: &str) -> bool {
        statat(&self.dir, file(name, kind), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Gives such a file another kind, in place of one that was there.
    pub fn rename(&self, name: &Name, old: &str, new: &str) -> io::Result<()> {
        Ok(renameat(&self.dir, file(name, old), &self.dir, file(name, new))?)
    }

    /// Removes such a file.
    pub fn remove(&self, name: &Name, kind: &str) {
        // Mostly there is none.
        let _ = unlinkat(&self.dir, file(name, kind), AtFlags::empty());
    }

    /// A socket's address is a path: one that begins at the descriptor, where /proc is there to name it.
    fn address(&self, name: &Name) -> Result<SocketAddrUnix, String> {
        let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", self.dir.as_raw_fd()));
        let dir = if by_descriptor.is_dir() { &by_descriptor } else { &self.path };
        let path = dir.join(name.as_str());
        SocketAddrUnix::new(&path).map_err(|_| format!("{} is too long for the address of a socket", path.display()))
    }

    /// A socket at which others find this process by the name.
    pub fn claim(&self, name: &Name) -> Result<OwnedFd, Taken> {
        let failed = |what: &str, error: Errno| Taken::Failed(format!("{what} in {}: {error}", self.path.display()));
        let _locked = name.number().is_none().then(|| self.lock());
        let address = self.address(name).map_err(Taken::Failed)?;
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
                .map_err(|error| failed("cannot make a socket", error))?;
        match bind(&socket, &address) {
            Err(Errno::ADDRINUSE) => {
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
    fn lock(&self) -> Option<OwnedFd> {
        let dir = openat(&self.dir, ".", DIRECTORY, Mode::empty()).ok()?;
        flock(&dir, FlockOperation::LockExclusive).ok()?;
        Some(dir)
    }

    /// Takes a name out.
    pub fn forget(&self, name: &Name) {
        // Another may have been quicker.
        let _ = unlinkat(&self.dir, name.as_str(), AtFlags::empty());
    }

    /// A connection to a sandbox's supervisor; `None` when there is none. Who listens is of this user: descriptors are handed to it.
    pub fn reach(&self, name: &Name) -> Result<Option<OwnedFd>, String> {
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
        if owner != geteuid() {
            return Err(format!("the sandbox {name} is not yours"));
        }
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).map_err(described)?;
        Ok(Some(socket))
    }

    /// What is in the directory, but for names that are no text.
    fn entries(&self) -> Vec<String> {
        let entries = Dir::read_from(&self.dir).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned)).collect()
    }

    /// All sandboxes that run, by name; those at whose sockets nobody listens any more are taken out.
    pub fn all(&self) -> Vec<(Name, OwnedFd)> {
        let mut names: Vec<Name> = self.entries().iter().filter_map(|entry| Name::parse(entry)).collect();
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
        let may_come = name.number().is_some_and(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok());
        if !may_come && matches!(self.reach(name), Ok(None)) {
            self.forget(name);
            if !self.has(name, "end") {
                super::log::remove(self, name);
            }
        }
    }

    /// Notes how a sandbox ended, for those who come later; the oldest notes go.
    pub fn note_end(&self, name: &Name, code: u8) {
        let noted = self.create(name, "end.new").and_then(|mut new| new.write_all(format!("{code}\n").as_bytes()));
        // Without it those who come later find no sandbox of that name.
        let _ = noted.and_then(|()| self.rename(name, "end.new", "end"));
        for old in self.ended_names().into_iter().skip(KEPT) {
            self.forget_end(&old);
        }
    }

    /// Takes out what is left of an ended sandbox.
    pub fn forget_end(&self, name: &Name) {
        self.remove(name, "end");
        super::log::remove(self, name);
    }

    /// How a sandbox of that name ended that went on in the background.
    pub fn ended(&self, name: &Name) -> Option<u8> {
        let mut text = String::new();
        self.read(name, "end").ok()?.take(8).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }

    /// Names of ended sandboxes, the latest first.
    pub fn ended_names(&self) -> Vec<Name> {
        let entries = self.entries();
        let named = entries.iter().filter_map(|entry| {
            let name = Name::parse(entry.strip_prefix('.')?.strip_suffix(".end")?)?;
            let noted = statat(&self.dir, entry.as_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some((noted.st_mtime, noted.st_mtime_nsec, name))
        });
        let mut all: Vec<_> = named.collect();
        all.sort();
        all.into_iter().rev().map(|(.., name)| name).collect()
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
