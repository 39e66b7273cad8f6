//! AF_INET and AF_INET6 on the kernel's own loopback (ip(7), ipv6(7)).
//!
//! There are no packets: sockets find each other in the port tables and hand each other data. Only the addresses of the
//! loopback interface exist: 127.0.0.0/8, ::1, and the unspecified ones, which mean them; there is no route to any other.

pub mod counts;
mod errors;
mod groups;
mod headers;
pub mod options;
pub mod ports;
pub mod settings;
pub mod tcp;
mod tcp_transfer;
pub mod udp;
mod udp_transfer;
mod urgent;

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::net::{In6Pktinfo, af, ip, ipv6, so, sock, sol, tcp as tcp_option};
use janua_abi::linux::{Errno, Result};
use janua_port::{Clock, Nanos};
use janua_rt::{AtomicU64, Mutex};
use zerocopy::FromBytes;

use crate::caller::Cred;
use crate::net::addr::SockAddr;
use crate::net::common::{Common, cap, int};
use crate::net::socket::NetCaller;
use counts::Counts;
use options::InetOptions;
use ports::{EPHEMERAL, Place, Ports, Sharing};
use settings::Settings;
pub use tcp::TcpSocket;
pub use udp::UdpSocket;

/// The stack of one kernel.
pub struct InetStack {
    pub(crate) tcp: Ports<TcpSocket>,
    pub(crate) udp: Ports<UdpSocket>,
    pub(crate) udplite: Ports<UdpSocket>,
    tcp_all: Mutex<BTreeMap<u64, Weak<TcpSocket>>>,
    udp_all: Mutex<BTreeMap<u64, Weak<UdpSocket>>>,
    next_id: AtomicU64,
    turn: AtomicU32,
    clock: &'static dyn Clock,
    pub(crate) counts: Counts,
    pub settings: Settings,
}

impl InetStack {
    /// `seed`: random, for where ephemeral ports begin.
    pub fn new(clock: &'static dyn Clock, seed: u64) -> Arc<InetStack> {
        let size = u64::from(EPHEMERAL.end() - EPHEMERAL.start() + 1);
        Arc::new(InetStack {
            tcp: Ports::new((seed % size) as u16),
            udp: Ports::new((seed / size % size) as u16),
            udplite: Ports::new((seed / size / size % size) as u16),
            tcp_all: Mutex::new(BTreeMap::new()),
            udp_all: Mutex::new(BTreeMap::new()),
            next_id: AtomicU64::new(1),
            turn: AtomicU32::new(0),
            clock,
            counts: Counts::default(),
            settings: Settings::default(),
        })
    }

    fn now(&self) -> Nanos {
        self.clock.monotonic()
    }

    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// A number that differs from call to call, to spread connections over the sockets of a SO_REUSEPORT group.
    fn turn(&self) -> u32 {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }

    /// Open stream sockets, oldest first.
    pub fn tcp_sockets(&self) -> Vec<Arc<TcpSocket>> {
        self.tcp_all.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Open datagram sockets of a protocol, oldest first.
    pub fn udp_sockets(&self, protocol: u32) -> Vec<Arc<UdpSocket>> {
        let all = self.udp_all.lock();
        all.values().filter_map(Weak::upgrade).filter(|socket| socket.inet.common.protocol == protocol).collect()
    }
}

/// What an address is to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// 0.0.0.0 or ::
    Any,
    Loopback,
    Broadcast,
    Multicast,
    /// There is no route.
    None,
}

/// Classifies an address; IPv4 written as IPv6 is IPv4.
pub fn reach(addr: IpAddr) -> Reach {
    match addr.to_canonical() {
        addr if addr.is_unspecified() => Reach::Any,
        addr if addr.is_multicast() => Reach::Multicast,
        IpAddr::V4(v4) if v4.is_broadcast() || v4 == Ipv4Addr::new(127, 255, 255, 255) => Reach::Broadcast,
        addr if addr.is_loopback() => Reach::Loopback,
        _ => Reach::None,
    }
}

/// The address the unspecified one of the same family stands for when it is sent to, and the source of what goes there.
fn loopback_like(addr: IpAddr) -> IpAddr {
    match addr {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

/// What stream and datagram sockets have in common.
pub struct Inet {
    pub common: Common,
    pub options: InetOptions,
    pub stack: Arc<InetStack>,
    pub id: u64,
}

impl Inet {
    fn new(stack: &Arc<InetStack>, family: u16, kind: u32, protocol: u32) -> Inet {
        Inet {
            common: Common::new(family, kind, protocol),
            options: InetOptions::default(),
            stack: stack.clone(),
            id: stack.next_id(),
        }
    }

    pub fn is_v6(&self) -> bool {
        self.common.family == af::INET6
    }

    fn v6_only(&self) -> bool {
        self.options.flag(sol::IPV6, ipv6::V6ONLY)
    }

    /// An address as this socket's programs see it.
    pub fn present(&self, addr: SocketAddr) -> SockAddr {
        SockAddr::Inet(match addr {
            SocketAddr::V4(v4) if self.is_v6() => SocketAddr::V6(SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0)),
            other => other,
        })
    }

    /// The name of a socket that is bound to nothing.
    fn unbound(&self) -> SocketAddr {
        let addr = if self.is_v6() { Ipv6Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv4Addr::UNSPECIFIED) };
        SocketAddr::new(addr, 0)
    }

    /// The place and port an address asks to be bound to. EINVAL, EAFNOSUPPORT, EADDRNOTAVAIL, EACCES.
    fn place(&self, caller: &dyn NetCaller, addr: &SockAddr, many: bool) -> Result<(Place, u16)> {
        let wanted = match addr {
            SockAddr::Inet(addr @ SocketAddr::V6(_)) if self.is_v6() => *addr,
            SockAddr::Inet(addr @ SocketAddr::V4(_)) if !self.is_v6() => *addr,
            // A habit of old programs that Linux keeps alive.
            SockAddr::Unspec([port0, port1, 0, 0, 0, 0]) if !self.is_v6() => {
                SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), u16::from_be_bytes([*port0, *port1]))
            }
            SockAddr::Inet(SocketAddr::V4(_)) => return Err(Errno::EINVAL),
            _ => return Err(Errno::EAFNOSUPPORT),
        };
        let dual = self.is_v6() && wanted.ip().is_unspecified() && !self.v6_only();
        let place = Place { addr: wanted.ip().to_canonical(), dual };
        if self.v6_only() && place.addr.is_ipv4() {
            return Err(Errno::EINVAL);
        }
        let foreign =
            [(sol::IP, ip::FREEBIND), (sol::IPV6, ipv6::FREEBIND), (sol::IP, ip::TRANSPARENT), (sol::IPV6, ipv6::TRANSPARENT)];
        let free = self.options.any_changed() && foreign.iter().any(|&(level, name)| self.options.flag(level, name));
        match reach(place.addr) {
            Reach::Any | Reach::Loopback => {}
            Reach::Multicast | Reach::Broadcast if many => {}
            _ if free || self.stack.settings.nonlocal.load(Ordering::Relaxed) => {}
            _ => return Err(Errno::EADDRNOTAVAIL),
        }
        if (1..self.stack.settings.first_free()).contains(&u32::from(wanted.port()))
            && !caller.cred().capable(cap::NET_BIND_SERVICE)
        {
            return Err(Errno::EACCES);
        }
        Ok((place, wanted.port()))
    }

    fn sharing(&self, uid: u32) -> Sharing {
        Sharing {
            reuse_addr: self.common.flag(so::REUSEADDR),
            reuse_port: self.common.flag(so::REUSEPORT),
            uid,
            listening: false,
        }
    }

    /// The place of a socket that was never bound: any address.
    fn any_place(&self) -> Place {
        let addr = self.unbound().ip();
        Place { addr, dual: self.is_v6() && !self.v6_only() }
    }

    /// An address as a destination. `mixed`: an IPv4 address may be given to a v6 socket.
    fn destination(&self, addr: &SockAddr, mixed: bool) -> Result<SocketAddr> {
        let addr = match addr {
            SockAddr::Inet(addr @ SocketAddr::V6(_)) if self.is_v6() => *addr,
            SockAddr::Inet(addr @ SocketAddr::V4(_)) if !self.is_v6() || (mixed && !self.v6_only()) => *addr,
            _ => return Err(Errno::EAFNOSUPPORT),
        };
        let ip = addr.ip().to_canonical();
        if self.v6_only() && ip.is_ipv4() {
            return Err(Errno::ENETUNREACH);
        }
        Ok(SocketAddr::new(ip, addr.port()))
    }

    /// Options of the IP levels that both kinds of sockets have. ENOPROTOOPT for others.
    fn set_ip_option(&self, cred: &Cred, bound: bool, level: u32, name: u32, value: &[u8]) -> Result<()> {
        if (level, name) == (sol::IPV6, ipv6::V6ONLY) && bound {
            return Err(Errno::EINVAL);
        }
        match (level, name) {
            (sol::IP, ip::MULTICAST_TTL | ip::MULTICAST_IF) if self.common.kind == sock::STREAM => return Err(Errno::EINVAL),
            (sol::IPV6, ipv6::MULTICAST_HOPS | ipv6::MULTICAST_IF) if self.common.kind == sock::STREAM => {
                return Err(Errno::ENOPROTOOPT);
            }
            (sol::IP, ip::TRANSPARENT) | (sol::IPV6, ipv6::TRANSPARENT)
                if int(value)? != 0 && !cred.capable(cap::NET_ADMIN) && !cred.capable(cap::NET_RAW) =>
            {
                return Err(Errno::EPERM);
            }
            // There are none to take away.
            (sol::IP, ip::OPTIONS) if value.is_empty() => return Ok(()),
            (sol::IPV6, name) if self.is_v6() && is_header(name) => return without_header(cred, name, value),
            _ => {}
        }
        self.options.set(self.common.family, self.common.kind, level, name, value)
    }

    /// The interface that IPV6_PKTINFO names; `None`: it is another option.
    fn named_interface(&self, level: u32, name: u32, value: &[u8]) -> Option<Result<i32>> {
        if !self.is_v6() || (level, name) != (sol::IPV6, ipv6::PKTINFO) {
            return None;
        }
        let info = In6Pktinfo::read_from_prefix(value).map_err(|_| Errno::EINVAL);
        Some(info.and_then(|(info, _)| {
            let elsewhere = self.common.on_device.load(Ordering::Relaxed) && info.ifindex != crate::net::iface::INDEX as i32;
            if elsewhere { Err(Errno::EINVAL) } else { Ok(info.ifindex) }
        }))
    }

    /// The ports to choose from for this socket (IP_LOCAL_PORT_RANGE), as far as they are the system's.
    fn ephemeral(&self) -> RangeInclusive<u16> {
        let range = if self.options.any_changed() { self.options.value(sol::IP, ip::LOCAL_PORT_RANGE) as u32 } else { 0 };
        let all = self.stack.settings.ports();
        let end = |port: u32, other: u16| if all.contains(&(port as u16)) { port as u16 } else { other };
        end(range, *all.start())..=end(range >> 16, *all.end())
    }

    fn get_ip_option(&self, connected: bool, level: u32, name: u32, room: usize) -> Result<Vec<u8>> {
        let own = if self.common.kind == sock::STREAM { sol::TCP } else { sol::UDP };
        match (level, name) {
            (sol::IP, ip::MTU) | (sol::IPV6, ipv6::MTU) => {
                let mtu = crate::net::iface::MTU;
                if connected { Ok(mtu.to_ne_bytes().to_vec()) } else { Err(Errno::ENOTCONN) }
            }
            (sol::IP, ip::OPTIONS) => Ok(Vec::new()),
            (sol::IPV6, name) if self.is_v6() && is_header(name) => Ok(Vec::new()),
            (sol::TCP, tcp_option::MAXSEG) if own == level && connected => Ok(self.options.segment().to_ne_bytes().to_vec()),
            // The clock of the time stamps, in milliseconds.
            (sol::TCP, tcp_option::TIMESTAMP) if own == level => {
                Ok(((self.stack.now() / 1_000_000) as u32).to_ne_bytes().to_vec())
            }
            // Linux' error for a level the socket does not have; AF_INET6 has no such difference.
            _ if !self.is_v6() && level != sol::IP && level != own => Err(Errno::EOPNOTSUPP),
            _ => self.options.get(self.common.family, self.common.kind, level, name, room),
        }
    }
}

/// Whether an option is a header that datagrams are to have behind that of IPv6.
fn is_header(name: u32) -> bool {
    matches!(name, ipv6::HOPOPTS | ipv6::RTHDR | ipv6::RTHDRDSTOPTS | ipv6::DSTOPTS)
}

/// Takes a header away: there is none. None can be given: EINVAL, and EPERM for one that is for CAP_NET_RAW.
fn without_header(cred: &Cred, name: u32, value: &[u8]) -> Result<()> {
    match value {
        [] => Ok(()),
        _ if name != ipv6::RTHDR && !cred.capable(cap::NET_RAW) => Err(Errno::EPERM),
        _ => Err(Errno::EINVAL),
    }
}

#[cfg(test)]
mod tests;
