//! Operations on rings and what is registered with them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::uring::{Buf, Sqe, flag};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::Fd;
use janua_object::OpenFile;

use super::super::resources::{self, Entry, MOST_GROUP};
use super::super::ring::{Completion, Ring};
use super::super::turn::{Turn, post};
use crate::Thread;
use crate::fs::fd;

/// IORING_OP_CLOSE: of a descriptor, or of a slot. A ring is closed by close(2) alone.
pub fn close(turn: &Turn<'_>, thread: &Thread, sqe: &Sqe) -> Result<()> {
    if sqe.file_index != 0 {
        let slot = sqe.file_index - 1;
        let entry = turn.ring.resources.lock().take(slot)?;
        gone(turn.ring, turn, entry.tag);
        return Ok(());
    }
    if fd::get(thread, Fd(sqe.fd))?.downcast::<Ring>().is_some() {
        return Err(Errno::EBADF);
    }
    fd::close(thread, Fd(sqe.fd))
}

/// What was registered with a tag is gone.
fn gone(ring: &Ring, turn: &Turn<'_>, tag: u64) {
    if tag != 0 {
        post(ring, &turn.access, &Completion { user_data: tag, ..Completion::default() });
    }
}

/// IORING_OP_FIXED_FD_INSTALL: gives a registered file a descriptor.
pub fn install(turn: &Turn<'_>, double: &Thread, sqe: &Sqe) -> Result<usize> {
    if sqe.op_flags & !flag::INSTALL_NO_CLOEXEC != 0 || sqe.off != 0 || sqe.addr != 0 || sqe.len != 0 || sqe.buf_index != 0 {
        return Err(Errno::EINVAL);
    }
    let file = fd::get(double, Fd(sqe.fd))?;
    let owner = turn.issuer.owner().ok_or(Errno::ESRCH)?;
    fd::install(&owner, file, sqe.op_flags & flag::INSTALL_NO_CLOEXEC == 0).map(|fd| fd.0 as usize)
}

/// Changes registered files from `offset` on to those with the descriptors at `list`, -1 being none and -2 what it was: how many were changed,
/// and the tags of what is gone. Stops at the first error, which is returned when nothing was changed. ENXIO without registered files.
pub fn update_files(
    ring: &Ring,
    thread: &Thread,
    (offset, count): (u32, u32),
    list: UserPtr<i32>,
    tags: UserPtr<u64>,
) -> Result<(usize, Vec<u64>)> {
    let len = ring.resources.lock().files.as_ref().ok_or(Errno::ENXIO)?.len();
    let end = (offset as usize).checked_add(count as usize).ok_or(Errno::EOVERFLOW)?;
    if end > len {
        return Err(Errno::EINVAL);
    }
    let mut done = 0;
    let mut old: Vec<Entry<Arc<OpenFile>>> = Vec::new();
    let mut error = None;
    for at in 0..count as usize {
        let change = || {
            let number = list.at(at).read(thread.user())?;
            let tag = if tags.is_null() { 0 } else { tags.at(at).read(thread.user())? };
            let new = match number {
                flag::FILES_SKIP => return Ok(None),
                -1 if tag != 0 => return Err(Errno::EINVAL),
                -1 => None,
                number => Some(Entry { what: fd::get(thread, Fd(number))?, tag }),
            };
            new.as_ref().map_or(Ok(()), |entry| resources::check(&entry.what))?;
            let mut resources = ring.resources.lock();
            let place = resources.files.as_mut().and_then(|files| files.get_mut(offset as usize + at)).ok_or(Errno::ENXIO)?;
            Ok(core::mem::replace(place, new))
        };
        match change() {
            Ok(entry) => old.extend(entry),
            Err(errno) => {
                error = Some(errno);
                break;
            }
        }
        done += 1;
    }
    match error {
        Some(errno) if done == 0 => Err(errno),
        _ => Ok((done, old.iter().map(|entry| entry.tag).filter(|tag| *tag != 0).collect())),
    }
}

/// IORING_OP_FILES_UPDATE
pub fn files_update(turn: &Turn<'_>, thread: &Thread, sqe: &Sqe) -> Result<usize> {
    let Sqe { off, addr, len, .. } = *sqe;
    if sqe.op_flags != 0 || sqe.file_index != 0 || len == 0 {
        return Err(Errno::EINVAL);
    }
    let list = UserPtr::<i32>::new(addr as usize);
    if off as u32 == flag::FILE_INDEX_ALLOC {
        return allocate(turn, thread, list, len);
    }
    let (done, tags) = update_files(turn.ring, thread, (off as u32, len), list, UserPtr::new(0))?;
    tags.into_iter().for_each(|tag| gone(turn.ring, turn, tag));
    Ok(done)
}

/// Puts the files of a list into free slots, and the slots' numbers into the list.
fn allocate(turn: &Turn<'_>, thread: &Thread, list: UserPtr<i32>, count: u32) -> Result<usize> {
    let one = |at: usize| {
        let file = fd::get(thread, Fd(list.at(at).read(thread.user())?))?;
        let (slot, _) = turn.ring.resources.lock().put(flag::FILE_INDEX_ALLOC, file)?;
        let written = list.at(at).write(thread.user(), &(slot as i32));
        if written.is_err() {
            let entry = turn.ring.resources.lock().take(slot);
            drop(entry);
        }
        written
    };
    for at in 0..count as usize {
        match one(at) {
            Ok(()) => {}
            Err(errno) if at == 0 => return Err(errno),
            Err(_) => return Ok(at),
        }
    }
    Ok(count as usize)
}

/// IORING_OP_PROVIDE_BUFFERS: so many buffers of one length, one behind the other, with numbers that follow each other.
pub fn provide(turn: &Turn<'_>, sqe: &Sqe) -> Result<()> {
    let Sqe { fd: count, off: first, addr, len, buf_index: group, .. } = *sqe;
    let count = usize::try_from(count).ok().filter(|count| (1..=MOST_GROUP).contains(count)).ok_or(Errno::E2BIG)?;
    if sqe.op_flags != 0 || sqe.file_index != 0 || len == 0 {
        return Err(Errno::EINVAL);
    }
    let first = u16::try_from(first).map_err(|_| Errno::E2BIG)?;
    if usize::from(first) + count > MOST_GROUP {
        return Err(Errno::EINVAL);
    }
    let size = (count as u64).checked_mul(u64::from(len)).ok_or(Errno::EOVERFLOW)?;
    addr.checked_add(size).ok_or(Errno::EOVERFLOW)?;
    if !turn.owner.user().in_range(addr as usize, size as usize) {
        return Err(Errno::EFAULT);
    }
    let buffers = (0..count).map(|at| Buf {
        addr: addr + at as u64 * u64::from(len),
        len,
        id: first.wrapping_add(at as u16),
        reserved: 0,
    });
    turn.ring.resources.lock().provide(group, buffers)
}

/// IORING_OP_REMOVE_BUFFERS
pub fn remove(turn: &Turn<'_>, sqe: &Sqe) -> Result<usize> {
    let Sqe { fd: count, buf_index: group, .. } = *sqe;
    let count = usize::try_from(count).ok().filter(|count| (1..=MOST_GROUP).contains(count)).ok_or(Errno::EINVAL)?;
    if sqe.op_flags != 0 || sqe.addr != 0 || sqe.len != 0 || sqe.off != 0 || sqe.file_index != 0 {
        return Err(Errno::EINVAL);
    }
    turn.ring.resources.lock().remove(group, count)
}

/// IORING_OP_MSG_RING: a completion in another ring, or a registered file of this ring's for one of the other's slots.
pub fn message(turn: &Turn<'_>, double: &Thread, sqe: &Sqe) -> Result<usize> {
    let Sqe { fd: number, off: user_data, addr: command, len, op_flags, file_index, addr3: from, .. } = *sqe;
    if sqe.buf_index != 0 || sqe.personality != 0 || op_flags & !(flag::MSG_CQE_SKIP | flag::MSG_FLAGS_PASS) != 0 {
        return Err(Errno::EINVAL);
    }
    let other = Ring::of(&*fd::get(double, Fd(number))?).map_err(|_| Errno::EBADFD)?;
    if other.disabled.load(core::sync::atomic::Ordering::SeqCst) {
        return Err(Errno::EBADFD);
    }
    let pass = op_flags & flag::MSG_FLAGS_PASS != 0;
    let post = |result: i64, flags: u32| {
        let access = other.access(turn.owner);
        post(&other, &access, &Completion { user_data, result, flags, more: [0; 2] });
        other.notify(&access, false);
    };
    match command {
        flag::MSG_DATA if from == 0 && op_flags & flag::MSG_CQE_SKIP == 0 && (pass || file_index == 0) => {
            post(i64::from(len as i32), if pass { file_index } else { 0 });
            Ok(0)
        }
        flag::MSG_SEND_FD if Arc::ptr_eq(&other, turn.ring) || len != 0 && pass => Err(Errno::EINVAL),
        flag::MSG_SEND_FD => {
            let file = turn.ring.resources.lock().file(from as u32)?;
            let any = file_index == flag::FILE_INDEX_ALLOC;
            let slot = if any { file_index } else { file_index.checked_sub(1).ok_or(Errno::EINVAL)? };
            let (at, old) = other.resources.lock().put(slot, file)?;
            drop(old);
            let result = if any { at as usize } else { 0 };
            if op_flags & flag::MSG_CQE_SKIP == 0 {
                post(if any { result as i64 } else { i64::from(len as i32) }, 0);
            }
            Ok(result)
        }
        _ => Err(Errno::EINVAL),
    }
}
