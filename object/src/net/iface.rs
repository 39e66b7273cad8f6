//! The one interface there is: loopback; and the ioctls that ask about interfaces (netdevice(7)).

use core::net::{Ipv4Addr, SocketAddrV4};

use janua_abi::linux::net::{IfConf, IfReq, ioctl};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;

use crate::caller::Caller;
use crate::net::addr::SockAddr;

/// Its index.
pub const INDEX: u32 = 1;
pub const NAME: &str = "lo";
/// Bytes.
pub const MTU: u32 = 65536;
pub const TX_QUEUE: u32 = 1000;
/// IFF_UP | IFF_LOOPBACK | IFF_RUNNING.
pub const FLAGS: u32 = 0x1 | 0x8 | 0x40;
/// IFF_LOWER_UP, which only netlink tells.
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
        return Err(Errno::EPERM);
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
    if request == ioctl::SIOCGIFMAP {
        UserPtr::new(arg).write(caller.user(), &req)?;
    } else {
        write_request(caller, arg, &req)?;
    }
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

/// Answers a request, without what only maps have.
pub(super) fn write_request(caller: &dyn Caller, arg: usize, req: &IfReq) -> Result<()> {
    let mut short: Short = [req.name, [0; 16]];
    short[1].copy_from_slice(&req.value[..16]);
    UserPtr::new(arg).write(caller.user(), &short)
}

/// SIOCGIFCONF: the interfaces with an IPv4 address, as far as the buffer reaches; without one, the size needed.
fn configuration(caller: &dyn Caller, arg: usize) -> Result<usize> {
    let pointer = UserPtr::<IfConf>::new(arg);
    let mut conf = pointer.read(caller.user())?;
    let size = size_of::<IfReq>() as i32;
    if conf.buf == 0 {
        conf.len = size;
    } else if conf.len >= size {
        let mut req = IfReq { name: name_field(), value: [0; 24] };
        put_addr(&mut req.value, ADDR);
        let buf = usize::try_from(conf.buf).map_err(|_| Errno::EFAULT)?;
        UserPtr::new(buf).write(caller.user(), &req)?;
        conf.len = size;
    } else {
        conf.len = 0;
    }
    pointer.write(caller.user(), &conf)?;
    Ok(0)
}

