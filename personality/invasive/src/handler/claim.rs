//! octo_claim.h: cores of the calling tile.

use janua_abi::invasive::types::CLAIM_LIMIT;
use janua_abi::invasive::{DispatchClaim, Ilet};
use janua_kernel::UserPtr;

use super::{FAILED, answer, ilet, own_claim, team};
use crate::Thread;
use crate::system::ThreadExt;
use crate::tile::ClaimId;

/// The claim that a `claim_t` names.
fn claim_of(word: usize) -> Option<ClaimId> {
    ClaimId::try_from(word).ok().filter(|id| (1..CLAIM_LIMIT).contains(id))
}

/// The calling i-let's claim, as others name it.
pub fn own_dispatch(thread: &Thread) -> DispatchClaim {
    DispatchClaim { tile: thread.ext.tile, claim: own_claim(thread) }
}

/// A new claim without cores.
pub fn construct(thread: &Thread) -> usize {
    thread.tile().lock().new_claim() as usize
}

pub fn invade_simple(thread: &Thread, claim: usize, quantity: u32) -> isize {
    answer(claim_of(claim).is_some_and(|claim| thread.tile().lock().invade(claim, quantity)))
}

pub fn retreat(thread: &Thread, claim: usize, quantity: u32) -> isize {
    answer(claim_of(claim).is_some_and(|claim| thread.tile().lock().retreat(claim, quantity, Some(thread.index))))
}

pub fn infect(thread: &Thread, claim: usize, ilets: UserPtr<Ilet>, size: usize) -> isize {
    let Some(claim) = claim_of(claim) else { return FAILED };
    let own = own_dispatch(thread);
    // Most often it is one, which needs no room of its own.
    if size == 1 {
        let only = ilet(thread, ilets);
        return answer(thread.tile().lock().infect(claim, &[only], Some(own)));
    }
    let Some(team) = team(thread, ilets, size) else { return FAILED };
    answer(thread.tile().lock().infect(claim, &team, Some(own)))
}

pub fn infect_simple(thread: &Thread, one: UserPtr<Ilet>) -> isize {
    infect_self(thread, one, 1)
}

pub fn infect_self(thread: &Thread, ilets: UserPtr<Ilet>, size: usize) -> isize {
    infect(thread, own_claim(thread) as usize, ilets, size)
}

pub fn get_claim(thread: &Thread) -> usize {
    own_claim(thread) as usize
}

pub fn get_size(thread: &Thread) -> usize {
    let state = thread.tile().lock();
    let claim = state.cores[thread.index].claim;
    state.claim(claim).map_or(0, |claim| claim.cores as usize)
}

pub fn set_local_data(thread: &Thread, data: usize) -> isize {
    let mut state = thread.tile().lock();
    let claim = state.cores[thread.index].claim;
    state.claim_entry(claim).data = data;
    0
}

pub fn get_local_data(thread: &Thread) -> usize {
    let state = thread.tile().lock();
    let claim = state.cores[thread.index].claim;
    state.claim(claim).map_or(0, |claim| claim.data)
}
