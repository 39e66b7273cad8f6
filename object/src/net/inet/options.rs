//! Options of the levels IPPROTO_IP, IPPROTO_IPV6 and IPPROTO_TCP that are numbers: which there are, what they start with and
//! may be. The few whose value is a structure or that act at once are handled where they act.

use alloc::vec::Vec;

use hashbrown::HashMap;
use janua_abi::linux::net::{af, ip, ipv6, sock, sol, tcp};
use janua_abi::linux::{Errno, Result};
use janua_rt::Mutex;

use crate::net::common::{SOMAXCONN, int};

/// Which sockets have an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Any,
    Stream,
    Datagram,
}

struct Spec {
    level: u32,
    name: u32,
    default: i32,
    least: i32,
    most: i32,
    on: On,
    /// The error for a value outside the range.
    outside: Errno,
    /// On/off: anything but 0 is 1.
    flag: bool,
}

const fn number(level: u32, name: u32, default: i32, least: i32, most: i32) -> Spec {
    Spec { level, name, default, least, most, on: On::Any, outside: Errno::EINVAL, flag: false }
}

const fn flag(level: u32, name: u32, default: i32) -> Spec {
    Spec { level, name, default, least: i32::MIN, most: i32::MAX, on: On::Any, outside: Errno::EINVAL, flag: true }
}

const fn of(on: On, spec: Spec) -> Spec {
    Spec { on, ..spec }
}

/// The value of an option where Linux returns the route's or the system's, until a program chose one.
const UNSET: i32 = -1;

static SPECS: &[Spec] = &[
    number(sol::IP, ip::TOS, 0, i32::MIN, i32::MAX),
    number(sol::IP, ip::TTL, 64, UNSET, 255),
    flag(sol::IP, ip::RECVOPTS, 0),
    flag(sol::IP, ip::RETOPTS, 0),
    flag(sol::IP, ip::PKTINFO, 0),
    number(sol::IP, ip::MTU_DISCOVER, 1, 0, 5),
    flag(sol::IP, ip::RECVERR, 0),
    flag(sol::IP, ip::RECVTTL, 0),
    flag(sol::IP, ip::RECVTOS, 0),
    flag(sol::IP, ip::RECVORIGDSTADDR, 0),
    flag(sol::IP, ip::FREEBIND, 0),
    flag(sol::IP, ip::TRANSPARENT, 0),
    number(sol::IP, ip::LOCAL_PORT_RANGE, 0, i32::MIN, i32::MAX),
    number(sol::IP, ip::MINTTL, 0, 0, 255),
    flag(sol::IP, ip::BIND_ADDRESS_NO_PORT, 0),
    number(sol::IP, ip::MULTICAST_TTL, 1, UNSET, 255),
    flag(sol::IP, ip::MULTICAST_LOOP, 1),
    number(sol::IP, ip::MULTICAST_ALL, 1, 0, 1),
    number(sol::IPV6, ipv6::UNICAST_HOPS, 64, UNSET, 255),
    number(sol::IPV6, ipv6::MULTICAST_HOPS, 1, UNSET, 255),
    number(sol::IPV6, ipv6::MULTICAST_LOOP, 1, 0, 1),
    number(sol::IPV6, ipv6::MULTICAST_IF, 0, 0, 1),
    number(sol::IPV6, ipv6::MTU_DISCOVER, 1, 0, 5),
    flag(sol::IPV6, ipv6::RECVERR, 0),
    flag(sol::IPV6, ipv6::V6ONLY, 0),
    flag(sol::IPV6, ipv6::RECVPKTINFO, 0),
    flag(sol::IPV6, ipv6::RECVHOPLIMIT, 0),
    flag(sol::IPV6, ipv6::RECVTCLASS, 0),
    number(sol::IPV6, ipv6::TCLASS, 0, UNSET, 255),
    flag(sol::IPV6, ipv6::FREEBIND, 0),
    // Datagrams here have no headers between that of IPv6 and their own, no flow labels, and are not cut: who asks for what comes with
    // these receives nothing.
    flag(sol::IPV6, ipv6::RECVHOPOPTS, 0),
    flag(sol::IPV6, ipv6::RECVRTHDR, 0),
    flag(sol::IPV6, ipv6::RECVDSTOPTS, 0),
    flag(sol::IPV6, ipv6::OLD_HOPOPTS, 0),
    flag(sol::IPV6, ipv6::OLD_RTHDR, 0),
    flag(sol::IPV6, ipv6::OLD_DSTOPTS, 0),
    flag(sol::IPV6, ipv6::FLOWINFO, 0),
    flag(sol::IPV6, ipv6::FLOWINFO_SEND, 0),
    flag(sol::IPV6, ipv6::RECVPATHMTU, 0),
    flag(sol::IPV6, ipv6::DONTFRAG, 0),
    flag(sol::IPV6, ipv6::AUTOFLOWLABEL, 1),
    number(sol::IPV6, ipv6::MINHOPCOUNT, 0, 0, 255),
    flag(sol::IPV6, ipv6::TRANSPARENT, 0),
    of(On::Stream, flag(sol::TCP, tcp::NODELAY, 0)),
    of(On::Stream, number(sol::TCP, tcp::MAXSEG, MSS_UNCONNECTED, 0, 32767)),
    of(On::Stream, flag(sol::TCP, tcp::CORK, 0)),
    of(On::Stream, number(sol::TCP, tcp::KEEPIDLE, 7200, 1, 32767)),
    of(On::Stream, number(sol::TCP, tcp::KEEPINTVL, 75, 1, 32767)),
    of(On::Stream, number(sol::TCP, tcp::KEEPCNT, 9, 1, 127)),
    of(On::Stream, number(sol::TCP, tcp::SYNCNT, 6, 1, 127)),
    of(On::Stream, number(sol::TCP, tcp::LINGER2, 60, i32::MIN, i32::MAX)),
    of(On::Stream, number(sol::TCP, tcp::DEFER_ACCEPT, 0, i32::MIN, i32::MAX)),
    of(On::Stream, number(sol::TCP, tcp::WINDOW_CLAMP, 0, i32::MIN, i32::MAX)),
    of(On::Stream, flag(sol::TCP, tcp::QUICKACK, 1)),
    of(On::Stream, number(sol::TCP, tcp::USER_TIMEOUT, 0, 0, i32::MAX)),
    of(On::Stream, number(sol::TCP, tcp::NOTSENT_LOWAT, 0, i32::MIN, i32::MAX)),
    // A connection here loses nothing: there is nothing to send again, and so no time to wait before it.
    of(On::Stream, number(sol::TCP, tcp::THIN_LINEAR_TIMEOUTS, 0, 0, 1)),
    // Connections are not opened with data (MSG_FASTOPEN), as where net.ipv4.tcp_fastopen does not let servers do it.
    of(On::Stream, number(sol::TCP, tcp::FASTOPEN, 0, 0, i32::MAX)),
    of(On::Stream, number(sol::TCP, tcp::INQ, 0, 0, 1)),
    of(On::Datagram, flag(sol::UDP, 1, 0)),
];

/// The size of segments before there is a connection, in one by this interface, and the least; and what of a segment the time stamps take.
const MSS_UNCONNECTED: i32 = 536;
const MSS: i32 = 65483;
const MSS_LEAST: i32 = 88;
const MSS_STAMPS: i32 = 12;

/// TCP_LINGER2: seconds by itself, and at most.
const LINGER2: i32 = 60;
const LINGER2_MOST: i32 = 120;

/// The least TCP_WINDOW_CLAMP.
const CLAMP_LEAST: i32 = 1152;

/// The bits of IP_TOS and IPV6_TCLASS that are the protocol's own in a stream (explicit congestion notification).
const ECN: i32 = 3;

/// The options of one socket: those that were changed.
pub struct InetOptions {
    changed: Mutex<HashMap<(u32, u32), i32>>,
}

impl Default for InetOptions {
    fn default() -> Self {
        InetOptions { changed: Mutex::new(HashMap::new()) }
    }
}

fn spec(family: u16, kind: u32, level: u32, name: u32) -> Result<&'static Spec> {
    if level == sol::IPV6 && family != af::INET6 {
        return Err(Errno::ENOPROTOOPT);
    }
    SPECS
        .iter()
        .find(|spec| spec.level == level && spec.name == name)
        .filter(|spec| match spec.on {
            On::Any => true,
            On::Stream => kind == sock::STREAM,
            On::Datagram => kind == sock::DGRAM,
        })
        .ok_or(Errno::ENOPROTOOPT)
}

impl InetOptions {
    /// Copies what an accepted socket takes over.
    pub fn inherit(&self, from: &InetOptions) {
        let changed = from.changed.lock().clone();
        *self.changed.lock() = changed;
    }

    /// Whether a program changed anything: most never do.
    pub fn any_changed(&self) -> bool {
        !self.changed.lock().is_empty()
    }

    /// The value of an option.
    pub fn value(&self, level: u32, name: u32) -> i32 {
        if let Some(value) = self.changed.lock().get(&(level, name)) {
            return *value;
        }
        SPECS.iter().find(|spec| spec.level == level && spec.name == name).map_or(0, |spec| spec.default)
    }

    /// TCP_MAXSEG of a connection.
    pub fn segment(&self) -> i32 {
        let wanted = self.changed.lock().get(&(sol::TCP, tcp::MAXSEG)).copied();
        wanted.filter(|wanted| *wanted != MSS_UNCONNECTED).map_or(MSS, |wanted| wanted - MSS_STAMPS)
    }

    /// Whether an on/off option is on.
    pub fn flag(&self, level: u32, name: u32) -> bool {
        self.value(level, name) != 0
    }

    /// setsockopt(2) for a number. One byte is enough at level IPPROTO_IP. ENOPROTOOPT, EINVAL.
    pub fn set(&self, family: u16, kind: u32, level: u32, name: u32, value: &[u8]) -> Result<()> {
        let spec = spec(family, kind, level, name)?;
        let given = match value {
            value if (level, name) == (sol::IP, ip::LOCAL_PORT_RANGE) && value.len() != 4 => return Err(Errno::EINVAL),
            [byte, rest @ ..] if level == sol::IP && rest.len() < 3 => i32::from(*byte),
            [] if level == sol::IP && may_be_empty(name) => 0,
            value => int(value)?,
        };
        if given < spec.least || given > spec.most {
            return Err(spec.outside);
        }
        let kept = match given {
            _ if spec.flag => i32::from(given != 0),
            UNSET if spec.least == UNSET => spec.default,
            0 if (level, name) == (sol::IP, ip::TTL) => return Err(Errno::EINVAL),
            _ => shaped(kind, level, name, given)?,
        };
        self.changed.lock().insert((level, name), kept);
        Ok(())
    }

    /// getsockopt(2) for a number: four bytes, or one at level IPPROTO_IP when there is room for no more.
    pub fn get(&self, family: u16, kind: u32, level: u32, name: u32, room: usize) -> Result<Vec<u8>> {
        spec(family, kind, level, name)?;
        let value = self.value(level, name);
        if level == sol::IP && (1..4).contains(&room) && (0..=255).contains(&value) {
            return Ok(alloc::vec![value as u8]);
        }
        Ok(value.to_ne_bytes().to_vec())
    }
}

/// What is kept of a number that is not kept as it is given. EINVAL.
fn shaped(kind: u32, level: u32, name: u32, given: i32) -> Result<i32> {
    let stream = kind == sock::STREAM;
    Ok(match (level, name) {
        (sol::IP, ip::TOS) | (sol::IPV6, ipv6::TCLASS) => given & 255 & if stream { !ECN } else { !0 },
        (sol::IP, ip::LOCAL_PORT_RANGE) => port_range(given)?,
        (sol::TCP, tcp::FASTOPEN) => given.min(SOMAXCONN as i32),
        (sol::TCP, tcp::DEFER_ACCEPT) => retransmitted(given),
        (sol::TCP, tcp::LINGER2) if given == 0 => LINGER2,
        (sol::TCP, tcp::LINGER2) => given.clamp(-1, LINGER2_MOST),
        (sol::TCP, tcp::WINDOW_CLAMP) if given != 0 => given.max(CLAMP_LEAST),
        (sol::TCP, tcp::MAXSEG) if given == 0 => MSS_UNCONNECTED,
        (sol::TCP, tcp::MAXSEG) if given < MSS_LEAST => return Err(Errno::EINVAL),
        _ => given,
    })
}

/// Options of the level IPPROTO_IP that Linux takes for 0 when the value has no byte.
fn may_be_empty(name: u32) -> bool {
    use ip::*;
    matches!(name, TOS | MTU_DISCOVER | PKTINFO | RECVTTL | RECVTOS | RECVOPTS | RETOPTS | RECVERR | RECVORIGDSTADDR)
}

/// The first port in the lower half and the last in the upper one, 0 for those of the system. EINVAL when they are the other way round.
fn port_range(range: i32) -> Result<i32> {
    let (first, last) = (range as u16, (range >> 16) as u16);
    if first != 0 && last != 0 && first > last { Err(Errno::EINVAL) } else { Ok(range) }
}

/// Seconds rounded up to what some number of retransmissions takes: 1, then twice as long each, at most 120; at most 255 of them
/// (`net/ipv4/tcp.c:secs_to_retrans`).
fn retransmitted(seconds: i32) -> i32 {
    let waits = (0..255).map(|nth| if nth < 7 { 1 << nth } else { 120 });
    let mut period = 0;
    for wait in waits.take_while(|_| seconds > 0) {
        period += wait;
        if period >= seconds {
            break;
        }
    }
    period
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_ranges_and_defaults() {
        let options = InetOptions::default();
        let set = |level, name, value: i32| options.set(af::INET, sock::STREAM, level, name, &value.to_ne_bytes());
        let get = |level, name| options.get(af::INET, sock::STREAM, level, name, 4).and_then(|value| int(&value));
        assert_eq!(get(sol::TCP, tcp::NODELAY), Ok(0));
        assert_eq!(set(sol::TCP, tcp::NODELAY, 7), Ok(()));
        assert_eq!(get(sol::TCP, tcp::NODELAY), Ok(1));
        assert_eq!(set(sol::TCP, tcp::KEEPIDLE, 0), Err(Errno::EINVAL));
        assert_eq!(set(sol::IP, ip::TTL, 300), Err(Errno::EINVAL));
        assert_eq!(set(sol::IP, ip::TTL, -1), Ok(()));
        assert_eq!(get(sol::IP, ip::TTL), Ok(64));
        assert_eq!(get(sol::IPV6, ipv6::V6ONLY), Err(Errno::ENOPROTOOPT));
        assert_eq!(get(sol::IP, 200), Err(Errno::ENOPROTOOPT));
        assert_eq!(options.set(af::INET, sock::STREAM, sol::IP, ip::TOS, &[16]), Ok(()));
        assert_eq!(get(sol::IP, ip::TOS), Ok(16));
        assert_eq!(options.set(af::INET, sock::STREAM, sol::IP, ip::TOS, &[]), Ok(()));
        assert_eq!(get(sol::IP, ip::TOS), Ok(0));
        assert_eq!(options.set(af::INET, sock::STREAM, sol::IP, ip::MINTTL, &[]), Err(Errno::EINVAL));
        assert_eq!(set(sol::TCP, tcp::LINGER2, -7), Ok(()));
        assert_eq!(get(sol::TCP, tcp::LINGER2), Ok(-1));
        assert_eq!(set(sol::TCP, tcp::MAXSEG, 87), Err(Errno::EINVAL));
        assert_eq!((set(sol::TCP, tcp::MAXSEG, 1000), options.segment()), (Ok(()), 988));
    }
}
