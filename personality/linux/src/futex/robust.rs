//! Robust locks (get_robust_list(2)): what a thread that ends with locks in its hands leaves behind.
//!
//! The list is in the thread's own memory and may be anything: it is followed for a bounded length, and a read that fails ends it.

use core::sync::atomic::Ordering;

use janua_abi::linux::futex::{OWNER_DIED, ROBUST_LIST_LIMIT, RobustListHead, TID_MASK, WAITERS};
use janua_abi::linux::i386::process::RobustListHead32;
use janua_abi::linux::layout::Layout;
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::mm::FutexKey;

use super::{pi, wake};
use crate::Thread;
use crate::task::tree::INIT;
use crate::task::{CAP_SYS_PTRACE, access};

pub fn set_robust_list(thread: &Thread, head: usize, len: usize) -> Result<()> {
    set(thread, head, len, false)
}

/// set_robust_list(2) of 32-bit programs.
pub fn set_robust_list_compat(thread: &Thread, head: usize, len: usize) -> Result<()> {
    set(thread, head, len, true)
}

fn set(thread: &Thread, head: usize, len: usize, compat: bool) -> Result<()> {
    if len != if compat { size_of::<RobustListHead32>() } else { size_of::<RobustListHead>() } {
        return Err(Errno::EINVAL);
    }
    thread.futex.robust.store(head, Ordering::Relaxed);
    thread.futex.robust_compat.store(compat, Ordering::Relaxed);
    Ok(())
}

/// get_robust_list(2). EPERM for a thread the caller may not look into.
pub fn get_robust_list(thread: &Thread, tid: i32, head: UserPtr<u64>, len: UserPtr<u64>) -> Result<()> {
    let value = head_of(thread, tid)?;
    len.write(thread.user(), &(size_of::<RobustListHead>() as u64))?;
    head.write(thread.user(), &(value as u64))
}

/// get_robust_list(2) of 32-bit programs.
pub fn get_robust_list_compat(thread: &Thread, tid: i32, head: UserPtr<u32>, len: UserPtr<u32>) -> Result<()> {
    let value = head_of(thread, tid)?;
    len.write(thread.user(), &(size_of::<RobustListHead32>() as u32))?;
    head.write(thread.user(), &(value as u32))
}

fn head_of(thread: &Thread, tid: i32) -> Result<usize> {
    Ok(if tid == 0 {
        thread.futex.robust.load(Ordering::Relaxed)
    } else {
        let other = match u32::try_from(tid).ok().and_then(|tid| thread.kernel.thread(tid)) {
            Some(other) => other,
            // The first process has no thread here; it is root's, and has no such list.
            None if tid.unsigned_abs() == INIT && tid > 0 && thread.cred().capable(CAP_SYS_PTRACE) => return Ok(0),
            None if tid.unsigned_abs() == INIT && tid > 0 => return Err(Errno::EPERM),
            // What has ended has let go of all.
            None => {
                let ended = u32::try_from(tid).ok().and_then(|tid| thread.kernel.process(tid)).ok_or(Errno::ESRCH)?;
                let (mine, theirs) = (thread.cred(), ended.last_cred.read().clone());
                let same = theirs.is_some_and(|theirs| [theirs.uid, theirs.euid, theirs.suid] == [mine.uid; 3]);
                return if same || mine.capable(CAP_SYS_PTRACE) { Ok(0) } else { Err(Errno::EPERM) };
            }
        };
        let _held = access::hold(&other.task);
        access::check_call(thread, &other)?;
        other.futex.robust.load(Ordering::Relaxed)
    })
}

/// To be called by a thread that ends or loses its memory by exec, while it still has it.
pub fn exit_robust_list(thread: &Thread) {
    let head = thread.futex.robust.swap(0, Ordering::Relaxed);
    if head != 0 {
        // A list that cannot be read is its owner's affair.
        let _ = if thread.futex.robust_compat.load(Ordering::Relaxed) {
            walk::<RobustListHead32, u32>(thread, head)
        } else {
            walk::<RobustListHead, u64>(thread, head)
        };
    }
    give_up_recorded(thread, thread.tid());
}

/// To be called by a thread that has just got another number, by exec: its locks have the old one.
pub fn renumbered(thread: &Thread, old: u32) {
    give_up_recorded(thread, old);
}

/// To be called by a thread that ends, after [`exit_robust_list`]: who wants a lock of its from now on gets ESRCH, and who came before
/// has the lock.
pub fn end(thread: &Thread) {
    thread.futex.gone.store(true, Ordering::SeqCst);
    // Those who did not see that have announced themselves before.
    give_up_recorded(thread, thread.tid());
}

/// Locks outside the list whose owner the kernel knows, because others wait for them.
fn give_up_recorded(thread: &Thread, tid: u32) {
    for (key, addr) in thread.kernel.futexes.owned_by(tid) {
        // A shared one may be at another address in this process than in the waiter's.
        let private = matches!(key, FutexKey::Private { .. });
        if super::key(thread, addr, private).is_ok_and(|own| own == key) {
            pi::recorded_owner_died(thread, tid, &key, addr);
        }
    }
}

fn walk<H: Layout<RobustListHead>, W: Layout<u64>>(thread: &Thread, at: usize) -> Result<()> {
    let mem = thread.user();
    let head = UserPtr::<H>::new(at).load(mem)?;
    let word_of = |link: u64| (link & !1).wrapping_add_signed(head.futex_offset) as usize;
    let mut link = head.next;
    for _ in 0..ROBUST_LIST_LIMIT {
        if link & !1 == at as u64 {
            break;
        }
        // Read before the lock is given up: its next owner may change it at once.
        let next = UserPtr::<W>::new((link & !1) as usize).load(mem);
        if link & !1 != head.pending & !1 {
            owner_dies(thread, word_of(link), link & 1 != 0, false)?;
        }
        link = next?;
    }
    if head.pending & !1 != 0 {
        owner_dies(thread, word_of(head.pending), head.pending & 1 != 0, true)?;
    }
    Ok(())
}

/// Marks one lock, if the thread owns it, and wakes one who waits for it.
fn owner_dies(thread: &Thread, addr: usize, inheriting: bool, pending: bool) -> Result<()> {
    if !addr.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    let mut word = super::load(thread, addr)?;
    // Died between giving the lock up and waking a waiter.
    if pending && !inheriting && word == 0 {
        wake::futex_wake_addr(thread, addr);
        return Ok(());
    }
    if word & TID_MASK != thread.tid() {
        return Ok(());
    }
    if inheriting {
        if let Ok(key) = super::key(thread, addr, false) {
            pi::owner_died(thread, &key, addr);
        }
        return Ok(());
    }
    loop {
        let found = super::exchange(thread, addr, word, word & WAITERS | OWNER_DIED)?;
        if found == word {
            break;
        }
        word = found;
        if word & TID_MASK != thread.tid() {
            return Ok(());
        }
    }
    if word & WAITERS != 0 {
        wake::futex_wake_addr(thread, addr);
    }
    Ok(())
}
