//! semget(2), semop(2), semtimedop(2), semctl(2).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::ipc::*;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::wait::Cut;
use janua_object::Caller;
use janua_object::sysv::ids::{MOST, Object, Owner};
use janua_object::sysv::sem::{Attempt, SEMMSL, SEMOPM, SEMVMX, SemSet};
use janua_port::Nanos;

use super::{Command, GetFlags, now};
use crate::Thread;
use crate::thread::ThreadExt;

/// semget(2).
pub fn semget(thread: &Thread, key: i32, count: i32, flags: GetFlags) -> Result<i32> {
    let count = usize::try_from(count).ok().filter(|&count| count <= SEMMSL).ok_or(Errno::EINVAL)?;
    let cred = thread.caller().cred();
    let fits = |set: &SemSet| if count > set.len() { Err(Errno::EINVAL) } else { Ok(()) };
    thread.kernel.ipc.sem.get(key, flags.0, &cred, fits, |_| {
        if count == 0 {
            return Err(Errno::EINVAL);
        }
        Ok(SemSet::new(Owner::new(key, flags.0, &cred), count, now(thread)))
    })
}

/// semop(2).
pub async fn semop(thread: &Thread, id: i32, ops: UserPtr<Sembuf>, count: usize) -> Result<()> {
    operate(thread, id, ops, count, None).await
}

/// semtimedop(2); the timeout is a `struct timespec`.
pub async fn semtimedop(
    thread: &Thread,
    id: i32,
    ops: UserPtr<Sembuf>,
    count: usize,
    timeout: UserPtr<impl Layout<[i64; 2]>>,
) -> Result<()> {
    let deadline = match timeout.non_null() {
        None => None,
        Some(timeout) => {
            let [seconds, nanos] = timeout.load(thread.user())?;
            if seconds < 0 || !(0..1_000_000_000).contains(&nanos) {
                return Err(Errno::EINVAL);
            }
            let span = (seconds as u64).saturating_mul(1_000_000_000).saturating_add(nanos as u64);
            Some(thread.machine().clock().monotonic().saturating_add(span))
        }
    };
    operate(thread, id, ops, count, deadline).await
}

async fn operate(thread: &Thread, id: i32, ops: UserPtr<Sembuf>, count: usize, deadline: Option<Nanos>) -> Result<()> {
    if count == 0 {
        return Err(Errno::EINVAL);
    }
    if count > SEMOPM {
        return Err(Errno::E2BIG);
    }
    let ops: Vec<Sembuf> = ops.slice(count).read_vec(thread.user(), SEMOPM)?;
    let set = thread.kernel.ipc.sem.find(id)?;
    if ops.iter().any(|op| usize::from(op.num) >= set.len()) {
        return Err(Errno::EFBIG);
    }
    let alters = ops.iter().any(|op| op.op != 0);
    set.owner().check(&thread.caller().cred(), if alters { 0o222 } else { 0o444 })?;
    if ops.iter().any(|op| op.flags & SEM_UNDO != 0) {
        remember_undo(thread, id, &set);
    }
    let pid = thread.task.pid;
    let mut waiting = None;
    let queue = set.queue.clone();
    let result = thread
        .wait_on(&queue, deadline, || {
            let attempt = set.attempt(&ops, pid, now(thread));
            waiting = match &attempt {
                Ok(Attempt::Wait(num, zero)) => {
                    drop(waiting.take());
                    Some(set.wait(*num, *zero))
                }
                _ => None,
            };
            match attempt {
                Ok(Attempt::Wait(..)) => None,
                Ok(Attempt::Done) => Some(Ok(())),
                Err(errno) => Some(Err(errno)),
            }
        })
        .await;
    match result {
        Ok(result) => result,
        // semop is never begun again after a handler (signal(7)).
        Err(Cut::Interrupted) => Err(Errno::EINTR),
        Err(Cut::TimedOut) => Err(Errno::EAGAIN),
    }
}

/// Lets the process's end come by this set: it asks no others.
fn remember_undo(thread: &Thread, id: i32, set: &Arc<SemSet>) {
    thread.task.has_undoes.store(true, Ordering::Relaxed);
    let mut undoes = thread.task.undoes.lock();
    if undoes.insert(id, Arc::downgrade(set)).is_none() && undoes.len().is_power_of_two() {
        undoes.retain(|_, set| set.strong_count() > 0);
    }
}

/// semctl(2). The last argument is a value or a pointer, as the command has it.
pub fn semctl(thread: &Thread, id: i32, num: i32, command: Command, arg: usize) -> Result<i32> {
    semctl_as::<SemidDs>(thread, id, num, command, arg)
}

/// semctl(2) of programs whose `struct semid_ds` is in memory as `D`.
pub fn semctl_as<D: Layout<SemidDs>>(thread: &Thread, id: i32, num: i32, command: Command, arg: usize) -> Result<i32> {
    let ids = &thread.kernel.ipc.sem;
    let user = thread.user();
    let cred = thread.caller().cred();
    let find = |want: u32| -> Result<Arc<SemSet>> {
        let set = ids.find(id)?;
        set.owner().check(&cred, want)?;
        Ok(set)
    };
    let number = || usize::try_from(num).map_err(|_| Errno::EINVAL);
    let pid = thread.task.pid;
    match command.0 {
        GETVAL => return Ok(find(0o444)?.look(number()?)?.0),
        GETPID => return Ok(find(0o444)?.look(number()?)?.1 as i32),
        GETNCNT => return Ok(find(0o444)?.look(number()?)?.2 as i32),
        GETZCNT => return Ok(find(0o444)?.look(number()?)?.3 as i32),
        SETVAL => find(0o222)?.set_values(number()?, &[arg as i32], pid, now(thread))?,
        GETALL => {
            let values = find(0o444)?.values();
            UserPtr::<u16>::new(arg).slice(values.len()).write_slice(user, &values)?;
        }
        SETALL => {
            let set = find(0o222)?;
            let values: Vec<u16> = UserPtr::<u16>::new(arg).slice(set.len()).read_vec(user, SEMMSL)?;
            let values: Vec<i32> = values.into_iter().map(i32::from).collect();
            set.set_values(0, &values, pid, now(thread))?;
        }
        IPC_STAT => UserPtr::<D>::new(arg).store(user, &find(0o444)?.stat(id))?,
        SEM_STAT | SEM_STAT_ANY => {
            let (id, set) = ids.at(id)?;
            if command.0 == SEM_STAT {
                set.owner().check(&cred, 0o444)?;
            }
            UserPtr::<D>::new(arg).store(user, &set.stat(id))?;
            return Ok(id);
        }
        IPC_SET => {
            let to = UserPtr::<D>::new(arg).load(user)?.perm;
            ids.find(id)?.set_owner(now(thread), |owner| {
                owner.check_owner(&cred)?;
                owner.set(&to);
                Ok(())
            })?;
        }
        IPC_RMID => {
            ids.find(id)?.owner().check_owner(&cred)?;
            ids.remove(id);
        }
        IPC_INFO | SEM_INFO => {
            let (all, highest) = ids.all();
            let (sets, sems) = match command.0 {
                SEM_INFO => (all.len(), all.iter().map(|(_, set)| set.len()).sum()),
                _ => (20, SEMVMX as usize),
            };
            let most = (MOST * SEMMSL) as i32;
            let info = SemInfo {
                semmap: most,
                semmni: MOST as i32,
                semmns: most,
                semmnu: most,
                semmsl: SEMMSL as i32,
                semopm: SEMOPM as i32,
                semume: SEMOPM as i32,
                semusz: sets as i32,
                semvmx: SEMVMX,
                semaem: sems as i32,
            };
            UserPtr::new(arg).write(user, &info)?;
            return Ok(highest as i32);
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}
