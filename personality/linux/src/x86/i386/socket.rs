//! socketcall(2): all calls on sockets by one number, their arguments in memory; and the options whose values are times.

use janua_abi::linux::i386::net::{MmsgHdr32, MsgHdr32};
use janua_abi::linux::i386::time::{TimeSpec32, TimeVal32};
use janua_abi::linux::layout::Layout;
use janua_abi::linux::net::{so, sol};
use janua_abi::linux::process::TimeVal;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::{CallResult, Fd};
use zerocopy::{FromBytes, IntoBytes};

use crate::Thread;
use crate::net::args::{Domain, Level, MsgFlags, Type};
use crate::net::{self, Open, connect, options, transfer};

/// How many arguments each call has, by its number (linux/net.h); 0 is no call.
const COUNTS: [usize; 21] = [0, 3, 3, 3, 2, 3, 3, 3, 4, 4, 4, 6, 6, 2, 5, 5, 3, 3, 4, 5, 4];

/// socketcall(2). EINVAL for a number that is no call.
pub async fn socketcall(thread: &Thread, call: u32, args: UserPtr<u32>) -> Result<usize> {
    let count = COUNTS.get(call as usize).copied().filter(|count| *count > 0).ok_or(Errno::EINVAL)?;
    let mut words = [0u32; 6];
    for (at, word) in words[..count].iter_mut().enumerate() {
        *word = args.at(at).read(thread.user())?;
    }
    let [a, b, c, d, e, f] = words;
    let (fd, len) = (Fd(a as i32), c as usize);
    let flags = MsgFlags(d);
    let bytes = |word: u32| UserPtr::<u8>::new(word as usize);
    let number = |word: u32| UserPtr::<i32>::new(word as usize);
    let result = match call {
        1 => net::socket(thread, Domain(a), Type(b), c).word(),
        2 => net::bind(thread, fd, bytes(b), c as i32).word(),
        3 => connect::connect(thread, fd, bytes(b), c as i32).await.word(),
        4 => net::listen(thread, fd, b as i32).word(),
        5 => connect::accept(thread, fd, bytes(b), number(c)).await.word(),
        6 => net::getsockname(thread, fd, bytes(b), number(c)).word(),
        7 => net::getpeername(thread, fd, bytes(b), number(c)).word(),
        8 => net::socketpair(thread, Domain(a), Type(b), c, UserPtr::new(d as usize)).word(),
        9 => transfer::sendto(thread, fd, bytes(b), len, flags, bytes(0), 0).await.word(),
        10 => transfer::recvfrom(thread, fd, bytes(b), len, flags, bytes(0), number(0)).await.word(),
        11 => transfer::sendto(thread, fd, bytes(b), len, flags, bytes(e), f as i32).await.word(),
        12 => transfer::recvfrom(thread, fd, bytes(b), len, flags, bytes(e), number(f)).await.word(),
        13 => net::shutdown(thread, fd, b as i32).word(),
        14 => setsockopt(thread, fd, Level(b), c, bytes(d), e as i32).word(),
        15 => getsockopt(thread, fd, Level(b), c, bytes(d), number(e)).word(),
        16 => transfer::sendmsg(thread, fd, UserPtr::<MsgHdr32>::new(b as usize), MsgFlags(c)).await.word(),
        17 => transfer::recvmsg(thread, fd, UserPtr::<MsgHdr32>::new(b as usize), MsgFlags(c)).await.word(),
        18 => connect::accept4(thread, fd, bytes(b), number(c), Type(d)).await.word(),
        19 => {
            let timeout = UserPtr::<TimeSpec32>::new(e as usize);
            transfer::recvmmsg(thread, fd, UserPtr::<MmsgHdr32>::new(b as usize), c, flags, timeout).await.word()
        }
        _ => transfer::sendmmsg(thread, fd, UserPtr::<MmsgHdr32>::new(b as usize), c, flags).await.word(),
    };
    Errno::from_raw(result)
}

/// Whether an option's value is a `struct timeval` of the program's own words.
fn is_time(level: Level, name: u32) -> bool {
    level.0 == sol::SOCKET && matches!(name, so::RCVTIMEO | so::SNDTIMEO)
}

/// setsockopt(2)
pub fn setsockopt(thread: &Thread, fd: Fd, level: Level, name: u32, value: UserPtr<u8>, len: i32) -> Result<()> {
    if !is_time(level, name) {
        return options::setsockopt(thread, fd, level, name, value, len);
    }
    let open = Open::get(thread, fd)?;
    if usize::try_from(len).map_err(|_| Errno::EINVAL)? < size_of::<TimeVal32>() {
        return Err(Errno::EINVAL);
    }
    let time: TimeVal = value.cast::<TimeVal32>().load(thread.user())?;
    options::set(thread, &open, level, name, time.as_bytes())
}

/// getsockopt(2)
pub fn getsockopt(thread: &Thread, fd: Fd, level: Level, name: u32, value: UserPtr<u8>, len: UserPtr<i32>) -> Result<()> {
    if !is_time(level, name) {
        return options::getsockopt(thread, fd, level, name, value, len);
    }
    let open = Open::get(thread, fd)?;
    let room = usize::try_from(len.read(thread.user())?).map_err(|_| Errno::EINVAL)?;
    let found = options::get(thread, &open, level, name, size_of::<TimeVal>())?;
    let time = TimeVal::read_from_bytes(&found).map_err(|_| Errno::EINVAL)?;
    let narrow = TimeVal32::store(&time)?;
    let count = room.min(size_of::<TimeVal32>());
    thread.user().copy_out(value.addr(), &narrow.as_bytes()[..count]).map_err(|_| Errno::EFAULT)?;
    len.write(thread.user(), &(count as i32))
}
