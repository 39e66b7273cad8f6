//! Threads: what is a thread's own.

use alloc::sync::Arc;

use janua_object::Cred;
use janua_rt::RwLock;

/// The personality's part of a thread.
pub struct ThreadState {
    pub tid: u32,
    pub cred: RwLock<Arc<Cred>>,
}
