//! Calls that cannot simply be made again after a stop or an ignored signal, since their time runs on: what restart_syscall(2)
//! goes on with.

use janua_kernel::{Errno, Result};
use janua_port::Nanos;

use crate::time::sleep::Remaining;
use crate::{Thread, futex, poll, time};

/// Where an interrupted call goes on. Deadlines are monotonic.
#[derive(Clone, Copy, Debug)]
pub enum Restart {
    Sleep { deadline: Nanos, remaining: Remaining },
    CpuSleep { clock: time::ClockId, until: Nanos, remaining: Remaining },
    Poll { fds: usize, count: u32, deadline: Option<Nanos> },
    Futex { addr: usize, value: u32, bitset: u32, private: bool, deadline: Nanos },
}

/// Ends a call that was interrupted: the exit path makes the program call restart_syscall, or returns EINTR after a handler.
pub fn later(thread: &Thread, how: Restart) -> Errno {
    *thread.restart.lock() = Some(how);
    Errno::ERESTART_RESTARTBLOCK
}

/// restart_syscall(2): EINTR when there is nothing to go on with.
pub async fn restart_syscall(thread: &Thread) -> Result<usize> {
    let how = thread.restart.lock().take();
    match how {
        None => Err(Errno::EINTR),
        Some(Restart::Sleep { deadline, remaining }) => time::sleep::go_on(thread, deadline, remaining).await,
        Some(Restart::CpuSleep { clock, until, remaining }) => time::sleep::cpu_go_on(thread, clock, until, remaining).await,
        Some(Restart::Poll { fds, count, deadline }) => poll::poll::go_on(thread, fds, count, deadline).await,
        Some(Restart::Futex { addr, value, bitset, private, deadline }) => {
            futex::wait::go_on(thread, addr, value, bitset, private, deadline).await
        }
    }
}
