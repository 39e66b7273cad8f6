//! Rewritten code: what is mapped in place of a file's own executable pages, and the trampolines it jumps to.
//!
//! A file whose call sites have been rewritten is kept as an [`Image`]: an anonymous file of the host's with the trampolines
//! and the executable segments, made once for a file's contents and mapped by every process that runs them. The list of
//! mappings shows the file itself (flag [`VmFlags::REWRITTEN`]) and the trampolines, right below the file's lowest segment, as
//! `[janua]`.
//!
//! What holds: while a page of rewritten code is mapped, its trampolines are mapped too, at their distance, and nothing the
//! program does takes them away. They go when the last page of the code's place is unmapped. Before a program may write to
//! rewritten code, or when it moves it, the file's own pages come back; so rewritten pages are never private copies.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::mman::PAGE_SIZE;
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::ReadBuf;
use janua_port::{Backing, Host, Prot, Space};
use janua_rt::Mutex;
use janua_text::elf::{self, Layout, Segment};
use janua_text::rewrite::{self, Count};
use janua_text::sites::{Form, Refusal};
use janua_text::trampoline::Patch;

use super::list::VmaList;
use super::vma::{Source, VmFlags, Vma};
use super::{Mm, State};
use crate::file::OpenFile;
use crate::fs::hostio::OwnedFd;

/// What /proc/self/maps calls trampolines.
pub const TRAMPOLINES: &str = "[janua]";
/// Bytes of a file's start that are looked at for its headers.
const HEADERS: usize = 2048;
/// Code beyond this many bytes is not rewritten before it runs.
const MOST_CODE: u64 = 8 << 20;
/// Files remembered.
const MOST_FILES: usize = 512;

/// Code of a file, rewritten.
pub struct Image {
    fd: Arc<OwnedFd>,
    layout: Layout,
    /// Bytes of trampolines, whole pages, at the start of the host's file.
    room: usize,
    /// The pages of each executable segment: offset in the program's file, bytes, offset in the host's file, and the
    /// address the first has in the program's own counting.
    parts: Vec<Part>,
    /// By start.
    patches: Vec<Patch>,
}

struct Part {
    offset: u64,
    len: u64,
    inside: u64,
    vaddr: u64,
}

impl Image {
    /// Bytes from the lowest page of the file in memory to the end of its highest.
    pub fn span(&self) -> usize {
        (self.layout.high - self.layout.low) as usize
    }

    /// Bytes of trampolines below.
    pub fn room(&self) -> usize {
        self.room
    }
}

/// What the rewriter has met, for `--stats`.
#[derive(Default)]
struct Met {
    files: AtomicU32,
    rewritten: AtomicU32,
    refused: [AtomicU32; Refusal::COUNT],
}

/// What is remembered of a file.
struct Known {
    size: u64,
    mtime: i64,
    ctime: i64,
    span: u64,
    image: Option<Arc<Image>>,
}

/// Rewrites files and remembers them; one in a kernel.
pub struct Rewriter {
    host: &'static dyn Host,
    /// Where trampolines enter the kernel.
    entry: usize,
    files: Mutex<BTreeMap<(u64, u64), Known>>,
    met: Met,
}

impl Rewriter {
    /// `entry` is where trampolines jump.
    pub fn new(host: &'static dyn Host, entry: usize) -> Rewriter {
        Rewriter { host, entry, files: Mutex::new(BTreeMap::new()), met: Met::default() }
    }

    /// Lines for `--stats`.
    pub fn report(&self) -> alloc::string::String {
        use core::fmt::Write;
        let read = |word: &AtomicU32| word.load(Ordering::Relaxed);
        let refused: u32 = self.met.refused.iter().map(read).sum();
        let (files, rewritten) = (read(&self.met.files), read(&self.met.rewritten));
        let mut text = alloc::string::String::new();
        let _ = writeln!(text, "{} call sites in {files} files, {rewritten} rewritten, {refused} left", rewritten + refused);
        for refusal in Refusal::ALL {
            let count = read(&self.met.refused[refusal as usize]);
            if count > 0 {
                let _ = writeln!(text, "    {count} left: {}", refusal.text());
            }
        }
        text
    }

    /// The rewritten code of a file, if it has any. With `span`, only of a file that takes that many bytes in memory: what a
    /// loader maps, and what others who map a file seldom do.
    fn image(&self, file: &Arc<OpenFile>, span: Option<u64>) -> Option<Arc<Image>> {
        let attr = file.attr().ok()?;
        let key = (attr.dev, attr.ino);
        if let Some(known) = self.files.lock().get(&key)
            && (known.size, known.mtime, known.ctime) == (attr.size, attr.mtime, attr.ctime)
        {
            return known.image.clone().filter(|_| span.is_none_or(|span| span == known.span));
        }
        let mut start = vec![0; HEADERS.min(attr.size as usize)];
        read_all(file, &mut start, 0).ok()?;
        let layout = elf::layout(&start);
        let is_span = |layout: &Layout| span.is_none_or(|span| span == layout.high - layout.low);
        let image = match &layout {
            // Who knows whether it will run: asked again next time.
            Some(layout) if !is_span(layout) => return None,
            Some(layout) => self.rewrite(file, layout).ok().flatten().map(Arc::new),
            None if span.is_some() => return None,
            None => None,
        };
        let mut files = self.files.lock();
        if files.len() >= MOST_FILES {
            // Rather any of them than none: what is in use is kept alive by those who use it.
            let _ = files.pop_first();
        }
        let span = layout.map_or(0, |layout| layout.high - layout.low);
        let known = Known { size: attr.size, mtime: attr.mtime, ctime: attr.ctime, span, image: image.clone() };
        files.insert(key, known);
        image
    }

    fn rewrite(&self, file: &Arc<OpenFile>, layout: &Layout) -> Result<Option<Image>> {
        let total: u64 = layout.code.iter().map(|segment| segment.len).sum();
        if total == 0 || total > MOST_CODE {
            return Ok(None);
        }
        // Whole pages, as they will be mapped; what the file has around a segment is mapped with it.
        let mut pages: Vec<(Segment, usize, Vec<u8>)> = Vec::new();
        for segment in &layout.code {
            let lead = segment.offset % PAGE_SIZE as u64;
            let len = (lead + segment.len).next_multiple_of(PAGE_SIZE as u64);
            let mut bytes = vec![0; len as usize];
            read_all(file, &mut bytes, segment.offset - lead)?;
            pages.push((*segment, lead as usize, bytes));
        }
        let mut code: Vec<(Segment, &mut [u8])> = pages
            .iter_mut()
            .map(|(segment, lead, bytes)| {
                let bytes = bytes.get_mut(*lead..*lead + segment.len as usize).unwrap_or_default();
                (*segment, bytes)
            })
            .collect();
        let (count, rewritten) = rewrite::rewrite(layout, &mut code, self.entry as u64);
        self.count(&count);
        let Some(mut rewritten) = rewritten else { return Ok(None) };
        let fd = OwnedFd::new(self.host, self.host.memfd(b"janua-code")?);
        let room = rewritten.trampolines.len();
        let mut inside = 0;
        write_all(&fd, &rewritten.trampolines, &mut inside)?;
        let mut parts = Vec::new();
        for (segment, lead, bytes) in &pages {
            let lead = *lead as u64;
            let (offset, vaddr) = (segment.offset - lead, segment.vaddr.wrapping_sub(lead));
            parts.push(Part { offset, len: bytes.len() as u64, inside, vaddr });
            write_all(&fd, bytes, &mut inside)?;
        }
        rewritten.patches.sort_unstable_by_key(|patch| patch.start);
        Ok(Some(Image { fd, layout: layout.clone(), room, parts, patches: rewritten.patches }))
    }

    fn count(&self, count: &Count) {
        if count.found() > 0 {
            self.met.files.fetch_add(1, Ordering::Relaxed);
        }
        self.met.rewritten.fetch_add(count.rewritten, Ordering::Relaxed);
        for (sum, refused) in self.met.refused.iter().zip(count.refused) {
            sum.fetch_add(refused, Ordering::Relaxed);
        }
    }
}

fn read_all(file: &Arc<OpenFile>, to: &mut [u8], offset: u64) -> Result<()> {
    let mut done = 0;
    while done < to.len() {
        match file.ops.read(file, &mut ReadBuf::kernel(&mut to[done..]), offset + done as u64)? {
            // The rest of the last page is zeroes, as in a mapping.
            0 => break,
            n => done += n,
        }
    }
    Ok(())
}

fn write_all(fd: &OwnedFd, bytes: &[u8], at: &mut u64) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match fd.host().write(fd.fd(), &bytes[done..], Some(*at + done as u64))? {
            0 => return Err(Errno::ENOSPC),
            n => done += n,
        }
    }
    *at += bytes.len() as u64;
    Ok(())
}

/// An image at its place in an address space.
#[derive(Clone)]
pub(super) struct Placed {
    image: Arc<Image>,
    /// What is added to the file's addresses; wraps.
    bias: usize,
    dev: u64,
    ino: u64,
}

impl Placed {
    /// The trampolines.
    fn room(&self) -> (usize, usize) {
        let end = self.bias.wrapping_add(self.image.layout.low as usize);
        (end.wrapping_sub(self.image.room), end)
    }

    /// All that the file takes in memory.
    fn span(&self) -> (usize, usize) {
        let low = self.bias.wrapping_add(self.image.layout.low as usize);
        (low, low.wrapping_add(self.image.span()))
    }

    /// Whether the place of code still holds a mapping outside of `start..end`.
    fn is_used(&self, list: &VmaList, start: usize, end: usize) -> bool {
        let holds = |from: usize, to: usize| from < to && !list.is_free(from, to);
        self.image.parts.iter().any(|part| {
            let from = self.bias.wrapping_add(part.vaddr as usize);
            let to = from.wrapping_add(part.len as usize);
            holds(from, to.min(start)) || holds(from.max(end), to)
        })
    }
}

impl State {
    /// Whether a new mapping of `start..end`, or a change of what is there, would take trampolines from code that needs them.
    pub(super) fn holds_trampolines(&self, start: usize, end: usize) -> bool {
        self.placed.iter().any(|placed| {
            let (from, to) = placed.room();
            from < end && start < to && placed.is_used(&self.list, start, end)
        })
    }

    /// The parts of `start..end` that may be unmapped: without the trampolines of code that stays.
    pub(super) fn without_trampolines(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let mut parts = vec![(start, end)];
        for placed in &self.placed {
            let (from, to) = placed.room();
            if from < end && start < to && placed.is_used(&self.list, start, end) {
                parts = parts
                    .into_iter()
                    .flat_map(|(a, b)| [(a, b.min(from)), (a.max(to), b)])
                    .filter(|(a, b)| a < b)
                    .collect();
            }
        }
        parts
    }

    /// The trampolines of code whose place is empty by now.
    pub(super) fn take_idle(&mut self) -> Vec<(usize, usize)> {
        let State { placed, list, .. } = self;
        let mut idle = Vec::new();
        placed.retain(|placed| {
            let used = placed.is_used(list, 0, 0);
            if !used {
                idle.push(placed.room());
            }
            used
        });
        idle
    }

    /// What is mapped for `len` bytes at `offset` of a file at `addr`, when its code has been placed there.
    pub(super) fn rewritten(&self, vma: &Vma, offset: u64, addr: usize, len: usize) -> Option<Backing> {
        if self.placed.is_empty() || vma.flags & (VmFlags::EXEC | VmFlags::WRITE | VmFlags::SHARED) != VmFlags::EXEC {
            return None;
        }
        vma.file()?;
        self.placed.iter().filter(|placed| (placed.dev, placed.ino) == (vma.dev, vma.ino)).find_map(|placed| {
            let part = placed.image.parts.iter().find(|part| {
                offset >= part.offset
                    && offset + len as u64 <= part.offset + part.len
                    && placed.bias.wrapping_add((part.vaddr + (offset - part.offset)) as usize) == addr
            })?;
            let offset = part.inside + (offset - part.offset);
            Some(Backing::Host { fd: placed.image.fd.fd(), offset, shared: false, frozen: true })
        })
    }
}

/// The list's entry for trampolines.
fn trampolines(end: usize) -> Vma {
    let flags = VmFlags::READ | VmFlags::EXEC | VmFlags::DONTEXPAND;
    Vma { end, flags, source: Source::Special(TRAMPOLINES), offset: 0, dev: 0, ino: 0 }
}

impl Vma {
    pub(super) fn is_trampolines(&self) -> bool {
        matches!(self.source, Source::Special(TRAMPOLINES))
    }
}

impl Mm {
    /// Makes code that is mapped from now on be rewritten.
    pub fn set_rewriter(&self, rewriter: Option<Arc<Rewriter>>) {
        *self.rewriter.write() = rewriter;
    }

    /// The rewritten code of a program file about to be loaded; it wants [`Image::room`] free bytes below its lowest page.
    pub fn code_of(&self, file: &Arc<OpenFile>) -> Option<Arc<Image>> {
        self.rewriter.read().clone()?.image(file, None)
    }

    /// The same for a mapping by which a loader reserves the room for all of a file.
    pub(super) fn code_of_span(&self, file: &Arc<OpenFile>, len: usize) -> Option<Arc<Image>> {
        self.rewriter.read().clone()?.image(file, Some(len as u64))
    }

    /// Maps the trampolines of a file whose lowest page comes to lie at `low`: code mapped at its place afterwards is the
    /// rewritten code. ENOMEM when the room is not free.
    pub fn place_code(&self, file: &Arc<OpenFile>, image: &Arc<Image>, low: usize) -> Result<()> {
        let attr = file.attr()?;
        let mut state = self.state.lock();
        self.place_locked(&mut state, image, low, (attr.dev, attr.ino))
    }

    pub(super) fn place_locked(&self, state: &mut State, image: &Arc<Image>, low: usize, id: (u64, u64)) -> Result<()> {
        let start = low.checked_sub(image.room).ok_or(Errno::ENOMEM)?;
        if !self.is_user(start, image.room) || !state.list.is_free(start, low) {
            return Err(Errno::ENOMEM);
        }
        let prot = Prot { read: true, write: false, exec: true };
        self.space().map(start, image.room, prot, &Backing::Host { fd: image.fd.fd(), offset: 0, shared: false, frozen: true })?;
        state.list.insert(start, trampolines(low));
        let bias = low.wrapping_sub(image.layout.low as usize);
        state.placed.push(Placed { image: image.clone(), bias, dev: id.0, ino: id.1 });
        Ok(())
    }

    /// Brings the file's own pages back in `start..end`, for code that is about to be written to or moved.
    pub(super) fn restore_code(&self, state: &mut State, space: &dyn Space, start: usize, end: usize) -> Result<()> {
        if state.placed.is_empty() {
            return Ok(());
        }
        let parts: Vec<(usize, Vma)> = state
            .list
            .touching(start, end)
            .filter(|(_, vma)| vma.flags.contains(VmFlags::REWRITTEN))
            .map(|(at, vma)| (at, vma.clone()))
            .collect();
        for (at, vma) in parts {
            let (from, to) = (at.max(start), vma.end.min(end));
            let backing = vma.backing(vma.offset_of(at, from), to - from)?;
            space.map(from, to - from, vma.flags.prot(), &backing)?;
            state.list.change(from, to, |vma| vma.flags -= VmFlags::REWRITTEN);
        }
        Ok(())
    }

    /// The address in the program that `pc` stands for, when it lies in a trampoline: what a signal handler and a debugger
    /// are to see.
    pub fn original_pc(&self, pc: usize) -> usize {
        let state = self.state.lock();
        let placed = state.placed.iter().find(|placed| {
            let (from, to) = placed.room();
            (from..to).contains(&pc)
        });
        placed
            .and_then(|placed| {
                let own = pc.wrapping_sub(placed.bias) as u64;
                let original = placed.image.patches.iter().find_map(|patch| patch.original(own))?;
                Some((original as usize).wrapping_add(placed.bias))
            })
            .unwrap_or(pc)
    }

    /// Where code that goes on at `pc` is to go on: in a trampoline, when that instruction has moved there.
    pub fn moved_pc(&self, pc: usize) -> usize {
        let state = self.state.lock();
        let is_rewritten = || state.list.find(pc).is_some_and(|(_, vma)| vma.flags.contains(VmFlags::REWRITTEN));
        let placed = state.placed.iter().find(|placed| {
            let (from, to) = placed.span();
            (from..to).contains(&pc)
        });
        placed
            .filter(|_| is_rewritten())
            .and_then(|placed| {
                let own = pc.wrapping_sub(placed.bias) as u64;
                let patches = &placed.image.patches;
                let index = patches.partition_point(|patch| patch.start < own).checked_sub(1)?;
                let patch = patches.get(index).filter(|patch| patch.form == Form::Tail)?;
                Some((patch.moved(own)? as usize).wrapping_add(placed.bias))
            })
            .unwrap_or(pc)
    }
}
