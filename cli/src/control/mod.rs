//! Running sandboxes: where their supervisors are found, what is asked of them, and what they reply.

pub mod client;
pub mod detach;
mod exec;
mod list;
pub mod log;
mod pipes;
mod place;
pub mod server;
mod stats;
pub mod wire;

pub use place::Name;
