//! The virtual file system: inodes, names, mounts.

pub mod inode;
pub mod path;

pub use inode::{Attr, FileKind, Inode, SetAttr};
pub use path::{Dentry, Mount, Path};
