//! What a kernel instance knows of the others beside it, and the memory it shares with each.
//!
//! A machine may carry several instances, *tiles*, each with memory and processors of its own. Two of them have one piece of memory in common, a
//! [`Link`], which nobody else has, and nothing else. What the other tile writes there is not to be believed.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Lines of a lane: how many messages of one direction may be under way.
pub const WINDOW: usize = 32;

/// Channels of a link. The first is the monitors'.
pub const CHANNELS: usize = 15;

/// Tiles of a machine.
pub const TILES_MOST: u32 = 16;

/// What two processors hand each other: 64 bytes. `A` is the atomic word; a model checker has its own.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Line<A = AtomicU64>(pub [A; 8]);

/// One direction of a channel. All zero is a lane that has not been used.
#[derive(Debug)]
#[repr(C)]
pub struct Lane<A = AtomicU64, const WINDOW: usize = { self::WINDOW }> {
    /// Written by the sender alone: seven words, and the header.
    pub lines: [Line<A>; WINDOW],
    /// Written by the receiver alone; the first word is how many lines it has taken out.
    pub taken: Line<A>,
}

impl<A: Default, const WINDOW: usize> Default for Lane<A, WINDOW> {
    fn default() -> Self {
        Lane { lines: core::array::from_fn(|_| Line::default()), taken: Line::default() }
    }
}

/// The word that one side of a link sleeps on, alone in its line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Bell(pub AtomicU32);

/// What two tiles share. Of each pair of things the first is that of the tile with the lower number: the bell it sleeps on, the lane it writes.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Link {
    pub bells: [Bell; 2],
    pub channels: [[Lane; 2]; CHANNELS],
}

/// The other instances, as a machine shows them to one.
pub trait Tiles: Send + Sync {
    /// How many there are, this one among them: 2 to [`TILES_MOST`].
    fn count(&self) -> u32;
    /// The number of this one; they are counted from 0.
    fn own(&self) -> u32;
    /// What this one shares with another. `None` for itself and for numbers there are not.
    fn link(&self, peer: u32) -> Option<&'static Link>;
}
