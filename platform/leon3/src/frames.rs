//! Page frames: a free list through the free frames themselves, and memory that was never used behind it.

use crate::lock::Mutex;

pub const PAGE: usize = 4096;

struct Frames {
    /// First free frame that has been in use, 0 for none; its first word points to the next.
    free: usize,
    free_count: usize,
    /// Memory that was never in use.
    next: usize,
    end: usize,
    total: usize,
}

static FRAMES: Mutex<Frames> = Mutex::new(Frames { free: 0, free_count: 0, next: 0, end: 0, total: 0 });

/// Gives the allocator the memory from `start` to `end`.
pub fn init(start: usize, end: usize) {
    let mut frames = FRAMES.lock();
    frames.next = start.next_multiple_of(PAGE);
    frames.end = end & !(PAGE - 1);
    frames.total = frames.end.saturating_sub(frames.next) / PAGE;
}

/// A frame filled with zeros.
pub fn take() -> Option<usize> {
    let mut frames = FRAMES.lock();
    let frame = if frames.free != 0 {
        let frame = frames.free;
        // SAFETY: a free frame, mapped where it is.
        frames.free = unsafe { *(frame as *const usize) };
        frames.free_count -= 1;
        frame
    } else {
        if frames.next >= frames.end {
            return None;
        }
        let frame = frames.next;
        frames.next += PAGE;
        frame
    };
    // SAFETY: nobody else's any more.
    unsafe { core::ptr::write_bytes(frame as *mut u8, 0, PAGE) };
    Some(frame)
}

/// `count` frames in a row, for good.
pub fn take_run(count: usize) -> Option<usize> {
    let mut frames = FRAMES.lock();
    let start = frames.next;
    let next = start.checked_add(count.checked_mul(PAGE)?)?;
    if next > frames.end {
        return None;
    }
    frames.next = next;
    Some(start)
}

/// Gives a frame back.
///
/// # Safety
/// It came from [`take`], and nothing leads to it any more.
pub unsafe fn give_back(frame: usize) {
    let mut frames = FRAMES.lock();
    // SAFETY: the caller's promise.
    unsafe { *(frame as *mut usize) = frames.free };
    frames.free = frame;
    frames.free_count += 1;
}

/// Frames in all, and those that are free.
pub fn count() -> (usize, usize) {
    let frames = FRAMES.lock();
    (frames.total, frames.free_count + (frames.end - frames.next) / PAGE)
}
