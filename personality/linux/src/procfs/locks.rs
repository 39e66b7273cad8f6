//! /proc/locks (proc_locks(5)).

use alloc::collections::BTreeMap;
use core::fmt::Write;

use janua_abi::linux::Result;
use janua_object::lock::{FileKey, Mode, Owner, TO_END};
use janua_object::vfs::device;

use super::{Subject, Text};

/// A process that holds each description with locks or a lease: the one with the lowest number, where several share it.
fn holders(subject: &Subject) -> BTreeMap<u64, u32> {
    let mut holders = BTreeMap::new();
    for task in subject.kernel.processes() {
        for files in task.tables() {
            for file in files.numbers().into_iter().filter_map(|fd| files.get(fd).ok()) {
                if file.locks.lock().is_some() || file.is_leased() {
                    holders.entry(file.id).or_insert(task.pid);
                }
            }
        }
    }
    holders
}

/// Held locks, then leases; locks that are waited for are not shown.
pub fn locks(subject: &Subject, text: &mut Text) -> Result<()> {
    let all = subject.kernel.files.locks.list();
    let leases = subject.kernel.vfs.leases.list();
    let holders = if all.is_empty() && leases.is_empty() { BTreeMap::new() } else { holders(subject) };
    let mut number = 0;
    let mut line = |kind: &str, mode: Option<Mode>, pid: i64, (dev, ino): FileKey, start: u64, end: u64| {
        number += 1;
        let mode = match mode {
            Some(Mode::Exclusive) => "WRITE",
            Some(Mode::Shared) => "READ",
            None => "UNLCK",
        };
        let (major, minor) = (device::major(dev), device::minor(dev));
        let _ = write!(text, "{number}: {kind} {mode} {pid} {major:02x}:{minor:02x}:{ino} {start} ");
        let _ = if end >= TO_END { writeln!(text, "EOF") } else { writeln!(text, "{}", end - 1) };
    };
    for held in all {
        for record in &held.records {
            let (kind, pid) = match record.owner {
                Owner::Process(pid) => ("POSIX  ADVISORY ", i64::from(pid)),
                Owner::Description(_) => ("OFDLCK ADVISORY ", -1),
            };
            line(kind, Some(record.mode), pid, held.file, record.start, record.end);
        }
        for (description, mode) in &held.flocks {
            let pid = holders.get(description).copied().unwrap_or(0);
            line("FLOCK  ADVISORY ", Some(*mode), pid.into(), held.file, 0, TO_END);
        }
    }
    for lease in leases {
        let kind = if lease.is_breaking { "LEASE  BREAKING " } else { "LEASE  ACTIVE   " };
        let pid = holders.get(&lease.description).copied().unwrap_or(0);
        line(kind, lease.target, pid.into(), lease.file, 0, TO_END);
    }
    Ok(())
}
