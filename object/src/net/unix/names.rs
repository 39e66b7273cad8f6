//! The names of AF_UNIX sockets: abstract ones, and inodes sockets are bound to.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use hashbrown::HashMap;
use janua_abi::linux::{Errno, Result};
use janua_rt::Mutex;

use crate::net::unix::UnixSocket;
use crate::vfs::Inode;

/// An inode, by device and number. The socket bound to it keeps it alive, so the pair is not used again meanwhile.
pub type NodeKey = (u64, u64);

/// The key of an inode.
pub fn key_of(inode: &Arc<dyn Inode>) -> Result<NodeKey> {
    let attr = inode.attr()?;
    Ok((attr.dev, attr.ino))
}

/// All names of one kernel, and all its sockets (for /proc/net/unix).
#[derive(Default)]
pub struct Names {
    /// By socket type and name: an abstract name is free for each type.
    abstracts: Mutex<HashMap<(u32, Vec<u8>), Weak<UnixSocket>>>,
    nodes: Mutex<HashMap<NodeKey, Weak<UnixSocket>>>,
    all: Mutex<BTreeMap<u64, Weak<UnixSocket>>>,
    next_auto: AtomicU32,
}

impl Names {
    /// Takes an abstract name. EADDRINUSE.
    pub fn bind_abstract(&self, kind: u32, name: &[u8], socket: &Weak<UnixSocket>) -> Result<()> {
        let mut names = self.abstracts.lock();
        let key = (kind, name.to_vec());
        if names.get(&key).is_some_and(|holder| holder.strong_count() > 0) {
            return Err(Errno::EADDRINUSE);
        }
        names.insert(key, socket.clone());
        Ok(())
    }

    /// Takes a free abstract name of five hexadecimal digits (unix(7), autobind). ENOSPC when all are taken.
    pub fn autobind(&self, kind: u32, socket: &Weak<UnixSocket>) -> Result<Vec<u8>> {
        const ALL: u32 = 1 << 20;
        for _ in 0..ALL {
            let number = self.next_auto.fetch_add(1, Ordering::Relaxed) % ALL;
            let name = format!("{number:05x}").into_bytes();
            if self.bind_abstract(kind, &name, socket).is_ok() {
                return Ok(name);
            }
        }
        Err(Errno::ENOSPC)
    }

    pub fn find_abstract(&self, kind: u32, name: &[u8]) -> Option<Arc<UnixSocket>> {
        self.abstracts.lock().get(&(kind, name.to_vec())).and_then(Weak::upgrade)
    }

    pub fn unbind_abstract(&self, kind: u32, name: &[u8]) {
        self.abstracts.lock().remove(&(kind, name.to_vec()));
    }

    /// Notes that an inode made for it belongs to a socket.
    pub fn bind_node(&self, key: NodeKey, socket: &Weak<UnixSocket>) {
        self.nodes.lock().insert(key, socket.clone());
    }

    pub fn find_node(&self, key: NodeKey) -> Option<Arc<UnixSocket>> {
        self.nodes.lock().get(&key).and_then(Weak::upgrade)
    }

    pub fn unbind_node(&self, key: NodeKey) {
        self.nodes.lock().remove(&key);
    }

    pub fn add(&self, id: u64, socket: &Weak<UnixSocket>) {
        self.all.lock().insert(id, socket.clone());
    }

    pub fn forget(&self, id: u64) {
        self.all.lock().remove(&id);
    }

    /// Every open socket, oldest first.
    pub fn sockets(&self) -> Vec<Arc<UnixSocket>> {
        self.all.lock().values().filter_map(Weak::upgrade).collect()
    }
}
