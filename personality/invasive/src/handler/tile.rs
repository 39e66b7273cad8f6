//! octo_tile.h. On this kernel's machines all tiles compute, and tile 0 is the one with input and output.

use alloc::vec::Vec;

use janua_abi::invasive::types::{global_address, local_address, tile_of_address};
use janua_kernel::UserPtr;

use super::FAILED;
use crate::Thread;
use crate::switch::bad_address;

pub fn cpu_id(thread: &Thread) -> usize {
    thread.index
}

pub fn tile_id(thread: &Thread) -> usize {
    usize::from(thread.ext.tile)
}

pub fn core_count(thread: &Thread) -> usize {
    thread.kernel.config.cores as usize
}

pub fn tile_count(thread: &Thread) -> usize {
    usize::from(thread.kernel.config.tiles)
}

/// Writes the numbers of the compute tiles, at most `most`; returns how many.
pub fn compute_ids(thread: &Thread, to: UserPtr<u8>, most: usize) -> isize {
    let ids: Vec<u8> = (0..thread.kernel.config.tiles).take(most).collect();
    if to.slice(ids.len()).write_slice(thread.user(), &ids).is_err() {
        bad_address(thread, to.addr());
    }
    ids.len() as isize
}

pub fn io_tile(_thread: &Thread) -> usize {
    0
}

/// The tile an address is on, local addresses being the caller's; -1 for a tile there is not.
pub fn id_from_ptr(thread: &Thread, address: usize) -> isize {
    let tile = tile_of_address(address).unwrap_or(thread.ext.tile);
    if tile < thread.kernel.config.tiles { isize::from(tile as i16) } else { FAILED }
}

pub fn to_global(thread: &Thread, address: usize) -> usize {
    tile_of_address(address).map_or_else(|| global_address(thread.ext.tile, address), |_| address)
}

pub fn to_global_for(_thread: &Thread, address: usize, tile: usize) -> usize {
    global_address(tile as u8, address)
}

pub fn to_local(_thread: &Thread, address: usize) -> usize {
    local_address(address)
}
