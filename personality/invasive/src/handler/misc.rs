//! The rest: empty calls to measure with, the end, output, time.

use alloc::vec;

use janua_kernel::UserPtr;
use janua_port::Frame;

use super::{FAILED, write};
use crate::Thread;
use crate::switch::{self, bad_address};

/// What the empty calls return, as the thesis has it.
const EMPTY: usize = 42;

pub fn empty_0(_: &Thread) -> usize {
    EMPTY
}
pub fn empty_1(_: &Thread, _: usize) -> usize {
    EMPTY
}
pub fn empty_2(_: &Thread, _: usize, _: usize) -> usize {
    EMPTY
}
pub fn empty_3(_: &Thread, _: usize, _: usize, _: usize) -> usize {
    EMPTY
}
pub fn empty_4(_: &Thread, _: usize, _: usize, _: usize, _: usize) -> usize {
    EMPTY
}
pub fn empty_5(_: &Thread, _: usize, _: usize, _: usize, _: usize, _: usize) -> usize {
    EMPTY
}

/// Also shows that all six words arrive: six times 7 return what the others do, and any other six words return their sum, weighted
/// by place.
pub fn empty_6(_: &Thread, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> usize {
    // One by one: as arrays they would be compared in memory, and that would be most of the call.
    if a == 7 && b == 7 && c == 7 && d == 7 && e == 7 && f == 7 {
        return EMPTY;
    }
    let words = [a, b, c, d, e, f];
    words.iter().zip(1..).fold(0, |sum: usize, (word, place)| sum.wrapping_add(word.wrapping_mul(place)))
}

/// Ends the application, when the call returns.
pub fn shutdown(thread: &Thread, _: &mut Frame, code: i32) -> isize {
    switch::shut_down(thread, code as u8)
}

/// Writes text; returns the bytes written.
pub fn print(thread: &Thread, text: UserPtr<u8>, len: usize) -> isize {
    const MOST: usize = 1 << 16;
    let mut bytes = vec![0; len.min(MOST)];
    if thread.user().copy_in(&mut bytes, text.addr()).is_err() {
        bad_address(thread, text.addr());
    }
    let machine = thread.machine();
    let (Some(fd), Some(host)) = (thread.kernel.config.output, machine.host()) else {
        machine.console().write(&bytes);
        return bytes.len() as isize;
    };
    let mut done = 0;
    while done < bytes.len() {
        match host.write(fd, &bytes[done..], None) {
            Ok(0) | Err(_) => return FAILED,
            Ok(some) => done += some,
        }
    }
    done as isize
}

/// Nanoseconds since the start, as a 64-bit value.
pub fn clock(thread: &Thread, to: UserPtr<u64>) -> isize {
    write(thread, to, &(thread.machine().clock().monotonic() - thread.kernel.started));
    0
}
