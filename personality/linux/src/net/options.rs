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
    let open = Open::get(thread, fd)?;
    let len = usize::try_from(len).map_err(|_| Errno::EINVAL)?;
    let value = read_value(thread, value, len.min(MOST))?;
    if level.0 == sol::SOCKET && matches!(name, so::ATTACH_FILTER | so::ATTACH_BPF) {
        return filter::attach(thread, &open, name, &value);
    }
    set(thread, &open, level, name, &value)
}

/// Sets an option to a value that has been copied in.
pub(crate) fn set(thread: &Thread, open: &Open, level: Level, name: u32, value: &[u8]) -> Result<()> {
    open.socket()?.set_option(&thread.caller(), level.0, name, value)
}

/// getsockopt(2)
pub fn getsockopt(thread: &Thread, fd: Fd, level: Level, name: u32, value: UserPtr<u8>, len: UserPtr<i32>) -> Result<()> {
    let open = Open::get(thread, fd)?;
    let room = usize::try_from(len.read(thread.user())?).map_err(|_| Errno::EINVAL)?;
    if (level.0, name) == (sol::SOCKET, so::ATTACH_FILTER) {
        let count = filter::show(thread, &open, value, room)?;
        return len.write(thread.user(), &(count as i32));
    }
    let found = match open.socket()?.get_option(&thread.caller(), level.0, name, room) {
        // The size that would do is returned (SO_PEERGROUPS).
        Err(Errno::ERANGE) => {
            let whole = open.socket()?.get_option(&thread.caller(), level.0, name, usize::MAX)?;
            len.write(thread.user(), &i32::try_from(whole.len()).unwrap_or(i32::MAX))?;
            return Err(Errno::ERANGE);
        }
        other => other?,
    };
    let count = room.min(found.len());
    thread.user().copy_out(value.addr(), &found[..count]).map_err(|_| Errno::EFAULT)?;
    len.write(thread.user(), &(count as i32))
}

/// The value of an option, for a program that has room for so many bytes.
pub(crate) fn get(thread: &Thread, open: &Open, level: Level, name: u32, room: usize) -> Result<alloc::vec::Vec<u8>> {
    open.socket()?.get_option(&thread.caller(), level.0, name, room)
}
