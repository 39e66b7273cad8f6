//! Operations that wait for a time.

use janua_abi::linux::uring::{Sqe, cqe, flag, op};
use janua_abi::linux::{Errno, Result};
use janua_kernel::wait::Cut;

use super::super::op::{Op, Reply};
use super::super::submit::Time;
use super::super::turn::Turn;
use crate::Thread;

/// IORING_OP_TIMEOUT: ends with ETIME at its time, with 0 when so many completions have been posted, and may begin again.
pub async fn timeout(op: &Op, thread: &Thread) -> Reply {
    let Sqe { addr, off, op_flags, .. } = op.sqe;
    let clock = thread.machine().clock();
    let time = match Time::read(thread, addr, op_flags) {
        Ok(time) => time,
        Err(errno) => return Reply::error(errno),
    };
    let multi = op_flags & flag::TIMEOUT_MULTISHOT != 0;
    let start = op.ring.ended();
    let count = if multi { 0 } else { off as u32 as usize };
    let failed = op_flags & flag::TIMEOUT_ETIME_SUCCESS == 0;
    let expired = Reply { failed, ..Reply::error(Errno::ETIME) };
    let mut turns = if multi && off != 0 { Some(off) } else { None };
    op.terms.lock().deadline = Some(time.from(clock.monotonic()));
    loop {
        let waited = thread.wait_polling(None, |table| {
            if let Some(table) = table
                && count > 0
            {
                table.add(&op.ring.posted);
            }
            if count > 0 && op.ring.ended().wrapping_sub(start) >= count {
                return Some(true);
            }
            let deadline = op.terms.lock().deadline.unwrap_or(0);
            if clock.monotonic() >= deadline {
                return Some(false);
            }
            thread.wake_at(deadline);
            None
        });
        match waited.await {
            Ok(true) => return Reply::default(),
            Ok(false) => {}
            Err(Cut::Interrupted | Cut::TimedOut) => return Reply::error(Errno::ECANCELED),
        }
        turns = turns.map(|turns| turns - 1);
        if !multi || turns == Some(0) || !op.post_more(expired.result, cqe::MORE) {
            return expired;
        }
        // One of no length is due again at once.
        super::rw::pause().await;
        let mut terms = op.terms.lock();
        terms.deadline = terms.deadline.map(|deadline| time.next(deadline, clock.monotonic()));
    }
}

/// IORING_OP_TIMEOUT_REMOVE: gives a timeout up, or sets it anew.
pub fn remove(turn: &Turn<'_>, thread: &Thread, sqe: &Sqe) -> Result<usize> {
    let Sqe { addr: user_data, off: addr, op_flags, .. } = *sqe;
    if sqe.buf_index != 0 || sqe.len != 0 || sqe.file_index != 0 {
        return Err(Errno::EINVAL);
    }
    let update = op_flags & (flag::TIMEOUT_UPDATE | flag::LINK_TIMEOUT_UPDATE);
    if update == 0 {
        if op_flags != 0 {
            return Err(Errno::EINVAL);
        }
        let found = turn.ring.find(1, |op| op.sqe.opcode == op::TIMEOUT && op.user_data() == user_data);
        let first = found.first().ok_or(Errno::ENOENT)?;
        return if first.cancel() { Ok(0) } else { Err(Errno::EALREADY) };
    }
    let known = flag::TIMEOUT_ABS | flag::TIMEOUT_BOOTTIME | flag::TIMEOUT_REALTIME;
    if op_flags & !(update | known) != 0 {
        return Err(Errno::EINVAL);
    }
    let at = Time::read(thread, addr, op_flags)?.from(thread.machine().clock().monotonic());
    if update & flag::LINK_TIMEOUT_UPDATE != 0 {
        let limits = |op: &Op| {
            let mut running = op.running.lock();
            let limit = running.limit.as_mut().filter(|limit| limit.sqe.user_data == user_data && !limit.passed);
            limit.map(|limit| limit.at = at).is_some()
        };
        let found = turn.ring.find(1, limits);
        let first = found.first().ok_or(Errno::ENOENT)?;
        first.wake_up();
        return Ok(0);
    }
    let found = turn.ring.find(1, |op| op.sqe.opcode == op::TIMEOUT && op.user_data() == user_data && !op.is_cancelled());
    let first = found.first().ok_or(Errno::ENOENT)?;
    first.terms.lock().deadline = Some(at);
    first.wake_up();
    Ok(0)
}
