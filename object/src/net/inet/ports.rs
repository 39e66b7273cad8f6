//! Ports: who may bind what, and who is found there.
//!
//! One table serves a protocol for both address families: a v6 socket that is not V6ONLY and bound to `::` holds the port for
//! v4 as well. Sockets accepted from a listener share its port without a binding of their own; the table counts them. The
//! side that closes a connection first holds its port for a while longer (TIME_WAIT).

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::ops::RangeInclusive;

use hashbrown::HashMap;
use janua_abi::linux::{Errno, Result};
use janua_port::Nanos;
use janua_rt::Mutex;

/// net.ipv4.ip_local_port_range.
pub const EPHEMERAL: core::ops::RangeInclusive<u16> = 32768..=60999;

/// How long a closed connection holds its port.
pub const TIME_WAIT: Nanos = 60_000_000_000;

/// What a socket is bound to; IPv4 addresses written as IPv6 are IPv4 here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub addr: IpAddr,
    /// `::` that takes IPv4 as well.
    pub dual: bool,
}

impl Place {
    /// Whether a packet to `addr` may go there.
    pub fn takes(self, addr: IpAddr) -> bool {
        self.addr == addr || self.is_any_for(addr)
    }

    fn is_any_for(self, addr: IpAddr) -> bool {
        self.addr.is_unspecified() && (self.addr.is_ipv4() == addr.is_ipv4() || self.dual)
    }

    fn overlaps(self, other: Place) -> bool {
        let any_v4 = Place { addr: IpAddr::V4(Ipv4Addr::UNSPECIFIED), dual: false };
        self.takes(other.addr)
            || other.takes(self.addr)
            || (self.dual && other.takes(any_v4.addr))
            || (other.dual && self.takes(any_v4.addr))
    }

    /// How well it fits a packet to `addr`: 0 does not, more is better.
    fn score(self, addr: IpAddr) -> u32 {
        if self.addr == addr {
            3
        } else if !self.is_any_for(addr) {
            0
        } else if self.dual {
            1
        } else {
            2
        }
    }
}

/// What decides whether two sockets may share a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// SO_REUSEADDR at the time of bind.
    pub reuse_addr: bool,
    /// SO_REUSEPORT, which also wants the same user.
    pub reuse_port: bool,
    pub uid: u32,
    /// Streams: nobody binds or listens where a listener is by SO_REUSEADDR alone.
    pub listening: bool,
}

impl Sharing {
    /// Whether connections leave their port to sockets that share as well.
    pub fn reuses(self) -> bool {
        self.reuse_addr || self.reuse_port
    }

    /// Whether a socket that is there leaves room for another that comes, be it to bind or to listen.
    fn admits(self, other: Sharing) -> bool {
        (self.reuse_addr && other.reuse_addr && !self.listening)
            || (self.reuse_port && other.reuse_port && self.uid == other.uid)
    }
}

struct Binding<S> {
    id: u64,
    place: Place,
    sharing: Sharing,
    socket: Weak<S>,
}

struct Port<S> {
    bindings: Vec<Binding<S>>,
    /// Accepted sockets without and with SO_REUSEADDR or SO_REUSEPORT ([`Sharing::reuses`]).
    accepted: [usize; 2],
    /// When the last closed connection without and with these gives the port up (0: there is none).
    lingering: [Nanos; 2],
}

impl<S> Port<S> {
    fn is_free(&self, now: Nanos) -> bool {
        self.bindings.is_empty() && self.accepted == [0, 0] && self.lingering.iter().all(|&until| until <= now)
    }
}

struct Table<S> {
    ports: HashMap<u16, Port<S>>,
    next: u16,
}

/// The ports of one protocol.
pub struct Ports<S> {
    table: Mutex<Table<S>>,
}

impl<S> Table<S> {
    fn conflicts(&self, port: u16, place: Place, sharing: Sharing, but: u64, now: Nanos) -> bool {
        self.ports.get(&port).is_some_and(|entry| {
            let bound = entry
                .bindings
                .iter()
                .any(|binding| binding.id != but && binding.place.overlaps(place) && !binding.sharing.admits(sharing));
            let held = |reuse: usize| entry.accepted[reuse] > 0 || entry.lingering[reuse] > now;
            bound || held(0) || (held(1) && !sharing.reuses())
        })
    }

    fn prune(&mut self, port: u16) {
        if self.ports.get(&port).is_some_and(|entry| entry.is_free(0)) {
            self.ports.remove(&port);
        }
    }

    fn entry(&mut self, port: u16) -> &mut Port<S> {
        self.ports.entry(port).or_insert_with(|| Port { bindings: Vec::new(), accepted: [0, 0], lingering: [0, 0] })
    }
}

impl<S> Ports<S> {
    /// An empty table; `start` (random) is where looking for ephemeral ports begins.
    pub fn new(start: u16) -> Ports<S> {
        Ports { table: Mutex::new(Table { ports: HashMap::new(), next: start }) }
    }

    /// Binds socket `id` to a port, or to a free one of `among` when that is 0: the port. EADDRINUSE.
    #[expect(clippy::too_many_arguments, reason = "who, where, and how it may be shared")]
    pub fn bind_in(
        &self,
        among: RangeInclusive<u16>,
        id: u64,
        socket: &Weak<S>,
        port: u16,
        place: Place,
        sharing: Sharing,
        now: Nanos,
    ) -> Result<u16> {
        let mut table = self.table.lock();
        let port = if port == 0 {
            let size = among.end() - among.start() + 1;
            let start = table.next % size;
            // Alone on its port, whatever may be shared; a stride keeps successive ports apart as Linux' do.
            let half = size.div_ceil(2);
            let stride = |turn: u16| u32::from(turn % half) * 2 + u32::from(turn >= half);
            let free = (0..size)
                .map(|turn| among.start() + ((u32::from(start) + stride(turn)) % u32::from(size)) as u16)
                .find(|port| table.ports.get(port).is_none_or(|entry| entry.is_free(now)))
                .ok_or(Errno::EADDRINUSE)?;
            table.next = (free - among.start() + 2) % size;
            free
        } else if table.conflicts(port, place, sharing, id, now) {
            return Err(Errno::EADDRINUSE);
        } else {
            port
        };
        table.entry(port).bindings.push(Binding { id, place, sharing, socket: socket.clone() });
        Ok(port)
    }

    /// Changes a binding: a listener (which shares less), a datagram socket that connects. EADDRINUSE.
    pub fn rebind(&self, id: u64, port: u16, place: Place, sharing: Sharing, now: Nanos) -> Result<()> {
        let mut table = self.table.lock();
        if table.conflicts(port, place, sharing, id, now) && sharing.listening {
            return Err(Errno::EADDRINUSE);
        }
        if let Some(binding) = table.entry(port).bindings.iter_mut().find(|binding| binding.id == id) {
            binding.place = place;
            binding.sharing = sharing;
        }
        Ok(())
    }

    pub fn unbind(&self, id: u64, port: u16) {
        let mut table = self.table.lock();
        if let Some(entry) = table.ports.get_mut(&port) {
            entry.bindings.retain(|binding| binding.id != id);
            table.prune(port);
        }
    }

    /// Counts a socket accepted on a port, and discounts it.
    pub fn add_accepted(&self, port: u16, reuse: bool) {
        self.table.lock().entry(port).accepted[usize::from(reuse)] += 1;
    }

    pub fn remove_accepted(&self, port: u16, reuse: bool) {
        let mut table = self.table.lock();
        if let Some(entry) = table.ports.get_mut(&port) {
            let count = &mut entry.accepted[usize::from(reuse)];
            *count = count.saturating_sub(1);
            table.prune(port);
        }
    }

    /// A connection that was closed holds its port until a time; the latest counts.
    pub fn linger(&self, port: u16, reuse: bool, until: Nanos) {
        let mut table = self.table.lock();
        let last = &mut table.entry(port).lingering[usize::from(reuse)];
        *last = until.max(*last);
    }

    /// The socket that best fits `addr`:`port` among those `bonus` accepts; what it returns is added to the score of the
    /// address. Among equals `choose` picks (SO_REUSEPORT).
    pub fn find(&self, addr: IpAddr, port: u16, choose: u32, mut bonus: impl FnMut(&S) -> Option<u32>) -> Option<Arc<S>> {
        let table = self.table.lock();
        let mut best = 0;
        let mut found: Vec<Arc<S>> = Vec::new();
        for binding in &table.ports.get(&port)?.bindings {
            let score = binding.place.score(addr);
            if score == 0 || score * 16 + 15 < best {
                continue;
            }
            let Some(socket) = binding.socket.upgrade() else { continue };
            let Some(bonus) = bonus(&socket) else { continue };
            let score = score * 16 + bonus.min(15);
            if score > best {
                best = score;
                found.clear();
            }
            if score == best {
                found.push(socket);
            }
        }
        drop(table);
        let count = found.len();
        if count <= 1 { found.pop() } else { Some(found.swap_remove(choose as usize % count)) }
    }

    /// Every socket that takes packets to `addr`:`port` (multicast, broadcast).
    pub fn all(&self, addr: IpAddr, port: u16) -> Vec<Arc<S>> {
        let table = self.table.lock();
        let Some(entry) = table.ports.get(&port) else { return Vec::new() };
        entry
            .bindings
            .iter()
            .filter(|binding| binding.place.takes(addr))
            .filter_map(|binding| binding.socket.upgrade())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        let addr: IpAddr = text.trim_end_matches('+').parse().unwrap();
        Place { addr, dual: text.ends_with('+') }
    }

    struct World {
        ports: Ports<u64>,
        keep: Vec<Arc<u64>>,
        now: Nanos,
    }

    impl World {
        fn bind_in(&mut self, among: RangeInclusive<u16>) -> Result<u16> {
            let socket = Arc::new(self.keep.len() as u64);
            let weak = Arc::downgrade(&socket);
            self.keep.push(socket);
            self.ports.bind_in(among, self.keep.len() as u64, &weak, 0, place("0.0.0.0"), ALONE, self.now)
        }

        fn bind(&mut self, port: u16, at: &str, sharing: Sharing) -> Result<u16> {
            let id = self.keep.len() as u64;
            let socket = Arc::new(id);
            let weak = Arc::downgrade(&socket);
            self.keep.push(socket);
            self.ports.bind_in(EPHEMERAL, id, &weak, port, place(at), sharing, self.now)
        }
    }

    fn world() -> World {
        World { ports: Ports::new(5), keep: Vec::new(), now: 1 }
    }

    const ALONE: Sharing = Sharing { reuse_addr: false, reuse_port: false, uid: 0, listening: false };
    const REUSE: Sharing = Sharing { reuse_addr: true, ..ALONE };
    const LISTEN: Sharing = Sharing { listening: true, ..REUSE };
    const GROUP: Sharing = Sharing { reuse_port: true, ..ALONE };

    #[test]
    fn all_ports_of_a_range_are_found() {
        for size in 1..9 {
            let mut world = world();
            let mut found: Vec<u16> = (0..size).map(|_| world.bind_in(50_000..=50_000 + size - 1).unwrap()).collect();
            found.sort_unstable();
            assert_eq!(found, (50_000..50_000 + size).collect::<Vec<u16>>());
            assert_eq!(world.bind_in(50_000..=50_000 + size - 1), Err(Errno::EADDRINUSE));
        }
    }

    #[test]
    fn addresses_that_overlap_conflict() {
        for (one, other, conflict) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("0.0.0.0", "127.0.0.2", true),
            ("::1", "127.0.0.1", false),
            ("::", "127.0.0.1", false),
            ("::+", "127.0.0.1", true),
            ("::+", "0.0.0.0", true),
            ("::+", "::1", true),
            ("::", "0.0.0.0", false),
        ] {
            let mut world = world();
            world.bind(80, one, ALONE).unwrap();
            assert_eq!(world.bind(80, other, ALONE).is_err(), conflict, "{one} then {other}");
            assert_eq!(place(other).overlaps(place(one)), conflict, "{other} then {one}");
        }
    }

    #[test]
    fn sharing_follows_the_rules_of_socket_7() {
        for (one, other, may) in [
            (ALONE, REUSE, false),
            (REUSE, REUSE, true),
            (LISTEN, REUSE, false),
            (LISTEN, LISTEN, false),
            (REUSE, LISTEN, true),
            (ALONE, LISTEN, false),
            (GROUP, GROUP, true),
            (GROUP, Sharing { uid: 7, ..GROUP }, false),
            (GROUP, REUSE, false),
        ] {
            let mut world = world();
            world.bind(80, "0.0.0.0", one).unwrap();
            assert_eq!(world.bind(80, "0.0.0.0", other).is_ok(), may, "{one:?} then {other:?}");
        }
    }

    #[test]
    fn accepted_sockets_hold_the_port() {
        let mut world = world();
        world.bind(80, "0.0.0.0", REUSE).unwrap();
        world.ports.add_accepted(80, true);
        world.ports.unbind(0, 80);
        assert_eq!(world.bind(80, "0.0.0.0", ALONE), Err(Errno::EADDRINUSE));
        assert_eq!(world.bind(80, "0.0.0.0", REUSE), Ok(80));
        world.ports.unbind(2, 80);
        world.ports.remove_accepted(80, true);
        assert_eq!(world.bind(80, "0.0.0.0", ALONE), Ok(80));
    }

    #[test]
    fn closed_connections_hold_the_port_for_a_while() {
        for (closed, next, may) in [(ALONE, REUSE, false), (REUSE, ALONE, false), (REUSE, REUSE, true)] {
            let mut world = world();
            world.ports.add_accepted(80, closed.reuse_addr);
            world.ports.linger(80, closed.reuse_addr, 100);
            world.ports.remove_accepted(80, closed.reuse_addr);
            assert_eq!(world.bind(80, "0.0.0.0", next).is_ok(), may, "{closed:?} then {next:?}");
            world.ports.unbind(0, 80);
            world.now = 100;
            assert_eq!(world.bind(80, "0.0.0.0", ALONE), Ok(80));
        }
    }

    #[test]
    fn every_ephemeral_port_is_given_out_once() {
        let mut world = world();
        let mut seen = hashbrown::HashSet::new();
        for _ in EPHEMERAL {
            let port = world.bind(0, "127.0.0.1", ALONE).unwrap();
            assert!(EPHEMERAL.contains(&port) && seen.insert(port));
        }
        assert_eq!(world.bind(0, "127.0.0.1", REUSE), Err(Errno::EADDRINUSE));
    }

    #[test]
    fn the_best_address_wins() {
        let mut world = world();
        world.bind(53, "::+", GROUP).unwrap();
        world.bind(53, "0.0.0.0", GROUP).unwrap();
        world.bind(53, "127.0.0.3", GROUP).unwrap();
        let find = |addr: &str| world.ports.find(addr.parse().unwrap(), 53, 0, |_| Some(0)).map(|found| *found);
        assert_eq!(find("127.0.0.3"), Some(2));
        assert_eq!(find("127.0.0.1"), Some(1));
        assert_eq!(find("::1"), Some(0));
        assert_eq!(world.ports.find("127.0.0.3".parse().unwrap(), 53, 0, |id| (*id < 2).then_some(0)).map(|f| *f), Some(1));
    }
}
