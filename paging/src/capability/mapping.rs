//! Page tables made of capabilities.

use super::{Effect, Kind, Refused, Rights, Set, Slot};

/// Levels of page tables: those of x86-64.
pub const LEVELS: u8 = 4;
/// Entries of a table.
pub const ENTRIES: usize = 512;
/// The highest level whose entries map memory: a gigabyte each.
const LARGEST: u8 = 3;

/// What an entry maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Whose it is.
    pub slot: Slot,
    /// The first frame, and how it may be used; of a table of the next level all rights.
    pub frame: usize,
    pub rights: Rights,
}

impl Set {
    /// Has an entry of a table map memory, from `offset` frames into a capability's on as much as an entry of that level does, or a table of the next
    /// level: the frame that is to be in the entry. Slot, Kind, Range, Taken, Rights.
    ///
    /// Which entries of a table of the highest level are a program's is for the caller to check.
    pub fn map(&mut self, table: Slot, index: usize, what: Slot, offset: usize, rights: Rights) -> Result<usize, Refused> {
        let (number, object) = self.object_of(table)?;
        let (_, target) = self.object_of(what)?;
        let Kind::Table(level) = object.kind else { return Err(Refused::Kind) };
        if index >= ENTRIES {
            return Err(Refused::Range);
        }
        match target.kind {
            Kind::Table(below) if below + 1 == level => {
                if offset != 0 {
                    return Err(Refused::Range);
                }
            }
            Kind::Frame | Kind::DeviceFrame if level <= LARGEST => {
                let span = ENTRIES.pow(u32::from(level) - 1);
                let fits = offset.checked_add(span).is_some_and(|end| end <= target.frames);
                if !fits || !(target.first + offset).is_multiple_of(span) {
                    return Err(Refused::Range);
                }
            }
            _ => return Err(Refused::Kind),
        }
        let frame = target.first + offset;
        if !self.capability(what)?.rights.contains(rights) {
            return Err(Refused::Rights);
        }
        if object.entries.contains_key(&index) {
            return Err(Refused::Taken);
        }
        if let Some(table) = self.objects.get_mut(&number) {
            table.entries.insert(index, Entry { slot: what, frame, rights });
        }
        if let Some(capability) = self.slots.get_mut(what).and_then(Option::as_mut) {
            capability.mapped.insert((number, index));
        }
        Ok(frame)
    }

    /// What an entry of a table maps: the frame, and the rights. Slot, Kind; Range where it maps nothing.
    pub fn entry(&self, table: Slot, index: usize) -> Result<(usize, Rights), Refused> {
        let (_, object) = self.object_of(table)?;
        if !matches!(object.kind, Kind::Table(_)) {
            return Err(Refused::Kind);
        }
        object.entries.get(&index).map(|entry| (entry.frame, entry.rights)).ok_or(Refused::Range)
    }

    /// Has an entry of a table map nothing. Slot, Kind; Range where it maps nothing.
    pub fn unmap(&mut self, table: Slot, index: usize, effect: &mut dyn FnMut(Effect)) -> Result<(), Refused> {
        self.entry(table, index)?;
        let (number, _) = self.object_of(table)?;
        let Some(object) = self.objects.get_mut(&number) else { return Err(Refused::Slot) };
        let Some(entry) = object.entries.remove(&index) else { return Err(Refused::Range) };
        effect(Effect::Clear { table: object.first, index });
        if let Some(capability) = self.slots.get_mut(entry.slot).and_then(Option::as_mut) {
            capability.mapped.remove(&(number, index));
        }
        Ok(())
    }
}
