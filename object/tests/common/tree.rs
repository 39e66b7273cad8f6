//! A file system under test, mounted as the root, with what its tests do to it by path.

use std::sync::Arc;

use janua_abi::linux::Result;
use janua_kernel::wait::EVENTS;
use janua_object::OpenFile;
use janua_object::file::flags;
use janua_object::vfs::{FileKind, FileSystem, Make, OpenHow, Path, Resolve, Start, Vfs, Walk};

use super::{TestCaller, TestMachine, find, root, space};

/// A tree of one mount, and root, who acts in it.
pub struct Tree {
    pub vfs: Vfs,
    pub root: Path,
    pub who: TestCaller,
}

impl Tree {
    pub fn new(machine: &'static TestMachine, fs: impl FnOnce(&Vfs) -> Arc<dyn FileSystem>) -> Tree {
        let (vfs, top) = space(machine, fs);
        Tree { vfs, root: top, who: root(machine) }
    }

    fn start(&self) -> Start {
        self.events();
        Start { root: self.root.clone(), base: self.root.clone() }
    }

    /// Tests change files outside as well, and know of it: each call is made by somebody who may know of it.
    pub fn events(&self) {
        EVENTS.advance();
    }

    pub fn find(&self, path: &str) -> Result<Path> {
        self.events();
        find(&self.vfs, &self.who, &self.root, path)
    }

    /// Acts on the directory of a path and the path's last name.
    pub fn at<T>(&self, path: &str, act: impl FnOnce(&Path, &[u8]) -> Result<T>) -> Result<T> {
        let start = self.start();
        let mut walk = Walk::new(&self.vfs, &self.who, &start, Resolve::empty());
        let parent = walk.parent(path.as_bytes())?;
        act(&parent.dir, parent.new_name()?)
    }

    pub fn make(&self, path: &str, make: Make<'_>) -> Result<Path> {
        self.at(path, |dir, name| self.vfs.make(self.who.who(), dir, name, &make))
    }

    pub fn mkdir(&self, path: &str) -> Result<Path> {
        self.make(path, Make::Node { mode: FileKind::Directory as u32 | 0o755, rdev: 0 })
    }

    pub fn open(&self, path: &str, flags: u32) -> Result<Arc<OpenFile>> {
        let how = OpenHow { flags, mode: 0o644, umask: 0, resolve: Resolve::empty() };
        self.vfs.open(&self.who, &self.start(), path.as_bytes(), &how)
    }

    pub fn rename(&self, old: &str, new: &str, flags: u32) -> Result<()> {
        self.at(old, |old_dir, old| {
            self.at(new, |new_dir, new| self.vfs.rename(self.who.who(), old_dir, (old, false), new_dir, (new, false), flags))
        })
    }

    pub fn remove(&self, path: &str, dir: bool) -> Result<()> {
        self.at(path, |parent, name| self.vfs.remove(self.who.who(), parent, name, dir, false))
    }

    /// The sorted names of an open directory, "." and ".." included, which it is asked for a few at a time.
    pub fn list(&self, path: &str) -> Vec<String> {
        const AT_A_TIME: usize = 2;
        let dir = self.open(path, flags::O_DIRECTORY).unwrap();
        let mut names = Vec::new();
        loop {
            let before = names.len();
            dir.ops
                .readdir(&dir, &self.who, &mut |entry| {
                    if names.len() >= before + AT_A_TIME {
                        return false;
                    }
                    names.push(String::from_utf8_lossy(entry.name).into_owned());
                    true
                })
                .unwrap();
            if names.len() == before {
                break;
            }
        }
        names.sort();
        names
    }
}
