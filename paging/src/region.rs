//! Ranges of a space with the same rights and the same thing behind them.

use alloc::sync::Arc;

use janua_port::Prot;

use crate::{Frames, Object, PAGE};

/// What is behind a range.
pub enum Behind<F: Frames> {
    /// Zeroes, its own.
    Zero,
    /// An object from a page on; private ranges copy what they write.
    Object { object: Arc<Object<F>>, page: u64, shared: bool },
}

impl<F: Frames> Clone for Behind<F> {
    fn clone(&self) -> Self {
        match self {
            Behind::Zero => Behind::Zero,
            Behind::Object { object, page, shared } => Behind::Object { object: object.clone(), page: *page, shared: *shared },
        }
    }
}

impl<F: Frames> Behind<F> {
    /// What is behind the range `bytes` further on.
    pub(crate) fn advanced(&self, bytes: usize) -> Behind<F> {
        let mut behind = self.clone();
        if let Behind::Object { page, .. } = &mut behind {
            *page += (bytes / PAGE) as u64;
        }
        behind
    }

    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Behind::Object { shared: true, .. })
    }
}

/// What a fork's child finds in a range (madvise(2): MADV_DONTFORK, MADV_WIPEONFORK).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtFork {
    /// The same.
    #[default]
    Copied,
    /// Nothing: the range is not mapped.
    Absent,
    /// Zeroes.
    Wiped,
}

/// A range; its start is its key in the space's map.
pub(crate) struct Region<F: Frames> {
    pub end: usize,
    pub prot: Prot,
    pub at_fork: AtFork,
    pub behind: Behind<F>,
}

impl<F: Frames> Clone for Region<F> {
    fn clone(&self) -> Self {
        Region { behind: self.behind.clone(), ..*self }
    }
}
