//! Moving datagrams.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::Ordering;

use janua_abi::linux::net::{In6Pktinfo, InPktinfo, ip, ipv6, msg, so, sol};
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use zerocopy::{FromBytes, IntoBytes};

use super::counts::{self, Datagrams};
use super::udp::{HEAD, Header, UdpSocket};
use super::{Reach, headers, loopback_like, reach};
use crate::caller::Caller;
use crate::net::common::{int, shut};
use crate::net::filter::Packet;
use crate::net::iface;
use crate::net::records::Record;
use crate::net::socket::{Ancillary, Outgoing, Received};

/// Most bytes of a datagram: what a 16-bit length leaves beside the headers.
const MOST_V4: usize = 65_507;
const MOST_V6: usize = 65_527;
/// What a datagram costs its receiver beside its bytes.
pub(super) const OVERHEAD: usize = 512;
/// UDP_CORK.
pub(super) const CORK: u32 = 1;

/// Where a datagram goes, and what its receiver learns of it.
type To = (SocketAddr, Header);

/// What is kept back of a datagram (UDP_CORK, MSG_MORE).
#[derive(Default)]
pub(super) struct Corked {
    data: Vec<u8>,
    to: Option<To>,
}

/// How a datagram is to be sent, where control messages specify it.
#[derive(Default)]
struct Manner {
    source: Option<IpAddr>,
    /// The interface is named.
    interface: bool,
    ttl: Option<i32>,
    tos: Option<i32>,
}

impl Manner {
    /// Reads the control messages of a send. EINVAL for one that is not known or not right.
    fn of(messages: &[Ancillary]) -> Result<Manner> {
        let mut manner = Manner::default();
        for message in messages {
            let data = message.data.as_slice();
            match (message.level, message.kind) {
                (sol::IP, ip::PKTINFO) => {
                    let (info, _) = InPktinfo::read_from_prefix(data).map_err(|_| Errno::EINVAL)?;
                    check_interface(info.ifindex)?;
                    manner.source = source(IpAddr::from(info.spec_dst))?;
                    manner.interface = info.ifindex != 0;
                }
                (sol::IPV6, ipv6::PKTINFO) => {
                    let (info, _) = In6Pktinfo::read_from_prefix(data).map_err(|_| Errno::EINVAL)?;
                    check_interface(info.ifindex)?;
                    manner.source = source(IpAddr::from(info.addr).to_canonical())?;
                    manner.interface = info.ifindex != 0;
                }
                (sol::IP, ip::TTL) | (sol::IPV6, ipv6::HOPLIMIT) => {
                    manner.ttl = Some(int(data)?).filter(|ttl| (1..=255).contains(ttl));
                    manner.ttl.ok_or(Errno::EINVAL)?;
                }
                (sol::IP, ip::TOS) | (sol::IPV6, ipv6::TCLASS) => {
                    let tos = data.first().copied().ok_or(Errno::EINVAL)?;
                    manner.tos = Some(tos.into());
                }
                _ => return Err(Errno::EINVAL),
            }
        }
        Ok(manner)
    }
}

fn check_interface(index: i32) -> Result<()> {
    if index == 0 || index == iface::INDEX as i32 { Ok(()) } else { Err(Errno::ENODEV) }
}

fn source(addr: IpAddr) -> Result<Option<IpAddr>> {
    match reach(addr) {
        Reach::Any => Ok(None),
        Reach::Loopback => Ok(Some(addr)),
        _ => Err(Errno::EINVAL),
    }
}

impl UdpSocket {
    pub(super) fn send_datagram(&self, caller: &dyn Caller, buf: &mut WriteBuf<'_>, message: &Outgoing) -> Result<usize> {
        let common = &self.inet.common;
        if message.flags & msg::OOB != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        let len = buf.left();
        let held = self.corked.lock().data.len();
        if len + held > self.most() {
            return Err(Errno::EMSGSIZE);
        }
        let connected = *self.remote.read();
        let to = match &message.to {
            Some(addr) => self.inet.destination(addr, true)?,
            None => connected.ok_or(Errno::EDESTADDRREQ)?,
        };
        // Connected to port 0 it sends to nobody.
        if to.port() == 0 && message.to.is_some() {
            return Err(Errno::EINVAL);
        }
        let manner = Manner::of(&message.ancillary)?;
        if common.shut() & shut::SEND != 0 {
            return Err(Errno::EPIPE);
        }
        common.take_error()?;
        let to = self.reached(to, &manner)?;
        let header = self.header(to, &manner)?;
        if let Some((data, (to, header))) = self.payload(buf, (to, header), message.flags & msg::MORE != 0)? {
            self.transmit(&|| caller.machine().cpu(), data, to, header);
        }
        Ok(len)
    }

    /// Most bytes of a datagram.
    fn most(&self) -> usize {
        if self.inet.is_v6() { MOST_V6 } else { MOST_V4 }
    }

    /// `cpu`: the processor that sends.
    fn transmit(&self, cpu: &dyn Fn() -> usize, data: Vec<u8>, to: SocketAddr, header: Header) {
        let full = data.len() + usize::from(HEAD);
        let covered = if self.is_lite() { self.coverage.lock().send.filter(|&bytes| usize::from(bytes) < full) } else { None };
        let header = Header { covered: covered.unwrap_or_default(), ..header };
        counts::one(&self.counted(to.is_ipv6()).sent);
        if matches!(reach(to.ip()), Reach::Multicast | Reach::Broadcast) {
            self.deliver_to_all(to, &data, header);
            return;
        }
        match self.receiver(cpu, to, header.from) {
            Some(target) => target.deliver(data.into_boxed_slice(), header),
            None => {
                counts::one(&self.counted(to.is_ipv6()).unreached);
                self.bounced(to, data.into_boxed_slice(), self.remote.read().is_some());
            }
        }
    }

    /// Where datagrams of its protocol are counted.
    fn counted(&self, v6: bool) -> &Datagrams {
        self.inet.stack.counts.datagrams(self.is_lite(), v6)
    }

    /// Sends what has been kept back, to where its first bytes were to go (UDP_CORK is off).
    pub(super) fn uncork(&self, caller: &dyn Caller) {
        let held = {
            let mut corked = self.corked.lock();
            corked.to.take().map(|to| (core::mem::take(&mut corked.data), to))
        };
        if let Some((data, (to, header))) = held {
            self.transmit(&|| caller.machine().cpu(), data, to, header);
        }
    }

    /// Where a datagram for this address goes, when this socket may send it there.
    fn reached(&self, to: SocketAddr, manner: &Manner) -> Result<SocketAddr> {
        if !manner.interface && ![0, iface::INDEX as i32].contains(&self.interface.load(Ordering::Relaxed)) {
            return Err(Errno::ENETUNREACH);
        }
        match reach(to.ip()) {
            Reach::Any => Ok(SocketAddr::new(loopback_like(to.ip()), to.port())),
            Reach::Loopback => Ok(to),
            Reach::Broadcast if to.ip().is_loopback() && !self.inet.common.flag(so::BROADCAST) => Err(Errno::EACCES),
            Reach::Broadcast if to.ip().is_loopback() => Ok(to),
            Reach::Multicast if manner.interface || self.reaches_groups() => Ok(to),
            _ => Err(Errno::ENETUNREACH),
        }
    }

    /// The header of a datagram: what the control messages specify, otherwise the socket's own.
    fn header(&self, to: SocketAddr, manner: &Manner) -> Result<Header> {
        let port = self.port()?;
        let bound = {
            let state = self.state.lock();
            state.source.or(state.place.map(|place| place.addr)).filter(|addr| !addr.is_unspecified())
        };
        let from = manner.source.or(bound).unwrap_or_else(|| loopback_like(to.ip()));
        if from.is_ipv4() != to.is_ipv4() {
            return Err(Errno::ENETUNREACH);
        }
        let options = &self.inet.options;
        let ttl = match (to.ip().is_multicast(), to.is_ipv4()) {
            (true, true) => options.value(sol::IP, ip::MULTICAST_TTL),
            (true, false) => options.value(sol::IPV6, ipv6::MULTICAST_HOPS),
            (false, true) => options.value(sol::IP, ip::TTL),
            (false, false) => options.value(sol::IPV6, ipv6::UNICAST_HOPS),
        };
        let tos = if to.is_ipv4() { options.value(sol::IP, ip::TOS) } else { options.value(sol::IPV6, ipv6::TCLASS) };
        Ok(Header {
            from: SocketAddr::new(from, port),
            to: to.ip(),
            ttl: manner.ttl.unwrap_or(ttl),
            tos: manner.tos.unwrap_or(tos),
            covered: 0,
            stamp: 0,
        })
    }

    /// The bytes to send, behind those that were kept back, and where to, which the first of them decided; `None` when they
    /// are kept back as well, since more is to come.
    fn payload(&self, buf: &mut WriteBuf<'_>, to: To, more: bool) -> Result<Option<(Vec<u8>, To)>> {
        let mut data = vec![0; buf.left()];
        if buf.get(&mut data)? < data.len() {
            return Err(Errno::EFAULT);
        }
        let more = more || self.inet.options.flag(sol::UDP, CORK);
        let mut corked = self.corked.lock();
        if corked.to.is_none() && !more {
            return Ok(Some((data, to)));
        }
        // Once more: another thread may have added to it.
        if corked.data.len() + data.len() > self.most() {
            return Err(Errno::EMSGSIZE);
        }
        let to = *corked.to.get_or_insert(to);
        corked.data.extend_from_slice(&data);
        if more {
            return Ok(None);
        }
        corked.to = None;
        Ok(Some((core::mem::take(&mut corked.data), to)))
    }

    /// To every member of a group. The loopback interface gives back what leaves by it, whatever IP_MULTICAST_LOOP is.
    fn deliver_to_all(&self, to: SocketAddr, data: &[u8], header: Header) {
        for target in self.ports().all(to.ip(), to.port()) {
            if target.wants_group(to.ip(), header.from.ip()) && target.takes_from(header.from) {
                target.deliver(data.into(), header);
            }
        }
    }

    /// The socket a datagram reaches: one that is connected to the sender before others.
    fn receiver(&self, cpu: &dyn Fn() -> usize, to: SocketAddr, from: SocketAddr) -> Option<Arc<UdpSocket>> {
        let stack = &self.inet.stack;
        self.ports().find(to.ip(), to.port(), stack.turn(), |socket| match *socket.remote.read() {
            Some(remote) if remote == from => Some(8),
            Some(_) => None,
            None => Some(socket.inet.common.suits_cpu(cpu)),
        })
    }

    fn takes_from(&self, from: SocketAddr) -> bool {
        self.remote.read().is_none_or(|remote| remote == from)
    }

    /// Whether a datagram to a group or to all is for this socket. IP_MULTICAST_ALL lets those hear that joined nothing, too,
    /// which on Linux are those for whom anybody joined; here everybody who is bound to any address.
    fn wants_group(&self, group: IpAddr, source: IpAddr) -> bool {
        if !group.is_multicast() {
            return true;
        }
        let joined = self.groups.lock().lets_in(group, source);
        joined.unwrap_or_else(|| self.inet.options.flag(sol::IP, ip::MULTICAST_ALL))
    }

    /// Puts a datagram into the queue, or loses it when that is full.
    fn deliver(&self, data: Box<[u8]>, with: Header) {
        // What is covered in part only is not for a program that wants all of it covered, or more.
        let refused = |least: u16| least == 0 || with.covered < least;
        if with.covered != 0 && self.coverage.lock().receive.is_some_and(refused) {
            return;
        }
        let stamp = if self.wants_stamp() { self.inet.stack.clock.realtime() } else { 0 };
        let with = Header { stamp, ..with };
        let Some(data) = self.filtered(data, &with) else { return };
        let held = self.queue.bytes() + self.queue.len() * OVERHEAD;
        if self.inet.common.shut() & shut::RECEIVE != 0 {
            return;
        }
        if held + data.len() > self.receive_limit() {
            self.lost.fetch_add(1, Ordering::Relaxed);
            counts::one(&self.counted(with.to.is_ipv6()).lost);
            return;
        }
        let v6 = with.to.is_ipv6();
        if self.queue.push(Record::new(data, with), usize::MAX).is_ok() {
            counts::one(&self.counted(v6).received);
            self.inet.common.wake_readers();
        }
    }

    fn wants_stamp(&self) -> bool {
        let common = &self.inet.common;
        self.stamp.is_wanted()
            || [so::TIMESTAMP, so::TIMESTAMPNS, so::TIMESTAMPING].into_iter().any(|option| common.flag(option))
    }

    /// What this socket's filter leaves of a datagram. It sees the headers as they would be on a wire; what it cuts leaves at least
    /// that of UDP.
    fn filtered(&self, data: Box<[u8]>, with: &Header) -> Option<Box<[u8]>> {
        let Some(filter) = self.inet.common.filter.get() else { return Some(data) };
        let third = if self.is_lite() { with.covered } else { HEAD + data.len() as u16 };
        let head = headers::udp(with.from.port(), self.state.lock().port, third);
        let (network, protocol) = headers::ip(with, self.inet.common.protocol, head.len() + data.len());
        let packet =
            Packet { head: &head, data: &data, network: &network, protocol, interface: Some((iface::INDEX, iface::HARDWARE)) };
        let keep = filter.run(&packet) as usize;
        if keep == 0 {
            return None;
        }
        let mut data = data.into_vec();
        data.truncate(keep.saturating_sub(head.len()));
        Some(data.into_boxed_slice())
    }

    pub(super) fn receive_datagram(&self, buf: &mut ReadBuf<'_>, flags: u32) -> Result<Received> {
        if flags & msg::OOB != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        if flags & msg::ERRQUEUE != 0 {
            return self.receive_error(buf);
        }
        let ended = self.inet.common.shut() & shut::RECEIVE != 0;
        self.inet.common.take_error()?;
        let peek = &self.inet.common.peek;
        let room = buf.left();
        let describe = |record: &Record<Header>, skipped: usize, len: usize| {
            let full = record.data.len();
            peek.note_read(flags, if flags & msg::TRUNC != 0 { full } else { len });
            // A peek at the end of a datagram counts as cut when it asks for no more than there is, as on Linux.
            let cut = full > len && full - skipped >= room;
            self.stamp.note(record.with.stamp);
            Received {
                len,
                full,
                stamp: record.with.stamp,
                from: Some(self.inet.present(record.with.from)),
                flags: if cut { msg::TRUNC } else { 0 },
                ancillary: self.control(&record.with),
                ..Received::default()
            }
        };
        if flags & msg::PEEK != 0 {
            let peeked = self.queue.peek(peek.chosen(), |record, skip| {
                let len = buf.put_whole(&record.data[skip..])?;
                Ok(describe(record, skip, len))
            });
            if let Some(peeked) = peeked {
                return peeked;
            }
        } else if let Some(record) = self.queue.pop() {
            let len = buf.put_whole(&record.data)?;
            return Ok(describe(&record, 0, len));
        }
        if ended { Ok(Received::default()) } else { Err(Errno::EAGAIN) }
    }

    /// The control messages this socket wants with its datagrams.
    fn control(&self, header: &Header) -> Vec<Ancillary> {
        let options = &self.inet.options;
        let mut list = Vec::new();
        if !options.any_changed() {
            return list;
        }
        let mut add = |level: u32, kind: u32, data: &[u8]| list.push(Ancillary { level, kind, data: data.to_vec() });
        let index = iface::INDEX as i32;
        match header.to {
            IpAddr::V4(to) => {
                if options.flag(sol::IP, ip::PKTINFO) {
                    let local = if to.is_loopback() { to } else { core::net::Ipv4Addr::LOCALHOST };
                    let info = InPktinfo { ifindex: index, spec_dst: local.octets(), addr: to.octets() };
                    add(sol::IP, ip::PKTINFO, info.as_bytes());
                }
                if options.flag(sol::IP, ip::RECVTTL) {
                    add(sol::IP, ip::TTL, &header.ttl.to_ne_bytes());
                }
                if options.flag(sol::IP, ip::RECVTOS) {
                    add(sol::IP, ip::TOS, &[header.tos as u8]);
                }
                if options.flag(sol::IP, ip::RECVORIGDSTADDR) {
                    let port = self.state.lock().port;
                    let addr = crate::net::addr::SockAddr::Inet(SocketAddr::new(header.to, port)).encode();
                    add(sol::IP, ip::RECVORIGDSTADDR, addr.as_bytes());
                }
                if options.flag(sol::IPV6, ipv6::RECVPKTINFO) {
                    let info = In6Pktinfo { addr: to.to_ipv6_mapped().octets(), ifindex: index };
                    add(sol::IPV6, ipv6::PKTINFO, info.as_bytes());
                }
            }
            IpAddr::V6(to) => {
                if options.flag(sol::IPV6, ipv6::RECVPKTINFO) {
                    add(sol::IPV6, ipv6::PKTINFO, In6Pktinfo { addr: to.octets(), ifindex: index }.as_bytes());
                }
                if options.flag(sol::IPV6, ipv6::RECVHOPLIMIT) {
                    add(sol::IPV6, ipv6::HOPLIMIT, &header.ttl.to_ne_bytes());
                }
                if options.flag(sol::IPV6, ipv6::RECVTCLASS) {
                    add(sol::IPV6, ipv6::TCLASS, &header.tos.to_ne_bytes());
                }
            }
        }
        list
    }
}
