//! Tables that a processor walks: a tree of them, as its [`Format`] defines.

use core::marker::PhantomData;

use crate::format::{Format, Level};
use crate::table::NoMemory;
use crate::{Entry, PAGE, Table};

/// The memory of one space's tables, and what processors remember of them. Asked only for tables that it has made, and for the root
/// it came with.
pub trait Nodes<X: Format>: Send + 'static {
    /// The user part of the space ends here; entries of the root behind it are the kernel's. A multiple of what such an entry covers.
    const END: usize;

    /// An entry of the table at a physical address.
    fn load(&self, table: usize, index: usize) -> X::Word;
    /// Changes an entry. The processor may read it at any time.
    fn store(&mut self, table: usize, index: usize, word: X::Word);
    /// A table of empty entries: its physical address.
    fn make(&mut self) -> Option<usize>;
    /// Takes a table back to which nothing leads any more, the root last.
    fn free(&mut self, table: usize);
    /// [`Table::flush`].
    fn flush(&mut self, start: usize, end: usize);
    /// [`Table::flush_here`].
    fn flush_here(&mut self, start: usize, end: usize) {
        self.flush(start, end);
    }
}

/// A tree of tables, which goes with this.
pub struct Tree<X: Format, N: Nodes<X>> {
    root: usize,
    nodes: N,
    format: PhantomData<X>,
}

impl<X: Format, N: Nodes<X>> Tree<X, N> {
    /// The level of pages.
    const LAST: Level = X::LEVELS[X::LEVELS.len() - 1];

    /// The tree of a root.
    pub fn new(root: usize, nodes: N) -> Tree<X, N> {
        Tree { root, nodes, format: PhantomData }
    }

    /// Its memory.
    pub fn nodes(&self) -> &N {
        &self.nodes
    }

    /// The table of pages for an address; where there is none the level whose entry leads nowhere.
    #[inline]
    fn find(&self, addr: usize) -> Result<usize, Level> {
        let mut table = self.root;
        for level in &X::LEVELS[..X::LEVELS.len() - 1] {
            table = X::table(self.nodes.load(table, level.index(addr))).ok_or(*level)?;
        }
        Ok(table)
    }

    /// The table of pages for an address, made with the tables on the way to it.
    #[inline]
    fn reach(&mut self, addr: usize) -> Result<usize, NoMemory> {
        debug_assert!(addr < N::END);
        let mut table = self.root;
        for level in &X::LEVELS[..X::LEVELS.len() - 1] {
            table = match X::table(self.nodes.load(table, level.index(addr))) {
                Some(next) => next,
                None => {
                    let fresh = self.nodes.make().ok_or(NoMemory)?;
                    self.nodes.store(table, level.index(addr), X::branch(fresh));
                    fresh
                }
            };
        }
        Ok(table)
    }

    /// The first entry at or after `from` and before `end`: its page, the table it is in, and what it is.
    #[inline]
    fn seek(&self, from: usize, end: usize) -> Option<(usize, usize, Entry)> {
        let end = end.min(N::END);
        let mut addr = from;
        while addr < end {
            let table = match self.find(addr) {
                Ok(table) => table,
                Err(level) => {
                    addr = (addr & !(level.span() - 1)) + level.span();
                    continue;
                }
            };
            let start = addr - Self::LAST.index(addr) * PAGE;
            for index in Self::LAST.index(addr)..Self::LAST.entries {
                let page = start + index * PAGE;
                if page >= end {
                    return None;
                }
                if let Some(entry) = X::entry(self.nodes.load(table, index)) {
                    return Some((page, table, entry));
                }
            }
            addr = start + Self::LAST.entries * PAGE;
        }
        None
    }

    /// Writes a page's entry as it is, for what is no memory of the space's: [`Table`] has nothing to do with it.
    pub fn show(&mut self, addr: usize, word: X::Word) -> Result<(), NoMemory> {
        let table = self.reach(addr)?;
        self.nodes.store(table, Self::LAST.index(addr), word);
        Ok(())
    }

    /// Gives back what the first `entries` of a table lead to, which is of this level, and the table.
    fn release(&mut self, table: usize, level: usize, entries: usize) {
        if level < X::LEVELS.len() - 1 {
            for index in 0..entries {
                if let Some(next) = X::table(self.nodes.load(table, index)) {
                    self.release(next, level + 1, X::LEVELS[level + 1].entries);
                }
            }
        }
        self.nodes.free(table);
    }
}

impl<X: Format, N: Nodes<X>> Table for Tree<X, N> {
    #[inline]
    fn get(&self, addr: usize) -> Option<Entry> {
        let table = self.find(addr).ok()?;
        X::entry(self.nodes.load(table, Self::LAST.index(addr)))
    }

    #[inline]
    fn set(&mut self, addr: usize, entry: Entry) -> Result<(), NoMemory> {
        let table = self.reach(addr)?;
        self.nodes.store(table, Self::LAST.index(addr), X::leaf(entry));
        Ok(())
    }

    #[inline]
    fn next(&self, from: usize, end: usize) -> Option<(usize, Entry)> {
        self.seek(from, end).map(|(page, _, entry)| (page, entry))
    }

    #[inline]
    fn take(&mut self, from: usize, end: usize) -> Option<(usize, Entry)> {
        let (page, table, entry) = self.seek(from, end)?;
        self.nodes.store(table, Self::LAST.index(page), X::Word::default());
        Some((page, entry))
    }

    fn flush(&mut self, start: usize, end: usize) {
        self.nodes.flush(start, end);
    }

    fn flush_here(&mut self, start: usize, end: usize) {
        self.nodes.flush_here(start, end);
    }
}

impl<X: Format, N: Nodes<X>> Drop for Tree<X, N> {
    fn drop(&mut self) {
        self.release(self.root, 0, N::END >> X::LEVELS[0].shift);
    }
}
