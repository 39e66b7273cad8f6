//! Processes and threads: their family tree, birth, end, waiting, sessions.

pub mod clone;
pub mod exit;
pub mod session;
pub mod stop;
pub mod tree;

pub use clone::release_vfork;
pub use exit::notify_parent;
pub use tree::Tree;

use crate::process::Process;

/// Whether a process leads its session.
pub fn is_session_leader(process: &Process) -> bool {
    process.session().id == process.pid
}

/// The real user id of a process: that of its first thread, root's when it has none left.
pub fn uid_of(process: &Process) -> u32 {
    process
        .group
        .lock()
        .threads
        .first()
        .map_or(process.last_uid.load(core::sync::atomic::Ordering::Relaxed), |seat| seat.cred().uid)
}
