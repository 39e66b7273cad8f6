//! POSIX timers: timer_create(2) and the calls on what it makes.
//!
//! A timer has at most one signal pending. While it is, the timer does not run: the expiries that were due meanwhile are counted
//! as overruns when the signal is taken, and the timer goes on then ([`delivered`]). So a timer costs no more than its process
//! takes, however short its interval. One whose signal is ignored goes on when the signal has a handler ([`heard`]); one that
//! notifies nobody (SIGEV_NONE) is only looked at when it is asked.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use janua_abi::linux::layout::Layout;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::signal::{SIGALRM, SigInfo};
use janua_abi::linux::time::{ITimerSpec, SigEvent, TIMER_ABSTIME, clock, sigev};
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::timerfd::Progress;
use janua_port::Nanos;
use janua_rt::Mutex;

use super::clock::{ClockArg, ClockId};
use super::service::{Key, Target, is_at_hand, wait_until};
use super::{cpu, interval};
use crate::signal::queue::Charge;
use crate::{Seat, Task, Thread, signal};

/// The timers of a process; locked before its signals ([`crate::process::Group`]). Not inherited by fork, gone with exec.
#[derive(Default)]
pub struct PosixTimers {
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    timers: BTreeMap<i32, Timer>,
    next_id: i32,
}

impl List {
    /// Adds a timer under the next free id, which it returns. EAGAIN.
    fn insert(&mut self, make: impl FnOnce(i32) -> Timer) -> Result<i32> {
        if self.timers.len() >= MOST {
            return Err(Errno::EAGAIN);
        }
        loop {
            let id = self.next_id;
            self.next_id = if id == i32::MAX { 0 } else { id + 1 };
            if let Entry::Vacant(place) = self.timers.entry(id) {
                place.insert(make(id));
                return Ok(id);
            }
        }
    }
}

struct Timer {
    clock: ClockId,
    /// The signal, 0 for none, and its value.
    signal: u32,
    value: u64,
    /// The thread that gets it; otherwise the process.
    thread: Option<Weak<Seat>>,
    /// As it was asked for: the clock, how to notify (SIGEV_*) and by which signal.
    asked: [i32; 3],
    /// In the time of the clock.
    progress: Progress,
    key: Option<Key>,
    signalled: Signalled,
    /// Expiries since the signal was sent.
    missed: u64,
    /// The place of its signal among those of its owner (RLIMIT_SIGPENDING): it is never refused.
    _charge: Charge,
    /// Of the signal delivered last (timer_getoverrun(2)).
    overrun: i32,
}

/// Where a timer's signal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signalled {
    /// Nowhere.
    Not,
    /// On its way or pending.
    Pending,
    /// It is ignored: to be sent when it no longer is.
    Held,
}

/// Most timers of a process: beyond, EAGAIN.
const MOST: usize = 32768;

fn overrun_of(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

impl Timer {
    fn now(&self, task: &Task, caller: Option<&Thread>) -> Nanos {
        let clocks = task.kernel.machine.clock();
        match self.clock {
            ClockId::Realtime { .. } => clocks.realtime(),
            ClockId::Monotonic { .. } => clocks.monotonic(),
            ClockId::Process { .. } => cpu::of_task(task, caller),
            ClockId::Thread { tid } => match caller.filter(|caller| caller.tid() == tid) {
                Some(caller) => cpu::own(caller),
                None => task.kernel.thread(tid).map_or(0, |seat| cpu::of_thread(&seat)),
            },
        }
    }

    /// Puts the timer in the service's queue, or has its clock sampled; if it runs and notifies anybody.
    fn arm(&mut self, task: &Arc<Task>, id: i32) {
        self.cancel(task);
        if self.progress.next.is_none() || self.signal == 0 {
            return;
        }
        let Some(at) = self.due(task) else { return interval::start_sampling(task) };
        self.key = Some(task.kernel.timers.add(&task.kernel, at, Target::Posix(Arc::downgrade(task), id)));
    }

    fn cancel(&mut self, task: &Task) {
        if let Some(old) = self.key.take() {
            task.kernel.timers.cancel(old);
        }
    }

    /// When it expires next (monotonic), unless it is not armed or on processor time.
    fn due(&self, task: &Task) -> Option<Nanos> {
        let next = self.progress.next?;
        let clocks = task.kernel.machine.clock();
        match self.clock {
            ClockId::Monotonic { .. } => Some(next),
            ClockId::Realtime { .. } => Some(clocks.monotonic().saturating_add(next.saturating_sub(clocks.realtime()))),
            ClockId::Process { .. } | ClockId::Thread { .. } => None,
        }
    }

    /// Counts the expiries that were not notified: overruns of a pending signal, nothing for a timer that notifies nobody.
    fn settle(&mut self, now: Nanos) {
        if self.signal == 0 || self.signalled != Signalled::Not {
            self.progress.settle(now);
            let count = core::mem::take(&mut self.progress.expired);
            self.missed = self.missed.saturating_add(count);
        }
    }

    /// Counts expiries up to `now`: the signal to send, if one is due.
    fn expire(&mut self, id: i32, now: Nanos) -> Option<Letter> {
        self.settle(now);
        self.progress.settle(now);
        let count = core::mem::take(&mut self.progress.expired);
        if count == 0 {
            return None;
        }
        self.missed = count - 1;
        Some(self.letter(id))
    }

    fn letter(&mut self, id: i32) -> Letter {
        self.signalled = Signalled::Pending;
        let info = SigInfo::timer(self.signal, id, 0, self.value);
        Letter { id, thread: self.thread.clone(), info }
    }
}

/// A signal to send once the list is unlocked.
struct Letter {
    id: i32,
    thread: Option<Weak<Seat>>,
    info: SigInfo,
}

impl Letter {
    /// `runner` is who used the processor time that a timer waited for, if that was it.
    fn send(self, task: &Arc<Task>, runner: Option<&Thread>) {
        let sent = match self.thread {
            None => signal::send_timer(task, signal::Target::preferring(runner), self.info),
            Some(thread) => {
                thread.upgrade().is_none_or(|seat| signal::send_timer(task, signal::Target::Thread(&seat), self.info))
            }
        };
        match task.posix_timers.list.lock().timers.get_mut(&self.id) {
            Some(timer) if !sent => timer.hold(),
            Some(_) => {}
            // Deleted meanwhile.
            None => signal::send::forget_timer(task, Some(self.id)),
        }
    }
}

impl Timer {
    /// The signal was ignored. One that comes only once is gone with it.
    fn hold(&mut self) {
        self.signalled = if self.progress.next.is_some() { Signalled::Held } else { Signalled::Not };
    }
}

/// A timer's time may have come.
pub fn expired(task: &Arc<Task>, id: i32) {
    let letter = {
        let mut list = task.posix_timers.list.lock();
        let Some(timer) = list.timers.get_mut(&id) else { return };
        let now = timer.now(task, None);
        let letter = timer.expire(id, now);
        timer.key = None;
        if timer.signalled == Signalled::Not {
            timer.arm(task, id);
        }
        letter
    };
    if let Some(letter) = letter {
        letter.send(task, None);
    }
}

/// What was pending of `number` has been forgotten, since the process ignores it now.
pub fn ignored(task: &Task, number: u32) {
    for timer in task.posix_timers.list.lock().timers.values_mut() {
        if timer.signal == number && timer.signalled == Signalled::Pending {
            timer.hold();
        }
    }
}

/// The process no longer ignores `number`: the timers that expired meanwhile send it.
pub fn heard(task: &Arc<Task>, number: u32) {
    let mut letters = Vec::new();
    for (&id, timer) in &mut task.posix_timers.list.lock().timers {
        if timer.signal == number && timer.signalled == Signalled::Held {
            letters.push(timer.letter(id));
        }
    }
    for letter in letters {
        letter.send(task, None);
    }
}

/// Looks at the timers on processor time; whether one is still armed. Each clock is asked once, however many timers go by it.
pub fn sample(task: &Arc<Task>, runner: Option<&Thread>) -> bool {
    let mut letters = Vec::new();
    let mut armed = false;
    let mut clocks = BTreeMap::new();
    for (&id, timer) in &mut task.posix_timers.list.lock().timers {
        if timer.clock.is_cpu() && timer.progress.next.is_some() {
            let tid = if let ClockId::Thread { tid } = timer.clock { Some(tid) } else { None };
            let (now, goes_on) = clocks.entry(tid).or_insert_with(|| (timer.now(task, None), false));
            letters.extend(timer.expire(id, *now));
            if timer.signalled == Signalled::Not && timer.progress.next.is_some() {
                *goes_on = true;
                armed = true;
            }
        }
    }
    let going_on = clocks.into_iter().filter(|(_, (_, goes_on))| *goes_on).filter_map(|(tid, _)| tid);
    for seat in going_on.filter_map(|tid| task.kernel.thread(tid)) {
        cpu::ask(&seat);
    }
    for letter in letters {
        letter.send(task, runner);
    }
    armed
}

/// A timer's signal has been taken from the queue: fills in its overruns, and the timer goes on. False when the timer has been
/// deleted or set anew since, so that the signal is to be dropped.
pub fn delivered(task: &Arc<Task>, info: &mut SigInfo) -> bool {
    let mut list = task.posix_timers.list.lock();
    let (id, ..) = info.timer_fields();
    let Some(timer) = list.timers.get_mut(&id).filter(|timer| timer.signalled == Signalled::Pending) else { return false };
    let now = timer.now(task, None);
    timer.settle(now);
    timer.signalled = Signalled::Not;
    timer.overrun = overrun_of(core::mem::take(&mut timer.missed));
    info.set_overrun(timer.overrun);
    timer.arm(task, id);
    true
}

/// Deletes all timers (exec, exit).
pub fn delete_all(task: &Task) {
    let timers = core::mem::take(&mut task.posix_timers.list.lock().timers);
    if !timers.is_empty() {
        signal::send::forget_timer(task, None);
    }
    for timer in timers.values() {
        if let Some(key) = timer.key {
            task.kernel.timers.cancel(key);
        }
    }
}

pub fn timer_create(thread: &Thread, id: ClockArg, event: UserPtr<impl Layout<SigEvent>>, place: UserPtr<i32>) -> Result<()> {
    let clock = match id.0 {
        clock::REALTIME_COARSE | clock::MONOTONIC_COARSE | clock::MONOTONIC_RAW => return Err(Errno::EOPNOTSUPP),
        clock::TAI => ClockId::Realtime { coarse: false },
        _ => match id.resolve(thread)? {
            ClockId::Thread { tid: 0 } => ClockId::Thread { tid: thread.tid() },
            // Only of one's own process: another's could end while its timer runs.
            ClockId::Process { pid } if pid != 0 && pid != thread.task.pid => return Err(Errno::EINVAL),
            clock => clock,
        },
    };
    let event = match event.non_null() {
        Some(event) => Some(event.load(thread.user())?),
        None => None,
    };
    let asked = match &event {
        None => None,
        Some(event) => Some(target(thread, event)?),
    };
    let (notify, signo) = event.map_or((sigev::SIGNAL, SIGALRM as i32), |event| (event.notify, event.signo));
    // A signal's place is taken now, so that none is missing when the timer expires.
    let user = thread.charge.lock().user().clone();
    let charge = Charge::take(&user, thread.task.limits.soft(rlimit::SIGPENDING)).ok_or(Errno::EAGAIN)?;
    let new = thread.task.posix_timers.list.lock().insert(|new| {
        // The default: SIGALRM with the id as value.
        let (signal, value, target) = asked.unwrap_or((SIGALRM, new as u64, None));
        Timer {
            clock,
            asked: [id.0, notify, signo],
            signal,
            value,
            thread: target,
            progress: Progress::default(),
            key: None,
            signalled: Signalled::Not,
            missed: 0,
            _charge: charge,
            overrun: 0,
        }
    })?;
    // Not with the list locked: the write may wait for a page, and timers that expire for the list.
    place.write(thread.user(), &new).inspect_err(|_| {
        let _ = timer_delete(thread, new);
    })
}

/// /proc/PID/timers, the newest first.
pub fn list(task: &Task, out: &mut dyn Write) -> fmt::Result {
    for (id, timer) in task.posix_timers.list.lock().timers.iter().rev() {
        let [clock, notify, signo] = timer.asked;
        let how = match notify & !sigev::THREAD_ID {
            sigev::SIGNAL => "signal",
            sigev::NONE => "none",
            _ => "thread",
        };
        let (whose, number) = match &timer.thread {
            None => ("pid", task.pid),
            Some(thread) => ("tid", thread.upgrade().map_or(0, |seat| seat.tid())),
        };
        write!(out, "ID: {id}\nsignal: {signo}/{:016x}\nnotify: {how}/{whose}.{number}\nClockID: {clock}\n", timer.value)?;
    }
    Ok(())
}

fn target(thread: &Thread, event: &SigEvent) -> Result<(u32, u64, Option<Weak<Seat>>)> {
    let number = event.signo as u32;
    match event.notify {
        sigev::NONE => Ok((0, event.value, None)),
        sigev::SIGNAL | sigev::THREAD if signal::is_signal(number) => Ok((number, event.value, None)),
        sigev::THREAD_ID if signal::is_signal(number) => {
            let seat = thread.kernel.thread(event.tid as u32).filter(|seat| seat.task.pid == thread.task.pid);
            Ok((number, event.value, Some(Arc::downgrade(&seat.ok_or(Errno::EINVAL)?))))
        }
        _ => Err(Errno::EINVAL),
    }
}

pub fn timer_settime(
    thread: &Thread,
    id: i32,
    flags: u32,
    new: UserPtr<impl Layout<ITimerSpec>>,
    old: UserPtr<impl Layout<ITimerSpec>>,
) -> Result<()> {
    let new = match new.non_null() {
        Some(new) => new.load(thread.user())?,
        None => return Err(Errno::EINVAL),
    };
    let (value, interval) = (new.value.nanos()?, new.interval.nanos()?);
    let (was, at_hand) = {
        let mut list = thread.task.posix_timers.list.lock();
        let timer = list.timers.get_mut(&id).ok_or(Errno::EINVAL)?;
        let now = timer.now(&thread.task, Some(thread));
        timer.settle(now);
        let was = timer.progress.remaining(now);
        let next = if flags & TIMER_ABSTIME != 0 { value } else { now.saturating_add(value) };
        timer.progress = Progress { next: (value != 0).then_some(next), interval, expired: 0 };
        timer.missed = 0;
        timer.overrun = 0;
        if core::mem::replace(&mut timer.signalled, Signalled::Not) == Signalled::Pending {
            signal::send::forget_timer(&thread.task, Some(id));
        }
        let monotonic = thread.machine().clock().monotonic();
        let at_hand = timer.due(&thread.task).filter(|at| timer.signal != 0 && is_at_hand(monotonic, *at));
        match at_hand {
            None => timer.arm(&thread.task, id),
            Some(_) => timer.cancel(&thread.task),
        }
        (was, at_hand)
    };
    if let Some(at) = at_hand {
        wait_until(&thread.kernel, at);
        expired(&thread.task, id);
    }
    match old.non_null() {
        Some(old) => old.store(thread.user(), &ITimerSpec::from_nanos(was)),
        None => Ok(()),
    }
}

pub fn timer_gettime(thread: &Thread, id: i32, place: UserPtr<impl Layout<ITimerSpec>>) -> Result<()> {
    let value = {
        let mut list = thread.task.posix_timers.list.lock();
        let timer = list.timers.get_mut(&id).ok_or(Errno::EINVAL)?;
        let now = timer.now(&thread.task, Some(thread));
        timer.settle(now);
        timer.progress.remaining(now)
    };
    place.store(thread.user(), &ITimerSpec::from_nanos(value))
}

pub fn timer_getoverrun(thread: &Thread, id: i32) -> Result<i32> {
    let list = thread.task.posix_timers.list.lock();
    list.timers.get(&id).map(|timer| timer.overrun).ok_or(Errno::EINVAL)
}

pub fn timer_delete(thread: &Thread, id: i32) -> Result<()> {
    let timer = thread.task.posix_timers.list.lock().timers.remove(&id).ok_or(Errno::EINVAL)?;
    if timer.signalled == Signalled::Pending {
        signal::send::forget_timer(&thread.task, Some(id));
    }
    if let Some(key) = timer.key {
        thread.kernel.timers.cancel(key);
    }
    Ok(())
}
