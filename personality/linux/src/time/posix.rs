//! POSIX timers: timer_create(2) and its kin.
//!
//! A timer has at most one signal pending. Expiries that find it still pending are counted as overruns, which go with the signal
//! when it is delivered ([`delivered`]).

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use janua_abi::linux::layout::Layout;
use janua_abi::linux::signal::{SIGALRM, SigInfo, si};
use janua_abi::linux::time::{ITimerSpec, SigEvent, TIMER_ABSTIME, TimeSpec, clock, sigev};
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::timerfd::Progress;
use janua_port::Nanos;
use janua_rt::Mutex;

use super::clock::{ClockArg, ClockId};
use super::service::{Key, Target};
use super::{cpu, interval};
use crate::{Seat, Task, Thread, signal};

/// The timers of a process. Not inherited by fork, gone with exec.
#[derive(Default)]
pub struct PosixTimers {
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    timers: BTreeMap<i32, Timer>,
    next_id: i32,
}

struct Timer {
    clock: ClockId,
    /// The signal, 0 for none, and its value.
    signal: u32,
    value: u64,
    /// The thread that gets it; otherwise the process.
    thread: Option<Weak<Seat>>,
    /// As it was asked for: the clock, how to tell (SIGEV_*) and by which signal.
    asked: [i32; 3],
    /// In the time of the clock.
    progress: Progress,
    key: Option<Key>,
    /// Whether a signal of this timer is on its way; and expiries since it was sent.
    pending: bool,
    missed: u64,
    /// Of the signal delivered last (timer_getoverrun(2)).
    overrun: i32,
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

    /// Puts the timer in the service's queue, or has its clock sampled.
    fn arm(&mut self, task: &Arc<Task>, id: i32) {
        if let Some(old) = self.key.take() {
            task.kernel.timers.cancel(old);
        }
        let Some(next) = self.progress.next else { return };
        let clocks = task.kernel.machine.clock();
        let at = match self.clock {
            ClockId::Monotonic { .. } => next,
            ClockId::Realtime { .. } => clocks.monotonic().saturating_add(next.saturating_sub(clocks.realtime())),
            ClockId::Process { .. } | ClockId::Thread { .. } => return interval::start_sampling(task),
        };
        self.key = Some(task.kernel.timers.add(&task.kernel, at, Target::Posix(Arc::downgrade(task), id)));
    }

    /// Counts expiries up to `now`: the signal to send, if one is due.
    fn expire(&mut self, id: i32, now: Nanos) -> Option<Letter> {
        self.progress.settle(now);
        let count = core::mem::take(&mut self.progress.expired);
        if count == 0 || self.signal == 0 {
            return None;
        }
        if self.pending {
            self.missed = self.missed.saturating_add(count);
            return None;
        }
        self.pending = true;
        self.missed = count - 1;
        let info = SigInfo::timer(self.signal, id, 0, self.value);
        Some(Letter { id, thread: self.thread.clone(), info })
    }
}

/// A signal to send once the list is unlocked.
struct Letter {
    id: i32,
    thread: Option<Weak<Seat>>,
    info: SigInfo,
}

impl Letter {
    fn send(self, task: &Arc<Task>) {
        let sent = match self.thread {
            None => signal::send_task(task, self.info).is_ok(),
            Some(thread) => thread.upgrade().is_some_and(|seat| signal::send_thread(&seat, self.info).is_ok()),
        };
        if !sent && let Some(timer) = task.posix_timers.list.lock().timers.get_mut(&self.id) {
            timer.pending = false;
        }
    }
}

/// A timer's time may have come.
pub fn expired(task: &Arc<Task>, id: i32) {
    let letter = {
        let mut list = task.posix_timers.list.lock();
        let Some(timer) = list.timers.get_mut(&id) else { return };
        let now = timer.now(task, None);
        let letter = timer.expire(id, now);
        timer.arm(task, id);
        letter
    };
    if let Some(letter) = letter {
        letter.send(task);
    }
}

/// Looks at the timers on processor time; whether one is still armed.
pub fn sample(task: &Arc<Task>) -> bool {
    let mut letters = Vec::new();
    let mut armed = false;
    for (&id, timer) in &mut task.posix_timers.list.lock().timers {
        if timer.clock.is_cpu() && timer.progress.next.is_some() {
            let now = timer.now(task, None);
            letters.extend(timer.expire(id, now));
            armed |= timer.progress.next.is_some();
            if let (ClockId::Thread { tid }, Some(_)) = (timer.clock, timer.progress.next)
                && let Some(seat) = task.kernel.thread(tid)
            {
                cpu::ask(&seat);
            }
        }
    }
    for letter in letters {
        letter.send(task);
    }
    armed
}

/// A timer's signal has been taken from the queue: fills in its overruns. False when the timer has been deleted or set anew
/// since, so that the signal is to be dropped.
pub fn delivered(task: &Task, info: &mut SigInfo) -> bool {
    if info.code != si::TIMER {
        return true;
    }
    let mut list = task.posix_timers.list.lock();
    let (id, ..) = info.timer_fields();
    let Some(timer) = list.timers.get_mut(&id) else { return false };
    timer.pending = false;
    timer.overrun = overrun_of(core::mem::take(&mut timer.missed));
    info.set_overrun(timer.overrun);
    true
}

/// Deletes all timers (exec, exit).
pub fn delete_all(task: &Task) {
    let timers = core::mem::take(&mut task.posix_timers.list.lock().timers);
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
    let mut list = thread.task.posix_timers.list.lock();
    if list.timers.len() >= MOST {
        return Err(Errno::EAGAIN);
    }
    let new = loop {
        let id = list.next_id;
        list.next_id = if id == i32::MAX { 0 } else { id + 1 };
        if !list.timers.contains_key(&id) {
            break id;
        }
    };
    let (signal, value, target) = match event {
        // The default: SIGALRM with the id as value.
        None => (SIGALRM, new as u64, None),
        Some(event) => target(thread, &event)?,
    };
    let (notify, signo) = event.map_or((sigev::SIGNAL, SIGALRM as i32), |event| (event.notify, event.signo));
    place.write(thread.user(), &new)?;
    let timer = Timer {
        clock,
        asked: [id.0, notify, signo],
        signal,
        value,
        thread: target,
        progress: Progress::default(),
        key: None,
        pending: false,
        missed: 0,
        overrun: 0,
    };
    list.timers.insert(new, timer);
    Ok(())
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

fn spec((value, interval): (Nanos, Nanos)) -> ITimerSpec {
    ITimerSpec { interval: TimeSpec::from_nanos(interval), value: TimeSpec::from_nanos(value) }
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
    let was = {
        let mut list = thread.task.posix_timers.list.lock();
        let timer = list.timers.get_mut(&id).ok_or(Errno::EINVAL)?;
        let now = timer.now(&thread.task, Some(thread));
        let was = timer.progress.remaining(now);
        let next = if flags & TIMER_ABSTIME != 0 { value } else { now.saturating_add(value) };
        timer.progress = Progress { next: (value != 0).then_some(next), interval, expired: 0 };
        timer.missed = 0;
        timer.overrun = 0;
        timer.arm(&thread.task, id);
        was
    };
    match old.non_null() {
        Some(old) => old.store(thread.user(), &spec(was)),
        None => Ok(()),
    }
}

pub fn timer_gettime(thread: &Thread, id: i32, place: UserPtr<impl Layout<ITimerSpec>>) -> Result<()> {
    let value = {
        let mut list = thread.task.posix_timers.list.lock();
        let timer = list.timers.get_mut(&id).ok_or(Errno::EINVAL)?;
        let now = timer.now(&thread.task, Some(thread));
        if timer.signal == 0 {
            // Nobody counts the expiries of a timer that tells nobody.
            timer.progress.settle(now);
        }
        timer.progress.remaining(now)
    };
    place.store(thread.user(), &spec(value))
}

pub fn timer_getoverrun(thread: &Thread, id: i32) -> Result<i32> {
    let list = thread.task.posix_timers.list.lock();
    list.timers.get(&id).map(|timer| timer.overrun).ok_or(Errno::EINVAL)
}

pub fn timer_delete(thread: &Thread, id: i32) -> Result<()> {
    let timer = thread.task.posix_timers.list.lock().timers.remove(&id).ok_or(Errno::EINVAL)?;
    if let Some(key) = timer.key {
        thread.kernel.timers.cancel(key);
    }
    Ok(())
}
