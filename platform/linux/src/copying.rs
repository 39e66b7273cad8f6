//! Which reads of the host's may go straight to guest memory.
//!
//! A page of a guest's is made executable only after it has been closed for writing and scanned. That holds against the host where it
//! copies by the calling thread's own page tables: what is closed meanwhile is not written to. But where a file does not go by the
//! page cache, the host looks the pages up once, as writable, holds on to them and lets a device or another program's answer fill them
//! later, closed or not. What is read so goes through memory of the kernel's. docs/security.md lists all host calls that write to
//! guest memory.

use janua_abi::linux::fcntl::open::O_DIRECT;
use janua_abi::linux::stat::{S_IFBLK, S_IFCHR, S_IFIFO, S_IFMT, S_IFREG, device};
use janua_port::{Host, HostFd, HostFiles};

use crate::host::LinuxHost;

/// File systems all of whose reads but those with O_DIRECT copy from the page cache, or from memory of the host's kernel (statfs(2)).
/// An overlay is what its layers are: nobody puts one over FUSE or 9p without wanting to.
const CACHED: &[u64] = &[
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x0102_1994, // tmpfs, memfd_create(2)
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0x7371_7368, // squashfs
    0xe0f5_e1e2, // erofs
    0xf2f5_2010, // f2fs
    0x9660,      // iso9660
    0x1501_3346, // udf
    0x4d44,      // vfat
    0x2011_bab0, // exfat
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6367_7270, // cgroup2
];

/// Character devices whose reads copy, by their major numbers: /dev/null and the like, terminals.
const COPYING: &[u32] = &[1, 4, 5, 136, 137, 138, 139, 140, 141, 142, 143];

/// [`HostFiles::reads_copy`]. In doubt they do not.
pub fn reads_copy(fd: HostFd) -> bool {
    let Ok(stat) = LinuxHost.stat(fd) else { return false };
    let plain = || LinuxHost.flags(fd).is_ok_and(|flags| flags & O_DIRECT == 0);
    match stat.mode & S_IFMT {
        S_IFIFO => true,
        S_IFCHR => COPYING.contains(&device::major(stat.rdev)),
        S_IFBLK => plain(),
        S_IFREG => plain() && LinuxHost.statfs(fd).is_ok_and(|words| CACHED.contains(&words[0])),
        // Sockets may decrypt straight into the reader's pages.
        _ => false,
    }
}
