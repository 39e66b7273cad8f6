//! User and group ids: setuid(2) and its family.

use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;

use super::{CAP_SETGID, CAP_SETUID, commit, fix_capabilities};
use crate::Thread;

/// "Leave as it is" in the calls that set several.
const KEEP: u32 = u32::MAX;
/// Most supplementary groups (NGROUPS_MAX).
const MOST_GROUPS: usize = 65536;

/// getuid(2).
pub fn getuid(thread: &Thread) -> u32 {
    thread.cred().uid
}

/// geteuid(2).
pub fn geteuid(thread: &Thread) -> u32 {
    thread.cred().euid
}

/// getgid(2).
pub fn getgid(thread: &Thread) -> u32 {
    thread.cred().gid
}

/// getegid(2).
pub fn getegid(thread: &Thread) -> u32 {
    thread.cred().egid
}

fn write_three(thread: &Thread, at: [UserPtr<u32>; 3], values: [u32; 3]) -> Result<()> {
    for (at, value) in at.into_iter().zip(values) {
        at.write(thread.user(), &value)?;
    }
    Ok(())
}

/// getresuid(2).
pub fn getresuid(thread: &Thread, real: UserPtr<u32>, effective: UserPtr<u32>, saved: UserPtr<u32>) -> Result<()> {
    let cred = thread.cred();
    write_three(thread, [real, effective, saved], [cred.uid, cred.euid, cred.suid])
}

/// getresgid(2).
pub fn getresgid(thread: &Thread, real: UserPtr<u32>, effective: UserPtr<u32>, saved: UserPtr<u32>) -> Result<()> {
    let cred = thread.cred();
    write_three(thread, [real, effective, saved], [cred.gid, cred.egid, cred.sgid])
}

/// setuid(2).
pub fn setuid(thread: &Thread, uid: u32) -> Result<()> {
    let old = thread.cred();
    let mut new = (*old).clone();
    if uid == KEEP {
        return Err(Errno::EINVAL);
    }
    if old.capable(CAP_SETUID) {
        new.uid = uid;
        new.suid = uid;
    } else if uid != old.uid && uid != old.suid {
        return Err(Errno::EPERM);
    }
    new.euid = uid;
    new.fsuid = uid;
    fix_capabilities(&old, &mut new);
    commit(thread, new);
    Ok(())
}

/// setgid(2).
pub fn setgid(thread: &Thread, gid: u32) -> Result<()> {
    let old = thread.cred();
    let mut new = (*old).clone();
    if gid == KEEP {
        return Err(Errno::EINVAL);
    }
    if old.capable(CAP_SETGID) {
        new.gid = gid;
        new.sgid = gid;
    } else if gid != old.gid && gid != old.sgid {
        return Err(Errno::EPERM);
    }
    new.egid = gid;
    new.fsgid = gid;
    commit(thread, new);
    Ok(())
}

/// setreuid(2).
pub fn setreuid(thread: &Thread, real: u32, effective: u32) -> Result<()> {
    let old = thread.cred();
    let mut new = (*old).clone();
    let capable = old.capable(CAP_SETUID);
    if real != KEEP {
        if !capable && real != old.uid && real != old.euid {
            return Err(Errno::EPERM);
        }
        new.uid = real;
    }
    if effective != KEEP {
        if !capable && ![old.uid, old.euid, old.suid].contains(&effective) {
            return Err(Errno::EPERM);
        }
        new.euid = effective;
    }
    if real != KEEP || effective != KEEP && effective != old.uid {
        new.suid = new.euid;
    }
    new.fsuid = new.euid;
    fix_capabilities(&old, &mut new);
    commit(thread, new);
    Ok(())
}

/// setregid(2).
pub fn setregid(thread: &Thread, real: u32, effective: u32) -> Result<()> {
    let old = thread.cred();
    let mut new = (*old).clone();
    let capable = old.capable(CAP_SETGID);
    if real != KEEP {
        if !capable && real != old.gid && real != old.egid {
            return Err(Errno::EPERM);
        }
        new.gid = real;
    }
    if effective != KEEP {
        if !capable && ![old.gid, old.egid, old.sgid].contains(&effective) {
            return Err(Errno::EPERM);
        }
        new.egid = effective;
    }
    if real != KEEP || effective != KEEP && effective != old.gid {
        new.sgid = new.egid;
    }
    new.fsgid = new.egid;
    commit(thread, new);
    Ok(())
}

/// setresuid(2).
pub fn setresuid(thread: &Thread, real: u32, effective: u32, saved: u32) -> Result<()> {
    let old = thread.cred();
    let mut new = (*old).clone();
    let may = |id: u32| id == KEEP || old.capable(CAP_SETUID) || [old.uid, old.euid, old.suid].contains(&id);
    if !(may(real) && may(effective) && may(saved)) {
        return Err(Errno::EPERM);
    }
    let set = |slot: &mut u32, id: u32| *slot = if id == KEEP { *slot } else { id };
    set(&mut new.uid, real);
    set(&mut new.euid, effective);
    set(&mut new.suid, saved);
    new.fsuid = new.euid;
    fix_capabilities(&old, &mut new);
    commit(thread, new);
    Ok(())
}

/// setresgid(2).
pub fn setresgid(thread: &Thread, real: u32, effective: u32, saved: u32) -> Result<()> {
    let old = thread.cred();
    let mut new = (*old).clone();
    let may = |id: u32| id == KEEP || old.capable(CAP_SETGID) || [old.gid, old.egid, old.sgid].contains(&id);
    if !(may(real) && may(effective) && may(saved)) {
        return Err(Errno::EPERM);
    }
    let set = |slot: &mut u32, id: u32| *slot = if id == KEEP { *slot } else { id };
    set(&mut new.gid, real);
    set(&mut new.egid, effective);
    set(&mut new.sgid, saved);
    new.fsgid = new.egid;
    commit(thread, new);
    Ok(())
}

/// setfsuid(2): always returns the old id.
pub fn setfsuid(thread: &Thread, uid: u32) -> u32 {
    let old = thread.cred();
    if uid != KEEP && (old.capable(CAP_SETUID) || [old.uid, old.euid, old.suid, old.fsuid].contains(&uid)) {
        let mut new = (*old).clone();
        new.fsuid = uid;
        fix_capabilities(&old, &mut new);
        commit(thread, new);
    }
    old.fsuid
}

/// setfsgid(2): always returns the old id.
pub fn setfsgid(thread: &Thread, gid: u32) -> u32 {
    let old = thread.cred();
    if gid != KEEP && (old.capable(CAP_SETGID) || [old.gid, old.egid, old.sgid, old.fsgid].contains(&gid)) {
        let mut new = (*old).clone();
        new.fsgid = gid;
        commit(thread, new);
    }
    old.fsgid
}

/// getgroups(2).
pub fn getgroups(thread: &Thread, size: i32, list: UserPtr<u32>) -> Result<usize> {
    let groups = &thread.cred().groups;
    let size = usize::try_from(size).map_err(|_| Errno::EINVAL)?;
    if size != 0 {
        if size < groups.len() {
            return Err(Errno::EINVAL);
        }
        list.slice(groups.len()).write_slice(thread.user(), groups)?;
    }
    Ok(groups.len())
}

/// setgroups(2).
pub fn setgroups(thread: &Thread, size: usize, list: UserPtr<u32>) -> Result<()> {
    let size = size as u32 as usize;
    set_groups(thread, size, |most| list.slice(size).read_vec(thread.user(), most))
}

/// setgroups(2) with a list of `size` groups that `read` copies in, given the most there may be.
pub fn set_groups(thread: &Thread, size: usize, read: impl FnOnce(usize) -> Result<Vec<u32>>) -> Result<()> {
    let old = thread.cred();
    if !old.capable(CAP_SETGID) {
        return Err(Errno::EPERM);
    }
    if size > MOST_GROUPS {
        return Err(Errno::EINVAL);
    }
    let mut groups = read(MOST_GROUPS)?;
    groups.sort_unstable();
    let mut new = (*old).clone();
    new.groups = groups;
    commit(thread, new);
    Ok(())
}
