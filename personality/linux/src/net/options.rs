//! setsockopt(2), getsockopt(2).

use janua_kernel::table::Fd;
use janua_kernel::{Errno, Result, UserPtr};

use janua_abi::linux::net::{so, sol};

use super::args::Level;
use super::filter;
use super::{Open, read_value};
use crate::Thread;
use crate::thread::ThreadExt;

/// Most bytes of a value; what is longer is no value of an option there is.
const MOST: usize = 4096;

/// setsockopt(2)
pub fn setsockopt(thread: &Thread, fd: Fd, level: Level, name: u32, value: UserPtr<u8>, len: i32) -> Result<()> {
    set_open(thread, &Open::get(thread, fd)?, level, name, value, len)
}

/// setsockopt(2) of an open socket.
pub(crate) fn set_open(thread: &Thread, open: &Open, level: Level, name: u32, value: UserPtr<u8>, len: i32) -> Result<()> {
    let len = usize::try_from(len).map_err(|_| Errno::EINVAL)?;
    let value = read_value(thread, value, len.min(MOST))?;
    if level.0 == sol::SOCKET && matches!(name, so::ATTACH_FILTER | so::ATTACH_BPF) {
        return filter::attach(thread, open, name, &value);
    }
    set(thread, open, level, name, &value)
}

/// Sets an option to a value that has been copied in.
pub(crate) fn set(thread: &Thread, open: &Open, level: Level, name: u32, value: &[u8]) -> Result<()> {
    open.socket()?.set_option(&thread.caller(), level.0, name, value)
}

/// getsockopt(2)
pub fn getsockopt(thread: &Thread, fd: Fd, level: Level, name: u32, value: UserPtr<u8>, len: UserPtr<i32>) -> Result<()> {
    let open = Open::get(thread, fd)?;
    let room = usize::try_from(len.read(thread.user())?).map_err(|_| Errno::EINVAL)?;
    match get_open(thread, &open, level, name, value, room) {
        Ok(count) => len.write(thread.user(), &(count as i32)),
        Err((errno, whole)) => {
            if let Some(whole) = whole {
                len.write(thread.user(), &i32::try_from(whole).unwrap_or(i32::MAX))?;
            }
            Err(errno)
        }
    }
}

/// getsockopt(2) of an open socket, whose value has `room`: how many bytes it has. With ERANGE comes how many would do (SO_PEERGROUPS).
pub(crate) fn get_open(
    thread: &Thread,
    open: &Open,
    level: Level,
    name: u32,
    value: UserPtr<u8>,
    room: usize,
) -> core::result::Result<usize, (Errno, Option<usize>)> {
    let plain = |errno| (errno, None);
    if (level.0, name) == (sol::SOCKET, so::ATTACH_FILTER) {
        return filter::show(thread, open, value, room).map_err(plain);
    }
    let found = match get(thread, open, level, name, room) {
        Err(Errno::ERANGE) => {
            let whole = get(thread, open, level, name, usize::MAX).map_err(plain)?;
            return Err((Errno::ERANGE, Some(whole.len())));
        }
        other => other.map_err(plain)?,
    };
    let count = room.min(found.len());
    thread.user().copy_out(value.addr(), &found[..count]).map_err(|_| plain(Errno::EFAULT))?;
    Ok(count)
}

/// The value of an option, for a program that has room for so many bytes.
pub(crate) fn get(thread: &Thread, open: &Open, level: Level, name: u32, room: usize) -> Result<alloc::vec::Vec<u8>> {
    open.socket()?.get_option(&thread.caller(), level.0, name, room)
}
