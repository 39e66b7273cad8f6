//! Pending signals.
//!
//! Standard signals (below 32) are pending at most once; real-time signals queue in order of arrival, lowest number first.
//! What a queue holds is counted against RLIMIT_SIGPENDING of the sender's target user (signal(7)).

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use janua_abi::linux::signal::{SIGRTMIN, SigInfo, si};

use crate::signal::SigSet;
use crate::user::UserCount;

struct Entry {
    info: SigInfo,
    /// It is a timer's own, which a program may claim of others by `si_code`.
    of_timer: bool,
    /// Keeps the user's count up while the entry is queued.
    _charge: Option<Charge>,
}

/// One queued signal in a user's count.
pub struct Charge(Arc<UserCount>);

impl Charge {
    /// One more, unless there are `limit` already.
    pub fn take(user: &Arc<UserCount>, limit: u64) -> Option<Charge> {
        user.add_signal(limit).then(|| Charge(user.clone()))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.0.remove_signal();
    }
}

/// The signals pending for a thread or for a process.
#[derive(Default)]
pub struct Queue {
    set: SigSet,
    entries: VecDeque<Entry>,
}

/// There is no room for a real-time signal under RLIMIT_SIGPENDING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Queue {
    /// The numbers that are pending.
    pub fn set(&self) -> SigSet {
        self.set
    }

    /// Makes a timer's signal pending, which has a place of its own: the timer took one when it was made, and has one signal pending at most.
    pub fn push_of_timer(&mut self, info: SigInfo) {
        self.entries.push_back(Entry { info, of_timer: true, _charge: None });
        self.set = self.set.with(info.signal());
    }

    /// Makes a signal pending. A standard signal that already is stays as it is. Over the limit, or where there is no memory for more, a real-time
    /// signal sent by sigqueue(3) is refused; others become pending without their information.
    pub fn push(&mut self, info: SigInfo, user: &Arc<UserCount>, limit: u64) -> Result<(), Full> {
        let signal = info.signal();
        if signal < SIGRTMIN && self.set.has(signal) {
            return Ok(());
        }
        let charge = self.entries.try_reserve(1).ok().and_then(|()| Charge::take(user, limit));
        match charge {
            Some(charge) => self.entries.push_back(Entry { info, of_timer: false, _charge: Some(charge) }),
            // What the kernel sends must arrive whole whatever the limit: a fault's address is part of it.
            None if signal < SIGRTMIN && (info.code > 0 || info.code == si::USER) => {
                self.entries.push_back(Entry { info, of_timer: false, _charge: None });
            }
            None if signal >= SIGRTMIN && info.code != si::USER => return Err(Full),
            None => {}
        }
        self.set = self.set.with(signal);
        Ok(())
    }

    /// Takes the next signal of `wanted`: those that come from the thread's own instructions first, then the lowest number.
    pub fn take(&mut self, wanted: SigSet) -> Option<SigInfo> {
        self.take_with_origin(wanted).map(|(info, _)| info)
    }

    /// The same, and whether it is a timer's own.
    pub fn take_with_origin(&mut self, wanted: SigSet) -> Option<(SigInfo, bool)> {
        let wanted = self.set.and(wanted);
        let signal = wanted.and(super::SYNCHRONOUS).first().or(wanted.first())?;
        Some(self.take_one(signal))
    }

    fn take_one(&mut self, signal: u32) -> (SigInfo, bool) {
        let at = self.entries.iter().position(|entry| entry.info.signal() == signal);
        let taken = at.and_then(|at| self.entries.remove(at)).map(|entry| (entry.info, entry.of_timer));
        if !self.entries.iter().any(|entry| entry.info.signal() == signal) {
            self.set = self.set.without(SigSet::of(signal));
        }
        // Pending without an entry: the information was dropped at the limit.
        taken.unwrap_or((SigInfo::new(signal, si::USER), false))
    }

    /// What is known of a queued signal, by its place in order of arrival.
    pub fn entry(&self, at: usize) -> Option<SigInfo> {
        self.entries.get(at).map(|entry| entry.info)
    }

    /// Forgets what is pending of the timer `id`, or of all timers.
    pub fn forget_timer(&mut self, id: Option<i32>) {
        let is_of = |entry: &Entry| entry.of_timer && id.is_none_or(|id| entry.info.timer_fields().0 == id);
        let gone = self.entries.iter().filter(|entry| is_of(entry));
        let gone = gone.fold(SigSet::EMPTY, |set, entry| set.with(entry.info.signal()));
        self.entries.retain(|entry| !is_of(entry));
        let left = self.entries.iter().fold(SigSet::EMPTY, |set, entry| set.with(entry.info.signal()));
        self.set = self.set.without(gone.without(left));
    }

    /// Forgets every pending signal of `which`.
    pub fn discard(&mut self, which: SigSet) {
        if !self.set.and(which).is_empty() {
            self.entries.retain(|entry| !which.has(entry.info.signal()));
            self.set = self.set.without(which);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use janua_abi::linux::signal::{SIGINT, SIGSEGV, SIGTERM, SIGUSR1};

    const RT: u32 = SIGRTMIN + 2;

    fn queue(signals: &[SigInfo], limit: u64) -> (Queue, Arc<UserCount>, usize) {
        let (mut queue, user) = (Queue::default(), Arc::new(UserCount::default()));
        let refused = signals.iter().filter(|info| queue.push(**info, &user, limit).is_err()).count();
        (queue, user, refused)
    }

    fn value(value: u64) -> SigInfo {
        SigInfo::new(RT, si::QUEUE).with_value(value)
    }

    #[test]
    fn standard_signals_are_pending_once_and_real_time_ones_in_order() {
        let user = |signal| SigInfo::new(signal, si::USER);
        let (mut queue, count, _) = queue(&[value(1), user(SIGUSR1), value(2), user(SIGUSR1)], 100);
        assert_eq!(count.signals(), 3);
        let order: alloc::vec::Vec<_> = core::iter::from_fn(|| queue.take(SigSet::FULL)).collect();
        let order: alloc::vec::Vec<_> = order.iter().map(|info| (info.signal(), info.value())).collect();
        assert_eq!(order, [(SIGUSR1, 0), (RT, 1), (RT, 2)]);
        assert_eq!((count.signals(), queue.set()), (0, SigSet::EMPTY));
    }

    #[test]
    fn what_instructions_cause_comes_first() {
        let (mut queue, ..) = queue(&[SigInfo::new(SIGINT, si::USER), SigInfo::fault(SIGSEGV, 1, 8)], 100);
        assert_eq!(queue.take(SigSet::FULL).map(|info| (info.signal(), info.addr())), Some((SIGSEGV, 8)));
        assert!(queue.take(SigSet::of(SIGTERM)).is_none());
        queue.discard(SigSet::of(SIGINT));
        assert!(queue.take(SigSet::FULL).is_none());
    }

    #[test]
    fn the_limit_refuses_queued_signals_only() {
        let (mut queue, _, refused) = queue(&[value(1), value(2), SigInfo::new(SIGINT, si::KERNEL)], 1);
        assert_eq!(refused, 1);
        assert_eq!(queue.take(SigSet::of(SIGINT)).map(|info| info.code), Some(si::KERNEL));
        // kill(2) of a real-time signal is never refused, it only loses its information.
        let (mut full, _, refused) = self::queue(&[value(1), SigInfo::new(RT + 1, si::USER)], 1);
        assert_eq!((refused, full.take(SigSet::of(RT + 1)).is_some()), (0, true));
    }

    #[test]
    fn what_claims_to_be_a_timers_counts_and_stays_when_timers_go() {
        let claimed = SigInfo::timer(RT, 3, 0, 9);
        let (mut queue, count, refused) = queue(&[claimed, claimed], 1);
        queue.push_of_timer(SigInfo::timer(RT, 3, 0, 7));
        assert_eq!((count.signals(), refused), (1, 1));
        queue.forget_timer(Some(3));
        let taken = queue.take_with_origin(SigSet::FULL).map(|(info, of_timer)| (info.value(), of_timer));
        assert_eq!((taken, queue.set()), (Some((9, false)), SigSet::EMPTY));
    }
}
