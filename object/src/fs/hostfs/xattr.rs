//! Extended attributes of the host's files.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};

use crate::fs::hostio::OwnedFd;
use crate::vfs::inode::FileKind;

use super::HostInode;

impl HostInode {
    /// The extended attribute's value.
    pub fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        let fd = self.content_fd()?;
        let size = self.host().getxattr(fd.fd(), name, &mut [])?;
        let mut value = vec![0; size];
        let n = self.host().getxattr(fd.fd(), name, &mut value)?;
        value.truncate(n);
        Ok(value)
    }

    /// The names of the file's extended attributes; none where its file system has none.
    pub fn xattr_names(&self) -> Result<Vec<Vec<u8>>> {
        let fd = match self.content_fd() {
            Ok(fd) => fd,
            Err(Errno::EOPNOTSUPP | Errno::EACCES) => return Ok(Vec::new()),
            Err(errno) => return Err(errno),
        };
        let size = match self.host().listxattr(fd.fd(), &mut []) {
            Err(Errno::EOPNOTSUPP) => return Ok(Vec::new()),
            other => other?,
        };
        let mut names = vec![0; size];
        let n = self.host().listxattr(fd.fd(), &mut names)?;
        names.truncate(n);
        Ok(names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }

    pub(super) fn change_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        self.check_writable()?;
        self.host().setxattr(self.content_fd()?.fd(), name, value, flags)
    }

    pub(super) fn drop_xattr(&self, name: &[u8]) -> Result<()> {
        self.check_writable()?;
        self.host().removexattr(self.content_fd()?.fd(), name)
    }

    /// A descriptor that xattr calls accept. EOPNOTSUPP for kinds that are never opened on the host.
    fn content_fd(&self) -> Result<Arc<OwnedFd>> {
        match self.kind {
            FileKind::Regular | FileKind::Directory => self.reader(),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }
}
