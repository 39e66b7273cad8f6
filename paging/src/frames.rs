//! Physical memory in pages, with a count of users each.

/// The number of a page frame: its physical address divided by the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageFrame(pub usize);

/// Where frames come from. A frame is given back when the last of its users has let it go.
pub trait Frames: Send + Sync + 'static {
    /// A frame of zeroes with one user; `None` when memory is used up.
    fn take(&self) -> Option<PageFrame>;
    /// A copy of a frame with one user; `None` when memory is used up.
    fn take_copy(&self, from: PageFrame) -> Option<PageFrame> {
        let frame = self.take()?;
        self.copy(from, frame);
        Some(frame)
    }
    /// Up to `most` frames of zeroes in a row, with one user each, which may be in vain: the first, and how many. None when memory is short.
    fn take_row(&self, _most: usize) -> (PageFrame, usize) {
        (PageFrame(0), 0)
    }
    /// One more user.
    fn share(&self, frame: PageFrame);
    /// One user less.
    fn release(&self, frame: PageFrame);
    /// How many users it has.
    fn users(&self, frame: PageFrame) -> usize;
    /// Whether it has more than one user.
    fn is_shared(&self, frame: PageFrame) -> bool {
        self.users(frame) > 1
    }
    /// So many more pages (fewer when negative) are memory objects', whatever space maps them: for a machine that accounts for these apart.
    fn belong_to_objects(&self, _more: isize) {}
    /// Copies a whole page.
    fn copy(&self, from: PageFrame, to: PageFrame);
    /// Copies from `offset` (bytes) of the page on; the range is within the page.
    fn read(&self, frame: PageFrame, offset: usize, out: &mut [u8]);
    /// Copies to `offset` (bytes) of the page on; the range is within the page.
    fn write(&self, frame: PageFrame, offset: usize, data: &[u8]);
    /// Atomically reads the aligned 32-bit word at `offset`.
    fn load_u32(&self, frame: PageFrame, offset: usize) -> u32;
    /// Atomic compare-and-exchange on the aligned 32-bit word at `offset`: the value found (equal to `old` when it was stored).
    fn cmpxchg_u32(&self, frame: PageFrame, offset: usize, old: u32, new: u32) -> u32;
}
