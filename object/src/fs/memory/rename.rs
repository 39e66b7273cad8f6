//! Names that move from one directory in memory to another.

use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};

use crate::vfs::inode::FileKind;
use crate::vfs::{Slot, rename};

use super::table::Entry;
use super::{Body, Node};

/// What the names of a rename are to lead to.
struct Names<'a> {
    /// Under the new name.
    source: &'a Arc<Node>,
    /// Under the old name, when the two are exchanged.
    target: Option<&'a Arc<Node>>,
    /// Under the old name otherwise.
    whiteout: Option<Arc<Node>>,
}

impl Node {
    /// rename(2) from this directory to another of the same file system, or within this one.
    pub(super) fn rename_to(&self, old: &[u8], to: &Node, new: &[u8], flags: u32) -> Result<()> {
        if !Arc::ptr_eq(&to.shared, &self.shared) {
            return Err(Errno::EXDEV);
        }
        let source = {
            let mut table = self.table()?;
            self.find(&mut table, old)?
        };
        let target = {
            let mut table = to.table()?;
            match to.find(&mut table, new) {
                Ok(node) => Some(node),
                Err(Errno::ENOENT) => None,
                Err(errno) => return Err(errno),
            }
        };
        let exchange = flags & rename::EXCHANGE != 0;
        if let Some(target) = &target {
            if flags & rename::NOREPLACE != 0 {
                return Err(Errno::EEXIST);
            }
            if !exchange && target.kind == FileKind::Directory && !target.is_empty()? {
                return Err(Errno::ENOTEMPTY);
            }
            target.keep();
        } else if exchange {
            return Err(Errno::ENOENT);
        }
        source.keep();
        self.keep();
        to.keep();
        let whiteout = (flags & rename::WHITEOUT != 0).then(|| {
            let body = Body::Special { fifo: Slot::new(), socket: Slot::new() };
            Node::make(&self.shared, FileKind::CharDevice as u32, 0, 0, 0, body)
        });
        let now = self.shared.now();
        let is_dir = |node: &Arc<Node>| i32::from(node.kind == FileKind::Directory);
        self.change_names(old, to, new, Names { source: &source, target: target.as_ref().filter(|_| exchange), whiteout })?;
        let arrives = is_dir(&source) - target.as_ref().map_or(0, is_dir);
        if exchange {
            self.touched(-arrives, now);
            to.touched(arrives, now);
        } else {
            self.touched(-is_dir(&source), now);
            to.touched(arrives, now);
        }
        source.meta.lock().ctime = now;
        if let Some(target) = target {
            if exchange {
                target.meta.lock().ctime = now;
            } else {
                target.linked(-1, now);
            }
        }
        Ok(())
    }

    /// Changes the tables of both directories, locked together. ENOMEM, and then nothing has changed.
    fn change_names(&self, old: &[u8], to: &Node, new: &[u8], names: Names<'_>) -> Result<()> {
        let same = core::ptr::eq(self, to);
        let (mut first, mut second);
        let (from_table, to_table) = if same {
            first = self.table()?;
            (&mut *first, None)
        } else if core::ptr::from_ref(self) < core::ptr::from_ref(to) {
            first = self.table()?;
            second = to.table()?;
            (&mut *first, Some(&mut *second))
        } else {
            second = to.table()?;
            first = self.table()?;
            (&mut *first, Some(&mut *second))
        };
        // Room for what may come, before anything goes.
        from_table.reserve()?;
        let to_table = match to_table {
            Some(table) => table.reserve().map(|()| Some(table))?,
            None => None,
        };
        if let Some(target) = names.target {
            from_table.replace(old, target.clone());
            to_table.unwrap_or(from_table).replace(new, names.source.clone());
        } else {
            let gone = from_table.remove(old);
            if let Some(node) = names.whiteout {
                from_table.replace(old, node);
            }
            let table = to_table.unwrap_or(from_table);
            let replaced = table.remove(new);
            let covers = matches!(table.get(new), Some(Entry::Whiteout));
            table.put(Arc::from(new), names.source.clone(), covers);
            drop(gone);
            // The caller still holds what was replaced, so nothing is freed under the locks.
            drop(replaced);
        }
        Ok(())
    }
}
