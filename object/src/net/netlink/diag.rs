//! NETLINK_SOCK_DIAG: listings of sockets (sock_diag(7)), as `ss` asks for them.
//!
//! Dumps of TCP, UDP and AF_UNIX sockets are answered, and requests for one socket by its addresses or inode number. Filters in
//! byte code are not run: EOPNOTSUPP, and `ss` filters /proc/net itself. With `--net host` inet sockets are the host's:
//! ENOENT, as from a kernel without this listing, and `ss` reads /proc/net again.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use janua_abi::linux::net::{af, ipproto, sock};
use janua_abi::linux::{Errno, Result};

use super::message::{Builder, NLM_F_DUMP, NLM_F_MULTI, Request, u32_at};
use crate::net::addr::UnixName;
use crate::net::inet::InetStack;
use crate::net::inet::tcp::Status;
use crate::net::socket::Socket;
use crate::net::unix::{UnixSocket, UnixSpace};

/// The one message type, and those of the time before it, TCPDIAG_GETSOCK and DCCPDIAG_GETSOCK.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const OLD: core::ops::RangeInclusive<u16> = 18..=19;
/// Bytes of `struct inet_diag_req_v2` and `struct unix_diag_req`.
const INET_REQUEST: usize = 56;
const UNIX_REQUEST: usize = 24;
/// Sockets of one record of a dump.
const BATCH: usize = 64;

/// Answers a request; `send` takes the records of the answer. EINVAL, ENOENT for a family or protocol without listing and for a
/// socket that is not there.
pub fn answer(
    request: &Request<'_>,
    pid: u32,
    inet: Option<&InetStack>,
    unix: &UnixSpace,
    send: &mut dyn FnMut(Builder),
) -> Result<()> {
    if OLD.contains(&request.kind) {
        return Err(Errno::EOPNOTSUPP);
    }
    if request.kind != SOCK_DIAG_BY_FAMILY {
        return Err(Errno::EINVAL);
    }
    let &[family, protocol, ..] = request.payload() else { return Err(Errno::EINVAL) };
    let out = Out { request, pid, dump: request.flags & NLM_F_DUMP == NLM_F_DUMP };
    match u16::from(family) {
        family @ (af::INET | af::INET6) => out.inet(family, u32::from(protocol), inet.ok_or(Errno::ENOENT)?, send),
        af::UNIX => out.unix(unix, send),
        _ => Err(Errno::ENOENT),
    }
}

struct Out<'a> {
    request: &'a Request<'a>,
    pid: u32,
    dump: bool,
}

/// An address in 16 bytes, of which IPv4 uses the first four.
fn octets(addr: SocketAddr, family: u16) -> [u8; 16] {
    let mut out = [0; 16];
    match addr.ip() {
        IpAddr::V6(ip) => out = ip.octets(),
        IpAddr::V4(ip) if family == af::INET6 && !ip.is_unspecified() => out = ip.to_ipv6_mapped().octets(),
        IpAddr::V4(ip) => out[..4].copy_from_slice(&ip.octets()),
    }
    out
}

impl Out<'_> {
    fn states(&self) -> Result<u32> {
        u32_at(self.request.payload(), 4).ok_or(Errno::EINVAL)
    }

    fn begin(&self, builder: &mut Builder) {
        let flags = if self.dump { NLM_F_MULTI } else { 0 };
        builder.begin(SOCK_DIAG_BY_FAMILY, flags, self.request.sequence, self.pid);
    }

    /// Sends what `put` writes of each; then the end of the dump.
    fn all<T>(&self, sockets: &[T], put: impl Fn(&mut Builder, &T), send: &mut dyn FnMut(Builder)) {
        for batch in sockets.chunks(BATCH) {
            let mut builder = Builder::default();
            batch.iter().for_each(|socket| put(&mut builder, socket));
            send(builder);
        }
        if self.dump {
            let mut builder = Builder::default();
            builder.done(self.request.sequence, self.pid);
            send(builder);
        }
    }

    fn inet(&self, family: u16, protocol: u32, stack: &InetStack, send: &mut dyn FnMut(Builder)) -> Result<()> {
        let payload = self.request.payload();
        if payload.len() < INET_REQUEST {
            return Err(Errno::EINVAL);
        }
        let mut sockets: Vec<Status> = match protocol {
            ipproto::TCP => stack.tcp_sockets().iter().map(|socket| socket.status()).collect(),
            ipproto::UDP | ipproto::UDPLITE => {
                stack.udp_sockets(protocol).iter().filter_map(|socket| socket.status()).collect()
            }
            _ => return Err(Errno::ENOENT),
        };
        sockets.retain(|socket| socket.family == family);
        if self.dump {
            const REQ_BYTECODE: u16 = 1;
            if self.request.attributes(INET_REQUEST).any(|(kind, _)| kind == REQ_BYTECODE) {
                return Err(Errno::EOPNOTSUPP);
            }
            let states = self.states()?;
            sockets.retain(|socket| states >> socket.state & 1 != 0);
        } else {
            // The asker's view: its local end first.
            let end = |port: usize, addr: usize| (&payload[port..port + 2], &payload[addr..addr + 16]);
            let (local, remote) = (end(8, 12), end(10, 28));
            let is = |addr: SocketAddr, (port, ip): (&[u8], &[u8])| {
                addr.port().to_be_bytes() == *port && octets(addr, family) == *ip
            };
            sockets.retain(|socket| is(socket.local, local) && is(socket.remote, remote));
            sockets.truncate(1);
            if sockets.is_empty() {
                return Err(Errno::ENOENT);
            }
        }
        self.all(&sockets, |builder, socket| self.put_inet(builder, family, socket), send);
        Ok(())
    }

    /// `struct inet_diag_msg`.
    fn put_inet(&self, builder: &mut Builder, family: u16, socket: &Status) {
        self.begin(builder);
        builder.put(&[family as u8, socket.state, 0, 0]);
        builder.put(&socket.local.port().to_be_bytes());
        builder.put(&socket.remote.port().to_be_bytes());
        builder.put(&octets(socket.local, family));
        builder.put(&octets(socket.remote, family));
        let cookie = [socket.ino as u32, (socket.ino >> 32) as u32];
        for word in [0, cookie[0], cookie[1], 0, socket.queued as u32, 0, socket.uid, socket.ino as u32] {
            builder.put(&word.to_ne_bytes());
        }
        builder.end();
    }

    fn unix(&self, space: &UnixSpace, send: &mut dyn FnMut(Builder)) -> Result<()> {
        let payload = self.request.payload();
        if payload.len() < UNIX_REQUEST {
            return Err(Errno::EINVAL);
        }
        let word = |at| u32_at(payload, at).unwrap_or(0);
        let (ino, show) = (word(8), word(12));
        let mut sockets = space.names.sockets();
        if self.dump {
            let states = self.states()?;
            sockets.retain(|socket| states >> state(socket) & 1 != 0);
        } else {
            if ino == 0 {
                return Err(Errno::EINVAL);
            }
            sockets.retain(|socket| socket.common().ino() as u32 == ino);
            sockets.truncate(1);
            if sockets.is_empty() {
                return Err(Errno::ENOENT);
            }
        }
        self.all(&sockets, |builder, socket| self.put_unix(builder, show, socket), send);
        Ok(())
    }

    /// `struct unix_diag_msg` and the attributes asked for.
    fn put_unix(&self, builder: &mut Builder, show: u32, socket: &UnixSocket) {
        const NAME: (u32, u16) = (1, 0);
        const PEER: (u32, u16) = (4, 2);
        const QUEUES: (u32, u16) = (0x10, 4);
        let common = socket.common();
        let ino = common.ino();
        self.begin(builder);
        builder.put(&[af::UNIX as u8, common.kind as u8, state(socket), 0]);
        for word in [ino as u32, ino as u32, (ino >> 32) as u32] {
            builder.put(&word.to_ne_bytes());
        }
        if show & NAME.0 != 0 {
            match socket.unix_name() {
                UnixName::Unnamed => {}
                UnixName::Path(path) => builder.attribute(NAME.1, &path),
                UnixName::Abstract(name) => builder.attribute(NAME.1, &[b"\0", &name[..]].concat()),
            }
        }
        if show & PEER.0 != 0
            && let Some(peer) = socket.peer_ino()
        {
            builder.word(PEER.1, peer as u32);
        }
        if show & QUEUES.0 != 0 {
            let words = [socket.readable_bytes() as u32, 0].map(u32::to_ne_bytes);
            builder.attribute(QUEUES.1, words.as_flattened());
        }
        builder.end();
    }
}

/// TCP_ESTABLISHED, TCP_LISTEN or TCP_CLOSE, which stand for AF_UNIX too.
fn state(socket: &UnixSocket) -> u8 {
    match socket.status() {
        (true, _) => 10,
        (_, true) if socket.common().kind != sock::DGRAM => 1,
        _ => 7,
    }
}
