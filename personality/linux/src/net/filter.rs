//! SO_ATTACH_FILTER and what gives its program back.

use janua_abi::linux::net::{SockFilter, af, bpf, so, sock};
use janua_kernel::table::Fd;
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::caller::Caller;
use janua_object::net::common::int;
use janua_object::net::filter::Filter;
use janua_object::net::{NetMode, Socket};
use zerocopy::IntoBytes;

use super::Open;
use crate::Thread;
use crate::fs::fd;
use crate::thread::ThreadExt;

/// The socket, if its messages pass a filter here. ENOPROTOOPT: a stream of TCP, which has no packets here, and what is the host's.
fn filtered<'a>(thread: &Thread, open: &'a Open) -> Result<&'a dyn Socket> {
    let socket = open.socket()?;
    let common = socket.common();
    let inet = matches!(common.family, af::INET | af::INET6);
    let host = thread.kernel.net.mode == NetMode::Host && common.family != af::UNIX;
    if inet && common.kind == sock::STREAM || host { Err(Errno::ENOPROTOOPT) } else { Ok(socket) }
}

/// Attaches the program that a `struct sock_fprog` names; for SO_ATTACH_BPF that of a descriptor, of which there are none. EINVAL, EPERM,
/// EFAULT, EBADF.
pub(super) fn attach(thread: &Thread, open: &Open, name: u32, value: &[u8]) -> Result<()> {
    let number = int(value)?;
    let place = &filtered(thread, open)?.common().filter;
    let narrow = thread.caller().is_32();
    if value.len()
        != if name == so::ATTACH_BPF {
            4
        } else if narrow {
            8
        } else {
            16
        }
    {
        return Err(Errno::EINVAL);
    }
    place.may_change()?;
    if name == so::ATTACH_BPF {
        fd::get(thread, Fd(number))?;
        return Err(Errno::EINVAL);
    }
    let (count, address) = match *value {
        [a, b, _, _, c, d, e, f] => (u16::from_ne_bytes([a, b]), u32::from_ne_bytes([c, d, e, f]) as usize),
        [a, b, _, _, _, _, _, _, ref rest @ ..] => {
            let word = rest.try_into().map(usize::from_ne_bytes).map_err(|_| Errno::EINVAL)?;
            (u16::from_ne_bytes([a, b]), word)
        }
        _ => return Err(Errno::EINVAL),
    };
    if address == 0 || count == 0 || usize::from(count) > bpf::MAX {
        return Err(Errno::EINVAL);
    }
    let code = UserPtr::<SockFilter>::new(address).slice(count.into()).read_vec(thread.user(), bpf::MAX)?;
    place.set(Some(Filter::new(code, thread.machine())?))
}

/// SO_GET_FILTER: the program as it was attached, for so many instructions: how many it has. EINVAL when there is not enough room; none asks
/// for the number alone.
pub(super) fn show(thread: &Thread, open: &Open, to: UserPtr<u8>, room: usize) -> Result<usize> {
    let Some(filter) = filtered(thread, open)?.common().filter.get() else { return Ok(0) };
    let code = filter.code();
    if room != 0 {
        if room < code.len() {
            return Err(Errno::EINVAL);
        }
        thread.user().copy_out(to.addr(), code.as_bytes()).map_err(|_| Errno::EFAULT)?;
    }
    Ok(code.len())
}
