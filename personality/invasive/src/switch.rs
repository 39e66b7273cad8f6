//! Which i-let a core runs next. Cores change i-lets in one place, [`leave`]: the exit of a call (or out of idleness).
//!
//! A handler that makes its i-let wait or end sets the core's `block` and returns [`SWITCH`]. The wait begins here, under the
//! tile's lock, after another look at the word that is waited for: who makes that word 0 holds the same lock, so either the look
//! finds 0 or the waiter is found.

use core::future::poll_fn;
use core::task::Poll;

use janua_abi::invasive::Ilet;
use janua_abi::invasive::types::ILOCAL_SIZE;
use janua_kernel::UserPtr;
use janua_kernel::task::Leave;
use janua_kernel::thread::work;
use janua_port::Frame;

use crate::Thread;
use crate::system::{BAD_ACCESS, NO_ROOM, ThreadExt};
use crate::tile::{Block, Context, Queued, Running, TileState, Waiter};
use crate::{message, system};

/// What a handler returns that has set its core's `block`. A call that returns this as a value of its own is none the worse: the
/// core has no `block` then.
pub const SWITCH: isize = isize::MIN + 1;

/// The i-let on the calling core is over.
pub fn end(thread: &Thread) -> isize {
    thread.tile().lock().cores[thread.index].block = Some(Block::End);
    SWITCH
}

/// The i-let on the calling core waits for the word at `addr` to be 0. The call returns the word at `answer`, or 0.
pub fn wait(thread: &Thread, addr: usize, answer: Option<usize>) -> isize {
    thread.tile().lock().cores[thread.index].block = Some(Block::Wait { addr, answer });
    SWITCH
}

/// The application is over.
pub fn shut_down(thread: &Thread, code: u8) -> isize {
    thread.tile().lock().cores[thread.index].block = Some(Block::Shutdown(code));
    SWITCH
}

/// Reads a word of the calling tile's memory; a word that is not there ends the application.
pub fn user_word(thread: &Thread, addr: usize) -> usize {
    match UserPtr::<usize>::new(addr).read(thread.user()) {
        Ok(word) => word,
        Err(_) => bad_address(thread, addr),
    }
}

/// The same for a 32-bit word.
pub fn user_u32(thread: &Thread, addr: usize) -> u32 {
    match UserPtr::<u32>::new(addr).read(thread.user()) {
        Ok(word) => word,
        Err(_) => bad_address(thread, addr),
    }
}

/// Writes a 32-bit word of the calling tile's memory, or ends the application.
pub fn set_user_u32(thread: &Thread, addr: usize, value: u32) {
    if UserPtr::<u32>::new(addr).write(thread.user(), &value).is_err() {
        bad_address(thread, addr);
    }
}

/// Ends the application for an address in a call that is no memory of its own.
pub fn bad_address(thread: &Thread, addr: usize) -> ! {
    thread.fatal(BAD_ACCESS, format_args!("a call was given the address {addr:#x}, which is not the application's memory"))
}

/// The exit: deals with the tile's mail, takes the i-let that waits or is over from the core, and puts another on it.
pub fn leave(thread: &Thread, frame: &mut Frame) -> Leave {
    thread.clear_work(work::INTERRUPT);
    loop {
        message::deal_with_mail(thread);
        let mut state = thread.tile().lock();
        if let Some(Block::Shutdown(code)) = state.cores[thread.index].block {
            drop(state);
            system::end(&thread.kernel, code);
        }
        if thread.tile().has_mail() {
            continue;
        }
        return step(thread, &mut state, frame);
    }
}

fn step(thread: &Thread, state: &mut TileState, frame: &mut Frame) -> Leave {
    let core = thread.index;
    let slot = &mut state.cores[core];
    match (slot.block.take(), slot.current) {
        (None, Some(_)) => return Leave::Resume,
        (None, None) | (_, None) | (Some(Block::Shutdown(_)), _) => {}
        (Some(Block::End), Some(running)) => {
            slot.current = None;
            state.stacks.give_back(running.stack);
        }
        (Some(Block::Wait { addr, answer }), Some(running)) => {
            if user_u32(thread, addr) == 0 {
                frame.set_result(answer.map_or(0, |place| user_word(thread, place)) as isize);
                return Leave::Resume;
            }
            if state.waiters.iter().any(|waiter| waiter.addr == addr) {
                // One waiter a signal.
                frame.set_result(-1);
                return Leave::Resume;
            }
            slot.current = None;
            slot.waiting += 1;
            let context = Context { running, frame: *frame, result: 0 };
            state.waiters.push(Waiter { addr, answer, core, context });
        }
    }
    let slot = &mut state.cores[core];
    if let Some(Context { running, frame: saved, result }) = slot.ready.pop_front() {
        slot.current = Some(running);
        *frame = saved;
        frame.set_result(result as isize);
        return Leave::Resume;
    }
    slot.leave_claim();
    let claim = if slot.leaving { 0 } else { slot.claim };
    match state.claim_mut(claim).and_then(|claim| claim.queue.pop_front()) {
        Some(queued) => begin(thread, state, queued, frame),
        None => Leave::Wait,
    }
}

/// Begins an i-let on a stack of its own.
fn begin(thread: &Thread, state: &mut TileState, queued: Queued, frame: &mut Frame) -> Leave {
    let space = thread.task.ext.space.lock().clone();
    let Some((stack, end)) = space.and_then(|space| state.stacks.take(&*space)) else {
        thread.fatal(NO_ROOM, format_args!("no stack is left for an i-let"))
    };
    let Queued { ilet: Ilet { code, first, second, domain }, parent } = queued;
    state.cores[thread.index].current = Some(Running { stack, parent, domain: domain & 0xffff });
    *frame = Frame::start_function(thread.kernel.entry, end - ILOCAL_SIZE, [code, first, second]);
    Leave::Resume
}

/// What an idle core does: nothing until there is an i-let for it, or mail.
pub async fn idle(thread: &Thread) -> isize {
    poll_fn(|_| {
        let ready = thread.work() != 0 || thread.tile().has_mail() || thread.tile().lock().has_work(thread.index);
        if ready { Poll::Ready(0) } else { Poll::Pending }
    })
    .await
}
