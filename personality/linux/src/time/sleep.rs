//! nanosleep(2) and clock_nanosleep(2).

use janua_abi::linux::time::{TIMER_ABSTIME, TimeSpec, clock};
use janua_kernel::wait::Cut;
use janua_kernel::{Errno, Result, UserPtr};
use janua_port::Nanos;

use super::clock::{ClockArg, ClockId};
use super::service::SAMPLE;
use crate::restart::{self, Restart};
use crate::{Thread, poll};

/// nanosleep(2).
pub async fn nanosleep(thread: &Thread, time: UserPtr<TimeSpec>, remaining: UserPtr<TimeSpec>) -> Result<usize> {
    let nanos = time.read(thread.user())?.nanos()?;
    let deadline = thread.machine().clock().monotonic().saturating_add(nanos);
    go_on(thread, deadline, remaining.addr()).await
}

/// clock_nanosleep(2): answers the error as any call does; the C library turns the sign.
pub async fn clock_nanosleep(
    thread: &Thread,
    id: ClockArg,
    flags: u32,
    time: UserPtr<TimeSpec>,
    remaining: UserPtr<TimeSpec>,
) -> Result<usize> {
    match id.0 {
        clock::REALTIME_COARSE | clock::MONOTONIC_COARSE | clock::MONOTONIC_RAW => return Err(Errno::EOPNOTSUPP),
        _ => {}
    }
    let clock = id.resolve(thread)?;
    let nanos = time.read(thread.user())?.nanos()?;
    let absolute = flags & TIMER_ABSTIME != 0;
    let remaining = if absolute { 0 } else { remaining.addr() };
    match clock {
        ClockId::Thread { .. } => Err(Errno::EINVAL),
        ClockId::Process { .. } => {
            let until = if absolute { nanos } else { clock.now(thread)?.saturating_add(nanos) };
            let result = cpu_go_on(thread, clock, until, remaining).await;
            if absolute { no_hand(result) } else { result }
        }
        _ if absolute => {
            let deadline = clock.to_monotonic(thread, nanos);
            match thread.sleep_until(deadline).await {
                Ok(()) => Ok(0),
                Err(_) => Err(Errno::ERESTARTNOHAND),
            }
        }
        _ => {
            let deadline = thread.machine().clock().monotonic().saturating_add(nanos);
            go_on(thread, deadline, remaining).await
        }
    }
}

/// A call that names a point of time is made again as it is.
fn no_hand(result: Result<usize>) -> Result<usize> {
    result.map_err(|errno| if errno == Errno::ERESTART_RESTARTBLOCK { Errno::ERESTARTNOHAND } else { errno })
}

/// Sleeps until `deadline` (monotonic); also after a restart. What is left goes to `remaining` when interrupted.
pub async fn go_on(thread: &Thread, deadline: Nanos, remaining: usize) -> Result<usize> {
    match thread.sleep_until(deadline).await {
        Ok(()) => Ok(0),
        Err(_) => {
            store(thread, remaining, poll::remaining(thread, deadline))?;
            Err(restart::later(thread, Restart::Sleep { deadline, remaining }))
        }
    }
}

/// Sleeps until a clock of processor time shows `until`; also after a restart.
pub async fn cpu_go_on(thread: &Thread, clock: ClockId, until: Nanos, remaining: usize) -> Result<usize> {
    loop {
        let now = clock.now(thread)?;
        if now >= until {
            return Ok(0);
        }
        // The process uses at most so many processors' time at once.
        let processors = thread.machine().cpus().max(1) as Nanos;
        let step = ((until - now) / processors).max(SAMPLE);
        let look = thread.machine().clock().monotonic().saturating_add(step);
        match thread.wait_until::<()>(Some(look), 0, |_| (), || None).await {
            Err(Cut::Interrupted) => {
                store(thread, remaining, until.saturating_sub(clock.now(thread)?))?;
                return Err(restart::later(thread, Restart::CpuSleep { clock, until, remaining }));
            }
            Ok(()) | Err(Cut::TimedOut) => {}
        }
    }
}

fn store(thread: &Thread, remaining: usize, nanos: Nanos) -> Result<()> {
    match UserPtr::<TimeSpec>::new(remaining).non_null() {
        Some(place) => place.write(thread.user(), &TimeSpec::from_nanos(nanos)),
        None => Ok(()),
    }
}
