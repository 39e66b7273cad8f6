//! /dev: a file system in memory with the nodes programs expect.

pub mod terminal;

use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::Result;
use janua_object::dev::mem::{self, Memory};
use janua_object::fs::tmpfs::TmpFs;
use janua_object::vfs::{FileKind, FileSystem, Inode, Vfs, device};
use janua_object::{Caller, Cred};

/// Links, by name and target.
const LINKS: [(&str, &str); 4] =
    [("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")];

/// Directories other file systems are mounted on.
const DIRECTORIES: [&str; 2] = ["pts", "shm"];

/// Terminals: name, permissions and number.
const TERMINALS: [(&str, u32, u32, u32); 3] = [("tty", 0o666, 5, 0), ("console", 0o600, 5, 1), ("ptmx", 0o666, 5, 2)];

/// Makes the file system and registers the drivers behind its nodes. For mount(2), kind "devtmpfs".
pub fn mount(vfs: &Vfs, _caller: &dyn Caller, _source: &[u8], _options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    mem::register(vfs);
    let fs = TmpFs::new(vfs.machine, vfs.new_dev(), 0o755, 0, 0, u64::MAX);
    let root = fs.root();
    let cred = Cred::of_user(0, 0, Vec::new());
    for (kind, name) in Memory::ALL {
        node(&root, &cred, name, 0o666, mem::MAJOR, kind as u32)?;
    }
    for (name, mode, major, minor) in TERMINALS {
        node(&root, &cred, name, mode, major, minor)?;
    }
    for (name, target) in LINKS {
        root.symlink(name.as_bytes(), target.as_bytes(), &cred)?;
    }
    for name in DIRECTORIES {
        root.create(name.as_bytes(), FileKind::Directory as u32 | 0o755, 0, &cred)?;
    }
    Ok(fs)
}

fn node(root: &Arc<dyn Inode>, cred: &Cred, name: &str, mode: u32, major: u32, minor: u32) -> Result<()> {
    root.create(name.as_bytes(), FileKind::CharDevice as u32 | mode, device::number(major, minor), cred).map(|_| ())
}
