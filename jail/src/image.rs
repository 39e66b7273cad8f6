//! Rewritten code: what is mapped in place of a file's own executable pages, and the trampolines it jumps to.
//!
//! A file whose call sites have been rewritten is kept as an [`Image`]: a memory object with the trampolines
//! and the executable segments, made once for a file's contents and mapped by every process that runs them. The list of
//! mappings shows the file itself (flag [`super::placed::REWRITTEN`]) and the trampolines, right below the file's lowest segment, as
//! `[janua]`.
//!
//! Finding the sites of a C library takes milliseconds, and most programs that are run make a few calls and end. So a file is
//! loaded as it is at first, with free room kept below it, and its image is made when one process has trapped in it
//! [`WORTH`] times ([`janua_object::mm::jail::Trapped::Worth`]); that process takes the image in exchange for the file's own pages if no other thread
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

use janua_abi::linux::Result;
use janua_abi::linux::mman::PAGE_SIZE;
use janua_kernel::iobuf::ReadBuf;
use janua_object::OpenFile;
use janua_object::caller::Itself;
use janua_object::fs::objectio;
use janua_object::mm::jail::Loader;
use janua_object::vfs::Contents;
use janua_port::{Backing, Machine, MemoryObject};
use janua_rt::Mutex;
use janua_text::elf::{self, Layout, Segment};
use janua_text::restore;
use janua_text::rewrite::{self, Count};
use janua_text::sites::Refusal;
use janua_text::trampoline::Patch;

use crate::found::{Found, Made};
use crate::site::Singles;

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
/// Code of a file that guests may write to would be copied by every process that runs it ([`crate::guard`]); an image is one copy for
/// all. From this many bytes on it is worth one at once, less of it when it is mapped the second time.
const WORTH_COPYING: u64 = 64 << 10;
/// Room kept below a file for trampolines that it may get: this part of its code, and at most so many bytes.
const ROOM_PART: u64 = 16;
const ROOM_MOST: u64 = 64 << 10;

/// Code of a file, rewritten.
pub struct Image {
    pub object: Arc<dyn MemoryObject>,
    /// Bytes of trampolines, whole pages, at the start of the object. 0 for a mere copy, in which no site was rewritten.
    pub room: usize,
    /// The pages of each executable segment: offset in the program's file, offset in the object.
    pub parts: Vec<(u64, u64)>,
    /// By start.
    pub patches: Vec<Patch>,
    /// Of the object.
    bytes: u64,
    /// Where what the object holds is known.
    found: &'static Found,
}

impl Drop for Image {
    fn drop(&mut self) {
        self.found.withdraw(&self.object);
    }
}

/// What is known of a program file: where its code goes, and the image of it once there is one.
#[derive(Clone)]
pub struct Code {
    pub layout: Arc<Layout>,
    pub image: Option<Arc<Image>>,
    /// How often the file was about to be mapped, this time included.
    maps: u32,
    /// [`WORTH`] of it.
    pub worth: u32,
    /// Device and inode number.
    pub id: (u64, u64),
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
    machine: &'static dyn Machine,
    /// In whose name files are read: what is made of them is for all.
    reader: Itself,
    /// Where trampolines enter the kernel.
    entry: usize,
    /// Where the dynamic linker's way of loading the vector registers goes; `Some` when the kernel's memory is locked by a key, which
    /// no code may load.
    restore: Option<usize>,
    found: &'static Found,
    files: Mutex<BTreeMap<(u64, u64), Known>>,
    met: Met,
    singles: Singles,
}

impl Rewriter {
    /// `entry` is where trampolines jump; `restore` is [`janua_port::jail::Ground::restore_entry`].
    pub fn new(machine: &'static dyn Machine, entry: usize, restore: Option<usize>, found: &'static Found) -> Rewriter {
        let reader = Itself::new(machine);
        Rewriter {
            machine,
            reader,
            entry,
            restore,
            found,
            files: Mutex::new(BTreeMap::new()),
            met: Met::default(),
            singles: Singles::default(),
        }
    }

    pub fn entry(&self) -> usize {
        self.entry
    }

    pub fn singles(&self) -> &Singles {
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
        read_all(&self.reader, file, &mut start, 0).ok()?;
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

    /// What is known of a program file about to be mapped: with an image of it, if its code would be copied otherwise.
    pub fn code_to_map(&self, file: &Arc<OpenFile>, by: Loader) -> Option<Code> {
        let span = match by {
            Loader::Map(len) => Some(len as u64),
            Loader::Exec | Loader::ExecLinker => None,
        };
        let mut code = self.code(file, span)?;
        if by == Loader::ExecLinker && code.maps == 1 {
            code.worth = WORTH_OF_FIRST_LINKER;
        }
        // Without a key nothing is copied, and the image can wait until calls trap.
        let copied = self.restore.is_some();
        let changes = || matches!(file.ops.backing(file, 0, PAGE_SIZE, false), Ok(Backing::Object { frozen: false, .. }));
        if copied && code.image.is_none() && (code.bytes() >= WORTH_COPYING || code.maps > 1) && changes() {
            code.image = self.image(file, true);
        }
        Some(code)
    }

    /// The image of a file that is worth one; `None` when somebody else is making it, or it has no sites to rewrite. With `copy`
    /// there is one in that case too.
    pub fn image(&self, file: &Arc<OpenFile>, copy: bool) -> Option<Arc<Image>> {
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
        // Somebody may have written to it meanwhile; then the entry may be that of the new contents.
        let image = image.filter(|_| file.contents() == Some(contents));
        let mut files = self.files.lock();
        if let Some(known) = files.get_mut(&key).filter(|known| known.contents == contents) {
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
            read_all(&self.reader, file, &mut bytes, segment.offset - lead)?;
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
            rewrite::rewrite(layout, &mut code, self.entry as u64, &mut |to, offset| read_all(&self.reader, file, to, offset));
        self.count(&count);
        if rewritten.is_none() && !copy {
            return Ok(None);
        }
        let (mut trampolines, mut patches) = rewritten.map_or_else(Default::default, |made| (made.trampolines, made.patches));
        if let Some(routine) = self.restore {
            restore::rewrite(layout, &mut code, &mut trampolines, &mut patches, routine as u64);
        }
        let object = self.machine.memory_object("janua-code")?;
        let room = trampolines.len();
        let mut made = Made::default();
        let mut inside = 0;
        let mut put = |bytes: &mut [u8]| -> Result<()> {
            if self.restore.is_some() {
                made.add(bytes, inside);
            }
            objectio::write_all(&*object, bytes, inside)?;
            inside += bytes.len() as u64;
            Ok(())
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
            self.found.publish(&object, made);
        }
        patches.sort_unstable_by_key(|patch| patch.start);
        Ok(Some(Image { object, room, parts, patches, bytes: at, found: self.found }))
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

fn read_all(reader: &Itself, file: &Arc<OpenFile>, to: &mut [u8], offset: u64) -> Result<()> {
    let mut done = 0;
    while done < to.len() {
        match file.ops.read(file, reader, &mut ReadBuf::kernel(&mut to[done..]), offset + done as u64)? {
            // The rest of the last page is zeroes, as in a mapping.
            0 => break,
            n => done += n,
        }
    }
    Ok(())
}
