//! Interrupts: those a thread receives as messages, of which there is the clock's alone, and those it keeps off by its own flag.
//!
//! A thread is associated with a line by receiving from its name with no time, and receives from it then as from a thread. A tick that comes while nobody
//! receives is kept, one of them. User code has no flag of the processor's to clear: a `cli` that traps clears the thread's own, and while that is
//! clear no time slice and no thread of higher priority takes the turn from it, for no longer than [`super::SLICE`] a turn.

use janua_abi::l4v2::id::Id;
use janua_abi::l4v2::message::Error;

use super::{Key, Outcome, Phase, Request, SLICE, State, TICK};

/// The clock's line, of which an interrupt comes each [`TICK`].
pub const CLOCK: u8 = 0;

/// A line's name in messages.
const fn name(line: u8) -> Id {
    Id { low: line as u32 + 1, high: 0 }
}

/// The message that an interrupt is.
fn message(line: u8) -> Outcome {
    Outcome { dope: 0, from: name(line), words: [0; 2] }
}

/// The clock's line.
#[derive(Default)]
pub struct Clock {
    owner: Option<Key>,
    /// A tick has come that nobody has received yet.
    pending: bool,
}

/// The line that a thread receives from, and from nobody else.
fn closed(request: &Request) -> Option<u8> {
    request.receive.filter(|receive| !receive.open).and_then(|_| request.partner.interrupt())
}

impl State {
    /// Receives from a line, if that is what the thread's request is about: whether it is.
    pub(super) fn receive_interrupt(&mut self, me: Key, hint: Option<Key>) -> bool {
        let Some(request) = self.threads.get(&me).map(|tcb| tcb.request) else { return false };
        let Some(receive) = request.receive else { return false };
        let at_once = request.timeouts.receive.is_zero();
        let own = self.clock.owner == Some(me);
        let Some(line) = closed(&request) else {
            if !receive.open && request.partner.is_nil() && at_once && own {
                // Nothing from nobody in no time: the lines go back.
                self.clock = Clock::default();
            }
            let comes = receive.open && own && self.clock.pending;
            if comes {
                self.clock.pending = false;
                self.complete(me, message(CLOCK));
            }
            return comes;
        };
        let free = line == CLOCK && self.clock.owner.is_none();
        if own && line == CLOCK && core::mem::take(&mut self.clock.pending) {
            self.complete(me, message(line));
        } else if at_once && (free || own && line == CLOCK) {
            self.clock.owner = Some(me);
            self.fail(me, Error::Timeout.receiving());
        } else if own && line == CLOCK {
            let deadline = self.until(request.timeouts.receive);
            self.block(me, Phase::Receiving, deadline, hint);
        } else {
            self.fail(me, Error::Missing.receiving());
        }
        true
    }

    /// Whether a thread waits for a tick of the clock: then something happens, although nobody has the turn.
    pub(super) fn waits_for_clock(&self) -> bool {
        self.clock.owner.and_then(|owner| self.threads.get(&owner)).is_some_and(|tcb| {
            let open = tcb.request.receive.is_some_and(|receive| receive.open);
            tcb.phase == Phase::Receiving && (open || closed(&tcb.request) == Some(CLOCK))
        })
    }

    /// Whether the next tick is somebody's.
    pub(super) fn wants_clock(&self) -> bool {
        self.clock.owner.is_some() && !self.clock.pending
    }

    /// A tick of the clock.
    pub(super) fn clock_ticks(&mut self) {
        match self.clock.owner {
            Some(owner) if self.waits_for_clock() => self.complete(owner, message(CLOCK)),
            owner => self.clock.pending = owner.is_some(),
        }
    }

    /// A thread that is no more has no line.
    pub(super) fn leave_clock(&mut self, key: Key) {
        if self.clock.owner == Some(key) {
            self.clock = Clock::default();
        }
    }

    /// `cli`, or `sti`: the thread, which has the turn, keeps it, or does so no longer.
    pub fn set_masked(&mut self, key: Key, masked: bool) {
        if let Some(tcb) = self.threads.get_mut(&key) {
            tcb.masked = masked && tcb.masks_for > 0;
        }
        if !masked {
            self.yield_to_higher(key);
        }
    }

    /// The turn goes to a thread of higher priority than the one that has it, if there is one that is ready.
    pub(super) fn yield_to_higher(&mut self, current: Key) {
        if self.current == Some(current) && self.highest().is_some_and(|highest| highest > self.priority(current)) {
            self.preempt(true, None, false);
        }
    }

    /// Whether the thread keeps interrupts off.
    pub(super) fn is_masked(&self, key: Key) -> bool {
        self.threads.get(&key).is_some_and(|tcb| tcb.masked)
    }

    /// A thread gets the turn: it may keep interrupts off for so long.
    pub(super) fn renew_mask(&mut self, key: Key) {
        if let Some(tcb) = self.threads.get_mut(&key) {
            tcb.masks_for = SLICE;
        }
    }

    /// A tick is over with interrupts kept off: whether they still are.
    pub(super) fn mask_ticks(&mut self, key: Key) -> bool {
        let Some(tcb) = self.threads.get_mut(&key).filter(|tcb| tcb.masked) else { return false };
        tcb.masks_for = tcb.masks_for.saturating_sub(TICK);
        tcb.masked = tcb.masks_for > 0;
        tcb.masked
    }
}
