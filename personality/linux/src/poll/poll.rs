//! poll(2) and ppoll(2).

use janua_abi::linux::layout::Layout;
use janua_abi::linux::poll::PollFd;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::time::TimeSpec;
use janua_kernel::table::Fd;
use janua_kernel::wait::Cut;
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::Events;
use janua_port::Nanos;
use smallvec::SmallVec;
use zerocopy::IntoBytes;

use super::{ALWAYS, WatchList, Watched};
use crate::Thread;
use crate::restart::{self, Restart};
use crate::thread::ThreadExt;

/// poll(2): `timeout` in milliseconds, negative for ever.
pub async fn poll(thread: &Thread, fds: UserPtr<PollFd>, count: u32, timeout: i32) -> Result<usize> {
    let deadline = u64::try_from(timeout).ok().map(|millis| super::deadline(thread, millis * 1_000_000));
    go_on(thread, fds.addr(), count, deadline).await
}

/// poll(2) with its end given; also after a restart.
pub async fn go_on(thread: &Thread, fds: usize, count: u32, deadline: Option<Nanos>) -> Result<usize> {
    match wait(thread, UserPtr::new(fds), count, deadline).await? {
        Ok(ready) => Ok(ready),
        Err(Cut::TimedOut) => Ok(0),
        Err(Cut::Interrupted) => Err(restart::later(thread, Restart::Poll { fds, count, deadline })),
    }
}

/// ppoll(2): what is left of the time is written back to `timeout`.
pub async fn ppoll(
    thread: &Thread,
    fds: UserPtr<PollFd>,
    count: u32,
    timeout: UserPtr<impl Layout<TimeSpec>>,
    mask: UserPtr<u64>,
    mask_size: usize,
) -> Result<usize> {
    let deadline = match timeout.non_null() {
        Some(timeout) => Some(super::deadline(thread, timeout.load(thread.user())?.nanos()?)),
        None => None,
    };
    super::begin_mask(thread, mask, mask_size)?;
    let result = wait(thread, fds, count, deadline).await;
    let interrupted = matches!(result, Ok(Err(Cut::Interrupted)));
    if !interrupted {
        super::end_mask(thread);
    }
    let lost = super::report_rest(thread, deadline, |left| timeout.store(thread.user(), &TimeSpec::from_nanos(left)));
    match result? {
        Ok(ready) => Ok(ready),
        Err(Cut::TimedOut) => Ok(0),
        // Made again, the call would wait for the whole time anew unless what is left could be stored.
        Err(Cut::Interrupted) if lost => Err(Errno::EINTR),
        Err(Cut::Interrupted) => Err(Errno::ERESTARTNOHAND),
    }
}

async fn wait(thread: &Thread, fds: UserPtr<PollFd>, count: u32, deadline: Option<Nanos>) -> Result<Result<usize, Cut>> {
    if u64::from(count) > thread.limit(rlimit::NOFILE) {
        return Err(Errno::EINVAL);
    }
    let mem = thread.user();
    let mut asked: SmallVec<[PollFd; 8]> = super::list_of(thread, count as usize)?;
    asked.resize(count as usize, PollFd::default());
    mem.copy_in(asked.as_mut_slice().as_mut_bytes(), fds.addr()).map_err(|_| Errno::EFAULT)?;
    let mut list: WatchList = super::list_of(thread, asked.len())?;
    let mut bad = 0;
    {
        let files = thread.files.read();
        for fd in &mut asked {
            fd.revents = 0;
            let mut file = None;
            if fd.fd >= 0 {
                match super::file(&files, Fd(fd.fd)) {
                    Ok(found) => file = Some(found),
                    Err(_) => {
                        fd.revents = Events::NVAL.bits() as u16;
                        bad += 1;
                    }
                }
            }
            list.push(Watched { file, wanted: u32::from(fd.events) | ALWAYS, ready: 0 });
        }
    }
    // A bad descriptor is a result of its own: look once.
    let result = match super::wait(thread, &mut list, if bad > 0 { Some(0) } else { deadline }).await? {
        Ok(ready) => Ok(ready + bad),
        Err(_) if bad > 0 => Ok(bad),
        Err(cut) => Err(cut),
    };
    if result != Err(Cut::Interrupted) {
        for (at, (fd, watched)) in asked.iter().zip(&list).enumerate() {
            let revents = fd.revents | watched.ready as u16;
            let place = UserPtr::<u16>::new(fds.at(at).addr().wrapping_add(6));
            place.write(mem, &revents)?;
        }
    }
    Ok(result)
}
