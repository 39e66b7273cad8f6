//! The name space a kernel starts with.
//!
//! Two steps, since some file systems show the kernel itself: [`root`] makes the name space with its first file system before
//! there is a kernel, [`mount_all`] mounts the others once there is one, and finds the working directory.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::WriteBuf;
use janua_object::OpenFile;
use janua_object::caller::Itself;
use janua_object::file::flags as file_flags;
use janua_object::fs::hostfs::HostFs;
use janua_object::fs::overlay::{Below, Overlay};
use janua_object::fs::tmpfs::TmpFs;
use janua_object::vfs::access::{self, Who};
use janua_object::vfs::{FileKind, FileSystem, Last, Make, MountFlags, Path, Resolve, SetAttr, Start, Vfs, Walk};
use janua_object::{Caller, Cred};
use janua_port::{BlockDevice, Machine};
use janua_rt::RwLock;

use crate::Kernel;
use crate::boot::{BootMount, BootMountKind, BootText};
use crate::fs::FsContext;

/// The kernel with no more rights than the first program will have.
fn as_user(kernel: &Kernel) -> Itself {
    let config = &kernel.config;
    Itself::with(kernel.machine, Cred::of_user(config.uid, config.gid, config.groups.clone()))
}

/// How an image mounts the machine's disk, whose files get the device number: the file system, or the end of a sentence that
/// states why not.
pub type MountDisk =
    fn(&'static dyn Machine, &'static dyn BlockDevice, u64) -> core::result::Result<Arc<dyn FileSystem>, String>;

/// The name space with its root mounted: `mount` is the first of the configuration. Root and working directory of the result are
/// "/". The error is a sentence for the person outside.
pub fn root(
    machine: &'static dyn Machine,
    mount: &BootMount,
    umask: u32,
    disk: Option<MountDisk>,
) -> core::result::Result<(Vfs, Arc<FsContext>), String> {
    let vfs = Vfs::new(machine);
    vfs.register_type("tmpfs", Arc::new(TmpFs::mount));
    vfs.register_type("ramfs", Arc::new(TmpFs::mount));
    let made = match mount.kind {
        BootMountKind::Disk => mount_disk(&vfs, disk)?,
        BootMountKind::Archive { .. } => made_root(&vfs, mount).map_err(not_unpacked)?,
        _ => made_root(&vfs, mount).map_err(|errno| format!("cannot mount {} as the root: {}", named(mount), words(errno)))?,
    };
    let context = FsContext { root: RwLock::new(made.clone()), cwd: RwLock::new(made), umask: AtomicU32::new(umask & 0o777) };
    Ok((vfs, Arc::new(context)))
}

/// The disk as the root.
fn mount_disk(vfs: &Vfs, mount: Option<MountDisk>) -> core::result::Result<Path, String> {
    let (Some(disk), Some(mount)) = (vfs.machine.disk(), mount) else {
        return Err("there is no disk this kernel can use".into());
    };
    let fs = mount(vfs.machine, disk, vfs.new_dev()).map_err(|why| format!("cannot mount the disk: {why}"))?;
    let mut flags = MountFlags::RELATIME;
    flags.set(MountFlags::RDONLY, disk.read_only());
    let first = vfs.new_mount(fs, format!("/dev/{}", disk.name()).as_bytes(), flags);
    vfs.set_root(&first);
    // The one disk there is, and it is in use.
    vfs.register_type("ext4", Arc::new(|_: &Vfs, _: &dyn Caller, _: &[u8], _: &[u8]| Err(Errno::EBUSY)));
    Ok(Path::of_mount(&first))
}

/// Why the initial file tree cannot be unpacked.
fn not_unpacked(errno: Errno) -> String {
    String::from(match errno {
        Errno::EINVAL => "the initial file tree is no archive, or a broken or cut off one",
        Errno::ENOSPC | Errno::ENOMEM => "the initial file tree does not fit into memory",
        Errno::EEXIST => "a name is twice in the initial file tree",
        Errno::ENOENT | Errno::ENOTDIR => "the initial file tree has a file without the directory it is in",
        _ => "the initial file tree cannot be unpacked",
    })
}

/// A root of another kind. Kinds that need a kernel are refused with EINVAL.
fn made_root(vfs: &Vfs, mount: &BootMount) -> Result<Path> {
    let machine = vfs.machine;
    let (fs, source) = file_system(vfs, mount)?.ok_or(Errno::EINVAL)?;
    let first = vfs.new_mount(fs, &source, flags(mount));
    vfs.set_root(&first);
    let place = Path::of_mount(&first);
    if let BootMountKind::Archive { archive } = mount.kind {
        let host = machine.host().ok_or(Errno::ENODEV)?;
        super::unpack::unpack(vfs, &Itself::new(machine), &place, host, archive)?;
    }
    Ok(place)
}

/// Mounts the rest of the configuration and moves the first working directory as it specifies. The error is a sentence for the
/// person outside.
pub fn mount_all(kernel: &Arc<Kernel>) -> core::result::Result<(), String> {
    let vfs = &kernel.vfs;
    let boot = Itself::new(kernel.machine);
    for mount in kernel.config.mounts.iter().skip(1) {
        if matches!(mount.kind, BootMountKind::Archive { .. } | BootMountKind::Disk) {
            return Err(format!("cannot mount {} at {}: only as the root", named(mount), lossy(&mount.target)));
        }
        if matches!(mount.kind, BootMountKind::ReadOnly) {
            if let Ok(place) = find(vfs, &boot, &kernel.root.root.read().clone(), &mount.target) {
                let shown = Below::new("sysfs", place.mount.fs.clone(), place.inode().clone());
                vfs.show_as(shown, b"sysfs", flags(mount), &place)
                    .map_err(|errno| format!("cannot show {} again: {}", lossy(&mount.target), words(errno)))?;
            }
            continue;
        }
        if matches!(mount.kind, BootMountKind::SysNet) {
            // What cannot be covered is not shown to be covered; a tree without it needs none.
            if find(vfs, &boot, &kernel.root.root.read().clone(), &mount.target).is_ok() {
                let fs = crate::procfs::interfaces(kernel);
                mount_at(kernel, fs, b"sysfs", flags(mount), &mount.target)
                    .map_err(|errno| format!("cannot mount {} at {}: {}", named(mount), lossy(&mount.target), words(errno)))?;
            }
            continue;
        }
        mount_one(vfs, &boot, kernel.root.root.read().clone(), mount)
            .map_err(|errno| format!("cannot mount {} at {}: {}", named(mount), lossy(&mount.target), words(errno)))?;
    }
    kernel.root.umask.store(kernel.config.umask & 0o777, Ordering::Relaxed);
    for text in &kernel.config.texts {
        let root = kernel.root.root.read().clone();
        // A tree that has no place for it goes without.
        let _ = make_text(vfs, &boot, &root, text);
    }
    match working_directory(kernel, boot) {
        Ok(path) => {
            *kernel.root.cwd.write() = path;
            Ok(())
        }
        Err(errno) => Err(format!("cannot start in {}: {}", lossy(&kernel.config.cwd), words(errno))),
    }
}

/// Where the first program starts. One who was somewhere before may stay there; who asks for a place must be allowed to go there.
fn working_directory(kernel: &Kernel, boot: Itself) -> Result<Path> {
    let config = &kernel.config;
    directory_for(kernel, &if config.cwd_asked { as_user(kernel) } else { boot }, &config.cwd)
}

fn directory_for(kernel: &Kernel, caller: &Itself, path: &[u8]) -> Result<Path> {
    let path = find(&kernel.vfs, caller, &kernel.root.root.read().clone(), path)?;
    if !path.dentry.is_dir() {
        return Err(Errno::ENOTDIR);
    }
    Who { caller, cred: &caller.cred }.check(&**path.inode(), access::EXEC)?;
    Ok(path)
}

/// A directory that the user of the sandbox may go to. The error is for a person.
pub fn directory(kernel: &Kernel, path: &[u8]) -> core::result::Result<Path, String> {
    directory_for(kernel, &as_user(kernel), path).map_err(words)
}

/// Makes a small file where there is none of that name.
fn make_text(vfs: &Vfs, boot: &Itself, root: &Path, text: &BootText) -> Result<()> {
    match find(vfs, boot, root, &text.path) {
        Err(Errno::ENOENT) => {}
        other => return other.map(drop),
    }
    let path = find_or_make(vfs, boot, root, &text.path, false)?;
    let ops = path.inode().clone().open(boot, file_flags::O_WRONLY)?;
    let file = OpenFile::new(ops, file_flags::O_WRONLY, Some(path));
    file.ops.write(&file, boot, &mut WriteBuf::kernel(&text.text), 0)?;
    match &file.path {
        Some(path) if text.executable => {
            path.inode().set_attr(&SetAttr { mode: Some(0o755), ctime: Some(vfs.now()), ..SetAttr::default() })
        }
        _ => Ok(()),
    }
}

/// A mount's file system, for a person.
fn named(mount: &BootMount) -> String {
    match &mount.kind {
        BootMountKind::Host { source, .. } | BootMountKind::Overlay { source, .. } => lossy(source).into_owned(),
        BootMountKind::Archive { .. } => String::from("the initial file tree"),
        BootMountKind::Disk => String::from("the disk"),
        BootMountKind::Memory => String::from("a file system in memory"),
        BootMountKind::Proc => String::from("proc"),
        BootMountKind::Dev => String::from("the devices"),
        BootMountKind::Sys | BootMountKind::SysNet | BootMountKind::ReadOnly => String::from("sysfs"),
    }
}

/// What a person should read for an error of a place.
fn words(errno: Errno) -> String {
    String::from(match errno {
        Errno::ENOENT => "there is no such file or directory inside",
        Errno::ENOTDIR => "not a directory",
        Errno::EISDIR => "a directory",
        Errno::EACCES | Errno::EPERM => "permission denied",
        Errno::ELOOP => "too many symbolic links",
        Errno::EROFS => "the file system there is read-only",
        Errno::ENOMEM | Errno::ENOSPC => "no memory left",
        Errno::ENODEV | Errno::EOPNOTSUPP => "this machine or file system does not offer it",
        _ => return format!("error {} ({errno:?})", errno.0),
    })
}

/// Mounts one more file system of the kernel's own; the place is made where it is missing.
pub fn mount_at(kernel: &Kernel, fs: Arc<dyn FileSystem>, source: &[u8], flags: MountFlags, at: &[u8]) -> Result<()> {
    let boot = Itself::new(kernel.machine);
    let root = kernel.root.root.read().clone();
    let at = find_or_make(&kernel.vfs, &boot, &root, at, true)?;
    kernel.vfs.attach(&kernel.vfs.new_mount(fs, source, flags | MountFlags::RELATIME), &at)
}

/// The place of an absolute name, seen from the root of all.
pub fn place(kernel: &Kernel, path: &[u8]) -> Result<Path> {
    let root = kernel.root.root.read().clone();
    find(&kernel.vfs, &Itself::new(kernel.machine), &root, path)
}

fn lossy(bytes: &[u8]) -> alloc::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn flags(mount: &BootMount) -> MountFlags {
    let mut flags = MountFlags::RELATIME;
    flags.set(MountFlags::RDONLY, mount.read_only);
    match mount.kind {
        BootMountKind::Proc | BootMountKind::Sys | BootMountKind::SysNet | BootMountKind::ReadOnly => {
            flags |= MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC
        }
        BootMountKind::Dev => flags |= MountFlags::NOSUID,
        BootMountKind::Memory => flags |= MountFlags::NOSUID | MountFlags::NODEV,
        BootMountKind::Host { .. } | BootMountKind::Overlay { .. } | BootMountKind::Archive { .. } | BootMountKind::Disk => {}
    }
    flags
}

/// The file system and its source's name; `None` for kinds that are made by their registered type.
fn file_system(vfs: &Vfs, mount: &BootMount) -> Result<Option<(Arc<dyn FileSystem>, Vec<u8>)>> {
    Ok(Some(match &mount.kind {
        BootMountKind::Host { root, source, top } => {
            let device = vfs.machine.host().ok_or(Errno::ENODEV)?.stat(*root)?.dev;
            (HostFs::bind(vfs.machine, vfs.dev_of_host(device), *root, !mount.read_only, *top)?, source.clone())
        }
        BootMountKind::Overlay { root, source, top } => {
            (Overlay::new(vfs.machine, vfs.new_dev(), *root, source, *top)?, b"overlay".to_vec())
        }
        BootMountKind::Archive { .. } => (TmpFs::new(vfs.machine, vfs.new_dev(), 0o755, 0, 0, u64::MAX), b"rootfs".to_vec()),
        BootMountKind::Memory => (TmpFs::new(vfs.machine, vfs.new_dev(), 0o1777, 0, 0, u64::MAX), b"tmpfs".to_vec()),
        BootMountKind::Proc
        | BootMountKind::Sys
        | BootMountKind::SysNet
        | BootMountKind::ReadOnly
        | BootMountKind::Dev
        | BootMountKind::Disk => {
            return Ok(None);
        }
    }))
}

fn mount_one(vfs: &Vfs, boot: &Itself, root: Path, mount: &BootMount) -> Result<()> {
    let (fs, source) = match file_system(vfs, mount)? {
        Some(made) => made,
        None => {
            let (kind, options): (&[u8], &[u8]) = match mount.kind {
                BootMountKind::Proc => (b"proc", b""),
                BootMountKind::Sys => (b"sysfs", b""),
                _ => (b"devtmpfs", b"mode=755"),
            };
            (vfs.fs_type(kind)?.mount(vfs, boot, kind, options)?, kind.to_vec())
        }
    };
    let own = if fs.root().no_exec() { MountFlags::NOEXEC } else { MountFlags::empty() };
    let new = vfs.new_mount(fs, &source, flags(mount) | own);
    let at = find_or_make(vfs, boot, &root, &mount.target, new.root.is_dir())?;
    vfs.attach(&new, &at)
}

pub(super) fn find(vfs: &Vfs, boot: &dyn Caller, root: &Path, path: &[u8]) -> Result<Path> {
    let start = Start { root: root.clone(), base: root.clone() };
    Walk::new(vfs, boot, &start, Resolve::empty()).whole(path, true)
}

/// The place of that name; what is missing of it is made: directories on the way, then a directory or an empty file.
fn find_or_make(vfs: &Vfs, boot: &Itself, root: &Path, path: &[u8], dir: bool) -> Result<Path> {
    match find(vfs, boot, root, path) {
        Err(Errno::ENOENT) => {}
        other => return other,
    }
    let trimmed = &path[..path.len() - path.iter().rev().take_while(|byte| **byte == b'/').count()];
    if let Some(cut) = trimmed.iter().rposition(|byte| *byte == b'/').filter(|cut| *cut > 0) {
        find_or_make(vfs, boot, root, &trimmed[..cut], true)?;
    }
    let start = Start { root: root.clone(), base: root.clone() };
    let mut walk = Walk::new(vfs, boot, &start, Resolve::empty());
    let parent = walk.parent(trimmed)?;
    let Last::Name(name) = &parent.last else { return Err(Errno::ENOENT) };
    let mode = if dir { FileKind::Directory as u32 | 0o755 } else { FileKind::Regular as u32 | 0o644 };
    vfs.make(walk.who(), &parent.dir, name, &Make::Node { mode, rdev: 0 })
}
