//! Moving messages between AF_UNIX sockets.

use alloc::sync::Arc;
use alloc::vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::net::{Ucred, msg, so, sock};
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};

use super::{Charge, UnixNote, UnixRecord, UnixSocket};
use crate::caller::Caller;
use crate::file::Events;
use crate::net::addr::{SockAddr, UnixName};
use crate::net::common::shut;
use crate::net::filter::Packet;
use crate::net::records::Record;
use crate::net::socket::{NetCaller, Outgoing, Received};

/// Most datagrams an unconnected receiver queues (net.unix.max_dgram_qlen as distributions set it).
const QUEUE_LEN: usize = 512;
/// What a record costs its sender beside its bytes.
const OVERHEAD: usize = 512;
/// Longest record, whatever SO_SNDBUFFORCE sets: it is one piece of the kernel's memory. (Linux ends at about the same size, for the
/// same reason.)
const RECORD_MOST: usize = 4 << 20;

impl UnixSocket {
    /// The credentials to attach, when either side asked for them.
    fn cred_for(&self, caller: &dyn Caller, receiver: &UnixSocket, message: &Outgoing) -> Option<Ucred> {
        let wanted = self.common.flag(so::PASSCRED) || receiver.common.flag(so::PASSCRED);
        let own = || {
            let cred = caller.cred();
            Ucred { pid: caller.pid(), uid: cred.uid, gid: cred.gid }
        };
        wanted.then(|| message.cred.unwrap_or_else(own))
    }

    fn check_send(&self, message: &Outgoing) -> Result<()> {
        if message.flags & msg::OOB != 0 && self.common.kind != sock::STREAM {
            return Err(Errno::EOPNOTSUPP);
        }
        if message.rights.is_some() && self.space.flight.is_crowded() {
            self.space.flight.collect();
        }
        Ok(())
    }

    fn check_open(&self) -> Result<()> {
        if self.common.shut() & shut::SEND != 0 { Err(Errno::EPIPE) } else { Ok(()) }
    }

    pub(super) fn send_stream(&self, caller: &dyn Caller, buf: &mut WriteBuf<'_>, message: &Outgoing) -> Result<usize> {
        // Cloned: the copy from the sender's memory may wait for a page.
        let peer = self.peer.read().clone();
        if message.to.is_some() {
            return Err(if peer.is_some() { Errno::EISCONN } else { Errno::EOPNOTSUPP });
        }
        let peer = peer.as_ref().ok_or(Errno::ENOTCONN)?;
        self.check_send(message)?;
        self.check_open()?;
        if peer.is_released() || peer.common.shut() & shut::RECEIVE != 0 {
            return Err(Errno::EPIPE);
        }
        let cred = self.cred_for(caller, peer, message);
        let note = (cred.is_some() || message.rights.is_some()).then(|| UnixNote {
            cred: cred.unwrap_or(NOBODY),
            rights: message.rights.clone(),
            mark: 0,
        });
        let most = self.common.sndbuf.load(Ordering::Relaxed);
        if message.flags & msg::OOB != 0 {
            return self.send_urgent(peer, buf, most, note);
        }
        let sent = peer.inbox.write(buf, most, note)?;
        if sent > 0 {
            peer.common.wake_readers();
        }
        Ok(sent)
    }

    pub(super) fn receive_stream(&self, buf: &mut ReadBuf<'_>, flags: u32, want_from: bool) -> Result<Received> {
        if flags & msg::OOB != 0 {
            return self.receive_urgent(buf, flags);
        }
        if buf.done() > 0 && self.is_at_mark() {
            // The call ends with what it has got.
            return Ok(Received::default());
        }
        // Looked at before the queue: what was sent before the end is found in the queue then.
        let ended = self.common.shut() & shut::RECEIVE != 0;
        let failed = self.common.has_error();
        let room = buf.left();
        // Bytes of different senders are read apart by those who ask who sent them.
        let passcred = self.common.flag(so::PASSCRED);
        let joins = |one: Option<&UnixNote>, next: Option<&UnixNote>| !passcred || sender(one) == sender(next);
        // An urgent byte that comes while this looks for bytes is marked before it is in the queue.
        let sink = |bytes: &[u8]| if self.urgent.is_marked() { Err(Errno::EAGAIN) } else { buf.put(bytes) };
        let taken = match flags & msg::PEEK != 0 {
            true => self.inbox.bytes.peek(self.common.peek.start(), room, joins, sink),
            false => self.inbox.bytes.read(room, joins, sink),
        };
        let taken = match taken {
            Err(Errno::EAGAIN) => self.take_to_mark(buf, flags, joins)?,
            taken => taken?,
        };
        let (len, note) = if flags & msg::PEEK != 0 {
            let peeked = taken;
            peeked.1.iter().filter_map(|note| note.rights.as_ref()).for_each(|rights| rights.note_taken());
            peeked
        } else {
            if taken.0 > 0
                && self.inbox.freed()
                && let Some(peer) = &*self.peer.read()
            {
                peer.common.wake_writers();
            }
            taken
        };
        self.common.peek.note_read(flags, len);
        // Who asks for nothing waits for something to leave where it is.
        if len == 0 && (room > 0 || self.inbox.bytes.is_empty()) {
            if failed {
                self.common.take_error()?;
            }
            return match self.state.lock().connected {
                false => Err(Errno::EINVAL),
                true if ended => Ok(Received::default()),
                true => Err(Errno::EAGAIN),
            };
        }
        let mut received = Received::bytes(len);
        received.cred = passcred.then(|| sender(note.as_ref()));
        received.rights = note.and_then(|note| note.rights);
        if want_from {
            received.from = self.peer.read().as_ref().and_then(|peer| named(peer.unix_name()));
        }
        Ok(received)
    }

    /// Where a record goes.
    fn destination(&self, names: Option<&dyn NetCaller>, message: &Outgoing) -> Result<Arc<UnixSocket>> {
        match &message.to {
            Some(_) if self.common.kind == sock::SEQPACKET => {
                // An address is ignored where there is a connection, as on Linux.
                self.peer.read().clone().ok_or(Errno::ENOTCONN)
            }
            Some(SockAddr::Unix(name)) => self.find(names.ok_or(Errno::EINVAL)?, name),
            Some(_) => Err(Errno::EINVAL),
            None => {
                let peer = self.peer.read().clone().ok_or(Errno::ENOTCONN)?;
                if self.common.kind == sock::DGRAM && peer.is_released() {
                    // The association ends once this side notices the peer's end.
                    *self.peer.write() = None;
                    self.state.lock().connected = false;
                    return Err(Errno::ECONNREFUSED);
                }
                Ok(peer)
            }
        }
    }

    pub(super) fn send_record(
        &self,
        caller: &dyn Caller,
        names: Option<&dyn NetCaller>,
        buf: &mut WriteBuf<'_>,
        message: &Outgoing,
    ) -> Result<usize> {
        let stream_like = self.common.kind == sock::SEQPACKET;
        if stream_like && self.peer.read().is_none() {
            return Err(Errno::ENOTCONN);
        }
        // As on Linux the message is judged before its receiver is looked for.
        self.check_send(message)?;
        if !matches!(&message.to, None | Some(SockAddr::Unix(_))) && !stream_like {
            return Err(Errno::EINVAL);
        }
        self.autobind_if_asked()?;
        let len = buf.left();
        let most = self.common.sndbuf.load(Ordering::Relaxed);
        if len > most.saturating_sub(32) {
            return Err(Errno::EMSGSIZE);
        }
        if len > RECORD_MOST {
            return Err(Errno::ENOBUFS);
        }
        self.check_open()?;
        let target = self.destination(names, message)?;
        if stream_like && target.is_released() || target.common.shut() & shut::RECEIVE != 0 {
            return Err(Errno::EPIPE);
        }
        if !stream_like && !target.accepts_from(self) {
            return Err(Errno::EPERM);
        }
        if !self.has_room(len, most) {
            self.sent.full.store(true, Ordering::SeqCst);
            if !self.has_room(len, most) {
                return Err(Errno::EAGAIN);
            }
        }
        // A peer that is connected back is bounded by the sender's buffer alone.
        if !target.has_peer(self) && target.records.len() >= QUEUE_LEN {
            *self.blocked.lock() = Some(target.common.wait.clone());
            return Err(Errno::EAGAIN);
        }
        let mut data = vec![0; len];
        let got = buf.get(&mut data)?;
        if got < len {
            return Err(Errno::EFAULT);
        }
        if let Some(filter) = target.common.filter.get() {
            let keep = filter.run(&Packet { data: &data, ..Packet::default() }) as usize;
            if keep == 0 {
                // The sender does not learn of it.
                return Ok(len);
            }
            data.truncate(keep);
        }
        self.sent.bytes.fetch_add(len + OVERHEAD, Ordering::SeqCst);
        let with = UnixRecord {
            from: self.unix_name(),
            cred: self.cred_for(caller, &target, message),
            rights: message.rights.clone(),
            _charge: Charge { sender: self.sent.clone(), bytes: len + OVERHEAD },
        };
        if target.records.push(Record::new(data.into_boxed_slice(), with), usize::MAX).is_err() {
            return Err(Errno::ENOBUFS);
        }
        target.common.wake_readers();
        Ok(len)
    }

    /// Whether a record of `len` bytes fits into what is left of SO_SNDBUF; one always does.
    fn has_room(&self, len: usize, most: usize) -> bool {
        let sent = self.sent.bytes.load(Ordering::SeqCst);
        sent == 0 || sent.saturating_add(len) <= most
    }

    pub(super) fn receive_record(&self, buf: &mut ReadBuf<'_>, flags: u32) -> Result<Received> {
        if flags & msg::OOB != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        if self.common.kind == sock::SEQPACKET && !self.state.lock().connected {
            return Err(Errno::ENOTCONN);
        }
        let ended = self.common.shut() & shut::RECEIVE != 0;
        self.common.take_error()?;
        let describe = |record: &Record<UnixRecord>, skipped: usize, len: usize| {
            if let Some(rights) = &record.with.rights {
                rights.note_taken();
            }
            let full = record.data.len() - skipped;
            Received {
                len,
                full,
                from: named(record.with.from.clone()),
                flags: if full > len { msg::TRUNC } else { 0 },
                rights: record.with.rights.clone(),
                cred: self.common.flag(so::PASSCRED).then(|| record.with.cred.unwrap_or(NOBODY)),
                ..Received::default()
            }
        };
        if flags & msg::PEEK != 0 {
            let peeked = self.records.peek(self.common.peek.chosen(), |record, skip| {
                let len = buf.put_whole(&record.data[skip..])?;
                self.common.peek.note_read(flags, len);
                Ok(describe(record, skip, len))
            });
            if let Some(peeked) = peeked {
                return peeked;
            }
        } else {
            let was_full = self.records.len() >= QUEUE_LEN;
            let taken = self.records.pop_if(|record| {
                record.with.rights.iter().for_each(|rights| rights.note_taken());
                true
            });
            if let Some(record) = taken {
                let len = buf.put_whole(&record.data)?;
                self.common.peek.note_read(flags, record.data.len());
                let received = describe(&record, 0, len);
                drop(record);
                if was_full {
                    self.common.wake_writers();
                }
                return Ok(received);
            }
        }
        if ended { Ok(Received::default()) } else { Err(Errno::EAGAIN) }
    }

    /// The events of poll(2) that hold now.
    pub(super) fn ready(&self) -> Events {
        let mut events = Events::empty();
        let shut = self.common.shut();
        let readable = {
            let state = self.state.lock();
            if let Some(listener) = &state.listener {
                if !listener.pending.is_empty() {
                    events |= Events::IN | Events::RDNORM;
                }
                if shut & shut::RECEIVE != 0 {
                    events |= Events::IN | Events::RDNORM | Events::RDHUP;
                }
                if shut == shut::BOTH {
                    events |= Events::HUP;
                }
                return events;
            }
            if self.common.kind != sock::DGRAM && !state.connected {
                events |= Events::HUP;
            }
            match self.common.kind {
                sock::STREAM => {
                    // What was taken apart is still there to be passed, and as on Linux a reader is notified.
                    // SO_RCVLOWAT is for reads that wait.
                    !self.inbox.bytes.is_empty() || self.is_at_mark()
                }
                _ => !self.records.is_empty(),
            }
        };
        if self.common.has_error() {
            events |= Events::ERR;
        }
        if shut == shut::BOTH {
            events |= Events::HUP;
        }
        if shut & shut::RECEIVE != 0 {
            events |= Events::RDHUP | Events::IN | Events::RDNORM;
        }
        if readable {
            events |= Events::IN | Events::RDNORM;
        }
        if self.urgent.has_byte() {
            events |= Events::PRI;
        }
        if self.writable() {
            events |= Events::OUT | Events::WRNORM | Events::WRBAND;
        }
        events
    }

    fn writable(&self) -> bool {
        let most = self.common.sndbuf.load(Ordering::Relaxed);
        // Cloned: no socket's peer is looked for with another's locked.
        let peer = self.peer.read().clone();
        if self.common.kind == sock::STREAM {
            return peer.as_ref().is_none_or(|peer| peer.is_released() || peer.inbox.writable(most));
        }
        let free = || self.sent.bytes.load(Ordering::SeqCst).saturating_mul(4) <= most;
        if !free() {
            self.sent.full.store(true, Ordering::SeqCst);
            if !free() {
                return false;
            }
        }
        self.common.kind != sock::DGRAM
            || peer.as_ref().is_none_or(|peer| peer.has_peer(self) || peer.records.len() < QUEUE_LEN)
    }
}

/// What a receiver that wants credentials gets for bytes sent before anybody wanted any.
pub(super) const NOBODY: Ucred = Ucred { pid: 0, uid: 65534, gid: 65534 };

/// Who sent the bytes that a note hangs on.
fn sender(note: Option<&UnixNote>) -> Ucred {
    note.map_or(NOBODY, |note| note.cred)
}

/// A sender without a name has no address at all.
fn named(name: UnixName) -> Option<SockAddr> {
    (name != UnixName::Unnamed).then_some(SockAddr::Unix(name))
}
