//! Labels of entries; and entries that look at user memory, by an instruction that may fault.

/// A label; not to be called.
type Label = unsafe extern "C" fn();

/// The address of a label.
pub fn address(label: Label) -> usize {
    label as *const () as usize
}

/// Where an entry begins, where it looks, and where it goes on when that fails.
pub struct Look {
    entry: Label,
    fetch: Label,
    failed: Label,
}

impl Look {
    pub const fn new(entry: Label, fetch: Label, failed: Label) -> Look {
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
