//! Message channels between two kernels that share nothing else: a lane each way, of which one side writes the lines and the other reads them.
//!
//! A line is 64 bytes, what a processor fetches from another at once: seven words of the message and, stored last, a header. The header's epoch bit
//! changes each time the writer has been around the lane, so a reader that looks at the next line sees whether it is new, and never writes to it. The
//! writer stops when a whole window of lines has not been acknowledged. Acknowledgements ride in the headers of messages the other way. Once for half a window they
//! also come alone: the reader stores its count in a line of its own, beside the lane it reads, where a writer looks that finds the window full. So an
//! acknowledgement needs no room in a window, and a writer goes on even if nobody on its side takes out what has come with the others.
//!
//! ```text
//! bit    0        1      2..8    8..16              16..64
//!        epoch    more   bytes   sequence number    lines taken out of the other lane
//! ```
//!
//! *More* is the mark of a message's lines but the last; they are full. The sequence number adds nothing between sides that keep to this; it is there to notice one
//! that does not. Nothing that is read from the other side is believed: a header that cannot be, a line out of turn or an acknowledgement of what was never
//! sent breaks the channel, for good and for this side. Contents are the receiver's to judge; each word is read once.
//!
//! Order of memory: the header is stored with release and read with acquire, which makes the words before it visible. A reader stores its acknowledgement
//! (header or count) with release after it has read the words, and the writer reads it with acquire before it writes to the lines again.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_port::tiles::{Lane, WINDOW};

use crate::atomic::AtomicU64;

/// Words of a line that are the message's.
pub const WORDS: usize = 7;
/// Bytes of them.
pub const LINE_BYTES: usize = WORDS * 8;
/// Bytes of a message that goes in several lines.
pub const MESSAGE_MOST: usize = 4096;

/// The word of a line that is its header.
const HEADER: usize = WORDS;
const EPOCH: u64 = 1;
const MORE: u64 = 1 << 1;
const BYTES_SHIFT: u32 = 2;
const BYTES_MASK: u64 = 0x3f;
const SEQUENCE_SHIFT: u32 = 8;
const SEQUENCE_MASK: u64 = 0xff;
const TAKEN_SHIFT: u32 = 16;

/// What the other side has done that it never may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A header with more bytes than a line has, or with fewer than that and more to follow.
    Header,
    /// A line that is not the next.
    Sequence,
    /// An acknowledgement of lines that were never sent.
    Acknowledgement,
    /// A message longer than [`MESSAGE_MOST`].
    Length,
}

/// Why a message has not been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// The window is full: later.
    Full,
    /// The message is longer than [`MESSAGE_MOST`]: never.
    Length,
    Broken(Broken),
}

/// A line that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How many of the bytes are the message's, 0 to [`LINE_BYTES`].
    pub bytes: u8,
    /// The next line is of the same message.
    pub more: bool,
}

/// One side of a channel. Two threads of a side have it behind a lock.
#[derive(Debug)]
pub struct Endpoint<const W: usize = WINDOW> {
    out: &'static Lane<AtomicU64, W>,
    incoming: &'static Lane<AtomicU64, W>,
    /// Lines written, and those of them that the other side has taken out.
    sent: u64,
    acknowledged: u64,
    /// Lines taken out, and how many had been when the count was last stored.
    taken: u64,
    stored: u64,
    /// Bytes of a message that has begun to come.
    begun: usize,
    broken: Option<Broken>,
}

const fn epoch<const W: usize>(line: u64) -> u64 {
    (line / W as u64 + 1) & EPOCH
}

const fn sequence(line: u64) -> u64 {
    line & SEQUENCE_MASK
}

impl<const W: usize> Endpoint<W> {
    /// The side that writes the lane `side`, 0 or 1. The lane it writes, and the count beside the other, become empty; the other side does the same with its own before either
    /// reads, or the memory is new.
    pub fn new(lanes: &'static [Lane<AtomicU64, W>; 2], side: usize) -> Endpoint<W> {
        const { assert!(W.is_power_of_two() && W >= 2 && W <= SEQUENCE_MASK as usize / 2) };
        let (out, incoming) = (&lanes[side & 1], &lanes[!side & 1]);
        for line in &out.lines {
            line.0[HEADER].store(0, Ordering::Relaxed);
        }
        incoming.taken.0[0].store(0, Ordering::Relaxed);
        Endpoint { out, incoming, sent: 0, acknowledged: 0, taken: 0, stored: 0, begun: 0, broken: None }
    }

    fn break_down<T>(&mut self, why: Broken) -> Result<T, Broken> {
        self.broken = Some(why);
        Err(why)
    }

    /// What the other side has done wrong, if it has.
    pub fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// How many lines had been taken out when that was last acknowledged alone. Who sleeps for want of room can be woken when it changes.
    pub fn acknowledged_alone(&self) -> u64 {
        self.stored
    }

    /// Lines that can be sent without waiting, as far as acknowledgements have been looked at.
    pub fn room(&mut self) -> Result<usize, Broken> {
        self.look_for_room()?;
        Ok(W - (self.sent - self.acknowledged) as usize)
    }

    /// The other side has taken out so many. One that is behind what is known comes from before.
    fn acknowledge(&mut self, ahead: i64) -> Result<(), Broken> {
        if ahead > (self.sent - self.acknowledged) as i64 {
            return self.break_down(Broken::Acknowledgement);
        }
        self.acknowledged += ahead.max(0) as u64;
        Ok(())
    }

    #[cold]
    fn look_for_room(&mut self) -> Result<(), Broken> {
        if let Some(why) = self.broken {
            return Err(why);
        }
        let taken = self.out.taken.0[0].load(Ordering::Acquire);
        self.acknowledge(taken.wrapping_sub(self.acknowledged) as i64)
    }

    /// Sends one line: a message of `piece.bytes` bytes, or a part of one.
    #[inline]
    pub fn send(&mut self, words: &[u64; WORDS], piece: Piece) -> Result<(), Unsent> {
        if self.sent - self.acknowledged >= W as u64 {
            self.look_for_room().map_err(Unsent::Broken)?;
            if self.sent - self.acknowledged >= W as u64 {
                return Err(Unsent::Full);
            }
        }
        if let Some(why) = self.broken {
            return Err(Unsent::Broken(why));
        }
        let line = &self.out.lines[self.sent as usize % W].0;
        for (place, word) in line.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        let header = epoch::<W>(self.sent)
            | if piece.more { MORE } else { 0 }
            | (u64::from(piece.bytes) & BYTES_MASK) << BYTES_SHIFT
            | sequence(self.sent) << SEQUENCE_SHIFT
            | self.taken << TAKEN_SHIFT;
        line[HEADER].store(header, Ordering::Release);
        self.sent += 1;
        Ok(())
    }

    /// Whether the next line has come.
    #[inline]
    pub fn has_come(&self) -> bool {
        let header = self.incoming.lines[self.taken as usize % W].0[HEADER].load(Ordering::Acquire);
        header & EPOCH == epoch::<W>(self.taken)
    }

    /// Takes out the next line, if it has come.
    #[inline]
    pub fn receive(&mut self, words: &mut [u64; WORDS]) -> Result<Option<Piece>, Broken> {
        if let Some(why) = self.broken {
            return Err(why);
        }
        let line = &self.incoming.lines[self.taken as usize % W].0;
        let header = line[HEADER].load(Ordering::Acquire);
        if header & EPOCH != epoch::<W>(self.taken) {
            return Ok(None);
        }
        let piece = Piece { bytes: (header >> BYTES_SHIFT & BYTES_MASK) as u8, more: header & MORE != 0 };
        if usize::from(piece.bytes) > LINE_BYTES || piece.more && usize::from(piece.bytes) < LINE_BYTES {
            return self.break_down(Broken::Header);
        }
        if header >> SEQUENCE_SHIFT & SEQUENCE_MASK != sequence(self.taken) {
            return self.break_down(Broken::Sequence);
        }
        // The count has 48 bits there. One that is behind may be very old: it is as long as its line has not been taken out.
        let ahead = (header >> TAKEN_SHIFT).wrapping_sub(self.acknowledged) << TAKEN_SHIFT;
        self.acknowledge(ahead as i64 >> TAKEN_SHIFT)?;
        for (word, place) in words.iter_mut().zip(line) {
            *word = place.load(Ordering::Relaxed);
        }
        self.taken += 1;
        if self.taken - self.stored >= W as u64 / 2 {
            self.incoming.taken.0[0].store(self.taken, Ordering::Release);
            self.stored = self.taken;
        }
        Ok(Some(piece))
    }

    /// Sends a message of any length up to [`MESSAGE_MOST`] in as many lines as it takes, from byte `sent` on, which it changes. After
    /// [`Unsent::Full`] the rest is to be sent before anything else.
    pub fn send_bytes(&mut self, message: &[u8], sent: &mut usize) -> Result<(), Unsent> {
        if message.len() > MESSAGE_MOST {
            return Err(Unsent::Length);
        }
        loop {
            let rest = message.get(*sent..).unwrap_or_default();
            let part = &rest[..rest.len().min(LINE_BYTES)];
            let mut words = [0; WORDS];
            for (word, bytes) in words.iter_mut().zip(part.chunks(8)) {
                let mut whole = [0; 8];
                whole[..bytes.len()].copy_from_slice(bytes);
                *word = u64::from_le_bytes(whole);
            }
            let more = rest.len() > LINE_BYTES;
            self.send(&words, Piece { bytes: part.len() as u8, more })?;
            *sent += part.len();
            if !more {
                return Ok(());
            }
        }
    }

    /// Adds what has come of a message to `into`: whether that is all of it. Until then the next call goes on with it.
    pub fn receive_bytes(&mut self, into: &mut Vec<u8>) -> Result<bool, Broken> {
        let mut words = [0; WORDS];
        while let Some(piece) = self.receive(&mut words)? {
            self.begun += usize::from(piece.bytes);
            if self.begun > MESSAGE_MOST {
                return self.break_down(Broken::Length);
            }
            let mut left = usize::from(piece.bytes);
            for word in words {
                into.extend_from_slice(&word.to_le_bytes()[..left.min(8)]);
                left = left.saturating_sub(8);
            }
            if !piece.more {
                self.begun = 0;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// A line that is a message of its own, with all its bytes.
pub const WHOLE: Piece = Piece { bytes: LINE_BYTES as u8, more: false };
