//! The calls on address spaces, over a machine that only remembers what it was asked.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

extern crate std;

use janua_abi::linux::mman::*;
use janua_abi::linux::{Errno, Result};
use janua_port::space::Bounds;
use janua_port::{Backing, Prot, Space};
use janua_rt::Mutex;

use super::*;
use crate::random;

/// Pages that are mapped, with their rights.
#[derive(Default)]
struct Pages(Mutex<BTreeMap<usize, Prot>>);

const LOW: usize = 0x1_0000;
const HIGH: usize = 0x100_0000;
const HOLE: (usize, usize) = (0x80_0000, 0x90_0000);

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
            *self.0.lock().get_mut(&page).ok_or(Errno::ENOMEM)? = prot;
        }
        Ok(())
    }
    fn remap(&self, old: usize, old_len: usize, new: usize, new_len: usize) -> Result<()> {
        let prot = self.0.lock().get(&old).copied().ok_or(Errno::EFAULT)?;
        self.unmap(old, old_len)?;
        self.map(new, new_len, prot, &Backing::Anon)
    }
    fn remap_keep(&self, old: usize, len: usize, new: usize) -> Result<()> {
        let prot = self.0.lock().get(&old).copied().ok_or(Errno::EFAULT)?;
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

const RW: Prot = Prot { read: true, write: true, exec: false };
const R: Prot = Prot { read: true, write: false, exec: false };
const ANON: u32 = MAP_PRIVATE | MAP_ANONYMOUS;

fn space() -> (Mm, Arc<Pages>) {
    let pages = Arc::new(Pages::default());
    (Mm::new(pages.clone()), pages)
}

fn map(mm: &Mm, addr: usize, len: usize, flags: u32) -> Result<usize> {
    mm.map(MapRequest { addr, len, prot: RW, flags, file: None, offset: 0 }, &Limits::NONE)
}

/// The list and the machine agree page by page.
fn check(mm: &Mm, pages: &Pages) {
    let mut listed = BTreeMap::new();
    for region in mm.regions() {
        listed.extend((region.start..region.end).step_by(PAGE_SIZE).map(|page| (page, region.flags.prot())));
    }
    let real = pages.0.lock().clone();
    assert_eq!(listed, real);
}

#[test]
fn placing() {
    let (mm, pages) = space();
    assert_eq!(map(&mm, 0, 0, ANON), Err(Errno::EINVAL));
    assert_eq!(map(&mm, 0, usize::MAX, ANON), Err(Errno::ENOMEM));
    let top = map(&mm, 0, 0x3000, ANON).unwrap();
    assert_eq!(top, HIGH - 0x3000);
    // A hint is honoured when it is free, and otherwise ignored; without FIXED nothing is replaced.
    assert_eq!(map(&mm, 0x2_0000, 0x1000, ANON), Ok(0x2_0000));
    assert_eq!(map(&mm, 0x2_0000, 0x1000, ANON), Ok(top - 0x1000));
    assert_eq!(map(&mm, 0x2_0000, 0x1000, ANON | MAP_FIXED_NOREPLACE), Err(Errno::EEXIST));
    assert_eq!(map(&mm, 0x2_0000, 0x1000, ANON | MAP_FIXED), Ok(0x2_0000));
    // A guest can map nothing in the kernel's part.
    assert_eq!(map(&mm, HOLE.0 - 0x1000, 0x2000, ANON | MAP_FIXED), Err(Errno::ENOMEM));
    let below = map(&mm, 0, 0x71_0000, ANON).unwrap();
    assert!(below + 0x71_0000 <= HOLE.0);
    assert_eq!(map(&mm, 0, 0x71_0000, ANON), Err(Errno::ENOMEM));
    check(&mm, &pages);
}

#[test]
fn unmap_and_protect() {
    let (mm, pages) = space();
    let at = map(&mm, 0, 0x6000, ANON).unwrap();
    mm.unmap(at + 0x2000, 0x1000).unwrap();
    assert_eq!(mm.protect(at, 0x6000, R, false, &Limits::NONE), Err(Errno::ENOMEM));
    // What is before the hole has changed.
    assert_eq!(mm.region_of(at).map(|(_, vma)| vma.flags.prot()), Some(R));
    assert_eq!(mm.region_of(at + 0x3000).map(|(_, vma)| vma.flags.prot()), Some(RW));
    mm.protect(at + 0x4000, 0x1000, R, false, &Limits::NONE).unwrap();
    check(&mm, &pages);
    mm.unmap(LOW, HIGH - LOW).unwrap();
    assert!(mm.regions().is_empty());
    check(&mm, &pages);
}

#[test]
fn break_moves() {
    let (mm, pages) = space();
    mm.set_brk_start(0x4_0000);
    assert_eq!(mm.brk(0, &Limits::NONE), 0x4_0000);
    assert_eq!(mm.brk(0x4_2345, &Limits::NONE), 0x4_2345);
    let limits = Limits { data: 0x3000, ..Limits::NONE };
    assert_eq!(mm.brk(0x4_4000, &limits), 0x4_2345);
    map(&mm, 0x4_5000, 0x1000, ANON | MAP_FIXED).unwrap();
    // One page stays free before the next mapping.
    assert_eq!(mm.brk(0x4_5000, &Limits::NONE), 0x4_2345);
    assert_eq!(mm.brk(0x4_4000, &Limits::NONE), 0x4_4000);
    assert_eq!(mm.brk(0x4_0000, &Limits::NONE), 0x4_0000);
    check(&mm, &pages);
}

#[test]
fn remap() {
    let (mm, pages) = space();
    let at = map(&mm, 0x10_0000, 0x4000, ANON | MAP_FIXED).unwrap();
    let go =
        |old, old_len, new_len, flags, new| mm.remap(RemapRequest { old, old_len, new_len, flags, new }, &Limits::NONE, NEVER);
    assert_eq!(go(at, 0x4000, 0x2000, 0, 0), Ok(at));
    assert_eq!(go(at, 0x2000, 0x3000, 0, 0), Ok(at));
    map(&mm, at + 0x4000, 0x1000, ANON | MAP_FIXED).unwrap();
    assert_eq!(go(at, 0x3000, 0x8000, 0, 0), Err(Errno::ENOMEM));
    let moved = go(at, 0x3000, 0x8000, MREMAP_MAYMOVE, 0).unwrap();
    assert!(moved != at && mm.region_of(at).is_none());
    assert_eq!(go(moved, 0x8000, 0x8000, MREMAP_MAYMOVE | MREMAP_FIXED, moved + 0x1000), Err(Errno::EINVAL));
    assert_eq!(go(moved, 0x8000, 0x8000, MREMAP_MAYMOVE | MREMAP_FIXED, 0x20_0000), Ok(0x20_0000));
    assert_eq!(go(0x20_0000, 0, 0x1000, MREMAP_MAYMOVE, 0), Err(Errno::EINVAL));
    assert_eq!(go(0x50_0000, 0x1000, 0x1000, MREMAP_MAYMOVE, 0), Err(Errno::EFAULT));
    check(&mm, &pages);
}

#[test]
fn limits_and_locks() {
    let (mm, pages) = space();
    let limits = Limits { address_space: 0x4000, memlock: 0x1000, may_lock: false, ..Limits::NONE };
    let request = |len, flags| MapRequest { addr: 0, len, prot: RW, flags, file: None, offset: 0 };
    let at = mm.map(request(0x3000, ANON), &limits).unwrap();
    assert_eq!(mm.map(request(0x2000, ANON), &limits), Err(Errno::ENOMEM));
    assert_eq!(mm.map(request(0x1000, ANON | MAP_LOCKED), &limits).map(|_| ()), Ok(()));
    assert_eq!(mm.lock(at, 0x1000, false, &limits, NEVER), Err(Errno::ENOMEM));
    mm.unlock_all();
    mm.lock(at, 1, false, &limits, NEVER).unwrap();
    assert_eq!(mm.sizes().locked, 0x1000);
    check(&mm, &pages);
}

#[test]
fn a_kill_ends_a_long_look_at_what_is_resident() {
    let (mm, _) = space();
    let at = map(&mm, 0, 0x40_0000, ANON).unwrap();
    let seen = |killed: Killed<'_>| {
        let mut pages = 0;
        let result = mm.resident(at, 0x40_0000, killed, |part| {
            pages += part.len();
            Ok(())
        });
        (result, pages)
    };
    assert_eq!(seen(NEVER), (Ok(()), 0x400));
    assert_eq!(seen(&|| true), (Err(Errno::EINTR), 0x200));
}

#[test]
fn keys_and_forks() {
    let (mm, _) = space();
    let private = map(&mm, 0, 0x1000, ANON).unwrap();
    let shared = map(&mm, 0, 0x2000, MAP_SHARED | MAP_ANONYMOUS).unwrap();
    let child = mm.fork_copy(&mm.still(1), Arc::new(Pages::default()));
    let keys = |addr| (mm.futex_key(addr, false), child.futex_key(addr, false));
    let (ours, theirs) = keys(shared + 0x1004);
    assert!(ours.is_ok() && ours == theirs);
    let (ours, theirs) = keys(private);
    assert!(ours != theirs);
    assert_eq!(mm.futex_key(0x3_0000, false), Err(Errno::EFAULT));
    assert_eq!(mm.futex_key(private, true), Ok(FutexKey::Private { mm: mm.id, addr: private }));
}

/// A stack waits to grow as long as the mappings are somebody else's; a copy, which may hold what that one waits for, does not.
#[test]
fn a_program_waits_to_grow_and_a_copy_does_not() {
    let (mm, pages) = space();
    let top = map(&mm, 0x20_0000, 0x1000, ANON | MAP_GROWSDOWN).unwrap();
    let still = mm.still(1);
    std::thread::scope(|scope| {
        let grown = scope.spawn(|| mm.grow_down(top - 1, &Limits::NONE));
        // Meanwhile the other one has looked for the lock as often as a copy does.
        assert!((0..20).all(|_| !mm.grow_down_for_copy(top - 1, &Limits::NONE, 2)));
        assert!(!mm.grow_down_for_copy(top - 1, &Limits::NONE, 1), "in the middle of its own fork");
        drop(still);
        assert!(grown.join().unwrap());
    });
    assert!(mm.grow_down_for_copy(top - PAGE_SIZE - 1, &Limits::NONE, 2));
    check(&mm, &pages);
}

/// Random calls: whatever they return, list and machine agree and nothing panics.
#[test]
fn random_calls() {
    (0..random::rounds(1)).for_each(call_at_random);
}

fn call_at_random(stream: u64) {
    let (mm, pages) = space();
    let mut random = random::numbers(random::given().unwrap_or(0), stream);
    let mut next = |bound: usize| random(bound as u64) as usize;
    let mut seen = Vec::new();
    for step in 0..2000 {
        let addr = LOW + next(0x200) * PAGE_SIZE;
        let len = (1 + next(16)) * PAGE_SIZE;
        let result = match next(5) {
            0 => map(&mm, addr, len, ANON | MAP_FIXED).map(|_| ()),
            1 => map(&mm, addr, len, ANON).map(|_| ()),
            2 => mm.unmap(addr, len),
            3 => mm.protect(addr, len, if next(2) == 0 { R } else { RW }, false, &Limits::NONE),
            _ => {
                let flags = [0, MREMAP_MAYMOVE, MREMAP_MAYMOVE | MREMAP_FIXED][next(3)];
                let request = RemapRequest {
                    old: addr,
                    old_len: len,
                    new_len: (1 + next(16)) * PAGE_SIZE,
                    flags,
                    new: LOW + next(0x200) * PAGE_SIZE,
                };
                mm.remap(request, &Limits::NONE, NEVER).map(|_| ())
            }
        };
        seen.push(result.is_ok());
        if step % 16 == 0 {
            check(&mm, &pages);
        }
    }
    check(&mm, &pages);
    assert!(seen.contains(&true) && seen.contains(&false));
}
