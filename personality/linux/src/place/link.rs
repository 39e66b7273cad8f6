//! Messages of any length between this kernel and one other, over a channel: requests with replies, and reports that have none.
//!
//! The order of messages is kept: the thread that takes them out of the channel gives replies to those who wait for them, and leaves the rest to the one thread that
//! serves. What is sent waits here while the other side's window is full, up to a bound: a tile that takes nothing out has broken the protocol.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::tiles::Channel;
use janua_port::{Machine, Nanos};
use janua_rt::waitq::{Notify, Target};
use janua_rt::{Mutex, wake};

/// Bytes of one message behind its head.
pub const BODY_MOST: usize = 256 << 10;
/// Bytes of one transfer of a file: a pipe's usual capacity.
pub const TRANSFER_MOST: usize = 64 << 10;
/// Bytes that may wait for the other side.
const WAITING_MOST: usize = 4 << 20;
/// Messages that have come and nobody has acted on.
const INBOX_MOST: usize = 4096;
/// A part of a message that goes at once. Short, so that the other side begins with it while the next is written.
const PART: usize = 1 << 10;
/// How long an answer may take: then the other tile counts as broken.
const PATIENCE: Nanos = 10_000_000_000;
/// How long the serving thread may take for what has come.
const CATCHES_UP: Nanos = 1_000_000_000;
/// How long one looks for a message before it sleeps.
const SPIN: Nanos = 20_000;

/// The last part of a message; others follow.
const LAST: u8 = 1;
const MORE: u8 = 0;

/// What a message is. Numbers are the same on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// From the home tile: begin a program (body: [`super::wire::Start`]).
    Start = 1,
    /// A signal for a process (`handle`), and for others on the tile of its group.
    Signal,
    Group,
    /// What was asked by `id` has this result (`a`), and more of it in `b` and the body.
    Reply,
    /// A file may be ready that was not.
    Ready,
    /// To the home tile: the process `handle` runs, does not (`a`: the error), has ended (`a`: the wait status), has stopped (`a`: by what signal), goes on.
    Started,
    Refused,
    Ended,
    Stopped,
    Continued,
    /// Of the file `handle`: asked by `id`, but for the last two.
    Read,
    Write,
    Poll,
    Seek,
    Attr,
    Size,
    Held,
    Sync,
    Truncate,
    Flags,
    Close,
    /// The process `handle` sends the signal `b` to `a`, as kill(2) has it.
    Kill,
}

impl Kind {
    const ALL: [Kind; 22] = [
        Kind::Start,
        Kind::Signal,
        Kind::Group,
        Kind::Reply,
        Kind::Ready,
        Kind::Started,
        Kind::Refused,
        Kind::Ended,
        Kind::Stopped,
        Kind::Continued,
        Kind::Read,
        Kind::Write,
        Kind::Poll,
        Kind::Seek,
        Kind::Attr,
        Kind::Size,
        Kind::Held,
        Kind::Sync,
        Kind::Truncate,
        Kind::Flags,
        Kind::Close,
        Kind::Kill,
    ];
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub kind: Kind,
    pub id: u32,
    /// A process or a file, as the home tile numbers them.
    pub handle: u32,
    pub a: u64,
    pub b: u64,
    pub body: Vec<u8>,
}

/// Kind, three zeroes, id, handle, four zeroes, a, b.
const HEAD: usize = 32;

impl Message {
    pub fn new(kind: Kind, handle: u32, a: u64, b: u64) -> Message {
        Message { kind, id: 0, handle, a, b, body: Vec::new() }
    }

    pub fn with(self, body: Vec<u8>) -> Message {
        Message { body, ..self }
    }

    fn head(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[0] = self.kind as u8;
        head[4..8].copy_from_slice(&self.id.to_le_bytes());
        head[8..12].copy_from_slice(&self.handle.to_le_bytes());
        head[16..24].copy_from_slice(&self.a.to_le_bytes());
        head[24..32].copy_from_slice(&self.b.to_le_bytes());
        head
    }

    /// EPROTO for bytes that no message has.
    fn decode(bytes: &[u8]) -> Result<Message> {
        let (head, body) = bytes.split_at_checked(HEAD).ok_or(Errno::EPROTO)?;
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == head[0]).ok_or(Errno::EPROTO)?;
        let word = |at: usize| head[at..at + 4].iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let message = Message { kind, id: word(4), handle: word(8), a: long(16), b: long(24), body: body.to_vec() };
        // There is one way to say each.
        if message.head() == head { Ok(message) } else { Err(Errno::EPROTO) }
    }

    /// The parts it is sent in.
    fn parts(&self) -> Vec<Vec<u8>> {
        let whole = [&self.head()[..], &self.body].concat();
        let count = whole.len().div_ceil(PART);
        let part = |(at, bytes): (usize, &[u8])| [&[if at + 1 == count { LAST } else { MORE }], bytes].concat();
        whole.chunks(PART).enumerate().map(part).collect()
    }
}

/// Puts messages together again.
#[derive(Default)]
struct Incoming {
    /// What has come of a part, and of the message it belongs to.
    part: Vec<u8>,
    message: Vec<u8>,
}

impl Incoming {
    /// A part is whole: the message, if it is the last. EPROTO.
    fn add(&mut self) -> Result<Option<Message>> {
        let (mark, bytes) = self.part.split_first().ok_or(Errno::EPROTO)?;
        if bytes.is_empty() || *mark > LAST || self.message.len() + bytes.len() > HEAD + BODY_MOST {
            return Err(Errno::EPROTO);
        }
        self.message.extend_from_slice(bytes);
        let last = *mark == LAST;
        self.part.clear();
        if !last {
            return Ok(None);
        }
        let message = Message::decode(&self.message);
        self.message.clear();
        message.map(Some)
    }
}

/// What a thread sleeps on.
pub struct Bell {
    word: AtomicU32,
    machine: &'static dyn Machine,
}

impl Bell {
    pub fn new(machine: &'static dyn Machine) -> Bell {
        Bell { word: AtomicU32::new(wake::QUIET), machine }
    }

    pub fn ring(&self) {
        if wake::raise(&self.word) == wake::Raised::Unpark {
            self.machine.park().unpark(&self.word, 1);
        }
    }

    /// Sleeps until `test` returns something, which is tried after each ring, or until the deadline.
    pub fn wait<T>(&self, deadline: Option<Nanos>, mut test: impl FnMut() -> Option<T>) -> Option<T> {
        loop {
            wake::rearm(&self.word);
            if let Some(value) = test() {
                return Some(value);
            }
            if deadline.is_some_and(|at| self.machine.clock().monotonic() >= at) {
                return None;
            }
            if wake::intend_to_park(&self.word) {
                self.machine.park().park(&self.word, wake::PARKED, deadline);
            }
        }
    }
}

impl Notify for Bell {
    fn notify(&self, _events: u32) {
        self.ring();
    }
}

/// Somebody who waits for a reply.
struct Asker {
    reply: Mutex<Option<Message>>,
    bell: Bell,
}

#[derive(Default)]
struct Outgoing {
    parts: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// This kernel's side.
pub struct Link {
    pub tile: u32,
    machine: &'static dyn Machine,
    channel: Channel,
    outgoing: Mutex<Outgoing>,
    incoming: Mutex<Incoming>,
    inbox: Mutex<VecDeque<Message>>,
    /// Messages that were ever put there, and those that have been acted on.
    came: AtomicUsize,
    acted: AtomicUsize,
    askers: Mutex<BTreeMap<u32, Arc<Asker>>>,
    last_id: AtomicU32,
    /// The serving thread's.
    bell: Arc<Bell>,
    broken: AtomicBool,
}

impl Link {
    pub fn new(machine: &'static dyn Machine, channel: Channel) -> Arc<Link> {
        Arc::new(Link {
            tile: channel.peer(),
            machine,
            channel,
            outgoing: Mutex::default(),
            incoming: Mutex::default(),
            inbox: Mutex::default(),
            came: AtomicUsize::new(0),
            acted: AtomicUsize::new(0),
            askers: Mutex::default(),
            last_id: AtomicU32::new(0),
            bell: Arc::new(Bell::new(machine)),
            broken: AtomicBool::new(false),
        })
    }

    /// Nothing is to be had of the other side any more.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }

    /// Gives the other side up: the serving thread ends, and with it what depends on the link.
    pub fn break_off(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.bell.ring();
    }

    /// Sends a message, now or when there is room. From anywhere: it wakes no queue of this kernel's.
    pub fn post(&self, message: &Message) {
        let mut outgoing = self.outgoing.lock();
        if outgoing.bytes > WAITING_MOST {
            drop(outgoing);
            return self.break_off();
        }
        for part in message.parts() {
            outgoing.bytes += part.len();
            outgoing.parts.push_back(part);
        }
        self.flush_locked(&mut outgoing);
    }

    fn flush_locked(&self, outgoing: &mut Outgoing) {
        while let Some(part) = outgoing.parts.front() {
            match self.channel.send(part) {
                Ok(()) => {
                    outgoing.bytes -= part.len();
                    outgoing.parts.pop_front();
                }
                Err(Errno::EAGAIN) => return,
                Err(_) => return self.break_off(),
            }
        }
    }

    /// Takes out what has come: replies to their askers, the rest into the inbox. EPROTO, EHOSTDOWN, EPIPE.
    fn pump(&self) -> Result<()> {
        {
            let mut outgoing = self.outgoing.lock();
            self.flush_locked(&mut outgoing);
        }
        let mut incoming = self.incoming.lock();
        loop {
            if self.is_broken() {
                return Err(Errno::EHOSTDOWN);
            }
            if !self.channel.receive(&mut incoming.part)? {
                return Ok(());
            }
            let Some(message) = incoming.add()? else { continue };
            if message.kind != Kind::Reply {
                let mut inbox = self.inbox.lock();
                if inbox.len() >= INBOX_MOST {
                    return Err(Errno::EPROTO);
                }
                inbox.push_back(message);
                self.came.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            // Nobody waits for an answer that comes too late.
            if let Some(asker) = self.askers.lock().remove(&message.id) {
                *asker.reply.lock() = Some(message);
                asker.bell.ring();
            }
        }
    }

    /// Serves until the link is over: each message to `act`, one after the other. `spins`: the next message is looked for a while before the thread sleeps.
    pub fn serve(&self, spins: bool, mut act: impl FnMut(Message)) {
        let spin = if spins { SPIN } else { 0 };
        let _heard = self.channel.queue().register(Target::Notify(self.bell.clone()), u32::MAX);
        self.bell.wait(None, || {
            let mut quiet = self.machine.clock().monotonic();
            loop {
                if self.pump().is_err() {
                    return Some(());
                }
                let message = self.inbox.lock().pop_front();
                match message {
                    Some(message) => {
                        act(message);
                        self.acted.fetch_add(1, Ordering::SeqCst);
                        quiet = self.machine.clock().monotonic();
                    }
                    // The next often follows at once.
                    None if !self.machine.park().is_wanted() && self.machine.clock().monotonic() - quiet < spin => {
                        core::hint::spin_loop();
                    }
                    None => return None,
                }
            }
        });
        self.broken.store(true, Ordering::SeqCst);
        let askers = core::mem::take(&mut *self.askers.lock());
        askers.into_values().for_each(|asker| asker.bell.ring());
    }

    /// Waits until what has come before now has been acted on: what an answer is to be seen after. Not for the serving thread, nor for long.
    pub fn catch_up(&self) {
        let came = self.came.load(Ordering::SeqCst);
        let deadline = self.machine.clock().monotonic() + CATCHES_UP;
        while (self.acted.load(Ordering::SeqCst).wrapping_sub(came) as isize) < 0
            && !self.is_broken()
            && self.machine.clock().monotonic() < deadline
        {
            self.bell.ring();
            self.machine.park().yield_now();
        }
    }

    /// Asks and waits for the answer, which is bounded: what is not answered in time breaks the link. EIO then, and when it is broken already; the
    /// error that is answered.
    pub fn ask(&self, message: Message) -> Result<Message> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let asker = Arc::new(Asker { reply: Mutex::new(None), bell: Bell::new(self.machine) });
        self.askers.lock().insert(id, asker.clone());
        self.post(&Message { id, ..message });
        let begun = self.machine.clock().monotonic();
        let answered = || asker.reply.lock().take();
        let reply = asker.bell.wait(Some(begun + PATIENCE), || {
            loop {
                // Who asks looks itself for a while: the other side may be quick.
                let over = self.pump().is_err();
                if let Some(reply) = answered() {
                    return Some(Ok(reply));
                }
                if over || self.is_broken() {
                    return Some(Err(Errno::EIO));
                }
                if self.machine.park().is_wanted() || self.machine.clock().monotonic() - begun > SPIN {
                    return None;
                }
                core::hint::spin_loop();
            }
        });
        if !self.inbox.lock().is_empty() {
            self.bell.ring();
        }
        self.askers.lock().remove(&id);
        let Some(reply) = reply else {
            self.break_off();
            return Err(Errno::EIO);
        };
        let reply = reply?;
        Errno::from_raw(reply.a as isize)?;
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn through(incoming: &mut Incoming, parts: &[Vec<u8>]) -> Result<Option<Message>> {
        let mut last = None;
        for part in parts {
            incoming.part.extend_from_slice(part);
            last = incoming.add()?;
        }
        Ok(last)
    }

    #[test]
    fn a_message_comes_as_it_was_sent() {
        let mut incoming = Incoming::default();
        for len in [0, 1, PART - HEAD, PART - HEAD + 1, 3 * PART, BODY_MOST] {
            let body: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let message = Message { id: 7, ..Message::new(Kind::Write, 9, u64::MAX - 1, 5) }.with(body);
            assert_eq!(through(&mut incoming, &message.parts()), Ok(Some(message)));
        }
    }

    #[test]
    fn what_no_message_is_breaks_the_protocol() {
        let good = Message::new(Kind::Ready, 1, 2, 3).parts().concat();
        let bad = |change: fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            through(&mut Incoming::default(), &[bytes])
        };
        assert!(matches!(bad(|_| ()), Ok(Some(_))));
        for change in [
            (|bytes| bytes.truncate(HEAD)) as fn(&mut Vec<u8>),
            |bytes| bytes[0] = 2,
            |bytes| bytes[1] = 0,
            |bytes| bytes[1] = Kind::ALL.len() as u8 + 1,
            |bytes| bytes[2] = 1,
            |bytes| bytes[13] = 1,
            |bytes| bytes.truncate(1),
            Vec::clear,
        ] {
            assert_eq!(bad(change), Err(Errno::EPROTO));
        }
        let mut long = vec![[&[MORE][..], &[0; PART]].concat(); BODY_MOST / PART + 1];
        assert_eq!(through(&mut Incoming::default(), &long), Err(Errno::EPROTO));
        long.truncate(BODY_MOST / PART);
        assert_eq!(through(&mut Incoming::default(), &long), Ok(None));
    }

    #[test]
    fn kinds_have_their_numbers() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at + 1);
        }
    }
}
