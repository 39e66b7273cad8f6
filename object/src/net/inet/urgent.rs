//! Urgent data of streams (MSG_OOB; tcp(7)): one byte at a time, which is read apart, and its place in the stream.
//!
//! The byte is in the queue as the others are, as a stretch of its own that bears a [`Mark`]. A read ends in front of the mark;
//! the next begins behind it, or at it with SO_OOBINLINE. Only the last byte sent urgently is urgent: a mark before it means
//! nothing any more.
//!
//! Lock order: `urgent`, then those of the queue.

use alloc::sync::Arc;
use alloc::vec;

use janua_abi::linux::net::{msg, so};
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};

use super::tcp::TcpSocket;
use crate::net::bytes::Note;
use crate::net::socket::Received;
use crate::net::urgent::State;

/// Most bytes sent at a time with MSG_OOB.
const MOST: usize = 64 * 1024;

/// What an urgent byte in a queue bears: its turn among those of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u32);

impl Note for Mark {
    fn take(&mut self) -> Mark {
        *self
    }

    fn rest(&self) -> Option<Mark> {
        None
    }

    fn ends_read(&self) -> bool {
        false
    }
}

impl TcpSocket {
    fn inline(&self) -> bool {
        self.inet.common.flag(so::OOBINLINE)
    }

    /// Whether the next byte of the stream is the urgent one.
    fn is_next(&self, state: &State) -> bool {
        self.is_behind(state, 0)
    }

    /// Whether the byte behind the next `skip` ones is the urgent one.
    fn is_behind(&self, state: &State, skip: usize) -> bool {
        let found = self.inbox.bytes.peek(skip, 1, |_, _| false, |bytes| Ok(bytes.len()));
        found.is_ok_and(|(_, note)| note == Some(Mark(state.turn)))
    }

    /// SIOCATMARK.
    pub(super) fn is_at_mark(&self) -> bool {
        self.urgent.is_marked() && self.is_next(&self.urgent.state.lock())
    }

    /// Whether a read passes over the next byte.
    pub(super) fn skips_next(&self) -> bool {
        self.urgent.is_marked() && !self.inline() && self.is_next(&self.urgent.state.lock())
    }

    /// FIONREAD: bytes a read could get, as far as the urgent one.
    pub(super) fn bytes_before_mark(&self) -> usize {
        if !self.urgent.is_marked() || self.inline() {
            return self.inbox.bytes.len();
        }
        let state = self.urgent.state.lock();
        if self.is_next(&state) {
            return 0;
        }
        let mark = Mark(state.turn);
        let before = self.inbox.bytes.peek(0, usize::MAX, |_, next| next != Some(&mark), |bytes| Ok(bytes.len()));
        before.map_or(0, |(len, _)| len)
    }

    /// Sends to `peer`: the last byte is urgent, those before it are not.
    pub(super) fn send_urgent(&self, peer: &Arc<TcpSocket>, buf: &mut WriteBuf<'_>, window: usize) -> Result<usize> {
        if !peer.inbox.writable(window) {
            return Err(Errno::EAGAIN);
        }
        let mut bytes = vec![0; buf.left().min(window / 3).min(MOST)];
        let len = buf.get(&mut bytes)?;
        let put = |bytes: &[u8], mark| peer.inbox.write(&mut WriteBuf::kernel(bytes), usize::MAX, mark);
        let (before, last) = match bytes[..len].split_last() {
            Some((&last, before)) if buf.left() == 0 => (before, Some(last)),
            _ => (&bytes[..len], None),
        };
        put(before, None)?;
        let mut queue = None;
        if let Some(byte) = last {
            let mut state = peer.urgent.state.lock();
            if peer.urgent.is_marked() && !peer.inline() && peer.is_next(&state) {
                // An old byte that nobody has passed becomes one of the stream, unless it is the next.
                peer.inbox.bytes.read(1, |_, _| false, |bytes| Ok(bytes.len()))?;
            }
            state.turn = state.next_turn();
            state.byte = Some(byte);
            peer.urgent.set_marked();
            put(&[byte], Some(Mark(state.turn)))?;
            queue = state.queue.clone();
        }
        peer.inet.common.wake_readers();
        if let Some(queue) = queue {
            queue.wake_all();
        }
        Ok(len)
    }

    /// Takes what a read with `flags` gets while there is a mark: how many bytes.
    pub(super) fn take_to_mark(&self, buf: &mut ReadBuf<'_>, flags: u32) -> Result<usize> {
        let queue = &self.inbox.bytes;
        let mut state = self.urgent.state.lock();
        let (mark, inline, peek) = (Mark(state.turn), self.inline(), flags & msg::PEEK != 0);
        let next = self.is_next(&state);
        if next && !inline && !peek {
            queue.read(1, |_, _| false, |bytes| Ok(bytes.len()))?;
        }
        let room = buf.left();
        let joins = |_: Option<&Mark>, next: Option<&Mark>| next != Some(&mark);
        let sink = |bytes: &[u8]| if flags & msg::TRUNC != 0 { Ok(bytes.len()) } else { buf.put(bytes) };
        let taken = if peek {
            let start = self.inet.common.peek.start();
            let passes = !inline && self.is_behind(&state, start);
            queue.peek(start + usize::from(passes), room, joins, sink)
        } else {
            queue.read(room, joins, sink)
        };
        let passed = next && !peek && (!inline || taken.as_ref().is_ok_and(|(len, _)| *len > 0));
        if passed {
            self.urgent.pass(&mut state);
        }
        Ok(taken?.0)
    }

    /// recv(2) with MSG_OOB. EINVAL when there is no urgent byte, or it was read, or is in the stream.
    pub(super) fn receive_urgent(&self, buf: &mut ReadBuf<'_>, flags: u32) -> Result<Received> {
        if self.inline() {
            return Err(Errno::EINVAL);
        }
        let mut state = self.urgent.state.lock();
        let byte = state.byte.ok_or(Errno::EINVAL)?;
        if flags & msg::PEEK == 0 {
            state.byte = None;
        }
        drop(state);
        let len = buf.put(&[byte])?;
        Ok(Received { flags: msg::OOB, ..Received::bytes(len) })
    }
}
