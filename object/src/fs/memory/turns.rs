//! What several use at once, of whom one may change it for long: by parts, between which others may look at it. Other changes wait
//! until it is done, as they do for Linux' lock of an inode.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::Result;
use janua_kernel::iobuf::WriteBuf;
use janua_rt::{Mutex, MutexGuard};

/// Bytes written while others wait.
const PART: usize = 1 << 20;

/// Lock order: `order`, `turnstile`, `state`.
pub struct Turns<T> {
    state: Mutex<T>,
    /// Held by who waits for `state` during a long change, and shortly between two parts: a lock goes to the first that comes, which
    /// would be the next part each time.
    turnstile: Mutex<()>,
    /// Held for all of a long change.
    order: Mutex<()>,
    /// A long change is under way. Set with both locks held, so that it is known to who has `state`.
    long: AtomicBool,
}

/// A change of what is kept, alone with it.
pub struct Changing<'a, T> {
    state: MutexGuard<'a, T>,
    _order: Option<MutexGuard<'a, ()>>,
}

impl<T> Deref for Changing<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.state
    }
}

impl<T> DerefMut for Changing<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.state
    }
}

/// A change by parts.
struct Long<'a> {
    long: &'a AtomicBool,
    _order: MutexGuard<'a, ()>,
}

impl Drop for Long<'_> {
    fn drop(&mut self) {
        self.long.store(false, Ordering::Relaxed);
    }
}

impl<T> Turns<T> {
    pub fn new(state: T) -> Turns<T> {
        Turns { state: Mutex::new(state), turnstile: Mutex::new(()), order: Mutex::new(()), long: AtomicBool::new(false) }
    }

    /// To look at it, or to change what a long change does not mind.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        if let Some(state) = self.state.try_lock() {
            return state;
        }
        let _turnstile = self.long.load(Ordering::Relaxed).then(|| self.turnstile.lock());
        self.state.lock()
    }

    /// [`Turns::lock`], unless that would mean to wait.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.state.try_lock()
    }

    /// For its only user.
    pub fn get_mut(&mut self) -> &mut T {
        self.state.get_mut()
    }

    /// To change it, after a thread that does so by parts.
    pub fn change(&self) -> Changing<'_, T> {
        let state = self.lock();
        if !self.long.load(Ordering::Relaxed) {
            return Changing { state, _order: None };
        }
        drop(state);
        let order = self.order.lock();
        Changing { state: self.state.lock(), _order: Some(order) }
    }

    fn change_by_parts(&self) -> Long<'_> {
        let order = self.order.lock();
        let _state = self.state.lock();
        self.long.store(true, Ordering::Relaxed);
        Long { long: &self.long, _order: order }
    }

    /// Writes at `at`, by parts if it is much: bytes written and the offset behind them. `write` does so for a part, with the same
    /// result.
    pub fn write(
        &self,
        buf: &mut WriteBuf<'_>,
        at: u64,
        mut write: impl FnMut(&mut T, &mut WriteBuf<'_>, u64) -> Result<(usize, u64)>,
    ) -> Result<(usize, u64)> {
        if buf.left() <= PART {
            return write(&mut self.change(), buf, at);
        }
        let _long = self.change_by_parts();
        let (mut moved, mut at) = (0, at);
        while buf.left() > 0 && (moved == 0 || !buf.is_stopped()) {
            let want = buf.left().min(PART);
            drop(self.turnstile.lock());
            match buf.within(want, |part| write(&mut self.state.lock(), part, at)) {
                Ok((n, behind)) => {
                    moved += n;
                    at = behind;
                    if n < want {
                        break;
                    }
                }
                Err(_) if moved > 0 => break,
                Err(errno) => return Err(errno),
            }
        }
        Ok((moved, at))
    }
}
