//! 64-bit words that several cores change: the processor's own where it has them, otherwise words behind a lock.

#[cfg(target_has_atomic = "64")]
pub use core::sync::atomic::{AtomicI64, AtomicU64};

#[cfg(not(target_has_atomic = "64"))]
pub use locked::{AtomicI64, AtomicU64};

#[cfg(any(test, not(target_has_atomic = "64")))]
mod locked {
    use core::sync::atomic::Ordering;

    use crate::sync::Mutex;

    /// The part of an atomic of `core::sync::atomic` that the kernel uses. The lock orders at least as much as is asked for.
    macro_rules! locked {
        ($name:ident, $word:ty) => {
            #[doc = concat!("`core::sync::atomic::", stringify!($name), "`, behind a lock.")]
            #[derive(Default)]
            pub struct $name(Mutex<$word>);

            impl $name {
                pub const fn new(value: $word) -> $name {
                    $name(Mutex::new(value))
                }

                /// Puts another value in the place of what was there, which is returned.
                fn change(&self, new: impl FnOnce($word) -> $word) -> $word {
                    let mut word = self.0.lock();
                    let old = *word;
                    *word = new(old);
                    old
                }

                pub fn load(&self, _: Ordering) -> $word {
                    *self.0.lock()
                }

                pub fn store(&self, value: $word, _: Ordering) {
                    *self.0.lock() = value;
                }

                pub fn swap(&self, value: $word, _: Ordering) -> $word {
                    self.change(|_| value)
                }

                pub fn fetch_add(&self, value: $word, _: Ordering) -> $word {
                    self.change(|old| old.wrapping_add(value))
                }

                pub fn fetch_sub(&self, value: $word, _: Ordering) -> $word {
                    self.change(|old| old.wrapping_sub(value))
                }

                pub fn fetch_and(&self, value: $word, _: Ordering) -> $word {
                    self.change(|old| old & value)
                }

                pub fn fetch_or(&self, value: $word, _: Ordering) -> $word {
                    self.change(|old| old | value)
                }

                pub fn fetch_max(&self, value: $word, _: Ordering) -> $word {
                    self.change(|old| old.max(value))
                }

                pub fn fetch_min(&self, value: $word, _: Ordering) -> $word {
                    self.change(|old| old.min(value))
                }

                pub fn compare_exchange(&self, old: $word, new: $word, _: Ordering, _: Ordering) -> Result<$word, $word> {
                    let found = self.change(|found| if found == old { new } else { found });
                    if found == old { Ok(found) } else { Err(found) }
                }

                pub fn fetch_update(
                    &self,
                    _: Ordering,
                    _: Ordering,
                    mut new: impl FnMut($word) -> Option<$word>,
                ) -> Result<$word, $word> {
                    let mut word = self.0.lock();
                    let old = *word;
                    *word = new(old).ok_or(old)?;
                    Ok(old)
                }
            }

            impl core::fmt::Debug for $name {
                fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                    core::fmt::Debug::fmt(&self.load(Ordering::Relaxed), f)
                }
            }
        };
    }

    locked!(AtomicU64, u64);
    locked!(AtomicI64, i64);
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering::{Relaxed, SeqCst};

    use super::locked;

    /// The same operations on a processor's word and on one behind a lock return the same and leave the same.
    macro_rules! agree {
        ($name:ident, $own:expr, $locked:expr, $values:expr) => {
            #[test]
            fn $name() {
                let (own, locked) = ($own, $locked);
                for value in $values {
                    own.store(value / 5, Relaxed);
                    locked.store(value / 5, Relaxed);
                    assert_eq!(own.fetch_add(value, Relaxed), locked.fetch_add(value, Relaxed));
                    assert_eq!(own.fetch_or(value, Relaxed), locked.fetch_or(value, Relaxed));
                    assert_eq!(own.fetch_max(value, Relaxed), locked.fetch_max(value, Relaxed));
                    assert_eq!(own.fetch_sub(value / 3, Relaxed), locked.fetch_sub(value / 3, Relaxed));
                    assert_eq!(own.fetch_and(!value, Relaxed), locked.fetch_and(!value, Relaxed));
                    assert_eq!(own.fetch_min(value, Relaxed), locked.fetch_min(value, Relaxed));
                    assert_eq!(own.swap(value / 2, SeqCst), locked.swap(value / 2, SeqCst));
                    for old in [value, value / 2] {
                        let (one, other) = (
                            own.compare_exchange(old, value, SeqCst, Relaxed),
                            locked.compare_exchange(old, value, SeqCst, Relaxed),
                        );
                        assert_eq!(one, other);
                    }
                    let halve = |now| if now == value { Some(now / 2) } else { None };
                    assert_eq!(own.fetch_update(SeqCst, Relaxed, halve), locked.fetch_update(SeqCst, Relaxed, halve));
                    assert_eq!(own.load(SeqCst), locked.load(SeqCst));
                }
            }
        };
    }

    agree!(
        unsigned_words_behind_a_lock_are_like_the_processors,
        core::sync::atomic::AtomicU64::new(5),
        locked::AtomicU64::new(5),
        [0, 1, 7, 0xffff_ffff, 0x1_0000_0001, u64::MAX - 1, u64::MAX]
    );
    agree!(
        signed_words_behind_a_lock_are_like_the_processors,
        core::sync::atomic::AtomicI64::new(-5),
        locked::AtomicI64::new(-5),
        [0, 1, -7, 0xffff_ffff, -0x1_0000_0001, i64::MAX, i64::MIN]
    );
}
