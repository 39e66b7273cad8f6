//! Page frames in memory of the test's own.

extern crate alloc;
extern crate std;

use alloc::vec::Vec;
use std::alloc::Layout;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use janua_paging::{Frames, PAGE, PageFrame};

use crate::Physical;
use crate::frames::{Memory, PIECES};

/// A lock for one thread.
pub struct Alone(AtomicBool);

// SAFETY: `lock` panics unless the word was false, and so does not return twice.
unsafe impl lock_api::RawMutex for Alone {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api's way of initialising")]
    const INIT: Alone = Alone(AtomicBool::new(false));
    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        assert!(self.try_lock(), "the lock is taken");
    }
    fn try_lock(&self) -> bool {
        !self.0.swap(true, Ordering::Acquire)
    }
    unsafe fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Frames from this number on, at an address that the host has chosen.
const FIRST: usize = 8;
/// Frames behind the last.
const END: usize = 100;

struct Leaked;

impl Memory for Leaked {
    type Lock = Alone;
    const FIRST: usize = FIRST;
    fn base() -> usize {
        static BASE: OnceLock<usize> = OnceLock::new();
        let layout = Layout::from_size_align(END * PAGE, PAGE).expect("a layout");
        // SAFETY: the size is not 0.
        *BASE.get_or_init(|| unsafe { std::alloc::alloc(layout) } as usize)
    }
}

/// Frames 8 to 40 and 80 to 100, of which the last are mapped later.
fn physical() -> Physical<Leaked> {
    let physical = Physical::new(4);
    let mut pieces = [(0, 0); PIECES];
    pieces[0] = (8 * PAGE, 40 * PAGE);
    pieces[1] = (80 * PAGE, 100 * PAGE);
    // SAFETY: the memory is the test's; tests that use it do so one after the other.
    unsafe { physical.init(pieces, END * PAGE, 60 * PAGE) };
    physical
}

#[test]
fn frames_are_given_once_and_come_back() {
    let physical = physical();
    // One page has the counters, four are the kernel's.
    assert_eq!(physical.pages(), (31, 31));
    let mut taken: Vec<PageFrame> = core::iter::from_fn(|| physical.take()).collect();
    assert_eq!((taken.len(), physical.pages().1), (28, 3), "an eighth, which is less than four");
    assert!(physical.is_low() && physical.take_for_kernel().is_some());
    physical.open_all();
    taken.extend(core::iter::from_fn(|| physical.take()));
    let mut numbers: Vec<usize> = taken.iter().map(|frame| frame.0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), taken.len(), "a frame was given twice");
    assert!(numbers.iter().all(|number| (9..40).contains(number) || (80..END).contains(number)));
    assert_eq!(physical.pages(), (51, 4));
    // What comes back is used again, and is zero.
    let [one, two] = [taken[3], taken[5]];
    physical.write(one, 100, b"left");
    physical.share(one);
    physical.release(one);
    assert_eq!((physical.users(one), physical.is_shared(one), physical.pages().1), (1, false, 4));
    physical.release(one);
    physical.release(two);
    assert_eq!((physical.take(), physical.take(), physical.take()), (Some(two), Some(one), None));
    let mut bytes = [1; 4];
    physical.read(one, 100, &mut bytes);
    assert_eq!((bytes, physical.users(one)), ([0; 4], 1));
    taken.into_iter().for_each(|frame| physical.release(frame));
    assert_eq!(physical.pages(), (51, 50));
    a_run_is_in_one_piece();
}

fn a_run_is_in_one_piece() {
    let physical = physical();
    assert_eq!((physical.take_run(32), physical.take_run(20)), (None, Some(20 * PAGE)));
    physical.open_all();
    assert_eq!((physical.take_run(20), physical.take_run(12), physical.take_run(11)), (Some(80 * PAGE), None, Some(9 * PAGE)));
    assert_eq!((physical.pages(), physical.take()), ((51, 0), None));
    // Memory that was in use at start.
    physical.add(50 * PAGE + 1, 53 * PAGE - 1);
    assert_eq!((physical.pages(), physical.take_for_kernel()), ((52, 1), Some(PageFrame(51))));
    let frame = PageFrame(51);
    assert_eq!(
        (physical.cmpxchg_u32(frame, 8, 0, 7), physical.cmpxchg_u32(frame, 8, 0, 9), physical.load_u32(frame, 8)),
        (0, 7, 7)
    );
}
