//! Damaged file systems: what is on a disk is an attacker's word.

#[allow(dead_code, reason = "the tests of file systems use all of it")]
#[path = "../../../object/tests/common/disk.rs"]
mod memory;

use std::sync::{Arc, OnceLock};

use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_object::OpenFile;
use janua_object::caller::Itself;
use janua_object::file::flags::{self, O_CREAT, O_RDWR};
use janua_object::fs::ext4;
use janua_object::vfs::access::Who;
use janua_object::vfs::{FileKind, FileSystem, Make, MountFlags, OpenHow, Path, Resolve, Start, Vfs, Walk};
use janua_platform_model::{Model, Settings};
use memory::{Contents, Disk, PIECE};

use crate::bytes::Bytes;

const SIZE: usize = 32 << 20;
const FILES: usize = 4;

fn model() -> &'static Model {
    static MODEL: OnceLock<&'static Model> = OnceLock::new();
    MODEL.get_or_init(|| Model::new(Settings::default()))
}

/// A file system in order, and the pieces of it that hold anything.
fn whole() -> &'static (Contents, Vec<usize>) {
    static WHOLE: OnceLock<(Contents, Vec<usize>)> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let disk = Disk::new(SIZE);
        let fs = ext4::mount(model(), disk, 1).expect("a new file system can be mounted");
        let tree = Tree::new(fs.clone());
        assert!(tree.make("/dir", Make::Node { mode: FileKind::Directory as u32 | 0o755, rdev: 0 }));
        assert!(tree.make("/link", Make::Symlink(&[b'x'; 100])));
        for number in 0..FILES {
            assert!(tree.write(&format!("/dir/{number}"), &[7; 5000]));
        }
        drop(tree);
        fs.finish().expect("it is written");
        let image = disk.image();
        let used = image.pieces.keys().copied().collect();
        (image, used)
    })
}

/// The input: places among the pieces that are used, and the bits that are flipped there.
pub fn run(input: &[u8]) {
    let (image, used) = whole();
    let mut broken = image.clone();
    let mut bytes = Bytes(input);
    if bytes.byte() == 0xff {
        broken = broken.cut_off(bytes.word() as usize % SIZE / 512 * 512);
    }
    while !bytes.is_empty() {
        let (piece, place, bits) = (bytes.below(used.len() as u64), bytes.below(PIECE as u64), bytes.byte());
        let at = used[piece as usize] * PIECE + place as usize;
        if at < broken.size {
            broken.spoil(at, bits);
        }
    }
    match ext4::mount(model(), Disk::of(broken), 1) {
        Ok(fs) => use_all(&fs),
        Err(why) => assert!(!why.is_empty()),
    }
}

/// Whatever is asked of it, there is a result.
fn use_all(fs: &Arc<dyn FileSystem>) {
    let tree = Tree::new(fs.clone());
    tree.list("/");
    tree.list("/dir");
    tree.follow("/link");
    for number in 0..FILES {
        let name = format!("/dir/{number}");
        tree.read(&name);
        if number % 2 == 0 {
            tree.write(&name, &[9; 9000]);
        } else {
            tree.remove(&name);
        }
    }
    tree.make("/other", Make::Node { mode: FileKind::Directory as u32 | 0o755, rdev: 0 });
    tree.write("/other/new", b"new");
    let _ = (fs.stat(), fs.sync(), fs.finish());
}

/// The file system as the root of a name space, and the kernel itself, which acts in it.
struct Tree {
    vfs: Vfs,
    root: Path,
    who: Itself,
}

impl Tree {
    fn new(fs: Arc<dyn FileSystem>) -> Tree {
        let vfs = Vfs::new(model());
        let mount = vfs.new_mount(fs, b"disk", MountFlags::RELATIME);
        vfs.set_root(&mount);
        Tree { root: Path::of_mount(&mount), vfs, who: Itself::new(model()) }
    }

    fn start(&self) -> Start {
        Start { root: self.root.clone(), base: self.root.clone() }
    }

    fn at(&self, path: &str, act: impl FnOnce(Who<'_>, &Path, &[u8]) -> bool) -> bool {
        let start = self.start();
        let mut walk = Walk::new(&self.vfs, &self.who, &start, Resolve::empty());
        let Ok(parent) = walk.parent(path.as_bytes()) else { return false };
        let Ok(name) = parent.new_name() else { return false };
        act(Who { caller: &self.who, cred: &self.who.cred }, &parent.dir, name)
    }

    fn make(&self, path: &str, make: Make<'_>) -> bool {
        self.at(path, |who, dir, name| self.vfs.make(who, dir, name, &make).is_ok())
    }

    fn remove(&self, path: &str) -> bool {
        self.at(path, |who, dir, name| self.vfs.remove(who, dir, name, false, false).is_ok())
    }

    fn open(&self, path: &str, flags: u32) -> Option<Arc<OpenFile>> {
        let how = OpenHow { flags, mode: 0o644, umask: 0, resolve: Resolve::empty() };
        self.vfs.open(&self.who, &self.start(), path.as_bytes(), &how).ok()
    }

    fn write(&self, path: &str, bytes: &[u8]) -> bool {
        let Some(file) = self.open(path, O_CREAT | O_RDWR) else { return false };
        file.ops.write(&file, &self.who, &mut WriteBuf::kernel(bytes), 0) == Ok(bytes.len())
    }

    fn read(&self, path: &str) {
        let Some(file) = self.open(path, flags::O_RDONLY) else { return };
        let mut bytes = [0; 8192];
        let _ = file.ops.read(&file, &self.who, &mut ReadBuf::kernel(&mut bytes), 0);
        let _ = file.ops.size();
    }

    fn list(&self, path: &str) {
        let Some(dir) = self.open(path, flags::O_DIRECTORY) else { return };
        let mut count = 0;
        // The disk has room for so many names only.
        let _ = dir.ops.readdir(&dir, &self.who, &mut |_| {
            count += 1;
            assert!(count < SIZE / 8, "a directory without an end");
            true
        });
    }

    fn follow(&self, path: &str) {
        let start = self.start();
        if let Ok(link) = Walk::new(&self.vfs, &self.who, &start, Resolve::empty()).whole(path.as_bytes(), false) {
            let _ = link.inode().readlink(&self.who);
        }
    }
}
