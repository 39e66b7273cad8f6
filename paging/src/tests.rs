//! Spaces and objects over a machine of vectors ([`crate::world`]).

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use janua_abi::linux::Errno;
use janua_abi::linux::mman::MADV_WILLNEED;
use janua_port::Fill;
use janua_port::Prot;
use janua_rt::Mutex;

use crate::world::{Map, Memory};
use crate::{Access, AtFork, Behind, Entry, Object, PAGE, Refused, Space, Table};

impl Space<Memory, Map> {
    fn entry(&self, addr: usize) -> Option<Entry> {
        self.with_table(|table| table.get(addr))
    }
}

const ALL: Prot = Prot { read: true, write: true, exec: false };
const READ: Prot = Prot { read: true, write: false, exec: false };
const A: usize = 0x10000;

fn space(memory: &'static Memory) -> Arc<Space<Memory, Map>> {
    Space::new(memory, Map::default())
}

fn byte(space: &Space<Memory, Map>, addr: usize) -> u8 {
    let mut byte = [0];
    assert_eq!(space.read(addr, &mut byte), 1);
    byte[0]
}

#[test]
fn pages_come_when_they_are_touched_and_go_when_unmapped() {
    let memory = Memory::new(100);
    let space = space(memory);
    space.map(A, A + 8 * PAGE, ALL, Behind::Zero).unwrap();
    assert_eq!(memory.used(), 0);
    assert_eq!(space.write(A + PAGE - 1, b"ab"), 2);
    assert_eq!((memory.used(), byte(&space, A + PAGE)), (2, b'b'));
    space.unmap(A, A + PAGE);
    assert_eq!((memory.used(), space.read(A, &mut [0])), (1, 0));
    drop(space);
    assert_eq!(memory.used(), 0);
}

#[test]
fn a_fork_copies_what_is_written_and_only_that() {
    let memory = Memory::new(100);
    let (parent, child) = (space(memory), space(memory));
    parent.map(A, A + 4 * PAGE, ALL, Behind::Zero).unwrap();
    for page in 0..4 {
        parent.write(A + page * PAGE, b"p");
    }
    parent.fork_into(&child).unwrap();
    assert_eq!(memory.used(), 4);
    child.write(A, b"c");
    assert_eq!((memory.used(), byte(&parent, A), byte(&child, A)), (5, b'p', b'c'));
    parent.write(A + PAGE, b"q");
    assert_eq!((memory.used(), byte(&parent, A + PAGE), byte(&child, A + PAGE)), (6, b'q', b'p'));
    drop(parent);
    // The last user of a page writes it without a copy.
    child.write(A + 2 * PAGE, b"d");
    assert_eq!(memory.used(), 4);
    drop(child);
    assert_eq!(memory.used(), 0);
}

#[test]
fn objects_are_shared_by_those_who_share_them() {
    let memory = Memory::new(100);
    let (one, two) = (space(memory), space(memory));
    let object = Object::new(memory, 3 * PAGE as u64);
    let behind = |shared| Behind::Object { object: object.clone(), page: 1, shared };
    one.map(A, A + 2 * PAGE, ALL, behind(true)).unwrap();
    two.map(A, A + 2 * PAGE, ALL, behind(false)).unwrap();
    one.write(A, b"s");
    assert_eq!(byte(&two, A), b's');
    two.write(A, b"t");
    assert_eq!((byte(&one, A), byte(&two, A)), (b's', b't'));
    let mut read = [0];
    assert_eq!((object.read(PAGE as u64, &mut read), read[0]), (1, b's'));
    object.write(2 * PAGE as u64, b"w").unwrap();
    assert_eq!((byte(&one, A + PAGE), byte(&two, A + PAGE)), (b'w', b'w'));
    object.truncate(2 * PAGE as u64).unwrap();
    assert_eq!(one.fault(A + PAGE, Access::Read), Err(Refused::BeyondEnd));
    assert_eq!(two.fault(A + PAGE, Access::Read), Err(Refused::BeyondEnd));
    drop((one, two, object));
    assert_eq!(memory.used(), 0);
}

/// What brings the pages of an object: each is its number, as often as it is wanted.
struct Disk {
    object: Mutex<Option<Arc<Object<Memory>>>>,
    brought: Mutex<Vec<u64>>,
    /// A page that cannot be read.
    bad: u64,
}

impl Fill for Disk {
    fn fill(&self, page: u64) -> janua_abi::linux::Result<()> {
        if page == self.bad {
            return Err(Errno::EIO);
        }
        self.brought.lock().push(page);
        let object = self.object.lock().clone().unwrap();
        object.write(page * PAGE as u64, &[b'0' + page as u8; PAGE]).map(|_| ())
    }
}

fn disk(memory: &'static Memory, pages: u64) -> (Arc<Disk>, Arc<Object<Memory>>) {
    let object = Object::new(memory, pages * PAGE as u64);
    let disk = Arc::new(Disk { object: Mutex::new(Some(object.clone())), brought: Mutex::default(), bad: pages - 1 });
    let fill: Weak<dyn Fill> = Arc::<Disk>::downgrade(&disk);
    object.set_fill(fill);
    (disk, object)
}

#[test]
fn pages_of_a_file_are_brought_by_who_touches_them_first() {
    let memory = Memory::new(100);
    let (disk, object) = disk(memory, 9);
    let (one, two) = (space(memory), space(memory));
    let behind = |shared| Behind::Object { object: object.clone(), page: 1, shared };
    one.map(A, A + 8 * PAGE, ALL, behind(false)).unwrap();
    two.map(A, A + 8 * PAGE, ALL, behind(true)).unwrap();
    assert_eq!((memory.used(), &disk.brought.lock()[..]), (0, &[][..]));
    let mut here = [0; 8];
    one.residence(A, A + 8 * PAGE, &mut here);
    assert_eq!(here, [0; 8]);
    assert_eq!((byte(&one, A + PAGE), byte(&two, A + PAGE)), (b'2', b'2'));
    // A write to a private mapping copies what was brought; the other, and the object, keep it.
    assert_eq!(one.write(A + 3 * PAGE, b"x"), 1);
    assert_eq!((byte(&one, A + 3 * PAGE), byte(&two, A + 3 * PAGE), byte(&one, A + 3 * PAGE + 1)), (b'x', b'4', b'4'));
    assert_eq!(disk.brought.lock()[..], [2, 4]);
    one.residence(A, A + 8 * PAGE, &mut here);
    assert_eq!(here, [0, 1, 0, 1, 0, 0, 0, 0]);
    // An order of madvise(2) brings the rest but for what cannot be had.
    two.advise(A, A + 8 * PAGE, MADV_WILLNEED).unwrap();
    assert_eq!(disk.brought.lock()[..], [2, 4, 1, 3, 5, 6, 7]);
    assert_eq!(one.fault(A + 7 * PAGE, Access::Read), Err(Refused::Failed));
    assert_eq!(two.write(A + 7 * PAGE - 1, b"ab"), 1, "up to the page that cannot be read");
    // What the object lets go of comes again, but for the private copy.
    object.punch(0, 9 * PAGE as u64);
    assert_eq!((byte(&two, A + 3 * PAGE), byte(&one, A + 3 * PAGE), byte(&one, A + PAGE)), (b'4', b'x', b'2'));
    object.truncate(3 * PAGE as u64).unwrap();
    assert_eq!(one.fault(A + 3 * PAGE, Access::Read), Err(Refused::BeyondEnd));
    *disk.object.lock() = None;
    drop((one, two, object));
    assert_eq!(memory.used(), 0);
}

#[test]
fn stores_through_shared_mappings_are_noted_once_until_asked() {
    let memory = Memory::new(100);
    let (disk, object) = disk(memory, 9);
    let (one, two, alone) = (space(memory), space(memory), space(memory));
    let behind = |shared| Behind::Object { object: object.clone(), page: 1, shared };
    one.map(A, A + 7 * PAGE, ALL, behind(true)).unwrap();
    two.map(A, A + 7 * PAGE, ALL, behind(true)).unwrap();
    alone.map(A, A + 7 * PAGE, ALL, behind(false)).unwrap();
    let stored = || {
        let mut runs = Vec::new();
        object.take_stored(&mut |run| runs.push(run));
        runs
    };
    // What is read, and written to copies or by the object's own means, is nothing stored.
    assert_eq!((byte(&one, A), byte(&two, A), alone.write(A, b"x")), (b'1', b'1', 1));
    object.write(PAGE as u64 + 9, b"w").unwrap();
    assert_eq!(one.entry(A).map(|entry| entry.prot.write), Some(false));
    assert_eq!(stored(), []);
    for page in [0, 1, 4] {
        assert_eq!(one.write(A + page * PAGE, b"s"), 1);
    }
    assert_eq!(two.cmpxchg_u32(A + 5 * PAGE, 0, 1), Ok(0x3636_3636), "an exchange that fails had the right to store");
    assert_eq!(stored(), [1..3, 5..7]);
    // Asking takes the right to write from all that share the pages, but not from copies.
    assert_eq!(one.entry(A).map(|entry| entry.prot), Some(READ));
    assert_eq!(alone.entry(A).map(|entry| entry.prot.write), Some(true));
    assert_eq!(stored(), []);
    assert_eq!((two.write(A, b"t"), one.write(A, b"u"), byte(&two, A)), (1, 1, b'u'));
    // Neither other rights nor another place, nor the end of the mapping make it forgotten; the end of the page does.
    one.protect(A, A + PAGE, READ).unwrap();
    one.remap(A + 4 * PAGE, PAGE, A + 20 * PAGE, PAGE, false).unwrap();
    assert_eq!(one.write(A + 20 * PAGE, b"m"), 1);
    assert_eq!(two.write(A + 6 * PAGE, b"p"), 1);
    object.punch(7 * PAGE as u64, PAGE as u64);
    one.unmap(A, A + 30 * PAGE);
    assert_eq!(stored(), [1..2, 5..6]);
    assert_eq!(two.write(A + 5 * PAGE, b"q"), 1);
    object.truncate(3 * PAGE as u64).unwrap();
    assert_eq!(stored(), []);
    *disk.object.lock() = None;
    drop((one, two, alone, object));
    assert_eq!(memory.used(), 0);
}

#[test]
fn a_touch_gives_entries_to_pages_around_that_are_there() {
    let memory = Memory::new(100);
    let (disk, object) = disk(memory, 40);
    let space = space(memory);
    for page in [1, 2, 17, 18, 19] {
        object.fill(page).unwrap();
    }
    let behind = Behind::Object { object: object.clone(), page: 0, shared: false };
    // The group of the touched page begins before the mapping, whose second page is the object's second.
    space.map(A + PAGE, A + 19 * PAGE, ALL, Behind::Object { object: object.clone(), page: 1, shared: false }).unwrap();
    assert_eq!(byte(&space, A + PAGE), b'1');
    assert_eq!(space.pages().0, 2);
    assert_eq!(space.entry(A + 2 * PAGE).map(|entry| entry.prot), Some(READ));
    assert_eq!(space.write(A + 2 * PAGE, b"w"), 1);
    assert_eq!((byte(&space, A + 2 * PAGE), byte(&space, A + 17 * PAGE)), (b'w', b'A'));
    assert_eq!(space.pages().0, 4, "the last page is behind the mapping's end");
    let other = Space::new(memory, Map::with_room(1));
    other.map(A, A + 40 * PAGE, ALL, behind).unwrap();
    assert_eq!(other.fault(A + PAGE, Access::Read), Ok(()), "no room for others' entries is no fault");
    *disk.object.lock() = None;
    drop((space, other, object));
    assert_eq!(memory.used(), 0);
}

#[test]
fn words_are_read_and_exchanged_in_any_space() {
    let memory = Memory::new(100);
    let (parent, child) = (space(memory), space(memory));
    parent.map(A, A + 2 * PAGE, ALL, Behind::Zero).unwrap();
    parent.protect(A + PAGE, A + 2 * PAGE, READ).unwrap();
    assert_eq!((parent.cmpxchg_u32(A + 8, 0, 7), parent.load_u32(A + 8)), (Ok(0), Ok(7)));
    parent.fork_into(&child).unwrap();
    // Another value leaves the word alone; a copy is the child's own.
    assert_eq!((child.cmpxchg_u32(A + 8, 0, 9), child.cmpxchg_u32(A + 8, 7, 9)), (Ok(7), Ok(7)));
    assert_eq!((parent.load_u32(A + 8), child.load_u32(A + 8)), (Ok(7), Ok(9)));
    assert_eq!((parent.load_u32(A + PAGE), parent.cmpxchg_u32(A + PAGE, 0, 1)), (Ok(0), Err(Refused::Denied)));
    assert_eq!(parent.load_u32(A + 2 * PAGE), Err(Refused::Unmapped));
}

#[test]
fn an_object_whose_file_is_gone_has_no_more_pages() {
    let memory = Memory::new(100);
    let (disk, object) = disk(memory, 4);
    let space = space(memory);
    space.map(A, A + 4 * PAGE, READ, Behind::Object { object: object.clone(), page: 0, shared: true }).unwrap();
    assert_eq!(byte(&space, A), b'0');
    *disk.object.lock() = None;
    drop(disk);
    assert_eq!((byte(&space, A), space.fault(A + PAGE, Access::Read)), (b'0', Err(Refused::Failed)));
}

#[test]
fn clean_pages_of_a_file_can_go_and_come_again() {
    let memory = Memory::new(100);
    let (_disk, object) = disk(memory, 4);
    let space = space(memory);
    space.map(A, A + 4 * PAGE, ALL, Behind::Object { object: object.clone(), page: 0, shared: true }).unwrap();
    assert_eq!((byte(&space, A), byte(&space, A + PAGE)), (b'0', b'1'));
    space.write(A + PAGE, b"x");
    let private = A + 8 * PAGE;
    space.map(private, private + PAGE, READ, Behind::Object { object: object.clone(), page: 0, shared: false }).unwrap();
    assert_eq!(byte(&space, private), b'0');
    let before = object.pages();
    assert_eq!(object.forget_clean(100), before - 1, "all but the one that was stored into");
    assert_eq!((object.resident(0), object.resident(1), object.pages()), (false, true, 1));
    assert_eq!((byte(&space, A), byte(&space, A + PAGE), byte(&space, private)), (b'0', b'x', b'0'));
    object.take_stored(&mut |_| {});
    assert_eq!((object.forget_clean(1), object.forget_clean(0)), (1, 0));
}

#[test]
fn rights_are_what_the_last_word_said() {
    let memory = Memory::new(100);
    let space = space(memory);
    space.map(A, A + 3 * PAGE, ALL, Behind::Zero).unwrap();
    space.write(A + PAGE, b"x");
    space.protect(A + PAGE, A + 2 * PAGE, READ).unwrap();
    assert_eq!(space.fault(A + PAGE, Access::Write), Err(Refused::Denied));
    assert_eq!(space.fault(A + PAGE, Access::Execute), Err(Refused::Denied));
    assert_eq!(space.fault(A, Access::Write), Ok(()));
    space.protect(A + PAGE, A + 2 * PAGE, Prot::default()).unwrap();
    assert_eq!(space.fault(A + PAGE, Access::Read), Err(Refused::Denied));
    space.protect(A, A + 3 * PAGE, ALL).unwrap();
    assert_eq!((byte(&space, A + PAGE), space.write(A + PAGE, b"y")), (b'x', 1));
    assert_eq!(space.fault(A + 3 * PAGE, Access::Read), Err(Refused::Unmapped));
    // From no right to one that implies reading.
    space.protect(A, A + 3 * PAGE, Prot::default()).unwrap();
    space.protect(A, A + 3 * PAGE, Prot { write: true, ..Prot::default() }).unwrap();
    assert_eq!(byte(&space, A + PAGE), b'y');
    assert!(space.entry(A + PAGE).unwrap().prot.read);
}

#[test]
fn moving_takes_the_pages_along() {
    let memory = Memory::new(100);
    let space = space(memory);
    // Two regions that the kernel sees as one.
    space.map(A, A + 2 * PAGE, ALL, Behind::Zero).unwrap();
    space.map(A + 2 * PAGE, A + 4 * PAGE, ALL, Behind::Zero).unwrap();
    for page in 0..4u8 {
        space.write(A + usize::from(page) * PAGE, &[b'0' + page]);
    }
    let b = A + 100 * PAGE;
    space.remap(A, 4 * PAGE, b, 6 * PAGE, false).unwrap();
    assert_eq!(space.fault(A, Access::Read), Err(Refused::Unmapped));
    assert_eq!((byte(&space, b), byte(&space, b + 3 * PAGE), byte(&space, b + 5 * PAGE)), (b'0', b'3', 0));
    space.remap(b, 6 * PAGE, b, PAGE, false).unwrap();
    assert_eq!((byte(&space, b), space.fault(b + PAGE, Access::Read)), (b'0', Err(Refused::Unmapped)));
    space.remap(b, PAGE, A, PAGE, true).unwrap();
    assert_eq!((byte(&space, A), byte(&space, b)), (b'0', 0));
    assert_eq!(space.remap(b + 50 * PAGE, PAGE, A, PAGE, false), Err(janua_abi::linux::Errno::EFAULT));
}

#[test]
fn without_memory_nothing_is_lost() {
    let memory = Memory::new(2);
    let space = space(memory);
    space.map(A, A + 3 * PAGE, ALL, Behind::Zero).unwrap();
    assert_eq!((space.write(A, b"1"), space.write(A + PAGE, b"2")), (1, 1));
    assert_eq!(space.fault(A + 2 * PAGE, Access::Write), Err(Refused::NoMemory));
    space.discard(A, A + PAGE);
    assert_eq!((space.fault(A + 2 * PAGE, Access::Write), byte(&space, A + PAGE)), (Ok(()), b'2'));
    assert_eq!((space.pages(), memory.used()), ((2, 2), 2));
}

#[test]
fn a_fork_leaves_out_and_wipes_what_it_is_asked_to() {
    let memory = Memory::new(100);
    let space = space(memory);
    space.map(A, A + 3 * PAGE, ALL, Behind::Zero).unwrap();
    for page in 0..3 {
        assert_eq!(space.write(A + page * PAGE, &[7]), 1);
    }
    space.set_at_fork(A + PAGE, A + 2 * PAGE, AtFork::Wiped);
    space.set_at_fork(A + 2 * PAGE, A + 3 * PAGE, AtFork::Absent);
    let child = self::space(memory);
    space.fork_into(&child).unwrap();
    assert_eq!((byte(&child, A), byte(&child, A + PAGE)), (7, 0));
    assert_eq!(child.fault(A + 2 * PAGE, Access::Read), Err(Refused::Unmapped));
    assert_eq!(byte(&space, A + 2 * PAGE), 7);
    // The child's own child finds the same.
    assert_eq!(child.write(A + PAGE, &[8]), 1);
    let other = self::space(memory);
    child.fork_into(&other).unwrap();
    assert_eq!(byte(&other, A + PAGE), 0);
    space.set_at_fork(A + PAGE, A + 2 * PAGE, AtFork::Copied);
    let last = self::space(memory);
    space.fork_into(&last).unwrap();
    assert_eq!(byte(&last, A + PAGE), 7);
}

#[test]
fn a_report_tells_own_pages_from_shared_ones() {
    let memory = Memory::new(100);
    let space = space(memory);
    let object = Object::new(memory, 2 * PAGE as u64);
    space.map(A, A + 2 * PAGE, ALL, Behind::Zero).unwrap();
    space.map(A + 2 * PAGE, A + 4 * PAGE, ALL, Behind::Object { object, page: 0, shared: false }).unwrap();
    assert_eq!(space.write(A, &[1; 2 * PAGE]), 2 * PAGE);
    assert_eq!(space.write(A + 2 * PAGE, &[1]), 1);
    assert_eq!(byte(&space, A + 3 * PAGE), 0);
    let reports = |space: &Space<Memory, Map>| space.report().into_iter().map(|(_, report)| report).collect::<Vec<_>>();
    let [zero, mapped] = reports(&space)[..] else { panic!("two regions") };
    assert_eq!((zero.own, zero.copied_on_write, zero.pages(), zero.proportional), (2, 0, 2, 8192));
    assert_eq!((mapped.own, mapped.object, mapped.pages()), (1, 1, 2));
    let child = self::space(memory);
    space.fork_into(&child).unwrap();
    assert_eq!(space.write(A, &[2]), 1);
    let [zero, _] = reports(&space)[..] else { panic!("two regions") };
    assert_eq!((zero.own, zero.copied_on_write, zero.proportional), (1, 1, 4096 + 2048));
}

#[test]
fn advice_and_ranges_of_objects() {
    use janua_abi::linux::Errno;
    use janua_abi::linux::mman::*;
    const FAR: usize = 0x10_0000;
    let memory = Memory::new(6);
    let space = space(memory);
    space.map(FAR, FAR + 8 * PAGE, ALL, Behind::Zero).unwrap();
    space.advise(FAR, FAR + 2 * PAGE, MADV_POPULATE_WRITE).unwrap();
    assert_eq!(memory.used(), 2);
    space.advise(FAR, FAR + PAGE, MADV_DONTNEED).unwrap();
    assert_eq!(memory.used(), 1);
    assert_eq!(space.advise(FAR, FAR + PAGE, MADV_REMOVE), Err(Errno::EINVAL));
    assert_eq!(space.advise(FAR, FAR + 9 * PAGE, MADV_POPULATE_READ).err(), Some(Errno::ENOMEM));
    space.protect(FAR, FAR + PAGE, Prot { read: true, write: false, exec: false }).unwrap();
    assert_eq!(space.advise(FAR, FAR + PAGE, MADV_POPULATE_WRITE), Err(Errno::EFAULT));
    space.unmap(FAR, FAR + 8 * PAGE);
    assert_eq!(memory.used(), 0);

    let object = Object::new(memory, 4 * PAGE as u64);
    object.fallocate(1, PAGE as u64, 2 * PAGE as u64).unwrap();
    assert_eq!((object.seek(0, false), object.seek(PAGE as u64, true)), (Ok(PAGE as u64), Ok(3 * PAGE as u64)));
    object.fallocate(3, PAGE as u64, PAGE as u64).unwrap();
    assert_eq!((object.seek(0, false), memory.used()), (Ok(2 * PAGE as u64), 1));
    assert_eq!(object.seek(4 * PAGE as u64, false), Err(Errno::ENXIO));
    object.fallocate(0, 4 * PAGE as u64, 1).unwrap();
    assert_eq!(object.size(), 4 * PAGE as u64 + 1);
    assert_eq!(object.fallocate(0, u64::MAX, 1), Err(Errno::EFBIG));
    assert_eq!(object.fallocate(8, 0, 1), Err(Errno::EOPNOTSUPP));
}

#[test]
fn what_is_brought_is_there_for_all_that_is_granted() {
    let memory = Memory::new(100);
    let space = space(memory);
    let object = Object::new(memory, 2 * PAGE as u64);
    space.map(A, A + 2 * PAGE, ALL, Behind::Zero).unwrap();
    space.map(A + 2 * PAGE, A + 4 * PAGE, ALL, Behind::Object { object, page: 0, shared: false }).unwrap();
    space.map(A + 4 * PAGE, A + 5 * PAGE, READ, Behind::Zero).unwrap();
    space.map(A + 5 * PAGE, A + 6 * PAGE, Prot::default(), Behind::Zero).unwrap();
    space.bring_all(A + PAGE, A + 6 * PAGE).unwrap();
    let rights = |page| space.entry(A + page * PAGE).map(|entry| entry.prot);
    assert_eq!([0, 1, 2, 3, 4, 5].map(rights), [None, Some(ALL), Some(ALL), Some(ALL), Some(READ), None]);
    // A right that is added later is not there before the next time.
    space.protect(A + 4 * PAGE, A + 6 * PAGE, ALL).unwrap();
    assert_eq!([4, 5].map(rights), [Some(READ), None]);
    space.bring_all(A + 4 * PAGE, A + 6 * PAGE).unwrap();
    assert_eq!([4, 5].map(rights), [Some(ALL), Some(ALL)]);
    let small = Memory::new(3);
    let space = self::space(small);
    space.map(A, A + 4 * PAGE, ALL, Behind::Zero).unwrap();
    assert_eq!(space.bring_all(A, A + 4 * PAGE), Err(Errno::ENOMEM));
}
