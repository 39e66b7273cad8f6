//! The mapping database: which pages of physical memory a task has, and from whom.
//!
//! A page of physical memory has a tree of mappings. Its root is sigma0's, at the page's own address; each other mapping came from its parent by a
//! message, with no right that the parent does not have, and goes when the parent's does. The tree is a list in which a mapping's
//! descendants follow it with a greater depth.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use janua_abi::l4v2::id::SIGMA0_TASK;
use janua_abi::l4v2::{PAGE, USER_END};
use janua_abi::linux::Result;
use janua_port::{Backing, MemoryObject, Prot, Space};
use janua_rt::Mutex;

/// Most mappings of one page of physical memory: a search in its tree has a bound.
pub const MAPPINGS_OF_A_PAGE: usize = 2048;
/// Mappings in all, for each page of physical memory: what they take of the kernel's memory has a bound.
const MAPPINGS_PER_PAGE: usize = 8;
/// Pages changed with the database locked.
const STEP: usize = 512;

/// Physical memory and who has what of it.
pub struct Memory {
    object: Arc<dyn MemoryObject>,
    inner: Mutex<Inner>,
}

struct Inner {
    trees: Vec<Vec<Node>>,
    spaces: BTreeMap<u16, Mapped>,
    count: usize,
}

/// A mapping in the tree of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    task: u16,
    /// The number of the page in the task's space.
    page: u32,
    depth: u32,
}

/// A task's space, and what is mapped there, by pages' numbers.
struct Mapped {
    space: Arc<dyn Space>,
    pages: BTreeMap<u32, Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    frame: u32,
    write: bool,
}

/// What is to be mapped: `pages` of `from` appear at `target` in `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub from: u16,
    pub to: u16,
    /// Numbers of pages.
    pub pages: Range<u32>,
    pub target: u32,
    pub write: bool,
    pub grant: bool,
}

/// How a change went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The next page to look at.
    Next(u32),
    Done,
    /// A page could not be mapped where it was to be: there is no user memory, or no memory of the kernel's is left for it.
    Failed,
}

/// What becomes of mappings that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmap {
    /// They go; otherwise they may only no longer be written.
    pub flush: bool,
    /// The task's own too, and not only those that came from it.
    pub own: bool,
}

/// Pages side by side in both memories, mapped together.
#[derive(Clone, Copy)]
struct Run {
    page: u32,
    frame: u32,
    count: u32,
    write: bool,
}

impl Run {
    fn takes(&self, page: u32, entry: Entry) -> bool {
        self.page + self.count == page && self.frame + self.count == entry.frame && self.write == entry.write
    }
}

fn prot(write: bool) -> Prot {
    // Processors of that time execute what they can read.
    Prot { read: true, write, exec: true }
}

const BYTES: usize = PAGE as usize;

impl Inner {
    /// Where the mapping of a task's page is in its tree.
    fn place(&self, task: u16, page: u32) -> Option<(u32, usize)> {
        let frame = self.spaces.get(&task)?.pages.get(&page)?.frame;
        let tree = self.trees.get(frame as usize)?;
        Some((frame, tree.iter().position(|node| (node.task, node.page) == (task, page))?))
    }

    /// Where in a tree the descendants of a mapping end.
    fn end(tree: &[Node], at: usize) -> usize {
        let depth = tree[at].depth;
        tree[at + 1..].iter().position(|node| node.depth <= depth).map_or(tree.len(), |more| at + 1 + more)
    }

    /// Takes a page out of a task's space.
    fn forget(&mut self, node: Node) {
        if let Some(mapped) = self.spaces.get_mut(&node.task)
            && mapped.pages.remove(&node.page).is_some()
        {
            self.count -= 1;
            // The range is user memory: it has been mapped.
            let _ = mapped.space.unmap(node.page as usize * BYTES, BYTES);
        }
    }

    /// A page that is mapped may only be read from now on.
    fn restrict(&mut self, node: Node) {
        if let Some(mapped) = self.spaces.get_mut(&node.task)
            && let Some(entry) = mapped.pages.get_mut(&node.page)
            && entry.write
        {
            entry.write = false;
            let _ = mapped.space.protect(node.page as usize * BYTES, BYTES, prot(false));
        }
    }

    /// Does to a page's mappings what is asked for.
    fn revoke(&mut self, task: u16, page: u32, how: Unmap) {
        let Some((frame, at)) = self.place(task, page) else { return };
        let tree = &mut self.trees[frame as usize];
        let range = at + usize::from(!how.own)..Inner::end(tree, at);
        if how.flush {
            let gone: Vec<Node> = tree.drain(range).collect();
            gone.into_iter().for_each(|node| self.forget(node));
        } else {
            let kept: Vec<Node> = tree[range].to_vec();
            kept.into_iter().for_each(|node| self.restrict(node));
        }
    }

    /// Enters one page into the database, without the space: its entry. `None` where nothing is to be done, `Err` where it cannot be.
    fn enter(&mut self, transfer: &Transfer, source: u32, target: u32, most: usize) -> core::result::Result<Option<Entry>, ()> {
        if (transfer.from, source) == (transfer.to, target) {
            return Ok(None);
        }
        let Some((frame, parent)) = self.place(transfer.from, source) else { return Ok(None) };
        let Some(given) = self.spaces.get(&transfer.from).and_then(|from| from.pages.get(&source)).copied() else {
            return Ok(None);
        };
        let write = transfer.write && given.write;
        let there = self.spaces.get(&transfer.to).ok_or(())?.pages.get(&target).copied();
        if let Some(there) = there {
            let child = self.place(transfer.to, target).filter(|(other, _)| *other == frame).map(|(_, at)| at);
            if child.is_some_and(|child| is_child(&self.trees[frame as usize], child, parent)) && !transfer.grant {
                // The same page once more: it may get more rights by it.
                return Ok((write && !there.write).then_some(Entry { frame, write }));
            }
            self.revoke(transfer.to, target, Unmap { flush: true, own: true });
        }
        if transfer.grant && !write {
            // Those who have it from here may not have more than who has it now.
            self.revoke(transfer.from, source, Unmap { flush: false, own: false });
        }
        // What was there may have been what this one came from.
        let Some((_, parent)) = self.place(transfer.from, source) else { return Ok(None) };
        let tree = &mut self.trees[frame as usize];
        if transfer.grant {
            tree[parent] = Node { task: transfer.to, page: target, depth: tree[parent].depth };
            self.forget(Node { task: transfer.from, page: source, depth: 0 });
        } else {
            if tree.len() >= MAPPINGS_OF_A_PAGE || self.count >= most {
                return Err(());
            }
            let depth = tree[parent].depth + 1;
            tree.insert(parent + 1, Node { task: transfer.to, page: target, depth });
        }
        Ok(Some(Entry { frame, write }))
    }

    /// Maps pages that have been entered. Those that cannot be are taken out again.
    fn install(&mut self, object: &Arc<dyn MemoryObject>, task: u16, run: Run) -> Result<()> {
        let Some(mapped) = self.spaces.get_mut(&task) else { return Ok(()) };
        for at in 0..run.count {
            let entry = Entry { frame: run.frame + at, write: run.write };
            self.count += usize::from(mapped.pages.insert(run.page + at, entry).is_none());
        }
        let offset = u64::from(run.frame) * u64::from(PAGE);
        let backing = Backing::Object { object: object.clone(), offset, shared: true, frozen: false };
        let made = mapped.space.map(run.page as usize * BYTES, run.count as usize * BYTES, prot(run.write), &backing);
        if made.is_err() {
            for at in 0..run.count {
                self.revoke(task, run.page + at, Unmap { flush: true, own: true });
            }
        }
        made
    }
}

/// Whether one mapping of a tree came straight from another.
fn is_child(tree: &[Node], child: usize, parent: usize) -> bool {
    child > parent && child < Inner::end(tree, parent) && tree[child].depth == tree[parent].depth + 1
}

impl Memory {
    /// So many pages of physical memory, which are an object's; sigma0 gets them with [`Memory::give_all`].
    pub fn new(object: Arc<dyn MemoryObject>, pages: u32) -> Memory {
        let inner = Inner { trees: alloc::vec![Vec::new(); pages as usize], spaces: BTreeMap::new(), count: 0 };
        Memory { object, inner: Mutex::new(inner) }
    }

    /// The memory as an object: an address there is a physical one.
    pub fn object(&self) -> &Arc<dyn MemoryObject> {
        &self.object
    }

    /// A task has a space from now on.
    pub fn add_space(&self, task: u16, space: Arc<dyn Space>) {
        self.inner.lock().spaces.insert(task, Mapped { space, pages: BTreeMap::new() });
    }

    /// Sigma0 has these pages where they are; those of `read_only` it may not write.
    pub fn give_all(&self, pages: Range<u32>, read_only: Range<u32>) -> Result<()> {
        let mut inner = self.inner.lock();
        for (range, write) in
            [(pages.start..read_only.start, true), (read_only.clone(), false), (read_only.end..pages.end, true)]
        {
            if range.is_empty() {
                continue;
            }
            for page in range.clone() {
                inner.trees[page as usize] = alloc::vec![Node { task: SIGMA0_TASK, page, depth: 0 }];
            }
            let run = Run { page: range.start, frame: range.start, count: range.end - range.start, write };
            inner.install(&self.object, SIGMA0_TASK, run)?;
        }
        Ok(())
    }

    /// Maps what there is of a transfer's pages from page `next` on, some of it; call again with what it returns.
    pub fn map(&self, transfer: &Transfer, next: u32) -> Progress {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let Some(from) = inner.spaces.get(&transfer.from) else { return Progress::Done };
        let Some(bounds) = inner.spaces.get(&transfer.to).map(|to| to.space.bounds()) else { return Progress::Done };
        let sources: Vec<u32> =
            from.pages.range(next..transfer.pages.end.max(next)).take(STEP).map(|(page, _)| *page).collect();
        let most = inner.trees.len().saturating_mul(MAPPINGS_PER_PAGE);
        let (mut run, mut failed): (Option<Run>, bool) = (None, false);
        for source in &sources {
            let target = transfer.target + (source - transfer.pages.start);
            let addr = target as usize * BYTES;
            if addr + BYTES > USER_END as usize || !bounds.contains(addr, BYTES) {
                failed = true;
                break;
            }
            // What is there goes, and what came from it: all of that must be in the space by then.
            let replaced = inner.spaces.get(&transfer.to).is_some_and(|to| to.pages.contains_key(&target));
            if let Some(whole) = run.take_if(|_| replaced) {
                failed |= inner.install(&self.object, transfer.to, whole).is_err();
            }
            match inner.enter(transfer, *source, target, most) {
                Ok(None) => {}
                Err(()) => {
                    failed = true;
                    break;
                }
                Ok(Some(entry)) => match &mut run {
                    Some(run) if run.takes(target, entry) => run.count += 1,
                    other => {
                        let begun = Run { page: target, frame: entry.frame, count: 1, write: entry.write };
                        if let Some(whole) = other.replace(begun) {
                            failed |= inner.install(&self.object, transfer.to, whole).is_err();
                        }
                    }
                },
            }
        }
        if let Some(run) = run {
            failed |= inner.install(&self.object, transfer.to, run).is_err();
        }
        match sources.last() {
            _ if failed => Progress::Failed,
            Some(last) if sources.len() == STEP => Progress::Next(last + 1),
            _ => Progress::Done,
        }
    }

    /// Takes back some of what a task has in a range of pages, from page `next` on; call again with what it returns.
    pub fn unmap(&self, task: u16, pages: &Range<u32>, next: u32, how: Unmap) -> Progress {
        let mut inner = self.inner.lock();
        let Some(mapped) = inner.spaces.get(&task) else { return Progress::Done };
        let found: Vec<u32> = mapped.pages.range(next..pages.end.max(next)).take(STEP).map(|(page, _)| *page).collect();
        for page in &found {
            inner.revoke(task, *page, how);
        }
        match found.last() {
            Some(last) if found.len() == STEP => Progress::Next(last + 1),
            _ => Progress::Done,
        }
    }

    /// A task is over, and what others have from it.
    pub fn remove_space(&self, task: u16) {
        let all = 0..u32::MAX;
        let mut next = 0;
        while let Progress::Next(page) = self.unmap(task, &all, next, Unmap { flush: true, own: true }) {
            next = page;
        }
        self.inner.lock().spaces.remove(&task);
    }

    /// Mappings there are.
    pub fn mappings(&self) -> usize {
        self.inner.lock().count
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
