//! Memberships of multicast groups, with the sources each lets in or keeps out (ip(7), RFC 3678). All are on the loopback interface, the only
//! one.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use janua_abi::linux::net::{af, ip, ipv6, mcast, sol};
use janua_abi::linux::{Errno, Result};

use super::{Reach, reach};
use crate::net::addr::{STORAGE, SockAddr};
use crate::net::common::int;
use crate::net::iface;

/// net.ipv4.igmp_max_memberships.
const MOST: usize = 20;
/// net.ipv4.igmp_max_msf, net.ipv6.mld_max_msf.
const MOST_SOURCES: [usize; 2] = [10, 64];

struct Group {
    addr: IpAddr,
    /// Whether only the listed sources are let in; otherwise all others are.
    include: bool,
    /// `None` until there was one.
    sources: Option<Vec<IpAddr>>,
}

/// What is asked of a membership.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Join,
    Leave,
    /// A source, to be let in (or kept out), added to the list or taken from it.
    Source {
        include: bool,
        add: bool,
    },
}

/// The memberships of one socket.
#[derive(Default)]
pub(super) struct Groups(Vec<Group>);

impl Groups {
    /// Whether a datagram is let in by the membership of its group; `None` without one.
    pub(super) fn lets_in(&self, group: IpAddr, source: IpAddr) -> Option<bool> {
        let joined = self.0.iter().find(|joined| joined.addr == group)?;
        let listed = joined.sources.as_ref().is_some_and(|sources| sources.contains(&source));
        Some(listed == joined.include)
    }

    /// EINVAL, EADDRINUSE, EADDRNOTAVAIL, ENOBUFS.
    pub(super) fn change(&mut self, group: IpAddr, source: Option<IpAddr>, change: Change) -> Result<()> {
        if !group.is_multicast() {
            return Err(Errno::EINVAL);
        }
        let at = self.0.iter().position(|joined| joined.addr == group);
        match (change, at) {
            (Change::Join, Some(_)) => Err(Errno::EADDRINUSE),
            (Change::Join, None) => self.join(group, false).map(drop),
            (Change::Leave, None) => Err(Errno::EADDRNOTAVAIL),
            (Change::Leave, Some(at)) => {
                self.0.swap_remove(at);
                Ok(())
            }
            (Change::Source { include: true, add: true }, None) => {
                let at = self.join(group, true)?;
                self.change_source(at, source, true, true)
            }
            (Change::Source { .. }, None) => Err(Errno::EINVAL),
            (Change::Source { include, add }, Some(at)) => self.change_source(at, source, include, add),
        }
    }

    fn join(&mut self, addr: IpAddr, include: bool) -> Result<usize> {
        if self.0.len() >= MOST {
            return Err(Errno::ENOBUFS);
        }
        self.0.push(Group { addr, include, sources: None });
        Ok(self.0.len() - 1)
    }

    fn change_source(&mut self, at: usize, source: Option<IpAddr>, include: bool, add: bool) -> Result<()> {
        let source = source.ok_or(Errno::EINVAL)?;
        let group = &mut self.0[at];
        // Without sources a membership of one kind can become one of the other.
        if group.include != include && group.sources.is_some() {
            return Err(Errno::EINVAL);
        }
        group.include = include;
        let listed = group.sources.iter().flatten().position(|listed| *listed == source);
        match (add, listed) {
            (true, Some(_)) | (false, None) => Err(Errno::EADDRNOTAVAIL),
            (true, None) => {
                let sources = group.sources.get_or_insert_default();
                if sources.len() >= MOST_SOURCES[usize::from(source.is_ipv6())] {
                    return Err(Errno::ENOBUFS);
                }
                sources.push(source);
                Ok(())
            }
            (false, Some(listed)) => {
                let sources = group.sources.get_or_insert_default();
                sources.swap_remove(listed);
                // To let nobody in is to leave.
                if include && sources.is_empty() {
                    self.0.swap_remove(at);
                }
                Ok(())
            }
        }
    }
}

/// A request that concerns memberships, taken from an option's value: the group, the source and what is asked. `None` when the option is no
/// such one. EINVAL, ENODEV, EADDRNOTAVAIL.
pub(super) fn request(level: u32, name: u32, value: &[u8]) -> Option<Result<(IpAddr, Option<IpAddr>, Change)>> {
    let source = |include, add| Change::Source { include, add };
    Some(match (level, name) {
        (sol::IP, ip::ADD_MEMBERSHIP) => old(value, Change::Join),
        (sol::IP, ip::DROP_MEMBERSHIP) => old(value, Change::Leave),
        (sol::IP, ip::ADD_SOURCE_MEMBERSHIP) => old_source(value, source(true, true)),
        (sol::IP, ip::DROP_SOURCE_MEMBERSHIP) => old_source(value, source(true, false)),
        (sol::IP, ip::BLOCK_SOURCE) => old_source(value, source(false, true)),
        (sol::IP, ip::UNBLOCK_SOURCE) => old_source(value, source(false, false)),
        (sol::IPV6, ipv6::ADD_MEMBERSHIP) => v6(value, Change::Join),
        (sol::IPV6, ipv6::DROP_MEMBERSHIP) => v6(value, Change::Leave),
        (sol::IP | sol::IPV6, mcast::JOIN_GROUP) => any(level, value, Change::Join),
        (sol::IP | sol::IPV6, mcast::LEAVE_GROUP) => any(level, value, Change::Leave),
        (sol::IP | sol::IPV6, mcast::JOIN_SOURCE_GROUP) => any(level, value, source(true, true)),
        (sol::IP | sol::IPV6, mcast::LEAVE_SOURCE_GROUP) => any(level, value, source(true, false)),
        (sol::IP | sol::IPV6, mcast::BLOCK_SOURCE) => any(level, value, source(false, true)),
        (sol::IP | sol::IPV6, mcast::UNBLOCK_SOURCE) => any(level, value, source(false, false)),
        _ => return None,
    })
}

type Asked = Result<(IpAddr, Option<IpAddr>, Change)>;

fn v4_at(value: &[u8], at: usize) -> Result<Ipv4Addr> {
    value.get(at..at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()).map(Ipv4Addr::from).ok_or(Errno::EINVAL)
}

/// `struct ip_mreq`, `struct ip_mreqn`.
fn old(value: &[u8], change: Change) -> Asked {
    let group = v4_at(value, 0)?;
    if !group.is_multicast() {
        return Err(Errno::EINVAL);
    }
    member_v4(value.get(4..).filter(|rest| rest.len() >= 4).ok_or(Errno::EINVAL)?, change)?;
    Ok((group.into(), None, change))
}

/// `struct ip_mreq_source`.
fn old_source(value: &[u8], change: Change) -> Asked {
    if value.len() != 12 {
        return Err(Errno::EINVAL);
    }
    if !v4_at(value, 0)?.is_multicast() {
        return Err(Errno::EINVAL);
    }
    member_v4(&value[4..8], change)?;
    Ok((v4_at(value, 0)?.into(), Some(v4_at(value, 8)?.into()), change))
}

/// `struct ipv6_mreq`.
fn v6(value: &[u8], change: Change) -> Asked {
    let group = value.get(..16).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()).ok_or(Errno::EINVAL)?;
    let group = Ipv6Addr::from(group);
    let index = value.get(16..).ok_or(Errno::EINVAL).and_then(int)?;
    if !group.is_multicast() {
        return Err(Errno::EINVAL);
    }
    member(index, change, true)?;
    Ok((group.into(), None, change))
}

/// `struct group_req`, `struct group_source_req`: an interface's index and addresses, each aligned to 8 bytes.
fn any(level: u32, value: &[u8], change: Change) -> Asked {
    let family = if level == sol::IP { af::INET } else { af::INET6 };
    let addr = |turn: usize| -> Result<IpAddr> {
        let from = 8 + turn * STORAGE;
        match SockAddr::decode(value.get(from..from + STORAGE).ok_or(Errno::EINVAL)?)? {
            SockAddr::Inet(addr) if addr.is_ipv4() == (family == af::INET) => Ok(addr.ip()),
            _ => Err(Errno::EADDRNOTAVAIL),
        }
    };
    let group = addr(0).map_err(|_| Errno::EINVAL)?;
    let source = if matches!(change, Change::Source { .. }) { Some(addr(1)?) } else { None };
    if !group.is_multicast() {
        return Err(Errno::EINVAL);
    }
    member(int(value)?, change, level == sol::IPV6)?;
    Ok((group, source, change))
}

/// The interface of a membership. Without one it is that on the way to the group, and the loopback one is on the way to none: ENODEV, but
/// IPv6 then leaves whatever was joined. EADDRNOTAVAIL for leaving by an interface there is not.
fn member(index: i32, change: Change, v6: bool) -> Result<()> {
    let leaves = change == Change::Leave;
    match interface_index(index) {
        Ok(named) if named || leaves && v6 => Ok(()),
        Err(_) if leaves => Err(Errno::EADDRNOTAVAIL),
        _ => Err(Errno::ENODEV),
    }
}

/// The same, named as [`interface_v4`] takes it. An address that is no interface's is on no way either.
fn member_v4(value: &[u8], change: Change) -> Result<()> {
    match interface_v4(value) {
        Ok(true) => Ok(()),
        Err(Errno::ENODEV | Errno::EADDRNOTAVAIL) if change == Change::Leave => Err(Errno::EADDRNOTAVAIL),
        Ok(false) | Err(Errno::EADDRNOTAVAIL) => Err(Errno::ENODEV),
        Err(errno) => Err(errno),
    }
}

/// The interface a `struct in_addr`, `ip_mreq`'s second half or `ip_mreqn`'s rest names: whether it is the loopback one rather
/// than any. ENODEV, EADDRNOTAVAIL.
pub(super) fn interface_v4(value: &[u8]) -> Result<bool> {
    let addr = v4_at(value, 0)?;
    // `struct ip_mreqn` has two addresses before its index; here at most one is left before it.
    let index = value.len().checked_sub(4).filter(|&at| at >= 4).map_or(Ok(0), |at| int(&value[at..]))?;
    if index != 0 {
        return interface_index(index);
    }
    match reach(addr.into()) {
        Reach::Any => Ok(false),
        Reach::Loopback => Ok(true),
        _ => Err(Errno::EADDRNOTAVAIL),
    }
}

pub(super) fn interface_index(index: i32) -> Result<bool> {
    match u32::try_from(index) {
        Ok(0) => Ok(false),
        Ok(iface::INDEX) => Ok(true),
        _ => Err(Errno::ENODEV),
    }
}
