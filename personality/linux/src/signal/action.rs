//! Dispositions: what a process does with each signal. Shared by its threads, and by CLONE_SIGHAND.

use core::sync::atomic::Ordering;

use janua_abi::linux::signal::*;
use janua_rt::{AtomicU64, Mutex};

use crate::signal::SigSet;

/// What happens by default (signal(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    Terminate,
    /// Terminate, and leave a core file where the limit allows one.
    Core,
    Stop,
    Continue,
    Ignore,
}

/// The default action of a signal.
pub fn default_action(signal: u32) -> Default {
    match signal {
        SIGQUIT | SIGILL | SIGTRAP | SIGABRT | SIGBUS | SIGFPE | SIGSEGV | SIGXCPU | SIGXFSZ | SIGSYS => Default::Core,
        SIGSTOP | SIGTSTP | SIGTTIN | SIGTTOU => Default::Stop,
        SIGCONT => Default::Continue,
        SIGCHLD | SIGURG | SIGWINCH => Default::Ignore,
        _ => Default::Terminate,
    }
}

/// The dispositions of all signals.
pub struct Actions {
    table: Mutex<[SigAction; SIGMAX as usize]>,
    /// Signals whose effect is none; read without the lock on every send.
    ignored: AtomicU64,
}

impl core::default::Default for Actions {
    fn default() -> Actions {
        Actions::from_table([SigAction::default(); SIGMAX as usize])
    }
}

fn is_ignored(signal: u32, action: &SigAction) -> bool {
    match action.handler {
        SIG_IGN => true,
        SIG_DFL => default_action(signal) == Default::Ignore || default_action(signal) == Default::Continue,
        _ => false,
    }
}

impl Actions {
    fn from_table(table: [SigAction; SIGMAX as usize]) -> Actions {
        let ignored =
            (1..=SIGMAX).filter(|signal| is_ignored(*signal, &table[*signal as usize - 1])).fold(SigSet::EMPTY, SigSet::with);
        Actions { table: Mutex::new(table), ignored: AtomicU64::new(ignored.0) }
    }

    /// A copy for fork.
    pub fn duplicate(&self) -> Actions {
        Actions::from_table(*self.table.lock())
    }

    /// A copy with every handler reset (CLONE_CLEAR_SIGHAND, exec); what is ignored stays so.
    pub fn without_handlers(&self) -> Actions {
        let keep = |action: &SigAction| match action.handler {
            SIG_IGN => SigAction { handler: SIG_IGN, ..SigAction::default() },
            _ => SigAction::default(),
        };
        Actions::from_table(self.table.lock().each_ref().map(keep))
    }

    /// The action of a signal 1..=64.
    pub fn get(&self, signal: u32) -> SigAction {
        self.table.lock().get(signal.wrapping_sub(1) as usize).copied().unwrap_or_default()
    }

    /// Changes the action of a signal; what it was before.
    pub fn set(&self, signal: u32, action: SigAction) -> SigAction {
        let mut table = self.table.lock();
        let Some(slot) = table.get_mut(signal.wrapping_sub(1) as usize) else { return SigAction::default() };
        let old = core::mem::replace(slot, action);
        let bit = SigSet::of(signal).0;
        if is_ignored(signal, &action) {
            self.ignored.fetch_or(bit, Ordering::SeqCst);
        } else {
            self.ignored.fetch_and(!bit, Ordering::SeqCst);
        }
        old
    }

    /// Signals that have no effect: ignored, or of no effect by default.
    pub fn ignored(&self) -> SigSet {
        SigSet(self.ignored.load(Ordering::SeqCst))
    }

    /// Signals whose action is SIG_IGN, and those with a handler: what /proc/PID/status shows.
    pub fn summary(&self) -> (SigSet, SigSet) {
        let table = self.table.lock();
        let of = |wanted: fn(u64) -> bool| {
            (1..=SIGMAX).filter(|signal| wanted(table[*signal as usize - 1].handler)).fold(SigSet::EMPTY, SigSet::with)
        };
        (of(|handler| handler == SIG_IGN), of(|handler| handler != SIG_IGN && handler != SIG_DFL))
    }
}
