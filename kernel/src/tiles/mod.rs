//! What a kernel has to do with the kernels beside it: a monitor, which binds channels to their tiles, and hears when one has ended.
//!
//! Two tiles share a [`Link`] and nothing else. Its first channel is their monitors'. Further ones are bound by the number of an interface: who asks
//! takes one of its own half of the link, so that two who ask at once do not meet; the other monitor looks for who offers the interface, and answers. A channel is
//! free again when both sides have unbound.
//!
//! What the other monitor sends is not believed: what does not fit ends that tile for this one (EPROTO), with all channels to it, and no other. A tile that has ended is
//! noticed by its farewell, or the machine's supervisor reports it ([`Monitor::tile_ended`]).
//!
//! For each other tile there is a thread of the kernel's own that sleeps on this side's bell of their link. Who has sent, or made room, rings the other side's.

mod channel;
mod wire;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_port::tiles::{CHANNELS, TILES_MOST};
use janua_port::{Link, Machine, Nanos, Tiles};
use janua_rt::channel::{Endpoint, Unsent, WHOLE, WORDS};
use janua_rt::waitq::{Notify, Target};
use janua_rt::{Mutex, WaitQueue, wake};

pub use channel::Channel;
pub use wire::Message;

use channel::Bound;

/// Pings to one tile that have not been answered.
pub const PINGS_MOST: usize = 16;

/// Messages to a monitor that does not take them out. One that keeps to the protocol causes fewer: each of its pings and channels is one, and of ours.
const OUTGOING_MOST: usize = 2 * PINGS_MOST + 4 * CHANNELS;

/// A bell that has been rung since its owner looked last.
const RUNG: u32 = wake::WOKEN;

/// Who offers an interface to other tiles.
pub trait Offer: Send + Sync {
    /// A tile has bound a channel. Dropping it refuses to talk.
    fn bound(&self, channel: Channel);
}

/// Rings a bell: whether its owner sleeps and is to be woken.
fn rings(bell: &AtomicU32) -> bool {
    // A read-modify-write, as the sleeper's are: either it finds the bell rung, or this finds it asleep.
    bell.swap(RUNG, Ordering::AcqRel) == wake::PARKED
}

/// A result that another tile sends.
pub struct Answer<T> {
    result: Mutex<Option<Result<T>>>,
    queue: WaitQueue,
}

impl<T> Answer<T> {
    fn new() -> Arc<Answer<T>> {
        Arc::new(Answer { result: Mutex::new(None), queue: WaitQueue::new() })
    }

    /// The result, once, when it is there.
    pub fn take(&self) -> Option<Result<T>> {
        self.result.lock().take()
    }

    /// Woken when it is.
    pub fn queue(&self) -> &WaitQueue {
        &self.queue
    }

    fn give(&self, result: Result<T>) {
        *self.result.lock() = Some(result);
        self.queue.wake_all();
    }

    /// Sleeps the calling thread, one of the kernel's own, until the result is there, or until a point of the monotonic clock.
    pub fn wait(&self, machine: &'static dyn Machine, deadline: Nanos) -> Option<Result<T>> {
        let sleeper = Arc::new(Sleeper { word: AtomicU32::new(wake::QUIET), machine });
        let _registered = self.queue.register(Target::Notify(sleeper.clone()), 0);
        loop {
            wake::rearm(&sleeper.word);
            if let Some(result) = self.take() {
                return Some(result);
            }
            if machine.clock().monotonic() >= deadline {
                return None;
            }
            if wake::intend_to_park(&sleeper.word) {
                machine.park().park(&sleeper.word, wake::PARKED, Some(deadline));
            }
        }
    }
}

/// A thread of the kernel's own that sleeps until it is notified.
struct Sleeper {
    word: AtomicU32,
    machine: &'static dyn Machine,
}

impl Notify for Sleeper {
    fn notify(&self, _events: u32) {
        if wake::raise(&self.word) == wake::Raised::Unpark {
            self.machine.park().unpark(&self.word, 1);
        }
    }
}

/// What a monitor knows of another tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// As [`Monitor::ended`] has it.
    pub ended: Option<Errno>,
    /// Messages of its monitor that were heard, and those that were sent to it.
    pub heard: u64,
    pub said: u64,
}

/// What a channel of a link is used for.
enum Use {
    Free,
    /// This side has asked to have it bound, and what it writes there is empty.
    Asked {
        bound: Arc<Bound>,
        answer: Arc<Answer<Channel>>,
    },
    /// Open, until both sides have unbound.
    Bound {
        bound: Arc<Bound>,
        unbound: bool,
        peer_unbound: bool,
    },
}

struct State {
    end: Endpoint,
    /// What the window has no room for.
    outgoing: VecDeque<[u64; WORDS]>,
    channels: [Use; CHANNELS],
    pings: BTreeMap<u64, Arc<Answer<()>>>,
    last_token: u64,
    heard: u64,
    said: u64,
    ended: Option<Errno>,
}

/// Another tile.
struct Peer {
    link: &'static Link,
    /// Which of each pair of things in the link is this tile's.
    side: usize,
    state: Mutex<State>,
}

/// What is to be done when the state of a peer is unlocked: it locks other things, and may come back.
#[derive(Default)]
struct Then {
    opened: Vec<Opened>,
    given: Vec<Given>,
}

/// A channel for who asked for it, or who offers it.
struct Opened {
    channel: usize,
    bound: Arc<Bound>,
    whose: Whose,
}

enum Whose {
    Asker(Arc<Answer<Channel>>),
    Offerer(Arc<dyn Offer>),
}

enum Given {
    Pong(Arc<Answer<()>>, Result<()>),
    Refused(Arc<Answer<Channel>>, Errno),
    Ended(Arc<Bound>, Errno),
}

impl Given {
    fn give(self) {
        match self {
            Given::Pong(answer, result) => answer.give(result),
            Given::Refused(answer, why) => answer.give(Err(why)),
            Given::Ended(bound, why) => bound.end(why),
        }
    }
}

/// What a look at a peer came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    More,
    Idle,
    Ended,
}

/// Messages looked at before the state is unlocked.
const ROUND: usize = 32;

/// The part of a kernel that speaks to other tiles.
pub struct Monitor {
    machine: &'static dyn Machine,
    own: u32,
    peers: Vec<Option<Peer>>,
    offers: Mutex<BTreeMap<u32, Arc<dyn Offer>>>,
}

impl State {
    /// Puts a message behind those that wait. EPROTO when the other monitor has caused more than one that takes its messages out.
    fn say(&mut self, message: Message) -> Result<()> {
        if self.outgoing.len() >= OUTGOING_MOST {
            return Err(Errno::EPROTO);
        }
        self.outgoing.push_back(message.encode());
        Ok(())
    }

    /// Sends what the window has room for: whether that is anything.
    fn flush(&mut self) -> Result<bool> {
        let mut sent = false;
        while let Some(words) = self.outgoing.front() {
            match self.end.send(words, WHOLE) {
                Ok(()) => {
                    self.outgoing.pop_front();
                    self.said += 1;
                }
                Err(Unsent::Full) => break,
                Err(Unsent::Length | Unsent::Broken(_)) => return Err(Errno::EPROTO),
            }
            sent = true;
        }
        Ok(sent)
    }

    /// Nothing is to be had of the tile any more; what has to be given to whom. Channels are free then, and nobody may ask for one.
    fn end(&mut self, why: Errno) -> Vec<Given> {
        self.ended = Some(why);
        self.outgoing.clear();
        let mut given = Vec::new();
        for channel in &self.channels {
            match channel {
                Use::Free => {}
                Use::Asked { answer, .. } => given.push(Given::Refused(answer.clone(), why)),
                Use::Bound { bound, .. } => given.push(Given::Ended(bound.clone(), why)),
            }
        }
        self.channels = core::array::from_fn(|_| Use::Free);
        given.extend(core::mem::take(&mut self.pings).into_values().map(|answer| Given::Pong(answer, Err(why))));
        given
    }

    /// What this side has asked for by a channel, which becomes free. EPROTO where it has asked for nothing.
    fn asked(&mut self, channel: usize) -> Result<(Arc<Bound>, Arc<Answer<Channel>>)> {
        let asked = self.channels.get_mut(channel).filter(|asked| matches!(asked, Use::Asked { .. })).ok_or(Errno::EPROTO)?;
        match core::mem::replace(asked, Use::Free) {
            Use::Asked { bound, answer } => Ok((bound, answer)),
            Use::Free | Use::Bound { .. } => Err(Errno::EPROTO),
        }
    }

    fn bound(&self) -> impl Iterator<Item = &Arc<Bound>> {
        self.channels.iter().filter_map(|channel| if let Use::Bound { bound, .. } = channel { Some(bound) } else { None })
    }
}

impl Peer {
    /// Whether this tile may ask for the channel, and the other not. The first is the monitors' own.
    fn is_own(&self, channel: usize) -> bool {
        channel != 0 && channel % 2 == self.side
    }

    /// Takes one message for what it is, or EPROTO.
    fn hear(&self, state: &mut State, message: Message, monitor: &Monitor, then: &mut Then) -> Result<()> {
        match message {
            Message::Ping { token } => state.say(Message::Pong { token })?,
            Message::Pong { token } => {
                let answer = state.pings.remove(&token).ok_or(Errno::EPROTO)?;
                then.given.push(Given::Pong(answer, Ok(())));
            }
            Message::Bind { channel, interface } => {
                let free = matches!(state.channels.get(channel), Some(Use::Free)) && channel != 0 && !self.is_own(channel);
                if !free {
                    return Err(Errno::EPROTO);
                }
                match monitor.offers.lock().get(&interface) {
                    None => state.say(Message::Refused { channel })?,
                    Some(offer) => {
                        let bound = Bound::new(self.link, channel, self.side);
                        state.channels[channel] = Use::Bound { bound: bound.clone(), unbound: false, peer_unbound: false };
                        state.say(Message::Bound { channel })?;
                        then.opened.push(Opened { channel, bound, whose: Whose::Offerer(offer.clone()) });
                    }
                }
            }
            Message::Bound { channel } => {
                let (bound, answer) = state.asked(channel)?;
                state.channels[channel] = Use::Bound { bound: bound.clone(), unbound: false, peer_unbound: false };
                then.opened.push(Opened { channel, bound, whose: Whose::Asker(answer) });
            }
            Message::Refused { channel } => {
                let (_, answer) = state.asked(channel)?;
                then.given.push(Given::Refused(answer, Errno::ECONNREFUSED));
            }
            Message::Unbind { channel } => {
                let Some(Use::Bound { bound, unbound, peer_unbound: peer @ false }) = state.channels.get_mut(channel) else {
                    return Err(Errno::EPROTO);
                };
                *peer = true;
                then.given.push(Given::Ended(bound.clone(), Errno::EPIPE));
                if *unbound {
                    state.channels[channel] = Use::Free;
                }
            }
            Message::Farewell => return Err(Errno::EHOSTDOWN),
        }
        Ok(())
    }

    /// Takes a few messages out and sends what waits: whether there may be more, and whether the other side is to be rung.
    fn turn(&self, state: &mut State, monitor: &Monitor, then: &mut Then) -> Result<(bool, bool)> {
        let acknowledged = state.end.acknowledged_alone();
        let mut words = [0; WORDS];
        let mut more = true;
        for _ in 0..ROUND {
            let Some(piece) = state.end.receive(&mut words).map_err(|_| Errno::EPROTO)? else {
                more = false;
                break;
            };
            let message = Message::decode(&words).filter(|_| piece == WHOLE).ok_or(Errno::EPROTO)?;
            state.heard += 1;
            self.hear(state, message, monitor, then)?;
        }
        let sent = state.flush()?;
        Ok((more, sent || state.end.acknowledged_alone() != acknowledged))
    }
}

impl Monitor {
    /// A kernel's monitor. Nothing is heard until [`Monitor::start`].
    pub fn new(machine: &'static dyn Machine, tiles: &dyn Tiles) -> Arc<Monitor> {
        let own = tiles.own();
        let peer = |number: u32| {
            let link = tiles.link(number)?;
            let side = usize::from(own > number);
            let end = Endpoint::new(&link.channels[0], side);
            let channels = core::array::from_fn(|_| Use::Free);
            let state = State {
                end,
                outgoing: VecDeque::new(),
                channels,
                pings: BTreeMap::new(),
                last_token: 0,
                heard: 0,
                said: 0,
                ended: None,
            };
            Some(Peer { link, side, state: Mutex::new(state) })
        };
        let peers = (0..tiles.count().min(TILES_MOST)).map(peer).collect();
        Arc::new(Monitor { machine, own, peers, offers: Mutex::new(BTreeMap::new()) })
    }

    /// Starts the threads that listen, one for each other tile. The machine's error when it has none to give.
    pub fn start(self: &Arc<Self>) -> Result<()> {
        for number in self.others() {
            let monitor = self.clone();
            self.machine.spawn_kernel("monitor", Box::new(move || monitor.listen(number)))?;
        }
        Ok(())
    }

    /// The number of this tile.
    pub fn own(&self) -> u32 {
        self.own
    }

    /// The numbers of the other tiles.
    pub fn others(&self) -> impl Iterator<Item = u32> {
        (0..self.peers.len() as u32).filter(|number| self.peers[*number as usize].is_some())
    }

    /// Why nothing is to be had of a tile any more: EHOSTDOWN, it has ended; EPROTO, it did what it may not. ENXIO: there is no other tile of this number.
    pub fn ended(&self, tile: u32) -> Result<Option<Errno>> {
        Ok(self.peer(tile)?.state.lock().ended)
    }

    /// What is known of a tile. ENXIO: there is no other tile of this number.
    pub fn known(&self, tile: u32) -> Result<Known> {
        let state = self.peer(tile)?.state.lock();
        Ok(Known { ended: state.ended, heard: state.heard, said: state.said })
    }

    /// Offers an interface to all other tiles. EEXIST.
    pub fn offer(&self, interface: u32, offer: Arc<dyn Offer>) -> Result<()> {
        let mut offers = self.offers.lock();
        if offers.contains_key(&interface) {
            return Err(Errno::EEXIST);
        }
        offers.insert(interface, offer);
        Ok(())
    }

    /// Offers it no longer. Channels that have been bound stay.
    pub fn withdraw(&self, interface: u32) {
        let gone = self.offers.lock().remove(&interface);
        drop(gone);
    }

    /// Asks a tile for a channel to who offers the interface there. ENXIO: there is no such other tile; ENOBUFS: no channel is free; EHOSTDOWN or
    /// EPROTO as [`Monitor::ended`] has it, now or as the answer; ECONNREFUSED as the answer: nobody offers it.
    pub fn bind(&self, tile: u32, interface: u32) -> Result<Arc<Answer<Channel>>> {
        let peer = self.peer(tile)?;
        let answer = Answer::new();
        self.change(tile, peer, |state| {
            let free = |channel: &usize| peer.is_own(*channel) && matches!(state.channels[*channel], Use::Free);
            let channel = (1..CHANNELS).find(free).ok_or(Errno::ENOBUFS)?;
            // Before it is asked for: from then on the other side may read.
            let bound = Bound::new(peer.link, channel, peer.side);
            state.say(Message::Bind { channel, interface })?;
            state.channels[channel] = Use::Asked { bound, answer: answer.clone() };
            Ok(())
        })?;
        Ok(answer)
    }

    /// Asks a tile whether it listens. EAGAIN: [`PINGS_MOST`] have not been answered. Other errors as those of [`Monitor::bind`].
    pub fn ping(&self, tile: u32) -> Result<Arc<Answer<()>>> {
        let peer = self.peer(tile)?;
        let answer = Answer::new();
        self.change(tile, peer, |state| {
            if state.pings.len() >= PINGS_MOST {
                return Err(Errno::EAGAIN);
            }
            state.last_token += 1;
            state.say(Message::Ping { token: state.last_token })?;
            state.pings.insert(state.last_token, answer.clone());
            Ok(())
        })?;
        Ok(answer)
    }

    /// The supervisor reports that a tile has ended. One there never was is passed over.
    pub fn tile_ended(&self, tile: u32) {
        if let Ok(peer) = self.peer(tile) {
            self.end(peer, Errno::EHOSTDOWN);
            // Its listener is to end too.
            let bell = &peer.link.bells[peer.side].0;
            if rings(bell) {
                self.machine.park().unpark(bell, 1);
            }
        }
    }

    /// Tells all other tiles that this kernel is over. Best effort: who has no room for it learns it otherwise.
    pub fn farewell(&self) {
        for tile in self.others() {
            if let Ok(peer) = self.peer(tile) {
                let _ = self.change(tile, peer, |state| state.say(Message::Farewell));
            }
        }
    }

    fn peer(&self, tile: u32) -> Result<&Peer> {
        self.peers.get(tile as usize).and_then(Option::as_ref).ok_or(Errno::ENXIO)
    }

    /// Says something to a monitor whose tile has not ended.
    fn change(&self, tile: u32, peer: &Peer, change: impl FnOnce(&mut State) -> Result<()>) -> Result<()> {
        let mut state = peer.state.lock();
        if let Some(why) = state.ended {
            return Err(why);
        }
        change(&mut state)?;
        let flushed = state.flush();
        drop(state);
        match flushed {
            Ok(true) => self.ring(tile),
            Ok(false) => {}
            Err(why) => {
                self.end(peer, why);
                return Err(why);
            }
        }
        Ok(())
    }

    /// The tile is over for this one.
    fn end(&self, peer: &Peer, why: Errno) {
        let mut state = peer.state.lock();
        let given = if state.ended.is_none() { state.end(why) } else { Vec::new() };
        drop(state);
        given.into_iter().for_each(Given::give);
    }

    /// A user has done with a channel.
    fn unbind(&self, tile: u32, channel: usize) {
        let Ok(peer) = self.peer(tile) else { return };
        let unbound = self.change(tile, peer, |state| {
            if let Some(Use::Bound { unbound, peer_unbound, .. }) = state.channels.get_mut(channel) {
                *unbound = true;
                if *peer_unbound {
                    state.channels[channel] = Use::Free;
                }
            }
            state.say(Message::Unbind { channel })
        });
        // With a tile that has ended there is nothing to agree on; one that took nothing out for so long has broken the protocol.
        if unbound == Err(Errno::EPROTO) {
            self.end(peer, Errno::EPROTO);
        }
    }

    /// Wakes the listener of another tile, if it sleeps.
    fn ring(&self, tile: u32) {
        if let Ok(peer) = self.peer(tile) {
            let bell = &peer.link.bells[1 - peer.side].0;
            if rings(bell) {
                self.machine.park().unpark_on(tile, bell);
            }
        }
    }

    fn open(self: &Arc<Self>, peer: u32, Opened { channel, bound, whose }: Opened) {
        let channel = Channel { bound, monitor: self.clone(), peer, channel };
        match whose {
            Whose::Asker(answer) => answer.give(Ok(channel)),
            Whose::Offerer(offer) => offer.bound(channel),
        }
    }

    /// Hears what a tile says, one round of it.
    fn look(self: &Arc<Self>, tile: u32) -> Look {
        let Ok(peer) = self.peer(tile) else { return Look::Ended };
        let mut then = Then::default();
        let mut state = peer.state.lock();
        if state.ended.is_some() {
            return Look::Ended;
        }
        let heard = peer.turn(&mut state, self, &mut then);
        let bound: Vec<Arc<Bound>> = state.bound().cloned().collect();
        drop(state);
        then.opened.into_iter().for_each(|opened| self.open(tile, opened));
        then.given.into_iter().for_each(Given::give);
        // Each of them, whatever came of the others.
        let sent = bound.iter().filter(|bound| bound.look()).count() > 0;
        match heard {
            Ok((more, ring)) => {
                if ring || sent {
                    self.ring(tile);
                }
                if more { Look::More } else { Look::Idle }
            }
            Err(why) => {
                self.end(peer, why);
                Look::Ended
            }
        }
    }

    /// A listener's thread, until its tile has ended.
    fn listen(self: Arc<Self>, tile: u32) {
        let Ok(peer) = self.peer(tile) else { return };
        let bell = &peer.link.bells[peer.side].0;
        let park = self.machine.park();
        loop {
            // Whatever the other side has written there.
            bell.swap(wake::QUIET, Ordering::AcqRel);
            match self.look(tile) {
                Look::Ended => return,
                Look::More => {}
                Look::Idle if wake::intend_to_park(bell) => park.park(bell, wake::PARKED, None),
                // One that rings for nothing has no more of the processor than it is due.
                Look::Idle => park.yield_now(),
            }
        }
    }
}
