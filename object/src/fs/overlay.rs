//! overlay: a host directory below, changes in memory above. The default root of a sandbox.
//!
//! What is below is taken as it is when it is first looked at: attributes and the absence of names are remembered, so a change
//! made on the host later may or may not be seen. A bind ([`crate::fs::hostfs`]) shows the host as it is at every moment.

use alloc::string::String;
use alloc::sync::Arc;

use janua_abi::linux::Result;
use janua_port::{HostFd, Machine};

use crate::fs::hostfs::HostFs;
use crate::fs::memory::{Node, Shared};
use crate::fs::tmpfs::stat;
use crate::vfs::{FileSystem, FsStat, Inode};

/// The magic number of statfs(2).
const OVERLAYFS_MAGIC: u64 = 0x794c_7630;

/// Memory over a host directory.
pub struct Overlay {
    shared: Arc<Shared>,
    root: Arc<Node>,
    lower: Arc<HostFs>,
    options: String,
}

impl Overlay {
    /// An overlay over the host directory `fd` (which it then owns), shown in /proc/mounts as `name`. `top`: it is the host's root.
    pub fn new(machine: &'static dyn Machine, dev: u64, fd: HostFd, name: &[u8], top: bool) -> Result<Arc<Overlay>> {
        let lower = HostFs::snapshot(machine, dev, fd, top)?;
        let shared = Shared::new(machine, dev, u64::MAX, true);
        let root = Node::root_over(&shared, lower.root_inode())?;
        let options = alloc::format!("lowerdir={}", String::from_utf8_lossy(name));
        Ok(Arc::new(Overlay { shared, root, lower, options }))
    }
}

impl FileSystem for Overlay {
    fn name(&self) -> &'static str {
        "overlay"
    }
    fn root(&self) -> Arc<dyn Inode> {
        self.root.clone()
    }
    fn stat(&self) -> Result<FsStat> {
        let memory = stat(&self.shared, OVERLAYFS_MAGIC);
        // Room is that of memory; the size counts what is below as well, as programs expect of their root.
        let below = self.lower.stat()?;
        let scale = |blocks: u64| blocks.saturating_mul(below.block_size.max(1)) / memory.block_size;
        let used_below = scale(below.blocks.saturating_sub(below.blocks_free));
        Ok(FsStat { blocks: memory.blocks.saturating_add(used_below), ..memory })
    }
    fn dev(&self) -> u64 {
        self.shared.dev()
    }
    fn options(&self) -> String {
        self.options.clone()
    }
}

/// A part of an overlay that is shown as what it is below: a file system of the host's own kind (sysfs), in which nothing is written.
pub struct Below {
    name: &'static str,
    overlay: Arc<dyn FileSystem>,
    root: Arc<dyn Inode>,
}

impl Below {
    /// The directory `root` of an overlay, as a file system of this type.
    pub fn new(name: &'static str, overlay: Arc<dyn FileSystem>, root: Arc<dyn Inode>) -> Arc<Below> {
        Arc::new(Below { name, overlay, root })
    }
}

impl FileSystem for Below {
    fn name(&self) -> &'static str {
        self.name
    }
    fn root(&self) -> Arc<dyn Inode> {
        self.root.clone()
    }
    fn stat(&self) -> Result<FsStat> {
        self.stat_of(&*self.root)
    }
    fn stat_of(&self, inode: &dyn Inode) -> Result<FsStat> {
        match inode.as_any().downcast_ref::<Node>().and_then(Node::below) {
            Some(below) => below.file_system(),
            None => self.overlay.stat(),
        }
    }
    fn dev(&self) -> u64 {
        self.overlay.dev()
    }
    fn read_only(&self) -> bool {
        true
    }
}
