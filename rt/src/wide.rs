//! A 64-bit word that several cores change: the processor's own where it has one, otherwise a word behind a lock.

#[cfg(target_has_atomic = "64")]
pub use core::sync::atomic::AtomicU64;

#[cfg(not(target_has_atomic = "64"))]
pub use locked::AtomicU64;

#[cfg(not(target_has_atomic = "64"))]
mod locked {
    use core::sync::atomic::Ordering;

    use crate::sync::Mutex;

    /// The part of `core::sync::atomic::AtomicU64` that the kernel uses. The lock orders at least as much as is asked for.
    #[derive(Default)]
    pub struct AtomicU64(Mutex<u64>);

    impl AtomicU64 {
        pub const fn new(value: u64) -> AtomicU64 {
            AtomicU64(Mutex::new(value))
        }

        pub fn load(&self, _: Ordering) -> u64 {
            *self.0.lock()
        }

        pub fn store(&self, value: u64, _: Ordering) {
            *self.0.lock() = value;
        }

        pub fn fetch_add(&self, value: u64, _: Ordering) -> u64 {
            let mut word = self.0.lock();
            let old = *word;
            *word = old.wrapping_add(value);
            old
        }

        pub fn fetch_max(&self, value: u64, _: Ordering) -> u64 {
            let mut word = self.0.lock();
            let old = *word;
            *word = old.max(value);
            old
        }

        pub fn fetch_min(&self, value: u64, _: Ordering) -> u64 {
            let mut word = self.0.lock();
            let old = *word;
            *word = old.min(value);
            old
        }
    }
}
