//! Calls on files.

pub mod context;
pub mod fcntl;
pub mod fd;
pub mod inotify;
pub mod locks;
pub mod pipe;
pub mod rw;
pub mod sigio;
pub mod splice;
pub mod state;
pub mod sync;

pub use context::FsContext;
pub use state::FileState;
