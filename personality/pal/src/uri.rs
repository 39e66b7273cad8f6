//! URIs: what a stream is called.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use janua_abi::linux::Errno;
use janua_abi::pal::Error;
use janua_kernel::UserStr;
use janua_personality_linux::Thread;
use janua_personality_outside::pal::manifest::address;

use crate::answer::Result;

/// Longest URI, its zero included.
const MOST: usize = 4096 + 8;

/// A URI that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uri {
    File(Vec<u8>),
    Dir(Vec<u8>),
    /// The console.
    Tty,
    Device(Vec<u8>),
    PipeServer(u64),
    Pipe(u64),
    /// A stream that leads to its own holder.
    PipePrivate,
    TcpServer(SocketAddr),
    UdpServer(SocketAddr),
    /// Where to bind, and whom to talk to.
    Tcp(Option<SocketAddr>, SocketAddr),
    Udp(Option<SocketAddr>, SocketAddr),
    /// A socket for datagrams without an address: `udp:`.
    UdpAny,
    Gipc(u64),
}

impl Uri {
    /// Reads one. TOOLONG, BADADDR, and for what is none INVAL.
    pub fn of(thread: &Thread, at: UserStr) -> Result<Uri> {
        Ok(Uri::parse(&at.read(thread.user(), MOST, Errno::ENAMETOOLONG)?)?)
    }

    /// The same of text. EINVAL.
    pub fn parse(text: &[u8]) -> core::result::Result<Uri, Errno> {
        let cut = text.iter().position(|byte| *byte == b':').ok_or(Errno::EINVAL)?;
        let (scheme, rest) = (&text[..cut], &text[cut + 1..]);
        let written = core::str::from_utf8(rest).map_err(|_| Errno::EINVAL);
        let one = || address(written?).map_err(|_| Errno::EINVAL);
        Ok(match scheme {
            b"file" => Uri::File(path(rest)?),
            b"dir" => Uri::Dir(path(rest)?),
            b"dev" if rest == b"tty" => Uri::Tty,
            b"dev" if rest.starts_with(b"/dev/") => Uri::Device(path(rest)?),
            b"pipe.srv" => Uri::PipeServer(number(written?)?),
            b"pipe" if rest.is_empty() => Uri::PipePrivate,
            b"pipe" => Uri::Pipe(number(written?)?),
            b"tcp.srv" => Uri::TcpServer(one()?),
            b"udp.srv" => Uri::UdpServer(one()?),
            b"tcp" => pair(written?).map(|(bind, peer)| Uri::Tcp(bind, peer))?,
            b"udp" if rest.is_empty() => Uri::UdpAny,
            b"udp" => pair(written?).map(|(bind, peer)| Uri::Udp(bind, peer))?,
            b"gipc" => Uri::Gipc(number(written?)?),
            _ => return Err(Errno::EINVAL),
        })
    }
}

fn path(text: &[u8]) -> core::result::Result<Vec<u8>, Errno> {
    if text.is_empty() { Err(Errno::EINVAL) } else { Ok(text.to_vec()) }
}

fn number(text: &str) -> core::result::Result<u64, Errno> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().map_err(|_| Errno::EINVAL) } else { Err(Errno::EINVAL) }
}

/// `DST:PORT`, or `BIND:PORT:DST:PORT`.
fn pair(text: &str) -> core::result::Result<(Option<SocketAddr>, SocketAddr), Errno> {
    let invalid = |_: String| Errno::EINVAL;
    if let Ok(peer) = address(text) {
        return Ok((None, peer));
    }
    // The colon between the two is behind the first one that follows the address.
    let after = text.find(']').unwrap_or(0);
    let port = text[after..].find(':').map(|at| after + at + 1).ok_or(Errno::EINVAL)?;
    let cut = text[port..].find(':').map(|at| port + at).ok_or(Errno::EINVAL)?;
    Ok((Some(address(&text[..cut]).map_err(invalid)?), address(&text[cut + 1..]).map_err(invalid)?))
}

/// The address that a datagram is for: `udp:ADDR:PORT`.
pub fn destination(thread: &Thread, at: UserStr) -> Result<SocketAddr> {
    match Uri::of(thread, at)? {
        Uri::Udp(None, peer) => Ok(peer),
        _ => Err(Error::Invalid.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn uris_are_read() {
        assert_eq!(Uri::parse(b"file:a/b"), Ok(Uri::File(b"a/b".to_vec())));
        assert_eq!(Uri::parse(b"dev:tty"), Ok(Uri::Tty));
        assert_eq!(Uri::parse(b"pipe:"), Ok(Uri::PipePrivate));
        assert_eq!(Uri::parse(b"pipe.srv:18446744073709551615"), Ok(Uri::PipeServer(u64::MAX)));
        assert_eq!(Uri::parse(b"tcp:1.2.3.4:5:6.7.8.9:10"), Ok(Uri::Tcp(Some(addr("1.2.3.4:5")), addr("6.7.8.9:10"))));
        assert_eq!(Uri::parse(b"udp:[::1]:5:[::2]:6"), Ok(Uri::Udp(Some(addr("[::1]:5")), addr("[::2]:6"))));
        assert_eq!(Uri::parse(b"udp:[::1]:5"), Ok(Uri::Udp(None, addr("[::1]:5"))));
    }

    #[test]
    fn what_is_no_uri_is_invalid() {
        for text in [
            "",
            "file",
            "file:",
            "http:x",
            "dev:sda",
            "dev:",
            "pipe:x",
            "pipe:-1",
            "pipe:+1",
            "pipe:18446744073709551616",
            "tcp:",
            "tcp:1.2.3.4",
            "tcp:1.2.3.4:65536",
            "tcp:[::1:5",
            "tcp:1.2.3.4:5:6",
            "tcp.srv:1.2.3.4:5:6.7.8.9:10",
            "gipc:",
            "é:",
        ] {
            assert_eq!(Uri::parse(text.as_bytes()), Err(Errno::EINVAL), "{text}");
        }
        assert_eq!(Uri::parse(b"pipe:\xff"), Err(Errno::EINVAL));
    }
}
