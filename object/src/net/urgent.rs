//! What a socket knows of the urgent bytes (MSG_OOB) that came to it. How they are marked in its queue, and what a read does at a
//! mark, is the stream's affair: `inet/urgent.rs`, `unix/urgent.rs`.

use core::sync::atomic::{AtomicBool, Ordering};

use janua_rt::{Mutex, WaitQueue};

#[derive(Default)]
pub(super) struct State {
    /// The turn of the last urgent byte; 0 before the first.
    pub turn: u32,
    /// That byte, until it is taken or passed.
    pub byte: Option<u8>,
    /// Who wants a signal when there is one; made when first asked for.
    pub queue: Option<WaitQueue>,
}

impl State {
    /// The turn behind the last one's, never 0.
    pub fn next_turn(&self) -> u32 {
        self.turn.wrapping_add(1).max(1)
    }
}

/// What a socket knows of the urgent bytes that came to it.
#[derive(Default)]
pub(super) struct Urgency {
    /// There may be a mark in the queue. Set before the mark is.
    marked: AtomicBool,
    pub state: Mutex<State>,
}

impl Urgency {
    pub fn is_marked(&self) -> bool {
        self.marked.load(Ordering::SeqCst)
    }

    /// A mark is about to be put into the queue.
    pub fn set_marked(&self) {
        self.marked.store(true, Ordering::SeqCst);
    }

    /// Whether there is a byte to be read with MSG_OOB.
    pub fn has_byte(&self) -> bool {
        self.is_marked() && self.state.lock().byte.is_some()
    }

    /// The queue that is woken when an urgent byte comes.
    pub fn queue(&self) -> WaitQueue {
        self.state.lock().queue.get_or_insert_default().clone()
    }

    /// There is nothing in the queue any more.
    pub fn forget(&self) {
        self.pass(&mut self.state.lock());
    }

    /// The mark has been read, or is no longer there.
    pub fn pass(&self, state: &mut State) {
        state.byte = None;
        self.marked.store(false, Ordering::SeqCst);
    }
}
