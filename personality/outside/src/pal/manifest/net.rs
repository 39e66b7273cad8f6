//! Rules of the network: `BIND:PORT:PEER:PORT`, each port one or a range `A-B`. The address `0.0.0.0` or `[::]` is any, and port 0 any.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::net::{IpAddr, SocketAddr};

/// Addresses of one side of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    pub ip: IpAddr,
    /// The first and the last port; 0 and 65535 for any.
    pub ports: (u16, u16),
}

impl Addresses {
    /// Whether an address is one of these.
    pub fn hold(&self, addr: SocketAddr) -> bool {
        // An address of IPv4 in IPv6's form is one of IPv4's.
        let ip = addr.ip().to_canonical();
        let any = self.ip.is_unspecified() && self.ip.is_ipv4() == ip.is_ipv4();
        (any || self.ip == ip) && (self.ports.0..=self.ports.1).contains(&addr.port())
    }
}

/// Where sockets may be bound, and what those may talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetRule {
    pub bind: Addresses,
    pub peer: Addresses,
}

impl NetRule {
    pub(super) fn parse(text: &str) -> Result<NetRule, String> {
        let (bind, rest) = side(text)?;
        let rest = rest.strip_prefix(':').ok_or_else(|| format!("`{text}` is not BIND:PORT:PEER:PORT"))?;
        match side(rest)? {
            (peer, "") => Ok(NetRule { bind, peer }),
            (_, more) => Err(format!("`{more}` is too much")),
        }
    }
}

/// An address and its ports, and what comes behind them.
fn side(text: &str) -> Result<(Addresses, &str), String> {
    let wrong = || format!("`{text}` is not ADDRESS:PORT");
    let end = match text.starts_with('[') {
        true => text.find(']').ok_or_else(wrong)? + 1,
        false => text.find(':').ok_or_else(wrong)?,
    };
    let written = &text[..end];
    let ip = written.trim_start_matches('[').trim_end_matches(']');
    let ip: IpAddr = ip.parse().map_err(|_| format!("`{written}` is not an address"))?;
    let rest = text[end..].strip_prefix(':').ok_or_else(wrong)?;
    let cut = rest.find(':').unwrap_or(rest.len());
    let ports = ports(&rest[..cut]).ok_or_else(|| format!("`{}` is no port and no range of ports", &rest[..cut]))?;
    Ok((Addresses { ip, ports }, &rest[cut..]))
}

fn ports(text: &str) -> Option<(u16, u16)> {
    if text == "0" {
        return Some((0, u16::MAX));
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

/// An address as URIs have it: `ADDR:PORT`, IPv6 in brackets.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "not ADDRESS:PORT".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hold_what_they_name() {
        let rule = NetRule::parse("127.0.0.1:8000-8010:[::]:0").unwrap();
        assert!(rule.bind.hold("127.0.0.1:8010".parse().unwrap()) && !rule.bind.hold("127.0.0.1:8011".parse().unwrap()));
        assert!(!rule.bind.hold("127.0.0.2:8000".parse().unwrap()));
        assert!(rule.peer.hold("[::1]:1".parse().unwrap()) && !rule.peer.hold("1.1.1.1:1".parse().unwrap()));
        // Any address of one family is none of the other's, in whichever form it is written.
        assert!(!rule.peer.hold("[::ffff:1.1.1.1]:1".parse().unwrap()));
    }

    #[test]
    fn malformed_rules_are_refused() {
        for text in
            ["", "1.2.3.4", "1.2.3.4:5", "1.2.3.4:5:6", "[::1:5:1.1.1.1:1", "1.2.3.4:x:1.1.1.1:1", "1.2.3.4:9-3:1.1.1.1:1"]
        {
            assert!(NetRule::parse(text).is_err(), "{text}");
        }
        assert!(NetRule::parse("1.2.3.4:5:6.7.8.9:10:11").is_err());
        assert!(address("1.2.3.4").is_err() && address("[::1]:80").is_ok());
    }
}
