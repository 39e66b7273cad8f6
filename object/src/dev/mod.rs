//! Devices.

pub mod mem;
