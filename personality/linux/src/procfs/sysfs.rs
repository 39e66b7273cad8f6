//! /sys for trees of names that are not the host's: the processors, the memory nodes and the network as this kernel has them
//! (sysfs(5)). The tables are those of /proc.

use core::fmt::Write;

use janua_abi::linux::Result;
use janua_object::net::iface;
use janua_port::machine::processors;

use super::{Entry, Subject, Text};

/// An entry whose text is always the same.
macro_rules! fixed {
    ($name:literal, $text:literal) => {
        Entry::text($name, |_, text| {
            text.bytes(concat!($text, "\n").as_bytes());
            Ok(())
        })
    };
}

pub static ENTRIES: &[Entry] = &[
    Entry::dir("block", &[]),
    Entry::dir("class", &[Entry::dir("net", CLASS_NET)]),
    Entry::dir("devices", &[Entry::dir("system", &[Entry::dir("cpu", CPU), Entry::dir("node", NODE)])]),
    Entry::dir("fs", &[]),
    Entry::dir("kernel", &[Entry::dir("mm", &[])]),
];

/// The interfaces.
pub static CLASS_NET: &[Entry] = &[Entry::dir(iface::NAME, LOOPBACK)];

static LOOPBACK: &[Entry] = &[
    fixed!("addr_assign_type", "0"),
    fixed!("addr_len", "6"),
    fixed!("address", "00:00:00:00:00:00"),
    fixed!("broadcast", "00:00:00:00:00:00"),
    fixed!("carrier", "1"),
    fixed!("dormant", "0"),
    // IFF_UP and IFF_LOOPBACK: what is running is reported elsewhere.
    fixed!("flags", "0x9"),
    Entry::text("ifindex", |_, text| number(text, iface::INDEX)),
    Entry::text("iflink", |_, text| number(text, iface::INDEX)),
    fixed!("link_mode", "0"),
    Entry::text("mtu", |_, text| number(text, iface::MTU)),
    fixed!("operstate", "unknown"),
    Entry::text("tx_queue_len", |_, text| number(text, iface::TX_QUEUE)),
    Entry::text("type", |_, text| number(text, iface::HARDWARE.into())),
];

static CPU: &[Entry] = &[
    fixed!("isolated", ""),
    fixed!("offline", ""),
    Entry::text("online", cpus),
    Entry::text("possible", cpus),
    Entry::text("present", cpus),
];

/// All memory is one node's.
static NODE: &[Entry] = &[
    fixed!("has_cpu", "0"),
    fixed!("has_memory", "0"),
    fixed!("has_normal_memory", "0"),
    fixed!("online", "0"),
    fixed!("possible", "0"),
];

fn number(text: &mut Text, value: u32) -> Result<()> {
    let _ = writeln!(text, "{value}");
    Ok(())
}

/// Numbers of processors as ranges: "0-3,8".
fn cpus(subject: &Subject, text: &mut Text) -> Result<()> {
    let mut all = processors(subject.kernel.machine).peekable();
    let mut comma = "";
    while let Some(first) = all.next() {
        let mut last = first;
        while let Some(next) = all.next_if_eq(&(last + 1)) {
            last = next;
        }
        let _ = if first == last { write!(text, "{comma}{first}") } else { write!(text, "{comma}{first}-{last}") };
        comma = ",";
    }
    text.bytes(b"\n");
    Ok(())
}
