//! PIDFD_GET_INFO: what a descriptor of a process reports of it (linux/pidfd.h).

use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_object::Caller;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::pidfd::PidFd;

/// `struct pidfd_info` in its first version, 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Info {
    mask: u64,
    cgroup: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    /// Real user and group, effective, saved, those of the file system.
    ids: [u32; 8],
    exit_code: u32,
}

/// Bits of the mask.
const PID: u64 = 1;
const CREDS: u64 = 2;
const EXIT: u64 = 8;

/// The request without its size; and where the size is in it.
const REQUEST: u32 = 0xc000_ff0b;
const SIZE_SHIFT: u32 = 16;
const SIZE_MASK: u32 = 0x3fff;

/// Whether a request is the one, whatever the size of its structure.
fn is(request: u32) -> bool {
    request & !(SIZE_MASK << SIZE_SHIFT) == REQUEST && (request >> SIZE_SHIFT & SIZE_MASK) as usize >= size_of::<Info>()
}

/// Handles requests to a process's descriptor. ENOTTY, EINVAL, EFAULT, ESRCH for one that was waited for, unless only its end is asked for.
pub(super) fn ioctl(fd: &PidFd, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
    if !is(request) {
        return Err(Errno::ENOTTY);
    }
    let place = UserPtr::<u64>::new(arg).non_null().ok_or(Errno::EINVAL)?;
    let wanted = place.read(caller.user())?;
    let mut info = Info::new_zeroed();
    let task = fd.task();
    if fd.is_gone() {
        if wanted & EXIT == 0 {
            return Err(Errno::ESRCH);
        }
        info.mask = EXIT;
        info.exit_code = task.ended().unwrap_or(0);
    } else {
        let seat = fd.seat();
        let kept = task.last_cred.read().clone();
        let cred = seat.as_ref().map(|seat| seat.cred()).or(kept).ok_or(Errno::ESRCH)?;
        info.mask = PID | CREDS;
        info.pid = seat.filter(|_| fd.is_thread()).map_or(task.pid, |seat| seat.tid());
        info.tgid = task.pid;
        info.ppid = task.parent();
        info.ids = [cred.uid, cred.gid, cred.euid, cred.egid, cred.suid, cred.sgid, cred.fsuid, cred.fsgid];
    }
    // What the structure has more than this one stays as it is zero.
    let room = (request >> SIZE_SHIFT & SIZE_MASK) as usize;
    place.cast::<Info>().write(caller.user(), &info)?;
    let rest = alloc::vec![0; room - size_of::<Info>()];
    caller.user().copy_out(arg + size_of::<Info>(), &rest).map_err(|_| Errno::EFAULT)?;
    Ok(0)
}
