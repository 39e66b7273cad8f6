//! Operations on paged spaces and memory objects, compared with what pages must hold.

#[path = "../../../paging/src/world.rs"]
mod world;

use janua_paging::{AtFork, Behind, Entry, Frames, Object, PAGE, PageFrame, Space, Table, table};
use world::{Map, World};

use crate::bytes::Bytes;

pub fn run(input: &[u8]) {
    let mut bytes = Bytes(input);
    // With enough memory; with few frames; with little room in the tables.
    let (frames, room) = [(400, true), (40, true), (400, false)][bytes.below(3) as usize];
    // Seven numbers choose an operation, and a few specify it further.
    let steps = input.len() / 7;
    World::<Map>::new(frames, room).run(steps, &mut |bound| bytes.below(bound));
}
