//! Core files (core(5)): what a process leaves behind that a signal ends, for debuggers.
//!
//! The thread that took the signal waits until all others have ended, each having left its registers at its end; then it writes
//! the file: ELF headers, notes (elf(5)), and the memory that the filter of /proc/PID/coredump_filter lets through.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::process::{WCOREFLAG, rlimit};
use janua_abi::linux::ptrace::USER_REGS;
use janua_abi::linux::signal::SigInfo;
use janua_abi::linux::{Errno, Result};
use janua_elf::{ELFMAG, ET_CORE, Form, PF_R, PF_W, PF_X, PT_LOAD, PT_NOTE, ProgramFlags, ProgramHeader, file_header};
use janua_kernel::iobuf::WriteBuf;
use janua_object::OpenFile;
use janua_object::file::flags::{O_CREAT, O_LARGEFILE, O_NOFOLLOW, O_RDWR};
use janua_object::mm::{Label, Mm, Region, VmFlags};
use janua_object::vfs::{FileKind, OpenHow, Resolve, SetAttr};
use janua_port::machine::Residency;
use janua_port::{Frame, PAGE};
use zerocopy::IntoBytes;

use crate::Thread;
use crate::fs::at::{self, CWD};
use crate::process::{Group, State};
use crate::processor::regs;
use crate::thread::ThreadExt;

/// /proc/PID/coredump_filter at the start: private and shared memory without a file, ELF headers of files, private huge pages.
pub const DEFAULT_FILTER: u32 = 0x33;
const ANON_PRIVATE: u32 = 1;
const ANON_SHARED: u32 = 2;
const FILE_PRIVATE: u32 = 4;
const FILE_SHARED: u32 = 8;
const ELF_HEADERS: u32 = 16;
/// All bits there are.
pub const FILTER_BITS: u32 = 0x1ff;

/// Most bytes of the note that names the mapped files, as on Linux: beyond there is none.
const FILES_MOST: usize = 4 << 20;

/// A thread as it was when the end came.
struct Registers {
    tid: u32,
    general: [u64; USER_REGS],
    /// As NT_PRFPREG has them; empty when the machine has none.
    fpu: Vec<u8>,
}

/// The end of a process that is to leave a core file.
pub struct Dump {
    /// The thread that writes it.
    writer: u32,
    info: SigInfo,
    others: Vec<Registers>,
}

impl Dump {
    /// Whether this thread is to write the file.
    pub fn is_by(&self, tid: u32) -> bool {
        self.writer == tid
    }
}

/// The registers in the order of `struct user_regs_struct`.
fn registers(thread: &Thread, frame: &Frame) -> Registers {
    Registers { tid: thread.tid(), general: regs::general(thread, frame), fpu: regs::floating_point(thread) }
}

/// Whether the end by this signal leaves a core file: where the limit allows one, of 64-bit programs that are not secret.
fn is_wanted(thread: &Thread, frame: &Frame) -> bool {
    let process = thread.process();
    thread.limit(rlimit::CORE) >= PAGE as u64
        && process.settings.dumpable.load(Ordering::Relaxed) == 1
        && !frame.is_compat_mode()
}

/// Begins the end of the calling thread's process by a signal, with a core file. False when there is to be none, or the end has begun
/// already.
pub fn begin(thread: &Thread, frame: &Frame, info: &SigInfo) -> bool {
    if !is_wanted(thread, frame) {
        return false;
    }
    let mut group = thread.process().group.lock();
    if !matches!(group.state, State::Running) || group.exec.is_some() {
        return false;
    }
    group.dump = Some(Dump { writer: thread.tid(), info: *info, others: Vec::new() });
    super::send::exit_group_locked(&mut group, info.signal());
    true
}

/// What a thread that is being ended has to do with a core file first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    Nothing,
    /// Wait for the others: call again.
    Wait,
}

/// The calling thread is about to end: it leaves its registers to who writes the core file, or writes it.
pub fn before_end(thread: &Thread, frame: &Frame) -> Before {
    let writes = {
        let group = thread.process().group.lock();
        match &group.dump {
            None => return Before::Nothing,
            Some(dump) if !dump.is_by(thread.tid()) => false,
            Some(_) if !is_alone(&group) => return Before::Wait,
            Some(_) => true,
        }
    };
    let own = registers(thread, frame);
    let mut group = thread.process().group.lock();
    if !writes {
        if let Some(dump) = &mut group.dump {
            dump.others.push(own);
        }
        return Before::Nothing;
    }
    let Some(dump) = group.dump.take() else { return Before::Nothing };
    drop(group);
    if write(thread, own, &dump).is_ok() {
        thread.process().group.lock().state = State::Exiting(dump.info.signal() | WCOREFLAG);
    }
    Before::Nothing
}

/// Whether the group's one thread left may go on to write the core file.
pub fn is_alone(group: &Group) -> bool {
    group.threads.len() <= 1
}

/// A segment of the file: memory from `start` to `end`, of which the first `held` bytes are in the file.
struct Segment {
    start: usize,
    end: usize,
    held: usize,
    /// None of its memory has been touched: it is a hole in the file, and is not looked at.
    untouched: bool,
    rights: ProgramFlags,
}

/// What the machine reports of memory: ranges in order, with the pages they have and which of them are the process' own.
struct Pages(Vec<Range>);

struct Range {
    start: usize,
    end: usize,
    any: bool,
    own: bool,
}

impl Pages {
    /// `None` where the machine does not report it.
    fn of(thread: &Thread) -> Option<Pages> {
        let index = |wanted: &str| Residency::NAMES.iter().position(|name| *name == wanted);
        let (resident, own, swapped) = (index("Rss")?, index("Anonymous")?, index("Swap")?);
        let mut ranges = Vec::new();
        let mut each = |one: &Residency| {
            let has = |at: usize| one.amounts[at] > 0;
            let range = Range { start: one.start, end: one.end, any: has(resident) || has(swapped), own: has(own) };
            if range.any || range.own {
                ranges.push(range);
            }
        };
        thread.context()?.residency(&mut each).ok()?;
        Some(Pages(ranges))
    }

    fn of_region(&self, region: &Region) -> impl Iterator<Item = &Range> {
        let from = self.0.partition_point(|range| range.end <= region.start);
        let end = region.end;
        self.0[from..].iter().take_while(move |range| range.start < end)
    }

    /// Whether the process has made memory of a file its own by writing.
    fn changed(&self, region: &Region) -> bool {
        self.of_region(region).any(|range| range.own)
    }

    /// Whether private memory without a file has no page at all.
    fn untouched(&self, region: &Region) -> bool {
        let plain = !matches!(region.label, Label::File(_) | Label::Fixed(_)) && !region.flags.contains(VmFlags::SHARED);
        plain && !self.of_region(region).any(|range| range.any)
    }
}

/// How much of a region is written.
fn held(thread: &Thread, region: &Region, filter: u32, pages: Option<&Pages>) -> usize {
    let whole = region.end - region.start;
    let readable = region.flags.contains(VmFlags::READ);
    if !readable || region.flags.contains(VmFlags::DONTDUMP) {
        return 0;
    }
    let shared = region.flags.contains(VmFlags::SHARED);
    let own = match pages {
        Some(pages) => pages.changed(region),
        None => region.flags.contains(VmFlags::WRITE),
    };
    let wanted = match &region.label {
        Label::Fixed("[vdso]") => return whole,
        Label::Fixed("[vvar]") => return 0,
        // Pages that have been written have no file any more, though they may be read-only by now.
        Label::File(_) if !shared && own => ANON_PRIVATE | FILE_PRIVATE,
        Label::File(_) if !shared => FILE_PRIVATE,
        Label::File(_) => FILE_SHARED,
        _ if shared => ANON_SHARED,
        _ => ANON_PRIVATE,
    };
    if filter & wanted != 0 {
        return whole;
    }
    let mut magic = [0; 4];
    let header = !shared
        && filter & ELF_HEADERS != 0
        && region.offset == 0
        && matches!(region.label, Label::File(_))
        && thread.user().copy_in_partial(&mut magic, region.start) == 4
        && magic == ELFMAG;
    if header { PAGE.min(whole) } else { 0 }
}

fn segments(thread: &Thread, regions: &[Region]) -> Vec<Segment> {
    let filter = thread.process().settings.coredump_filter.load(Ordering::Relaxed);
    let pages = Pages::of(thread);
    let segment = |region: &Region| {
        let right = |flag, right: ProgramFlags| if region.flags.contains(flag) { right } else { ProgramFlags(0) };
        let rights = right(VmFlags::READ, PF_R) | right(VmFlags::WRITE, PF_W) | right(VmFlags::EXEC, PF_X);
        let held = held(thread, region, filter, pages.as_ref());
        let untouched = pages.as_ref().is_some_and(|pages| pages.untouched(region));
        Segment { start: region.start, end: region.end, held, untouched, rights }
    };
    regions.iter().map(segment).collect()
}

/// A note with the name "CORE".
fn note(out: &mut Vec<u8>, kind: u32, data: &[u8]) {
    for word in [5, data.len() as u32, kind] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(b"CORE\0\0\0\0");
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// `struct elf_prstatus`.
fn status(thread: &Thread, info: &SigInfo, of: &Registers) -> Vec<u8> {
    let process = thread.process();
    let mut out = Vec::with_capacity(336);
    let word = |out: &mut Vec<u8>, value: u32| out.extend_from_slice(&value.to_le_bytes());
    let long = |out: &mut Vec<u8>, value: u64| out.extend_from_slice(&value.to_le_bytes());
    for value in [info.signo as u32, info.code as u32, info.errno as u32, info.signal()] {
        word(&mut out, value);
    }
    long(&mut out, process.pending().0);
    long(&mut out, thread.signals.blocked().0);
    for value in [of.tid, process.parent(), process.pgrp(), process.session().id] {
        word(&mut out, value);
    }
    let used = crate::time::cpu::usage_of_caller(thread);
    for time in [used.user, used.system, 0, 0] {
        long(&mut out, time / 1_000_000_000);
        long(&mut out, time % 1_000_000_000 / 1000);
    }
    for value in of.general {
        long(&mut out, value);
    }
    word(&mut out, u32::from(!of.fpu.is_empty()));
    word(&mut out, 0);
    out
}

/// `struct elf_prpsinfo`.
fn process_info(thread: &Thread, mm: &Mm) -> Vec<u8> {
    let (process, cred) = (thread.process(), thread.cred());
    let nice = process.settings.nice.load(Ordering::Relaxed) as u8;
    let mut out = vec![0, b'R', 0, nice, 0, 0, 0, 0];
    out.extend_from_slice(&0u64.to_le_bytes());
    for value in [cred.uid, cred.gid, process.pid, process.parent(), process.pgrp(), process.session().id] {
        out.extend_from_slice(&value.to_le_bytes());
    }
    let mut text = |bytes: &[u8], len: usize| {
        let end = out.len() + len;
        out.extend_from_slice(&bytes[..bytes.len().min(len - 1)]);
        out.resize(end, 0);
    };
    text(&thread.comm(), 16);
    let mut line = mm.image().args_text.to_vec();
    line.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    text(line.strip_suffix(b" ").unwrap_or(&line), 80);
    out
}

/// NT_FILE: which files are mapped where.
/// Empty when it would be beyond [`FILES_MOST`].
fn files(thread: &Thread, regions: &[Region]) -> Vec<u8> {
    let root = thread.fs().root.read().clone();
    let mapped: Vec<(&Region, &Arc<OpenFile>)> = regions
        .iter()
        .filter_map(|region| match &region.label {
            Label::File(file) => Some((region, file)),
            _ => None,
        })
        .collect();
    let mut out = Vec::new();
    for value in [mapped.len() as u64, PAGE as u64] {
        out.extend_from_slice(&value.to_le_bytes());
    }
    for (region, _) in &mapped {
        for value in [region.start as u64, region.end as u64, region.offset / PAGE as u64] {
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
    for (_, file) in &mapped {
        if out.len() > FILES_MOST {
            return Vec::new();
        }
        match &file.path {
            Some(path) => out.extend_from_slice(&path.write(&root).display()),
            None => out.extend_from_slice(file.ops.label().as_bytes()),
        }
        out.push(0);
    }
    out
}

fn notes(thread: &Thread, mm: &Mm, own: &Registers, dump: &Dump, regions: &[Region]) -> Vec<u8> {
    const PRSTATUS: u32 = 1;
    const PRFPREG: u32 = 2;
    const PRPSINFO: u32 = 3;
    const AUXV: u32 = 6;
    const SIGINFO: u32 = 0x5349_4749;
    const FILE: u32 = 0x4649_4c45;
    let mut out = Vec::new();
    let fpu = |out: &mut Vec<u8>, of: &Registers| {
        if !of.fpu.is_empty() {
            note(out, PRFPREG, &of.fpu);
        }
    };
    note(&mut out, PRSTATUS, &status(thread, &dump.info, own));
    note(&mut out, PRPSINFO, &process_info(thread, mm));
    note(&mut out, SIGINFO, dump.info.as_bytes());
    let auxv: Vec<u8> = mm.image().auxv.iter().flat_map(|word| word.to_le_bytes()).collect();
    note(&mut out, AUXV, &auxv);
    note(&mut out, FILE, &files(thread, regions));
    fpu(&mut out, own);
    for other in &dump.others {
        note(&mut out, PRSTATUS, &status(thread, &dump.info, other));
        fpu(&mut out, other);
    }
    out
}

/// ELF header, program headers and notes; and where the memory begins.
fn headers(notes: &[u8], segments: &[Segment]) -> (Vec<u8>, usize) {
    let (header, entry) = Form::X86_64.sizes();
    let count = segments.len() + 1;
    let note_at = header + entry * count;
    let data_at = (note_at + notes.len()).next_multiple_of(PAGE);
    // More than the field holds are more mappings than a process may have.
    let mut out = file_header(ET_CORE, 0, count as u16).to_vec();
    let of_notes = ProgramHeader {
        kind: PT_NOTE,
        flags: ProgramFlags(0),
        offset: note_at as u64,
        vaddr: 0,
        filesz: notes.len() as u64,
        memsz: 0,
        align: 4,
    };
    out.extend_from_slice(&of_notes.bytes());
    let mut at = data_at;
    for segment in segments {
        let header = ProgramHeader {
            kind: PT_LOAD,
            flags: segment.rights,
            offset: at as u64,
            vaddr: segment.start as u64,
            filesz: segment.held as u64,
            memsz: (segment.end - segment.start) as u64,
            align: PAGE as u64,
        };
        out.extend_from_slice(&header.bytes());
        at += segment.held;
    }
    out.extend_from_slice(notes);
    (out, data_at)
}

/// The file "core" in the working directory, empty. EPERM for one that is not the process' own alone.
fn open(thread: &Thread) -> Result<Arc<OpenFile>> {
    let how = OpenHow { flags: O_CREAT | O_RDWR | O_NOFOLLOW | O_LARGEFILE, mode: 0o600, umask: 0, resolve: Resolve::empty() };
    let file = at::vfs(thread).open(&thread.caller(), &at::start(thread, CWD, b"core")?, b"core", &how)?;
    let attr = file.attr()?;
    let own = attr.uid == thread.cred().fsuid && attr.mode & 0o677 == 0o600;
    if attr.kind() != Some(FileKind::Regular) || attr.nlink != 1 || !own {
        return Err(Errno::EPERM);
    }
    file.inode().ok_or(Errno::EPERM)?.set_attr(&SetAttr { size: Some(0), ..SetAttr::default() })?;
    Ok(file)
}

/// Writes the core file. What is cut short by the limit, or for want of room, is a core file all the same.
fn write(thread: &Thread, own: Registers, dump: &Dump) -> Result<()> {
    let mm = thread.process().mm().ok_or(Errno::ESRCH)?;
    let regions = mm.regions();
    let segments = segments(thread, &regions);
    if segments.len() >= usize::from(u16::MAX) - 1 {
        return Err(Errno::EFBIG);
    }
    let (head, at) = headers(&notes(thread, &mm, &own, dump, &regions), &segments);
    let file = open(thread)?;
    match fill(thread, &file, &head, at, &segments) {
        Err(Errno::EINTR) => Err(Errno::EINTR),
        _ => Ok(()),
    }
}

/// Writes headers and memory. EFBIG when the limit is reached, EINTR when SIGKILL ends it.
fn fill(thread: &Thread, file: &OpenFile, head: &[u8], mut at: usize, segments: &[Segment]) -> Result<()> {
    let limit = usize::try_from(thread.limit(rlimit::CORE)).unwrap_or(usize::MAX);
    put(thread, file, 0, head, limit)?;
    let mut block = vec![0; 16 * PAGE];
    for segment in segments {
        let end = segment.start + segment.held;
        let mut from = segment.start;
        if segment.untouched {
            at += segment.held;
            continue;
        }
        while from < end {
            if thread.process().group.lock().killed {
                return Err(Errno::EINTR);
            }
            let piece = &mut block[..(end - from).min(16 * PAGE)];
            read(thread, from, piece);
            // What is zero stays a hole.
            if piece.iter().any(|byte| *byte != 0) {
                put(thread, file, at, piece, limit)?;
            }
            from += piece.len();
            at += piece.len();
        }
    }
    file.ops.truncate(file, at.min(limit) as u64)
}

/// Reads memory; what cannot be read is zero.
fn read(thread: &Thread, from: usize, out: &mut [u8]) {
    let mut done = 0;
    while done < out.len() {
        let got = thread.user().copy_in_partial(&mut out[done..], from + done);
        done += got;
        if done < out.len() {
            let next = ((from + done + 1).next_multiple_of(PAGE) - from).min(out.len());
            out[done..next].fill(0);
            done = next;
        }
    }
}

fn put(thread: &Thread, file: &OpenFile, at: usize, bytes: &[u8], limit: usize) -> Result<()> {
    let bytes = &bytes[..bytes.len().min(limit.saturating_sub(at))];
    let mut buf = WriteBuf::kernel(bytes);
    while buf.left() > 0 {
        let done = buf.done();
        if file.ops.write(file, &thread.caller(), &mut buf, (at + done) as u64)? == 0 {
            return Err(Errno::EIO);
        }
    }
    if at + bytes.len() >= limit { Err(Errno::EFBIG) } else { Ok(()) }
}
