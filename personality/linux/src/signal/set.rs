//! Sets of signals.

/// A set of signals 1..=64, as in `sigset_t`: bit n-1 is signal n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SigSet(pub u64);

impl SigSet {
    pub const EMPTY: SigSet = SigSet(0);
    pub const FULL: SigSet = SigSet(u64::MAX);

    /// The set of one signal; empty for a number outside 1..=64.
    pub const fn of(signal: u32) -> SigSet {
        if signal >= 1 && signal <= 64 { SigSet(1 << (signal - 1)) } else { SigSet(0) }
    }

    pub const fn has(self, signal: u32) -> bool {
        self.0 & SigSet::of(signal).0 != 0
    }

    pub const fn with(self, signal: u32) -> SigSet {
        SigSet(self.0 | SigSet::of(signal).0)
    }

    pub const fn union(self, other: SigSet) -> SigSet {
        SigSet(self.0 | other.0)
    }

    pub const fn and(self, other: SigSet) -> SigSet {
        SigSet(self.0 & other.0)
    }

    pub const fn without(self, other: SigSet) -> SigSet {
        SigSet(self.0 & !other.0)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The lowest signal in the set.
    pub const fn first(self) -> Option<u32> {
        if self.0 == 0 { None } else { Some(self.0.trailing_zeros() + 1) }
    }
}
