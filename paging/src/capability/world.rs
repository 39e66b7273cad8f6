//! A set of capabilities, and beside it a list of what each operation should have come to, by the plainest rules. Random tests and the fuzz target
//! `capabilities`, which is another crate, drive it.

use alloc::vec::Vec;

use super::{ENTRIES, Effect, Kind, Refused, Rights, Set, Slot};

#[derive(Clone, Copy, Debug)]
struct Thing {
    id: usize,
    kind: Kind,
    first: usize,
    frames: usize,
    parent: Option<usize>,
}

impl Thing {
    fn overlaps(&self, first: usize, frames: usize) -> bool {
        self.first < first + frames && first < self.first + self.frames
    }
}

#[derive(Clone, Copy, Debug)]
struct Held {
    slot: Slot,
    thing: usize,
    rights: Rights,
}

#[derive(Clone, Copy, Debug)]
struct Mapped {
    table: usize,
    index: usize,
    slot: Slot,
    frame: usize,
    rights: Rights,
}

pub struct World {
    set: Set,
    most: usize,
    next: usize,
    things: Vec<Thing>,
    held: Vec<Held>,
    mapped: Vec<Mapped>,
    /// What the set says is to be done by the operation under way.
    effects: Vec<Effect>,
    /// How many operations were done: add, copy, retype, delete, revoke; tables mapped, pages, larger parts; unmap.
    pub done: [usize; 9],
}

const KINDS: [Kind; 9] = [
    Kind::Ram,
    Kind::Frame,
    Kind::DeviceFrame,
    Kind::Table(1),
    Kind::Table(2),
    Kind::Table(3),
    Kind::Table(4),
    Kind::Table(5),
    Kind::Kernel,
];
const SIZES: [usize; 8] = [0, 1, 1, 2, 3, 16, ENTRIES, 2 * ENTRIES];

impl World {
    pub fn new(most: usize) -> World {
        let (things, held, mapped, effects) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        World { set: Set::new(most), most, next: 0, things, held, mapped, effects, done: [0; 9] }
    }

    /// So many operations that `next` chooses, which returns a number below the one it is given.
    pub fn run(&mut self, steps: usize, next: &mut dyn FnMut(u64) -> u64) {
        let mut below = |bound: usize| next(bound as u64) as usize;
        self.add(Kind::Ram, 0, 4 * ENTRIES);
        self.add(Kind::DeviceFrame, 8 * ENTRIES, ENTRIES);
        for _ in 0..steps {
            self.effects.clear();
            match below(18) {
                0 => self.add(KINDS[below(KINDS.len())], below(10) * ENTRIES, SIZES[below(8)] * (1 + below(2))),
                1 => self.copy(self.some(below(40)), Rights::from_bits(below(8) as u8)),
                2..=8 => {
                    let (kind, offset) = (KINDS[below(KINDS.len())], below(2) * below(200) + below(4) * ENTRIES);
                    let slot = match below(8) {
                        0 => self.some(below(40)),
                        _ => self.one(below(40), |from| World::may_become(from, kind)),
                    };
                    let frames = if matches!(kind, Kind::Table(_)) && below(8) != 0 { 1 } else { SIZES[below(8)] };
                    self.retype(slot, offset, kind, frames, below(4));
                }
                9 => self.delete(self.some(below(40))),
                10 if below(3) == 0 => self.revoke(self.some(below(40))),
                10..=16 => {
                    let is_table = |kind| matches!(kind, Kind::Table(_));
                    let table = if below(8) == 0 { self.some(below(40)) } else { self.one(below(40), is_table) };
                    let what = match below(4) {
                        0 => self.some(below(40)),
                        1 => self.one(below(40), is_table),
                        _ => self.one(below(40), |kind| matches!(kind, Kind::Frame | Kind::DeviceFrame)),
                    };
                    let (index, offset) = ([0, 1, ENTRIES - 1, ENTRIES][below(4)], below(2) * below(3));
                    self.map(table, index, what, offset, Rights::from_bits(below(8) as u8));
                }
                _ => self.unmap(self.some(below(40)), [0, 1, ENTRIES - 1, ENTRIES][below(4)]),
            }
            self.check();
        }
    }

    /// One of the capabilities, or none.
    fn some(&self, number: usize) -> Slot {
        let at = number % (self.held.len() + 1);
        self.held.get(at).map_or(1 << 40 | number, |held| held.slot)
    }

    /// One of those for what is of such a kind, if there are any.
    fn one(&self, number: usize, fits: impl Fn(Kind) -> bool) -> Slot {
        let fitting: Vec<Slot> =
            self.held.iter().filter(|held| fits(self.thing(held.thing).kind)).map(|held| held.slot).collect();
        if fitting.is_empty() { self.some(number) } else { fitting[number % fitting.len()] }
    }

    fn held(&self, slot: Slot) -> Result<Held, Refused> {
        self.held.iter().find(|held| held.slot == slot).copied().ok_or(Refused::Slot)
    }

    fn thing(&self, id: usize) -> Thing {
        *self.things.iter().find(|thing| thing.id == id).expect("what is held is there")
    }

    fn descends(&self, thing: &Thing, from: usize) -> bool {
        thing.parent.is_some_and(|parent| parent == from || self.descends(&self.thing(parent), from))
    }

    fn has_room(&self, count: usize) -> bool {
        self.held.len() + count <= self.most && self.things.len() + count <= self.most
    }

    fn make(&mut self, kind: Kind, first: usize, frames: usize, parent: Option<usize>) -> usize {
        self.next += 1;
        self.things.push(Thing { id: self.next, kind, first, frames, parent });
        self.next
    }

    fn add(&mut self, kind: Kind, first: usize, frames: usize) {
        let expected = if !matches!(kind, Kind::Ram | Kind::DeviceFrame | Kind::Kernel) {
            Err(Refused::Kind)
        } else if frames == 0 {
            Err(Refused::Range)
        } else if self.things.iter().any(|thing| thing.overlaps(first, frames)) {
            Err(Refused::Taken)
        } else if !self.has_room(1) {
            Err(Refused::Full)
        } else {
            Ok(())
        };
        let result = self.set.add(kind, first, frames);
        assert_eq!(result.map(|_| ()), expected, "add {kind:?} {first} {frames}");
        if let Ok(slot) = result {
            self.done[0] += 1;
            let thing = self.make(kind, first, frames, None);
            self.held.push(Held { slot, thing, rights: Rights::ALL });
        }
    }

    fn copy(&mut self, slot: Slot, rights: Rights) {
        let expected = self.held(slot).and_then(|held| match () {
            () if !held.rights.contains(rights) => Err(Refused::Rights),
            () if self.held.len() == self.most => Err(Refused::Full),
            () => Ok(held.thing),
        });
        let result = self.set.copy(slot, rights);
        assert_eq!(result.map(|_| ()), expected.map(|_| ()), "copy {slot} {rights:?}");
        if let (Ok(slot), Ok(thing)) = (result, expected) {
            self.done[1] += 1;
            self.held.push(Held { slot, thing, rights });
        }
    }

    /// Whether memory of one kind may become another's.
    fn may_become(from: Kind, to: Kind) -> bool {
        match to {
            Kind::Ram | Kind::Kernel => from == Kind::Ram,
            Kind::Frame => from == Kind::Ram || from == Kind::Frame,
            Kind::DeviceFrame => from == Kind::DeviceFrame,
            Kind::Table(level) => from == Kind::Ram && level != 0 && level < 5,
        }
    }

    fn retype(&mut self, slot: Slot, offset: usize, kind: Kind, frames: usize, count: usize) {
        let total = frames * count;
        let expected = self.held(slot).and_then(|held| {
            let source = self.thing(held.thing);
            let first = source.first + offset;
            let table = matches!(kind, Kind::Table(_));
            let same = source.kind == kind && frames == source.frames;
            if !World::may_become(source.kind, kind) {
                return Err(Refused::Kind);
            }
            if total == 0 || offset + total > source.frames || same || table && frames != 1 {
                return Err(Refused::Range);
            }
            let in_the_way = |thing: &Thing| self.descends(thing, source.id) && thing.overlaps(first, total);
            if self.things.iter().any(in_the_way) {
                return Err(Refused::Taken);
            }
            if self.has_room(count) { Ok((source, first, held.rights)) } else { Err(Refused::Full) }
        });
        let effects = &mut self.effects;
        let result = self.set.retype(slot, offset, kind, frames, count, &mut |effect| effects.push(effect));
        assert_eq!(result.as_ref().map(Vec::len).map_err(|refused| *refused), expected.map(|_| count));
        if let (Ok(slots), Ok((source, first, rights))) = (result, expected) {
            self.done[2] += 1;
            let fresh = source.kind == Kind::Ram && kind != Kind::Ram;
            self.expect(if fresh { Vec::from([Effect::Zero { first, frames: total }]) } else { Vec::new() });
            for (at, slot) in slots.into_iter().enumerate() {
                let thing = self.make(kind, first + at * frames, frames, Some(source.id));
                self.held.push(Held { slot, thing, rights });
            }
        }
    }

    /// Takes out what is deleted, and what goes with it: what is to be done for that.
    fn remove(&mut self, slots: &[Slot]) -> Vec<Effect> {
        self.held.retain(|held| !slots.contains(&held.slot));
        let mut gone = Vec::new();
        loop {
            let (held, things) = (&self.held, &self.things);
            let idle = |thing: &Thing| {
                !held.iter().any(|held| held.thing == thing.id) && !things.iter().any(|other| other.parent == Some(thing.id))
            };
            let Some(at) = self.things.iter().position(idle) else { break };
            gone.push(self.things.remove(at));
        }
        let mut effects = Vec::new();
        let roots = gone.iter().filter(|thing| thing.parent.is_none());
        effects.extend(roots.map(|thing| Effect::Free { first: thing.first, frames: thing.frames }));
        let tables: Vec<Thing> = self.things.iter().chain(&gone).copied().collect();
        self.mapped.retain(|mapped| {
            let goes = slots.contains(&mapped.slot) || gone.iter().any(|thing| thing.id == mapped.table);
            if goes {
                let table = tables.iter().find(|thing| thing.id == mapped.table).expect("a table");
                effects.push(Effect::Clear { table: table.first, index: mapped.index });
            }
            !goes
        });
        effects
    }

    fn delete(&mut self, slot: Slot) {
        let expected = self.held(slot).map(|_| ());
        let effects = &mut self.effects;
        assert_eq!(self.set.delete(slot, &mut |effect| effects.push(effect)), expected, "delete {slot}");
        self.done[3] += usize::from(expected.is_ok());
        let effects = if expected.is_ok() { self.remove(&[slot]) } else { Vec::new() };
        self.expect(effects);
    }

    fn revoke(&mut self, slot: Slot) {
        let expected = self.held(slot);
        let effects = &mut self.effects;
        let result = self.set.revoke(slot, &mut |effect| effects.push(effect));
        assert_eq!(result, expected.map(|_| ()), "revoke {slot}");
        let Ok(own) = expected else { return };
        let goes =
            |held: &&Held| held.slot != slot && (held.thing == own.thing || self.descends(&self.thing(held.thing), own.thing));
        let slots: Vec<Slot> = self.held.iter().filter(goes).map(|held| held.slot).collect();
        self.done[4] += usize::from(!slots.is_empty());
        let effects = self.remove(&slots);
        self.expect(effects);
    }

    fn map(&mut self, table: Slot, index: usize, what: Slot, offset: usize, rights: Rights) {
        let expected = self.held(table).and_then(|table| {
            let held = self.held(what)?;
            let (table, target) = (self.thing(table.thing), self.thing(held.thing));
            let Kind::Table(level) = table.kind else { return Err(Refused::Kind) };
            if index >= ENTRIES {
                return Err(Refused::Range);
            }
            let span = match (level, target.kind) {
                (_, Kind::Table(below)) if below + 1 == level => 1,
                (1, Kind::Frame | Kind::DeviceFrame) => 1,
                (2, Kind::Frame | Kind::DeviceFrame) => 512,
                (3, Kind::Frame | Kind::DeviceFrame) => 512 * 512,
                _ => return Err(Refused::Kind),
            };
            let frame = target.first + offset;
            if offset + span > target.frames || !frame.is_multiple_of(span) {
                return Err(Refused::Range);
            }
            if !held.rights.contains(rights) {
                return Err(Refused::Rights);
            }
            if self.mapped.iter().any(|mapped| (mapped.table, mapped.index) == (table.id, index)) {
                return Err(Refused::Taken);
            }
            Ok(Mapped { table: table.id, index, slot: what, frame, rights })
        });
        let result = self.set.map(table, index, what, offset, rights);
        assert_eq!(result, expected.map(|mapped| mapped.frame), "map {table} {index} {what} {offset}");
        if let Ok(mapped) = expected {
            let large = self.thing(mapped.table).kind != Kind::Table(1);
            let target = self.held(what).map(|held| self.thing(held.thing).kind);
            self.done[if matches!(target, Ok(Kind::Table(_))) { 5 } else { 6 + usize::from(large) }] += 1;
            self.mapped.push(mapped);
        }
    }

    fn unmap(&mut self, slot: Slot, index: usize) {
        let expected = self.held(slot).and_then(|held| {
            let table = self.thing(held.thing);
            if !matches!(table.kind, Kind::Table(_)) {
                return Err(Refused::Kind);
            }
            let found = self.mapped.iter().position(|mapped| (mapped.table, mapped.index) == (table.id, index));
            found.map(|at| (at, table.first)).ok_or(Refused::Range)
        });
        let effects = &mut self.effects;
        let result = self.set.unmap(slot, index, &mut |effect| effects.push(effect));
        assert_eq!(result, expected.map(|_| ()), "unmap {slot} {index}");
        if let Ok((at, table)) = expected {
            self.done[8] += 1;
            self.mapped.remove(at);
            self.expect(Vec::from([Effect::Clear { table, index }]));
        }
    }

    fn expect(&mut self, mut effects: Vec<Effect>) {
        effects.sort_unstable();
        self.effects.sort_unstable();
        assert_eq!(self.effects, effects);
    }

    fn check(&self) {
        assert_eq!((self.set.len(), self.set.is_empty()), (self.held.len(), self.held.is_empty()));
        for held in &self.held {
            let thing = self.thing(held.thing);
            assert_eq!(self.set.look(held.slot), Ok((thing.kind, thing.first, thing.frames)));
        }
        for mapped in &self.mapped {
            let table = self.held.iter().find(|held| held.thing == mapped.table).expect("a table that somebody has");
            assert_eq!(self.set.entry(table.slot, mapped.index), Ok((mapped.frame, mapped.rights)));
        }
        // What it is for: memory is one thing only, and nobody maps a page table, RAM or a kernel's memory but as a table of the level above.
        for (at, thing) in self.things.iter().enumerate() {
            for other in &self.things[at + 1..] {
                let related = self.descends(thing, other.id) || self.descends(other, thing.id);
                assert!(related || !thing.overlaps(other.first, other.frames), "{thing:?} and {other:?}");
                let mappable = |thing: &Thing| matches!(thing.kind, Kind::Frame | Kind::DeviceFrame);
                let mixed = mappable(thing) && matches!(other.kind, Kind::Table(_) | Kind::Kernel);
                assert!(!mixed || !thing.overlaps(other.first, other.frames), "{thing:?} and {other:?}");
            }
        }
    }
}
