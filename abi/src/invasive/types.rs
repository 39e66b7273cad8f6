//! The structures an application allocates and the handles it holds.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `simple_ilet`: a function and one or two words for it. 32 bytes on 64-bit machines, 16 on 32-bit ones.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Ilet {
    /// Address of the function; 0 is the application's `main_ilet` and only the kernel starts that.
    pub code: usize,
    pub first: usize,
    /// 0 for an i-let of one word.
    pub second: usize,
    /// Scheduling domain, in the lower 16 bits, and application class, above.
    pub domain: usize,
}

const _: () = assert!(size_of::<Ilet>() == 4 * size_of::<usize>());

/// `simple_signal` and `binary_signal`: how many are still to signal. Waiting is waiting for 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Signal {
    pub left: u32,
    pub spare: u32,
}

/// `infect_signal`: the last signal starts the i-let.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct InfectSignal {
    pub signal: Signal,
    pub ilet: Ilet,
}

/// `invade_future`, `reinvade_future`, `retreat_future`, `syscall_future`. Waiting is waiting for `pending` to be 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Future {
    pub pending: u32,
    pub spare: u32,
    /// The result, once `pending` is 0.
    pub value: usize,
    pub spare_word: usize,
}

/// Bytes at the end of each stack that are the running i-let's own: half for `get_ilocal_data`, half for what the library keeps.
pub const ILOCAL_SIZE: usize = 512;

/// Largest count of a signal (`simple_signal_get_max_proc_count`).
pub const SIGNAL_MOST: u32 = 0x7fff_ffff;

/// A claim's number within its tile; 0 is none. `claim_t` is this as a pointer.
pub type ClaimId = u32;
/// Claim numbers are below this.
pub const CLAIM_LIMIT: ClaimId = 1 << 24;

/// `dispatch_claim_t`: a claim of any tile as one word, 0 for none: the tile's number plus one in the upper 8 of the lower 32
/// bits, the claim's number in the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DispatchClaim {
    pub tile: u8,
    pub claim: ClaimId,
}

/// `proxy_claim_t` is the same word: the claim on another tile.
pub type ProxyClaim = DispatchClaim;

impl DispatchClaim {
    pub const fn word(self) -> usize {
        if self.claim == 0 { 0 } else { (self.tile as usize + 1) << 24 | self.claim as usize }
    }

    /// `None` for words that name no claim.
    pub const fn from_word(word: usize) -> Option<DispatchClaim> {
        let (tile, claim) = (word >> 24, word as u32 & (CLAIM_LIMIT - 1));
        if tile == 0 || tile > TILES_MOST || claim == 0 {
            return None;
        }
        Some(DispatchClaim { tile: tile as u8 - 1, claim })
    }
}

/// Most tiles of a machine.
pub const TILES_MOST: usize = 254;

/// `mem_allocate`'s memory types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryType {
    TlmLocal = 0,
    TlmGlobal = 1,
    Shm = 2,
    Icm = 3,
}

/// Global addresses of machines with 64-bit words have the tile's number plus one above this bit; where words are narrower there
/// is one tile, and global addresses are the local ones.
pub const GLOBAL_SHIFT: u32 = if usize::BITS == 64 { 56 } else { 0 };

/// The global address of a tile's local one.
pub const fn global_address(tile: u8, local: usize) -> usize {
    if GLOBAL_SHIFT == 0 { local } else { local_address(local) | (tile as usize + 1) << GLOBAL_SHIFT }
}

/// The tile a global address names; `None` for a local address.
pub const fn tile_of_address(address: usize) -> Option<u8> {
    if GLOBAL_SHIFT == 0 || address >> GLOBAL_SHIFT == 0 { None } else { Some(((address >> GLOBAL_SHIFT) - 1) as u8) }
}

/// The address within its tile.
pub const fn local_address(address: usize) -> usize {
    if GLOBAL_SHIFT == 0 { address } else { address & ((1 << GLOBAL_SHIFT) - 1) }
}
