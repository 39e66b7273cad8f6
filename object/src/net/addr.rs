//! Socket addresses: the kernel's form and the form programs see.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use janua_abi::linux::net::af;
use janua_abi::linux::{Errno, Result};

/// Size of `struct sockaddr_storage`: more is refused.
pub const STORAGE: usize = 128;

/// The name of an AF_UNIX socket (unix(7)).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UnixName {
    Unnamed,
    /// A path, without its NUL, as it was given to bind(2).
    Path(Vec<u8>),
    /// A name outside the file system, without the NUL it starts with.
    Abstract(Vec<u8>),
}

/// An address of any family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SockAddr {
    /// AF_UNSPEC, with the first bytes that follow the family.
    Unspec([u8; 6]),
    Unix(UnixName),
    Inet(SocketAddr),
    Netlink {
        pid: u32,
        groups: u32,
    },
    /// A family this kernel has no sockets of.
    Other(u16),
}

/// An address as bytes: `struct sockaddr` and its length.
#[derive(Clone)]
pub struct RawAddr {
    bytes: [u8; STORAGE],
    len: usize,
}

impl RawAddr {
    fn new() -> RawAddr {
        RawAddr { bytes: [0; STORAGE], len: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = &mut self.bytes[self.len..];
        let n = bytes.len().min(room.len());
        room[..n].copy_from_slice(&bytes[..n]);
        self.len += n;
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    bytes.get(at..at + N).and_then(|part| part.try_into().ok()).ok_or(Errno::EINVAL)
}

impl SockAddr {
    /// Reads a `struct sockaddr` of any family. EINVAL when it is too short or too long for its family.
    pub fn decode(bytes: &[u8]) -> Result<SockAddr> {
        let family = u16::from_ne_bytes(part(bytes, 0)?);
        Ok(match family {
            af::UNSPEC => {
                let mut rest = [0; 6];
                for (to, from) in rest.iter_mut().zip(&bytes[2..]) {
                    *to = *from;
                }
                SockAddr::Unspec(rest)
            }
            af::UNIX => SockAddr::Unix(match &bytes[2..] {
                path if path.len() > 108 => return Err(Errno::EINVAL),
                [] => UnixName::Unnamed,
                [0, name @ ..] => UnixName::Abstract(name.to_vec()),
                path => UnixName::Path(path.split(|&byte| byte == 0).next().unwrap_or_default().to_vec()),
            }),
            af::INET if bytes.len() >= 16 => {
                let addr = Ipv4Addr::from(part::<4>(bytes, 4)?);
                SockAddr::Inet(SocketAddrV4::new(addr, u16::from_be_bytes(part(bytes, 2)?)).into())
            }
            // Without the scope (RFC 2133) it is 24 bytes.
            af::INET6 if bytes.len() >= 24 => {
                let addr = Ipv6Addr::from(part::<16>(bytes, 8)?);
                let flow = u32::from_be_bytes(part(bytes, 4)?);
                let scope = part(bytes, 24).map_or(0, u32::from_ne_bytes);
                SockAddr::Inet(SocketAddrV6::new(addr, u16::from_be_bytes(part(bytes, 2)?), flow, scope).into())
            }
            af::NETLINK if bytes.len() >= 12 => {
                SockAddr::Netlink { pid: u32::from_ne_bytes(part(bytes, 4)?), groups: u32::from_ne_bytes(part(bytes, 8)?) }
            }
            af::INET | af::INET6 | af::NETLINK => return Err(Errno::EINVAL),
            other => SockAddr::Other(other),
        })
    }

    /// The `struct sockaddr`.
    pub fn encode(&self) -> RawAddr {
        let mut raw = RawAddr::new();
        match self {
            SockAddr::Unspec(rest) => {
                raw.push(&af::UNSPEC.to_ne_bytes());
                raw.push(rest);
            }
            SockAddr::Other(family) => raw.push(&family.to_ne_bytes()),
            SockAddr::Unix(name) => {
                raw.push(&af::UNIX.to_ne_bytes());
                match name {
                    UnixName::Unnamed => {}
                    UnixName::Path(path) => {
                        raw.push(path);
                        raw.push(&[0]);
                    }
                    UnixName::Abstract(name) => {
                        raw.push(&[0]);
                        raw.push(name);
                    }
                }
            }
            SockAddr::Inet(SocketAddr::V4(addr)) => {
                raw.push(&af::INET.to_ne_bytes());
                raw.push(&addr.port().to_be_bytes());
                raw.push(&addr.ip().octets());
                raw.push(&[0; 8]);
            }
            SockAddr::Inet(SocketAddr::V6(addr)) => {
                raw.push(&af::INET6.to_ne_bytes());
                raw.push(&addr.port().to_be_bytes());
                raw.push(&addr.flowinfo().to_be_bytes());
                raw.push(&addr.ip().octets());
                raw.push(&addr.scope_id().to_ne_bytes());
            }
            SockAddr::Netlink { pid, groups } => {
                raw.push(&af::NETLINK.to_ne_bytes());
                raw.push(&[0; 2]);
                raw.push(&pid.to_ne_bytes());
                raw.push(&groups.to_ne_bytes());
            }
        }
        raw
    }

    pub fn family(&self) -> u16 {
        match self {
            SockAddr::Unspec(_) => af::UNSPEC,
            SockAddr::Unix(_) => af::UNIX,
            SockAddr::Inet(SocketAddr::V4(_)) => af::INET,
            SockAddr::Inet(SocketAddr::V6(_)) => af::INET6,
            SockAddr::Netlink { .. } => af::NETLINK,
            SockAddr::Other(family) => *family,
        }
    }
}

/// An IPv4 address written as IPv6 (`::ffff:a.b.c.d`) as the IPv4 address it is; others unchanged.
pub fn canonical(addr: IpAddr) -> IpAddr {
    addr.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same(addr: SockAddr, len: usize) {
        let raw = addr.encode();
        assert_eq!(raw.as_bytes().len(), len);
        assert_eq!(SockAddr::decode(raw.as_bytes()), Ok(addr));
    }

    #[test]
    fn addresses_survive_writing_and_reading() {
        same(SockAddr::Inet("127.0.0.1:6379".parse().unwrap()), 16);
        same(SockAddr::Inet("[::1]:80".parse().unwrap()), 28);
        same(SockAddr::Netlink { pid: 7, groups: 1 }, 12);
        same(SockAddr::Unix(UnixName::Unnamed), 2);
        same(SockAddr::Unix(UnixName::Path(b"/tmp/x".to_vec())), 9);
        same(SockAddr::Unix(UnixName::Abstract(b"a\0b".to_vec())), 6);
    }

    #[test]
    fn short_and_long_addresses_are_refused() {
        let v4 = SockAddr::Inet("1.2.3.4:5".parse().unwrap()).encode();
        for len in 0..16 {
            assert_eq!(SockAddr::decode(&v4.as_bytes()[..len]).err(), Some(Errno::EINVAL), "{len}");
        }
        let mut long = alloc::vec![b'x'; 2 + 109];
        long[..2].copy_from_slice(&af::UNIX.to_ne_bytes());
        assert_eq!(SockAddr::decode(&long), Err(Errno::EINVAL));
    }
}
