//! Real-time tasks: promises of a budget in each period, and the server that best effort is to them.
//!
//! A promise is a constant bandwidth server (Abeni and Buttazzo, RTSS 1998): a task that wakes goes on with what is left of its budget where that
//! needs no more than its rate until the deadline, and begins a new release otherwise. So it never asks for more than its rate, in any
//! interval, and as long as rates add up to no more than the core every release gets its budget before its deadline. A task that has
//! used up its budget waits for its next period, or has what nobody else wants.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use janua_port::machine::Demand;

use super::{BEST_EFFORT, LONGEST, Nanos, SPECTRUM};

/// Most promises of a queue, those included that have been taken back and whose rate is still in use.
pub const MOST: usize = 64;
/// The shortest budget.
const SHORTEST: Nanos = 1_000;

fn is_valid(demand: &Demand) -> bool {
    SHORTEST <= demand.budget
        && demand.budget <= demand.deadline
        && demand.deadline <= demand.period
        && demand.period <= LONGEST
}

/// The part of the core that gives so much time in so much.
fn rate(budget: Nanos, within: Nanos) -> u64 {
    let rate = (u128::from(budget) * u128::from(SPECTRUM)).div_ceil(u128::from(within.max(1)));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// How long something may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All of the demand or nothing.
    Hard,
    /// As much of it as there is: less when it is admitted, or more from one of its releases on, when others have left.
    Soft,
}

/// Why a task is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A demand that makes no sense.
    Invalid,
    /// Too much is promised already.
    Full,
}

/// One promise.
struct Slot {
    kind: Kind,
    demand: Demand,
    /// What it is given of it.
    budget: Nanos,
    rate: u64,
    /// What the sum of rates has of it: the higher one while the demand changes.
    counted: u64,
    /// What it is to be from the first release on that begins then or later.
    next: Option<(Demand, Nanos)>,
    /// Of its release: what is left, less than nothing when it ran on too long; the deadline; and when the next one begins.
    left: i64,
    deadline: Nanos,
    renewal: Nanos,
    /// Taken back: its rate is free then.
    free_at: Option<Nanos>,
}

impl Slot {
    fn renew(&mut self, at: Nanos) {
        // What it ran too long is paid back, a release's budget at most.
        self.left = (self.left.min(0) + self.budget as i64).max(1);
        self.deadline = at + self.demand.deadline;
        self.renewal = at + self.demand.period;
    }

    /// Whether what is left needs no more than its rate until the deadline.
    fn fits(&self, now: Nanos) -> bool {
        let within = self.deadline.saturating_sub(now);
        self.left > 0
            && u128::from(self.left.unsigned_abs()) * u128::from(SPECTRUM) <= u128::from(within) * u128::from(self.rate)
    }
}

/// The promises of a core, and those of their tasks that are ready.
pub struct Promises<T> {
    slots: Vec<Option<Slot>>,
    /// The sum of their rates.
    promised: u64,
    /// Ready within their budget, by deadline.
    jobs: BTreeMap<(Nanos, usize), T>,
    /// Ready, and waiting for their next release, by its time.
    waiting: BTreeMap<(Nanos, usize), T>,
}

impl<T> Promises<T> {
    pub const fn new() -> Promises<T> {
        Promises { slots: Vec::new(), promised: 0, jobs: BTreeMap::new(), waiting: BTreeMap::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.waiting.is_empty()
    }

    pub fn len(&self) -> usize {
        self.jobs.len() + self.waiting.len()
    }

    pub fn has_jobs(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// The rate that is best effort's.
    pub fn left(&self) -> u64 {
        SPECTRUM - self.promised
    }

    pub fn any(&self, fits: &impl Fn(&T) -> bool) -> bool {
        self.jobs.values().chain(self.waiting.values()).any(fits)
    }

    /// Rates of promises that were taken back are free from their deadlines on.
    fn reclaim(&mut self, now: Nanos) {
        for place in &mut self.slots {
            if let Some(slot) = place.take_if(|slot| slot.free_at.is_some_and(|at| at <= now)) {
                self.promised -= slot.counted;
            }
        }
    }

    /// Makes a promise whose first release begins at `first` or later.
    pub fn admit(&mut self, kind: Kind, demand: Demand, now: Nanos, first: Nanos) -> Result<usize, Refused> {
        if !is_valid(&demand) {
            return Err(Refused::Invalid);
        }
        self.reclaim(now);
        let index = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let room = self.room();
        let (budget, rate) = granted(kind, &demand, room).ok_or(Refused::Full)?;
        if index == MOST {
            return Err(Refused::Full);
        }
        if index == self.slots.len() {
            self.slots.push(None);
        }
        let (left, counted, next, free_at) = (0, rate, None, None);
        let slot = Slot { kind, demand, budget, rate, counted, next, left, deadline: first, renewal: first, free_at };
        self.slots[index] = Some(slot);
        self.promised += rate;
        Ok(index)
    }

    /// Makes it a promise of another demand, all of it or nothing, from the first release on that begins at `first` or later. What it was goes on until
    /// then, and the higher rate of the two is in use.
    pub fn change(&mut self, promise: usize, demand: Demand, now: Nanos, first: Nanos) -> Result<(), Refused> {
        if !is_valid(&demand) || !self.is_held(promise) {
            return Err(Refused::Invalid);
        }
        self.reclaim(now);
        let promised = self.promised;
        let slot = self.slot(promise).ok_or(Refused::Invalid)?;
        let counted = slot.rate.max(rate(demand.budget, demand.deadline));
        let sum = promised - slot.counted + counted;
        if counted > slot.counted && sum > SPECTRUM - BEST_EFFORT {
            return Err(Refused::Full);
        }
        (slot.counted, slot.next) = (counted, Some((demand, first)));
        self.promised = sum;
        Ok(())
    }

    /// The rate that can be promised still.
    pub fn room(&self) -> u64 {
        (SPECTRUM - BEST_EFFORT).saturating_sub(self.promised)
    }

    fn slot(&mut self, promise: usize) -> Option<&mut Slot> {
        self.slots.get_mut(promise)?.as_mut()
    }

    /// Whether there is such a promise, and it was not taken back.
    pub fn is_held(&self, promise: usize) -> bool {
        self.slots.get(promise).and_then(Option::as_ref).is_some_and(|slot| slot.free_at.is_none())
    }

    pub fn dismiss(&mut self, promise: usize, now: Nanos) {
        if let Some(slot) = self.slot(promise) {
            slot.free_at = Some(slot.deadline.max(now));
        }
        self.reclaim(now);
    }

    /// Begins a release; a soft task's budget is what there is now, if it `grows`: the rate that best effort has until its deadline is not
    /// another's before.
    pub fn renew(&mut self, promise: usize, at: Nanos, grows: bool) {
        let room = self.room();
        let Some(slot) = self.slots.get_mut(promise).and_then(Option::as_mut) else { return };
        if let Some((demand, _)) = slot.next.take_if(|(_, first)| *first <= at) {
            (slot.kind, slot.demand, slot.budget) = (Kind::Hard, demand, demand.budget);
            slot.rate = rate(demand.budget, demand.deadline);
            self.promised -= slot.counted - slot.rate;
            slot.counted = slot.rate;
        }
        if grows
            && slot.budget < slot.demand.budget
            && slot.next.is_none()
            && let Some((budget, rate)) = granted(slot.kind, &slot.demand, room + slot.rate)
        {
            self.promised += rate - slot.rate;
            (slot.budget, slot.rate, slot.counted) = (budget, rate, rate);
        }
        slot.renew(at);
    }

    /// A task is ready: it has slept, or `goes_on`.
    pub fn enter(&mut self, task: T, promise: usize, now: Nanos, goes_on: bool, grows: bool) {
        let Some(slot) = self.slot(promise) else { return };
        if slot.left <= 0 && now < slot.renewal {
            let renewal = slot.renewal;
            self.waiting.insert((renewal, promise), task);
            return;
        }
        let keeps = if goes_on { slot.left > 0 } else { slot.fits(now) };
        if !keeps {
            self.renew(promise, now, grows);
        }
        if let Some(deadline) = self.deadline(promise) {
            self.jobs.insert((deadline, promise), task);
        }
    }

    /// Begins the releases whose time has come.
    pub fn release(&mut self, now: Nanos, grows: bool) {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= now) {
            let ((at, promise), task) = first.remove_entry();
            // Where the owner came too late for all of it, it begins now.
            let late = self.slot(promise).is_none_or(|slot| at + slot.demand.deadline <= now);
            self.renew(promise, if late { now } else { at }, grows);
            if let Some(deadline) = self.deadline(promise) {
                self.jobs.insert((deadline, promise), task);
            }
        }
    }

    /// When the next release of a promise begins.
    pub fn renewal(&self, promise: usize) -> Nanos {
        self.slots.get(promise).and_then(Option::as_ref).map_or(Nanos::MAX, |slot| slot.renewal)
    }

    pub fn next_release(&self) -> Option<Nanos> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    pub fn first(&self, fits: &impl Fn(&T) -> bool) -> Option<(Nanos, usize)> {
        self.jobs.iter().find(|(_, task)| fits(task)).map(|(key, _)| *key)
    }

    pub fn background(&self, fits: &impl Fn(&T) -> bool) -> Option<(Nanos, usize)> {
        self.waiting.iter().find(|(_, task)| fits(task)).map(|(key, _)| *key)
    }

    pub fn take_job(&mut self, key: (Nanos, usize)) -> Option<T> {
        self.jobs.remove(&key)
    }

    pub fn take_waiting(&mut self, key: (Nanos, usize)) -> Option<T> {
        self.waiting.remove(&key)
    }

    /// Takes out the first one that this holds for.
    pub fn remove(&mut self, fits: &impl Fn(&T) -> bool) -> Option<T> {
        match self.first(fits) {
            Some(job) => self.take_job(job),
            None => self.background(fits).and_then(|place| self.take_waiting(place)),
        }
    }

    /// What is left of its release is given up.
    pub fn finish(&mut self, promise: usize) {
        if let Some(slot) = self.slot(promise) {
            slot.left = slot.left.min(0);
        }
    }

    pub fn charge(&mut self, promise: usize, ran: Nanos) {
        if let Some(slot) = self.slot(promise) {
            slot.left = slot.left.saturating_sub_unsigned(ran);
        }
    }

    /// The deadline of its release; `None` when that is used up.
    pub fn deadline(&self, promise: usize) -> Option<Nanos> {
        self.slots.get(promise)?.as_ref().filter(|slot| slot.left > 0).map(|slot| slot.deadline)
    }

    /// What is left of its release.
    pub fn budget(&self, promise: usize) -> Nanos {
        let slot = self.slots.get(promise).and_then(Option::as_ref);
        slot.map_or(0, |slot| u64::try_from(slot.left).unwrap_or(0))
    }
}

/// What a demand is given where there is so much room: budget and rate.
fn granted(kind: Kind, demand: &Demand, room: u64) -> Option<(Nanos, u64)> {
    let whole = rate(demand.budget, demand.deadline);
    if whole <= room {
        return Some((demand.budget, whole));
    }
    let part = u64::try_from(u128::from(demand.deadline) * u128::from(room) / u128::from(SPECTRUM)).unwrap_or(0);
    (kind == Kind::Soft && part >= SHORTEST).then_some((part, room))
}

/// Best effort among the real-time tasks: a server at the rate that is left, a slice for each of its releases. It is charged only while
/// real-time tasks are ready: what they do not want costs it nothing.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    left: i64,
    pub deadline: Nanos,
}

impl Server {
    pub const fn new() -> Server {
        Server { left: 0, deadline: 0 }
    }

    fn length(slice: Nanos, rate: u64) -> Nanos {
        u64::try_from(u128::from(slice) * u128::from(SPECTRUM) / u128::from(rate.max(1))).unwrap_or(u64::MAX)
    }

    /// Begins a release.
    pub fn begin(&mut self, now: Nanos, slice: Nanos, rate: u64) {
        self.left = slice as i64;
        self.deadline = now.saturating_add(Server::length(slice, rate));
    }

    /// Best effort comes where there was none.
    pub fn wake(&mut self, now: Nanos, slice: Nanos, rate: u64) {
        let within = u128::from(self.deadline.saturating_sub(now)) * u128::from(rate);
        if self.left <= 0 || u128::from(self.left.unsigned_abs()) * u128::from(SPECTRUM) > within {
            self.begin(now, slice, rate);
        }
    }

    pub fn charge(&mut self, ran: Nanos, slice: Nanos, rate: u64) {
        self.left = self.left.saturating_sub_unsigned(ran);
        if self.left <= 0 {
            let slices = self.left.unsigned_abs() / slice + 1;
            self.left = self.left.saturating_add_unsigned(slices.saturating_mul(slice));
            self.deadline = self.deadline.saturating_add(slices.saturating_mul(Server::length(slice, rate)));
        }
    }

    /// What is left of its release.
    pub fn budget(&self) -> Nanos {
        u64::try_from(self.left).unwrap_or(0)
    }
}
