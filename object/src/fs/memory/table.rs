//! The names of a directory in memory.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use hashbrown::hash_map::EntryRef;
use janua_abi::linux::{Errno, Result};

use crate::vfs::NameMap;

use super::Node;

/// What a name leads to.
pub enum Entry {
    Held {
        node: Arc<Node>,
        /// Position in the listing.
        cookie: u64,
        /// The directory below has this name too, so that taking it out leaves a whiteout.
        covers: bool,
    },
    /// An unchanged file below that somebody uses.
    Below(Weak<Node>),
    /// A name below that has been removed.
    Whiteout,
}

/// Names by text and, those that are held, by position.
#[derive(Default)]
pub struct Table {
    entries: NameMap<Entry>,
    order: BTreeMap<u64, Arc<[u8]>>,
    next: u64,
    /// Names below that have been removed.
    whiteouts: usize,
    /// When this many entries are there, those of files nobody uses are dropped.
    purge_at: usize,
}

/// Entries handed out at a time by [`Table::batch`].
const BATCH: usize = 64;

impl Table {
    pub fn get(&self, name: &[u8]) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// Whether the directory below is shown as it is, without additions and removals.
    pub fn is_transparent(&self) -> bool {
        self.order.is_empty() && self.whiteouts == 0
    }

    /// Makes room for two more names, which is the most that a call enters. All names are one piece of memory, which doubles when it is
    /// full: a directory with millions of them may ask for more than there is. ENOMEM.
    #[inline]
    pub fn reserve(&mut self) -> Result<()> {
        self.entries.try_reserve(2).map_err(|_| Errno::ENOMEM)
    }

    fn set(&mut self, name: Arc<[u8]>, entry: Entry) {
        self.whiteouts += usize::from(matches!(entry, Entry::Whiteout));
        if let Some(Entry::Whiteout) = self.entries.insert(name, entry) {
            self.whiteouts -= 1;
        }
    }

    /// Names that are held.
    pub fn held(&self) -> usize {
        self.order.len()
    }

    /// Enters a node under a name that is not held, and for which there is room if the table does not know it ([`Table::reserve`]).
    pub fn put(&mut self, name: Arc<[u8]>, node: Arc<Node>, covers: bool) {
        let cookie = self.next;
        self.next += 1;
        self.order.insert(cookie, name.clone());
        self.set(name, Entry::Held { node, cookie, covers });
    }

    /// Puts another node under a name, which keeps its place in the listing; a name not held becomes so.
    pub fn replace(&mut self, name: &[u8], new: Arc<Node>) {
        match self.entries.get_mut(name) {
            Some(Entry::Held { node, .. }) => *node = new,
            Some(Entry::Below(_) | Entry::Whiteout) => self.put(Arc::from(name), new, true),
            None => self.put(Arc::from(name), new, false),
        }
    }

    /// Remembers the node that represents a file below as long as it lives. ENOMEM.
    pub fn remember(&mut self, name: &[u8], node: &Arc<Node>) -> Result<()> {
        if self.entries.len() >= self.purge_at.max(64) {
            self.entries.retain(|_, entry| !matches!(entry, Entry::Below(weak) if weak.strong_count() == 0));
            self.purge_at = self.entries.len() * 2;
        }
        self.reserve()?;
        self.set(Arc::from(name), Entry::Below(Arc::downgrade(node)));
        Ok(())
    }

    /// Makes a name below lead to its node for good.
    pub fn hold(&mut self, name: Arc<[u8]>, node: &Arc<Node>) {
        match self.entries.get_mut(&*name) {
            Some(Entry::Held { .. } | Entry::Whiteout) => {}
            // In its place: it needs no room.
            Some(below @ Entry::Below(_)) => {
                let cookie = self.next;
                self.next += 1;
                *below = Entry::Held { node: node.clone(), cookie, covers: true };
                self.order.insert(cookie, name);
            }
            None => self.put(name, node.clone(), true),
        }
    }

    /// Takes a name out: what it led to, if it was held. A name below is covered by a whiteout.
    pub fn remove(&mut self, name: &[u8]) -> Option<Arc<Node>> {
        let EntryRef::Occupied(mut entry) = self.entries.entry_ref(name) else { return None };
        let old = if matches!(entry.get(), Entry::Held { covers: false, .. }) {
            entry.remove()
        } else {
            // In its place: it needs no room.
            self.whiteouts += usize::from(!matches!(entry.get(), Entry::Whiteout));
            entry.insert(Entry::Whiteout)
        };
        let Entry::Held { node, cookie, .. } = old else { return None };
        self.order.remove(&cookie);
        Some(node)
    }

    /// The next held names from a position on: position, name, node.
    pub fn batch(&self, from: u64) -> Vec<(u64, Arc<[u8]>, Arc<Node>)> {
        let mut batch = Vec::new();
        for (cookie, name) in self.order.range(from..).take(BATCH) {
            if let Some(Entry::Held { node, .. }) = self.entries.get(name) {
                batch.push((*cookie, name.clone(), node.clone()));
            }
        }
        batch
    }

    /// Empties the table: the nodes that were held.
    pub fn take_nodes(&mut self) -> impl Iterator<Item = Arc<Node>> + use<> {
        self.order.clear();
        self.whiteouts = 0;
        core::mem::take(&mut self.entries).into_values().filter_map(|entry| match entry {
            Entry::Held { node, .. } => Some(node),
            _ => None,
        })
    }
}
