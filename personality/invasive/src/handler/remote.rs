//! octo_proxy_claim.h and octo_dispatch_claim.h: claims of other tiles, and replies.

use janua_abi::invasive::types::{local_address, tile_of_address};
use janua_abi::invasive::{DispatchClaim, Future, Ilet};
use janua_kernel::UserPtr;
use janua_port::Frame;

use super::claim::own_dispatch;
use super::{FAILED, ilet, maybe_ilet, team, write};
use crate::Thread;
use crate::message::{self, Message, Start};
use crate::switch::{self, user_u32, user_word};
use crate::system::ThreadExt;

/// The claim a handle names, on a tile there is.
fn handle(thread: &Thread, word: usize) -> Option<DispatchClaim> {
    DispatchClaim::from_word(word).filter(|claim| claim.tile < thread.kernel.config.tiles)
}

fn pending(thread: &Thread, future: UserPtr<Future>) {
    write(thread, future, &Future { pending: 1, ..Future::default() });
}

/// Asks a tile for cores; `invade_future_force` has the proxy claim.
pub fn invade(thread: &Thread, tile: usize, future: UserPtr<Future>, quantity: u32) -> isize {
    let Some(tile) = u8::try_from(tile).ok().filter(|&tile| tile < thread.kernel.config.tiles) else { return FAILED };
    pending(thread, future);
    message::send(thread, tile, Message::Invade { from: thread.ext.tile, future: future.addr(), quantity });
    0
}

pub fn reinvade(thread: &Thread, proxy: usize, future: UserPtr<Future>, delta: i32) -> isize {
    let Some(DispatchClaim { tile, claim }) = handle(thread, proxy) else { return FAILED };
    pending(thread, future);
    message::send(thread, tile, Message::Reinvade { from: thread.ext.tile, future: future.addr(), claim, delta });
    0
}

pub fn retreat(thread: &Thread, proxy: usize, future: UserPtr<Future>) -> isize {
    let Some(DispatchClaim { tile, claim }) = handle(thread, proxy) else { return FAILED };
    pending(thread, future);
    message::send(thread, tile, Message::Retreat { from: thread.ext.tile, future: future.addr(), claim });
    0
}

/// Waits for a future's answer.
pub fn force(thread: &Thread, _: &mut Frame, future: UserPtr<Future>) -> isize {
    let answer = future.addr().wrapping_add(core::mem::offset_of!(Future, value));
    if user_u32(thread, future.addr()) == 0 {
        return user_word(thread, answer) as isize;
    }
    switch::wait(thread, future.addr(), Some(answer))
}

/// I-lets for a claim of any tile, copied; replies come to the caller's claim.
pub fn infect(thread: &Thread, claim: usize, ilets: UserPtr<Ilet>, size: usize) -> isize {
    let (Some(to), Some(team)) = (handle(thread, claim), team(thread, ilets, size)) else { return FAILED };
    let parent = Some(own_dispatch(thread));
    message::send(thread, to.tile, Message::Infect { claim: to.claim, team, parent });
    0
}

fn parent_of(thread: &Thread) -> Option<DispatchClaim> {
    thread.tile().lock().cores[thread.index].current.and_then(|running| running.parent)
}

/// Sends one i-let to the claim that infected the calling one; -1 when none did.
pub fn send_reply(thread: &Thread, reply: UserPtr<Ilet>) -> isize {
    let Some(to) = parent_of(thread) else { return FAILED };
    let team = [ilet(thread, reply)].into();
    message::send(thread, to.tile, Message::Infect { claim: to.claim, team, parent: Some(own_dispatch(thread)) });
    0
}

pub fn parent(thread: &Thread) -> usize {
    parent_of(thread).map_or(0, DispatchClaim::word)
}

pub fn own(thread: &Thread) -> usize {
    own_dispatch(thread).word()
}

/// The tile of a handle; -1 for none.
pub fn tile_of(thread: &Thread, claim: usize) -> isize {
    handle(thread, claim).map_or(FAILED, |claim| isize::from(i16::from(claim.tile)))
}

/// A proxy claim as a dispatch claim: the same word.
pub fn dispatch_info(thread: &Thread, proxy: usize) -> usize {
    handle(thread, proxy).map_or(0, DispatchClaim::word)
}

/// An address on the tile as its own: a local one as it is, a global one if it names the tile.
fn on_tile(tile: u8, address: usize) -> Option<usize> {
    (tile_of_address(address).is_none_or(|named| named == tile)).then_some(local_address(address))
}

/// Where `ilet` is to be started.
fn start(claim: DispatchClaim, ilet: Option<Ilet>, parent: DispatchClaim) -> Option<Start> {
    ilet.map(|ilet| Start { claim: claim.claim, ilet, parent: Some(parent) })
}

/// Copies memory of the calling tile to the claim's; then starts an i-let here and one there, where they are wanted.
pub fn push_dma(
    thread: &Thread,
    claim: usize,
    source: usize,
    to: usize,
    len: usize,
    here: UserPtr<Ilet>,
    there: UserPtr<Ilet>,
) -> isize {
    let Some(target) = handle(thread, claim) else { return FAILED };
    let own = own_dispatch(thread);
    let (Some(to), Some(source)) = (on_tile(target.tile, to), on_tile(own.tile, source)) else { return FAILED };
    let there = start(target, maybe_ilet(thread, there), own);
    let here = maybe_ilet(thread, here);
    if !message::push(thread, source, target.tile, to, len, there) {
        return FAILED;
    }
    // The buffer is the caller's again.
    match here {
        Some(ilet) if !thread.tile().lock().infect(own.claim, &[ilet], Some(own)) => FAILED,
        _ => 0,
    }
}

/// Copies memory of the claim's tile to the calling one; then starts an i-let here and one there, where they are wanted.
pub fn pull_dma(
    thread: &Thread,
    claim: usize,
    to: usize,
    source: usize,
    len: usize,
    here: UserPtr<Ilet>,
    there: UserPtr<Ilet>,
) -> isize {
    let Some(target) = handle(thread, claim) else { return FAILED };
    let own = own_dispatch(thread);
    let (Some(to), Some(source)) = (on_tile(own.tile, to), on_tile(target.tile, source)) else { return FAILED };
    let there = start(target, maybe_ilet(thread, there), own);
    let here = start(own, maybe_ilet(thread, here), target);
    let pull = Message::Pull { from: own.tile, source, to, len, there: here, here: there };
    message::send(thread, target.tile, pull);
    0
}
