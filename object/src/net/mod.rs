//! Sockets.
//!
//! A socket is a [`socket::Socket`]; to the rest of the kernel it is the file [`SocketFile`]. The families are AF_UNIX
//! ([`unix`]), AF_INET and AF_INET6 on the kernel's own loopback ([`inet`]) or the host's ([`host`]), and AF_NETLINK
//! ([`netlink`]). All state is in a [`NetSystem`].

pub mod addr;
pub mod bytes;
pub mod common;
pub mod control;
pub mod filter;
pub mod host;
pub mod iface;
pub mod inbox;
pub mod inet;
pub mod netlink;
pub mod peek;
pub mod proc;
pub mod records;
mod rights;
pub mod snmp;
pub mod socket;
pub mod stamp;
pub mod unix;
mod urgent;

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::net::{af, ipproto, sock};
use janua_abi::linux::{Errno, Result};
use janua_port::{Clock, Host, Machine};
use janua_rt::AtomicU64;

use common::cap;
use host::HostSocket;
use inet::{InetStack, TcpSocket, UdpSocket};
use netlink::{NetlinkSocket, NetlinkSpace};
pub use proc::proc_net;
pub use socket::{NetCaller, Socket, SocketFile};
use unix::{UnixSocket, UnixSpace};

/// Where AF_INET, AF_INET6 and AF_NETLINK sockets lead (`--net`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetMode {
    /// To the kernel's own loopback, and nowhere else.
    #[default]
    Loopback,
    /// To the host's network.
    Host,
}

/// The sockets of one kernel.
pub struct NetSystem {
    pub mode: NetMode,
    pub unix: Arc<UnixSpace>,
    pub inet: Arc<InetStack>,
    pub netlink: Arc<NetlinkSpace>,
    next_ino: AtomicU64,
}

impl NetSystem {
    /// `seed`: a random number.
    pub fn new(mode: NetMode, clock: &'static dyn Clock, seed: u64) -> NetSystem {
        let (unix, inet) = (Arc::<UnixSpace>::default(), InetStack::new(clock, seed));
        let own = (mode == NetMode::Loopback).then(|| inet.clone());
        NetSystem { mode, netlink: NetlinkSpace::new(own, unix.clone()), unix, inet, next_ino: AtomicU64::new(1024) }
    }

    /// A new socket. `kind` is the type without flags. The errors are those of socket(2).
    pub fn create(&self, caller: &dyn NetCaller, family: u32, kind: u32, protocol: u32) -> Result<Arc<dyn Socket>> {
        /// Families and types there may be at all.
        const FAMILIES: u32 = 46;
        if family >= FAMILIES {
            return Err(Errno::EAFNOSUPPORT);
        }
        if kind > 10 {
            return Err(Errno::EINVAL);
        }
        let family = u16::try_from(family).map_err(|_| Errno::EAFNOSUPPORT)?;
        match family {
            af::UNIX => Ok(self.create_unix(kind, protocol)?),
            af::INET | af::INET6 => self.create_inet(caller, family, kind, protocol),
            af::NETLINK => {
                if !matches!(kind, sock::RAW | sock::DGRAM) {
                    return Err(Errno::ESOCKTNOSUPPORT);
                }
                match (self.mode, protocol) {
                    (NetMode::Host, netlink::ROUTE) => Ok(self.host_socket(caller, family, kind, protocol)?),
                    _ => Ok(NetlinkSocket::new(&self.netlink, kind, protocol, caller)?),
                }
            }
            af::PACKET if !caller.cred().capable(cap::NET_RAW) => Err(Errno::EPERM),
            _ => Err(Errno::EAFNOSUPPORT),
        }
    }

    fn create_unix(&self, kind: u32, protocol: u32) -> Result<Arc<UnixSocket>> {
        if protocol != 0 && protocol != u32::from(af::UNIX) {
            return Err(Errno::EPROTONOSUPPORT);
        }
        match kind {
            sock::STREAM | sock::DGRAM | sock::SEQPACKET => Ok(UnixSocket::new(&self.unix, kind)),
            // An old alias.
            sock::RAW => Ok(UnixSocket::new(&self.unix, sock::DGRAM)),
            _ => Err(Errno::ESOCKTNOSUPPORT),
        }
    }

    fn create_inet(&self, caller: &dyn NetCaller, family: u16, kind: u32, protocol: u32) -> Result<Arc<dyn Socket>> {
        /// IPPROTO_MAX.
        const PROTOCOLS: u32 = 263;
        if protocol >= PROTOCOLS {
            return Err(Errno::EINVAL);
        }
        match (kind, protocol) {
            (sock::STREAM, 0 | ipproto::TCP) | (sock::DGRAM, 0 | ipproto::UDP) => {}
            (sock::DGRAM, ipproto::UDPLITE) if self.mode == NetMode::Loopback => {}
            // Echo sockets are for the groups of net.ipv4.ping_group_range, which starts out empty.
            (sock::DGRAM, ipproto::ICMP) => return Err(Errno::EACCES),
            (sock::RAW, 1..) => return Err(Errno::EPERM),
            (sock::RAW, 0) => return Err(Errno::EPROTONOSUPPORT),
            (sock::STREAM | sock::DGRAM, _) => return Err(Errno::EPROTONOSUPPORT),
            _ => return Err(Errno::ESOCKTNOSUPPORT),
        }
        match (self.mode, kind) {
            (NetMode::Host, _) => {
                let protocol = if kind == sock::STREAM { ipproto::TCP } else { ipproto::UDP };
                Ok(self.host_socket(caller, family, kind, protocol)?)
            }
            (NetMode::Loopback, sock::STREAM) => Ok(TcpSocket::new(&self.inet, family)),
            (NetMode::Loopback, _) => Ok(UdpSocket::new(&self.inet, family, protocol)),
        }
    }

    fn host_socket(&self, caller: &dyn NetCaller, family: u16, kind: u32, protocol: u32) -> Result<Arc<HostSocket>> {
        let machine: &'static dyn Machine = caller.machine();
        let host = machine.host().and_then(Host::sockets).ok_or(Errno::EAFNOSUPPORT)?;
        HostSocket::new(host, family, kind, protocol)
    }

    /// Two connected sockets. EOPNOTSUPP for families without pairs.
    pub fn create_pair(&self, caller: &dyn NetCaller, family: u32, kind: u32, protocol: u32) -> Result<[Arc<dyn Socket>; 2]> {
        if family != u32::from(af::UNIX) {
            // The family is asked first, whether it makes such sockets at all.
            self.create(caller, family, kind, protocol)?.release();
            return Err(Errno::EOPNOTSUPP);
        }
        if kind == 0 || kind > 10 {
            return Err(Errno::EINVAL);
        }
        let first = self.create_unix(kind, protocol)?;
        let second = self.create_unix(kind, protocol)?;
        UnixSocket::pair(caller, &first, &second);
        Ok([first, second])
    }

    /// A socket as a file of the caller's.
    pub fn file(&self, caller: &dyn NetCaller, socket: Arc<dyn Socket>) -> Arc<SocketFile> {
        let cred = caller.cred();
        let now = i64::try_from(caller.machine().clock().realtime()).unwrap_or(i64::MAX);
        let ino = self.next_ino.fetch_add(1, Ordering::Relaxed);
        SocketFile::new(socket, ino, cred.fsuid, cred.fsgid, now)
    }
}
