//! Extended attributes of the host's files.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};
use janua_port::OwnedFd;

use crate::vfs::inode::FileKind;

use super::HostInode;

impl HostInode {
    /// The extended attribute's value.
    pub fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        match self.xattr_unopened(name) {
            Err(Errno::ENOSYS | Errno::ENOENT) => {}
            answer => return answer,
        }
        let fd = match self.content_fd() {
            // To read these no right is needed; of a file that the host does not open for us none is known.
            Err(Errno::EACCES | Errno::EOPNOTSUPP) if name.starts_with(b"security.") => return Err(Errno::ENODATA),
            other => other?,
        };
        filled(|out| self.host().getxattr(fd.fd(), name, out))
    }

    /// The same without opening a file for it, which costs more than the question: `ls -l` asks for one or two of each file. Only attributes that anybody
    /// may read: whose rights have been looked at may have another name by now, and its name be another file's. ENOSYS where it has to be
    /// opened, or is open; ENOENT if it has no name there any more.
    fn xattr_unopened(&self, name: &[u8]) -> Result<Vec<u8>> {
        let anybodys = name.starts_with(b"security.") || name.starts_with(b"system.posix_acl_");
        if !anybodys
            || !matches!(self.kind, FileKind::Regular | FileKind::Directory | FileKind::Symlink)
            || !self.shared.asks_by_name.load(Ordering::Relaxed)
        {
            return Err(Errno::ENOSYS);
        }
        let known = {
            let fds = self.fds.lock();
            if fds.of_contents().is_some() {
                return Err(Errno::ENOSYS);
            }
            fds.any()
        };
        let (fd, path) = match known {
            None => self.dir_and_name()?,
            Some(fd) if self.kind == FileKind::Directory => (fd, Arc::from(&b"."[..])),
            // Its name may be another file's by now, and the host takes no descriptor of O_PATH for this.
            Some(_) => return Err(Errno::ENOSYS),
        };
        let answer = filled(|out| self.host().getxattr_at(fd.fd(), &path, name, out));
        if answer == Err(Errno::ENOSYS) {
            self.shared.asks_by_name.store(false, Ordering::Relaxed);
        }
        answer
    }

    /// The names of the file's extended attributes; none where its file system has none.
    pub fn xattr_names(&self) -> Result<Vec<Vec<u8>>> {
        let fd = match self.content_fd() {
            Ok(fd) => fd,
            Err(Errno::EOPNOTSUPP | Errno::EACCES) => return Ok(Vec::new()),
            Err(errno) => return Err(errno),
        };
        let names = match filled(|out| self.host().listxattr(fd.fd(), out)) {
            Err(Errno::EOPNOTSUPP) => return Ok(Vec::new()),
            other => other?,
        };
        Ok(names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }

    pub(super) fn change_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        let _change = self.change()?;
        self.host().setxattr(self.content_fd()?.fd(), name, value, flags)
    }

    pub(super) fn drop_xattr(&self, name: &[u8]) -> Result<()> {
        let _change = self.change()?;
        self.host().removexattr(self.content_fd()?.fd(), name)
    }

    /// A descriptor that xattr calls accept. EOPNOTSUPP for kinds that are never opened on the host.
    fn content_fd(&self) -> Result<Arc<OwnedFd>> {
        if !matches!(self.kind, FileKind::Regular | FileKind::Directory) {
            return Err(Errno::EOPNOTSUPP);
        }
        let at_hand = self.fds.lock().of_contents();
        at_hand.map_or_else(|| self.reader(), Ok)
    }
}

/// What `get` writes into a buffer of the size that it asks for; it returns the size when it is given none, and what is there may have
/// grown when it is called again.
fn filled(get: impl Fn(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    // XATTR_SIZE_MAX and XATTR_LIST_MAX.
    const MOST: usize = 65536;
    let mut out = vec![0; get(&mut [])?];
    let size = match get(&mut out) {
        Err(Errno::ERANGE) => {
            out.resize(MOST, 0);
            get(&mut out)?
        }
        other => other?,
    };
    out.truncate(size);
    Ok(out)
}
