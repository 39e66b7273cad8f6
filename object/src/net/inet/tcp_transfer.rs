//! Moving bytes between stream sockets, and their readiness.

use core::sync::atomic::Ordering;

use janua_abi::linux::net::msg;
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};

use super::tcp::TcpSocket;
use crate::file::Events;
use crate::net::common::shut;
use crate::net::socket::{Outgoing, Received};

/// Bytes in flight in one direction when nobody chose the buffers: enough to keep both sides busy, few enough to stay in the
/// processor's cache.
const WINDOW: usize = 512 * 1024;

/// Bytes that may be unread where nobody chose the buffers and the reader waits for many: the last number of net.ipv4.tcp_rmem.
const RCVBUF_MOST: usize = 6 << 20;

/// Drops up to `most` bytes of `buf`: how many.
fn lose(buf: &mut WriteBuf<'_>, most: usize) -> usize {
    let before = buf.done();
    loop {
        let (lost, _) = (buf.done() - before, buf.user_range());
        buf.advance(most - lost);
        if buf.done() - before == lost {
            return lost;
        }
    }
}

impl TcpSocket {
    /// Bytes that may be unread at `peer`.
    fn window(&self, peer: &TcpSocket) -> usize {
        let (own, other) = (&self.inet.common, &peer.inet.common);
        if own.sized.load(Ordering::Relaxed) | other.sized.load(Ordering::Relaxed) == 0 {
            // As much as a reader waits for has arrived before a writer finds no room.
            return WINDOW.max(other.rcvlowat.load(Ordering::Relaxed).saturating_mul(2));
        }
        own.sndbuf.load(Ordering::Relaxed) + other.rcvbuf.load(Ordering::Relaxed)
    }

    /// Limits SO_RCVLOWAT to half of what can be here unread.
    pub(super) fn cap_mark(&self) {
        let common = &self.inet.common;
        let most = if common.sized.load(Ordering::Relaxed) != 0 { common.rcvbuf.load(Ordering::Relaxed) } else { RCVBUF_MOST };
        common.rcvlowat.fetch_min(most / 2, Ordering::Relaxed);
        // What is here may be enough now.
        common.wake_readers();
    }

    pub(super) fn send_bytes(&self, buf: &mut WriteBuf<'_>, message: &Outgoing) -> Result<usize> {
        let common = &self.inet.common;
        if message.flags & msg::FASTOPEN != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        if buf.done() > 0 && (common.has_error() || common.shut() & shut::SEND != 0) {
            // The call ends with what it has sent; the next one returns the error.
            return Ok(0);
        }
        common.take_error()?;
        if common.shut() & shut::SEND != 0 {
            return Err(Errno::EPIPE);
        }
        let connection = self.peer.read();
        let Some(peer) = connection.as_ref() else {
            drop(connection);
            return Err(if self.is_connecting() { Errno::EAGAIN } else { Errno::EPIPE });
        };
        if peer.wants_nothing() {
            let (peer, window) = (peer.clone(), self.window(peer));
            drop(connection);
            // What is sent is lost, and the answer is a RST.
            let lost = lose(buf, window);
            peer.reset();
            peer.forget_peer(self);
            self.reset();
            return Ok(lost);
        }
        if message.flags & msg::OOB != 0 {
            return self.send_urgent(peer, buf, self.window(peer));
        }
        let sent = peer.inbox.write(buf, self.window(peer), None)?;
        if sent > 0 {
            peer.inet.common.wake_readers();
        }
        Ok(sent)
    }

    /// Whether data that arrives is answered by a RST: nobody is there, or has shut down both directions. (That it receives nothing
    /// any more may be because we have announced that we send nothing any more, and then we do not.)
    fn wants_nothing(&self) -> bool {
        self.released.load(Ordering::SeqCst) || self.inet.common.shut() == shut::BOTH
    }

    pub(super) fn receive_bytes(&self, buf: &mut ReadBuf<'_>, flags: u32) -> Result<Received> {
        if flags & msg::OOB != 0 {
            return self.receive_urgent(buf, flags);
        }
        if flags & msg::ERRQUEUE != 0 {
            // Nothing here ever puts an error into a queue.
            return Err(Errno::EAGAIN);
        }
        let common = &self.inet.common;
        // Looked at before the queue: what was sent before the end is found in the queue then.
        let finished = self.finished.load(Ordering::SeqCst);
        let ended = common.shut() & shut::RECEIVE != 0;
        let failed = common.has_error();
        if buf.done() > 0 && self.is_at_mark() {
            // The call ends with what it has got.
            return Ok(Received::default());
        }
        let room = buf.left();
        let len = self.take(buf, flags)?;
        common.peek.note_read(flags, len);
        if flags & msg::PEEK == 0 && len > 0 && self.inbox.freed() {
            let peer = self.peer.read();
            if let Some(peer) = peer.as_ref() {
                peer.inet.common.wake_writers();
            }
        }
        // Who asks for nothing waits for something to leave where it is.
        if len > 0 || room == 0 && !self.inbox.bytes.is_empty() {
            return Ok(Received::bytes(len));
        }
        if finished {
            return Ok(Received::default());
        }
        if failed {
            common.take_error()?;
        }
        if ended {
            return Ok(Received::default());
        }
        let alone = self.peer.read().is_none();
        if alone && !self.is_connecting() { Err(Errno::ENOTCONN) } else { Err(Errno::EAGAIN) }
    }

    /// Takes what a read with `flags` gets from the queue: how many bytes.
    fn take(&self, buf: &mut ReadBuf<'_>, flags: u32) -> Result<usize> {
        let room = buf.left();
        // An urgent byte that comes while this looks for bytes is marked before it is in the queue.
        let mut sink = |bytes: &[u8]| match flags & msg::TRUNC != 0 {
            _ if self.urgent.is_marked() => Err(Errno::EAGAIN),
            true => Ok(bytes.len()),
            false => buf.put(bytes),
        };
        let taken = if flags & msg::PEEK != 0 {
            self.inbox.bytes.peek(self.inet.common.peek.start(), room, |_, next| next.is_none(), &mut sink)
        } else {
            self.inbox.bytes.read(room, |_, next| next.is_none(), &mut sink)
        };
        match taken {
            Err(Errno::EAGAIN) => self.take_to_mark(buf, flags),
            taken => Ok(taken?.0),
        }
    }

    /// The events of poll(2) that hold now.
    pub(super) fn ready(&self) -> Events {
        let common = &self.inet.common;
        if let Some(pending) = self.pending() {
            return if pending { Events::IN | Events::RDNORM } else { Events::empty() };
        }
        let mut events = Events::empty();
        let shut = common.shut();
        let peer = self.peer.read().clone();
        if common.has_error() {
            events |= Events::ERR;
        }
        if shut == shut::BOTH || self.is_closed() {
            events |= Events::HUP;
        }
        if shut & shut::RECEIVE != 0 {
            events |= Events::IN | Events::RDNORM | Events::RDHUP;
        }
        if peer.is_none() && self.is_connecting() {
            return events;
        }
        if self.inbox.bytes.len().saturating_sub(usize::from(self.skips_next())) >= common.rcvlowat.load(Ordering::Relaxed) {
            events |= Events::IN | Events::RDNORM;
        }
        if self.urgent.has_byte() {
            events |= Events::PRI;
        }
        let writable =
            shut & shut::SEND != 0 || peer.is_none_or(|peer| peer.wants_nothing() || peer.inbox.writable(self.window(&peer)));
        if writable {
            events |= Events::OUT | Events::WRNORM;
        }
        events
    }
}
