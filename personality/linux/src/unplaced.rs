//! In place of `place` where the processor has no atomic words of 64 bits, of which the channels between kernels are made: all programs are at home.

use alloc::vec::Vec;
use core::convert::Infallible;

use janua_abi::linux::signal::SigInfo;
use janua_abi::linux::{Errno, Result};

use crate::process::Process;
use crate::{Kernel, Task, Thread};

/// The only tile.
pub const HOME: u32 = 0;

/// The first process number of another one: none is given out from there on.
pub const fn first_pid(tile: u32) -> u32 {
    tile << 18
}

/// Nothing.
#[derive(Default)]
pub struct Placing {
    /// There is no other tile to be a guest of.
    pub guest: Option<Infallible>,
}

/// A program, as it was asked for.
pub struct Wanted {
    pub path: Vec<u8>,
    pub argv: Vec<Vec<u8>>,
    pub envp: Vec<Vec<u8>>,
}

/// Why a program is not placed, for a person.
pub type Why = &'static str;

pub fn freeze(_: &Kernel) {}

pub fn shown(_: &Kernel, _: &Process) -> Option<u32> {
    None
}

pub fn is_elsewhere(_: &Thread) -> bool {
    false
}

pub async fn until_ended(_: &Thread) {}

pub fn may_place(_: &Thread) -> bool {
    false
}

/// It is not.
pub fn spread(_: &Thread, _: Wanted) -> bool {
    false
}

/// It is not.
pub fn place(_: &Thread, _tile: u32, _: Wanted) -> core::result::Result<(), Why> {
    Err("this machine has one kernel")
}

pub fn forward(_: &Task, _: &SigInfo) -> bool {
    false
}

pub fn forward_group(_: &Kernel, _pgrp: u32, _: &SigInfo) {}

pub fn may_mount(_: &Kernel) -> Result<()> {
    Ok(())
}

/// What another tile's kernel does for a program that it was given.
pub mod guest {
    use super::{Errno, Result, Task, Thread};
    use crate::process::Report;

    pub fn loaded(_: &Thread, _: Result<()>) {}

    pub fn ended(_: &Task, _status: u32) {}

    pub fn changed(_: &Task, _: Report) {}

    /// ESRCH.
    pub fn kill(_: &Thread, _target: i32, _signal: u32) -> Result<()> {
        Err(Errno::ESRCH)
    }
}
