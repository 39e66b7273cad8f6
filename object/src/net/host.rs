//! Sockets of the host (`--net host`).
//!
//! A host socket is always non-blocking; waiting is the guest call's, woken by the platform's watch on the descriptor. Data
//! goes through a buffer of the kernel's. Options whose value holds addresses of memory, or programs, are not passed on.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::net::{IfConf, IfReq, ioctl, msg, so, sock, sol, tcp};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::{EVENTS, PollTable};
use janua_port::host::{HostReady, SocketCall};
use janua_port::{HostFd, HostSockets};
use janua_rt::WaitQueue;
use zerocopy::IntoBytes;

use crate::caller::Caller;
use crate::file::Events;
use crate::net::addr::{STORAGE, SockAddr};
use crate::net::common::Common;
use crate::net::control::{self, Control, Words};
use crate::net::iface;
use crate::net::rights;
use crate::net::socket::{NetCaller, Outgoing, Received, Socket};

/// Most bytes moved by one host call.
const PIECE: usize = 64 * 1024;
/// Room for control messages of a receive.
const CONTROL: usize = 512;

struct Ready(WaitQueue);

impl HostReady for Ready {
    fn ready(&self, events: u32) {
        self.0.wake(events);
    }
}

/// A socket of the host.
pub struct HostSocket {
    common: Common,
    host: &'static dyn HostSockets,
    fd: HostFd,
    released: AtomicBool,
    listening: AtomicBool,
}

/// Flags of a send that change what is sent or when, and nothing else. Above all not MSG_ZEROCOPY: the host would send the
/// kernel's own pages, with what they hold by then.
const SEND_FLAGS: u32 = msg::OOB | msg::DONTROUTE | msg::EOR | msg::CONFIRM | msg::MORE | msg::FASTOPEN;
/// Flags of a receive whose result is bytes and control messages. Not MSG_WAITALL: waiting is ours.
const RECEIVE_FLAGS: u32 = msg::OOB | msg::PEEK | msg::TRUNC | msg::ERRQUEUE;

/// Whether an option is passed on: one whose value is plain data, and after which the host neither keeps memory of the
/// kernel's, nor writes to any later, nor hands out descriptors. What is not listed is not passed on, new options of the
/// host's among it.
fn is_plain(level: u32, name: u32) -> bool {
    match level {
        // Not filters (26, 50 to 52: programs at an address), SO_ZEROCOPY (60), descriptors of processes (76, 77), memory of devices (78 to 80).
        sol::SOCKET => matches!(name, 1..=25 | 27..=49 | 53 | 55..=57 | 59 | 61..=75),
        // Up to IP_RECVERR_RFC4884, and from IP_MULTICAST_IF to IP_PROTOCOL; between and above are routing's and netfilter's.
        sol::IP => matches!(name, 1..=26 | 32..=52),
        // Up to IPV6_HDRINCL, memberships, and from IPV6_RECVPKTINFO to IPV6_FREEBIND but for netfilter's.
        sol::IPV6 => matches!(name, 1..=11 | 16..=36 | 42..=48 | 49..=63 | 66..=78),
        // Not TCP_ULP (31), which changes the socket's kind, nor TCP_ZEROCOPY_RECEIVE (35), which maps memory.
        sol::TCP => matches!(name, 1..=18 | 20..=30 | 32..=34 | tcp::INQ | 37),
        // UDP_CORK, UDP_SEGMENT, UDP_GRO.
        sol::UDP => matches!(name, 1 | 103 | 104),
        // Not the rings (6, 7), which were memory shared with the host.
        sol::NETLINK => matches!(name, 1..=5 | 8..=12),
        _ => false,
    }
}

/// The error for an option that is not passed on. Programs know that a socket may be without SO_ZEROCOPY.
fn not_passed(level: u32, name: u32) -> Errno {
    if (level, name) == (sol::SOCKET, so::ZEROCOPY) { Errno::EOPNOTSUPP } else { Errno::ENOPROTOOPT }
}

impl HostSocket {
    /// Makes a host socket. Errors are the host's.
    pub fn new(host: &'static dyn HostSockets, family: u16, kind: u32, protocol: u32) -> Result<Arc<HostSocket>> {
        let flags = sock::NONBLOCK | sock::CLOEXEC;
        let call = SocketCall::Socket { domain: family.into(), kind: kind | flags, protocol };
        let fd = host_fd(host.socket_call(call)?)?;
        HostSocket::adopt(host, fd, family, kind, protocol)
    }

    fn adopt(host: &'static dyn HostSockets, fd: HostFd, family: u16, kind: u32, protocol: u32) -> Result<Arc<HostSocket>> {
        let common = Common::new(family, kind, protocol);
        match host.watch(fd, Arc::new(Ready(common.wait.clone()))) {
            Ok(()) => Ok(Arc::new(HostSocket {
                common,
                host,
                fd,
                released: AtomicBool::new(false),
                listening: AtomicBool::new(false),
            })),
            Err(errno) => {
                host.close(fd);
                Err(errno)
            }
        }
    }

    fn address(&self, ask: impl FnOnce(HostFd, &mut [u8], &mut usize) -> Result<usize>) -> Result<SockAddr> {
        let mut bytes = [0; STORAGE];
        let mut len = STORAGE;
        ask(self.fd, &mut bytes, &mut len)?;
        SockAddr::decode(&bytes[..len.min(STORAGE)])
    }
}

fn host_fd(number: usize) -> Result<HostFd> {
    i32::try_from(number).map(HostFd).map_err(|_| Errno::EBADF)
}

impl HostSocket {
    /// Whether more bytes than that could be received now. Errors of the receive.
    fn holds_more_than(&self, len: usize, flags: u32) -> Result<bool> {
        let mut data = vec![0; len + 1];
        let got = self.host.socket_call(SocketCall::Recv {
            fd: self.fd,
            data: &mut data,
            flags: flags & RECEIVE_FLAGS | msg::DONTWAIT | msg::PEEK,
            addr: &mut [],
            addr_len: &mut 0,
            control: &mut [],
            control_len: &mut 0,
            flags_out: &mut 0,
        })?;
        EVENTS.advance();
        Ok(got > len)
    }
}

impl Socket for HostSocket {
    fn common(&self) -> &Common {
        &self.common
    }

    fn bind(&self, caller: &dyn NetCaller, addr: &SockAddr) -> Result<()> {
        rights::bind(&caller.cred(), addr)?;
        let addr = addr.encode();
        self.host.socket_call(SocketCall::Bind { fd: self.fd, addr: addr.as_bytes() }).map(drop)
    }

    fn listen(&self, _caller: &dyn NetCaller, backlog: u32) -> Result<()> {
        self.host.socket_call(SocketCall::Listen { fd: self.fd, backlog })?;
        self.listening.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn accept(&self) -> Result<Arc<dyn Socket>> {
        let mut bytes = [0; STORAGE];
        let mut len = STORAGE;
        let call = SocketCall::Accept { fd: self.fd, addr: &mut bytes, addr_len: &mut len };
        let fd = host_fd(self.host.socket_call(call)?)?;
        let socket = HostSocket::adopt(self.host, fd, self.common.family, self.common.kind, self.common.protocol)?;
        socket.common.inherit(&self.common);
        Ok(socket)
    }

    fn connect(&self, _caller: &dyn NetCaller, addr: &SockAddr, _nonblocking: bool) -> Result<()> {
        let addr = addr.encode();
        self.host.socket_call(SocketCall::Connect { fd: self.fd, addr: addr.as_bytes() }).map(drop)
    }

    fn name(&self) -> Result<SockAddr> {
        self.address(|fd, addr, addr_len| self.host.socket_call(SocketCall::Getsockname { fd, addr, addr_len }))
    }

    fn peer_name(&self) -> Result<SockAddr> {
        self.address(|fd, addr, addr_len| self.host.socket_call(SocketCall::Getpeername { fd, addr, addr_len }))
    }

    fn send(
        &self,
        _caller: &dyn Caller,
        names: Option<&dyn NetCaller>,
        buf: &mut WriteBuf<'_>,
        message: &Outgoing,
    ) -> Result<usize> {
        if !message.ancillary.is_empty() {
            rights::send(names.map(|names| names.cred()).as_deref(), &message.ancillary)?;
        }
        let len = buf.left();
        if self.common.is_records() && len > PIECE {
            return Err(Errno::EMSGSIZE);
        }
        let addr = message.to.as_ref().map(SockAddr::encode);
        let mut control = Control::new(usize::MAX, Words::Wide);
        for one in &message.ancillary {
            control.add(one.level, one.kind, &one.data);
        }
        let mut data = vec![0; len.min(PIECE)];
        // Looked at, and taken only as far as the host has taken it.
        let got = buf.clone().get(&mut data)?;
        if self.common.is_records() && got < len {
            return Err(Errno::EFAULT);
        }
        let sent = self.host.socket_call(SocketCall::Send {
            fd: self.fd,
            data: &data[..got],
            flags: message.flags & SEND_FLAGS | msg::DONTWAIT | msg::NOSIGNAL,
            addr: addr.as_ref().map_or(&[], |addr| addr.as_bytes()),
            control: control.as_bytes(),
        })?;
        buf.skip(sent);
        Ok(sent)
    }

    fn receive(&self, buf: &mut ReadBuf<'_>, flags: u32, _want_from: bool) -> Result<Received> {
        let want = buf.left().min(PIECE);
        // What a stream's host has handed out it does not hand out again. Should there be more than the program's memory takes, it is only
        // looked at: on Linux too a segment goes as a whole or not at all.
        let takes = !self.common.is_records() && flags & (msg::PEEK | msg::TRUNC | msg::ERRQUEUE) == 0;
        let room = if takes { buf.storable_together(want) } else { want };
        if room < want && self.holds_more_than(room, flags)? {
            return Err(Errno::EFAULT);
        }
        let mut data = vec![0; room];
        let mut addr = [0; STORAGE];
        let mut addr_len = STORAGE;
        let mut bytes = [0; CONTROL];
        let mut control_len = CONTROL;
        let mut flags_out = 0;
        // MSG_TRUNC asks for the real length, which is wanted for records in any case.
        let truncate = if self.common.is_records() { msg::TRUNC } else { flags & msg::TRUNC };
        let full = self.host.socket_call(SocketCall::Recv {
            fd: self.fd,
            data: &mut data,
            flags: flags & RECEIVE_FLAGS | msg::DONTWAIT | truncate,
            addr: &mut addr,
            addr_len: &mut addr_len,
            control: &mut bytes,
            control_len: &mut control_len,
            flags_out: &mut flags_out,
        })?;
        EVENTS.advance();
        let discarded = !self.common.is_records() && truncate != 0;
        let data = &data[..full.min(data.len())];
        let len = match (discarded, self.common.is_records()) {
            (true, _) => full,
            (false, true) => buf.put_whole(data)?,
            (false, false) => buf.put(data)?,
        };
        Ok(Received {
            len,
            full,
            from: SockAddr::decode(&addr[..addr_len.min(STORAGE)]).ok(),
            flags: flags_out & (msg::TRUNC | msg::CTRUNC | msg::OOB | msg::EOR | msg::ERRQUEUE),
            ancillary: control::parse(&bytes[..control_len.min(CONTROL)], Words::Wide).unwrap_or_default(),
            ..Received::default()
        })
    }

    fn shutdown(&self, directions: u32) -> Result<()> {
        // 1, 2, 3 are SHUT_RD, SHUT_WR and SHUT_RDWR plus one.
        let how = directions.wrapping_sub(1);
        self.host.socket_call(SocketCall::Shutdown { fd: self.fd, how })?;
        self.common.wait.wake_all();
        Ok(())
    }

    fn poll(&self, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.common.wait);
        }
        let all = Events::IN | Events::PRI | Events::OUT | Events::RDNORM | Events::WRNORM | Events::RDHUP;
        Events::from_bits_truncate(self.host.poll(self.fd, all.bits()))
    }

    fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    fn set_option(&self, caller: &dyn NetCaller, level: u32, name: u32, value: &[u8]) -> Result<()> {
        let own = matches!(name, so::RCVTIMEO | so::SNDTIMEO | so::RCVTIMEO_NEW | so::SNDTIMEO_NEW);
        if level == sol::SOCKET && own {
            return self.common.set_option(&caller.cred(), name, value);
        }
        if !is_plain(level, name) {
            return Err(not_passed(level, name));
        }
        let bound = || self.get_option(caller, sol::SOCKET, so::BINDTODEVICE, 16).is_ok_and(|name| !name.is_empty());
        rights::set_option(&caller.cred(), level, name, value, bound)?;
        self.host.socket_call(SocketCall::Setsockopt { fd: self.fd, level, name, value }).map(drop)
    }

    fn get_option(&self, _caller: &dyn NetCaller, level: u32, name: u32, room: usize) -> Result<Vec<u8>> {
        let own = matches!(name, so::RCVTIMEO | so::SNDTIMEO | so::RCVTIMEO_NEW | so::SNDTIMEO_NEW);
        if level == sol::SOCKET && own {
            return self.common.get_option(name, false, room);
        }
        if !is_plain(level, name) {
            return Err(not_passed(level, name));
        }
        let mut value = vec![0; room.min(4096)];
        let mut value_len = value.len();
        self.host.socket_call(SocketCall::Getsockopt {
            fd: self.fd,
            level,
            name,
            value: &mut value,
            value_len: &mut value_len,
        })?;
        value.truncate(value_len);
        Ok(value)
    }

    fn readable_bytes(&self) -> usize {
        let mut count = 0i32;
        match self.host.ioctl(self.fd, ioctl::FIONREAD, count.as_mut_bytes()) {
            Ok(_) => usize::try_from(count).unwrap_or(0),
            Err(_) => 0,
        }
    }

    fn unsent_bytes(&self) -> usize {
        let mut count = 0i32;
        match self.host.ioctl(self.fd, ioctl::SIOCOUTQ, count.as_mut_bytes()) {
            Ok(_) => usize::try_from(count).unwrap_or(0),
            Err(_) => 0,
        }
    }

    fn ioctl(&self, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        match request {
            ioctl::SIOCGIFCONF => {
                let conf = iface::read_conf(caller, arg)?;
                // The host's entries are ours; to 32-bit programs each is cut.
                let (wide, size) = (size_of::<IfReq>(), iface::request_size(caller));
                let room = usize::try_from(conf.len).map_err(|_| Errno::EINVAL)?.min(PIECE) / size * wide;
                let mut list = vec![0u8; if conf.buf == 0 { 0 } else { room }];
                let target = usize::try_from(conf.buf).map_err(|_| Errno::EFAULT)?;
                let buf = if target == 0 { 0 } else { list.as_mut_ptr().addr() as u64 };
                let mut own = IfConf { len: room as i32, pad: 0, buf };
                self.host.ioctl(self.fd, request, own.as_mut_bytes())?;
                let got = usize::try_from(own.len).unwrap_or(0);
                if target != 0 {
                    let entries: Vec<u8> =
                        list[..got.min(list.len())].chunks(wide).flat_map(|entry| &entry[..size]).copied().collect();
                    caller.user().copy_out(target, &entries).map_err(|_| Errno::EFAULT)?;
                }
                iface::write_conf_len(caller, arg, (got / wide * size) as i32)?;
                Ok(0)
            }
            ioctl::SIOCGIFNAME
            | ioctl::SIOCGIFFLAGS
            | ioctl::SIOCGIFADDR
            | ioctl::SIOCGIFDSTADDR
            | ioctl::SIOCGIFBRDADDR
            | ioctl::SIOCGIFNETMASK
            | ioctl::SIOCGIFMETRIC
            | ioctl::SIOCGIFMTU
            | ioctl::SIOCGIFHWADDR
            | ioctl::SIOCGIFINDEX
            | ioctl::SIOCGIFTXQLEN => {
                let mut req = iface::read_request(caller, arg)?;
                self.host.ioctl(self.fd, request, req.as_mut_bytes())?;
                iface::write_request(caller, arg, &req)?;
                Ok(0)
            }
            ioctl::SIOCATMARK => {
                let mut mark = 0i32;
                self.host.ioctl(self.fd, request, mark.as_mut_bytes())?;
                UserPtr::<i32>::new(arg).write(caller.user(), &mark)?;
                Ok(0)
            }
            _ => Err(Errno::ENOTTY),
        }
    }

    fn release(&self) {
        if !self.released.swap(true, Ordering::SeqCst) {
            self.host.unwatch(self.fd);
            self.host.close(self.fd);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for HostSocket {
    fn drop(&mut self) {
        // A connection that was accepted and then found no descriptor was never a file.
        self.release();
    }
}
