//! Calls on files.

pub mod at;
pub mod attr;
pub mod context;
pub mod dir;
pub mod dnotify;
pub mod fcntl;
pub mod fd;
pub mod flags;
pub mod inotify;
pub mod leases;
pub mod locks;
pub mod mount;
pub mod names;
pub mod open;
pub mod pipe;
pub mod rw;
pub mod setup;
pub mod sigio;
pub mod splice;
pub mod stat;
pub mod state;
pub mod sync;
pub mod unpack;
pub mod xattr;

pub use context::FsContext;
pub use state::FileState;
