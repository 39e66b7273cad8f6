//! What is in memory of a region.

use crate::{Behind, Entry, Frames, Object};

/// What a page in memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageKind {
    /// One of the object behind the region, no copy of the space's own.
    pub of_object: bool,
    /// How many spaces have it.
    pub users: usize,
}

impl PageKind {
    /// Of the page `index` of a region that has `behind` behind it.
    pub(crate) fn of<F: Frames>(frames: &F, behind: &Behind<F>, index: usize, entry: Entry) -> PageKind {
        let users = frames.users(entry.frame).max(1);
        let of_object = match behind {
            Behind::Zero => false,
            Behind::Object { object, page, .. } => Object::frame(object, page + index as u64) == Some(entry.frame),
        };
        // The object is one of its pages' users.
        PageKind { of_object, users: if of_object { (users - 1).max(1) } else { users } }
    }
}

/// Pages of a region, by kind; each is counted once among private and shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Private memory, that of nobody else.
    pub own: usize,
    /// Private memory that a fork's other side still shares.
    pub copied_on_write: usize,
    /// An object's pages that nobody else maps, and those that others do.
    pub object: usize,
    pub object_shared: usize,
    /// Each page divided by the number of its users, in 4096ths.
    pub proportional: usize,
}

impl Report {
    /// All of them.
    pub fn pages(&self) -> usize {
        self.own + self.copied_on_write + self.object + self.object_shared
    }

    /// Counts the page `index` of a region that has `behind` behind it.
    pub(crate) fn count<F: Frames>(&mut self, frames: &F, behind: &Behind<F>, index: usize, entry: Entry) {
        let PageKind { of_object, users } = PageKind::of(frames, behind, index, entry);
        let kind = match (of_object, users > 1) {
            (false, false) => &mut self.own,
            (false, true) => &mut self.copied_on_write,
            (true, false) => &mut self.object,
            (true, true) => &mut self.object_shared,
        };
        *kind += 1;
        self.proportional += 4096 / users;
    }
}
