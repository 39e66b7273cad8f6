//! Extended attributes of nodes (xattr(7)).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use janua_abi::linux::fcntl::{XATTR_CREATE, XATTR_REPLACE};
use janua_abi::linux::{Errno, Result};

use super::{Meta, Node};

/// Most bytes of a file's attributes, names and values together: a list of the names (XATTR_LIST_MAX) and one value of the largest
/// size (XATTR_SIZE_MAX) fit.
const MOST: usize = 2 * 65536;

impl Node {
    /// The attribute's value. ENODATA.
    pub(super) fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        let meta = self.meta.lock();
        match (&meta.xattrs, &self.lower) {
            (Some(xattrs), _) => xattrs.get(name).cloned().ok_or(Errno::ENODATA),
            (None, Some(lower)) => {
                drop(meta);
                lower.inode.xattr(name)
            }
            (None, None) => Err(Errno::ENODATA),
        }
    }

    pub(super) fn xattr_names(&self) -> Result<Vec<Vec<u8>>> {
        let meta = self.meta.lock();
        match (&meta.xattrs, &self.lower) {
            (Some(xattrs), _) => Ok(xattrs.keys().cloned().collect()),
            (None, Some(lower)) => {
                drop(meta);
                lower.inode.xattr_names()
            }
            (None, None) => Ok(Vec::new()),
        }
    }

    /// Sets an attribute, or removes it. EEXIST and ENODATA as `flags` demand; ENOSPC when the file has no room for it.
    pub(super) fn change_xattr(&self, name: &[u8], value: Option<&[u8]>, flags: u32) -> Result<()> {
        self.keep();
        let now = self.shared.now();
        let mut meta = self.meta.lock();
        let Meta { xattrs, ctime, .. } = &mut *meta;
        let xattrs = match xattrs {
            Some(xattrs) => xattrs,
            None => xattrs.insert(self.xattrs_below()?),
        };
        let there = xattrs.contains_key(name);
        match value {
            Some(_) if flags & XATTR_CREATE != 0 && there => return Err(Errno::EEXIST),
            Some(_) if flags & XATTR_REPLACE != 0 && !there => return Err(Errno::ENODATA),
            Some(value) => {
                let all: usize =
                    xattrs.iter().filter(|(other, _)| *other != name).map(|(other, value)| size(other, value)).sum();
                if all + size(name, value) > MOST {
                    return Err(Errno::ENOSPC);
                }
                xattrs.insert(name.to_vec(), value.to_vec());
            }
            None if !there => return Err(Errno::ENODATA),
            None => {
                xattrs.remove(name);
            }
        }
        *ctime = now;
        Ok(())
    }

    /// What a file may do is lost with what it holds, or who owns it (capabilities(7)).
    pub(super) fn drop_capability(&self, meta: &mut Meta) {
        const CAPABILITY: &[u8] = b"security.capability";
        if meta.xattrs.is_none() && self.lower.is_some() {
            // Asked once: from here on they are kept here.
            meta.xattrs = Some(self.xattrs_below().unwrap_or_default());
        }
        if let Some(xattrs) = &mut meta.xattrs {
            xattrs.remove(CAPABILITY);
        }
    }

    fn xattrs_below(&self) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        let Some(lower) = &self.lower else { return Ok(BTreeMap::new()) };
        let mut all = BTreeMap::new();
        for name in lower.inode.xattr_names()? {
            // One that may not be read (trusted.*) does not come along.
            if let Ok(value) = lower.inode.xattr(&name) {
                all.insert(name, value);
            }
        }
        Ok(all)
    }
}

/// What an attribute counts: a name costs its zero as well, and what keeps both.
fn size(name: &[u8], value: &[u8]) -> usize {
    const KEEPS: usize = 16;
    name.len() + 1 + value.len() + KEEPS
}
