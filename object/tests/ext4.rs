//! ext4 on a disk in memory, which can be cut off, broken, and shown to the host's own checker.

mod common;
#[path = "common/disk.rs"]
mod disk;
#[path = "../../test/random.rs"]
mod random;
#[path = "ext4/slow.rs"]
mod slow;

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use common::tree::Tree;
use common::{FILLS, STORED, TestMachine, hosted, small};
use disk::{Contents, Disk, PIECE};
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_object::OpenFile;
use janua_object::file::flags::{self, O_CREAT, O_RDWR};
use janua_object::fs::ext4;
use janua_object::vfs::{FileKind, FileSystem, Make, SetAttr, rename};
use janua_port::block::SECTOR;

const MIB: usize = 1 << 20;

/// What the host's own checker reports of an image: its exit code (0: clean, 1 or 2: it would repair), and its output.
fn check(image: &Contents, options: &str) -> (i32, String) {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let name = format!("janua-ext4-{}-{}", std::process::id(), TURN.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let file = fs::File::create(&path).unwrap();
    file.set_len(image.size as u64).unwrap();
    for (number, piece) in &image.pieces {
        file.write_all_at(piece, (number * PIECE) as u64).unwrap();
    }
    let said = ["/sbin/e2fsck", "/usr/sbin/e2fsck"]
        .iter()
        .find_map(|tool| Command::new(tool).args([options, "-f"]).arg(&path).output().ok());
    let _ = fs::remove_file(&path);
    let said = said.expect("e2fsck is installed (e2fsprogs)");
    (said.status.code().unwrap_or(-1), String::from_utf8_lossy(&said.stdout).into_owned())
}

fn assert_clean(image: &Contents) {
    let (code, words) = check(image, "-n");
    assert_eq!(code, 0, "{words}");
}

/// A disk, mounted.
struct World {
    tree: Tree,
    fs: Arc<dyn FileSystem>,
    disk: &'static Disk,
}

impl Deref for World {
    type Target = Tree;
    fn deref(&self) -> &Tree {
        &self.tree
    }
}

impl World {
    fn new(size: usize) -> World {
        World::mount(Disk::new(size))
    }

    fn mount(disk: &'static Disk) -> World {
        World::try_mount(hosted(), disk).unwrap()
    }

    fn try_mount(machine: &'static TestMachine, disk: &'static Disk) -> std::result::Result<World, String> {
        let fs = ext4::mount(machine, disk, 77)?;
        let shown = fs.clone();
        Ok(World { tree: Tree::new(machine, |_| shown), fs, disk })
    }

    /// The same disk after a proper end.
    fn again(self) -> World {
        self.fs.finish().unwrap();
        let disk = self.disk;
        assert_clean(&disk.image());
        World::mount(Disk::of(disk.image()))
    }

    fn create(&self, path: &str) -> Arc<OpenFile> {
        self.open(path, O_CREAT | O_RDWR | flags::O_TRUNC).unwrap()
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        let file = self.create(path);
        assert_eq!(write(&file, bytes, 0), Ok(bytes.len()));
    }

    fn get(&self, path: &str) -> Result<Vec<u8>> {
        let file = self.open(path, flags::O_RDONLY)?;
        let size = file.ops.size()? as usize;
        Ok(read(&file, size + 10, 0))
    }
}

fn write(file: &OpenFile, bytes: &[u8], at: u64) -> Result<usize> {
    file.ops.write(file, &common::anybody(), &mut WriteBuf::kernel(bytes), at)
}

fn read(file: &OpenFile, len: usize, at: u64) -> Vec<u8> {
    let mut bytes = vec![0xee; len];
    let n = file.ops.read(file, &common::anybody(), &mut ReadBuf::kernel(&mut bytes), at).unwrap();
    bytes.truncate(n);
    bytes
}

/// Bytes that show where they belong.
fn pattern(len: usize, seed: u32) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect()
}

#[test]
fn files_and_names_last() {
    let w = World::new(64 * MIB);
    let big = pattern(3 * MIB + 123, 1);
    w.put("/big", &big);
    w.mkdir("/dir").unwrap();
    w.put("/dir/small", b"small");
    w.make("/dir/link", Make::Symlink(b"small")).unwrap();
    let long = "x".repeat(1000);
    w.make("/long", Make::Symlink(long.as_bytes())).unwrap();
    let small = w.find("/dir/small").unwrap();
    w.make("/twin", Make::Link(small.inode())).unwrap();
    w.make("/fifo", Make::Node { mode: FileKind::Fifo as u32 | 0o600, rdev: 0 }).unwrap();
    let rdev = janua_object::vfs::device::number(7, 300);
    w.make("/device", Make::Node { mode: FileKind::CharDevice as u32 | 0o600, rdev }).unwrap();
    let change = SetAttr {
        mode: Some(0o4751),
        uid: Some(70000),
        gid: Some(80000),
        atime: Some(1_000_000_000_123_456_789),
        mtime: Some(5_000_000_000_987_654_321),
        ..SetAttr::default()
    };
    small.inode().set_attr(&change).unwrap();
    small.inode().set_xattr(b"user.colour", b"blue", 0).unwrap();
    let before = small.inode().attr().unwrap();
    drop(small);

    let w = w.again();
    let attr = w.find("/twin").unwrap().inode().attr().unwrap();
    assert_eq!((attr.mode, attr.uid, attr.gid, attr.nlink, attr.size), (0o104751, 70000, 80000, 2, 5));
    assert_eq!((attr.atime, attr.mtime, attr.ctime), (before.atime, before.mtime, before.ctime));
    assert_eq!((attr.ino, attr.btime), (before.ino, before.btime));
    assert_eq!(w.find("/twin").unwrap().inode().get_xattr(b"user.colour").unwrap(), b"blue");
    assert_eq!(w.find("/twin").unwrap().inode().get_xattr(b"user.size"), Err(Errno::ENODATA));
    // A list that nobody consults would promise what does not hold.
    let twin = w.find("/twin").unwrap();
    let found = twin.inode();
    for name in [&b"system.posix_acl_access"[..], b"system.posix_acl_default"] {
        assert_eq!(found.set_xattr(name, &[2, 0, 0, 0], 0), Err(Errno::EOPNOTSUPP));
        assert_eq!(found.get_xattr(name), Err(Errno::EOPNOTSUPP));
    }
    assert_eq!(w.find("/device").unwrap().inode().attr().unwrap().rdev, rdev);
    assert_eq!(w.find("/fifo").unwrap().inode().kind(), FileKind::Fifo);
    assert_eq!(w.list("/dir"), [".", "..", "link", "small"]);
    assert_eq!(w.get("/big").unwrap(), big);
    assert_eq!(w.get("/dir/link").unwrap(), b"small");
    assert_eq!(w.find("/long").err(), Some(Errno::ENAMETOOLONG));
    // Made in one file's name, seen in the other's.
    w.put("/twin", b"changed");
    assert_eq!(w.get("/dir/small").unwrap(), b"changed");
    w.again();
}

#[test]
fn renames_and_removals() {
    let w = World::new(64 * MIB);
    w.mkdir("/a").unwrap();
    w.mkdir("/b").unwrap();
    w.put("/a/f", b"f");
    w.put("/b/g", b"g");
    w.rename("/a/f", "/b/g", 0).unwrap();
    assert_eq!(w.get("/b/g").unwrap(), b"f");
    assert_eq!(w.rename("/a", "/b", 0), Err(Errno::ENOTEMPTY));
    assert_eq!(w.rename("/b", "/a", rename::NOREPLACE), Err(Errno::EEXIST));
    w.rename("/a", "/b", rename::EXCHANGE).unwrap();
    assert_eq!(w.get("/a/g").unwrap(), b"f");
    w.rename("/a", "/b/inside", 0).unwrap();
    assert_eq!(w.find("/b").unwrap().inode().attr().unwrap().nlink, 3);
    assert_eq!(w.remove("/b", true), Err(Errno::ENOTEMPTY));
    assert_eq!(w.remove("/b/inside/none", false), Err(Errno::ENOENT));
    w.remove("/b/inside/g", false).unwrap();
    w.remove("/b/inside", true).unwrap();
    w.remove("/b", true).unwrap();
    assert_eq!(w.list("/"), [".", "..", "lost+found"]);
    w.again();
}

#[test]
fn a_file_without_a_name_lives_until_it_is_closed() {
    let w = World::new(64 * MIB);
    let free = w.fs.stat().unwrap().blocks_free;
    w.put("/f", &pattern(MIB, 2));
    w.fs.sync().unwrap();
    assert!(w.fs.stat().unwrap().blocks_free <= free - 256);
    let file = w.open("/f", O_RDWR).unwrap();
    w.remove("/f", false).unwrap();
    assert_eq!(w.get("/f").err(), Some(Errno::ENOENT));
    assert_eq!(read(&file, MIB, 0), pattern(MIB, 2));
    assert_eq!(write(&file, b"more", MIB as u64), Ok(4));
    w.fs.sync().unwrap();
    assert_eq!(file.attr().unwrap().nlink, 0);
    // Cut off now, the next mount gives its room back.
    let cut = World::mount(Disk::of(w.disk.cut(|_| true)));
    assert_eq!(cut.fs.stat().unwrap().blocks_free, free);
    drop(cut);
    drop(file);
    assert_eq!(w.fs.stat().unwrap().blocks_free, free);
    let nameless = w.open("/", flags::O_TMPFILE | flags::O_EXCL | O_RDWR).unwrap();
    assert_eq!(write(&nameless, b"nameless", 0), Ok(8));
    assert_eq!(read(&nameless, 100, 0), b"nameless");
    assert_eq!(w.list("/"), [".", "..", "lost+found"]);
    drop(nameless);
    w.again();
}

#[test]
fn cutting_extending_and_holes() {
    let w = World::new(64 * MIB);
    let file = w.create("/f");
    let bytes = pattern(20_000, 3);
    write(&file, &bytes, 0).unwrap();
    w.fs.sync().unwrap();
    file.ops.truncate(&file, 5000).unwrap();
    file.ops.truncate(&file, 12_000).unwrap();
    let mut expected = bytes[..5000].to_vec();
    expected.resize(12_000, 0);
    assert_eq!(read(&file, 20_000, 0), expected);
    // A hole of many pages, and bytes far behind it.
    let far = 6u64 << 30;
    write(&file, b"far", far).unwrap();
    assert_eq!(file.ops.size(), Ok(far + 3));
    assert_eq!(file.ops.seek_data(12_288, false), Ok(far));
    assert_eq!(file.ops.seek_data(0, true), Ok(8192));
    assert!(file.attr().unwrap().blocks < 100);
    const PUNCH: u32 = 3;
    file.ops.allocate(&file, PUNCH, 1000, 3500).unwrap();
    expected[1000..4500].fill(0);
    drop(file);
    let w = w.again();
    let file = w.open("/f", O_RDWR).unwrap();
    assert_eq!(read(&file, 12_000, 0), expected);
    assert_eq!(read(&file, 100, far), b"far");
    assert_eq!(read(&file, 10, far - 10), [0; 10]);
    // Room taken in advance stays zero.
    file.ops.allocate(&file, 0, far, 100_000).unwrap();
    assert_eq!(file.ops.size(), Ok(far + 100_000));
    assert_eq!(read(&file, 6, far), b"far\0\0\0");
    drop(file);
    w.again();
}

#[test]
fn many_files_and_deep_directories() {
    let w = World::new(128 * MIB);
    w.mkdir("/many").unwrap();
    for number in 0..600 {
        w.create(&format!("/many/file-{number}"));
    }
    let mut path = String::new();
    for depth in 0..60 {
        path.push_str(&format!("/d{depth}"));
        w.mkdir(&path).unwrap();
    }
    w.put(&format!("{path}/leaf"), b"deep");
    let w = w.again();
    assert_eq!(w.list("/many").len(), 602);
    assert_eq!(w.get(&format!("{path}/leaf")).unwrap(), b"deep");
    for number in (0..600).step_by(2) {
        w.remove(&format!("/many/file-{number}"), false).unwrap();
    }
    let w = w.again();
    assert_eq!(w.list("/many").len(), 302);
    assert!(w.find("/many/file-599").is_ok());
}

#[test]
fn a_full_disk_refuses_and_keeps_what_it_took() {
    let w = World::new(32 * MIB);
    let (mut files, mut kept) = (0, 0);
    let chunk = pattern(300_000, 4);
    let full = loop {
        let file = match w.open(&format!("/f{files}"), O_CREAT | O_RDWR) {
            Ok(file) => file,
            Err(errno) => break errno,
        };
        files += 1;
        match write(&file, &chunk, 0) {
            Ok(n) if n == chunk.len() => kept += 1,
            Ok(n) => assert_eq!(read(&file, chunk.len(), 0), chunk[..n]),
            Err(errno) => break errno,
        }
        assert!(files < 1000, "it never gets full");
    };
    assert_eq!(full, Errno::ENOSPC);
    assert!(kept > 30, "{kept} files fit");
    // What was promised can be kept.
    w.fs.sync().unwrap();
    w.remove("/f0", false).unwrap();
    w.put("/again", &chunk[..100_000]);
    let w = w.again();
    for number in 1..kept {
        assert_eq!(w.get(&format!("/f{number}")).unwrap(), chunk, "f{number}");
    }
    assert_eq!(w.get("/again").unwrap(), chunk[..100_000]);
}

#[test]
fn on_a_full_disk_each_writer_keeps_what_was_taken() {
    let w = World::new(32 * MIB);
    let writers = 3;
    let over = AtomicBool::new(false);
    let kept: Vec<Vec<u8>> = thread::scope(|scope| {
        let write_files = |writer: u64| {
            let (w, content) = (&w, pattern(30 * MIB, writer as u32));
            let file = w.create(&format!("/f{writer}"));
            move || {
                let mut random = random::numbers(random::given().unwrap_or(0), 10 + writer);
                let (mut len, mut refused, mut turns) = (0, 0, 0);
                while refused < random::rounds(6) {
                    let most = 1 + random(600_000) as usize;
                    let bytes = &content[len..(len + most).min(content.len())];
                    match write(&file, bytes, len as u64) {
                        Ok(n) if n > 0 => len += n,
                        other => {
                            assert!(matches!(other, Err(Errno::ENOSPC) | Ok(0)), "{other:?}");
                            refused += 1;
                            len = random(len as u64 + 1) as usize;
                            file.ops.truncate(&file, len as u64).unwrap();
                        }
                    }
                    turns += 1;
                    assert!(turns < 100_000, "it never gets full");
                    let from = len - random((len as u64 + 1).min(50_000)) as usize;
                    assert!(read(&file, 700_000, from as u64) == content[from..len], "what was taken, and no more");
                }
                content[..len].to_vec()
            }
        };
        let threads: Vec<_> = (0..writers).map(|writer| scope.spawn(write_files(writer))).collect();
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // It may be full for what was stored anew in a page that was written, too.
                let _ = w.fs.sync();
            }
        });
        let kept: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        kept.into_iter().map(|kept| kept.unwrap()).collect()
    });
    let w = w.again();
    for (writer, kept) in kept.iter().enumerate() {
        assert!(w.get(&format!("/f{writer}")).unwrap() == *kept, "file {writer}");
    }
}

#[test]
fn files_larger_than_memory_are_whole() {
    // A quarter of it is for files: 64 pages.
    let w = World::try_mount(small(MIB as u64), Disk::new(64 * MIB)).unwrap();
    let (one, two) = (w.create("/one"), w.create("/two"));
    let bytes = pattern(3 * MIB, 7);
    // Two files in turn, in pieces that begin and end inside pages.
    for (turn, part) in bytes.chunks(70_001).enumerate() {
        for file in [&one, &two] {
            assert_eq!(write(file, part, (turn * 70_001) as u64), Ok(part.len()));
        }
    }
    // Again in the middle, over the border of two pages.
    for at in (5000..2 * MIB).step_by(333_333) {
        assert_eq!(write(&one, &bytes[at..at + 6000], at as u64), Ok(6000));
    }
    assert!(read(&one, 3 * MIB, 0) == bytes && read(&two, 3 * MIB, 0) == bytes);
    drop((one, two));
    let w = w.again();
    assert!(w.get("/one").unwrap() == bytes && w.get("/two").unwrap() == bytes);
}

#[test]
fn what_was_synced_survives_any_power_cut() {
    let w = World::new(64 * MIB);
    w.mkdir("/d").unwrap();
    for round in 0..6u32 {
        let file = w.create(&format!("/d/synced-{round}"));
        write(&file, &pattern(70_000, round), 0).unwrap();
        file.ops.sync(round % 2 == 0).unwrap();
        // Never synced: may be there or not, but must not hurt.
        w.put(&format!("/d/loose-{round}"), &pattern(50_000, 100 + round));
        if round > 0 {
            w.rename(&format!("/d/synced-{}", round - 1), &format!("/d/old-{}", round - 1), 0).unwrap();
            w.remove(&format!("/d/loose-{}", round - 1), false).unwrap();
        }
        let written = w.disk.log.lock().unwrap().len();
        for variant in 0..4usize {
            // None of the later writes, all, the first half, and every third.
            let image = w.disk.cut(|turn| match variant {
                0 => false,
                1 => true,
                2 => turn < written / 2,
                _ => turn % 3 == 0,
            });
            let (code, words) = check(&image, "-p");
            assert!(code <= 1, "the checker recovers by the journal alone: {code} {words}");
            let after = World::mount(Disk::of(image));
            for old in 0..=round {
                let found = after.get(&format!("/d/synced-{old}")).or_else(|_| after.get(&format!("/d/old-{old}")));
                assert_eq!(found.unwrap(), pattern(70_000, old), "round {round}, variant {variant}, file {old}");
            }
            after.again();
        }
    }
}

#[test]
fn fsync_flushes_and_nothing_else_does() {
    let w = World::new(64 * MIB);
    let file = w.create("/f");
    w.fs.sync().unwrap();
    let flushes = || w.disk.flushes.load(Ordering::Relaxed);
    let before = flushes();
    write(&file, b"text", 0).unwrap();
    assert_eq!(flushes(), before);
    file.ops.sync(true).unwrap();
    assert!(flushes() > before);
    assert!(w.disk.log.lock().unwrap().is_empty(), "nothing is left unflushed");
    let (dir, before) = (w.open("/", flags::O_DIRECTORY).unwrap(), flushes());
    w.create("/g");
    dir.ops.sync(false).unwrap();
    assert!(flushes() > before);
    let cut = World::mount(Disk::of(w.disk.cut(|_| false)));
    assert_eq!(cut.list("/"), [".", "..", "f", "g", "lost+found"]);
}

#[test]
fn mappings_and_files_are_one() {
    let w = World::new(64 * MIB);
    w.put("/f", &pattern(10_000, 5));
    let w = w.again();
    let file = w.open("/f", O_RDWR).unwrap();
    file.ops.mapping_made(true).unwrap();
    let janua_port::Backing::Object { object, .. } = file.ops.backing(&file, 0, 12_288, true).unwrap() else {
        panic!("mapped by a memory object")
    };
    let mut seen = vec![0; 10_000];
    assert_eq!(object.read(0, &mut seen), Ok(10_000));
    assert_eq!(seen, pattern(10_000, 5));
    // A store through the mapping, without a word to the kernel.
    object.write(5000, b"stored").unwrap();
    assert_eq!(read(&file, 6, 5000), b"stored");
    file.ops.sync_mapping().unwrap();
    let cut = World::mount(Disk::of(w.disk.cut(|_| false)));
    assert_eq!(&cut.get("/f").unwrap()[5000..5006], b"stored");
    object.write(9000, b"last").unwrap();
    file.ops.mapping_gone(true);
    drop(file);
    let w = w.again();
    assert_eq!(&w.get("/f").unwrap()[9000..9004], b"last");
}

#[test]
fn a_mapping_brings_what_is_touched_and_little_around_it() {
    let w = World::new(64 * MIB);
    let content = pattern(600_000, 5);
    w.put("/f", &content);
    let w = w.again();
    FILLS.set(Some(Vec::new()));
    let file = w.open("/f", O_RDWR).unwrap();
    file.ops.mapping_made(false).unwrap();
    let janua_port::Backing::Object { object, .. } = file.ops.backing(&file, 0, 600_000, false).unwrap() else {
        panic!("mapped by a memory object")
    };
    let blocks = || object.resident() / PIECE as u64;
    let touch = |page| FILLS.with_borrow(|fills| fills.as_ref().unwrap()[0].upgrade().unwrap()).fill(page);
    assert_eq!(blocks(), 0);
    assert_eq!((touch(40), blocks()), (Ok(()), 32));
    let mut seen = vec![0; 32 * PIECE];
    assert_eq!(object.read(32 * PIECE as u64, &mut seen), Ok(seen.len()));
    assert_eq!(seen, content[32 * PIECE..64 * PIECE]);
    // The last page, of which the file has a part; behind it there is none, until the file is longer, and then it is a hole's.
    assert_eq!((touch(146), touch(147), blocks()), (Ok(()), Ok(()), 32 + 19));
    file.ops.truncate(&file, 1_000_000).unwrap();
    assert_eq!((touch(200), blocks()), (Ok(()), 32 + 19 + 1));
    w.disk.broken.store(true, Ordering::Relaxed);
    assert_eq!((touch(100), touch(63)), (Err(Errno::EIO), Ok(())));
    w.disk.broken.store(false, Ordering::Relaxed);
    assert_eq!((touch(100), blocks()), (Ok(()), 32 + 19 + 1 + 32));
    assert_eq!(read(&file, 600_000, 0), content);
    file.ops.mapping_gone(false);
    FILLS.set(None);
}

#[test]
fn of_a_mapping_only_what_was_stored_is_written() {
    let w = World::new(64 * MIB);
    w.put("/f", &pattern(1_000_000, 5));
    let w = w.again();
    FILLS.set(Some(Vec::new()));
    let file = w.open("/f", O_RDWR).unwrap();
    file.ops.mapping_made(true).unwrap();
    let janua_port::Backing::Object { object, .. } = file.ops.backing(&file, 0, 1_000_000, true).unwrap() else {
        panic!("mapped by a memory object")
    };
    assert_eq!(read(&file, 1_000_000, 0), pattern(1_000_000, 5));
    file.ops.sync(false).unwrap();
    let before = w.disk.written.load(Ordering::Relaxed);
    let store = |page: u64, bytes: &[u8]| {
        object.write(page * PIECE as u64, bytes).unwrap();
        STORED.with_borrow_mut(|stored| stored.push(page..page + 1));
    };
    store(100, b"one");
    file.ops.sync_mapping().unwrap();
    let kept = |page: usize, bytes: &[u8]| {
        let cut = World::mount(Disk::of(w.disk.cut(|_| false)));
        cut.get("/f").unwrap()[page * PIECE..].starts_with(bytes)
    };
    assert!(kept(100, b"one"));
    let written = w.disk.written.load(Ordering::Relaxed) - before;
    assert!(written < 100_000, "{written} bytes for a page and its metadata");
    // sync(2) asks what was stored, and so does the end of the last mapping that may be written.
    store(7, b"two");
    assert!(!kept(7, b"two"));
    w.fs.sync().unwrap();
    assert!(kept(7, b"two"));
    store(8, b"three");
    file.ops.mapping_gone(true);
    file.ops.sync(false).unwrap();
    assert!(kept(8, b"three"));
    FILLS.set(None);
}

#[test]
fn a_broken_device_is_an_io_error() {
    let w = World::new(64 * MIB);
    w.put("/f", &pattern(10_000, 6));
    let w = w.again();
    let file = w.open("/f", O_RDWR).unwrap();
    w.disk.broken.store(true, Ordering::Relaxed);
    let mut bytes = [0; 10];
    assert_eq!(file.ops.read(&file, &common::anybody(), &mut ReadBuf::kernel(&mut bytes), 0), Err(Errno::EIO));
    assert_eq!(file.ops.sync(false), Err(Errno::EIO));
}

#[test]
fn what_is_no_file_system_is_refused_with_words() {
    let refused = |contents: Contents| ext4::mount(hosted(), Disk::of(contents), 1).err().expect("refused");
    assert_eq!(refused(Contents::empty(MIB)), "there is no ext4 file system on it");
    assert_eq!(refused(Contents::of(&pattern(MIB, 9))), "there is no ext4 file system on it");
    assert_eq!(refused(Contents::empty(SECTOR)), "it is too small, or cannot be read");
    let image = Disk::new(32 * MIB).image();
    assert_eq!(refused(image.clone().cut_off(20 * MIB)), "it is smaller than its file system: the image is cut off");
    // Anything may be wrong with it: words, never a panic.
    for word in 0..256 {
        let mut broken = image.clone();
        for byte in 0..4 {
            broken.spoil(1024 + word * 4 + byte, 0xff);
        }
        if let Err(why) = ext4::mount(hosted(), Disk::of(broken), 1) {
            assert!(!why.is_empty());
        }
    }
}

#[test]
fn damaged_structures_are_errors_at_most() {
    let w = World::new(32 * MIB);
    w.mkdir("/dir").unwrap();
    for number in 0..20 {
        w.put(&format!("/dir/{number}"), &pattern(5000, number));
    }
    w.fs.finish().unwrap();
    let image = w.disk.image();
    // The structures are where something was ever written, short of the journal and the files' bytes.
    let used: Vec<usize> = image.pieces.keys().copied().collect();
    let mut random = random::numbers(random::given().unwrap_or(0), 0);
    let mut next = move |below: usize| random(below as u64) as usize;
    let mut mounted = 0;
    for _ in 0..random::rounds(60) {
        let mut broken = image.clone();
        for _ in 0..20 {
            broken.spoil(used[next(used.len())] * PIECE + next(PIECE), 1 << next(8));
        }
        let Ok(w) = World::try_mount(hosted(), Disk::of(broken)) else { continue };
        mounted += 1;
        for number in 0..20 {
            let _ = w.get(&format!("/dir/{number}"));
            let _ = w.remove(&format!("/dir/{number}"), false);
        }
        let _ = w.mkdir("/other");
        let _ = w.open("/dir/new", O_CREAT | O_RDWR).and_then(|file| write(&file, b"new", 0));
        let _ = w.rename("/dir", "/other/dir", 0);
        let _ = w.fs.finish();
    }
    assert!(mounted > 0, "some damage is found late");
}
