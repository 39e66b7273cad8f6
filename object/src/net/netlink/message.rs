//! Netlink messages: headers, attributes, and how they are put together (netlink(7)).

use alloc::vec::Vec;

use janua_abi::linux::Errno;

/// Message types and flags.
pub const NLMSG_NOOP: u16 = 1;
pub const NLMSG_ERROR: u16 = 2;
pub const NLMSG_DONE: u16 = 3;
/// Types below this are control messages.
pub const NLMSG_MIN_TYPE: u16 = 16;
pub const NLM_F_REQUEST: u16 = 1;
pub const NLM_F_MULTI: u16 = 2;
pub const NLM_F_ACK: u16 = 4;
pub const NLM_F_DUMP: u16 = 0x300;
/// The error message repeats only the header of the request.
pub const NLM_F_CAPPED: u16 = 0x100;
/// Bytes of `struct nlmsghdr`.
pub const HEADER: usize = 16;

/// `struct nlmsghdr` of a request and what follows it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    /// The whole message, header included.
    pub bytes: &'a [u8],
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

/// The 32-bit word at a place.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

impl<'a> Request<'a> {
    /// The first message of a buffer and the rest of it; `None` when there is no whole one.
    pub fn first(buffer: &'a [u8]) -> Option<(Request<'a>, &'a [u8])> {
        let len = u32_at(buffer, 0)? as usize;
        if len < HEADER || len > buffer.len() {
            return None;
        }
        let request = Request {
            kind: u16_at(buffer, 4)?,
            flags: u16_at(buffer, 6)?,
            sequence: u32_at(buffer, 8)?,
            bytes: &buffer[..len],
        };
        let next = len.next_multiple_of(4).min(buffer.len());
        Some((request, &buffer[next..]))
    }

    /// What follows the header.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER..]
    }

    /// The attributes behind a fixed part of `fixed` bytes.
    pub fn attributes(&self, fixed: usize) -> Attributes<'a> {
        Attributes(self.payload().get(fixed.next_multiple_of(4)..).unwrap_or_default())
    }
}

/// Attributes (`struct rtattr`), one after the other: type and value.
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let len = usize::from(u16_at(self.0, 0)?);
        let kind = u16_at(self.0, 2)?;
        let value = self.0.get(4..len)?;
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        // Nested and byte-order marks are not part of the type.
        Some((kind & 0x3fff, value))
    }
}

/// Messages under construction.
#[derive(Default)]
pub struct Builder {
    bytes: Vec<u8>,
    start: usize,
}

impl Builder {
    /// Begins a message for the socket with port id `pid`.
    pub fn begin(&mut self, kind: u16, flags: u16, sequence: u32, pid: u32) {
        self.start = self.bytes.len();
        self.put(&0u32.to_ne_bytes());
        self.put(&kind.to_ne_bytes());
        self.put(&flags.to_ne_bytes());
        self.put(&sequence.to_ne_bytes());
        self.put(&pid.to_ne_bytes());
    }

    /// Adds bytes to the message.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Adds an attribute.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.pad();
        self.put(&(value.len() as u16 + 4).to_ne_bytes());
        self.put(&kind.to_ne_bytes());
        self.put(value);
    }

    /// Adds a 32-bit attribute.
    pub fn word(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    /// Adds a string attribute, with its NUL.
    pub fn text(&mut self, kind: u16, value: &str) {
        self.pad();
        self.put(&(value.len() as u16 + 5).to_ne_bytes());
        self.put(&kind.to_ne_bytes());
        self.put(value.as_bytes());
        self.put(&[0]);
    }

    /// Ends the message: its length is known now.
    pub fn end(&mut self) {
        let len = (self.bytes.len() - self.start) as u32;
        self.bytes[self.start..self.start + 4].copy_from_slice(&len.to_ne_bytes());
        self.pad();
    }

    /// An error or acknowledgement (`None`) of a request: with all of it after an error, its header after none.
    pub fn answer(&mut self, request: &Request<'_>, pid: u32, error: Option<Errno>, capped: bool) {
        let whole = error.is_some() && !capped;
        self.begin(NLMSG_ERROR, if whole { 0 } else { NLM_F_CAPPED }, request.sequence, pid);
        let code = error.map_or(0, |errno| -i32::from(errno.0.get()));
        self.put(&code.to_ne_bytes());
        self.put(if whole { request.bytes } else { &request.bytes[..HEADER] });
        self.end();
    }

    /// The end of a dump.
    pub fn done(&mut self, sequence: u32, pid: u32) {
        self.begin(NLMSG_DONE, NLM_F_MULTI, sequence, pid);
        self.put(&0u32.to_ne_bytes());
        self.end();
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_can_be_read() {
        let mut builder = Builder::default();
        builder.begin(18, NLM_F_REQUEST, 5, 6);
        builder.put(&[0; 16]);
        builder.text(3, "lo");
        builder.word(4, 65536);
        builder.end();
        builder.done(5, 6);
        let bytes = builder.finish();
        let (request, rest) = Request::first(&bytes).unwrap();
        assert_eq!((request.kind, request.flags, request.sequence), (18, NLM_F_REQUEST, 5));
        let attributes: Vec<_> = request.attributes(16).collect();
        assert_eq!(attributes, [(3, &b"lo\0"[..]), (4, &65536u32.to_ne_bytes()[..])]);
        let (done, rest) = Request::first(rest).unwrap();
        assert_eq!((done.kind, done.flags, rest.len()), (NLMSG_DONE, NLM_F_MULTI, 0));
    }

    #[test]
    fn lengths_that_lie_are_not_followed() {
        for len in [0u32, 15, 17, u32::MAX] {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&len.to_ne_bytes());
            assert!(Request::first(&bytes).is_none(), "{len}");
        }
        assert_eq!(Attributes(&[200, 0, 1, 0, 9]).count(), 0);
        assert_eq!(Attributes(&[2, 0, 1, 0, 9]).count(), 0);
    }
}
