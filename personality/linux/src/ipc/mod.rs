//! Calls of System V IPC and of POSIX message queues.

mod mq;
mod msg;
mod sem;
mod shm;

pub use mq::{MqAttr, mq_getsetattr, mq_notify, mq_open, mq_timedreceive, mq_timedsend, mq_unlink};
pub use msg::{msgctl, msgget, msgrcv, msgsnd};
pub use sem::{semctl, semctl_as, semget, semop, semtimedop};
pub use shm::{shmat, shmctl, shmctl_as, shmdt, shmget};

use alloc::sync::Weak;

use janua_abi::linux::Result;
use janua_kernel::table::{Arg, Kind};

use crate::Thread;

/// IPC_* and mode flags of the get calls.
#[derive(Clone, Copy, Debug)]
pub struct GetFlags(u32);

impl Arg for GetFlags {
    const KIND: Kind = Kind::Octal;
    fn decode(word: usize) -> Result<Self> {
        Ok(GetFlags(word as u32))
    }
}

/// A control command.
#[derive(Clone, Copy, Debug)]
pub struct Command(u32);

impl Arg for Command {
    const KIND: Kind = Kind::Unsigned;
    fn decode(word: usize) -> Result<Self> {
        Ok(Command(word as u32 & !janua_abi::linux::ipc::IPC_64))
    }
}

/// Seconds since 1970.
fn now(thread: &Thread) -> i64 {
    thread.kernel.vfs.now() / 1_000_000_000
}

/// What a process's end undoes.
pub fn process_ended(thread: &Thread) {
    let undoes = core::mem::take(&mut *thread.task.undoes.lock());
    // What is removed has nothing to undo.
    for set in undoes.values().filter_map(Weak::upgrade) {
        set.process_ended(thread.task.pid);
    }
}
