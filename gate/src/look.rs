//! Labels of entries; and entries that look at user memory, by an instruction that may fault.

/// The address of a label.
pub fn address(label: unsafe extern "C" fn()) -> usize {
    label as *const () as usize
}

/// Where an entry begins, where it looks, and where it goes on when that fails.
pub struct Look {
    entry: unsafe extern "C" fn(),
    fetch: unsafe extern "C" fn(),
    failed: unsafe extern "C" fn(),
}

impl Look {
    pub const fn new(entry: unsafe extern "C" fn(), fetch: unsafe extern "C" fn(), failed: unsafe extern "C" fn()) -> Look {
        Look { entry, fetch, failed }
    }

    /// Where the processor goes.
    pub fn entry(&self) -> usize {
        address(self.entry)
    }

    /// Where a fault at `pc` goes on, if it is that of this look.
    pub fn failed(&self, pc: usize) -> Option<usize> {
        (address(self.fetch) == pc).then(|| address(self.failed))
    }
}

/// An array of them, by their labels.
macro_rules! looks {
    ($(($entry:ident, $fetch:ident, $failed:ident)),* $(,)?) => {{
        unsafe extern "C" {
            $(fn $entry(); fn $fetch(); fn $failed();)*
        }
        [$($crate::look::Look::new($entry, $fetch, $failed)),*]
    }};
}

pub(crate) use looks;
