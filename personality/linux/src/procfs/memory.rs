//! /proc/PID/maps, smaps, statm, auxv, mem.

use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt::Write;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_object::file::{Events, File};
use janua_object::mm::{Label, Mm, Region, VmFlags};
use janua_object::vfs::device;
use janua_object::{Caller, OpenFile};
use janua_port::PAGE;
use janua_port::machine::Residency;

use super::{Subject, Text, name_of};
use crate::caller::thread_of;
use crate::ptrace::{self, Tracee};
use crate::task::access;
use crate::{Seat, Task};

/// The memory of the process. ESRCH once it has none; the files are empty then.
pub(super) fn mm(subject: &Subject) -> Result<Arc<Mm>> {
    subject.task()?.mm().ok_or(Errno::ESRCH)
}

/// The column where a name begins (proc(5) says nothing; programs split at blanks).
const NAME_COLUMN: usize = 73;

fn line(subject: &Subject, region: &Region, text: &mut Text) {
    let from = text.0.len();
    let [r, w, x, s] = region.perms().map(char::from);
    let (major, minor) = (device::major(region.dev), device::minor(region.dev));
    let &Region { start, end, offset, ino, .. } = region;
    let _ = write!(text, "{start:08x}-{end:08x} {r}{w}{x}{s} {offset:08x} {major:02x}:{minor:02x} {ino} ");
    let mut shown = Text::default();
    name(subject, region, &mut shown);
    if !shown.0.is_empty() {
        for _ in text.0.len() - from..NAME_COLUMN {
            text.bytes(b" ");
        }
        text.escaped(&shown.0, b"\n");
    }
    text.bytes(b"\n");
}

/// The name of a mapping, if it has one.
pub(super) fn name(subject: &Subject, region: &Region, text: &mut Text) {
    match &region.label {
        Label::None => {}
        Label::File(file) => text.bytes(&name_of(subject, file)),
        Label::Fixed(name) => text.bytes(name.as_bytes()),
        Label::Named(name) => text.bytes(&[b"[anon:", &**name, b"]"].concat()),
    }
}

/// /proc/PID/maps.
pub fn maps(subject: &Subject, text: &mut Text) -> Result<()> {
    let Ok(mm) = mm(subject) else { return Ok(()) };
    for region in mm.regions() {
        line(subject, &region, text);
    }
    Ok(())
}

/// The flags smaps abbreviates.
const VM_FLAGS: [(VmFlags, &str); 19] = [
    (VmFlags::READ, "rd"),
    (VmFlags::WRITE, "wr"),
    (VmFlags::EXEC, "ex"),
    (VmFlags::SHARED, "sh"),
    (VmFlags::MAY_READ, "mr"),
    (VmFlags::MAY_WRITE, "mw"),
    (VmFlags::MAY_EXEC, "me"),
    (VmFlags::GROWSDOWN, "gd"),
    (VmFlags::LOCKED, "lo"),
    (VmFlags::SEQ_READ, "sr"),
    (VmFlags::RAND_READ, "rr"),
    (VmFlags::DONTFORK, "dc"),
    (VmFlags::DONTEXPAND, "de"),
    (VmFlags::NORESERVE, "nr"),
    (VmFlags::WIPEONFORK, "wf"),
    (VmFlags::DONTDUMP, "dd"),
    (VmFlags::HUGEPAGE, "hg"),
    (VmFlags::NOHUGEPAGE, "nh"),
    (VmFlags::MERGEABLE, "mg"),
];

/// What the machine holds in memory for ranges of a process.
struct Resident(Vec<Residency>);

type Amounts = [u64; Residency::NAMES.len()];

/// Places in [`Residency::NAMES`].
const RSS: usize = 0;
const PSS: usize = 1;
const SHARED_DIRTY: usize = 4;
const PRIVATE_DIRTY: usize = 6;
const ANONYMOUS: usize = 8;
const LOCKED: usize = 17;
const _: () = assert!(Residency::NAMES[PSS].len() == 3 && LOCKED + 1 == Residency::NAMES.len());

impl Resident {
    /// `None` when the machine does not report it.
    fn of(subject: &Subject) -> Option<Resident> {
        let mut all = Vec::new();
        subject.seat().ok()?.context()?.residency(&mut |one| all.push(*one)).ok()?;
        Some(Resident(all))
    }

    /// KiB for `start..end`. Of a mapping of the machine's that reaches further, the share of the range in its length: the machine
    /// joins neighbours the kernel keeps apart.
    fn amounts(&self, start: usize, end: usize) -> Amounts {
        let mut sums = Amounts::default();
        let first = self.0.partition_point(|one| one.end <= start);
        for one in self.0[first..].iter().take_while(|one| one.start < end) {
            let common = (end.min(one.end) - start.max(one.start)) as u64;
            for (sum, amount) in sums.iter_mut().zip(one.amounts) {
                // Bytes of a mapping times KiB of it need not fit 64 bits.
                *sum += (u128::from(amount) * u128::from(common) / (one.end - one.start) as u128) as u64;
            }
        }
        sums
    }

    fn of_region(&self, region: &Region) -> Amounts {
        let mut amounts = self.amounts(region.start, region.end);
        if region.flags.contains(VmFlags::LOCKED) {
            // The machine locks nothing: what is locked is what is there.
            amounts[LOCKED] = amounts[PSS];
        }
        amounts
    }
}

/// One line of smaps: the number ends where all of them do.
fn amount(name: &str, mut kib: u64, text: &mut Text) {
    // Written a thousand times for a process with many mappings: by hand, which takes a fifth of the time.
    let mut line = *b"                         kB\n";
    line[..name.len()].copy_from_slice(name.as_bytes());
    line[name.len()] = b':';
    if kib >= 10_000_000 {
        let _ = writeln!(text, "{name}:{:blanks$}{kib} kB", "", blanks = 16 - name.len());
        return;
    }
    let mut at = 23;
    loop {
        line[at] = b'0' + (kib % 10) as u8;
        kib /= 10;
        if kib == 0 {
            break;
        }
        at -= 1;
    }
    text.bytes(&line);
}

fn show(amounts: &Amounts, text: &mut Text) {
    for (name, kib) in Residency::NAMES.iter().zip(amounts) {
        amount(name, *kib, text);
    }
}

/// /proc/PID/smaps: sizes, flags, and what is resident where the machine reports it.
pub fn smaps(subject: &Subject, text: &mut Text) -> Result<()> {
    let Ok(mm) = mm(subject) else { return Ok(()) };
    let resident = Resident::of(subject);
    for region in mm.regions() {
        line(subject, &region, text);
        let size = (region.end - region.start) / 1024;
        amount("Size", size as u64, text);
        text.bytes(b"KernelPageSize:        4 kB\nMMUPageSize:           4 kB\n");
        if let Some(resident) = &resident {
            show(&resident.of_region(&region), text);
        }
        text.bytes(b"VmFlags:");
        for (flag, name) in VM_FLAGS {
            if region.flags.contains(flag) {
                text.bytes(b" ");
                text.bytes(name.as_bytes());
            }
        }
        text.bytes(b" \n");
    }
    Ok(())
}

/// /proc/PID/smaps_rollup: the sums. ESRCH when the machine does not report them, or there is no memory.
pub fn smaps_rollup(subject: &Subject, text: &mut Text) -> Result<()> {
    let regions = mm(subject)?.regions();
    let resident = Resident::of(subject).ok_or(Errno::ESRCH)?;
    let mut sums = Amounts::default();
    for region in &regions {
        for (sum, amount) in sums.iter_mut().zip(resident.of_region(region)) {
            *sum += amount;
        }
    }
    let (start, end) = (regions.first().map_or(0, |one| one.start), regions.last().map_or(0, |one| one.end));
    let head = alloc::format!("{start:08x}-{end:08x} ---p 00000000 00:00 0 ");
    let _ = writeln!(text, "{head:NAME_COLUMN$}[rollup]");
    show(&sums, text);
    Ok(())
}

/// /proc/PID/numa_maps: all memory is of one node, by the default policy; pages, where the machine reports what is resident.
pub fn numa_maps(subject: &Subject, text: &mut Text) -> Result<()> {
    const PAGE_KIB: u64 = PAGE as u64 / 1024;
    let Ok(mm) = mm(subject) else { return Ok(()) };
    let resident = Resident::of(subject);
    for region in mm.regions() {
        let _ = write!(text, "{:08x} default", region.start);
        match &region.label {
            Label::File(file) => {
                text.bytes(b" file=");
                text.escaped(&name_of(subject, file), b" \t\n");
            }
            Label::Fixed("[heap]") => text.bytes(b" heap"),
            Label::Fixed("[stack]") => text.bytes(b" stack"),
            _ => {}
        }
        let amounts = resident.as_ref().map_or_else(Amounts::default, |resident| resident.of_region(&region));
        let pages = |at: usize| amounts[at] / PAGE_KIB;
        let (all, anon, dirty) = (pages(RSS), pages(ANONYMOUS), pages(SHARED_DIRTY) + pages(PRIVATE_DIRTY));
        if all > 0 {
            let shown = [("anon", anon, anon > 0), ("dirty", dirty, dirty > 0), ("mapped", all, all != anon && all != dirty)];
            for (name, count, _) in shown.into_iter().filter(|one| one.2) {
                let _ = write!(text, " {name}={count}");
            }
            let _ = write!(text, " N0={all} kernelpagesize_kB={PAGE_KIB}");
        }
        text.bytes(b"\n");
    }
    Ok(())
}

/// /proc/PID/statm: pages of the whole, resident, shared, text, 0, data, 0.
pub fn statm(subject: &Subject, text: &mut Text) -> Result<()> {
    let sizes = mm(subject).map(|mm| mm.sizes()).unwrap_or_default();
    let pages = |bytes: usize| bytes / PAGE;
    let resident = super::stat::resident(subject) / PAGE as u64;
    let _ = writeln!(
        text,
        "{} {resident} {} {} 0 {} 0",
        pages(sizes.total),
        pages(sizes.shared).min(resident as usize),
        pages(sizes.text),
        pages(sizes.data + sizes.stack)
    );
    Ok(())
}

/// /proc/PID/auxv, in the words of the program.
pub fn auxv(subject: &Subject, text: &mut Text) -> Result<()> {
    let mm = mm(subject)?;
    text.bytes(&crate::exec::auxiliary_vector(&mm));
    Ok(())
}

/// /proc/PID/mem: the memory as it is, by address. What the mapping's rights forbid to write is written by the process itself, as for
/// ptrace(2): when it is the caller, or is traced and stopped.
pub struct MemoryFile {
    task: Weak<Task>,
    /// The number of the program that was opened; after an exec there is nothing left to see.
    program: u64,
}

impl MemoryFile {
    pub fn new(subject: &Subject) -> Result<MemoryFile> {
        let task = subject.task()?;
        mm(subject)?;
        Ok(MemoryFile { task: Arc::downgrade(task), program: task.program() })
    }

    /// Copies by way of a thread of the process while that runs the program that was opened; `None` when it does no more.
    fn with<T>(&self, copy: impl FnOnce(&Arc<Seat>) -> T) -> Option<T> {
        let task = self.task.upgrade()?;
        let _held = access::hold(&task);
        let first = task.group.lock().threads.first().cloned();
        let seat = first.filter(|_| task.program() == self.program)?;
        Some(copy(&seat))
    }

    /// A thread of it that its tracer has stopped.
    fn stopped(&self) -> Option<Arc<Tracee>> {
        let threads = self.task.upgrade()?.threads();
        threads.iter().filter(|seat| ptrace::is_stopped(seat)).find_map(|seat| seat.trace.tracee())
    }
}

/// Bytes moved at a time.
const CHUNK: usize = 64 * 1024;

impl File for MemoryFile {
    fn splices(&self, _write: bool) -> bool {
        false
    }

    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        let mut chunk = vec![0; buf.left().min(CHUNK)];
        let mut moved = 0;
        while buf.left() > 0 && (moved == 0 || !buf.is_stopped()) {
            let want = buf.left().min(chunk.len());
            let addr = usize::try_from(offset).ok().and_then(|addr| addr.checked_add(moved)).ok_or(Errno::EIO)?;
            let Some(read) = self.with(|seat| seat.user().copy_in_partial(&mut chunk[..want], addr)) else { break };
            match read {
                0 if moved == 0 => return Err(Errno::EIO),
                0 => break,
                n => moved += buf.put(&chunk[..n])?,
            }
        }
        Ok(moved)
    }

    fn write(&self, _file: &OpenFile, caller: &dyn Caller, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize> {
        let mut chunk = vec![0; buf.left().min(CHUNK)];
        let addr = usize::try_from(offset).map_err(|_| Errno::EIO)?;
        let len = chunk.len();
        buf.peek(&mut chunk)?;
        let tried = self.with(|seat| {
            // Its own threads alone, at home: while one of them is here the program stays, since exec ends the others first.
            if let Some(own) = thread_of(caller).filter(|own| Arc::ptr_eq(&own.task, &seat.task) && own.user().in_place()) {
                let written = own.user().copy_out_partial(addr, &chunk);
                return (Some(own), written);
            }
            (None, seat.kernel.write_remote(seat.user(), addr, &chunk))
        });
        let Some((own, mut written)) = tried else { return Ok(0) };
        if written == 0 && len > 0 {
            let piece = &chunk[..len.min(PAGE - addr % PAGE)];
            if let Some(seat) = own {
                seat.task.mm().ok_or(Errno::EIO)?.force_write(seat.user(), addr, piece)?;
            } else {
                let tracee = self.stopped().ok_or(Errno::EIO)?;
                let Some(forced) = self.with(|_| tracee.force(addr, piece)) else { return Ok(0) };
                forced.ok_or(Errno::EAGAIN)?.map_err(|_| Errno::EIO)?;
            }
            written = piece.len();
        }
        buf.get(&mut chunk[..written])
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if let (Some(table), Some(tracee)) = (table, self.stopped()) {
            table.add(&tracee.answered);
        }
        Events::ALWAYS
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> Result<u64> {
        Ok(0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A range of strings on the process's stack as it is now; as it was at the start where that cannot be read.
fn strings(subject: &Subject, (start, end): (usize, usize), at_start: &[u8], text: &mut Text) -> Result<()> {
    const MOST: usize = 6 << 20;
    let seat = subject.seat()?;
    let mut bytes = alloc::vec![0; end.saturating_sub(start).min(MOST)];
    let read = seat.user().copy_in_partial(&mut bytes, start);
    text.bytes(if read == bytes.len() { &bytes } else { at_start });
    Ok(())
}

/// What a program has written over its arguments, where they no longer end with a zero (setproctitle(3)): up to the first zero, beyond
/// the arguments too, and no more than a page.
fn title(subject: &Subject, (start, end): (usize, usize)) -> Option<Vec<u8>> {
    let seat = subject.seat().ok()?;
    let mut last = [0];
    if start >= end || seat.user().copy_in_partial(&mut last, end - 1) != 1 || last == [0] {
        return None;
    }
    let mut page = vec![0; PAGE];
    let read = seat.user().copy_in_partial(&mut page, start);
    page.truncate(read);
    if let Some(zero) = page.iter().position(|byte| *byte == 0) {
        page.truncate(zero + 1);
    }
    Some(page)
}

/// /proc/PID/cmdline.
pub fn cmdline(subject: &Subject, text: &mut Text) -> Result<()> {
    let Ok(mm) = mm(subject) else { return Ok(()) };
    let image = mm.image();
    if let Some(title) = title(subject, image.args) {
        text.bytes(&title);
        return Ok(());
    }
    strings(subject, image.args, &image.args_text, text)
}

/// /proc/PID/environ.
pub fn environ(subject: &Subject, text: &mut Text) -> Result<()> {
    let Ok(mm) = mm(subject) else { return Ok(()) };
    let image = mm.image();
    strings(subject, image.env, &image.env_text, text)
}
