//! The system as a whole: uname(2), sysinfo(2), random numbers.

use janua_abi::linux::process::UtsName;

use crate::boot::BootConfig;

/// The Linux release whose interface this is.
pub const RELEASE: &str = "6.18.0-janua";
/// What uname(2) calls the version.
pub const VERSION: &str = concat!("#1 SMP Janua ", env!("CARGO_PKG_VERSION"));

fn field(text: &[u8]) -> [u8; 65] {
    let mut field = [0; 65];
    let len = text.len().min(64);
    field[..len].copy_from_slice(&text[..len]);
    field
}

/// The names of a new kernel.
pub fn uts_name(config: &BootConfig) -> UtsName {
    let or = |name: &[u8], other: &'static [u8]| if name.is_empty() { field(other) } else { field(name) };
    UtsName {
        sysname: field(b"Linux"),
        nodename: or(&config.hostname, b"janua"),
        release: field(RELEASE.as_bytes()),
        version: field(VERSION.as_bytes()),
        machine: field(b"x86_64"),
        domainname: or(&config.domainname, b"(none)"),
    }
}
