//! The other tiles: a link with each, memory that the supervisors of both have mapped at the same place.
//!
//! Every process of a tile has the links, as it has the rest of the kernel's memory: who sends on a channel may be any of its threads. The words
//! that a monitor sleeps on are in there; the host finds a sleeper by the shared page, so another tile's process can wake it.

use janua_entry::hosted;
use janua_port::tiles::TILES_MOST;
use janua_port::{Link, Tiles};

use crate::boot;

struct HostedTiles {
    count: u32,
    own: u32,
}

impl Tiles for HostedTiles {
    fn count(&self) -> u32 {
        self.count
    }
    fn own(&self) -> u32 {
        self.own
    }
    fn link(&self, peer: u32) -> Option<&'static Link> {
        if peer >= self.count || peer == self.own {
            return None;
        }
        // SAFETY: the supervisor has mapped a link there, for reading and writing, before any kernel code ran; it stays for the tile's life, its
        // size cannot change, and it is of atomic words alone.
        Some(unsafe { &*(hosted::link(peer as usize) as *const Link) })
    }
}

/// What this kernel has of other tiles; `None` where there are none.
pub fn others() -> Option<impl Tiles> {
    let info = boot::info();
    let count = info.tiles.min(TILES_MOST);
    (count > 1).then_some(HostedTiles { count, own: info.tile })
}
