//! Threads and whose turn it is: priorities, time slices, messages from one thread to another.
//!
//! A thread's phase shows what it waits for. One that is ready waits in the queue of its priority, unless it has the turn. The thread that changes this holds
//! the state, and wakes the thread that gets the turn; a thread that finds itself without it waits ([`crate::system::turn`]).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::l4v2::id::{Id, ROOT_TASK, SIGMA0_TASK, TASKS};
use janua_abi::l4v2::message::{Error, Receive, Send};
use janua_abi::l4v2::timeout::{Timeout, Timeouts};
use janua_kernel::thread::work;
use janua_port::{Machine, Nanos};

use crate::{Seat, Task};

mod interrupts;

use interrupts::Clock;

/// How often time slices are looked at while threads compete, nanoseconds.
pub const TICK: Nanos = 10_000_000;
/// A thread's slice unless it is given another: 100 ms.
pub const SLICE: Nanos = 10 * TICK;

/// A thread by its task's number and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u32);

impl Key {
    pub const fn new(task: u16, thread: u8) -> Key {
        Key((task as u32) << 7 | thread as u32)
    }

    pub const fn of(id: Id) -> Key {
        Key::new(id.task(), id.thread())
    }

    pub const fn task(self) -> u16 {
        (self.0 >> 7) as u16
    }

    pub const fn thread(self) -> u8 {
        (self.0 & 0x7f) as u8
    }
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its turn, or it has it.
    Ready,
    /// That another receives from it.
    Sending(Key),
    Receiving,
    /// What the other side of a message does.
    Moving,
    /// For good: it has not begun, or met with an exception.
    Stopped,
}

/// A call of `ipc`, or a page fault.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub send: Option<(Send, [u32; 2])>,
    pub partner: Id,
    pub receive: Option<Receive>,
    pub timeouts: Timeouts,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub dope: u32,
    pub from: Id,
    pub words: [u32; 2],
}

impl Outcome {
    pub fn failed(number: u32) -> Outcome {
        Outcome { dope: number, ..Outcome::default() }
    }
}

/// A page that a receiver is to bring while a message is moved into its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub addr: u32,
    pub write: bool,
    pub within: Timeout,
}

/// Where a thread's user code stopped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    pub eip: u32,
    pub esp: u32,
    pub eflags: u32,
}

/// A thread.
pub struct Tcb {
    pub id: Id,
    pub seat: Arc<Seat>,
    pub priority: u8,
    /// The most priority it may give.
    pub mcp: u8,
    /// `None`: no end.
    pub slice: Option<Nanos>,
    left: Nanos,
    /// It keeps interrupts off, for as long in this turn.
    masked: bool,
    masks_for: Nanos,
    pub pager: Id,
    pub preempter: Id,
    pub external: Id,
    pub phase: Phase,
    /// When it gives up waiting.
    pub deadline: Option<Nanos>,
    pub request: Request,
    pub outcome: Option<Outcome>,
    senders: VecDeque<Key>,
    pub at: Place,
    /// Where it is to go on instead: eip and esp.
    pub entry: [Option<u32>; 2],
    /// The other side of a message that takes more than a moment.
    pub bond: Option<Key>,
    /// This side moves such a message, and that message has been given up.
    pub moves: bool,
    pub aborted: bool,
    /// It asks its pager. If that is in the middle of a message, this is the message's other side, and the message's end when it comes first.
    pub asks: bool,
    pub outer: Option<Key>,
    pub later: Option<Outcome>,
    pub wanted: Option<Wanted>,
    /// What came of what this side wanted of the other.
    pub brought: Option<Outcome>,
}

/// What a new thread is given.
pub struct New {
    pub id: Id,
    pub seat: Arc<Seat>,
    pub priority: u8,
    pub mcp: u8,
    pub pager: Id,
    pub entry: [u32; 2],
}

impl Tcb {
    fn new(new: New) -> Tcb {
        let nothing = Request { send: None, partner: Id::NIL, receive: None, timeouts: Timeouts::NEVER };
        Tcb {
            id: new.id,
            seat: new.seat,
            priority: new.priority,
            mcp: new.mcp,
            slice: Some(SLICE),
            left: SLICE,
            masked: false,
            masks_for: SLICE,
            pager: new.pager,
            preempter: Id::INVALID,
            external: Id::INVALID,
            phase: Phase::Stopped,
            deadline: None,
            request: nothing,
            outcome: None,
            senders: VecDeque::new(),
            at: Place::default(),
            entry: new.entry.map(Some),
            bond: None,
            moves: false,
            aborted: false,
            asks: false,
            outer: None,
            later: None,
            wanted: None,
            brought: None,
        }
    }
}

/// What the thread that has the turn does next in its call.
pub enum Next {
    Done(Outcome),
    /// Moves its message to this thread.
    Move(Key),
    /// Asks its pager for what the sender of its message needs.
    Bring(Wanted),
    /// Nothing is left of the call.
    Nothing,
}

/// A task that exists.
pub struct TaskEntry {
    pub task: Arc<Task>,
    pub id: Id,
}

/// All threads of a kernel.
pub struct State {
    machine: &'static dyn Machine,
    threads: BTreeMap<Key, Tcb>,
    pub tasks: BTreeMap<u16, TaskEntry>,
    /// Who may make a task, by its number.
    chiefs: Vec<u16>,
    ready: BTreeMap<u8, VecDeque<Key>>,
    current: Option<Key>,
    /// Time is looked at, next then.
    ticking: bool,
    due: Nanos,
    clock: Clock,
    /// Threads have been stopped by exceptions.
    pub failures: usize,
}

impl State {
    pub fn new(machine: &'static dyn Machine) -> State {
        State {
            machine,
            threads: BTreeMap::new(),
            tasks: BTreeMap::new(),
            chiefs: (0..TASKS).map(|task| if task > ROOT_TASK || task == SIGMA0_TASK { ROOT_TASK } else { 0 }).collect(),
            ready: BTreeMap::new(),
            current: None,
            ticking: false,
            due: 0,
            clock: Clock::default(),
            failures: 0,
        }
    }

    pub fn now(&self) -> Nanos {
        self.machine.clock().monotonic()
    }

    pub fn get(&self, key: Key) -> Option<&Tcb> {
        self.threads.get(&key)
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut Tcb> {
        self.threads.get_mut(&key)
    }

    /// The thread with this name, version and all.
    pub fn find(&self, id: Id) -> Option<Key> {
        let key = Key::of(id);
        self.threads.get(&key).filter(|tcb| tcb.id.low == id.low).map(|_| key)
    }

    /// The threads of a task.
    pub fn threads_of(&self, task: u16) -> Vec<Key> {
        self.threads.range(Key::new(task, 0)..=Key::new(task, 127)).map(|(key, _)| *key).collect()
    }

    pub fn chief(&self, task: u16) -> u16 {
        self.chiefs.get(usize::from(task)).copied().unwrap_or_default()
    }

    pub fn set_chief(&mut self, task: u16, chief: u16) {
        if let Some(place) = self.chiefs.get_mut(usize::from(task)) {
            *place = chief;
        }
    }

    /// The numbers of the tasks that a task is chief of.
    pub fn clan(&self, chief: u16) -> Vec<u16> {
        (0..TASKS).filter(|task| self.chief(*task) == chief && *task > SIGMA0_TASK).collect()
    }

    /// Adds a thread that does not run yet.
    pub fn add(&mut self, new: New) {
        self.threads.insert(Key::of(new.id), Tcb::new(new));
    }

    // Whose turn it is.

    /// Whether a thread has the turn.
    pub fn has_turn(&self, key: Key) -> bool {
        self.current == Some(key)
    }

    /// Whether nobody has the turn, and nobody will: all wait without an end.
    pub fn is_over(&self) -> bool {
        self.current.is_none() && self.threads.values().all(|tcb| tcb.deadline.is_none()) && !self.waits_for_clock()
    }

    fn wake(&self, key: Key) {
        if let Some(tcb) = self.threads.get(&key) {
            tcb.seat.waker().wake_by_ref();
        }
    }

    fn priority(&self, key: Key) -> u8 {
        self.threads.get(&key).map_or(0, |tcb| tcb.priority)
    }

    /// The highest priority of the threads in the queues.
    fn highest(&self) -> Option<u8> {
        self.ready.last_key_value().map(|(priority, _)| *priority)
    }

    fn queue(&mut self, key: Key, in_front: bool) {
        let queue = self.ready.entry(self.threads.get(&key).map_or(0, |tcb| tcb.priority)).or_default();
        if in_front { queue.push_front(key) } else { queue.push_back(key) }
    }

    /// Takes a thread out of its queue: whether it was there.
    fn unqueue(&mut self, key: Key) -> bool {
        let priority = self.priority(key);
        let Some(queue) = self.ready.get_mut(&priority) else { return false };
        let Some(at) = queue.iter().rposition(|other| *other == key) else { return false };
        queue.remove(at);
        if queue.is_empty() {
            self.ready.remove(&priority);
        }
        true
    }

    /// Takes the first of the highest priority out of its queue.
    fn take_first(&mut self) -> Option<Key> {
        let mut queue = self.ready.last_entry()?;
        let first = queue.get_mut().pop_front();
        if queue.get().is_empty() {
            queue.remove();
        }
        first
    }

    /// Gives the turn to the first of the highest priority; to `hint` if it is ready and nobody is before it by priority, or in any case with
    /// `donated`.
    fn dispatch(&mut self, hint: Option<Key>, donated: bool) {
        let highest = self.highest();
        let hint = hint.filter(|hint| donated || highest.is_some_and(|highest| self.priority(*hint) >= highest));
        let chosen = match hint.filter(|hint| self.unqueue(*hint)) {
            Some(hint) => Some(hint),
            None => self.take_first(),
        };
        self.current = chosen;
        match chosen {
            Some(chosen) => {
                self.renew_mask(chosen);
                self.wake(chosen);
            }
            None if self.is_over() => self.machine.wake_service(),
            None => {}
        }
    }

    /// The thread with the turn loses it, and stays ready.
    fn preempt(&mut self, in_front: bool, hint: Option<Key>, donated: bool) {
        let Some(old) = self.current.take() else { return };
        self.queue(old, in_front);
        self.dispatch(hint, donated);
        if self.current != Some(old)
            && let Some(tcb) = self.threads.get(&old)
        {
            tcb.seat.interrupt(work::LOOK);
        }
    }

    /// A thread no longer waits for anything but its turn.
    pub fn make_ready(&mut self, key: Key) {
        let Some(tcb) = self.threads.get_mut(&key) else { return };
        if tcb.phase == Phase::Ready {
            return;
        }
        (tcb.phase, tcb.deadline) = (Phase::Ready, None);
        let priority = tcb.priority;
        self.queue(key, false);
        match self.current {
            None => self.dispatch(None, false),
            Some(current) if priority > self.priority(current) && !self.is_masked(current) => self.preempt(true, None, false),
            Some(_) => {}
        }
    }

    /// A thread waits from now on; if it had the turn another gets it, `hint` if it may.
    pub fn block(&mut self, key: Key, phase: Phase, deadline: Option<Nanos>, hint: Option<Key>) {
        let Some(tcb) = self.threads.get_mut(&key) else { return };
        let was = core::mem::replace(&mut tcb.phase, phase);
        tcb.deadline = deadline;
        if self.current == Some(key) {
            self.current = None;
            self.dispatch(hint, false);
        } else if was == Phase::Ready {
            self.unqueue(key);
        } else if deadline.is_some() {
            // It sleeps with another deadline, or none.
            self.wake(key);
        }
    }

    /// The thread with the turn gives it up for others of its priority, or for one that is ready.
    pub fn give_way(&mut self, to: Option<Key>) {
        let to = to.filter(|to| self.threads.get(to).is_some_and(|tcb| tcb.phase == Phase::Ready) && self.current != Some(*to));
        self.preempt(false, to, to.is_some());
    }

    /// Changes a thread's priority, and gives the turn to whom it belongs then.
    pub fn set_priority(&mut self, key: Key, priority: u8) {
        let queued = self.unqueue(key);
        if let Some(tcb) = self.threads.get_mut(&key) {
            tcb.priority = priority;
        }
        if queued {
            self.queue(key, false);
        }
        if let Some(current) = self.current {
            self.yield_to_higher(current);
        }
    }

    /// Sets how long a thread may run while others of its priority are ready.
    pub fn set_slice(&mut self, key: Key, slice: Option<Nanos>) {
        if let Some(tcb) = self.threads.get_mut(&key) {
            (tcb.slice, tcb.left) = (slice, slice.unwrap_or_default());
        }
    }

    /// Whether somebody else would have the turn if the slice of who has it were over.
    fn competes(&self) -> bool {
        let Some(current) = self.current else { return false };
        self.highest().is_some_and(|highest| highest >= self.priority(current))
    }

    /// After each change: sees to it that time is looked at while threads compete, or one has the clock's line.
    pub fn settle(&mut self) {
        if !self.ticking && (self.competes() || self.wants_clock()) {
            (self.ticking, self.due) = (true, self.now() + TICK);
            self.machine.wake_service();
        }
    }

    /// Looks at the time, if a tick is over: when it will be the next time.
    pub fn tick(&mut self) -> Option<Nanos> {
        let now = self.now();
        if !self.ticking || now >= self.due {
            if self.ticking {
                self.slice_ticks();
                self.clock_ticks();
            }
            self.due = now + TICK;
        }
        self.ticking = self.competes() || self.wants_clock();
        self.ticking.then_some(self.due)
    }

    /// A tick of the slice of the thread that has the turn.
    fn slice_ticks(&mut self) {
        let Some(current) = self.current else { return };
        let masked = self.mask_ticks(current);
        let Some(tcb) = self.threads.get_mut(&current) else { return };
        tcb.left = tcb.left.saturating_sub(TICK);
        if masked {
            return;
        }
        match tcb.slice {
            Some(slice) if tcb.left == 0 => {
                tcb.left = slice;
                self.preempt(false, None, false);
            }
            _ => self.yield_to_higher(current),
        }
    }

    // Messages.

    fn until(&self, timeout: Timeout) -> Option<Nanos> {
        match timeout {
            Timeout::Never => None,
            Timeout::Micros(micros) => Some(self.now().saturating_add(micros.saturating_mul(1000))),
        }
    }

    /// A thread's call is over with this outcome; its thread takes it with [`State::next`].
    pub fn complete(&mut self, key: Key, outcome: Outcome) {
        if let Some(tcb) = self.threads.get_mut(&key) {
            tcb.outcome = Some(outcome);
            self.make_ready(key);
        }
    }

    fn fail(&mut self, key: Key, number: u32) {
        self.complete(key, Outcome::failed(number));
    }

    /// Begins a call of the thread that has the turn.
    pub fn begin(&mut self, me: Key, request: Request) {
        let Some(tcb) = self.threads.get_mut(&me) else { return };
        (tcb.request, tcb.outcome) = (request, None);
        if request.send.is_none() {
            return self.receive(me, None);
        }
        let Some(to) = self.find(request.partner).filter(|to| *to != me) else {
            return self.fail(me, Error::Missing.sending());
        };
        if self.accepts(to, me) {
            self.meet(me, to);
        } else if request.timeouts.send.is_zero() {
            self.fail(me, Error::Timeout.sending());
        } else {
            if let Some(partner) = self.threads.get_mut(&to) {
                partner.senders.push_back(me);
            }
            let deadline = self.until(request.timeouts.send);
            self.block(me, Phase::Sending(to), deadline, None);
        }
    }

    /// Whether a thread waits for a message from another.
    fn accepts(&self, to: Key, from: Key) -> bool {
        self.threads.get(&to).is_some_and(|tcb| {
            tcb.phase == Phase::Receiving
                && tcb.request.receive.is_some_and(|receive| receive.open || self.find(tcb.request.partner) == Some(from))
        })
    }

    /// The message that a thread has, when its words are all of it.
    fn short(&self, from: Key) -> Option<Outcome> {
        let tcb = self.threads.get(&from)?;
        match tcb.request.send {
            Some((Send { map: false, buffer: None }, words)) => {
                Some(Outcome { dope: crate::ipc::WORDS_ALONE, from: tcb.id, words })
            }
            _ => None,
        }
    }

    /// A sender, and a thread that receives from it.
    fn meet(&mut self, from: Key, to: Key) {
        match self.short(from) {
            Some(message) => {
                self.complete(to, message);
                self.receive(from, Some(to));
            }
            None => self.bond(from, to),
        }
    }

    /// The sender of a message that takes longer moves it, and the receiver waits for that.
    fn bond(&mut self, from: Key, to: Key) {
        if let Some(tcb) = self.threads.get_mut(&to) {
            tcb.bond = Some(from);
        }
        if let Some(tcb) = self.threads.get_mut(&from) {
            (tcb.bond, tcb.moves, tcb.aborted) = (Some(to), true, false);
        }
        self.make_ready(from);
        self.block(to, Phase::Moving, None, Some(from));
    }

    /// A thread has sent what it had to send, and receives if it is to. `hint` gets the turn if the thread waits.
    pub fn receive(&mut self, me: Key, hint: Option<Key>) {
        let mut me = me;
        loop {
            let Some(tcb) = self.threads.get(&me) else { return };
            let request = tcb.request;
            let Some(receive) = request.receive else { return self.complete(me, Outcome::default()) };
            if self.receive_interrupt(me, hint) {
                return;
            }
            let nobody = request.partner.is_nil();
            if !receive.open && !nobody && self.find(request.partner).is_none_or(|partner| partner == me) {
                return self.fail(me, Error::Missing.receiving());
            }
            let Some(sender) = self.take_sender(me, receive) else {
                if request.timeouts.receive.is_zero() {
                    return self.fail(me, Error::Timeout.receiving());
                }
                let deadline = self.until(request.timeouts.receive);
                return self.block(me, Phase::Receiving, deadline, hint);
            };
            match self.short(sender) {
                Some(message) => {
                    self.complete(me, message);
                    // The sender goes on to receive, from one that waits for it perhaps.
                    me = sender;
                }
                None => return self.bond(sender, me),
            }
        }
    }

    /// Takes the first that wants to send to a thread, of those it receives from.
    fn take_sender(&mut self, me: Key, receive: Receive) -> Option<Key> {
        let tcb = self.threads.get(&me)?;
        let wanted = if receive.open { None } else { Some(self.find(tcb.request.partner)?) };
        let at = tcb.senders.iter().position(|sender| wanted.is_none_or(|wanted| *sender == wanted))?;
        self.threads.get_mut(&me)?.senders.remove(at)
    }

    /// A thread no longer wants to send.
    fn leave_senders(&mut self, key: Key, partner: Key) {
        if let Some(partner) = self.threads.get_mut(&partner) {
            partner.senders.retain(|sender| *sender != key);
        }
    }

    /// Ends a thread's wait for a partner with an error.
    fn give_up(&mut self, key: Key, error: Error) {
        match self.threads.get(&key).map(|tcb| tcb.phase) {
            Some(Phase::Sending(partner)) => {
                self.leave_senders(key, partner);
                self.fail(key, error.sending());
            }
            Some(Phase::Receiving) => self.fail(key, error.receiving()),
            _ => {}
        }
    }

    /// A thread's time is over.
    pub fn expire(&mut self, key: Key) {
        self.give_up(key, Error::Timeout);
    }

    /// What the thread with the turn does next in its call.
    pub fn next(&mut self, me: Key) -> Next {
        let Some(tcb) = self.threads.get_mut(&me) else { return Next::Nothing };
        if let Some(outcome) = tcb.outcome.take() {
            return Next::Done(outcome);
        }
        match (tcb.wanted.take(), tcb.bond) {
            (Some(wanted), _) => Next::Bring(wanted),
            (None, Some(to)) if tcb.moves => Next::Move(to),
            _ => Next::Nothing,
        }
    }

    /// The two sides of a message part: the outcome is the receiver's, the error the sender's.
    pub fn moved(&mut self, from: Key, to: Key, received: Outcome, error: Option<Error>) {
        if let Some(tcb) = self.threads.get_mut(&from) {
            (tcb.bond, tcb.moves, tcb.aborted) = (None, false, false);
        }
        self.end_for(to, from, received);
        match error {
            Some(error) => self.fail(from, error.sending()),
            None => self.receive(from, Some(to)),
        }
    }

    /// A message from another is over for its receiver.
    fn end_for(&mut self, to: Key, from: Key, received: Outcome) {
        let Some(tcb) = self.threads.get_mut(&to) else { return };
        if tcb.bond == Some(from) {
            (tcb.bond, tcb.wanted) = (None, None);
            self.complete(to, received);
        } else if tcb.outer == Some(from) {
            // It asks its pager, of which nobody wants to know any more.
            (tcb.outer, tcb.later) = (None, Some(received));
        }
    }

    /// Gives up the message between two threads: the one that moves it does the rest.
    fn abort(&mut self, sides: [Key; 2]) {
        for (side, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
            let Some(tcb) = self.threads.get_mut(&side) else { continue };
            tcb.aborted = tcb.moves;
            if tcb.outer == Some(other) {
                self.give_up(side, Error::Canceled);
            } else if tcb.moves && tcb.phase == Phase::Moving {
                self.make_ready(side);
            }
        }
    }

    /// `lthread_ex_regs`: whatever a thread waits for, it does not any more.
    pub fn cancel(&mut self, key: Key) {
        let Some(tcb) = self.threads.get(&key) else { return };
        let other = if tcb.asks { tcb.outer } else { tcb.bond };
        self.give_up(key, Error::Canceled);
        if let Some(other) = other {
            self.abort([key, other]);
        }
    }

    /// Takes a thread out of everything. Its partners learn that it is no more.
    pub fn remove(&mut self, key: Key) -> Option<Arc<Seat>> {
        let (phase, others) = self.threads.get(&key).map(|tcb| (tcb.phase, [tcb.bond, tcb.outer]))?;
        if let Phase::Sending(partner) = phase {
            self.leave_senders(key, partner);
        }
        let had_turn = self.current == Some(key);
        self.leave_clock(key);
        self.unqueue(key);
        let tcb = self.threads.remove(&key)?;
        for other in others.into_iter().flatten() {
            // A receiver is notified; a sender finds out.
            self.end_for(other, key, Outcome::failed(Error::Aborted.receiving()));
            self.abort([other, key]);
        }
        for sender in tcb.senders {
            self.fail(sender, Error::Missing.sending());
        }
        if had_turn {
            self.current = None;
            self.dispatch(None, false);
        }
        Some(tcb.seat)
    }

    /// Threads that wait for one that is no more need not.
    pub fn orphans(&mut self) {
        let waits = |tcb: &Tcb| {
            let closed = tcb.request.receive.is_some_and(|receive| !receive.open) && !tcb.request.partner.is_nil();
            tcb.phase == Phase::Receiving && closed && self.find(tcb.request.partner).is_none()
        };
        let orphans: Vec<Key> = self.threads.iter().filter(|(_, tcb)| waits(tcb)).map(|(key, _)| *key).collect();
        for orphan in orphans {
            self.fail(orphan, Error::Missing.receiving());
        }
    }
}
