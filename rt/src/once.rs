//! A shared value that is put in its place once.

use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

const EMPTY: u8 = 0;
const FILLING: u8 = 1;
const FULL: u8 = 2;

/// Holds a shared value from when it is set on. Its address is kept here, so that reading it takes one check of whether it is there:
/// neither a box nor, for a trait object, the alignment from its table.
pub struct OnceArc<T: ?Sized> {
    state: AtomicU8,
    /// What `Arc::into_raw` gave, once full.
    value: UnsafeCell<MaybeUninit<*const T>>,
}

// SAFETY: it is an `Arc` that is handed over once: what holds for that holds for this.
unsafe impl<T: ?Sized + Send + Sync> Send for OnceArc<T> {}
// SAFETY: as above; the value is written by who has claimed the empty place, and read by those who have seen it full.
unsafe impl<T: ?Sized + Send + Sync> Sync for OnceArc<T> {}

impl<T: ?Sized> Default for OnceArc<T> {
    fn default() -> OnceArc<T> {
        OnceArc { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }
}

impl<T: ?Sized> OnceArc<T> {
    /// The value, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != FULL {
            return None;
        }
        // SAFETY: full: written, never again, and the count that `Arc::into_raw` kept is given up by `drop` alone.
        Some(unsafe { &*(*self.value.get()).assume_init() })
    }

    /// A share of the value, if it is there.
    pub fn share(&self) -> Option<Arc<T>> {
        self.get()?;
        // SAFETY: full: written, never again, by what `Arc::into_raw` gave. One count is kept until `drop`, which nobody does meanwhile; another
        // is added for the `Arc` made here.
        unsafe {
            let value = (*self.value.get()).assume_init();
            Arc::increment_strong_count(value);
            Some(Arc::from_raw(value))
        }
    }

    /// Puts a value in place, which comes back where there is one already.
    pub fn set(&self, value: Arc<T>) -> Result<(), Arc<T>> {
        if self.state.compare_exchange(EMPTY, FILLING, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Err(value);
        }
        // SAFETY: claimed by us, and nobody reads before it is full.
        unsafe { (*self.value.get()).write(Arc::into_raw(value)) };
        self.state.store(FULL, Ordering::Release);
        Ok(())
    }
}

impl<T: ?Sized> Drop for OnceArc<T> {
    fn drop(&mut self) {
        if *self.state.get_mut() == FULL {
            // SAFETY: full, and this was its only holder; the pointer came from `Arc::into_raw`.
            drop(unsafe { Arc::from_raw(self.value.get_mut().assume_init()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_stays_and_is_given_up_once() {
        let (first, second): (Arc<dyn AsRef<str>>, Arc<dyn AsRef<str>>) = (Arc::new("first"), Arc::new("second"));
        let place = OnceArc::default();
        assert!(place.get().is_none());
        assert!(place.set(first.clone()).is_ok());
        assert!(place.set(second.clone()).is_err());
        assert_eq!(place.get().map(|value| value.as_ref().len()), Some(5));
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 1));
        let shared = place.share().expect("it is there");
        assert!(Arc::ptr_eq(&shared, &first) && Arc::strong_count(&first) == 3);
        drop(shared);
        assert!(OnceArc::<dyn AsRef<str>>::default().share().is_none());
        drop(place);
        assert_eq!(Arc::strong_count(&first), 1);
        drop(OnceArc::<dyn AsRef<str>>::default());
    }
}
