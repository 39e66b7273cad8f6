//! Calls made from where their entries are.

use janua_port::gate::QueuedCalls;

/// Makes the calls of up to `count` entries from `entries` on, and writes their completions from `ends` on: how many. Both ranges are [`janua_port::UserMemory::is_direct`],
/// and `count` is not 0.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn make(entries: usize, ends: usize, count: u32, calls: &QueuedCalls<'_>) -> u32 {
    use core::mem::offset_of;
    use janua_abi::ring;
    use janua_arch::x86_64::usercalls::{self, UserCalls};
    use janua_port::guest::PLAIN_CALLS;

    const SIZE: usize = size_of::<ring::Submission>();
    const _: () = assert!(SIZE == usercalls::ENTRY && usercalls::FUNCTIONS == PLAIN_CALLS);
    const _: () = assert!(
        offset_of!(ring::Submission, number) == usercalls::NUMBER
            && offset_of!(ring::Submission, flags) == usercalls::NUMBER + 4
    );
    const _: () =
        assert!(offset_of!(ring::Submission, words) == usercalls::WORDS && offset_of!(ring::Submission, tag) == usercalls::TAG);
    const _: () = assert!(size_of::<ring::Completion>() == usercalls::COMPLETION && offset_of!(ring::Completion, result) == 8);

    let calls = UserCalls {
        first: entries as *const u8,
        end: (entries + count as usize * SIZE) as *const u8,
        completions: ends as *mut u8,
        functions: calls.functions.as_ptr().cast(),
        thread: calls.thread,
    };
    // SAFETY: user memory, which no Rust object is in, and a fault ends the routine. The functions are those of a table of calls, which take any words and this thread, as an
    // entry that calls them itself has them.
    (unsafe { usercalls::usercalls(&calls) } / SIZE) as u32
}

/// On this processor all calls are made from copies.
#[cfg(not(target_arch = "x86_64"))]
pub fn make(_entries: usize, _ends: usize, _count: u32, _calls: &QueuedCalls<'_>) -> u32 {
    0
}
