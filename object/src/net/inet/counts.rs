//! What the protocols have done since the kernel began (/proc/net/snmp, snmp6). There are no packets: a stream's bytes go from queue to queue, and of
//! datagrams only the datagrams themselves are counted.

use core::sync::atomic::Ordering;

use janua_rt::AtomicU64;

/// Streams of both families.
#[derive(Default)]
pub struct Streams {
    /// Connections begun, taken up by a listener, and refused.
    pub opened: AtomicU64,
    pub accepted: AtomicU64,
    pub failed: AtomicU64,
}

/// Datagrams of one protocol and family.
#[derive(Default)]
pub struct Datagrams {
    pub sent: AtomicU64,
    pub received: AtomicU64,
    /// To an address where nobody was.
    pub unreached: AtomicU64,
    /// For want of room at the receiver.
    pub lost: AtomicU64,
}

#[derive(Default)]
pub struct Counts {
    pub streams: Streams,
    /// UDP by IPv4 and IPv6, then UDP-Lite.
    datagrams: [[Datagrams; 2]; 2],
}

impl Counts {
    pub fn datagrams(&self, lite: bool, v6: bool) -> &Datagrams {
        &self.datagrams[usize::from(lite)][usize::from(v6)]
    }
}

/// One more.
pub fn one(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}
