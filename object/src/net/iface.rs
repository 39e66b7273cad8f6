//! The one interface there is: loopback; and the ioctls that ask about interfaces (netdevice(7)).

use core::net::{Ipv4Addr, SocketAddrV4};

use janua_abi::linux::net::{IfConf, IfReq, ioctl};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use zerocopy::IntoBytes;

use crate::caller::Caller;
use crate::net::addr::SockAddr;
use crate::net::common::cap;

/// Its index.
pub const INDEX: u32 = 1;
pub const NAME: &str = "lo";
/// Bytes.
pub const MTU: u32 = 65536;
pub const TX_QUEUE: u32 = 1000;
/// IFF_UP | IFF_LOOPBACK | IFF_RUNNING.
pub const FLAGS: u32 = 0x1 | 0x8 | 0x40;
/// Flags that can be set: IFF_UP, IFF_DEBUG, IFF_NOTRAILERS, IFF_NOARP, IFF_PROMISC, IFF_ALLMULTI, IFF_MULTICAST, IFF_PORTSEL, IFF_AUTOMEDIA, IFF_DYNAMIC.
pub const SETTABLE: u32 = 0x1 | 0x4 | 0x20 | 0x80 | 0x100 | 0x200 | 0x1000 | 0x2000 | 0x4000 | 0x8000;
/// IFF_LOWER_UP, which only netlink reports.
pub const LOWER_UP: u32 = 0x1_0000;
/// ARPHRD_LOOPBACK.
pub const HARDWARE: u16 = 772;
pub const ADDR: Ipv4Addr = Ipv4Addr::LOCALHOST;
pub const MASK: Ipv4Addr = Ipv4Addr::new(255, 0, 0, 0);

fn name_field() -> [u8; 16] {
    let mut field = [0; 16];
    field[..NAME.len()].copy_from_slice(NAME.as_bytes());
    field
}

fn put_addr(to: &mut [u8; 24], addr: Ipv4Addr) {
    let raw = SockAddr::Inet(SocketAddrV4::new(addr, 0).into()).encode();
    to[..16].copy_from_slice(raw.as_bytes());
}

/// Interface requests. ENODEV for another interface, EPERM for changes, ENOTTY for other requests.
pub fn ioctl(caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
    if request == ioctl::SIOCGIFCONF {
        return configuration(caller, arg);
    }
    // The SIOCSIF* requests of this block, all of which change something.
    if matches!(request, 0x8914 | 0x8916 | 0x8918 | 0x891a | 0x891c | 0x891e | 0x8922..=0x8926 | 0x8943 | 0x8971) {
        let req = read_request(caller, arg)?;
        let flags = u32::from(u16::from_ne_bytes([req.value[0], req.value[1]]));
        let same = request == ioctl::SIOCSIFFLAGS && req.name == name_field() && (flags ^ FLAGS) & SETTABLE == 0;
        return if same && caller.cred().capable(cap::NET_ADMIN) { Ok(0) } else { Err(Errno::EPERM) };
    }
    if !matches!(
        request,
        ioctl::SIOCGIFNAME
            | ioctl::SIOCGIFFLAGS
            | ioctl::SIOCGIFADDR
            | ioctl::SIOCGIFDSTADDR
            | ioctl::SIOCGIFBRDADDR
            | ioctl::SIOCGIFNETMASK
            | ioctl::SIOCGIFMETRIC
            | ioctl::SIOCGIFMTU
            | ioctl::SIOCGIFHWADDR
            | ioctl::SIOCGIFINDEX
            | ioctl::SIOCGIFTXQLEN
            | ioctl::SIOCETHTOOL
            | ioctl::SIOCGIFMAP
    ) {
        return Err(Errno::ENOTTY);
    }
    let mut req = read_request(caller, arg)?;
    if request == ioctl::SIOCGIFNAME {
        let index = u32::from_ne_bytes([req.value[0], req.value[1], req.value[2], req.value[3]]);
        if index != INDEX {
            return Err(Errno::ENODEV);
        }
        req.name = name_field();
        write_request(caller, arg, &req)?;
        return Ok(0);
    }
    // An alias ("lo:1") names the interface before the colon.
    let name = req.name.split(|&byte| byte == 0 || byte == b':').next().unwrap_or_default();
    if name != NAME.as_bytes() {
        return Err(Errno::ENODEV);
    }
    if request == ioctl::SIOCETHTOOL {
        return ethtool(caller, &req);
    }
    let mut value = [0; 24];
    let mut word = |number: u32| value[..4].copy_from_slice(&number.to_ne_bytes());
    match request {
        ioctl::SIOCGIFFLAGS => value[..2].copy_from_slice(&(FLAGS as u16).to_ne_bytes()),
        ioctl::SIOCGIFADDR | ioctl::SIOCGIFDSTADDR => put_addr(&mut value, ADDR),
        ioctl::SIOCGIFBRDADDR => put_addr(&mut value, Ipv4Addr::UNSPECIFIED),
        ioctl::SIOCGIFNETMASK => put_addr(&mut value, MASK),
        ioctl::SIOCGIFMTU => word(MTU),
        ioctl::SIOCGIFINDEX => word(INDEX),
        ioctl::SIOCGIFTXQLEN => word(TX_QUEUE),
        ioctl::SIOCGIFHWADDR => value[..2].copy_from_slice(&HARDWARE.to_ne_bytes()),
        // Metric and map are all zero.
        _ => {}
    }
    req.value = value;
    if request == ioctl::SIOCGIFMAP && !caller.is_32() {
        UserPtr::new(arg).write(caller.user(), &req)?;
    } else {
        write_request(caller, arg, &req)?;
    }
    Ok(0)
}

/// SIOCETHTOOL, whose command is what the request points to. The loopback has a link and no other settings: EOPNOTSUPP.
fn ethtool(caller: &dyn Caller, req: &IfReq) -> Result<usize> {
    let mut place = [0; 8];
    let len = if caller.is_32() { 4 } else { 8 };
    place[..len].copy_from_slice(&req.value[..len]);
    let at = UserPtr::<[u32; 2]>::new(u64::from_ne_bytes(place) as usize);
    let command = UserPtr::<u32>::new(u64::from_ne_bytes(place) as usize).read(caller.user())?;
    if command != ioctl::ETHTOOL_GLINK {
        return Err(Errno::EOPNOTSUPP);
    }
    at.write(caller.user(), &[command, 1])?;
    Ok(0)
}

/// Name and address of a `struct ifreq`: what a request reads and writes that is not about a map. To 32-bit programs the
/// structure ends here.
type Short = [[u8; 16]; 2];

/// Reads a request, without what only maps have.
pub(super) fn read_request(caller: &dyn Caller, arg: usize) -> Result<IfReq> {
    let [name, start]: Short = UserPtr::new(arg).read(caller.user())?;
    let mut value = [0; 24];
    value[..16].copy_from_slice(&start);
    Ok(IfReq { name, value })
}

/// Returns a request to the program, without what only maps have.
pub(super) fn write_request(caller: &dyn Caller, arg: usize, req: &IfReq) -> Result<()> {
    let mut short: Short = [req.name, [0; 16]];
    short[1].copy_from_slice(&req.value[..16]);
    UserPtr::new(arg).write(caller.user(), &short)
}

/// SIOCGIFCONF's `struct ifconf` of a program, in either layout.
pub(super) fn read_conf(caller: &dyn Caller, arg: usize) -> Result<IfConf> {
    if !caller.is_32() {
        return UserPtr::new(arg).read(caller.user());
    }
    let [len, buf] = UserPtr::<[u32; 2]>::new(arg).read(caller.user())?;
    Ok(IfConf { len: len as i32, pad: 0, buf: buf.into() })
}

/// Its result: the length, which is all that changes and comes first in both.
pub(super) fn write_conf_len(caller: &dyn Caller, arg: usize, len: i32) -> Result<()> {
    UserPtr::new(arg).write(caller.user(), &len)
}

/// Bytes of a `struct ifreq` of the caller's.
pub(super) fn request_size(caller: &dyn Caller) -> usize {
    if caller.is_32() { size_of::<Short>() } else { size_of::<IfReq>() }
}

/// SIOCGIFCONF: the interfaces with an IPv4 address, as far as the buffer reaches; without one, the size needed.
fn configuration(caller: &dyn Caller, arg: usize) -> Result<usize> {
    let conf = read_conf(caller, arg)?;
    let size = request_size(caller);
    let mut len = size as i32;
    if conf.buf != 0 {
        if conf.len >= len {
            let mut req = IfReq { name: name_field(), value: [0; 24] };
            put_addr(&mut req.value, ADDR);
            let buf = usize::try_from(conf.buf).map_err(|_| Errno::EFAULT)?;
            caller.user().copy_out(buf, &req.as_bytes()[..size]).map_err(|_| Errno::EFAULT)?;
        } else {
            len = 0;
        }
    }
    write_conf_len(caller, arg, len)?;
    Ok(0)
}
