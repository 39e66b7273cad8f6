//! What tiles send each other, and what a tile does with its mail.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use janua_abi::invasive::{DispatchClaim, Future, Ilet};
use janua_kernel::UserPtr;

use crate::Thread;
use crate::switch::bad_address;
use crate::system::ThreadExt;
use crate::tile::ClaimId;

/// Bytes of memory one message carries at most.
pub const CHUNK: usize = 256 << 10;

/// An i-let to be started on a claim of the tile the message goes to.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub claim: ClaimId,
    pub ilet: Ilet,
    pub parent: Option<DispatchClaim>,
}

/// A message. Futures are addresses on the tile `from`, everything else is the receiver's.
#[derive(Debug)]
#[rustfmt::skip]
pub enum Message {
    /// A new claim with that many cores.
    Invade { from: u8, future: usize, quantity: u32 },
    /// More cores for a claim, or fewer.
    Reinvade { from: u8, future: usize, claim: ClaimId, delta: i32 },
    /// The end of a claim.
    Retreat { from: u8, future: usize, claim: ClaimId },
    /// The answer to one of these.
    Answer { future: usize, value: usize },
    Infect { claim: ClaimId, team: Vec<Ilet>, parent: Option<DispatchClaim> },
    /// Memory for `to`. Several cores of a tile may deal with the parts of one transfer: the i-let starts when none is left.
    Data { to: usize, bytes: Vec<u8>, left: Arc<AtomicUsize>, then: Option<Start> },
    /// Send `len` bytes from `source` to `to` on the tile `from` and start `there` with the last of it; start `here` at the end.
    Pull { from: u8, source: usize, to: usize, len: usize, there: Option<Start>, here: Option<Start> },
}

/// Reads and obeys all messages of the calling core's tile.
pub fn deal_with_mail(thread: &Thread) {
    while let Some(message) = thread.tile().next_message() {
        deal_with(thread, message);
    }
}

fn deal_with(thread: &Thread, message: Message) {
    let tile = thread.tile();
    match message {
        Message::Invade { from, future, quantity } => {
            let mut state = tile.lock();
            let claim = state.new_claim();
            let given = quantity > 0 && state.invade(claim, quantity);
            drop(state);
            let proxy = if given { DispatchClaim { tile: tile.id, claim }.word() } else { 0 };
            send(thread, from, Message::Answer { future, value: proxy });
        }
        Message::Reinvade { from, future, claim, delta } => {
            let mut state = tile.lock();
            let known = state.claim(claim).is_some();
            let quantity = delta.unsigned_abs();
            let done = known && if delta < 0 { state.retreat(claim, quantity, None) } else { state.invade(claim, quantity) };
            drop(state);
            send(thread, from, Message::Answer { future, value: if done { 0 } else { usize::MAX } });
        }
        Message::Retreat { from, future, claim } => {
            let mut state = tile.lock();
            let cores = state.claim(claim).map(|claim| claim.cores);
            let done = cores.is_some_and(|cores| state.retreat(claim, cores, None));
            drop(state);
            send(thread, from, Message::Answer { future, value: if done { 0 } else { usize::MAX } });
        }
        Message::Answer { future, value } => complete(thread, future, value),
        Message::Infect { claim, team, parent } => infect(thread, claim, &team, parent),
        Message::Data { to, bytes, left, then } => {
            if thread.user().copy_out(to, &bytes).is_err() {
                bad_address(thread, to);
            }
            if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                start(thread, then);
            }
        }
        Message::Pull { from, source, to, len, there, here } => {
            if !push(thread, source, from, to, len, there) {
                bad_address(thread, source);
            }
            start(thread, here);
        }
    }
}

/// Puts a message into a tile's mailbox, the calling tile's own included; ends the application when it is full.
pub fn send(thread: &Thread, to: u8, message: Message) {
    let posted = thread.kernel.tiles.get(usize::from(to)).is_some_and(|tile| tile.post(message));
    if !posted {
        thread.fatal(crate::system::NO_ROOM, format_args!("the mailbox of tile {to} is full"));
    }
}

/// Copies memory of the calling tile to another and starts an i-let there behind it. False when the memory is not there.
pub fn push(thread: &Thread, source: usize, to_tile: u8, to: usize, len: usize, then: Option<Start>) -> bool {
    let left = Arc::new(AtomicUsize::new(len.div_ceil(CHUNK).max(1)));
    let mut done = 0;
    loop {
        let part = (len - done).min(CHUNK);
        let mut bytes = vec![0; part];
        if thread.user().copy_in(&mut bytes, source.wrapping_add(done)).is_err() {
            return false;
        }
        send(thread, to_tile, Message::Data { to: to.wrapping_add(done), bytes, left: left.clone(), then });
        done += part;
        if done == len {
            return true;
        }
    }
}

/// A future of the calling tile has its answer.
pub fn complete(thread: &Thread, future: usize, value: usize) {
    let mut state = thread.tile().lock();
    let done = Future { pending: 0, spare: 0, value, spare_word: 0 };
    if UserPtr::<Future>::new(future).write(thread.user(), &done).is_err() {
        bad_address(thread, future);
    }
    state.finished(future, |_| value);
    let due = state.completed(future);
    drop(state);
    due.into_iter().for_each(|then| start(thread, Some(then)));
}

fn start(thread: &Thread, start: Option<Start>) {
    if let Some(Start { claim, ilet, parent }) = start {
        infect(thread, claim, &[ilet], parent);
    }
}

/// I-lets that came by message. A claim that lost its cores meanwhile cannot run them, and nothing can report that but the
/// person who wrote the application.
fn infect(thread: &Thread, claim: ClaimId, team: &[Ilet], parent: Option<DispatchClaim>) {
    if !thread.tile().lock().infect(claim, team, parent) {
        let text = alloc::format!(
            "janua: tile {}: {} i-lets came for claim {claim}, which has no core: they are dropped\n",
            thread.tile().id,
            team.len()
        );
        thread.machine().console().write(text.as_bytes());
    }
}
