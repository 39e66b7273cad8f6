//! Messages that are more than words in registers: the sender's thread moves them, with the receiver waiting.

use alloc::sync::Arc;
use alloc::vec;

use janua_abi::l4v2::fpage::{Fpage, window};
use janua_abi::l4v2::message::{Amount, ERROR, Error, Into, MAPPED, REGISTER_WORDS, STRING_MOST, Send, buffer};
use janua_abi::l4v2::timeout::Timeout;
use janua_abi::l4v2::{PAGE, USER_END};
use janua_port::UserMemory;

use crate::ipc::ask_pager;
use crate::memory::{Progress, Transfer};
use crate::state::{Key, Outcome, Phase, Tcb, Wanted};
use crate::system::{Gone, ThreadExt, turn};
use crate::{Seat, Thread};

/// Bytes copied at a time.
const PART: usize = 4096;

/// Why a message ends before its end.
enum Stop {
    Error(Error),
    Gone,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Error(error)
    }
}

impl From<Gone> for Stop {
    fn from(Gone: Gone) -> Stop {
        Stop::Gone
    }
}

/// Whose memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Sender,
    Receiver,
}

/// A message on its way.
struct Message<'a> {
    thread: &'a Thread,
    to: Key,
    receiver: Arc<Seat>,
    /// How long each waits for the other's page faults.
    patience: [Timeout; 2],
    send: Send,
    words: [u32; 2],
    into: Into,
}

/// What has arrived of it.
#[derive(Default)]
struct Arrived {
    amount: Amount,
    mapped: bool,
}

/// How a buffer describes itself.
#[derive(Clone, Copy)]
struct Layout {
    addr: u32,
    window: Fpage,
    /// How much there is to send, or room for.
    amount: Amount,
    /// Where the items of strings begin.
    items: u32,
}

/// Moves the message of the calling thread to one that waits for it, and goes on with the call.
pub async fn run(thread: &Thread, to: Key) -> Result<(), Gone> {
    let Some(message) = message(thread, to) else {
        thread.state().moved(thread.key, to, Outcome::failed(Error::Aborted.receiving()), Some(Error::Aborted));
        return Ok(());
    };
    let mut arrived = Arrived { amount: Amount { words: REGISTER_WORDS, strings: 0 }, mapped: false };
    let error = match message.all(&mut arrived).await {
        Ok(()) => None,
        Err(Stop::Error(error)) => Some(error),
        Err(Stop::Gone) => return Err(Gone),
    };
    let mut state = thread.state();
    let Some(from) = state.get(thread.key).map(|tcb| tcb.id) else { return Err(Gone) };
    let dope = arrived.amount.dope() | if arrived.mapped { MAPPED } else { 0 } | error.map_or(0, Error::receiving);
    state.moved(thread.key, to, Outcome { dope, from, words: message.words }, error);
    Ok(())
}

/// Both sides of it, as they are now.
fn message(thread: &Thread, to: Key) -> Option<Message<'_>> {
    let state = thread.state();
    let (own, other) = (state.get(thread.key)?, state.get(to)?);
    let (send, words) = own.request.send?;
    let into = other.request.receive?.into;
    let patience = [own.request.timeouts.send_faults, other.request.timeouts.receive_faults];
    Some(Message { thread, to, receiver: other.seat.clone(), patience, send, words, into })
}

impl Message<'_> {
    async fn all(&self, arrived: &mut Arrived) -> Result<(), Stop> {
        let room = self.room().await?;
        let sent = match self.send.buffer {
            Some(addr) => Some(self.layout(Side::Sender, addr, buffer::SEND).await?),
            None => None,
        };
        let count = sent.map_or(REGISTER_WORDS, |sent| sent.amount.words.max(REGISTER_WORDS));
        if self.send.map {
            self.map(sent, count, room.window, arrived).await?;
        }
        let taken = count.min(room.amount.words.max(REGISTER_WORDS));
        if let Some(sent) = sent {
            let skipped = buffer::WORDS + 4 * REGISTER_WORDS;
            let len = (taken - REGISTER_WORDS) * 4;
            self.copy(place(sent.addr, skipped)?, place(room.addr, skipped)?, len).await?;
        }
        arrived.amount.words = taken;
        if taken < count {
            return Err(Error::Cut.into());
        }
        let strings = sent.map_or(0, |sent| sent.amount.strings);
        for index in 0..strings {
            if index == room.amount.strings {
                return Err(Error::Cut.into());
            }
            let (from, to) = (sent.map_or(0, |sent| sent.items), room.items);
            self.string(place(from, index * buffer::ITEM)?, place(to, index * buffer::ITEM)?, arrived).await?;
        }
        Ok(())
    }

    /// What the receiver has room for.
    async fn room(&self) -> Result<Layout, Stop> {
        let none = Layout { addr: 0, window: Fpage(0), amount: Amount::default(), items: 0 };
        match self.into {
            Into::Words => Ok(none),
            Into::Window(window) => Ok(Layout { window, ..none }),
            Into::Buffer(addr) => self.layout(Side::Receiver, addr, buffer::SIZE).await,
        }
    }

    /// The layout of a side's buffer; `dope` is the place of the amount that matters.
    async fn layout(&self, side: Side, addr: u32, dope: u32) -> Result<Layout, Stop> {
        let mut head = [0; buffer::WORDS as usize];
        self.read(side, addr, &mut head).await?;
        let word = |at: u32| {
            let at = at as usize;
            u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
        };
        let size = Amount::of(word(buffer::SIZE));
        let items = place(addr, buffer::WORDS + size.words * 4)?;
        Ok(Layout { addr, window: Fpage(word(buffer::WINDOW)), amount: Amount::of(word(dope)), items })
    }

    /// Maps the flexpages that the words are, up to the first that is none.
    async fn map(&self, sent: Option<Layout>, count: u32, into: Fpage, arrived: &mut Arrived) -> Result<(), Stop> {
        let mut pair = self.words;
        let mut at = REGISTER_WORDS;
        loop {
            let [base, page] = pair;
            if Fpage(page).range().is_none() {
                return Ok(());
            }
            let Some(place_of) = window(Fpage(page), into, base) else { return Err(Error::Cut.into()) };
            arrived.mapped = true;
            let page_of = |addr: u64| u32::try_from(addr / u64::from(PAGE)).unwrap_or(u32::MAX);
            let transfer = Transfer {
                from: self.thread.key.task(),
                to: self.to.task(),
                pages: page_of(place_of.source)..page_of(place_of.source + place_of.len),
                target: page_of(place_of.target),
                write: Fpage(page).write(),
                grant: Fpage(page).grant(),
            };
            self.map_one(&transfer)?;
            let Some(sent) = sent.filter(|_| at + 1 < count) else { return Ok(()) };
            let mut words = [0; 8];
            self.read(Side::Sender, place(sent.addr, buffer::WORDS + at * 4)?, &mut words).await?;
            pair = [0, 4].map(|at| u32::from_le_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]]));
            at += 2;
        }
    }

    fn map_one(&self, transfer: &Transfer) -> Result<(), Stop> {
        let memory = &self.thread.kernel.memory;
        let mut next = transfer.pages.start;
        loop {
            match memory.map(transfer, next) {
                Progress::Done => return Ok(()),
                Progress::Failed => return Err(Error::MapFailed.into()),
                Progress::Next(page) => next = page,
            }
            if !self.thread.goes_on() {
                return Err(Stop::Gone);
            }
            self.check()?;
        }
    }

    /// Copies one string: items are at these addresses of the two sides.
    async fn string(&self, from: u32, to: u32, arrived: &mut Arrived) -> Result<(), Stop> {
        let [size, source] = self.pair(Side::Sender, place(from, buffer::SEND_SIZE)?).await?;
        let [room, target] = self.pair(Side::Receiver, place(to, buffer::RECEIVE_SIZE)?).await?;
        let (wanted, room) = (size, room.min(STRING_MOST));
        let len = wanted.min(room);
        self.copy(source, target, len).await?;
        self.write(Side::Receiver, place(to, buffer::SEND_SIZE)?, &len.to_le_bytes()).await?;
        arrived.amount.strings += 1;
        if len < wanted { Err(Error::Cut.into()) } else { Ok(()) }
    }

    async fn pair(&self, side: Side, addr: u32) -> Result<[u32; 2], Stop> {
        let mut bytes = [0; 8];
        self.read(side, addr, &mut bytes).await?;
        Ok([0, 4].map(|at| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])))
    }

    /// Copies from the sender to the receiver.
    async fn copy(&self, from: u32, to: u32, len: u32) -> Result<(), Stop> {
        if len == 0 {
            return Ok(());
        }
        let mut part = vec![0; PART.min(len as usize)];
        let mut done = 0;
        while done < len {
            let count = (len - done).min(PART as u32);
            let part = &mut part[..count as usize];
            self.read(Side::Sender, place(from, done)?, part).await?;
            self.write(Side::Receiver, place(to, done)?, part).await?;
            done += count;
            if !self.thread.goes_on() {
                return Err(Stop::Gone);
            }
        }
        Ok(())
    }

    /// Whether the message is still wanted by both sides.
    fn check(&self) -> Result<(), Stop> {
        let state = self.thread.state();
        let Some(own) = state.get(self.thread.key) else { return Err(Stop::Gone) };
        let bonded = |other: &Tcb| [other.bond, other.outer].contains(&Some(self.thread.key));
        let bonded = state.get(self.to).is_some_and(bonded);
        if own.aborted || !bonded { Err(Error::Aborted.into()) } else { Ok(()) }
    }

    fn memory(&self, side: Side) -> &dyn UserMemory {
        match side {
            Side::Sender => self.thread.user(),
            Side::Receiver => self.receiver.user(),
        }
    }

    async fn read(&self, side: Side, addr: u32, out: &mut [u8]) -> Result<(), Stop> {
        let mut done = 0;
        while done < out.len() {
            let at = place(addr, done as u32)?;
            within(at, out.len() - done)?;
            done += self.memory(side).copy_in_partial(&mut out[done..], at as usize);
            if done < out.len() {
                self.fault(side, place(addr, done as u32)?, false).await?;
            }
        }
        Ok(())
    }

    async fn write(&self, side: Side, addr: u32, data: &[u8]) -> Result<(), Stop> {
        let mut done = 0;
        while done < data.len() {
            let at = place(addr, done as u32)?;
            within(at, data.len() - done)?;
            done += self.memory(side).copy_out_partial(at as usize, &data[done..]);
            if done < data.len() {
                self.fault(side, place(addr, done as u32)?, true).await?;
            }
        }
        Ok(())
    }

    /// Has a side's pager bring a page.
    async fn fault(&self, side: Side, addr: u32, write: bool) -> Result<(), Stop> {
        self.check()?;
        let (within, late) = match side {
            Side::Sender => (self.patience[1], Error::ReceiverFaults),
            Side::Receiver => (self.patience[0], Error::SenderFaults),
        };
        if within.is_zero() {
            return Err(late.into());
        }
        let outcome = match side {
            Side::Sender => Some(ask_pager(self.thread, addr, write, u32::MAX, within).await?),
            Side::Receiver => self.ask_other(Wanted { addr, write, within }).await?,
        };
        self.check()?;
        match outcome.map(|outcome| outcome.dope & ERROR & !Error::SENDER) {
            Some(0) if outcome.is_some_and(|outcome| outcome.dope & ERROR == 0) => Ok(()),
            Some(number) if number == Error::Timeout.receiving() => Err(late.into()),
            _ => Err(Error::Aborted.into()),
        }
    }

    /// Has the receiver ask its pager.
    async fn ask_other(&self, wanted: Wanted) -> Result<Option<Outcome>, Gone> {
        {
            let mut state = self.thread.state();
            if let Some(tcb) = state.get_mut(self.thread.key) {
                tcb.brought = None;
            }
            let Some(other) = state.get_mut(self.to) else { return Ok(None) };
            other.wanted = Some(wanted);
            state.make_ready(self.to);
            state.block(self.thread.key, Phase::Moving, None, Some(self.to));
        }
        turn(self.thread).await?;
        Ok(self.thread.state().get_mut(self.thread.key).ok_or(Gone)?.brought.take())
    }
}

/// An address further on. What would be behind the end of all addresses is cut off.
fn place(addr: u32, more: u32) -> Result<u32, Stop> {
    addr.checked_add(more).ok_or(Stop::Error(Error::Cut))
}

/// No pager is asked for memory of the kernel's.
fn within(addr: u32, len: usize) -> Result<(), Stop> {
    if addr as usize + len <= USER_END as usize { Ok(()) } else { Err(Error::Cut.into()) }
}
