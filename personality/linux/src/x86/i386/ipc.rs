//! System V IPC: ipc(2), the one entry to all its calls, and those whose words differ.

use janua_abi::linux::i386::ipc::{MsqidDs32, SemidDs32, ShmInfo32, ShmInfo6432, ShmidDs32};
use janua_abi::linux::i386::time::TimeSpec32;
use janua_abi::linux::ipc::{IPC_64, IPC_SET, IPC_STAT, MSG_STAT, MSG_STAT_ANY, SEM_STAT, SEM_STAT_ANY, Sembuf};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::{Arg, CallResult};

use crate::Thread;
use crate::ipc::{self as calls, Command, GetFlags};
use crate::mm::Addr;

pub fn semctl(thread: &Thread, id: i32, num: i32, command: Command, arg: usize) -> Result<i32> {
    calls::semctl_as::<SemidDs32>(thread, id, num, command, arg)
}

pub fn shmctl(thread: &Thread, id: i32, command: Command, buffer: usize) -> Result<i32> {
    calls::shmctl_as::<ShmidDs32, ShmInfo6432, ShmInfo32>(thread, id, command, buffer)
}

/// msgrcv(2): the kind that is wanted is signed.
pub async fn msgrcv(thread: &Thread, id: i32, out: UserPtr<i32>, size: usize, kind: i32, flags: u32) -> Result<usize> {
    calls::msgrcv(thread, id, out, size, kind.into(), flags).await
}

/// The command of a control call made through ipc(2). EINVAL for one that wants the structures before IPC_64.
fn command(word: u32) -> Result<Command> {
    let has_structure = matches!(word, IPC_SET | IPC_STAT | SEM_STAT | SEM_STAT_ANY | MSG_STAT | MSG_STAT_ANY);
    if has_structure { Err(Errno::EINVAL) } else { Command::decode((word & !IPC_64) as usize) }
}

/// ipc(2). Four words of the call's own, of which one is a pointer.
pub async fn ipc(thread: &Thread, call: u32, first: i32, second: u32, third: u32, pointer: usize, fifth: u32) -> Result<usize> {
    let (call, version) = (call & 0xffff, call >> 16);
    let flags = |word: u32| GetFlags::decode(word as usize);
    let size = second as usize;
    let ops = UserPtr::<Sembuf>::new(pointer);
    let result = match call {
        1 => calls::semop(thread, first, ops, size).await.word(),
        2 => calls::semget(thread, first, second as i32, flags(third)?).word(),
        3 => {
            let arg = UserPtr::<u32>::new(pointer).non_null().ok_or(Errno::EINVAL)?.read(thread.user())?;
            semctl(thread, first, second as i32, command(third)?, arg as usize).word()
        }
        4 => calls::semtimedop(thread, first, ops, size, UserPtr::<TimeSpec32>::new(fifth as usize)).await.word(),
        11 => calls::msgsnd(thread, first, UserPtr::<i32>::new(pointer), size, third).await.word(),
        12 if version == 0 => {
            // The oldest version has the pointer and the kind in memory.
            let [text, kind]: [u32; 2] = UserPtr::new(pointer).non_null().ok_or(Errno::EINVAL)?.read(thread.user())?;
            msgrcv(thread, first, UserPtr::new(text as usize), size, kind as i32, third).await.word()
        }
        12 => msgrcv(thread, first, UserPtr::new(pointer), size, fifth as i32, third).await.word(),
        13 => calls::msgget(thread, first, flags(second)?).word(),
        14 => calls::msgctl(thread, first, command(second)?, UserPtr::<MsqidDs32>::new(pointer)).word(),
        21 if version == 1 => Err::<(), _>(Errno::EINVAL).word(),
        21 => {
            let at = calls::shmat(thread, first, Addr(pointer), second)?;
            UserPtr::<u32>::new(third as usize).write(thread.user(), &(at as u32)).word()
        }
        22 => calls::shmdt(thread, Addr(pointer)).word(),
        23 => calls::shmget(thread, first, size, flags(third)?).word(),
        24 => shmctl(thread, first, command(second)?, pointer).word(),
        _ => Err::<(), _>(Errno::ENOSYS).word(),
    };
    Errno::from_raw(result)
}
