//! What the files without a file system have in common.

use alloc::sync::Arc;

use janua_abi::linux::Result;
use janua_port::Clock;

use crate::vfs::{Attr, FileKind, FileSystem, FsStat, Inode};

/// `st_dev` of anonymous inodes.
const ANON_DEV: u64 = 0xf;
/// `st_dev` of processes' descriptors.
pub const PROCESS_DEV: u64 = 0xe;

/// Attributes of an anonymous inode: mode 0600 without a type, one inode number for all (as Linux up to 6.18 has it).
pub fn attr(clock: &dyn Clock) -> Attr {
    attr_since(i64::try_from(clock.realtime()).unwrap_or(i64::MAX))
}

/// The same with its times, realtime in nanoseconds.
pub fn attr_since(now: i64) -> Attr {
    Attr {
        dev: ANON_DEV,
        ino: 1,
        mode: 0o600,
        nlink: 1,
        blksize: 4096,
        atime: now,
        mtime: now,
        ctime: now,
        btime: now,
        ..Attr::default()
    }
}

/// The file system that statfs(2) reports for a file without a name, by its kind (linux/magic.h): `None` for what is not of this kernel.
pub(crate) fn file_system(attr: &Attr, inode: &Arc<dyn Inode>) -> Option<Arc<dyn FileSystem>> {
    let (name, magic) = match attr.kind() {
        None if attr.dev == PROCESS_DEV => ("pidfs", 0x5049_4446),
        None => ("anon_inodefs", 0x0904_1934),
        Some(FileKind::Fifo) => ("pipefs", 0x5049_5045),
        Some(FileKind::Socket) => ("sockfs", 0x534f_434b),
        Some(_) => return None,
    };
    Some(Arc::new(Nowhere { name, magic, dev: attr.dev, file: inode.clone() }))
}

/// A file system that is mounted nowhere, as one file sees it.
struct Nowhere {
    name: &'static str,
    magic: u64,
    dev: u64,
    file: Arc<dyn Inode>,
}

impl FileSystem for Nowhere {
    fn name(&self) -> &'static str {
        self.name
    }
    fn root(&self) -> Arc<dyn Inode> {
        self.file.clone()
    }
    fn stat(&self) -> Result<FsStat> {
        Ok(FsStat { magic: self.magic, block_size: 4096, fsid: self.dev, name_max: 255, ..FsStat::default() })
    }
    fn dev(&self) -> u64 {
        self.dev
    }
}
