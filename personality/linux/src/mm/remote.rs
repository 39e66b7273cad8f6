//! process_vm_readv(2), process_vm_writev(2), membarrier(2).

use alloc::sync::Arc;
use alloc::vec;

use janua_abi::linux::layout::Layout;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{IOV_MAX, IoVec, ReadBuf, WriteBuf};
use janua_port::UserMemory;

use super::is_killed;
use crate::task::access;
use crate::thread::ThreadExt;
use crate::{Seat, Thread};

/// Bytes moved at a time.
const CHUNK: usize = 64 * 1024;

/// process_vm_readv(2): bytes copied from the other process.
pub fn process_vm_readv<V: Layout<[usize; 2]>>(
    thread: &Thread,
    pid: u32,
    local: UserPtr<V>,
    local_count: usize,
    remote: UserPtr<V>,
    remote_count: usize,
    flags: usize,
) -> Result<usize> {
    target(thread, pid, flags)?;
    let local = IoVec::read(thread.user(), local, local_count)?;
    let mut to = ReadBuf::user_vec(thread.user(), &local);
    let mut chunk = vec![0; CHUNK.min(to.left())];
    transfer(thread, remote, remote_count, to.left(), chunk.len(), |addr, len| {
        let n = match target(thread, pid, flags)? {
            Some(other) => remotely(thread, &other, |user| user.copy_in_partial(&mut chunk[..len], addr))?,
            None => thread.user().copy_in_partial(&mut chunk[..len], addr),
        };
        to.put(&chunk[..n])
    })
}

/// process_vm_writev(2): bytes copied to the other process.
pub fn process_vm_writev<V: Layout<[usize; 2]>>(
    thread: &Thread,
    pid: u32,
    local: UserPtr<V>,
    local_count: usize,
    remote: UserPtr<V>,
    remote_count: usize,
    flags: usize,
) -> Result<usize> {
    target(thread, pid, flags)?;
    let local = IoVec::read(thread.user(), local, local_count)?;
    let mut from = WriteBuf::user_vec(thread.user(), &local);
    let mut chunk = vec![0; CHUNK.min(from.left())];
    transfer(thread, remote, remote_count, from.left(), chunk.len(), |addr, len| {
        let got = from.get(&mut chunk[..len])?;
        match target(thread, pid, flags)? {
            Some(other) => remotely(thread, &other, |user| thread.kernel.write_remote(user, addr, &chunk[..got])),
            None => Ok(thread.user().copy_out_partial(addr, &chunk[..got])),
        }
    })
}

/// Walks the remote ranges in pieces of at most `piece` bytes, for each of which `step` asks for the right anew: the process may have become
/// another's by then, or be gone. What was moved before something failed is the result.
fn transfer(
    thread: &Thread,
    ranges: UserPtr<impl Layout<[usize; 2]>>,
    count: usize,
    mut left: usize,
    piece: usize,
    mut step: impl FnMut(usize, usize) -> Result<usize>,
) -> Result<usize> {
    let ranges = ranges.slice(count).read_vec(thread.user(), IOV_MAX)?;
    let mut moved = 0;
    for range in ranges {
        let [addr, len] = range.load();
        let mut at = 0;
        while at < len.min(isize::MAX as usize) && left > 0 {
            if moved > 0 && is_killed(thread) {
                return Ok(moved);
            }
            let want = piece.min(len - at).min(left);
            let n = match step(addr.wrapping_add(at), want) {
                Ok(0) => Err(Errno::EFAULT),
                result => result,
            };
            match n {
                Ok(n) => {
                    moved += n;
                    at += n;
                    left -= n;
                    if n < want {
                        return Ok(moved);
                    }
                }
                Err(_) if moved > 0 => return Ok(moved),
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(moved)
}

/// The thread whose memory is meant; `None` when that is the caller's own. ESRCH, EPERM.
fn target(thread: &Thread, pid: u32, flags: usize) -> Result<Option<Arc<Seat>>> {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let seat = thread.kernel.thread(pid).ok_or(Errno::ESRCH)?;
    let (own, other) = (thread.process().mm(), seat.process().mm().ok_or(Errno::ESRCH)?);
    if own.is_some_and(|own| own.id == other.id) {
        return Ok(None);
    }
    access::check_call(thread, &seat)?;
    Ok(Some(seat))
}

/// Runs a copy from or to the memory of another process, which the caller may look into until it is done. ESRCH, EPERM.
fn remotely(thread: &Thread, seat: &Seat, copy: impl FnOnce(&dyn UserMemory) -> usize) -> Result<usize> {
    let _held = access::hold_thread(seat)?;
    access::check_call(thread, seat)?;
    Ok(copy(seat.user()))
}

/// membarrier(2) commands the machine is asked for: all but those of restartable sequences, which there are none of.
const MEMBARRIER_KNOWN: u32 = 0x27f;

/// membarrier(2).
pub fn membarrier(thread: &Thread, command: u32, flags: u32, cpu: u32) -> Result<usize> {
    if flags != 0 || command & !MEMBARRIER_KNOWN != 0 || command.count_ones() > 1 {
        return Err(Errno::EINVAL);
    }
    let answer = thread.context().ok_or(Errno::ENOSYS)?.membarrier(command, flags, cpu)?;
    Ok(if command == 0 { answer & MEMBARRIER_KNOWN as usize } else { answer })
}
