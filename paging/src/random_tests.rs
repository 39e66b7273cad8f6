//! Random operations on spaces and objects ([`crate::world`]).

use crate::format::srmmu::Srmmu;
use crate::format::x86_64::X86_64;
use crate::random;
use crate::tree_tests::Walked;
use crate::world::{Map, Tried, World};

fn leave_what_they_should<T: Tried>() {
    for stream in 0..random::rounds(30) {
        let mut next = random::numbers(random::given().unwrap_or(0), stream);
        // With enough memory; with few frames; with little room in the tables.
        let (frames, room) = [(400, true), (40, true), (400, false)][stream as usize % 3];
        World::<T>::new(frames, room).run(400, &mut next);
    }
}

#[test]
fn random_operations_leave_what_they_should() {
    leave_what_they_should::<Map>();
}

#[test]
fn random_operations_on_tables_of_x86_64_leave_what_they_should() {
    leave_what_they_should::<Walked<X86_64>>();
}

#[test]
fn random_operations_on_tables_of_the_srmmu_leave_what_they_should() {
    leave_what_they_should::<Walked<Srmmu>>();
}
