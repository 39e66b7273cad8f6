//! A place in an inode where another layer keeps what belongs to that inode: a fifo's buffer, a bound socket.

use alloc::sync::Arc;
use core::any::Any;

use janua_rt::Mutex;

/// What hangs on an inode.
pub type Attached = Arc<dyn Any + Send + Sync>;

/// The place. Empty at first.
#[derive(Default)]
pub struct Slot(Mutex<Option<Attached>>);

impl Slot {
    pub const fn new() -> Slot {
        Slot(Mutex::new(None))
    }

    /// What is there, if it is a `T`.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.lock().clone()?.downcast().ok()
    }

    /// What is there; made by `make` when the place is empty. `None` when something else than a `T` is there.
    pub fn get_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> Arc<T>) -> Option<Arc<T>> {
        let mut slot = self.0.lock();
        match &*slot {
            Some(there) => there.clone().downcast().ok(),
            None => {
                let made = make();
                *slot = Some(made.clone());
                Some(made)
            }
        }
    }

    /// Puts something there, and returns what was there.
    pub fn set(&self, value: Option<Attached>) -> Option<Attached> {
        core::mem::replace(&mut *self.0.lock(), value)
    }
}
