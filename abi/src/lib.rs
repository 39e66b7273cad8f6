//! Numbers, structures and error codes that both sides of the border share: data, no logic.
#![no_std]
#![forbid(unsafe_code)]

pub mod invasive;
pub mod l4v2;
pub mod linux;
pub mod pal;
pub mod ring;
