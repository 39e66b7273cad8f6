//! What the host counts for guest threads: times, faults, switches, resident memory; and their nice values.

use alloc::format;
use alloc::vec::Vec;
use core::fmt::Display;

use janua_abi::linux::time::TICK;
use janua_abi::linux::{Errno, Result};
use janua_port::PAGE;
use janua_port::machine::{Residency, Scheduled, Usage};
use janua_port::{Host, accounts};

use crate::host::{self, LinuxHost};
use crate::sys::{self, nr};
use crate::{area, boot, kept, spawn, text};

/// The name of a file below /proc about a process. EOPNOTSUPP when the host's /proc numbers them otherwise.
pub fn below_proc(pid: u32, file: impl Display) -> Result<Vec<u8>> {
    match boot::info().proc_same_numbers {
        0 => Err(Errno::EOPNOTSUPP),
        _ => Ok(format!("{pid}/{file}").into_bytes()),
    }
}

/// The start of a small file below the host's /proc.
pub fn read_small<'a>(path: &[u8], text: &'a mut [u8]) -> Option<&'a str> {
    let fd = host::open_proc(path).ok()?;
    let len = LinuxHost.read(fd, text, None);
    LinuxHost.close(fd);
    let text = text.get_mut(..len.ok()?)?;
    // A process' name is a program's word, and may be anything.
    for byte in text.iter_mut().filter(|byte| !byte.is_ascii()) {
        *byte = b'?';
    }
    core::str::from_utf8(text).ok()
}

/// A whole file below the host's /proc.
fn read_all(path: &[u8]) -> Result<Vec<u8>> {
    // The host gives no more than this at once.
    const PIECE: usize = 4096;
    let fd = host::open_proc(path)?;
    let (mut text, mut len) = (Vec::new(), 0);
    let result = loop {
        if text.len() - len < PIECE {
            text.resize((text.len() * 2).max(8 * PIECE), 0);
        }
        match LinuxHost.read(fd, &mut text[len..], None) {
            Ok(0) => break Ok(()),
            Ok(read) => len += read,
            Err(errno) => break Err(errno),
        }
    };
    LinuxHost.close(fd);
    text.truncate(len);
    result.map(|()| text)
}

/// The words of `struct rusage`: user and system time as seconds and microseconds, the largest resident set in KiB, ..., at 8 and
/// 9 minor and major faults, at 16 and 17 switches.
fn rusage(who: usize) -> Option<[u64; 18]> {
    let mut words = [0u64; 18];
    // SAFETY: the array has the 144 bytes of the structure.
    unsafe { sys::raw(nr::GETRUSAGE, [who, words.as_mut_ptr() as usize, 0, 0, 0, 0]) }.ok()?;
    Some(words)
}

const RUSAGE_SELF: usize = 0;
const RUSAGE_THREAD: usize = 1;

/// What the guest of a thread's area has, of what the host counts for its process: without the kernel's image. Pages of the
/// kernel's shared memory that the process has used stay in it.
pub fn of_guest(index: usize, resident: u64) -> u64 {
    resident.saturating_sub(boot::info().image_resident + text::more(index))
}

/// [`janua_port::Context::peak_resident`], of the process of a guest thread, by the host's id; `own`: it is the calling process.
pub fn peak_resident(index: usize, pid: u32, own: bool) -> Option<u64> {
    let kib = if own {
        rusage(RUSAGE_SELF)?[4]
    } else {
        let mut status = [0; 4096];
        let status = read_small(&below_proc(pid, "status").ok()?, &mut status)?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?
    };
    let peak = kept::peak_of(pid, kib.saturating_mul(1024), || resident_whole(pid));
    Some(of_guest(index, peak))
}

/// What the calling thread has used.
pub fn of_caller() -> Option<Usage> {
    rusage(RUSAGE_THREAD).map(from_rusage)
}

/// What the calling thread's process has used, and the most bytes it has had in memory.
pub fn of_callers_process() -> Option<(Usage, u64)> {
    let words = rusage(RUSAGE_SELF)?;
    Some((from_rusage(words), words[4].saturating_mul(1024)))
}

/// Whether the host's /proc has the kernel's processes by the numbers they know.
pub fn is_numbered() -> bool {
    boot::info().proc_same_numbers != 0
}

/// What another thread has used, by the host's ids of its process and of itself.
pub fn of_thread((pid, tid): (u32, u32)) -> Option<Usage> {
    of_other(pid, &format!("task/{tid}/"))
}

/// What another process has used.
pub fn of_process(pid: u32) -> Option<Usage> {
    of_other(pid, "")
}

fn from_rusage(words: [u64; 18]) -> Usage {
    let nanos = |at: usize| words[at] * 1_000_000_000 + words[at + 1] * 1000;
    Usage {
        user: nanos(0),
        system: nanos(2),
        minor_faults: words[8],
        major_faults: words[9],
        waits: words[16],
        preemptions: words[17],
    }
}

/// From `stat` and `status` below a process' directory of /proc (proc_pid_stat(5), proc_pid_status(5)).
fn of_other(pid: u32, directory: &str) -> Option<Usage> {
    let mut text = [0; 1024];
    let stat = read_small(&below_proc(pid, format_args!("{directory}stat")).ok()?, &mut text)?;
    // The name is the only field with blanks and brackets; the state, field 3, comes next.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let mut usage = Usage {
        minor_faults: field(10)?,
        major_faults: field(12)?,
        user: field(14)? * TICK,
        system: field(15)? * TICK,
        ..Usage::default()
    };
    let mut text = [0; 4096];
    let status = read_small(&below_proc(pid, format_args!("{directory}status")).ok()?, &mut text)?;
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    usage.waits = value("voluntary_ctxt_switches:")?;
    usage.preemptions = value("nonvoluntary_ctxt_switches:")?;
    Some(usage)
}

/// [`janua_port::Context::residency`], from /proc/PID/smaps.
pub fn residency(pid: u32, each: &mut dyn FnMut(&Residency)) -> Result<()> {
    let text = read_all(&below_proc(pid, "smaps")?)?;
    let mut current: Option<Residency> = None;
    // The names come in their order: where the next one is expected.
    let mut expected = 0;
    for line in text.split(|byte| *byte == b'\n') {
        // A mapping's line begins with its address, in small letters; the others' names with capital ones.
        if line.first().is_some_and(|byte| !byte.is_ascii_uppercase()) {
            let Some((start, end)) = range(line) else { continue };
            if let Some(done) = current.replace(Residency { start, end, amounts: [0; Residency::NAMES.len()] }) {
                each(&done);
            }
            expected = 0;
            continue;
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let named = |name: &&str| name.as_bytes() == &line[..colon];
        let Some(skipped) = Residency::NAMES[expected..].iter().position(named) else { continue };
        if let Some(current) = &mut current {
            let digits = line[colon + 1..].iter().skip_while(|byte| **byte == b' ').take_while(|byte| byte.is_ascii_digit());
            current.amounts[expected + skipped] = digits.fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        }
        expected += skipped + 1;
    }
    if let Some(done) = &current {
        each(done);
    }
    Ok(())
}

/// The addresses a line of /proc/PID/maps begins with.
fn range(line: &[u8]) -> Option<(usize, usize)> {
    // Names of files need not be UTF-8.
    let place = line.split(|byte| *byte == b' ').next()?;
    let (start, end) = core::str::from_utf8(place).ok()?.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

/// [`janua_port::Context::page_map`], from /proc/PID/pagemap.
pub fn page_map(tid: u32, addr: usize, out: &mut [u64]) -> Result<()> {
    const WORD: usize = 8;
    let fd = host::open_proc(&below_proc(tid, "pagemap")?)?;
    let mut bytes = [0; 512 * WORD];
    let mut at = addr / PAGE * WORD;
    let mut result = Ok(());
    for part in out.chunks_mut(bytes.len() / WORD) {
        let read = LinuxHost.read(fd, &mut bytes[..part.len() * WORD], Some(at as u64));
        // Behind the last address there is nothing.
        bytes[*read.as_ref().unwrap_or(&0)..].fill(0);
        for (word, bytes) in part.iter_mut().zip(bytes.chunks_exact(WORD)) {
            *word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        }
        at += part.len() * WORD;
        result = result.and(read.map(|_| ()));
    }
    LinuxHost.close(fd);
    result
}

/// [`janua_port::Context::scheduled`], from /proc/PID/task/TID/schedstat.
pub fn scheduled((pid, tid): (u32, u32)) -> Option<Scheduled> {
    let mut text = [0; 128];
    let text = read_small(&below_proc(pid, format_args!("task/{tid}/schedstat")).ok()?, &mut text)?;
    let mut words = text.split_ascii_whitespace().map(str::parse);
    let mut next = || words.next()?.ok();
    Some(Scheduled { ran: next()?, waited: next()?, times: next()? })
}

/// [`janua_port::Context::restrict`], of a host thread; 0 is the calling one.
pub fn set_affinity(tid: u32, cpus: &[u64]) -> Result<()> {
    let args = [tid as usize, size_of_val(cpus), cpus.as_ptr() as usize, 0, 0, 0];
    // SAFETY: the array is the caller's.
    unsafe { sys::raw(nr::SCHED_SETAFFINITY, args) }.map(|_| ())
}

/// [`janua_port::Context::set_nice`], of a host thread; 0 is the calling one.
pub fn set_nice(tid: u32, nice: i32) -> Result<()> {
    const PRIO_PROCESS: usize = 0;
    sys::words(nr::SETPRIORITY, [PRIO_PROCESS, tid as usize, nice as usize, 0, 0, 0]).map(|_| ())
}

/// Bytes of anonymous memory that the process of a host thread has resident. `exact`: of what several share, its share.
fn own(tid: u32, exact: bool) -> Option<usize> {
    if !exact {
        let mut text = [0; 128];
        // Pages of the whole, those in memory, and of these the ones that belong to files.
        let mut words = read_small(&below_proc(tid, "statm").ok()?, &mut text)?.split(' ').skip(1).map(str::parse::<usize>);
        let (resident, of_files) = (words.next()?.ok()?, words.next()?.ok()?);
        return Some(resident.saturating_sub(of_files) * PAGE);
    }
    let mut text = [0; 2048];
    let text = read_small(&below_proc(tid, "smaps_rollup").ok()?, &mut text)?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<usize>().ok()
    };
    // The first came with Linux 5.9.
    value("Pss_Anon:").or_else(|| value("Anonymous:")).map(|kib| kib << 10)
}

/// Bytes of page tables of the process of a host thread, which no other process shares.
fn tables(tid: u32) -> Option<usize> {
    // The name before it is the program's word, and the list of groups may be long.
    let text = read_all(&below_proc(tid, "status").ok()?).ok()?;
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"VmPTE:"))?;
    let kib = line.iter().filter(|byte| byte.is_ascii_digit()).fold(0usize, |kib, digit| kib * 10 + usize::from(digit - b'0'));
    Some(kib << 10)
}

/// [`janua_port::Context::resident_own`], of a host thread's process.
pub fn resident_own(tid: u32) -> Option<usize> {
    let of_tables = if boot::accounts().has_tables() { tables(tid) } else { None };
    Some(own(tid, false)? + of_tables.unwrap_or(0))
}

/// [`janua_port::Context::resident`], of the process of a guest thread.
pub fn resident(index: usize, pid: u32) -> Option<u64> {
    resident_whole(pid).map(|resident| of_guest(index, resident))
}

/// Bytes that a process has resident, the kernel's among them.
fn resident_whole(pid: u32) -> Option<u64> {
    let mut words = [0; 128];
    // Pages of the whole, then those in memory.
    let words = read_small(&below_proc(pid, "statm").ok()?, &mut words)?;
    words.split(' ').nth(1)?.parse::<u64>().ok()?.checked_mul(PAGE as u64)
}

/// Page tables that are quickly walked, however little they hold.
const MANY_TABLES: usize = 1 << 20;

/// [`janua_port::Machine::resident_guests`].
pub fn resident_guests(exact: Option<usize>) -> Option<usize> {
    // Where the host numbers processes otherwise this cannot be known.
    below_proc(0, "").ok()?;
    let spaces = || {
        let mut spaces = Vec::new();
        // One that has ended meanwhile has nothing.
        area::for_each_space(|tid| spaces.extend(own(tid, false).map(|alone| (alone, tid))));
        spaces
    };
    // What a process shares is not asked for where that would take long and matters little: it has less memory than tables.
    let (mut of_tables, mut sparse) = (0, Vec::new());
    if boot::accounts().has_tables() {
        area::for_each_space(|tid| {
            let bytes = tables(tid).unwrap_or(0);
            of_tables += bytes;
            if bytes > MANY_TABLES && bytes > own(tid, false).unwrap_or(0) {
                sparse.push(tid);
            }
        });
    }
    let Some(bound) = exact else {
        return Some(spaces().iter().map(|(alone, _)| alone).sum::<usize>() + of_tables);
    };
    let bound = bound.saturating_sub(of_tables);
    let sum = || accounts::resident_together(&mut spaces(), bound, |tid| own(*tid, !sparse.contains(tid)));
    // A fork or an end between the looks at two processes makes what they share appear twice. So the least of several tries counts, and
    // of more if forks have disturbed them; when the host is done with an end nobody knows.
    const TRIES: [usize; 2] = [3, 8];
    let mut least = usize::MAX;
    for count in 1..=TRIES[1] {
        let before = spawn::forks();
        least = least.min(sum());
        let after = spawn::forks();
        if count >= TRIES[0] && before == after && before[0] == before[1] {
            break;
        }
    }
    Some(least + of_tables)
}
