//! Trees of tables in vectors: they hold what a map of entries holds, and leave no table behind.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;

use janua_port::Prot;
use janua_rt::Mutex;

use crate::format::Format;
use crate::format::srmmu::Srmmu;
use crate::format::x86_64::X86_64;
use crate::tree::{Nodes, Tree};
use crate::world::{Map, Tried};
use crate::{Entry, PAGE, PageFrame, Table, random};

/// Tables, the number `n` at physical address `(n + 1) * PAGE`.
pub struct Vectors<X: Format> {
    tables: Arc<Mutex<Vec<Option<Vec<X::Word>>>>>,
    /// How many there may be.
    most: usize,
    format: PhantomData<X>,
}

pub type Walked<X> = Tree<X, Vectors<X>>;

/// Entries of the root that are user space's: the rest must stay as they were.
const USERS: usize = 64;
const ROOT: usize = PAGE;

impl<X: Bounded> Vectors<X> {
    fn new(most: usize) -> Vectors<X> {
        let mut vectors = Vectors { tables: Arc::default(), most, format: PhantomData };
        assert_eq!(vectors.make(), Some(ROOT));
        let kernels = X::branch(0x4000_0000);
        vectors.tables.lock()[0].iter_mut().flat_map(|root| &mut root[USERS..]).for_each(|word| *word = kernels);
        vectors
    }
}

/// A format whose user part is known.
pub trait Bounded: Format {
    const END: usize = USERS << Self::LEVELS[0].shift;
}

impl Bounded for X86_64 {}
impl Bounded for Srmmu {}

impl<X: Bounded> Nodes<X> for Vectors<X> {
    const END: usize = X::END;

    fn load(&self, table: usize, index: usize) -> X::Word {
        self.tables.lock()[table / PAGE - 1].as_ref().expect("a table that is gone")[index]
    }
    fn store(&mut self, table: usize, index: usize, word: X::Word) {
        assert!(table != ROOT || index < USERS, "an entry of the kernel's");
        self.tables.lock()[table / PAGE - 1].as_mut().expect("a table that is gone")[index] = word;
    }
    fn make(&mut self) -> Option<usize> {
        let mut tables = self.tables.lock();
        // A table of the largest kind; a smaller one uses the beginning.
        let entries = X::LEVELS.iter().map(|level| level.entries).max()?;
        (tables.len() < self.most).then(|| tables.push(Some(vec![X::Word::default(); entries])))?;
        Some(tables.len() * PAGE)
    }
    fn free(&mut self, table: usize) {
        assert!(self.tables.lock()[table / PAGE - 1].take().is_some(), "a table is freed twice");
    }
    fn flush(&mut self, _start: usize, _end: usize) {}
}

impl<X: Bounded> Tried for Walked<X> {
    /// Half of the pages are below an entry of the root, half below the next.
    const BASE: usize = (3 << X::LEVELS[0].shift) - 12 * PAGE;
    fn with_room(all: bool) -> Walked<X> {
        Tree::new(ROOT, Vectors::new(if all { usize::MAX } else { X::LEVELS.len() }))
    }
}

fn entry(next: &mut impl FnMut(u64) -> u64) -> Entry {
    let [read, write, exec] = [next(2) > 0, next(2) > 0, next(2) > 0];
    // As a space writes them: any right lets a page be read.
    let prot = Prot { read: read || write || exec, write, exec };
    Entry { frame: PageFrame(next(1 << 20) as usize), prot }
}

/// An address near a border of entries of some level, or anywhere.
fn place<X: Bounded>(next: &mut impl FnMut(u64) -> u64) -> usize {
    let level = X::LEVELS[next(X::LEVELS.len() as u64) as usize];
    let border = level.span() * next((X::END / level.span()) as u64).min(next(4) * 7) as usize;
    border.saturating_add_signed((next(7) as isize - 3) * PAGE as isize).min(X::END - PAGE)
}

fn hold_what_a_map_holds<X: Bounded>() {
    for stream in 0..random::rounds(40) {
        let mut next = random::numbers(random::given().unwrap_or(0), stream);
        let nodes = Vectors::<X>::new(if stream % 4 == 0 { 12 } else { usize::MAX });
        let tables = nodes.tables.clone();
        let (mut tree, mut map) = (Tree::new(ROOT, nodes), Map::default());
        for step in 0..2000 {
            let addr = place::<X>(&mut next);
            match next(4) {
                0 | 1 => {
                    let entry = entry(&mut next);
                    match tree.set(addr, entry) {
                        Ok(()) => map.set(addr, entry).unwrap(),
                        Err(_) => assert!(tables.lock().len() == 12 && map.get(addr).is_none(), "step {step}: {addr:#x}"),
                    }
                }
                what => {
                    let end = [place::<X>(&mut next), addr + PAGE, X::END, usize::MAX & !(PAGE - 1)][next(4) as usize];
                    assert_eq!(tree.next(addr, end), map.next(addr, end), "step {step}: next {addr:#x} {end:#x}");
                    if what == 2 {
                        assert_eq!(tree.take(addr, end), map.take(addr, end), "step {step}: take {addr:#x} {end:#x}");
                    }
                }
            }
            assert_eq!(tree.get(addr), map.get(addr), "step {step}: {addr:#x}");
        }
        let mut all = BTreeMap::new();
        let mut at = 0;
        while let Some((addr, entry)) = tree.next(at, X::END) {
            assert_eq!(map.take(addr, addr + PAGE), Some((addr, entry)));
            all.insert(addr, entry);
            at = addr + PAGE;
        }
        assert_eq!(map.next(0, X::END), None, "an entry was passed over");
        drop(tree);
        assert!(tables.lock().iter().all(Option::is_none), "tables are left");
    }
}

#[test]
fn trees_of_x86_64_hold_what_a_map_holds() {
    hold_what_a_map_holds::<X86_64>();
}

#[test]
fn trees_of_the_srmmu_hold_what_a_map_holds() {
    hold_what_a_map_holds::<Srmmu>();
}

#[test]
fn entries_are_what_the_manuals_say() {
    let entry = |read, write, exec| Entry { frame: PageFrame(0x40123), prot: Prot { read, write, exec } };
    // Present, user; not executable above.
    assert_eq!(X86_64::leaf(entry(true, false, false)), 0x8000_0000_4012_3005);
    assert_eq!(X86_64::leaf(entry(true, true, true)), 0x4012_3007);
    assert_eq!(X86_64::leaf(entry(false, false, false)) & 1, 0);
    assert_eq!(X86_64::branch(0x5000), 0x5007);
    // Page number, cached, access, type 2: user's rights are read, read and write, read and execute, all, none.
    let rights = [(true, false, false), (true, true, false), (true, false, true), (true, true, true), (false, false, false)];
    let words = rights.map(|(read, write, exec)| Srmmu::leaf(entry(read, write, exec)));
    assert_eq!(words, [0x0401_2382, 0x0401_2386, 0x0401_238a, 0x0401_238e, 0x0401_239e]);
    assert_eq!((Srmmu::branch(0x4012_3000), Srmmu::table(0x0401_2301)), (0x0401_2301, Some(0x4012_3000)));
    assert_eq!((Srmmu::table(0), Srmmu::entry(0), X86_64::entry(0)), (None, None, None));
}
