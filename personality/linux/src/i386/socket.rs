//! socketcall(2): all calls on sockets by one number, their arguments in memory.

use janua_abi::linux::i386::net::{MmsgHdr32, MsgHdr32};
use janua_abi::linux::i386::time::TimeSpec32;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::{Answer, Fd};

use crate::net::args::{Domain, Level, MsgFlags, Type};
use crate::net::{self, connect, options, transfer};
use crate::Thread;

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
        14 => options::setsockopt(thread, fd, Level(b), c, bytes(d), e as i32).word(),
        15 => options::getsockopt(thread, fd, Level(b), c, bytes(d), number(e)).word(),
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
