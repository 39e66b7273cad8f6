//! The mapping database under random messages: whatever is mapped and taken back, spaces, entries and trees agree.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_port::space::Bounds;
use janua_port::{Backing, MemoryObject, Prot, Space};
use janua_rt::Mutex;

use super::*;

/// Physical memory that nobody looks into.
struct Nothing;

impl MemoryObject for Nothing {
    fn read(&self, _at: u64, _out: &mut [u8]) -> Result<usize> {
        Ok(0)
    }
    fn write(&self, _at: u64, data: &[u8]) -> Result<usize> {
        Ok(data.len())
    }
    fn truncate(&self, _size: u64) -> Result<()> {
        Ok(())
    }
    fn allocate(&self, _mode: u32, _at: u64, _len: u64) -> Result<()> {
        Ok(())
    }
    fn seek(&self, _at: u64, _hole: bool) -> Result<u64> {
        Err(Errno::ENXIO)
    }
    fn resident(&self) -> u64 {
        0
    }
}

/// A space that notes what is mapped: the frame of each page, and whether it may be written. Each so many calls it has no memory.
#[derive(Default)]
struct Noted {
    pages: Mutex<BTreeMap<u32, (u32, bool)>>,
    fails: Mutex<u32>,
}

const HIGH: usize = 1024 * BYTES;

impl Space for Noted {
    fn map(&self, addr: usize, len: usize, prot: Prot, backing: &Backing) -> Result<()> {
        let Backing::Object { offset, .. } = backing else { return Err(Errno::EINVAL) };
        let mut fails = self.fails.lock();
        *fails = fails.wrapping_sub(1);
        if *fails == 0 {
            return Err(Errno::ENOMEM);
        }
        for at in 0..len / BYTES {
            let frame = (*offset as usize / BYTES + at) as u32;
            self.pages.lock().insert((addr / BYTES + at) as u32, (frame, prot.write));
        }
        Ok(())
    }
    fn unmap(&self, addr: usize, len: usize) -> Result<()> {
        for at in 0..len / BYTES {
            self.pages.lock().remove(&((addr / BYTES + at) as u32));
        }
        Ok(())
    }
    fn protect(&self, addr: usize, _len: usize, prot: Prot) -> Result<()> {
        if let Some(page) = self.pages.lock().get_mut(&((addr / BYTES) as u32)) {
            page.1 = prot.write;
        }
        Ok(())
    }
    fn remap(&self, _old: usize, _old_len: usize, _new: usize, _new_len: usize) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn remap_keep(&self, _old: usize, _len: usize, _new: usize) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn advise(&self, _addr: usize, _len: usize, _advice: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn sync(&self, _addr: usize, _len: usize, _flags: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn resident(&self, _addr: usize, _len: usize, _out: &mut [u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn reset(self: Arc<Self>, _shared: bool) -> Result<Arc<dyn Space>> {
        Err(Errno::ENOSYS)
    }
    fn bounds(&self) -> Bounds {
        Bounds { low: BYTES, high: HIGH, holes: [(0, 0); 2] }
    }
}

const TASKS: u16 = 5;
const PAGES: u32 = 40;

/// A database with sigma0 and some tasks.
fn database() -> (Memory, Vec<Arc<Noted>>) {
    let memory = Memory::new(Arc::new(Nothing), PAGES);
    let spaces: Vec<Arc<Noted>> = (0..TASKS).map(|_| Arc::default()).collect();
    for (at, space) in spaces.iter().enumerate() {
        memory.add_space(SIGMA0_TASK + at as u16, space.clone());
    }
    memory.give_all(1..PAGES, 3..4).unwrap();
    (memory, spaces)
}

/// Spaces, entries and trees are one another's image, and nobody has a right that who gave it lacks.
fn check(memory: &Memory, spaces: &[Arc<Noted>]) {
    let inner = memory.inner.lock();
    let mut count = 0;
    for (at, space) in spaces.iter().enumerate() {
        let task = SIGMA0_TASK + at as u16;
        let Some(mapped) = inner.spaces.get(&task) else { continue };
        let entries: BTreeMap<u32, (u32, bool)> =
            mapped.pages.iter().map(|(page, entry)| (*page, (entry.frame, entry.write))).collect();
        assert_eq!(entries, *space.pages.lock(), "task {task}");
        count += entries.len();
        for page in entries.keys() {
            assert!(inner.place(task, *page).is_some(), "task {task} page {page} is in no tree");
        }
    }
    assert_eq!(count, inner.count);
    assert_eq!(inner.trees.iter().map(Vec::len).sum::<usize>(), count);
    for (frame, tree) in inner.trees.iter().enumerate() {
        let mut parents: Vec<Node> = Vec::new();
        for node in tree {
            let entry = inner.spaces[&node.task].pages[&node.page];
            assert_eq!(entry.frame as usize, frame);
            parents.truncate(node.depth as usize);
            assert_eq!(parents.len(), node.depth as usize, "a mapping without a parent");
            if let Some(parent) = parents.last() {
                assert!(!entry.write || inner.spaces[&parent.task].pages[&parent.page].write, "more rights than were given");
            }
            parents.push(*node);
        }
    }
}

/// A number below `end` (xorshift64).
fn draw(random: &mut u64, end: u32) -> u32 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    (*random % u64::from(end)) as u32
}

#[test]
fn spaces_and_trees_stay_one_anothers_image() {
    for seed in 1..20u64 {
        let mut random = seed * 0x9e37_79b9;
        let (memory, spaces) = database();
        for step in 0..300 {
            let mut pick = |end| draw(&mut random, end);
            let task = |number: u32| SIGMA0_TASK + number as u16;
            let (from, to) = (task(pick(TASKS.into())), task(pick(TASKS.into())));
            let start = pick(PAGES + 8);
            let pages = start..start + 1 + pick(6);
            if step % 7 == 0 {
                *spaces[usize::from(to - SIGMA0_TASK)].fails.lock() = 1 + pick(3);
            }
            match pick(5) {
                0..=2 => {
                    let target = pick(PAGES + 8);
                    let (write, grant) = (pick(3) > 0, pick(4) == 0);
                    let transfer = Transfer { from, to, pages: pages.clone(), target, write, grant };
                    memory.map(&transfer, pages.start);
                }
                3 => {
                    let how = Unmap { flush: pick(2) == 0, own: pick(2) == 0 };
                    assert_eq!(memory.unmap(from, &pages, pages.start, how), Progress::Done);
                }
                _ if pick(20) == 0 && to != SIGMA0_TASK => {
                    memory.remove_space(to);
                    spaces[usize::from(to - SIGMA0_TASK)].pages.lock().clear();
                    memory.add_space(to, spaces[usize::from(to - SIGMA0_TASK)].clone());
                }
                _ => {}
            }
            check(&memory, &spaces);
        }
    }
}

#[test]
fn a_page_has_so_many_mappings_and_no_more() {
    let (memory, spaces) = database();
    let give = |target| {
        let transfer = Transfer { from: 2, to: 3, pages: 5..6, target, write: true, grant: false };
        memory.map(&transfer, 5)
    };
    // Eight times as many as there are pages; sigma0 has all but the first itself.
    let most = PAGES * MAPPINGS_PER_PAGE as u32 - (PAGES - 1);
    for target in 1..=most {
        assert_eq!(give(target), Progress::Done, "{target}");
    }
    assert_eq!(give(most + 1), Progress::Failed);
    check(&memory, &spaces);
    assert_eq!(memory.unmap(2, &(5..6), 5, Unmap { flush: true, own: false }), Progress::Done);
    assert_eq!(memory.mappings(), PAGES as usize - 1);
    assert_eq!(give(1), Progress::Done);
}
