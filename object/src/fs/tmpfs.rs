//! tmpfs: the memory file system alone.

use alloc::string::String;
use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_port::Machine;
use janua_rt::Mutex;

use crate::caller::Caller;
use crate::fs::memory::{Node, PAGE, Shared};
use crate::vfs::{FileSystem, FsStat, Inode, NAME_MAX, Vfs};

/// The magic number of statfs(2).
pub(crate) const TMPFS_MAGIC: u64 = 0x0102_1994;
/// What statfs(2) shows as the size of a file system without a limit, in pages.
const UNLIMITED_PAGES: u64 = 1 << 22;

/// A file system in memory.
pub struct TmpFs {
    shared: Arc<Shared>,
    root: Arc<Node>,
    /// As given, for /proc/mounts.
    options: Mutex<String>,
}

/// Options of mount(2).
struct Options {
    mode: u32,
    uid: u32,
    gid: u32,
    /// Pages.
    limit: u64,
}

impl Options {
    /// EINVAL for an option or value tmpfs(5) does not know.
    fn parse(text: &[u8], uid: u32, gid: u32) -> Result<Options> {
        let mut options = Options { mode: 0o1777, uid, gid, limit: u64::MAX };
        let text = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            let number = || value.parse::<u32>().map_err(|_| Errno::EINVAL);
            match key {
                "mode" => options.mode = u32::from_str_radix(value, 8).map_err(|_| Errno::EINVAL)? & 0o7777,
                "uid" => options.uid = number()?,
                "gid" => options.gid = number()?,
                "size" => options.limit = size(value)?.div_ceil(PAGE as u64),
                "nr_blocks" => options.limit = size(value)?,
                // Inodes are not limited, and there is one kind of page and no swap.
                "nr_inodes" | "huge" | "mpol" | "noswap" | "inode64" | "inode32" => {}
                _ => return Err(Errno::EINVAL),
            }
        }
        if options.limit == 0 {
            options.limit = u64::MAX;
        }
        Ok(options)
    }
}

/// "64k", "1g", or a percentage of what an unlimited file system shows. EINVAL.
fn size(text: &str) -> Result<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().map_err(|_| Errno::EINVAL)?;
    let shift = match text[digits..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "%" => return Ok(UNLIMITED_PAGES * PAGE as u64 / 100 * number.min(100)),
        _ => return Err(Errno::EINVAL),
    };
    number.checked_mul(1 << shift).ok_or(Errno::EINVAL)
}

impl TmpFs {
    /// An empty file system; `mode` is its root's, `limit` in pages (`u64::MAX` for none).
    pub fn new(machine: &'static dyn Machine, dev: u64, mode: u32, uid: u32, gid: u32, limit: u64) -> Arc<TmpFs> {
        let shared = Shared::new(machine, dev, limit, false);
        let root = Node::root(&shared, mode, uid, gid);
        Arc::new(TmpFs { shared, root, options: Mutex::default() })
    }

    /// For mount(2).
    pub fn mount(vfs: &Vfs, caller: &dyn Caller, _source: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>> {
        let cred = caller.cred();
        let parsed = Options::parse(options, cred.fsuid, cred.fsgid)?;
        let fs = TmpFs::new(vfs.machine, vfs.new_dev(), parsed.mode, parsed.uid, parsed.gid, parsed.limit);
        fs.note(options);
        Ok(fs)
    }

    fn note(&self, options: &[u8]) {
        let text = String::from_utf8_lossy(options);
        let text = text.trim_matches(',');
        *self.options.lock() = String::from(text);
    }
}

impl FileSystem for TmpFs {
    fn name(&self) -> &'static str {
        "tmpfs"
    }
    fn root(&self) -> Arc<dyn Inode> {
        self.root.clone()
    }
    fn stat(&self) -> Result<FsStat> {
        Ok(stat(&self.shared, TMPFS_MAGIC))
    }
    fn dev(&self) -> u64 {
        self.shared.dev()
    }
    fn options(&self) -> String {
        self.options.lock().clone()
    }
    fn reconfigure(&self, options: &[u8]) -> Result<()> {
        let parsed = Options::parse(options, 0, 0)?;
        if parsed.limit < self.shared.pages().0 {
            return Err(Errno::EINVAL);
        }
        self.shared.set_limit(parsed.limit);
        self.note(options);
        Ok(())
    }
}

/// What statfs(2) reports of a memory file system.
pub(super) fn stat(shared: &Shared, magic: u64) -> FsStat {
    let (used, limit) = shared.pages();
    let room = shared.room();
    let blocks = match (limit, room) {
        (u64::MAX, u64::MAX) => UNLIMITED_PAGES.max(used.saturating_mul(2)),
        // All file systems share what the sandbox may have.
        (u64::MAX, _) => used.saturating_add(room),
        _ => limit,
    };
    let free = blocks.saturating_sub(used).min(room);
    let nodes = shared.nodes();
    FsStat {
        magic,
        block_size: PAGE as u64,
        blocks,
        blocks_free: free,
        blocks_available: free,
        files: blocks.max(nodes),
        files_free: blocks.saturating_sub(nodes),
        fsid: shared.dev(),
        name_max: NAME_MAX as u64,
    }
}
