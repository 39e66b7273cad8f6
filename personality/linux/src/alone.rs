//! In place of `tiles` where the processor has no atomic words of 64 bits, of which the channels between kernels are made: this one is alone.

use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;

use janua_abi::linux::{Errno, Result};
use janua_port::outside::TileInfo;

use crate::Kernel;

/// Nobody implements it.
pub trait Tiles: Send + Sync {}

/// There is none.
pub type Monitor = Infallible;

/// ENODEV.
pub fn start(_: &Kernel, _: &dyn Tiles) -> Result<()> {
    Err(Errno::ENODEV)
}

pub fn ended(_: &Kernel, _tile: u32) {}

pub fn farewell(_: &Kernel) {}

pub fn look(_: &Kernel, then: impl FnOnce(Vec<TileInfo>)) -> Result<()> {
    then(Vec::new());
    Ok(())
}

pub fn report(_: &Kernel) -> String {
    String::new()
}
