//! What a guest needs a capability for on a socket of the host's (`--net host`), where the host would ask for the sandbox's own.
//!
//! Which operations ask, and for what, is as in Linux (socket(7), ip(7), ipv6(7), tcp(7); `net/core/sock.c`, `net/ipv{4,6}`).

use janua_abi::linux::net::{ip, ipv6, so, sol, tcp};
use janua_abi::linux::{Errno, Result};

use crate::caller::Cred;
use crate::net::addr::SockAddr;
use crate::net::common::{cap, int};
use crate::net::socket::Ancillary;

/// The first port that anybody may bind to. The host may have another one, which then holds too.
const FIRST_FREE: u16 = 1024;
/// The highest SO_PRIORITY that anybody may set.
const PRIORITY_MOST: i32 = 6;
/// Options that say how packets are to be protected: IP_IPSEC_POLICY, IP_XFRM_POLICY and IPv6's.
const IP_POLICIES: [u32; 2] = [16, 17];
const IPV6_POLICIES: [u32; 2] = [34, 35];
/// SO_PREFER_BUSY_POLL, SO_BUSY_POLL_BUDGET.
const BUSY_POLLS: [u32; 3] = [so::BUSY_POLL, 69, 70];
const BINDTOIFINDEX: u32 = 62;
/// The ways to avoid congestion that anybody may choose everywhere.
const UNRESTRICTED: [&[u8]; 2] = [b"reno", b"cubic"];

fn need(held: bool, errno: Errno) -> Result<()> {
    if held { Ok(()) } else { Err(errno) }
}

fn is_raw(cred: &Cred) -> bool {
    cred.capable(cap::NET_RAW) || cred.capable(cap::NET_ADMIN)
}

/// bind(2). EACCES.
pub fn bind(cred: &Cred, addr: &SockAddr) -> Result<()> {
    match addr {
        SockAddr::Inet(place) if (1..FIRST_FREE).contains(&place.port()) => {
            need(cred.capable(cap::NET_BIND_SERVICE), Errno::EACCES)
        }
        _ => Ok(()),
    }
}

/// setsockopt(2). EPERM, EACCES, EINVAL for a value that is too short. `bound`: the socket is bound to an interface.
pub fn set_option(cred: &Cred, level: u32, name: u32, value: &[u8], bound: impl FnOnce() -> bool) -> Result<()> {
    let admin = cred.capable(cap::NET_ADMIN);
    match (level, name) {
        (sol::SOCKET, so::DEBUG) => need(admin || int(value)? == 0, Errno::EACCES),
        (sol::SOCKET, so::SNDBUFFORCE | so::RCVBUFFORCE) => need(admin, Errno::EPERM),
        (sol::SOCKET, so::PRIORITY) => need((0..=PRIORITY_MOST).contains(&int(value)?) || is_raw(cred), Errno::EPERM),
        (sol::SOCKET, so::MARK) => need(is_raw(cred), Errno::EPERM),
        (sol::SOCKET, so::BINDTODEVICE | BINDTOIFINDEX) => need(cred.capable(cap::NET_RAW) || !bound(), Errno::EPERM),
        (sol::SOCKET, name) if BUSY_POLLS.contains(&name) => need(admin || int(value)? == 0, Errno::EPERM),
        // Packets with times to leave at, by another clock than CLOCK_MONOTONIC.
        (sol::SOCKET, so::TXTIME) => need(admin || int(value)? == 1, Errno::EPERM),
        (sol::IP, ip::TRANSPARENT) | (sol::IPV6, ipv6::TRANSPARENT) => need(int(value)? == 0 || is_raw(cred), Errno::EPERM),
        (sol::IP, name) if IP_POLICIES.contains(&name) => need(admin, Errno::EPERM),
        (sol::IPV6, name) if IPV6_POLICIES.contains(&name) => need(admin, Errno::EPERM),
        // Some of them ask for CAP_NET_RAW, by what is in them.
        (sol::IP, ip::OPTIONS) => need(value.is_empty() || cred.capable(cap::NET_RAW), Errno::EPERM),
        (sol::IPV6, ipv6::HOPOPTS | ipv6::RTHDRDSTOPTS | ipv6::DSTOPTS) => need(cred.capable(cap::NET_RAW), Errno::EPERM),
        (sol::TCP, tcp::CONGESTION) => {
            let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
            need(admin || UNRESTRICTED.contains(&name), Errno::EPERM)
        }
        _ => Ok(()),
    }
}

/// What is sent with a message (sendmsg(2)). EPERM.
pub fn send(cred: Option<&Cred>, ancillary: &[Ancillary]) -> Result<()> {
    for one in ancillary {
        let asks = match (one.level, one.kind) {
            (sol::SOCKET, so::MARK) => true,
            (sol::SOCKET, so::PRIORITY) => !(0..=PRIORITY_MOST).contains(&int(&one.data)?),
            (sol::IP, ip::OPTIONS | ip::RETOPTS) => true,
            (sol::IPV6, ipv6::HOPOPTS | ipv6::RTHDRDSTOPTS | ipv6::DSTOPTS | ipv6::OLD_HOPOPTS | ipv6::OLD_DSTOPTS) => true,
            _ => false,
        };
        need(!asks || cred.is_some_and(is_raw), Errno::EPERM)?;
    }
    Ok(())
}
