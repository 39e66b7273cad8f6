//! AF_UNIX sockets (unix(7)).
//!
//! A connected pair holds each other; who is released lets go of its peer, marks it, and stays in the peer's hands until that
//! is released too. Data is in the receiver's queue. Lock order: a socket's `peer`, then a listener's `state`, then queues.

pub mod names;
pub mod rights;
mod transfer;
mod urgent;

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use janua_abi::linux::net::{Ucred, ioctl, so, sock, sol};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_rt::{AtomicU64, Mutex, RwLock, WaitQueue};
use zerocopy::IntoBytes;

use crate::caller::Caller;
use crate::file::Events;
use crate::net::addr::{SockAddr, UnixName};
use crate::net::bytes::Note;
use crate::net::common::{Common, MostWaiting, shut};
use crate::net::inbox::Inbox;
use crate::net::records::RecordQueue;
use crate::net::socket::{Held, NetCaller, Outgoing, Received, Socket, memory_info};
use crate::net::urgent::Urgency;
use crate::vfs::{FileKind, Inode};

pub use names::Names;
use names::{NodeKey, key_of};
pub use rights::{Flight, Rights};

/// What all AF_UNIX sockets of a kernel share.
#[derive(Default)]
pub struct UnixSpace {
    pub names: Names,
    pub flight: Arc<Flight>,
    next_id: AtomicU64,
    pub waiting: MostWaiting,
}

/// Credentials of a process as a peer sees them.
#[derive(Clone, Default)]
pub struct PeerCred {
    pub ucred: Ucred,
    pub groups: Vec<u32>,
}

impl PeerCred {
    fn of(caller: &dyn NetCaller) -> PeerCred {
        let cred = caller.cred();
        PeerCred { ucred: Ucred { pid: caller.pid(), uid: cred.euid, gid: cred.egid }, groups: cred.groups.clone() }
    }
}

/// What hangs on bytes of a stream.
#[derive(Clone)]
pub(crate) struct UnixNote {
    cred: Ucred,
    rights: Option<Arc<Rights>>,
    /// The turn of the urgent byte that this is; 0 for others.
    mark: u32,
}

impl Note for UnixNote {
    fn take(&mut self) -> UnixNote {
        if let Some(rights) = &self.rights {
            rights.note_taken();
        }
        UnixNote { rights: self.rights.take(), ..*self }
    }

    /// Descriptors go with the first bytes, credentials with all.
    fn rest(&self) -> Option<UnixNote> {
        Some(UnixNote { rights: None, ..*self })
    }

    fn ends_read(&self) -> bool {
        self.rights.is_some()
    }
}

/// What goes with a record.
pub(crate) struct UnixRecord {
    from: UnixName,
    cred: Option<Ucred>,
    rights: Option<Arc<Rights>>,
    /// Dropped with the record: gives the sender its room back.
    _charge: Charge,
}

/// Room a record takes of its sender's SO_SNDBUF.
pub(crate) struct Charge {
    sender: Arc<Sent>,
    bytes: usize,
}

#[derive(Default)]
pub(crate) struct Sent {
    bytes: AtomicUsize,
    full: AtomicBool,
    wait: WaitQueue,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.sender.bytes.fetch_sub(self.bytes, Ordering::SeqCst);
        if self.sender.full.swap(false, Ordering::SeqCst) {
            self.sender.wait.wake((Events::OUT | Events::WRNORM | Events::WRBAND).bits());
        }
    }
}

struct Bound {
    name: UnixName,
    /// The inode, kept alive as long as the socket is bound to it.
    node: Option<(NodeKey, Arc<dyn Inode>)>,
}

struct Listener {
    backlog: usize,
    pending: VecDeque<Arc<UnixSocket>>,
    cred: PeerCred,
}

#[derive(Default)]
struct State {
    bound: Option<Bound>,
    listener: Option<Listener>,
    /// Was ever connected (streams) or is (datagrams).
    connected: bool,
    peer_cred: Option<PeerCred>,
}

/// An AF_UNIX socket.
pub struct UnixSocket {
    common: Common,
    me: Weak<UnixSocket>,
    space: Arc<UnixSpace>,
    /// Its number in this kernel.
    pub id: u64,
    inbox: Inbox<UnixNote>,
    urgent: Urgency,
    records: RecordQueue<UnixRecord>,
    sent: Arc<Sent>,
    peer: RwLock<Option<Arc<UnixSocket>>>,
    state: Mutex<State>,
    released: AtomicBool,
    /// The queue of a socket this one could not send or connect to because that was full.
    blocked: Mutex<Option<WaitQueue>>,
    /// `Some` where who releases the socket wants to let go what is lost with it ([`UnixSocket::keep_lost`]).
    lost: Mutex<Option<Vec<Arc<Rights>>>>,
}

impl UnixSocket {
    /// A socket of a type the caller has checked: STREAM, DGRAM or SEQPACKET.
    pub fn new(space: &Arc<UnixSpace>, kind: u32) -> Arc<UnixSocket> {
        let id = space.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let common = Common::new(janua_abi::linux::net::af::UNIX, kind, 0);
        let sent = Arc::new(Sent { wait: common.wait.clone(), ..Sent::default() });
        let socket = Arc::new_cyclic(|me| UnixSocket {
            common,
            me: me.clone(),
            space: space.clone(),
            id,
            inbox: Inbox::default(),
            urgent: Urgency::default(),
            records: RecordQueue::default(),
            sent,
            peer: RwLock::new(None),
            state: Mutex::new(State::default()),
            released: AtomicBool::new(false),
            lost: Mutex::new(None),
            blocked: Mutex::new(None),
        });
        space.names.add(id, &socket.me);
        socket
    }

    /// Connects two new sockets to each other (socketpair(2)).
    pub fn pair(caller: &dyn NetCaller, first: &Arc<UnixSocket>, second: &Arc<UnixSocket>) {
        let cred = PeerCred::of(caller);
        for (one, other) in [(first, second), (second, first)] {
            *one.peer.write() = Some(other.clone());
            let mut state = one.state.lock();
            state.connected = true;
            state.peer_cred = Some(cred.clone());
        }
    }

    /// The name it is bound to.
    pub fn unix_name(&self) -> UnixName {
        self.state.lock().bound.as_ref().map_or(UnixName::Unnamed, |bound| bound.name.clone())
    }

    /// For /proc/net/unix: whether it listens, and whether it is connected.
    pub fn status(&self) -> (bool, bool) {
        let state = self.state.lock();
        (state.listener.is_some(), state.connected)
    }

    /// The inode number of the socket it is connected to.
    pub fn peer_ino(&self) -> Option<u64> {
        self.peer.read().as_ref().map(|peer| peer.common.ino())
    }

    /// Whether it is closed and only kept by its peer.
    pub fn is_released(&self) -> bool {
        self.released.load(Ordering::SeqCst)
    }

    /// Shows every message with descriptors that waits in this socket or in connections it has not accepted.
    pub(crate) fn each_rights(&self, see: &mut dyn FnMut(&Rights)) {
        self.each_own(&mut |rights| see(rights));
        let pending: Vec<Arc<UnixSocket>> =
            self.state.lock().listener.iter().flat_map(|listener| listener.pending.iter().cloned()).collect();
        for embryo in pending {
            embryo.each_rights(see);
        }
    }

    /// The same of this socket alone.
    fn each_own(&self, see: &mut dyn FnMut(&Arc<Rights>)) {
        self.inbox.bytes.each_note(|note| note.rights.iter().for_each(&mut *see));
        self.records.each(|record| record.with.rights.iter().for_each(&mut *see));
    }

    /// Empties the queue. The descriptors in it are let go by who drops `lost`.
    fn empty(&self, lost: &mut Vec<Arc<Rights>>) {
        self.each_own(&mut |rights| lost.push(rights.clone()));
        self.inbox.bytes.clear();
        self.records.clear();
    }

    /// Has the release keep the messages with descriptors that are lost with this socket, for [`UnixSocket::take_lost`].
    fn keep_lost(&self) -> Option<Arc<UnixSocket>> {
        let socket = self.me.upgrade()?;
        *self.lost.lock() = Some(Vec::new());
        Some(socket)
    }

    fn take_lost(&self) -> Vec<Arc<Rights>> {
        self.lost.lock().take().unwrap_or_default()
    }

    /// Throws away what waits to be received.
    pub(crate) fn discard(&self) {
        let mut lost = Vec::new();
        self.empty(&mut lost);
        let pending = self.state.lock().listener.as_mut().map(|listener| core::mem::take(&mut listener.pending));
        for embryo in pending.into_iter().flatten() {
            embryo.close(true, &mut lost);
        }
    }

    fn strong(&self) -> Result<Arc<UnixSocket>> {
        self.me.upgrade().ok_or(Errno::ENOTCONN)
    }

    /// The socket an address leads to.
    fn find(&self, caller: &dyn NetCaller, name: &UnixName) -> Result<Arc<UnixSocket>> {
        let found = match name {
            UnixName::Unnamed => return Err(Errno::EINVAL),
            UnixName::Abstract(name) => self.space.names.find_abstract(self.common.kind, name),
            UnixName::Path(path) => {
                let inode = caller.find_node(path)?;
                if inode.kind() != FileKind::Socket {
                    return Err(Errno::ECONNREFUSED);
                }
                self.space.names.find_node(key_of(&inode)?)
            }
        };
        let found = found.filter(|socket| !socket.is_released()).ok_or(Errno::ECONNREFUSED)?;
        if found.common.kind == self.common.kind { Ok(found) } else { Err(Errno::EPROTOTYPE) }
    }

    /// Gives an unbound socket a name when it is to have one for its credentials' sake (unix(7), SO_PASSCRED).
    fn autobind_if_asked(&self) -> Result<()> {
        if self.common.flag(so::PASSCRED) && self.state.lock().bound.is_none() {
            self.bind_auto()?;
        }
        Ok(())
    }

    fn bind_auto(&self) -> Result<()> {
        let mut state = self.state.lock();
        if state.bound.is_none() {
            let name = self.space.names.autobind(self.common.kind, &self.me)?;
            state.bound = Some(Bound { name: UnixName::Abstract(name), node: None });
        }
        Ok(())
    }

    fn connect_stream(&self, caller: &dyn NetCaller, name: &UnixName) -> Result<()> {
        self.autobind_if_asked()?;
        // Before anything is locked: the way along a path may wait for a disk.
        let target = self.find(caller, name)?;
        let mut peer = self.peer.write();
        {
            let state = self.state.lock();
            if state.connected {
                return Err(Errno::EISCONN);
            }
            if state.listener.is_some() {
                return Err(Errno::EINVAL);
            }
        }
        let mut state = target.state.lock();
        let listening_name = state.bound.as_ref().map(|bound| bound.name.clone());
        let Some(listener) = &mut state.listener else { return Err(Errno::ECONNREFUSED) };
        if target.common.shut() & shut::RECEIVE != 0 {
            return Err(Errno::ECONNREFUSED);
        }
        if listener.pending.len() > listener.backlog {
            *self.blocked.lock() = Some(target.common.wait.clone());
            return Err(Errno::EAGAIN);
        }
        let cred = PeerCred::of(caller);
        let server = UnixSocket::new(&self.space, self.common.kind);
        server.common.inherit_passing(&target.common);
        *server.peer.write() = Some(self.strong()?);
        *server.state.lock() = State {
            bound: listening_name.map(|name| Bound { name, node: None }),
            listener: None,
            connected: true,
            peer_cred: Some(cred),
        };
        listener.pending.push_back(server.clone());
        let listener_cred = listener.cred.clone();
        drop(state);
        {
            let mut own = self.state.lock();
            own.connected = true;
            own.peer_cred = Some(listener_cred);
        }
        *peer = Some(server);
        drop(peer);
        target.common.wake_readers();
        Ok(())
    }

    fn connect_datagram(&self, caller: &dyn NetCaller, addr: &SockAddr) -> Result<()> {
        let target = match addr {
            SockAddr::Unspec(_) => None,
            SockAddr::Unix(name) => {
                self.autobind_if_asked()?;
                let target = self.find(caller, name)?;
                if !target.accepts_from(self) {
                    return Err(Errno::EPERM);
                }
                Some(target)
            }
            _ => return Err(Errno::EINVAL),
        };
        let connected = target.is_some();
        let before = core::mem::replace(&mut *self.peer.write(), target);
        self.state.lock().connected = connected;
        if let Some(before) = before
            && before.has_peer(self)
        {
            // What it sent is not for the new association.
            self.records.clear();
            before.common.set_error(Errno::ECONNRESET);
            before.common.wait.wake_all();
        }
        self.common.wait.wake_all();
        Ok(())
    }

    /// Whether datagrams from `sender` are taken: it is the peer, or there is none.
    fn accepts_from(&self, sender: &UnixSocket) -> bool {
        self.peer.read().as_ref().is_none_or(|peer| core::ptr::eq(Arc::as_ptr(peer), sender))
    }

    fn has_peer(&self, other: &UnixSocket) -> bool {
        self.peer.read().as_ref().is_some_and(|peer| core::ptr::eq(Arc::as_ptr(peer), other))
    }

    /// The last reference of a program is gone. `embryo`: it never had one, its listener is closed.
    fn close(&self, embryo: bool, lost: &mut Vec<Arc<Rights>>) {
        if self.released.swap(true, Ordering::SeqCst) {
            return;
        }
        self.common.add_shut(shut::BOTH);
        let (bound, listener) = {
            let mut state = self.state.lock();
            // The name stays readable for the peer; what leads here goes.
            (state.bound.as_mut().map(|bound| (bound.name.clone(), bound.node.take())), state.listener.take())
        };
        match bound {
            Some((_, Some((key, _)))) => self.space.names.unbind_node(key),
            Some((UnixName::Abstract(name), None)) => {
                // Accepted sockets bear the listener's name without holding it.
                let holds = self.space.names.find_abstract(self.common.kind, &name);
                if holds.is_some_and(|holder| core::ptr::eq(Arc::as_ptr(&holder), self)) {
                    self.space.names.unbind_abstract(self.common.kind, &name);
                }
            }
            _ => {}
        }
        for pending in listener.into_iter().flat_map(|listener| listener.pending) {
            pending.close(true, lost);
        }
        let peer = self.peer.write().take();
        if let Some(peer) = &peer {
            if self.common.kind != sock::DGRAM {
                let unread = !self.inbox.bytes.is_empty() || !self.records.is_empty();
                if unread || embryo {
                    peer.common.set_error(Errno::ECONNRESET);
                }
                peer.common.add_shut(shut::BOTH);
            }
            peer.common.wait.wake_all();
        }
        self.empty(lost);
        self.common.wait.wake_all();
        self.space.names.forget(self.id);
        self.space.flight.collect();
    }
}

impl Common {
    /// Accepted AF_UNIX sockets take over only whether credentials are wanted.
    fn inherit_passing(&self, from: &Common) {
        if from.flag(so::PASSCRED) {
            self.set_flag(so::PASSCRED);
        }
    }
}

impl Socket for UnixSocket {
    fn common(&self) -> &Common {
        &self.common
    }

    fn bind(&self, caller: &dyn NetCaller, addr: &SockAddr) -> Result<()> {
        let SockAddr::Unix(name) = addr else { return Err(Errno::EINVAL) };
        if *name == UnixName::Unnamed {
            return self.bind_auto();
        }
        if self.state.lock().bound.is_some() {
            return Err(Errno::EINVAL);
        }
        let node = match name {
            UnixName::Path(path) => {
                let inode = caller.make_socket_node(path, self.common.mode.load(Ordering::Relaxed))?;
                Some((key_of(&inode)?, inode))
            }
            _ => None,
        };
        let mut state = self.state.lock();
        if state.bound.is_some() {
            return Err(Errno::EINVAL);
        }
        match (&node, name) {
            (Some((key, _)), _) => self.space.names.bind_node(*key, &self.me),
            (None, UnixName::Abstract(name)) => self.space.names.bind_abstract(self.common.kind, name, &self.me)?,
            _ => {}
        }
        state.bound = Some(Bound { name: name.clone(), node });
        Ok(())
    }

    fn listen(&self, caller: &dyn NetCaller, backlog: u32) -> Result<()> {
        if self.common.kind == sock::DGRAM {
            return Err(Errno::EOPNOTSUPP);
        }
        let cred = PeerCred::of(caller);
        let mut state = self.state.lock();
        if state.bound.is_none() || state.connected {
            return Err(Errno::EINVAL);
        }
        let backlog = backlog.min(self.space.waiting.get()) as usize;
        match &mut state.listener {
            Some(listener) => {
                listener.backlog = backlog;
                listener.cred = cred;
            }
            none => *none = Some(Listener { backlog, pending: VecDeque::new(), cred }),
        }
        drop(state);
        self.common.wait.wake_all();
        Ok(())
    }

    fn accept(&self) -> Result<Arc<dyn Socket>> {
        if self.common.kind == sock::DGRAM {
            return Err(Errno::EOPNOTSUPP);
        }
        let mut state = self.state.lock();
        let Some(listener) = &mut state.listener else { return Err(Errno::EINVAL) };
        match listener.pending.pop_front() {
            Some(server) => {
                drop(state);
                self.common.wake_writers();
                Ok(server)
            }
            None if self.common.shut() & shut::RECEIVE != 0 => Err(Errno::EINVAL),
            None => Err(Errno::EAGAIN),
        }
    }

    fn connect(&self, caller: &dyn NetCaller, addr: &SockAddr, _nonblocking: bool) -> Result<()> {
        match addr {
            _ if self.common.kind == sock::DGRAM => self.connect_datagram(caller, addr),
            SockAddr::Unix(name) => self.connect_stream(caller, name),
            _ => Err(Errno::EINVAL),
        }
    }

    fn name(&self) -> Result<SockAddr> {
        Ok(SockAddr::Unix(self.unix_name()))
    }

    fn peer_name(&self) -> Result<SockAddr> {
        let peer = self.peer.read().clone().ok_or(Errno::ENOTCONN)?;
        Ok(SockAddr::Unix(peer.unix_name()))
    }

    fn send(
        &self,
        caller: &dyn Caller,
        names: Option<&dyn NetCaller>,
        buf: &mut WriteBuf<'_>,
        message: &Outgoing,
    ) -> Result<usize> {
        match self.common.kind {
            sock::STREAM => self.send_stream(caller, buf, message),
            _ => self.send_record(caller, names, buf, message),
        }
    }

    fn receive(&self, buf: &mut ReadBuf<'_>, flags: u32, want_from: bool) -> Result<Received> {
        if self.common.kind == sock::STREAM {
            self.receive_stream(buf, flags, want_from)
        } else {
            self.receive_record(buf, flags)
        }
    }

    fn shutdown(&self, directions: u32) -> Result<()> {
        self.common.add_shut(directions);
        if self.common.kind != sock::DGRAM
            && let Some(peer) = &*self.peer.read()
        {
            // What I no longer receive you cannot send, and the other way round.
            let mirrored = (directions & shut::RECEIVE) << 1 | (directions & shut::SEND) >> 1;
            peer.common.add_shut(mirrored);
            peer.common.wait.wake_all();
        }
        self.common.wait.wake_all();
        Ok(())
    }

    fn poll(&self, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.common.wait);
            if let Some(blocked) = self.blocked.lock().take() {
                table.add(&blocked);
            }
            // A connected datagram socket is writable when its peer's queue is not full.
            if self.common.kind == sock::DGRAM
                && let Some(peer) = &*self.peer.read()
            {
                table.add(&peer.common.wait);
            }
        }
        self.ready()
    }

    fn is_listening(&self) -> bool {
        self.state.lock().listener.is_some()
    }

    fn set_option(&self, caller: &dyn NetCaller, level: u32, name: u32, value: &[u8]) -> Result<()> {
        match level {
            sol::SOCKET => self.common.set_option(&caller.cred(), name, value),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    fn get_option(&self, _caller: &dyn NetCaller, level: u32, name: u32, room: usize) -> Result<Vec<u8>> {
        if level != sol::SOCKET {
            return Err(Errno::EOPNOTSUPP);
        }
        match name {
            so::PEERCRED => {
                let none = Ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
                let state = self.state.lock();
                let listener = state.listener.as_ref().map(|listener| listener.cred.ucred);
                let peer = state.peer_cred.as_ref().map(|cred| cred.ucred).or(listener);
                Ok(peer.unwrap_or(none).as_bytes().to_vec())
            }
            so::PEERGROUPS => {
                let state = self.state.lock();
                let groups = &state.peer_cred.as_ref().ok_or(Errno::ENODATA)?.groups;
                if room < groups.len() * 4 { Err(Errno::ERANGE) } else { Ok(groups.as_bytes().to_vec()) }
            }
            so::PEERSEC => Err(Errno::ENOPROTOOPT),
            so::MEMINFO => Ok(memory_info(self)),
            _ => self.common.get_option(name, self.is_listening(), room),
        }
    }

    fn readable_bytes(&self) -> usize {
        match self.common.kind {
            sock::STREAM => self.inbox.bytes.len(),
            sock::SEQPACKET => self.records.bytes(),
            _ => self.records.first_len(),
        }
    }

    fn unsent_bytes(&self) -> usize {
        match (&*self.peer.read(), self.common.kind) {
            (Some(peer), sock::STREAM) => peer.inbox.bytes.len(),
            _ => self.sent.bytes.load(Ordering::SeqCst),
        }
    }

    fn held(&self) -> Held {
        Held { received: self.inbox.bytes.len() + self.records.bytes(), sent: self.unsent_bytes(), lost: 0 }
    }

    fn urgency(&self) -> Option<WaitQueue> {
        (self.common.kind == sock::STREAM).then(|| self.urgent.queue())
    }

    fn ioctl(&self, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        match request {
            ioctl::SIOCATMARK if self.common.kind != sock::STREAM => Err(Errno::EOPNOTSUPP),
            ioctl::SIOCATMARK => {
                UserPtr::<i32>::new(arg).write(caller.user(), &i32::from(self.is_at_mark()))?;
                Ok(0)
            }
            _ => Err(Errno::ENOTTY),
        }
    }

    fn release(&self) {
        let mut lost = Vec::new();
        self.close(false, &mut lost);
        if let Some(kept) = &mut *self.lost.lock() {
            kept.append(&mut lost);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
