//! What monitors say to each other: one line each, the same on both sides of a channel.

use janua_rt::channel::WORDS;

/// A message between monitors. A place is the number of a channel of their link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// To be answered by [`Message::Pong`] with the same token.
    Ping {
        token: u64,
    },
    Pong {
        token: u64,
    },
    /// Asks for a channel to who offers the interface, at a place of the sender's half that is free.
    Bind {
        place: usize,
        interface: u32,
    },
    /// There is somebody: the channel is open.
    Bound {
        place: usize,
    },
    /// There is nobody: the place is free.
    Refused {
        place: usize,
    },
    /// The sender has done with the channel. Once both have said so the place is free.
    Unbind {
        place: usize,
    },
    /// The sender's kernel is over.
    Farewell,
}

impl Message {
    pub fn encode(self) -> [u64; WORDS] {
        let (kind, place, value) = match self {
            Message::Ping { token } => (1, 0, token),
            Message::Pong { token } => (2, 0, token),
            Message::Bind { place, interface } => (3, place, interface.into()),
            Message::Bound { place } => (4, place, 0),
            Message::Refused { place } => (5, place, 0),
            Message::Unbind { place } => (6, place, 0),
            Message::Farewell => (7, 0, 0),
        };
        [kind, place as u64, value, 0, 0, 0, 0]
    }

    /// `None` for what no monitor sends.
    pub fn decode(words: &[u64; WORDS]) -> Option<Message> {
        let [kind, place, value, ..] = *words;
        let place = usize::try_from(place).ok()?;
        let message = match kind {
            1 => Message::Ping { token: value },
            2 => Message::Pong { token: value },
            3 => Message::Bind { place, interface: u32::try_from(value).ok()? },
            4 => Message::Bound { place },
            5 => Message::Refused { place },
            6 => Message::Unbind { place },
            7 => Message::Farewell,
            _ => return None,
        };
        // There is one way to say each.
        (message.encode() == *words).then_some(message)
    }
}
