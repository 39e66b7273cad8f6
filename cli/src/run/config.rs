//! What the kernel is given about the outside: files, ids, limits, the program.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use janua_abi::linux::signal;
use janua_personality_outside::linux::{BootConfig, BootFile, BootMount, BootMountKind, BootNet, BootText};
use janua_platform_host::found;
use janua_platform_host::wall::Shown;
use janua_port::HostFd;
use rustix::fs::{AtFlags, OFlags};
use rustix::process;

use super::{gdb, limits};
use crate::options::{Net, Root, RunOptions, Trace};

/// What the kernel is given, and what of the host it needs for it.
pub struct Config {
    /// In the form the kernel reads.
    pub encoded: Vec<u8>,
    /// The same for a kernel beside that one, which runs no program; empty where there is none.
    pub idle: Vec<u8>,
    pub shown: Vec<Shown>,
    /// The place that is the root.
    pub root: Option<i32>,
    pub trace: Option<i32>,
    /// Standard files and the terminal.
    pub inherited: Vec<i32>,
}

/// The configuration of a run. `gdb` is the connection to a debugger.
pub fn make(options: &RunOptions, gdb: Option<OwnedFd>) -> Result<Config, String> {
    let config = boot(options, gdb)?;
    let made = of(&config, config.encode());
    Ok(Config { idle: options.tiles.map(|_| idle(config)).unwrap_or_default(), ..made })
}

/// What a kernel is given that runs no program of its own: the same files, and nothing of the outside's that is the first program's.
fn idle(config: BootConfig) -> Vec<u8> {
    let alone = BootConfig {
        idle: true,
        files: Vec::new(),
        terminal: None,
        trace: None,
        stats: false,
        notify_first: false,
        debugger: None,
        ..config
    };
    alone.encode()
}

/// What the personality `linux` is given, and what is built on it. Descriptors opened here stay open: the kernel's first process inherits them.
pub fn boot(options: &RunOptions, gdb: Option<OwnedFd>) -> Result<BootConfig, String> {
    let mut config = BootConfig {
        program: bytes(&options.program),
        argv: std::iter::once(&options.program).chain(&options.args).map(|arg| bytes(arg)).collect(),
        envp: options.environment.iter().map(|(key, value)| [key.as_bytes(), b"=", value.as_bytes()].concat()).collect(),
        cwd: bytes(working_directory(options).as_os_str()),
        cwd_asked: options.cwd.is_some(),
        umask: umask(),
        uid: process::getuid().as_raw(),
        gid: process::getgid().as_raw(),
        groups: process::getgroups().unwrap_or_default().iter().map(|gid| gid.as_raw()).collect(),
        hostname: rustix::system::uname().nodename().to_bytes().to_vec(),
        domainname: b"(none)".to_vec(),
        nice: process::getpriority_process(None).unwrap_or(0),
        files: standard_files(matches!(options.root, Root::Host)),
        texts: texts(options),
        terminal: File::options()
            .read(true)
            .write(true)
            // Nothing is ever read by this description: it is asked whether something could be.
            .custom_flags((OFlags::NOCTTY | OFlags::NONBLOCK).bits() as i32)
            .open("/dev/tty")
            .ok()
            .map(|tty| HostFd(tty.into_raw_fd())),
        job_control: job_control(),
        in_session: process::getsid(None).is_ok_and(|session| session != process::getpid()),
        in_group: process::getpgrp() != process::getpid(),
        ignored_signals: ignored_signals(),
        mounts: mounts(options)?,
        net: match options.net {
            Net::None => BootNet::Loopback,
            Net::Host => BootNet::Host,
        },
        trace: trace(options)?,
        trace_whole: options.trace_whole,
        stats: options.stats,
        modules: options.modules.clone(),
        notify_first: options.detach,
        spread: options.tiles.is_some_and(|tiles| tiles.spread),
        debugger: gdb.map(gdb::debugger).transpose()?,
        ..BootConfig::default()
    };
    config.limits = limits::own();
    Ok(config)
}

/// The same with what it needs of the host, in this form for the kernel.
pub fn of(config: &BootConfig, encoded: Vec<u8>) -> Config {
    let shown = config.mounts.iter().filter_map(|mount| match mount.kind {
        BootMountKind::Overlay { root, .. } => Some(Shown { fd: root.0, writable: false }),
        BootMountKind::Host { root, .. } => Some(Shown { fd: root.0, writable: !mount.read_only }),
        _ => None,
    });
    let root = config.mounts.iter().find_map(|mount| match mount.kind {
        BootMountKind::Overlay { root, .. } => Some(root.0),
        _ => None,
    });
    let debuggers = config.debugger.iter().flat_map(|debugger| &debugger.files);
    let standard = config.files.iter().chain(debuggers).map(|file| file.host);
    Config {
        encoded,
        idle: Vec::new(),
        shown: shown.collect(),
        root,
        trace: config.trace.map(|fd| fd.0),
        inherited: standard.chain(config.terminal).map(|fd| fd.0).collect(),
    }
}

fn bytes(text: &OsStr) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// The umask can only be read by setting it.
fn umask() -> u32 {
    let mask = process::umask(rustix::fs::Mode::empty());
    process::umask(mask);
    mask.bits()
}

fn working_directory(options: &RunOptions) -> PathBuf {
    if let Some(cwd) = &options.cwd {
        return cwd.clone();
    }
    let here = std::env::current_dir().unwrap_or_else(|_| {
        crate::exit::say(&format_args!("janua: the working directory is gone; the program starts in /\n"));
        PathBuf::from("/")
    });
    match &options.root {
        Root::Host => here,
        Root::Directory(root) | Root::Writable(root) => {
            let inside: PathBuf = here.components().filter(|part| !matches!(part, Component::RootDir)).collect();
            if root.join(inside).is_dir() || under_a_bind(&here, options) {
                return here;
            }
            crate::exit::say(&format_args!(
                "janua: {} is not inside {}; the program starts in / (--cwd DIR starts elsewhere, and --cwd / without this line)\n",
                here.display(),
                root.display()
            ));
            PathBuf::from("/")
        }
    }
}

/// Whether a directory of the host has its own path inside by a bind.
fn under_a_bind(here: &Path, options: &RunOptions) -> bool {
    options.binds.iter().any(|bind| here.strip_prefix(&bind.target).is_ok_and(|rest| bind.source.join(rest).is_dir()))
}

/// Those of the standard three that are open, each by a descriptor of its own: the program may close what it has, and the kernel
/// still needs a standard error to report to.
/// `named`: the names of the host's files mean the same inside.
pub fn standard_files(named: bool) -> Vec<BootFile> {
    let streams = [
        io::stdin().as_fd().try_clone_to_owned(),
        io::stdout().as_fd().try_clone_to_owned(),
        io::stderr().as_fd().try_clone_to_owned(),
    ];
    // The runtime of this program has opened /dev/null where nothing was.
    let was_open = |fd: &u32| found::was_open(*fd);
    let open = streams.into_iter().zip(0u32..).filter_map(|(stream, fd)| Some((fd, stream.ok()?)));
    let open = open.filter(|(fd, _)| was_open(fd));
    let name = |fd: u32| std::fs::read_link(format!("/proc/self/fd/{fd}")).ok().filter(|name| named && name.is_absolute());
    let file = |(fd, stream): (u32, OwnedFd)| BootFile {
        fd,
        host: HostFd(stream.into_raw_fd()),
        name: name(fd).map(|name| bytes(name.as_os_str())).unwrap_or_default(),
    };
    open.map(file).collect()
}

/// Files that programs expect of any system, for a tree that may lack them: this machine's names, and with its network its resolver.
fn texts(options: &RunOptions) -> Vec<BootText> {
    if !matches!(options.root, Root::Directory(_)) {
        return Vec::new();
    }
    let host = String::from_utf8_lossy(rustix::system::uname().nodename().to_bytes()).into_owned();
    let text = |path: &str, text: Vec<u8>| BootText { path: path.into(), text, executable: false };
    let hosts = format!("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t{host}\n");
    let mut all = vec![text("/etc/hostname", format!("{host}\n").into_bytes()), text("/etc/hosts", hosts.into_bytes())];
    if let (Net::Host, Ok(resolver)) = (options.net, std::fs::read("/etc/resolv.conf")) {
        all.push(text("/etc/resolv.conf", resolver));
    }
    all
}

/// The signals that the caller ignores (nohup(1), a shell's background job), bit n - 1 for signal n. SIGPIPE is
/// ignored by the runtime of this program, and SIGXFSZ by its `main`: what they were before that has been noted.
fn ignored_signals() -> u64 {
    const SIGPIPE: u64 = 1 << (signal::SIGPIPE - 1);
    const SIGXFSZ: u64 = 1 << (signal::SIGXFSZ - 1);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0) & !(SIGPIPE | SIGXFSZ)
        | if found::pipe_signal_was_ignored() { SIGPIPE } else { 0 }
        | if found::file_size_signal_was_ignored() { SIGXFSZ } else { 0 }
}

/// Whether somebody outside can continue us after a stop: our process group is not orphaned, which is so when one of us in it has
/// a parent in another group of the same session (credentials(7)).
fn job_control() -> bool {
    // Of the fields behind the name in parentheses: state, parent, process group, session.
    fn family(pid: &str) -> Option<(String, String, String)> {
        // One read has what is wanted; to read a file of unknown length to its end takes half a dozen.
        let mut stat = [0; 512];
        let len = File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut stat)).ok()?;
        let stat = String::from_utf8_lossy(&stat[..len]);
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(1).map(str::to_owned);
        Some((fields.next()?, fields.next()?, fields.next()?))
    }
    let Some((mut parent, group, session)) = family("self") else { return false };
    while let Some((next, parent_group, parent_session)) = family(&parent) {
        if parent_session != session {
            return false;
        }
        if parent_group != group {
            return true;
        }
        parent = next;
    }
    false
}

/// Opens a place of the host to be shown inside; whether it is the root directory. Once the place has been cloned nobody can tell
/// any more what was above it.
fn open_place(path: &Path) -> Result<(HostFd, bool), String> {
    let failed = |error: io::Error| format!("cannot open {}: {error}", path.display());
    let file = File::options().read(true).custom_flags(OFlags::PATH.bits() as i32).open(path).map_err(failed)?;
    let own = file.metadata().map_err(failed)?;
    let above = rustix::fs::statat(&file, "..", AtFlags::empty());
    let top = above.is_ok_and(|above| (above.st_dev, above.st_ino) == (own.dev(), own.ino()));
    Ok((HostFd(file.into_raw_fd()), top))
}

fn mounts(options: &RunOptions) -> Result<Vec<BootMount>, String> {
    let root = match &options.root {
        Root::Host => Path::new("/"),
        Root::Directory(path) | Root::Writable(path) => path,
    };
    let ((place, top), source) = (open_place(root)?, bytes(root.as_os_str()));
    let root = match options.root {
        Root::Writable(_) => BootMountKind::Host { root: place, source, top },
        _ => BootMountKind::Overlay { root: place, source, top },
    };
    let mut mounts = vec![mount(root, "/", false)];
    mounts.push(mount(BootMountKind::Proc, "/proc", false));
    mounts.push(mount(BootMountKind::Dev, "/dev", false));
    mounts.push(mount(BootMountKind::Memory, "/dev/shm", false));
    // The host's own shows the host's network beside a tree that is the host's. What is written there is for no kernel: a copy of it
    // would have no effect.
    if let Root::Host = options.root {
        mounts.push(mount(BootMountKind::ReadOnly, "/sys", true));
    }
    match (&options.root, options.net) {
        (Root::Directory(_) | Root::Writable(_), _) => mounts.push(mount(BootMountKind::Sys, "/sys", true)),
        (Root::Host, Net::None) => mounts.push(mount(BootMountKind::SysNet, "/sys/class/net", true)),
        (Root::Host, Net::Host) => {}
    }
    for bind in &options.binds {
        let (root, top) = open_place(&bind.source)?;
        let kind = BootMountKind::Host { root, source: bytes(bind.source.as_os_str()), top };
        mounts.push(mount(kind, &bind.target, !bind.writable));
    }
    Ok(mounts)
}

fn mount(kind: BootMountKind, target: impl AsRef<Path>, read_only: bool) -> BootMount {
    BootMount { kind, target: bytes(target.as_ref().as_os_str()), read_only }
}

pub fn trace(options: &RunOptions) -> Result<Option<HostFd>, String> {
    Ok(match &options.trace {
        None => None,
        Some(Trace::Stderr) => {
            let stderr = io::stderr().as_fd().try_clone_to_owned();
            Some(HostFd(stderr.map_err(|error| format!("cannot trace to standard error: {error}"))?.into_raw_fd()))
        }
        Some(Trace::File(path)) => {
            let file = File::options().append(true).create(true).open(path).and_then(|file| {
                if file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                Ok(file)
            });
            let file = file.map_err(|error| format!("cannot write the trace to {}: {error}", path.display()))?;
            Some(HostFd(file.into_raw_fd()))
        }
    })
}
