//! Urgent bytes of AF_UNIX streams (MSG_OOB): the last byte sent with it can be read apart; a read of the others ends in front of its place.
//!
//! The byte is in the queue as a stretch of its own, whose note bears its turn. Taken apart it leaves the empty stretch behind, where a
//! read ends all the same. Only the last one sent is urgent: those before it are bytes of the stream, or nothing once they were taken.
//!
//! Lock order: the socket's state, `state` here, then those of the queue.

use janua_abi::linux::net::{msg, so};
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};

use super::transfer::NOBODY;
use super::{UnixNote, UnixSocket};
use crate::net::socket::Received;
use crate::net::urgent::State;

impl UnixSocket {
    fn inline(&self) -> bool {
        self.common.flag(so::OOBINLINE)
    }

    /// Whether the place of the last urgent byte is the next of the queue.
    fn is_next(&self, state: &State) -> bool {
        state.turn != 0 && self.inbox.bytes.front(|note| note.mark == state.turn)
    }

    /// SIOCATMARK.
    pub(super) fn is_at_mark(&self) -> bool {
        self.urgent.is_marked() && self.is_next(&self.urgent.state.lock())
    }

    /// Sends to `peer`: the last byte is urgent, those before it are not. `note` goes with the first.
    pub(super) fn send_urgent(
        &self,
        peer: &UnixSocket,
        buf: &mut WriteBuf<'_>,
        most: usize,
        note: Option<UnixNote>,
    ) -> Result<usize> {
        let before = buf.left().checked_sub(1).ok_or(Errno::EOPNOTSUPP)?;
        let mut sent = 0;
        if before > 0 {
            sent = buf.within(before, |part| peer.inbox.write(part, most, note.clone()))?;
            peer.common.wake_readers();
            if sent < before {
                return Ok(sent);
            }
        }
        let cred = note.as_ref().map_or(NOBODY, |note| note.cred);
        let rights = note.and_then(|note| note.rights).filter(|_| sent == 0);
        let mut byte = [0];
        if !matches!(buf.clone().get(&mut byte), Ok(1)) {
            return if sent > 0 { Ok(sent) } else { Err(Errno::EFAULT) };
        }
        let mut state = peer.urgent.state.lock();
        peer.urgent.set_marked();
        let (turn, old) = (state.turn, state.byte.replace(byte[0]));
        state.turn = state.next_turn();
        let mark = UnixNote { cred, rights, mark: state.turn };
        match peer.inbox.write(buf, most, Some(mark)) {
            Ok(n) => sent += n,
            Err(errno) => {
                (state.turn, state.byte) = (turn, old);
                return if sent > 0 { Ok(sent) } else { Err(errno) };
            }
        }
        let queue = state.queue.clone();
        drop(state);
        if let Some(queue) = queue {
            queue.wake_all();
        }
        peer.common.wake_readers();
        Ok(sent)
    }

    /// Takes what a read with `flags` gets where there may be a mark, as [`crate::net::bytes::ByteQueue::read`] does.
    pub(super) fn take_to_mark(
        &self,
        buf: &mut ReadBuf<'_>,
        flags: u32,
        joins: impl Fn(Option<&UnixNote>, Option<&UnixNote>) -> bool,
    ) -> Result<(usize, Option<UnixNote>)> {
        let queue = &self.inbox.bytes;
        // Dropped after the locks are given back: descriptors may go with it.
        let mut _passed = None;
        let mut state = self.urgent.state.lock();
        let (turn, peek) = (state.turn, flags & msg::PEEK != 0);
        let unread = self.is_next(&state) && state.byte.is_some();
        let passes = unread && !self.inline();
        if unread && !peek {
            state.byte = None;
        }
        if passes && !peek {
            _passed = queue.consume(|note| note.mark == turn);
        }
        let room = buf.left();
        let joins = |one: Option<&UnixNote>, next: Option<&UnixNote>| {
            next.is_none_or(|next| turn == 0 || next.mark != turn) && joins(one, next)
        };
        let sink = |bytes: &[u8]| buf.put(bytes);
        match peek {
            true => queue.peek(self.common.peek.start() + usize::from(passes), room, joins, sink),
            false => queue.read(room, joins, sink),
        }
    }

    /// recv(2) with MSG_OOB. EINVAL when there is no urgent byte, or it was read, or is in the stream.
    pub(super) fn receive_urgent(&self, buf: &mut ReadBuf<'_>, flags: u32) -> Result<Received> {
        // Before the other lock: who polls takes them in this order.
        let connected = self.state.lock().connected;
        let mut state = self.urgent.state.lock();
        let byte = state.byte.filter(|_| connected && !self.inline()).ok_or(Errno::EINVAL)?;
        let mut passed = None;
        if flags & msg::PEEK == 0 {
            state.byte = None;
            let turn = state.turn;
            passed = self.inbox.bytes.consume(|note| note.mark == turn);
        }
        drop(state);
        drop(passed);
        let len = buf.put(&[byte])?;
        Ok(Received { flags: msg::OOB, ..Received::bytes(len) })
    }
}
