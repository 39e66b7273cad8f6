//! Messages: descriptors, buffers and the words that report how they went.

use super::fpage::Fpage;

/// A send or receive descriptor that means: this half of the call does not happen.
pub const NONE: u32 = u32::MAX;

/// What `ipc` is to send, as the descriptor in eax has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// The words hold flexpages, from the first on.
    pub map: bool,
    /// Where the rest of the message is; `None`: there is none.
    pub buffer: Option<u32>,
}

impl Send {
    pub const fn of(descriptor: u32) -> Option<Send> {
        if descriptor == NONE {
            return None;
        }
        let buffer = descriptor & !3;
        Some(Send { map: descriptor & 2 != 0, buffer: if buffer == 0 { None } else { Some(buffer) } })
    }
}

/// What `ipc` will take, as the descriptor in ebp has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// From anybody.
    pub open: bool,
    pub into: Into,
}

/// What of a message beyond its words is taken, and where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Into {
    Words,
    /// Flexpages into this window.
    Window(Fpage),
    /// What the buffer at the address holds.
    Buffer(u32),
}

impl Receive {
    pub const fn of(descriptor: u32) -> Option<Receive> {
        if descriptor == NONE {
            return None;
        }
        let into = match descriptor & !3 {
            0 => Into::Words,
            _ if descriptor & 2 != 0 => Into::Window(Fpage(descriptor & !3)),
            buffer => Into::Buffer(buffer),
        };
        Some(Receive { open: descriptor & 1 != 0, into })
    }
}

/// Words that a message has in registers.
pub const REGISTER_WORDS: u32 = 2;
/// Most strings of a message, and bytes of each.
pub const STRINGS_MOST: u32 = 31;
pub const STRING_MOST: u32 = 4 << 20;

/// Offsets in a message buffer: the window for flexpages, what the buffer can hold, what is to be sent, and the words, the first of
/// which are only places of those in registers.
pub mod buffer {
    pub const WINDOW: u32 = 0;
    pub const SIZE: u32 = 4;
    pub const SEND: u32 = 8;
    pub const WORDS: u32 = 12;
    /// Bytes of a string's item, and the places of its words: how much is sent from where, and taken to where.
    pub const ITEM: u32 = 16;
    pub const SEND_SIZE: u32 = 0;
    pub const RECEIVE_SIZE: u32 = 8;
}

/// How much a buffer holds or a message has: words and strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub words: u32,
    pub strings: u32,
}

impl Amount {
    /// As a dope has it.
    pub const fn of(dope: u32) -> Amount {
        Amount { words: dope >> 13, strings: dope >> 8 & 0x1f }
    }

    pub const fn dope(self) -> u32 {
        self.words << 13 | self.strings << 8
    }
}

/// In the result: flexpages have come.
pub const MAPPED: u32 = 2;
/// The bits of the error.
pub const ERROR: u32 = 0xf0;

/// Why a call did not do all that it was to do. The sender's number has [`Error::SENDER`] besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The partner does not exist.
    Missing = 0x10,
    Timeout = 0x20,
    /// `lthread_ex_regs`.
    Canceled = 0x40,
    /// What was sent could not be mapped.
    MapFailed = 0x60,
    /// The time that the sender has for the receiver's page faults was over, and the other way round.
    SenderFaults = 0x80,
    ReceiverFaults = 0xa0,
    /// The other side was canceled or ended in the middle of the message.
    Aborted = 0xc0,
    /// The message was longer than what the receiver had room for.
    Cut = 0xe0,
}

impl Error {
    /// The error happened in the phase in which the thread sent.
    pub const SENDER: u32 = 0x10;

    /// The receiver's number.
    pub const fn receiving(self) -> u32 {
        self as u32
    }

    /// The sender's.
    pub const fn sending(self) -> u32 {
        match self {
            // There is but one number for it.
            Error::Missing => self as u32,
            _ => self as u32 | Error::SENDER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors() {
        assert_eq!(Send::of(NONE), None);
        assert_eq!(Send::of(0), Some(Send { map: false, buffer: None }));
        assert_eq!(Send::of(2), Some(Send { map: true, buffer: None }));
        assert_eq!(Send::of(0x1003), Some(Send { map: true, buffer: Some(0x1000) }));
        assert_eq!(Receive::of(NONE), None);
        assert_eq!(Receive::of(1), Some(Receive { open: true, into: Into::Words }));
        assert_eq!(Receive::of(0x1004), Some(Receive { open: false, into: Into::Buffer(0x1004) }));
        let whole = Receive { open: true, into: Into::Window(Fpage::WHOLE) };
        assert_eq!(Receive::of(Fpage::WHOLE.0 | 3), Some(whole));
    }

    #[test]
    fn each_error_has_two_numbers_but_one() {
        assert_eq!((Error::Missing.sending(), Error::Missing.receiving()), (0x10, 0x10));
        assert_eq!((Error::Cut.sending(), Error::Cut.receiving()), (0xf0, 0xe0));
        assert_eq!(Amount::of(Amount { words: 2, strings: 31 }.dope()), Amount { words: 2, strings: 31 });
    }
}
