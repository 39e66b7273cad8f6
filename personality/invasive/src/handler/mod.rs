//! The calls, by the headers they are declared in. A call that fails returns -1 unless its header says otherwise.

pub mod claim;
pub mod dma;
pub mod ilet;
pub mod memory;
pub mod misc;
pub mod remote;
pub mod signal;
pub mod tile;

use alloc::vec::Vec;

use janua_abi::invasive::Ilet;
use janua_abi::invasive::types::ClaimId;
use janua_kernel::{UserPtr, UserSlice};

use crate::Thread;
use crate::switch::bad_address;

/// Failure.
pub const FAILED: isize = -1;
/// I-lets one call takes at most.
const TEAM_MOST: usize = 4096;

/// The claim of the calling core.
pub fn own_claim(thread: &Thread) -> ClaimId {
    use crate::system::ThreadExt;
    thread.tile().lock().cores[thread.index].claim
}

/// Reads i-lets; `None` for more than a call takes. Memory that is not there ends the application.
fn team(thread: &Thread, team: UserPtr<Ilet>, size: usize) -> Option<Vec<Ilet>> {
    if size > TEAM_MOST {
        return None;
    }
    let slice: UserSlice<Ilet> = team.slice(size);
    match slice.read_vec(thread.user(), TEAM_MOST) {
        Ok(team) => Some(team),
        Err(_) => bad_address(thread, team.addr()),
    }
}

/// Reads one i-let.
fn ilet(thread: &Thread, ilet: UserPtr<Ilet>) -> Ilet {
    ilet.read(thread.user()).unwrap_or_else(|_| bad_address(thread, ilet.addr()))
}

/// The same, where a null pointer means none.
fn maybe_ilet(thread: &Thread, at: UserPtr<Ilet>) -> Option<Ilet> {
    at.non_null().map(|at| ilet(thread, at))
}

fn write<T: zerocopy::IntoBytes + zerocopy::Immutable>(thread: &Thread, to: UserPtr<T>, value: &T) {
    if to.write(thread.user(), value).is_err() {
        bad_address(thread, to.addr());
    }
}

/// 0 or [`FAILED`].
fn answer(done: bool) -> isize {
    if done { 0 } else { FAILED }
}
