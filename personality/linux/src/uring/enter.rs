//! io_uring_enter(2).

use alloc::sync::Arc;

use janua_abi::linux::uring::{GetEvents, enter, setup, sq_ring};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::wait::Cut;
use janua_port::Nanos;

use super::issuer::{self, Issuer};
use super::ring::Ring;
use super::setup::check_issuer;
use super::{find, poller, submit};
use crate::{Thread, poll};

/// What a wait for completions is limited by.
#[derive(Default)]
struct Limits {
    mask: UserMask,
    deadline: Option<Nanos>,
    /// After this one completion is enough.
    least: Option<Nanos>,
}

/// The signals that are blocked meanwhile: where they are, and the bytes of the set.
#[derive(Default)]
struct UserMask(usize, usize);

/// io_uring_enter(2)
pub async fn io_uring_enter(
    thread: &Thread,
    fd: u32,
    to_submit: u32,
    least: u32,
    flags: u32,
    arg: usize,
    arg_size: usize,
) -> Result<usize> {
    const KNOWN: u32 =
        enter::GETEVENTS | enter::SQ_WAKEUP | enter::SQ_WAIT | enter::EXT_ARG | enter::REGISTERED_RING | enter::ABS_TIMER;
    if flags & !KNOWN != 0 {
        return Err(Errno::EINVAL);
    }
    // Held until the end, though it be closed meanwhile.
    let (_file, ring) = find(thread, fd, flags & enter::REGISTERED_RING != 0)?;
    let issuer = issuer::of(thread)?;
    let submitted = if ring.shape.has(setup::SQPOLL) {
        if ring.disabled.load(core::sync::atomic::Ordering::SeqCst) {
            return Err(Errno::EBADFD);
        }
        let is_own = ring.is_made_in(&thread.task);
        if !is_own && !ring.is_made(&thread.kernel) {
            return Err(Errno::EOWNERDEAD);
        }
        if flags & enter::SQ_WAKEUP != 0 {
            poller::wake(thread, &ring);
        }
        // They are made in the maker's memory and by its rights, no matter who announces them.
        if flags & (enter::SQ_WAKEUP | enter::SQ_WAIT) != 0 && is_own {
            submit_here(&issuer, thread, &ring)?;
        }
        to_submit as usize
    } else {
        check_issuer(&ring, &issuer)?;
        match to_submit {
            0 => 0,
            most => submit::take(&issuer, thread, &ring, most)?,
        }
    };
    if flags & enter::GETEVENTS == 0 || submitted < to_submit as usize {
        return Ok(submitted);
    }
    let waited = match limits(thread, flags, arg, arg_size) {
        Ok(limits) => get_events(&issuer, thread, &ring, least, &limits).await,
        Err(errno) => Err(errno),
    };
    if submitted > 0 { Ok(submitted) } else { waited.map(|()| 0) }
}

fn submit_here(issuer: &Arc<Issuer>, thread: &Thread, ring: &Arc<Ring>) -> Result<()> {
    submit::take(issuer, thread, ring, u32::MAX).map(|_| ())
}

fn limits(thread: &Thread, flags: u32, arg: usize, arg_size: usize) -> Result<Limits> {
    if flags & enter::EXT_ARG == 0 {
        return Ok(Limits { mask: UserMask(arg, arg_size), ..Limits::default() });
    }
    if arg_size != size_of::<GetEvents>() {
        return Err(Errno::EINVAL);
    }
    let given = UserPtr::<GetEvents>::new(arg).read(thread.user())?;
    let now = thread.machine().clock().monotonic();
    let deadline = match given.timeout {
        0 => None,
        timeout => {
            let [seconds, nanos] = UserPtr::<[i64; 2]>::new(timeout as usize).read(thread.user())?;
            let time = (seconds.max(0) as u64).saturating_mul(1_000_000_000).saturating_add(nanos.max(0) as u64);
            Some(if flags & enter::ABS_TIMER != 0 { time } else { now.saturating_add(time) })
        }
    };
    let least = (given.min_wait != 0).then(|| now.saturating_add(u64::from(given.min_wait) * 1000));
    Ok(Limits { mask: UserMask(given.mask as usize, given.mask_size as usize), deadline, least })
}

/// Waits for `least` completions. ETIME, EINTR when there is none.
async fn get_events(issuer: &Arc<Issuer>, thread: &Thread, ring: &Arc<Ring>, least: u32, limits: &Limits) -> Result<()> {
    poll::begin_mask(thread, UserPtr::new(limits.mask.0), limits.mask.1)?;
    let least = least.min(ring.shape.completions);
    let first = match (limits.least, limits.deadline) {
        (Some(least), Some(deadline)) => Some(least.min(deadline)),
        (least, deadline) => least.or(deadline),
    };
    let mut waited = wait(issuer, thread, ring, least, first).await;
    if waited == Err(Cut::TimedOut) && limits.least.is_some() && least > 1 {
        waited = wait(issuer, thread, ring, 1, limits.deadline).await;
    }
    if waited != Err(Cut::Interrupted) {
        poll::end_mask(thread);
    }
    let there = ring.unreaped(&ring.access(thread)) != 0;
    match waited {
        Err(_) if there => Ok(()),
        Ok(()) => Ok(()),
        Err(Cut::TimedOut) => Err(Errno::ETIME),
        Err(Cut::Interrupted) => Err(Errno::EINTR),
    }
}

async fn wait(issuer: &Arc<Issuer>, thread: &Thread, ring: &Arc<Ring>, least: u32, deadline: Option<Nanos>) -> Result<(), Cut> {
    thread
        .wait_polling(deadline, |table| {
            if let Some(table) = table {
                table.add(&ring.posted);
            }
            issuer.work(thread);
            if ring.shape.has(setup::DEFER_TASKRUN) {
                issuer.work_later(thread, ring);
            }
            let access = ring.access(thread);
            ring.flush(&access);
            if ring.is_flagged(sq_ring::TASKRUN) {
                ring.flag(&access, sq_ring::TASKRUN, false);
            }
            (ring.unreaped(&access) >= least).then_some(())
        })
        .await
}
