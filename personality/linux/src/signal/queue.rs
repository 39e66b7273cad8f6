//! Pending signals.
//!
//! Standard signals (below 32) are pending at most once; real-time signals queue in order of arrival, lowest number first.
//! What a queue holds is counted against RLIMIT_SIGPENDING of the sender's target user (signal(7)).

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use janua_abi::linux::signal::{SIGRTMIN, SigInfo, si};
use janua_kernel::signal::SigSet;

use crate::user::UserCount;

struct Entry {
    info: SigInfo,
    /// Keeps the user's count up while the entry is queued.
    _charge: Option<Charge>,
}

/// One queued signal in a user's count.
struct Charge(Arc<UserCount>);

impl Charge {
    fn take(user: &Arc<UserCount>, limit: u64) -> Option<Charge> {
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

    /// Makes a signal pending. A standard signal that already is stays as it is. Over the limit a real-time signal sent by
    /// sigqueue(3) or a timer is refused; others become pending without their information.
    pub fn push(&mut self, info: SigInfo, user: &Arc<UserCount>, limit: u64) -> Result<(), Full> {
        let signal = info.signal();
        if signal < SIGRTMIN && self.set.has(signal) {
            return Ok(());
        }
        match Charge::take(user, limit) {
            Some(charge) => self.entries.push_back(Entry { info, _charge: Some(charge) }),
            // What the kernel sends must arrive whole whatever the limit: a fault's address is part of it.
            None if signal < SIGRTMIN && (info.code > 0 || info.code == si::USER) => {
                self.entries.push_back(Entry { info, _charge: None });
            }
            None if signal >= SIGRTMIN && info.code != si::USER => return Err(Full),
            None => {}
        }
        self.set = self.set.with(signal);
        Ok(())
    }

    /// Takes the next signal of `wanted`: those that come from the thread's own instructions first, then the lowest number.
    pub fn take(&mut self, wanted: SigSet) -> Option<SigInfo> {
        let wanted = self.set.and(wanted);
        let signal = wanted.and(super::SYNCHRONOUS).first().or(wanted.first())?;
        Some(self.take_one(signal))
    }

    fn take_one(&mut self, signal: u32) -> SigInfo {
        let at = self.entries.iter().position(|entry| entry.info.signal() == signal);
        let info = at.and_then(|at| self.entries.remove(at)).map(|entry| entry.info);
        if !self.entries.iter().any(|entry| entry.info.signal() == signal) {
            self.set = self.set.without(SigSet::of(signal));
        }
        // Pending without an entry: the information was dropped at the limit.
        info.unwrap_or(SigInfo::new(signal, si::USER))
    }

    /// Forgets every pending signal of `which`.
    pub fn discard(&mut self, which: SigSet) {
        if !self.set.and(which).is_empty() {
            self.entries.retain(|entry| !which.has(entry.info.signal()));
            self.set = self.set.without(which);
        }
    }
}
