//! /proc/sys: the settings programs look at. What cannot be changed here is read-only.

use core::fmt::Write;

use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};

use super::process::parse;
use crate::limits::NR_OPEN;
use crate::task::tree::PID_MAX;

use super::{Entry, Make, Subject, Take, Text};

/// An entry whose text is always the same.
macro_rules! fixed {
    ($name:literal, $text:literal) => {
        text($name, |_, text| {
            text.bytes(concat!($text, "\n").as_bytes());
            Ok(())
        })
    };
}

macro_rules! name {
    ($name:literal, $field:ident) => {
        text($name, text_of!($field))
    };
    ($name:literal, $field:ident, settable) => {
        settable($name, text_of!($field), |subject, word| {
            let word = word.split(|byte| matches!(byte, 0 | b'\n')).next().unwrap_or_default();
            let mut uts = subject.kernel.uts.write();
            // The last byte stays zero.
            let most = uts.$field.len() - 1;
            let len = word.len().min(most);
            uts.$field.fill(0);
            uts.$field[..len].copy_from_slice(&word[..len]);
            Ok(())
        })
    };
}

/// A number of things of the kernel's memory, which is bounded for root too.
macro_rules! count {
    ($name:literal, |$kernel:ident| $place:expr) => {
        settable(
            $name,
            |subject, text| {
                let $kernel = &subject.kernel;
                let _ = writeln!(text, "{}", $place.load(Ordering::Relaxed));
                Ok(())
            },
            |subject, word| {
                let $kernel = &subject.kernel;
                let most: usize = parse(word)?;
                if most > 1 << 20 {
                    return Err(Errno::EINVAL);
                }
                $place.store(most, Ordering::Relaxed);
                Ok(())
            },
        )
    };
}

macro_rules! text_of {
    ($field:ident) => {
        |subject, text| {
            let uts = subject.kernel.uts.read();
            text.bytes(uts.$field.split(|byte| *byte == 0).next().unwrap_or_default());
            text.bytes(b"\n");
            Ok(())
        }
    };
}

pub static ENTRIES: &[Entry] = &[dir("fs", FS), dir("kernel", KERNEL), dir("net", NET), dir("vm", VM)];

/// A directory of these tables.
pub const fn dir(name: &'static str, entries: &'static [Entry]) -> Entry {
    Entry { setting: true, ..Entry::dir(name, entries) }
}

/// An entry of these tables.
const fn text(name: &'static str, make: Make) -> Entry {
    Entry { setting: true, ..Entry::text(name, make) }
}

/// One that can be changed.
const fn settable(name: &'static str, make: Make, take: Take) -> Entry {
    Entry { setting: true, ..Entry::settable(name, make, take) }
}

static FS: &[Entry] = &[
    dir("epoll", &[fixed!("max_user_watches", "1048576")]),
    dir(
        "inotify",
        &[
            count!("max_queued_events", |kernel| &kernel.files.inotify.limits.queued),
            count!("max_user_instances", |kernel| &kernel.files.inotify.limits.instances),
            count!("max_user_watches", |kernel| &kernel.files.inotify.limits.watches),
        ],
    ),
    fixed!("aio-max-nr", "65536"),
    text("aio-nr", aio_events),
    fixed!("file-max", "9223372036854775807"),
    fixed!("file-nr", "0\t0\t9223372036854775807"),
    settable("lease-break-time", lease_time, set_lease_time),
    settable("nr_open", nr_open, set_nr_open),
    fixed!("overflowgid", "65534"),
    fixed!("overflowuid", "65534"),
    settable("pipe-max-size", pipe_most, set_pipe_most),
    fixed!("pipe-user-pages-hard", "0"),
    fixed!("pipe-user-pages-soft", "16384"),
    fixed!("protected_hardlinks", "1"),
    fixed!("protected_symlinks", "0"),
];

static KERNEL: &[Entry] = &[
    dir("random", &[text("boot_id", boot_id), fixed!("entropy_avail", "256"), fixed!("poolsize", "256"), text("uuid", uuid)]),
    fixed!("cap_last_cap", "40"),
    fixed!("core_pattern", "core"),
    fixed!("core_uses_pid", "0"),
    name!("domainname", domainname, settable),
    name!("hostname", nodename, settable),
    fixed!("msgmax", "8192"),
    fixed!("msgmnb", "16384"),
    settable("msgmni", msgmni, set_msgmni),
    fixed!("ngroups_max", "65536"),
    settable("ns_last_pid", last_pid, set_last_pid),
    name!("osrelease", release),
    name!("ostype", sysname),
    fixed!("overflowgid", "65534"),
    fixed!("overflowuid", "65534"),
    fixed!("pid_max", "4194304"),
    fixed!("randomize_va_space", "2"),
    fixed!("sem", "32000\t1024000000\t500\t32000"),
    fixed!("seccomp", ""),
    fixed!("shmall", "18446744073692774399"),
    fixed!("shmmax", "18446744073692774399"),
    settable("shmmni", shmmni, set_shmmni),
    fixed!("tainted", "0"),
    fixed!("threads-max", "32768"),
    name!("version", version),
];

static NET: &[Entry] = &[
    dir(
        "core",
        &[
            fixed!("optmem_max", "131072"),
            fixed!("rmem_default", "212992"),
            fixed!("rmem_max", "212992"),
            settable("somaxconn", most_waiting, set_most_waiting),
            fixed!("wmem_default", "212992"),
            fixed!("wmem_max", "212992"),
        ],
    ),
    dir(
        "ipv4",
        &[
            fixed!("igmp_max_memberships", "20"),
            fixed!("igmp_max_msf", "10"),
            fixed!("ip_default_ttl", "64"),
            fixed!("ip_forward", "0"),
            settable("ip_local_port_range", ports, set_ports),
            fixed!("ip_local_reserved_ports", ""),
            settable("ip_nonlocal_bind", nonlocal, set_nonlocal),
            settable("ip_unprivileged_port_start", first_free, set_first_free),
            fixed!("ping_group_range", "1\t0"),
            fixed!("tcp_available_congestion_control", "cubic reno"),
            fixed!("tcp_congestion_control", "cubic"),
            fixed!("tcp_fin_timeout", "60"),
            fixed!("tcp_keepalive_intvl", "75"),
            fixed!("tcp_keepalive_probes", "9"),
            fixed!("tcp_keepalive_time", "7200"),
            fixed!("tcp_max_syn_backlog", "512"),
            fixed!("tcp_syn_retries", "6"),
        ],
    ),
    dir(
        "ipv6",
        &[
            fixed!("bindv6only", "0"),
            dir(
                "conf",
                &[
                    dir("all", &[fixed!("disable_ipv6", "0"), fixed!("forwarding", "0")]),
                    dir("lo", &[fixed!("disable_ipv6", "0"), fixed!("forwarding", "0"), fixed!("mtu", "65536")]),
                ],
            ),
            fixed!("mld_max_msf", "64"),
        ],
    ),
    dir("unix", &[fixed!("max_dgram_qlen", "512")]),
];

static VM: &[Entry] = &[
    fixed!("max_map_count", "65530"),
    text("mmap_min_addr", |_, text| {
        let _ = writeln!(text, "{}", janua_object::mm::least_address());
        Ok(())
    }),
    fixed!("overcommit_memory", "1"),
    fixed!("overcommit_ratio", "50"),
    fixed!("swappiness", "60"),
];

fn last_pid(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{}", subject.kernel.tree.lock().last_pid());
    Ok(())
}

fn set_last_pid(subject: &Subject, word: &[u8]) -> Result<()> {
    let last: u32 = parse(word)?;
    if last >= PID_MAX {
        return Err(Errno::EINVAL);
    }
    subject.kernel.tree.lock().set_last_pid(last);
    Ok(())
}

fn msgmni(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{}", subject.kernel.ipc.msg.most());
    Ok(())
}

fn set_msgmni(subject: &Subject, word: &[u8]) -> Result<()> {
    subject.kernel.ipc.msg.set_most(parse(word)?)
}

fn shmmni(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{}", subject.kernel.ipc.shm.ids.most());
    Ok(())
}

fn set_shmmni(subject: &Subject, word: &[u8]) -> Result<()> {
    subject.kernel.ipc.shm.ids.set_most(parse(word)?)
}

fn most_waiting(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{}", subject.kernel.net.inet.settings.waiting.get());
    Ok(())
}

/// Of listeners from now on.
fn set_most_waiting(subject: &Subject, word: &[u8]) -> Result<()> {
    let most: i32 = parse(word)?;
    let most = u32::try_from(most).map_err(|_| Errno::EINVAL)?;
    // Sockets that wait at a listener take memory of the kernel's, which is bounded for root too.
    if most > 1 << 20 {
        return Err(Errno::EINVAL);
    }
    subject.kernel.net.inet.settings.waiting.set(most);
    subject.kernel.net.unix.waiting.set(most);
    Ok(())
}

fn ports(subject: &Subject, text: &mut Text) -> Result<()> {
    let ports = subject.kernel.net.inet.settings.ports();
    let _ = writeln!(text, "{}\t{}", ports.start(), ports.end());
    Ok(())
}

fn set_ports(subject: &Subject, word: &[u8]) -> Result<()> {
    let mut words = word.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut next = || words.next().ok_or(Errno::EINVAL).and_then(parse::<u16>);
    let (first, last) = (next()?, next()?);
    subject.kernel.net.inet.settings.set_ports(first, last)
}

fn first_free(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{}", subject.kernel.net.inet.settings.first_free());
    Ok(())
}

fn set_first_free(subject: &Subject, word: &[u8]) -> Result<()> {
    subject.kernel.net.inet.settings.set_first_free(u32::from(parse::<u16>(word)?))
}

fn nonlocal(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{}", u8::from(subject.kernel.net.inet.settings.nonlocal.load(Ordering::Relaxed)));
    Ok(())
}

fn set_nonlocal(subject: &Subject, word: &[u8]) -> Result<()> {
    let on: u8 = parse(word)?;
    subject.kernel.net.inet.settings.nonlocal.store(on != 0, Ordering::Relaxed);
    Ok(())
}

/// Seconds.
fn lease_time(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{}", subject.kernel.vfs.leases.break_time.load(Ordering::Relaxed) / 1_000_000_000);
    Ok(())
}

fn set_lease_time(subject: &Subject, word: &[u8]) -> Result<()> {
    let seconds: u32 = parse(word)?;
    subject.kernel.vfs.leases.break_time.store(u64::from(seconds) * 1_000_000_000, Ordering::Relaxed);
    Ok(())
}

fn pipe_most(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{}", subject.kernel.files.pipe_most.load(Ordering::Relaxed));
    Ok(())
}

/// Rounded as a pipe's capacity is. EINVAL for more than that can be.
fn set_pipe_most(subject: &Subject, word: &[u8]) -> Result<()> {
    let most: u32 = parse(word)?;
    if most == 0 || most > 1 << 31 {
        return Err(Errno::EINVAL);
    }
    let most = (most as usize).next_power_of_two().max(janua_object::pipe::PIPE_BUF);
    subject.kernel.files.pipe_most.store(most, Ordering::Relaxed);
    Ok(())
}

fn aio_events(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{}", subject.kernel.rings.aio_events());
    Ok(())
}

fn nr_open(subject: &Subject, text: &mut Text) -> Result<()> {
    let _ = writeln!(text, "{}", subject.kernel.nr_open.load(Ordering::Relaxed));
    Ok(())
}

fn set_nr_open(subject: &Subject, word: &[u8]) -> Result<()> {
    let most: u64 = parse(word)?;
    // As many as a word has bits, and no more than the table can have.
    if !(64..=NR_OPEN).contains(&most) {
        return Err(Errno::EINVAL);
    }
    subject.kernel.nr_open.store(most, Ordering::Relaxed);
    Ok(())
}

/// A random number in the form of RFC 4122, version 4.
fn write_uuid(text: &mut Text, mut bytes: [u8; 16]) {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.bytes(b"-");
        }
        let _ = write!(text, "{byte:02x}");
    }
    text.bytes(b"\n");
}

fn uuid(subject: &Subject, text: &mut Text) -> Result<()> {
    let mut bytes = [0; 16];
    subject.kernel.machine.random(&mut bytes);
    write_uuid(text, bytes);
    Ok(())
}

/// The same as long as the kernel lives: made from the time of its start.
fn boot_id(subject: &Subject, text: &mut Text) -> Result<()> {
    let mut bytes = [0; 16];
    // Two rounds of a mixing function (splitmix64) over the start time, which differs between any two kernels.
    let mut state = subject.kernel.booted_real ^ subject.kernel.booted.rotate_left(32);
    for half in bytes.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        half.copy_from_slice(&(word ^ word >> 31).to_ne_bytes());
    }
    write_uuid(text, bytes);
    Ok(())
}
