//! Calls on files.

pub mod context;

pub use context::FsContext;
