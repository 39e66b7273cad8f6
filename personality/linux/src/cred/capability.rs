//! Capability sets: capget(2), capset(2), and their part of prctl(2).

use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_object::Cred;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{CAP_ALL, CAP_LAST, CAP_SETPCAP, SECBIT_KEEP_CAPS, SECBIT_NO_CAP_AMBIENT_RAISE, commit};
use crate::Thread;
use crate::thread::ThreadExt;

/// `struct __user_cap_header_struct`.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Header {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct`: 32 capabilities of each set.
#[repr(C)]
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const VERSION_1: u32 = 0x1998_0330;
const VERSION_2: u32 = 0x2007_1026;
const VERSION_3: u32 = 0x2008_0522;

/// How many [`Data`] a version has; for an unknown one the preferred version is written back.
fn elements(thread: &Thread, header: UserPtr<Header>) -> Result<(usize, i32)> {
    let given = header.read(thread.user())?;
    match given.version {
        VERSION_1 => Ok((1, given.pid)),
        VERSION_2 | VERSION_3 => Ok((2, given.pid)),
        _ => {
            header.write(thread.user(), &Header { version: VERSION_3, ..given })?;
            Err(Errno::EINVAL)
        }
    }
}

/// capget(2).
pub fn capget(thread: &Thread, header: UserPtr<Header>, data: UserPtr<Data>) -> Result<()> {
    let (count, pid) = match elements(thread, header) {
        // A probe for the version alone.
        Err(Errno::EINVAL) if data.is_null() => return Ok(()),
        other => other?,
    };
    let cred = match u32::try_from(pid) {
        Err(_) => return Err(Errno::EINVAL),
        Ok(0) => thread.cred(),
        Ok(pid) => {
            let last = || thread.kernel.process(pid)?.last_cred.read().clone();
            thread.kernel.thread(pid).map(|seat| seat.cred()).or_else(last).ok_or(Errno::ESRCH)?
        }
    };
    if data.is_null() {
        return Ok(());
    }
    let half = |set: u64, at: usize| (set >> (32 * at)) as u32;
    let of = |at| Data {
        effective: half(cred.cap_effective, at),
        permitted: half(cred.cap_permitted, at),
        inheritable: half(cred.cap_inheritable, at),
    };
    data.slice(count).write_slice(thread.user(), &[of(0), of(1)][..count])
}

/// capset(2).
pub fn capset(thread: &Thread, header: UserPtr<Header>, data: UserPtr<Data>) -> Result<()> {
    let (count, pid) = elements(thread, header)?;
    if pid != 0 && pid.unsigned_abs() != thread.tid() && pid.unsigned_abs() != thread.process().pid {
        return Err(Errno::EPERM);
    }
    let halves = data.slice(count).read_vec(thread.user(), 2)?;
    let whole = |of: fn(&Data) -> u32| {
        halves.iter().enumerate().fold(0, |set, (at, half)| set | u64::from(of(half)) << (32 * at)) & CAP_ALL
    };
    let old = thread.cred();
    let mut new = (*old).clone();
    new.cap_effective = whole(|half| half.effective);
    new.cap_permitted = whole(|half| half.permitted);
    new.cap_inheritable = whole(|half| half.inheritable);
    let within = |set: u64, bound: u64| set & !bound == 0;
    let may_inherit = old.capable(CAP_SETPCAP) || within(new.cap_inheritable, old.cap_inheritable | old.cap_permitted);
    if !may_inherit
        || !within(new.cap_inheritable, old.cap_inheritable | old.cap_bounding)
        || !within(new.cap_permitted, old.cap_permitted)
        || !within(new.cap_effective, new.cap_permitted)
    {
        return Err(Errno::EPERM);
    }
    new.cap_ambient &= new.cap_permitted & new.cap_inheritable;
    commit(thread, new);
    Ok(())
}

fn valid(capability: usize) -> Result<u64> {
    if capability <= CAP_LAST as usize { Ok(1 << capability) } else { Err(Errno::EINVAL) }
}

/// PR_CAPBSET_READ.
pub fn bounding_read(thread: &Thread, capability: usize) -> Result<usize> {
    let bit = valid(capability)?;
    Ok(usize::from(thread.cred().cap_bounding & bit != 0))
}

/// PR_CAPBSET_DROP.
pub fn bounding_drop(thread: &Thread, capability: usize) -> Result<usize> {
    let old = thread.cred();
    if !old.capable(CAP_SETPCAP) {
        return Err(Errno::EPERM);
    }
    let bit = valid(capability)?;
    commit(thread, Cred { cap_bounding: old.cap_bounding & !bit, ..(*old).clone() });
    Ok(0)
}

/// PR_SET_SECUREBITS.
pub fn set_securebits(thread: &Thread, bits: usize) -> Result<usize> {
    const ALL: u32 = 0xff;
    const LOCKS: u32 = 0xaa;
    let old = thread.cred();
    let new = u32::try_from(bits).ok().filter(|bits| bits & !ALL == 0).ok_or(Errno::EPERM)?;
    let changed = old.securebits ^ new;
    let locked = (old.securebits & LOCKS) >> 1;
    let unlocks = old.securebits & LOCKS & !new;
    if changed & locked != 0 || unlocks != 0 || !old.capable(CAP_SETPCAP) {
        return Err(Errno::EPERM);
    }
    commit(thread, Cred { securebits: new, ..(*old).clone() });
    Ok(0)
}

/// PR_SET_KEEPCAPS.
pub fn set_keep(thread: &Thread, keep: usize) -> Result<usize> {
    const LOCKED: u32 = SECBIT_KEEP_CAPS << 1;
    let old = thread.cred();
    if keep > 1 {
        return Err(Errno::EINVAL);
    }
    if old.securebits & LOCKED != 0 {
        return Err(Errno::EPERM);
    }
    let bits = if keep == 1 { old.securebits | SECBIT_KEEP_CAPS } else { old.securebits & !SECBIT_KEEP_CAPS };
    commit(thread, Cred { securebits: bits, ..(*old).clone() });
    Ok(0)
}

/// PR_CAP_AMBIENT.
pub fn ambient(thread: &Thread, how: usize, capability: usize, rest: [usize; 2]) -> Result<usize> {
    const IS_SET: usize = 1;
    const RAISE: usize = 2;
    const LOWER: usize = 3;
    const CLEAR_ALL: usize = 4;
    if rest != [0, 0] {
        return Err(Errno::EINVAL);
    }
    let old = thread.cred();
    let mut new = (*old).clone();
    match how {
        CLEAR_ALL if capability == 0 => new.cap_ambient = 0,
        IS_SET => return Ok(usize::from(old.cap_ambient & valid(capability)? != 0)),
        RAISE => {
            let bit = valid(capability)?;
            let may = old.cap_permitted & old.cap_inheritable & bit != 0;
            if !may || old.securebits & SECBIT_NO_CAP_AMBIENT_RAISE != 0 {
                return Err(Errno::EPERM);
            }
            new.cap_ambient |= bit;
        }
        LOWER => new.cap_ambient &= !valid(capability)?,
        _ => return Err(Errno::EINVAL),
    }
    commit(thread, new);
    Ok(0)
}
