//! Extended attributes of the host's files.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_port::OwnedFd;

use crate::vfs::inode::FileKind;

use super::HostInode;

impl HostInode {
    /// The extended attribute's value.
    pub fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        let fd = match self.content_fd() {
            // To read these no right is needed; of a file that the host does not open for us none is known.
            Err(Errno::EACCES | Errno::EOPNOTSUPP) if name.starts_with(b"security.") => return Err(Errno::ENODATA),
            other => other?,
        };
        filled(|out| self.host().getxattr(fd.fd(), name, out))
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
