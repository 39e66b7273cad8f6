//! Control messages as programs lay them out (cmsg(3)).

use alloc::vec::Vec;

use janua_abi::linux::i386::net::CmsgHdr32;
use janua_abi::linux::net::CmsgHdr;
use janua_abi::linux::{Errno, Result};
use zerocopy::{FromBytes, IntoBytes};

use crate::net::socket::Ancillary;

/// The words in which a program counts: those of x86-64, or of i386.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    Wide,
    Narrow,
}

impl Words {
    /// Bytes of a header.
    const fn header(self) -> usize {
        match self {
            Words::Wide => size_of::<CmsgHdr>(),
            Words::Narrow => size_of::<CmsgHdr32>(),
        }
    }

    const fn align(self) -> usize {
        match self {
            Words::Wide => 8,
            Words::Narrow => 4,
        }
    }

    /// The header at the start of a buffer.
    fn read(self, buffer: &[u8]) -> Option<CmsgHdr> {
        match self {
            Words::Wide => CmsgHdr::read_from_prefix(buffer).ok().map(|(header, _)| header),
            Words::Narrow => {
                let (CmsgHdr32 { len, level, kind }, _) = CmsgHdr32::read_from_prefix(buffer).ok()?;
                Some(CmsgHdr { len: len.into(), level, kind })
            }
        }
    }
}

/// Takes a control buffer apart. EINVAL for a length that does not fit.
pub fn parse(mut buffer: &[u8], words: Words) -> Result<Vec<Ancillary>> {
    let mut list = Vec::new();
    while let Some(header) = words.read(buffer) {
        let len = usize::try_from(header.len).map_err(|_| Errno::EINVAL)?;
        if len < words.header() || len > buffer.len() {
            return Err(Errno::EINVAL);
        }
        list.push(Ancillary { level: header.level, kind: header.kind, data: buffer[words.header()..len].to_vec() });
        buffer = buffer.get(len.next_multiple_of(words.align())..).unwrap_or_default();
    }
    Ok(list)
}

/// A control buffer under construction, for a program that has room for `room` bytes.
pub struct Control {
    bytes: Vec<u8>,
    room: usize,
    words: Words,
    /// Something did not fit (MSG_CTRUNC).
    pub truncated: bool,
}

impl Control {
    pub fn new(room: usize, words: Words) -> Control {
        Control { bytes: Vec::new(), room, words, truncated: false }
    }

    pub fn words(&self) -> Words {
        self.words
    }

    /// Bytes of data that a message added now could have.
    pub fn space(&self) -> usize {
        (self.room.saturating_sub(self.bytes.len())).saturating_sub(self.words.header())
    }

    /// Adds a message, cut to the room there is.
    pub fn add(&mut self, level: u32, kind: u32, data: &[u8]) {
        let left = self.room.saturating_sub(self.bytes.len());
        let header = self.words.header();
        if left < header {
            self.truncated = true;
            return;
        }
        let len = (header + data.len()).min(left);
        self.truncated |= len < header + data.len();
        match self.words {
            Words::Wide => self.bytes.extend_from_slice(CmsgHdr { len: len as u64, level, kind }.as_bytes()),
            Words::Narrow => self.bytes.extend_from_slice(CmsgHdr32 { len: len as u32, level, kind }.as_bytes()),
        }
        self.bytes.extend_from_slice(&data[..len - header]);
        let padded = self.bytes.len().next_multiple_of(self.words.align()).min(self.room);
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
        let mut control = Control::new(100, Words::Wide);
        control.add(1, 2, &[1, 2, 3, 4, 5]);
        control.add(41, 50, &[9; 20]);
        assert!(!control.truncated);
        assert_eq!(control.as_bytes().len(), 24 + 40);
        let list = parse(control.as_bytes(), Words::Wide).unwrap();
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].level, list[0].kind, list[0].data.as_slice()), (1, 2, &[1, 2, 3, 4, 5][..]));
        assert_eq!((list[1].level, list[1].kind, list[1].data.len()), (41, 50, 20));
    }

    #[test]
    fn narrow_messages_have_shorter_heads() {
        let mut control = Control::new(100, Words::Narrow);
        control.add(1, 2, &[1, 2, 3, 4, 5]);
        control.add(41, 50, &[9; 4]);
        assert_eq!(control.as_bytes().len(), 20 + 16);
        let list = parse(control.as_bytes(), Words::Narrow).unwrap();
        assert_eq!((list.len(), list[0].data.as_slice(), list[1].kind), (2, &[1, 2, 3, 4, 5][..], 50));
    }

    #[test]
    fn what_does_not_fit_is_cut_and_told() {
        let mut control = Control::new(20, Words::Wide);
        control.add(1, 1, &[7; 8]);
        assert!(control.truncated);
        assert_eq!(parse(control.as_bytes(), Words::Wide).unwrap()[0].data, [7; 4]);
        control.add(1, 1, &[]);
        assert_eq!(control.as_bytes().len(), 20);
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        for len in [0u64, 15, 33, u64::MAX] {
            let header = CmsgHdr { len, level: 1, kind: 1 };
            let mut bytes = header.as_bytes().to_vec();
            bytes.resize(32, 0);
            assert_eq!(parse(&bytes, Words::Wide), Err(Errno::EINVAL), "{len}");
        }
    }
}
