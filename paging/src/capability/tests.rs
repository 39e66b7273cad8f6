use alloc::vec;

use super::world::World;
use super::*;
use crate::random;

fn ignore(_: Effect) {}

#[test]
fn random_operations_come_to_what_the_rules_say() {
    let mut done = [0; 9];
    for stream in 0..random::rounds(60) {
        let mut next = random::numbers(random::given().unwrap_or(0), stream);
        // Sets that fill up, and one that does not.
        let mut world = World::new([8, 24, 1000][stream as usize % 3]);
        world.run(400, &mut next);
        done.iter_mut().zip(world.done).for_each(|(sum, done)| *sum += done);
    }
    assert!(done.iter().all(|count| *count > 20), "not everything was tried: {done:?}");
}

#[test]
fn what_overlaps_a_descendant_is_refused_until_that_is_gone() {
    let mut set = Set::new(100);
    let ram = set.add(Kind::Ram, 100, 10).unwrap();
    assert_eq!(set.add(Kind::Ram, 109, 1), Err(Refused::Taken));
    let parts = set.retype(ram, 2, Kind::Ram, 2, 2, &mut ignore).unwrap();
    assert_eq!(set.look(parts[1]), Ok((Kind::Ram, 104, 2)));
    let mut effects = vec![];
    let frame = set.retype(parts[1], 1, Kind::Frame, 1, 1, &mut |effect| effects.push(effect)).unwrap()[0];
    assert_eq!(effects, [Effect::Zero { first: 105, frames: 1 }]);
    for offset in [1, 2, 5] {
        assert_eq!(set.retype(ram, offset, Kind::Table(1), 1, 2, &mut ignore), Err(Refused::Taken), "{offset}");
    }
    // The part that the frame was made of is gone for who had it, and still in the way.
    set.delete(parts[1], &mut ignore).unwrap();
    assert_eq!(set.retype(ram, 4, Kind::Frame, 1, 1, &mut ignore), Err(Refused::Taken));
    set.delete(frame, &mut ignore).unwrap();
    assert_eq!(set.retype(ram, 4, Kind::Frame, 2, 1, &mut ignore).map(|slots| slots.len()), Ok(1));
}

#[test]
fn revoking_takes_everything_back_and_what_it_maps() {
    let mut set = Set::new(100);
    let ram = set.add(Kind::Ram, 0, 8).unwrap();
    let tables = set.retype(ram, 0, Kind::Table(2), 1, 1, &mut ignore).unwrap();
    let leaves = set.retype(ram, 1, Kind::Table(1), 1, 1, &mut ignore).unwrap();
    let frame = set.retype(ram, 4, Kind::Frame, 4, 1, &mut ignore).unwrap()[0];
    let read_only = set.copy(frame, Rights::READ).unwrap();
    assert_eq!(set.copy(read_only, Rights::WRITE), Err(Refused::Rights));
    assert_eq!(set.map(tables[0], 7, leaves[0], 0, Rights::ALL), Ok(1));
    assert_eq!(set.map(leaves[0], 3, read_only, 2, Rights::WRITE), Err(Refused::Rights));
    assert_eq!(set.map(leaves[0], 3, read_only, 2, Rights::READ), Ok(6));
    assert_eq!(set.map(leaves[0], 3, frame, 0, Rights::READ), Err(Refused::Taken));
    assert_eq!(set.map(tables[0], 8, frame, 0, Rights::READ), Err(Refused::Range), "an entry there maps 512 pages");
    assert_eq!(set.map(leaves[0], 4, tables[0], 0, Rights::ALL), Err(Refused::Kind));
    let mut effects = vec![];
    set.revoke(frame, &mut |effect| effects.push(effect)).unwrap();
    assert_eq!(effects, [Effect::Clear { table: 1, index: 3 }], "what its copy mapped");
    assert_eq!((set.look(read_only), set.look(frame)), (Err(Refused::Slot), Ok((Kind::Frame, 4, 4))));
    effects.clear();
    set.revoke(ram, &mut |effect| effects.push(effect)).unwrap();
    assert_eq!((effects.as_slice(), set.len()), (&[Effect::Clear { table: 0, index: 7 }][..], 1));
    effects.clear();
    set.delete(ram, &mut |effect| effects.push(effect)).unwrap();
    assert_eq!(effects, [Effect::Free { first: 0, frames: 8 }]);
    assert!(set.is_empty() && set.add(Kind::DeviceFrame, 7, 1).is_ok());
}

#[test]
fn numbers_without_sense_are_refused() {
    let mut set = Set::new(4);
    assert_eq!(set.add(Kind::Ram, usize::MAX, 2), Err(Refused::Range));
    assert_eq!(set.add(Kind::Frame, 0, 1), Err(Refused::Kind));
    let ram = set.add(Kind::Ram, 0, 1000).unwrap();
    for (offset, frames, count) in
        [(usize::MAX, 1, 1), (0, usize::MAX, 2), (1, usize::MAX, 1), (0, 0, 1), (0, 1, 0), (999, 1, 2)]
    {
        assert_eq!(set.retype(ram, offset, Kind::Frame, frames, count, &mut ignore), Err(Refused::Range));
    }
    assert_eq!(set.retype(ram, 0, Kind::Frame, 1, 4, &mut ignore), Err(Refused::Full));
    assert_eq!(set.retype(ram, 0, Kind::Ram, 1000, 1, &mut ignore), Err(Refused::Range), "as large as all of it");
    let frame = set.retype(ram, 0, Kind::Frame, 1, 1, &mut ignore).unwrap()[0];
    let table = set.retype(ram, 1, Kind::Table(1), 1, 1, &mut ignore).unwrap()[0];
    assert_eq!(set.map(table, ENTRIES, frame, 0, Rights::READ), Err(Refused::Range));
    assert_eq!(set.map(table, 0, frame, usize::MAX, Rights::READ), Err(Refused::Range));
    assert_eq!(set.delete(77, &mut ignore), Err(Refused::Slot));
    // Who makes smaller and smaller ones and gives the larger away comes to the set's end, too.
    let mut part = ram;
    let mut set = Set::new(4);
    part = set.add(Kind::Ram, 0, 1000).map_or(part, |slot| slot);
    let mut made = 0;
    while let Ok(slots) = set.retype(part, 0, Kind::Ram, 999 - made, 1, &mut ignore) {
        set.delete(part, &mut ignore).unwrap();
        (part, made) = (slots[0], made + 1);
    }
    assert_eq!(made, 3);
}
