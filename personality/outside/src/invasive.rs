//! What the outside decides.

use alloc::vec::Vec;

use janua_abi::invasive::types::TILES_MOST;
use janua_abi::linux::{Errno, Result};
use janua_port::HostFd;
use serde::{Deserialize, Serialize};

/// No configuration of another personality starts like this: it would be a length beyond all memory.
const MARK: &[u8; 16] = b"\xff\xff\xff\xff\xff\xff\xff\xffinvasive";

/// Most cores of a tile.
pub const CORES_MOST: u32 = 64;

/// How a machine of tiles and the application on it are to be.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Config {
    /// The application: a static executable for the machine, all of its bytes.
    pub program: Vec<u8>,
    /// Its arguments, its name first.
    pub args: Vec<Vec<u8>>,
    pub tiles: u8,
    /// Of each tile.
    pub cores: u32,
    /// [`janua_abi::invasive::record::library`].
    pub library: u8,
    /// The library handles calls itself that need no privilege.
    pub answers: bool,
    /// The library asks the host for its ids at each call, where the gate needs them.
    pub asks_ids: bool,
    /// The library calls by a software interrupt where it would by the processor's instruction for calls.
    pub interrupts: bool,
    /// Core c of tile t is the machine's processor t * cores + c, and no other.
    pub pinned: bool,
    /// Where `print` writes; `None`: the machine's console.
    pub output: Option<HostFd>,
    pub trace: Option<HostFd>,
    /// Whether the machine ends when a line of the trace cannot be written.
    pub trace_whole: bool,
    pub stats: bool,
    /// Calls, by number, that are not put in force.
    pub without: Vec<u32>,
}

impl Config {
    /// The bytes the outside leaves for the kernel.
    pub fn encode(&self) -> Vec<u8> {
        // Fails only for types that do not know their length, and there are none.
        let body = postcard::to_allocvec(self).unwrap_or_default();
        [MARK.as_slice(), &body].concat()
    }

    /// Whether the bytes are meant for this personality.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(MARK)
    }

    /// EINVAL for bytes no [`Config::encode`] made, and for a machine that cannot be.
    pub fn decode(bytes: &[u8]) -> Result<Config> {
        let body = bytes.strip_prefix(MARK).ok_or(Errno::EINVAL)?;
        let config: Config = postcard::from_bytes(body).map_err(|_| Errno::EINVAL)?;
        let tiles = 1..=TILES_MOST;
        if !tiles.contains(&usize::from(config.tiles)) || !(1..=CORES_MOST).contains(&config.cores) {
            return Err(Errno::EINVAL);
        }
        Ok(config)
    }
}
