//! Capabilities for physical memory, after Barrelfish's: who holds one for a piece of memory decides what that becomes, and no page is ever
//! both a page table and memory that somebody maps.
//!
//! A capability names an *object*: a range of page frames, and what it is ([`Kind`]). Copies name the same object. Retyping makes objects
//! within one, its descendants, which never overlap each other ([`Set::retype`]). An object whose last capability is deleted is gone, and its range
//! can be retyped again, once it has no descendants. Page tables are objects too, and what an entry maps is a capability's: with that the entry goes
//! ([`Effect::Clear`]).
//!
//! Here is the bookkeeping only, of one kernel: what is to be done to memory and tables is returned as [`Effect`]s, in order. Numbers of capabilities may
//! be a program's words, and so may everything else that is passed here; what a set holds is bounded. Each operation takes logarithmic time for what it makes or removes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

mod mapping;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub mod world;

pub use mapping::{ENTRIES, LEVELS};

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Memory nobody uses: it becomes something else, and cannot be mapped.
    Ram,
    /// Memory to map.
    Frame,
    /// A device's registers to map: never anything else, and not filled with zeroes.
    DeviceFrame,
    /// A page table of so many levels, from 1, whose entries are pages, to [`LEVELS`]: one page.
    Table(u8),
    /// A kernel's own memory: never mapped.
    Kernel,
}

impl Kind {
    /// Whether a part of this becomes that.
    fn becomes(self, other: Kind) -> bool {
        match (self, other) {
            (Kind::Ram, Kind::Table(level)) => (1..=LEVELS).contains(&level),
            (Kind::Ram, Kind::Ram | Kind::Frame | Kind::Kernel) => true,
            (Kind::Frame, Kind::Frame) | (Kind::DeviceFrame, Kind::DeviceFrame) => true,
            _ => false,
        }
    }
}

/// How memory may be mapped, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rights(u8);

impl Rights {
    pub const READ: Rights = Rights(1);
    pub const WRITE: Rights = Rights(2);
    pub const EXECUTE: Rights = Rights(4);
    pub const ALL: Rights = Rights(7);

    /// Of the lower bits of a number.
    pub const fn from_bits(bits: u8) -> Rights {
        Rights(bits & Rights::ALL.0)
    }

    pub const fn contains(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The number of a capability in its set; another's once it has been deleted.
pub type Slot = usize;

/// What an operation means for memory and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// So many frames from the first on are to be filled with zeroes, before anything else is done with what was made.
    Zero { first: usize, frames: usize },
    /// The entry of the table in this frame maps nothing any more; translations are to be forgotten.
    Clear { table: usize, index: usize },
    /// Nobody has a capability for any of these any more: they are no longer in the set.
    Free { first: usize, frames: usize },
}

/// Why an operation did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No such capability.
    Slot,
    /// It is not of a kind that allows this.
    Kind,
    /// Not within the object, not aligned, or nothing at all.
    Range,
    /// An object is there already, or an entry.
    Taken,
    /// More than it allows itself.
    Rights,
    /// The set is full.
    Full,
}

/// A range of frames that is something.
#[derive(Debug)]
struct Object {
    kind: Kind,
    first: usize,
    frames: usize,
    /// The number of the object it was made from.
    parent: Option<usize>,
    /// Numbers of what was made of it, by first frames. They do not overlap.
    children: BTreeMap<usize, usize>,
    slots: BTreeSet<Slot>,
    /// Of a page table, what its entries map.
    entries: BTreeMap<usize, mapping::Entry>,
}

/// A capability.
#[derive(Debug)]
struct Capability {
    object: usize,
    rights: Rights,
    /// Where it is mapped: numbers of tables, and entries.
    mapped: BTreeSet<(usize, usize)>,
}

/// All capabilities of a kernel.
#[derive(Debug)]
pub struct Set {
    /// By numbers that are used once.
    objects: BTreeMap<usize, Object>,
    next: usize,
    /// Objects that were made from no other, by first frames.
    roots: BTreeMap<usize, usize>,
    slots: Vec<Option<Capability>>,
    free: Vec<Slot>,
    most: usize,
}

/// Which of these overlaps a range, if any does: `frames` returns the length of one.
fn overlaps(these: &BTreeMap<usize, usize>, first: usize, frames: usize, length: impl Fn(usize) -> usize) -> bool {
    let end = first.saturating_add(frames);
    these.range(..end).next_back().is_some_and(|(start, object)| start + length(*object) > first)
}

impl Set {
    /// An empty one, of at most so many capabilities and as many objects.
    pub const fn new(most: usize) -> Set {
        Set { objects: BTreeMap::new(), next: 0, roots: BTreeMap::new(), slots: Vec::new(), free: Vec::new(), most }
    }

    fn capability(&self, slot: Slot) -> Result<&Capability, Refused> {
        self.slots.get(slot).and_then(Option::as_ref).ok_or(Refused::Slot)
    }

    fn object_of(&self, slot: Slot) -> Result<(usize, &Object), Refused> {
        let number = self.capability(slot)?.object;
        Ok((number, self.objects.get(&number).ok_or(Refused::Slot)?))
    }

    /// What a capability is for: the kind, the first frame and how many there are.
    pub fn look(&self, slot: Slot) -> Result<(Kind, usize, usize), Refused> {
        let (_, object) = self.object_of(slot)?;
        Ok((object.kind, object.first, object.frames))
    }

    /// How many capabilities there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn has_room(&self, count: usize) -> bool {
        count <= self.most - self.len() && count <= self.most - self.objects.len()
    }

    fn add_slot(&mut self, object: usize, rights: Rights) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(Capability { object, rights, mapped: BTreeSet::new() });
        if let Some(object) = self.objects.get_mut(&object) {
            object.slots.insert(slot);
        }
        slot
    }

    fn add_object(&mut self, kind: Kind, first: usize, frames: usize, parent: Option<usize>) -> usize {
        let number = self.next;
        self.next += 1;
        let (children, slots, entries) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        self.objects.insert(number, Object { kind, first, frames, parent, children, slots, entries });
        match parent.and_then(|parent| self.objects.get_mut(&parent)) {
            Some(parent) => parent.children.insert(first, number),
            None => self.roots.insert(first, number),
        };
        number
    }

    /// Takes over memory that is in no capability as yet: RAM, a device's, or a kernel's own. Kind, Range, Taken, Full.
    pub fn add(&mut self, kind: Kind, first: usize, frames: usize) -> Result<Slot, Refused> {
        if !matches!(kind, Kind::Ram | Kind::DeviceFrame | Kind::Kernel) {
            return Err(Refused::Kind);
        }
        if frames == 0 || first.checked_add(frames).is_none() {
            return Err(Refused::Range);
        }
        if overlaps(&self.roots, first, frames, |object| self.objects[&object].frames) {
            return Err(Refused::Taken);
        }
        if !self.has_room(1) {
            return Err(Refused::Full);
        }
        let object = self.add_object(kind, first, frames, None);
        Ok(self.add_slot(object, Rights::ALL))
    }

    /// Makes another capability for the same object, with these rights or fewer. Slot, Rights, Full.
    pub fn copy(&mut self, slot: Slot, rights: Rights) -> Result<Slot, Refused> {
        let Capability { object, rights: own, .. } = *self.capability(slot)?;
        if !own.contains(rights) {
            return Err(Refused::Rights);
        }
        if self.len() == self.most {
            return Err(Refused::Full);
        }
        Ok(self.add_slot(object, rights))
    }

    /// Makes `count` objects of `frames` each, one after the other, of what is `offset` frames from the start of one: all of them or none. An object of the same
    /// kind is smaller than what it is made of. Their rights are the capability's. Slot, Kind, Range, Taken where another descendant
    /// is in the way, Full.
    pub fn retype(
        &mut self,
        slot: Slot,
        offset: usize,
        kind: Kind,
        frames: usize,
        count: usize,
        effect: &mut dyn FnMut(Effect),
    ) -> Result<Vec<Slot>, Refused> {
        let (number, object) = self.object_of(slot)?;
        let rights = self.capability(slot)?.rights;
        if !object.kind.becomes(kind) {
            return Err(Refused::Kind);
        }
        let total = frames.checked_mul(count).filter(|total| *total != 0).ok_or(Refused::Range)?;
        let fits = offset.checked_add(total).is_some_and(|end| end <= object.frames);
        let is_whole = object.kind == kind && frames == object.frames;
        if !fits || is_whole || matches!(kind, Kind::Table(_)) && frames != 1 {
            return Err(Refused::Range);
        }
        let first = object.first + offset;
        if overlaps(&object.children, first, total, |child| self.objects[&child].frames) {
            return Err(Refused::Taken);
        }
        if !self.has_room(count) {
            return Err(Refused::Full);
        }
        if object.kind == Kind::Ram && kind != Kind::Ram {
            effect(Effect::Zero { first, frames: total });
        }
        let make = |at| {
            let object = self.add_object(kind, first + at * frames, frames, Some(number));
            self.add_slot(object, rights)
        };
        Ok((0..count).map(make).collect())
    }

    /// Deletes a capability, and with it what it has mapped; with the last one of an object without descendants the object. Slot.
    pub fn delete(&mut self, slot: Slot, effect: &mut dyn FnMut(Effect)) -> Result<(), Refused> {
        let capability = self.slots.get_mut(slot).and_then(Option::take).ok_or(Refused::Slot)?;
        self.free.push(slot);
        for (table, index) in capability.mapped {
            if let Some(table) = self.objects.get_mut(&table) {
                table.entries.remove(&index);
                effect(Effect::Clear { table: table.first, index });
            }
        }
        if let Some(object) = self.objects.get_mut(&capability.object) {
            object.slots.remove(&slot);
        }
        self.prune(capability.object, effect);
        Ok(())
    }

    /// Deletes all other capabilities of the object, and those of all its descendants. Slot.
    pub fn revoke(&mut self, slot: Slot, effect: &mut dyn FnMut(Effect)) -> Result<(), Refused> {
        let (number, object) = self.object_of(slot)?;
        let mut slots: Vec<Slot> = object.slots.iter().copied().filter(|other| *other != slot).collect();
        let mut ahead = Vec::from([number]);
        while let Some(number) = ahead.pop() {
            let Some(object) = self.objects.get(&number) else { continue };
            for child in object.children.values() {
                ahead.push(*child);
                slots.extend(self.objects.get(child).into_iter().flat_map(|child| &child.slots));
            }
        }
        slots.into_iter().try_for_each(|slot| self.delete(slot, effect))
    }

    /// Removes an object that nobody has and that nothing was made of, and what it was made of where that is so there then.
    fn prune(&mut self, mut number: usize, effect: &mut dyn FnMut(Effect)) {
        while let Some(object) = self.objects.get(&number) {
            if !object.slots.is_empty() || !object.children.is_empty() {
                return;
            }
            let Some(object) = self.objects.remove(&number) else { return };
            for (index, entry) in object.entries {
                if let Some(capability) = self.slots.get_mut(entry.slot).and_then(Option::as_mut) {
                    capability.mapped.remove(&(number, index));
                }
                effect(Effect::Clear { table: object.first, index });
            }
            let Some(parent) = object.parent else {
                self.roots.remove(&object.first);
                effect(Effect::Free { first: object.first, frames: object.frames });
                return;
            };
            if let Some(parent) = self.objects.get_mut(&parent) {
                parent.children.remove(&object.first);
            }
            number = parent;
        }
    }
}
