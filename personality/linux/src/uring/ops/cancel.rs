//! Giving operations up.

use alloc::sync::Arc;

use janua_abi::linux::uring::{Sqe, flag};
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;

use super::super::op::Op;
use super::super::ring::Ring;
use super::super::turn::Turn;
use crate::Thread;

/// Which operations are meant.
pub struct Match {
    /// IORING_ASYNC_CANCEL_*.
    pub flags: u32,
    pub user_data: u64,
    pub opcode: u8,
    /// What the file is known by.
    pub file: usize,
}

impl Match {
    /// By the words of a submission or of IORING_REGISTER_SYNC_CANCEL. EINVAL, EBADF.
    pub fn new(ring: &Ring, owner: &Thread, flags: u32, user_data: u64, fd: i32, opcode: u8) -> Result<Match> {
        let known = flag::CANCEL_ALL
            | flag::CANCEL_FD
            | flag::CANCEL_ANY
            | flag::CANCEL_FD_FIXED
            | flag::CANCEL_USERDATA
            | flag::CANCEL_OP;
        if flags & !known != 0 {
            return Err(Errno::EINVAL);
        }
        if flags & (flag::CANCEL_FD | flag::CANCEL_OP) != 0 && flags & flag::CANCEL_ANY != 0 {
            return Err(Errno::EINVAL);
        }
        let file = match flags & flag::CANCEL_FD != 0 {
            true if flags & flag::CANCEL_FD_FIXED != 0 => Some(ring.resources.lock().file(fd as u32)?),
            true => Some(owner.files.read().get(Fd(fd))?),
            false => None,
        };
        Ok(Match { flags, user_data, opcode, file: file.map_or(0, |file| Arc::as_ptr(&file).addr()) })
    }

    fn fits(&self, op: &Op) -> bool {
        let has = |flag: u32| self.flags & flag != 0;
        if has(flag::CANCEL_ANY) {
            return true;
        }
        let by_data = has(flag::CANCEL_USERDATA) || !has(flag::CANCEL_FD) && !has(flag::CANCEL_OP);
        (!has(flag::CANCEL_FD) || op.file == self.file)
            && (!has(flag::CANCEL_OP) || op.sqe.opcode == self.opcode)
            && (!by_data || op.user_data() == self.user_data)
    }

    fn all(&self) -> bool {
        self.flags & (flag::CANCEL_ALL | flag::CANCEL_ANY) != 0
    }
}

/// Cancels what is meant: how many, if all are; otherwise 0. ENOENT when there is none, EALREADY when it is about to end anyway.
pub fn cancel_now(ring: &Ring, which: &Match) -> Result<usize> {
    let all = which.all();
    let found = ring.find(if all { usize::MAX } else { 1 }, |op| which.fits(op));
    let count = found.iter().filter(|op| op.cancel()).count();
    match (all, found.is_empty(), count) {
        (true, _, count) => Ok(count),
        (false, true, _) => Err(Errno::ENOENT),
        (false, false, 0) => Err(Errno::EALREADY),
        (false, false, _) => Ok(0),
    }
}

/// IORING_OP_ASYNC_CANCEL
pub fn cancel(turn: &Turn<'_>, sqe: &Sqe) -> Result<usize> {
    if sqe.off != 0 || sqe.file_index != 0 {
        return Err(Errno::EINVAL);
    }
    if sqe.op_flags & flag::CANCEL_OP == 0 && sqe.len != 0 {
        return Err(Errno::EINVAL);
    }
    let which = Match::new(turn.ring, turn.owner, sqe.op_flags, sqe.addr, sqe.fd, sqe.len as u8)?;
    cancel_now(turn.ring, &which)
}
