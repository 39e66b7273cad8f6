//! What the outside decides for the personality `pal`.

pub mod manifest;

use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use serde::{Deserialize, Serialize};

/// No configuration of another personality starts like this: it would be a length beyond all memory.
const MARK: &[u8; 16] = b"\xff\xff\xff\xff\xff\xff\xff\xffpal\0\0\0\0\0";

/// What the first picoprocess is made of.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Config {
    /// Files, ids, limits, the program: [`crate::linux::BootConfig::encode`]'s bytes.
    pub boot: Vec<u8>,
    /// The text of its manifest; `None`: it has none, and may open whatever the sandbox shows.
    pub manifest: Option<Vec<u8>>,
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

    /// EINVAL for bytes no [`Config::encode`] made.
    pub fn decode(bytes: &[u8]) -> Result<Config> {
        let body = bytes.strip_prefix(MARK).ok_or(Errno::EINVAL)?;
        postcard::from_bytes(body).map_err(|_| Errno::EINVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_what_is_decoded() {
        let config = Config { boot: alloc::vec![7; 100], manifest: Some(b"a = b".to_vec()) };
        let bytes = config.encode();
        assert!(Config::is_one(&bytes) && !crate::l4v2::Config::is_one(&bytes) && !crate::invasive::Config::is_one(&bytes));
        let decoded = Config::decode(&bytes).unwrap();
        assert_eq!((decoded.boot, decoded.manifest), (config.boot, config.manifest));
        assert!(Config::decode(&bytes[..bytes.len() - 1]).is_err());
    }
}
