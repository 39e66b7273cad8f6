//! Arguments of socket calls, and how the trace shows them.

use core::fmt::Write;

use janua_abi::linux::net::sock;
use janua_kernel::table::{Arg, Kind};
use janua_kernel::{Errno, Result};

macro_rules! words {
    ($($(#[$meta:meta])* $name:ident: $family:literal,)*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name(pub u32);

            impl Arg for $name {
                const KIND: Kind = Kind::Named($family);
                fn decode(word: usize) -> Result<Self> {
                    Ok($name(word as u32))
                }
            }
        )*
    };
}

words! {
    /// An address family (AF_*).
    Domain: "socket_domain",
    /// A socket type with SOCK_NONBLOCK and SOCK_CLOEXEC.
    Type: "socket_type",
    /// MSG_* flags.
    MsgFlags: "msg",
    /// An option level (SOL_*).
    Level: "socket_level",
}

impl Type {
    /// EINVAL for flags that do not exist.
    pub fn check(self) -> Result<Type> {
        if self.0 & !(sock::TYPE_MASK | sock::NONBLOCK | sock::CLOEXEC) != 0 { Err(Errno::EINVAL) } else { Ok(self) }
    }

    /// The type without flags.
    pub fn number(self) -> u32 {
        self.0 & sock::TYPE_MASK
    }
}

const DOMAINS: &[(u32, &str)] = &[
    (0, "AF_UNSPEC"),
    (1, "AF_UNIX"),
    (2, "AF_INET"),
    (10, "AF_INET6"),
    (16, "AF_NETLINK"),
    (17, "AF_PACKET"),
    (38, "AF_ALG"),
    (40, "AF_VSOCK"),
];

const TYPES: &[(u32, &str)] = &[(1, "SOCK_STREAM"), (2, "SOCK_DGRAM"), (3, "SOCK_RAW"), (4, "SOCK_RDM"), (5, "SOCK_SEQPACKET")];

const LEVELS: &[(u32, &str)] =
    &[(0, "SOL_IP"), (1, "SOL_SOCKET"), (6, "SOL_TCP"), (17, "SOL_UDP"), (41, "SOL_IPV6"), (270, "SOL_NETLINK")];

const MESSAGE_FLAGS: &[(u32, &str)] = &[
    (0x1, "MSG_OOB"),
    (0x2, "MSG_PEEK"),
    (0x4, "MSG_DONTROUTE"),
    (0x8, "MSG_CTRUNC"),
    (0x20, "MSG_TRUNC"),
    (0x40, "MSG_DONTWAIT"),
    (0x80, "MSG_EOR"),
    (0x100, "MSG_WAITALL"),
    (0x800, "MSG_CONFIRM"),
    (0x2000, "MSG_ERRQUEUE"),
    (0x4000, "MSG_NOSIGNAL"),
    (0x8000, "MSG_MORE"),
    (0x10000, "MSG_WAITFORONE"),
    (0x400_0000, "MSG_ZEROCOPY"),
    (0x2000_0000, "MSG_FASTOPEN"),
    (0x4000_0000, "MSG_CMSG_CLOEXEC"),
];

const TYPE_FLAGS: &[(u32, &str)] = &[(sock::NONBLOCK, "SOCK_NONBLOCK"), (sock::CLOEXEC, "SOCK_CLOEXEC")];

fn one_of(names: &[(u32, &str)], word: u32, out: &mut dyn Write) -> bool {
    match names.iter().find(|(number, _)| *number == word) {
        Some((_, name)) => out.write_str(name).is_ok(),
        None => false,
    }
}

/// Writes `first` and the flags set in `word`, joined by bars; bits without a name in hexadecimal.
fn flags(first: Option<&str>, names: &[(u32, &str)], mut word: u32, out: &mut dyn Write) -> bool {
    let mut bar = "";
    let set = names.iter().filter(|(bit, _)| word & bit != 0).map(|(_, name)| *name);
    for name in first.into_iter().chain(set) {
        if write!(out, "{bar}{name}").is_err() {
            return false;
        }
        bar = "|";
    }
    for (bit, _) in names {
        word &= !bit;
    }
    if word != 0 || bar.is_empty() { write!(out, "{bar}{}{word:x}", if word == 0 { "" } else { "0x" }).is_ok() } else { true }
}

/// Decodes a word of one of the families above; false when it is none of them or has no name.
pub fn trace(family: &str, word: usize, out: &mut dyn Write) -> bool {
    let word = word as u32;
    match family {
        "socket_domain" => one_of(DOMAINS, word, out),
        "socket_level" => one_of(LEVELS, word, out),
        "socket_type" => {
            let name = TYPES.iter().find(|(number, _)| *number == word & sock::TYPE_MASK).map(|(_, name)| *name);
            name.is_some() && flags(name, TYPE_FLAGS, word & !sock::TYPE_MASK, out)
        }
        "msg" => flags(None, MESSAGE_FLAGS, word, out),
        _ => false,
    }
}
