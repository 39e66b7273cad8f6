//! shmget(2), shmat(2), shmdt(2), shmctl(2).

use alloc::sync::Arc;

use janua_abi::linux::ipc::*;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::mman::{MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_SHARED, PAGE_SIZE};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_object::Caller;
use janua_object::mm::{Label, MapRequest};
use janua_object::sysv::shm::{Segment, ShmFile};
use janua_port::Prot;

use super::{Command, GetFlags, now};
use crate::Thread;
use crate::mm::Addr;
use crate::thread::ThreadExt;

/// Largest segment; a guess no machine reaches (SHMMAX's default).
const SHMMAX: u64 = u64::MAX - (1 << 24);

/// shmget(2).
pub fn shmget(thread: &Thread, key: i32, size: usize, flags: GetFlags) -> Result<i32> {
    if flags.0 & SHM_HUGETLB != 0 {
        // There is no pool of huge pages.
        return Err(Errno::ENOMEM);
    }
    let system = &thread.kernel;
    system.ipc.shm.get(&system.vfs, &thread.caller(), key, size, flags.0)
}

/// shmat(2).
pub fn shmat(thread: &Thread, id: i32, addr: Addr, flags: u32) -> Result<usize> {
    let segment = thread.kernel.ipc.shm.ids.find(id)?;
    let mut at = addr.0;
    if !at.is_multiple_of(PAGE_SIZE) {
        if flags & SHM_RND == 0 {
            return Err(Errno::EINVAL);
        }
        at -= at % PAGE_SIZE;
    }
    if flags & SHM_REMAP != 0 && at == 0 {
        return Err(Errno::EINVAL);
    }
    let (read_only, exec) = (flags & SHM_RDONLY != 0, flags & SHM_EXEC != 0);
    let want = if read_only { 0o444 } else { 0o666 } | if exec { 0o111 } else { 0 };
    segment.check(&thread.caller().cred(), want)?;
    let place = match () {
        _ if at == 0 => 0,
        _ if flags & SHM_REMAP != 0 => MAP_FIXED,
        _ => MAP_FIXED_NOREPLACE,
    };
    let request = MapRequest {
        addr: at,
        len: usize::try_from(segment.size).map_err(|_| Errno::ENOMEM)?,
        prot: Prot { read: true, write: !read_only, exec },
        flags: MAP_SHARED | place,
        file: Some(segment.open(flags)),
        offset: 0,
    };
    let mm = thread.process().mm().ok_or(Errno::ENOMEM)?;
    let mapped = mm.map(request, &crate::mm::limits(thread));
    let at = mapped.map_err(|errno| if errno == Errno::EEXIST { Errno::EINVAL } else { errno })?;
    segment.used_by(thread.task.pid);
    Ok(at)
}

/// shmdt(2).
pub fn shmdt(thread: &Thread, addr: Addr) -> Result<()> {
    let mm = thread.process().mm().ok_or(Errno::EINVAL)?;
    // What is left of the attachment that began at the address, even if its first pages are gone.
    let pieces: alloc::vec::Vec<_> = mm
        .regions()
        .into_iter()
        .filter(|region| region.start.checked_sub(region.offset as usize) == Some(addr.0))
        .filter_map(|region| match &region.label {
            Label::File(file) if file.downcast::<ShmFile>().is_some() => Some((region.start, region.end, file.clone())),
            _ => None,
        })
        .collect();
    let Some((_, _, first)) = pieces.first() else { return Err(Errno::EINVAL) };
    let segment: Option<Arc<Segment>> = first.downcast::<ShmFile>().map(|file| file.segment().clone());
    for (start, end, file) in &pieces {
        if Arc::ptr_eq(file, first) {
            mm.unmap(*start, end - start)?;
        }
    }
    if let Some(segment) = segment {
        segment.used_by(thread.task.pid);
    }
    Ok(())
}

/// shmctl(2).
pub fn shmctl(thread: &Thread, id: i32, command: Command, buffer: UserPtr<ShmidDs>) -> Result<i32> {
    shmctl_as::<ShmidDs, ShmInfo64, ShmInfo>(thread, id, command, buffer.addr())
}

/// shmctl(2) of programs with other layouts of what the buffer holds.
pub fn shmctl_as<D: Layout<ShmidDs>, L: Layout<ShmInfo64>, I: Layout<ShmInfo>>(
    thread: &Thread,
    id: i32,
    command: Command,
    buffer: usize,
) -> Result<i32> {
    let buffer = UserPtr::<D>::new(buffer);
    let segments = &thread.kernel.ipc.shm;
    let user = thread.user();
    let cred = thread.caller().cred();
    match command.0 {
        IPC_STAT => {
            let segment = segments.ids.find(id)?;
            segment.check(&cred, 0o444)?;
            buffer.store(user, &segment.stat())?;
        }
        SHM_STAT | SHM_STAT_ANY => {
            let (id, segment) = segments.ids.at(id)?;
            if command.0 == SHM_STAT {
                segment.check(&cred, 0o444)?;
            }
            buffer.store(user, &segment.stat())?;
            return Ok(id);
        }
        IPC_SET => {
            let to = buffer.load(user)?.perm;
            segments.ids.find(id)?.set_owner(now(thread), |owner| {
                owner.check_owner(&cred)?;
                owner.set(&to);
                Ok(())
            })?;
        }
        IPC_RMID => {
            let segment = segments.ids.find(id)?;
            segment.set_owner(now(thread), |owner| owner.check_owner(&cred))?;
            segment.doom();
        }
        SHM_LOCK | SHM_UNLOCK => {
            let segment = segments.ids.find(id)?;
            segment.set_owner(now(thread), |owner| owner.check_owner(&cred))?;
            segment.set_locked(command.0 == SHM_LOCK);
        }
        IPC_INFO => {
            let most = segments.ids.most() as u64;
            let info = ShmInfo64 { shmmax: SHMMAX, shmmin: 1, shmmni: most, shmseg: most, shmall: SHMMAX, unused: [0; 4] };
            buffer.cast::<L>().store(user, &info)?;
            return Ok(segments.ids.all().1 as i32);
        }
        SHM_INFO => {
            let (all, highest) = segments.ids.all();
            let pages = |bytes: u64| bytes.div_ceil(PAGE_SIZE as u64);
            let info = ShmInfo {
                used_ids: all.len() as i32,
                shm_tot: all.iter().map(|(_, segment)| pages(segment.size)).sum(),
                shm_rss: all.iter().map(|(_, segment)| pages(segment.resident())).sum(),
                ..ShmInfo::default()
            };
            buffer.cast::<I>().store(user, &info)?;
            return Ok(highest as i32);
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}
