//! File systems.

pub mod hostfs;
pub mod hostio;
pub mod memory;
pub mod overlay;
pub mod tmpfs;
