//! TCP and UDP.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use janua_abi::linux::net::{af, sock};
use janua_abi::linux::{Errno, Result as LinuxResult};
use janua_abi::pal::{Error, Kind};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_object::file::flags::O_RDWR;
use janua_object::net::addr::SockAddr;
use janua_object::net::socket::Outgoing;
use janua_object::net::{Socket, socket as object};
use janua_object::{Events, OpenFile};
use janua_personality_linux::Thread;
use janua_personality_linux::thread::ThreadExt;

use super::file::How;
use crate::answer::Result;
use crate::state::{Rules, State};
use crate::uri::Uri;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 128;
/// MSG_NOSIGNAL.
const NO_SIGNAL: u32 = 0x4000;

/// What a socket is.
pub fn kind(socket: &dyn Socket) -> Kind {
    match (socket.common().is_records(), socket.is_listening(), socket.peer_name().is_ok()) {
        (false, true, _) => Kind::TcpServer,
        (false, false, _) => Kind::Tcp,
        (true, _, true) => Kind::Udp,
        (true, _, false) => Kind::UdpServer,
    }
}

fn sockets(addr: SocketAddr) -> SockAddr {
    SockAddr::Inet(addr)
}

/// An address as the program sees it: ports of the loopback are moved back.
fn inside(rules: &Rules, addr: SocketAddr) -> SocketAddr {
    let mut addr = addr;
    if is_moved(addr) {
        let by = rules.iter().fold(0u16, |sum, manifest| sum.wrapping_add(manifest.rebase));
        addr.set_port(addr.port().wrapping_sub(by));
    }
    addr
}

/// Whether manifests may move a port: of the loopback, by whichever family.
fn is_moved(addr: SocketAddr) -> bool {
    addr.ip().to_canonical().is_loopback() && addr.port() != 0
}

/// Where a socket is bound and whom it talks to, as they are outside. Each manifest, from the innermost on, judges what those within it made of the
/// addresses, and moves their ports in turn: what comes to the outermost is what there will be. DENIED where one has no rule for such a socket, and for a
/// port that is moved beyond the last.
fn outside(
    rules: &Rules,
    bind: Option<SocketAddr>,
    peer: Option<SocketAddr>,
) -> Result<(Option<SocketAddr>, Option<SocketAddr>)> {
    let (mut bind, mut peer) = (bind, peer);
    for manifest in rules.iter().rev() {
        let holds = |rule: &janua_personality_outside::pal::manifest::NetRule| {
            bind.is_none_or(|addr| rule.bind.hold(addr)) && peer.is_none_or(|addr| rule.peer.hold(addr))
        };
        if !manifest.net.iter().any(holds) {
            return Err(Error::Denied.into());
        }
        for addr in [&mut bind, &mut peer].into_iter().flatten().filter(|addr| is_moved(**addr)) {
            addr.set_port(addr.port().checked_add(manifest.rebase).ok_or(Error::Denied)?);
        }
    }
    Ok((bind, peer))
}

fn create(thread: &Thread, addr: SocketAddr, kind: u32) -> Result<Arc<dyn Socket>> {
    let family = if addr.is_ipv4() { af::INET } else { af::INET6 };
    Ok(thread.kernel.net.create(&thread.caller(), family.into(), kind, 0)?)
}

fn described(thread: &Thread, socket: Arc<dyn Socket>, how: How) -> Arc<OpenFile> {
    OpenFile::new(thread.kernel.net.file(&thread.caller(), socket), O_RDWR | how.status(), None)
}

/// Opens what a URI of a socket names.
pub async fn open(thread: &Thread, state: &State, uri: &Uri, how: How) -> Result<Arc<OpenFile>> {
    let rules = state.rules();
    let (bind, peer, kind) = match uri {
        Uri::TcpServer(addr) => (Some(*addr), None, sock::STREAM),
        Uri::UdpServer(addr) => (Some(*addr), None, sock::DGRAM),
        Uri::Tcp(bind, peer) => (*bind, Some(*peer), sock::STREAM),
        Uri::Udp(bind, peer) => (*bind, Some(*peer), sock::DGRAM),
        Uri::UdpAny => (None, None, sock::DGRAM),
        _ => return Err(Error::Invalid.into()),
    };
    let (bind, peer) = outside(&rules, bind, peer)?;
    let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let socket = create(thread, bind.or(peer).unwrap_or(any), kind)?;
    // Its description releases it, whatever happens.
    let file = described(thread, socket.clone(), how);
    if let Some(bind) = bind {
        socket.bind(&thread.caller(), &sockets(bind))?;
    }
    if matches!(uri, Uri::TcpServer(_)) {
        socket.listen(&thread.caller(), BACKLOG)?;
    }
    if let Some(peer) = peer {
        connect(thread, &*socket, &sockets(peer)).await?;
    }
    Ok(file)
}

/// Connects, and waits until that is over: a stream is open or it is not.
async fn connect(thread: &Thread, socket: &dyn Socket, addr: &SockAddr) -> Result<()> {
    let mut started = false;
    let mut step = || match socket.connect(&thread.caller(), addr, false) {
        Err(Errno::EALREADY | Errno::EAGAIN | Errno::EINPROGRESS) => {
            started = true;
            None
        }
        Err(Errno::EISCONN) if started => Some(Ok(())),
        other => Some(other),
    };
    if let Some(result) = step() {
        return Ok(result?);
    }
    let ready = |table: &mut PollTable| {
        socket.poll(Some(table));
    };
    Ok(thread.wait_until(None, Events::WRITABLE.bits(), ready, step).await??)
}

/// What `step` comes to, which is tried again whenever the socket may have become ready. TRYAGAIN where the stream is not to wait.
async fn when_ready<T: Send>(
    thread: &Thread,
    (file, socket): (&OpenFile, &dyn Socket),
    events: Events,
    mut step: impl FnMut() -> LinuxResult<T> + Send,
) -> Result<T> {
    let mut step = || match step() {
        Err(Errno::EAGAIN) => None,
        other => Some(other),
    };
    if let Some(done) = step() {
        return Ok(done?);
    }
    if file.nonblocking() {
        return Err(Error::TryAgain.into());
    }
    let ready = |table: &mut PollTable| {
        socket.poll(Some(table));
    };
    Ok(thread.wait_until(None, events.bits(), ready, step).await??)
}

/// The next connection of a server.
pub async fn accept(thread: &Thread, file: &OpenFile) -> Result<Arc<OpenFile>> {
    let socket = &*object::of_file(file)?.socket;
    let connection = when_ready(thread, (file, socket), Events::READABLE, || socket.accept()).await?;
    let how = How { access: 2, share: 0, create: 0, options: 0 };
    Ok(described(thread, connection, how))
}

/// The next datagram, and who has sent it. `flags`: 0, or [`PEEK`](janua_abi::linux::net::msg::PEEK).
pub async fn receive(
    thread: &Thread,
    file: &OpenFile,
    buf: &mut ReadBuf<'_>,
    flags: u32,
) -> Result<(usize, Option<SocketAddr>)> {
    let socket = &*object::of_file(file)?.socket;
    let received = when_ready(thread, (file, socket), Events::READABLE, || socket.receive(buf, flags, true)).await?;
    let from = match received.from {
        Some(SockAddr::Inet(from)) => Some(from),
        _ => None,
    };
    Ok((received.len, from))
}

/// Sends a datagram to an address, or to whom the socket is connected.
pub async fn send(
    thread: &Thread,
    state: &State,
    file: &OpenFile,
    buf: &mut WriteBuf<'_>,
    to: Option<SocketAddr>,
) -> Result<usize> {
    let rules = state.rules();
    let socket = &*object::of_file(file)?.socket;
    let to = match to {
        Some(to) => {
            let bind = match socket.name() {
                Ok(SockAddr::Inet(name)) if name.port() != 0 => Some(inside(&rules, name)),
                _ => None,
            };
            outside(&rules, bind, Some(to))?.1.map(sockets)
        }
        None => None,
    };
    let out = Outgoing { flags: NO_SIGNAL, to, ..Outgoing::default() };
    let step = || socket.send(&thread.caller(), Some(&thread.caller()), buf, &out);
    when_ready(thread, (file, socket), Events::WRITABLE, step).await
}

/// The URI of a sender.
pub fn source(state: &State, from: SocketAddr) -> String {
    format!("udp:{}", inside(&state.rules(), from))
}

/// The URI of a socket: of a server where it is bound, of others that and whom they are connected to.
pub fn name(state: &State, socket: &dyn Socket) -> String {
    let rules = state.rules();
    let shown = |name: janua_abi::linux::Result<SockAddr>| match name {
        Ok(SockAddr::Inet(addr)) => Some(inside(&rules, addr)),
        _ => None,
    };
    let (own, peer) = (shown(socket.name()), shown(socket.peer_name()));
    let scheme = match kind(socket) {
        Kind::TcpServer => "tcp.srv:",
        Kind::Tcp => "tcp:",
        Kind::Udp => "udp:",
        _ => "udp.srv:",
    };
    match (own, peer) {
        (Some(own), Some(peer)) => format!("{scheme}{own}:{peer}"),
        (None, Some(peer)) => format!("{scheme}{peer}"),
        (Some(own), None) => format!("{scheme}{own}"),
        (None, None) => String::from(scheme),
    }
}
