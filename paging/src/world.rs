//! A machine of vectors, and on it a few spaces and objects that operations are carried out on, each compared with a plain description of what
//! must be there. Random tests and the fuzz target `paging`, which is another crate, drive it.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use janua_abi::linux::{Errno, Result};
use janua_port::Fill;
use janua_port::Prot;
use janua_rt::Mutex;

use super::table::NoMemory;
use super::{AtFork, Behind, Entry, Frames, Object, PAGE, PageFrame, Space, Table};

/// Frames that are vectors.
pub struct Memory {
    /// Bytes and users of each frame; those without users are free.
    pages: Mutex<Vec<(Vec<u8>, u32)>>,
    most: usize,
}

impl Memory {
    pub fn new(most: usize) -> &'static Memory {
        Box::leak(Box::new(Memory { pages: Mutex::new(Vec::new()), most }))
    }

    pub fn most(&self) -> usize {
        self.most
    }

    pub fn used(&self) -> usize {
        self.pages.lock().iter().filter(|(_, users)| *users > 0).count()
    }
}

impl Frames for Memory {
    fn take(&self) -> Option<PageFrame> {
        let mut pages = self.pages.lock();
        let index = match pages.iter().position(|(_, users)| *users == 0) {
            Some(index) => index,
            None if pages.len() < self.most => {
                pages.push((Vec::new(), 0));
                pages.len() - 1
            }
            None => return None,
        };
        pages[index] = (vec![0; PAGE], 1);
        Some(PageFrame(index))
    }
    fn share(&self, frame: PageFrame) {
        self.pages.lock()[frame.0].1 += 1;
    }
    fn release(&self, frame: PageFrame) {
        let users = &mut self.pages.lock()[frame.0].1;
        assert!(*users > 0, "a frame is released twice");
        *users -= 1;
    }
    fn users(&self, frame: PageFrame) -> usize {
        self.pages.lock()[frame.0].1 as usize
    }
    fn copy(&self, from: PageFrame, to: PageFrame) {
        let mut pages = self.pages.lock();
        pages[to.0].0 = pages[from.0].0.clone();
    }
    fn read(&self, frame: PageFrame, offset: usize, out: &mut [u8]) {
        out.copy_from_slice(&self.pages.lock()[frame.0].0[offset..offset + out.len()]);
    }
    fn write(&self, frame: PageFrame, offset: usize, data: &[u8]) {
        self.pages.lock()[frame.0].0[offset..offset + data.len()].copy_from_slice(data);
    }
    fn load_u32(&self, frame: PageFrame, offset: usize) -> u32 {
        let mut word = [0; 4];
        self.read(frame, offset, &mut word);
        u32::from_ne_bytes(word)
    }
    fn cmpxchg_u32(&self, frame: PageFrame, offset: usize, old: u32, new: u32) -> u32 {
        let mut pages = self.pages.lock();
        let word = &mut pages[frame.0].0[offset..offset + 4];
        let found = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        if found == old {
            word.copy_from_slice(&new.to_ne_bytes());
        }
        found
    }
}

/// A table that is a map.
pub struct Map {
    entries: BTreeMap<usize, Entry>,
    /// Entries it has room for.
    room: usize,
}

impl Default for Map {
    fn default() -> Map {
        Map::with_room(usize::MAX)
    }
}

impl Map {
    pub fn with_room(room: usize) -> Map {
        Map { entries: BTreeMap::new(), room }
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= self.room
    }
}

impl Table for Map {
    fn get(&self, addr: usize) -> Option<Entry> {
        self.entries.get(&addr).copied()
    }
    fn set(&mut self, addr: usize, entry: Entry) -> core::result::Result<(), NoMemory> {
        if self.is_full() && !self.entries.contains_key(&addr) {
            return Err(NoMemory);
        }
        self.entries.insert(addr, entry);
        Ok(())
    }
    fn take(&mut self, from: usize, end: usize) -> Option<(usize, Entry)> {
        let (addr, entry) = self.next(from, end)?;
        self.entries.remove(&addr);
        Some((addr, entry))
    }
    fn next(&self, from: usize, end: usize) -> Option<(usize, Entry)> {
        self.entries.range(from..end.max(from)).next().map(|(addr, entry)| (*addr, *entry))
    }
    fn flush(&mut self, _start: usize, _end: usize) {}
}

/// Pages that are used.
const PAGES: usize = 24;
const OBJECTS: usize = 3;
const OBJECT_PAGES: u64 = 8;
const SPACES: usize = 4;

/// What a page must be.
#[derive(Clone, Copy)]
struct Page {
    prot: Prot,
    at_fork: AtFork,
    what: What,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    /// Its own, with this first byte.
    Own(u8),
    /// A page of an object.
    Shared(usize, u64),
    /// The same until it is written: then its own byte.
    Private(usize, u64, Option<u8>),
}

#[derive(Clone, Default)]
struct Wanted {
    pages: BTreeMap<usize, Page>,
}

/// An object: the first byte of each of its pages.
type Bytes = Vec<u8>;

/// The object whose pages are brought, and in which stores are noted.
const FILLED: usize = OBJECTS - 1;

/// Brings pages of zeroes.
struct Zeroes(Weak<Object<Memory>>);

impl Fill for Zeroes {
    fn fill(&self, page: u64) -> Result<()> {
        let object = self.0.upgrade().ok_or(Errno::EIO)?;
        object.allocate(page * PAGE as u64, PAGE as u64, true).map_err(|_| Errno::ENOMEM)
    }
}

/// A table that spaces are tried with.
pub trait Tried: Table {
    /// Where its pages begin: so that not all of their entries are together.
    const BASE: usize;
    /// A table with room for all entries, or for some.
    fn with_room(all: bool) -> Self;
    /// Whether there is room for the entry of a page.
    fn has_room(&mut self, addr: usize) -> bool {
        if self.get(addr).is_some() {
            return true;
        }
        let room = self.set(addr, Entry { frame: PageFrame(0), prot: Prot::default() }).is_ok();
        self.take(addr, addr + PAGE);
        room
    }
}

impl Tried for Map {
    const BASE: usize = 0x10_0000;
    fn with_room(all: bool) -> Map {
        Map::with_room(if all { usize::MAX } else { PAGES / 2 })
    }
}

pub struct World<T: Tried> {
    memory: &'static Memory,
    /// Whether tables have room for all entries.
    room: bool,
    objects: Vec<(Arc<Object<Memory>>, Bytes)>,
    spaces: Vec<(Arc<Space<Memory, T>>, Wanted)>,
    fill: Arc<dyn Fill>,
    /// Pages of [`FILLED`] that were written in shared mappings since it was last asked.
    stored: BTreeSet<u64>,
}

fn addr<T: Tried>(page: usize) -> usize {
    T::BASE + page * PAGE
}

fn can_read(prot: Prot) -> bool {
    prot.read || prot.write || prot.exec
}

impl<T: Tried> World<T> {
    /// One empty space, and so many frames; `room`: whether tables have room for all entries.
    pub fn new(frames: usize, room: bool) -> World<T> {
        let memory = Memory::new(frames);
        let object = |_| (Object::new(memory, OBJECT_PAGES * PAGE as u64), alloc::vec![0; OBJECT_PAGES as usize]);
        let objects: Vec<_> = (0..OBJECTS).map(object).collect();
        let fill: Arc<dyn Fill> = Arc::new(Zeroes(Arc::downgrade(&objects[FILLED].0)));
        objects[FILLED].0.set_fill(Arc::downgrade(&fill));
        let spaces = alloc::vec![(Space::new(memory, T::with_room(room)), Wanted::default())];
        World { memory, room, objects, spaces, fill, stored: BTreeSet::new() }
    }

    /// The byte a page must have; `None` if it cannot be read.
    fn wanted(&self, space: usize, page: usize) -> Option<u8> {
        let page = self.spaces[space].1.pages.get(&page).filter(|page| can_read(page.prot))?;
        match page.what {
            What::Own(byte) | What::Private(_, _, Some(byte)) => Some(byte),
            What::Shared(object, number) | What::Private(object, number, None) => {
                self.objects[object].1.get(number as usize).copied()
            }
        }
    }

    /// Whether an access that needs a page may find no memory.
    fn is_short(&self, space: usize, page: usize) -> bool {
        self.memory.used() == self.memory.most() || !self.spaces[space].0.with_table(|table| table.has_room(addr::<T>(page)))
    }

    fn check(&self, what: &str) {
        for (index, (space, _)) in self.spaces.iter().enumerate() {
            for page in 0..PAGES {
                let mut byte = [0];
                let found = (space.read(addr::<T>(page), &mut byte) == 1).then_some(byte[0]);
                let wanted = self.wanted(index, page);
                let short = found.is_none() && self.is_short(index, page);
                assert!(found == wanted || short, "{what}: page {page} of space {index}: {found:?}, not {wanted:?}");
            }
        }
    }

    fn write(&mut self, space: usize, page: usize, byte: u8) {
        let done = self.spaces[space].0.write(addr::<T>(page), &[byte]) == 1;
        let short = self.is_short(space, page);
        let inside = self.is_inside(space, page);
        let Some(wanted) = self.spaces[space].1.pages.get_mut(&page) else { return assert!(!done) };
        if !done {
            assert!(!wanted.prot.write || !inside || short, "page {page}");
            return;
        }
        assert!(wanted.prot.write && inside, "page {page} could be written");
        match &mut wanted.what {
            What::Own(now) => *now = byte,
            What::Private(_, _, own) => *own = Some(byte),
            What::Shared(object, number) => {
                self.objects[*object].1[*number as usize] = byte;
                if *object == FILLED {
                    self.stored.insert(*number);
                }
            }
        }
    }

    /// Whether what is behind a page has not ended before it.
    fn is_inside(&self, space: usize, page: usize) -> bool {
        match self.spaces[space].1.pages.get(&page).map(|page| page.what) {
            Some(What::Shared(object, number) | What::Private(object, number, None)) => {
                (number as usize) < self.objects[object].1.len()
            }
            _ => true,
        }
    }

    /// Brings a page for all that its mapping grants, as a machine does with each mapping whose user code cannot wait for a page: no access to
    /// it may fault from then on.
    fn bring(&mut self, space: usize, page: usize) {
        let at = addr::<T>(page);
        let done = self.spaces[space].0.bring_all(at, at + PAGE).is_ok();
        let (short, inside) = (self.is_short(space, page), self.is_inside(space, page));
        let entry = self.spaces[space].0.with_table(|table| table.get(at));
        let Some(wanted) = self.spaces[space].1.pages.get_mut(&page) else { return assert!(done && entry.is_none()) };
        if !can_read(wanted.prot) {
            return assert!(done);
        }
        if !done {
            return assert!(!inside || short, "page {page} was not brought");
        }
        assert!(inside, "page {page} was brought");
        assert_eq!(entry.map(|entry| entry.prot), Some(Prot { read: true, ..wanted.prot }), "page {page}");
        match &mut wanted.what {
            What::Private(object, number, own @ None) if wanted.prot.write => {
                *own = Some(self.objects[*object].1[*number as usize]);
            }
            What::Shared(FILLED, number) if wanted.prot.write => {
                self.stored.insert(*number);
            }
            _ => {}
        }
    }

    fn map(&mut self, space: usize, first: usize, count: usize, prot: Prot, what: What) {
        let behind = match what {
            What::Own(_) => Behind::Zero,
            What::Shared(object, page) => Behind::Object { object: self.objects[object].0.clone(), page, shared: true },
            What::Private(object, page, _) => Behind::Object { object: self.objects[object].0.clone(), page, shared: false },
        };
        self.spaces[space].0.map(addr::<T>(first), addr::<T>(first + count), prot, behind).unwrap();
        for index in 0..count {
            let what = match what {
                What::Own(_) => What::Own(0),
                What::Shared(object, page) => What::Shared(object, page + index as u64),
                What::Private(object, page, _) => What::Private(object, page + index as u64, None),
            };
            self.spaces[space].1.pages.insert(first + index, Page { prot, at_fork: AtFork::Copied, what });
        }
    }

    /// Moves mapped pages to where nothing of them is.
    fn remap(&mut self, space: usize, first: usize, count: usize, to: usize, keep: bool) {
        let (paged, wanted) = &mut self.spaces[space];
        let whole = (first..first + count).all(|page| wanted.pages.contains_key(&page));
        if !whole || to + count > PAGES || (first < to + count && to < first + count) {
            return;
        }
        if paged.remap(addr::<T>(first), count * PAGE, addr::<T>(to), count * PAGE, keep).is_err() {
            assert!(!self.room);
            return (to..to + count).for_each(|page| {
                wanted.pages.remove(&page);
            });
        }
        for index in 0..count {
            let page = wanted.pages[&(first + index)];
            wanted.pages.insert(to + index, page);
            if !keep {
                wanted.pages.remove(&(first + index));
                continue;
            }
            // What the old range had of its own has moved.
            if let Some(old) = wanted.pages.get_mut(&(first + index)) {
                old.what = dropped(old.what);
            }
        }
    }

    fn fork(&mut self, space: usize) {
        let (parent, wanted) = &self.spaces[space];
        let child = Space::new(self.memory, T::with_room(self.room));
        if parent.fork_into(&child).is_err() {
            return assert!(!self.room);
        }
        let mut copy = wanted.clone();
        copy.pages.retain(|_, page| page.at_fork != AtFork::Absent);
        for page in copy.pages.values_mut() {
            if page.at_fork == AtFork::Wiped {
                page.what = dropped(page.what);
            }
        }
        self.spaces.push((child, copy));
    }

    fn truncate(&mut self, object: usize, pages: usize) {
        self.objects[object].0.truncate((pages * PAGE) as u64).unwrap();
        self.objects[object].1.resize(pages, 0);
        self.gone(object, pages..usize::MAX);
        // Copies of what was behind the end go with it.
        self.each_of(object, |number| number as usize >= pages);
    }

    /// Private copies of these pages of an object are dropped.
    fn each_of(&mut self, object: usize, which: impl Fn(u64) -> bool) {
        for page in self.spaces.iter_mut().flat_map(|(_, wanted)| wanted.pages.values_mut()) {
            if let What::Private(of, number, own) = &mut page.what
                && *of == object
                && which(*number)
            {
                *own = None;
            }
        }
    }

    /// Pages of an object are not there any more, nor what was stored into them.
    fn gone(&mut self, object: usize, pages: Range<usize>) {
        if object == FILLED {
            self.stored.retain(|number| !pages.contains(&(*number as usize)));
        }
    }

    /// Asks which pages have been stored into: all of those that were, and where there is memory no others, since a fault that fails
    /// for want of it may have been for a store.
    fn take_stored(&mut self) {
        let mut found = BTreeSet::new();
        self.objects[FILLED].0.take_stored(&mut |run| run.for_each(|page| assert!(found.insert(page))));
        let wanted = core::mem::take(&mut self.stored);
        let enough = self.room && self.memory.most() > 100;
        assert!(if enough { found == wanted } else { found.is_superset(&wanted) }, "{found:?}, not {wanted:?}");
    }

    fn punch(&mut self, object: usize, first: usize, count: usize) {
        self.gone(object, first..first + count);
        self.objects[object].0.punch((first * PAGE) as u64, (count * PAGE) as u64);
        for byte in self.objects[object].1.iter_mut().skip(first).take(count) {
            *byte = 0;
        }
    }
}

/// A page whose own contents are forgotten.
fn dropped(what: What) -> What {
    match what {
        What::Own(_) => What::Own(0),
        What::Private(object, page, _) => What::Private(object, page, None),
        shared @ What::Shared(..) => shared,
    }
}

/// What an operation is about, drawn for each of them.
struct Chosen {
    space: usize,
    first: usize,
    count: usize,
    object: usize,
    prot: Prot,
    byte: u8,
}

impl<T: Tried> World<T> {
    /// Carries out as many operations as asked for, drawn from `next` (a number below a bound), with a look at all pages after each.
    pub fn run(mut self, steps: usize, next: &mut impl FnMut(u64) -> u64) {
        for step in 0..steps {
            let name = self.operation(next);
            self.check(&alloc::format!("step {step}, after {name}"));
        }
        self.take_stored();
        let World { memory, objects, spaces, fill, .. } = self;
        drop((objects, spaces, fill));
        assert_eq!(memory.used(), 0, "frames are left");
    }

    /// Carries one operation out: its name.
    fn operation(&mut self, next: &mut impl FnMut(u64) -> u64) -> &'static str {
        let mut below = |bound: usize| next(bound as u64) as usize;
        let space = below(self.spaces.len());
        let first = below(PAGES);
        let count = 1 + below((PAGES - first).min(8));
        let object = below(OBJECTS);
        let prot = Prot { read: below(4) > 0, write: below(4) > 0, exec: false };
        let chosen = Chosen { space, first, count, object, prot, byte: 1 + below(255) as u8 };
        match below(27) {
            number @ 0..18 => self.change_pages(number, &chosen, below),
            18 if self.spaces.len() < SPACES => {
                self.fork(space);
                "fork"
            }
            18 | 19 => {
                if self.spaces.len() > 1 {
                    self.spaces.swap_remove(space);
                }
                "end of a space"
            }
            26 => {
                (first..first + count).for_each(|page| self.bring(space, page));
                "bring"
            }
            number => self.change_object(number, &chosen, below),
        }
    }

    /// What is done to pages of a space.
    fn change_pages(&mut self, number: usize, chosen: &Chosen, mut below: impl FnMut(usize) -> usize) -> &'static str {
        let &Chosen { space, first, count, object, prot, byte } = chosen;
        let (start, end) = (addr::<T>(first), addr::<T>(first + count));
        match number {
            0..=7 => {
                self.write(space, first, byte);
                "write"
            }
            8..=10 => {
                let page = below(OBJECT_PAGES as usize) as u64;
                let what = [What::Own(0), What::Shared(object, page), What::Private(object, page, None)][below(3)];
                self.map(space, first, count, prot, what);
                "map"
            }
            11 => {
                self.spaces[space].0.unmap(start, end);
                self.spaces[space].1.pages.retain(|page, _| !(first..first + count).contains(page));
                "unmap"
            }
            12 | 13 => {
                self.spaces[space].0.protect(start, end, prot).unwrap();
                self.each_page(chosen, |page| page.prot = prot);
                "protect"
            }
            14 | 15 => {
                let (to, keep) = (below(PAGES), below(2) == 0);
                self.remap(space, first, count, to, keep);
                "remap"
            }
            16 => {
                self.spaces[space].0.discard(start, end);
                self.each_page(chosen, |page| page.what = dropped(page.what));
                "discard"
            }
            _ => {
                let at_fork = [AtFork::Copied, AtFork::Absent, AtFork::Wiped][below(3)];
                self.spaces[space].0.set_at_fork(start, end, at_fork);
                self.each_page(chosen, |page| page.at_fork = at_fork);
                "set_at_fork"
            }
        }
    }

    fn each_page(&mut self, chosen: &Chosen, change: impl FnMut(&mut Page)) {
        let range = chosen.first..chosen.first + chosen.count;
        self.spaces[chosen.space].1.pages.range_mut(range).map(|(_, page)| page).for_each(change);
    }

    /// What is done to an object, or asked of it.
    fn change_object(&mut self, number: usize, chosen: &Chosen, mut below: impl FnMut(usize) -> usize) -> &'static str {
        let &Chosen { count, object, byte, .. } = chosen;
        match number {
            20 => {
                self.truncate(object, below(OBJECT_PAGES as usize + 1));
                "truncate"
            }
            21 => {
                self.punch(object, below(OBJECT_PAGES as usize), count);
                "punch"
            }
            22 | 23 => {
                self.take_stored();
                "take_stored"
            }
            _ => {
                let page = below(OBJECT_PAGES as usize);
                let (real, bytes) = &mut self.objects[object];
                if real.write((page * PAGE) as u64, &[byte]).is_ok() {
                    // A byte behind the end makes the object end there; the rest of its page reads as zero.
                    bytes.resize(bytes.len().max(page + 1), 0);
                    bytes[page] = byte;
                } else {
                    assert_eq!(self.memory.used(), self.memory.most());
                }
                "write to an object"
            }
        }
    }
}
