//! Overlays and binds over a real directory of the host.

mod common;

use std::fs;
use std::ops::Deref;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

use common::tree::Tree;
use common::{TestCaller, TestHost, hosted, root};
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_object::OpenFile;
use janua_object::file::flags::{self, O_CREAT, O_RDWR};
use janua_object::fs::hostfs::HostFs;
use janua_object::fs::overlay::{Below, Overlay};
use janua_object::hostfile::HostFile;
use janua_object::vfs::{Cached, FileKind, FileSystem, Make, OpenHow, Resolve, SetAttr, Start, Vfs, Walk, Walked, rename};
use janua_port::{Backing, HostFd};

/// A directory of the host that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("janua-object-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("dir/sub")).unwrap();
        fs::write(path.join("file"), "below").unwrap();
        fs::write(path.join("dir/inner"), "inner").unwrap();
        fs::write(path.join("dir/sub/leaf"), "leaf").unwrap();
        fs::hard_link(path.join("file"), path.join("twin")).unwrap();
        symlink("dir/inner", path.join("link")).unwrap();
        symlink("/etc", path.join("outside")).unwrap();
        Scratch(path)
    }

    fn open(&self) -> HostFd {
        let file = fs::File::options().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(&self.0);
        HostFd(file.unwrap().into_raw_fd())
    }

    fn names(&self, dir: &str) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(self.0.join(dir)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A mount over a directory of the host.
struct World {
    tree: Tree,
    host: Scratch,
}

impl Deref for World {
    type Target = Tree;
    fn deref(&self) -> &Tree {
        &self.tree
    }
}

impl World {
    fn overlay(name: &str) -> World {
        World::new(name, |vfs, fd| Overlay::new(vfs.machine, vfs.new_dev(), fd, b"/", false).unwrap())
    }

    fn bind(name: &str, writable: bool) -> World {
        World::new(name, |vfs, fd| HostFs::bind(vfs.machine, vfs.new_dev(), fd, writable, false).unwrap())
    }

    fn new<F: FileSystem>(name: &str, make: impl FnOnce(&Vfs, HostFd) -> Arc<F>) -> World {
        let host = Scratch::new(name);
        let fd = host.open();
        World { tree: Tree::new(hosted(), |vfs| make(vfs, fd)), host }
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.open(path, O_CREAT | O_RDWR | flags::O_TRUNC).unwrap();
        file.ops.write(&file, &common::anybody(), &mut WriteBuf::kernel(text.as_bytes()), 0).unwrap();
    }

    fn read_open(&self, file: &OpenFile) -> String {
        let mut bytes = vec![0; 100];
        let n = file.ops.read(file, &common::anybody(), &mut ReadBuf::kernel(&mut bytes), 0).unwrap();
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    }

    fn read(&self, path: &str) -> Result<String> {
        Ok(self.read_open(&*self.open(path, flags::O_RDONLY)?))
    }
}

fn error<T>(result: Result<T>) -> Errno {
    result.err().expect("an error")
}

const BELOW: [&str; 7] = [".", "..", "dir", "file", "link", "outside", "twin"];

#[test]
fn a_copy_for_a_writer_who_is_killed_is_given_up() {
    let w = World::overlay("killed");
    let big = vec![7; 3 << 20];
    fs::write(w.host.0.join("big"), &big).unwrap();
    let killed = TestCaller { killed: true, ..root(w.who.machine) };
    let inode = w.find("/big").unwrap().inode().clone();
    assert_eq!(error(inode.clone().open(&killed, O_RDWR)), Errno::EINTR);
    assert_eq!(error(inode.before_size(&killed, 2 << 20)), Errno::EINTR);
    // Nobody has paid for it, and the next one gets all of it.
    assert_eq!(inode.attr().unwrap().size, 3 << 20);
    let file = w.open("/big", O_RDWR).unwrap();
    let mut read = vec![0; 3 << 20];
    assert_eq!(file.ops.read(&file, &common::anybody(), &mut ReadBuf::kernel(&mut read), 0).unwrap(), 3 << 20);
    assert_eq!(read, big);
    file.ops.write(&file, &common::anybody(), &mut WriteBuf::kernel(b"new"), 0).unwrap();
    assert_eq!(fs::read(w.host.0.join("big")).unwrap(), big);
}

/// Two threads that find a file below by two of its names have found one file, in either order.
#[test]
fn names_of_one_file_below_lead_to_one_node() {
    for round in 0..200 {
        let w = World::overlay("names");
        fs::create_dir(w.host.0.join("other")).unwrap();
        fs::hard_link(w.host.0.join("file"), w.host.0.join("other/third")).unwrap();
        let (w, start) = (&w, &std::sync::Barrier::new(2));
        let [one, two] = std::thread::scope(|scope| {
            ["/file", "/other/third"]
                .map(|path| {
                    scope.spawn(move || {
                        start.wait();
                        w.find(path).unwrap().inode().clone()
                    })
                })
                .map(|thread| thread.join().unwrap())
        });
        assert!(Arc::ptr_eq(&one, &two), "round {round}");
        assert!(Arc::ptr_eq(&one, w.find("/twin").unwrap().inode()));
        assert_eq!(one.attr().unwrap().nlink, 3);
        w.write("/other/third", "changed");
        assert_eq!(w.read("/twin").unwrap(), "changed");
        assert_eq!(one.attr().unwrap().ino, w.find("/file").unwrap().inode().attr().unwrap().ino);
    }
}

#[test]
fn what_is_written_to_a_bind_is_written_back_by_the_host() {
    let synced = || common::SYNCED.with_borrow_mut(core::mem::take);
    let w = World::bind("written_back", true);
    let inode = |path: &str| w.find(path).unwrap().inode().clone();
    let numbers = ["/", "/file", "/dir"].map(|path| inode(path).attr().unwrap().ino);
    w.root.mount.fs.sync().unwrap();
    w.root.mount.fs.sync_of(&*inode("/file")).unwrap();
    inode("/dir").sync().unwrap();
    assert_eq!(synced(), numbers);
    assert!(w.root.mount.fs.sync_blocks() && inode("/dir").sync_blocks());
    let w = World::bind("read_only", false);
    w.root.mount.fs.sync().unwrap();
    w.find("/dir").unwrap().inode().sync().unwrap();
    assert!(!w.root.mount.fs.sync_blocks() && synced().is_empty());
}

#[test]
fn a_part_of_an_overlay_is_shown_as_the_host_s_file_system() {
    let (w, host) = (World::overlay("below"), World::bind("below_host", false).root.mount.fs.stat().unwrap());
    let below = Below::new("sysfs", w.root.mount.fs.clone(), w.find("/dir").unwrap().inode().clone());
    assert_eq!((below.stat().unwrap().magic, below.stat().unwrap().block_size), (host.magic, host.block_size));
    // What was made above has nothing below.
    w.write("/dir/made", "above");
    let made = below.stat_of(&**w.find("/dir/made").unwrap().inode()).unwrap().magic;
    assert!(made == w.root.mount.fs.stat().unwrap().magic && made != host.magic);
}

#[test]
fn an_overlay_shows_what_is_below_and_changes_nothing_there() {
    let w = World::overlay("shows");
    assert_eq!(w.list("/"), BELOW);
    assert_eq!(w.read("/link").unwrap(), "inner");
    w.write("/file", "above");
    w.write("/new", "new");
    w.write("/dir/sub/leaf", "other leaf");
    assert_eq!(w.read("/file").unwrap(), "above");
    w.remove("/dir/inner", false).unwrap();
    assert_eq!(error(w.read("/dir/inner")), Errno::ENOENT);
    assert_eq!(w.list("/dir"), [".", "..", "sub"]);
    assert_eq!(w.list("/"), [".", "..", "dir", "file", "link", "new", "outside", "twin"]);
    assert_eq!(fs::read_to_string(w.host.0.join("file")).unwrap(), "below");
    assert_eq!(fs::read_to_string(w.host.0.join("dir/inner")).unwrap(), "inner");
    assert_eq!(w.host.names(""), BELOW[2..]);
}

#[test]
fn whiteouts_and_opaque_directories() {
    let w = World::overlay("whiteouts");
    assert_eq!(error(w.remove("/dir", true)), Errno::ENOTEMPTY);
    w.remove("/dir/sub/leaf", false).unwrap();
    w.remove("/dir/sub", true).unwrap();
    w.remove("/dir/inner", false).unwrap();
    w.remove("/dir", true).unwrap();
    assert_eq!(error(w.find("/dir/inner")), Errno::ENOENT);
    // What is made in its place shows nothing of what was.
    w.mkdir("/dir").unwrap();
    assert_eq!(w.list("/dir"), [".", ".."]);
    w.write("/dir/inner", "fresh");
    w.remove("/dir/inner", false).unwrap();
    assert_eq!(error(w.read("/dir/inner")), Errno::ENOENT);
    w.remove("/dir", true).unwrap();
    assert!(!w.list("/").contains(&"dir".into()));
}

#[test]
fn renamed_directories_take_what_is_below_along() {
    let w = World::overlay("renames");
    let before = w.find("/dir").unwrap().inode().attr().unwrap().ino;
    w.rename("/dir", "/moved", 0).unwrap();
    assert_eq!(error(w.find("/dir")), Errno::ENOENT);
    assert_eq!(w.read("/moved/sub/leaf").unwrap(), "leaf");
    assert_eq!(w.list("/moved"), [".", "..", "inner", "sub"]);
    assert_eq!(w.find("/moved").unwrap().inode().attr().unwrap().ino, before);
    w.mkdir("/dir").unwrap();
    assert_eq!(w.list("/dir"), [".", ".."]);
    w.rename("/moved/sub", "/dir/sub", 0).unwrap();
    assert_eq!(w.read("/dir/sub/leaf").unwrap(), "leaf");
    w.rename("/dir", "/moved", rename::EXCHANGE).unwrap();
    assert_eq!(w.read("/moved/sub/leaf").unwrap(), "leaf");
    assert_eq!(w.read("/dir/inner").unwrap(), "inner");
    w.rename("/file", "/dir/inner", 0).unwrap();
    assert_eq!(w.read("/dir/inner").unwrap(), "below");
    assert_eq!(w.list("/"), [".", "..", "dir", "link", "moved", "outside", "twin"]);
    assert_eq!(w.host.names(""), BELOW[2..]);
}

#[test]
fn changes_of_attributes_last_and_names_share_them() {
    let w = World::overlay("attributes");
    let change = SetAttr { mode: Some(0o600), mtime: Some(5), ..SetAttr::default() };
    w.find("/twin").unwrap().inode().set_attr(&change).unwrap();
    w.find("/dir/inner").unwrap().inode().set_attr(&change).unwrap();
    // Push everything out of the name cache.
    w.mkdir("/many").unwrap();
    for n in 0..40_000 {
        assert_eq!(error(w.find(&format!("/many/{n}"))), Errno::ENOENT);
        if n % 2 == 0 {
            w.mkdir(&format!("/many/{n}")).unwrap();
        }
    }
    for path in ["/twin", "/file", "/dir/inner"] {
        let attr = w.find(path).unwrap().inode().attr().unwrap();
        assert_eq!((attr.mode & 0o777, attr.mtime), (0o600, 5), "{path}");
    }
    assert_eq!(w.find("/file").unwrap().inode().attr().unwrap().nlink, 2);
    w.write("/twin", "both");
    assert_eq!(w.read("/file").unwrap(), "both");
    w.remove("/twin", false).unwrap();
    assert_eq!(w.read("/file").unwrap(), "both");
    assert_eq!(w.find("/file").unwrap().inode().attr().unwrap().nlink, 1);
    w.make("/third", Make::Link(w.find("/dir/inner").unwrap().inode())).unwrap();
    assert_eq!(w.read("/third").unwrap(), "inner");
}

#[test]
fn readers_see_what_writers_change() {
    let w = World::overlay("readers");
    let reader = w.open("/file", flags::O_RDONLY).unwrap();
    assert_eq!(w.read_open(&reader), "below");
    let writer = w.open("/file", O_RDWR).unwrap();
    writer.ops.write(&writer, &common::anybody(), &mut WriteBuf::kernel(b"BE"), 0).unwrap();
    assert_eq!(w.read_open(&reader), "BElow");
    writer.ops.truncate(&writer, 3).unwrap();
    assert_eq!(w.read_open(&reader), "BEl");
    assert_eq!(reader.attr().unwrap().size, 3);
    // Large data moves to the host and stays the same file.
    let big = vec![9; 300 * 1024];
    writer.ops.write(&writer, &common::anybody(), &mut WriteBuf::kernel(&big), 3).unwrap();
    assert_eq!(reader.attr().unwrap().size, 3 + 300 * 1024);
    assert_eq!(&w.read_open(&reader)[..4], "BEl\t");
    assert_eq!(reader.ops.seek_data(10, true).unwrap(), 3 + 300 * 1024);
}

#[test]
fn a_bind_is_the_host_as_it_is() {
    let w = World::bind("bind", true);
    assert_eq!(w.list("/"), BELOW);
    w.write("/new", "made inside");
    assert_eq!(fs::read_to_string(w.host.0.join("new")).unwrap(), "made inside");
    fs::write(w.host.0.join("late"), "made outside").unwrap();
    assert_eq!(w.read("/late").unwrap(), "made outside");
    fs::remove_file(w.host.0.join("late")).unwrap();
    assert_eq!(error(w.read("/late")), Errno::ENOENT);
    w.find("/file").unwrap().inode().set_attr(&SetAttr { mode: Some(0o604), ..SetAttr::default() }).unwrap();
    assert_eq!(fs::metadata(w.host.0.join("twin")).unwrap().permissions().mode() & 0o777, 0o604);
    // A file outlives its name while it is open, also for writing again.
    let open = w.open("/new", O_RDWR).unwrap();
    w.remove("/new", false).unwrap();
    assert_eq!(w.read_open(&open), "made inside");
    assert_eq!(open.attr().unwrap().nlink, 0);
    open.ops.truncate(&open, 4).unwrap();
    assert_eq!(w.read_open(&open), "made");
    let dir = w.find("/dir").unwrap();
    w.rename("/dir", "/moved", 0).unwrap();
    assert_eq!(dir.write(&w.root).display(), b"/moved");
    assert_eq!(w.read("/moved/sub/leaf").unwrap(), "leaf");
    assert_eq!(w.host.names("moved"), ["inner", "sub"]);
    w.mkdir("/made").unwrap();
    w.rename("/file", "/made/file", 0).unwrap();
    assert_eq!(w.read("/made/file").unwrap(), "below");
    w.make("/made/hard", Make::Link(w.find("/made/file").unwrap().inode())).unwrap();
    assert_eq!(fs::metadata(w.host.0.join("made/hard")).unwrap().nlink(), 3);
}

#[test]
fn a_bind_never_leaves_its_root() {
    let w = World::bind("root", true);
    // Long targets are returned whole.
    let long = "x/".repeat(200);
    symlink(&long, w.host.0.join("dir/long")).unwrap();
    let start = Start { root: w.root.clone(), base: w.root.clone() };
    let found = Walk::new(&w.vfs, &w.who, &start, Resolve::empty()).whole(b"dir/long", false).unwrap();
    assert_eq!(found.inode().readlink(&w.who).unwrap(), long.as_bytes());
    // The link is ours to follow: "/etc" is looked for inside.
    assert_eq!(error(w.find("/outside/passwd")), Errno::ENOENT);
    assert_eq!(w.find("/../..").unwrap().write(&w.root).display(), b"/");
    // A directory that turns into a link to the outside behind our back leads nowhere.
    let sub = w.find("/dir/sub").unwrap();
    let leaf = w.find("/dir/sub/leaf").unwrap();
    fs::rename(w.host.0.join("dir"), w.host.0.join("was")).unwrap();
    symlink("/", w.host.0.join("dir")).unwrap();
    assert_eq!(w.find("/dir").unwrap().write(&w.root).display(), b"/");
    drop((sub, leaf));
}

#[test]
fn a_read_only_bind_refuses_changes() {
    let w = World::bind("readonly", false);
    assert_eq!(error(w.mkdir("/x")), Errno::EROFS);
    assert_eq!(error(w.open("/file", O_RDWR)), Errno::EROFS);
    assert_eq!(error(w.remove("/file", false)), Errno::EROFS);
    assert_eq!(error(w.rename("/file", "/x", 0)), Errno::EROFS);
    assert_eq!(w.read("/file").unwrap(), "below");
}

#[test]
fn a_bind_follows_what_others_do_to_directories_on_the_way() {
    let world = World::bind("others", true);
    assert_eq!(world.read("dir/sub/leaf").unwrap(), "leaf");
    // The directory in the middle is another one.
    fs::rename(world.host.0.join("dir"), world.host.0.join("old")).unwrap();
    fs::create_dir_all(world.host.0.join("dir/sub")).unwrap();
    fs::write(world.host.0.join("dir/sub/leaf"), "new leaf").unwrap();
    assert_eq!(world.read("dir/sub/leaf").unwrap(), "new leaf");
    assert_eq!(world.read("old/sub/leaf").unwrap(), "leaf");
    // It is gone, and what is made does not go to where it was.
    fs::rename(world.host.0.join("dir"), world.host.0.join("older")).unwrap();
    assert_eq!(error(world.find("dir/sub/leaf")), Errno::ENOENT);
    assert_eq!(error(world.open("dir/sub/more", O_CREAT | O_RDWR)), Errno::ENOENT);
    assert_eq!(error(world.remove("dir/sub/leaf", false)), Errno::ENOENT);
    // A link has taken its place: to the same file, to another one, out of the bind.
    symlink("older", world.host.0.join("dir")).unwrap();
    assert_eq!(world.read("dir/sub/leaf").unwrap(), "new leaf");
    fs::remove_file(world.host.0.join("dir")).unwrap();
    symlink("old", world.host.0.join("dir")).unwrap();
    assert_eq!(world.read("dir/sub/leaf").unwrap(), "leaf");
    fs::remove_file(world.host.0.join("dir")).unwrap();
    symlink("/etc", world.host.0.join("dir")).unwrap();
    assert_eq!(error(world.find("dir/passwd")), Errno::ENOENT);
}

#[test]
fn a_new_file_in_a_bind_is_the_one_that_was_made() {
    let world = World::bind("made", true);
    let exclusive = O_CREAT | flags::O_EXCL | O_RDWR;
    let file = world.open("dir/fresh", exclusive).unwrap();
    file.ops.write(&file, &common::anybody(), &mut WriteBuf::kernel(b"text"), 0).unwrap();
    assert_eq!(fs::read(world.host.0.join("dir/fresh")).unwrap(), b"text");
    assert_eq!(world.read_open(&file), "text");
    assert_eq!(error(world.open("dir/fresh", exclusive)), Errno::EEXIST);
    assert_eq!(error(world.open("dir/inner", exclusive)), Errno::EEXIST);
    // Without O_EXCL what is there is opened, also what the host has made.
    fs::write(world.host.0.join("dir/theirs"), "theirs").unwrap();
    assert_eq!(world.read_open(&world.open("dir/theirs", O_CREAT | O_RDWR).unwrap()), "theirs");
    // An open file outlives its name, and a new one with that name is another.
    world.remove("dir/fresh", false).unwrap();
    world.write("dir/fresh", "second");
    assert_eq!(world.read_open(&file), "text");
    assert_eq!(file.attr().unwrap().nlink, 0);
    assert_eq!(world.read("dir/fresh").unwrap(), "second");
}

#[test]
fn a_file_of_a_bind_keeps_its_attributes_without_a_name() {
    let world = World::bind("nameless", true);
    for (number, access) in [O_RDWR, flags::O_WRONLY].into_iter().enumerate() {
        let name = format!("dir/nameless{number}");
        let file = world.open(&name, O_CREAT | flags::O_EXCL | access).unwrap();
        let inode = world.find(&name).unwrap().inode().clone();
        world.remove(&name, false).unwrap();
        // Not every file system of a host has attributes of users.
        let set = inode.set_xattr(b"user.x", b"value", 0);
        if set != Err(Errno::EOPNOTSUPP) {
            assert_eq!(set, Ok(()));
            assert_eq!(inode.get_xattr(b"user.x").unwrap(), b"value");
            assert!(inode.list_xattr().unwrap().contains(&b"user.x".to_vec()));
            assert_eq!(inode.remove_xattr(b"user.x"), Ok(()));
        }
        // The first that opened it may go before others.
        drop(file);
        inode.set_attr(&SetAttr { mode: Some(0o640), ..SetAttr::default() }).unwrap();
        assert_eq!(inode.attr().unwrap().mode & 0o777, 0o640);
    }
}

#[test]
fn a_name_that_is_taken_as_soon_as_it_is_made_changes_nothing_elsewhere() {
    let world = World::bind("taken", true);
    let mode = |name: &str| fs::metadata(world.host.0.join(name)).unwrap().permissions().mode() & 0o7777;
    fs::set_permissions(world.host.0.join("file"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(world.host.0.join("dir/sub"), fs::Permissions::from_mode(0o700)).unwrap();
    // The host stamps files by its ticks.
    std::thread::sleep(std::time::Duration::from_millis(30));
    // By a link to a file outside, and by a directory that was there before.
    common::TAKEN.set(Some(|dir, name| {
        // SAFETY: strings that live; a directory of the test's.
        unsafe {
            libc::unlinkat(dir.0, name.as_ptr(), 0);
            assert_eq!(libc::symlinkat(c"../file".as_ptr(), dir.0, name.as_ptr()), 0);
        }
    }));
    let _ = world.make("/dir/fifo", Make::Node { mode: FileKind::Fifo as u32 | 0o4777, rdev: 0 });
    common::TAKEN.set(Some(|dir, name| {
        // SAFETY: as above.
        unsafe { assert_eq!(libc::renameat(dir.0, c"sub".as_ptr(), dir.0, name.as_ptr()), 0) }
    }));
    let _ = world.make("/dir/new", Make::Node { mode: FileKind::Directory as u32 | 0o1777, rdev: 0 });
    common::TAKEN.set(None);
    assert!(fs::symlink_metadata(world.host.0.join("dir/fifo")).unwrap().is_symlink());
    assert_eq!((mode("file"), mode("dir/new")), (0o600, 0o700));
}

#[test]
fn an_uncached_stat_returns_what_a_dentry_would() {
    let world = World::overlay("uncached");
    let start = Start { root: world.root.clone(), base: world.root.clone() };
    let stat = |path: &str| Walk::new(&world.vfs, &world.who, &start, Resolve::empty()).stat(path.as_bytes(), false);
    for path in ["dir/inner", "dir/sub", "file", "twin", "link"] {
        let first = stat(path).unwrap();
        assert_eq!(format!("{:?}", stat(path).unwrap().attr), format!("{:?}", first.attr), "{path}");
        assert_eq!(first.mount, world.root.mount.id);
    }
    let whole = world.find("dir/inner").unwrap().inode().attr().unwrap();
    assert_eq!(format!("{whole:?}"), format!("{:?}", stat("dir/inner").unwrap().attr));
    assert_eq!(stat("dir/none").map(|_| ()), Err(Errno::ENOENT));
    // What was changed or removed here is not looked for below.
    world.write("dir/sub/leaf", "ours");
    assert_eq!(stat("dir/sub/leaf").unwrap().attr.size, 4);
    world.remove("dir/inner", false).unwrap();
    assert_eq!(stat("dir/inner").map(|_| ()), Err(Errno::ENOENT));
}

#[test]
fn known_names_are_walked_as_others_are() {
    let world = World::overlay("known");
    let known = |path: &str, follow: bool| {
        let walk =
            Cached { root: &|| Some(world.root.clone()), all: &|| true, follow, then: &|_, dentry| Some(dentry.inode.clone()) };
        match walk.walk(&world.vfs, &world.root, path.as_bytes())? {
            Walked::Done(found) => Some(found),
            Walked::All(..) | Walked::Trusted(_) | Walked::Beyond(..) => None,
        }
    };
    let same = |path: &str| {
        let found = world.find(path).map(|path| path.inode().clone());
        let known = known(path, true).expect("the names are known by now");
        match (found, known) {
            (Ok(found), Ok(known)) => assert!(Arc::ptr_eq(&found, &known), "{path}"),
            (found, known) => assert_eq!(found.err(), known.err(), "{path}"),
        }
    };
    assert!(known("dir/inner", true).is_none());
    world.find("dir/sub/leaf").unwrap();
    for path in ["dir/inner", "/dir//sub/leaf", "link", "dir/none"] {
        same(path);
    }
    assert_eq!(known("link", false).unwrap().unwrap().kind(), FileKind::Symlink);
    // What is not plain is left to the other walk.
    for path in ["", "/", "dir/", "dir/../link", "./link", "file/none"] {
        assert!(known(path, true).is_none(), "{path}");
    }
    world.remove("dir/inner", false).unwrap();
    same("dir/inner");
}

#[test]
fn names_of_a_bind_are_checked_where_a_walk_through_the_cache_ends() {
    let world = World::bind("trusted", true);
    let trusted = |path: &str| {
        let walk = Cached {
            root: &|| Some(world.root.clone()),
            all: &|| true,
            follow: true,
            then: &|_, _| -> Option<()> { panic!("nothing here is known for certain") },
        };
        match walk.walk(&world.vfs, &world.root, path.as_bytes())? {
            Walked::Trusted(trusted) => Some(trusted),
            _ => None,
        }
    };
    let open = |path: &str, flags: u32| {
        let trusted = trusted(path).expect("the names are known by now");
        let how = OpenHow { flags, mode: 0, umask: 0, resolve: Resolve::empty() };
        world.vfs.open_trusted(&world.who, &world.who.cred, &trusted, path.as_bytes(), &how)
    };
    let read = |path: &str| Ok::<_, Errno>(world.read_open(&*open(path, flags::O_RDONLY)?));
    assert!(trusted("dir/sub/leaf").is_none());
    for path in ["dir/sub/leaf", "dir/inner", "link", "file"] {
        world.find(path).unwrap();
    }
    // Links and what is not plain are left to the other walk, and so are names that are not known.
    for path in ["link", "dir/", "dir/../file", "dir/none", "none"] {
        assert!(trusted(path).is_none(), "{path}");
    }
    let leaf = trusted("//dir//sub/leaf").unwrap();
    assert!(Arc::ptr_eq(leaf.place.inode(), world.find("dir/sub/leaf").unwrap().inode()));
    assert!(leaf.check(b"//dir//sub/leaf"));
    assert_eq!(read("dir/sub/leaf").unwrap(), "leaf");
    // Opened a second time, and for writing; seen at once outside.
    assert_eq!(read("dir/sub/leaf").unwrap(), "leaf");
    let writer = open("dir/sub/leaf", O_RDWR).unwrap();
    writer.ops.write(&writer, &common::anybody(), &mut WriteBuf::kernel(b"LEAF"), 0).unwrap();
    assert_eq!(fs::read_to_string(world.host.0.join("dir/sub/leaf")).unwrap(), "LEAF");
    assert_eq!(open("dir/sub", flags::O_DIRECTORY).unwrap().attr().unwrap().kind(), Some(FileKind::Directory));
    assert_eq!(error(open("file", flags::O_DIRECTORY)), Errno::ENOTDIR);
    // The directory on the way is another one, whose file has the same name; whether it was open already or not.
    world.find("dir/inner").unwrap();
    fs::rename(world.host.0.join("dir"), world.host.0.join("old")).unwrap();
    fs::create_dir_all(world.host.0.join("dir/sub")).unwrap();
    fs::write(world.host.0.join("dir/sub/leaf"), "new").unwrap();
    fs::write(world.host.0.join("dir/inner"), "new").unwrap();
    assert!(!leaf.check(b"//dir//sub/leaf"));
    for path in ["dir/sub/leaf", "dir/inner"] {
        for flags in [flags::O_RDONLY, O_RDWR] {
            assert_eq!(error(open(path, flags)), Errno::ESTALE, "{path}");
        }
    }
    // A link in the middle leads to the very file, and is not followed for all that.
    fs::remove_dir_all(world.host.0.join("dir")).unwrap();
    symlink("old", world.host.0.join("dir")).unwrap();
    assert!(open("dir/inner", O_RDWR).is_err());
    assert_eq!(world.read("dir/inner").unwrap(), "inner");
}

#[test]
fn a_file_of_a_bind_that_is_only_looked_at_leaves_nothing_behind() {
    let world = World::bind("looked", true);
    let start = Start { root: world.root.clone(), base: world.root.clone() };
    let stat = |path: &str| Walk::new(&world.vfs, &world.who, &start, Resolve::empty()).stat(path.as_bytes(), false);
    let beyond = |path: &str| {
        let walk = Cached {
            root: &|| Some(world.root.clone()),
            all: &|| true,
            follow: false,
            then: &|_, _| -> Option<()> { panic!("nothing here is known for certain") },
        };
        match walk.walk(&world.vfs, &world.root, path.as_bytes()) {
            Some(Walked::Beyond(dir, len)) => Some((dir, len)),
            _ => None,
        }
    };
    world.find("dir/sub").unwrap();
    for path in ["dir/inner", "//dir//sub//leaf", "link"] {
        let first = stat(path).unwrap();
        let (dir, len) = beyond(path).expect("the file's name is not kept");
        assert!(dir.leads(path.as_bytes(), len), "{path}");
        fs::set_permissions(world.host.0.join("dir/inner"), fs::Permissions::from_mode(0o640)).unwrap();
        let whole = world.at(path, |dir, _| dir.dentry.inode.attr()).unwrap();
        assert_eq!((first.attr.dev, first.mount), (whole.dev, world.root.mount.id));
        assert!(beyond(path).is_some());
    }
    assert_eq!(stat("dir/inner").unwrap().attr.mode & 0o7777, 0o640);
    assert_eq!(error(stat("dir/none").map(|_| ())), Errno::ENOENT);
    let attr = stat("dir/inner").unwrap().attr;
    assert_eq!(format!("{attr:?}"), format!("{:?}", world.find("dir/inner").unwrap().inode().attr().unwrap()));
    // A second name of a file is for the cache to know.
    stat("twin").unwrap();
    assert!(beyond("twin").is_none());
    // The directory is another one by now.
    let (sub, len) = beyond("dir/sub/leaf").unwrap();
    fs::rename(world.host.0.join("dir"), world.host.0.join("old")).unwrap();
    fs::create_dir_all(world.host.0.join("dir/sub")).unwrap();
    world.events();
    assert!(!sub.leads(b"dir/sub/leaf", len));
    assert_eq!(error(stat("dir/sub/leaf").map(|_| ())), Errno::ENOENT);
    assert_eq!(stat("old/sub/leaf").unwrap().attr.size, 4);
}

#[test]
fn what_was_looked_at_is_opened_as_it_is_by_then() {
    let world = World::bind("looked-open", true);
    let start = Start { root: world.root.clone(), base: world.root.clone() };
    let stat = |path: &str| Walk::new(&world.vfs, &world.who, &start, Resolve::empty()).stat(path.as_bytes(), false);
    let outside = |text: &str| {
        fs::write(world.host.0.join("other"), text).unwrap();
        fs::rename(world.host.0.join("other"), world.host.0.join("dir/inner")).unwrap();
    };
    for round in 0..50 {
        // Its name has been given to another file, of which nobody in the sandbox has been notified.
        let text = format!("{round}");
        stat("dir/inner").unwrap();
        outside(&text);
        assert_eq!(world.read("dir/inner").unwrap(), text);
        // It has been removed here, and outside.
        stat("dir/inner").unwrap();
        world.remove("dir/inner", false).unwrap();
        assert_eq!(error(world.read("dir/inner")), Errno::ENOENT);
        outside(&text);
        stat("dir/inner").unwrap();
        fs::remove_file(world.host.0.join("dir/inner")).unwrap();
        assert_eq!(error(world.read("dir/inner")), Errno::ENOENT);
        outside(&text);
        // A directory has taken its name.
        stat("dir/inner").unwrap();
        fs::remove_file(world.host.0.join("dir/inner")).unwrap();
        fs::create_dir(world.host.0.join("dir/inner")).unwrap();
        assert_eq!(world.open("dir/inner", flags::O_RDONLY).unwrap().attr().unwrap().kind(), Some(FileKind::Directory));
        fs::remove_dir(world.host.0.join("dir/inner")).unwrap();
        outside(&text);
        world.events();
    }
}

#[test]
fn names_nobody_has_looked_at_are_removed_as_others_are() {
    let world = World::bind("unseen", true);
    world.remove("dir/inner", false).unwrap();
    assert_eq!(world.host.names("dir"), ["sub"]);
    assert_eq!(error(world.remove("dir/inner", false)), Errno::ENOENT);
    assert_eq!(error(world.remove("dir/sub", false)), Errno::EISDIR);
    // Known, but used by nobody.
    world.find("dir/sub/leaf").unwrap();
    world.remove("dir/sub/leaf", false).unwrap();
    assert_eq!((error(world.find("dir/sub/leaf")), world.host.names("dir/sub").len()), (Errno::ENOENT, 0));
    fs::write(world.host.0.join("dir/sub/leaf"), "again").unwrap();
    assert_eq!(world.read("dir/sub/leaf").unwrap(), "again");
    // One of two names of an open file: the other still leads to it.
    let open = world.open("file", O_RDWR).unwrap();
    world.remove("twin", false).unwrap();
    assert_eq!((world.read_open(&open), open.attr().unwrap().nlink), ("below".into(), 1));
    assert_eq!(world.read("file").unwrap(), "below");
    // Nobody but the owner may in a sticky directory, and nobody in one that is not his.
    for (mode, errno) in [(0o1777, Errno::EPERM), (0o755, Errno::EACCES)] {
        fs::write(world.host.0.join("dir/sub/theirs"), "").unwrap();
        fs::set_permissions(world.host.0.join("dir/sub"), fs::Permissions::from_mode(mode)).unwrap();
        world.find("dir/sub").unwrap().inode().attr().unwrap();
        let stranger = common::user(hosted(), 12345);
        let removed = world.at("dir/sub/theirs", |dir, name| world.vfs.remove(stranger.who(), dir, name, false, false));
        assert_eq!(error(removed), errno, "{mode:o}");
        assert_eq!(world.host.names("dir/sub"), ["leaf", "theirs"]);
    }
    let readonly = World::bind("unseen-readonly", false);
    assert_eq!(error(readonly.remove("dir/inner", false)), Errno::EROFS);
}

#[test]
fn renamed_files_of_a_bind_are_found_at_their_new_places() {
    let world = World::bind("places", true);
    for path in ["file", "dir/inner", "dir/sub/leaf"] {
        world.find(path).unwrap();
    }
    world.rename("file", "dir/inner", rename::EXCHANGE).unwrap();
    assert_eq!((world.read("file").unwrap(), world.read("dir/inner").unwrap()), ("inner".into(), "below".into()));
    world.rename("dir/sub/leaf", "file", 0).unwrap();
    assert_eq!(world.read("file").unwrap(), "leaf");
    // Opened by their places, for writing and for changes.
    for path in ["file", "dir/inner"] {
        let found = world.find(path).unwrap();
        found.inode().set_attr(&SetAttr { size: Some(1), ..SetAttr::default() }).unwrap();
        assert_eq!(fs::metadata(world.host.0.join(path)).unwrap().len(), 1, "{path}");
    }
    // The one whose name was taken is gone, but for who had it open.
    let open = world.open("file", O_RDWR).unwrap();
    world.rename("dir/inner", "file", 0).unwrap();
    assert_eq!((world.read_open(&open), open.attr().unwrap().nlink), ("l".into(), 0));
    assert_eq!(world.read("file").unwrap(), "b");
    assert_eq!(error(world.rename("dir/inner", "x", 0)), Errno::ENOENT);
}

/// What the test shows of `path`: in a clone of the tree, where the caller may make one, in which the root has nothing above it.
fn cloned(path: &std::path::Path) -> HostFd {
    let file = fs::File::options().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path).unwrap();
    let flags = 1 | libc::AT_EMPTY_PATH | libc::O_CLOEXEC;
    // SAFETY: a constant path and plain words.
    let tree = unsafe { libc::syscall(libc::SYS_open_tree, file.as_raw_fd(), c"".as_ptr(), flags) };
    HostFd(if tree < 0 { file.into_raw_fd() } else { tree as i32 })
}

#[test]
fn a_place_below_one_that_may_be_written_to_is_not_frozen() {
    let over = World::bind("over", true);
    let other = Scratch::new("other");
    let frozen = |place: &std::path::Path, top: bool, name: &str| {
        let fd = cloned(place);
        let tree = Tree::new(hosted(), |vfs| HostFs::bind(vfs.machine, vfs.new_dev(), fd, false, top).unwrap());
        let file = tree.open(name, flags::O_RDONLY).unwrap();
        matches!(file.ops.backing(&file, 0, 4096, false), Ok(Backing::Object { frozen: true, .. }))
    };
    let whole = |scratch: &Scratch| scratch.0.join("dir/inner").to_string_lossy().into_owned();
    assert!(!frozen(&over.host.0.join("dir"), false, "/inner"));
    assert!(!frozen(&over.host.0, false, "/dir/inner"));
    assert!(!frozen(&other.0, false, "/dir/inner"), "for all that is known it is below the other");
    let root = std::path::Path::new("/");
    assert!(!frozen(root, true, &whole(&over.host)));
    // Another sandbox may write there; nobody shows the system's own programs writable.
    assert!(!frozen(root, true, &whole(&other)));
    let of_system = |entry: &fs::DirEntry| {
        entry.metadata().is_ok_and(|file| file.is_file() && file.uid() == 0 && file.mode() & 0o022 == 0 && file.nlink() == 1)
    };
    let program = fs::read_dir("/usr/bin").unwrap().flatten().find(of_system).unwrap().file_name();
    let program = format!("/bin/{}", program.to_string_lossy());
    assert!(frozen(root, true, &format!("/usr{program}")));
    assert!(!frozen(std::path::Path::new("/usr"), false, &program), "of a root that is not the host's");
}

#[test]
fn a_directory_that_was_on_the_way_a_moment_ago_is_asked_for_again_when_there_are_events() {
    let world = World::bind("lately", true);
    let start = Start { root: world.root.clone(), base: world.root.clone() };
    let stat =
        |path: &str| Walk::new(&world.vfs, &world.who, &start, Resolve::empty()).stat(path.as_bytes(), false).map(|_| ());
    world.find("dir/sub/leaf").unwrap();
    // A name nobody has asked for, by way of a directory that is somewhere else by now.
    let moved = |round: u32, events: &dyn Fn()| {
        let (place, new) = (world.host.0.join("dir/sub"), format!("dir/sub/new{round}"));
        stat(&format!("dir/sub/none{round}")).unwrap_err();
        fs::rename(&place, world.host.0.join("moved")).unwrap();
        fs::write(world.host.0.join(format!("moved/new{round}")), "").unwrap();
        events();
        let found = stat(&new);
        fs::rename(world.host.0.join("moved"), &place).unwrap();
        world.events();
        stat(&new).unwrap();
        found
    };
    for round in 0..100 {
        assert_eq!(moved(round, &|| world.events()), Err(Errno::ENOENT));
    }
    // A file that is open is asked for again when it has been changed, inside or outside.
    let (file, other) = (world.open("file", O_RDWR).unwrap(), world.open("file", O_RDWR).unwrap());
    for round in 1..100u64 {
        world.find("file").unwrap();
        assert_eq!(file.attr().unwrap().size, other.attr().unwrap().size);
        other.ops.truncate(&other, round).unwrap();
        assert_eq!(file.attr().unwrap().size, round);
        world.find("file").unwrap();
        fs::write(world.host.0.join("file"), "more than a hundred bytes".repeat(5)).unwrap();
        world.events();
        assert_eq!(file.attr().unwrap().size, 125);
    }
}

#[test]
fn who_cannot_take_the_rights_off_a_program_does_not_write_to_it() {
    let world = World::bind("privileges", true);
    let place = world.host.0.join("file");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o4777)).unwrap();
    let stranger = common::user(hosted(), 12345);
    let inode = world.find("file").unwrap().inode().clone();
    let file = world.open("file", O_RDWR).unwrap();
    let ops = inode.open(&stranger, O_RDWR).unwrap();
    let write = || ops.write(&file, &common::anybody(), &mut WriteBuf::kernel(b"X"), 0);
    common::REFUSES_CHMOD.set(true);
    assert_eq!((error(write()), fs::read(&place).unwrap()), (Errno::EIO, b"below".to_vec()));
    common::REFUSES_CHMOD.set(false);
    // Nothing written takes nothing away.
    assert_eq!(ops.write(&file, &common::anybody(), &mut WriteBuf::kernel(b""), 0), Ok(0));
    assert_eq!(fs::metadata(&place).unwrap().mode() & 0o7777, 0o4777);
    assert_eq!((write(), fs::read(&place).unwrap()), (Ok(1), b"Xelow".to_vec()));
    assert_eq!(fs::metadata(&place).unwrap().mode() & 0o7777, 0o777);
}

#[test]
fn a_descriptor_that_is_no_file_is_closed() {
    // SAFETY: no memory is involved.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    let link = || std::fs::read_link(format!("/proc/self/fd/{fd}")).ok();
    let before = link();
    assert!(fd >= 0 && before.is_some());
    assert_eq!(HostFile::open(&TestHost, HostFd(fd), b"").err(), Some(Errno::EINVAL));
    // Another test may have the number by now, but none has an eventfd.
    assert_ne!(link(), before);
}
