//! How a file of the host's is opened: by its place in the tree, or again by a descriptor that is kept.

use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_port::OwnedFd;

use crate::file::flags;
use crate::vfs::inode::FileKind;

use super::lately::Moment;
use super::{BENEATH, HostInode};

/// Longest chain of names given to the host at once.
const CHAIN_MOST: usize = 4000;

impl HostInode {
    /// Opens the file by its place, with these flags. ESTALE when another file is there by now.
    pub(super) fn open_place(&self, open: u32) -> Result<Arc<OwnedFd>> {
        let Some(this) = self.this.upgrade() else { return Err(Errno::ESTALE) };
        // Up to the nearest directory that is open, noting the names on the way.
        let mut names: Vec<Arc<[u8]>> = Vec::new();
        let mut at = this;
        let mut base = loop {
            if !names.is_empty()
                && let Some(fd) = at.fds.lock().any()
            {
                break fd;
            }
            let (dir, name) = {
                let place = at.place.lock();
                (place.dir.clone(), place.name.clone())
            };
            let Some(dir) = dir else {
                let fd = at.fds.lock().any().ok_or(Errno::ESTALE)?;
                if !names.is_empty() {
                    break fd;
                }
                // The root itself, with other rights than it came with.
                return self.shared.open(&fd, b"", open, 0, 0);
            };
            names.push(name);
            at = dir;
        };
        let mut path = Vec::new();
        while let Some(name) = names.pop() {
            if path.len() + name.len() > CHAIN_MOST {
                base = self.shared.open(&base, &path, flags::O_PATH | flags::O_DIRECTORY, 0, BENEATH)?;
                path.clear();
            }
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(&name);
        }
        let moment = Moment::now();
        let fd = self.shared.open(&base, &path, open | flags::O_NOFOLLOW, 0, BENEATH)?;
        if self.shared.fresh {
            let stat = self.host().stat(fd.fd())?;
            if (stat.dev, stat.ino) != self.id() {
                return Err(Errno::ESTALE);
            }
            self.saw_at(stat, moment);
        }
        Ok(fd)
    }

    /// A descriptor opened for reading, kept for the next time.
    pub fn reader(&self) -> Result<Arc<OwnedFd>> {
        if let Some(fd) = &self.fds.lock().read {
            return Ok(fd.clone());
        }
        // Should a fifo have taken the place, opening it must not wait.
        let mut open = flags::O_RDONLY | flags::O_NONBLOCK;
        if self.kind == FileKind::Directory {
            open |= flags::O_DIRECTORY;
        }
        let kept = self.fds.lock().path.clone().filter(|_| self.shared.fresh);
        let fd = match kept {
            Some(path) => self.open_again(&path, open)?,
            None => self.open_place(open)?,
        };
        self.keep_reader(&fd);
        Ok(fd)
    }

    /// Opens once more what a descriptor refers to. A directory's "." is found faster than the descriptor's name.
    pub(super) fn open_again(&self, fd: &OwnedFd, open: u32) -> Result<Arc<OwnedFd>> {
        let again = match self.kind {
            FileKind::Directory => self.shared.open(fd, b".", open, 0, BENEATH),
            _ => Err(Errno::EACCES),
        };
        match again {
            // A directory that may be read and not searched.
            Err(Errno::EACCES) => self.shared.open(fd, b"", open, 0, 0),
            other => other,
        }
    }

    /// Keeps a descriptor just opened for reading.
    pub(super) fn keep_reader(&self, fd: &Arc<OwnedFd>) {
        if self.kind == FileKind::Regular {
            self.shared.note_copies(self.id.0, fd);
        }
        let mut fds = self.fds.lock();
        let first = fds.path.is_none() && fds.read.is_none();
        fds.read = Some(fd.clone());
        fds.at_start = true;
        drop(fds);
        if first {
            self.shared.opened(&self.this);
        }
    }

    /// Opens the file by names that begin in `base` and may lead elsewhere by now: ESTALE, or the host's error for them.
    pub(super) fn open_names(&self, base: &HostInode, names: &[u8], open: u32) -> Result<Arc<OwnedFd>> {
        let moment = Moment::now();
        let fd = self.shared.open(&*base.any_fd()?, names, open | flags::O_NOFOLLOW, 0, BENEATH)?;
        let stat = self.host().stat(fd.fd())?;
        if !self.is(&stat) {
            return Err(Errno::ESTALE);
        }
        self.saw_at(stat, moment);
        Ok(fd)
    }

    /// Any descriptor of the file, kept for the next time.
    pub(super) fn any_fd(&self) -> Result<Arc<OwnedFd>> {
        if let Some(fd) = self.fds.lock().any() {
            return Ok(fd);
        }
        if self.kind == FileKind::Directory {
            match self.reader() {
                Err(Errno::EACCES | Errno::EPERM) => {}
                other => return other,
            }
        }
        let fd = self.open_place(flags::O_PATH)?;
        self.fds.lock().path = Some(fd.clone());
        self.shared.opened(&self.this);
        Ok(fd)
    }

    /// An open directory and the name the file has in it; for the root, itself and nothing.
    pub(super) fn dir_and_name(&self) -> Result<(Arc<OwnedFd>, Arc<[u8]>)> {
        let (dir, name) = {
            let place = self.place.lock();
            (place.dir.clone(), place.name.clone())
        };
        match dir {
            Some(dir) => Ok((dir.any_fd()?, name)),
            None => Ok((self.any_fd()?, Arc::from(&b""[..]))),
        }
    }

    /// Before a name goes: those that use the file reach it by a descriptor from now on.
    pub(super) fn pin(&self) -> Result<()> {
        let fd = self.any_fd()?;
        let mut fds = self.fds.lock();
        if fds.read.is_none() {
            // Possibly an open file's, which may be closed before the last user goes.
            fds.path.get_or_insert(fd);
        }
        fds.pinned = true;
        Ok(())
    }
}
