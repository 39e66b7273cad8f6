//! File systems.

pub mod ext4;
pub mod hostfs;
pub mod hostio;
pub mod memory;
pub mod objectio;
pub mod overlay;
pub mod tmpfs;
