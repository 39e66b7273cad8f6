//! Stream sockets over the loopback: connections as pairs of sockets (tcp(7)).
//!
//! A connected pair holds each other, as AF_UNIX sockets do. What the protocol would do with segments is done at once: data
//! goes into the peer's inbox, a FIN is a mark on the peer, a RST an error. Nothing can be under way once both sides are closed,
//! so all there is of TIME_WAIT is that bind(2) sees it: the port table keeps the port of the side that closed first, when a
//! listener's or asked for. Ports chosen for a connecting socket are free at once.
//!
//! Lock order: a connecting socket's `state`, then its listener's; `peer` locks are leaves and never held together.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::net::{TcpInfo, ioctl, ipproto, so, sock, sol, tcp};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_rt::{Mutex, RwLock, WaitQueue};
use zerocopy::IntoBytes;

use super::ports::{Place, Sharing, TIME_WAIT};
use super::urgent::Mark;
use super::{Inet, InetStack, Reach, counts, loopback_like, reach};
use crate::caller::Caller;
use crate::file::Events;
use crate::net::addr::SockAddr;
use crate::net::common::{Common, int, shut};
use crate::net::inbox::Inbox;
use crate::net::socket::{Ancillary, Held, NetCaller, Outgoing, Received, Socket, memory_info};
use crate::net::stamp::{self, Stamp};
use crate::net::urgent::Urgency;

struct Listener {
    backlog: usize,
    /// Established, to be accepted.
    pending: VecDeque<Arc<TcpSocket>>,
    /// Connections there was no room for, by their turn: they go on as others are accepted.
    waiting: BTreeMap<u64, Weak<TcpSocket>>,
    next_turn: u64,
}

impl Listener {
    fn new(backlog: usize) -> Listener {
        Listener { backlog, pending: VecDeque::new(), waiting: BTreeMap::new(), next_turn: 0 }
    }

    fn is_full(&self) -> bool {
        self.pending.len() > self.backlog
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Listening,
    /// Waits for room in a listener's backlog.
    Connecting,
    /// Established, but a non-blocking connect has not returned that yet.
    Unreported,
    Connected,
    /// Reset by the peer.
    Reset,
}

struct State {
    phase: Phase,
    place: Option<Place>,
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
    sharing: Sharing,
    /// The port of an accepted socket, counted by the port table.
    accepted_on: Option<(u16, bool)>,
    /// The port was chosen by bind(2), not for it.
    explicit: bool,
    listener: Option<Listener>,
    /// The listener that this connection waits at, and its turn there.
    waits: Option<(Weak<TcpSocket>, u64)>,
}

/// A stream socket.
pub struct TcpSocket {
    pub(super) inet: Inet,
    me: Weak<TcpSocket>,
    pub(super) inbox: Inbox<Mark>,
    pub(super) urgent: Urgency,
    pub(super) peer: RwLock<Option<Arc<TcpSocket>>>,
    /// The peer has announced that it sends no more.
    pub(super) finished: AtomicBool,
    pub(super) released: AtomicBool,
    /// This side shut down before the peer did: TIME_WAIT is its own.
    finished_first: AtomicBool,
    /// There is a listener in `state`; read with the port table locked, which is taken with `state` held.
    listening: AtomicBool,
    state: Mutex<State>,
    congestion: Mutex<&'static str>,
    /// TCP_INQ.
    inquires: AtomicBool,
}

impl TcpSocket {
    pub fn new(stack: &Arc<InetStack>, family: u16) -> Arc<TcpSocket> {
        let inet = Inet::new(stack, family, sock::STREAM, ipproto::TCP);
        let id = inet.id;
        let socket = Arc::new_cyclic(|me: &Weak<TcpSocket>| TcpSocket {
            inet,
            me: me.clone(),
            inbox: Inbox::default(),
            urgent: Urgency::default(),
            peer: RwLock::new(None),
            finished: AtomicBool::new(false),
            released: AtomicBool::new(false),
            finished_first: AtomicBool::new(false),
            listening: AtomicBool::new(false),
            state: Mutex::new(State {
                phase: Phase::Idle,
                place: None,
                local: None,
                remote: None,
                sharing: Sharing::default(),
                accepted_on: None,
                explicit: false,
                listener: None,
                waits: None,
            }),
            congestion: Mutex::new("cubic"),
            inquires: AtomicBool::new(false),
        });
        stack.tcp_all.lock().insert(id, socket.me.clone());
        socket
    }

    /// The socket in the port table and /proc/net/tcp: local and remote address, state number, bytes unread, backlog.
    pub fn status(&self) -> Status {
        let state = self.state.lock();
        let none = self.inet.unbound();
        let queued = match &state.listener {
            Some(listener) => listener.pending.len(),
            None => self.inbox.bytes.len(),
        };
        Status {
            local: state.local.unwrap_or(none),
            remote: state.remote.unwrap_or_else(|| match state.local {
                Some(SocketAddr::V4(_)) => SocketAddr::new(core::net::Ipv4Addr::UNSPECIFIED.into(), 0),
                _ => none,
            }),
            state: self.state_number(state.phase),
            queued,
            family: self.inet.common.family,
            uid: state.sharing.uid,
            ino: self.inet.common.ino(),
        }
    }

    fn state_number(&self, phase: Phase) -> u8 {
        let sent_fin = self.inet.common.shut() & shut::SEND != 0;
        match phase {
            Phase::Idle | Phase::Reset => tcp::state::CLOSE,
            Phase::Listening => tcp::state::LISTEN,
            Phase::Connecting => 2,
            Phase::Unreported | Phase::Connected => match (sent_fin, self.finished.load(Ordering::SeqCst)) {
                (false, false) => tcp::state::ESTABLISHED,
                (true, false) => tcp::state::FIN_WAIT2,
                (false, true) => tcp::state::CLOSE_WAIT,
                (true, true) => tcp::state::CLOSE,
            },
        }
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.state.lock().phase == Phase::Connecting
    }

    /// Whether poll(2) counts it as closed.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Idle | Phase::Reset)
    }

    /// For a listener: whether a connection waits.
    pub(super) fn pending(&self) -> Option<bool> {
        if !self.listening.load(Ordering::SeqCst) {
            return None;
        }
        self.state.lock().listener.as_ref().map(|listener| !listener.pending.is_empty())
    }

    /// The peer has reset the connection.
    pub(super) fn reset(&self) {
        let mut state = self.state.lock();
        let errno = match state.phase {
            Phase::Idle | Phase::Listening | Phase::Reset => return,
            Phase::Connecting => Errno::ECONNREFUSED,
            _ if self.state_number(state.phase) == tcp::state::CLOSE_WAIT => Errno::EPIPE,
            _ => Errno::ECONNRESET,
        };
        self.leave_queue(&mut state);
        state.phase = Phase::Reset;
        self.inet.common.set_error(errno);
        self.inet.common.add_shut(shut::BOTH);
        drop(state);
        self.inet.common.wait.wake_all();
    }

    /// Binds to an ephemeral port of an address when not bound yet.
    fn autobind(&self, state: &mut State, uid: u32) -> Result<()> {
        if state.place.is_none() {
            let place = self.inet.any_place();
            let sharing = self.inet.sharing(uid);
            let port = self.inet.stack.tcp.bind_in(
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
            state.local = Some(SocketAddr::new(place.addr, port));
        }
        Ok(())
    }

    /// Back to where the socket was before it connected: a port that was not asked for is given up.
    fn forget_connection(&self, state: &mut State) {
        self.leave_queue(state);
        state.phase = Phase::Idle;
        state.remote = None;
        match (state.place, state.local) {
            (Some(place), Some(local)) if state.explicit => state.local = Some(SocketAddr::new(place.addr, local.port())),
            (Some(_), Some(local)) => {
                self.inet.stack.tcp.unbind(self.inet.id, local.port());
                state.place = None;
                state.local = None;
            }
            _ => {}
        }
    }

    /// Waits at a listener no longer.
    fn leave_queue(&self, state: &mut State) {
        let Some((listener, turn)) = state.waits.take() else { return };
        let Some(listener) = listener.upgrade() else { return };
        let mut other = listener.state.lock();
        // The socket may have become a listener anew meanwhile, with other connections.
        if let Some(queue) = &mut other.listener
            && queue.waiting.get(&turn).is_some_and(|client| client.ptr_eq(&self.me))
        {
            queue.waiting.remove(&turn);
        }
    }

    /// Establishes the connection of `self`, whose state is `state`, to a listener; or queues it there. `None`: refused.
    fn establish(&self, state: &mut State, listener: &Arc<TcpSocket>) -> Option<bool> {
        let (Some(me), Some(local), Some(remote)) = (self.me.upgrade(), state.local, state.remote) else { return None };
        let mut other = listener.state.lock();
        let sharing = other.sharing;
        let queue = other.listener.as_mut()?;
        if queue.is_full() {
            let turn = state.waits.take().map_or(queue.next_turn, |(_, turn)| turn);
            queue.next_turn = queue.next_turn.max(turn + 1);
            queue.waiting.insert(turn, self.me.clone());
            state.waits = Some((listener.me.clone(), turn));
            return Some(false);
        }
        state.waits = None;
        let server = TcpSocket::new(&self.inet.stack, listener.inet.common.family);
        server.inet.common.inherit(&listener.inet.common);
        server.inet.options.inherit(&listener.inet.options);
        *server.congestion.lock() = *listener.congestion.lock();
        server.inquires.store(listener.inquires.load(Ordering::Relaxed), Ordering::Relaxed);
        self.inet.stack.tcp.add_accepted(remote.port(), sharing.reuses());
        *server.peer.write() = Some(me);
        *server.state.lock() = State {
            phase: Phase::Connected,
            place: None,
            local: Some(remote),
            remote: Some(local),
            sharing,
            accepted_on: Some((remote.port(), sharing.reuses())),
            explicit: true,
            listener: None,
            waits: None,
        };
        *self.peer.write() = Some(server.clone());
        queue.pending.push_back(server);
        counts::one(&self.inet.stack.counts.streams.accepted);
        drop(other);
        listener.inet.common.wake_readers();
        Some(true)
    }

    /// Goes on with connections that wait, as long as there are places in the listener's backlog.
    fn admit_waiting(&self) {
        let Some(me) = self.me.upgrade() else { return };
        loop {
            let next = match &mut self.state.lock().listener {
                Some(listener) if !listener.is_full() => listener.waiting.pop_first(),
                _ => None,
            };
            let Some((_, client)) = next else { return };
            // One that was given up takes no place.
            if let Some(client) = client.upgrade() {
                me.admit(&client);
            }
        }
    }

    /// A place in the listener's backlog is free: goes on with a connection that waits for one.
    fn admit(self: &Arc<Self>, client: &Arc<TcpSocket>) {
        let mut state = client.state.lock();
        if state.phase != Phase::Connecting || client.released.load(Ordering::SeqCst) {
            return;
        }
        match client.establish(&mut state, self) {
            Some(true) => state.phase = Phase::Unreported,
            Some(false) => return,
            None => {
                drop(state);
                client.reset();
                return;
            }
        }
        drop(state);
        client.inet.common.wait.wake_all();
    }

    fn start_connect(&self, caller: &dyn NetCaller, state: &mut State, addr: &SockAddr) -> Result<bool> {
        let mut remote = self.inet.destination(addr, false)?;
        match reach(remote.ip()) {
            Reach::Any => remote.set_ip(loopback_like(remote.ip())),
            Reach::Loopback => {}
            Reach::Broadcast | Reach::Multicast | Reach::None => return Err(Errno::ENETUNREACH),
        }
        if let Some(local) = state.local
            && !local.ip().is_unspecified()
            && local.is_ipv4() != remote.is_ipv4()
        {
            return Err(Errno::EINVAL);
        }
        self.autobind(state, caller.cred().fsuid)?;
        let source = state.local.filter(|local| !local.ip().is_unspecified()).map(|local| local.ip());
        let port = state.local.map_or(0, |local| local.port());
        state.local = Some(SocketAddr::new(source.unwrap_or_else(|| loopback_like(remote.ip())), port));
        state.remote = Some(remote);
        let streams = &self.inet.stack.counts.streams;
        counts::one(&streams.opened);
        let turn = self.inet.stack.turn();
        let listener = self.inet.stack.tcp.find(remote.ip(), remote.port(), turn, |socket| {
            (!core::ptr::eq(socket, self) && socket.listening.load(Ordering::SeqCst))
                .then(|| socket.inet.common.suits_cpu(|| caller.machine().cpu()))
        });
        let established = listener.and_then(|listener| self.establish(state, &listener));
        if established.is_none() {
            counts::one(&streams.failed);
        }
        established.ok_or(Errno::ECONNREFUSED)
    }

    /// Gives up the connection as connect(2) with AF_UNSPEC does.
    fn disconnect(&self) {
        let listener = self.state.lock().listener.take();
        self.drop_listener(listener);
        let peer = self.peer.write().take();
        if let Some(peer) = peer {
            peer.reset();
            peer.forget_peer(self);
        }
        let mut state = self.state.lock();
        self.forget_connection(&mut state);
        drop(state);
        self.finished.store(false, Ordering::SeqCst);
        self.finished_first.store(false, Ordering::SeqCst);
        self.inbox.bytes.clear();
        self.urgent.forget();
        self.inet.common.clear_shut();
        self.inet.common.wait.wake_all();
    }

    /// What it does from now on is no affair of a socket whose connection with it is over: that may have another.
    pub(super) fn forget_peer(&self, other: &TcpSocket) {
        let before = self.peer.write().take_if(|peer| core::ptr::eq(&raw const **peer, other));
        drop(before);
    }

    /// The connections of a listener that is gone are reset.
    fn drop_listener(&self, listener: Option<Listener>) {
        let Some(listener) = listener else { return };
        self.listening.store(false, Ordering::SeqCst);
        for server in listener.pending {
            server.close(true);
        }
        for client in listener.waiting.values().filter_map(Weak::upgrade) {
            client.reset();
        }
    }

    /// The last reference of a program is gone. `abort`: with a RST whatever the state.
    fn close(&self, abort: bool) {
        if self.released.swap(true, Ordering::SeqCst) {
            return;
        }
        let common = &self.inet.common;
        let sent_fin = common.add_shut(shut::BOTH) & shut::SEND != 0;
        let stack = &self.inet.stack;
        let linger = common.linger();
        let reset = abort || self.inbox.bytes.clear() > 0 || (linger.onoff != 0 && linger.linger == 0);
        let listener = {
            let mut state = self.state.lock();
            let first =
                if sent_fin { self.finished_first.load(Ordering::SeqCst) } else { !self.finished.load(Ordering::SeqCst) };
            let connected = matches!(state.phase, Phase::Connected | Phase::Unreported);
            if connected
                && !reset
                && first
                && state.explicit
                && let Some(local) = state.local
            {
                stack.tcp.linger(local.port(), state.sharing.reuses(), stack.now().saturating_add(TIME_WAIT));
            }
            if let (Some(_), Some(local)) = (state.place, state.local) {
                stack.tcp.unbind(self.inet.id, local.port());
            }
            if let Some((port, reuse)) = state.accepted_on.take() {
                stack.tcp.remove_accepted(port, reuse);
            }
            self.leave_queue(&mut state);
            state.phase = Phase::Idle;
            state.listener.take()
        };
        self.drop_listener(listener);
        let peer = self.peer.write().take();
        if let Some(peer) = peer {
            if reset {
                peer.reset();
            } else {
                peer.finish();
            }
        }
        common.wait.wake_all();
        stack.tcp_all.lock().remove(&self.inet.id);
    }

    /// The peer sends no more.
    fn finish(&self) {
        self.finished.store(true, Ordering::SeqCst);
        self.inet.common.add_shut(shut::RECEIVE);
        self.inet.common.wait.wake_all();
    }

    fn info(&self) -> TcpInfo {
        let mss = 65483;
        let state = self.status().state;
        // Times, selective acknowledgement and scaled windows, which Linux' own two sides agree on.
        let (options, wscale) = if matches!(state, tcp::state::CLOSE | tcp::state::LISTEN) { (0, 0) } else { (7, 0x77) };
        TcpInfo {
            state,
            options,
            wscale,
            rto: 201_000,
            ato: 40_000,
            snd_mss: mss,
            rcv_mss: 536,
            pmtu: crate::net::iface::MTU,
            rcv_ssthresh: 65_483,
            rtt: 20,
            rttvar: 10,
            snd_ssthresh: i32::MAX as u32,
            snd_cwnd: 10,
            advmss: mss,
            reordering: 3,
            rcv_space: 65_483,
            ..TcpInfo::default()
        }
    }
}

/// What listings show of a socket.
pub struct Status {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// The state's number ([`tcp::state`]).
    pub state: u8,
    /// Bytes unread, or connections not accepted.
    pub queued: usize,
    pub family: u16,
    pub uid: u32,
    pub ino: u64,
}

impl Socket for TcpSocket {
    fn common(&self) -> &Common {
        &self.inet.common
    }

    fn bind(&self, caller: &dyn NetCaller, addr: &SockAddr) -> Result<()> {
        let (place, port) = self.inet.place(caller, addr, false)?;
        let mut state = self.state.lock();
        if state.place.is_some() || state.phase != Phase::Idle {
            return Err(Errno::EINVAL);
        }
        let sharing = self.inet.sharing(caller.cred().fsuid);
        let port = self.inet.stack.tcp.bind_in(
            self.inet.ephemeral(),
            self.inet.id,
            &self.me,
            port,
            place,
            sharing,
            self.inet.stack.now(),
        )?;
        state.place = Some(place);
        state.sharing = sharing;
        state.explicit = true;
        state.local = Some(SocketAddr::new(place.addr, port));
        Ok(())
    }

    fn listen(&self, caller: &dyn NetCaller, backlog: u32) -> Result<()> {
        let backlog = backlog.min(self.inet.stack.settings.waiting.get()) as usize;
        let mut state = self.state.lock();
        match state.phase {
            Phase::Listening => {
                if let Some(listener) = &mut state.listener {
                    listener.backlog = backlog;
                }
                drop(state);
                self.admit_waiting();
                return Ok(());
            }
            Phase::Idle | Phase::Reset => {}
            _ => return Err(Errno::EINVAL),
        }
        self.autobind(&mut state, caller.cred().fsuid)?;
        if let (Some(place), Some(local)) = (state.place, state.local) {
            let sharing = Sharing { listening: true, ..state.sharing };
            self.inet.stack.tcp.rebind(self.inet.id, local.port(), place, sharing, self.inet.stack.now())?;
        }
        state.phase = Phase::Listening;
        self.listening.store(true, Ordering::SeqCst);
        state.listener = Some(Listener::new(backlog));
        drop(state);
        self.inet.common.clear_shut();
        self.inet.common.wait.wake_all();
        Ok(())
    }

    fn accept(&self) -> Result<Arc<dyn Socket>> {
        let mut state = self.state.lock();
        let Some(listener) = &mut state.listener else { return Err(Errno::EINVAL) };
        let Some(server) = listener.pending.pop_front() else { return Err(Errno::EAGAIN) };
        let waiting = !listener.waiting.is_empty();
        drop(state);
        if waiting {
            self.admit_waiting();
        }
        Ok(server)
    }

    fn connect(&self, caller: &dyn NetCaller, addr: &SockAddr, nonblocking: bool) -> Result<()> {
        if matches!(addr, SockAddr::Unspec(_)) {
            self.disconnect();
            return Ok(());
        }
        let mut state = self.state.lock();
        match state.phase {
            Phase::Listening | Phase::Connected => return Err(Errno::EISCONN),
            Phase::Connecting => return Err(Errno::EALREADY),
            Phase::Unreported => {
                state.phase = Phase::Connected;
                return Ok(());
            }
            Phase::Reset => {
                drop(state);
                let error = self.inet.common.take_error();
                self.disconnect();
                return error.and(Err(Errno::ECONNABORTED));
            }
            Phase::Idle => {}
        }
        match self.start_connect(caller, &mut state, addr) {
            Ok(established) => {
                state.phase = match (established, nonblocking) {
                    (true, false) => Phase::Connected,
                    (true, true) => Phase::Unreported,
                    (false, _) => Phase::Connecting,
                };
                let done = state.phase == Phase::Connected;
                drop(state);
                // Pollers have seen an idle socket, which is a closed one.
                self.inet.common.wait.wake_all();
                if done { Ok(()) } else { Err(Errno::EINPROGRESS) }
            }
            Err(Errno::ECONNREFUSED) if nonblocking => {
                state.phase = Phase::Connecting;
                drop(state);
                self.reset();
                Err(Errno::EINPROGRESS)
            }
            Err(errno) => {
                self.forget_connection(&mut state);
                Err(errno)
            }
        }
    }

    fn name(&self) -> Result<SockAddr> {
        let local = self.state.lock().local;
        Ok(self.inet.present(local.unwrap_or_else(|| self.inet.unbound())))
    }

    fn peer_name(&self) -> Result<SockAddr> {
        let state = self.state.lock();
        match (state.phase, state.remote) {
            (Phase::Connected | Phase::Unreported, Some(remote)) => Ok(self.inet.present(remote)),
            _ => Err(Errno::ENOTCONN),
        }
    }

    fn send(
        &self,
        _caller: &dyn Caller,
        _names: Option<&dyn NetCaller>,
        buf: &mut WriteBuf<'_>,
        message: &Outgoing,
    ) -> Result<usize> {
        self.send_bytes(buf, message)
    }

    fn receive(&self, buf: &mut ReadBuf<'_>, flags: u32, _want_from: bool) -> Result<Received> {
        self.receive_bytes(buf, flags)
    }

    fn shutdown(&self, directions: u32) -> Result<()> {
        let mut state = self.state.lock();
        match state.phase {
            Phase::Idle | Phase::Reset => return Err(Errno::ENOTCONN),
            Phase::Listening => {
                if directions & shut::RECEIVE != 0 {
                    let listener = state.listener.take();
                    state.phase = Phase::Idle;
                    drop(state);
                    self.drop_listener(listener);
                    self.inet.common.wait.wake_all();
                }
                return Ok(());
            }
            Phase::Connecting | Phase::Unreported | Phase::Connected => {}
        }
        drop(state);
        let before = self.inet.common.add_shut(directions);
        if directions & !before & shut::SEND != 0 {
            self.finished_first.store(!self.finished.load(Ordering::SeqCst), Ordering::SeqCst);
            let peer = self.peer.read().clone();
            if let Some(peer) = peer {
                peer.finish();
            }
        }
        self.inet.common.wait.wake_all();
        Ok(())
    }

    fn poll(&self, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.inet.common.wait);
        }
        self.ready()
    }

    fn is_listening(&self) -> bool {
        self.listening.load(Ordering::SeqCst)
    }

    fn set_option(&self, caller: &dyn NetCaller, level: u32, name: u32, value: &[u8]) -> Result<()> {
        match (level, name) {
            (sol::SOCKET, so::RCVLOWAT) => {
                self.inet.common.set_option(&caller.cred(), name, value)?;
                self.cap_mark();
                Ok(())
            }
            (sol::SOCKET, _) => self.inet.common.set_option(&caller.cred(), name, value),
            (sol::TCP, tcp::CONGESTION) => {
                let wanted = value.split(|&byte| byte == 0).next().unwrap_or_default();
                let known = ["cubic", "reno"].into_iter().find(|known| known.as_bytes() == wanted);
                *self.congestion.lock() = known.ok_or(Errno::ENOENT)?;
                Ok(())
            }
            (sol::TCP, tcp::ULP) => Err(if value.is_empty() { Errno::EINVAL } else { Errno::ENOENT }),
            // A connection that is to be repaired may set it on Linux.
            (sol::TCP, tcp::TIMESTAMP) => int(value).and(Err(Errno::EPERM)),
            (sol::TCP, tcp::WINDOW_CLAMP) if int(value)? == 0 && self.peer.read().is_some() => Err(Errno::EINVAL),
            (sol::TCP, tcp::FASTOPEN) if !matches!(self.state.lock().phase, Phase::Idle | Phase::Reset | Phase::Listening) => {
                Err(Errno::EINVAL)
            }
            _ => match self.inet.named_interface(level, name, value) {
                // A connection does not choose by it.
                Some(answer) => answer.map(drop),
                None => {
                    self.inet.set_ip_option(&caller.cred(), self.state.lock().place.is_some(), level, name, value)?;
                    if (level, name) == (sol::TCP, tcp::INQ) {
                        self.inquires.store(self.inet.options.flag(level, name), Ordering::Relaxed);
                    }
                    Ok(())
                }
            },
        }
    }

    fn get_option(&self, _caller: &dyn NetCaller, level: u32, name: u32, room: usize) -> Result<Vec<u8>> {
        match (level, name) {
            (sol::SOCKET, so::PEERCRED) => {
                let nobody = janua_abi::linux::net::Ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
                Ok(nobody.as_bytes().to_vec())
            }
            (sol::SOCKET, so::MEMINFO) => Ok(memory_info(self)),
            (sol::SOCKET, _) => self.inet.common.get_option(name, self.is_listening(), room),
            // No protocol is on top.
            (sol::TCP, tcp::ULP) => Ok(Vec::new()),
            (sol::TCP, tcp::INFO) => Ok(self.info().as_bytes().to_vec()),
            (sol::TCP, tcp::CONGESTION) => {
                let mut name = self.congestion.lock().as_bytes().to_vec();
                name.resize(16, 0);
                Ok(name)
            }
            _ => self.inet.get_ip_option(self.peer.read().is_some(), level, name, room),
        }
    }

    fn readable_bytes(&self) -> usize {
        self.bytes_before_mark()
    }

    fn held(&self) -> Held {
        Held { received: self.inbox.bytes.len(), ..Held::default() }
    }

    fn inquiry(&self) -> Option<Ancillary> {
        if !self.inquires.load(Ordering::Relaxed) {
            return None;
        }
        // The end counts as a byte, so that it is looked for.
        let ended = self.finished.load(Ordering::SeqCst);
        let len = self.inbox.bytes.len().max(usize::from(ended)).min(i32::MAX as usize);
        Some(Ancillary { level: sol::TCP, kind: tcp::INQ, data: (len as i32).to_ne_bytes().to_vec() })
    }

    fn urgency(&self) -> Option<WaitQueue> {
        Some(self.urgent.queue())
    }

    fn ioctl(&self, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        match request {
            ioctl::SIOCATMARK => {}
            // A stream has no time of its own.
            _ => return stamp::ioctl(&Stamp::default(), caller, request, arg),
        }
        UserPtr::<i32>::new(arg).write(caller.user(), &i32::from(self.is_at_mark()))?;
        Ok(0)
    }

    fn release(&self) {
        self.close(false);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
