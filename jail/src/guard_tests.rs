//! The guard over a machine of pages with contents and rights, driven as a hostile program would.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use janua_abi::linux::mman::*;
use janua_abi::linux::{Errno, Result};
use janua_object::mm::jail::Guard;
use janua_port::jail::Ground;
use janua_port::space::{Access, Bounds};
use janua_port::{Backing, Fault, MemoryObject, Prot, Space, UserMemory};
use janua_rt::Mutex;
use janua_text::scan;

use crate::guard::{CodeGuard, Common};
use crate::random;

type Page = (Prot, Box<[u8; PAGE_SIZE]>);

/// A machine whose files all hold what `file` does, now.
struct Toy {
    pages: Mutex<BTreeMap<usize, Page>>,
    file: Mutex<Vec<u8>>,
    /// Pages that show a file others may write to: where, and from which offset.
    live: Mutex<BTreeMap<usize, usize>>,
    /// Steps that still succeed; the one after them fails when half of it is done. `usize::MAX`: none fails.
    steps: AtomicUsize,
    /// Another thread stores into every page that can be written, just before it may run.
    racing: AtomicBool,
    /// What the guards of this machine's kernel share.
    common: &'static Common,
}

impl Toy {
    fn each(&self, addr: usize, len: usize, mut change: impl FnMut(&mut Page)) -> Result<()> {
        let fails = self.fails();
        let end = if fails { addr + len / 2 / PAGE_SIZE * PAGE_SIZE } else { addr + len };
        let mut pages = self.pages.lock();
        (addr..end).step_by(PAGE_SIZE).try_for_each(|at| pages.get_mut(&at).map(&mut change).ok_or(Errno::ENOMEM))?;
        if fails { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// Counts a step: whether it is the one that fails.
    fn fails(&self) -> bool {
        let next = |left| if left == usize::MAX { None } else { Some(usize::wrapping_sub(left, 1)) };
        self.steps.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) == Ok(0)
    }

    /// Writes to the file from outside: what shows it changes.
    fn write_file(&self, at: usize, bytes: &[u8]) {
        self.file.lock()[at..at + bytes.len()].copy_from_slice(bytes);
        for (page, offset) in self.live.lock().iter() {
            for (index, byte) in bytes.iter().enumerate() {
                let place = (at + index).wrapping_sub(*offset);
                if place < PAGE_SIZE {
                    self.byte(page + place, |_| true, |to| *to = *byte);
                }
            }
        }
    }

    fn prot(&self, addr: usize) -> Option<Prot> {
        self.pages.lock().get(&(addr & !(PAGE_SIZE - 1))).map(|page| page.0)
    }

    fn byte(&self, addr: usize, access: impl Fn(Prot) -> bool, change: impl FnOnce(&mut u8)) -> bool {
        match self.pages.lock().get_mut(&(addr & !(PAGE_SIZE - 1))) {
            Some((prot, bytes)) if access(*prot) => {
                change(&mut bytes[addr % PAGE_SIZE]);
                true
            }
            _ => false,
        }
    }
}

/// What stands for a file that is mapped: its contents are the space's.
struct File;

impl MemoryObject for File {
    fn read(&self, _: u64, _: &mut [u8]) -> Result<usize> {
        Err(Errno::EIO)
    }
    fn write(&self, _: u64, _: &[u8]) -> Result<usize> {
        Err(Errno::EIO)
    }
    fn truncate(&self, _: u64) -> Result<()> {
        Err(Errno::EIO)
    }
    fn allocate(&self, _: u32, _: u64, _: u64) -> Result<()> {
        Err(Errno::EIO)
    }
    fn seek(&self, _: u64, _: bool) -> Result<u64> {
        Err(Errno::EIO)
    }
    fn resident(&self) -> u64 {
        0
    }
}

impl Space for Toy {
    fn map(&self, addr: usize, len: usize, prot: Prot, backing: &Backing) -> Result<()> {
        if self.fails() {
            // The host has unmapped what was in the way.
            self.pages.lock().retain(|page, _| !(addr..addr + len / 2).contains(page));
            return Err(Errno::ENOMEM);
        }
        let is_live = matches!(backing, Backing::Object { frozen: false, .. });
        let mut live = self.live.lock();
        live.retain(|page, _| !(addr..addr + len).contains(page));
        live.extend((0..len).step_by(PAGE_SIZE).filter(|_| is_live).map(|at| (addr + at, at)));
        let file = self.file.lock();
        let mut pages = self.pages.lock();
        for at in (0..len).step_by(PAGE_SIZE) {
            let mut bytes = Box::new([0; PAGE_SIZE]);
            if let Backing::Object { .. } = backing {
                bytes.copy_from_slice(&file[at..at + PAGE_SIZE]);
            }
            pages.insert(addr + at, (prot, bytes));
        }
        Ok(())
    }
    fn unmap(&self, addr: usize, len: usize) -> Result<()> {
        if self.fails() {
            return Err(Errno::ENOMEM);
        }
        self.pages.lock().retain(|page, _| !(addr..addr + len).contains(page));
        Ok(())
    }
    fn protect(&self, addr: usize, len: usize, prot: Prot) -> Result<()> {
        assert!(!prot.exec || self.common.remote.try_write().is_none(), "opened while the machine may write for others");
        for page in (addr..addr + len).step_by(PAGE_SIZE).filter(|_| prot.exec && self.racing.load(Ordering::Relaxed)) {
            self.copy_out_partial(page + 1000, &WRPKRU);
        }
        self.each(addr, len, |page| page.0 = prot)
    }
    fn remap(&self, old: usize, old_len: usize, new: usize, _: usize) -> Result<()> {
        let mut pages = self.pages.lock();
        if self.fails() {
            return Err(Errno::ENOMEM);
        }
        if (old..old + old_len).step_by(PAGE_SIZE).any(|at| !pages.contains_key(&at)) {
            return Err(Errno::EFAULT);
        }
        let moved: Vec<_> = (0..old_len).step_by(PAGE_SIZE).map(|at| (at, pages.remove(&(old + at)))).collect();
        pages.extend(moved.into_iter().filter_map(|(at, page)| Some((new + at, page?))));
        let mut live = self.live.lock();
        let shown: Vec<_> = live.range(old..old + old_len).map(|(page, offset)| (page - old + new, *offset)).collect();
        live.retain(|page, _| !(old..old + old_len).contains(page) && !(new..new + old_len).contains(page));
        live.extend(shown);
        Ok(())
    }
    fn remap_keep(&self, old: usize, len: usize, new: usize) -> Result<()> {
        self.remap(old, len, new, len)?;
        let rights: Vec<_> = (0..len).step_by(PAGE_SIZE).map(|at| self.prot(new + at).unwrap_or_default()).collect();
        let mut pages = self.pages.lock();
        for (at, prot) in rights.into_iter().enumerate() {
            pages.insert(old + at * PAGE_SIZE, (prot, Box::new([0; PAGE_SIZE])));
        }
        Ok(())
    }
    fn advise(&self, addr: usize, len: usize, advice: u32) -> Result<()> {
        // Dropped pages come back as the file is now.
        let file = self.file.lock();
        let fresh: Box<[u8; PAGE_SIZE]> = Box::new(file[..PAGE_SIZE].try_into().unwrap_or([0; PAGE_SIZE]));
        if advice == MADV_DONTNEED { self.each(addr, len, |page| page.1 = fresh.clone()) } else { Ok(()) }
    }
    fn sync(&self, _: usize, _: usize, _: u32) -> Result<()> {
        Ok(())
    }
    fn resident(&self, _: usize, _: usize, _: &mut [u8]) -> Result<()> {
        Ok(())
    }
    fn reset(self: Arc<Self>, _: bool) -> Result<Arc<dyn Space>> {
        Ok(self)
    }
    fn bounds(&self) -> Bounds {
        Bounds { low: 0x1_0000, high: 0x100_0000, holes: [(0, 0); 2] }
    }
}

impl Ground for Toy {
    fn own(&self, addr: usize, len: usize) -> Result<()> {
        self.each(addr, len, |page| page.0 = Prot { read: true, write: false, exec: false })?;
        self.live.lock().retain(|page, _| !(addr..addr + len).contains(page));
        Ok(())
    }
    fn restore_entry(&self) -> usize {
        0
    }
}

impl UserMemory for Toy {
    fn is_user(&self, _: usize, _: usize) -> bool {
        true
    }
    fn copy_in(&self, dst: &mut [u8], src: usize) -> Result<(), Fault> {
        if self.copy_in_partial(dst, src) == dst.len() { Ok(()) } else { Err(Fault) }
    }
    fn copy_out(&self, dst: usize, src: &[u8]) -> Result<(), Fault> {
        if self.copy_out_partial(dst, src) == src.len() { Ok(()) } else { Err(Fault) }
    }
    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        for (at, to) in dst.iter_mut().enumerate() {
            if !self.byte(src + at, |prot| prot.read, |byte| *to = *byte) {
                return at;
            }
        }
        dst.len()
    }
    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        let writable = |prot: Prot| prot.write;
        src.iter().enumerate().take_while(|(at, from)| self.byte(dst + at, writable, |byte| *byte = **from)).count()
    }
    fn load_u32(&self, _: usize) -> Result<u32, Fault> {
        Err(Fault)
    }
    fn cmpxchg_u32(&self, _: usize, _: u32, _: u32) -> Result<u32, Fault> {
        Err(Fault)
    }
}

const BASE: usize = 0x10_0000;
const PAGES: usize = 12;
const WRPKRU: [u8; 3] = [0x0f, 0x01, 0xef];

fn prot(bits: u64) -> Prot {
    Prot { read: true, write: bits & 1 != 0, exec: bits & 2 != 0 }
}

struct Hostile {
    toy: &'static Toy,
    guard: Arc<CodeGuard>,
}

/// The arc that owns the machine is never dropped, so that the guard may hold it as the ground, too.
fn hostile() -> Hostile {
    let common: &'static Common = Box::leak(Box::default());
    let toy = Arc::new(Toy {
        pages: Mutex::default(),
        file: Mutex::new(vec![0x90; PAGES * PAGE_SIZE]),
        live: Mutex::default(),
        steps: AtomicUsize::new(usize::MAX),
        racing: AtomicBool::new(false),
        common,
    });
    let kept: &'static Arc<Toy> = Box::leak(Box::new(toy.clone()));
    let guard = Arc::new(CodeGuard::new(toy.clone(), &**kept, toy, None, common));
    Hostile { toy: kept, guard }
}

impl Hostile {
    fn store(&self, addr: usize, bytes: &[u8]) {
        for (at, byte) in bytes.iter().enumerate() {
            let at = addr + at;
            if !self.toy.prot(at).is_some_and(|prot| prot.write) {
                self.guard.fault(at, Access::Store);
            }
            self.toy.copy_out_partial(at, &[*byte]);
        }
    }

    /// Whether the page can run, after a fault if need be.
    fn runs(&self, addr: usize) -> bool {
        let can = |toy: &Toy| toy.prot(addr).is_some_and(|prot| prot.exec);
        // The first fault may only find that another has set it right.
        can(self.toy) || (0..2).any(|_| self.guard.fault(addr, Access::Fetch) && can(self.toy))
    }

    /// No page is writable and executable; no run of executable pages holds a find.
    fn check(&self, what: &str) {
        let pages = self.toy.pages.lock();
        let mut run = Vec::new();
        let mut last = 0;
        for (&at, (prot, bytes)) in pages.iter().chain([(&usize::MAX, &(Prot::default(), Box::new([0; PAGE_SIZE])))]) {
            assert!(!(prot.write && prot.exec), "{what}: {at:#x} is writable and executable");
            if at != last + PAGE_SIZE || !prot.exec {
                assert_eq!(scan::hits(&run).find(|hit| hit.kind.loads_keys()), None, "{what}: before {at:#x}");
                run.clear();
            }
            if prot.exec {
                run.extend_from_slice(&bytes[..]);
            }
            last = at;
        }
    }
}

#[test]
fn rights_are_one_or_the_other() {
    let h = hostile();
    h.guard.map(BASE, 2 * PAGE_SIZE, prot(3), &Backing::Anon).unwrap();
    assert_eq!(h.toy.prot(BASE), Some(prot(1)));
    assert!(h.runs(BASE) && h.toy.prot(BASE) == Some(prot(2)));
    h.store(BASE, &[0xc3]);
    assert_eq!(h.toy.prot(BASE), Some(prot(1)));
    assert!(h.runs(BASE + PAGE_SIZE));
    // Read and execute only: a store is the program's own fault.
    h.guard.protect(BASE, PAGE_SIZE, prot(2)).unwrap();
    assert!(h.runs(BASE) && !h.guard.fault(BASE, Access::Store));
    // Not executable any more: so is a fetch.
    h.guard.protect(BASE, PAGE_SIZE, prot(0)).unwrap();
    assert!(!h.runs(BASE) && h.runs(BASE + PAGE_SIZE));
    assert!(!h.guard.fault(BASE + 4 * PAGE_SIZE, Access::Fetch));
}

#[test]
fn a_find_keeps_its_page_from_running_and_no_other() {
    let h = hostile();
    h.guard.map(BASE, 3 * PAGE_SIZE, prot(1), &Backing::Anon).unwrap();
    h.store(BASE + PAGE_SIZE + 100, &WRPKRU);
    h.guard.protect(BASE, 3 * PAGE_SIZE, prot(2)).unwrap();
    assert!(h.runs(BASE) && !h.runs(BASE + PAGE_SIZE) && h.runs(BASE + 2 * PAGE_SIZE));
    h.check("inside");
    // Across a border, made executable from either side.
    for order in [[0, 1], [1, 0]] {
        let h = hostile();
        h.guard.map(BASE, 2 * PAGE_SIZE, prot(1), &Backing::Anon).unwrap();
        h.store(BASE + PAGE_SIZE - 1, &WRPKRU);
        for page in order {
            h.guard.protect(BASE + page * PAGE_SIZE, PAGE_SIZE, prot(2)).unwrap();
        }
        let runs = [0, 1].map(|page| h.runs(BASE + page * PAGE_SIZE));
        assert_ne!(runs, [true, true]);
        h.check("across");
    }
}

#[test]
fn files() {
    let h = hostile();
    let file = |shared, frozen| Backing::Object { object: Arc::new(File), offset: 0, shared, frozen };
    let code = [0x53, 0x48, 0x89, 0xe3, 0x48, 0x83, 0xe4, 0xc0, 0x48, 0x2b, 0x25, 0x10, 0x20, 0x03, 0x00];
    {
        let mut bytes = h.toy.file.lock();
        for (to, from) in bytes[..120].iter_mut().zip(code.iter().cycle()) {
            *to = *from;
        }
        bytes[120..123].copy_from_slice(&WRPKRU);
    }
    assert_eq!(h.guard.map(BASE, PAGE_SIZE, prot(2), &file(true, false)), Err(Errno::EACCES));
    for frozen in [true, false] {
        // Certainly an instruction: overwritten, and its page runs.
        h.guard.map(BASE, PAGE_SIZE, prot(2), &file(false, frozen)).unwrap();
        assert!(h.runs(BASE));
        assert_eq!(h.guard.patched_out_at(BASE + 120).map(|found| (found.bytes[..3] == WRPKRU, found.len)), Some((true, 3)));
        assert!(h.guard.patched_out_at(BASE + 121).is_none());
        h.check("a file");
    }
    // The program has written something else over it.
    h.guard.protect(BASE, PAGE_SIZE, prot(1)).unwrap();
    h.store(BASE + 120, &[0x90; 3]);
    assert!(h.guard.patched_out_at(BASE + 120).is_none());
    // Made executable later.
    h.guard.map(BASE, PAGE_SIZE, prot(1), &file(true, false)).unwrap();
    assert_eq!(h.guard.protect(BASE, PAGE_SIZE, prot(2)), Err(Errno::EACCES));
}

#[test]
fn code_is_patched() {
    let h = hostile();
    h.guard.map(BASE, 2 * PAGE_SIZE, prot(1), &Backing::Anon).unwrap();
    h.store(BASE + 100, &[0x0f, 0x01, 0x90, 0x90, 0x90]);
    assert_eq!(h.guard.patch(BASE, &[0; 5], &[1; 5]), Err(Errno::EACCES), "not executable");
    h.guard.protect(BASE, 2 * PAGE_SIZE, prot(3)).unwrap();
    assert_eq!(h.guard.patch(BASE, &[0; 5], &[1; 5]), Err(Errno::EACCES), "writable");
    h.guard.protect(BASE, 2 * PAGE_SIZE, prot(2)).unwrap();
    // Across the border of two pages.
    let at = BASE + PAGE_SIZE - 2;
    assert_eq!(h.guard.patch(at, &[0; 5], &[1, 2, 3, 4, 5]), Ok(()));
    let mut now = [0; 5];
    h.toy.copy_in(&mut now, at).unwrap();
    assert_eq!(now, [1, 2, 3, 4, 5]);
    assert!(h.runs(BASE) && h.runs(BASE + PAGE_SIZE));
    assert_eq!(h.guard.patch(at, &[0; 5], &[9; 5]), Err(Errno::EAGAIN), "other bytes are there");
    // With what is in front of them these would open the key.
    assert_eq!(h.guard.patch(BASE + 102, &[0x90; 3], &[0xef, 0x90, 0x90]), Err(Errno::EACCES));
    h.toy.copy_in(&mut now, BASE + 100).unwrap();
    assert_eq!(now, [0x0f, 0x01, 0x90, 0x90, 0x90]);
    assert!(h.runs(BASE));
    h.check("patched");
}

/// Each a way to come by executable pages, and what they are to be seen through once it has failed somewhere.
const WAYS: &[(&str, fn(&Hostile) -> Result<()>)] = &[
    ("mapped", |h| h.guard.map(BASE, 4 * PAGE_SIZE, prot(2), &changing())),
    ("protected", |h| {
        h.guard.map(BASE, 4 * PAGE_SIZE, prot(0), &changing())?;
        h.guard.protect(BASE, 4 * PAGE_SIZE, prot(2))
    }),
    ("spans of two kinds", |h| {
        h.guard.map(BASE, 2 * PAGE_SIZE, prot(0), &changing())?;
        h.guard.map(BASE + 2 * PAGE_SIZE, PAGE_SIZE, prot(2), &Backing::Anon)?;
        h.guard.map(BASE + 3 * PAGE_SIZE, PAGE_SIZE, prot(1), &changing())?;
        h.guard.protect(BASE, 4 * PAGE_SIZE, prot(2))
    }),
    ("moved", |h| {
        h.guard.map(BASE + 8 * PAGE_SIZE, 4 * PAGE_SIZE, prot(2), &changing())?;
        h.guard.remap(BASE + 8 * PAGE_SIZE, 4 * PAGE_SIZE, BASE, 4 * PAGE_SIZE)?;
        h.guard.protect(BASE, 4 * PAGE_SIZE, prot(3))
    }),
    ("patched", |h| {
        h.guard.map(BASE, 4 * PAGE_SIZE, prot(2), &Backing::Anon)?;
        h.guard.patch(BASE + PAGE_SIZE - 1, &[0; 3], &[0x0f, 0x01, 0x90])?;
        h.guard.patch(BASE + PAGE_SIZE + 1, &[0x90], &[0xef])?;
        h.guard.patch(BASE + 3 * PAGE_SIZE, &[0; 3], &[0x90; 3])
    }),
];

fn changing() -> Backing {
    Backing::Object { object: Arc::new(File), offset: 0, shared: false, frozen: false }
}

#[test]
fn a_machine_that_fails_at_each_step_in_turn() {
    for (name, way) in WAYS {
        for steps in 0.. {
            assert!(steps < 100, "{name} never ends");
            let h = hostile();
            h.toy.steps.store(steps, Ordering::Relaxed);
            h.toy.racing.store(true, Ordering::Relaxed);
            let result = way(&h);
            let failed = h.toy.steps.swap(usize::MAX, Ordering::Relaxed) == usize::MAX;
            let what = alloc::format!("{name}, step {steps}");
            h.check(&what);
            // What is executable may not be what the file shows later.
            for again in 0..2 {
                h.toy.write_file(again * PAGE_SIZE + 100, &WRPKRU);
                h.check(&what);
                for page in 0..PAGES {
                    h.store(BASE + page * PAGE_SIZE + 500, &WRPKRU);
                    h.runs(BASE + page * PAGE_SIZE);
                }
                h.check(&what);
                let _ = h.guard.protect(BASE, 4 * PAGE_SIZE, prot(2));
                (0..PAGES).for_each(|page| _ = h.runs(BASE + page * PAGE_SIZE));
                h.check(&what);
            }
            if !failed {
                assert!(result.is_ok() || *name == "patched", "{what}: {result:?}");
                break;
            }
        }
    }
}

#[test]
fn a_program_that_tries_everything() {
    for stream in 1..random::rounds(40) {
        let h = hostile();
        let mut next = random::numbers(random::given().unwrap_or(0), stream);
        for step in 0..400 {
            // In every other run some step or other fails, now and then.
            if stream % 2 == 0 && next(4) == 0 {
                h.toy.steps.store(next(5) as usize, Ordering::Relaxed);
            }
            let at = BASE + next(PAGES as u64) as usize * PAGE_SIZE;
            let len = (1 + next(3) as usize) * PAGE_SIZE;
            let len = len.min(BASE + PAGES * PAGE_SIZE - at);
            let to = BASE + (PAGES + next(PAGES as u64 - 3) as usize) * PAGE_SIZE;
            let what = next(13);
            let _ = match what {
                0 => h.guard.map(at, len, prot(next(4)), &Backing::Anon),
                1 => {
                    let (shared, frozen) = (next(4) == 0, false);
                    h.guard.map(at, len, prot(next(4)), &Backing::Object { object: Arc::new(File), offset: 0, shared, frozen })
                }
                2 => h.guard.unmap(at, len),
                3 => h.guard.remap(at, len, to, len),
                4 => h.guard.remap(to, len, at, len),
                5 => h.guard.remap_keep(at, len, to),
                6 => h.guard.advise(at, len, MADV_DONTNEED),
                7 => {
                    let place = next((PAGES * PAGE_SIZE) as u64 - 3) as usize;
                    h.toy.write_file(place, &WRPKRU);
                    Ok(())
                }
                8 | 9 => {
                    // Often at the end of a page, and often only a part.
                    let place = at + [0, PAGE_SIZE - 1, PAGE_SIZE - 2, 2000][next(4) as usize];
                    let from = next(3) as usize;
                    h.store(place, &WRPKRU[from..]);
                    Ok(())
                }
                10 => h.guard.protect(at, len, prot(next(4))),
                11 => {
                    let place = at + [0, PAGE_SIZE - 1, PAGE_SIZE - 2, 2000][next(4) as usize];
                    let from = next(3) as usize;
                    let mut old = [0; 3];
                    h.toy.copy_in_partial(&mut old[from..], place);
                    h.guard.patch(place, &old[from..], &WRPKRU[from..])
                }
                _ => {
                    h.runs(at);
                    h.runs(to);
                    Ok(())
                }
            };
            h.check(&alloc::format!("stream {stream} step {step} kind {what}"));
        }
    }
}

#[test]
fn what_one_kernels_guards_have_done_is_in_no_others_report() {
    let (one, other) = (hostile(), hostile());
    one.guard.map(BASE, PAGE_SIZE, prot(3), &Backing::Anon).unwrap();
    assert!(one.runs(BASE));
    assert!(one.toy.common.report().contains("made executable 1 times"), "{}", one.toy.common.report());
    assert_eq!(other.toy.common.report(), "");
}
