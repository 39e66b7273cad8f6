//! A cgroup (version 2) for a sandbox whose limits were asked for, where the caller may make one: the host keeps them too then, with
//! what the kernel's own accounts do not see, page tables, kernel stacks and the like, and against a compromised kernel.
//! docs/architecture.md describes where it is and what it may hold.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use janua_platform_host::sandbox::Limits;
use janua_platform_host::{Refused, group};
use rustix::fs::{FlockOperation, flock};

/// Where the file system is mounted: alone, or beside version 1.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// What the name of a sandbox's group begins with.
const PREFIX: &str = "janua-";

/// What must hold nothing in the group the caller is in, for a sandbox to be beside it: it would escape that.
const BOUNDS: [&str; 6] = ["memory.max", "memory.high", "memory.swap.max", "cpu.max", "cpuset.cpus", "io.max"];

/// Bytes beside what guests may have, on top of a quarter of it: the kernel's stacks, page tables and the host's own structures.
const ROOM: usize = 64 << 20;

/// Host threads beside twice those of the guests: a program that starts another has two for a moment, and what has ended is there
/// until it is reaped.
const THREADS: usize = 64;

/// Microseconds in which a sandbox has its share of the processors (the host's default).
const PERIOD: usize = 100_000;

/// A group of a sandbox's own, removed when this is dropped.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    /// Its directory, locked: no other sandbox takes it for one that was left behind.
    directory: File,
    /// By which of the limits it holds the sandbox.
    pub holds: Vec<&'static str>,
}

/// What the host has counted for a group.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Bytes at most, the host's own for the sandbox among them; `None` where memory is not limited, or before Linux 5.19.
    pub memory: Option<u64>,
    /// Processes that the host killed for want of memory.
    pub killed: u64,
    /// Processor time, as a user and in the host's kernel.
    pub user: Duration,
    pub system: Duration,
}

/// A limit, the controller that keeps it, and what is written for it: the first file must take it.
struct Bound {
    controller: &'static str,
    files: Vec<(&'static str, String)>,
}

/// What is to be written for these limits; `usize::MAX` needs nothing.
fn bounds(limits: &Limits) -> Vec<Bound> {
    let mut bounds = Vec::new();
    if limits.memory != usize::MAX {
        let most = limits.memory.saturating_add(limits.memory / 4).saturating_add(ROOM).to_string();
        // As much again in swap. One process of a sandbox is no use without the others: they share a kernel.
        let files =
            vec![("memory.max", most), ("memory.swap.max", limits.memory.to_string()), ("memory.oom.group", "1".into())];
        bounds.push(Bound { controller: "memory", files });
    }
    if limits.threads != usize::MAX {
        let most = limits.threads.saturating_mul(2).saturating_add(THREADS);
        bounds.push(Bound { controller: "pids", files: vec![("pids.max", most.to_string())] });
    }
    if limits.cpus != usize::MAX {
        let most = format!("{} {PERIOD}", limits.cpus.saturating_mul(PERIOD));
        bounds.push(Bound { controller: "cpu", files: vec![("cpu.max", most)] });
    }
    bounds
}

impl Group {
    /// A group for a sandbox with these limits. The error is why there is none. What cannot be held by it is left out.
    pub fn make(limits: &Limits) -> Result<Group, String> {
        let root = ROOTS.into_iter().map(Path::new).find(|root| root.join("cgroup.controllers").exists());
        let root = root.ok_or("the host has no file system of cgroup version 2 at /sys/fs/cgroup")?;
        let own = own_place(root)?;
        // Only the root of all may hold processes and groups whose limits count.
        if is_root(&own) { Group::below(&own, limits) } else { Group::below(beside(root, &own)?, limits) }
    }

    /// One in this directory.
    fn below(parent: &Path, limits: &Limits) -> Result<Group, String> {
        let offered = words(&parent.join("cgroup.controllers"));
        if !bounds(limits).iter().any(|bound| offered.iter().any(|word| word == bound.controller)) {
            let wanted: Vec<&str> = bounds(limits).iter().map(|bound| bound.controller).collect();
            return Err(format!("{} has no controller {}", parent.display(), wanted.join(", ")));
        }
        if !is_root(parent) && !words(&parent.join("cgroup.procs")).is_empty() {
            return Err(format!("processes are in {} itself", parent.display()));
        }
        sweep(parent);
        let mut group = Group::new(parent)?;
        let on = words(&parent.join("cgroup.subtree_control"));
        let mut why = None;
        for Bound { controller, files } in bounds(limits) {
            let enable = || fs::write(parent.join("cgroup.subtree_control"), format!("+{controller}"));
            let set = |(file, text): &(&str, String)| fs::write(group.path.join(file), text);
            let enabled = if on.iter().any(|word| word == controller) { Ok(()) } else { enable() };
            match enabled.and_then(|()| set(&files[0])) {
                Ok(()) => {
                    // Hosts without swap, and older ones, lack these.
                    files[1..].iter().for_each(|file| drop(set(file)));
                    group.holds.push(controller);
                }
                Err(error) => {
                    why = Some(format!("the controller {controller} is not to be had in {}: {error}", parent.display()))
                }
            }
        }
        match why {
            Some(why) if group.holds.is_empty() => Err(why),
            _ => match group::enters(group.directory.as_raw_fd()) {
                Ok(()) => Ok(group),
                Err(Refused::Errno(errno)) => {
                    Err(format!("no process can begin in {}: {}", group.path.display(), io::Error::from_raw_os_error(errno)))
                }
                Err(_) => Err(format!("no process can begin in {}", group.path.display())),
            },
        }
    }

    /// An empty one in this directory, locked.
    fn new(parent: &Path) -> Result<Group, String> {
        const TRIES: u32 = 3;
        for number in 0..TRIES {
            let path = parent.join(format!("{PREFIX}{}.{number}", std::process::id()));
            match fs::create_dir(&path) {
                // A number of a process may have served before, in another number space too.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(|error| format!("{}: {error}", path.display()))?,
            }
            let locked =
                File::open(&path).and_then(|directory| match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => Ok(directory),
                    Err(errno) => Err(errno.into()),
                });
            match locked {
                Ok(directory) => return Ok(Group { path, directory, holds: Vec::new() }),
                // Somebody who sweeps was faster.
                Err(_) => drop(fs::remove_dir(&path)),
            }
        }
        Err(format!("{}: others hold every name", parent.display()))
    }

    /// Its directory, for the first process.
    pub fn directory(&self) -> RawFd {
        self.directory.as_raw_fd()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the host has counted so far.
    pub fn counted(&self) -> Counted {
        let of = |file: &str, name: &str| value(&self.path.join(file), name).unwrap_or(0);
        Counted {
            memory: words(&self.path.join("memory.peak")).first().and_then(|word| word.parse().ok()),
            killed: of("memory.events", "oom_kill"),
            user: Duration::from_micros(of("cpu.stat", "user_usec")),
            system: Duration::from_micros(of("cpu.stat", "system_usec")),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes have ended or are about to: the host may take a moment to see that.
        const TRIES: u32 = 50;
        for _ in 0..TRIES {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            let _ = fs::write(self.path.join("cgroup.kill"), "1");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The group the caller is in.
fn own_place(root: &Path) -> Result<PathBuf, String> {
    let all = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = all.lines().find_map(|line| line.strip_prefix("0::/")).ok_or("this process is in no cgroup of version 2")?;
    // One outside of a namespace that was entered since.
    if own.split('/').any(|part| part == "..") {
        return Err("the cgroup this process is in has no name here".into());
    }
    Ok(if own.is_empty() { root.into() } else { root.join(own) })
}

/// Whether this is the root of all groups, not of those of a container.
fn is_root(group: &Path) -> bool {
    !group.join("cgroup.type").exists()
}

/// The directory the caller's own group is in, if a sandbox may be beside that.
fn beside<'a>(root: &Path, own: &'a Path) -> Result<&'a Path, String> {
    let parent = own
        .parent()
        .filter(|_| own != root)
        .ok_or("the cgroup this process is in has processes, and nothing above it is shown")?;
    if own.extension() == Some(OsStr::new("service")) {
        // Rules for a service that systemd keeps by other means would not hold there.
        return Err(format!(
            "{} is a service's own; one with Delegate=yes and DelegateSubgroup=main has room for sandboxes",
            own.display()
        ));
    }
    let free = |file: &str| words(&own.join(file)).first().is_none_or(|word| word == "max");
    match BOUNDS.into_iter().find(|file| !free(file)) {
        Some(file) => Err(format!("a sandbox beside {} would escape its {file}", own.display())),
        None => Ok(parent),
    }
}

/// Removes the groups of sandboxes whose supervisor was killed: they are empty, and nobody holds their lock.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(directory) = File::open(entry.path()) else { continue };
        if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The words of a file; none if it cannot be read.
fn words(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().split_ascii_whitespace().map(str::to_owned).collect()
}

/// The number behind a name in a file of lines.
fn value(path: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_is_bounded() {
        assert!(bounds(&Limits::NONE).is_empty());
        let limits = Limits { memory: 64 << 20, threads: 20, cpus: 2, ..Limits::NONE };
        let all = bounds(&limits);
        let first: Vec<(&str, &str)> = all.iter().map(|bound| (bound.files[0].0, bound.files[0].1.as_str())).collect();
        assert_eq!(first, [("memory.max", "150994944"), ("pids.max", "104"), ("cpu.max", "200000 100000")]);
    }

    #[test]
    fn a_service_keeps_its_sandboxes() {
        let root = Path::new("/no/such/place");
        assert!(beside(root, root).is_err() && beside(root, &root.join("system.slice/a.service")).is_err());
        assert_eq!(beside(root, &root.join("user.slice/session-1.scope")), Ok(root.join("user.slice").as_path()));
    }
}
