//! What the files without a file system have in common.

use janua_port::Clock;

use crate::vfs::Attr;

/// Attributes of an anonymous inode: mode 0600 without a type, one inode number for all (as Linux up to 6.18 has it).
pub fn attr(clock: &dyn Clock) -> Attr {
    let now = i64::try_from(clock.realtime()).unwrap_or(i64::MAX);
    Attr {
        dev: 0xf,
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
