//! The files of a process and of a thread.

use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::process::rlimit;
use janua_abi::linux::{Errno, Result};
use janua_kernel::thread::Blocked;
use janua_object::vfs::Path;

use crate::process::NO_LOGIN;
use crate::signal::coredump::FILTER_BITS;
use crate::task::{CAP_AUDIT_CONTROL, CAP_SYS_ADMIN, CAP_SYS_NICE, CAP_SYS_RESOURCE};

use super::{Entry, Kind, Subject, Text, memory, mounts, net, ns, stat};

macro_rules! common {
    ($($more:expr),* $(,)?) => {
        &[
            $($more,)*
            Entry::new("fd", 0o500, Kind::Fds),
            Entry::new("fdinfo", 0o555, Kind::FdInfos),
            Entry::dir("net", net::ENTRIES),
            Entry::new("ns", 0o511, Kind::Dir(ns::ENTRIES)),
            Entry::new("cwd", 0o777, Kind::Place(cwd)),
            Entry::new("root", 0o777, Kind::Place(root)),
            Entry::new("exe", 0o777, Kind::Place(exe)),
            Entry::program("auxv", 0o400, memory::auxv),
            Entry::program("environ", 0o400, memory::environ),
            Entry::text("cgroup", cgroup),
            Entry::text("cmdline", memory::cmdline),
            Entry::settable("comm", comm, set_comm),
            Entry::settable("coredump_filter", coredump_filter, set_coredump_filter),
            Entry::text("cpuset", cpuset),
            Entry::text("gid_map", id_map),
            Entry::new("io", 0o400, Kind::Text(io)),
            Entry::text("limits", limits),
            Entry::settable("loginuid", login_uid, set_login_uid),
            Entry::program("maps", 0o444, memory::maps),
            Entry::new("mem", 0o600, Kind::Memory),
            Entry::mounts("mountinfo", 0o444, mounts::mountinfo),
            Entry::mounts("mounts", 0o444, mounts::mounts),
            Entry::mounts("mountstats", 0o400, mounts::mountstats),
            Entry::program("numa_maps", 0o444, memory::numa_maps),
            Entry::settable("oom_adj", oom_adj, set_oom_adj),
            Entry::text("oom_score", oom_score),
            Entry::settable("oom_score_adj", oom_score_adj, set_oom_score_adj),
            Entry::new("pagemap", 0o400, Kind::PageMap),
            Entry::guarded("personality", personality),
            Entry::text("projid_map", id_map),
            Entry::text("sched", stat::sched),
            Entry::text("schedstat", schedstat),
            Entry::text("sessionid", login_number),
            Entry::text("setgroups", setgroups),
            Entry::program("smaps", 0o444, memory::smaps),
            Entry::program("smaps_rollup", 0o444, memory::smaps_rollup),
            Entry::new("stack", 0o400, Kind::Text(stack)),
            Entry::text("stat", stat::stat),
            Entry::text("statm", memory::statm),
            Entry::text("status", stat::status),
            Entry::guarded("syscall", syscall),
            Entry::text("uid_map", id_map),
            Entry::text("wchan", wchan),
        ]
    };
}

/// Of a process.
pub static ENTRIES: &[Entry] = common!(
    Entry::new("map_files", 0o500, Kind::MapFiles),
    Entry::new("task", 0o555, Kind::Tasks),
    Entry::program("timers", 0o444, timers),
    Entry::new("timerslack_ns", 0o666, Kind::Settable(timer_slack, set_timer_slack)),
);
/// Of a thread.
pub static THREAD_ENTRIES: &[Entry] = common!(Entry::text("children", children));

fn cwd(subject: &Subject) -> Result<Path> {
    Ok(subject.fs()?.cwd.read().clone())
}

fn root(subject: &Subject) -> Result<Path> {
    Ok(subject.fs()?.root.read().clone())
}

fn exe(subject: &Subject) -> Result<Path> {
    let mm = subject.task()?.mm().ok_or(Errno::ENOENT)?;
    let exe = mm.image().exe.ok_or(Errno::ENOENT)?;
    subject.kernel.vfs.place_of(&exe.file)
}

fn comm(subject: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(&subject.comm());
    text.bytes(b"\n");
    Ok(())
}

/// EINVAL for another process.
fn set_comm(subject: &Subject, name: &[u8]) -> Result<()> {
    if !subject.is_own() {
        return Err(Errno::EINVAL);
    }
    let name = name.strip_suffix(b"\n").unwrap_or(name);
    subject.seat()?.set_comm(&name[..name.len().min(15)]);
    Ok(())
}

/// There is one set, of all processors.
fn cpuset(_: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"/\n");
    Ok(())
}

fn coredump_filter(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{:08x}", subject.task()?.settings.coredump_filter.load(Ordering::Relaxed));
    Ok(())
}

fn set_coredump_filter(subject: &Subject, word: &[u8]) -> Result<()> {
    let word = core::str::from_utf8(word).map_err(|_| Errno::EINVAL)?.trim();
    let value = match (word.strip_prefix("0x"), word.strip_prefix('0')) {
        (Some(hex), _) => u32::from_str_radix(hex, 16),
        (None, Some(octal)) if !octal.is_empty() => u32::from_str_radix(octal, 8),
        _ => word.parse(),
    };
    let value = value.map_err(|_| Errno::EINVAL)? & FILTER_BITS;
    subject.task()?.settings.coredump_filter.store(value, Ordering::Relaxed);
    Ok(())
}

fn cgroup(_: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"0::/\n");
    Ok(())
}

/// Of the process: the kernel does not remember which thread made a child.
fn children(subject: &Subject, text: &mut Text) -> Result<()> {
    let pid = subject.task()?.pid;
    for child in subject.kernel.processes().iter().filter(|task| task.parent() == pid) {
        let _ = write!(text, "{} ", child.pid);
    }
    Ok(())
}

/// Of the thread: time on a processor and time it was ready for one, nanoseconds, and how often it got one; zeros where the machine
/// does not count, as on Linux without CONFIG_SCHED_INFO.
fn schedstat(subject: &Subject, text: &mut Text) -> Result<()> {
    let seat = subject.seat().ok();
    let counted = seat.and_then(|seat| seat.context()?.scheduled()).unwrap_or_default();
    let _ = writeln!(text, "{} {} {}", counted.ran, counted.waited, counted.times);
    Ok(())
}

/// The call a thread waits in, with its words, stack pointer and program counter; -1 for one that is stopped outside a call.
fn syscall(subject: &Subject, text: &mut Text) -> Result<()> {
    let seat = subject.seat()?;
    let mm = memory::mm(subject).ok();
    let shown = |[stack, pc]: [usize; 2]| [stack, mm.as_ref().map_or(pc, |mm| mm.pc_shown(pc))];
    let blocked = seat.blocked().map(|blocked| Blocked { at: shown(blocked.at), ..blocked });
    let _ = match blocked {
        _ if seat.is_woken() => writeln!(text, "running"),
        None => writeln!(text, "running"),
        Some(Blocked { number: None, at: [stack, pc], .. }) => writeln!(text, "-1 {stack:#x} {pc:#x}"),
        Some(Blocked { number: Some(number), words: [a, b, c, d, e, f], at: [stack, pc], .. }) => {
            writeln!(text, "{number} {a:#x} {b:#x} {c:#x} {d:#x} {e:#x} {f:#x} {stack:#x} {pc:#x}")
        }
    };
    Ok(())
}

/// Groups may always be set, by who may.
fn setgroups(_: &Subject, text: &mut Text) -> Result<()> {
    text.bytes(b"allow\n");
    Ok(())
}

fn timers(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = crate::time::posix::list(subject.task()?, text);
    Ok(())
}

/// Another process' slack is for CAP_SYS_NICE. EPERM.
fn may_slacken(subject: &Subject) -> Result<()> {
    if subject.is_own() || subject.is_for_capable(CAP_SYS_NICE) { Ok(()) } else { Err(Errno::EPERM) }
}

fn timer_slack(subject: &Subject, text: &mut Text) -> Result<()> {
    may_slacken(subject)?;
    let _ = writeln!(text, "{}", subject.seat()?.timer_slack.load(Ordering::Relaxed));
    Ok(())
}

/// 0 is the usual value, as for PR_SET_TIMERSLACK.
fn set_timer_slack(subject: &Subject, word: &[u8]) -> Result<()> {
    let value: u64 = parse(word)?;
    may_slacken(subject)?;
    let seat = subject.seat()?;
    let value = if value == 0 { seat.default_slack.load(Ordering::Relaxed) } else { value };
    seat.timer_slack.store(value, Ordering::Relaxed);
    Ok(())
}

/// There is one user namespace, in which every number means itself.
fn id_map(_: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{:10} {:10} {:10}", 0, 0, u32::MAX);
    Ok(())
}

/// Nobody has logged in: the id is -1.
fn login_uid(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = write!(text, "{}", subject.task()?.settings.login[0].load(Ordering::Relaxed));
    Ok(())
}

/// A process without a login sets one for itself (pam_loginuid(8)). EPERM for another process, or to change it without
/// CAP_AUDIT_CONTROL.
fn set_login_uid(subject: &Subject, word: &[u8]) -> Result<()> {
    static LOGINS: AtomicU32 = AtomicU32::new(0);
    let [uid, number] = &subject.task()?.settings.login;
    if !subject.is_own() {
        return Err(Errno::EPERM);
    }
    let new: u32 = parse(word)?;
    if uid.load(Ordering::Relaxed) != NO_LOGIN && !subject.is_for_capable(CAP_AUDIT_CONTROL) {
        return Err(Errno::EPERM);
    }
    uid.store(new, Ordering::Relaxed);
    let login = if new == NO_LOGIN { NO_LOGIN } else { LOGINS.fetch_add(1, Ordering::Relaxed) + 1 };
    number.store(login, Ordering::Relaxed);
    Ok(())
}

fn login_number(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = write!(text, "{}", subject.task()?.settings.login[1].load(Ordering::Relaxed));
    Ok(())
}

fn oom_score(subject: &Subject, text: &mut Text) -> Result<()> {
    let adjust = i64::from(subject.task()?.settings.oom_score_adj.load(Ordering::Relaxed));
    let _ = writeln!(text, "{}", (adjust * 2 / 3 + 666).clamp(0, 1333));
    Ok(())
}

fn oom_score_adj(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{}", subject.task()?.settings.oom_score_adj.load(Ordering::Relaxed));
    Ok(())
}

/// EACCES for less than CAP_SYS_RESOURCE has left to those without.
fn set_oom_score_adj(subject: &Subject, word: &[u8]) -> Result<()> {
    let value: i32 = parse(word)?;
    if !(-1000..=1000).contains(&value) {
        return Err(Errno::EINVAL);
    }
    let settings = &subject.task()?.settings;
    let capable = subject.is_for_capable(CAP_SYS_RESOURCE);
    if !capable && value < settings.oom_score_adj_min.load(Ordering::Relaxed) {
        return Err(Errno::EACCES);
    }
    settings.oom_score_adj.store(value, Ordering::Relaxed);
    if capable {
        settings.oom_score_adj_min.store(value, Ordering::Relaxed);
    }
    Ok(())
}

/// The older scale, from -17 (never) to 15, of the same setting.
fn oom_adj(subject: &Subject, text: &mut Text) -> Result<()> {
    let adjust = subject.task()?.settings.oom_score_adj.load(Ordering::Relaxed);
    let _ = writeln!(text, "{}", if adjust == 1000 { 15 } else { adjust * 17 / 1000 });
    Ok(())
}

/// By this name only CAP_SYS_RESOURCE makes it less. EACCES.
fn set_oom_adj(subject: &Subject, word: &[u8]) -> Result<()> {
    let value: i32 = parse(word)?;
    if !(-17..=15).contains(&value) {
        return Err(Errno::EINVAL);
    }
    let adjust = if value == 15 { 1000 } else { value * 1000 / 17 };
    let setting = &subject.task()?.settings.oom_score_adj;
    if adjust < setting.load(Ordering::Relaxed) && !subject.is_for_capable(CAP_SYS_RESOURCE) {
        return Err(Errno::EACCES);
    }
    setting.store(adjust, Ordering::Relaxed);
    Ok(())
}

/// A number as it is written to files of /proc. EINVAL.
pub fn parse<T: core::str::FromStr>(word: &[u8]) -> Result<T> {
    core::str::from_utf8(word).ok().and_then(|word| word.trim().parse().ok()).ok_or(Errno::EINVAL)
}

fn personality(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{:08x}", subject.task()?.settings.personality.load(Ordering::Relaxed));
    Ok(())
}

/// What the thread waits in, by the name of the call: a call is one function here, whatever it calls. `None` for one that does not wait.
fn waits_in(subject: &Subject) -> Option<&'static str> {
    let seat = subject.seat().ok()?;
    let blocked = seat.blocked().filter(|_| !seat.is_woken())?;
    Some(blocked.name).filter(|name| !name.is_empty())
}

/// "0" for a thread that does not wait, and for who may not look into it.
fn wchan(subject: &Subject, text: &mut Text) -> Result<()> {
    let name = if subject.is_for_tracer() { waits_in(subject) } else { None };
    text.bytes(name.unwrap_or("0").as_bytes());
    Ok(())
}

/// The functions the thread is in within the kernel; no line for one that runs. EACCES without CAP_SYS_ADMIN.
fn stack(subject: &Subject, text: &mut Text) -> Result<()> {
    if !subject.is_for_capable(CAP_SYS_ADMIN) {
        return Err(Errno::EACCES);
    }
    if let Some(name) = waits_in(subject) {
        let _ = writeln!(text, "[<0>] {name}");
    }
    Ok(())
}

/// Counted from the first look on ([`crate::task::io`]). Nothing is read from and written to disks by this kernel.
fn io(subject: &Subject, text: &mut Text) -> Result<()> {
    if !subject.is_for_tracer() {
        return Err(Errno::EACCES);
    }
    let task = subject.task()?;
    crate::task::io::look(task);
    let moved = crate::task::io::moved(task, subject.seat.as_deref().filter(|_| subject.is_thread));
    for (name, count) in [("rchar", &moved.read), ("wchar", &moved.written), ("syscr", &moved.reads), ("syscw", &moved.writes)]
    {
        let _ = writeln!(text, "{name}: {}", count.load(Ordering::Relaxed));
    }
    text.bytes(b"read_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n");
    Ok(())
}

/// Name and unit of each limit, in the order of their numbers.
const LIMITS: [(&str, &str); 16] = [
    ("Max cpu time", "seconds"),
    ("Max file size", "bytes"),
    ("Max data size", "bytes"),
    ("Max stack size", "bytes"),
    ("Max core file size", "bytes"),
    ("Max resident set", "bytes"),
    ("Max processes", "processes"),
    ("Max open files", "files"),
    ("Max locked memory", "bytes"),
    ("Max address space", "bytes"),
    ("Max file locks", "locks"),
    ("Max pending signals", "signals"),
    ("Max msgqueue size", "bytes"),
    ("Max nice priority", ""),
    ("Max realtime priority", ""),
    ("Max realtime timeout", "us"),
];

fn limits(subject: &Subject, text: &mut Text) -> Result<()> {
    let task = subject.task()?;
    let _ = writeln!(text, "{:25} {:20} {:20} {:10}", "Limit", "Soft Limit", "Hard Limit", "Units");
    for (number, (name, unit)) in LIMITS.iter().enumerate() {
        let limit = task.limits.get(number as u32);
        let shown = |value: u64| -> Vec<u8> {
            if value == rlimit::INFINITY { b"unlimited".to_vec() } else { alloc::format!("{value}").into_bytes() }
        };
        let (soft, hard) = (shown(limit.soft), shown(limit.hard));
        let of = |bytes: &Vec<u8>| alloc::string::String::from_utf8_lossy(bytes).into_owned();
        let _ = write!(text, "{name:25} {:20} {:20} ", of(&soft), of(&hard));
        let _ = if unit.is_empty() { writeln!(text) } else { writeln!(text, "{unit:10}") };
    }
    Ok(())
}
