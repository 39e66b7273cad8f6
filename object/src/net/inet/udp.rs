//! Datagram sockets over the loopback (udp(7)).
//!
//! Lock order: `state`, then the port table; `remote` is a leaf, read with the table locked.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use janua_abi::linux::net::{ip, ipproto, ipv6, so, sock, sol, udplite};
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_rt::{Mutex, RwLock};
use zerocopy::IntoBytes;

use super::errors::Refusal;
use super::groups::{self, Groups};
use super::ports::{Place, Ports, Sharing};
use super::udp_transfer::{CORK, Corked, OVERHEAD};
use super::{Inet, InetStack, Reach, loopback_like, reach};
use crate::caller::Caller;
use crate::file::Events;
use crate::net::addr::SockAddr;
use crate::net::common::{Common, int, shut};
use crate::net::iface;
use crate::net::records::RecordQueue;
use crate::net::socket::{Held, NetCaller, Outgoing, Received, Socket, memory_info};
use crate::net::stamp::{self, Stamp};

/// What goes with a datagram.
#[derive(Clone, Copy)]
pub(super) struct Header {
    pub from: SocketAddr,
    /// Where it was sent to.
    pub to: IpAddr,
    pub ttl: i32,
    pub tos: i32,
    /// The bytes that UDP-Lite's checksum covers, its header's among them; 0 for all.
    pub covered: u16,
    /// When it arrived, where that is wanted; nanoseconds since 1970, otherwise 0.
    pub stamp: u64,
}

#[derive(Default)]
pub(super) struct State {
    pub place: Option<Place>,
    pub port: u16,
    sharing: Sharing,
    explicit: bool,
    /// Bound by connect(2) to this source.
    pub source: Option<IpAddr>,
}

/// How much of a datagram is to be covered by a checksum, its header included, as a program chose (udplite(7)); 0 for all.
#[derive(Clone, Copy, Default)]
pub(super) struct Coverage {
    pub send: Option<u16>,
    /// The least that is taken.
    pub receive: Option<u16>,
}

/// Bytes of a datagram's header, which a checksum covers at least.
pub(super) const HEAD: u16 = 8;

/// A datagram socket of UDP or UDP-Lite.
pub struct UdpSocket {
    pub(super) inet: Inet,
    me: Weak<UdpSocket>,
    pub(super) queue: RecordQueue<Header>,
    /// Datagrams that found nobody (IP_RECVERR).
    pub(super) errors: RecordQueue<Refusal>,
    pub(super) state: Mutex<State>,
    pub(super) remote: RwLock<Option<SocketAddr>>,
    /// Multicast groups it has joined (on the loopback interface, the only one).
    pub(super) groups: Mutex<Groups>,
    /// Multicasts leave by the loopback interface because a program asked for it.
    multicast_lo: Mutex<bool>,
    pub(super) stamp: Stamp,
    /// Bytes of a datagram that is not complete yet (MSG_MORE, UDP_CORK).
    pub(super) corked: Mutex<Corked>,
    pub(super) coverage: Mutex<Coverage>,
    /// Datagrams there was no room for.
    pub(super) lost: AtomicU32,
    /// IPV6_PKTINFO: the interface to leave by, 0 for any.
    pub(super) interface: AtomicI32,
}

impl UdpSocket {
    /// `protocol`: UDP-Lite, otherwise UDP.
    pub fn new(stack: &Arc<InetStack>, family: u16, protocol: u32) -> Arc<UdpSocket> {
        let protocol = if protocol == ipproto::UDPLITE { protocol } else { ipproto::UDP };
        let inet = Inet::new(stack, family, sock::DGRAM, protocol);
        let id = inet.id;
        let socket = Arc::new_cyclic(|me: &Weak<UdpSocket>| UdpSocket {
            inet,
            me: me.clone(),
            queue: RecordQueue::default(),
            errors: RecordQueue::default(),
            stamp: Stamp::default(),
            state: Mutex::new(State::default()),
            remote: RwLock::new(None),
            groups: Mutex::default(),
            multicast_lo: Mutex::new(false),
            corked: Mutex::default(),
            coverage: Mutex::default(),
            lost: AtomicU32::new(0),
            interface: AtomicI32::new(0),
        });
        stack.udp_all.lock().insert(id, socket.me.clone());
        socket
    }

    /// Local and remote address, bytes unread, family and user, for listings. `None` when it is bound to nothing.
    pub fn status(&self) -> Option<super::tcp::Status> {
        let state = self.state.lock();
        let place = state.place?;
        let local = SocketAddr::new(state.source.unwrap_or(place.addr), state.port);
        let remote = *self.remote.read();
        Some(super::tcp::Status {
            local,
            remote: remote.unwrap_or_else(|| {
                let any = if local.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv6Addr::UNSPECIFIED) };
                SocketAddr::new(any, 0)
            }),
            state: if remote.is_some() { 1 } else { 7 },
            queued: self.queue.bytes(),
            family: self.inet.common.family,
            uid: state.sharing.uid,
            ino: self.inet.common.ino(),
        })
    }

    /// The port, after binding to a free one if there is none.
    pub(super) fn port(&self) -> Result<u16> {
        let mut state = self.state.lock();
        if state.place.is_none() {
            let place = self.inet.any_place();
            let sharing = self.inet.sharing(0);
            state.port = self.ports().bind_in(
                self.inet.ephemeral(),
                self.inet.id,
                &self.me,
                0,
                place,
                sharing,
                self.inet.stack.now(),
            )?;
            state.place = Some(place);
            state.sharing = sharing;
        }
        Ok(state.port)
    }

    pub(super) fn is_lite(&self) -> bool {
        self.inet.common.protocol == ipproto::UDPLITE
    }

    /// The ports of its protocol.
    pub(super) fn ports(&self) -> &Ports<UdpSocket> {
        if self.is_lite() { &self.inet.stack.udplite } else { &self.inet.stack.udp }
    }

    /// UDPLITE_SEND_CSCOV and UDPLITE_RECV_CSCOV. `None`: it is none of them.
    fn set_coverage(&self, level: u32, name: u32, value: &[u8]) -> Option<Result<()>> {
        if level != sol::UDP || !matches!(name, udplite::SEND_CSCOV | udplite::RECV_CSCOV) {
            return None;
        }
        Some(int(value).and_then(|bytes| {
            if !self.is_lite() {
                return Err(Errno::ENOPROTOOPT);
            }
            let bytes = if bytes == 0 { 0 } else { bytes.clamp(HEAD.into(), u16::MAX.into()) as u16 };
            let mut coverage = self.coverage.lock();
            let which = if name == udplite::SEND_CSCOV { &mut coverage.send } else { &mut coverage.receive };
            *which = Some(bytes);
            Ok(())
        }))
    }

    fn disconnect(&self) {
        *self.remote.write() = None;
        let mut state = self.state.lock();
        state.source = None;
        if state.place.is_some() && !state.explicit {
            self.ports().unbind(self.inet.id, state.port);
            *state = State::default();
        }
    }

    fn multicasts_on_lo(&self) -> bool {
        *self.multicast_lo.lock()
    }

    /// Whether there is a way to groups: there is no route to any, so the interface has to be named, or be that of an IPv4 address the
    /// socket is bound to.
    pub(super) fn reaches_groups(&self) -> bool {
        let bound = self.state.lock().place.map(|place| place.addr);
        self.multicasts_on_lo()
            || self.interface.load(Ordering::Relaxed) == iface::INDEX as i32
            || self.inet.common.on_device.load(Ordering::Relaxed)
            || bound.is_some_and(|addr| addr.is_ipv4() && addr.is_loopback())
    }

    /// IP_MULTICAST_IF, IP_ADD_MEMBERSHIP and the like. `None`: it is none of them.
    fn set_multicast(&self, level: u32, name: u32, value: &[u8]) -> Option<Result<()>> {
        let interface = match (level, name) {
            (sol::IP, ip::MULTICAST_IF) => groups::interface_v4(value),
            (sol::IPV6, ipv6::MULTICAST_IF) => int(value).and_then(groups::interface_index),
            _ => {
                let asked = groups::request(level, name, value)?;
                return Some(asked.and_then(|(group, source, change)| self.groups.lock().change(group, source, change)));
            }
        };
        Some(interface.map(|lo| *self.multicast_lo.lock() = lo))
    }
}

/// Both protocols' options have both levels.
fn own_level(level: u32) -> u32 {
    if level == sol::UDPLITE { sol::UDP } else { level }
}

impl Socket for UdpSocket {
    fn common(&self) -> &Common {
        &self.inet.common
    }

    fn bind(&self, caller: &dyn NetCaller, addr: &SockAddr) -> Result<()> {
        let (place, port) = self.inet.place(caller, addr, true)?;
        let mut state = self.state.lock();
        if state.place.is_some() {
            return Err(Errno::EINVAL);
        }
        let sharing = self.inet.sharing(caller.cred().fsuid);
        state.port =
            self.ports().bind_in(self.inet.ephemeral(), self.inet.id, &self.me, port, place, sharing, self.inet.stack.now())?;
        state.place = Some(place);
        state.sharing = sharing;
        state.explicit = true;
        Ok(())
    }

    fn connect(&self, _caller: &dyn NetCaller, addr: &SockAddr, _nonblocking: bool) -> Result<()> {
        if matches!(addr, SockAddr::Unspec(_)) {
            self.disconnect();
            return Ok(());
        }
        let mut to = self.inet.destination(addr, true)?;
        match reach(to.ip()) {
            Reach::Any => to.set_ip(loopback_like(to.ip())),
            Reach::Loopback => {}
            Reach::Broadcast if to.ip().is_loopback() || self.inet.common.flag(so::BROADCAST) => {
                if !self.inet.common.flag(so::BROADCAST) {
                    return Err(Errno::EACCES);
                }
            }
            Reach::Multicast if self.reaches_groups() => {}
            _ => return Err(Errno::ENETUNREACH),
        }
        self.port()?;
        {
            let mut state = self.state.lock();
            let bound = state.place.map(|place| place.addr).filter(|addr| !addr.is_unspecified());
            if bound.is_some_and(|bound| bound.is_ipv4() != to.is_ipv4()) {
                return Err(Errno::EINVAL);
            }
            state.source = Some(bound.unwrap_or_else(|| loopback_like(to.ip())));
        }
        *self.remote.write() = Some(to);
        Ok(())
    }

    fn name(&self) -> Result<SockAddr> {
        let state = self.state.lock();
        let name = match state.place {
            Some(place) => SocketAddr::new(state.source.unwrap_or(place.addr), state.port),
            None => self.inet.unbound(),
        };
        Ok(self.inet.present(name))
    }

    fn peer_name(&self) -> Result<SockAddr> {
        let remote = *self.remote.read();
        let named = remote.filter(|remote| remote.port() != 0);
        named.map(|remote| self.inet.present(remote)).ok_or(Errno::ENOTCONN)
    }

    fn send(
        &self,
        caller: &dyn Caller,
        _names: Option<&dyn NetCaller>,
        buf: &mut WriteBuf<'_>,
        message: &Outgoing,
    ) -> Result<usize> {
        self.send_datagram(caller, buf, message)
    }

    fn receive(&self, buf: &mut ReadBuf<'_>, flags: u32, _want_from: bool) -> Result<Received> {
        self.receive_datagram(buf, flags)
    }

    fn shutdown(&self, directions: u32) -> Result<()> {
        if self.remote.read().is_none() {
            return Err(Errno::ENOTCONN);
        }
        self.inet.common.add_shut(directions);
        self.inet.common.wait.wake_all();
        Ok(())
    }

    fn poll(&self, table: Option<&mut PollTable>) -> Events {
        let common = &self.inet.common;
        if let Some(table) = table {
            table.add(&common.wait);
        }
        let mut events = Events::OUT | Events::WRNORM | Events::WRBAND;
        let shut = common.shut();
        if common.has_error() || !self.errors.is_empty() {
            events |= Events::ERR;
        }
        if shut & shut::RECEIVE != 0 {
            events |= Events::RDHUP | Events::IN | Events::RDNORM;
        }
        if shut == shut::BOTH {
            events |= Events::HUP;
        }
        if !self.queue.is_empty() {
            events |= Events::IN | Events::RDNORM;
        }
        events
    }

    fn set_option(&self, caller: &dyn NetCaller, level: u32, name: u32, value: &[u8]) -> Result<()> {
        if level == sol::SOCKET {
            return self.inet.common.set_option(&caller.cred(), name, value);
        }
        if level == sol::IPV6 && !self.inet.is_v6() {
            return Err(Errno::ENOPROTOOPT);
        }
        let level = own_level(level);
        if let Some(answer) = self.set_coverage(level, name, value) {
            return answer;
        }
        if let Some(answer) = self.set_multicast(level, name, value) {
            return answer;
        }
        let bound = self.state.lock().place.is_some();
        if let Some(answer) = self.inet.named_interface(level, name, value) {
            self.interface.store(answer?, Ordering::Relaxed);
            return Ok(());
        }
        self.inet.set_ip_option(&caller.cred(), bound, level, name, value)?;
        if let (sol::IP, ip::RECVERR) | (sol::IPV6, ipv6::RECVERR) = (level, name)
            && !self.inet.options.flag(level, name)
        {
            self.errors.clear();
        }
        if (level, name) == (sol::UDP, CORK) && !self.inet.options.flag(level, name) {
            self.uncork(caller);
        }
        Ok(())
    }

    fn get_option(&self, _caller: &dyn NetCaller, level: u32, name: u32, room: usize) -> Result<Vec<u8>> {
        let level = own_level(level);
        let number = |value: Option<u16>| Ok(i32::from(value.unwrap_or_default()).to_ne_bytes().to_vec());
        match (level, name) {
            (sol::UDP, udplite::SEND_CSCOV) => number(self.coverage.lock().send),
            (sol::UDP, udplite::RECV_CSCOV) => number(self.coverage.lock().receive),
            (sol::SOCKET, so::PEERCRED) => {
                let nobody = janua_abi::linux::net::Ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
                Ok(nobody.as_bytes().to_vec())
            }
            (sol::SOCKET, so::MEMINFO) => Ok(memory_info(self)),
            (sol::SOCKET, _) => self.inet.common.get_option(name, false, room),
            (sol::IP, ip::MULTICAST_IF) => {
                let addr = if self.multicasts_on_lo() { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
                Ok(addr.octets().to_vec())
            }
            (sol::IPV6, ipv6::MULTICAST_IF) if self.inet.is_v6() => {
                let index = if self.multicasts_on_lo() { iface::INDEX } else { 0 };
                Ok(index.to_ne_bytes().to_vec())
            }
            _ => self.inet.get_ip_option(self.remote.read().is_some(), level, name, room),
        }
    }

    fn readable_bytes(&self) -> usize {
        self.queue.first_len()
    }

    fn held(&self) -> Held {
        let received = self.queue.bytes() + self.queue.len() * OVERHEAD;
        Held { received, sent: 0, lost: self.lost.load(Ordering::Relaxed) }
    }

    fn ioctl(&self, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        stamp::ioctl(&self.stamp, caller, request, arg)
    }

    fn release(&self) {
        let common = &self.inet.common;
        common.add_shut(shut::BOTH);
        {
            let mut state = self.state.lock();
            if state.place.take().is_some() {
                self.ports().unbind(self.inet.id, state.port);
            }
        }
        self.queue.clear();
        self.errors.clear();
        self.inet.stack.udp_all.lock().remove(&self.inet.id);
        common.wait.wake_all();
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl UdpSocket {
    /// Bytes that may wait here.
    pub(super) fn receive_limit(&self) -> usize {
        self.inet.common.rcvbuf.load(Ordering::Relaxed)
    }
}
