//! What monitors say to each other: one line each, the same on both sides of a channel.

use janua_rt::channel::WORDS;

/// A message between monitors. A channel is meant by its number in their link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// To be answered by [`Message::Pong`] with the same token.
    Ping {
        token: u64,
    },
    Pong {
        token: u64,
    },
    /// Asks who offers the interface to be at the other side of a channel, which is of the sender's half and free.
    Bind {
        channel: usize,
        interface: u32,
    },
    /// There is somebody: the channel is open.
    Bound {
        channel: usize,
    },
    /// There is nobody: the channel is free.
    Refused {
        channel: usize,
    },
    /// The sender has done with the channel. Once both have said so the channel is free.
    Unbind {
        channel: usize,
    },
    /// The sender's kernel is over.
    Farewell,
}

impl Message {
    pub fn encode(self) -> [u64; WORDS] {
        let (kind, channel, value) = match self {
            Message::Ping { token } => (1, 0, token),
            Message::Pong { token } => (2, 0, token),
            Message::Bind { channel, interface } => (3, channel, interface.into()),
            Message::Bound { channel } => (4, channel, 0),
            Message::Refused { channel } => (5, channel, 0),
            Message::Unbind { channel } => (6, channel, 0),
            Message::Farewell => (7, 0, 0),
        };
        [kind, channel as u64, value, 0, 0, 0, 0]
    }

    /// `None` for what no monitor sends.
    pub fn decode(words: &[u64; WORDS]) -> Option<Message> {
        let [kind, channel, value, ..] = *words;
        let channel = usize::try_from(channel).ok()?;
        let message = match kind {
            1 => Message::Ping { token: value },
            2 => Message::Pong { token: value },
            3 => Message::Bind { channel, interface: u32::try_from(value).ok()? },
            4 => Message::Bound { channel },
            5 => Message::Refused { channel },
            6 => Message::Unbind { channel },
            7 => Message::Farewell,
            _ => return None,
        };
        // There is one way to say each.
        (message.encode() == *words).then_some(message)
    }
}
