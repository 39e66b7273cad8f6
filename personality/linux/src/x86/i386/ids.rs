//! Calls with user and group numbers of 16 bits.

use alloc::vec::Vec;

use janua_abi::linux::i386::stat::low_id;
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::{Arg, Fd, Kind};
use janua_kernel::{UserPtr, UserStr};

use crate::Thread;
use crate::cred::ids;
use crate::fs::attr;

/// A number as a program gives it; all ones means "none" in either width.
#[derive(Clone, Copy, Debug)]
pub struct Id16(u32);

impl Arg for Id16 {
    const KIND: Kind = Kind::Int;
    fn decode(word: usize) -> Result<Self> {
        Ok(Id16(match word as u16 {
            u16::MAX => u32::MAX,
            id => id.into(),
        }))
    }
}

pub fn chown(thread: &Thread, path: UserStr, uid: Id16, gid: Id16) -> Result<()> {
    attr::chown(thread, path, uid.0, gid.0)
}

pub fn lchown(thread: &Thread, path: UserStr, uid: Id16, gid: Id16) -> Result<()> {
    attr::lchown(thread, path, uid.0, gid.0)
}

pub fn fchown(thread: &Thread, fd: Fd, uid: Id16, gid: Id16) -> Result<()> {
    attr::fchown(thread, fd, uid.0, gid.0)
}

pub fn setuid(thread: &Thread, id: Id16) -> Result<()> {
    ids::setuid(thread, id.0)
}

pub fn setgid(thread: &Thread, id: Id16) -> Result<()> {
    ids::setgid(thread, id.0)
}

pub fn setfsuid(thread: &Thread, id: Id16) -> u32 {
    low_id(ids::setfsuid(thread, id.0)).into()
}

pub fn setfsgid(thread: &Thread, id: Id16) -> u32 {
    low_id(ids::setfsgid(thread, id.0)).into()
}

pub fn setreuid(thread: &Thread, real: Id16, effective: Id16) -> Result<()> {
    ids::setreuid(thread, real.0, effective.0)
}

pub fn setregid(thread: &Thread, real: Id16, effective: Id16) -> Result<()> {
    ids::setregid(thread, real.0, effective.0)
}

pub fn setresuid(thread: &Thread, real: Id16, effective: Id16, saved: Id16) -> Result<()> {
    ids::setresuid(thread, real.0, effective.0, saved.0)
}

pub fn setresgid(thread: &Thread, real: Id16, effective: Id16, saved: Id16) -> Result<()> {
    ids::setresgid(thread, real.0, effective.0, saved.0)
}

pub fn getuid(thread: &Thread) -> u32 {
    low_id(thread.ext.cred().uid).into()
}

pub fn geteuid(thread: &Thread) -> u32 {
    low_id(thread.ext.cred().euid).into()
}

pub fn getgid(thread: &Thread) -> u32 {
    low_id(thread.ext.cred().gid).into()
}

pub fn getegid(thread: &Thread) -> u32 {
    low_id(thread.ext.cred().egid).into()
}

fn write(thread: &Thread, places: [UserPtr<u16>; 3], ids: [u32; 3]) -> Result<()> {
    places.into_iter().zip(ids).try_for_each(|(place, id)| place.write(thread.user(), &low_id(id)))
}

pub fn getresuid(thread: &Thread, real: UserPtr<u16>, effective: UserPtr<u16>, saved: UserPtr<u16>) -> Result<()> {
    let cred = thread.ext.cred();
    write(thread, [real, effective, saved], [cred.uid, cred.euid, cred.suid])
}

pub fn getresgid(thread: &Thread, real: UserPtr<u16>, effective: UserPtr<u16>, saved: UserPtr<u16>) -> Result<()> {
    let cred = thread.ext.cred();
    write(thread, [real, effective, saved], [cred.gid, cred.egid, cred.sgid])
}

pub fn getgroups(thread: &Thread, size: i32, list: UserPtr<u16>) -> Result<usize> {
    let groups: Vec<u16> = thread.ext.cred().groups.iter().map(|&group| low_id(group)).collect();
    let size = usize::try_from(size).map_err(|_| Errno::EINVAL)?;
    if size != 0 {
        if size < groups.len() {
            return Err(Errno::EINVAL);
        }
        list.slice(groups.len()).write_slice(thread.user(), &groups)?;
    }
    Ok(groups.len())
}

pub fn setgroups(thread: &Thread, size: usize, list: UserPtr<u16>) -> Result<()> {
    ids::set_groups(thread, size, |most| {
        Ok(list.slice(size).read_vec(thread.user(), most)?.into_iter().map(u32::from).collect())
    })
}
