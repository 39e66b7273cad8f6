//! The processes of a sandbox as the host's /proc shows them.

use alloc::ffi::CString;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::image;

/// The host processes whose parent this thread is, also those that have ended and are to be reaped. `None` where there is no /proc.
pub(crate) fn children() -> Option<Vec<i32>> {
    let list = image::read_proc(c"/proc/thread-self/children")?;
    Some(list.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect())
}

/// The host processes of the sandbox: the children, and theirs, which guests' processes are where the kernel has one of its own. Each
/// comes after its parent.
pub(crate) fn descendants() -> Option<Vec<i32>> {
    let mut found = children()?;
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        at += 1;
        let more = children_of(parent).into_iter().filter(|child| !found.contains(child)).collect::<Vec<_>>();
        found.extend(more);
    }
    Some(found)
}

/// The children of all threads of a process; none when it has ended.
fn children_of(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    for thread in names(&format!("/proc/{pid}/task")) {
        let list = read(pid, &format!("task/{thread}/children")).unwrap_or_default();
        found.extend(list.split_ascii_whitespace().filter_map(|child| child.parse::<i32>().ok()));
    }
    found
}

/// The numbers that are names in a directory; none when it cannot be read.
fn names(path: &str) -> Vec<u32> {
    let Ok(path) = CString::new(path) else { return Vec::new() };
    let mut found = Vec::new();
    // SAFETY: the stream is ours until it is closed here, and an entry counts until the next one is asked for.
    unsafe {
        let stream = libc::opendir(path.as_ptr());
        if stream.is_null() {
            return found;
        }
        while let Some(entry) = libc::readdir(stream).as_ref() {
            let name = core::ffi::CStr::from_ptr(entry.d_name.as_ptr());
            found.extend(name.to_str().ok().and_then(|name| name.parse::<u32>().ok()));
        }
        libc::closedir(stream);
    }
    found
}

/// Sends a signal to each thread of a descendant: of one that is traced a signal to the process would stop a single thread. Their
/// tracers are paused, so that none ends and no number becomes another's meanwhile.
pub(crate) fn signal_threads(pid: i32, family: &[i32], signal: i32) {
    // SAFETY: plain words.
    unsafe {
        if parent(pid).is_some_and(|parent| parent == libc::getpid() || family.contains(&parent)) {
            for thread in names(&format!("/proc/{pid}/task")) {
                libc::syscall(libc::SYS_tgkill, pid, thread, signal);
            }
        }
    }
}

/// The parent of a process, from /proc/PID/stat.
fn parent(pid: i32) -> Option<i32> {
    read(pid, "stat")?.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// A process of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostProcess {
    pub pid: u32,
    /// The number the kernel inside knows it by: that of its number space.
    pub inner: u32,
    /// Processor time so far.
    pub time: Duration,
}

fn read(pid: i32, file: &str) -> Option<String> {
    image::read_proc(&CString::new(format!("/proc/{pid}/{file}")).ok()?)
}

impl HostProcess {
    /// `own_numbers`: the sandbox has a number space of its own.
    pub(crate) fn look(pid: i32, own_numbers: bool) -> Option<HostProcess> {
        let inner = match own_numbers {
            true => {
                let status = read(pid, "status")?;
                let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
                numbers.split_ascii_whitespace().last()?.parse().ok()?
            }
            false => pid as u32,
        };
        Some(HostProcess { pid: pid as u32, inner, time: time(&read(pid, "stat")?)? })
    }
}

/// User and system time of /proc/PID/stat.
fn time(stat: &str) -> Option<Duration> {
    /// Of a clock tick, which all of Linux shows as a hundredth of a second.
    const TICK: u64 = 10;
    // Behind the name in parentheses the first field is the third.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(14 - 3);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_millis((user + system) * TICK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 12 30 0 0 20 0 1 0 100 1 1";
        assert_eq!(time(stat), Some(Duration::from_millis(420)));
        assert_eq!(time("7 (a) S 1"), None);
    }
}
