//! Best effort: tasks that share by weight.
//!
//! Their time is virtual: it advances by what they get together, divided by the weights of all that are ready. A task's service is what it got,
//! divided by its own weight, so who has had its share stands where the clock stands. A release is a slice long; its deadline is the service
//! at which it is used up. No release begins before the clock is there, unless nobody else is ready: so nobody runs ahead by more than a slice.

use alloc::collections::BTreeMap;

use super::Nanos;

/// The weight of nice value 0.
pub const NORMAL: u32 = 1 << 16;
const LOWEST: i32 = -20;
const NICES: usize = 40;
/// A step of the nice value is a quarter (sched(7)).
const WEIGHTS: [u32; NICES] = weights();
/// How many releases begin in one decision.
pub const RELEASES: usize = 4;
/// How many slices a task may owe the others when it comes, or they it: one.
const OWES: u64 = 2;

const fn weights() -> [u32; NICES] {
    let zero = LOWEST.unsigned_abs() as usize;
    let mut weights = [NORMAL; NICES];
    let mut step = 1;
    while step <= zero {
        weights[zero - step] = (weights[zero - step + 1] as u64 * 5 / 4) as u32;
        if zero + step < NICES {
            weights[zero + step] = (weights[zero + step - 1] as u64 * 4 / 5) as u32;
        }
        step += 1;
    }
    weights
}

/// The weight of a nice value.
pub fn weight(nice: i32) -> u32 {
    let index = usize::try_from(nice - LOWEST).unwrap_or(0).min(NICES - 1);
    WEIGHTS[index]
}

/// A best-effort task's account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fair {
    weight: u32,
    service: u64,
    deadline: u64,
}

impl Fair {
    /// Of a task that has had nothing; weights are 1 or more.
    pub const fn new(weight: u32) -> Fair {
        Fair { weight, service: 0, deadline: 0 }
    }

    /// Of one that is level with all on a queue with this clock: it has nothing to make up for.
    pub const fn at(weight: u32, clock: u64) -> Fair {
        Fair { weight, service: clock, deadline: 0 }
    }

    /// With another weight, from the next release on.
    #[must_use]
    pub const fn with_weight(self, weight: u32) -> Fair {
        Fair { weight, ..self }
    }

    /// On a queue with the second clock, as it was on one with the first.
    #[must_use]
    pub fn moved(self, from: u64, to: u64) -> Fair {
        let there = |time: u64| if time >= from { to.saturating_add(time - from) } else { to.saturating_sub(from - time) };
        Fair { weight: self.weight, service: there(self.service), deadline: there(self.deadline) }
    }

    /// Virtual time of a time that it runs.
    fn scaled(&self, time: Nanos) -> u64 {
        time.saturating_mul(NORMAL.into()) / u64::from(self.weight)
    }

    /// The next release begins where its service stands.
    pub fn renew(&mut self, slice: Nanos) {
        self.deadline = self.service + self.scaled(slice).max(1);
    }

    fn is_used_up(&self) -> bool {
        self.deadline <= self.service
    }

    /// What is left of its release, nanoseconds, rounded up.
    pub fn budget(&self) -> Nanos {
        let left = u128::from(self.deadline.saturating_sub(self.service)) * u128::from(self.weight);
        u64::try_from(left.div_ceil(NORMAL.into())).unwrap_or(u64::MAX)
    }
}

/// A place in a queue: a key of those whose release has begun, or of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// By deadline.
    Released((u64, u64)),
    /// By service.
    Early((u64, u64)),
}

type Places<T> = BTreeMap<(u64, u64), (Fair, T)>;

/// Ready best-effort tasks. The sums count the one that runs, too.
pub struct BestEffort<T> {
    clock: u64,
    weights: u64,
    /// The sum of weight times service behind the clock: 0, but for what the division leaves.
    rest: i128,
    released: Places<T>,
    early: Places<T>,
    /// Numbers entries: first come, first served.
    entries: u64,
}

impl<T> BestEffort<T> {
    pub const fn new() -> BestEffort<T> {
        BestEffort { clock: 0, weights: 0, rest: 0, released: BTreeMap::new(), early: BTreeMap::new(), entries: 0 }
    }

    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// The weights of all that are ready or run.
    pub fn weights(&self) -> u64 {
        self.weights
    }

    pub fn is_empty(&self) -> bool {
        self.released.is_empty() && self.early.is_empty()
    }

    pub fn len(&self) -> usize {
        self.released.len() + self.early.len()
    }

    /// The clock to the average of the services, by weight.
    fn settle(&mut self) {
        if self.weights == 0 {
            self.rest = 0;
            return;
        }
        let step = match i64::try_from(self.rest) {
            Ok(rest) => i128::from(rest.div_euclid(self.weights as i64)),
            Err(_) => self.rest.div_euclid(self.weights.into()),
        };
        self.rest -= step * i128::from(self.weights);
        self.clock = u64::try_from(i128::from(self.clock) + step).unwrap_or(0);
    }

    fn weigh(&self, fair: &Fair) -> i128 {
        (i128::from(fair.service) - i128::from(self.clock)) * i128::from(fair.weight)
    }

    /// Counts one in that comes: who slept gets at most a slice ahead of the others, who owes them something owes a slice at most.
    pub fn join(&mut self, mut fair: Fair, slice: Nanos) -> Fair {
        let length = fair.scaled(slice).max(1);
        if self.weights == 0 {
            self.clock = self.clock.max(fair.service);
        }
        fair.service = fair.service.clamp(self.clock.saturating_sub(length), self.clock.saturating_add(OWES * length));
        if fair.is_used_up() || fair.deadline - fair.service > length {
            fair.renew(slice);
        }
        self.rest += self.weigh(&fair);
        self.weights += u64::from(fair.weight);
        self.settle();
        fair
    }

    /// Counts one out.
    pub fn leave(&mut self, fair: &Fair) {
        self.rest -= self.weigh(fair);
        self.weights = self.weights.saturating_sub(fair.weight.into());
        self.settle();
    }

    /// One that runs has run.
    pub fn charge(&mut self, fair: &mut Fair, ran: Nanos) {
        let served = fair.scaled(ran);
        fair.service += served;
        self.rest += i128::from(served) * i128::from(fair.weight);
        self.settle();
    }

    /// One is ready.
    pub fn enter(&mut self, task: T, fair: Fair, slice: Nanos) {
        let fair = self.join(fair, slice);
        self.entries += 1;
        // A release that has begun goes on.
        let begun = fair.deadline - fair.service < fair.scaled(slice);
        if begun || fair.service <= self.clock {
            self.released.insert((fair.deadline, self.entries), (fair, task));
        } else {
            self.early.insert((fair.service, self.entries), (fair, task));
        }
    }

    /// Lets releases begin whose time has come.
    pub fn release(&mut self) {
        for _ in 0..RELEASES {
            let Some(first) = self.early.first_entry().filter(|first| first.key().0 <= self.clock) else { return };
            let ((_, number), (fair, task)) = first.remove_entry();
            self.released.insert((fair.deadline, number), (fair, task));
        }
    }

    /// The one with the earliest deadline, of those that fit; when no release has begun, the one that is due first.
    pub fn place(&self, fits: &impl Fn(&T) -> bool) -> Option<Place> {
        let fitting = |places: &Places<T>| places.iter().find(|(_, (_, task))| fits(task)).map(|(key, _)| *key);
        fitting(&self.released).map(Place::Released).or_else(|| fitting(&self.early).map(Place::Early))
    }

    /// Takes one out, to run: it stays counted.
    pub fn take(&mut self, place: Place) -> Option<(Fair, T)> {
        match place {
            Place::Released(key) => self.released.remove(&key),
            Place::Early(key) => self.early.remove(&key),
        }
    }

    /// Whether one that waits goes before the one that runs, whose next release begins here when this one is used up.
    pub fn is_before(&self, place: Place, running: &mut Fair, slice: Nanos) -> bool {
        let renewed = running.is_used_up();
        if renewed {
            running.renew(slice);
        }
        let is_early = running.deadline - running.service >= running.scaled(slice) && running.service > self.clock;
        match place {
            Place::Released(key) => is_early || key.0 < running.deadline || renewed && key.0 == running.deadline,
            Place::Early(key) => is_early && key.0 < running.service,
        }
    }
}
