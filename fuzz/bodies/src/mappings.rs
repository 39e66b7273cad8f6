//! Calls on an address space: whatever they return, the list of mappings is what the machine has been asked for, and what the calls reported.

use std::collections::BTreeMap;
use std::sync::Arc;

use janua_abi::linux::mman::{
    MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_GROWSDOWN, MAP_LOCKED, MAP_PRIVATE, MAP_SHARED, MREMAP_DONTUNMAP,
    MREMAP_FIXED, MREMAP_MAYMOVE, PAGE_SIZE,
};
use janua_abi::linux::{Errno, Result};
use janua_object::mm::{Limits, MapRequest, Mm, NEVER, RemapRequest};
use janua_port::space::Bounds;
use janua_port::{Backing, Prot, Space};
use janua_rt::Mutex;

use crate::bytes::Bytes;

const LOW: usize = 0x1_0000;
const HIGH: usize = 0x40_0000;
const HOLE: (usize, usize) = (0x20_0000, 0x28_0000);

/// Pages that are mapped, with their rights: a machine that only remembers what it was asked.
#[derive(Default)]
struct Pages(Mutex<BTreeMap<usize, Prot>>);

impl Space for Pages {
    fn map(&self, addr: usize, len: usize, prot: Prot, _backing: &Backing) -> Result<()> {
        assert!(addr >= LOW && addr + len <= HIGH && (addr + len <= HOLE.0 || addr >= HOLE.1), "outside the bounds");
        self.0.lock().extend((addr..addr + len).step_by(PAGE_SIZE).map(|page| (page, prot)));
        Ok(())
    }
    fn unmap(&self, addr: usize, len: usize) -> Result<()> {
        self.0.lock().retain(|page, _| !(addr..addr + len).contains(page));
        Ok(())
    }
    fn protect(&self, addr: usize, len: usize, prot: Prot) -> Result<()> {
        for page in (addr..addr + len).step_by(PAGE_SIZE) {
            *self.0.lock().get_mut(&page).expect("rights of a page that is not mapped") = prot;
        }
        Ok(())
    }
    fn remap(&self, old: usize, old_len: usize, new: usize, new_len: usize) -> Result<()> {
        let prot = self.0.lock().get(&old).copied().expect("a mapping that is not there is moved");
        self.unmap(old, old_len)?;
        self.map(new, new_len, prot, &Backing::Anon)
    }
    fn remap_keep(&self, old: usize, len: usize, new: usize) -> Result<()> {
        let prot = self.0.lock().get(&old).copied().expect("a mapping that is not there is moved");
        self.map(new, len, prot, &Backing::Anon)
    }
    fn advise(&self, _: usize, _: usize, _: u32) -> Result<()> {
        Ok(())
    }
    fn sync(&self, _: usize, _: usize, _: u32) -> Result<()> {
        Ok(())
    }
    fn resident(&self, _: usize, _: usize, out: &mut [u8]) -> Result<()> {
        out.fill(1);
        Ok(())
    }
    fn reset(self: Arc<Self>, _: bool) -> Result<Arc<dyn Space>> {
        Ok(self)
    }
    fn bounds(&self) -> Bounds {
        Bounds { low: LOW, high: HIGH, holes: [HOLE, (0, 0)] }
    }
}

pub fn run(input: &[u8]) {
    let pages = Arc::new(Pages::default());
    let mm = Mm::new(pages.clone());
    let mut bytes = Bytes(input);
    while !bytes.is_empty() {
        let before = pages.0.lock().clone();
        let wanted = call(&mm, &mut bytes, &before);
        let mut listed = BTreeMap::new();
        for region in mm.regions() {
            assert!(region.start < region.end && (region.start | region.end) % PAGE_SIZE == 0);
            for page in (region.start..region.end).step_by(PAGE_SIZE) {
                assert!(listed.insert(page, region.flags.prot()).is_none(), "two mappings of one page");
            }
        }
        let real = pages.0.lock().clone();
        assert_eq!(listed, real, "list and machine");
        if let Some(wanted) = wanted {
            assert_eq!(real, wanted, "what the call did");
        }
        assert_eq!(mm.sizes().total, real.len() * PAGE_SIZE);
    }
}

/// An address: mostly of a page, near the others.
fn address(bytes: &mut Bytes<'_>) -> usize {
    match bytes.byte() {
        0xff => bytes.long() as usize,
        0xfe => bytes.word() as usize,
        page => LOW + usize::from(page) * 4 * PAGE_SIZE,
    }
}

fn length(bytes: &mut Bytes<'_>) -> usize {
    match bytes.byte() {
        0xff => bytes.long() as usize,
        0xfe => bytes.word() as usize,
        pages => usize::from(pages % 40) * PAGE_SIZE,
    }
}

fn prot(bits: u8) -> Prot {
    Prot { read: bits & 1 != 0, write: bits & 2 != 0, exec: bits & 4 != 0 }
}

type Wanted = BTreeMap<usize, Prot>;

fn range(addr: usize, len: usize) -> impl Iterator<Item = usize> {
    (addr..addr.saturating_add(len).next_multiple_of(PAGE_SIZE)).step_by(PAGE_SIZE)
}

/// Makes one call: what must be mapped after it, where that is easily stated.
fn call(mm: &Mm, bytes: &mut Bytes<'_>, before: &Wanted) -> Option<Wanted> {
    let (kind, addr, len, bits) = (bytes.byte(), address(bytes), length(bytes), bytes.byte());
    let mut wanted = before.clone();
    match kind % 6 {
        0 | 1 => {
            let place = [0, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_FIXED][usize::from(bits >> 3 & 3)];
            let share = if bits & 0x20 == 0 { MAP_PRIVATE } else { MAP_SHARED };
            let more = [0, MAP_GROWSDOWN, MAP_LOCKED, 0][usize::from(bits >> 6)];
            let flags = MAP_ANONYMOUS | place | share | more;
            let made = mm.map(MapRequest { addr, len, prot: prot(bits), flags, file: None, offset: 0 }, &Limits::NONE);
            match made {
                Ok(at) => {
                    assert!(place == 0 || at == addr);
                    for page in range(at, len) {
                        let old = wanted.insert(page, prot(bits));
                        assert!(place == MAP_FIXED || old.is_none(), "{page:#x} was in use");
                    }
                }
                // One that takes the place of others may have taken them away.
                Err(_) if place == MAP_FIXED => return None,
                Err(_) => {}
            }
        }
        2 => {
            if mm.unmap(addr, len) == Ok(()) {
                range(addr, len).for_each(|page| {
                    wanted.remove(&page);
                });
            }
        }
        3 => match mm.protect(addr, len, prot(bits), false, &Limits::NONE) {
            Ok(()) => range(addr, len).for_each(|page| *wanted.get_mut(&page).expect("it is mapped") = prot(bits)),
            // What is before the first hole has changed.
            Err(Errno::ENOMEM) => return None,
            Err(_) => {}
        },
        _ => {
            let flags =
                [0, MREMAP_MAYMOVE, MREMAP_MAYMOVE | MREMAP_FIXED, MREMAP_MAYMOVE | MREMAP_DONTUNMAP][usize::from(bits & 3)];
            let request = RemapRequest { old: addr, old_len: len, new_len: length(bytes), flags, new: address(bytes) };
            let _ = mm.remap(request, &Limits::NONE, NEVER);
            return None;
        }
    }
    Some(wanted)
}
