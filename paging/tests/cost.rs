//! What a change of a few mappings or pages costs, whatever else there is: counted in allocations, which a tree that is built anew needs for all it holds.

extern crate alloc;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use janua_paging::{AtFork, Behind, Entry, Frames, Object, PAGE, PageFrame, Space, Table, table};
use janua_port::Prot;

#[allow(dead_code, reason = "the other tests drive all of it")]
#[path = "../src/world.rs"]
mod world;

use world::{Map, Memory};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's, counted by thread.
struct Counting;

// SAFETY: all of it is the system's allocator; the count is a thread's own, and needs no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller has promised.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller has promised.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of something.
fn allocations(what: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    what();
    ALLOCATIONS.with(Cell::get) - before
}

const RIGHTS: [Prot; 2] = [Prot { read: true, write: true, exec: false }, Prot { read: true, write: false, exec: false }];
const A: usize = 0x10000;
const MANY: usize = 20_000;
/// More than a few nodes of a tree, and far from a node for each ten of [`MANY`].
const FEW: usize = 24;

#[test]
fn a_mapping_does_not_pay_for_the_others() {
    let space: Arc<Space<Memory, Map>> = Space::new(Memory::new(1), Map::default());
    let map = |at: usize, prot| space.map(A + at * PAGE, A + (at + 1) * PAGE, prot, Behind::Zero).unwrap();
    (0..MANY).for_each(|at| map(at, RIGHTS[at % 2]));
    let middle = MANY / 2;
    let cost = allocations(|| space.unmap(A + middle * PAGE, A + (middle + 1) * PAGE));
    assert!(cost < FEW, "munmap: {cost} allocations");
    let cost = allocations(|| map(middle, RIGHTS[middle % 2]));
    assert!(cost < FEW, "mmap: {cost} allocations");
    let (old, new) = (A + middle * PAGE, A + 2 * MANY * PAGE);
    let cost = allocations(|| space.remap(old, PAGE, new, 2 * PAGE, false).unwrap());
    assert!(cost < FEW, "mremap: {cost} allocations");
    let cost = allocations(|| space.unmap(A + (MANY + 1) * PAGE, A + (MANY + 2) * PAGE));
    assert!(cost < FEW, "munmap of nothing: {cost} allocations");
    assert_eq!(space.report().len(), MANY);
}

#[test]
fn a_hole_does_not_pay_for_the_other_pages() {
    let object = Object::new(Memory::new(MANY), 0);
    object.allocate(0, (MANY * PAGE) as u64, false).unwrap();
    let cost = allocations(|| object.punch((MANY / 2 * PAGE) as u64, PAGE as u64));
    assert!(cost < FEW, "a punched hole: {cost} allocations");
    let cost = allocations(|| object.truncate(((MANY - 2) * PAGE) as u64).unwrap());
    assert!(cost < FEW, "a page cut off: {cost} allocations");
    assert_eq!(object.pages(), MANY - 3);
}
