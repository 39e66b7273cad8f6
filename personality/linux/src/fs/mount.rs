//! mount(2), umount2(2), pivot_root(2).

use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_kernel::table::{Arg, Kind};
use janua_kernel::{UserPtr, UserStr};
use janua_object::vfs::remembered::changing;
use janua_object::vfs::{MountFlags, Path, access};

use super::at::{self, CWD};
use crate::Thread;
use crate::thread::ThreadExt;

/// MS_* flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsFlags(pub usize);

impl Arg for MsFlags {
    const KIND: Kind = Kind::Named("mount");
    fn decode(word: usize) -> Result<Self> {
        // Programs older than Linux 2.4 put a magic number into the upper half.
        const MAGIC: usize = 0xc0ed_0000;
        Ok(MsFlags(if word & 0xffff_0000 == MAGIC { word & 0xffff } else { word }))
    }
}

mod ms {
    pub const RDONLY: usize = 1;
    pub const NOSUID: usize = 2;
    pub const NODEV: usize = 4;
    pub const NOEXEC: usize = 8;
    pub const SYNCHRONOUS: usize = 16;
    pub const REMOUNT: usize = 32;
    pub const NOSYMFOLLOW: usize = 256;
    pub const NOATIME: usize = 1024;
    pub const NODIRATIME: usize = 2048;
    pub const BIND: usize = 4096;
    pub const MOVE: usize = 8192;
    pub const REC: usize = 16384;
    pub const SILENT: usize = 32768;
    pub const UNBINDABLE: usize = 1 << 17;
    pub const PRIVATE: usize = 1 << 18;
    pub const SLAVE: usize = 1 << 19;
    pub const SHARED: usize = 1 << 20;
    pub const RELATIME: usize = 1 << 21;
    pub const STRICTATIME: usize = 1 << 24;
}

impl MsFlags {
    fn has(self, flag: usize) -> bool {
        self.0 & flag != 0
    }

    /// The mount's own flags; access times are relative unless said otherwise.
    fn of_mount(self) -> MountFlags {
        let mut flags = MountFlags::empty();
        for (bit, flag) in [
            (ms::RDONLY, MountFlags::RDONLY),
            (ms::NOSUID, MountFlags::NOSUID),
            (ms::NODEV, MountFlags::NODEV),
            (ms::NOEXEC, MountFlags::NOEXEC),
            (ms::SYNCHRONOUS, MountFlags::SYNCHRONOUS),
            (ms::NOSYMFOLLOW, MountFlags::NOSYMFOLLOW),
            (ms::NOATIME, MountFlags::NOATIME),
            (ms::NODIRATIME, MountFlags::NODIRATIME),
        ] {
            flags.set(flag, self.has(bit));
        }
        flags.set(MountFlags::RELATIME, !self.has(ms::NOATIME) && !self.has(ms::STRICTATIME));
        flags
    }
}

/// Longest option string: a page, as on Linux.
const OPTIONS_MOST: usize = 4096;

fn admin(thread: &Thread) -> Result<()> {
    crate::place::may_mount(&thread.kernel)?;
    if thread.ext.cred().capable(access::CAP_SYS_ADMIN) { Ok(()) } else { Err(Errno::EPERM) }
}

/// A mount seen at its own root. EINVAL for any other place.
fn mounted(path: &Path) -> Result<()> {
    if path.is_mount_root() { Ok(()) } else { Err(Errno::EINVAL) }
}

/// mount(2). All mounts are private: there is one name space, so MS_PRIVATE and MS_SLAVE find what they ask for, and MS_SHARED
/// and MS_UNBINDABLE return EINVAL.
pub fn mount(
    thread: &Thread,
    source: UserStr,
    target: UserStr,
    kind: UserStr,
    flags: MsFlags,
    data: UserPtr<u8>,
) -> Result<()> {
    let optional = |text: UserStr| if text.is_null() { Ok(None) } else { text.path(thread.user()).map(Some) };
    let kind = optional(kind)?;
    let source = optional(source)?;
    let options = match data.non_null() {
        // What is longer is cut, as on Linux.
        Some(data) => read_options(thread, data)?,
        None => Vec::new(),
    };
    let target = at::find(thread, CWD, &target.path(thread.user())?, true)?;
    admin(thread)?;
    let vfs = at::vfs(thread);
    if flags.has(ms::REMOUNT) {
        mounted(&target)?;
        if !flags.has(ms::BIND) {
            target.mount.fs.reconfigure(&options)?;
        }
        let mut new = flags.of_mount();
        if !flags.has(ms::NOATIME | ms::STRICTATIME | ms::RELATIME) {
            let times = MountFlags::NOATIME | MountFlags::RELATIME;
            new = new & !times | target.mount.flags() & times;
        }
        thread.kernel.vfs.set_mount_flags(&target.mount, new);
        return Ok(());
    }
    if flags.has(ms::BIND) {
        let source = source.filter(|source| !source.is_empty()).ok_or(Errno::EINVAL)?;
        let from = at::find(thread, CWD, &source, true)?;
        return vfs.bind(&from, &target, flags.has(ms::REC)).map(|_| ());
    }
    let propagation = ms::SHARED | ms::PRIVATE | ms::SLAVE | ms::UNBINDABLE;
    if flags.has(propagation) {
        let asked = flags.0 & propagation;
        if flags.0 & !(propagation | ms::REC | ms::SILENT) != 0 || !asked.is_power_of_two() {
            return Err(Errno::EINVAL);
        }
        mounted(&target)?;
        return if asked == ms::PRIVATE || asked == ms::SLAVE { Ok(()) } else { Err(Errno::EINVAL) };
    }
    if flags.has(ms::MOVE) {
        let source = source.filter(|source| !source.is_empty()).ok_or(Errno::EINVAL)?;
        let from = at::find(thread, CWD, &source, true)?;
        mounted(&from)?;
        return vfs.move_mount(&from.mount, &target);
    }
    let kind = kind.ok_or(Errno::EINVAL)?;
    let source = source.unwrap_or_else(|| b"none".to_vec());
    let fs = vfs.fs_type(&kind)?.mount(vfs, &thread.caller(), &source, &options)?;
    vfs.mount(fs, &source, flags.of_mount(), &target).map(|_| ())
}

fn read_options(thread: &Thread, data: UserPtr<u8>) -> Result<Vec<u8>> {
    let mut bytes = alloc::vec![0; OPTIONS_MOST];
    let len = thread.user().copy_str(&mut bytes, data.addr()).map_err(|_| Errno::EFAULT)?;
    bytes.truncate(len.unwrap_or(OPTIONS_MOST - 1));
    Ok(bytes)
}

/// Flags of umount2(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UmountFlags(pub u32);

impl Arg for UmountFlags {
    const KIND: Kind = Kind::Named("umount");
    fn decode(word: usize) -> Result<Self> {
        Ok(UmountFlags(word as u32))
    }
}

const MNT_FORCE: u32 = 1;
const MNT_DETACH: u32 = 2;
const UMOUNT_NOFOLLOW: u32 = 8;

/// umount2(2). MNT_EXPIRE is not known.
pub fn umount2(thread: &Thread, target: UserStr, flags: UmountFlags) -> Result<()> {
    if flags.0 & !(MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW) != 0 {
        return Err(Errno::EINVAL);
    }
    let target = at::find(thread, CWD, &target.path(thread.user())?, flags.0 & UMOUNT_NOFOLLOW == 0)?;
    mounted(&target)?;
    admin(thread)?;
    let vfs = at::vfs(thread);
    match flags.0 & MNT_DETACH != 0 {
        true => vfs.detach(&target.mount, true),
        // Whatever else than this place holds it uses it.
        false => vfs.detach_unused(&target.mount, 1),
    }
}

/// pivot_root(2). Processes whose root or working directory is the old root are moved to the new one.
pub fn pivot_root(thread: &Thread, new_root: UserStr, put_old: UserStr) -> Result<()> {
    admin(thread)?;
    let new = at::find(thread, CWD, &new_root.path(thread.user())?, true)?;
    let put_old = at::find(thread, CWD, &put_old.path(thread.user())?, true)?;
    let root = thread.fs().root.read().clone();
    if !new.dentry.is_dir() || !put_old.dentry.is_dir() {
        return Err(Errno::ENOTDIR);
    }
    if new.mount.id == root.mount.id || put_old.mount.id == root.mount.id {
        return Err(Errno::EBUSY);
    }
    mounted(&root)?;
    mounted(&new)?;
    at::vfs(thread).pivot(&new.mount, &root.mount, &put_old)?;
    let threads: Vec<_> = thread.kernel.tree.lock().threads().collect();
    let processes = thread.kernel.processes();
    for fs in processes.iter().map(|task| task.fs()).chain(threads.iter().map(|seat| seat.fs())) {
        for place in [&fs.root, &fs.cwd] {
            let mut place = place.write();
            if *place == root {
                *place = new.clone();
                changing();
            }
        }
    }
    Ok(())
}
