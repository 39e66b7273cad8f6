//! msgget(2), msgsnd(2), msgrcv(2), msgctl(2).

use alloc::vec;

use janua_abi::linux::capability::CAP_SYS_RESOURCE;
use janua_abi::linux::ipc::*;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::wait::Cut;
use janua_object::Caller;
use janua_object::sysv::ids::{MOST, Object, Owner};
use janua_object::sysv::msg::{MSGMAX, MSGMNB, Message, Queue};

use super::{Command, GetFlags, now};
use crate::Thread;
use crate::thread::ThreadExt;

/// msgget(2).
pub fn msgget(thread: &Thread, key: i32, flags: GetFlags) -> Result<i32> {
    let cred = thread.caller().cred();
    thread.kernel.ipc.msg.get(key, flags.0, &cred, |_| Ok(()), |_| Ok(Queue::new(Owner::new(key, flags.0, &cred), now(thread))))
}

fn interrupted(cut: Cut) -> Errno {
    // Begun again only when no handler has run.
    match cut {
        Cut::Interrupted => Errno::ERESTARTNOHAND,
        Cut::TimedOut => Errno::EAGAIN,
    }
}

/// msgsnd(2): a word of kind, then `size` bytes.
pub async fn msgsnd(thread: &Thread, id: i32, message: UserPtr<impl Layout<i64>>, size: usize, flags: u32) -> Result<()> {
    if size > MSGMAX || id < 0 {
        return Err(Errno::EINVAL);
    }
    let kind = message.load(thread.user())?;
    if kind < 1 {
        return Err(Errno::EINVAL);
    }
    let mut text = vec![0; size];
    thread.user().copy_in(&mut text, message.at(1).addr()).map_err(|_| Errno::EFAULT)?;
    let queue = thread.kernel.ipc.msg.find(id)?;
    queue.owner().check(&thread.caller().cred(), 0o222)?;
    let mut message = Some(Message { kind, text });
    let pid = thread.task.pid;
    let waiters = queue.waiters.clone();
    thread
        .wait_on(&waiters, None, || match queue.send(&mut message, pid, now(thread)) {
            Err(Errno::EAGAIN) if flags & IPC_NOWAIT == 0 => None,
            result => Some(result),
        })
        .await
        .map_err(interrupted)?
}

/// msgrcv(2): the number of bytes of the message.
pub async fn msgrcv(
    thread: &Thread,
    id: i32,
    out: UserPtr<impl Layout<i64>>,
    size: usize,
    kind: i64,
    flags: u32,
) -> Result<usize> {
    if size > isize::MAX as usize || id < 0 {
        return Err(Errno::EINVAL);
    }
    if flags & MSG_COPY != 0 && (flags & MSG_EXCEPT != 0 || flags & IPC_NOWAIT == 0) {
        return Err(Errno::EINVAL);
    }
    let queue = thread.kernel.ipc.msg.find(id)?;
    queue.owner().check(&thread.caller().cred(), 0o444)?;
    let pid = thread.task.pid;
    let waiters = queue.waiters.clone();
    let message = thread
        .wait_on(&waiters, None, || match queue.receive(kind, size, flags, pid, now(thread)) {
            Err(Errno::EAGAIN) if flags & IPC_NOWAIT == 0 => None,
            Err(Errno::EAGAIN) => Some(Err(Errno::ENOMSG)),
            result => Some(result),
        })
        .await
        .map_err(interrupted)??;
    let len = message.text.len().min(size);
    out.store(thread.user(), &message.kind)?;
    thread.user().copy_out(out.at(1).addr(), &message.text[..len]).map_err(|_| Errno::EFAULT)?;
    Ok(len)
}

/// msgctl(2).
pub fn msgctl(thread: &Thread, id: i32, command: Command, buffer: UserPtr<impl Layout<MsqidDs>>) -> Result<i32> {
    let ids = &thread.kernel.ipc.msg;
    let user = thread.user();
    let cred = thread.caller().cred();
    match command.0 {
        IPC_STAT => {
            let queue = ids.find(id)?;
            queue.owner().check(&cred, 0o444)?;
            buffer.store(user, &queue.stat(id))?;
        }
        MSG_STAT | MSG_STAT_ANY => {
            let (id, queue) = ids.at(id)?;
            if command.0 == MSG_STAT {
                queue.owner().check(&cred, 0o444)?;
            }
            buffer.store(user, &queue.stat(id))?;
            return Ok(id);
        }
        IPC_SET => {
            let to = buffer.load(user)?;
            ids.find(id)?.set(to.qbytes, cred.capable(CAP_SYS_RESOURCE), now(thread), |owner| {
                owner.check_owner(&cred)?;
                owner.set(&to.perm);
                Ok(())
            })?;
        }
        IPC_RMID => {
            ids.find(id)?.owner().check_owner(&cred)?;
            ids.remove(id);
        }
        IPC_INFO | MSG_INFO => {
            let (all, highest) = ids.all();
            let mut info = MsgInfo {
                msgpool: (MOST as u64 * MSGMNB / 1024) as i32,
                msgmap: MSGMNB as i32,
                msgmax: MSGMAX as i32,
                msgmnb: MSGMNB as i32,
                msgmni: thread.kernel.ipc.msg.most() as i32,
                msgssz: 16,
                msgtql: MSGMNB as i32,
                msgseg: 0xffff,
                pad: 0,
            };
            if command.0 == MSG_INFO {
                let stats = all.iter().map(|(id, queue)| queue.stat(*id));
                let (messages, bytes) = stats.fold((0, 0), |(m, b), stat| (m + stat.qnum, b + stat.cbytes));
                info.msgpool = all.len() as i32;
                info.msgmap = messages as i32;
                info.msgtql = bytes as i32;
            }
            buffer.cast::<MsgInfo>().write(user, &info)?;
            return Ok(highest as i32);
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}
