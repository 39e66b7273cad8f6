//! Walking and changing names, on the memory file system.

mod common;

use std::sync::Arc;

use common::{TestCaller, bare, find, find_from, root, space, user};
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_object::OpenFile;
use janua_object::file::flags::{self, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR, O_TMPFILE};
use janua_object::fs::tmpfs::TmpFs;
use janua_object::vfs::{FileKind, Make, MountFlags, OpenHow, Path, Resolve, SetAttr, Start, Vfs, Walk, rename};

struct World {
    vfs: Vfs,
    root: Path,
    who: TestCaller,
}

impl World {
    fn new() -> World {
        let machine = bare();
        let (vfs, root) = space(machine, |vfs| TmpFs::new(machine, vfs.new_dev(), 0o755, 0, 0, u64::MAX));
        World { vfs, root, who: common::root(machine) }
    }

    fn find(&self, path: &str) -> Result<Path> {
        find(&self.vfs, &self.who, &self.root, path)
    }

    fn resolve(&self, base: &str, path: &str, resolve: Resolve) -> Result<Path> {
        let base = self.find(base).unwrap();
        find_from(&self.vfs, &self.who, &self.root, &base, path, resolve)
    }

    /// Acts in the directory of a path's last name.
    fn at<T>(&self, path: &str, act: impl FnOnce(&Path, &[u8], bool) -> Result<T>) -> Result<T> {
        let start = Start { root: self.root.clone(), base: self.root.clone() };
        let mut walk = Walk::new(&self.vfs, &self.who, &start, Resolve::empty());
        let parent = walk.parent(path.as_bytes())?;
        act(&parent.dir, parent.new_name()?, parent.slash)
    }

    fn make(&self, path: &str, make: Make<'_>) -> Result<Path> {
        self.at(path, |dir, name, _| self.vfs.make(self.who.who(), dir, name, &make))
    }

    fn mkdir(&self, path: &str) -> Result<Path> {
        self.make(path, Make::Node { mode: FileKind::Directory as u32 | 0o755, rdev: 0 })
    }

    fn symlink(&self, path: &str, target: &str) -> Result<Path> {
        self.make(path, Make::Symlink(target.as_bytes()))
    }

    fn open(&self, path: &str, flags: u32) -> Result<Arc<OpenFile>> {
        let start = Start { root: self.root.clone(), base: self.root.clone() };
        let how = OpenHow { flags, mode: 0o644, umask: 0, resolve: Resolve::empty() };
        self.vfs.open(&self.who, &start, path.as_bytes(), &how)
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.open(path, O_CREAT | O_RDWR).unwrap();
        file.ops.write(&file, &common::anybody(), &mut WriteBuf::kernel(text.as_bytes()), 0).unwrap();
    }

    fn read(&self, path: &str) -> Result<String> {
        let file = self.open(path, flags::O_RDONLY)?;
        let mut bytes = vec![0; 100];
        let n = file.ops.read(&file, &common::anybody(), &mut ReadBuf::kernel(&mut bytes), 0)?;
        Ok(String::from_utf8_lossy(&bytes[..n]).into_owned())
    }

    fn rename(&self, old: &str, new: &str, flags: u32) -> Result<()> {
        self.at(old, |old_dir, old, old_slash| {
            self.at(new, |new_dir, new, new_slash| {
                self.vfs.rename(self.who.who(), old_dir, (old, old_slash), new_dir, (new, new_slash), flags)
            })
        })
    }

    fn remove(&self, path: &str, dir: bool) -> Result<()> {
        self.at(path, |parent, name, slash| self.vfs.remove(self.who.who(), parent, name, dir, slash))
    }

    fn name(&self, path: &Path) -> String {
        String::from_utf8(path.write(&self.root).display()).unwrap()
    }

    fn list(&self, path: &str) -> Vec<String> {
        let mut names = Vec::new();
        self.find(path)
            .unwrap()
            .inode()
            .readdir(&self.who, 0, &mut |entry| {
                names.push(String::from_utf8_lossy(entry.name).into_owned());
                true
            })
            .unwrap();
        names.sort();
        names
    }
}

fn error<T>(result: Result<T>) -> Errno {
    result.err().expect("an error")
}

#[test]
fn slashes_dots_and_links() {
    let w = World::new();
    w.mkdir("/a").unwrap();
    w.mkdir("/a/b").unwrap();
    w.write("/a/b/file", "text");
    w.symlink("/dir", "a/b").unwrap();
    w.symlink("/a/up", "../a/b/file").unwrap();
    w.symlink("/abs", "/a/b/").unwrap();
    assert_eq!(w.name(&w.find("//a/./b/../b//file").unwrap()), "/a/b/file");
    assert_eq!(w.name(&w.find("/dir/file").unwrap()), "/a/b/file");
    assert_eq!(w.name(&w.find("/abs/file").unwrap()), "/a/b/file");
    assert_eq!(w.name(&w.find("/a/up").unwrap()), "/a/b/file");
    assert_eq!(w.name(&w.find("/../../a").unwrap()), "/a");
    assert_eq!(w.name(&w.find("/dir/..").unwrap()), "/a");
    assert_eq!(w.name(&w.find("/").unwrap()), "/");
    assert_eq!(error(w.find("/a/b/file/")), Errno::ENOTDIR);
    assert_eq!(error(w.find("/a/up/")), Errno::ENOTDIR);
    assert_eq!(error(w.find("/a/b/file/x")), Errno::ENOTDIR);
    assert_eq!(error(w.find("/a/none/x")), Errno::ENOENT);
    assert_eq!(error(w.find("")), Errno::ENOENT);
    assert_eq!(error(w.find(&format!("/{}", "n".repeat(256)))), Errno::ENAMETOOLONG);
    assert!(w.find("/dir/").unwrap().dentry.is_dir());
}

#[test]
fn forty_links_are_followed_and_no_more() {
    let w = World::new();
    w.write("/l0", "x");
    for n in 1..=41 {
        w.symlink(&format!("/l{n}"), &format!("l{}", n - 1)).unwrap();
    }
    assert!(w.find("/l40").is_ok());
    assert_eq!(error(w.find("/l41")), Errno::ELOOP);
    w.symlink("/loop", "loop").unwrap();
    assert_eq!(error(w.find("/loop/x")), Errno::ELOOP);
}

#[test]
fn restricted_walks() {
    let w = World::new();
    w.mkdir("/jail").unwrap();
    w.mkdir("/jail/in").unwrap();
    w.write("/out", "out");
    w.write("/jail/out", "in");
    w.symlink("/jail/abs", "/out").unwrap();
    w.symlink("/jail/rel", "../out").unwrap();
    let beneath = |path| w.resolve("/jail", path, Resolve::BENEATH);
    assert_eq!(error(beneath("../out")), Errno::EXDEV);
    assert_eq!(error(beneath("/out")), Errno::EXDEV);
    assert_eq!(error(beneath("abs")), Errno::EXDEV);
    assert_eq!(error(beneath("rel")), Errno::EXDEV);
    assert!(beneath("in/../in").is_ok());
    let in_root = |path| w.resolve("/jail", path, Resolve::IN_ROOT).map(|found| w.name(&found));
    assert_eq!(in_root("../../out").unwrap(), "/jail/out");
    assert_eq!(in_root("abs").unwrap(), "/jail/out");
    assert_eq!(in_root("/rel").unwrap(), "/jail/out");
    assert_eq!(error(w.resolve("/jail", "abs", Resolve::NO_SYMLINKS)), Errno::ELOOP);
    // A name nobody has looked up is not in the cache.
    assert_eq!(error(w.resolve("/jail", "in/never", Resolve::CACHED)), Errno::EAGAIN);
    assert!(w.resolve("/jail", "in", Resolve::CACHED).is_ok());
}

#[test]
fn opening_creates_only_what_it_should() {
    let w = World::new();
    w.symlink("/dangling", "target").unwrap();
    assert_eq!(error(w.open("/dangling", O_CREAT | O_EXCL | O_RDWR)), Errno::EEXIST);
    assert_eq!(error(w.open("/dangling", O_CREAT | O_NOFOLLOW | O_RDWR)), Errno::ELOOP);
    let file = w.open("/dangling", O_CREAT | O_RDWR).unwrap();
    assert_eq!(w.name(file.path.as_ref().unwrap()), "/target");
    assert_eq!(error(w.open("/new/", O_CREAT | O_RDWR)), Errno::EISDIR);
    assert_eq!(error(w.open("/target", flags::O_DIRECTORY)), Errno::ENOTDIR);
    assert_eq!(error(w.open("/", O_RDWR)), Errno::EISDIR);
    let unnamed = w.open("/", O_TMPFILE | O_RDWR).unwrap();
    assert_eq!(unnamed.attr().unwrap().nlink, 0);
    assert!(w.name(unnamed.path.as_ref().unwrap()).ends_with(" (deleted)"));
    w.make("/named", Make::Link(unnamed.inode().unwrap())).unwrap();
    assert_eq!(unnamed.attr().unwrap().nlink, 1);
}

#[test]
fn renames() {
    let w = World::new();
    w.mkdir("/a").unwrap();
    w.mkdir("/a/sub").unwrap();
    w.mkdir("/b").unwrap();
    w.write("/f", "f");
    w.write("/g", "g");
    assert_eq!(error(w.rename("/f", "/g", rename::NOREPLACE)), Errno::EEXIST);
    w.rename("/f", "/g", rename::EXCHANGE).unwrap();
    assert_eq!((w.read("/f").unwrap(), w.read("/g").unwrap()), ("g".into(), "f".into()));
    let held = w.find("/g").unwrap();
    w.rename("/f", "/g", 0).unwrap();
    assert_eq!(w.read("/g").unwrap(), "g");
    assert_eq!(held.inode().attr().unwrap().nlink, 0);
    assert_eq!(w.name(&held), "/g (deleted)");
    assert_eq!(error(w.find("/f")), Errno::ENOENT);
    // Directories: not below themselves, not onto what is not empty, links counted.
    assert_eq!(error(w.rename("/a", "/a/sub/x", 0)), Errno::EINVAL);
    assert_eq!(error(w.rename("/b", "/a", 0)), Errno::ENOTEMPTY);
    assert_eq!(error(w.rename("/a/sub", "/a", 0)), Errno::ENOTEMPTY);
    assert_eq!(error(w.rename("/g", "/b", 0)), Errno::EISDIR);
    assert_eq!(error(w.rename("/b", "/g", 0)), Errno::ENOTDIR);
    assert_eq!(error(w.rename("/g", "/h/", 0)), Errno::ENOTDIR);
    let sub = w.find("/a/sub").unwrap();
    w.rename("/a/sub", "/b/moved/", 0).unwrap();
    assert_eq!(w.name(&sub), "/b/moved");
    assert_eq!(w.name(&sub.up().unwrap()), "/b");
    assert_eq!(w.find("/a").unwrap().inode().attr().unwrap().nlink, 2);
    assert_eq!(w.find("/b").unwrap().inode().attr().unwrap().nlink, 3);
    w.rename("/b/moved", "/g", rename::EXCHANGE).unwrap();
    assert_eq!(w.read("/b/moved").unwrap(), "g");
    assert_eq!(w.find("/b").unwrap().inode().attr().unwrap().nlink, 2);
    // Two names of one file: nothing happens.
    w.make("/b/second", Make::Link(w.find("/b/moved").unwrap().inode())).unwrap();
    w.rename("/b/moved", "/b/second", 0).unwrap();
    assert_eq!(w.list("/b"), ["moved", "second"]);
    w.rename("/b/moved", "/c", rename::WHITEOUT).unwrap();
    assert_eq!(w.find("/b/moved").unwrap().dentry.kind(), FileKind::CharDevice);
}

#[test]
fn removed_directories_take_no_names() {
    let w = World::new();
    let dir = w.mkdir("/d").unwrap();
    w.write("/d/f", "x");
    assert_eq!(error(w.remove("/d", true)), Errno::ENOTEMPTY);
    assert_eq!(error(w.remove("/d", false)), Errno::EISDIR);
    assert_eq!(error(w.remove("/d/f", true)), Errno::ENOTDIR);
    w.remove("/d/f", false).unwrap();
    w.remove("/d", true).unwrap();
    let make = Make::Node { mode: FileKind::Regular as u32 | 0o644, rdev: 0 };
    assert_eq!(error(w.vfs.make(w.who.who(), &dir, b"x", &make)), Errno::ENOENT);
    assert_eq!(w.name(&dir), "/d (deleted)");
    assert_eq!(dir.inode().attr().unwrap().nlink, 0);
}

#[test]
fn permissions_and_sticky_directories() {
    let mut w = World::new();
    let tmp = w.mkdir("/tmp").unwrap();
    tmp.inode().set_attr(&SetAttr { mode: Some(0o1777), ..SetAttr::default() }).unwrap();
    let shut = w.mkdir("/shut").unwrap();
    w.write("/shut/f", "x");
    shut.inode().set_attr(&SetAttr { mode: Some(0o700), ..SetAttr::default() }).unwrap();
    let group = w.mkdir("/group").unwrap();
    let change = SetAttr { mode: Some(0o2777), gid: Some(77), ..SetAttr::default() };
    group.inode().set_attr(&change).unwrap();
    let machine = w.who.machine;
    w.who = user(machine, 1000);
    assert_eq!(error(w.find("/shut/f")), Errno::EACCES);
    assert_eq!(error(w.mkdir("/x")), Errno::EACCES);
    w.write("/tmp/mine", "1000");
    assert_eq!(w.mkdir("/group/d").unwrap().inode().attr().unwrap().gid, 77);
    w.who = user(machine, 1001);
    assert_eq!(error(w.remove("/tmp/mine", false)), Errno::EPERM);
    assert_eq!(error(w.rename("/tmp/mine", "/tmp/other", 0)), Errno::EPERM);
    assert_eq!(error(w.open("/tmp/mine", O_RDWR)), Errno::EACCES);
    assert!(w.read("/tmp/mine").is_ok());
    w.who = root(machine);
    w.remove("/tmp/mine", false).unwrap();
}

#[test]
fn mounts_hide_bind_and_come_off() {
    let w = World::new();
    let dir = w.mkdir("/m").unwrap();
    w.write("/m/under", "x");
    let machine = w.who.machine;
    let fs = TmpFs::new(machine, w.vfs.new_dev(), 0o755, 0, 0, u64::MAX);
    let mount = w.vfs.mount(fs, b"tmpfs", MountFlags::empty(), &dir).unwrap();
    assert_eq!(error(w.find("/m/under")), Errno::ENOENT);
    w.write("/m/over", "o");
    assert_eq!(w.name(&w.find("/m/over").unwrap()), "/m/over");
    assert_eq!(w.name(&w.find("/m/..").unwrap()), "/");
    assert_eq!(error(w.resolve("/", "m/over", Resolve::NO_XDEV)), Errno::EXDEV);
    assert_eq!(error(w.remove("/m", true)), Errno::EBUSY);
    assert_eq!(error(w.rename("/m/over", "/over", 0)), Errno::EXDEV);
    w.mkdir("/copy").unwrap();
    let bound = w.vfs.bind(&w.root, &w.find("/copy").unwrap(), true).unwrap();
    assert_eq!(w.read("/copy/m/over").unwrap(), "o");
    w.vfs.set_mount_flags(&bound, MountFlags::RDONLY);
    assert_eq!(error(w.mkdir("/copy/new")), Errno::EROFS);
    assert_eq!(w.name(&w.find("/copy/m/over").unwrap()), "/copy/m/over");
    assert_eq!(error(w.vfs.detach(&bound, false)), Errno::EBUSY);
    w.vfs.detach(&bound, true).unwrap();
    w.vfs.detach(&mount, false).unwrap();
    assert_eq!(w.read("/m/under").unwrap(), "x");
    assert_eq!(w.vfs.mounts().len(), 1);
}

#[test]
fn a_stack_of_mounts_comes_off_without_a_deep_stack() {
    std::thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(|| {
            let w = World::new();
            let dir = w.mkdir("/m").unwrap();
            let fresh = || TmpFs::new(w.who.machine, w.vfs.new_dev(), 0o755, 0, 0, u64::MAX);
            let first = w.vfs.mount(fresh(), b"tmpfs", MountFlags::empty(), &dir).unwrap();
            let root = Path::of_mount(&first);
            for _ in 0..3_000 {
                w.vfs.mount(fresh(), b"tmpfs", MountFlags::empty(), &dir).unwrap();
            }
            let copy = w.mkdir("/copy").unwrap();
            w.vfs.bind(&w.root, &copy, true).unwrap();
            assert_eq!(w.vfs.mounts().len(), 2 * 3_002);
            w.vfs.detach(&first, true).unwrap();
            // Nothing is put on what has come off.
            assert_eq!(w.vfs.mount(fresh(), b"tmpfs", MountFlags::empty(), &root).err(), Some(Errno::EINVAL));
            assert_eq!(w.vfs.mounts().len(), 3_003);
            let bound = w.vfs.mounts()[1].clone();
            assert_eq!(w.name(&Path::of_mount(&bound)), "/copy");
            w.vfs.detach(&bound, true).unwrap();
            assert_eq!(w.vfs.mounts().len(), 1);
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn what_was_moved_out_of_a_bound_directory_leads_nowhere() {
    let w = World::new();
    for dir in ["/a", "/a/in", "/b", "/m"] {
        w.mkdir(dir).unwrap();
    }
    w.write("/secret", "s");
    w.vfs.bind(&w.find("/a").unwrap(), &w.find("/m").unwrap(), false).unwrap();
    let inside = w.find("/m/in").unwrap();
    let from = |path: &str| find_from(&w.vfs, &w.who, &w.root, &inside, path, Resolve::empty());
    assert_eq!(w.name(&from("..").unwrap()), "/m");
    w.rename("/a/in", "/b/in", 0).unwrap();
    assert_eq!(error(from("..")), Errno::ENOENT);
    assert_eq!(error(from("../../secret")), Errno::ENOENT);
    w.rename("/b/in", "/a/back", 0).unwrap();
    assert_eq!(w.name(&from("../back").unwrap()), "/m/back");
}

#[test]
fn a_place_below_the_old_root_is_no_place_for_it() {
    let w = World::new();
    let (new, put_old) = (w.mkdir("/new").unwrap(), w.mkdir("/old").unwrap());
    let fs = TmpFs::new(w.who.machine, w.vfs.new_dev(), 0o755, 0, 0, u64::MAX);
    let new = w.vfs.mount(fs, b"tmpfs", MountFlags::empty(), &new).unwrap();
    assert_eq!(error(w.vfs.pivot(&new, &w.root.mount, &put_old)), Errno::EINVAL);
    assert_eq!(w.name(&w.find("/new").unwrap()), "/new");
}

#[test]
fn files_have_holes() {
    let w = World::new();
    let file = w.open("/f", O_CREAT | O_RDWR).unwrap();
    let write = |text: &[u8], at| file.ops.write(&file, &common::anybody(), &mut WriteBuf::kernel(text), at).unwrap();
    let read = |at, len: usize| {
        let mut bytes = vec![1; len];
        let n = file.ops.read(&file, &common::anybody(), &mut ReadBuf::kernel(&mut bytes), at).unwrap();
        bytes.truncate(n);
        bytes
    };
    write(b"start", 0);
    write(b"end", 3 * 4096 + 10);
    assert_eq!(file.attr().unwrap().size, 3 * 4096 + 13);
    assert_eq!(file.attr().unwrap().blocks, 16);
    assert_eq!(read(3, 10), b"rt\0\0\0\0\0\0\0\0");
    assert_eq!(read(3 * 4096 + 10, 100), b"end");
    assert_eq!(file.ops.seek_data(0, true).unwrap(), 4096);
    assert_eq!(file.ops.seek_data(4096, false).unwrap(), 3 * 4096);
    assert_eq!(error(file.ops.seek_data(1 << 20, false)), Errno::ENXIO);
    // Punching zeroes partial pages and drops whole ones; a shorter file forgets its tail.
    file.ops.allocate(&file, 3, 3, 4096).unwrap();
    assert_eq!(read(0, 5), b"sta\0\0");
    file.ops.truncate(&file, 3 * 4096 + 11).unwrap();
    file.ops.truncate(&file, 4 * 4096).unwrap();
    assert_eq!(read(3 * 4096 + 10, 3), b"e\0\0");
    assert_eq!(error(file.ops.allocate(&file, 0x8, 0, 4096)), Errno::EOPNOTSUPP);
    write(b"more", u64::MAX);
    assert_eq!(read(4 * 4096, 10), b"more");
}

#[test]
fn a_full_file_system_says_so() {
    let machine = bare();
    let (vfs, root_path) = space(machine, |vfs| TmpFs::new(machine, vfs.new_dev(), 0o755, 0, 0, 2));
    let w = World { vfs, root: root_path, who: root(machine) };
    let file = w.open("/f", O_CREAT | O_RDWR).unwrap();
    let page = vec![7; 3 * 4096];
    assert_eq!(file.ops.write(&file, &common::anybody(), &mut WriteBuf::kernel(&page), 0).unwrap(), 2 * 4096);
    assert_eq!(error(file.ops.write(&file, &common::anybody(), &mut WriteBuf::kernel(&page), 2 * 4096)), Errno::ENOSPC);
    drop(file);
    w.remove("/f", false).unwrap();
    assert_eq!(w.root.mount.fs.stat().unwrap().blocks_free, 2);
}

#[test]
fn the_name_cache_forgets_what_nobody_uses() {
    let w = World::new();
    for n in 0..40_000 {
        w.mkdir(&format!("/d{n}")).unwrap();
    }
    // Evicted names are found again in the file system.
    assert!(w.find("/d0").is_ok());
    assert!(w.find("/d39999").is_ok());
    for n in 0..40_000 {
        w.remove(&format!("/d{n}"), true).unwrap();
    }
    assert!(w.list("/").is_empty());
}

#[test]
fn deep_trees_are_freed_without_deep_stacks() {
    std::thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(|| {
            let w = World::new();
            let dir = w.mkdir("/m").unwrap();
            let fs = TmpFs::new(w.who.machine, w.vfs.new_dev(), 0o755, 0, 0, u64::MAX);
            let mount = w.vfs.mount(fs, b"tmpfs", MountFlags::empty(), &dir).unwrap();
            let mut at = Path::of_mount(&mount);
            let make = Make::Node { mode: FileKind::Directory as u32 | 0o755, rdev: 0 };
            for _ in 0..20_000 {
                at = w.vfs.make(w.who.who(), &at, b"d", &make).unwrap();
            }
            let inode = Arc::downgrade(at.inode());
            drop(at);
            w.vfs.detach(&mount, false).unwrap();
            drop(mount);
            assert_eq!(inode.strong_count(), 0);
        })
        .unwrap()
        .join()
        .unwrap();
}
