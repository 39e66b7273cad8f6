//! Where an entry is installed.

use janua_port::Prot;

use crate::PageFrame;

/// What a page of a space is made of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub frame: PageFrame,
    /// Without any right the entry is kept, and every access faults.
    pub prot: Prot,
}

/// No memory for the table itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// The entries of one space. Addresses are multiples of the page size within the space's user part.
///
/// The table makes sure that no processor goes on with an old entry once [`Table::set`] or [`Table::take`] has returned and
/// [`Table::flush`] has been called for the range. It does not count users of frames: that is the space's part.
pub trait Table: Send + 'static {
    /// A fault costs as much as many pages: those that will be wanted next get their entries before anybody asks for them.
    const FAULTS_ARE_DEAR: bool = false;
    /// Where faults are dear: the entries of a range are used soon.
    fn expect(&mut self, _start: usize, _end: usize) {}
    /// How many pages that may be written are copied when the space is copied for a fork. The others are shared until they are written, which
    /// costs each side a fault. Nobody may write them meanwhile.
    fn copies_at_fork(&self) -> usize {
        0
    }
    fn get(&self, addr: usize) -> Option<Entry>;
    /// Installs or replaces an entry.
    fn set(&mut self, addr: usize, entry: Entry) -> Result<(), NoMemory>;
    /// The first entry at or after `from` and before `end`.
    fn next(&self, from: usize, end: usize) -> Option<(usize, Entry)>;
    /// Takes that entry out.
    fn take(&mut self, from: usize, end: usize) -> Option<(usize, Entry)>;
    /// Entries of `start..end` were changed or taken out: processors forget what they remember of them.
    fn flush(&mut self, start: usize, end: usize);
    /// As [`Table::flush`], where it is enough that the calling processor forgets: entries that now grant more than before, with the
    /// same frame, cost another processor one more fault.
    fn flush_here(&mut self, start: usize, end: usize) {
        self.flush(start, end);
    }
}
