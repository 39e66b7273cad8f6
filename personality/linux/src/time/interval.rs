//! Interval timers: getitimer(2), setitimer(2), alarm(2); and the sampling of processor time that drives those on it.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use janua_abi::linux::layout::Layout;
use janua_abi::linux::process::{Rlimit, TimeVal, rlimit};
use janua_abi::linux::signal::{SIGALRM, SIGKILL, SIGPROF, SIGVTALRM, SIGXCPU};
use janua_abi::linux::time::{ITimerVal, itimer};
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::timerfd::Progress;
use janua_port::Nanos;
use janua_rt::{AtomicU64, Mutex};

use super::service::{Key, SAMPLE, Target, is_at_hand, wait_until};
use super::{cpu, posix};
use crate::{Seat, Task, Thread, signal};

/// The interval timers of a process.
#[derive(Default)]
pub struct IntervalTimers {
    real: Mutex<Armed>,
    /// ITIMER_VIRTUAL and ITIMER_PROF, in the process' own processor time.
    cpu: Mutex<[Progress; 2]>,
    /// The second of processor time from which SIGXCPU is due (again).
    warn_at: AtomicU64,
    /// The next look at the processor time, while a timer depends on it.
    sampling: Mutex<Option<Key>>,
    /// How many such looks there were: the threads that run take the signals in turn.
    looks: AtomicUsize,
}

#[derive(Default)]
struct Armed {
    progress: Progress,
    key: Option<Key>,
    /// It is due so soon that who has set it waits for that.
    at_hand: bool,
}

/// Disarms all timers of a process.
pub fn disarm(task: &Task) {
    let key = core::mem::take(&mut *task.interval.real.lock()).key;
    *task.interval.cpu.lock() = Default::default();
    for key in [key, task.interval.sampling.lock().take()].into_iter().flatten() {
        task.kernel.timers.cancel(key);
    }
}

/// Whether a timer of the process is set.
pub fn is_armed(task: &Task) -> bool {
    task.interval.real.lock().progress.next.is_some() || task.interval.cpu.lock().iter().any(|timer| timer.next.is_some())
}

/// Starts to look at a process' processor time, unless that is under way.
pub fn start_sampling(task: &Arc<Task>) {
    let mut sampling = task.interval.sampling.lock();
    if sampling.is_none() {
        let at = task.kernel.machine.clock().monotonic() + SAMPLE;
        *sampling = Some(task.kernel.timers.add(&task.kernel, at, Target::Cpu(Arc::downgrade(task))));
    }
}

/// Who is to take what a process' processor time brings about: a thread that uses it, as on Linux, where the clock interrupts one
/// that runs. A profiler asks the thread that it interrupts where it is.
fn runner(task: &Task) -> Option<Arc<Seat>> {
    let look = task.interval.looks.fetch_add(1, Ordering::Relaxed);
    let mut threads = task.threads();
    threads.retain(|seat| !seat.is_waiting());
    (!threads.is_empty()).then(|| threads.swap_remove(look % threads.len()))
}

/// Looks at a process' processor time and fires what it has reached.
pub fn sample(task: &Arc<Task>) {
    *task.interval.sampling.lock() = None;
    let now = cpu::of_task(task, None);
    let mut due = [false; 2];
    let runner = runner(task);
    let runner = runner.as_deref().map(|seat| &**seat);
    let mut armed = posix::sample(task, runner) | check_limit(task, now, runner);
    for (at, timer) in task.interval.cpu.lock().iter_mut().enumerate() {
        timer.settle(now);
        due[at] = core::mem::take(&mut timer.expired) > 0;
        armed |= timer.next.is_some();
    }
    for (due, number) in due.into_iter().zip([SIGVTALRM, SIGPROF]) {
        if due {
            signal::send_runner(task, runner, signal::kernel_signal(number));
        }
    }
    if armed {
        start_sampling(task);
    }
}

/// Starts to look at a process' processor time if that is limited (RLIMIT_CPU).
pub fn watch_limit(task: &Arc<Task>) {
    if task.limits.get(rlimit::CPU) != UNLIMITED {
        start_sampling(task);
    }
}

const UNLIMITED: Rlimit = Rlimit { soft: rlimit::INFINITY, hard: rlimit::INFINITY };

/// SIGXCPU at the soft limit and at each second after, SIGKILL at the hard one (getrlimit(2)). Whether there is a limit.
fn check_limit(task: &Arc<Task>, now: Nanos, runner: Option<&Thread>) -> bool {
    let limit = task.limits.get(rlimit::CPU);
    if limit == UNLIMITED {
        return false;
    }
    let used = now / 1_000_000_000;
    if used >= limit.hard {
        let _ = signal::send_task(task, signal::kernel_signal(SIGKILL));
    } else if used >= limit.soft.max(1) && used >= task.interval.warn_at.load(Ordering::Relaxed) {
        task.interval.warn_at.store(used + 1, Ordering::Relaxed);
        signal::send_runner(task, runner, signal::kernel_signal(SIGXCPU));
    }
    true
}

/// ITIMER_REAL's time may have come. One with an interval goes on when its signal is taken ([`real_taken`]), as on Linux: it
/// costs no more than its process takes.
pub fn real_expired(task: &Arc<Task>) {
    let sent = {
        let mut real = task.interval.real.lock();
        let now = task.kernel.machine.clock().monotonic();
        real.progress.settle(now);
        real.at_hand = false;
        if core::mem::take(&mut real.progress.expired) > 0 {
            real.key = None;
            // Under the lock: who has disarmed it, or set it anew, finds the signal pending already and gets none of it afterwards.
            Some(signal::send::queue(task, signal::kernel_signal(SIGALRM)))
        } else {
            rearm(task, &mut real);
            None
        }
    };
    if let Some(sent) = sent {
        sent.finish();
    }
}

/// A SIGALRM of the process has been taken: ITIMER_REAL goes on.
pub fn real_taken(task: &Arc<Task>) {
    let mut real = task.interval.real.lock();
    if real.key.is_none() && !real.at_hand && real.progress.next.is_some() {
        real.progress.settle(task.kernel.machine.clock().monotonic());
        real.progress.expired = 0;
        rearm(task, &mut real);
    }
}

fn cancel(task: &Task, real: &mut Armed) {
    if let Some(old) = real.key.take() {
        task.kernel.timers.cancel(old);
    }
}

fn rearm(task: &Arc<Task>, real: &mut Armed) {
    cancel(task, real);
    real.key = real.progress.next.map(|at| task.kernel.timers.add(&task.kernel, at, Target::Real(Arc::downgrade(task))));
}

/// Which timer, checked. EINVAL.
fn which(number: i32) -> Result<Option<usize>> {
    match number {
        itimer::REAL => Ok(None),
        itimer::VIRTUAL => Ok(Some(0)),
        itimer::PROF => Ok(Some(1)),
        _ => Err(Errno::EINVAL),
    }
}

fn get(thread: &Thread, which: Option<usize>) -> (Nanos, Nanos) {
    match which {
        None => {
            let real = thread.task.interval.real.lock();
            let (value, interval) = real.progress.remaining(thread.machine().clock().monotonic());
            // One that waits for its signal to be taken runs no more than one that is disarmed.
            (if real.key.is_some() { value } else { 0 }, interval)
        }
        Some(at) => {
            let now = cpu::of_task(&thread.task, Some(thread));
            thread.task.interval.cpu.lock()[at].remaining(now)
        }
    }
}

fn set(thread: &Thread, which: Option<usize>, value: Nanos, interval: Nanos) -> (Nanos, Nanos) {
    let old = get(thread, which);
    let task = &thread.task;
    let armed = |now: Nanos| Progress {
        next: (value != 0).then(|| now.saturating_add(value)),
        interval: if value == 0 { 0 } else { interval },
        expired: 0,
    };
    match which {
        None => {
            let mut real = task.interval.real.lock();
            let now = thread.machine().clock().monotonic();
            real.progress = armed(now);
            match real.progress.next.filter(|at| is_at_hand(now, *at)) {
                None => rearm(task, &mut real),
                Some(at) => {
                    cancel(task, &mut real);
                    real.at_hand = true;
                    drop(real);
                    wait_until(&thread.kernel, at);
                    // Should another thread have set it meanwhile, this finds that it has not expired.
                    real_expired(task);
                }
            }
        }
        Some(at) => {
            let now = cpu::of_task(task, Some(thread));
            task.interval.cpu.lock()[at] = armed(now);
            if value != 0 {
                start_sampling(task);
            }
        }
    }
    old
}

fn val((value, interval): (Nanos, Nanos)) -> ITimerVal {
    ITimerVal { interval: TimeVal::from_nanos(interval), value: TimeVal::from_nanos_up(value) }
}

pub fn getitimer(thread: &Thread, number: i32, place: UserPtr<impl Layout<ITimerVal>>) -> Result<()> {
    let which = which(number)?;
    place.store(thread.user(), &val(get(thread, which)))
}

/// setitimer(2); a null new value disarms, as Linux still has it.
pub fn setitimer(
    thread: &Thread,
    number: i32,
    new: UserPtr<impl Layout<ITimerVal>>,
    old: UserPtr<impl Layout<ITimerVal>>,
) -> Result<()> {
    let new = match new.non_null() {
        Some(new) => new.load(thread.user())?,
        None => ITimerVal::default(),
    };
    let (value, interval) = (new.value.nanos()?, new.interval.nanos()?);
    let was = set(thread, which(number)?, value, interval);
    match old.non_null() {
        Some(old) => old.store(thread.user(), &val(was)),
        None => Ok(()),
    }
}

/// alarm(2): the seconds that were left, rounded up from half.
pub fn alarm(thread: &Thread, seconds: u32) -> usize {
    let (left, _) = set(thread, None, Nanos::from(seconds) * 1_000_000_000, 0);
    let (whole, part) = (left / 1_000_000_000, left % 1_000_000_000);
    // Never 0 while an alarm was set.
    if whole == 0 && part > 0 || part >= 500_000_000 { whole as usize + 1 } else { whole as usize }
}
