//! Disk images: made, formatted and filled here, so that a new disk costs no time on the emulated machine.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::format;
use janua_personality_outside::archive::{self, Entry};
use rsext4::{
    BlockIo, Clock, DeviceCapabilities, DeviceGeometry, DeviceNumber, Ext4, Ext4Error, Ext4ErrorKind, Ext4Result,
    Ext4Timestamp, FileName, FilePermissions, InodeInfo, InodeMetadataUpdate, InodeNumber, MountOptions, MountServices,
    MountedServices, MutationContext, NoopObserver, SectorId, SpecialInodeKind,
};
use rustix::fs::{FallocateFlags, SeekFrom};

/// Bytes of a sector.
const SECTOR: u64 = janua_port::block::SECTOR as u64;
/// The size of a new disk when none is given, and the least there is room for a journal and a root in.
pub const DEFAULT_SIZE: u64 = 1 << 30;
pub const LEAST_SIZE: u64 = 16 << 20;
/// Bytes written at a time.
const CHUNK: usize = 1 << 20;

/// Sees to it that there is a file system on the image: one that does not exist, or holds nothing, is made, formatted and
/// filled with the tree of `archive`. Returns the image's path as QEMU wants it.
pub fn prepare(image: &Path, size: Option<u64>, archive: impl FnOnce() -> Result<Vec<u8>, String>) -> Result<PathBuf, String> {
    let described = |error: std::io::Error| format!("--disk {}: {error}", image.display());
    let found = match fs::metadata(image) {
        Ok(meta) => Some(meta),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(described(error)),
    };
    if let Some(meta) = found {
        let kind = meta.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(format!("--disk {}: neither a file nor a block device", image.display()));
        }
        let empty = kind.is_file() && holds_nothing(&File::open(image).map_err(described)?).map_err(described)?;
        if !empty {
            return fs::canonicalize(image).map_err(described);
        }
        // One that was made larger than nothing keeps its size.
        let size = if meta.len() > 0 { meta.len() } else { size.unwrap_or(DEFAULT_SIZE) };
        let image = fs::canonicalize(image).map_err(described)?;
        make(&image, size, &archive()?)?;
        return Ok(image);
    }
    let size = size.unwrap_or(DEFAULT_SIZE);
    make(image, size, &archive()?)?;
    fs::canonicalize(image).map_err(described)
}

fn holds_nothing(file: &File) -> std::io::Result<bool> {
    match rustix::fs::seek(file.as_fd(), SeekFrom::Data(0)) {
        Err(rustix::io::Errno::NXIO) => Ok(true),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(false),
    }
}

/// Makes an image beside its place and moves it there when it is whole.
fn make(image: &Path, size: u64, archive: &[u8]) -> Result<(), String> {
    if size < LEAST_SIZE {
        return Err(format!("--disk {}: {size} bytes are too few: {} MiB at least", image.display(), LEAST_SIZE >> 20));
    }
    let name = image.file_name().ok_or_else(|| format!("--disk {}: not a file's name", image.display()))?;
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}", std::process::id()));
    let beside = image.with_file_name(beside);
    let result = fill(&beside, size, archive).map_err(|why| format!("--disk {}: {why}", image.display())).and_then(|files| {
        fs::rename(&beside, image).map_err(|error| format!("--disk {}: {error}", image.display()))?;
        crate::exit::say(&format_args!("janua: made {}: ext4, {} MiB, {files} files\n", image.display(), size >> 20));
        Ok(())
    });
    if result.is_err() {
        let _ = fs::remove_file(&beside);
    }
    result
}

/// A new image with the archive's tree: how many files it holds.
fn fill(path: &Path, size: u64, archive: &[u8]) -> Result<usize, String> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).map_err(|error| error.to_string())?;
    file.set_len(size).map_err(|error| error.to_string())?;
    let described = |error: Ext4Error| match error.kind() {
        Ext4ErrorKind::NoSpace => "the file tree does not fit: give a larger --disk-size".to_string(),
        _ => format!("cannot make the file system: {error}"),
    };
    let image = Image { file, sectors: size / SECTOR };
    let image = format::format(image, Host).map_err(described)?;
    let fs = Ext4::mount(image, MountServices::new(Host, (), NoopObserver), MountOptions::read_write()).map_err(described)?;
    let root = fs.root_inode();
    let mut tree = Tree { fs, root, times: Vec::new() };
    let (mut at, mut files) = (0, 0);
    while let Some(entry) = archive::next(archive, &mut at).map_err(|_| "the file tree's archive is broken".to_string())? {
        tree.add(&entry).map_err(|error| format!("{}: {}", String::from_utf8_lossy(entry.name), described(error)))?;
        files += 1;
    }
    tree.finish().map_err(described)?;
    Ok(files)
}

/// A file as a disk.
struct Image {
    file: File,
    sectors: u64,
}

impl BlockIo for Image {
    fn write(&mut self, buffer: &[u8], sector: SectorId, count: u32) -> Ext4Result<()> {
        let data = buffer.get(..count as usize * SECTOR as usize).ok_or_else(Ext4Error::invalid_input)?;
        let at = sector.raw() * SECTOR;
        if data.len() >= 4096 && data.iter().all(|byte| *byte == 0) {
            // Empty tables of inodes need no room on the host.
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            if rustix::fs::fallocate(&self.file, flags, at, data.len() as u64).is_ok() {
                return Ok(());
            }
        }
        self.file.write_all_at(data, at).map_err(|_| Ext4Error::io())
    }

    fn read(&mut self, buffer: &mut [u8], sector: SectorId, count: u32) -> Ext4Result<()> {
        let out = buffer.get_mut(..count as usize * SECTOR as usize).ok_or_else(Ext4Error::invalid_input)?;
        self.file.read_exact_at(out, sector.raw() * SECTOR).map_err(|_| Ext4Error::io())
    }

    fn geometry(&self) -> DeviceGeometry {
        DeviceGeometry::new(SECTOR as u32, self.sectors)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        DeviceCapabilities { flush: true, ..DeviceCapabilities::default() }
    }

    fn flush(&mut self) -> Ext4Result<()> {
        // The image gets its name when it is whole: until then nothing is promised.
        Ok(())
    }
}

struct Host;

impl Clock for Host {
    fn now(&self) -> Ext4Result<Ext4Timestamp> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Ext4Timestamp::new(now.as_secs() as i64, now.subsec_nanos()))
    }
}

/// The tree as it grows.
struct Tree {
    fs: Ext4<Image, MountedServices<(), NoopObserver>>,
    root: InodeNumber,
    /// Times of directories, which change while they are filled.
    times: Vec<(InodeNumber, Ext4Timestamp)>,
}

impl Tree {
    /// Adds a file. What is before it in the archive holds it; a name that is there already keeps its file, which gets mode
    /// and owner.
    fn add(&mut self, entry: &Entry<'_>) -> Ext4Result<()> {
        let mut parts: Vec<&[u8]> =
            entry.name.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
        let Some(name) = parts.pop() else { return Ok(()) };
        let mut dir = self.root;
        for part in parts {
            dir = self.fs.lookup_child(dir, FileName::new(part)?)?.ok_or_else(Ext4Error::not_found)?.number;
        }
        let name = FileName::new(name)?;
        let made = match self.fs.lookup_child(dir, name)? {
            Some(there) => there,
            None => self.create(dir, name, entry)?,
        };
        for (part, data) in entry.data.chunks(CHUNK).enumerate() {
            if entry.mode & 0o170000 == 0o100000 {
                self.fs.write_inode(made.number, (part * CHUNK) as u64, data)?;
            }
        }
        let time = Ext4Timestamp::new(entry.mtime.into(), 0);
        let update = InodeMetadataUpdate { atime: Some(time), mtime: Some(time), ..InodeMetadataUpdate::default() };
        self.fs.update_inode_metadata(made.number, update)?;
        if made.is_directory() {
            self.times.push((made.number, time));
        }
        Ok(())
    }

    fn create(&mut self, dir: InodeNumber, name: FileName<'_>, entry: &Entry<'_>) -> Ext4Result<InodeInfo> {
        let context = MutationContext::new(entry.uid, entry.gid, 0, 0);
        let permissions = FilePermissions::new((entry.mode & 0o7777) as u16)?;
        let device = || DeviceNumber::new(entry.device.0, entry.device.1);
        let special = match entry.mode & 0o170000 {
            0o040000 => return self.fs.create_directory(context, dir, name, permissions),
            0o120000 => return self.fs.create_symlink(context, dir, name, entry.data),
            0o020000 => SpecialInodeKind::CharacterDevice(device()?),
            0o060000 => SpecialInodeKind::BlockDevice(device()?),
            0o010000 => SpecialInodeKind::Fifo,
            0o140000 => SpecialInodeKind::Socket,
            _ => return self.fs.create_regular_file(context, dir, name, permissions),
        };
        self.fs.create_special_inode(context, dir, name, permissions, special)
    }

    fn finish(mut self) -> Ext4Result<()> {
        for (dir, time) in std::mem::take(&mut self.times) {
            let update = InodeMetadataUpdate { atime: Some(time), mtime: Some(time), ..InodeMetadataUpdate::default() };
            self.fs.update_inode_metadata(dir, update)?;
        }
        self.fs.unmount()
    }
}
