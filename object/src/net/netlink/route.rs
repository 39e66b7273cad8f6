//! NETLINK_ROUTE: questions about links, addresses and routes (rtnetlink(7)).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use janua_abi::linux::Errno;
use janua_abi::linux::net::af;

use super::message::{Builder, NLM_F_DUMP, NLM_F_MULTI, Request, u32_at};
use crate::Cred;
use crate::net::common::cap;
use crate::net::iface;

/// Message types: NEW, DEL, GET, SET of each object, four in a row.
mod rtm {
    pub const NEWLINK: u16 = 16;
    pub const GETLINK: u16 = 18;
    pub const SETLINK: u16 = 19;
    pub const NEWADDR: u16 = 20;
    pub const GETADDR: u16 = 22;
    pub const NEWROUTE: u16 = 24;
    pub const GETROUTE: u16 = 26;
    pub const GETNEIGH: u16 = 30;
    pub const NEWRULE: u16 = 32;
    pub const GETRULE: u16 = 34;
    /// The last of the last row (tunnels): there are no types beyond.
    pub const MAX: u16 = 123;
    /// Position of GET in a row of four.
    pub const GET: u16 = 2;
}

/// Attributes of links.
mod ifla {
    pub const ADDRESS: u16 = 1;
    pub const BROADCAST: u16 = 2;
    pub const IFNAME: u16 = 3;
    pub const MTU: u16 = 4;
    pub const QDISC: u16 = 6;
    pub const STATS: u16 = 7;
    pub const TXQLEN: u16 = 13;
    pub const OPERSTATE: u16 = 16;
    pub const LINKMODE: u16 = 17;
    pub const STATS64: u16 = 23;
    pub const GROUP: u16 = 27;
    pub const PROMISCUITY: u16 = 30;
    pub const NUM_TX_QUEUES: u16 = 31;
    pub const NUM_RX_QUEUES: u16 = 32;
    pub const CARRIER: u16 = 33;
    pub const MIN_MTU: u16 = 50;
    pub const MAX_MTU: u16 = 51;
}

/// Attributes of addresses.
mod ifa {
    pub const ADDRESS: u16 = 1;
    pub const LOCAL: u16 = 2;
    pub const LABEL: u16 = 3;
    pub const CACHEINFO: u16 = 6;
    pub const FLAGS: u16 = 8;
    /// IFA_F_PERMANENT.
    pub const PERMANENT: u8 = 0x80;
}

/// Attributes of routes.
mod rta {
    pub const DST: u16 = 1;
    pub const OIF: u16 = 4;
    pub const PRIORITY: u16 = 6;
    pub const PREFSRC: u16 = 7;
    pub const CACHEINFO: u16 = 12;
    pub const TABLE: u16 = 15;
    pub const UID: u16 = 25;
}

/// RT_TABLE_LOCAL, RT_SCOPE_HOST, RTN_LOCAL, RTN_BROADCAST, RTPROT_KERNEL.
const TABLE_LOCAL: u8 = 255;
const TABLE_MAIN: u8 = 254;
const SCOPE_HOST: u8 = 254;
const SCOPE_LINK: u8 = 253;
const LOCAL: u8 = 2;
const BROADCAST: u8 = 3;
const KERNEL: u8 = 2;

/// Answers a request with the messages it wants, or with the error it gets, of somebody with these credentials.
pub fn answer(request: &Request<'_>, pid: u32, cred: &Cred, out: &mut Builder) -> Result<(), Errno> {
    if request.kind > rtm::MAX {
        return Err(Errno::EOPNOTSUPP);
    }
    if cred.capable(cap::NET_ADMIN) && matches!(request.kind, rtm::NEWLINK | rtm::SETLINK) && changes_nothing(request) {
        return Ok(());
    }
    if request.kind % 4 != rtm::GET {
        // Everything else changes something.
        return Err(Errno::EPERM);
    }
    let dump = request.flags & NLM_F_DUMP == NLM_F_DUMP;
    let family = request.payload().first().copied().map_or(af::UNSPEC, u16::from);
    match (request.kind, dump) {
        (rtm::GETLINK, _) => links(request, pid, dump, out),
        (rtm::GETADDR, true) => {
            addresses(request, pid, family, out);
            Ok(())
        }
        (rtm::GETROUTE, true) => {
            routes(request, pid, family, out);
            Ok(())
        }
        (rtm::GETROUTE, false) => one_route(request, pid, family, cred.uid, out),
        (rtm::GETRULE, true) => {
            rules(request, pid, family, out);
            Ok(())
        }
        // There are no neighbours on a loopback interface.
        (rtm::GETNEIGH, true) => Ok(()),
        _ => Err(Errno::EOPNOTSUPP),
    }
    .map(|()| {
        if dump {
            out.done(request.sequence, pid);
        }
    })
}

/// Whether a request to change a link gives the interface the flags it has, and nothing else (`ip link set lo up`).
fn changes_nothing(request: &Request<'_>) -> bool {
    let word = |at| u32_at(request.payload(), at);
    let (Some(index), Some(flags), Some(change)) = (word(4), word(8), word(12)) else { return false };
    let mut named = index == iface::INDEX;
    for (kind, value) in request.attributes(16) {
        let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
        if kind != ifla::IFNAME || name != iface::NAME.as_bytes() {
            return false;
        }
        named |= index == 0;
    }
    // Without a mask all flags are meant, if any is given.
    let change = if change == 0 && flags != 0 { u32::MAX } else { change };
    named && (flags ^ iface::FLAGS) & change & iface::SETTABLE == 0
}

fn multi(dump: bool) -> u16 {
    if dump { NLM_F_MULTI } else { 0 }
}

fn links(request: &Request<'_>, pid: u32, dump: bool, out: &mut Builder) -> Result<(), Errno> {
    if !dump {
        let index = u32_at(request.payload(), 4).ok_or(Errno::EINVAL)?;
        let name = request.attributes(16).find(|(kind, _)| *kind == ifla::IFNAME).map(|(_, value)| value);
        let named = name.map(|name| name.split(|&byte| byte == 0).next().unwrap_or_default());
        match (index, named) {
            (iface::INDEX, _) => {}
            (0, Some(name)) if name == iface::NAME.as_bytes() => {}
            (0, None) => return Err(Errno::EINVAL),
            _ => return Err(Errno::ENODEV),
        }
    }
    out.begin(rtm::NEWLINK, multi(dump), request.sequence, pid);
    // struct ifinfomsg
    out.put(&[0, 0]);
    out.put(&iface::HARDWARE.to_ne_bytes());
    out.put(&iface::INDEX.to_ne_bytes());
    out.put(&(iface::FLAGS | iface::LOWER_UP).to_ne_bytes());
    out.put(&0u32.to_ne_bytes());
    out.text(ifla::IFNAME, iface::NAME);
    out.word(ifla::TXQLEN, iface::TX_QUEUE);
    // IF_OPER_UNKNOWN and IF_LINK_MODE_DEFAULT.
    out.attribute(ifla::OPERSTATE, &[0]);
    out.attribute(ifla::LINKMODE, &[0]);
    out.word(ifla::MTU, iface::MTU);
    out.word(ifla::MIN_MTU, 0);
    out.word(ifla::MAX_MTU, 0);
    out.word(ifla::GROUP, 0);
    out.word(ifla::PROMISCUITY, 0);
    out.word(ifla::NUM_TX_QUEUES, 1);
    out.word(ifla::NUM_RX_QUEUES, 1);
    out.attribute(ifla::CARRIER, &[1]);
    out.text(ifla::QDISC, "noqueue");
    out.attribute(ifla::ADDRESS, &[0; 6]);
    out.attribute(ifla::BROADCAST, &[0; 6]);
    // Nothing is counted: there are no packets.
    out.attribute(ifla::STATS64, &[0; 25 * 8]);
    out.attribute(ifla::STATS, &[0; 24 * 4]);
    out.end();
    Ok(())
}

fn addresses(request: &Request<'_>, pid: u32, family: u16, out: &mut Builder) {
    let mut one = |family: u16, prefix: u8, addr: &[u8]| {
        out.begin(rtm::NEWADDR, NLM_F_MULTI, request.sequence, pid);
        // struct ifaddrmsg
        out.put(&[family as u8, prefix, ifa::PERMANENT, SCOPE_HOST]);
        out.put(&iface::INDEX.to_ne_bytes());
        out.attribute(ifa::ADDRESS, addr);
        if family == af::INET {
            out.attribute(ifa::LOCAL, addr);
            out.text(ifa::LABEL, iface::NAME);
        }
        out.word(ifa::FLAGS, ifa::PERMANENT.into());
        // Preferred and valid for ever; created and changed at boot.
        let mut cache = [0; 16];
        cache[..8].fill(0xff);
        out.attribute(ifa::CACHEINFO, &cache);
        out.end();
    };
    if matches!(family, af::UNSPEC | af::INET) {
        one(af::INET, 8, &iface::ADDR.octets());
    }
    if matches!(family, af::UNSPEC | af::INET6) {
        one(af::INET6, 128, &Ipv6Addr::LOCALHOST.octets());
    }
}

struct Route {
    to: IpAddr,
    prefix: u8,
    table: u8,
    scope: u8,
    kind: u8,
    source: Option<IpAddr>,
    priority: Option<u32>,
}

fn put_addr(out: &mut Builder, kind: u16, addr: IpAddr) {
    match addr {
        IpAddr::V4(v4) => out.attribute(kind, &v4.octets()),
        IpAddr::V6(v6) => out.attribute(kind, &v6.octets()),
    }
}

fn put_route(request: &Request<'_>, pid: u32, flags: u16, route: &Route, out: &mut Builder) {
    let family = if route.to.is_ipv4() { af::INET } else { af::INET6 };
    out.begin(rtm::NEWROUTE, flags, request.sequence, pid);
    // struct rtmsg
    out.put(&[family as u8, route.prefix, 0, 0, route.table, KERNEL, route.scope, route.kind]);
    out.put(&0u32.to_ne_bytes());
    out.word(rta::TABLE, route.table.into());
    put_addr(out, rta::DST, route.to);
    if let Some(priority) = route.priority {
        out.word(rta::PRIORITY, priority);
    }
    if let Some(source) = route.source {
        put_addr(out, rta::PREFSRC, source);
    }
    out.word(rta::OIF, iface::INDEX);
    out.end();
}

/// The route to one address of IPv4 for a user, as Linux answers it: the interface before the source, and more behind it, which nmap counts on.
fn put_way(request: &Request<'_>, pid: u32, route: &Route, uid: u32, out: &mut Builder) {
    /// RTM_F_CLONED and RTCF_LOCAL.
    const FLAGS: u32 = 0x200 | 0x8000_0000;
    out.begin(rtm::NEWROUTE, 0, request.sequence, pid);
    out.put(&[af::INET as u8, route.prefix, 0, 0, TABLE_MAIN, 0, route.scope, route.kind]);
    out.put(&FLAGS.to_ne_bytes());
    out.word(rta::TABLE, TABLE_MAIN.into());
    put_addr(out, rta::DST, route.to);
    out.word(rta::OIF, iface::INDEX);
    if let Some(source) = route.source {
        put_addr(out, rta::PREFSRC, source);
    }
    out.word(rta::UID, uid);
    // struct rta_cacheinfo
    out.attribute(rta::CACHEINFO, &[0; 32]);
    out.end();
}

/// What the addresses of the interface bring with them.
fn routes(request: &Request<'_>, pid: u32, family: u16, out: &mut Builder) {
    let v4 = |to: [u8; 4], prefix: u8, scope: u8, kind: u8| Route {
        to: Ipv4Addr::from(to).into(),
        prefix,
        table: TABLE_LOCAL,
        scope,
        kind,
        source: Some(iface::ADDR.into()),
        priority: None,
    };
    let local6 = Ipv6Addr::LOCALHOST;
    let v6 = |table: u8, kind: u8, priority: u32| Route {
        to: local6.into(),
        prefix: 128,
        table,
        scope: 0,
        kind,
        source: None,
        priority: Some(priority),
    };
    let wanted = request.attributes(12).find(|(kind, _)| *kind == rta::TABLE).and_then(|(_, value)| u32_at(value, 0));
    let mut list: alloc::vec::Vec<Route> = alloc::vec::Vec::new();
    if matches!(family, af::UNSPEC | af::INET) {
        list.push(v4([127, 0, 0, 0], 8, SCOPE_HOST, LOCAL));
        list.push(v4([127, 0, 0, 1], 32, SCOPE_HOST, LOCAL));
        list.push(v4([127, 255, 255, 255], 32, SCOPE_LINK, BROADCAST));
    }
    if matches!(family, af::UNSPEC | af::INET6) {
        list.push(v6(TABLE_MAIN, 1, 256));
        list.push(v6(TABLE_LOCAL, LOCAL, 0));
    }
    for route in list.iter().filter(|route| wanted.is_none_or(|table| table == 0 || table == u32::from(route.table))) {
        put_route(request, pid, NLM_F_MULTI, route, out);
    }
}

/// The route to one address.
fn one_route(request: &Request<'_>, pid: u32, family: u16, uid: u32, out: &mut Builder) -> Result<(), Errno> {
    let value = request.attributes(12).find(|(kind, _)| *kind == rta::DST).map(|(_, value)| value).ok_or(Errno::EINVAL)?;
    let to = match family {
        af::INET => IpAddr::from(<[u8; 4]>::try_from(value).map_err(|_| Errno::EINVAL)?),
        af::INET6 => IpAddr::from(<[u8; 16]>::try_from(value).map_err(|_| Errno::EINVAL)?),
        _ => return Err(Errno::EOPNOTSUPP),
    };
    if !to.is_loopback() {
        return Err(Errno::ENETUNREACH);
    }
    let source = if to.is_ipv4() { iface::ADDR.into() } else { Ipv6Addr::LOCALHOST.into() };
    let route = Route {
        to,
        prefix: if to.is_ipv4() { 32 } else { 128 },
        table: TABLE_LOCAL,
        scope: 0,
        kind: LOCAL,
        source: Some(source),
        priority: None,
    };
    match to {
        IpAddr::V4(_) => put_way(request, pid, &route, uid, out),
        IpAddr::V6(_) => put_route(request, pid, 0, &route, out),
    }
    Ok(())
}

/// The rules every network namespace starts with.
fn rules(request: &Request<'_>, pid: u32, family: u16, out: &mut Builder) {
    /// FR_ACT_TO_TBL
    const TO_TABLE: u8 = 1;
    const DEFAULT: u8 = 253;
    const PRIORITY: u16 = 6;
    const TABLE: u16 = 15;
    let mut one = |family: u16, priority: u32, table: u8| {
        out.begin(rtm::NEWRULE, NLM_F_MULTI, request.sequence, pid);
        // struct fib_rule_hdr
        out.put(&[family as u8, 0, 0, 0, table, 0, 0, TO_TABLE]);
        out.put(&0u32.to_ne_bytes());
        out.word(TABLE, table.into());
        if priority > 0 {
            out.word(PRIORITY, priority);
        }
        out.end();
    };
    if matches!(family, af::UNSPEC | af::INET) {
        one(af::INET, 0, TABLE_LOCAL);
        one(af::INET, 32766, TABLE_MAIN);
        one(af::INET, 32767, DEFAULT);
    }
    if matches!(family, af::UNSPEC | af::INET6) {
        one(af::INET6, 0, TABLE_LOCAL);
        one(af::INET6, 32766, TABLE_MAIN);
    }
}
