//! octo_dma.h: copies within a tile, and the futures of calls. This kernel's copies are done when the call returns; their futures
//! are complete by then.

use alloc::vec;

use janua_abi::invasive::{Future, Ilet};
use janua_kernel::UserPtr;
use janua_port::Frame;

use super::{FAILED, answer, claim, ilet, write};
use crate::Thread;
use crate::message::{CHUNK, Start, complete};
use crate::switch::{bad_address, user_u32, user_word};
use crate::system::ThreadExt;

/// Copies; ranges that overlap come out as if by way of a buffer. -1 for memory that is not the application's.
pub fn transfer(thread: &Thread, to: usize, from: usize, len: usize) -> isize {
    let user = thread.user();
    let mut buffer = vec![0; len.min(CHUNK)];
    // Towards higher addresses the end goes first, so that nothing is overwritten before it is read.
    let backwards = to > from;
    let mut done = 0;
    while done < len {
        let part = (len - done).min(CHUNK);
        let at = if backwards { len - done - part } else { done };
        let bytes = &mut buffer[..part];
        let read = user.copy_in(bytes, from.wrapping_add(at));
        if read.and_then(|()| user.copy_out(to.wrapping_add(at), bytes)).is_err() {
            return FAILED;
        }
        done += part;
    }
    0
}

/// Fills with the value's lowest byte.
pub fn set(thread: &Thread, to: usize, value: usize, len: usize) -> isize {
    let buffer = vec![value as u8; len.min(CHUNK)];
    let mut done = 0;
    while done < len {
        let part = (len - done).min(CHUNK);
        if thread.user().copy_out(to.wrapping_add(done), &buffer[..part]).is_err() {
            return FAILED;
        }
        done += part;
    }
    0
}

pub fn copy(thread: &Thread, to: usize, from: usize, len: usize, future: UserPtr<Future>) -> isize {
    let done = transfer(thread, to, from, len);
    if done == 0 {
        complete(thread, future.addr(), 0);
    }
    done
}

pub fn copy_ilet(thread: &Thread, to: usize, from: usize, len: usize, then: UserPtr<Ilet>) -> isize {
    let ilet = ilet(thread, then);
    let done = transfer(thread, to, from, len);
    let own = claim::own_dispatch(thread);
    if done == 0 && !thread.tile().lock().infect(own.claim, &[ilet], Some(own)) {
        return FAILED;
    }
    done
}

pub fn future_init(thread: &Thread, future: UserPtr<Future>) -> isize {
    write(thread, future, &Future { pending: 1, ..Future::default() });
    0
}

pub fn future_value(thread: &Thread, future: UserPtr<Future>) -> usize {
    user_word(thread, future.addr().wrapping_add(core::mem::offset_of!(Future, value)))
}

/// Starts the i-let on the caller's claim when the future is complete, at once if it is. -1 when too many wait so.
pub fn on_completion(thread: &Thread, future: UserPtr<Future>, then: UserPtr<Ilet>) -> isize {
    let ilet = ilet(thread, then);
    let own = claim::own_dispatch(thread);
    // Who completes it writes the word and looks for i-lets under the same lock.
    let mut state = thread.tile().lock();
    if user_u32(thread, future.addr()) != 0 {
        return answer(state.on_completion(future.addr(), Start { claim: own.claim, ilet, parent: Some(own) }));
    }
    answer(state.infect(own.claim, &[ilet], Some(own)))
}

/// Waits for a future and returns 0.
pub fn future_wait(thread: &Thread, frame: &mut Frame, future: UserPtr<Future>) -> isize {
    if future.is_null() {
        bad_address(thread, 0);
    }
    super::remote::force(thread, frame, future)
}
