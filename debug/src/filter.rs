//! What may come out of a sandbox for gdb: acknowledgements and whole packets, and none that asks gdb to do something.
//!
//! gdb does to files of its own machine, with its user's rights, what a packet of File-I/O requests (`Fopen`, `Fwrite`, `Fsystem`; "File-I/O Remote
//! Protocol Extension" of gdb's manual). The server has no use for it, and what else gets at the connection must have none. What goes on is what has
//! been understood here, so that gdb cannot understand it otherwise.

use crate::packets::checksum;

/// Bytes of the longest packet that goes on: gdb asks for parts of at most [`crate::packets::MOST`], which may be escaped.
const MOST: usize = 4 * crate::packets::MOST;
/// Bytes at the beginning of a packet that tell an answer from a request: a number is shorter.
const HEAD: usize = 32;
/// The value of this byte less this number is how often the byte before is repeated.
const REPEATED: u8 = 29;

/// Why a connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// gdb was asked for File-I/O.
    FileIo,
    /// What is no packet, is garbled, or is too long.
    Garbage,
}

/// Passes on what may come out of a sandbox, however it is cut into pieces.
#[derive(Default)]
pub struct Filter {
    /// A packet from its `$` on that is not whole.
    held: Vec<u8>,
    /// Digits of its checksum that are still to come, once its `#` has.
    digits: Option<u8>,
}

impl Filter {
    /// Adds to `out` what of `bytes`, and of what was held before, may go on. After an error nothing more may.
    pub fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        bytes.iter().try_for_each(|byte| self.add(*byte, out))
    }

    fn add(&mut self, byte: u8, out: &mut Vec<u8>) -> Result<(), Refusal> {
        if self.held.is_empty() {
            match byte {
                b'+' | b'-' => out.push(byte),
                b'$' => self.held.push(byte),
                _ => return Err(Refusal::Garbage),
            }
            return Ok(());
        }
        if byte == b'$' || self.held.len() > MOST {
            return Err(Refusal::Garbage);
        }
        self.held.push(byte);
        match self.digits {
            None => self.digits = (byte == b'#').then_some(2),
            Some(2) => self.digits = Some(1),
            Some(_) => {
                judge(&self.held)?;
                out.append(&mut self.held);
                self.digits = None;
            }
        }
        Ok(())
    }
}

/// Whether a whole packet may go on.
fn judge(packet: &[u8]) -> Result<(), Refusal> {
    let (said, sum) = (&packet[1..packet.len() - 3], &packet[packet.len() - 2..]);
    if is_request(said) {
        return Err(Refusal::FileIo);
    }
    if sum.eq_ignore_ascii_case(format!("{:02x}", checksum(said)).as_bytes()) { Ok(()) } else { Err(Refusal::Garbage) }
}

/// Whether it is a request for File-I/O. The only answers that begin like one are those to `vFile`, which go on with a number; no call's name is one.
fn is_request(said: &[u8]) -> bool {
    let head = head(said);
    let Some((b'F', rest)) = head.split_first() else { return false };
    let rest = rest.strip_prefix(b"-").unwrap_or(rest);
    let len = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let ends = head.len() < HEAD && len == rest.len() || matches!(rest.get(len), Some(b',' | b';'));
    len == 0 || !ends
}

/// How a packet begins when repetitions are written out and nothing is escaped.
fn head(said: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD);
    let mut rest = said.iter().copied();
    while head.len() < HEAD
        && let Some(byte) = rest.next()
    {
        match (byte, head.last().copied()) {
            (b'*', last) => {
                let times = usize::from(rest.next().unwrap_or(0).saturating_sub(REPEATED));
                head.extend(last.into_iter().flat_map(|last| core::iter::repeat_n(last, times)));
            }
            (b'}', _) => head.extend(rest.next().map(|byte| byte ^ 0x20)),
            _ => head.push(byte),
        }
    }
    head.truncate(HEAD);
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::packet;

    fn pass(bytes: &[u8], piece: usize) -> (Vec<u8>, Result<(), Refusal>) {
        let (mut filter, mut out) = (Filter::default(), Vec::new());
        let result = bytes.chunks(piece).try_for_each(|piece| filter.pass(piece, &mut out));
        (out, result)
    }

    /// That these bytes go on as they are, however they are cut.
    fn passes(bytes: &[u8]) {
        for piece in [1, 2, 3, 7, bytes.len()] {
            assert_eq!(pass(bytes, piece), (bytes.to_vec(), Ok(())), "{}", String::from_utf8_lossy(bytes));
        }
    }

    /// That behind a good packet nothing of these goes on.
    fn refused(bytes: &[u8], why: Refusal) {
        let all = [&packet(b"OK")[..], bytes].concat();
        for piece in [1, 2, 3, 7, all.len()] {
            assert_eq!(pass(&all, piece), (packet(b"OK"), Err(why)), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn answers_go_on() {
        passes(b"+-+$#00");
        for said in [
            "OK",
            "E01",
            "T05thread:p2.2;",
            "W00",
            "O50",
            "m0,4",
            "00* ",
            "vFile",
            "bF",
            "F0",
            "F-1,2",
            "F5;ab}\x03c",
            "F10* ;xy",
        ] {
            passes(&packet(said.as_bytes()));
        }
        passes(&packet(&[b"F4000;", &vec![b'x'; 16 << 10][..]].concat()));
        passes(&packet(&vec![b'0'; MOST - 3]));
    }

    #[test]
    fn requests_do_not() {
        for name in
            ["open", "close", "read", "write", "lseek", "rename", "unlink", "stat", "fstat", "gettimeofday", "isatty", "system"]
        {
            for said in [format!("F{name},1000/5,601,1a4"), format!("F{name}"), format!("F{name};1"), format!("F{name}\0,1")] {
                refused(&packet(said.as_bytes()), Refusal::FileIo);
                refused(format!("${said}#zz").as_bytes(), Refusal::FileIo);
            }
        }
        // Repeated (one t more), escaped, without a name, a number that goes on as something else, or for longer than numbers do.
        let long = [b'1'; HEAD];
        for said in [
            &b"Fisat*\x1ey,0"[..],
            b"}fopen,",
            b"Fop}Een,",
            b"F",
            b"F-",
            b"F,",
            b"F1x,",
            b"F5\0",
            b"FF*\x1eopen,",
            &[b"F", &long[..]].concat(),
        ] {
            refused(&packet(said), Refusal::FileIo);
        }
    }

    #[test]
    fn what_is_no_packet_ends_it() {
        for bytes in
            [&b"x$Fopen,1#00"[..], b"\x03", b"%Stop:T05#00", b"#00", b"\n", b"$O50574e45440a#00", b"$m0#zz", b"$x$Fopen,1#00"]
        {
            refused(bytes, Refusal::Garbage);
        }
        refused(&[b"$".to_vec(), vec![b'0'; MOST + 1]].concat(), Refusal::Garbage);
    }
}
