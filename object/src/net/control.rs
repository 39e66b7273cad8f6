//! Control messages as programs lay them out (cmsg(3)).

use alloc::vec::Vec;

use janua_abi::linux::net::CmsgHdr;
use janua_abi::linux::{Errno, Result};
use zerocopy::{FromBytes, IntoBytes};

use crate::net::socket::Ancillary;

/// Bytes of a header.
pub const HEADER: usize = size_of::<CmsgHdr>();
const ALIGN: usize = 8;

/// Takes a control buffer apart. EINVAL for a length that does not fit.
pub fn parse(mut buffer: &[u8]) -> Result<Vec<Ancillary>> {
    let mut list = Vec::new();
    while let Ok((header, _)) = CmsgHdr::read_from_prefix(buffer) {
        let len = usize::try_from(header.len).map_err(|_| Errno::EINVAL)?;
        if len < HEADER || len > buffer.len() {
            return Err(Errno::EINVAL);
        }
        list.push(Ancillary { level: header.level, kind: header.kind, data: buffer[HEADER..len].to_vec() });
        buffer = buffer.get(len.next_multiple_of(ALIGN)..).unwrap_or_default();
    }
    Ok(list)
}

/// A control buffer under construction, for a program that has room for `room` bytes.
pub struct Control {
    bytes: Vec<u8>,
    room: usize,
    /// Something did not fit (MSG_CTRUNC).
    pub truncated: bool,
}

impl Control {
    pub fn new(room: usize) -> Control {
        Control { bytes: Vec::new(), room, truncated: false }
    }

    /// Bytes of data that a message added now could have.
    pub fn space(&self) -> usize {
        (self.room.saturating_sub(self.bytes.len())).saturating_sub(HEADER)
    }

    /// Adds a message, cut to the room there is.
    pub fn add(&mut self, level: u32, kind: u32, data: &[u8]) {
        let left = self.room.saturating_sub(self.bytes.len());
        if left < HEADER {
            self.truncated = true;
            return;
        }
        let len = (HEADER + data.len()).min(left);
        self.truncated |= len < HEADER + data.len();
        self.bytes.extend_from_slice(CmsgHdr { len: len as u64, level, kind }.as_bytes());
        self.bytes.extend_from_slice(&data[..len - HEADER]);
        let padded = self.bytes.len().next_multiple_of(ALIGN).min(self.room);
        self.bytes.resize(padded, 0);
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_laid_out_and_read_back() {
        let mut control = Control::new(100);
        control.add(1, 2, &[1, 2, 3, 4, 5]);
        control.add(41, 50, &[9; 20]);
        assert!(!control.truncated);
        assert_eq!(control.as_bytes().len(), 24 + 40);
        let list = parse(control.as_bytes()).unwrap();
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].level, list[0].kind, list[0].data.as_slice()), (1, 2, &[1, 2, 3, 4, 5][..]));
        assert_eq!((list[1].level, list[1].kind, list[1].data.len()), (41, 50, 20));
    }

    #[test]
    fn what_does_not_fit_is_cut_and_told() {
        let mut control = Control::new(20);
        control.add(1, 1, &[7; 8]);
        assert!(control.truncated);
        assert_eq!(parse(control.as_bytes()).unwrap()[0].data, [7; 4]);
        control.add(1, 1, &[]);
        assert_eq!(control.as_bytes().len(), 20);
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        for len in [0u64, 15, 33, u64::MAX] {
            let header = CmsgHdr { len, level: 1, kind: 1 };
            let mut bytes = header.as_bytes().to_vec();
            bytes.resize(32, 0);
            assert_eq!(parse(&bytes), Err(Errno::EINVAL), "{len}");
        }
    }
}
