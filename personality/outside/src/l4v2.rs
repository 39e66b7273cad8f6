//! What the outside decides for the personality `l4v2`.

use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_port::HostFd;
use serde::{Deserialize, Serialize};

/// No configuration of another personality starts like this: it would be a length beyond all memory.
const MARK: &[u8; 16] = b"\xff\xff\xff\xff\xff\xff\xff\xffl4v2\0\0\0\0";

/// Most modules, and most physical memory, bytes.
pub const MODULES_MOST: usize = 64;
pub const MEMORY_MOST: u64 = 1 << 30;

/// A file for the system: sigma0, the root task, or what the root task is to find in memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Module {
    /// The name it was given by, and its arguments.
    pub command: Vec<u8>,
    pub bytes: Vec<u8>,
}

/// What a system of L4 is made of.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Config {
    /// The first is sigma0, the last the root task.
    pub modules: Vec<Module>,
    /// Physical memory, bytes.
    pub memory: u64,
    /// Where programs write by the kernel's debugger; `None`: the machine's console.
    pub output: Option<HostFd>,
    pub trace: Option<HostFd>,
    /// Whether the machine ends when a line of the trace cannot be written.
    pub trace_whole: bool,
    pub stats: bool,
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

    /// EINVAL for bytes no [`Config::encode`] made, and for a system that cannot be.
    pub fn decode(bytes: &[u8]) -> Result<Config> {
        let body = bytes.strip_prefix(MARK).ok_or(Errno::EINVAL)?;
        let config: Config = postcard::from_bytes(body).map_err(|_| Errno::EINVAL)?;
        if config.modules.len() > MODULES_MOST || config.memory > MEMORY_MOST {
            return Err(Errno::EINVAL);
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_what_is_decoded() {
        let module = Module { command: b"sigma0".to_vec(), bytes: alloc::vec![7; 100] };
        let config = Config { modules: alloc::vec![module], memory: 1 << 24, ..Config::default() };
        let bytes = config.encode();
        assert!(Config::is_one(&bytes) && !crate::invasive::Config::is_one(&bytes));
        let decoded = Config::decode(&bytes).unwrap();
        assert_eq!((decoded.memory, decoded.modules[0].bytes.len()), (1 << 24, 100));
        assert!(Config::decode(&bytes[..bytes.len() - 50]).is_err());
        assert!(Config::decode(&Config { memory: MEMORY_MOST + 1, ..Config::default() }.encode()).is_err());
    }
}
