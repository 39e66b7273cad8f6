//! Rewritten code: what is mapped in place of a file's own executable pages, and the trampolines it jumps to.
//!
//! A file whose call sites have been rewritten is kept as an [`Image`]: an anonymous file of the host's with the trampolines
//! and the executable segments, made once for a file's contents and mapped by every process that runs them. The list of
//! mappings shows the file itself (flag [`VmFlags::REWRITTEN`]) and the trampolines, right below the file's lowest segment, as
//! `[janua]`.
//!
//! Finding the sites of a C library takes milliseconds, and most programs that are run make a few calls and end. So a file is
//! loaded as it is at first, with free room kept below it, and its image is made when one process has trapped in it
//! [`WORTH`] times ([`Mm::trapped`]); that process takes the image in exchange for the file's own pages if no other thread
//! could be between two instructions that move, and every later one maps it from the start.
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
use janua_port::{Backing, Host, Prot, Space, UserMemory};
use janua_rt::Mutex;
use janua_text::elf::{self, Layout, Segment};
use janua_text::restore;
use janua_text::rewrite::{self, Count};
use janua_text::sites::{Form, Refusal};
use janua_text::trampoline::Patch;

use super::found::Made;
use super::list::VmaList;
use super::site::Singles;
use super::vma::{Source, VmFlags, Vma};
use super::{Mm, State};
use crate::file::OpenFile;
use crate::fs::hostio::OwnedFd;
use crate::vfs::Contents;

/// What /proc/self/maps calls trampolines.
pub const TRAMPOLINES: &str = "[janua]";
/// Bytes of a file's start that are looked at for its headers.
const HEADERS: usize = 2048;
/// Code beyond this many bytes is not rewritten before it runs.
const MOST_CODE: u64 = 8 << 20;
/// Files remembered.
const MOST_FILES: usize = 512;
/// Bytes of images kept, those that are mapped somewhere included; beyond that the ones that are not are made again when they are needed.
const MOST_KEPT: u64 = 64 << 20;
/// Traps in one process' mapping of a file after which the file is worth an image.
const WORTH: u32 = 4;
/// The same for the first dynamic linker that a sandbox runs. It makes some thirty calls for a small program and none afterwards: what
/// they trap for is a tenth of the time its image takes, a millisecond, which pays from the second program on.
const WORTH_OF_FIRST_LINKER: u32 = 32;
/// Code of a file that guests may write to would be copied by every process that runs it ([`super::guard`]); an image is one copy for
/// all. From this many bytes on it is worth one at once, less of it when it is mapped the second time.
const WORTH_COPYING: u64 = 64 << 10;
/// Room kept below a file for trampolines that it may get: this part of its code, and at most so many bytes.
const ROOM_PART: u64 = 16;
const ROOM_MOST: u64 = 64 << 10;

/// Code of a file, rewritten.
struct Image {
    fd: Arc<OwnedFd>,
    /// Bytes of trampolines, whole pages, at the start of the host's file. 0 for a mere copy, in which no site was rewritten.
    room: usize,
    /// The pages of each executable segment: offset in the program's file, offset in the host's file.
    parts: Vec<(u64, u64)>,
    /// By start.
    patches: Vec<Patch>,
    /// Of the host's file.
    bytes: u64,
}

impl Drop for Image {
    fn drop(&mut self) {
        Made::withdraw(self.fd.fd());
    }
}

/// What is known of a program file: where its code goes, and the image of it once there is one.
#[derive(Clone)]
pub struct Code {
    layout: Arc<Layout>,
    image: Option<Arc<Image>>,
    /// How often the file was about to be mapped, this time included.
    maps: u32,
    /// [`WORTH`] of it.
    worth: u32,
    /// Device and inode number.
    id: (u64, u64),
}

impl Code {
    /// Bytes to keep free below the file's lowest page in memory, for trampolines.
    pub fn room(&self) -> usize {
        match &self.image {
            Some(image) => image.room,
            None => {
                let part = (self.bytes() / ROOM_PART).next_multiple_of(PAGE_SIZE as u64);
                part.clamp(PAGE_SIZE as u64, ROOM_MOST) as usize
            }
        }
    }

    /// Bytes of code.
    fn bytes(&self) -> u64 {
        self.layout.code.iter().map(|segment| segment.len).sum()
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
    contents: Contents,
    /// How often it was about to be mapped.
    maps: u32,
    /// `None` when it is no program, or one with nothing to rewrite.
    layout: Option<Arc<Layout>>,
    image: Option<Arc<Image>>,
    /// Somebody is making the image.
    making: bool,
}

/// Rewrites files and remembers them; one in a kernel.
pub struct Rewriter {
    host: &'static dyn Host,
    /// Where trampolines enter the kernel.
    entry: usize,
    /// Where the dynamic linker's way of loading the vector registers goes; `Some` when the kernel's memory is locked by a key, which
    /// no code may load.
    restore: Option<usize>,
    files: Mutex<BTreeMap<(u64, u64), Known>>,
    met: Met,
    singles: Singles,
}

impl Rewriter {
    /// `entry` is where trampolines jump; `restore` is [`janua_port::Machine::restore_entry`].
    pub fn new(host: &'static dyn Host, entry: usize, restore: Option<usize>) -> Rewriter {
        Rewriter { host, entry, restore, files: Mutex::new(BTreeMap::new()), met: Met::default(), singles: Singles::default() }
    }

    pub(super) fn entry(&self) -> usize {
        self.entry
    }

    pub(super) fn singles(&self) -> &Singles {
        &self.singles
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
        let rewritten = read(&self.singles.rewritten);
        let refused: u32 = self.singles.refused.iter().map(read).sum();
        if rewritten + refused > 0 {
            let _ = writeln!(text, "{} more where they trapped, {rewritten} rewritten, {refused} left", rewritten + refused);
        }
        for refusal in Refusal::ALL {
            let count = read(&self.singles.refused[refusal as usize]);
            if count > 0 {
                let _ = writeln!(text, "    {count} left: {}", refusal.text());
            }
        }
        text
    }

    /// What is known of a file's code, if it is worth rewriting. With `span`, only of a file that takes that many bytes in
    /// memory: what a loader maps, and what others who map a file seldom do.
    fn code(&self, file: &Arc<OpenFile>, span: Option<u64>) -> Option<Code> {
        let contents = file.contents()?;
        let key = (contents.dev, contents.ino);
        let is_span = |layout: &Layout| span.is_none_or(|span| span == layout.high - layout.low);
        if let Some(known) = self.files.lock().get_mut(&key)
            && known.contents == contents
        {
            let layout = known.layout.clone().filter(|layout| is_span(layout))?;
            known.maps = known.maps.saturating_add(1);
            return Some(Code { layout, image: known.image.clone(), maps: known.maps, worth: WORTH, id: key });
        }
        let mut start = vec![0; HEADERS.min(contents.size as usize)];
        read_all(file, &mut start, 0).ok()?;
        let layout = elf::layout(&start);
        if span.is_some() && layout.as_ref().is_none_or(|layout| !is_span(layout)) {
            // Who knows whether it will run: asked again next time.
            return None;
        }
        let code = |layout: &Layout| layout.code.iter().map(|segment| segment.len).sum::<u64>();
        let layout = layout.filter(|layout| (1..=MOST_CODE).contains(&code(layout))).map(Arc::new);
        let mut files = self.files.lock();
        if files.len() >= MOST_FILES {
            // Rather any of them than none: what is in use is kept alive by those who use it.
            let _ = files.pop_first();
        }
        let known = Known { contents, maps: 1, layout: layout.clone(), image: None, making: false };
        files.insert(key, known);
        layout.map(|layout| Code { layout, image: None, maps: 1, worth: WORTH, id: key })
    }

    /// The same, with an image of a file whose code would be copied otherwise.
    fn code_to_map(&self, file: &Arc<OpenFile>, span: Option<u64>) -> Option<Code> {
        let mut code = self.code(file, span)?;
        // Without a key nothing is copied, and the image can wait until calls trap.
        let copied = self.restore.is_some();
        let changes = || matches!(file.ops.backing(file, 0, PAGE_SIZE, false), Ok(Backing::Host { frozen: false, .. }));
        if copied && code.image.is_none() && (code.bytes() >= WORTH_COPYING || code.maps > 1) && changes() {
            code.image = self.image(file, true);
        }
        Some(code)
    }

    /// The image of a file that is worth one; `None` when somebody else is making it, or it has no sites to rewrite. With `copy`
    /// there is one in that case too.
    fn image(&self, file: &Arc<OpenFile>, copy: bool) -> Option<Arc<Image>> {
        let contents = file.contents()?;
        let key = (contents.dev, contents.ino);
        let layout = {
            let mut files = self.files.lock();
            let known = files.get_mut(&key)?;
            if known.contents != contents || known.making {
                return None;
            }
            if known.image.is_some() {
                return known.image.clone();
            }
            known.making = true;
            known.layout.clone()
        };
        let image = layout.and_then(|layout| self.rewrite(file, &layout, copy).ok().flatten()).map(Arc::new);
        // Somebody may have written to it meanwhile.
        let image = image.filter(|_| file.contents() == Some(contents));
        let mut files = self.files.lock();
        if let Some(known) = files.get_mut(&key) {
            known.making = false;
            known.image = image.clone();
            if image.is_none() {
                known.layout = None;
            }
        }
        trim(&mut files);
        image
    }

    fn rewrite(&self, file: &Arc<OpenFile>, layout: &Layout, copy: bool) -> Result<Option<Image>> {
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
        let (count, rewritten) =
            rewrite::rewrite(layout, &mut code, self.entry as u64, &mut |to, offset| read_all(file, to, offset));
        self.count(&count);
        if rewritten.is_none() && !copy {
            return Ok(None);
        }
        let (mut trampolines, mut patches) = rewritten.map_or_else(Default::default, |made| (made.trampolines, made.patches));
        if let Some(routine) = self.restore {
            restore::rewrite(layout, &mut code, &mut trampolines, &mut patches, routine as u64);
        }
        let fd = OwnedFd::new(self.host, self.host.memfd(b"janua-code")?);
        let room = trampolines.len();
        let mut made = Made::default();
        let mut inside = 0;
        let mut put = |bytes: &mut [u8]| {
            if self.restore.is_some() {
                made.add(bytes, inside);
            }
            write_all(&fd, bytes, &mut inside)
        };
        put(&mut trampolines)?;
        let mut parts = Vec::new();
        let mut at = room as u64;
        for (segment, lead, bytes) in &mut pages {
            parts.push((segment.offset - *lead as u64, at));
            put(bytes)?;
            at += bytes.len() as u64;
        }
        if self.restore.is_some() {
            made.publish(fd.fd());
        }
        patches.sort_unstable_by_key(|patch| patch.start);
        Ok(Some(Image { fd, room, parts, patches, bytes: at }))
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

/// Drops images that nobody has mapped, while there is too much of them. A program that is built, run and built again leaves one
/// each time.
fn trim(files: &mut BTreeMap<(u64, u64), Known>) {
    let mut kept: u64 = files.values().filter_map(|known| known.image.as_ref()).map(|image| image.bytes).sum();
    for known in files.values_mut() {
        if kept <= MOST_KEPT {
            return;
        }
        if let Some(image) = known.image.take_if(|image| Arc::strong_count(image) == 1) {
            kept -= image.bytes;
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

/// A file's code at its place in an address space.
#[derive(Clone)]
pub(super) struct Placed {
    code: Code,
    /// What is added to the file's addresses; wraps.
    bias: usize,
    /// Bytes of trampolines, or kept for them, below the file; 0 when somebody else has them.
    room: usize,
    dev: u64,
    ino: u64,
    /// Calls that trapped here while there was no image.
    traps: u32,
    /// The file's own pages are mapped although there is an image ([`Mm::use_own_code`]).
    own: bool,
}

impl Placed {
    /// The trampolines.
    fn room(&self) -> (usize, usize) {
        let end = self.bias.wrapping_add(self.code.layout.low as usize);
        (end.wrapping_sub(self.room), end)
    }

    /// All that the file takes in memory.
    fn span(&self) -> (usize, usize) {
        let Layout { low, high, .. } = *self.code.layout;
        (self.bias.wrapping_add(low as usize), self.bias.wrapping_add(high as usize))
    }

    /// The pages of code, as far as they lie in one place.
    fn pages(&self) -> impl Iterator<Item = (usize, usize)> {
        self.code.layout.code.iter().map(|segment| {
            let first = segment.vaddr & !(PAGE_SIZE as u64 - 1);
            let end = segment.vaddr.wrapping_add(segment.len).next_multiple_of(PAGE_SIZE as u64);
            (self.bias.wrapping_add(first as usize), self.bias.wrapping_add(end as usize))
        })
    }

    /// Whether the place of code still holds a mapping outside of `start..end`.
    fn is_used(&self, list: &VmaList, start: usize, end: usize) -> bool {
        let holds = |from: usize, to: usize| from < to && !list.is_free(from, to);
        self.pages().any(|(from, to)| holds(from, to.min(start)) || holds(from.max(end), to))
    }

    /// Whether code runs by these trampolines.
    fn is_rewritten(&self) -> bool {
        self.code.image.is_some()
    }

    /// What is mapped for `len` bytes at `offset` of the file at `addr`, when that is code at its place.
    fn part(&self, offset: u64, addr: usize, len: usize) -> Option<Part> {
        let segment = self.code.layout.code.iter().position(|segment| {
            let lead = segment.offset % PAGE_SIZE as u64;
            let (first, vaddr) = (segment.offset - lead, segment.vaddr.wrapping_sub(lead));
            let bytes = (lead + segment.len).next_multiple_of(PAGE_SIZE as u64);
            offset >= first
                && offset + len as u64 <= first + bytes
                && self.bias.wrapping_add(vaddr.wrapping_add(offset - first) as usize) == addr
        })?;
        let Some(image) = self.code.image.as_ref().filter(|_| !self.own) else { return Some(Part::Own) };
        let (first, inside) = *image.parts.get(segment)?;
        let offset = inside + (offset - first);
        Some(Part::Rewritten(Backing::Host { fd: image.fd.fd(), offset, shared: false, frozen: true }))
    }
}

/// What code at its place consists of.
pub(super) enum Part {
    /// The file's own pages, for the time being.
    Own,
    Rewritten(Backing),
}

impl State {
    /// Whether a new mapping of `start..end`, or a change of what is there, would take trampolines from code that needs them.
    pub(super) fn holds_trampolines(&self, start: usize, end: usize) -> bool {
        self.placed.iter().filter(|placed| placed.is_rewritten()).any(|placed| {
            let (from, to) = placed.room();
            from < end && start < to && placed.is_used(&self.list, start, end)
        }) || self.sites.rooms().any(|(from, to)| from < end && start < to)
    }

    /// Whether code that has been placed, trampolines or room for them lie in `start..end`.
    pub(super) fn touches_code(&self, start: usize, end: usize) -> bool {
        let of_files = self.placed.iter().map(|placed| (placed.room().0, placed.span().1));
        of_files.chain(self.sites.rooms()).any(|(from, to)| from < end && start < to)
    }

    /// Gives up the room kept for trampolines where `start..end` touches it: nothing is mapped there yet.
    pub(super) fn give_up_room(&mut self, start: usize, end: usize) {
        let State { placed, list, .. } = self;
        for placed in placed.iter_mut().filter(|placed| !placed.is_rewritten()) {
            let (from, to) = placed.room();
            if from < end && start < to {
                list.remove(from, to);
                placed.room = 0;
            }
        }
    }

    /// The parts of `start..end` that may be unmapped: without the trampolines of code that stays.
    pub(super) fn without_trampolines(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let mut parts = vec![(start, end)];
        let of_files = self.placed.iter().filter(|placed| placed.is_rewritten() && placed.is_used(&self.list, start, end));
        for (from, to) in of_files.map(Placed::room).chain(self.sites.rooms()) {
            if from < end && start < to {
                parts =
                    parts.into_iter().flat_map(|(a, b)| [(a, b.min(from)), (a.max(to), b)]).filter(|(a, b)| a < b).collect();
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
            if !used && placed.room > 0 {
                idle.push(placed.room());
            }
            used
        });
        idle
    }

    /// What is mapped for `len` bytes at `offset` of a file at `addr`, when its code has been placed there.
    pub(super) fn code_part(&self, vma: &Vma, offset: u64, addr: usize, len: usize) -> Option<Part> {
        if self.placed.is_empty() || vma.flags & (VmFlags::EXEC | VmFlags::WRITE | VmFlags::SHARED) != VmFlags::EXEC {
            return None;
        }
        vma.file()?;
        let here = |placed: &&Placed| (placed.dev, placed.ino) == (vma.dev, vma.ino);
        self.placed.iter().filter(here).find_map(|placed| placed.part(offset, addr, len))
    }
}

/// The list's entry for trampolines; `flags` are the rights.
pub(super) fn trampolines(end: usize, flags: VmFlags) -> Vma {
    let flags = flags | VmFlags::DONTEXPAND;
    Vma { end, flags, source: Source::Special(TRAMPOLINES), offset: 0, dev: 0, ino: 0, charge: None }
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

    /// What is known of the code of a program file about to be loaded; it wants [`Code::room`] free bytes below its lowest
    /// page. `links`: it is another program's dynamic linker.
    pub fn code_of(&self, file: &Arc<OpenFile>, links: bool) -> Option<Code> {
        if self.has_own_code() {
            return None;
        }
        let mut code = self.rewriter.read().clone()?.code_to_map(file, None)?;
        if links && code.maps == 1 {
            code.worth = WORTH_OF_FIRST_LINKER;
        }
        Some(code)
    }

    /// The same for a mapping by which a loader reserves the room for all of a file.
    pub(super) fn code_of_span(&self, file: &Arc<OpenFile>, len: usize) -> Option<Code> {
        if self.has_own_code() {
            return None;
        }
        self.rewriter.read().clone()?.code_to_map(file, Some(len as u64))
    }

    /// Maps the trampolines of a file whose lowest page comes to lie at `low`, or keeps their room: code mapped at its place
    /// afterwards is the rewritten code, or may become it. ENOMEM when the room is not free.
    pub fn place_code(&self, code: &Code, low: usize) -> Result<()> {
        self.place_locked(&mut self.lock_state(), code, low)
    }

    pub(super) fn place_locked(&self, state: &mut State, code: &Code, low: usize) -> Result<()> {
        let room = code.room();
        let start = low.checked_sub(room).ok_or(Errno::ENOMEM)?;
        let bias = low.wrapping_sub(code.layout.low as usize);
        let placed = Placed { code: code.clone(), bias, room, dev: code.id.0, ino: code.id.1, traps: 0, own: false };
        if room == 0 {
            state.placed.push(placed);
            return Ok(());
        }
        if !self.is_user(start, room) || !state.list.is_free(start, low) {
            return Err(Errno::ENOMEM);
        }
        let flags = match &code.image {
            Some(image) => {
                self.map_trampolines(image, low)?;
                VmFlags::READ | VmFlags::EXEC
            }
            None => VmFlags::empty(),
        };
        state.list.insert(start, trampolines(low, flags));
        state.placed.push(placed);
        Ok(())
    }

    /// Maps an image's trampolines right below `low`.
    fn map_trampolines(&self, image: &Image, low: usize) -> Result<()> {
        if image.room == 0 {
            return Ok(());
        }
        let prot = Prot { read: true, write: false, exec: true };
        let backing = Backing::Host { fd: image.fd.fd(), offset: 0, shared: false, frozen: true };
        self.space().map(low - image.room, image.room, prot, &backing)
    }

    /// The call that ended at `pc` has trapped: the address to go on at, which differs when the code there has been rewritten on
    /// this occasion. `alone`: the caller is the only thread that runs in this space; `user` is its memory.
    pub fn trapped(&self, user: &'static dyn UserMemory, pc: usize, alone: bool) -> usize {
        if self.has_own_code() {
            return pc;
        }
        let call = pc.wrapping_sub(2);
        let mut state = self.lock_state();
        let Some((_, vma)) = state.list.find(call) else { return pc };
        if vma.flags.contains(VmFlags::REWRITTEN) || vma.is_special() {
            // One that was left, or the kernel's own.
            return pc;
        }
        let file = vma.file().filter(|_| vma.flags.contains(VmFlags::REWRITABLE)).cloned();
        let is_here = |placed: &Placed| {
            let (from, to) = placed.span();
            (from..to).contains(&call) && (placed.own || !placed.is_rewritten()) && placed.room > 0
        };
        let placed = state.placed.iter_mut().find(|placed| is_here(placed));
        if let (Some(file), Some(placed)) = (file, placed) {
            placed.traps = placed.traps.saturating_add(1);
            if placed.traps < placed.code.worth {
                return pc;
            }
            if alone {
                drop(state);
                let image = self.rewriter.read().clone().and_then(|rewriter| rewriter.image(&file, false));
                state = self.lock_state();
                // The caller is alone, but who reads or changes its mappings from outside is not held by that: looked at again.
                if let (Some(image), Some(index)) = (image, state.placed.iter().position(is_here)) {
                    let _ = self.exchange(&mut state, index, &image);
                }
                drop(state);
                return self.moved_pc(pc);
            }
        }
        self.user.write().get_or_insert(user);
        self.single_trapped(&mut state, user, call, alone);
        state.sites.moved(pc).unwrap_or(pc)
    }

    /// Puts an image in place of a file's own pages.
    fn exchange(&self, state: &mut State, index: usize, image: &Arc<Image>) -> Result<()> {
        let Some(placed) = state.placed.get_mut(index) else { return Ok(()) };
        let (from, low) = placed.room();
        if image.room > placed.room {
            // Never asked again.
            placed.room = 0;
            state.list.remove(from, low);
            return Err(Errno::ENOMEM);
        }
        self.map_trampolines(image, low)?;
        placed.code.image = Some(image.clone());
        placed.room = image.room;
        placed.own = false;
        let placed = placed.clone();
        state.list.remove(from, low);
        if image.room > 0 {
            state.list.insert(low - image.room, trampolines(low, VmFlags::READ | VmFlags::EXEC));
        }
        let (start, end) = placed.span();
        state.sites.forget(start, end);
        let own: Vec<(usize, Vma)> = state
            .list
            .touching(start, end)
            .filter(|(_, vma)| vma.flags.contains(VmFlags::REWRITABLE) && (vma.dev, vma.ino) == (placed.dev, placed.ino))
            .map(|(at, vma)| (at, vma.clone()))
            .collect();
        let space = self.space();
        for (at, vma) in own {
            let Some(Part::Rewritten(backing)) = placed.part(vma.offset_of(at, at), at, vma.end - at) else { continue };
            space.map(at, vma.end - at, vma.flags.prot(), &backing)?;
            state.list.change(at, vma.end, |vma| vma.flags = (vma.flags - VmFlags::REWRITABLE) | VmFlags::REWRITTEN);
        }
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
            .filter(|(_, vma)| vma.flags.intersects(VmFlags::CODE))
            .map(|(at, vma)| (at, vma.clone()))
            .collect();
        for (at, vma) in parts {
            let (from, to) = (at.max(start), vma.end.min(end));
            if vma.flags.contains(VmFlags::REWRITTEN) {
                let backing = vma.backing(vma.offset_of(at, from), to - from)?;
                space.map(from, to - from, vma.flags.prot(), &backing)?;
            }
            state.list.change(from, to, |vma| vma.flags -= VmFlags::CODE);
        }
        Ok(())
    }

    /// Brings the file's own pages back everywhere, for who reads and writes code from outside. Rewritten ones may take their place
    /// again when calls trap later. Trampolines stay: a thread may be in one.
    pub(super) fn restore_all(&self, state: &mut State) -> Result<()> {
        let rewritten: Vec<(usize, Vma)> = state
            .list
            .iter()
            .filter(|(_, vma)| vma.flags.contains(VmFlags::REWRITTEN))
            .map(|(at, vma)| (at, vma.clone()))
            .collect();
        for placed in &mut state.placed {
            placed.own = placed.is_rewritten();
        }
        let space = self.space();
        for (at, vma) in rewritten {
            space.map(at, vma.end - at, vma.flags.prot(), &vma.backing(vma.offset_of(at, at), vma.end - at)?)?;
            state.list.change(at, vma.end, |vma| vma.flags = (vma.flags - VmFlags::REWRITTEN) | VmFlags::REWRITABLE);
        }
        self.restore_singles(state, 0, usize::MAX);
        Ok(())
    }

    /// What the rewritten site says whose trampoline holds `pc`, and by how much its addresses are off.
    fn ask_site<T>(&self, pc: usize, ask: impl Fn(&Patch, u64) -> Option<T>) -> Option<(T, usize)> {
        let state = self.lock_state();
        let placed = state.placed.iter().find(|placed| {
            let (from, to) = placed.room();
            (from..to).contains(&pc)
        });
        placed
            .and_then(|placed| {
                let own = pc.wrapping_sub(placed.bias) as u64;
                let image = placed.code.image.as_ref()?;
                Some((image.patches.iter().find_map(|patch| ask(patch, own))?, placed.bias))
            })
            .or_else(|| Some((state.sites.ask(pc, ask)?, 0)))
    }

    /// The address in the program that `pc` stands for, when it lies in a trampoline: what a signal handler and a debugger
    /// are to see.
    pub fn original_pc(&self, pc: usize) -> usize {
        self.ask_site(pc, Patch::original).map_or(pc, |(original, bias)| (original as usize).wrapping_add(bias))
    }

    /// Whether `pc` lies in a trampoline before anything of its site has been done. A single step that ends there has led
    /// nowhere: who went on from where it seems to be would come here again, for ever.
    pub fn is_on_the_way(&self, pc: usize) -> bool {
        self.ask_site(pc, |patch, pc| patch.original(pc).map(|_| patch.is_before(pc))).is_some_and(|(before, _)| before)
    }

    /// Where code that goes on at `pc` is to go on: in a trampoline, when that instruction has moved there.
    pub fn moved_pc(&self, pc: usize) -> usize {
        let state = self.lock_state();
        let is_rewritten = || state.list.find(pc).is_some_and(|(_, vma)| vma.flags.contains(VmFlags::REWRITTEN));
        let placed = state.placed.iter().find(|placed| {
            let (from, to) = placed.span();
            (from..to).contains(&pc)
        });
        placed
            .filter(|_| is_rewritten())
            .and_then(|placed| {
                let own = pc.wrapping_sub(placed.bias) as u64;
                let patches = &placed.code.image.as_ref()?.patches;
                let index = patches.partition_point(|patch| patch.start < own).checked_sub(1)?;
                let patch = patches.get(index).filter(|patch| patch.form == Form::Tail)?;
                Some((patch.moved(own)? as usize).wrapping_add(placed.bias))
            })
            .or_else(|| state.sites.moved(pc))
            .unwrap_or(pc)
    }
}
