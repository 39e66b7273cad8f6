//! Packets of gdb's remote protocol as bytes: `$`, the contents, `#` and two digits of a checksum.

use std::fs::File;
use std::io::{Read, Result, Write};

/// Bytes of the longest packet, which is reported to gdb.
pub const MOST: usize = 16 << 10;
/// Bytes that may come before something is a packet: what speaks otherwise is no gdb.
const NOISE_MOST: usize = 64 << 10;

/// What has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// What a packet contains.
    Packet(Vec<u8>),
    /// Ctrl-C.
    Interrupt,
    /// The last packet is to be sent again.
    Again,
    /// One that has been garbled on its way.
    Garbled,
}

/// What is no protocol of gdb's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise;

/// Bytes that have come and have not been understood yet.
#[derive(Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    /// So many of them have been understood.
    start: usize,
    noise: usize,
}

impl Buffer {
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes.drain(..core::mem::take(&mut self.start));
        self.bytes.extend_from_slice(bytes);
    }

    /// Passes over the same packet: gdb waits for an answer before it sends more, so one that has come twice was sent again, because
    /// the sandbox took longer to start than gdb waits.
    pub fn skip(&mut self, said: &[u8]) {
        let again = packet(said);
        while self.bytes[self.start..].starts_with(&again) {
            self.start += again.len();
        }
    }

    /// The next of what has come whole.
    pub fn next(&mut self) -> core::result::Result<Option<Incoming>, Noise> {
        loop {
            let Some(first) = self.bytes.get(self.start) else { return Ok(None) };
            let single = match first {
                b'$' => break,
                3 => Some(Incoming::Interrupt),
                b'-' => Some(Incoming::Again),
                b'+' => None,
                _ => {
                    self.noise += 1;
                    None
                }
            };
            self.start += 1;
            if self.noise > NOISE_MOST {
                return Err(Noise);
            }
            if single.is_some() {
                return Ok(single);
            }
        }
        let bytes = &self.bytes[self.start..];
        let Some(end) = bytes.iter().position(|byte| *byte == b'#') else {
            return if bytes.len() > MOST { Err(Noise) } else { Ok(None) };
        };
        if end > MOST {
            return Err(Noise);
        }
        let Some(digits) = bytes.get(end + 1..end + 3) else { return Ok(None) };
        let sum = std::str::from_utf8(digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let said = bytes[1..end].to_vec();
        self.start += end + 3;
        if sum == Some(checksum(&said)) {
            self.noise = 0;
            return Ok(Some(Incoming::Packet(said)));
        }
        self.noise += said.len() + 4;
        if self.noise > NOISE_MOST { Err(Noise) } else { Ok(Some(Incoming::Garbled)) }
    }
}

/// The checksum of a packet with these contents.
pub fn checksum(said: &[u8]) -> u8 {
    said.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte))
}

/// A packet with these contents.
pub fn packet(said: &[u8]) -> Vec<u8> {
    [b"$", said, format!("#{:02x}", checksum(said)).as_bytes()].concat()
}

/// Bytes that may be any, as packets carry them.
pub fn escaped(bytes: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .flat_map(|byte| match byte {
            b'#' | b'$' | b'}' | b'*' => [Some(b'}'), Some(byte ^ 0x20)],
            byte => [Some(*byte), None],
        })
        .flatten()
        .collect()
}

/// The connection.
pub struct Line {
    pub file: File,
    buffer: Buffer,
    /// Packets are acknowledged.
    acknowledged: bool,
    last: Vec<u8>,
}

impl Line {
    pub fn new(file: File) -> Line {
        Line { file, buffer: Buffer::default(), acknowledged: true, last: Vec::new() }
    }

    /// What has come whole and not been taken.
    pub fn next(&mut self) -> core::result::Result<Option<Incoming>, Noise> {
        loop {
            match self.buffer.next()? {
                // Nothing to do here when that fails: the next read fails, too.
                Some(Incoming::Again) => drop(self.file.write_all(&self.last)),
                Some(Incoming::Garbled) if self.acknowledged => drop(self.file.write_all(b"-")),
                Some(Incoming::Garbled) => {}
                Some(Incoming::Packet(said)) => {
                    if self.acknowledged {
                        self.buffer.skip(&said);
                        drop(self.file.write_all(b"+"));
                    }
                    return Ok(Some(Incoming::Packet(said)));
                }
                other => return Ok(other),
            }
        }
    }

    /// Waits for more. False at the end.
    pub fn receive(&mut self) -> bool {
        let mut room = [0; 4096];
        match self.file.read(&mut room) {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.buffer.add(&room[..count]);
                true
            }
        }
    }

    /// Sends what has been made a packet of already.
    pub fn send_packet(&mut self, packet: Vec<u8>) -> Result<()> {
        self.file.write_all(&packet)?;
        self.last = packet;
        Ok(())
    }

    pub fn send(&mut self, said: &[u8]) -> Result<()> {
        self.send_packet(packet(said))
    }

    /// Both sides trust the connection from now on.
    pub fn trust(&mut self) {
        self.acknowledged = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<core::result::Result<Incoming, Noise>> {
        let mut buffer = Buffer::default();
        buffer.add(bytes);
        let mut found = Vec::new();
        loop {
            match buffer.next() {
                Ok(None) => return found,
                Ok(Some(one)) => found.push(Ok(one)),
                Err(noise) => {
                    found.push(Err(noise));
                    return found;
                }
            }
        }
    }

    #[test]
    fn packets_are_whole_or_none() {
        let said = |text: &str| Ok(Incoming::Packet(text.as_bytes().to_vec()));
        assert_eq!(all(b"+$g#67\x03$?#3f-"), [said("g"), Ok(Incoming::Interrupt), said("?"), Ok(Incoming::Again)]);
        assert_eq!(all(b"$g#68$g#zz$?#3f"), [Ok(Incoming::Garbled), Ok(Incoming::Garbled), said("?")]);
        assert_eq!(all(b"$#00"), [said("")]);
        for len in 0..4 {
            assert_eq!(all(&b"$g#67"[..len]), []);
        }
        assert_eq!(all(&packet(b"m0,4")), [said("m0,4")]);
        assert_eq!(escaped(b"a#}*$"), *b"a}\x03}]}\x0a}\x04");
    }

    #[test]
    fn what_is_sent_again_is_heard_once() {
        let mut buffer = Buffer::default();
        buffer.add(b"$?#3f$?#3f$?#3f$g#67");
        assert_eq!(buffer.next(), Ok(Some(Incoming::Packet(b"?".to_vec()))));
        buffer.skip(b"?");
        assert_eq!(buffer.next(), Ok(Some(Incoming::Packet(b"g".to_vec()))));
        assert_eq!(buffer.next(), Ok(None));
    }

    #[test]
    fn noise_has_a_bound() {
        assert_eq!(all(b"GET / HTTP/1.1\r\n"), []);
        assert_eq!(all(&vec![b'x'; NOISE_MOST + 1]), [Err(Noise)]);
        assert_eq!(all(&[&b"$"[..], &vec![b'x'; MOST + 1]].concat()), [Err(Noise)]);
        let garbled = all(&b"$xxxx#00".repeat(NOISE_MOST));
        assert_eq!(garbled.last(), Some(&Err(Noise)));
    }
}
