//! The queue of errors of a datagram socket: what ICMP would report of datagrams that found nobody, for those who ask (IP_RECVERR,
//! ip(7)).

use alloc::boxed::Box;
use core::net::{IpAddr, SocketAddr};

use janua_abi::linux::net::{SockExtendedErr, ip, ipv6, msg, origin, sol};
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::ReadBuf;
use zerocopy::IntoBytes;

use super::Inet;
use super::udp::UdpSocket;
use crate::net::records::Record;
use crate::net::socket::{Ancillary, Received};

/// What an entry costs beside its bytes, of the room for what is received.
const OVERHEAD: usize = 768;

/// A datagram came back: it was for an address where nobody listens.
#[derive(Clone, Copy)]
pub(super) struct Refusal {
    to: SocketAddr,
}

/// `struct sock_extended_err` of a port without a socket, for either version of the protocol.
fn refused(to: IpAddr) -> SockExtendedErr {
    let (origin, kind, code) = if to.is_ipv4() { (origin::ICMP, 3, 3) } else { (origin::ICMP6, 1, 4) };
    SockExtendedErr { errno: u32::from(Errno::ECONNREFUSED.0.get()), origin, kind, code, ..SockExtendedErr::default() }
}

impl UdpSocket {
    fn keeps_errors(&self, to: SocketAddr) -> bool {
        let options = &self.inet.options;
        if to.is_ipv4() { options.flag(sol::IP, ip::RECVERR) } else { options.flag(sol::IPV6, ipv6::RECVERR) }
    }

    /// A datagram to `to` has found nobody. Who is connected hears so with its next call; so does who keeps errors, and finds the
    /// datagram among them.
    pub(super) fn bounced(&self, to: SocketAddr, data: Box<[u8]>, connected: bool) {
        let common = &self.inet.common;
        let keeps = self.keeps_errors(to);
        if !keeps && !connected {
            return;
        }
        if keeps {
            let held = self.errors.bytes() + self.errors.len() * OVERHEAD + self.queue.bytes();
            if held + data.len() + OVERHEAD <= self.receive_limit() {
                let _ = self.errors.push(Record::new(data, Refusal { to }), usize::MAX);
            }
        }
        common.set_error(Errno::ECONNREFUSED);
        common.wait.wake_all();
    }

    /// The oldest entry (MSG_ERRQUEUE). EAGAIN.
    pub(super) fn receive_error(&self, buf: &mut ReadBuf<'_>) -> Result<Received> {
        let record = self.errors.pop().ok_or(Errno::EAGAIN)?;
        let common = &self.inet.common;
        // What is pending is the next one's.
        if self.errors.is_empty() {
            let _ = common.take_error();
        } else {
            common.set_error(Errno::ECONNREFUSED);
            common.wait.wake_all();
        }
        let len = buf.put_whole(&record.data)?;
        let truncated = if record.data.len() > len { msg::TRUNC } else { 0 };
        Ok(Received {
            len,
            full: record.data.len(),
            from: Some(self.inet.present(record.with.to)),
            flags: truncated | msg::ERRQUEUE,
            ancillary: [described(&self.inet, record.with.to.ip())].into(),
            ..Received::default()
        })
    }
}

/// The control message that goes with an entry: the error, and who reported it, which is the machine itself.
fn described(inet: &Inet, to: IpAddr) -> Ancillary {
    let (level, kind) = if inet.is_v6() { (sol::IPV6, ipv6::RECVERR) } else { (sol::IP, ip::RECVERR) };
    let mut data = refused(to).as_bytes().to_vec();
    data.extend_from_slice(inet.present(SocketAddr::new(to, 0)).encode().as_bytes());
    Ancillary { level, kind, data }
}
