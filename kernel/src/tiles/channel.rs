//! A channel that two tiles have bound.

use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_port::Link;
use janua_rt::channel::{Endpoint, MESSAGE_MOST, Unsent};
use janua_rt::{Mutex, WaitQueue};

use super::Monitor;

/// What monitor and user have of a channel.
pub(super) struct Bound {
    inner: Mutex<Inner>,
    /// Woken when something may have come, there may be room, or the channel has ended.
    queue: WaitQueue,
}

struct Inner {
    end: Endpoint,
    /// The rest of a message that has been begun, from this byte on.
    rest: Vec<u8>,
    at: usize,
    /// Why there is no other side any more: what it has sent can still be received.
    ended: Option<Errno>,
}

impl Inner {
    /// Sends what has been begun: whether there is nothing left of it.
    fn flush(&mut self) -> Result<bool> {
        if !self.rest.is_empty() {
            match self.end.send_bytes(&self.rest, &mut self.at) {
                Ok(()) => self.rest = Vec::new(),
                Err(Unsent::Full) => return Ok(false),
                Err(Unsent::Length | Unsent::Broken(_)) => return Err(Errno::EPROTO),
            }
        }
        Ok(true)
    }
}

impl Bound {
    /// A channel of the link, by its number; what the own side writes there becomes empty.
    pub fn new(link: &'static Link, channel: usize, side: usize) -> Arc<Bound> {
        let inner = Inner { end: Endpoint::new(&link.channels[channel], side), rest: Vec::new(), at: 0, ended: None };
        Arc::new(Bound { inner: Mutex::new(inner), queue: WaitQueue::new() })
    }

    /// There is no other side any more. The first reason counts.
    pub fn end(&self, why: Errno) {
        self.inner.lock().ended.get_or_insert(why);
        self.queue.wake_all();
    }

    /// The other side has rung: whether something was sent, so that it is to be rung in turn.
    pub fn look(&self) -> bool {
        let mut inner = self.inner.lock();
        let before = inner.at;
        // A broken channel shows itself to who uses it next.
        let _ = inner.flush();
        let sent = inner.at != before;
        drop(inner);
        self.queue.wake_all();
        sent
    }
}

/// A side of a channel to another tile. Dropped, it is unbound; what has not been sent by then is lost.
pub struct Channel {
    pub(super) bound: Arc<Bound>,
    pub(super) monitor: Arc<Monitor>,
    pub(super) peer: u32,
    pub(super) channel: usize,
}

impl Channel {
    /// The tile at the other side.
    pub fn peer(&self) -> u32 {
        self.peer
    }

    /// Woken when another try of what returned EAGAIN, or nothing, is worth while.
    pub fn queue(&self) -> &WaitQueue {
        &self.bound.queue
    }

    /// Sends a message of at most [`MESSAGE_MOST`] bytes (EMSGSIZE), whole or not at all. EAGAIN: the window is full. EPIPE: the other side
    /// has unbound. EHOSTDOWN: its tile has ended. EPROTO: it has broken the channel.
    pub fn send(&self, message: &[u8]) -> Result<()> {
        if message.len() > MESSAGE_MOST {
            return Err(Errno::EMSGSIZE);
        }
        let mut inner = self.bound.inner.lock();
        if let Some(why) = inner.ended {
            return Err(why);
        }
        if !inner.flush()? {
            return Err(Errno::EAGAIN);
        }
        let mut at = 0;
        let sent = inner.end.send_bytes(message, &mut at);
        match sent {
            Ok(()) => {}
            Err(Unsent::Full) if at == 0 => return Err(Errno::EAGAIN),
            // Begun is accepted: the rest goes as the window opens.
            Err(Unsent::Full) => (inner.rest, inner.at) = (message.to_vec(), at),
            Err(Unsent::Length | Unsent::Broken(_)) => return Err(Errno::EPROTO),
        }
        drop(inner);
        self.monitor.ring(self.peer);
        Ok(())
    }

    /// Adds the next message to `into`, or what has come of it: whether it is whole. Where it is not, the next call goes on with it, and with
    /// the same `into`. The errors are those of [`Channel::send`]; what came before an end is received first.
    pub fn receive(&self, into: &mut Vec<u8>) -> Result<bool> {
        let mut inner = self.bound.inner.lock();
        let acknowledged = inner.end.acknowledged_alone();
        let whole = inner.end.receive_bytes(into).map_err(|_| Errno::EPROTO)?;
        let opened = inner.end.acknowledged_alone() != acknowledged;
        let ended = inner.ended;
        drop(inner);
        if opened && ended.is_none() {
            self.monitor.ring(self.peer);
        }
        match ended {
            Some(why) if !whole => Err(why),
            _ => Ok(whole),
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.monitor.unbind(self.peer, self.channel);
    }
}
