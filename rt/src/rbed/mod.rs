//! The rate-based earliest-deadline scheduler (RBED: Brandt, Banachowski, Lin and Bisson, RTSS 2003) of one core.
//!
//! Every task has a rate, the part of the core that is its own, and from it budget and deadline of each of its releases; of what is ready
//! the earliest deadline runs. Real-time tasks state theirs and are admitted as long as best effort keeps [`BEST_EFFORT`] of the core
//! (`promise`). Best-effort tasks share what is left by weight (`fair`): a slice for each release, and the deadline where the task's rate
//! will have earned that slice. For n equal ones alone that is n slices after the release.
//!
//! All best-effort tasks are one in the order of deadlines (`Queue::server`), at the rate that is left, and their own deadlines are in their
//! own time, which runs with what they get. So a task that comes or goes changes two sums, not the deadlines of all; and a decision takes a
//! bounded number of steps, each logarithmic (`fair::RELEASES`, [`MOST`]; tasks that may not run on the core that asks are
//! passed over one by one).
//!
//! Nothing here runs anything or reads a clock: the owner states the time, which must not go back, and asks again when [`Queue::until`]
//! is over.

mod fair;
mod promise;
#[cfg(test)]
mod tests;

pub use fair::{Fair, NORMAL, weight};
pub use janua_port::Nanos;
pub use janua_port::machine::Demand;
pub use promise::{Kind, MOST, Refused};

use fair::BestEffort;
use promise::{Promises, Server};

/// The whole of a core, in units of rate.
pub const SPECTRUM: u64 = 1_000_000;
/// What is never promised: best effort's.
pub const BEST_EFFORT: u64 = SPECTRUM / 10;
/// The longest slice and period, nanoseconds: about a minute.
pub const LONGEST: Nanos = 1 << 36;

/// What a queue knows of a task while the task is in it; its owner keeps it while the task sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    Fair(Fair),
    /// The number of a promise, as [`Queue::admit`] gave it.
    Promise(usize),
}

/// What runs.
#[derive(Clone, Copy, Debug)]
enum Running {
    Nothing,
    Fair(Fair),
    Promise(usize),
    /// A promise whose budget is used up, while nobody else wants the core.
    Background(usize),
}

/// Who is next, of those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Fair(fair::Place),
    Promise((Nanos, usize)),
    Background((Nanos, usize)),
}

/// The ready tasks of a core, and what it runs.
pub struct Queue<T> {
    slice: Nanos,
    fair: BestEffort<T>,
    promises: Promises<T>,
    server: Server,
    running: Running,
    /// Up to when what runs has been charged.
    since: Nanos,
    /// Woken while it still runs, on its way to sleep.
    woken: Option<T>,
    /// The promise of one that had to give way and has not entered the queue again.
    back: Option<usize>,
}

impl<T> Queue<T> {
    pub const fn new(slice: Nanos) -> Queue<T> {
        Queue {
            slice,
            fair: BestEffort::new(),
            promises: Promises::new(),
            server: Server::new(),
            running: Running::Nothing,
            since: 0,
            woken: None,
            back: None,
        }
    }

    /// Sets the slice, of releases from the next on.
    pub fn set_slice(&mut self, slice: Nanos) {
        self.slice = slice.clamp(1, LONGEST);
    }

    /// The time of best effort here ([`Fair::moved`]).
    pub fn clock(&self) -> u64 {
        self.fair.clock()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.fair.is_empty() && self.promises.is_empty()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.fair.len() + self.promises.len()
    }

    /// Whether one waits that this holds for.
    pub fn has(&self, fits: impl Fn(&T) -> bool) -> bool {
        self.fair.place(&fits).is_some() || self.promises.any(&fits)
    }

    /// Admits a real-time task, which sleeps: the number of its promise. The task must not be known here otherwise.
    pub fn admit(&mut self, kind: Kind, demand: Demand, now: Nanos) -> Result<usize, Refused> {
        self.charge(now);
        let first = self.first_release(now);
        self.promises.admit(kind, demand, now, first)
    }

    /// When a higher rate than before can be in use: that which best effort had until its deadline cannot be another's before.
    fn first_release(&self, now: Nanos) -> Nanos {
        if self.is_pressed() { self.server.deadline.max(now) } else { now }
    }

    /// Makes a promise another, from its task's next release on, or the one after that.
    pub fn change(&mut self, promise: usize, demand: Demand, now: Nanos) -> Result<(), Refused> {
        self.charge(now);
        let first = self.first_release(now);
        self.promises.change(promise, demand, now, first)
    }

    /// The rate that can be promised still.
    pub fn room(&self) -> u64 {
        self.promises.room()
    }

    /// Takes back a promise; its task is in no queue, and does not run.
    pub fn dismiss(&mut self, promise: usize, now: Nanos) {
        self.back.take_if(|back| *back == promise);
        self.promises.dismiss(promise, now);
    }

    /// Whether a real-time task is ready within its budget, or runs.
    fn is_pressed(&self) -> bool {
        self.has_jobs() || matches!(self.running, Running::Promise(_))
    }

    /// Whether a real-time task waits within its budget.
    fn has_jobs(&self) -> bool {
        self.promises.has_jobs() || self.back.is_some()
    }

    /// Real-time tasks have come where there were none: best effort begins a release with them.
    fn press(&mut self, was: bool, now: Nanos) {
        if !was && self.is_pressed() {
            self.server.begin(now, self.slice, self.promises.left());
        }
    }

    /// A task is ready: it has slept, or `goes_on` where it has not.
    pub fn enter(&mut self, task: T, account: Account, now: Nanos, goes_on: bool) {
        match account {
            Account::Fair(fair) => {
                if !goes_on && self.fair.weights() == 0 && self.is_pressed() {
                    self.server.wake(now, self.slice, self.promises.left());
                }
                self.fair.enter(task, fair, self.slice);
            }
            // Taken back meanwhile.
            Account::Promise(promise) if !self.promises.is_held(promise) => {
                self.enter(task, Account::Fair(Fair::at(NORMAL, self.clock())), now, goes_on);
            }
            Account::Promise(promise) => {
                self.charge(now);
                let was = self.is_pressed();
                self.back.take_if(|back| *back == promise);
                self.promises.enter(task, promise, now, goes_on, !was);
                self.press(was, now);
            }
        }
    }

    /// What runs was woken on its way to sleep: [`Queue::stop`] puts it into the queue again.
    pub fn wake_running(&mut self, task: T) {
        self.woken = Some(task);
    }

    /// A task begins to run that came from no queue, or from another core's.
    pub fn start(&mut self, account: Account, now: Nanos) {
        self.since = now;
        self.running = match account {
            Account::Fair(fair) => {
                if self.fair.weights() == 0 && self.is_pressed() {
                    self.server.wake(now, self.slice, self.promises.left());
                }
                Running::Fair(self.fair.join(fair, self.slice))
            }
            Account::Promise(promise) => Running::Background(promise),
        };
    }

    /// What runs goes on by another account: its task's best effort has become a promise, or the other way round.
    pub fn convert(&mut self, account: Account, now: Nanos) {
        if matches!((&self.running, account), (Running::Promise(own) | Running::Background(own), Account::Promise(promise)) if *own == promise)
        {
            return;
        }
        let woken = self.woken.take();
        self.stop(now);
        self.start(account, now);
        self.charge(now);
        self.woken = woken;
    }

    /// What runs has done its work for this period: when the next one begins. `None` if no time was promised to it.
    pub fn finish(&mut self, now: Nanos) -> Option<Nanos> {
        self.charge(now);
        let (Running::Promise(promise) | Running::Background(promise)) = self.running else { return None };
        self.promises.finish(promise);
        self.turn_over(now);
        Some(self.promises.renewal(promise))
    }

    /// Charges what runs with its time up to now.
    pub fn charge(&mut self, now: Nanos) {
        let ran = now.saturating_sub(self.since);
        self.since = now;
        match &mut self.running {
            Running::Fair(fair) => {
                self.fair.charge(fair, ran);
                if self.has_jobs() {
                    self.server.charge(ran, self.slice, self.promises.left());
                }
            }
            Running::Promise(promise) => self.promises.charge(*promise, ran),
            Running::Nothing | Running::Background(_) => {}
        }
        self.turn_over(now);
    }

    /// The real-time task that runs has used up its budget, or has it again.
    fn turn_over(&mut self, now: Nanos) {
        match self.running {
            Running::Promise(promise) if self.promises.deadline(promise).is_none() => {
                self.running = Running::Background(promise)
            }
            Running::Background(promise) if self.promises.renewal(promise) <= now => {
                let was = self.is_pressed();
                self.promises.renew(promise, now, !was);
                self.running = Running::Promise(promise);
                self.press(was, now);
            }
            _ => {}
        }
    }

    /// What runs no longer does: its account. It sleeps or ends, or the owner lets it [`Queue::enter`] a queue again.
    pub fn stop(&mut self, now: Nanos) -> Option<Account> {
        self.charge(now);
        let account = match core::mem::replace(&mut self.running, Running::Nothing) {
            Running::Nothing => return None,
            Running::Fair(fair) => {
                self.fair.leave(&fair);
                Account::Fair(fair)
            }
            Running::Promise(promise) | Running::Background(promise) => Account::Promise(promise),
        };
        if let Some(task) = self.woken.take() {
            self.enter(task, account, now, false);
        }
        Some(account)
    }

    /// Ends the release of the best-effort task that runs, whatever is left of its budget: others come before its next.
    pub fn end_release(&mut self, now: Nanos) {
        self.charge(now);
        if let Running::Fair(fair) = &mut self.running {
            fair.renew(self.slice);
        }
    }

    /// Who of those that fit is next.
    fn choose(&mut self, now: Nanos, fits: &impl Fn(&T) -> bool) -> Option<Choice> {
        let was = self.is_pressed();
        self.promises.release(now, !was);
        self.press(was, now);
        self.fair.release();
        let fair = self.fair.place(fits);
        match (self.promises.first(fits), fair) {
            (Some(job), Some(fair)) if self.server.deadline < job.0 => Some(Choice::Fair(fair)),
            (Some(job), _) => Some(Choice::Promise(job)),
            (None, Some(fair)) => Some(Choice::Fair(fair)),
            (None, None) => self.promises.background(fits).map(Choice::Background),
        }
    }

    /// Takes one out of the queue, and has it run.
    fn run(&mut self, choice: Choice, now: Nanos) -> Option<T> {
        self.since = now;
        let (task, running) = match choice {
            Choice::Fair(place) => {
                let (fair, task) = self.fair.take(place)?;
                (task, Running::Fair(fair))
            }
            Choice::Promise(job) => (self.promises.take_job(job)?, Running::Promise(job.1)),
            Choice::Background(place) => (self.promises.take_waiting(place)?, Running::Background(place.1)),
        };
        self.running = running;
        Some(task)
    }

    /// Who runs next, while nobody does: the earliest deadline of those that fit.
    pub fn take(&mut self, now: Nanos, fits: impl Fn(&T) -> bool) -> Option<T> {
        let choice = self.choose(now, &fits)?;
        self.run(choice, now)
    }

    /// Who runs in place of what runs, if it is to give way now, and the account of that, which is stopped then.
    pub fn preempt(&mut self, now: Nanos, fits: impl Fn(&T) -> bool) -> Option<(T, Option<Account>)> {
        self.charge(now);
        let choice = self.choose(now, &fits)?;
        let gives_way = match (&mut self.running, choice) {
            (Running::Nothing, _) => true,
            (Running::Background(_), choice) => !matches!(choice, Choice::Background(_)),
            (Running::Fair(_), Choice::Background(_)) => false,
            (Running::Fair(_), Choice::Promise(job)) => job.0 <= self.server.deadline,
            (Running::Fair(fair), Choice::Fair(place)) => {
                // Best effort's turn has come, or it has the core still: a job that is ready has a later deadline.
                self.fair.is_before(place, fair, self.slice)
            }
            (Running::Promise(promise), choice) => {
                let deadline = self.promises.deadline(*promise).unwrap_or(Nanos::MAX);
                match choice {
                    Choice::Promise(job) => job.0 < deadline,
                    Choice::Fair(_) => self.server.deadline < deadline,
                    Choice::Background(_) => false,
                }
            }
        };
        gives_way.then(|| self.exchange(choice, now)).flatten()
    }

    /// Who runs in place of what runs, which lets others go first; `None`: nobody waits.
    pub fn give_way(&mut self, now: Nanos, fits: impl Fn(&T) -> bool) -> Option<(T, Option<Account>)> {
        self.end_release(now);
        let choice = self.choose(now, &fits)?;
        self.exchange(choice, now)
    }

    fn exchange(&mut self, choice: Choice, now: Nanos) -> Option<(T, Option<Account>)> {
        let old = self.stop(now);
        if let Some(Account::Promise(promise)) = old {
            self.back = self.promises.deadline(promise).map(|_| promise);
        }
        Some((self.run(choice, now)?, old))
    }

    /// Takes a best-effort task for another core.
    pub fn steal(&mut self, fits: impl Fn(&T) -> bool) -> Option<(T, Fair)> {
        let place = self.fair.place(&fits)?;
        let (fair, task) = self.fair.take(place)?;
        self.fair.leave(&fair);
        Some((task, fair))
    }

    /// Takes out a task that waits, wherever it does.
    pub fn remove(&mut self, fits: impl Fn(&T) -> bool) -> Option<T> {
        match self.promises.remove(&fits) {
            Some(task) => Some(task),
            None => self.steal(fits).map(|(task, _)| task),
        }
    }

    /// Whether time that was promised is what runs.
    pub fn runs_promise(&self) -> bool {
        matches!(self.running, Running::Promise(_))
    }

    /// Whether a real-time task waits that goes before what runs.
    pub fn is_urgent(&self) -> bool {
        let Some((deadline, _)) = self.promises.first(&|_| true) else { return false };
        match &self.running {
            Running::Nothing => false,
            Running::Fair(_) => deadline <= self.server.deadline,
            Running::Promise(promise) => self.promises.deadline(*promise).is_none_or(|own| deadline < own),
            Running::Background(_) => true,
        }
    }

    /// How long what runs may go on before there is something to decide; `None`: as long as nobody comes.
    pub fn until(&self, now: Nanos) -> Option<Nanos> {
        let spent = now.saturating_sub(self.since);
        let fair = match &self.running {
            Running::Fair(fair) if !self.fair.is_empty() => Some(fair.budget().saturating_sub(spent)),
            _ => None,
        };
        fair.into_iter().chain(self.until_promise(now)).min().map(|time| time.max(1))
    }

    /// The same, as far as real-time tasks are concerned.
    pub fn until_promise(&self, now: Nanos) -> Option<Nanos> {
        if self.is_urgent() {
            return Some(1);
        }
        let spent = now.saturating_sub(self.since);
        let budget = match &self.running {
            Running::Promise(promise) => Some(self.promises.budget(*promise)),
            Running::Fair(_) if self.has_jobs() => Some(self.server.budget()),
            _ => None,
        };
        let own = match &self.running {
            Running::Background(promise) => Some(self.promises.renewal(*promise)),
            _ => None,
        };
        let release = own.into_iter().chain(self.promises.next_release()).min().map(|release| release.saturating_sub(now));
        budget.map(|budget| budget.saturating_sub(spent)).into_iter().chain(release).min().map(|time| time.max(1))
    }
}
