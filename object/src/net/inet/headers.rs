//! The headers that datagrams would have on a wire, for filters, which look at them. Checksums are left at zero, as on an interface that
//! needs none.

use alloc::vec::Vec;
use core::net::IpAddr;

use super::udp::Header;

/// Ethernet types.
const IP: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// That of a datagram; `third` is its length with this header or, with UDP-Lite, how much of it the checksum covers.
pub(super) fn udp(from: u16, to: u16, third: u16) -> [u8; 8] {
    let mut head = [0; 8];
    for (field, value) in head.chunks_exact_mut(2).zip([from, to, third]) {
        field.copy_from_slice(&value.to_be_bytes());
    }
    head
}

/// That of the Internet protocol, for so many bytes of `protocol` behind it, and its type.
pub(super) fn ip(with: &Header, protocol: u32, len: usize) -> (Vec<u8>, u16) {
    let (ttl, tos) = (with.ttl as u8, with.tos as u8);
    match (with.from.ip(), with.to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut head = Vec::with_capacity(20);
            head.extend_from_slice(&[0x45, tos]);
            head.extend_from_slice(&((len + 20) as u16).to_be_bytes());
            // No identity, not to be taken apart.
            head.extend_from_slice(&[0, 0, 0x40, 0, ttl, protocol as u8, 0, 0]);
            head.extend_from_slice(&from.octets());
            head.extend_from_slice(&to.octets());
            (head, IP)
        }
        (from, to) => {
            let address = |addr: IpAddr| match addr {
                IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
                IpAddr::V6(v6) => v6.octets(),
            };
            let mut head = Vec::with_capacity(40);
            head.extend_from_slice(&[0x60 | tos >> 4, tos << 4, 0, 0]);
            head.extend_from_slice(&(len as u16).to_be_bytes());
            head.extend_from_slice(&[protocol as u8, ttl]);
            head.extend_from_slice(&address(from));
            head.extend_from_slice(&address(to));
            (head, IPV6)
        }
    }
}
