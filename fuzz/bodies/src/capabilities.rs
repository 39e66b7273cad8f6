//! Operations on capabilities for physical memory, compared with what the rules say.

#[path = "../../../paging/src/capability/world.rs"]
mod world;

use janua_paging::capability::{ENTRIES, Effect, Kind, Refused, Rights, Set, Slot};

use crate::bytes::Bytes;

pub fn run(input: &[u8]) {
    let mut bytes = Bytes(input);
    let most = [8, 24, 1000][bytes.below(3) as usize];
    // Some six numbers are an operation.
    let steps = input.len() / 6;
    world::World::new(most).run(steps, &mut |bound| bytes.below(bound));
}
