//! AF_NETLINK sockets (netlink(7)): requests to the kernel, answered while they are sent.
//!
//! NETLINK_ROUTE and NETLINK_SOCK_DIAG are answered. NETLINK_KOBJECT_UEVENT sockets exist as well, since their listeners only wait for
//! devices to come, and none ever does.

pub mod diag;
pub mod message;
pub mod route;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicU32, Ordering};

use hashbrown::HashSet;
use janua_abi::linux::net::{Ucred, af, msg, so, sol};
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_rt::Mutex;

use crate::caller::Caller;
use crate::file::Events;
use crate::net::addr::SockAddr;
use crate::net::common::{Common, cap, int};
use crate::net::filter::Packet;
use crate::net::inet::InetStack;
use crate::net::records::{Record, RecordQueue};
use crate::net::socket::{NetCaller, Outgoing, Received, Socket};
use crate::net::unix::UnixSpace;
use message::{Builder, NLM_F_ACK, NLM_F_REQUEST, NLMSG_MIN_TYPE, Request};

/// Protocols.
pub const ROUTE: u32 = 0;
pub const SOCK_DIAG: u32 = 4;
pub const KOBJECT_UEVENT: u32 = 15;

/// Most bytes of one request.
const MOST: usize = 64 * 1024;

/// Port ids in use, by protocol, and what there is to be asked about.
pub struct NetlinkSpace {
    /// `None` when inet sockets are the host's.
    inet: Option<Arc<InetStack>>,
    unix: Arc<UnixSpace>,
    ports: Mutex<HashSet<(u32, u32)>>,
    next: AtomicU32,
}

impl NetlinkSpace {
    pub fn new(inet: Option<Arc<InetStack>>, unix: Arc<UnixSpace>) -> Arc<NetlinkSpace> {
        Arc::new(NetlinkSpace { inet, unix, ports: Mutex::default(), next: AtomicU32::new(0) })
    }

    fn take(&self, protocol: u32, pid: u32) -> bool {
        self.ports.lock().insert((protocol, pid))
    }

    /// The process' id for its first socket, then numbers no process has.
    fn choose(&self, protocol: u32, pid: u32) -> u32 {
        if self.take(protocol, pid) {
            return pid;
        }
        loop {
            let number = u32::MAX - 4096 - self.next.fetch_add(1, Ordering::Relaxed) % 0x4000_0000;
            if self.take(protocol, number) {
                return number;
            }
        }
    }
}

/// A netlink socket.
pub struct NetlinkSocket {
    common: Common,
    space: Arc<NetlinkSpace>,
    queue: RecordQueue<()>,
    /// Port id (0: none yet) and multicast groups.
    port: AtomicU32,
    groups: AtomicU32,
    /// Options of level SOL_NETLINK, one bit each.
    options: AtomicU32,
    /// Who made it: the port id where a write names no caller.
    maker: u32,
}

/// Options of level SOL_NETLINK that are switches.
const CAP_ACK: u32 = 10;
const SWITCHES: u32 = 1 << 3 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << CAP_ACK | 1 << 11 | 1 << 12;
const ADD_MEMBERSHIP: u32 = 1;
const DROP_MEMBERSHIP: u32 = 2;

impl NetlinkSocket {
    /// EPROTONOSUPPORT for a protocol the kernel has nobody to answer for.
    pub fn new(space: &Arc<NetlinkSpace>, kind: u32, protocol: u32, caller: &dyn NetCaller) -> Result<Arc<NetlinkSocket>> {
        if !matches!(protocol, ROUTE | SOCK_DIAG | KOBJECT_UEVENT) {
            return Err(Errno::EPROTONOSUPPORT);
        }
        Ok(Arc::new(NetlinkSocket {
            common: Common::new(af::NETLINK, kind, protocol),
            space: space.clone(),
            queue: RecordQueue::default(),
            port: AtomicU32::new(0),
            groups: AtomicU32::new(0),
            options: AtomicU32::new(0),
            maker: caller.pid(),
        }))
    }

    fn autobind(&self) -> u32 {
        let port = self.port.load(Ordering::SeqCst);
        if port != 0 {
            return port;
        }
        let chosen = self.space.choose(self.common.protocol, self.maker);
        match self.port.compare_exchange(0, chosen, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => chosen,
            Err(other) => {
                self.space.ports.lock().remove(&(self.common.protocol, chosen));
                other
            }
        }
    }

    fn answer_all(&self, caller: &dyn Caller, mut buffer: &[u8], pid: u32) {
        let capped = self.options.load(Ordering::Relaxed) & (1 << CAP_ACK) != 0;
        while let Some((request, rest)) = Request::first(buffer) {
            buffer = rest;
            if request.flags & NLM_F_REQUEST == 0 {
                continue;
            }
            let mut out = Builder::default();
            let result = match request.kind {
                // Control messages mean nothing to the kernel, and nothing is all they get.
                ..NLMSG_MIN_TYPE => Ok(()),
                _ => match self.common.protocol {
                    ROUTE => route::answer(&request, pid, &caller.cred(), &mut out),
                    SOCK_DIAG => {
                        let space = &self.space;
                        diag::answer(&request, pid, space.inet.as_deref(), &space.unix, &mut |record| self.push(record))
                    }
                    _ => Err(Errno::EOPNOTSUPP),
                },
            };
            if let Err(errno) = result {
                let mut refusal = Builder::default();
                refusal.answer(&request, pid, Some(errno), capped);
                self.push(refusal);
                continue;
            }
            self.push(out);
            if request.flags & NLM_F_ACK != 0 && request.flags & message::NLM_F_DUMP != message::NLM_F_DUMP {
                let mut acknowledgement = Builder::default();
                acknowledgement.answer(&request, pid, None, capped);
                self.push(acknowledgement);
            }
        }
    }

    fn push(&self, messages: Builder) {
        if !messages.is_empty() {
            self.deliver(&messages.finish());
        }
    }

    /// Gives the socket something to receive, from the kernel.
    pub fn deliver(&self, bytes: &[u8]) {
        let keep = self
            .common
            .filter
            .get()
            .map_or(bytes.len(), |filter| filter.run(&Packet { data: bytes, ..Packet::default() }) as usize);
        if keep == 0 && !bytes.is_empty() {
            return;
        }
        let data: Box<[u8]> = bytes[..keep.min(bytes.len())].into();
        if self.queue.bytes() + data.len() > self.common.rcvbuf.load(Ordering::Relaxed) {
            self.common.set_error(Errno::ENOBUFS);
            self.common.wait.wake_all();
        } else if self.queue.push(Record::new(data, ()), usize::MAX).is_ok() {
            self.common.wake_readers();
        }
    }
}

impl Socket for NetlinkSocket {
    fn common(&self) -> &Common {
        &self.common
    }

    fn bind(&self, caller: &dyn NetCaller, addr: &SockAddr) -> Result<()> {
        let SockAddr::Netlink { pid, groups } = *addr else { return Err(Errno::EINVAL) };
        if groups != 0 && self.common.protocol != ROUTE && !caller.cred().capable(cap::NET_ADMIN) {
            // Everybody may listen to routes and devices; the latter only with a device manager, and there is none here.
            if self.common.protocol != KOBJECT_UEVENT {
                return Err(Errno::EPERM);
            }
        }
        let port = self.port.load(Ordering::SeqCst);
        if port != 0 {
            if pid != 0 && pid != port {
                return Err(Errno::EINVAL);
            }
        } else if pid == 0 {
            self.autobind();
        } else {
            if !self.space.take(self.common.protocol, pid) {
                return Err(Errno::EADDRINUSE);
            }
            self.port.store(pid, Ordering::SeqCst);
        }
        self.groups.store(groups, Ordering::Relaxed);
        Ok(())
    }

    fn connect(&self, _caller: &dyn NetCaller, addr: &SockAddr, _nonblocking: bool) -> Result<()> {
        match addr {
            SockAddr::Unspec(_) => Ok(()),
            // The kernel is what every socket is connected to.
            SockAddr::Netlink { pid: 0, groups: 0 } => {
                self.autobind();
                Ok(())
            }
            SockAddr::Netlink { .. } => Err(Errno::EPERM),
            _ => Err(Errno::EINVAL),
        }
    }

    fn name(&self) -> Result<SockAddr> {
        Ok(SockAddr::Netlink { pid: self.port.load(Ordering::SeqCst), groups: self.groups.load(Ordering::Relaxed) })
    }

    fn peer_name(&self) -> Result<SockAddr> {
        Ok(SockAddr::Netlink { pid: 0, groups: 0 })
    }

    fn send(
        &self,
        caller: &dyn Caller,
        _names: Option<&dyn NetCaller>,
        buf: &mut WriteBuf<'_>,
        message: &Outgoing,
    ) -> Result<usize> {
        if message.flags & msg::OOB != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        match message.to {
            None | Some(SockAddr::Netlink { pid: 0, groups: 0 }) => {}
            Some(SockAddr::Netlink { groups: 0, .. }) => return Err(Errno::ECONNREFUSED),
            Some(SockAddr::Netlink { .. }) => return Err(Errno::EPERM),
            Some(_) => return Err(Errno::EINVAL),
        }
        let len = buf.left();
        if len > MOST {
            return Err(Errno::EMSGSIZE);
        }
        let mut request = vec![0; len];
        if buf.get(&mut request)? < len {
            return Err(Errno::EFAULT);
        }
        let pid = self.autobind();
        self.answer_all(caller, &request, pid);
        Ok(len)
    }

    fn receive(&self, buf: &mut ReadBuf<'_>, flags: u32, _want_from: bool) -> Result<Received> {
        if flags & msg::OOB != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        self.common.take_error()?;
        let describe = |record: &Record<()>, len: usize| Received {
            len,
            full: record.data.len(),
            from: Some(SockAddr::Netlink { pid: 0, groups: 0 }),
            flags: if record.data.len() > len { msg::TRUNC } else { 0 },
            cred: self.common.flag(so::PASSCRED).then(Ucred::default),
            ..Received::default()
        };
        if flags & msg::PEEK != 0 {
            let peeked = self.queue.peek(None, |record, _| buf.put_whole(&record.data).map(|len| describe(record, len)));
            return peeked.unwrap_or(Err(Errno::EAGAIN));
        }
        let record = self.queue.pop().ok_or(Errno::EAGAIN)?;
        let len = buf.put_whole(&record.data)?;
        Ok(describe(&record, len))
    }

    fn shutdown(&self, _directions: u32) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    fn poll(&self, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.common.wait);
        }
        let mut events = Events::OUT | Events::WRNORM | Events::WRBAND;
        if !self.queue.is_empty() {
            events |= Events::IN | Events::RDNORM;
        }
        if self.common.has_error() {
            events |= Events::ERR;
        }
        events
    }

    fn set_option(&self, caller: &dyn NetCaller, level: u32, name: u32, value: &[u8]) -> Result<()> {
        match (level, name) {
            (sol::SOCKET, _) => self.common.set_option(&caller.cred(), name, value),
            (sol::NETLINK, ADD_MEMBERSHIP | DROP_MEMBERSHIP) => {
                let group = int(value)?;
                // Groups beyond the first 32 exist, but nothing here is ever sent to any.
                if !(1..=64).contains(&group) {
                    return Err(Errno::EINVAL);
                }
                if group <= 32 {
                    let bit = 1 << (group - 1);
                    if name == ADD_MEMBERSHIP {
                        self.groups.fetch_or(bit, Ordering::Relaxed);
                    } else {
                        self.groups.fetch_and(!bit, Ordering::Relaxed);
                    }
                }
                self.autobind();
                Ok(())
            }
            (sol::NETLINK, _) if name < 32 && SWITCHES & (1 << name) != 0 => {
                if int(value)? != 0 {
                    self.options.fetch_or(1 << name, Ordering::Relaxed);
                } else {
                    self.options.fetch_and(!(1 << name), Ordering::Relaxed);
                }
                Ok(())
            }
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    fn get_option(&self, _caller: &dyn NetCaller, level: u32, name: u32, room: usize) -> Result<Vec<u8>> {
        match level {
            sol::SOCKET => self.common.get_option(name, false, room),
            sol::NETLINK if name < 32 && SWITCHES & (1 << name) != 0 => {
                let on = self.options.load(Ordering::Relaxed) & (1 << name) != 0;
                Ok(i32::from(on).to_ne_bytes().to_vec())
            }
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    fn readable_bytes(&self) -> usize {
        self.queue.first_len()
    }

    fn release(&self) {
        let port = self.port.swap(0, Ordering::SeqCst);
        if port != 0 {
            self.space.ports.lock().remove(&(self.common.protocol, port));
        }
        self.queue.clear();
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
